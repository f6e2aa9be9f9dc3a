/* flow_jsonschema.h - the flow format as a JSON Schema (draft 2020-12), for editors. Made from
 * gl_flow_fields. It knows shapes and words; what refers to something else (needs, references,
 * rules that cannot hold) only gl_flow_parse can judge. */
#ifndef GL_MODEL_FLOW_FLOW_JSONSCHEMA_H
#define GL_MODEL_FLOW_FLOW_JSONSCHEMA_H

#include "base/str.h"

void gl_flow_jsonschema(struct gl_buf *out);

#endif
