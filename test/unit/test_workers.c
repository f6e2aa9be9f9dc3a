/* What a bundle's worker is given: command, environment, files. */
#include "support/cmocka_all.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "node/workers.h"
#include "support/golden.h"

#define WORK GL_EXEC_WORK

struct bench {
    struct gl_arena a;
    struct gl_worker_place place;
    struct gl_worker_turn turn;
    struct gl_message_ledger ledger;
    struct gl_flow flow;
    struct gl_bundle_spec bundle;
    struct gl_agent_spec agent;
    struct gl_step_spec unit;
    gl_str node_env[16];
    gl_str argv[8], env[8], passed[4];
    struct gl_payload payloads[8];
    struct gl_upload uploads[4];
    struct gl_exec_start x;
    struct gl_why why;
};

static const char message[] =
    "{\"envelope\":{\"spec_version\":\"mn-msg/1\",\"message_id\":\"m1\",\"job_id\":\"J\","
    "\"from\":\"runtime\",\"to\":\"alpha\",\"type\":\"init\",\"class\":\"command\","
    "\"timestamp\":\"2026-11-15T10:00:00.000Z\",\"correlation_id\":\"c1\",\"attempt\":1,"
    "\"priority\":100,\"content_type\":\"application/json\",\"content_encoding\":\"identity\"},"
    "\"headers\":{\"mn.workflow.step_id\":\"from_header\"},"
    "\"body\":{\"n\": 1},\"artifacts\":[],\"stream\":null}";

static int set_up(void **state)
{
    static struct bench b;

    memset(&b, 0, sizeof(b));
    b.node_env[0] = GL_S("PATH=/bin");
    b.node_env[1] = GL_S("HOME=/home/bob");
    b.place = (struct gl_worker_place){.runs_root = GL_S("/runs"),
                                       .node_name = GL_S("web.abc"),
                                       .pyenv_folder = GL_S("/data/python"),
                                       .glia_path = GL_S("/usr/bin/glia"),
                                       .env = b.node_env,
                                       .env_n = 2};
    b.argv[0] = GL_S("python3");
    b.unit = (struct gl_step_spec){.id = GL_S("@alpha"),
                                   .driver = GL_S("worker"),
                                   .argv = {.items = b.argv, .n = 1},
                                   .env = {.items = b.env, .n = 0}};
    b.agent = (struct gl_agent_spec){.id = GL_S("alpha"), .template_type = GL_S("map")};
    b.agent.uploads.items = b.uploads;
    b.agent.pass_env.items = b.passed;
    b.bundle.agents = (struct gl_items){.items = &b.agent, .n = 1};
    b.bundle.payloads.items = b.payloads;
    b.flow = (struct gl_flow){.bundle = &b.bundle, .steps = {.items = &b.unit, .n = 1}};
    b.ledger = (struct gl_message_ledger){.run_id = GL_S("R"),
                                          .step_id = GL_S("collect[3]"),
                                          .template_id = GL_S("T"),
                                          .region_id = GL_S("G"),
                                          .attempt_id = GL_S("collect[3]:attempt:2"),
                                          .idempotency_key = GL_S("R:collect[3]:2:m1"),
                                          .has_revision = true,
                                          .graph_revision = 4,
                                          .attempt = 2,
                                          .deadline_at = 1000,
                                          .heartbeat_deadline_at = 2000};
    b.turn = (struct gl_worker_turn){.flow = &b.flow,
                                     .job_id = GL_S("J"),
                                     .run_id = GL_S("R"),
                                     .message = GL_S(message),
                                     .ledger = &b.ledger,
                                     .attempt_number = 7,
                                     .attempt_of_message = 3,
                                     .attempt_id = GL_S("@alpha:attempt:7"),
                                     .now = 5000,
                                     .deadline_at = 9000};
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    gl_arena_done(&b->a);
    return 0;
}

static void compose(struct bench *b)
{
    memset(&b->x, 0, sizeof(b->x));
    if (gl_worker_compose(&b->place, &b->turn, &b->a, &b->x, &b->why) != 0) {
        fail_msg("%s", b->why.text);
    }
}

static void assert_refused(struct bench *b, int code, const char *what)
{
    memset(&b->x, 0, sizeof(b->x));
    assert_int_equal(gl_worker_compose(&b->place, &b->turn, &b->a, &b->x, &b->why), code);
    golden_say(what, gl_str_of(b->why.text));
}

/* The value of a variable, which stands there once; NULL: it is not there. */
static const char *value_of(struct bench *b, const char *name)
{
    const char *found = NULL;

    for (size_t i = 0; i < b->x.env_n; i++) {
        gl_str value;

        if (gl_str_is(gl_str_cut(b->x.env[i], '=', &value), name)) {
            assert_null(found);
            found = gl_str_c(&b->a, value);
        }
    }
    return found;
}

static void assert_variable(struct bench *b, const char *name, const char *value)
{
    const char *found = value_of(b, name);

    if (found == NULL || strcmp(found, value) != 0) {
        fail_msg("%s is '%s', not '%s'", name, found == NULL ? "(absent)" : found, value);
    }
}

static const struct gl_exec_file *file_of(struct bench *b, const char *name)
{
    const struct gl_exec_file *found = NULL;

    for (size_t i = 0; i < b->x.files_n; i++) {
        if (gl_str_is(b->x.files[i].name, name)) {
            assert_null(found);
            found = &b->x.files[i];
        }
    }
    return found;
}

static void assert_text(struct bench *b, const char *name, const char *text)
{
    const struct gl_exec_file *f = file_of(b, name);

    if (f == NULL || !gl_str_is(f->text, text)) {
        fail_msg("%s is %.*s", name, GL_STR_ARG(f != NULL ? f->text : GL_S("(absent)")));
    }
}

static struct gl_json context_of(struct bench *b)
{
    struct gl_json j;

    assert_int_equal(
        gl_json_parse(&j, file_of(b, "mirror_neuron_context.json")->text, 4 << 20, &b->a, NULL), 0);
    return j;
}

/* ---- the environment ---- */

static void every_name_of_the_runtime_is_set(void **state)
{
    static const char *const expected[][2] = {
        {"MN_INPUT_FILE", WORK "/mirror_neuron_input.json"},
        {"MN_CONTEXT_FILE", WORK "/mirror_neuron_context.json"},
        {"MN_MESSAGE_FILE", WORK "/mirror_neuron_message.json"},
        {"MN_BODY_FILE", WORK "/mirror_neuron_body.bin"},
        {"MN_BODY_CONTENT_TYPE", "application/json"},
        {"MN_BODY_CONTENT_ENCODING", "identity"},
        {"MN_AGENT_TYPE", "executor"},
        {"MN_AGENT_TEMPLATE", "map"},
        {"MN_JOB_ID", "J"},
        {"MN_AGENT_ID", "alpha"},
        {"MN_WORKDIR", WORK},
        {"MN_GRPC_TARGET", ""},
        {"MN_WORKFLOW_RUN_ID", "R"},
        {"MN_WORKFLOW_STEP_ID", "collect[3]"},
        {"MN_WORKFLOW_GRAPH_REVISION", "4"},
        {"MN_WORKFLOW_TEMPLATE_ID", "T"},
        {"MN_WORKFLOW_REGION_ID", "G"},
        {"MN_WORKFLOW_ATTEMPT_ID", "collect[3]:attempt:2"},
        {"MN_WORKFLOW_ATTEMPT", "2"},
        {"MN_WORKFLOW_DEADLINE_AT", "1970-01-01T00:00:01.000Z"},
        {"MN_WORKFLOW_HEARTBEAT_DEADLINE_AT", "1970-01-01T00:00:02.000Z"},
        {"MN_WORKFLOW_IDEMPOTENCY_KEY", "R:collect[3]:2:m1"},
        {"MN_ARTIFACTS_JSON", "[]"},
        {"MN_ALLOCATION_JSON",
         "{\"devices\":[],\"ports\":[],\"volumes\":[],\"runtime_driver\":\"host_local\"}"},
        {"MN_RUN_ID", "R"},
        {"MN_ATTEMPT_ID", "R:1"},
        {"MN_JOB_DATA_DIR", "/runs/R/data"},
        {"MN_JOB_DATA_ACCESS", "read_write"},
        {"MN_JOB_DATA_GENERATION", "1"},
        {"MN_RUNS_ROOT", "/runs"},
        {"MN_BLUEPRINT_CONFIG_JSON",
         "{\"identity\":{\"run_id\":\"R\"},\"outputs\":{\"run_root\":\"/runs\"}}"},
        {"GLIA_JOB_ID", "J"},
        {"GLIA_RUN_ID", "R"},
        {"GLIA_STEP_ID", "alpha"},
        {"GLIA_ATTEMPT", "7"},
        {"GLIA_ATTEMPT_ID", "@alpha:attempt:7"},
        {"GLIA_IDEMPOTENCY_KEY", "R:collect[3]:2:m1"},
        {"GLIA_DEADLINE_AT", "1970-01-01T00:00:09.000Z"},
        {"PATH", "/bin"},
        {"HOME", "/home/bob"},
    };
    struct bench *b = *state;

    compose(b);
    for (size_t i = 0; i < GL_COUNT(expected); i++) {
        assert_variable(b, expected[i][0], expected[i][1]);
    }
    assert_int_equal(b->x.env_n, GL_COUNT(expected)); /* and no other */
}

static void the_names_of_beacons_are_set_when_beacons_are_on(void **state)
{
    static const char *const expected[][2] = {
        {"MN_AGENT_BEACON_STDOUT_PREFIX", "__MN_AGENT_BEACON__"},
        {"MN_AGENT_BEACON_INTERVAL_MS", "15000"},
        {"MN_AGENT_BEACON_TIMEOUT_MS", "45000"},
        {"MN_AGENT_BEACON_REQUIRED", "true"},
        {"MN_AGENT_BEACON_JOB_ID", "J"},
        {"MN_AGENT_BEACON_AGENT_ID", "alpha"},
        {"MN_AGENT_BEACON_ATTEMPT", "3"},
        {"MN_AGENT_BEACON_STEP", "collect[3]"},
        {"MN_AGENT_BEACON_SOURCE", "agent"},
    };
    struct bench *b = *state;

    b->agent.beacon_ms = 15000;
    b->agent.beacon_timeout_ms = 45000;
    b->agent.beacon_required = true;
    compose(b);
    assert_null(value_of(b, "MN_AGENT_BEACON_STDOUT_PREFIX"));
    assert_int_equal(b->x.beacon_ms, 0);
    b->agent.beacons = true;
    compose(b);
    for (size_t i = 0; i < GL_COUNT(expected); i++) {
        assert_variable(b, expected[i][0], expected[i][1]);
    }
    assert_int_equal(b->x.beacon_ms, 15000);
}

static void later_sources_win(void **state)
{
    struct bench *b = *state;

    b->node_env[2] = GL_S("MN_BODY_CONTENT_TYPE=of the node");
    b->node_env[3] = GL_S("LEVEL=node");
    b->node_env[4] = GL_S("PASSED=node");
    b->node_env[5] = GL_S("MN_RUNS_ROOT=/elsewhere");
    b->place.env_n = 6;
    b->env[0] = GL_S("LEVEL=bundle");
    b->env[1] = GL_S("PASSED=bundle");
    b->env[2] = GL_S("MN_AGENT_TYPE=bundle"); /* over the runtime's */
    b->env[3] = GL_S("MN_RUN_ID=bundle");     /* a job's own are put on top of it */
    b->env[4] = GL_S("MN_WORKFLOW_STEP_ID=bundle");
    b->env[5] = GL_S("LEVEL=bundle, again");
    b->unit.env.n = 6;
    b->passed[0] = GL_S("PASSED");
    b->passed[1] = GL_S("NOT_SET_THERE");
    b->agent.pass_env.n = 2;
    compose(b);
    assert_variable(b, "LEVEL", "bundle, again");
    assert_variable(b, "PASSED", "node");
    assert_variable(b, "MN_AGENT_TYPE", "bundle");
    assert_variable(b, "MN_RUN_ID", "R");
    assert_variable(b, "MN_RUNS_ROOT", "/runs");
    assert_variable(b, "MN_WORKFLOW_STEP_ID", "collect[3]");
    assert_variable(b, "MN_BODY_CONTENT_TYPE", "application/json");
    assert_null(value_of(b, "NOT_SET_THERE"));
}

static void the_bundles_own_step_id_stays_where_the_runtime_knows_none(void **state)
{
    struct bench *b = *state;

    b->ledger = (struct gl_message_ledger){0};
    b->env[0] = GL_S("MN_WORKFLOW_STEP_ID=bundle");
    b->unit.env.n = 1;
    compose(b);
    assert_variable(b, "MN_WORKFLOW_STEP_ID", "bundle");
    assert_variable(b, "MN_WORKFLOW_RUN_ID", "R");
    assert_variable(b, "MN_WORKFLOW_ATTEMPT", "1"); /* always there */
    assert_variable(b, "GLIA_IDEMPOTENCY_KEY", "@alpha:attempt:7");
    assert_null(value_of(b, "MN_WORKFLOW_GRAPH_REVISION"));
    assert_null(value_of(b, "MN_WORKFLOW_TEMPLATE_ID"));
    assert_null(value_of(b, "MN_WORKFLOW_REGION_ID"));
    assert_null(value_of(b, "MN_WORKFLOW_ATTEMPT_ID"));
    assert_null(value_of(b, "MN_WORKFLOW_DEADLINE_AT"));
    assert_null(value_of(b, "MN_WORKFLOW_HEARTBEAT_DEADLINE_AT"));
    assert_null(value_of(b, "MN_WORKFLOW_IDEMPOTENCY_KEY"));
    b->turn.ledger = NULL; /* then what the message says of itself counts */
    compose(b);
    assert_variable(b, "MN_WORKFLOW_STEP_ID", "from_header");
}

static void nobody_sees_or_sets_what_is_glias_own(void **state)
{
    struct bench *b = *state;

    b->node_env[2] = GL_S("GLIA_TOKEN=secret");
    b->node_env[3] = GL_S("GLIA_STORE=redis://:secret@h/0");
    b->node_env[4] = GL_S("NOTIFY_SOCKET=/run/systemd/notify");
    b->node_env[5] = GL_S("MN_WORKFLOW_REGION_ID=of a node inside a worker");
    b->node_env[6] = GL_S("MN_AGENT_BEACON_STEP=the same");
    b->node_env[7] = GL_S("PS1=\001\033[1m\002$");
    b->node_env[8] = GL_S("broken");
    b->place.env_n = 9;
    b->passed[0] = GL_S("GLIA_TOKEN");
    b->agent.pass_env.n = 1;
    b->env[0] = GL_S("GLIA_DEADLINE_AT=bundle");
    b->env[1] = GL_S("GLIA_JOB_ID=bundle");
    b->unit.env.n = 2;
    b->turn.deadline_at = 0;
    b->ledger.region_id = GL_S("");
    compose(b);
    for (size_t i = 0; i < b->x.env_n; i++) {
        assert_null(memmem(b->x.env[i].p, b->x.env[i].n, "secret", 6));
    }
    assert_null(value_of(b, "GLIA_STORE"));
    assert_null(value_of(b, "NOTIFY_SOCKET"));
    assert_null(value_of(b, "MN_WORKFLOW_REGION_ID"));
    assert_null(value_of(b, "MN_AGENT_BEACON_STEP"));
    assert_null(value_of(b, "PS1"));
    assert_null(value_of(b, "GLIA_DEADLINE_AT"));
    assert_variable(b, "GLIA_JOB_ID", "J");
}

static void what_a_node_passes_on_is_chosen_once(void **state)
{
    static const char *const environment[] = {"A=1", "GLIA_TOKEN=x", "MN_RUN_ID=x", "B=", NULL};
    struct bench *b = *state;
    size_t n;
    const gl_str *env = gl_worker_inherited(environment, &b->a, &n);

    assert_int_equal(n, 2);
    assert_true(gl_str_is(env[0], "A=1") && gl_str_is(env[1], "B="));
}

static void a_program_is_always_found_by_its_name(void **state)
{
    struct bench *b = *state;

    b->place.env_n = 0;
    compose(b);
    assert_non_null(strstr(value_of(b, "PATH"), "/usr/bin"));
}

static void the_configuration_gets_the_run(void **state)
{
    struct bench *b = *state;

    b->bundle.config = GL_S("{\"a\":[1, 2],\"identity\":{\"run_id\":\"old\",\"name\":\"n\"},"
                            "\"outputs\":7}");
    b->bundle.scenario = GL_S("{\"s\":1}");
    b->turn.submission_attempt = 4;
    b->place.grpc_target = GL_S("localhost:50051");
    compose(b);
    assert_variable(b, "MN_BLUEPRINT_CONFIG_JSON",
                    "{\"a\":[1, 2],\"identity\":{\"name\":\"n\",\"run_id\":\"R\"},"
                    "\"outputs\":{\"run_root\":\"/runs\"}}");
    assert_variable(b, "MN_BLUEPRINT_SCENARIO_JSON", "{\"s\":1}");
    assert_variable(b, "MN_ATTEMPT_ID", "R:4");
    assert_variable(b, "MN_JOB_DATA_GENERATION", "4");
    assert_variable(b, "MN_GRPC_TARGET", "localhost:50051");
}

/* ---- the command ---- */

static void placeholders_are_substituted_once(void **state)
{
    struct bench *b = *state;

    b->agent.id = GL_S("{job_id}");
    b->unit.cwd = GL_S(WORK "/worker");
    b->argv[0] = GL_S("python3");
    b->argv[1] = GL_S("--in={input_file}:{context_file}");
    b->argv[2] = GL_S("{message_file}{body_file}");
    b->argv[3] = GL_S("{workdir} {job_id} {agent_id}");
    b->argv[4] = GL_S("{{job_id}} {other} {job_id {}");
    b->argv[5] = GL_S("");
    b->unit.argv.n = 6;
    compose(b);
    assert_int_equal(b->x.argv_n, 6);
    assert_true(gl_str_is(b->x.argv[0], "python3"));
    assert_true(gl_str_is(b->x.argv[1], "--in=" WORK "/mirror_neuron_input.json:" WORK
                                        "/mirror_neuron_context.json"));
    assert_true(
        gl_str_is(b->x.argv[2], WORK "/mirror_neuron_message.json" WORK "/mirror_neuron_body.bin"));
    assert_true(gl_str_is(b->x.argv[3], WORK "/worker J {job_id}"));
    assert_true(gl_str_is(b->x.argv[4], "{J} {other} {job_id {}"));
    assert_int_equal(b->x.argv[5].n, 0);
    assert_true(gl_str_is(b->x.cwd, WORK "/worker"));
    assert_variable(b, "MN_WORKDIR", WORK "/worker");
}

static void a_python_environment_is_prepared_by_glia(void **state)
{
    static const char *const expected[] = {"/usr/bin/glia",          "pyenv", "/data/python",
                                           "{\"packages\":[\"x\"]}", "--",    "python3"};
    struct bench *b = *state;

    b->agent.python_env = GL_S("{\"packages\":[\"x\"]}");
    compose(b);
    assert_int_equal(b->x.argv_n, GL_COUNT(expected));
    for (size_t i = 0; i < GL_COUNT(expected); i++) {
        assert_true(gl_str_is(b->x.argv[i], expected[i]));
    }
    b->place.glia_path = GL_S("");
    assert_refused(b, GL_E_INVALID, "python_environment");
}

static void a_worker_runs_as_its_agent_says(void **state)
{
    struct bench *b = *state;

    b->unit.timeout_ms = 12000;
    compose(b);
    assert_true(b->x.is_worker && gl_str_is(b->x.driver, "worker"));
    assert_int_equal(b->x.timeout_ms, 12000);
    assert_int_equal(b->x.grace_ms, 2000);
    assert_int_equal(b->x.stdout_max, 1 << 20);
    assert_true(gl_str_is(b->x.cwd, WORK));
    assert_true(gl_str_is(b->x.make_folder, "/runs/R/data"));
    assert_true(gl_str_is(b->x.take_folder, "/runs/R"));
    b->agent.stdout_max = 100;
    compose(b);
    assert_int_equal(b->x.stdout_max, 100);
    b->agent.stdout_max = UINT32_MAX;
    compose(b);
    assert_int_equal(b->x.stdout_max, GL_STDOUT_BYTES_MAX);
}

/* ---- the files ---- */

static void the_four_files_are_there(void **state)
{
    struct bench *b = *state;

    compose(b);
    assert_int_equal(b->x.files_n, 4);
    assert_text(b, "mirror_neuron_input.json", "{\"n\": 1}");
    assert_text(b, "mirror_neuron_body.bin", "{\"n\": 1}");
    assert_text(b, "mirror_neuron_message.json", message);
    assert_text(b, "mirror_neuron_context.json",
                "{\"job_id\":\"J\",\"agent_id\":\"alpha\",\"agent_type\":\"executor\","
                "\"template_type\":\"map\",\"agent_state\":{},\"workflow\":{\"run_id\":\"R\","
                "\"step_id\":\"collect[3]\",\"graph_revision\":4,\"template_id\":\"T\","
                "\"region_id\":\"G\",\"attempt_id\":\"collect[3]:attempt:2\",\"attempt\":2,"
                "\"deadline_at\":\"1970-01-01T00:00:01.000Z\","
                "\"heartbeat_deadline_at\":\"1970-01-01T00:00:02.000Z\","
                "\"idempotency_key\":\"R:collect[3]:2:m1\"},"
                "\"timestamp\":\"1970-01-01T00:00:05.000Z\"}");
}

static void the_context_leaves_out_what_is_not_known(void **state)
{
    struct bench *b = *state;
    struct gl_json j;
    gl_jnode workflow;

    b->ledger = (struct gl_message_ledger){.step_id = GL_S("s")};
    b->turn.state = GL_S("{\"seen\": [1]}");
    compose(b);
    j = context_of(b);
    workflow = gl_json_get(&j, gl_json_root(&j), "workflow");
    assert_true(
        gl_str_is(gl_json_raw(&j, workflow), "{\"run_id\":\"R\",\"step_id\":\"s\",\"attempt\":1}"));
    assert_true(gl_str_is(gl_json_raw(&j, gl_json_get(&j, gl_json_root(&j), "agent_state")),
                          "{\"seen\": [1]}"));
}

static void a_message_without_a_body_is_null(void **state)
{
    struct bench *b = *state;

    b->turn.message = GL_S("{\"envelope\":{\"type\":\"t\"},\"body\":null}");
    compose(b);
    assert_text(b, "mirror_neuron_input.json", "null");
}

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REFERS                            \
    "{\"name\":\"x\",\"sha256\":\"00\"}," \
    "{\"name\":\"glia:body\",\"sha256\":\"" SHA "\",\"bytes\":300000,\"letter\":12}"

static void a_body_that_lies_in_a_blob_is_that_blob(void **state)
{
    struct bench *b = *state;

    b->turn.message =
        GL_S("{\"envelope\":{\"type\":\"t\"},\"body\":null,\"artifacts\":[" REFERS "]}");
    compose(b);
    assert_true(gl_str_is(file_of(b, "mirror_neuron_input.json")->blob, SHA));
    assert_true(gl_str_is(file_of(b, "mirror_neuron_body.bin")->blob, SHA));
    assert_int_equal(file_of(b, "mirror_neuron_input.json")->text.n, 0);
    assert_int_equal(file_of(b, "mirror_neuron_message.json")->blob.n, 0);
}

static void a_body_that_was_read_for_it_is_in_its_files_and_not_in_its_message(void **state)
{
    struct bench *b = *state;

    b->turn.message =
        GL_S("{\"envelope\":{\"type\":\"t\",\"content_type\":\"text/plain\"},\"body\":null,"
             "\"artifacts\":[" REFERS "]}");
    b->turn.body = GL_S("\"a\\nb\"");
    compose(b);
    assert_text(b, "mirror_neuron_input.json", "\"a\\nb\"");
    assert_text(b, "mirror_neuron_body.bin", "a\nb");
    assert_true(gl_str_eq(file_of(b, "mirror_neuron_message.json")->text, b->turn.message));
}

static void add_payloads(struct bench *b)
{
    static const char *const paths[] = {"a.py",     "lib",          "lib.txt",
                                        "lib/b.py", "lib/sub/c.py", "library/d.py"};

    for (size_t i = 0; i < GL_COUNT(paths); i++) {
        b->payloads[i] = (struct gl_payload){
            .path = gl_str_of(paths[i]), .blob = gl_str_of(paths[i]), .executable = i == 3};
    }
    b->payloads[1].path = GL_S("kit"); /* a file cannot have the name of a folder */
    b->bundle.payloads.n = GL_COUNT(paths);
}

static void assert_blob(struct bench *b, const char *name, const char *blob)
{
    const struct gl_exec_file *f = file_of(b, name);

    if (f == NULL || !gl_str_is(f->blob, blob)) {
        fail_msg("%s is %.*s", name, GL_STR_ARG(f != NULL ? f->blob : GL_S("(absent)")));
    }
}

static void files_and_folders_are_uploaded(void **state)
{
    struct bench *b = *state;

    add_payloads(b);
    b->uploads[0] = (struct gl_upload){.source = GL_S("a.py"), .target = GL_S("run.py")};
    b->uploads[1] = (struct gl_upload){.source = GL_S("./lib/"), .target = GL_S("worker/lib")};
    b->agent.uploads.n = 2;
    compose(b);
    assert_int_equal(b->x.files_n, 4 + 3);
    assert_blob(b, "run.py", "a.py");
    assert_blob(b, "worker/lib/b.py", "lib/b.py");
    assert_blob(b, "worker/lib/sub/c.py", "lib/sub/c.py");
    assert_true(file_of(b, "worker/lib/b.py")->executable);
    assert_false(file_of(b, "run.py")->executable);
}

static void all_of_it_can_be_uploaded_and_later_uploads_win(void **state)
{
    struct bench *b = *state;

    add_payloads(b);
    b->uploads[0] = (struct gl_upload){.source = GL_S(".")};
    b->uploads[1] = (struct gl_upload){.source = GL_S("lib/b.py"), .target = GL_S("a.py")};
    b->uploads[2] =
        (struct gl_upload){.source = GL_S("lib.txt"), .target = GL_S("mirror_neuron_input.json")};
    b->uploads[3] = (struct gl_upload){.source = GL_S("lib/sub/c.py")};
    b->agent.uploads.n = 4;
    compose(b);
    assert_blob(b, "a.py", "lib/b.py");
    assert_blob(b, "c.py", "lib/sub/c.py");
    assert_blob(b, "library/d.py", "library/d.py");
    assert_text(b, "mirror_neuron_input.json", "{\"n\": 1}"); /* the runtime's own are never lost */
    assert_int_equal(b->x.files_n, 6 + 1 + 4);
}

static void an_upload_of_nothing_is_refused(void **state)
{
    struct bench *b = *state;

    add_payloads(b);
    b->uploads[0] = (struct gl_upload){.source = GL_S("li"), .target = GL_S("x")};
    b->agent.uploads.n = 1;
    assert_refused(b, GL_E_INVALID, "payloads/li");
}

/* ---- hostile values and limits ---- */

static void a_nul_is_refused_by_name(void **state)
{
    struct bench *b = *state;

    b->env[0] = GL_S("EVIL=a\0b");
    b->unit.env.n = 1;
    assert_refused(b, GL_E_INVALID, "EVIL");
    b->unit.env.n = 0;
    b->argv[1] = GL_S("a\0b");
    b->unit.argv.n = 2;
    assert_refused(b, GL_E_INVALID, "argument 1");
}

static void the_byte_of_the_workspace_cannot_be_smuggled_in(void **state)
{
    struct bench *b = *state;

    b->argv[1] = GL_S("x\001y");
    b->unit.argv.n = 2;
    assert_refused(b, GL_E_INVALID, "command[1]");
    b->unit.argv.n = 1;
    b->turn.message = GL_S("{\"envelope\":{\"type\":\"t\",\"content_type\":\"a\\u0001b\"},"
                           "\"body\":null}");
    assert_refused(b, GL_E_INVALID, "content_type 0x01");
    b->turn.message = GL_S("{\"envelope\":{\"type\":\"t\",\"content_type\":\"a\\u0000b\"},"
                           "\"body\":null}");
    assert_refused(b, GL_E_INVALID, "content_type 0x00");
}

static gl_str many(struct bench *b, const char *before, size_t n, const char *after)
{
    char *p = gl_arena_alloc(&b->a, strlen(before) + n + strlen(after) + 1);

    strcpy(p, before);
    memset(p + strlen(before), 'x', n);
    strcpy(p + strlen(before) + n, after);
    return gl_str_of(p);
}

static void a_configuration_that_is_too_large_for_a_variable_says_so(void **state)
{
    struct bench *b = *state;

    b->bundle.config = many(b, "{\"a\":\"", 100000, "\"}");
    compose(b);
    b->bundle.config = many(b, "{\"a\":\"", 131072, "\"}");
    assert_refused(b, GL_E_LIMIT, "MN_BLUEPRINT_CONFIG_JSON");
    b->bundle.config = GL_S("{broken");
    assert_refused(b, GL_E_INVALID, "configuration");
}

static void all_together_have_a_limit(void **state)
{
    struct bench *b = *state;

    for (size_t i = 2; i < 13; i++) {
        b->node_env[i] = many(b, gl_str_fmt(&b->a, "V%zu=", i).p, GL_ARG_BYTES_MAX - 16, "");
    }
    b->place.env_n = 13;
    assert_refused(b, GL_E_LIMIT, "bytes together");
    b->place.env_n = 5;
    compose(b);
}

static void a_message_that_is_none_is_refused(void **state)
{
    struct bench *b = *state;

    b->turn.message = GL_S("{\"envelope\":{\"attempt\":\"x\"}}");
    assert_refused(b, GL_E_INVALID, "the message: ");
    b->turn.message = GL_S("{");
    assert_refused(b, GL_E_INVALID, "the message: ");
}

static void an_agent_without_a_command_is_refused(void **state)
{
    struct bench *b = *state;

    b->unit.argv.n = 0;
    assert_refused(b, GL_E_INVALID, "no command");
}

/* ---- modules ---- */

static void a_module_gets_one_document(void **state)
{
    struct bench *b = *state;

    b->unit.driver = GL_S("module");
    b->unit.timeout_ms = 5000;
    b->agent.module = GL_S("Mn.Alpha");
    b->agent.config = GL_S("{\"c\":1}");
    b->turn.state = GL_S("{\"s\":1}");
    compose(b);
    assert_false(b->x.is_worker);
    assert_true(gl_str_is(b->x.driver, "module"));
    assert_true(b->x.argv_n == 1 && gl_str_is(b->x.argv[0], "Mn.Alpha"));
    assert_int_equal(b->x.timeout_ms, 5000);
    assert_true(gl_str_eq(b->x.input,
                          gl_str_fmt(&b->a,
                                     "{\"job_id\":\"J\",\"agent_id\":\"alpha\",\"config\":{\"c\":1}"
                                     ",\"state\":{\"s\":1},\"message\":%s}",
                                     message)));
    b->turn.state = many(b, "\"", GL_MODULE_FRAME_BYTES_MAX, "\"");
    assert_refused(b, GL_E_LIMIT, "module");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/workers.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_name_of_the_runtime_is_set),
        TEST(the_names_of_beacons_are_set_when_beacons_are_on),
        TEST(later_sources_win),
        TEST(the_bundles_own_step_id_stays_where_the_runtime_knows_none),
        TEST(nobody_sees_or_sets_what_is_glias_own),
        TEST(what_a_node_passes_on_is_chosen_once),
        TEST(a_program_is_always_found_by_its_name),
        TEST(the_configuration_gets_the_run),
        TEST(placeholders_are_substituted_once),
        TEST(a_python_environment_is_prepared_by_glia),
        TEST(a_worker_runs_as_its_agent_says),
        TEST(the_four_files_are_there),
        TEST(the_context_leaves_out_what_is_not_known),
        TEST(a_message_without_a_body_is_null),
        TEST(a_body_that_lies_in_a_blob_is_that_blob),
        TEST(a_body_that_was_read_for_it_is_in_its_files_and_not_in_its_message),
        TEST(files_and_folders_are_uploaded),
        TEST(all_of_it_can_be_uploaded_and_later_uploads_win),
        TEST(an_upload_of_nothing_is_refused),
        TEST(a_nul_is_refused_by_name),
        TEST(the_byte_of_the_workspace_cannot_be_smuggled_in),
        TEST(a_configuration_that_is_too_large_for_a_variable_says_so),
        TEST(all_together_have_a_limit),
        TEST(a_message_that_is_none_is_refused),
        TEST(an_agent_without_a_command_is_refused),
        TEST(a_module_gets_one_document),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
