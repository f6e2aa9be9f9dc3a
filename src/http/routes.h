/* routes.h - the HTTP handlers of the verbs in api/verbs.def: gl_route_<http>().
 *
 * A handler finds the path and the query in c->rq, and the unparsed body in c->body. It answers the
 * call or passes it to the node. */
#ifndef GL_HTTP_ROUTES_H
#define GL_HTTP_ROUTES_H

#include "http/http_call.h"

#define VERB(name, word, kind, method, path, takes, body, http, ...) \
    void gl_route_##http(struct gl_http_call *c);
#include "api/verbs.def"
#undef VERB

/* Parse the body into c->rq. False: it is invalid, and the call was answered. */
bool gl_routes_read_body(struct gl_http_call *c);
/* The body as JSON, "{}" if there is none. */
bool gl_routes_parse_json(struct gl_http_call *c, struct gl_json *ret);
/* The same into *ret instead of c->rq: the fields that the verb takes. */
bool gl_routes_read_fields(struct gl_http_call *c, struct gl_json *ret_json, void *ret);

/* ---- openapi.c ---- */
void gl_openapi_write(struct gl_buf *out);

#endif
