/* flow_jsonschema.h - the flow format as a JSON Schema (draft 2020-12), for editors. Generated from
 * gl_flow_fields. It describes types and words; only gl_flow_parse() can check what refers to
 * something else (needs, references, rules that cannot hold). */
#ifndef GL_MODEL_FLOW_FLOW_JSONSCHEMA_H
#define GL_MODEL_FLOW_FLOW_JSONSCHEMA_H

#include "base/str.h"

void gl_flow_jsonschema(struct gl_buf *out);

#endif
