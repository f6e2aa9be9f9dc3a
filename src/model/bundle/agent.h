/* agent.h - the part of a flow that only bundles have: agents that exchange messages.
 *
 * An agent is a logical worker: it has a state and an inbox, handles one message at a time in
 * the order of arrival, and uses no memory while it waits. Each agent has a *unit*, a step of
 * the flow with the id "@<agent id>", which takes slots and runs when a message is handled.
 * Units are the first steps of a flow: agent n is step n. They have no needs, and the job does
 * not wait for them.
 *
 * The other steps of such a flow (its ledger, driver "agent") run no program themselves: an
 * attempt begins with a message to the step's agent and ends with the result that the agent
 * reports. */
#ifndef GL_MODEL_BUNDLE_AGENT_H
#define GL_MODEL_BUNDLE_AGENT_H

#include "model/flow/flow.h"

#define GL_AGENT_KINDS(X)                                              \
    X(EXECUTOR, "executor")     /* a process for each message */       \
    X(AGGREGATOR, "aggregator") /* collects messages */                \
    X(ROUTER, "router")         /* passes them on */                   \
    X(SENSOR, "sensor")         /* records them, and passes them on */ \
    X(MODULE, "module")         /* a native module (include/glia/module.h) */

enum gl_agent_kind {
#define X(name, word) GL_AGENT_##name,
    GL_AGENT_KINDS(X)
#undef X
        GL_AGENT_KIND_COUNT
};

#define GL_ROUTE_MODES(X)         \
    X(BROADCAST, "broadcast")     \
    X(FIRST_MATCH, "first_match") \
    X(ALL_MATCH, "all_match")

enum gl_route_mode {
#define X(name, word) GL_ROUTE_##name,
    GL_ROUTE_MODES(X)
#undef X
        GL_ROUTE_MODE_COUNT
};

/* `output`: what an agent sends after it has handled a message successfully. */
#define GL_AGENT_OUTPUTS(X)                                   \
    X(USUAL, "usual")     /* output_message_type is absent */ \
    X(NOTHING, "nothing") /* it is null */                    \
    X(TYPED, "typed")     /* it is a string: output_type */

enum gl_agent_output {
#define X(name, word) GL_OUTPUT_##name,
    GL_AGENT_OUTPUTS(X)
#undef X
};

#define GL_DELAYS(X)              \
    X(CONSTANT, "constant")       \
    X(EXPONENTIAL, "exponential") \
    X(FIBONACCI, "fibonacci")

enum gl_delay {
#define X(name, word) GL_DELAY_##name,
    GL_DELAYS(X)
#undef X
};

#define GL_RECOVERIES(X)                  \
    X(AUTO, "auto")                       \
    X(LOCAL_RESTART, "local_restart")     \
    X(CLUSTER_RECOVER, "cluster_recover") \
    X(MANUAL_RECOVER, "manual_recover")

enum gl_recovery {
#define X(name, word) GL_RECOVERY_##name,
    GL_RECOVERIES(X)
#undef X
};

#define GL_JOB_TYPES(X) \
    X(BATCH, "batch")   \
    X(SERVICE, "service")

enum gl_job_type {
#define X(name, word) GL_TYPE_##name,
    GL_JOB_TYPES(X)
#undef X
};

extern const char *const gl_agent_kind_words[],
    *const gl_route_mode_words[], *const gl_agent_output_words[],
                                      *const gl_delay_words[], *const gl_recovery_words[],
                                                                   *const gl_job_type_words[];

/* How often a failed agent is restarted: attempts within a sliding window. */
struct gl_restart {
    uint32_t attempts; /* 0: none */
    gl_ms interval_ms, delay_ms, max_delay_ms;
    uint8_t delay_function; /* enum gl_delay */
    bool waits; /* mode "delay": when none are left, it waits for the window; else it fails */
};

struct gl_policies {
    uint8_t job_type, recovery_mode;
    struct gl_restart restart;
};

struct gl_upload {
    gl_str source; /* below payloads/: a file or a folder; "" or ".": all of it */
    gl_str target; /* below the workspace */
};

/* The compiled form omits defaults. */
#define GL_AGENT_ALLOCATION \
    "{\"devices\":[],\"ports\":[],\"volumes\":[],\"runtime_driver\":\"host_local\"}"
#define GL_AGENT_EXECUTOR_TYPE "executor_result"
#define GL_AGENT_SENSOR_TYPE "sensor_ready"

struct gl_agent_spec {
    gl_str id;
    uint8_t kind;         /* enum gl_agent_kind */
    gl_str template_type; /* generic, stream, map, reduce, batch */
    gl_str role, alias;   /* a display name */
    gl_str config; /* JSON object: of a module as written, else the keys that have no field here;
                      "" : {} */
    gl_str module; /* of a module: its name */
    struct gl_items uploads; /* struct gl_upload */
    struct gl_strs pass_env; /* names of the node's variables that win over `environment` */
    gl_str runner;     /* host_local, docker_worker, openshell; "" : the manifest names none */
    gl_str python_env; /* JSON of python_environment; "" : none */
    gl_str allocation; /* JSON for MN_ALLOCATION_JSON */

    uint8_t output;      /* enum gl_agent_output */
    gl_str output_type;  /* of the message it sends */
    gl_str emit_type;    /* router: "" : the type it got */
    gl_str failure_type; /* failure_message_type: sent instead of failing */
    bool leaves_step;    /* workflow_complete_step is false */
    bool terminal_sink, complete_run, complete_on_message;
    uint32_t complete_after; /* 0: no number */
    uint32_t tries;          /* max_attempts: immediate attempts after transient failures; >= 1 */
    gl_ms try_backoff_ms;    /* doubles */
    uint32_t stdout_max;     /* max_output_bytes */
    gl_ms startup_delay_ms;
    gl_ms lease_timeout_ms; /* longest wait for slots */
    uint32_t lease_queue_max;
    bool beacons;         /* the runner reports that the worker is alive, ... */
    bool beacon_required; /* ... and the worker must send beacons, too */
    gl_ms beacon_ms, beacon_timeout_ms;
    uint32_t depth_max, high_mark, low_mark; /* backpressure */
    gl_ms retry_after_ms;
    bool has_restart;
    struct gl_restart restart; /* for this agent only */

    /* Derived when the flow is read. */
    int64_t step;     /* the first step of the ledger that names it; -1: none */
    uint32_t *routes; /* its outbound routes, in the order written */
    uint32_t routes_n;
};

struct gl_route { /* an edge of the message graph */
    gl_str id;
    gl_str from_node, to_node; /* agents, as written; ... */
    uint32_t from, to;         /* ... and as numbers (derived) */
    gl_str type;               /* "*": all */
    uint8_t mode;              /* enum gl_route_mode */
    gl_str conditions;         /* JSON object; "" : always (model/bundle/route.h) */
};

struct gl_seed { /* a message that an entrypoint gets when the job starts */
    gl_str agent;
    gl_str message; /* JSON value as written: see gl_message_seed() */
};

/* A part of a flow that may change while its job runs (model/bundle/patch.h). */
struct gl_region {
    gl_str id;
    bool is_fanout;          /* strategy checkpoint_fanout; else replace_path */
    gl_str controller, exit; /* steps; exit "" for a fanout */
    struct gl_strs templates;
    struct gl_strs mutable_edges; /* ids of edges controller -> exit */
};

struct gl_template {
    gl_str id, agent, label;
    gl_str control; /* JSON: timeouts, retry and failure policy of its instances */
};

struct gl_dynamic {
    bool enabled;
    struct gl_items regions;   /* struct gl_region */
    struct gl_items templates; /* struct gl_template */
    uint32_t patches_max, active_max, operations_max;
};

struct gl_payload { /* a file of the bundle */
    gl_str path;    /* below payloads/ */
    gl_str blob;
    bool executable;
};

/* What only bundles have; gl_flow.bundle, NULL for a flow file. */
struct gl_bundle_spec {
    gl_str graph_id, hash;    /* hash: of the listing of all files, which names the snapshot */
    gl_str manifest;          /* blob: the manifest as it was submitted */
    struct gl_items agents;   /* struct gl_agent_spec */
    struct gl_items routes;   /* struct gl_route */
    struct gl_items seeds;    /* struct gl_seed, in the order in which they are delivered */
    struct gl_items payloads; /* struct gl_payload, sorted by path */
    struct gl_policies policies;
    struct gl_dynamic dynamic;
    gl_str config;        /* the merged configuration: JSON object */
    gl_str scenario;      /* scenario.json; "" : none */
    struct gl_strs notes; /* where Glia deviates from the manifest; shown in events and status */
};

static inline const struct gl_agent_spec *gl_flow_agent(const struct gl_flow *f, uint32_t number)
{
    return &((const struct gl_agent_spec *)f->bundle->agents.items)[number];
}

static inline uint32_t gl_flow_agents_n(const struct gl_flow *f)
{
    return f->bundle != NULL ? (uint32_t)f->bundle->agents.n : 0;
}

static inline bool gl_flow_is_unit(const struct gl_flow *f, uint32_t number)
{
    return number < gl_flow_agents_n(f);
}

/* The number of an agent; -1 if there is none with that name. */
int64_t gl_flow_find_agent(const struct gl_flow *f, gl_str id);

extern const struct gl_schema gl_bundle_schema;

/* Defaults of times and limits. */
void gl_agent_defaults(struct gl_agent_spec *a);
/* Into the object that is open in `w`. */
void gl_bundle_write(const struct gl_bundle_spec *b, struct gl_jw *w);

/* After decoding: sets the numbers of names, and agents' routes and steps. */
int gl_bundle_link(struct gl_flow *f, struct gl_arena *a, struct gl_why *reterr_why);
/* Only copies what children accept to their parents, which need it when they end. */
int gl_bundle_link_accepts(struct gl_flow *f, struct gl_arena *a, struct gl_why *reterr_why);

#endif
