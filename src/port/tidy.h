/* tidy.h - what jobs leave behind outside the store: measured, looked through, taken away.
 *
 * Whoever calls decides what goes; the maker knows only files. It follows no links and never leaves
 * the context's folder. What cannot be removed stays and is not counted: the next pass meets it
 * again.
 *
 * As with the store: requests are embedded, `done` runs exactly once, later, on the control thread;
 * what was given is borrowed until then; results are valid inside `done` only. Requests are carried
 * out one after the other. */
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
    uint64_t bytes;     /* freed by it; or measured */
    uint64_t young;     /* remove_blobs: bytes that stay only because they are not old enough */
    const gl_str *names;
    size_t names_n;

    void *maker[4];
};

struct gl_tidy {
    /* Logs, working folders and everything else the attempts of these jobs have left. */
    void (*remove_jobs)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context,
                        const gl_str *jobs, size_t jobs_n);
    /* The jobs that have left something. */
    void (*list_jobs)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context);
    /* Attempts, as "job/step:attempt:n", that have a working folder and were not touched for
     * `age_ms`; at most `limit`. */
    void (*list_work)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context, gl_ms age_ms,
                      size_t limit);
    /* The working folders of such attempts; their logs stay. */
    void (*remove_work)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context,
                        const gl_str *attempts, size_t attempts_n);
    /* Blobs that were put or asked for longer than `age_ms` ago, but those in `keep` (hashes in
     * hex). */
    void (*remove_blobs)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context,
                         const gl_str *keep, size_t keep_n, gl_ms age_ms);
    /* How much room all of it takes. */
    void (*measure)(struct gl_tidy *t, struct gl_tidy_req *req, gl_str context);
};

#endif
