#include "store/postgres/postgres.h"

#include <event2/event.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/random.h"
#include "store/postgres/postgres_parts.h"

enum { TICK_US = 50000, LOST_RETRIES_MAX = 2 };

static struct gl_postgres *of_port(struct gl_store *port)
{
    return GL_CONTAINER(port, struct gl_postgres, port);
}

gl_ms gl_postgres_now(struct gl_postgres *s)
{
    struct gl_clock *clock = gl_loop_clock(s->loop);
    return clock->now(clock);
}

void gl_postgres_touch(struct gl_postgres *s)
{
    event_active(s->turn, EV_TIMEOUT, 0);
}

/* ---- the way of a request ---- */

void gl_postgres_finish(struct gl_postgres_op *op)
{
    op->is_finished = true;
    if (op->type != GL_POSTGRES_OP_COMMIT && op->type != GL_POSTGRES_OP_RESOLVE) {
        gl_list_push(&op->store->finished, &op->call.link);
    }
    gl_postgres_touch(op->store);
}

void gl_postgres_fail(struct gl_postgres_op *op, int status, const struct gl_why *why)
{
    op->req->status = status;
    op->req->why = *why;
    op->req->why.code = status;
    gl_postgres_finish(op);
}

static struct gl_postgres_op *new_op(struct gl_store *port, struct gl_store_req *req,
                                     enum gl_postgres_op_type type)
{
    struct gl_postgres *s = of_port(port);
    GL_ASSERT(req->done != NULL);
    gl_store_done *done = req->done;
    void *owner = req->owner;
    *req = (struct gl_store_req){.done = done, .owner = owner};
    struct gl_postgres_op *op = gl_pool_alloc(&s->pool, sizeof(*op));
    op->store = s;
    op->req = req;
    op->type = type;
    op->call.type = &gl_postgres_op_call;
    op->call.until = gl_postgres_now(s) + s->url.timeout_ms;
    gl_list_init(&op->call.link);
    gl_list_init(&op->order);
    gl_list_init(&op->queue);
    s->pending_n++;
    return op;
}

/* True: it is finished already, because nothing can be begun any more. */
static bool is_late(struct gl_postgres_op *op)
{
    if (!op->store->closing) {
        return false;
    }
    struct gl_why why;
    int status = gl_why(&why, GL_E_UNAVAILABLE, "store unavailable: it is closing");
    gl_postgres_fail(op, status, &why);
    return true;
}

static bool is_context(struct gl_postgres_op *op, gl_str name)
{
    if (gl_str_is_id(name)) {
        return true;
    }
    struct gl_why why;
    int status = gl_why(&why, GL_E_INVALID, "\"%.*s\" is no name for a context", GL_STR_ARG(name));
    gl_postgres_fail(op, status, &why);
    return false;
}

static bool send_op(struct gl_postgres_conn *c, struct gl_postgres_call *call)
{
    struct gl_postgres_op *op = GL_CONTAINER(call, struct gl_postgres_op, call);
    gl_postgres_args_reset(&c->store->args);
    if (op->type == GL_POSTGRES_OP_EXPORT) {
        return gl_postgres_export_send(c, op);
    }
    return op->context != NULL ? gl_postgres_read_send(c, op) : gl_postgres_session_send(c, op);
}

static bool on_result(struct gl_postgres_conn *c, struct gl_postgres_call *call, PGresult *r)
{
    struct gl_postgres_op *op = GL_CONTAINER(call, struct gl_postgres_op, call);
    c->store->lib.PQclear(op->result);
    op->result = r;
    return true;
}

/* What changes nothing, or may be done twice, is asked again when the connection is back. */
static bool may_repeat(const struct gl_postgres_op *op, const struct gl_postgres_outcome *o)
{
    return o->end == GL_POSTGRES_END_LOST
               ? op->type != GL_POSTGRES_OP_SESSION_OPEN
               : o->end == GL_POSTGRES_END_ERROR && gl_postgres_error_is_retried(o->state);
}

static void on_end(struct gl_postgres_conn *c, struct gl_postgres_call *call,
                   const struct gl_postgres_outcome *o)
{
    struct gl_postgres_op *op = GL_CONTAINER(call, struct gl_postgres_op, call);
    if (o->end == GL_POSTGRES_END_OK) {
        gl_postgres_finish(op);
        return;
    }
    c->store->lib.PQclear(op->result);
    op->result = NULL;
    if (may_repeat(op, o) && op->retries_n++ < LOST_RETRIES_MAX &&
        call->until > gl_postgres_now(c->store)) {
        gl_postgres_conn_push(c, call);
        return;
    }
    gl_postgres_fail(op, o->status, &o->why);
}

const struct gl_postgres_call_type gl_postgres_op_call = {
    .send = send_op, .result = on_result, .end = on_end};

static void complete(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;
    struct gl_store_req *req = op->req;
    if (req->status == 0 && op->type == GL_POSTGRES_OP_EXPORT) {
        gl_postgres_export_fill(op);
    } else if (req->status == 0 && op->type != GL_POSTGRES_OP_COMMIT && op->context != NULL) {
        gl_postgres_read_fill(op);
    } else if (req->status == 0 && op->type != GL_POSTGRES_OP_COMMIT) {
        gl_postgres_session_fill(op);
    }
    PGresult *result = op->result;
    gl_pool_free(&s->pool, op, sizeof(*op));
    s->pending_n--;
    req->done(req); /* It may start the next request, or free this one. */
    s->lib.PQclear(result);
    gl_arena_reset(&s->results);
}

/* ---- calls ---- */

static void control(struct gl_postgres_op *op)
{
    if (!is_late(op)) {
        gl_postgres_conn_push(&op->store->conns[GL_POSTGRES_CONTROL], &op->call);
    }
}

static void session_open(struct gl_store *port, struct gl_store_req *req,
                         const struct gl_session_wish *wish)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_SESSION_OPEN);
    op->u.open = *wish;
    control(op);
}

static void session_renew(struct gl_store *port, struct gl_store_req *req, gl_str session,
                          gl_ms ttl_ms, gl_str about)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_SESSION_RENEW);
    op->u.session.session = session;
    op->u.session.ttl_ms = ttl_ms;
    op->u.session.about = about;
    control(op);
}

static void session_end(struct gl_store *port, struct gl_store_req *req, gl_str session)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_SESSION_END);
    op->u.session.session = session;
    control(op);
}

static void session_dead(struct gl_store *port, struct gl_store_req *req, gl_str session,
                         bool declare)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_SESSION_DEAD);
    op->u.session.session = session;
    op->u.session.declare = declare;
    control(op);
}

static void session_list(struct gl_store *port, struct gl_store_req *req)
{
    control(new_op(port, req, GL_POSTGRES_OP_SESSION_LIST));
}

static void time_of(struct gl_store *port, struct gl_store_req *req)
{
    control(new_op(port, req, GL_POSTGRES_OP_TIME));
}

/* One message holds all of a transaction, and the server takes messages below 1 GB. */
static int check_sizes(const struct gl_tx *tx, struct gl_why *reterr_why)
{
    const size_t total_max = 512u << 20;
    size_t total = 0;
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];
        total += w->value.n;
        if (w->value.n > GL_RECORD_BYTES_MAX || total > total_max) {
            return gl_why(reterr_why, GL_E_LIMIT,
                          "%.*s %.*s has %zu bytes; the store takes up to %d in one piece, and %zu "
                          "in one transaction",
                          GL_STR_ARG(w->kind), GL_STR_ARG(w->id), w->value.n,
                          (int)GL_RECORD_BYTES_MAX, total_max);
        }
    }
    return 0;
}

static void commit(struct gl_store *port, struct gl_store_req *req, const struct gl_tx *tx)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_COMMIT);
    struct gl_why why;
    op->u.tx = tx;
    gl_list_push(&op->store->order, &op->order);
    if (is_late(op) || !is_context(op, tx->context)) {
        return;
    }
    int status = check_sizes(tx, &why);
    if (status < 0) {
        gl_postgres_fail(op, status, &why);
        return;
    }
    op->context = gl_postgres_context_of(op->store, tx->context);
    gl_postgres_order_add(op);
}

static void resolve(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str session,
                    uint64_t tx_id)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_RESOLVE);
    (void)context; /* all contexts of a store are in one database */
    op->u.resolve.session = session;
    op->u.resolve.id = tx_id;
    gl_list_push(&op->store->order, &op->order);
    if (!is_late(op)) {
        gl_postgres_touch(op->store);
    }
}

static void read_op(struct gl_postgres_op *op, gl_str context)
{
    struct gl_postgres *s = op->store;
    if (is_late(op) || !is_context(op, context)) {
        return;
    }
    op->context = gl_postgres_context_of(s, context);
    op->call.slow = op->type == GL_POSTGRES_OP_MEASURE || op->type == GL_POSTGRES_OP_EXPORT;
    if (op->context->state == GL_POSTGRES_CONTEXT_READY) {
        bool is_long = op->type == GL_POSTGRES_OP_MEASURE;
        gl_postgres_conn_push(&s->conns[is_long ? GL_POSTGRES_CONTROL : GL_POSTGRES_READER],
                              &op->call);
        return;
    }
    gl_list_push(&op->context->reads, &op->call.link);
    gl_postgres_context_ask(op->context, false);
}

static void get(struct gl_store *port, struct gl_store_req *req, gl_str context,
                const struct gl_key *keys, size_t keys_n)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_GET);
    op->u.get.keys = keys;
    op->u.get.n = keys_n;
    read_op(op, context);
}

static void range(struct gl_store *port, struct gl_store_req *req, gl_str context,
                  const struct gl_range *r)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_RANGE);
    op->u.range = r;
    read_op(op, context);
}

static void list(struct gl_store *port, struct gl_store_req *req, gl_str context,
                 const struct gl_listing *l)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_LIST);
    op->u.listing = l;
    read_op(op, context);
}

static void log_read(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str kind,
                     gl_str id, int64_t from, size_t limit)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_LOG_READ);
    op->u.log.kind = kind;
    op->u.log.id = id;
    op->u.log.from = from;
    op->u.log.limit = limit;
    read_op(op, context);
}

static void export(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str after,
                   size_t limit)
{
    struct gl_postgres_op *op = new_op(port, req, GL_POSTGRES_OP_EXPORT);
    op->u.export.after = after;
    op->u.export.limit = limit;
    read_op(op, context);
}

static void measure(struct gl_store *port, struct gl_store_req *req, gl_str context)
{
    read_op(new_op(port, req, GL_POSTGRES_OP_MEASURE), context);
}

static void listen_to(struct gl_store *port, const struct gl_store_events *events)
{
    of_port(port)->events = *events;
}

static void close_store(struct gl_store *port, void (*closed)(void *owner), void *owner)
{
    struct gl_postgres *s = of_port(port);
    GL_ASSERT(!s->closing);
    s->closing = true;
    s->closed = closed;
    s->closed_owner = owner;
    gl_postgres_touch(s);
}

/* ---- turns ---- */

static void free_store(struct gl_postgres *s)
{
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_done(&s->conns[i]);
    }
    gl_postgres_contexts_done(s);
    gl_postgres_wake_done(s);
    gl_postgres_order_done(s);
    gl_postgres_args_done(&s->args);
    event_free(s->turn);
    event_free(s->tick);
    event_free(s->wake_timer);
    gl_buf_done(&s->text);
    gl_buf_done(&s->identity);
    gl_pool_done(&s->pool);
    gl_arena_done(&s->results);
    gl_arena_done(&s->arena);
    gl_postgres_lib_free(&s->lib);
    gl_mem_free(s);
}

/* Work begins when wake-ups can be heard, so that none is missed that was to be heard. */
static void open_for_work(struct gl_postgres *s)
{
    const struct gl_postgres_conn *listener = &s->conns[GL_POSTGRES_LISTENER];
    s->is_open =
        s->is_open ||
        (!s->check_only && s->conns[GL_POSTGRES_CONTROL].was_ready &&
         (s->events.woken == NULL || listener->was_ready || listener->why.text[0] != '\0'));
}

static void reject_all(struct gl_postgres *s)
{
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_fail_waiting(&s->conns[i], s->verdict, &s->verdict_why);
    }
    gl_postgres_lanes_fail(s, NULL, s->verdict, &s->verdict_why);
}

static bool is_waiting(const struct gl_postgres *s)
{
    bool any = s->pending_n > 0 || s->wake_sent;
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
    if (s->verdict != 0) {
        reject_all(s);
    }
    open_for_work(s);
    gl_postgres_order_turn(s);
    while ((l = gl_list_first(&s->finished)) != NULL) {
        gl_list_remove(l);
        complete(GL_CONTAINER(l, struct gl_postgres_op, call.link));
        gl_postgres_order_turn(s);
    }
    gl_postgres_lanes_turn(s);
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_flush(&s->conns[i]);
    }
    gl_postgres_wake_flush(s);
    if (s->closing && s->pending_n == 0) {
        void (*closed)(void *owner) = s->closed;
        void *owner = s->closed_owner;
        free_store(s);
        if (closed != NULL) {
            closed(owner);
        }
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
    gl_ms now = gl_postgres_now(s);
    (void)fd;
    (void)what;
    s->is_ticking = false;
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_tick(&s->conns[i], now);
    }
    gl_postgres_lanes_tick(s, now);
    gl_postgres_touch(s);
}

static void on_wake_timer(evutil_socket_t fd, short what, void *store)
{
    struct gl_postgres *s = store;
    (void)fd;
    (void)what;
    s->wake_waits = false;
    gl_postgres_touch(s);
}

/* ---- opening ---- */

static const struct gl_store_ops ops = {
    .name = "postgres",
    .shared = true,
    .session_open = session_open,
    .session_renew = session_renew,
    .session_end = session_end,
    .session_dead = session_dead,
    .session_list = session_list,
    .commit = commit,
    .resolve = resolve,
    .get = get,
    .range = range,
    .list = list,
    .log_read = log_read,
    .time = time_of,
    .export = export,
    .listen = listen_to,
    .measure = measure,
    .close = close_store,
};

static void set_up(struct gl_postgres *s)
{
    struct event_base *base = gl_loop_base(s->loop);
    struct gl_entropy entropy = gl_random_entropy();
    uint64_t seed;
    entropy.fill(&entropy, &seed, sizeof(seed));
    gl_rng_init(&s->rng, seed);
    s->port.ops = &ops;
    gl_pool_init(&s->pool);
    gl_list_init(&s->finished);
    gl_map_init(&s->contexts);
    gl_map_init(&s->wakes);
    gl_postgres_order_init(s);
    gl_postgres_lanes_init(s);
    s->turn = event_new(base, -1, 0, on_turn, s);
    s->tick = event_new(base, -1, 0, on_tick, s);
    s->wake_timer = event_new(base, -1, 0, on_wake_timer, s);
    GL_ASSERT(s->turn != NULL && s->tick != NULL && s->wake_timer != NULL);
    s->conns_n = s->check_only ? 1 : GL_POSTGRES_LANE + s->url.lanes_n;
    for (size_t i = 0; i < s->conns_n; i++) {
        gl_postgres_conn_init(s, (int)i);
    }
    gl_postgres_touch(s);
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
    s->loop = loop;
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
        *ret = &s->port;
    }
    return err;
}

/* ---- a look only ---- */

static void on_closed(void *flag)
{
    *(bool *)flag = true;
}

static int look(struct gl_postgres *s, struct gl_why *reterr_why)
{
    const struct gl_postgres_conn *c = &s->conns[GL_POSTGRES_CONTROL];
    gl_ms until = gl_postgres_now(s) + s->url.timeout_ms;
    while (c->state != GL_POSTGRES_READY && s->verdict == 0 && gl_postgres_now(s) < until) {
        (void)event_base_loop(gl_loop_base(s->loop), EVLOOP_ONCE);
    }
    if (s->verdict != 0 && s->verdict != GL_E_INVALID) {
        gl_findings_add(s->findings, s->findings_arena, GL_FINDING_BAD, "%s", s->verdict_why.text);
    } else if (s->verdict == 0 && c->state != GL_POSTGRES_READY) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "no connection to %s: %s", s->url.seen,
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
        bool closed = false;
        s->findings = ret;
        s->findings_arena = a;
        err = look(s, reterr_why);
        close_store(&s->port, on_closed, &closed);
        while (!closed) {
            (void)event_base_loop(gl_loop_base(loop), EVLOOP_ONCE);
        }
    }
    gl_loop_free(loop);
    return err;
}
