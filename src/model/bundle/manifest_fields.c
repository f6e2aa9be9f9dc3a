/* The fields of a manifest, table by table: how each is read, and its row in
 * docs/bundle-manifest.md. A test compares the two. Fields without a doc are read, too. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum { PATCHES_CAP = 100000, ACTIVE_CAP = 1000, OPERATIONS_CAP = 256 };

static_assert(GL_TYPE_BATCH == 0, "a job is a batch unless it says otherwise");

static const char unread[] = "is not read by this release";
static const char an_agent[] = "the id of an agent";

static const char *const missed_actions[] = {"fail_attempt", NULL};
static const char *const placements[] = {"binpack", "spread", NULL};
static const char *const strategies[] = {"replace_path", "checkpoint_fanout", NULL};
static const char *const restart_modes[] = {"fail", "delay", NULL};
static const char *const failure_policies[] = {"fail_workflow", "continue_partial", "continue",
                                               "skip", NULL};

/* Where the value goes. Does not compile unless the member is of that type. */
#define AT(of, member, ctype) \
    .at = offsetof(struct of, member) + 0 * sizeof((ctype *)NULL == &((struct of *)NULL)->member)

#define CONFIG gl_manifest_config
#define CONTROL gl_manifest_control_fields

/* How a value is read. `type` comes last, so that the doc and the default follow it in a row.
 * TYPE and TABLE: by other code, if at all; a TABLE's own fields are the rows of that table. */
#define TYPE(text) .type = text
#define TABLE(name) .table = GL_TABLE_##name, .type = "table"
#define BY_HAND(text, function) .how = GL_READ_BY_HAND, .read = function, .type = text
#define TEXT(text, of, member) .how = GL_READ_TEXT, AT(of, member, gl_str), .type = text
#define AGENT(of, member) .how = GL_READ_AGENT, AT(of, member, gl_str), .type = "agent"
#define STEP(of, member) .how = GL_READ_STEP, AT(of, member, gl_str), .type = "step"
#define TEXTS(of, member) .how = GL_READ_TEXTS, AT(of, member, struct gl_strs), .type = "list"
#define FLAGS(of, member, ctype, yes, no) \
    .how = GL_READ_FLAGS, AT(of, member, ctype), .min = yes, .max = no, .type = "true or false"
#define BOOL(of, member) FLAGS(of, member, bool, true, false)
#define UNLESS(of, member) FLAGS(of, member, bool, false, true)
#define MARK(of, member, yes, no) FLAGS(of, member, uint8_t, yes, no)
#define NUMBER(kind, of, member, ctype, lo, hi) \
    .how = GL_READ_##kind, AT(of, member, ctype), .min = lo, .max = hi, .type = "number"
#define U32(of, member, lo, hi) NUMBER(U32, of, member, uint32_t, lo, hi)
#define MS(of, member, lo) NUMBER(MS, of, member, gl_ms, lo, GL_MANIFEST_SPAN_MS_MAX)
#define SECONDS(of, member, lo) NUMBER(SECONDS, of, member, gl_ms, lo, 0)
#define WORD_OF(of, member, ctype, list) \
    .how = GL_READ_WORD, AT(of, member, ctype), .words = list, .type = "word"
#define WORD(of, member, list) WORD_OF(of, member, uint8_t, list)
#define CHOICE(of, member, list) WORD_OF(of, member, bool, list)
/* Values without an effect: checked, counted, refused, or only looked for (`missing`, `note`). */
#define CHECKED(list) .how = GL_READ_CHECKED, .words = list, .type = "word"
#define COUNTED(member, feature) \
    .how = GL_READ_COUNTED, AT(gl_manifest, member, uint32_t), .what = feature, .type = "number"
#define ZERO(feature) .how = GL_READ_ZERO, .what = feature, .type = "number"
#define REFUSED(text, feature) .how = GL_READ_REFUSED, .what = feature, .type = text
#define SEEN(text) .how = GL_READ_SEEN, .type = text

static const struct gl_manifest_field manifest_fields[] = {
    {"apiVersion", TYPE("text"), "`mn.workflow/v2` or `mn.workflow/v1`: the catalog's form."},
    {"kind", TYPE("text"), "`Workflow`; not read."},
    {"manifest_version", SEEN("text"), "Version of the format, \"1.0\".", "required",
     .missing = "write \"1.0\""},
    {"id", TYPE("text"), "Name of the bundle; in the catalog's form the default of `job_name`."},
    {"name", TYPE("text"), "For people."},
    {"description", TYPE("text"), "For people."},
    {"job_name", TYPE("text"), "What its jobs are called; required in the other forms.", "`id`"},
    {"graph_id", TYPE("text"),
     "Name of the graph; in the catalog's form `workflow.workflow_id` is.", "required"},
    {"workflow", TYPE("table"), "The ledger in the catalog's form: steps, edges, dynamic changes.",
     "-"},
    {"agents", TYPE("table"), "The message graph in the catalog's form: nodes, edges, entrypoints.",
     "-"},
    {"flow", TYPE("table"), "Both in the submitted form.", "-"},
    {"nodes", TYPE("list"), "The agents in the older form, which has no steps.", "-"},
    {"edges", TYPE("list"), "The edges between agents in the older form."},
    {"entrypoints", TYPE("list of agents"), "Who gets the first messages.",
     "agents with the role root"},
    {"initial_inputs", TYPE("map or list"),
     "The first messages: by agent, or a list that each entrypoint gets.", "`{}` for each"},
    {"runtime", TYPE("table"), "Bindings and first messages in the catalog's form."},
    {"policies", TYPE("table"), "Recovery and restarts."},
    {"daemon", MARK(gl_policies, job_type, GL_TYPE_SERVICE, GL_TYPE_BATCH),
     "Older form: true means `service`.", "false"},
    {"type", BY_HAND("word", gl_manifest_job_type), "`batch` or `service`.", "batch"},
    {"skill_dependencies", TYPE("list"), "Python packages that the bundle ships: see below."},
    {"services", REFUSED("list", "services in a registry"),
     "Refused: services are not in this release."},
    {"requires_services", REFUSED("list", "services of a registry"),
     "Refused: services are not in this release."},
    {"schedule", REFUSED("table", "a schedule"), "Refused: schedules are not in this release."},
    {"triggers", REFUSED("list", "triggers"), "Refused: triggers are not in this release."},
    {"deployment", REFUSED("table", "a deployment"),
     "Refused: deployments are not in this release."},
    {"requiredContextEngine", REFUSED("anything", "a context engine"),
     "Refused: there is no context engine."},
    {"agent_dependencies", SEEN("list"), "Not read. A note says so.", .note = unread},
    {"reload", SEEN("table"), "Not read: the files of a job never change. A note says so.",
     .note = "is not read: the files of a job never change while it runs"},
    {"version", TYPE("number"), "Not read."},
    {"standard_version", TYPE("text"), "Not read."},
    {"requirements", TYPE("table"), "Not read."},
    {"input_validation", TYPE("table"), "Not read."},
    {"contract", TYPE("table"), "Not read."},
    {"metadata", TYPE("table"), "Not read."},
    {"license", TYPE("anything"), "Not read."},
    {"term", TYPE("anything"), "Not read."},
    {"job_type", BY_HAND("word", gl_manifest_job_type)},
    {"schedules", REFUSED("list", "schedules")},
    {"constraints", REFUSED("list", "placement by constraints")},
    {"required_context_engine", REFUSED("anything", "a context engine")},
};

static const struct gl_manifest_field workflow_fields[] = {
    {"workflow_id", TYPE("text"), "Name of the graph, in the catalog's form.", "required"},
    {"mode", TYPE("word"),
     "`static_dag` or `dynamic_dag`, which needs `dynamic.enabled`. That field decides: a note "
     "says so if it is true and this is `static_dag`.",
     "static_dag"},
    {"entrypoint", TYPE("step"), "The step where it begins."},
    {"source", TYPE("step"), "The same step again; all steps must be reachable from it.",
     "`entrypoint`"},
    {"sink", TYPE("step"), "The last step."},
    {"steps", TYPE("list"),
     "The steps of the ledger. Without any there is no ledger: only messages."},
    {"edges", TYPE("list"), "In the catalog's form: which step waits for which."},
    {"graph", TABLE(GRAPH),
     "In the submitted form: `edges`, as above, and `join_default`, the trigger rule of steps "
     "that name none."},
    {"nodes", TYPE("list"), "In the submitted form: the agents.", "-"},
    {"dynamic", TYPE("table"), "How the steps may change while the job runs."},
    {"execution", TYPE("table"), "Not read."},
    {"policy", TYPE("table"), "Not read."},
    {"state", TYPE("table"), "Not read."},
    {"schema", TYPE("text"), "Not read."},
};

static const struct gl_manifest_field graph_fields[] = {
    {"edges", TYPE("list"), "Which step waits for which."},
    {"join_default", TYPE("word"),
     "The trigger rule of steps that name none and have a step before them.", "all_success"},
};

static const struct gl_manifest_field agents_fields[] = {
    {"nodes", TYPE("list"), "The agents.", "required"},
    {"edges", TYPE("list"), "How messages go between them."},
    {"entrypoints", TYPE("list of agents"), "Who gets the first messages.",
     "agents with the role root"},
    {"schema", TYPE("text"), "Not read."},
};

static const struct gl_manifest_field runtime_fields[] = {
    {"bindings", TYPE("map"),
     "Which workers do a step; the agents themselves if there are no nodes."},
    {"initial_inputs", TYPE("map or list"),
     "The first messages: by agent, or a list that each entrypoint gets.", "`{}` for each"},
    {"store", TYPE("table"), "Not read."},
    {"workflow_control", TYPE("table"), "Not read: nodes and steps say it."},
    {"state", TYPE("table"), "Not read."},
    {"models", TYPE("table"), "Not read."},
};

static const struct gl_manifest_field binding_fields[] = {
    {"workers", TYPE("list"),
     "Its workers: `node_id`, `node` or `id`, `role`; without nodes also `uses`, `kind`, `with` "
     "or `config`."},
    {"routes", TYPE("list"),
     "Without nodes: edges between workers, as edges between agents (also `worker_edges`).",
     .alias = "worker_edges"},
    {"start_workers", TYPE("list"),
     "Without nodes: the entrypoints, in the binding of `flow.entrypoint` (also `entrypoints`).",
     .alias = "entrypoints"},
    {"seed_inputs", TYPE("map or list"),
     "First messages of its workers, or by agent, where `initial_inputs` has none (also "
     "`initial_inputs`).",
     .alias = "initial_inputs"},
    {"type", TYPE("text"), "Not read."},
    {"strategy", TYPE("text"), "Not read."},
};

static const struct gl_manifest_field node_fields[] = {
    {"node_id", TYPE("id"), "Name of the agent (also `id`).", "required"},
    {"agent_type", TYPE("word"),
     "`executor`, `aggregator`, `router`, `sensor` or `module`; also `sandbox_worker`, "
     "`collector`, `relay` for the first three (also `agentType`).",
     "required"},
    {"type", TYPE("word"),
     "Template: `generic`, `stream`, `map`, `reduce` (or `accumulator`), `batch` (also `kind`). "
     "An aggregator is generic or reduce, a router generic or map, a sensor generic.",
     "generic"},
    {"role", TEXT("text", gl_agent_spec, role),
     "For people; `root` and `root_coordinator` make an entrypoint where none are named."},
    {"alias", TEXT("text", gl_agent_spec, alias), "For people (also `display_name`).",
     .alias = "display_name"},
    {"config", TYPE("table"), "What it does: see below."},
    {"resources", TABLE(RESOURCES), "What it needs."},
    {"policies", TABLE(POLICIES), "`restart` of its own."},
    {"constraints", REFUSED("list", "placement by constraints"), "Refused: there is no placement."},
    {"services", REFUSED("list", "a service in the registry"),
     "Refused: services are not in this release."},
    {"requires_services", REFUSED("list", "services of the registry"),
     "Refused: services are not in this release."},
    {"retry_policy", SEEN("table"), "Not read. A note says so.", .note = unread},
    {"checkpoint_policy", SEEN("table"), "Not read. A note says so.", .note = unread},
    {"spawn_policy", SEEN("table"), "Not read. A note says so.", .note = unread},
    {"tool_bindings", SEEN("list"), "Not read. A note says so.", .note = unread},
    {"id", TYPE("id"), "See `node_id`.", "-"},
    {"kind", TYPE("word"), "See `type`.", "generic"},
    {"agentType", TYPE("word"), "See `agent_type`.", "-"},
    {"display_name", TYPE("text"), "See `alias`."},
    {"uses", TYPE("text"), "Refused without `agent_type`: templates of the SDK are not resolved."},
    {"with", TYPE("table"), "Of a worker: see `config`."},
    {"devices", REFUSED("list", "devices")},
    {"ports", REFUSED("list", "ports")},
    {"volumes", REFUSED("list", "volumes")},
};

static const struct gl_manifest_field resources_fields[] = {
    {"cpu_cores", COUNTED(idle_resources[0], "processor time"),
     "Checked, no effect. A note says so."},
    {"memory_mb", COUNTED(idle_resources[1], "memory"), "Checked, no effect. A note says so."},
    {"disk_mb", COUNTED(idle_resources[2], "disk space"), "Checked, no effect. A note says so."},
    {"gpu_count", ZERO("devices"), "Refused above 0: devices are not given out.", "0"},
    {"devices", REFUSED("list", "devices"), "Refused: devices are not given out."},
    {"ports", REFUSED("list", "ports"), "Refused: ports are not given out."},
    {"volumes", REFUSED("list", "volumes"), "Refused: volumes are not given out."},
    {"runtime_driver", BY_HAND("word", gl_manifest_runtime_driver),
     "`host_local`; others are refused.", "host_local"},
};

static const struct gl_manifest_field executor_fields[] = {
    {"runner_module", TEXT("text", CONFIG, runner),
     "Its last part picks the runner: `HostLocal`. `DockerWorker` and `OpenShell` are refused.",
     "a process, with a note"},
    {"command", BY_HAND("list or text", gl_manifest_command),
     "A program and its arguments; text is run by `bash -lc`. `{input_file}`, `{context_file}`, "
     "`{message_file}`, `{body_file}`, `{workdir}`, `{job_id}` and `{agent_id}` are filled in.",
     "a notice"},
    {"upload_path", TYPE("path"),
     "A file or folder of `payloads/` that is copied into the workspace."},
    {"upload_as", TYPE("path"), "Where it stands there.", "its last part"},
    {"upload_paths", TYPE("list"), "Several: `{source, target}`. Comes before `upload_path`."},
    {"uploads", TYPE("list"), "The same as `upload_paths`, which comes before it."},
    {"workdir", TEXT("path", CONFIG, workdir),
     "The working folder: `sandbox_upload_path` is the workspace, what is below it is below the "
     "workspace, another absolute path is meant literally.",
     "the workspace"},
    {"sandbox_upload_path", TEXT("path", CONFIG, workspace),
     "The name of the workspace in `workdir`.", "/sandbox/job"},
    {"environment", BY_HAND("map", gl_manifest_environment),
     "Variables of the worker; values become text."},
    {"pool", TEXT("id", CONFIG, pool), "Whose slots it takes: the node's pool `executor.<pool>`.",
     "default"},
    {"pool_slots", U32(CONFIG, slots, 1, GL_SLOTS_MAX), "How many.", "1"},
    {"safe_to_retry", MARK(CONFIG, marks, GL_MARKED_SAFE, GL_MARKED_UNSAFE),
     "true: it may run again when nobody knows whether it ran; false: a person decides."},
    {"idempotent", MARK(CONFIG, marks, GL_MARKED_SAFE, GL_MARKED_UNSAFE), "The same."},
    {"idempotency_key", TEXT("text", CONFIG, idempotency_key), "It may run again."},
    {"recovery_idempotency_key", TEXT("text", CONFIG, idempotency_key), "It may run again."},
    {"manual_review_on_recovery", MARK(CONFIG, marks, GL_MARKED_UNSAFE, 0),
     "A person decides. Such marks win over those that allow it; so does the absence of all marks.",
     "false"},
    {"requires_approval", MARK(CONFIG, marks, GL_MARKED_UNSAFE, 0), "A person decides.", "false"},
    {"unsafe", MARK(CONFIG, marks, GL_MARKED_UNSAFE, 0), "A person decides.", "false"},
    {"side_effects", BY_HAND("word, list or table", gl_manifest_side_effects),
     "A person decides if they are external writes (also `side_effect`)."},
    {"side_effect", BY_HAND("word, list or table", gl_manifest_side_effects),
     "See `side_effects`."},
};

static const struct gl_manifest_field config_fields[] = {
    {"pass_env", TEXTS(CONFIG, agent.pass_env),
     "Variables of the node that win over `environment`."},
    {"output_message_type", BY_HAND("text or null", gl_manifest_output),
     "Type of the message that is sent when one was handled well; null: none is. A sensor's "
     "default is `sensor_ready`, an aggregator sends none by default.",
     "executor_result"},
    {"emit_type", TEXT("text", CONFIG, agent.emit_type),
     "Of a router: the type of what it passes on.", "the incoming type"},
    {"failure_message_type", TEXT("text", CONFIG, agent.failure_type), "Sent instead of failing."},
    {"workflow_complete_step", UNLESS(CONFIG, agent.leaves_step),
     "false: success does not complete the step.", "true"},
    {"terminal_sink", BOOL(CONFIG, agent.terminal_sink),
     "Nothing comes behind this agent: it has no outgoing edges.", "false"},
    {"complete_run", BOOL(CONFIG, agent.complete_run),
     "With `terminal_sink`: it completes the job. Not for an agent that does a step.", "false"},
    {"complete_on_message", BOOL(CONFIG, agent.complete_on_message),
     "Of an aggregator: complete with the first message. Needs `output_message_type`, or "
     "`terminal_sink` and `complete_run`.",
     "false"},
    {"complete_after", U32(CONFIG, agent.complete_after, 1, GL_JOB_LETTERS_MAX),
     "Of an aggregator: complete with so many messages. Needs the same."},
    {"timeout_seconds", SECONDS(CONFIG, timeout_ms, 1), "The longest run of the process."},
    {"max_attempts", U32(CONFIG, agent.tries, 1, GL_ATTEMPTS_MAX),
     "Tries at once when a failure looks transient.", "1"},
    {"retry_backoff_ms", MS(CONFIG, agent.try_backoff_ms, 0),
     "The wait before the second; it doubles.", "500"},
    {"lease_queue_timeout_ms", MS(CONFIG, agent.lease_timeout_ms, 1), "The longest wait for them.",
     "30000"},
    {"lease_max_queue_length", U32(CONFIG, agent.lease_queue_max, 1, GL_WAITING_MAX),
     "The longest queue for them.", "1000"},
    {"beacon_enabled", BOOL(CONFIG, agent.beacons), "The runner tells that the process lives.",
     "false"},
    {"beacon_interval_ms", MS(CONFIG, agent.beacon_ms, 1), "How often.", "15000"},
    {"beacon_timeout_ms", MS(CONFIG, agent.beacon_timeout_ms, 1), "The longest silence.", "45000"},
    {"agent_beacon_required", BOOL(CONFIG, agent.beacon_required),
     "The worker itself must tell it, too.", "false"},
    {"beacon_missed_action", CHECKED(missed_actions), "`fail_attempt`.", "fail_attempt"},
    {"backpressure", TABLE(BACKPRESSURE), "When its inbox counts as full."},
    {"python_environment", BY_HAND("table", gl_manifest_python),
     "`packages`, `requirements`, `path` of a virtual environment for the worker."},
    {"max_output_bytes", U32(CONFIG, agent.stdout_max, 1, GL_STDOUT_BYTES_MAX),
     "How much of stdout is kept; at most 8388608.", "1048576"},
    {"startup_delay_ms", MS(CONFIG, agent.startup_delay_ms, 0),
     "The wait before its first message.", "0"},
    {"module", BY_HAND("text", gl_manifest_module),
     "Of a module: its name. It gets all of `config`.", "-"},
    {"module_source", TYPE("path"), "Not read: the name finds the native module."},
};

static const struct gl_manifest_field backpressure_fields[] = {
    {"max_queue_depth", U32(gl_agent_spec, depth_max, 1, GL_INBOX_MAX), "Full.", "100"},
    {"high_watermark", U32(gl_agent_spec, high_mark, 1, GL_INBOX_MAX),
     "Pressure begins; at most `max_queue_depth` - 1 by default.", "75"},
    {"low_watermark", U32(gl_agent_spec, low_mark, 0, GL_INBOX_MAX), "Pressure ends.", "25"},
    {"retry_after_ms", MS(gl_agent_spec, retry_after_ms, 1),
     "When one that was refused may come again.", "250"},
    {"drop_policy", TYPE("text"), "Not read: nothing is dropped."},
    {"max_concurrency", TYPE("number"), "Not read: an agent handles one message at a time."},
};

static const struct gl_manifest_field edge_fields[] = {
    {"edge_id", TEXT("text", gl_route, id), "Name of the edge (also `id`).", "from->to",
     .alias = "id"},
    {"from_node", AGENT(gl_route, from_node), "Who sends (also `from`).", "required",
     .missing = an_agent, .alias = "from"},
    {"to_node", AGENT(gl_route, to_node), "Who receives (also `to`).", "required",
     .missing = an_agent, .alias = "to"},
    {"message_type", TEXT("text", gl_route, type),
     "Type of the messages that go this way; `*` for all (also `event`).", "required",
     .alias = "event", .missing = "the type of messages on this edge, `*` for all"},
    {"routing_mode", WORD(gl_route, mode, gl_route_mode_words),
     "`broadcast`, `first_match` or `all_match`.", "broadcast"},
    {"conditions", BY_HAND("table", gl_manifest_conditions), "When it is taken.", "always"},
};

static const struct gl_manifest_field step_fields[] = {
    {"id", TYPE("id"), "Name of the step; may contain `:`.", "required"},
    {"run", TYPE("text"), "Name of its binding; the agent of that name does it.", "`id`"},
    {"agent_id", TYPE("agent"),
     "Who does it. The first of `agent_id`, `run` and `id` that is an agent is."},
    {"agent_ids", TYPE("list of agents"),
     "Further agents that do it, or all if none of those is one. Else the workers of its binding."},
    {"trigger_rule", TYPE("word or table"),
     "How the steps before it must have ended: a word, or `rule` (`type`, `mode`) and `quorum` "
     "(`count`, `minimum`). Also in `control` and in `join`.",
     "all_success"},
    {"join", TYPE("word or table"),
     "Another place for `trigger_rule`: `trigger_rule`, `rule` or `mode`."},
    {"control", TABLE(CONTROL), "Times, tries, failure."},
    {"label", TEXT("text", gl_step_spec, label), "For people."},
    {"goal", TYPE("text"), "Not read."},
    {"kind", TYPE("text"), "Not read."},
    {"action", TYPE("text"), "Not read."},
    {"emits", TYPE("anything"), "Not read."},
};

static const struct gl_manifest_field control_fields[] = {
    {"required", UNLESS(CONTROL, is_optional),
     "false: its failure does not fail the job; the step is partial.", "true"},
    {"failure_policy", WORD(CONTROL, failure_policy, failure_policies),
     "`fail_workflow`; `continue_partial` or `continue`: the step is partial; `skip`: it is "
     "skipped.",
     "fail_workflow"},
    {"timeout_seconds", SECONDS(CONTROL, timeout_ms, 1), "The longest time of one attempt.",
     "the node's, else 300"},
    {"beacon_timeout_ms", MS(CONTROL, beacon_timeout_ms, 1), "The longest silence of one attempt.",
     "the node's, else the time-out"},
    {"retry", TABLE(RETRY), "`max_attempts`, `backoff_seconds`, `backoff_multiplier`."},
    {"max_attempts", U32(CONTROL, max_attempts, 1, GL_ATTEMPTS_MAX),
     "Attempts altogether, if `retry` does not say it.", "the node's, else 1"},
    {"retry_backoff_ms", MS(CONTROL, backoff_ms, 0), "The wait before the second attempt.",
     "the node's, else `retry.backoff_seconds`, else 1000"},
    {"trigger_rule", TYPE("word or table"), "See `trigger_rule` of a step.", "all_success"},
};

static const struct gl_manifest_field retry_fields[] = {
    {"max_attempts", U32(gl_retry, attempts, 1, GL_ATTEMPTS_MAX), "Attempts altogether.", "1"},
    {"backoff_seconds", SECONDS(gl_retry, backoff_ms, 0),
     "The wait before the second attempt. A `retry_backoff_ms` of the node comes before it.", "1"},
    {"backoff_multiplier", BY_HAND("number", gl_manifest_multiplier), "How much it grows.", "2"},
};

static const struct gl_manifest_field step_edge_fields[] = {
    {"id", TEXT("text", gl_manifest_edge, id), "Name of the edge.", "from->to", .alias = "edge_id"},
    {"from", TYPE("step"), "The earlier step.", "required"},
    {"to", TYPE("step"), "The later step.", "required"},
    {"accepts", BY_HAND("list", gl_manifest_accepts),
     "Which ends of the earlier step `all_success` accepts: `done`, `partial`, `skipped`, "
     "`failed`.",
     "`[\"done\"]`"},
    {"required", TYPE("true or false"), "Not read."},
};

static const struct gl_manifest_field dynamic_fields[] = {
    {"enabled", BOOL(gl_dynamic, enabled), "Whether the flow may change.", "false"},
    {"apply_at", TYPE("word"), "`between_steps`.", "required"},
    {"templates", TYPE("list or map"), "Steps that can be added.", "required"},
    {"regions", TYPE("list or map"), "Where.", "required"},
    {"limits", TABLE(LIMITS), "How much."},
};

static const struct gl_manifest_field template_fields[] = {
    {"id", TYPE("id"), "Name of the template; not that of a step.", "required",
     .alias = "template_id"},
    {"agent_id", TYPE("agent"), "The agent of its steps.", "`run`, `id`"},
    {"label", TEXT("text", gl_step_spec, label), "For people."},
    {"control", TABLE(CONTROL), "As of a step."},
    {"agent_ids", TYPE("list of agents")},
};

static const struct gl_manifest_field region_fields[] = {
    {"id", TYPE("id"), "Name of the region.", "required", .alias = "region_id"},
    {"strategy", CHOICE(gl_region, is_fanout, strategies), "`replace_path` or `checkpoint_fanout`.",
     "replace_path"},
    {"controller", STEP(gl_region, controller), "The step whose agent changes it.", "required",
     .missing = "the id of a step", .alias = "controller_step"},
    {"exit", STEP(gl_region, exit), "The step behind it; required for `replace_path`.", "-",
     .alias = "exit_step"},
    {"templates", TEXTS(gl_region, templates), "What can be added.", "all"},
    {"mutable_edges", TEXTS(gl_region, mutable_edges),
     "Edges from controller to exit that can go; for `replace_path` only, and there required. An "
     "edge belongs to one region.",
     "-"},
};

static const struct gl_manifest_field limits_fields[] = {
    {"max_patches", U32(gl_dynamic, patches_max, 1, PATCHES_CAP),
     "Changes of one job; at most 100000.", "64, with `checkpoint_fanout` 10000"},
    {"max_active_steps", U32(gl_dynamic, active_max, 1, ACTIVE_CAP),
     "Added steps that have not ended; at most 1000.", "128"},
    {"max_operations_per_patch", U32(gl_dynamic, operations_max, 1, OPERATIONS_CAP),
     "Operations of one change; at most 256.", "64"},
};

static const struct gl_manifest_field policies_fields[] = {
    {"job_type", BY_HAND("word", gl_manifest_job_type),
     "`batch` or `service`; `system` and `sysbatch` are refused.", "batch"},
    {"recovery_mode", WORD(gl_policies, recovery_mode, gl_recovery_words),
     "`auto`, `local_restart` and `cluster_recover` do the same (but for `restart.mode`); "
     "`manual_recover`: what was lost or failed waits for a person. See below.",
     "auto"},
    {"restart", TABLE(RESTART), "How often a failed agent is started again.", "by type and mode"},
    {"reschedule", TABLE(RESTART),
     "Checked, no effect: a job moves as a whole when its node is lost. A note says so. See "
     "below."},
    {"strategy", CHECKED(placements),
     "`binpack` or `spread`. Checked, no effect: nodes with free slots take jobs. A note says so.",
     .note = "has no effect: nodes with free slots take jobs"},
    {"max_agent_restart_attempts", TYPE("number"),
     "Old name of `restart.attempts`, which comes before it."},
    {"backpressure", TYPE("table"), "Not read."},
};

static const struct gl_manifest_field restart_fields[] = {
    {"attempts", U32(gl_restart, attempts, 0, GL_ATTEMPTS_MAX),
     "Restarts within the window. None with `manual_recover`.", "3"},
    {"interval_ms", MS(gl_restart, interval_ms, 0), "The window.",
     "600000 of a service, 86400000 of a batch"},
    {"delay_ms", MS(gl_restart, delay_ms, 0), "The wait before the first.", "1000"},
    {"delay_function", WORD(gl_restart, delay_function, gl_delay_words),
     "`constant`, `exponential` or `fibonacci`.", "exponential"},
    {"max_delay_ms", MS(gl_restart, max_delay_ms, 0), "The longest wait.", "30000"},
    {"mode", CHOICE(gl_restart, waits, restart_modes),
     "What happens when they are used up: `fail`, or `delay` until the window has moved on.",
     "fail; delay for a service without `cluster_recover`"},
};

#define X(name, rows, more) \
    [GL_TABLE_##name] = {rows##_fields, GL_COUNT(rows##_fields), GL_TABLE_##more},
const struct gl_manifest_table gl_manifest_tables[GL_TABLE_COUNT] = {GL_MANIFEST_TABLES(X)};
#undef X
