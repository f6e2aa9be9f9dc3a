/* http_call.h - one HTTP request from arrival to answer. Private to this room.
 *
 * libmicrohttpd creates a call when the headers have arrived. routes.c dispatches it when the body
 * is complete. The call then either answers itself or goes to the node with
 * gl_http_call_ask_node(); its connection is suspended until the node answers. Everything but the
 * node's part runs on the HTTP thread of the call's listener.
 *
 * State shared between threads (the listeners' HTTP threads, the control thread, the housekeeping
 * thread) is in `struct gl_http` and guarded by its lock.
 *
 *   gl_connections_begin_request()    the framing is valid
 *   gl_auth_check()                   the client may talk to this node
 *   gl_routes_dispatch()              find the handler, which answers or asks the node
 *   gl_reply_queue()                  hand the answer to libmicrohttpd */
#ifndef GL_HTTP_HTTP_CALL_H
#define GL_HTTP_HTTP_CALL_H

#include <microhttpd.h>
#include <pthread.h>

#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "http/http.h"
#include "model/flow/flow.h"

enum {
    GL_HTTP_CALL_ID_BYTES = 17,
    GL_HTTP_CALL_LOG_BYTES = 1 << 20, /* one page of a log */
    /* Bodies of all calls together. Beyond this limit clients must try again later. */
    GL_HTTP_CALL_BODIES_BYTES_MAX = 256 << 20,
};

/* One listener. */
struct gl_listener {
    struct gl_http *http;
    struct MHD_Daemon *daemon;
    bool is_tcp;
    struct gl_recv_filter **filters; /* by descriptor: recv_filter.c */
    size_t filters_n;
};

struct gl_http {
    struct gl_http_config config;
    struct gl_listener listeners[2]; /* the unix socket, and TCP if there is such a listener */
    size_t connections_max;          /* connections of one listener */

    pthread_mutex_t lock; /* guards what follows */
    bool is_refusing;
    size_t asked_n;      /* tasks handed to the control thread and not finished */
    size_t workers_n;    /* threads that read files */
    size_t calls_n;      /* calls that have arrived and whose answers are not completely sent */
    size_t bodies_bytes; /* charged to the budget for bodies */
    struct gl_link connections; /* open connections: connections.c */
    struct gl_map polls;        /* event waits that several streams may share: job_event_polls.c */

    /* Housekeeping: a thread that resumes suspended connections and enforces timeouts. */
    pthread_t housekeeping;
    bool has_housekeeping, is_closing;
    pthread_cond_t wakeup;     /* for the housekeeping thread, and for gl_http_stop() */
    struct gl_link polls_done; /* answered; their waiters are still suspended */
    struct gl_link pings;      /* calls that wait for the loop to answer a ping */
    struct gl_link pings_done;
    struct gl_loop_task ping;
    bool is_pinging;
};

/* Why a request is refused. All error answers have this form. */
struct gl_refusal {
    int code;        /* or GL_R_* */
    unsigned status; /* 0: follows from the code */
    const char *message;
    const char *hint, *field;             /* may be NULL */
    const struct gl_flow_errors *details; /* may be NULL */
    gl_str claim; /* JSON of the claim that blocks the request, status 409; "": none */
};

struct gl_http_call {
    struct gl_http *http;
    struct gl_listener *listener;
    struct gl_http_config *config;
    struct MHD_Connection *connection;
    struct gl_arena arena; /* memory of the request */
    const char *method;
    const char *url; /* without the query, unescaped */
    struct gl_buf body;
    size_t charged_bytes; /* bytes charged to the budget for bodies */
    enum gl_http_body_state {
        GL_HTTP_CALL_BODY_FINE,
        GL_HTTP_CALL_BODY_TOO_LARGE,
        GL_HTTP_CALL_BODY_NO_ROOM
    } body_is;
    size_t dropped_bytes; /* bytes of a refused body, read and thrown away */
    bool is_begun, is_complete;

    char id[GL_HTTP_CALL_ID_BYTES]; /* appears in error answers and in the log */

    /* The request to the node. */
    struct gl_loop_task task;
    struct gl_request rq;
    /* Called on the HTTP thread after the node has answered without an error. NULL: the node's
     * body is the answer. */
    void (*then)(struct gl_http_call *c);
    void (*work)(struct gl_http_call *c); /* runs on a worker thread: gl_http_run_worker() */
    struct gl_logs_request log;       /* the requested log; `rq` asks for the state of its job */
    const struct gl_json *log_status; /* ... and that state */
    gl_str log_job;
    int log_absent;              /* the error if the store does not have the log either, ... */
    const char *log_absent_why;  /* ... its sentence, ... */
    const char *log_absent_hint; /* ... and what to do; or NULL */
    gl_str path, run;            /* the same for artifacts */
    struct gl_submit_batch *batch;
    struct gl_redrive *redrive;

    /* In the list of pings: housekeeping.c. */
    struct gl_link link;
    int64_t due_ms;

    /* The answer. */
    unsigned status; /* 0: none yet */
    const char *type;
    const char *allow; /* the methods of the path, after a wrong one */
    bool is_last;      /* close the connection after this answer */
    struct gl_buf out;
    struct MHD_Response *stream; /* instead of `out` */
    bool has_log_headers;
    uint64_t log_next;
    bool log_ended;
    gl_str log_node; /* the log is from the store, and this node ran the attempt; "": it is ours */
    gl_str log_missing; /* ... this is missing, "": nothing, ... */
    bool log_copied;    /* ... and nothing more will come */
};

/* ---- http.c ---- */
/* Pass c->rq to the node, which answers the call later. */
void gl_http_call_ask_node(struct gl_http_call *c);
/* Pass a task to the control thread; the connection sleeps until it is resumed. False: the node is
 * stopping, and nothing was done. Call gl_http_task_done() when the task is finished. */
bool gl_http_post_task(struct gl_http *h, struct MHD_Connection *connection,
                       struct gl_loop_task *task);
void gl_http_task_done(struct gl_http *h);
bool gl_http_is_refusing(struct gl_http *h);
int64_t gl_http_now_ms(void); /* monotonic time */
/* Run `work` on a worker thread while the connection sleeps; it may take long, and writes only
 * c->out and c->rq.code. `then` answers on the HTTP thread. */
void gl_http_run_worker(struct gl_http_call *c, void (*work)(struct gl_http_call *c),
                        void (*then)(struct gl_http_call *c));
/* A text from the path or the query, with its slashes: see gl_http_text_unescape(). */
gl_str gl_http_call_unescape(struct gl_http_call *c, gl_str text);
/* A header of the request; "" if absent. */
gl_str gl_http_call_header(const struct gl_http_call *c, const char *name);

/* ---- auth.c: may this client send this request? Answers the call if not. ---- */
bool gl_auth_check(struct gl_http_call *c);

/* ---- connections.c: connections ---- */
void gl_connections_on_notify(void *listener, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode what);
void *gl_connections_on_uri(void *listener, const char *uri, struct MHD_Connection *connection);
const char *
gl_connections_begin_request(struct gl_http_call *c); /* NULL, or why its framing is invalid */
void gl_connections_request_arrived(struct gl_http_call *c);  /* stop the arrival timeout */
void gl_connections_request_answered(struct gl_http_call *c); /* the connection is idle again */
size_t gl_connections_limit(size_t listeners_n);              /* maximum connections per listener */
bool gl_connections_is_closed(struct MHD_Connection *connection); /* has the client closed it? */
/* Call with the lock held. Closes connections whose request took too long to arrive. Returns the
 * next deadline. */
int64_t gl_connections_enforce_timeouts(struct gl_http *h, int64_t now_ms);

/* ---- housekeeping.c ---- */
bool gl_housekeeping_start(struct gl_http *h);
void gl_housekeeping_stop(struct gl_http *h);
/* Call c->then after the control thread has answered a ping, or answer "unavailable" if it does not
 * within PING_MS_MAX. */
void gl_housekeeping_ping(struct gl_http_call *c);

/* ---- routes.c: find the handler of a call ---- */
void gl_routes_dispatch(struct gl_http_call *c);

/* ---- log_routes.c: the logs of steps ---- */
/* The state of a step's log, from the answer to STATUS. */
struct gl_log_progress {
    uint32_t attempts; /* started so far */
    bool is_writing;   /* the last attempt is running */
    bool has_ended;    /* no further attempt will start */
};
/* The agent of the step id "@agent"; "": a step of a flow. */
gl_str gl_log_agent(gl_str step);
struct gl_log_progress gl_log_progress_read(const struct gl_json *status, gl_str step,
                                            struct gl_arena *a);

/* ---- job_event_stream.c: events as a stream; log_stream.c: logs as a stream ---- */
void gl_job_event_stream_start(struct gl_http_call *c);
/* Start at c->log.offset; for attempt 0, wait for the first attempt. `from_seq` is the job's next
 * event. `is_stored`: read it from the store, not from our folder. */
void gl_log_stream_start(struct gl_http_call *c, gl_str job, bool is_last, int64_t from_seq,
                         bool is_stored);

/* ---- reply.c: answers ---- */
void gl_reply_json(struct gl_http_call *c, unsigned status, gl_str body); /* copied */
void gl_reply_finish_json(struct gl_http_call *c, unsigned status); /* with the JSON in c->out */
/* `on_room` supplies the body piece by piece, then `done` frees `owner`. False: out of memory;
 * `owner` is already freed, and the call is answered with an error. */
bool gl_reply_stream(struct gl_http_call *c, const char *type, size_t block_bytes,
                     MHD_ContentReaderCallback on_room, void *owner,
                     MHD_ContentReaderFreeCallback done);
/* One shape for all errors; the status follows from the code. `hint` may be NULL. */
void gl_reply_error(struct gl_http_call *c, int code, const char *message, const char *hint);
void gl_reply_error_at(struct gl_http_call *c, int code, const char *message, const char *hint,
                       const char *field, const struct gl_flow_errors *details);
void gl_reply_refusal(struct gl_http_call *c, const struct gl_refusal *r);
/* The same, with an explicit HTTP status. */
void gl_reply_status(struct gl_http_call *c, unsigned status, int code, const char *message);
/* Write the error object as a value in `w`. */
void gl_reply_write_error(struct gl_jw *w, const struct gl_refusal *r, const char *id);
/* Hand the answer to libmicrohttpd. */
enum MHD_Result gl_reply_queue(struct gl_http_call *c);

#endif
