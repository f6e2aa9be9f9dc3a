#include "sim/sim_exec.h"

#include "base/check.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/bundle/message.h"
#include "node/workers_env.h"
#include "sim/sim_blobs.h"

enum {
    SLOW_MS = 10000, /* the longest delay of a slow message */
    LATE_MS = 12000, /* how late a dead node's last requests arrive */
    RECONNECT_MS = 50,
};

/* A request in flight: its command travels to the keeper, its answer back. */
struct sim_exec_op {
    struct gl_link link;
    struct sim_exec *x;
    struct gl_exec_req *req;
    struct sim_command *command; /* NULL: arrived or dropped */
    struct sim_call delivery;
    bool lose_answer;
    int status;
    enum gl_exec_state state;
    struct gl_exec_result result;
    struct gl_arena results;
    const struct gl_exec_info *infos;
    size_t infos_n;
};

enum note_type { NOTE_UP, NOTE_DOWN, NOTE_ENDED, NOTE_BEACON, NOTE_SAID };

struct note { /* a message from the keeper */
    struct gl_link link;
    struct sim_exec *x;
    enum note_type type;
    struct sim_call delivery;
    struct gl_arena text;
    struct gl_attempt_key key;
    uint64_t token;
    struct gl_exec_result result;
    gl_str epoch, line;
};

static gl_ms draw_delay(struct sim_exec *x)
{
    struct sim_world *w = x->world;
    if (sim_world_fault(w, &x->rng, w->options.exec_slow)) {
        return gl_rng_range(&x->rng, 0, SLOW_MS);
    }
    uint32_t most = w->options.exec_delay_ms;
    return most == 0 ? 0 : (gl_ms)gl_rng_below(&x->rng, (uint64_t)most + 1);
}

/* When a message sent now arrives: after everything sent before it. */
static gl_ms in_order(struct sim_exec *x, gl_ms *last)
{
    gl_ms due = x->world->now + draw_delay(x);
    *last = due < *last ? *last : due;
    return *last;
}

/* ---- messages from the keeper ---- */

static void note_free(struct note *n)
{
    sim_world_cancel(n->x->world, &n->delivery);
    gl_list_remove(&n->link);
    gl_arena_done(&n->text);
    gl_mem_free(n);
}

static void on_note(struct sim_call *call)
{
    struct note *n = GL_CONTAINER(call, struct note, delivery);
    const struct gl_exec_events *e = &n->x->events;
    switch (n->type) {
    case NOTE_UP:
        e->up(e->owner, n->epoch);
        break;
    case NOTE_DOWN:
        e->down(e->owner, "simulated: the connection broke");
        break;
    case NOTE_ENDED:
        e->ended(e->owner, &n->key, n->token, &n->result);
        break;
    case NOTE_BEACON:
        e->beacon(e->owner, &n->key, n->token);
        break;
    case NOTE_SAID:
        e->said(e->owner, &n->key, n->token, n->line);
        break;
    }
    note_free(n);
}

static struct note *note_new(struct sim_exec *x, enum note_type type)
{
    struct note *n = gl_mem_alloc(sizeof(*n));
    n->x = x;
    n->type = type;
    gl_list_init(&n->link);
    gl_list_push(&x->notes, &n->link);
    sim_call_init(&n->delivery, on_note, x->gate);
    return n;
}

static struct note *note_about(struct sim_exec *x, enum note_type type,
                               const struct sim_attempt *at)
{
    struct note *n = note_new(x, type);
    n->key.context = gl_str_dup(&n->text, at->context);
    n->key.job = gl_str_dup(&n->text, at->job);
    n->key.attempt = gl_str_dup(&n->text, at->attempt);
    n->token = at->token;
    n->result = at->result;
    n->result.output = gl_str_dup(&n->text, at->result.output);
    n->result.error = gl_str_dup(&n->text, at->result.error);
    return n;
}

void sim_exec_on_ended(struct sim_exec *x, const struct sim_attempt *at)
{
    struct sim_world *w = x->world;
    if (!x->connected) {
        return; /* reported when it connects again */
    }
    if (sim_world_fault(w, &x->rng, w->options.exec_silent)) {
        SIM_TRACE(w, EXEC, .job = at->job, .step = at->attempt, .what = "its end is not told");
        return; /* until the node asks, or connects again */
    }
    struct note *n = note_about(x, NOTE_ENDED, at);
    sim_world_at(w, &n->delivery, in_order(x, &x->last_delivery));
    if (sim_world_fault(w, &x->rng, w->options.exec_duplicate)) {
        struct note *again = note_about(x, NOTE_ENDED, at);
        sim_world_at(w, &again->delivery, w->now + gl_rng_range(&x->rng, 0, 2 * SLOW_MS));
    }
}

void sim_exec_on_beacon(struct sim_exec *x, const struct sim_attempt *at)
{
    if (x->connected) {
        struct note *n = note_about(x, NOTE_BEACON, at);
        sim_world_at(x->world, &n->delivery, in_order(x, &x->last_delivery));
    }
}

bool sim_exec_on_said(struct sim_exec *x, const struct sim_attempt *at, gl_str line)
{
    if (x->connected) {
        struct note *n = note_about(x, NOTE_SAID, at);
        n->line = gl_str_dup(&n->text, line);
        sim_world_at(x->world, &n->delivery, in_order(x, &x->last_delivery));
    }
    return x->connected;
}

/* ---- the connection ---- */

static void on_connect(struct sim_call *call)
{
    struct sim_exec *x = GL_CONTAINER(call, struct sim_exec, connect);
    GL_ASSERT(!x->connected);
    if (!x->keeper->up || !sim_keeper_welcome(x->keeper, x)) {
        return; /* sim_exec_on_keeper_up() continues from here, if at all */
    }
    x->connected = true;
    struct note *n = note_new(x, NOTE_UP);
    n->epoch = gl_str_dup(&n->text, gl_str_of(x->keeper->epoch));
    sim_world_at(x->world, &n->delivery, in_order(x, &x->last_delivery));
    struct sim_attempt *at;
    for (size_t i = 0; (at = gl_map_next(&x->keeper->attempts, &i)) != NULL;) {
        sim_keeper_tell(at);
        if (!at->running) {
            sim_exec_on_ended(x, at);
        }
    }
}

static void answer_with(struct sim_exec_op *op, int status)
{
    op->status = status;
    sim_world_at(op->x->world, &op->delivery, in_order(op->x, &op->x->last_delivery));
}

static void disconnect(struct sim_exec *x)
{
    if (!x->connected) {
        return;
    }
    x->connected = false;
    for (struct gl_link *l = x->ops.next; l != &x->ops; l = l->next) {
        struct sim_exec_op *op = GL_CONTAINER(l, struct sim_exec_op, link);
        if (op->command != NULL) {
            sim_command_free(op->command);
            op->command = NULL;
            answer_with(op, GL_E_UNAVAILABLE);
        }
    }
    struct note *n = note_new(x, NOTE_DOWN);
    sim_world_at(x->world, &n->delivery, in_order(x, &x->last_delivery));
}

void sim_exec_break(struct sim_exec *x, gl_ms away_ms)
{
    if (x->connected && !x->closing) {
        disconnect(x);
        sim_world_at(x->world, &x->connect, x->world->now + away_ms);
    }
}

void sim_exec_hang_up(struct sim_exec *x)
{
    disconnect(x);
}

void sim_exec_on_keeper_down(struct sim_exec *x)
{
    disconnect(x);
    sim_world_cancel(x->world, &x->connect);
}

void sim_exec_on_keeper_up(struct sim_exec *x)
{
    if (!x->closing) {
        sim_world_cancel(x->world, &x->connect);
        sim_world_at(x->world, &x->connect, x->world->now + RECONNECT_MS);
    }
}

/* ---- requests ---- */

static void op_free(struct sim_exec_op *op)
{
    sim_world_cancel(op->x->world, &op->delivery);
    gl_list_remove(&op->link);
    gl_arena_done(&op->results);
    gl_mem_free(op);
}

static void maybe_closed(struct sim_exec *x)
{
    if (x->closing && gl_list_empty(&x->ops) && !sim_call_waits(&x->closed_call)) {
        sim_world_at(x->world, &x->closed_call, x->world->now);
    }
}

static void on_delivery(struct sim_call *call)
{
    struct sim_exec_op *op = GL_CONTAINER(call, struct sim_exec_op, delivery);
    struct sim_exec *x = op->x;
    struct gl_exec_req *req = op->req;
    req->status = op->status;
    if (op->status != 0) {
        (void)gl_why(&req->why, op->status, "simulated keeper: %s", gl_err_text(op->status));
    }
    req->state = op->state;
    req->result = op->result;
    req->infos = op->infos;
    req->infos_n = op->infos_n;
    req->done(req);
    op_free(op);
    maybe_closed(x);
}

static void copy_list(struct sim_exec_op *op)
{
    const struct gl_map *attempts = &op->x->keeper->attempts;
    struct gl_arena *a = &op->results;
    struct gl_exec_info *infos = GL_NEW_ARRAY(a, struct gl_exec_info, gl_map_count(attempts) + 1);
    struct sim_attempt *at;
    for (size_t i = 0; (at = gl_map_next(attempts, &i)) != NULL;) {
        struct gl_exec_info *info = &infos[op->infos_n++];
        info->key.context = gl_str_dup(a, at->context);
        info->key.job = gl_str_dup(a, at->job);
        info->key.attempt = gl_str_dup(a, at->attempt);
        info->token = at->token;
        info->state = at->running ? GL_EXEC_RUNNING : GL_EXEC_ENDED;
    }
    op->infos = infos;
}

void sim_exec_on_answer(struct sim_exec_op *op, const struct sim_answer *answer)
{
    bool is_list = op->command->type == SIM_COMMAND_LIST;
    op->command = NULL; /* the keeper frees it */
    if (op->lose_answer) {
        answer_with(op, GL_E_UNAVAILABLE);
        return;
    }
    op->state = answer->state;
    op->result = answer->result;
    op->result.output = gl_str_dup(&op->results, answer->result.output);
    op->result.error = gl_str_dup(&op->results, answer->result.error);
    if (is_list) {
        copy_list(op);
    }
    answer_with(op, answer->status);
}

/* Sends it, or loses it. Takes the command. */
static void op_send(struct sim_exec *x, struct gl_exec_req *req, struct sim_command *cmd)
{
    struct sim_world *w = x->world;
    GL_ASSERT(req->done != NULL);
    GL_ASSERT(!x->closing);
    struct sim_exec_op *op = gl_mem_alloc(sizeof(*op));
    op->x = x;
    op->req = req;
    gl_list_init(&op->link);
    gl_list_push(&x->ops, &op->link);
    sim_call_init(&op->delivery, on_delivery, x->gate);
    bool dropped = sim_world_fault(w, &x->rng, w->options.exec_dropped);
    op->lose_answer = sim_world_fault(w, &x->rng, w->options.exec_unavailable);
    if (!x->connected || dropped) {
        sim_command_free(cmd);
        answer_with(op, GL_E_UNAVAILABLE);
        return;
    }
    op->command = cmd;
    cmd->op = op;
    sim_keeper_send(x->keeper, cmd, in_order(x, &x->last_arrival));
}

static struct sim_exec *heard(struct gl_exec *port)
{
    struct sim_exec *x = GL_CONTAINER(port, struct sim_exec, port);
    return x->fuse != NULL && sim_fuse_call(x->fuse) ? NULL : x;
}

static struct sim_command *command(struct sim_exec *x, enum sim_command_type type,
                                   const struct gl_attempt_key *key, gl_str epoch)
{
    struct sim_command *cmd = sim_keeper_command(x->keeper, type, key, epoch, gl_str_of(x->name));
    cmd->incarnation = x->incarnation;
    cmd->offset = x->offset;
    cmd->session_until = x->session_until;
    return cmd;
}

static void take_raw(const struct gl_json *json, const char *name, struct gl_buf *out)
{
    gl_jnode n = gl_json_get(json, gl_json_root(json), name);
    if (n != NULL && !gl_json_is(n, GL_JSON_NULL)) {
        gl_buf_str(out, gl_json_raw(json, n));
    }
}

static gl_str file_text(const struct sim_exec *x, const struct gl_exec_start *start,
                        const char *name)
{
    for (size_t i = 0; i < start->files_n; i++) {
        const struct gl_exec_file *f = &start->files[i];
        gl_str text = f->text;
        if (!gl_str_is(f->name, name)) {
            continue;
        }
        if (f->blob.n > 0 &&
            (x->keeper->folder == NULL || !sim_blobs_find(x->keeper->folder, f->blob, &text))) {
            sim_world_fail(x->world, "given: %.*s starts without its file %s",
                           GL_STR_ARG(start->key.attempt), name);
        }
        return text;
    }
    return (gl_str){0};
}

/* A large body is not in the message its worker reads, but in two separate files. */
static void take_body(const struct sim_exec *x, struct sim_command *cmd,
                      const struct gl_exec_start *start, struct gl_arena *a)
{
    struct gl_message m = {0};
    struct gl_body_ref ref;
    if (gl_message_read(gl_buf_view(&cmd->message), a, &m, NULL) != 0 || m.body.n > 0 ||
        !gl_message_body_ref(m.artifacts, a, &ref)) {
        return;
    }
    m.body = file_text(x, start, GL_WORKER_INPUT);
    if (gl_message_is_plain(&m) && !gl_str_eq(m.body, file_text(x, start, GL_WORKER_BODY))) {
        sim_world_fail(x->world, "given: %.*s of job %.*s was given two bodies that differ",
                       GL_STR_ARG(cmd->attempt), GL_STR_ARG(cmd->job));
    }
    struct gl_buf whole = {0};
    gl_message_write(&m, &whole);
    gl_buf_done(&cmd->message);
    cmd->message = whole;
}

/* For an agent's start: the input of its worker. */
static void take_turn(const struct sim_exec *x, struct sim_command *cmd,
                      const struct gl_exec_start *start)
{
    struct gl_arena a = {0};
    struct gl_json json;
    cmd->is_module = gl_str_is(start->driver, "module");
    cmd->is_unit = start->is_worker || cmd->is_module;
    if (cmd->is_module && gl_json_parse(&json, start->input, SIZE_MAX, &a, NULL) == 0) {
        take_raw(&json, "message", &cmd->message);
        take_raw(&json, "state", &cmd->state);
    }
    if (start->is_worker) {
        gl_buf_str(&cmd->message, file_text(x, start, GL_WORKER_MESSAGE));
        if (gl_json_parse(&json, file_text(x, start, GL_WORKER_CONTEXT), SIZE_MAX, &a, NULL) == 0) {
            take_raw(&json, "agent_state", &cmd->state);
        }
        take_body(x, cmd, start, &a);
    }
    gl_arena_done(&a);
}

static void do_start(struct gl_exec *port, struct gl_exec_req *req,
                     const struct gl_exec_start *start)
{
    struct sim_exec *x = heard(port);
    if (x == NULL) {
        return;
    }
    struct sim_command *cmd = command(x, SIM_COMMAND_START, &start->key, start->epoch);
    cmd->token = start->token;
    cmd->start_by = start->start_by;
    cmd->timeout_ms = start->timeout_ms;
    cmd->grace_ms = start->grace_ms;
    cmd->beacon_ms = start->beacon_ms;
    cmd->needs_session = start->needs_session;
    cmd->noop = gl_str_is(start->driver, "noop");
    take_turn(x, cmd, start);
    for (size_t i = 0; i < start->argv_n + start->env_n; i++) {
        gl_buf_str(&cmd->given, i < start->argv_n ? start->argv[i] : start->env[i - start->argv_n]);
        gl_buf_char(&cmd->given, '\n');
    }
    op_send(x, req, cmd);
}

static void do_attach(struct gl_exec *port, struct gl_exec_req *req,
                      const struct gl_attempt_key *key, uint64_t token, gl_str epoch)
{
    struct sim_exec *x = heard(port);
    if (x != NULL) {
        struct sim_command *cmd = command(x, SIM_COMMAND_ATTACH, key, epoch);
        cmd->token = token;
        op_send(x, req, cmd);
    }
}

static void do_stop(struct gl_exec *port, struct gl_exec_req *req, const struct gl_attempt_key *key,
                    uint64_t token, gl_ms grace_ms)
{
    struct sim_exec *x = heard(port);
    if (x != NULL) {
        struct sim_command *cmd = command(x, SIM_COMMAND_STOP, key, (gl_str){0});
        cmd->token = token;
        cmd->grace_ms = grace_ms;
        op_send(x, req, cmd);
    }
}

static void do_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token)
{
    struct sim_exec *x = heard(port);
    if (x == NULL || !x->connected ||
        sim_world_fault(x->world, &x->rng, x->world->options.exec_dropped)) {
        return;
    }
    struct sim_command *cmd = command(x, SIM_COMMAND_ACK, key, (gl_str){0});
    cmd->token = token;
    sim_keeper_send(x->keeper, cmd, in_order(x, &x->last_arrival));
}

static void do_list(struct gl_exec *port, struct gl_exec_req *req)
{
    struct sim_exec *x = heard(port);
    if (x != NULL) {
        struct gl_attempt_key none = {0};
        op_send(x, req, command(x, SIM_COMMAND_LIST, &none, (gl_str){0}));
    }
}

/* Takes effect at once: a delay would only end attempts sooner. */
static void do_session(struct gl_exec *port, gl_ms until)
{
    struct sim_exec *x = GL_CONTAINER(port, struct sim_exec, port);
    x->session_until = until == INT64_MAX ? until : until - x->offset;
}

/* ---- life cycle ---- */

static void forget_notes(struct sim_exec *x)
{
    struct gl_link *l;
    while ((l = gl_list_first(&x->notes)) != NULL) {
        note_free(GL_CONTAINER(l, struct note, link));
    }
}

static void on_closed(struct sim_call *call)
{
    struct sim_exec *x = GL_CONTAINER(call, struct sim_exec, closed_call);
    forget_notes(x);
    sim_world_cancel(x->world, &x->connect);
    gl_list_remove(&x->link);
    x->closed(x->closed_owner);
}

static void do_close(struct gl_exec *port, void (*closed)(void *owner), void *owner)
{
    struct sim_exec *x = GL_CONTAINER(port, struct sim_exec, port);
    GL_ASSERT(!x->closing);
    x->closing = true;
    x->closed = closed;
    x->closed_owner = owner;
    maybe_closed(x);
}

static const struct gl_exec_ops ops = {
    .name = "simulated",
    .start = do_start,
    .attach = do_attach,
    .stop = do_stop,
    .ack = do_ack,
    .list = do_list,
    .session = do_session,
    .close = do_close,
};

void sim_exec_open(struct sim_exec *x, struct sim_world *w, struct sim_keeper *k)
{
    GL_ASSERT(x->name != NULL);
    x->port.ops = &ops;
    x->world = w;
    x->keeper = k;
    gl_rng_fork(&w->rng, &x->rng, x->name);
    gl_list_init(&x->ops);
    gl_list_init(&x->notes);
    gl_list_init(&x->link);
    gl_list_push(&k->clients, &x->link);
    sim_call_init(&x->connect, on_connect, NULL);
    sim_call_init(&x->closed_call, on_closed, x->gate);
    sim_world_at(w, &x->connect, w->now);
}

void sim_exec_crash(struct sim_exec *x)
{
    struct sim_world *w = x->world;
    struct gl_link *l;
    while ((l = gl_list_first(&x->ops)) != NULL) {
        struct sim_exec_op *op = GL_CONTAINER(l, struct sim_exec_op, link);
        struct sim_command *last = op->command;
        if (last != NULL) {
            last->op = NULL;
            if (gl_rng_chance(&x->rng, 500000)) {
                sim_command_free(last);
            } else if (sim_world_fault(w, &x->rng, 500000)) {
                sim_world_cancel(w, &last->arrival);
                sim_world_at(w, &last->arrival, w->now + gl_rng_range(&x->rng, 0, LATE_MS));
            }
        }
        op_free(op);
    }
    forget_notes(x);
    sim_world_cancel(w, &x->connect);
    sim_world_cancel(w, &x->closed_call);
    gl_list_remove(&x->link);
}
