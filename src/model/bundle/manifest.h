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
    struct gl_items payloads; /* struct gl_payload, sorted by path: the files in payloads/ */
    struct gl_strs folders;   /* the empty folders below payloads/, in any order */
    gl_str hash;              /* of the bundle's listing */
    gl_str config;            /* merged: gl_manifest_config(); "" : {} */
    gl_str overlay;  /* JSON object: --set inputs.payload.*, merged into every seed; "" : none */
    gl_str scenario; /* scenario.json; "" : none */
};

/* Whether this document is a manifest rather than a flow file. */
bool gl_manifest_is(const struct gl_json *j, gl_jnode root);

/* Everything lives in `a`, or borrows from the tape and `given`. GL_E_INVALID with all errors. */
int gl_manifest_parse(const struct gl_json *j, gl_jnode root, const struct gl_manifest_given *given,
                      struct gl_arena *a, struct gl_flow **ret, struct gl_flow_errors *reterr);

/* Merge `over` into `under` (objects merge, everything else replaces), then set each "a.b.c=value"
 * (the value is JSON, else text). */
int gl_manifest_config(gl_str under, gl_str over, const struct gl_strs *sets, struct gl_arena *a,
                       gl_str *ret, struct gl_why *reterr_why);
/* The values in `sets` below inputs.payload, as a JSON object; "" : none. */
int gl_manifest_overlay(const struct gl_strs *sets, struct gl_arena *a, gl_str *ret,
                        struct gl_why *reterr_why);

/* The fields of a manifest, table by table (manifest_fields.c). A test compares the rows with
 * docs/bundle-manifest.md. */
#define GL_MANIFEST_TABLES(X) /* its name, its rows, and the table with its other rows */ \
    X(MANIFEST, manifest, NONE)                                                           \
    X(WORKFLOW, workflow, NONE)                                                           \
    X(GRAPH, graph, NONE)                                                                 \
    X(AGENTS, agents, NONE)                                                               \
    X(RUNTIME, runtime, NONE)                                                             \
    X(BINDING, binding, NONE)                                                             \
    X(NODE, node, NONE)                                                                   \
    X(RESOURCES, resources, NONE)                                                         \
    X(CONFIG, config, EXECUTOR)                                                           \
    X(EXECUTOR, executor, NONE)                                                           \
    X(BACKPRESSURE, backpressure, NONE)                                                   \
    X(EDGE, edge, NONE)                                                                   \
    X(STEP, step, NONE)                                                                   \
    X(CONTROL, control, NONE)                                                             \
    X(RETRY, retry, NONE)                                                                 \
    X(STEP_EDGE, step_edge, NONE)                                                         \
    X(DYNAMIC, dynamic, NONE)                                                             \
    X(TEMPLATE, template, NONE)                                                           \
    X(REGION, region, NONE)                                                               \
    X(LIMITS, limits, NONE)                                                               \
    X(POLICIES, policies, NONE)                                                           \
    X(RESTART, restart, NONE)

enum gl_manifest_table_id {
    GL_TABLE_NONE,
#define X(name, rows, more) GL_TABLE_##name,
    GL_MANIFEST_TABLES(X)
#undef X
        GL_TABLE_COUNT
};

struct gl_manifest;

/* How gl_manifest_read() reads a field, and what it stores. */
enum gl_manifest_how {
    GL_READ_NOT,   /* nothing: other code reads it, or none does */
    GL_READ_SEEN,  /* nothing: only its presence matters */
    GL_READ_TEXT,  /* gl_str */
    GL_READ_AGENT, /* gl_str: the id of an existing one */
    GL_READ_STEP,
    GL_READ_TEXTS,
    GL_READ_FLAGS,   /* of a bool or uint8_t: the bits `min` are set if true, else `max` */
    GL_READ_U32,     /* min .. max */
    GL_READ_MS,      /* gl_ms: min .. max */
    GL_READ_SECONDS, /* gl_ms of at least min, written as seconds */
    GL_READ_WORD,    /* uint8_t, or bool for two words: the index in `words` */
    GL_READ_CHECKED, /* nothing: one of `words`, without effect */
    GL_READ_COUNTED, /* uint32_t: incremented for each amount that has no effect */
    GL_READ_ZERO,    /* nothing: more than 0 of `what` is refused */
    GL_READ_REFUSED, /* nothing: `what` is refused */
    GL_READ_BY_HAND, /* by `read` */
};

struct gl_manifest_field {
    const char *name;
    const char *type;
    const char *doc;      /* NULL: not in the reference */
    const char *fallback; /* the default, as in the reference; NULL: none */
    const char *alias;    /* another name; read if there is no value under the first */
    enum gl_manifest_how how;
    size_t at; /* in the destination struct */
    int64_t min, max;
    const char *const *words;
    const char *what;
    const char *missing; /* required: what to write */
    const char *note;    /* follows the path in a note, if the field is set */
    void (*read)(struct gl_manifest *m, gl_jnode obj, const char *key, void *into);
    enum gl_manifest_table_id table; /* the rows of the table, or tables, in its value */
};

struct gl_manifest_table {
    const struct gl_manifest_field *rows;
    size_t n;
    enum gl_manifest_table_id more; /* further rows of the same table of the manifest */
};

extern const struct gl_manifest_table gl_manifest_tables[GL_TABLE_COUNT];
/* The row of a name or an alias; NULL if there is none. */
const struct gl_manifest_field *gl_manifest_field(enum gl_manifest_table_id of, gl_str name);

#endif
