/* overview.h - the state of the node, the jobs and what waits for a person, for `status` and `top`.
 */
#ifndef GL_CLI_OUTPUT_OVERVIEW_H
#define GL_CLI_OUTPUT_OVERVIEW_H

#include "cli/connect/api_reply.h"
#include "model/job.h"

enum { GL_OVERVIEW_JOBS_MAX = 20000 }; /* more are not counted */

struct gl_overview {
    struct gl_api_reply node;
    bool has_node; /* if false, `node` is empty */
    bool has_jobs; /* if false, only the node is known */
    uint64_t counts[GL_JOB_STATUS_COUNT];
    bool has_more;       /* there are more jobs, not counted */
    uint64_t human_n;    /* things that wait for a person: steps, and ... */
    uint64_t requests_n; /* ... questions of workers */
};

/* Read the status of the node. False: there is none, or it does not answer; `page` is empty then.
 * Always call gl_api_reply_done(). */
bool gl_overview_node(struct gl_connection *r, struct gl_api_reply *page);

/* Why the node is not ready; "": it is ready. */
gl_str gl_overview_reason(struct gl_api_reply *node);

/* Read everything. After a failure with `has_node` the status of the node is valid. Always call
 * gl_overview_done(). */
int gl_overview_read(struct gl_overview *o, struct gl_connection *r, struct gl_why *reterr_why);
void gl_overview_done(struct gl_overview *o);

/* Read what waits for a person. Always call gl_api_reply_done(). */
int gl_overview_human(struct gl_connection *r, struct gl_api_reply *page,
                      struct gl_why *reterr_why);
/* The number of steps and questions of this job in such a reply; for "": of all jobs. */
uint64_t gl_overview_requests(struct gl_api_reply *human, gl_str job);

/* The same for its steps only. */
uint64_t gl_overview_asking_steps(struct gl_api_reply *human, gl_str job);

/* For a job in a list: the number of its steps that have ended, ... */
int64_t gl_overview_ended(const struct gl_api_reply *p, gl_jnode job);
/* ... and "2/5, 1 asks": with the number of all steps, and the number that wait for a person. In
 * the page's arena. */
gl_str gl_overview_steps(struct gl_api_reply *p, gl_jnode job, uint64_t asks);

/* "3 running (1 elsewhere), 2 for other nodes", from the node's own answer. */
gl_str gl_overview_running(struct gl_api_reply *p, gl_jnode node);
/* "default 2 of 8, gpu 0 of 1", in the page's arena. */
gl_str gl_overview_pools(struct gl_api_reply *node);
/* "2 running, 1 failed"; "none" if there are none. In the arena. */
gl_str gl_overview_counts(const struct gl_overview *o, struct gl_arena *a);

#endif
