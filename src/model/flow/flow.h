/* flow.h - a flow: a named DAG of steps. Immutable once parsed.
 *
 *   gl_flow_parse()    a flow as written (JSON or YAML tape): every error at once, with its place
 *   gl_flow_encode()   the compiled form: canonical JSON, named by its SHA-256 in the store
 *   gl_flow_decode()   the compiled form, read back (trusted shape, still checked)
 *
 * Parsing never reads a file: `script: FILE` and `python: |` become entries of `files` by name; the
 * caller supplies the content's hash through a gl_flow_loader. */
#ifndef GL_MODEL_FLOW_FLOW_H
#define GL_MODEL_FLOW_FLOW_H

#include "base/json.h"
#include "base/limits.h"
#include "model/schema.h"

/* When a step may run, given its parents. (Aliases are accepted on input.) */
#define GL_RULES(X)                                                  \
    X(ALL_SUCCESS, "all_success", "all_required")                    \
    X(ALL_DONE, "all_done", NULL)                                    \
    X(ONE_SUCCESS, "one_success", "any_success")                     \
    X(ONE_DONE, "one_done", "any_done")                              \
    X(ONE_FAILED, "one_failed", "any_failed")                        \
    X(NONE_FAILED, "none_failed_min_one_success", "partial_success") \
    X(QUORUM, "quorum_success", "quorum")

enum gl_rule {
#define X(name, word, alias) GL_RULE_##name,
    GL_RULES(X)
#undef X
        GL_RULE_COUNT
};

/* What the failure of its last attempt does to the step and the job. */
#define GL_FAILURE_POLICIES(X)                                                  \
    X(FAIL, "fail")         /* step failed, job failed */                       \
    X(CONTINUE, "continue") /* step partial (outcome failed); dependents run */ \
    X(SKIP, "skip")         /* step skipped (outcome failed); dependents see a skipped step */

enum gl_failure_policy {
#define X(name, word) GL_ON_FAILURE_##name,
    GL_FAILURE_POLICIES(X)
#undef X
        GL_ON_FAILURE_COUNT
};

/* Whether it may run again if it is unknown whether it ran. */
#define GL_SAFETIES(X)                                                                  \
    X(UNMARKED, "unmarked")     /* yes, once the lost attempt is known to have ended */ \
    X(IDEMPOTENT, "idempotent") /* yes, at once */                                      \
    X(UNSAFE, "unsafe")         /* no: a person decides */

enum gl_safety {
#define X(name, word) GL_SAFETY_##name,
    GL_SAFETIES(X)
#undef X
        GL_SAFETY_COUNT
};

extern const char *const gl_rule_words[]; /* NULL-terminated */
extern const char *const gl_failure_policy_words[];
extern const char *const gl_safety_words[];

struct gl_retry {
    uint32_t attempts;   /* includes the first attempt; 1 = no retry */
    gl_ms backoff_ms;    /* before the second attempt */
    uint32_t factor_pct; /* 200 = doubles each time */
    gl_ms backoff_max_ms;
    /* the wait varies by up to this, up and down; the same for the same attempt */
    uint32_t jitter_pct;
    struct gl_strs on; /* only these are retried: exit codes in digits, "timeout", "signal";
                          none: every failure */
};

/* Which texts of a step contain references (model/text/ref.h). The texts of a marked list are kept
 * as written, including `$${`; all others are literal. */
enum { GL_EXPAND_ARGV = 1, GL_EXPAND_ENV = 2, GL_EXPAND_CWD = 4 };

#define GL_INPUT_TYPES(X) \
    X(ANY, "any")         \
    X(STRING, "string")   \
    X(NUMBER, "number")   \
    X(INTEGER, "integer") \
    X(BOOLEAN, "boolean") \
    X(LIST, "list")       \
    X(OBJECT, "object")

enum gl_input_type {
#define X(name, word) GL_INPUT_##name,
    GL_INPUT_TYPES(X)
#undef X
        GL_INPUT_TYPE_COUNT
};

extern const char *const gl_input_type_words[];

/* An input of the flow, which a job gets when it is submitted. */
struct gl_flow_input {
    gl_str name;
    uint8_t type; /* enum gl_input_type */
    bool required;
    gl_str fallback; /* JSON; "" : null */
    gl_str doc;
};

/* One step, compiled. `needs` and `children` are numbers of steps (children are derived, not
 * encoded). */
struct gl_step_spec {
    gl_str id;
    struct gl_strs needs_ids; /* as written */
    uint32_t *needs;
    uint32_t needs_n;
    uint32_t *children;
    uint32_t children_n;
    uint8_t rule;          /* enum gl_rule */
    uint32_t quorum;       /* GL_RULE_QUORUM */
    uint8_t on_failure;    /* enum gl_failure_policy */
    uint8_t safety;        /* enum gl_safety */
    gl_str driver;         /* "process", "noop"; those that wait: "sleep", "until", "signal",
                              "approval"; of a bundle "agent", and of units "worker", "module",
                              "relay" */
    struct gl_strs argv;   /* the flow's files are in the working folder under their names */
    struct gl_strs env;    /* "NAME=value" in the order written */
    gl_str cwd;            /* "" : a private folder */
    struct gl_items files; /* struct gl_flow_file */
    gl_ms timeout_ms;      /* 0: none */
    gl_ms grace_ms;
    gl_ms heartbeat_ms; /* 0: none */
    struct gl_retry retry;
    gl_str pool;
    uint32_t slots;
    int64_t priority;           /* higher first; 0 by default */
    struct gl_strs node_labels; /* what it requires of its node's labels (model/labels.h) */

    /* References. `sh` text never contains any: each has become the expansion of a variable
     * GLIA_REF_n, which is in `env`. */
    uint32_t expand;        /* GL_EXPAND_* */
    struct gl_strs refs;    /* "steps.fetch.output.rows": written to the input file, for `python` */
    struct gl_strs secrets; /* "NAME=env:VARIABLE", "NAME=file:/path": read by the executor */

    /* Decide, before the step runs for the first time, whether, how often and when it runs. */
    gl_str when;         /* a condition (model/text/cond.h); "" : none */
    gl_str foreach;      /* "${...}" or a JSON list; "" : the step runs once */
    uint32_t items_max;  /* of foreach: more items fail the step */
    uint32_t parallel;   /* items at a time; 0: as many as there are slots */
    gl_str limit_key;    /* "" : none; may contain references */
    uint32_t limit_max;  /* attempts with that key at a time */
    gl_str rate_key;     /* "" : none; literal */
    gl_ms rate_ms;       /* between two starts with that key */
    gl_str sleep, until; /* a duration, a time; or one reference */
    gl_str signal;       /* its name */
    gl_str approval;     /* the question; may contain references */
    struct gl_strs decisions;
    gl_str on_timeout; /* of approval: the decision if nobody decides in time; "" : it fails */

    /* Derived when the flow is read. */
    uint32_t *reads; /* the steps its references name, each once */
    uint32_t reads_n;
    bool has_gate; /* `when`, `foreach`, or references in what is needed before it is queued */
    bool waits;    /* a driver without a process: see gl_flow_waits() */
    bool is_bound; /* driver "agent": its attempts are an agent's work (model/bundle/agent.h) */

    /* Of a bundle's ledger. */
    struct gl_strs agent_ids; /* who runs it: the first gets the messages that the ledger sends */
    uint32_t agent;           /* its number (derived) */
    struct gl_items edges;    /* struct gl_step_edge, parallel to needs; none: the usual */
    gl_str label;
    bool is_removed;                         /* by a patch: it no longer exists */
    gl_str template_id, region_id, patch_id; /* of a step that a patch added */
    uint8_t *tells; /* GL_ACCEPT_* of its children, parallel to them (derived); NULL: usual */
};

/* Which outcomes of a parent a child accepts (all_success). */
enum { GL_ACCEPT_DONE = 1, GL_ACCEPT_PARTIAL = 2, GL_ACCEPT_SKIPPED = 4, GL_ACCEPT_FAILED = 8 };

struct gl_step_edge {
    gl_str id;
    uint32_t accepts; /* GL_ACCEPT_* */
};

/* A step whose driver only waits: no slots, no attempt, no process. */
static inline bool gl_flow_waits(const struct gl_step_spec *s)
{
    return s->waits;
}

struct gl_flow_file {
    gl_str name; /* in the working folder */
    gl_str blob; /* SHA-256 in hex */
    bool executable;
};

struct gl_bundle_spec;

struct gl_flow {
    gl_str name;
    struct gl_bundle_spec *bundle; /* NULL: from a flow file */
    struct gl_items inputs;        /* struct gl_flow_input */
    struct gl_items steps;         /* struct gl_step_spec, in the order written */
    uint32_t roots_n;              /* steps without needs */
    uint32_t *roots;
    uint32_t *slots;  /* by id, open addressing: number + 1, 0 = free (derived) */
    uint32_t slots_n; /* a power of two */
};

static inline const struct gl_step_spec *gl_flow_step(const struct gl_flow *f, uint32_t number)
{
    return &((const struct gl_step_spec *)f->steps.items)[number];
}

/* The first number of instances. A bundle's flow may grow. */
static inline uint32_t gl_flow_items_base(const struct gl_flow *f)
{
    return f->bundle != NULL ? GL_STEPS_MAX : (uint32_t)f->steps.n;
}

/* A number for each step and each instance, the same whenever the job is loaded. */
static inline uint32_t gl_flow_place(const struct gl_flow *f, uint32_t number, int64_t item)
{
    static_assert(GL_STEPS_MAX * (GL_ITEMS_MAX + 1LL) <= UINT32_MAX, "every instance has a number");
    return item < 0 ? number : gl_flow_items_base(f) + number * GL_ITEMS_MAX + (uint32_t)item;
}

/* Supplies files while a flow is parsed. `source` is the path as written in the flow (for
 * `script` and `files`), or "" when the content is given in `text` (for `python` and `sh` text).
 * Returns the hash in hex. NULL loader: `script`, `python` and overlong `sh` are refused. */
struct gl_flow_loader {
    int (*load)(struct gl_flow_loader *l, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why);
};

struct gl_flow_error {
    unsigned line, column; /* 0: unknown */
    gl_str path;           /* "steps.fetch.retry" */
    enum gl_reason reason; /* the kind of error, for programs */
    gl_str text;           /* what is wrong, and what to write instead */
};

struct gl_flow_errors {
    struct gl_flow_error items[64];
    size_t n; /* at most 64 are kept */
    size_t total;
};

/* Parse what the user wrote. The loader is called even if there are errors elsewhere, so that all
 * errors are reported at once. Everything lives in `a` (it may borrow from the tape). Returns
 * GL_E_INVALID with all errors. */
int gl_flow_parse(const struct gl_json *j, gl_jnode root, struct gl_flow_loader *loader,
                  struct gl_arena *a, struct gl_flow **ret, struct gl_flow_errors *reterr);

/* Defaults are omitted, so that a plain step takes few bytes. The caller must refuse more
 * than GL_FLOW_BYTES_MAX, because gl_flow_decode() does. */
void gl_flow_encode(const struct gl_flow *f, struct gl_buf *out);
/* Everything is copied into `a`. GL_E_VERSION: written by a newer release; GL_E_LIMIT or
 * GL_E_INVALID: not a flow that gl_flow_encode() wrote. */
int gl_flow_decode(gl_str text, struct gl_arena *a, struct gl_flow **ret,
                   struct gl_why *reterr_why);

/* The error for a required input that is missing: "input `name`: ..." */
#define GL_FLOW_INPUT_MISSING "it is required and missing"

/* Checks the inputs of a job against the declarations of its flow: fills in defaults, and reports
 * all unknown and missing ones at once. `given` is a JSON object or "". `ret` is a canonical JSON
 * object, "" if the flow has no inputs. */
int gl_flow_inputs(const struct gl_flow *f, gl_str given, struct gl_arena *a, gl_str *ret,
                   struct gl_why *reterr_why);

/* The number of a step by its id; -1 if absent. O(1): uses the table built while parsing. */
int64_t gl_flow_find(const struct gl_flow *f, gl_str id);

/* The fields of a flow file, for suggestions, the reference page and its test. */
struct gl_flow_field {
    const char *of; /* "flow", "step", or the field that is a table: "retry", ... */
    const char *name;
    const char *type;
    const char *fallback; /* the default; "" = must be given or is absent */
    bool is_required;
    const char *doc;
    const char *schema; /* JSON Schema of its value (model/flow/flow_jsonschema.c) */
};

extern const struct gl_flow_field gl_flow_fields[];
extern const size_t gl_flow_fields_n;
/* struct gl_step_spec, without derived fields */
extern const struct gl_schema gl_flow_step_schema;

#endif
