#include "sim/sim_store.h"

#include "base/check.h"
#include "base/mem.h"

enum {
    SLOW_MS = 8000, /* the longest delay of a slow request */
};

enum fate {
    FATE_OK,
    FATE_UNAVAILABLE,
    FATE_UNKNOWN_YES,
    FATE_UNKNOWN_NO,
};

struct store_op;
typedef void op_run(struct sim_store *s, struct store_op *op);

struct store_op { /* a request in flight */
    struct gl_link link;
    struct sim_store *store;
    struct gl_store_req *req;
    op_run *run;              /* executes it, at the disk */
    struct sim_call arrival;  /* it reaches the disk; never held */
    struct sim_call delivery; /* its caller gets the outcome */
    enum fate fate;
    bool is_refused; /* for lack of space */
    bool is_commit, arrived;
    bool is_message;      /* it reads a message */
    bool confirms;        /* by the answer, the replicas have what it saw */
    uint64_t confirms_up; /* ... up to this number */
    int status;
    struct gl_arena results;
    /* Arguments, borrowed from the caller. */
    const struct gl_tx *tx;
    gl_str a, b, c;
    const struct gl_key *keys;
    size_t n;
    const struct gl_range *range;
    const struct gl_listing *listing;
    const struct gl_session_options *wish;
    int64_t number;
};

static void run(struct store_op *op)
{
    struct sim_store *s = op->store;
    s->disk->now = s->world->now;
    op->run(s, op);
    op->arrived = true;
    if (op->confirms_up == 0) {
        op->confirms_up = s->disk->tail_seq;
    }
}

static void deliver(struct store_op *op)
{
    struct sim_store *s = op->store;
    struct gl_store_req *req = op->req;
    req->status = op->status;
    if (op->status != 0) {
        (void)gl_why(&req->why, op->status, "simulated store: %s", gl_err_text(op->status));
        req->why.needs_help = op->is_refused;
    }
    if (op->status == 0 && op->confirms) {
        sim_disk_confirm(s->disk, op->confirms_up);
    }
    gl_list_remove(&op->link);
    req->done(req);
    gl_list_push(&s->spares, &op->link);
    if (s->closed != NULL && gl_list_empty(&s->ops) && !sim_call_waits(&s->closing)) {
        sim_world_at(s->world, &s->closing, s->world->now);
    }
}

static void on_delivery(struct sim_call *call)
{
    struct store_op *op = GL_CONTAINER(call, struct store_op, delivery);
    if (!op->arrived) { /* a read that sees the disk at the last moment */
        run(op);
    }
    deliver(op);
}

static gl_ms draw_delay(struct sim_store *s)
{
    struct sim_world *w = s->world;
    if (sim_world_fault(w, &s->rng, w->options.store_slow)) {
        return gl_rng_range(&s->rng, 0, SLOW_MS);
    }
    uint32_t most = w->options.store_delay_ms;
    return most == 0 ? 0 : (gl_ms)gl_rng_below(&s->rng, (uint64_t)most + 1);
}

static void on_arrival(struct sim_call *call)
{
    struct store_op *op = GL_CONTAINER(call, struct store_op, arrival);
    struct sim_store *s = op->store;
    run(op);
    gl_ms due = s->world->now + draw_delay(s);
    if (op->is_commit) {
        due = due < s->last_done ? s->last_done : due;
        s->last_done = due;
    }
    sim_world_at(s->world, &op->delivery, due);
}

static struct store_op *op_new(struct sim_store *s)
{
    struct gl_link *spare = gl_list_first(&s->spares);
    struct store_op *op = NULL;
    struct gl_arena results = {0};
    if (spare != NULL) {
        op = GL_CONTAINER(spare, struct store_op, link);
        gl_list_remove(spare);
        gl_arena_reset(&op->results);
        results = op->results;
    } else {
        op = gl_mem_alloc(sizeof(*op));
    }
    *op = (struct store_op){.store = s, .results = results};
    gl_list_init(&op->link);
    sim_call_init(&op->arrival, on_arrival, NULL);
    sim_call_init(&op->delivery, on_delivery, s->gate);
    return op;
}

static void op_free(struct sim_store *s, struct store_op *op)
{
    sim_world_cancel(s->world, &op->arrival);
    sim_world_cancel(s->world, &op->delivery);
    gl_list_remove(&op->link);
    gl_arena_done(&op->results);
    gl_mem_free(op);
}

/* A new request; NULL: the node is dead already and nothing is answered. */
static struct store_op *op_begin(struct gl_store *port, struct gl_store_req *req, op_run *what)
{
    struct sim_store *s = GL_CONTAINER(port, struct sim_store, port);
    GL_ASSERT(req->done != NULL);
    GL_ASSERT(s->closed == NULL);
    if (s->fuse != NULL && sim_fuse_call(s->fuse)) {
        return NULL;
    }
    struct store_op *op = op_new(s);
    op->req = req;
    op->run = what;
    req->maker[0] = op;
    gl_list_push(&s->ops, &op->link);
    return op;
}

static void submit_write(struct store_op *op)
{
    struct sim_store *s = op->store;
    gl_ms due = s->world->now + draw_delay(s);
    if (op->is_commit) {
        due = due < s->last_apply ? s->last_apply : due;
        s->last_apply = due;
    }
    sim_world_at(s->world, &op->arrival, due);
}

/* Messages that are read for an agent, slowly: the job may have changed when they arrive. */
static gl_ms draw_read_delay(struct sim_store *s, const struct store_op *op)
{
    struct sim_world *w = s->world;
    if (op->is_message && w->faults && gl_rng_chance(&s->rng, w->bundles.messages_slow)) {
        return gl_rng_range(&s->rng, 0, SLOW_MS);
    }
    return draw_delay(s);
}

/* A read sees the disk at the moment of the call, of its end, or in between. */
static void submit_read(struct store_op *op)
{
    struct sim_store *s = op->store;
    struct sim_world *w = s->world;
    if (sim_world_fault(w, &s->rng, w->options.store_unavailable)) {
        op->fate = FATE_UNAVAILABLE;
    }
    uint64_t when = w->options.store_delay_ms == 0 ? 0 : gl_rng_below(&s->rng, 3);
    if (when == 0) {
        sim_world_at(w, &op->delivery, w->now + draw_read_delay(s, op));
        return;
    }
    if (when == 1) {
        run(op);
        sim_world_at(w, &op->delivery, w->now + draw_read_delay(s, op));
        return;
    }
    sim_world_at(w, &op->arrival, w->now + draw_read_delay(s, op));
}

/* Is this request refused before it is executed? Nothing is answered over a new connection before
 * its node has been notified of it. */
static bool is_away(struct sim_store *s, struct store_op *op)
{
    gl_ms now = s->world->now;
    bool is_cut = sim_call_waits(&s->mend) || s->untold_n > 0;
    if (op->fate == FATE_UNAVAILABLE || now < s->disk->away_until || is_cut) {
        op->status = GL_E_UNAVAILABLE;
        return true;
    }
    return false;
}

/* ---- transactions ---- */

static enum fate commit_fate(struct sim_store *s)
{
    struct sim_world *w = s->world;
    if (sim_world_fault(w, &s->rng, w->options.store_unavailable)) {
        return FATE_UNAVAILABLE;
    }
    if (sim_world_fault(w, &s->rng, w->options.store_unknown_yes)) {
        return FATE_UNKNOWN_YES;
    }
    if (sim_world_fault(w, &s->rng, w->options.store_unknown_no)) {
        return FATE_UNKNOWN_NO;
    }
    return FATE_OK;
}

static bool is_too_large(const struct sim_disk *d, const struct gl_tx *tx)
{
    size_t bytes = 0;
    for (size_t i = 0; i < tx->writes_n; i++) {
        bytes += tx->writes[i].value.n;
    }
    return d->is_full && bytes > d->left_bytes;
}

static void run_commit(struct sim_store *s, struct store_op *op)
{
    if (is_away(s, op)) {
        return;
    }
    if (is_too_large(s->disk, op->tx)) {
        op->is_refused = true;
        op->status = GL_E_UNAVAILABLE;
        return;
    }
    op->status = GL_E_UNKNOWN;
    if (op->fate == FATE_UNKNOWN_NO) {
        SIM_TRACE(s->world, TX, .number = (int64_t)op->tx->id, .what = "lost in the store");
        return;
    }
    int r = sim_disk_commit(s->disk, op->tx, &op->req->refused);
    if (op->fate == FATE_UNKNOWN_YES) {
        SIM_TRACE(s->world, TX, .number = (int64_t)op->tx->id, .what = "answer lost");
        return;
    }
    op->status = r;
    if (r == 0 && op->tx->wake.n > 0) {
        sim_news_word(s->disk, op->tx->context, op->tx->wake);
    }
    struct sim_world *w = s->world;
    if (r == 0 && op->confirms &&
        sim_world_fault(w, &s->gossip, w->cluster.confirm_late)) { /* and `resolve` asks again */
        SIM_TRACE(w, TX, .number = (int64_t)op->tx->id, .what = "not confirmed in time");
        op->status = GL_E_UNKNOWN;
    }
}

static void do_commit(struct gl_store *port, struct gl_store_req *req, const struct gl_tx *tx)
{
    struct store_op *op = op_begin(port, req, run_commit);
    if (op == NULL) {
        return;
    }
    op->tx = tx;
    op->is_commit = true;
    op->confirms = tx->confirm;
    op->fate = commit_fate(op->store);
    submit_write(op);
}

static void run_resolve(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        bool yes = sim_disk_resolve(s->disk, op->a, op->b, (uint64_t)op->number);
        op->status = yes ? 0 : GL_E_CONFLICT;
        op->confirms_up = sim_disk_unconfirmed(s->disk, op->b, (uint64_t)op->number);
        op->confirms = op->confirms_up != 0;
    }
}

static void do_resolve(struct gl_store *port, struct gl_store_req *req, gl_str context,
                       gl_str session, uint64_t tx_id)
{
    struct store_op *op = op_begin(port, req, run_resolve);
    if (op == NULL) {
        return;
    }
    op->a = context;
    op->b = session;
    op->number = (int64_t)tx_id;
    struct sim_world *w = op->store->world;
    if (sim_world_fault(w, &op->store->rng, w->options.store_resolve_down)) {
        op->fate = FATE_UNAVAILABLE;
    }
    submit_write(op);
}

/* ---- sessions ---- */

static void run_session_open(struct sim_store *s, struct store_op *op)
{
    if (is_away(s, op)) {
        return;
    }
    struct sim_disk_session *made = sim_disk_session_open(s->disk, op->wish);
    op->req->session.id = made->id;
    op->req->session.incarnation = made->incarnation;
    op->status = op->fate == FATE_UNKNOWN_YES ? GL_E_UNAVAILABLE : 0;
}

static void do_session_open(struct gl_store *port, struct gl_store_req *req,
                            const struct gl_session_options *wish)
{
    struct store_op *op = op_begin(port, req, run_session_open);
    if (op == NULL) {
        return;
    }
    op->wish = wish;
    op->confirms = true;
    op->fate = commit_fate(op->store);
    if (op->fate == FATE_UNKNOWN_NO) {
        op->fate = FATE_UNAVAILABLE; /* opening never ends unknown: it is repeated */
    }
    submit_write(op);
}

static void run_session_renew(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->status = sim_disk_session_renew(s->disk, op->a, op->number, op->b);
    }
}

static void do_session_renew(struct gl_store *port, struct gl_store_req *req, gl_str session,
                             gl_ms ttl_ms, gl_str about)
{
    struct store_op *op = op_begin(port, req, run_session_renew);
    if (op == NULL) {
        return;
    }
    op->a = session;
    op->b = about;
    op->number = ttl_ms;
    op->confirms = true;
    submit_read(op);
}

static void run_session_end(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->status = sim_disk_session_end(s->disk, op->a);
    }
}

static void do_session_end(struct gl_store *port, struct gl_store_req *req, gl_str session)
{
    struct store_op *op = op_begin(port, req, run_session_end);
    if (op == NULL) {
        return;
    }
    op->a = session;
    submit_write(op);
}

static void run_session_dead(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->status = sim_disk_session_dead(s->disk, op->a, op->number != 0, &op->req->session_dead);
    }
}

static void do_session_dead(struct gl_store *port, struct gl_store_req *req, gl_str session,
                            bool declare)
{
    struct store_op *op = op_begin(port, req, run_session_dead);
    if (op == NULL) {
        return;
    }
    op->a = session;
    op->number = declare;
    submit_read(op);
}

static void run_session_list(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->req->sessions = sim_disk_session_list(s->disk, &op->results, &op->req->sessions_n);
    }
}

static void do_session_list(struct gl_store *port, struct gl_store_req *req)
{
    struct store_op *op = op_begin(port, req, run_session_list);
    if (op != NULL) {
        submit_read(op);
    }
}

/* ---- reads ---- */

static void run_get(struct sim_store *s, struct store_op *op)
{
    if (is_away(s, op)) {
        return;
    }
    struct gl_record *found = GL_NEW_ARRAY(&op->results, struct gl_record, op->n + 1);
    for (size_t i = 0; i < op->n; i++) {
        found[i] = sim_disk_get(s->disk, op->a, op->keys[i].kind, op->keys[i].id, &op->results);
    }
    op->req->records = found;
    op->req->records_n = op->n;
}

static void do_get(struct gl_store *port, struct gl_store_req *req, gl_str context,
                   const struct gl_key *keys, size_t keys_n)
{
    struct store_op *op = op_begin(port, req, run_get);
    if (op == NULL) {
        return;
    }
    op->a = context;
    op->keys = keys;
    op->n = keys_n;
    op->is_message =
        keys_n > 0 && (gl_str_is(keys[0].kind, "letter") || gl_str_is(keys[0].kind, "body"));
    submit_read(op);
}

static void run_range(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->req->entries =
            sim_disk_range(s->disk, op->a, op->range, &op->results, &op->req->entries_n);
    }
}

static void do_range(struct gl_store *port, struct gl_store_req *req, gl_str context,
                     const struct gl_range *range)
{
    struct store_op *op = op_begin(port, req, run_range);
    if (op == NULL) {
        return;
    }
    op->a = context;
    op->range = range;
    submit_read(op);
}

static void run_list(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->req->records =
            sim_disk_list(s->disk, op->a, op->listing, &op->results, &op->req->records_n);
    }
}

static void do_list(struct gl_store *port, struct gl_store_req *req, gl_str context,
                    const struct gl_listing *listing)
{
    struct store_op *op = op_begin(port, req, run_list);
    if (op == NULL) {
        return;
    }
    op->a = context;
    op->listing = listing;
    submit_read(op);
}

static void run_log_read(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->req->log = sim_disk_log(s->disk, op->a, op->b, op->c, op->number, op->n, &op->results,
                                    &op->req->log_n);
    }
}

static void do_log_read(struct gl_store *port, struct gl_store_req *req, gl_str context,
                        gl_str kind, gl_str id, int64_t from, size_t limit)
{
    struct store_op *op = op_begin(port, req, run_log_read);
    if (op == NULL) {
        return;
    }
    op->a = context;
    op->b = kind;
    op->c = id;
    op->number = from;
    op->n = limit;
    submit_read(op);
}

static void run_time(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->req->time = sim_disk_time(s->disk);
    }
}

static void do_time(struct gl_store *port, struct gl_store_req *req)
{
    struct store_op *op = op_begin(port, req, run_time);
    if (op != NULL) {
        submit_read(op);
    }
}

static void run_export(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->req->writes = sim_disk_export(s->disk, op->a, op->b, op->n, &op->results,
                                          &op->req->writes_n, &op->req->next);
        if (op->req->writes == NULL) {
            op->req->writes_n = 0;
            op->status = GL_E_DAMAGED;
        }
    }
}

static void do_export(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str after,
                      size_t limit)
{
    struct store_op *op = op_begin(port, req, run_export);
    if (op == NULL) {
        return;
    }
    op->a = context;
    op->b = after;
    op->n = limit;
    submit_read(op);
}

static void run_measure(struct sim_store *s, struct store_op *op)
{
    if (!is_away(s, op)) {
        op->req->bytes = sim_disk_measure(s->disk, op->a);
    }
}

static void do_measure(struct gl_store *port, struct gl_store_req *req, gl_str context)
{
    struct store_op *op = op_begin(port, req, run_measure);
    if (op == NULL) {
        return;
    }
    op->a = context;
    submit_read(op);
}

/* ---- life cycle ---- */

static void free_all(struct sim_store *s)
{
    struct gl_link *l;
    while ((l = gl_list_first(&s->ops)) != NULL || (l = gl_list_first(&s->spares)) != NULL) {
        op_free(s, GL_CONTAINER(l, struct store_op, link));
    }
}

static void leave(struct sim_store *s)
{
    free_all(s);
    sim_news_done(s);
    sim_world_cancel(s->world, &s->mend);
    gl_list_remove(&s->link);
}

static void on_closing(struct sim_call *call)
{
    struct sim_store *s = GL_CONTAINER(call, struct sim_store, closing);
    leave(s);
    s->closed(s->closed_owner);
}

static void do_close(struct gl_store *port, void (*closed)(void *owner), void *owner)
{
    struct sim_store *s = GL_CONTAINER(port, struct sim_store, port);
    GL_ASSERT(s->closed == NULL);
    s->closed = closed;
    s->closed_owner = owner;
    if (gl_list_empty(&s->ops)) {
        sim_world_at(s->world, &s->closing, s->world->now);
    }
}

static void do_listen(struct gl_store *port, const struct gl_store_events *events)
{
    sim_news_listen(GL_CONTAINER(port, struct sim_store, port), events);
}

#define OPS                                                                                     \
    .name = "memory", .session_open = do_session_open, .session_renew = do_session_renew,       \
    .session_end = do_session_end, .session_dead = do_session_dead,                             \
    .session_list = do_session_list, .commit = do_commit, .resolve = do_resolve, .get = do_get, \
    .range = do_range, .list = do_list, .log_read = do_log_read, .time = do_time,               \
    .export = do_export, .listen = do_listen, .measure = do_measure, .close = do_close

static const struct gl_store_ops ops = {OPS};
static const struct gl_store_ops shared_ops = {OPS, .shared = true};

static void on_mend(struct sim_call *call)
{
    struct sim_store *s = GL_CONTAINER(call, struct sim_store, mend);
    sim_news_changed(s);
}

void sim_store_open(struct sim_store *s, struct sim_world *w, struct sim_disk *disk,
                    struct sim_gate *gate, struct sim_fuse *fuse, const char *name)
{
    *s = (struct sim_store){.port = {.ops = disk->shared ? &shared_ops : &ops},
                            .world = w,
                            .disk = disk,
                            .gate = gate,
                            .fuse = fuse};
    gl_rng_fork(&w->rng, &s->rng, name);
    gl_list_init(&s->ops);
    gl_list_init(&s->spares);
    gl_list_init(&s->link);
    gl_list_init(&s->news);
    gl_list_push(&disk->handles, &s->link);
    gl_rng_init(&s->gossip, w->seed ^ gl_str_hash(gl_str_of(name)));
    sim_call_init(&s->closing, on_closing, gate);
    sim_call_init(&s->mend, on_mend, NULL);
}

/* Of the commits that have not reached the disk, a random number of the first ones do. */
static void some_arrive(struct sim_store *s)
{
    uint64_t waiting = 0;
    for (struct gl_link *l = s->ops.next; l != &s->ops; l = l->next) {
        const struct store_op *op = GL_CONTAINER(l, struct store_op, link);
        waiting += op->is_commit && !op->arrived ? 1 : 0;
    }
    uint64_t survivors = waiting == 0 ? 0 : gl_rng_below(&s->rng, waiting + 1);
    for (struct gl_link *l = s->ops.next; l != &s->ops && survivors > 0; l = l->next) {
        struct store_op *op = GL_CONTAINER(l, struct store_op, link);
        if (op->is_commit && !op->arrived) {
            run(op);
            survivors--;
        }
    }
}

void sim_store_cut(struct sim_store *s, gl_ms until)
{
    some_arrive(s);
    for (struct gl_link *l = s->ops.next; l != &s->ops; l = l->next) {
        struct store_op *op = GL_CONTAINER(l, struct store_op, link);
        sim_world_cancel(s->world, &op->arrival);
        sim_world_cancel(s->world, &op->delivery);
        op->arrived = true;
        op->status = op->is_commit ? GL_E_UNKNOWN : GL_E_UNAVAILABLE;
        sim_world_at(s->world, &op->delivery, s->world->now);
    }
    s->last_apply = s->last_done = s->world->now;
    s->away_until = until > s->away_until ? until : s->away_until;
    sim_world_cancel(s->world, &s->mend);
    sim_world_at(s->world, &s->mend, s->away_until);
}

void sim_store_crash(struct sim_store *s)
{
    some_arrive(s);
    sim_world_cancel(s->world, &s->closing);
    leave(s);
}
