/* routes.h - what HTTP does for each verb of api/verbs.def: gl_route_<http>().
 *
 * A route finds in c->rq what the path and the query say, and in c->body the body, not yet read. It
 * answers the call, or hands it on. */
#ifndef GL_HTTP_ROUTES_H
#define GL_HTTP_ROUTES_H

#include "http/http_call.h"

#define VERB(name, word, kind, method, path, takes, body, http, ...) \
    void gl_route_##http(struct gl_http_call *c);
#include "api/verbs.def"
#undef VERB

/* Read the body into c->rq; false: something is wrong with it, and that was answered. */
bool gl_routes_read_body(struct gl_http_call *c);
/* The body as JSON, "{}" if there is none. */
bool gl_routes_parse_json(struct gl_http_call *c, struct gl_json *ret);
/* The same, as a request that is not c->rq's own: *ret has the fields that its verb takes. */
bool gl_routes_read_fields(struct gl_http_call *c, struct gl_json *ret_json, void *ret);

/* ---- openapi.c ---- */
void gl_openapi_write(struct gl_buf *out);

#endif
