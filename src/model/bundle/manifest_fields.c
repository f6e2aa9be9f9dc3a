/* The fields of a manifest, table by table: how each is read, and its row in
 * docs/bundle-manifest.md. A test compares the two. Fields without a doc are not listed. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum { PATCHES_CAP = 100000, ACTIVE_CAP = 1000, OPERATIONS_CAP = 256 };

static_assert(GL_TYPE_BATCH == 0, "the default job type is batch");

static const char unread[] = "is not read by this release";
static const char an_agent[] = "the id of an agent";

static const char *const missed_actions[] = {"fail_attempt", NULL};
static const char *const placements[] = {"binpack", "spread", NULL};
static const char *const strategies[] = {"replace_path", "checkpoint_fanout", NULL};
static const char *const restart_modes[] = {"fail", "delay", NULL};
static const char *const failure_policies[] = {"fail_workflow", "continue_partial", "continue",
                                               "skip", NULL};

/* Where the value is stored. Does not compile unless the member has that type. */
#define AT(of, member, ctype) \
    .at = offsetof(struct of, member) + 0 * sizeof((ctype *)NULL == &((struct of *)NULL)->member)

#define CONFIG gl_manifest_config
#define CONTROL gl_manifest_control_fields

/* How a value is read. `type` comes last, so that the doc and the default follow it in a row.
 * TYPE and TABLE are read by other code, if at all; the fields of a TABLE are in its own rows. */
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
/* Values without effect: checked, counted, refused, or only tested for presence (`missing`,
 * `note`). */
#define CHECKED(list) .how = GL_READ_CHECKED, .words = list, .type = "word"
#define COUNTED(member, feature) \
    .how = GL_READ_COUNTED, AT(gl_manifest, member, uint32_t), .what = feature, .type = "number"
#define ZERO(feature) .how = GL_READ_ZERO, .what = feature, .type = "number"
#define REFUSED(text, feature) .how = GL_READ_REFUSED, .what = feature, .type = text
#define SEEN(text) .how = GL_READ_SEEN, .type = text

static const struct gl_manifest_field manifest_fields[] = {
    {"apiVersion", TYPE("text"), "`mn.workflow/v2` or `mn.workflow/v1`: the catalog form."},
    {"kind", TYPE("text"), "`Workflow`. Not read."},
    {"manifest_version", SEEN("text"), "Version of the format: \"1.0\".", "required",
     .missing = "write \"1.0\""},
    {"id", TYPE("text"), "Name of the bundle; in the catalog form also the default of `job_name`."},
    {"name", TYPE("text"), "Informational."},
    {"description", TYPE("text"), "Informational."},
    {"job_name", TYPE("text"), "Name of its jobs; required in the other forms.", "`id`"},
    {"graph_id", TYPE("text"),
     "Name of the graph; in the catalog form `workflow.workflow_id` is required instead.",
     "required"},
    {"workflow", TYPE("table"), "The ledger in the catalog form: steps, edges, dynamic changes.",
     "-"},
    {"agents", TYPE("table"), "The message graph in the catalog form: nodes, edges, entrypoints.",
     "-"},
    {"flow", TYPE("table"), "The ledger and the message graph in the submitted form.", "-"},
    {"nodes", TYPE("list"), "The agents in the older form, which has no steps.", "-"},
    {"edges", TYPE("list"), "The edges between agents in the older form."},
    {"entrypoints", TYPE("list of agents"), "The agents that get the first messages.",
     "agents with the role `root`"},
    {"initial_inputs", TYPE("map or list"),
     "The first messages: by agent, or a list that each entrypoint gets.", "`{}` for each"},
    {"runtime", TYPE("table"), "Bindings and first messages in the catalog form."},
    {"policies", TYPE("table"), "Recovery and restarts."},
    {"daemon", MARK(gl_policies, job_type, GL_TYPE_SERVICE, GL_TYPE_BATCH),
     "In the older form: true means `service`.", "false"},
    {"type", BY_HAND("word", gl_manifest_job_type), "`batch` or `service`.", "batch"},
    {"skill_dependencies", TYPE("list"), "Python packages that the bundle ships: see below."},
    {"services", REFUSED("list", "services in a registry"),
     "Refused: this release has no services."},
    {"requires_services", REFUSED("list", "services of a registry"),
     "Refused: this release has no services."},
    {"schedule", REFUSED("table", "a schedule"), "Refused: this release has no schedules."},
    {"triggers", REFUSED("list", "triggers"), "Refused: this release has no triggers."},
    {"deployment", REFUSED("table", "a deployment"), "Refused: this release has no deployments."},
    {"requiredContextEngine", REFUSED("anything", "a context engine"),
     "Refused: this release has no context engine."},
    {"agent_dependencies", SEEN("list"), "Not read; a note reports it.", .note = unread},
    {"reload", SEEN("table"),
     "Not read, because the files of a job never change; a note reports it.",
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
    {"workflow_id", TYPE("text"), "Name of the graph, in the catalog form.", "required"},
    {"mode", TYPE("word"),
     "`static_dag` or `dynamic_dag`; `dynamic_dag` needs `dynamic.enabled`. `dynamic.enabled` "
     "decides: if it is true and `mode` is `static_dag`, a note reports it.",
     "static_dag"},
    {"entrypoint", TYPE("step"), "The first step."},
    {"source", TYPE("step"), "The same step as `entrypoint`; all steps must be reachable from it.",
     "`entrypoint`"},
    {"sink", TYPE("step"), "The last step."},
    {"steps", TYPE("list"),
     "The steps of the ledger. Without steps there is no ledger, only messages."},
    {"edges", TYPE("list"), "In the catalog form: which step waits for which."},
    {"graph", TABLE(GRAPH),
     "In the submitted form: `edges`, as above, and `join_default`, the default trigger rule."},
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
     "The trigger rule of steps that have a step before them and no rule of their own.",
     "all_success"},
};

static const struct gl_manifest_field agents_fields[] = {
    {"nodes", TYPE("list"), "The agents.", "required"},
    {"edges", TYPE("list"), "The routes of messages between them."},
    {"entrypoints", TYPE("list of agents"), "The agents that get the first messages.",
     "agents with the role `root`"},
    {"schema", TYPE("text"), "Not read."},
};

static const struct gl_manifest_field runtime_fields[] = {
    {"bindings", TYPE("map"),
     "The workers that run each step; without nodes, the agents themselves."},
    {"initial_inputs", TYPE("map or list"),
     "The first messages: by agent, or a list that each entrypoint gets.", "`{}` for each"},
    {"store", TYPE("table"), "Not read."},
    {"workflow_control", TYPE("table"), "Not read: nodes and steps have these settings."},
    {"state", TYPE("table"), "Not read."},
    {"models", TYPE("table"), "Not read."},
};

static const struct gl_manifest_field binding_fields[] = {
    {"workers", TYPE("list"),
     "Its workers: `node_id`, `node` or `id`; `role`; without nodes also `uses`, `kind`, `with` "
     "or `config`."},
    {"routes", TYPE("list"),
     "Without nodes: edges between workers, in the form of edges between agents (also "
     "`worker_edges`).",
     .alias = "worker_edges"},
    {"start_workers", TYPE("list"),
     "Without nodes: the entrypoints, in the binding of `flow.entrypoint` (also `entrypoints`).",
     .alias = "entrypoints"},
    {"seed_inputs", TYPE("map or list"),
     "First messages of its workers, or by agent; used for agents that have none in "
     "`initial_inputs` (also `initial_inputs`).",
     .alias = "initial_inputs"},
    {"type", TYPE("text"), "Not read."},
    {"strategy", TYPE("text"), "Not read."},
};

static const struct gl_manifest_field node_fields[] = {
    {"node_id", TYPE("id"), "Name of the agent (also `id`).", "required"},
    {"agent_type", TYPE("word"),
     "`executor`, `aggregator`, `router`, `sensor` or `module`; `sandbox_worker`, `collector` "
     "and `relay` are aliases of the first three (also `agentType`).",
     "required"},
    {"type", TYPE("word"),
     "Template: `generic`, `stream`, `map`, `reduce` (or `accumulator`), `batch` (also `kind`). "
     "An aggregator is generic or reduce, a router generic or map, a sensor generic.",
     "generic"},
    {"role", TEXT("text", gl_agent_spec, role),
     "Informational, but if the manifest names no entrypoints, agents with the role `root` or "
     "`root_coordinator` are."},
    {"alias", TEXT("text", gl_agent_spec, alias), "Informational (also `display_name`).",
     .alias = "display_name"},
    {"config", TYPE("table"), "The agent's settings: see below."},
    {"resources", TABLE(RESOURCES), "The resources it needs."},
    {"policies", TABLE(POLICIES), "`restart`, for this agent only."},
    {"constraints", REFUSED("list", "placement by constraints"),
     "Refused: this release has no placement."},
    {"services", REFUSED("list", "a service in the registry"),
     "Refused: this release has no services."},
    {"requires_services", REFUSED("list", "services of the registry"),
     "Refused: this release has no services."},
    {"retry_policy", SEEN("table"), "Not read; a note reports it.", .note = unread},
    {"checkpoint_policy", SEEN("table"), "Not read; a note reports it.", .note = unread},
    {"spawn_policy", SEEN("table"), "Not read; a note reports it.", .note = unread},
    {"tool_bindings", SEEN("list"), "Not read; a note reports it.", .note = unread},
    {"id", TYPE("id"), "See `node_id`.", "-"},
    {"kind", TYPE("word"), "See `type`.", "generic"},
    {"agentType", TYPE("word"), "See `agent_type`.", "-"},
    {"display_name", TYPE("text"), "See `alias`."},
    {"uses", TYPE("text"),
     "Refused without `agent_type`, because templates of the SDK are not resolved."},
    {"with", TYPE("table"), "For a worker of a binding: see `config`."},
    {"devices", REFUSED("list", "devices")},
    {"ports", REFUSED("list", "ports")},
    {"volumes", REFUSED("list", "volumes")},
};

static const struct gl_manifest_field resources_fields[] = {
    {"cpu_cores", COUNTED(idle_resources[0], "processor time"),
     "Checked, but has no effect; a note reports it."},
    {"memory_mb", COUNTED(idle_resources[1], "memory"),
     "Checked, but has no effect; a note reports it."},
    {"disk_mb", COUNTED(idle_resources[2], "disk space"),
     "Checked, but has no effect; a note reports it."},
    {"gpu_count", ZERO("devices"), "Refused above 0: this release does not allocate devices.", "0"},
    {"devices", REFUSED("list", "devices"), "Refused: this release does not allocate devices."},
    {"ports", REFUSED("list", "ports"), "Refused: this release does not allocate ports."},
    {"volumes", REFUSED("list", "volumes"), "Refused: this release does not allocate volumes."},
    {"runtime_driver", BY_HAND("word", gl_manifest_runtime_driver),
     "`host_local`. Others are refused.", "host_local"},
};

static const struct gl_manifest_field executor_fields[] = {
    {"runner_module", TEXT("text", CONFIG, runner),
     "The last part of the name selects the runner: `HostLocal`. `DockerWorker` and `OpenShell` "
     "are refused.",
     "a process, with a note"},
    {"command", BY_HAND("list or text", gl_manifest_command),
     "A program and its arguments; text is run by `bash -lc`. `{input_file}`, `{context_file}`, "
     "`{message_file}`, `{body_file}`, `{workdir}`, `{job_id}` and `{agent_id}` are replaced.",
     "prints a notice"},
    {"upload_path", TYPE("path"),
     "A file or folder of `payloads/` that is copied into the workspace."},
    {"upload_as", TYPE("path"), "Its path in the workspace.", "the last part of `upload_path`"},
    {"upload_paths", TYPE("list"),
     "Several uploads: `{source, target}`. Takes precedence over `upload_path`."},
    {"uploads", TYPE("list"), "The same as `upload_paths`, which takes precedence."},
    {"workdir", TEXT("path", CONFIG, workdir),
     "The working folder. `sandbox_upload_path` means the workspace, a path below it the same "
     "path in the workspace; any other absolute path is taken literally.",
     "the workspace"},
    {"sandbox_upload_path", TEXT("path", CONFIG, workspace),
     "The path that means the workspace in `workdir`.", "/sandbox/job"},
    {"environment", BY_HAND("map", gl_manifest_environment),
     "Environment variables of the worker; values become text."},
    {"pool", TEXT("id", CONFIG, pool),
     "The pool its slots come from: the node's pool `executor.<pool>`.", "default"},
    {"pool_slots", U32(CONFIG, slots, 1, GL_SLOTS_MAX), "How many slots it takes.", "1"},
    {"safe_to_retry", MARK(CONFIG, marks, GL_MARKED_SAFE, GL_MARKED_UNSAFE),
     "What happens when its outcome is unknown. true: it may run again; false: a person decides."},
    {"idempotent", MARK(CONFIG, marks, GL_MARKED_SAFE, GL_MARKED_UNSAFE),
     "The same as `safe_to_retry`."},
    {"idempotency_key", TEXT("text", CONFIG, idempotency_key),
     "If its outcome is unknown, it may run again."},
    {"recovery_idempotency_key", TEXT("text", CONFIG, idempotency_key),
     "If its outcome is unknown, it may run again."},
    {"manual_review_on_recovery", MARK(CONFIG, marks, GL_MARKED_UNSAFE, 0),
     "true: if its outcome is unknown, a person decides. Such a mark wins over marks that allow "
     "another run; a person also decides if there are no marks.",
     "false"},
    {"requires_approval", MARK(CONFIG, marks, GL_MARKED_UNSAFE, 0),
     "true: if its outcome is unknown, a person decides.", "false"},
    {"unsafe", MARK(CONFIG, marks, GL_MARKED_UNSAFE, 0),
     "true: if its outcome is unknown, a person decides.", "false"},
    {"side_effects", BY_HAND("word, list or table", gl_manifest_side_effects),
     "If its outcome is unknown, a person decides if these are external writes (also "
     "`side_effect`)."},
    {"side_effect", BY_HAND("word, list or table", gl_manifest_side_effects),
     "See `side_effects`."},
};

static const struct gl_manifest_field config_fields[] = {
    {"pass_env", TEXTS(CONFIG, agent.pass_env),
     "Variables copied from the node; they override `environment`."},
    {"output_message_type", BY_HAND("text or null", gl_manifest_output),
     "Type of the message that is sent after one was handled successfully; null: none is sent. "
     "The default of a sensor is `sensor_ready`; an aggregator sends none by default.",
     "executor_result"},
    {"emit_type", TEXT("text", CONFIG, agent.emit_type),
     "For a router: the type of the messages it passes on.", "the incoming type"},
    {"failure_message_type", TEXT("text", CONFIG, agent.failure_type),
     "Type of a message that is sent when the agent would fail for good, instead of failing."},
    {"workflow_complete_step", UNLESS(CONFIG, agent.leaves_step),
     "false: handling a message successfully does not complete the step.", "true"},
    {"terminal_sink", BOOL(CONFIG, agent.terminal_sink),
     "This agent is the end of the graph and has no outgoing edges.", "false"},
    {"complete_run", BOOL(CONFIG, agent.complete_run),
     "With `terminal_sink`: it completes the job. Not allowed for the agent of a step.", "false"},
    {"complete_on_message", BOOL(CONFIG, agent.complete_on_message),
     "For an aggregator: complete with the first message. Needs `output_message_type`, or "
     "`terminal_sink` and `complete_run`.",
     "false"},
    {"complete_after", U32(CONFIG, agent.complete_after, 1, GL_JOB_MESSAGES_MAX),
     "For an aggregator: complete after this many messages. Needs the same as "
     "`complete_on_message`."},
    {"timeout_seconds", SECONDS(CONFIG, timeout_ms, 1), "How long the process may run."},
    {"max_attempts", U32(CONFIG, agent.tries, 1, GL_ATTEMPTS_MAX),
     "How often a message is tried in a row if failures look transient, the first try included.",
     "1"},
    {"retry_backoff_ms", MS(CONFIG, agent.try_backoff_ms, 0),
     "The wait before the second of these tries; it doubles with each further one.", "500"},
    {"lease_queue_timeout_ms", MS(CONFIG, agent.lease_timeout_ms, 1), "The longest wait for slots.",
     "30000"},
    {"lease_max_queue_length", U32(CONFIG, agent.lease_queue_max, 1, GL_WAITING_MAX),
     "The longest queue for slots.", "1000"},
    {"beacon_enabled", BOOL(CONFIG, agent.beacons), "The runner reports that the process is alive.",
     "false"},
    {"beacon_interval_ms", MS(CONFIG, agent.beacon_ms, 1), "How often it reports.", "15000"},
    {"beacon_timeout_ms", MS(CONFIG, agent.beacon_timeout_ms, 1),
     "The longest time without a beacon.", "45000"},
    {"agent_beacon_required", BOOL(CONFIG, agent.beacon_required),
     "The worker itself must send beacons, too.", "false"},
    {"beacon_missed_action", CHECKED(missed_actions),
     "What happens when beacons stop: `fail_attempt`.", "fail_attempt"},
    {"backpressure", TABLE(BACKPRESSURE), "The limits of its inbox."},
    {"python_environment", BY_HAND("table", gl_manifest_python),
     "A virtual environment for the worker: `packages`, `requirements`, `path`."},
    {"max_output_bytes", U32(CONFIG, agent.stdout_max, 1, GL_STDOUT_BYTES_MAX),
     "How much of stdout is kept; at most 8388608.", "1048576"},
    {"startup_delay_ms", MS(CONFIG, agent.startup_delay_ms, 0),
     "The wait before its first message.", "0"},
    {"module", BY_HAND("text", gl_manifest_module),
     "For a module: its name. The module gets all of `config`.", "-"},
    {"module_source", TYPE("path"), "Not read: the native module is found by name."},
};

static const struct gl_manifest_field backpressure_fields[] = {
    {"max_queue_depth", U32(gl_agent_spec, depth_max, 1, GL_INBOX_MAX),
     "Its inbox is full at this many messages.", "100"},
    {"high_watermark", U32(gl_agent_spec, high_mark, 1, GL_INBOX_MAX),
     "Backpressure begins at this many messages; by default at most `max_queue_depth` - 1.", "75"},
    {"low_watermark", U32(gl_agent_spec, low_mark, 0, GL_INBOX_MAX),
     "Backpressure ends at this many messages.", "25"},
    {"retry_after_ms", MS(gl_agent_spec, retry_after_ms, 1),
     "When a refused message may be sent again.", "250"},
    {"drop_policy", TYPE("text"), "Not read: nothing is dropped."},
    {"max_concurrency", TYPE("number"), "Not read: an agent handles one message at a time."},
};

static const struct gl_manifest_field edge_fields[] = {
    {"edge_id", TEXT("text", gl_route, id), "Name of the edge (also `id`).", "from->to",
     .alias = "id"},
    {"from_node", AGENT(gl_route, from_node), "The sender (also `from`).", "required",
     .missing = an_agent, .alias = "from"},
    {"to_node", AGENT(gl_route, to_node), "The recipient (also `to`).", "required",
     .missing = an_agent, .alias = "to"},
    {"message_type", TEXT("text", gl_route, type),
     "Type of the messages that take this edge; `*` for all (also `event`).", "required",
     .alias = "event", .missing = "the type of messages on this edge, `*` for all"},
    {"routing_mode", WORD(gl_route, mode, gl_route_mode_words),
     "`broadcast`, `first_match` or `all_match`.", "broadcast"},
    {"conditions", BY_HAND("table", gl_manifest_conditions), "Conditions for taking this edge.",
     "always"},
};

static const struct gl_manifest_field step_fields[] = {
    {"id", TYPE("id"), "Name of the step; may contain `:`.", "required"},
    {"run", TYPE("text"), "Name of its binding; the agent of that name runs the step.", "`id`"},
    {"agent_id", TYPE("agent"),
     "The agent that runs the step: the first of `agent_id`, `run` and `id` that names an agent."},
    {"agent_ids", TYPE("list of agents"),
     "Further agents that run the step, or all of them if none of `agent_id`, `run` and `id` "
     "names an agent. Without it: the workers of its binding."},
    {"trigger_rule", TYPE("word or table"),
     "How the steps before it must have ended: a word, or `rule` (`type`, `mode`) and `quorum` "
     "(`count`, `minimum`). Also in `control` and in `join`.",
     "all_success"},
    {"join", TYPE("word or table"),
     "Another place for the trigger rule, as `trigger_rule`, `rule` or `mode`."},
    {"control", TABLE(CONTROL), "Timeouts, attempts, failure policy."},
    {"label", TEXT("text", gl_step_spec, label), "Informational."},
    {"goal", TYPE("text"), "Not read."},
    {"kind", TYPE("text"), "Not read."},
    {"action", TYPE("text"), "Not read."},
    {"emits", TYPE("anything"), "Not read."},
};

static const struct gl_manifest_field control_fields[] = {
    {"required", UNLESS(CONTROL, is_optional),
     "false: its failure does not fail the job; the step ends as partial.", "true"},
    {"failure_policy", WORD(CONTROL, failure_policy, failure_policies),
     "`fail_workflow`: the job fails; `continue_partial` or `continue`: the step ends as "
     "partial; `skip`: it ends as skipped.",
     "fail_workflow"},
    {"timeout_seconds", SECONDS(CONTROL, timeout_ms, 1), "How long one attempt may take.",
     "the agent's, else 300"},
    {"beacon_timeout_ms", MS(CONTROL, beacon_timeout_ms, 1),
     "The longest time of one attempt without a beacon.", "the agent's, else the timeout"},
    {"retry", TABLE(RETRY), "`max_attempts`, `backoff_seconds`, `backoff_multiplier`."},
    {"max_attempts", U32(CONTROL, max_attempts, 1, GL_ATTEMPTS_MAX),
     "Attempts in all, if `retry` does not set them.", "the agent's, else 1"},
    {"retry_backoff_ms", MS(CONTROL, backoff_ms, 0), "The wait before the second attempt.",
     "the agent's, else `retry.backoff_seconds`, else 1000"},
    {"trigger_rule", TYPE("word or table"), "See `trigger_rule` of a step.", "all_success"},
};

static const struct gl_manifest_field retry_fields[] = {
    {"max_attempts", U32(gl_retry, attempts, 1, GL_ATTEMPTS_MAX), "Attempts in all.", "1"},
    {"backoff_seconds", SECONDS(gl_retry, backoff_ms, 0),
     "The wait before the second attempt. A `retry_backoff_ms` of the agent takes precedence.",
     "1"},
    {"backoff_multiplier", BY_HAND("number", gl_manifest_multiplier),
     "The wait grows by this factor with each further attempt.", "2"},
};

static const struct gl_manifest_field step_edge_fields[] = {
    {"id", TEXT("text", gl_manifest_edge, id), "Name of the edge.", "from->to", .alias = "edge_id"},
    {"from", TYPE("step"), "The earlier step.", "required"},
    {"to", TYPE("step"), "The later step.", "required"},
    {"accepts", BY_HAND("list", gl_manifest_accepts),
     "Which outcomes of the earlier step `all_success` accepts: `done`, `partial`, `skipped`, "
     "`failed`.",
     "`[\"done\"]`"},
    {"required", TYPE("true or false"), "Not read."},
};

static const struct gl_manifest_field dynamic_fields[] = {
    {"enabled", BOOL(gl_dynamic, enabled), "Whether the steps may change while the job runs.",
     "false"},
    {"apply_at", TYPE("word"), "When changes take effect: `between_steps`.", "required"},
    {"templates", TYPE("list or map"), "The steps that can be added.", "required"},
    {"regions", TYPE("list or map"), "The parts of the ledger that may change.", "required"},
    {"limits", TABLE(LIMITS), "Limits on changes."},
};

static const struct gl_manifest_field template_fields[] = {
    {"id", TYPE("id"), "Name of the template; must differ from the ids of all steps.", "required",
     .alias = "template_id"},
    {"agent_id", TYPE("agent"), "The agent of its steps.", "`run`, `id`"},
    {"label", TEXT("text", gl_step_spec, label), "Informational."},
    {"control", TABLE(CONTROL), "As for a step."},
    {"agent_ids", TYPE("list of agents")},
};

static const struct gl_manifest_field region_fields[] = {
    {"id", TYPE("id"), "Name of the region.", "required", .alias = "region_id"},
    {"strategy", CHOICE(gl_region, is_fanout, strategies), "`replace_path` or `checkpoint_fanout`.",
     "replace_path"},
    {"controller", STEP(gl_region, controller), "The step whose agent changes it.", "required",
     .missing = "the id of a step", .alias = "controller_step"},
    {"exit", STEP(gl_region, exit), "The step after the region; required for `replace_path`.", "-",
     .alias = "exit_step"},
    {"templates", TEXTS(gl_region, templates), "The templates that can be used.", "all"},
    {"mutable_edges", TEXTS(gl_region, mutable_edges),
     "Edges from controller to exit that may be removed. Required for `replace_path`, not "
     "allowed otherwise. An edge belongs to one region.",
     "-"},
};

static const struct gl_manifest_field limits_fields[] = {
    {"max_patches", U32(gl_dynamic, patches_max, 1, PATCHES_CAP),
     "Patches per job; at most 100000.", "64; 10000 with `checkpoint_fanout`"},
    {"max_active_steps", U32(gl_dynamic, active_max, 1, ACTIVE_CAP),
     "Added steps that have not ended; at most 1000.", "128"},
    {"max_operations_per_patch", U32(gl_dynamic, operations_max, 1, OPERATIONS_CAP),
     "Operations per patch; at most 256.", "64"},
};

static const struct gl_manifest_field policies_fields[] = {
    {"job_type", BY_HAND("word", gl_manifest_job_type),
     "`batch` or `service`; `system` and `sysbatch` are refused.", "batch"},
    {"recovery_mode", WORD(gl_policies, recovery_mode, gl_recovery_words),
     "`auto`, `local_restart` and `cluster_recover` do the same (except for the default of "
     "`restart.mode`); with `manual_recover` everything that was lost or failed waits for a "
     "person. See below.",
     "auto"},
    {"restart", TABLE(RESTART), "How often a failed agent is started again.",
     "depends on type and mode"},
    {"reschedule", TABLE(RESTART),
     "Checked, but has no effect, because a job moves as a whole when its node is lost; a note "
     "reports it. See below."},
    {"strategy", CHECKED(placements),
     "`binpack` or `spread`. Checked, but has no effect, because nodes with free slots take "
     "jobs; a note reports it.",
     .note = "has no effect: nodes with free slots take jobs"},
    {"max_agent_restart_attempts", TYPE("number"),
     "Old name of `restart.attempts`, which takes precedence."},
    {"backpressure", TYPE("table"), "Not read."},
};

static const struct gl_manifest_field restart_fields[] = {
    {"attempts", U32(gl_restart, attempts, 0, GL_ATTEMPTS_MAX),
     "Restarts within the window; 0 with `manual_recover`.", "3"},
    {"interval_ms", MS(gl_restart, interval_ms, 0), "The length of the window.",
     "600000 for a service, 86400000 for a batch"},
    {"delay_ms", MS(gl_restart, delay_ms, 0), "The wait before the first restart.", "1000"},
    {"delay_function", WORD(gl_restart, delay_function, gl_delay_words),
     "`constant`, `exponential` or `fibonacci`.", "exponential"},
    {"max_delay_ms", MS(gl_restart, max_delay_ms, 0), "The longest wait.", "30000"},
    {"mode", CHOICE(gl_restart, waits, restart_modes),
     "What happens when all restarts are used up: `fail`, or `delay` until the window has moved "
     "on.",
     "fail; delay for a service, except with `cluster_recover`"},
};

#define X(name, rows, more) \
    [GL_TABLE_##name] = {rows##_fields, GL_COUNT(rows##_fields), GL_TABLE_##more},
const struct gl_manifest_table gl_manifest_tables[GL_TABLE_COUNT] = {GL_MANIFEST_TABLES(X)};
#undef X
