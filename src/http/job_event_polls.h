/* job_event_polls.h - waiting for a job's events, together with all streams that wait for the same.
 *
 * A thousand watchers of one job usually wait at the same position. They share one request to the
 * node and its answer, a read-only page of events. A slow watcher that falls behind reads its own
 * pages from the store; nothing is queued for it.
 *
 *   gl_job_event_polls_join()       suspend the connection until events arrive
 *   gl_job_event_polls_deliver()    housekeeping: resume all waiters with the page
 *   gl_job_event_page_release()     drop a reference; dropping the last one frees the page */
#ifndef GL_HTTP_JOB_EVENT_POLLS_H
#define GL_HTTP_JOB_EVENT_POLLS_H

#include "http/http_call.h"

struct gl_job_event_page {
    unsigned refs; /* under the lock of gl_http */
    struct gl_arena arena;
    int code; /* of the node's answer; why.text if not 0 */
    struct gl_why why;
    char job_id[GL_ULID_BYTES + 1];
    struct gl_json json; /* the answer; only if code is 0 */
    int64_t next_seq;
    bool ended;
    gl_str text; /* as server-sent events */
};

/* Embedded in each waiting stream. */
struct gl_job_event_waiter {
    struct gl_link link;
    struct MHD_Connection *connection;
    struct gl_job_event_page *page; /* set when it is resumed; the waiter owns a reference */
};

struct gl_job_event_poll {
    struct gl_link link;
    struct gl_http *http;
    struct gl_arena arena;
    gl_str key;
    struct gl_link waiters;
    struct gl_request rq;
    struct gl_loop_task task;
    struct gl_buf body;
};

/* Suspend the connection until there are events from `from` on, the job has ended or `wait_ms` have
 * passed. False: the node is stopping, and nothing was done. */
bool gl_job_event_polls_join(struct gl_http *h, struct gl_job_event_waiter *w, gl_str context,
                             gl_str job, int64_t from, gl_ms wait_ms);

/* Called by the housekeeping thread. Resumes all waiters and frees the poll. */
void gl_job_event_polls_deliver(struct gl_job_event_poll *p);

/* Make a page of the answer to an EVENTS request; the caller owns a reference. */
struct gl_job_event_page *gl_job_event_page_new(const struct gl_request *rq, gl_str body);
/* NULL is fine. */
void gl_job_event_page_release(struct gl_http *h, struct gl_job_event_page *page);

#endif
