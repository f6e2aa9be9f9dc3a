/* route_parts.h - shared by the files that implement model/bundle/route.h. */
#ifndef GL_MODEL_BUNDLE_ROUTE_PARTS_H
#define GL_MODEL_BUNDLE_ROUTE_PARTS_H

#include "base/limits.h"
#include "model/bundle/route.h"

enum { GL_ROUTE_BYTES_MAX = GL_COND_BYTES_MAX * 4 }; /* all conditions of one edge */

enum gl_route_op { EQ, NE, GE, LE, GT, LT, CONTAINS, IN, EXISTS, OP_COUNT };

extern const char *const gl_route_op_words[]; /* NULL-terminated */

#define GL_ROUTE_ROOTS(X)         \
    X(PAYLOAD, "payload")         \
    X(BODY, "message.body")       \
    X(HEADERS, "message.headers") \
    X(TYPE, "message.type")       \
    X(CLASS, "message.class")     \
    X(FROM, "message.from")       \
    X(TO, "message.to")           \
    X(STATE, "state")             \
    X(AGENT_STATE, "agent_state")

enum gl_route_root {
#define X(name, word) ROOT_##name,
    GL_ROUTE_ROOTS(X)
#undef X
        ROOT_COUNT
};

extern const char *const gl_route_root_words[];

/* The parts of an `expr`. */
struct gl_route_expr {
    gl_str path;
    enum gl_route_op op;
    gl_str value;
};

/* *ret_rest: the rest after the root, without its dot. */
bool gl_route_find_root(gl_str path, enum gl_route_root *ret, gl_str *ret_rest);
/* ${path} OP value. Returns NULL, or the error. */
const char *gl_route_parse_expr(gl_str text, struct gl_route_expr *ret);

#endif
