/* flow_check.h - what must be true of every flow, whoever made it. Says nothing about places:
 * gl_flow_parse has told the user long before, and asserts this at its end; for gl_flow_decode it
 * is the guard against a foreign compiler. */
#ifndef GL_MODEL_FLOW_CHECK_H
#define GL_MODEL_FLOW_CHECK_H

#include "model/flow.h"

enum {
    GL_FLOW_ARG_BYTES_MAX =
        131071, /* of one argument or NAME=value: Linux's MAX_ARG_STRLEN without the NUL */
    GL_FLOW_SH_BYTES_MAX = 100 << 10, /* longer text for `sh` becomes a file */
    GL_FLOW_PRIORITY_MAX = 1000,
    GL_FLOW_FACTOR_PCT_MAX = 10000,
    GL_FLOW_FILE_NAME_BYTES_MAX = 255,
};

#define GL_FLOW_RETRY_DEFAULT \
    ((struct gl_retry){       \
        .attempts = 1, .backoff_ms = 1000, .factor_pct = 200, .backoff_max_ms = 300000})

/* Everything but the graph. */
int gl_flow_check(const struct gl_flow *f, struct gl_why *reterr_why);

/* The parts that parsing asks one by one. */
bool gl_flow_check_name(gl_str name);      /* of a flow */
bool gl_flow_check_env_name(gl_str name);  /* [A-Za-z_][A-Za-z0-9_]* */
bool gl_flow_check_file_name(gl_str name); /* one plain component of a path */
bool gl_flow_check_is_text(gl_str s);      /* no NUL in it, so that it can be an argument */
size_t gl_flow_check_command_bytes(const struct gl_step_spec *s); /* argv and environment */
bool gl_flow_check_rule_needs_parents(enum gl_rule rule);

#endif
