/* manifest_read.h - what the parts of the manifest compiler share: the document, the flow built
 * so far, and readers of values that record an error and continue.
 *
 * A field that is null counts as absent. The place of a value is found in the document when an
 * error is reported, so that no function has to pass paths around. */
#ifndef GL_MODEL_BUNDLE_MANIFEST_READ_H
#define GL_MODEL_BUNDLE_MANIFEST_READ_H

#include "model/bundle/manifest.h"
#include "model/flow/flow_check.h"
#include "model/flow/flow_read.h"

#define GL_MANIFEST_WORK "\001" /* the workspace: GL_EXEC_WORK of port/exec.h */
#define GL_MANIFEST_SPAN_MS_MAX ((gl_ms)3650 * 24 * 3600 * 1000)

enum gl_manifest_form {
    GL_MANIFEST_CATALOG,
    GL_MANIFEST_SUBMITTED,
    GL_MANIFEST_BINDINGS,
    GL_MANIFEST_OLDER,
};

/* An agent as written: a node, or a worker of a binding. */
struct gl_manifest_node {
    gl_jnode n, config; /* config NULL: none */
    gl_str id;
    uint8_t kind;     /* enum gl_agent_kind */
    bool is_declared; /* its kind is known */
    bool is_bound;    /* named by a step or a template */
    /* Defaults for the step, from the node; 0 and -1: absent. */
    gl_ms timeout_ms, beacon_timeout_ms, retry_backoff_ms;
    uint32_t max_attempts;
};

enum gl_manifest_mark { GL_MARKED_SAFE = 1, GL_MARKED_UNSAFE = 2 };

/* The config of a node, while it is compiled. */
struct gl_manifest_config {
    const struct gl_manifest_node *node;
    struct gl_agent_spec agent;
    gl_ms timeout_ms;
    /* Of an executor only. */
    struct gl_step_spec *unit;
    gl_str runner, pool, workspace, workdir, idempotency_key; /* as written */
    uint32_t slots;
    uint8_t marks; /* enum gl_manifest_mark: whether it may run twice */
};

/* The control of a step; 0 and -1: absent. */
struct gl_manifest_control_fields {
    uint8_t failure_policy;
    bool is_optional;
    gl_ms timeout_ms, beacon_timeout_ms, backoff_ms;
    uint32_t max_attempts;
};

struct gl_manifest_step {
    gl_jnode n;
    gl_str id;
};

struct gl_manifest_edge {
    gl_jnode n;
    gl_str id;
    uint32_t from, to; /* steps of the ledger, counted from 0 */
    uint32_t accepts;
};

enum { GL_MANIFEST_IDLE_RESOURCES = 3 }; /* cpu_cores, memory_mb, disk_mb */

struct gl_manifest {
    struct gl_flow_reader r;
    const struct gl_manifest_given *given;
    struct gl_flow *f;
    struct gl_bundle_spec *b;

    enum gl_manifest_form form;
    gl_jnode root;
    gl_jnode graph; /* workflow, or flow; NULL: neither */
    gl_jnode nodes_at, edges_at, steps_at, graph_edges_at, inputs_at, bindings_at;
    gl_jnode entrypoints_in, entrypoints_at; /* the object, and its field */

    struct gl_manifest_node *nodes;
    size_t nodes_n;
    struct gl_manifest_step *steps;
    size_t steps_n;
    struct gl_map by_id;        /* struct gl_manifest_node */
    struct gl_map steps_by;     /* struct gl_manifest_step */
    struct gl_map edges_by;     /* struct gl_manifest_edge */
    struct gl_map inputs_by;    /* an agent's first messages: a JSON node */
    struct gl_map binding_by;   /* of bindings: the key, a JSON node */
    struct gl_map runs_by;      /* ids of bindings that steps and templates name: the JSON node */
    struct gl_map templates_by; /* struct gl_template */
    struct gl_buf notes;        /* gl_str */
    uint32_t typo_notes_n;      /* those about names that look mistyped */
    bool is_rewritten;          /* places in the document are not those of the user's file */
    size_t expansion_bytes;     /* things written once and compiled many times */
    struct gl_items skills;     /* struct gl_upload: packages that every executor gets */
    gl_str skills_path;         /* ... and where Python finds them */
    uint32_t unnamed_runners_n;
    uint32_t idle_resources[GL_MANIFEST_IDLE_RESOURCES]; /* agents that name one */
    gl_str unnamed_runner;                               /* the first of them */
};

/* `key`: the field of `n` that is missing or wrong; NULL: `n` itself. */
void gl_manifest_error(struct gl_manifest *m, gl_jnode n, const char *key, enum gl_reason reason,
                       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Read `obj` (NULL: absent) by the rows of `of` into their struct. */
void gl_manifest_read(struct gl_manifest *m, enum gl_manifest_table_id of, gl_jnode obj,
                      void *into);
/* Record a note: something is accepted, but does not have the effect that its name suggests. */
void gl_manifest_note(struct gl_manifest *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool gl_manifest_note_has_room(
    const struct gl_manifest *m); /* whether the next note will be kept */
/* "agents.nodes[2].config" */
gl_str gl_manifest_path(struct gl_manifest *m, gl_jnode n);
/* "; did you mean `x`?" from a map's keys, or nothing. */
const char *gl_manifest_suggestion(struct gl_manifest *m, const struct gl_map *known, gl_str word);
/* Report that there is no `what` with that name, with a suggestion. */
void gl_manifest_unknown(struct gl_manifest *m, gl_jnode n, enum gl_reason reason, const char *what,
                         const struct gl_map *known, gl_str word);
/* False with an error if `id`, of `n`, is not a valid id of a step. */
bool gl_manifest_check_step_id(struct gl_manifest *m, gl_jnode n, gl_str id);
/* False with an error if it has another type. */
bool gl_manifest_expect(struct gl_manifest *m, gl_jnode n, enum gl_json_type type,
                        const char *what);

gl_jnode gl_manifest_get(struct gl_manifest *m, gl_jnode obj, const char *key);
/* The first of two names that is present. */
gl_jnode gl_manifest_either(struct gl_manifest *m, gl_jnode obj, const char *key, const char * or);
/* False for null, false, "", [], {} and 0, and for an absent field. */
bool gl_manifest_is_set(gl_jnode n);

/* Readers of a field of `obj` (which may be NULL). False: it is absent, or invalid (with an error);
 * *ret is unchanged. */
bool gl_manifest_text(struct gl_manifest *m, gl_jnode obj, const char *key, gl_str *ret);
bool gl_manifest_int(struct gl_manifest *m, gl_jnode obj, const char *key, int64_t lo, int64_t hi,
                     int64_t *ret);
bool gl_manifest_bool(struct gl_manifest *m, gl_jnode obj, const char *key, bool *ret);
bool gl_manifest_word(struct gl_manifest *m, gl_jnode obj, const char *key,
                      const char *const *words, uint8_t *ret);
/* "; did you mean `x`?" from `words`, or nothing. */
const char *gl_manifest_near(struct gl_manifest *m, const char *const *words, gl_str word);
gl_jnode gl_manifest_object(struct gl_manifest *m, gl_jnode obj, const char *key);
gl_jnode gl_manifest_list(struct gl_manifest *m, gl_jnode obj, const char *key);
/* A list of texts; one text is a list of one. */
struct gl_strs gl_manifest_texts(struct gl_manifest *m, gl_jnode obj, const char *key);
/* The element of such a list, for an error. (Exact if all elements are texts.) */
gl_jnode gl_manifest_element(struct gl_manifest *m, gl_jnode list, size_t i);
/* A text for a program: without NUL, and without the byte that stands for the workspace. */
bool gl_manifest_is_program_text(gl_str s);
/* A value without white space. */
gl_str gl_manifest_compact(struct gl_manifest *m, gl_jnode n);
/* Count things that are compiled many times; false with an error if there are too many. */
bool gl_manifest_add_expansion(struct gl_manifest *m, gl_jnode n, size_t bytes);

/* Merge `over` into `under` (NULL: nothing); both live in `a`. Objects merge, the rest replaces. */
void gl_manifest_merge(const struct gl_json *ju, gl_jnode under, const struct gl_json *jo,
                       gl_jnode over, struct gl_buf *out);

/* The parts, in this order. */
bool gl_manifest_find_form(struct gl_manifest *m); /* the form, and where its parts are */
void gl_manifest_policies(struct gl_manifest *m);
void gl_manifest_nodes(struct gl_manifest *m);
void gl_manifest_edges(struct gl_manifest *m);
void gl_manifest_steps(struct gl_manifest *m);
void gl_manifest_graph(struct gl_manifest *m);
void gl_manifest_dynamic(struct gl_manifest *m);
void gl_manifest_seeds(struct gl_manifest *m);

/* Of manifest_policies.c: a table `restart` below `policies`. */
void gl_manifest_restart(struct gl_manifest *m, gl_jnode policies, struct gl_restart *r);
/* Of manifest_agent.c and manifest_process.c: read a node's config. */
void gl_manifest_agent(struct gl_manifest *m, struct gl_manifest_node *node,
                       struct gl_manifest_config *c);
void gl_manifest_process(struct gl_manifest *m, struct gl_manifest_config *c);
/* Of manifest_lint.c: notes about fields that look mistyped. Call it after all other parts. */
void gl_manifest_lint(struct gl_manifest *m);
/* An unread field of `obj` whose name is close to `key`, which is missing; empty if none. */
gl_str gl_manifest_lint_typo_of(struct gl_manifest *m, gl_jnode obj, const char *key);
/* Of manifest_config_bindings.c: copies values of the configuration into the manifest. False with
 * an error. */
bool gl_manifest_config_bindings(struct gl_manifest *m);
/* Of manifest_uploads.c. */
void gl_manifest_uploads(struct gl_manifest *m, const struct gl_manifest_node *node,
                         struct gl_agent_spec *ret);
void gl_manifest_skills(struct gl_manifest *m);
/* Of manifest_control.c: reads the control of a step or template. `node`: of its agent. */
void gl_manifest_control(struct gl_manifest *m, gl_jnode step, const struct gl_manifest_node *node,
                         struct gl_step_spec *ret);
void gl_manifest_rule(struct gl_manifest *m, gl_jnode step, size_t parents_n,
                      struct gl_step_spec *ret);
/* The agents of a step or template; empty after an error. */
struct gl_strs gl_manifest_step_agents(struct gl_manifest *m, gl_jnode step, gl_str id);
/* The readers that rows of manifest_fields.c name: `key` of `obj` goes into the struct of its
 * table. */
typedef void gl_manifest_reader(struct gl_manifest *m, gl_jnode obj, const char *key, void *into);
gl_manifest_reader gl_manifest_job_type, gl_manifest_runtime_driver, gl_manifest_output,
    gl_manifest_module, gl_manifest_python, gl_manifest_command, gl_manifest_environment,
    gl_manifest_side_effects, gl_manifest_conditions, gl_manifest_multiplier, gl_manifest_accepts;

/* Of manifest_forms.c: the id of a worker of a binding, and its kind. */
gl_str gl_manifest_worker_id(struct gl_manifest *m, gl_jnode worker);
uint8_t gl_manifest_worker_kind(struct gl_manifest *m, gl_jnode worker);

#endif
