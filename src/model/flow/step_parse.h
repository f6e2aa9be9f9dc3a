/* step_parse.h - parses one step of a flow file. */
#ifndef GL_MODEL_FLOW_STEP_PARSE_H
#define GL_MODEL_FLOW_STEP_PARSE_H

#include "model/flow/flow_read.h"

struct gl_step_source {
    gl_str where;  /* "steps.fetch", for errors */
    gl_jnode node; /* the step's value */
    uint32_t number;
    gl_jnode needs; /* set by gl_step_parse: its `needs` as written, or NULL */
};

/* Fill all fields of *ret except the id and those derived from other steps. Errors are in `r`. */
void gl_step_parse(struct gl_flow_reader *r, struct gl_step_source *source,
                   struct gl_step_spec *ret);

#endif
