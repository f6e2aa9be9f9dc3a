/* starts.c - attempts between the core and the executor.
 *
 * A start needs its parents' outputs, which are read from the store first. If the attempt is to be
 * stopped, asked about or has been acknowledged meanwhile, it is given up before it reaches the
 * executor: a start that leaves after the acknowledgement of the same attempt would run it a second
 * time. */
#include "node/node_state.h"

#include "model/job.h"

enum { PARENTS_PAGE = 256 };

struct start {
    struct gl_link link; /* in node->starts */
    struct gl_node *node;
    struct gl_arena arena;
    struct gl_spec *spec;
    const struct gl_step_spec *step;
    gl_str key; /* "job/attempt/token", in starts_by_key while it is being prepared */
    gl_str run_id, idempotency_key;
    uint32_t attempt_number;
    uint64_t start_number;
    gl_ms deadline_at;
    struct gl_exec_start x;
    struct gl_store_req store_req;
    struct gl_exec_req exec_req;
    struct gl_key *keys;
    uint32_t parents_done;
    struct gl_buf input;
    struct gl_jw writer;
    bool is_given_up;
};

static void start_free(struct start *s)
{
    if (s->key.n > 0) {
        (void)gl_map_remove(&s->node->starts_by_key, s->key); /* it is there while it has a key */
    }
    gl_list_remove(&s->link);
    gl_spec_unref(s->spec);
    gl_buf_done(&s->input);
    gl_arena_done(&s->arena);
    gl_mem_free(s);
}

static void feed_started(struct start *s, int code, const char *why)
{
    struct gl_event ev = {.type = GL_EV_STARTED,
                          .context = s->x.key.context,
                          .job = s->x.key.job,
                          .attempt = s->x.key.attempt,
                          .token = s->x.token,
                          .number = s->start_number,
                          .code = code,
                          .why = gl_str_of(why)};

    gl_node_feed(s->node, &ev);
}

/* ---- environment and input ---- */

static void add_env(struct start *s, const char *name, gl_str value)
{
    gl_str *env = (gl_str *)s->x.env;

    env[s->x.env_n++] = gl_str_fmt(&s->arena, "%s=%.*s", name, GL_STR_ARG(value));
}

static void make_env(struct start *s)
{
    char when[GL_WHEN_BYTES];
    gl_str *env = GL_NEW_ARRAY(&s->arena, gl_str, s->step->env.n + 8);

    s->x.env = env;
    for (size_t i = 0; i < s->step->env.n; i++) {
        env[s->x.env_n++] = s->step->env.items[i];
    }
    add_env(s, "GLIA_JOB_ID", s->x.key.job);
    add_env(s, "GLIA_RUN_ID", s->run_id);
    add_env(s, "GLIA_STEP_ID", s->step->id);
    add_env(s, "GLIA_ATTEMPT", gl_str_fmt(&s->arena, "%u", s->attempt_number));
    add_env(s, "GLIA_ATTEMPT_ID", s->x.key.attempt);
    add_env(s, "GLIA_IDEMPOTENCY_KEY", s->idempotency_key);
    if (s->deadline_at > 0) {
        add_env(s, "GLIA_DEADLINE_AT", gl_when_format(s->deadline_at, when));
    }
}

static void begin_input(struct start *s)
{
    struct gl_jw *w = &s->writer;

    gl_jw_init(w, &s->input);
    gl_jw_object(w);
    gl_jw_key(w, "job_id");
    gl_jw_str(w, s->x.key.job);
    gl_jw_key(w, "run_id");
    gl_jw_str(w, s->run_id);
    gl_jw_key(w, "step_id");
    gl_jw_str(w, s->step->id);
    gl_jw_key(w, "attempt");
    gl_jw_u64(w, s->attempt_number);
    gl_jw_key(w, "steps");
    gl_jw_object(w);
}

static void write_parent(struct start *s, const struct gl_record *r)
{
    static const char *const copied[] = {"status", "terminal_outcome", "output"};
    struct gl_json j;
    struct gl_jw *w = &s->writer;
    gl_str id = r->id;

    (void)gl_str_cut(r->id, '/', &id); /* "job/step": the step remains */
    gl_jw_key_str(w, id);
    if (r->rev == 0 || gl_json_parse(&j, r->value, GL_RECORD_BYTES_MAX, &s->arena, NULL) != 0) {
        gl_jw_null(w);
        return;
    }
    gl_jw_object(w);
    for (size_t i = 0; i < GL_COUNT(copied); i++) {
        gl_jnode v = gl_json_get(&j, gl_json_root(&j), copied[i]);
        gl_str raw = v != NULL ? gl_json_raw(&j, v) : GL_S("null");

        gl_jw_key(w, copied[i]);
        if (s->input.n + raw.n > GL_INPUT_BYTES_MAX - (64 << 10)) {
            gl_jw_null(w);
            gl_jw_key(w, "omitted");
            gl_jw_c(w, "the outputs of the steps it needs are larger than the input may be");
        } else {
            gl_jw_raw(w, raw);
        }
    }
    gl_jw_end(w);
}

/* ---- on the way ---- */

static void on_started(struct gl_exec_req *req)
{
    struct start *s = req->owner;
    struct gl_node *n = s->node;

    n->outstanding--;
    feed_started(s, req->status, req->status != 0 ? req->why.text : "");
    start_free(s);
    gl_node_rearm(n);
}

static void hand_over(struct start *s)
{
    struct gl_node *n = s->node;

    if (s->input.n > 0) {
        gl_jw_end(&s->writer);
        gl_jw_end(&s->writer);
    }
    s->x.input = gl_buf_view(&s->input);
    (void)gl_map_remove(&n->starts_by_key, s->key); /* from here on the executor keeps the order */
    s->key = (gl_str){0};
    s->exec_req = (struct gl_exec_req){.done = on_started, .owner = s};
    n->outstanding++;
    n->ports.exec->ops->start(n->ports.exec, &s->exec_req, &s->x);
}

static void read_parents(struct start *s);

static void on_parents(struct gl_store_req *req)
{
    struct start *s = req->owner;
    struct gl_node *n = s->node;

    n->outstanding--;
    if (s->is_given_up || req->status != 0) {
        feed_started(s, GL_E_UNAVAILABLE, req->status != 0 ? req->why.text : "given up");
        start_free(s);
        gl_node_rearm(n);
        return;
    }
    for (size_t i = 0; i < req->records_n; i++) {
        write_parent(s, &req->records[i]);
    }
    s->parents_done += (uint32_t)req->records_n;
    read_parents(s);
    gl_node_rearm(n);
}

static void read_parents(struct start *s)
{
    struct gl_store *store = s->node->ports.store;
    uint32_t left = s->step->needs_n - s->parents_done;
    uint32_t page = left < PARENTS_PAGE ? left : PARENTS_PAGE;

    if (left == 0) {
        hand_over(s);
        return;
    }
    for (uint32_t i = 0; i < page; i++) {
        gl_str parent = gl_flow_step(s->spec->flow, s->step->needs[s->parents_done + i])->id;

        s->keys[i] = (struct gl_key){
            .kind = GL_S("step"),
            .id = gl_str_fmt(&s->arena, "%.*s/%.*s", GL_STR_ARG(s->x.key.job), GL_STR_ARG(parent))};
    }
    s->store_req = (struct gl_store_req){.done = on_parents, .owner = s};
    s->node->outstanding++;
    store->ops->get(store, &s->store_req, s->x.key.context, s->keys, page);
}

static gl_str key_of(struct gl_arena *a, const struct gl_effect *e)
{
    return gl_str_fmt(a, "%.*s/%.*s/%llu", GL_STR_ARG(e->job), GL_STR_ARG(e->attempt),
                      (unsigned long long)e->token);
}

static struct gl_attempt_key copy_key(struct gl_arena *a, const struct gl_effect *e)
{
    return (struct gl_attempt_key){.context = gl_str_dup(a, e->context),
                                   .job = gl_str_dup(a, e->job),
                                   .attempt = gl_str_dup(a, e->attempt)};
}

static struct start *start_new(struct gl_node *n, const struct gl_effect *e)
{
    struct start *s = gl_mem_alloc(sizeof(*s));

    s->node = n;
    s->spec = e->spec; /* the effect's reference passes to us */
    s->step = gl_flow_step(e->spec->flow, e->step_number);
    s->run_id = gl_str_dup(&s->arena, e->run_id);
    s->idempotency_key = gl_str_dup(&s->arena, e->idempotency_key);
    s->attempt_number = e->attempt_number;
    s->start_number = e->start_number;
    s->deadline_at = e->deadline_at;
    s->x = (struct gl_exec_start){
        .key = copy_key(&s->arena, e),
        .token = e->token,
        .epoch = gl_str_dup(&s->arena, e->epoch),
        .start_by = e->start_by,
        .driver = s->step->driver,
        .argv = s->step->argv.items,
        .argv_n = s->step->argv.n,
        .cwd = s->step->cwd,
        .timeout_ms = s->step->timeout_ms,
        .grace_ms = s->step->grace_ms,
        .beacon_ms = s->step->heartbeat_ms / 3,
    };
    gl_list_push(&n->starts, &s->link);
    return s;
}

static void take_files(struct start *s)
{
    const struct gl_flow_file *from = s->step->files.items;
    struct gl_exec_file *to = GL_NEW_ARRAY(&s->arena, struct gl_exec_file, s->step->files.n);

    for (size_t i = 0; i < s->step->files.n; i++) {
        to[i] = (struct gl_exec_file){
            .name = from[i].name, .blob = from[i].blob, .executable = from[i].executable};
    }
    s->x.files = to;
    s->x.files_n = s->step->files.n;
}

void gl_starts_begin(struct gl_node *n, const struct gl_effect *e)
{
    struct start *s = start_new(n, e);
    gl_str key = key_of(&s->arena, e);
    struct start *same = gl_map_find(&n->starts_by_key, key);

    if (same != NULL) { /* being prepared already: that one goes, in the name of this one */
        same->start_number = e->start_number;
        same->is_given_up = false;
        start_free(s);
        return;
    }
    s->key = key;
    gl_map_add(&n->starts_by_key, s->key, s);
    if (gl_str_is(s->step->driver, "noop")) {
        hand_over(s);
        return;
    }
    make_env(s);
    take_files(s);
    begin_input(s);
    s->keys = GL_NEW_ARRAY(&s->arena, struct gl_key, PARENTS_PAGE);
    read_parents(s);
}

static void give_up(struct gl_node *n, const struct gl_effect *e)
{
    struct gl_arena scratch = {0};
    struct start *s = gl_map_find(&n->starts_by_key, key_of(&scratch, e));

    gl_arena_done(&scratch);
    if (s != NULL) {
        GL_MARK(n->config.trace, "starts.given_up");
        s->is_given_up = true;
    }
}

/* ---- the other calls ---- */

struct probe { /* an attach or a stop under way */
    struct gl_link link;
    struct gl_node *node;
    struct gl_arena arena;
    struct gl_exec_req req;
    struct gl_attempt_key key;
    uint64_t token;
    gl_str epoch;
};

static void probe_free(struct probe *p)
{
    gl_list_remove(&p->link);
    gl_arena_done(&p->arena);
    gl_mem_free(p);
}

static struct probe *probe_new(struct gl_node *n, const struct gl_effect *e, gl_exec_done *done)
{
    struct probe *p = gl_mem_alloc(sizeof(*p));

    p->node = n;
    p->key = copy_key(&p->arena, e);
    p->token = e->token;
    p->epoch = gl_str_dup(&p->arena, e->epoch);
    p->req = (struct gl_exec_req){.done = done, .owner = p};
    gl_list_push(&n->probes, &p->link);
    n->outstanding++;
    return p;
}

static void put_result(struct gl_event *ev, const struct gl_exec_result *r)
{
    ev->end = (uint8_t)r->end;
    ev->exit_code = r->exit_code;
    ev->signal = r->signal;
    ev->started_at = r->started_at;
    ev->ended_at = r->ended_at;
    ev->output = r->output;
    ev->error = r->error;
}

static void on_attached(struct gl_exec_req *req)
{
    struct probe *p = req->owner;
    struct gl_node *n = p->node;
    struct gl_event ev = {.type = GL_EV_ATTACHED,
                          .context = p->key.context,
                          .job = p->key.job,
                          .attempt = p->key.attempt,
                          .token = p->token,
                          .code = req->status,
                          .state = (uint8_t)req->state};

    n->outstanding--;
    if (req->status == 0 && req->state == GL_EXEC_ENDED) {
        put_result(&ev, &req->result);
    }
    gl_node_feed(n, &ev);
    probe_free(p);
    gl_node_rearm(n);
}

static void on_stopped(struct gl_exec_req *req)
{
    struct probe *p = req->owner;
    struct gl_node *n = p->node;

    n->outstanding--;
    probe_free(p); /* whether it could be delivered shows when the attempt ends, or when it is asked
                      for again */
    gl_node_rearm(n);
}

/* A start of the same attempt that has not left yet would overtake nothing but the truth: "never"
 * would be answered, and then it would start. */
void gl_starts_attach(struct gl_node *n, const struct gl_effect *e)
{
    struct probe *p = probe_new(n, e, on_attached);

    give_up(n, e);
    n->ports.exec->ops->attach(n->ports.exec, &p->req, &p->key, p->token, p->epoch);
}

void gl_starts_stop(struct gl_node *n, const struct gl_effect *e)
{
    struct probe *p = probe_new(n, e, on_stopped);

    give_up(n, e);
    n->ports.exec->ops->stop(n->ports.exec, &p->req, &p->key, p->token);
}

void gl_starts_ack(struct gl_node *n, const struct gl_effect *e)
{
    struct gl_attempt_key key = {.context = e->context, .job = e->job, .attempt = e->attempt};

    give_up(n, e);
    n->ports.exec->ops->ack(n->ports.exec, &key, e->token);
}

static void on_list(struct gl_exec_req *req)
{
    struct gl_node *n = req->owner;
    struct gl_arena scratch = {0};
    struct gl_event_info *infos = GL_NEW_ARRAY(&scratch, struct gl_event_info, req->infos_n + 1);
    struct gl_event ev = {.type = GL_EV_LISTED, .code = req->status};

    n->outstanding--;
    n->list_busy = false;
    for (size_t i = 0; i < req->infos_n && req->status == 0; i++) {
        const struct gl_exec_info *x = &req->infos[i];

        infos[i] = (struct gl_event_info){.context = x->key.context,
                                          .job = x->key.job,
                                          .attempt = x->key.attempt,
                                          .token = x->token,
                                          .state = (uint8_t)x->state};
        ev.infos.n++;
    }
    ev.infos.items = infos;
    gl_node_feed(n, &ev);
    gl_arena_done(&scratch);
    gl_node_rearm(n);
}

void gl_starts_list(struct gl_node *n)
{
    GL_ASSERT(!n->list_busy);
    n->list_busy = true;
    n->outstanding++;
    n->list_req = (struct gl_exec_req){.done = on_list, .owner = n};
    n->ports.exec->ops->list(n->ports.exec, &n->list_req);
}

void gl_starts_free_all(struct gl_node *n)
{
    for (struct gl_link *l; (l = gl_list_first(&n->starts)) != NULL;) {
        start_free(GL_CONTAINER(l, struct start, link));
    }
    for (struct gl_link *l; (l = gl_list_first(&n->probes)) != NULL;) {
        probe_free(GL_CONTAINER(l, struct probe, link));
    }
}

/* ---- what the executor tells by itself ---- */

static void on_up(void *owner, gl_str epoch)
{
    struct gl_node *n = owner;
    struct gl_event ev = {.type = GL_EV_EXEC_UP, .epoch = epoch};

    n->exec_up = true;
    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

static void on_down(void *owner, const char *why)
{
    struct gl_node *n = owner;
    struct gl_event ev = {.type = GL_EV_EXEC_DOWN, .why = gl_str_of(why)};

    n->exec_up = false;
    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct gl_node *n = owner;
    struct gl_event ev = {.type = GL_EV_ENDED,
                          .context = key->context,
                          .job = key->job,
                          .attempt = key->attempt,
                          .token = token};

    put_result(&ev, result);
    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

static void on_beacon(void *owner, const struct gl_attempt_key *key, uint64_t token)
{
    struct gl_node *n = owner;
    struct gl_event ev = {.type = GL_EV_BEACON,
                          .context = key->context,
                          .job = key->job,
                          .attempt = key->attempt,
                          .token = token};

    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

struct gl_exec_events gl_starts_events(struct gl_node *n)
{
    return (struct gl_exec_events){
        .owner = n, .up = on_up, .down = on_down, .ended = on_ended, .beacon = on_beacon};
}
