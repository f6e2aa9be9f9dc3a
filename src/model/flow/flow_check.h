/* flow_check.h - the rules that every compiled flow must obey, whatever compiled it.
 *
 * gl_flow_parse() reports violations with their places and asserts these rules at its end.
 * gl_flow_decode() uses them to reject a flow that something else compiled. */
#ifndef GL_MODEL_FLOW_FLOW_CHECK_H
#define GL_MODEL_FLOW_FLOW_CHECK_H

#include "model/flow/flow.h"

enum {
    GL_FLOW_SH_BYTES_MAX = 100 << 10, /* longer text for `sh` becomes a file */
    GL_FLOW_PRIORITY_MAX = 1000,
    GL_FLOW_FACTOR_PCT_MAX = 10000,
    GL_FLOW_FILE_NAME_BYTES_MAX = 255,
    GL_FLOW_LIMIT_MAX = 100000, /* `concurrency.max` */
    GL_FLOW_DECISIONS_MAX = 16,
    GL_FLOW_RETRY_ON_MAX = 256,
    GL_FLOW_MESSAGE_BYTES_MAX = 16 << 10, /* `approval`, as written */
};

#define GL_FLOW_RETRY_DEFAULT \
    ((struct gl_retry){       \
        .attempts = 1, .backoff_ms = 1000, .factor_pct = 200, .backoff_max_ms = 300000})

/* Everything but the graph. */
int gl_flow_check(const struct gl_flow *f, struct gl_why *reterr_why);

/* The parts that the parser checks one by one. */
bool gl_flow_check_name(gl_str name);      /* of a flow */
bool gl_flow_check_env_name(gl_str name);  /* [A-Za-z_][A-Za-z0-9_]* */
bool gl_flow_check_file_name(gl_str name); /* one plain component of a path */
/* A relative path of plain components, none of them "..". */
bool gl_flow_check_file_path(gl_str path);
bool gl_flow_check_retry_on(gl_str word);    /* an exit code from 1 to 255, "timeout" or "signal" */
bool gl_flow_check_secret(gl_str source);    /* "env:VARIABLE" or "file:/path" */
bool gl_flow_check_is_ref_name(gl_str name); /* GLIA_REF_n */
bool gl_flow_check_input_type(uint8_t type, const struct gl_json *j, gl_jnode value);
bool gl_flow_check_is_text(gl_str s); /* contains no NUL, so that it can be an argument */
size_t gl_flow_check_command_bytes(const struct gl_step_spec *s); /* argv and environment */
bool gl_flow_check_rule_needs_parents(enum gl_rule rule);

#endif
