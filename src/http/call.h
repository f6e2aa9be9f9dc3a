/* call.h - one HTTP request on its way, shared by the files of this room and by nobody else.
 *
 * A call is made when its headers are there, is routed when its body is there, and then either
 * answers itself or is handed to the node and answered when that comes back. Everything happens on
 * the HTTP thread but the node's part. */
#ifndef GL_HTTP_CALL_H
#define GL_HTTP_CALL_H

#include <microhttpd.h>

#include "base/json.h"
#include "http/http.h"
#include "model/flow.h"

enum {
    GL_CALL_ID_BYTES = 17,
    GL_CALL_WAIT_MS_MAX = 30000, /* of a request for events */
    GL_CALL_LOG_BYTES = 1 << 20, /* one page of a log */
    /* Bodies under way altogether: beyond this, clients are asked to come back. */
    GL_CALL_BODIES_BYTES_MAX = 256 << 20,
};

/* One listener. */
struct gl_door {
    struct gl_http *http;
    struct MHD_Daemon *daemon;
    bool is_tcp;
};

struct gl_call {
    struct gl_http *http;
    struct gl_door *door;
    struct gl_http_config *config;
    struct MHD_Connection *connection;
    struct gl_arena arena; /* everything the request is made of */
    const char *method;
    const char *url; /* without the query, unescaped */
    struct gl_buf body;
    size_t charged_bytes; /* of the budget for bodies */
    bool is_begun, is_refused, is_complete;

    char id[GL_CALL_ID_BYTES]; /* told in errors, and in the log */

    /* The part of the node. */
    struct gl_loop_task task;
    struct gl_request rq;
    /* On the HTTP thread, when the node has answered well; NULL: its body is the answer. */
    void (*then)(struct gl_call *c);
    gl_str step; /* logs: of which step, which attempt, from where */
    uint32_t attempt;
    uint64_t offset;

    /* The answer. */
    unsigned status; /* 0: none yet */
    const char *type;
    struct gl_buf out;
    bool has_log_headers;
    uint64_t log_next;
    bool log_ended;
};

/* Hand c->rq to the node; the call is answered later. */
void gl_call_ask(struct gl_call *c);

/* An argument of the query; "" if absent. */
gl_str gl_call_argument(const struct gl_call *c, const char *name);

/* A header of the request; "" if absent. */
gl_str gl_call_header(const struct gl_call *c, const char *name);

/* ---- door.c: may it come in? Answers what it refuses. ---- */
bool gl_door_admits(struct gl_call *c);

/* ---- routes.c: what does it want? Answers it or asks the node. ---- */
void gl_routes_find(struct gl_call *c);

/* ---- posted.c: bodies ---- */
/* Each fills in c->rq, or answers with what is wrong and returns false. */
bool gl_posted_submit(struct gl_call *c);
bool gl_posted_command(struct gl_call *c);
bool gl_posted_respond(struct gl_call *c);

/* ---- paper.c: what steps have said ---- */
void gl_paper_route(struct gl_call *c);

/* ---- reply.c: answers ---- */
void gl_reply_json(struct gl_call *c, unsigned status, gl_str body); /* copied */
/* One shape for all errors; the status follows from the code. `hint` may be NULL. */
void gl_reply_error(struct gl_call *c, int code, const char *message, const char *hint);
void gl_reply_error_at(struct gl_call *c, int code, const char *message, const char *hint,
                       const char *field, const struct gl_flow_errors *details);
/* With a status of its own. */
void gl_reply_refusal(struct gl_call *c, unsigned status, int code, const char *message);
/* Give the answer to libmicrohttpd. */
enum MHD_Result gl_reply_queue(struct gl_call *c);

#endif
