/* tidy.h - the files that jobs leave outside the store: measure, list and remove them.
 *
 * The caller decides what to remove; the implementation only knows files. It follows no links and
 * never leaves the context's folder. What cannot be removed stays and is not counted; the next pass
 * tries again.
 *
 * As for the store: requests are embedded; `done` runs exactly once, later, on the control thread;
 * arguments are borrowed until then; results are valid only inside `done`. Requests are carried out
 * one after the other. */
#ifndef GL_PORT_TIDY_H
#define GL_PORT_TIDY_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

struct gl_tidy;
struct gl_tidy_req;
typedef void gl_tidy_done(struct gl_tidy_req *req);

struct gl_tidy_req {
    gl_tidy_done *done;
    void *owner;

    int status; /* 0 | GL_E_UNAVAILABLE | GL_E_IO */
    struct gl_why why;
    uint64_t removed_n; /* folders or blobs */
    uint64_t bytes;     /* freed or measured */
    uint64_t young;     /* remove_blobs: bytes kept only because they are too recent */
    const gl_str *names;
    size_t names_n;

    void *maker[4];
};

struct gl_tidy {
    /* Remove logs, working folders and everything else that the attempts of these jobs left. */
    void (*remove_jobs)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context,
                        const gl_str *jobs, size_t jobs_n);
    /* List the jobs that left files. */
    void (*list_jobs)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context);
    /* List attempts, as "job/step:attempt:n", whose working folder was not touched for `age_ms`; at
     * most `limit`. */
    void (*list_work)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context, gl_ms age_ms,
                      size_t limit);
    /* Remove the working folders of these attempts; their logs stay. */
    void (*remove_work)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context,
                        const gl_str *attempts, size_t attempts_n);
    /* Remove blobs last put or asked for more than `age_ms` ago, except those in `keep` (hashes in
     * hex). */
    void (*remove_blobs)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context,
                         const gl_str *keep, size_t keep_n, gl_ms age_ms);
    /* Measure the disk space of all of it. */
    void (*measure)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context);
};

#endif
