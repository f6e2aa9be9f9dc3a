/* workers_env.c - the environment of a worker. Later variables replace earlier ones of the same
 * name, so the order of the calls in gl_worker_env() is the order of precedence. */
#include "node/workers_env.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"

/* A set of variables: a later value replaces an earlier one, in the place of the first. */
struct env {
    struct gl_arena *a;
    struct gl_map places; /* name -> its entry in `items` */
    gl_str *items;        /* "NAME=value" */
    size_t n, cap;
};

/* Copied as bytes: a NUL in a value must reach the check in workers.c and not end the value here.
 */
static gl_str joined(struct gl_arena *a, gl_str name, gl_str value)
{
    char *p = gl_arena_alloc(a, name.n + value.n + 2);

    GL_ASSERT(name.n > 0);
    memcpy(p, name.p, name.n);
    p[name.n] = '=';
    if (value.n > 0) {
        memcpy(p + name.n + 1, value.p, value.n);
    }
    return (gl_str){.p = p, .n = name.n + 1 + value.n};
}

static void put(struct env *e, gl_str name, gl_str value)
{
    gl_str *at = gl_map_find(&e->places, name);

    GL_ASSERT(name.n > 0);
    if (at == NULL) {
        GL_ASSERT(e->n < e->cap);
        at = &e->items[e->n++];
        gl_map_add(&e->places, gl_str_dup(e->a, name), at);
    }
    *at = joined(e->a, name, value);
}

static void put_c(struct env *e, const char *name, gl_str value)
{
    put(e, gl_str_of(name), value);
}

static void put_known(struct env *e, const char *name, gl_str value)
{
    if (value.n > 0) {
        put_c(e, name, value);
    }
}

static void put_u64(struct env *e, const char *name, uint64_t value)
{
    put_c(e, name, gl_str_fmt(e->a, "%llu", (unsigned long long)value));
}

static void put_pair(struct env *e, gl_str pair)
{
    gl_str value;
    gl_str name = gl_str_cut(pair, '=', &value);

    if (name.n > 0 && name.n < pair.n) {
        put(e, name, value);
    }
}

gl_str gl_worker_time(gl_ms t, struct gl_arena *a)
{
    char text[GL_TIMES_BYTES];

    return t > 0 ? gl_str_dup(a, gl_times_format(t, text)) : (gl_str){0};
}

/* ---- from the node ---- */

static void put_node(struct env *e, const struct gl_worker_place *p)
{
    put_c(e, "PATH", GL_S("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    for (size_t i = 0; i < p->env_n; i++) {
        gl_str value;
        gl_str name = gl_str_cut(p->env[i], '=', &value);

        if (gl_worker_is_inherited(name, value)) {
            put(e, name, value);
        }
    }
}

/* ---- from the runtime ---- */

static void put_file(struct env *e, const char *name, const char *file)
{
    put_c(e, name, gl_str_fmt(e->a, GL_EXEC_WORK "/%s", file));
}

static void put_turn(struct env *e, const struct gl_worker_facts *f)
{
    put_file(e, "MN_INPUT_FILE", GL_WORKER_INPUT);
    put_file(e, "MN_CONTEXT_FILE", GL_WORKER_CONTEXT);
    put_file(e, "MN_MESSAGE_FILE", GL_WORKER_MESSAGE);
    put_file(e, "MN_BODY_FILE", GL_WORKER_BODY);
    put_c(e, "MN_BODY_CONTENT_TYPE", f->message.content_type);
    put_c(e, "MN_BODY_CONTENT_ENCODING", f->message.content_encoding);
    put_c(e, "MN_AGENT_TYPE", gl_str_of(gl_agent_kind_words[f->agent->kind]));
    put_c(e, "MN_AGENT_TEMPLATE", f->agent->template_type);
    put_c(e, "MN_JOB_ID", f->turn->job_id);
    put_c(e, "MN_AGENT_ID", f->agent->id);
    put_c(e, "MN_WORKDIR", f->workdir);
    put_c(e, "MN_GRPC_TARGET", f->place->grpc_target);
}

static void put_ledger(struct env *e, const struct gl_message_ledger *l)
{
    GL_ASSERT(l->attempt > 0);
    put_known(e, "MN_WORKFLOW_RUN_ID", l->run_id);
    put_known(e, "MN_WORKFLOW_STEP_ID", l->step_id);
    if (l->has_revision) {
        put_u64(e, "MN_WORKFLOW_GRAPH_REVISION", l->graph_revision);
    }
    put_known(e, "MN_WORKFLOW_TEMPLATE_ID", l->template_id);
    put_known(e, "MN_WORKFLOW_REGION_ID", l->region_id);
    put_known(e, "MN_WORKFLOW_ATTEMPT_ID", l->attempt_id);
    put_u64(e, "MN_WORKFLOW_ATTEMPT", l->attempt);
    put_known(e, "MN_WORKFLOW_DEADLINE_AT", gl_worker_time(l->deadline_at, e->a));
    put_known(e, "MN_WORKFLOW_HEARTBEAT_DEADLINE_AT",
              gl_worker_time(l->heartbeat_deadline_at, e->a));
    put_known(e, "MN_WORKFLOW_IDEMPOTENCY_KEY", l->idempotency_key);
}

static void put_beacons(struct env *e, const struct gl_worker_facts *f)
{
    if (!f->agent->beacons) {
        return;
    }
    put_c(e, "MN_AGENT_BEACON_STDOUT_PREFIX", GL_S(GL_EXEC_BEACON));
    put_u64(e, "MN_AGENT_BEACON_INTERVAL_MS", (uint64_t)f->agent->beacon_ms);
    put_u64(e, "MN_AGENT_BEACON_TIMEOUT_MS", (uint64_t)f->agent->beacon_timeout_ms);
    put_c(e, "MN_AGENT_BEACON_REQUIRED", gl_str_of(f->agent->beacon_required ? "true" : "false"));
    put_c(e, "MN_AGENT_BEACON_JOB_ID", f->turn->job_id);
    put_c(e, "MN_AGENT_BEACON_AGENT_ID", f->agent->id);
    put_u64(e, "MN_AGENT_BEACON_ATTEMPT",
            f->turn->attempt_of_message > 0 ? f->turn->attempt_of_message : 1);
    put_c(e, "MN_AGENT_BEACON_STEP", f->ledger.step_id);
    put_c(e, "MN_AGENT_BEACON_SOURCE", GL_S("agent"));
}

/* ---- what a job adds to `environment` ---- */

/* Copy the object `from` (nothing, if it is not an object) with `name` set to `value`. */
static void write_with(struct gl_jw *w, const struct gl_json *j, gl_jnode from, const char *name,
                       gl_str value, struct gl_arena *a)
{
    gl_jw_object(w);
    for (gl_jnode k = gl_json_is(from, GL_JSON_OBJECT) ? gl_json_first(j, from) : NULL; k != NULL;
         k = gl_json_after(j, from, k)) {
        gl_str key = gl_json_str(j, k, a);

        if (!gl_str_is(key, name)) {
            gl_jw_key_str(w, key);
            gl_jw_raw(w, gl_json_raw(j, gl_json_value(k)));
        }
    }
    gl_jw_put_str(w, name, value);
    gl_jw_end(w);
}

static bool is_added_to(gl_str key)
{
    return gl_str_is(key, "identity") || gl_str_is(key, "outputs");
}

static int put_config(struct env *e, const struct gl_worker_facts *f, struct gl_why *why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_str text = f->turn->flow->bundle->config;
    struct gl_json j;
    struct gl_jw w;
    gl_jnode root;
    int rc = gl_json_parse(&j, text.n > 0 ? text : GL_S("{}"), GL_FLOW_BYTES_MAX, e->a, why);

    if (rc != 0) {
        return gl_why_prefix(why, "the bundle's configuration");
    }
    root = gl_json_root(&j);
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    for (gl_jnode k = gl_json_is(root, GL_JSON_OBJECT) ? gl_json_first(&j, root) : NULL; k != NULL;
         k = gl_json_after(&j, root, k)) {
        gl_str key = gl_json_str(&j, k, e->a);

        if (!is_added_to(key)) {
            gl_jw_key_str(&w, key);
            gl_jw_raw(&w, gl_json_raw(&j, gl_json_value(k)));
        }
    }
    gl_jw_key(&w, "identity");
    write_with(&w, &j, gl_json_get(&j, root, "identity"), "run_id", f->turn->run_id, e->a);
    gl_jw_key(&w, "outputs");
    write_with(&w, &j, gl_json_get(&j, root, "outputs"), "run_root", f->place->runs_root, e->a);
    gl_jw_end(&w);
    put_c(e, "MN_BLUEPRINT_CONFIG_JSON", gl_buf_view(&out));
    return 0;
}

static int put_job(struct env *e, const struct gl_worker_facts *f, struct gl_why *why)
{
    uint32_t submission = f->turn->submission_attempt > 0 ? f->turn->submission_attempt : 1;
    gl_str allocation = f->agent->allocation;

    GL_ASSERT(f->turn->run_id.n > 0);
    put_c(e, "MN_ARTIFACTS_JSON", GL_S("[]"));
    put_c(e, "MN_ALLOCATION_JSON",
          allocation.n > 0 ? allocation
                           : GL_S("{\"devices\":[],\"ports\":[],\"volumes\":[],"
                                  "\"runtime_driver\":\"host_local\"}"));
    put_c(e, "MN_RUN_ID", f->turn->run_id);
    put_c(e, "MN_ATTEMPT_ID", gl_str_fmt(e->a, "%.*s:%u", GL_STR_ARG(f->turn->run_id), submission));
    put_c(e, "MN_JOB_DATA_DIR", gl_worker_data_folder(f->place, f->turn->run_id, e->a));
    put_c(e, "MN_JOB_DATA_ACCESS", GL_S("read_write"));
    put_u64(e, "MN_JOB_DATA_GENERATION", submission);
    put_c(e, "MN_RUNS_ROOT", f->place->runs_root);
    put_known(e, "MN_BLUEPRINT_SCENARIO_JSON", f->turn->flow->bundle->scenario);
    return put_config(e, f, why);
}

/* ---- the rest ---- */

static void put_passed(struct env *e, const struct gl_worker_facts *f)
{
    const struct gl_strs *names = &f->agent->pass_env;

    for (size_t i = 0; i < names->n; i++) {
        for (size_t k = 0; k < f->place->env_n; k++) {
            gl_str value;
            gl_str name = gl_str_cut(f->place->env[k], '=', &value);

            if (gl_str_eq(name, names->items[i]) && gl_worker_is_inherited(name, value)) {
                put(e, name, value);
            }
        }
    }
}

/* The core's own names. Nothing can override them. */
static void put_core(struct env *e, const struct gl_worker_facts *f)
{
    const struct gl_worker_turn *t = f->turn;
    gl_str key = t->idempotency_key.n > 0          ? t->idempotency_key
                 : f->ledger.idempotency_key.n > 0 ? f->ledger.idempotency_key
                                                   : t->attempt_id;

    put_c(e, "GLIA_JOB_ID", t->job_id);
    put_c(e, "GLIA_RUN_ID", t->run_id);
    put_c(e, "GLIA_STEP_ID", f->agent->id);
    put_u64(e, "GLIA_ATTEMPT", t->attempt_number);
    put_c(e, "GLIA_ATTEMPT_ID", t->attempt_id);
    put_c(e, "GLIA_IDEMPOTENCY_KEY", key);
    put_known(e, "GLIA_DEADLINE_AT", gl_worker_time(t->deadline_at, e->a));
}

/* A bundle's environment must not set the core's variables either: a worker would trust one that is
 * unset today (GLIA_DEADLINE_AT). */
static void put_own(struct env *e, const struct gl_step_spec *unit)
{
    for (size_t i = 0; i < unit->env.n; i++) {
        if (!gl_str_starts(unit->env.items[i], GL_S("GLIA_"))) {
            put_pair(e, unit->env.items[i]);
        }
    }
}

int gl_worker_env(const struct gl_worker_facts *f, struct gl_arena *a, struct gl_exec_start *x,
                  struct gl_why *reterr_why)
{
    enum { OF_THE_RUNTIME = 64 }; /* the names above, and some spare */
    struct env e = {
        .a = a, .cap = f->place->env_n + f->unit->env.n + f->agent->pass_env.n + OF_THE_RUNTIME};
    int rc;

    e.items = GL_NEW_ARRAY(a, gl_str, e.cap);
    gl_map_init(&e.places);
    put_node(&e, f->place);
    put_turn(&e, f);
    put_ledger(&e, &f->ledger);
    put_beacons(&e, f);
    put_own(&e, f->unit);
    rc = put_job(&e, f, reterr_why);
    put_passed(&e, f);
    put_known(&e, "MN_WORKFLOW_STEP_ID", f->ledger.step_id);
    put_core(&e, f);
    gl_map_done(&e.places);
    x->env = e.items;
    x->env_n = e.n;
    GL_ASSERT(e.n <= e.cap);
    return rc;
}
