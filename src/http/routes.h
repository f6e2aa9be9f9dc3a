/* routes.h - the table of everything that can be asked over HTTP.
 *
 * It drives the routing, what is said to who asks for something else, and the OpenAPI document; a
 * test compares it with docs/api.md. */
#ifndef GL_HTTP_ROUTES_H
#define GL_HTTP_ROUTES_H

#include "http/call.h"
#include "model/schema.h"

enum gl_argument_type { GL_ARG_TEXT, GL_ARG_NUMBER, GL_ARG_FLAG };

/* An argument of the query. */
struct gl_argument {
    const char *name;
    enum gl_argument_type type;
    uint64_t max; /* of a number */
    const char *doc;
};

enum gl_body_type { GL_BODY_NONE, GL_BODY_FIELDS, GL_BODY_JSON, GL_BODY_BYTES };

struct gl_http_route {
    const char *method;
    const char *path;  /* {context}, {job}, {step}, {name}, {sha256}, {key}, ...: any one segment */
    enum gl_verb verb; /* of the node, where there is one */
    void (*handle)(struct gl_call *c);
    const char *id;  /* unique, for programs */
    const char *doc; /* what it does */
    const char *answer;
    unsigned status;                     /* of success */
    const struct gl_argument *arguments; /* ends with a name of NULL */
    enum gl_body_type body_type;
    const struct gl_schema *body; /* GL_BODY_FIELDS */
};

extern const struct gl_http_route gl_routes[];
extern const size_t gl_routes_n;

/* What the braces of a path stand for. */
struct gl_captures {
    gl_str context, job, step, sha256, key;
};

/* The route of a path, if it has that method. *ret_known: the path has some. */
const struct gl_http_route *gl_routes_match(gl_str method, gl_str url, struct gl_captures *ret,
                                            bool *ret_known);

/* A number in the query, which was checked before; `otherwise` if absent. */
uint64_t gl_routes_number(struct gl_call *c, const char *name, uint64_t otherwise);

/* ---- posted.c: what bodies may contain ---- */
extern const struct gl_schema gl_posted_command_schema, gl_posted_respond_schema,
    gl_posted_retry_schema, gl_posted_trim_schema, gl_posted_message_schema;

/* ---- claiming.c: the same of claims ---- */
extern const struct gl_schema gl_claiming_acquire_schema, gl_claiming_renew_schema,
    gl_claiming_complete_schema, gl_claiming_fail_schema, gl_claiming_reclaim_schema;

/* ---- verbs.c: handlers ---- */
void gl_verbs_health(struct gl_call *c);
void gl_verbs_ready(struct gl_call *c);
void gl_verbs_metrics(struct gl_call *c);
void gl_verbs_node(struct gl_call *c);
void gl_verbs_nodes(struct gl_call *c);
void gl_verbs_node_show(struct gl_call *c);
void gl_verbs_yield(struct gl_call *c);
void gl_verbs_submit(struct gl_call *c);
void gl_verbs_list(struct gl_call *c);
void gl_verbs_ask(struct gl_call *c);
void gl_verbs_status(struct gl_call *c); /* nothing but the path matters */
void gl_verbs_events(struct gl_call *c);
void gl_verbs_logs(struct gl_call *c);
void gl_verbs_why(struct gl_call *c);
void gl_verbs_command(struct gl_call *c);
void gl_verbs_retry(struct gl_call *c);
void gl_verbs_signal(struct gl_call *c);
void gl_verbs_respond(struct gl_call *c);
void gl_verbs_agents(struct gl_call *c);
void gl_verbs_messages(struct gl_call *c);
void gl_verbs_send(struct gl_call *c);
void gl_verbs_human(struct gl_call *c);
void gl_verbs_trim(struct gl_call *c);
void gl_verbs_put_blob(struct gl_call *c);

/* ---- openapi.c ---- */
void gl_openapi_route(struct gl_call *c);
void gl_openapi_write(struct gl_buf *out);

#endif
