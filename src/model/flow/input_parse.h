/* input_parse.h - parses `inputs` of a flow file. */
#ifndef GL_MODEL_FLOW_INPUT_PARSE_H
#define GL_MODEL_FLOW_INPUT_PARSE_H

#include "model/flow/flow_read.h"

/* All inputs that have a name; errors are in `r`. */
struct gl_items gl_input_parse(struct gl_flow_reader *r, gl_jnode n);

#endif
