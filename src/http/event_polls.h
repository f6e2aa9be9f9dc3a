/* event_polls.h - waiting for a job's events, once for all who wait for the same.
 *
 * A thousand watchers of one job stand at the same place most of the time: they share one request
 * to the node, and its answer, a page of events that nobody changes any more. Who is slow finds the
 * others gone when it comes back, and reads the store by itself, a page at a time: nothing piles up
 * for it. */
#ifndef GL_HTTP_EVENT_POLLS_H
#define GL_HTTP_EVENT_POLLS_H

#include "http/http_call.h"

struct gl_event_page {
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

/* Embedded by who waits. */
struct gl_event_waiter {
    struct gl_link link;
    struct MHD_Connection *connection;
    struct gl_event_page *page; /* when it is woken; taken */
};

struct gl_event_poll {
    struct gl_link link;
    struct gl_http *http;
    struct gl_arena arena;
    gl_str key;
    struct gl_link waiters;
    struct gl_request rq;
    struct gl_loop_task task;
    struct gl_buf body;
};

/* Let the connection sleep until there are events from `from` on, the job has ended or `wait_ms`
 * are over. False: the node is stopping, and nothing was done. */
bool gl_event_polls_join(struct gl_http *h, struct gl_event_waiter *w, gl_str context, gl_str job,
                         int64_t from, gl_ms wait_ms);

/* The housekeeping thread's: wake all who wait for it. */
void gl_event_polls_deliver(struct gl_event_poll *p);

/* The answer to an EVENTS request as a page that the caller holds. */
struct gl_event_page *gl_event_page_new(const struct gl_request *rq, gl_str body);
void gl_event_page_release(struct gl_http *h, struct gl_event_page *page); /* NULL is fine */

#endif
