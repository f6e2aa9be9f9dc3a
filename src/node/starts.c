/* starts.c - attempts on their way to the executor.
 *
 * A start needs its files, if they are not in our folder (blobs.h), the outputs of its parents and
 * the values of its references, which are read from the store (lookup.c). If meanwhile the attempt
 * is to be stopped, is asked about, or has been acknowledged, the start is cancelled before it
 * reaches the executor: a start sent after the acknowledgement of the same attempt would run it a
 * second time.
 *
 * On a shared store nothing starts once other nodes may consider this node dead. */
#include "base/check.h"
#include "node/node_state.h"

#include "base/limits.h"
#include "model/job.h"
#include "model/text/ref.h"
#include "node/agent_input.h"
#include "node/blobs.h"
#include "node/log_copies.h"
#include "node/refusals.h"
#include "node/worker_files.h"

struct starts {
    struct gl_map by_key; /* struct start: those being prepared */
    gl_ms due;            /* when to report the starts that were too late */
};

struct start {
    struct gl_chain chain;
    struct gl_spec *spec;
    const struct gl_step_spec *step;
    gl_str key; /* "job/attempt/token", in `by_key` while it is being prepared */
    gl_str run_id, idempotency_key;
    uint32_t attempt_number;
    uint64_t start_number;
    gl_ms deadline_at, submitted_at;
    struct gl_exec_start x;
    gl_str step_id;
    int64_t item; /* of an instance; -1: not an instance */
    struct gl_json facts;
    bool has_facts;
    struct gl_buf input;
    uint32_t of;
    const struct gl_turn *turn; /* of a unit; NULL: a step of a flow file */
    gl_str message;             /* the message it handles */
    gl_str body;                /* ... and its body, if that is large and not a blob */
    size_t payloads_n;          /* how many of its files are the bundle's: the first ones */
    bool is_cancelled;
    bool is_late; /* too late: to be reported, not sent */
};

static struct starts *own(const struct gl_node *n)
{
    return n->parts[GL_PART_STARTS];
}

static void on_end(void *chain)
{
    struct start *s = chain;

    if (s->key.n > 0) {
        (void)gl_map_remove(&own(s->chain.node)->by_key, s->key); /* it has a key, so it is there */
    }
    gl_spec_unref(s->spec);
    gl_buf_done(&s->input);
}

static const struct gl_chain_kind starts = {.bytes = sizeof(struct start), .done = on_end};

static void feed_started(struct start *s, int code, const char *why)
{
    struct gl_event ev = {.type = GL_EV_STARTED,
                          .context = s->x.key.context,
                          .job = s->x.key.job,
                          .started = {.attempt = s->x.key.attempt,
                                      .token = s->x.token,
                                      .number = s->start_number,
                                      .code = code,
                                      .why = gl_str_of(why)}};

    GL_ASSERT(s->start_number > 0);
    GL_ASSERT(s->x.key.attempt.n > 0);
    if (code == 0 || (code == GL_E_UNAVAILABLE && s->chain.node->exec_up && !s->is_cancelled)) {
        gl_refusals_note(s->chain.node, ev.job, s->step_id, ev.started.why);
    }
    gl_node_feed(s->chain.node, &ev);
}

/* ---- environment and input ---- */

static void add_env(struct start *s, const char *name, gl_str value)
{
    GL_ASSERT(s->x.env != NULL);
    gl_str *env = (gl_str *)s->x.env;

    env[s->x.env_n++] = gl_str_fmt(&s->chain.arena, "%s=%.*s", name, GL_STR_ARG(value));
}

static int make_env(struct start *s, struct gl_why *why)
{
    char when[GL_TIMES_BYTES];
    gl_str *env = GL_NEW_ARRAY(&s->chain.arena, gl_str, s->step->env.n + 10);
    int rc = 0;

    s->x.env = env;
    for (size_t i = 0; i < s->step->env.n && rc == 0; i++) {
        gl_str *to = &env[s->x.env_n++];

        *to = s->step->env.items[i];
        if ((s->step->expand & GL_EXPAND_ENV) != 0) {
            rc = gl_ref_expand(*to, &s->facts, &s->chain.arena, to, why);
        }
    }
    add_env(s, "GLIA_JOB_ID", s->x.key.job);
    add_env(s, "GLIA_RUN_ID", s->run_id);
    add_env(s, "GLIA_STEP_ID", s->step_id);
    add_env(s, "GLIA_ATTEMPT", gl_str_fmt(&s->chain.arena, "%u", s->attempt_number));
    add_env(s, "GLIA_ATTEMPT_ID", s->x.key.attempt);
    add_env(s, "GLIA_IDEMPOTENCY_KEY", s->idempotency_key);
    if (s->deadline_at > 0) {
        add_env(s, "GLIA_DEADLINE_AT", gl_times_format(s->deadline_at, when));
    }
    if (s->item >= 0 && rc == 0) {
        gl_str item = {0};

        rc = gl_ref_expand(GL_S("${job.item}"), &s->facts, &s->chain.arena, &item, why);
        add_env(s, "GLIA_ITEM", item);
        add_env(s, "GLIA_INDEX", gl_str_fmt(&s->chain.arena, "%lld", (long long)s->item));
    }
    GL_ASSERT(s->x.env_n <= s->step->env.n + 10);
    return rc;
}

static int expand_args(struct start *s, struct gl_why *why)
{
    gl_str *argv;
    int rc = 0;

    GL_ASSERT(s->x.argv_n == s->step->argv.n);
    if ((s->step->expand & GL_EXPAND_ARGV) != 0) {
        argv = GL_NEW_ARRAY(&s->chain.arena, gl_str, s->step->argv.n);
        for (size_t i = 0; i < s->step->argv.n && rc == 0; i++) {
            rc = gl_ref_expand(s->step->argv.items[i], &s->facts, &s->chain.arena, &argv[i], why);
        }
        s->x.argv = argv;
    }
    if (rc == 0 && (s->step->expand & GL_EXPAND_CWD) != 0) {
        rc = gl_ref_expand(s->step->cwd, &s->facts, &s->chain.arena, &s->x.cwd, why);
        if (rc == 0 && (s->x.cwd.n == 0 || s->x.cwd.p[0] != '/')) {
            rc = gl_why(why, GL_E_INVALID, "cwd '%.*s' is not an absolute path",
                        GL_STR_ARG(s->x.cwd));
        }
    }
    return rc;
}

static gl_jnode facts_get(const struct start *s, const char *root, const char *name)
{
    return gl_json_get(&s->facts, gl_json_get(&s->facts, gl_json_root(&s->facts), root), name);
}

static void write_parents(struct start *s, struct gl_jw *w)
{
    gl_jnode steps = s->has_facts ? gl_json_get(&s->facts, gl_json_root(&s->facts), "steps") : NULL;

    gl_jw_put_object(w, "steps");
    for (gl_jnode key = gl_json_first(&s->facts, steps); steps != NULL && key != NULL;
         key = gl_json_after(&s->facts, steps, key)) {
        gl_jw_key_str(w, gl_json_str(&s->facts, key, &s->chain.arena));
        gl_jw_raw(w, gl_json_raw(&s->facts, gl_json_value(key)));
    }
    gl_jw_end(w);
}

/* For `python`: the value of each reference, under the text of the reference. */
static int write_refs(struct start *s, struct gl_jw *w, struct gl_why *why)
{
    GL_ASSERT(s->has_facts);
    struct gl_ref ref;
    gl_jnode v;
    int rc = 0;

    gl_jw_put_object(w, "refs");
    for (size_t i = 0; i < s->step->refs.n && rc == 0; i++) {
        rc = gl_ref_parse(s->step->refs.items[i], &s->chain.arena, &ref, why);
        if (rc == 0) {
            rc = gl_ref_value(&ref, &s->facts, &s->chain.arena, &v, why);
        }
        if (rc == 0) {
            gl_jw_key_str(w, s->step->refs.items[i]);
            gl_jw_raw(w, gl_json_raw(&s->facts, v));
        }
    }
    gl_jw_end(w);
    return rc;
}

static int make_input(struct start *s, struct gl_why *why)
{
    struct gl_jw w;
    int rc = 0;

    GL_ASSERT(s->attempt_number > 0);
    gl_jw_init(&w, &s->input);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "job_id", s->x.key.job);
    gl_jw_put_str(&w, "run_id", s->run_id);
    gl_jw_put_str(&w, "step_id", s->step_id);
    gl_jw_put_u64(&w, "attempt", s->attempt_number);
    if (s->spec->flow->inputs.n > 0) {
        gl_jw_key(&w, "inputs");
        gl_jw_raw(
            &w, gl_json_raw(&s->facts, gl_json_get(&s->facts, gl_json_root(&s->facts), "inputs")));
    }
    if (s->item >= 0) {
        gl_jw_put_raw(&w, "item", gl_json_raw(&s->facts, facts_get(s, "job", "item")));
        gl_jw_put_i64(&w, "index", s->item);
    }
    write_parents(s, &w);
    if (s->step->refs.n > 0) {
        rc = write_refs(s, &w, why);
    }
    gl_jw_end(&w);
    return rc;
}

/* ---- handing over to the executor ---- */

static void on_started(struct gl_exec_req *req)
{
    struct start *s = req->owner;

    GL_ASSERT(s->key.n == 0);
    if (req->status == 0 && !gl_str_is(s->x.driver, "noop")) {
        gl_log_copies_on_running(s->chain.node, &s->x.key);
    }
    feed_started(s, req->status, req->status != 0 ? req->why.text : "");
    gl_chain_end(&s->chain);
}

static void hand_over(struct start *s)
{
    GL_ASSERT(s->x.token > 0);
    GL_ASSERT(s->key.n > 0);
    GL_ASSERT(!s->is_late);
    struct gl_node *n = s->chain.node;
    gl_ms valid_until = gl_sessions_valid_until(n);

    if (n->ports.clock->now(n->ports.clock) >= valid_until && !GL_PLANT(27)) {
        GL_MARK(n->config.trace, "starts.too_late");
        s->is_late = true;
        own(n)->due = n->now;
        return;
    }
    if (!GL_PLANT(27)) { /* planted: no limit on how late */
        s->x.start_by = s->x.start_by < valid_until ? s->x.start_by : valid_until;
    }
    if (s->turn == NULL) {
        s->x.input = gl_buf_view(&s->input);
    }
    (void)gl_map_remove(&own(n)->by_key,
                        s->key); /* from here on the executor orders starts and stops */
    s->key = (gl_str){0};
    n->ports.exec->ops->start(n->ports.exec, gl_chain_exec(&s->chain, on_started), &s->x);
}

static int prepare(struct start *s, struct gl_why *why)
{
    int rc = make_env(s, why);

    if (rc == 0) {
        rc = expand_args(s, why);
    }
    if (rc == 0 && s->step->expand != 0) {
        rc = gl_starts_check(&s->x, why);
    }
    return rc == 0 ? make_input(s, why) : rc;
}

static void on_facts(void *owner, const struct gl_lookup_wish *wish, int code, const char *text,
                     gl_str json)
{
    struct start *s = owner;
    struct gl_why why = {0};
    int rc = code;

    GL_ASSERT(!s->has_facts);
    GL_ASSERT(s->key.n > 0);
    (void)wish;
    if (rc != 0) {
        (void)gl_why(&why, rc, "%s", text);
    } else if (s->is_cancelled) {
        rc = gl_why(&why, GL_E_UNAVAILABLE, "cancelled");
    } else {
        rc = gl_json_parse(&s->facts, gl_str_dup(&s->chain.arena, json), GL_RECORD_BYTES_MAX,
                           &s->chain.arena, &why);
        s->has_facts = rc == 0;
    }
    if (rc == 0) {
        rc = prepare(s, &why);
    }
    if (rc == 0) {
        hand_over(s);
        return;
    }
    /* A reference that cannot be resolved now cannot be resolved later either. */
    feed_started(s, rc == GL_E_UNAVAILABLE ? rc : GL_E_INVALID, why.text);
    gl_chain_drop(&s->chain);
}

static void gather(struct start *s)
{
    struct gl_lookup_wish wish = {.spec = s->spec,
                                  .of = s->of,
                                  .with_needs = true,
                                  .item = s->item,
                                  .context = s->x.key.context,
                                  .job = s->x.key.job,
                                  .run_id = s->run_id,
                                  .step_id = s->step_id,
                                  .submitted_at = s->submitted_at};

    GL_ASSERT(s->key.n > 0);
    GL_ASSERT(!s->has_facts);
    gl_lookup_gather(s->chain.node, &wish, on_facts, s);
}

static gl_str key_of(struct gl_arena *a, const struct gl_effect *e)
{
    GL_ASSERT(e->job.n > 0);
    GL_ASSERT(e->attempt.n > 0);
    return gl_str_fmt(a, "%.*s/%.*s/%llu", GL_STR_ARG(e->job), GL_STR_ARG(e->attempt),
                      (unsigned long long)e->token);
}

struct gl_attempt_key gl_starts_key(struct gl_arena *a, const struct gl_effect *e)
{
    return (struct gl_attempt_key){.context = gl_str_dup(a, e->context),
                                   .job = gl_str_dup(a, e->job),
                                   .attempt = gl_str_dup(a, e->attempt)};
}

static struct start *start_new(struct gl_node *n, const struct gl_effect *e)
{
    struct start *s = gl_chain_new(n, &starts, e->context);

    GL_ASSERT(e->token > 0);
    GL_ASSERT(e->start_number > 0);
    GL_ASSERT(e->of < e->spec->flow->steps.n);
    s->spec = e->spec; /* takes over the effect's reference */
    s->step = gl_flow_step(e->spec->flow, e->of);
    s->step_id = gl_str_dup(&s->chain.arena, e->step_id);
    s->of = e->of;
    s->submitted_at = e->submitted_at;
    s->item = e->item;
    s->run_id = gl_str_dup(&s->chain.arena, e->run_id);
    s->idempotency_key = gl_str_dup(&s->chain.arena, e->idempotency_key);
    s->attempt_number = e->attempt_number;
    s->start_number = e->start_number;
    s->deadline_at = e->deadline_at;
    s->x = (struct gl_exec_start){
        .key = gl_starts_key(&s->chain.arena, e),
        .token = e->token,
        .epoch = gl_str_dup(&s->chain.arena, e->epoch),
        .start_by = e->start_by,
        .driver = s->step->driver,
        .argv = s->step->argv.items,
        .argv_n = s->step->argv.n,
        .cwd = s->step->cwd,
        .secrets = s->step->secrets.items,
        .secrets_n = s->step->secrets.n,
        .timeout_ms = s->step->timeout_ms,
        .grace_ms = s->step->grace_ms,
        .beacon_ms = s->step->heartbeat_ms / 3,
        .needs_session = e->needs_session,
    };
    return s;
}

static void take_files(struct start *s)
{
    const struct gl_flow_file *from = s->step->files.items;
    struct gl_exec_file *to = GL_NEW_ARRAY(&s->chain.arena, struct gl_exec_file, s->step->files.n);

    GL_ASSERT(s->x.files_n == 0);
    GL_ASSERT(s->x.files == NULL);
    for (size_t i = 0; i < s->step->files.n; i++) {
        to[i] = (struct gl_exec_file){
            .name = from[i].name, .blob = from[i].blob, .executable = from[i].executable};
    }
    s->x.files = to;
    s->x.files_n = s->step->files.n;
}

/* Its files are in our folder. */
static void on_files_ready(struct start *s)
{
    struct gl_why why;

    GL_ASSERT(s->key.n > 0);
    GL_ASSERT(!s->is_cancelled);
    if (s->turn != NULL) {
        hand_over(s);
        return;
    }
    if (s->step->needs_n + s->step->reads_n + s->step->expand + s->step->refs.n +
                s->spec->flow->inputs.n >
            0 ||
        s->item >= 0) {
        gather(s);
        return;
    }
    /* It cannot fail: there are no references, and its texts were checked at submission. */
    if (prepare(s, &why) != 0) {
        GL_UNREACHABLE();
    }
    hand_over(s);
}

static void on_files(void *owner, int code, const char *why)
{
    struct start *s = owner;

    GL_ASSERT(s->key.n > 0);
    if (code == 0 && s->is_cancelled) {
        code = GL_E_UNAVAILABLE;
        why = "cancelled";
    }
    if (code == 0) {
        on_files_ready(s);
        return;
    }
    if (s->turn != NULL && (code == GL_E_NOT_FOUND || code == GL_E_DAMAGED)) {
        code = GL_E_NOT_FOUND; /* an incomplete bundle: see gl_agent_unit_on_missing_files() */
    } else if (code != GL_E_UNAVAILABLE) {
        code = GL_E_INVALID;
    }
    feed_started(s, code, why);
    gl_chain_drop(&s->chain);
}

/* ---- units: workers and modules of a bundle ---- */

static int compose(struct start *s, struct gl_why *why)
{
    struct gl_worker_turn t = {
        .flow = s->spec->flow,
        .agent = s->of,
        .job_id = s->x.key.job,
        .run_id = s->run_id,
        .body = s->body,
        .state = s->turn->state,
        .ledger = s->turn->ledger.step_id.n > 0 ? &s->turn->ledger : NULL,
        .attempt_number = s->attempt_number,
        .attempt_of_message = s->turn->earlier_attempts + 1,
        .attempt_id = s->x.key.attempt,
        .idempotency_key = s->idempotency_key,
        .now = s->chain.node->now,
        .deadline_at = s->deadline_at,
        .queue_wait_ms = s->turn->queue_wait_ms,
    };

    GL_ASSERT(s->message.n > 0);
    GL_ASSERT(s->turn != NULL);
    t.message = gl_agent_input_message(s->turn, s->message, &s->chain.arena, why);
    return t.message.n == 0
               ? GL_E_INVALID
               : gl_worker_compose(&s->chain.node->config.worker, &t, &s->chain.arena, &s->x, why);
}

/* Its large files are blobs now. Fetch the bundle's files that are missing here. */
static void fetch_files(struct start *s)
{
    struct gl_flow_file *files = GL_NEW_ARRAY(&s->chain.arena, struct gl_flow_file, s->x.files_n);
    size_t n = 0;

    GL_ASSERT(s->key.n > 0);
    GL_ASSERT(s->payloads_n <= s->x.files_n);
    for (size_t i = 0; i < s->payloads_n; i++) {
        files[n++] = (struct gl_flow_file){.name = s->x.files[i].name, .blob = s->x.files[i].blob};
    }
    if (n == 0 || gl_blobs_fetch(s->chain.node->blobs, files, n, on_files, s)) {
        on_files_ready(s);
    }
}

static void on_files_stored(void *owner, int code, const char *why)
{
    struct start *s = owner;

    GL_ASSERT(s->payloads_n <= s->x.files_n);
    if (code == 0 && !s->is_cancelled) {
        fetch_files(s);
        return;
    }
    feed_started(s, GL_E_UNAVAILABLE, code == 0 ? "cancelled" : why);
    gl_chain_drop(&s->chain);
}

static void compose_unit(struct start *s)
{
    struct gl_why why;
    int rc = compose(s, &why);

    GL_ASSERT(s->key.n > 0);
    GL_ASSERT(s->message.n > 0);
    if (rc != 0) {
        feed_started(s, GL_E_INVALID, why.text);
        gl_chain_drop(&s->chain);
        return;
    }
    s->payloads_n = gl_worker_files_sort(&s->x, &s->chain.arena);
    if (gl_worker_files_store(s->chain.node, (struct gl_exec_file *)s->x.files, s->x.files_n,
                              &s->chain.arena, on_files_stored, s)) {
        fetch_files(s);
    }
}

static void on_message(void *owner, int code, const char *why, gl_str message, gl_str body)
{
    struct start *s = owner;

    GL_ASSERT(s->key.n > 0);
    if (code == 0 && !s->is_cancelled) {
        s->message = gl_str_dup(&s->chain.arena, message);
        s->body = gl_str_dup(&s->chain.arena, body);
        compose_unit(s);
        return;
    }
    if (code == 0) {
        code = GL_E_UNAVAILABLE;
        why = "cancelled";
    }
    feed_started(s, code, why);
    gl_chain_drop(&s->chain);
}

static void begin_unit(struct start *s)
{
    GL_ASSERT(s->key.n > 0);
    GL_ASSERT(s->turn != NULL);
    s->message = s->turn->message;
    if (s->message.n > 0) {
        compose_unit(s);
    } else {
        gl_agent_input_read(s->chain.node, s->x.key.context, s->x.key.job, s->turn->message_number,
                            gl_str_is(s->step->driver, "worker"), on_message, s);
    }
}

void gl_starts_begin(struct gl_node *n, const struct gl_effect *e)
{
    GL_ASSERT(e->of < e->spec->flow->steps.n);
    GL_ASSERT(e->start_number > 0);
    GL_ASSERT(e->type == GL_FX_START);
    struct start *s = start_new(n, e);
    gl_str key = key_of(&s->chain.arena, e);
    struct start *same = gl_map_find(&own(n)->by_key, key);

    if (same != NULL) { /* let that one continue, as this start */
        same->start_number = e->start_number;
        same->is_cancelled = false;
        gl_chain_drop(&s->chain);
        return;
    }
    s->key = key;
    gl_map_add(&own(n)->by_key, s->key, s);
    if (e->turn != NULL) {
        s->turn = gl_agent_input_copy(&s->chain.arena, e->turn);
        begin_unit(s);
        return;
    }
    if (gl_str_is(s->step->driver, "noop") && s->step->reads_n == 0) {
        hand_over(s);
        return;
    }
    take_files(s);
    if (s->step->files.n == 0 ||
        gl_blobs_fetch(n->blobs, s->step->files.items, s->step->files.n, on_files, s)) {
        on_files_ready(s);
    }
}

void gl_starts_cancel(struct gl_node *n, const struct gl_effect *e)
{
    struct gl_arena scratch = {0};
    struct start *s = gl_map_find(&own(n)->by_key, key_of(&scratch, e));

    gl_arena_done(&scratch);
    if (s != NULL) {
        GL_MARK(n->config.trace, "starts.given_up");
        s->is_cancelled = true;
    }
}

/* ---- the part ---- */

static void init(struct gl_node *n)
{
    gl_map_init(&own(n)->by_key);
    own(n)->due = INT64_MAX;
}

static gl_ms due(const struct gl_node *n)
{
    return own(n)->due;
}

/* Reports the starts that were too late. Not from inside the step of the core that asked for them.
 */
static void on_time(struct gl_node *n)
{
    struct start *next;

    if (own(n)->due > n->now) {
        return;
    }
    own(n)->due = INT64_MAX;
    for (struct start *s = gl_chain_next(n, &starts, NULL); s != NULL; s = next) {
        if (s->is_late) {
            feed_started(s, GL_E_UNAVAILABLE,
                         "this node could not renew its session, so it starts no attempts");
        }
        next = gl_chain_next(n, &starts, &s->chain); /* the event may have begun other starts */
        if (s->is_late) {
            gl_chain_drop(&s->chain);
        }
    }
}

static void done(struct gl_node *n)
{
    gl_map_done(&own(n)->by_key);
}

const struct gl_node_part gl_starts_part = {
    .bytes = sizeof(struct starts), .init = init, .due = due, .on_time = on_time, .done = done};
