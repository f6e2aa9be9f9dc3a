/* trim.h - ended jobs go: by age, by number, by size, or because somebody asked.
 *
 * The core never changes a job that has ended, so this works past it: everything here reads and
 * writes the store and the tidy port directly, and can be repeated at any time. A crash in the
 * middle leaves a job that the next pass removes again, or files that nobody owns and that the
 * first pass of the next node finds.
 *
 *   trim.c         when, and how far: passes, requests, the answers
 *   trim_jobs.c    a handful of ended jobs: their records, then their files
 *   trim_flows.c   flows that no job names any more, then blobs that no flow names
 *   trim_files.c   working folders that have been kept long enough; files of jobs that are gone
 *
 * It is paced: one call is under way at a time, there are pauses between the handfuls, and nothing
 * of it happens while the node stops. */
#ifndef GL_NODE_TRIM_H
#define GL_NODE_TRIM_H

#include "api/request.h"
#include "port/tidy.h"

struct gl_node;
struct gl_trim;

/* What to keep. 0: no bound. */
struct gl_keep {
    gl_ms job_ms;  /* ended jobs, since they ended */
    int64_t jobs;  /* so many ended jobs */
    int64_t bytes; /* store, logs, working folders and blobs together; the oldest ended jobs go */
    gl_ms work_ms; /* working folders of attempts that failed, since they were last touched */
};

/* Nothing is bounded, and nobody asks: then it does nothing at all. `tidy` may be NULL: no files.
 */
struct gl_trim *gl_trim_new(struct gl_node *n, const struct gl_keep *keep, struct gl_tidy *tidy);
void gl_trim_free(struct gl_trim *t);

gl_ms gl_trim_due(const struct gl_trim *t);
void gl_trim_on_time(struct gl_trim *t);
void gl_trim_on_ready(struct gl_trim *t);
/* No more calls; who asked is told so. */
void gl_trim_stop(struct gl_trim *t);

/* GL_VERB_TRIM, GL_VERB_REMOVE. */
void gl_trim_request(struct gl_trim *t, struct gl_request *rq);
/* Is a pass under way that somebody asked for? Then how many jobs has it removed so far? */
bool gl_trim_progress(const struct gl_trim *t, uint64_t *ret_removed);

/* A job has ended. */
void gl_trim_on_ended(struct gl_trim *t);
/* A job is being submitted that will name this flow, and look into an earlier job ("" : none). */
void gl_trim_on_submit(struct gl_trim *t, gl_str flow, gl_str retry_of);

#endif
