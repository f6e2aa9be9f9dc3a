/* postgres.c - opening, closing, and the turn, in which all progress is made.
 *
 * Callbacks only change state and schedule a turn (gl_postgres_schedule_turn()). The turn then
 * completes finished requests, forms groups, and sends. So no callback of the caller runs while a
 * list or a result is being processed.
 *
 * A tick every 50 ms, only while something is pending, handles timeouts and reconnects. */
#include "store/postgres/postgres.h"

#include <event2/event.h>

#include "base/check.h"
#include "store/postgres/postgres_parts.h"

enum { TICK_US = 50000, LOST_RETRIES_MAX = 2 };

void gl_postgres_schedule_turn(struct gl_postgres *s)
{
    event_active(s->turn, EV_TIMEOUT, 0);
}

/* ---- requests ---- */

/* Commits and resolves complete in call order, by postgres_order.c; everything else at once. */
void gl_postgres_finish(struct gl_postgres_op *op)
{
    op->is_finished = true;
    if (op->call.type != GL_CALL_COMMIT && op->call.type != GL_CALL_RESOLVE) {
        gl_list_push(&op->store->finished, &op->query.link);
    }
    gl_postgres_schedule_turn(op->store);
}

void gl_postgres_fail(struct gl_postgres_op *op, int status, const struct gl_why *why)
{
    op->call.req->status = status;
    op->call.req->why = *why;
    op->call.req->why.code = status;
    gl_postgres_finish(op);
}

void gl_postgres_push_read(struct gl_postgres_op *op)
{
    int role = op->call.type == GL_CALL_MEASURE ? GL_POSTGRES_CONTROL : GL_POSTGRES_READER;
    gl_postgres_conn_push(&op->store->conns[role], &op->query);
}

static bool send_op(struct gl_postgres_conn *c, struct gl_postgres_call *call)
{
    struct gl_postgres_op *op = GL_CONTAINER(call, struct gl_postgres_op, query);
    gl_postgres_args_reset(&c->store->args);
    return op->context != NULL ? gl_postgres_read_send(c, op) : gl_postgres_session_send(c, op);
}

static bool on_result(struct gl_postgres_conn *c, struct gl_postgres_call *call, PGresult *r)
{
    struct gl_postgres_op *op = GL_CONTAINER(call, struct gl_postgres_op, query);
    c->store->lib.PQclear(op->result);
    op->result = r;
    return true;
}

/* Can the op be repeated? After a lost connection, whatever changes nothing or may be done twice.
 * Opening a session is neither: its first copy may have succeeded. After an error, what the server
 * rolled back because of another transaction. */
static bool may_repeat(const struct gl_postgres_op *op, const struct gl_postgres_outcome *o)
{
    return o->end == GL_POSTGRES_END_LOST
               ? op->call.type != GL_CALL_SESSION_OPEN
               : o->end == GL_POSTGRES_END_ERROR && gl_postgres_error_is_retried(o->state);
}

static void on_end(struct gl_postgres_conn *c, struct gl_postgres_call *call,
                   const struct gl_postgres_outcome *o)
{
    struct gl_postgres_op *op = GL_CONTAINER(call, struct gl_postgres_op, query);
    if (o->end == GL_POSTGRES_END_OK) {
        gl_postgres_finish(op);
        return;
    }
    c->store->lib.PQclear(op->result);
    op->result = NULL;
    if (may_repeat(op, o) && op->retries_n++ < LOST_RETRIES_MAX &&
        call->until > gl_calls_now(&c->store->calls)) {
        gl_postgres_conn_push(c, call);
        return;
    }
    gl_postgres_fail(op, o->status, &o->why);
}

const struct gl_postgres_call_type gl_postgres_op_call = {
    .send = send_op, .result = on_result, .end = on_end};

/* The result is cleared after `done`: texts in the request point into it. */
static void complete(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;
    PGresult *result = op->result;
    if (op->call.req->status == 0 && op->call.type != GL_CALL_COMMIT) {
        if (op->context != NULL) {
            gl_postgres_read_fill(op);
        } else {
            gl_postgres_session_fill(op);
        }
    }
    gl_calls_complete(&s->calls, &op->call);
    s->lib.PQclear(result);
    gl_arena_reset(&s->results);
}

/* ---- calls ---- */

/* One protocol message holds a whole batch parameter, and messages must stay below 1 GB. */
enum { COMMIT_BYTES_MAX = 512 << 20 };

/* Sets the status if the read is invalid. A context is looked up before its first read. */
static void begin_read(struct gl_postgres_op *op)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    struct gl_sql_args args;
    struct gl_store_req *req = op->call.req;
    req->status = gl_sql_parameters(&op->call, &scratch, &args, &req->why);
    if (req->status < 0) {
        return;
    }
    op->context = gl_postgres_context_of(op->store, op->call.context);
    op->query.slow = op->call.type == GL_CALL_MEASURE || op->call.type == GL_CALL_EXPORT;
    if (op->context->state == GL_POSTGRES_CONTEXT_READY) {
        gl_postgres_push_read(op);
        return;
    }
    gl_list_push(&op->context->reads, &op->query.link);
    gl_postgres_context_ask(op->context, false);
}

static void begin_known(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;
    struct gl_store_req *req = op->call.req;
    switch (op->call.type) {
    case GL_CALL_COMMIT:
        req->status = gl_call_check_sizes(op->call.tx, COMMIT_BYTES_MAX, &req->why);
        if (req->status == 0) {
            op->context = gl_postgres_context_of(s, op->call.context);
            gl_postgres_order_add(op);
        }
        return;
    case GL_CALL_RESOLVE:
        gl_postgres_schedule_turn(s); /* needs no context: outcomes are kept per store. Sent in call
                                         order (postgres_order.c) */
        return;
    case GL_CALL_GET:
    case GL_CALL_RANGE:
    case GL_CALL_LIST:
    case GL_CALL_LOG_READ:
    case GL_CALL_EXPORT:
    case GL_CALL_MEASURE:
        begin_read(op);
        return;
    default:
        gl_postgres_conn_push(&s->conns[GL_POSTGRES_CONTROL], &op->query);
    }
}

static void begin(struct gl_calls *calls, struct gl_call *call)
{
    struct gl_postgres *s = GL_CONTAINER(calls, struct gl_postgres, calls);
    struct gl_postgres_op *op = GL_CONTAINER(call, struct gl_postgres_op, call);
    op->store = s;
    op->query.type = &gl_postgres_op_call;
    op->query.until = gl_calls_now(calls) + s->url.timeout_ms;
    gl_list_init(&op->query.link);
    gl_list_init(&op->order);
    gl_list_init(&op->queue);
    if (call->type == GL_CALL_COMMIT || call->type == GL_CALL_RESOLVE) {
        gl_list_push(&s->order, &op->order);
    }
    if (!gl_call_is_refused(calls, call)) {
        begin_known(op);
    }
    if (call->req->status < 0) {
        gl_postgres_finish(op);
    }
}

static void close_store(struct gl_calls *calls)
{
    gl_postgres_schedule_turn(GL_CONTAINER(calls, struct gl_postgres, calls));
}

/* ---- turns ---- */

static void free_store(struct gl_calls *calls)
{
    struct gl_postgres *s = GL_CONTAINER(calls, struct gl_postgres, calls);
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_done(&s->conns[i]);
    }
    gl_postgres_contexts_done(s);
    gl_postgres_notify_done(s);
    gl_postgres_order_done(s);
    gl_postgres_args_done(&s->args);
    event_free(s->turn);
    event_free(s->tick);
    event_free(s->notify_timer);
    gl_buf_done(&s->text);
    gl_buf_done(&s->identity);
    gl_calls_done(calls);
    gl_arena_done(&s->results);
    gl_arena_done(&s->arena);
    gl_postgres_lib_free(&s->lib);
    gl_mem_free(s);
}

/* Work begins when wake-ups can be received, so that none is missed. If the listener cannot
 * connect, work begins without it: wake-ups are only an optimization. */
static void open_for_work(struct gl_postgres *s)
{
    const struct gl_postgres_conn *listener = &s->conns[GL_POSTGRES_LISTENER];
    s->is_open =
        s->is_open ||
        (!s->check_only && s->conns[GL_POSTGRES_CONTROL].was_ready &&
         (s->calls.events.woken == NULL || listener->was_ready || listener->why.text[0] != '\0'));
}

/* While the server is refused, waiting requests fail at once with the reason. */
static void reject_all(struct gl_postgres *s)
{
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_fail_waiting(&s->conns[i], s->rejection, &s->rejection_why);
    }
    gl_postgres_lanes_fail(s, NULL, s->rejection, &s->rejection_why);
}

/* Does anything need the tick: a pending request, or a connection that is not ready? */
static bool is_waiting(const struct gl_postgres *s)
{
    bool any = s->calls.pending_n > 0 || s->notify_sent;
    for (size_t i = 0; i < s->conns_n; i++) {
        any = any || s->conns[i].state != GL_POSTGRES_READY;
    }
    return any;
}

static void on_turn(evutil_socket_t fd, short what, void *store)
{
    struct gl_postgres *s = store;
    struct gl_link *l;
    (void)fd;
    (void)what;
    if (s->rejection != 0) {
        reject_all(s);
    }
    open_for_work(s);
    gl_postgres_order_turn(s);
    /* Completing a request may issue new ones and finish others: repeat until nothing is left. */
    while ((l = gl_list_first(&s->finished)) != NULL) {
        gl_list_remove(l);
        complete(GL_CONTAINER(l, struct gl_postgres_op, query.link));
        gl_postgres_order_turn(s);
    }
    gl_postgres_lanes_turn(s);
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_flush(&s->conns[i]);
    }
    gl_postgres_notify_flush(s);
    if (s->calls.closing && s->calls.pending_n == 0) {
        gl_calls_closed(&s->calls);
        return;
    }
    if (is_waiting(s) && !s->is_ticking) {
        s->is_ticking = true;
        (void)event_add(s->tick, &(struct timeval){.tv_usec = TICK_US});
    }
}

static void on_tick(evutil_socket_t fd, short what, void *store)
{
    struct gl_postgres *s = store;
    gl_ms now = gl_calls_now(&s->calls);
    (void)fd;
    (void)what;
    s->is_ticking = false;
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_tick(&s->conns[i], now);
    }
    gl_postgres_lanes_tick(s, now);
    gl_postgres_schedule_turn(s);
}

static void on_notify_timer(evutil_socket_t fd, short what, void *store)
{
    struct gl_postgres *s = store;
    (void)fd;
    (void)what;
    s->notify_pausing = false;
    gl_postgres_schedule_turn(s);
}

/* ---- opening ---- */

static const struct gl_calls_engine engine = {
    .name = "postgres",
    .shared = true,
    .call_bytes = sizeof(struct gl_postgres_op),
    .begin = begin,
    .close = close_store,
    .free = free_store,
};

static void set_up(struct gl_postgres *s)
{
    struct event_base *base = gl_loop_base(s->calls.loop);
    gl_list_init(&s->finished);
    gl_map_init(&s->contexts);
    gl_map_init(&s->notifications);
    gl_postgres_order_init(s);
    gl_postgres_lanes_init(s);
    s->turn = event_new(base, -1, 0, on_turn, s);
    s->tick = event_new(base, -1, 0, on_tick, s);
    s->notify_timer = event_new(base, -1, 0, on_notify_timer, s);
    GL_ASSERT(s->turn != NULL && s->tick != NULL && s->notify_timer != NULL);
    s->conns_n = s->check_only ? 1 : GL_POSTGRES_LANE + s->url.lanes_n;
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_init(s, (int)i);
    }
    gl_postgres_schedule_turn(s);
}

static int open_store(struct gl_postgres **ret, const struct gl_postgres_config *cfg,
                      struct gl_loop *loop, bool check_only, struct gl_why *reterr_why)
{
    struct gl_postgres *s = gl_mem_alloc(sizeof(*s));
    int err = gl_postgres_lib_load(&s->lib, reterr_why);
    if (err == 0) {
        err = gl_postgres_url_read(&s->url, &s->lib, &s->arena, cfg->url, reterr_why);
    }
    if (err < 0) {
        gl_postgres_lib_free(&s->lib);
        gl_arena_done(&s->arena);
        gl_mem_free(s);
        return err;
    }
    gl_calls_init(&s->calls, &engine, loop);
    s->allow_loss = cfg->allow_loss;
    s->check_only = check_only;
    s->url.lanes_n = check_only ? 0 : s->url.lanes_n;
    gl_buf_c(&s->identity, cfg->identity != NULL ? cfg->identity : "");
    set_up(s);
    *ret = s;
    return 0;
}

int gl_postgres_open(struct gl_store **ret, const struct gl_postgres_config *cfg,
                     struct gl_loop *loop, struct gl_why *reterr_why)
{
    struct gl_postgres *s = NULL;
    GL_ASSERT(cfg->url != NULL);
    GL_ASSERT(loop != NULL);
    int err = open_store(&s, cfg, loop, false, reterr_why);
    if (err == 0) {
        *ret = &s->calls.port;
    }
    return err;
}

/* ---- check only ---- */

/* Run the loop until the control connection is ready, the server is refused, or the time is up. The
 * findings are added by the handshake. */
static int run_check(struct gl_postgres *s, struct gl_why *reterr_why)
{
    const struct gl_postgres_conn *c = &s->conns[GL_POSTGRES_CONTROL];
    gl_ms until = gl_calls_now(&s->calls) + s->url.timeout_ms;
    while (c->state != GL_POSTGRES_READY && s->rejection == 0 && gl_calls_now(&s->calls) < until) {
        gl_calls_run_loop_once(&s->calls);
    }
    if (s->rejection != 0 && s->rejection != GL_E_INVALID) {
        gl_findings_add(s->findings, s->findings_arena, GL_FINDING_BAD, "%s",
                        s->rejection_why.text);
    } else if (s->rejection == 0 && c->state != GL_POSTGRES_READY) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "no connection to %s: %s", s->url.display,
                      c->why.text[0] != '\0' ? c->why.text : "it does not answer");
    }
    return 0;
}

int gl_postgres_check(const struct gl_postgres_config *cfg, struct gl_arena *a,
                      struct gl_findings *ret, struct gl_why *reterr_why)
{
    struct gl_loop *loop = NULL;
    struct gl_postgres *s = NULL;
    int err = gl_loop_new(&loop, reterr_why);
    if (err < 0) {
        return err;
    }
    err = open_store(&s, cfg, loop, true, reterr_why);
    if (err == 0) {
        s->findings = ret;
        s->findings_arena = a;
        err = run_check(s, reterr_why);
        gl_calls_close(&s->calls);
    }
    gl_loop_free(loop);
    return err;
}
