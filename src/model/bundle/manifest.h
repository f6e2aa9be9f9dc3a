/* manifest.h - compiles a bundle's manifest.json, in any of its forms, to a flow.
 *
 * Paths below the workspace begin with GL_EXEC_WORK (port/exec.h).
 *
 *   catalog       apiVersion mn.workflow/v2 (and v1): workflow, agents, runtime
 *   submitted     graph_id, flow.nodes, flow.edges, flow.steps, flow.graph.edges
 *   bindings      nodes only from runtime.bindings.<step>.workers[]
 *   older         root nodes and edges; no steps
 *
 * All errors are reported at once, each with its JSON path, its line where known, and what to
 * write instead. Call gl_manifest_is() first, to tell a manifest from a flow file;
 * gl_manifest_config() and gl_manifest_overlay() prepare `given` for gl_manifest_parse(). */
#ifndef GL_MODEL_BUNDLE_MANIFEST_H
#define GL_MODEL_BUNDLE_MANIFEST_H

#include "model/bundle/agent.h"

struct gl_manifest_given {
    struct gl_items payloads; /* struct gl_payload, sorted by path: what payloads/ holds */
    struct gl_strs folders;   /* those below payloads/ that hold nothing, in any order */
    gl_str hash;              /* of the bundle's listing */
    gl_str config;            /* merged: gl_manifest_config(); "" : {} */
    gl_str overlay;  /* JSON object: --set inputs.payload.*, laid over every seed; "" : none */
    gl_str scenario; /* scenario.json; "" : none */
};

/* Is this document a manifest, rather than a flow file? */
bool gl_manifest_is(const struct gl_json *j, gl_jnode root);

/* Everything lives in `a`, or borrows from the tape and from `given`. GL_E_INVALID with all errors.
 */
int gl_manifest_parse(const struct gl_json *j, gl_jnode root, const struct gl_manifest_given *given,
                      struct gl_arena *a, struct gl_flow **ret, struct gl_flow_errors *reterr);

/* Lay `over` over `under` (objects merge, everything else replaces), then set each "a.b.c=value"
 * (the value is JSON, else text). */
int gl_manifest_config(gl_str under, gl_str over, const struct gl_strs *sets, struct gl_arena *a,
                       gl_str *ret, struct gl_why *reterr_why);
/* The values that `sets` has below inputs.payload, as a JSON object; "" : none. */
int gl_manifest_overlay(const struct gl_strs *sets, struct gl_arena *a, gl_str *ret,
                        struct gl_why *reterr_why);

/* What a manifest may say, field by field: for the reference page and its test, for hints. */
extern const struct gl_flow_field gl_manifest_fields[]; /* without `schema` */
extern const size_t gl_manifest_fields_n;
bool gl_manifest_is_field(const char *of, gl_str name);

#endif
