/* postgres_lane.c - lanes: connections that commit in groups. Commits that arrived while one group
 * was in flight form the next, in one transaction of the server, so that one sync of its disk
 * serves many. A group is a sequence of batches (postgres_batch.c), sent in one pipeline: one round
 * trip.
 *
 * If the server reports an error, everything is rolled back. A lost lock race is retried as it is;
 * an error caused by a single transaction makes each run alone. If the connection is lost, all of
 * the group is unknown. */
#include "base/check.h"
#include "base/limits.h"
#include "store/postgres/postgres_parts.h"

enum {
    GROUP_MAX = 256,
    GROUP_BYTES = 8 << 20,
    GROUP_KEYS = GL_POSTGRES_CELLS / 2,
    RETRIES_MAX = 10, /* retries of a group that lost a lock race, before it fails as unavailable */
    FORGET_EVERY = 256, /* groups between two cleanups of remembered ids */
};

static const struct gl_postgres_call_type group_call;

void gl_postgres_lanes_init(struct gl_postgres *s)
{
    for (size_t i = 0; i < s->url.lanes_n; i++) {
        struct gl_postgres_lane *lane = &s->lanes[i];
        gl_list_init(&lane->queue);
        gl_list_init(&lane->group.ops);
        gl_list_init(&lane->group.call.link);
        lane->group.call.type = &group_call;
    }
}

static struct gl_postgres_op *first_op(struct gl_link *list)
{
    struct gl_link *l = gl_list_first(list);
    return l != NULL ? GL_CONTAINER(l, struct gl_postgres_op, queue) : NULL;
}

/* ---- forming a group ---- */

/* Group members share context and session: one schema, and one row of remembered ids. */
static bool same_group(const struct gl_postgres_op *first, const struct gl_postgres_op *op)
{
    return op->context == first->context && !op->is_alone && !first->is_alone &&
           gl_str_eq(op->call.tx->session, first->call.tx->session);
}

/* Move commits from the head of the queue to the group while they fit and can be planned. */
static void gather(struct gl_postgres *s, struct gl_postgres_lane *lane)
{
    struct gl_postgres_group *g = &lane->group;
    struct gl_postgres_op *first = first_op(&lane->queue), *op;
    size_t bytes = 0, keys = 0;
    g->ops_n = g->batches_n = 0;
    while ((op = first_op(&lane->queue)) != NULL && g->ops_n < GROUP_MAX && bytes < GROUP_BYTES) {
        keys += op->keys_n;
        if (op != first && (!same_group(first, op) || keys > GROUP_KEYS)) {
            break;
        }
        if (!gl_postgres_order_plan(s, op, op == first)) {
            break;
        }
        gl_list_remove(&op->queue);
        gl_list_push(&g->ops, &op->queue);
        g->ops_n++;
        g->batches_n = op->batch + 1 > g->batches_n ? op->batch + 1 : g->batches_n;
        bytes += op->bytes;
    }
    g->forget = 0;
    /* Old ids are deleted by a commit now and then, not by a task of its own. */
    if (++lane->groups_n % FORGET_EVERY == 0 && first->call.tx->session.n > 0 &&
        first->call.tx->id > GL_POSTGRES_IDS_KEPT) {
        g->forget = (int64_t)(first->call.tx->id - GL_POSTGRES_IDS_KEPT);
    }
}

static void start_group(struct gl_postgres *s, size_t i)
{
    struct gl_postgres_lane *lane = &s->lanes[i];
    struct gl_postgres_conn *c = &s->conns[GL_POSTGRES_LANE + i];
    struct gl_postgres_op *first = first_op(&lane->queue);
    if (first == NULL || lane->group.is_busy || c->state != GL_POSTGRES_READY) {
        return;
    }
    /* The queue waits for the lookup, which schedules a turn when it is done. */
    if (first->context->state != GL_POSTGRES_CONTEXT_READY) {
        gl_postgres_context_ask(first->context, false);
        return;
    }
    gather(s, lane);
    lane->group.is_busy = true;
    lane->group.retries_n = 0;
    lane->group.call.until = gl_calls_now(&s->calls) + s->url.timeout_ms;
    gl_postgres_conn_push(c, &lane->group.call);
}

void gl_postgres_lanes_turn(struct gl_postgres *s)
{
    for (size_t i = 0; i < s->url.lanes_n; i++) {
        start_group(s, i);
    }
}

/* ---- results of a group ---- */

static struct gl_postgres_group *of_call(struct gl_postgres_call *call)
{
    return GL_CONTAINER(call, struct gl_postgres_group, call);
}

static void clear_results(struct gl_postgres *s, struct gl_postgres_group *g)
{
    for (size_t i = 0; i < g->answered_n; i++) {
        s->lib.PQclear(g->results[i]);
    }
    g->answered_n = 0;
}

static bool send_group(struct gl_postgres_conn *c, struct gl_postgres_call *call)
{
    struct gl_postgres_group *g = of_call(call);
    for (size_t i = 0; i < g->batches_n; i++) {
        if (!gl_postgres_batch_send(c, g, i)) {
            return false;
        }
    }
    return true;
}

static bool on_result(struct gl_postgres_conn *c, struct gl_postgres_call *call, PGresult *r)
{
    struct gl_postgres_group *g = of_call(call);
    (void)c;
    GL_ASSERT(g->answered_n < g->batches_n);
    g->results[g->answered_n++] = r;
    return true;
}

/* The op leaves its lane; it completes when all earlier ones have (postgres_order.c). */
static void finish_op(struct gl_postgres_op *op)
{
    gl_list_remove(&op->queue);
    if (op->call.req->status == 0 && op->call.tx->wake.n > 0) {
        gl_postgres_notify_add(op->store, op->call.tx->context, op->call.tx->wake);
    }
    gl_postgres_order_release(op);
    op->is_finished = true;
    gl_postgres_schedule_turn(op->store);
}

static void finish_failed(struct gl_postgres_op *op, int status, const struct gl_why *why)
{
    op->call.req->status = status;
    op->call.req->why = *why;
    op->call.req->why.code = status;
    finish_op(op);
}

/* Translate what commit_1 answered for this transaction: -1 committed, -2 below the barrier, else
 * the index of the failed guard. */
static void take_answer(struct gl_postgres_op *op, int32_t answer)
{
    struct gl_store_req *req = op->call.req;
    const struct gl_tx *tx = op->call.tx;
    if (answer == -1) {
        req->status = 0;
    } else if (answer == -2) {
        req->status =
            gl_why(&req->why, GL_E_CONFLICT,
                   "transaction %llu arrived after it had been reported as never arriving",
                   (unsigned long long)tx->id);
    } else if (answer >= 0 && (size_t)answer < tx->guards_n) {
        gl_call_conflict(&op->call, (size_t)answer);
    } else {
        req->status = gl_why(&req->why, GL_E_UNKNOWN,
                             "unexpected reply from the server: has "
                             "the function commit_1 been changed?");
    }
    finish_op(op);
}

static void finish_all(struct gl_postgres *s, struct gl_postgres_group *g)
{
    struct gl_postgres_op *op;
    while ((op = first_op(&g->ops)) != NULL) {
        PGresult *r = op->batch < g->answered_n ? g->results[op->batch] : NULL;
        int32_t answer = -3;
        if (r != NULL && s->lib.PQntuples(r) == 1) {
            answer = gl_postgres_args_item(gl_postgres_args_get_text(&s->lib, r, 0, 0),
                                           op->number - 1, answer);
        }
        take_answer(op, answer);
    }
}

static void fail_group(struct gl_postgres_group *g, const struct gl_postgres_outcome *o)
{
    struct gl_postgres_op *op;
    while ((op = first_op(&g->ops)) != NULL) {
        finish_failed(op, o->end == GL_POSTGRES_END_LOST ? GL_E_UNKNOWN : o->status, &o->why);
    }
}

/* One transaction caused the error, and the server rolled back all of them: retry each in a
 * transaction of its own. */
static void retry_one_by_one(struct gl_postgres_lane *lane)
{
    struct gl_link *l;
    while (!gl_list_empty(&lane->group.ops)) {
        l = lane->group.ops.prev; /* from the last to the first, each to the front of the queue */
        gl_list_remove(l);
        gl_list_push(lane->queue.next, l);
        GL_CONTAINER(l, struct gl_postgres_op, queue)->is_alone = true;
    }
}

/* The transaction of the group is over. */
static void on_end(struct gl_postgres_conn *c, struct gl_postgres_call *call,
                   const struct gl_postgres_outcome *o)
{
    struct gl_postgres_group *g = of_call(call);
    struct gl_postgres_lane *lane = &c->store->lanes[c->number - GL_POSTGRES_LANE];
    bool is_error = o->end == GL_POSTGRES_END_ERROR;
    g->is_busy = false;
    if (o->end == GL_POSTGRES_END_OK) {
        finish_all(c->store, g);
    } else if (is_error && gl_postgres_error_is_retried(o->state) && g->retries_n++ < RETRIES_MAX) {
        g->is_busy = true;
        g->call.until = gl_calls_now(&c->store->calls) + c->store->url.timeout_ms;
        gl_postgres_conn_push(c, &g->call);
    } else if (is_error && gl_postgres_error_is_poison(o->state) && g->ops_n > 1) {
        retry_one_by_one(lane);
    } else {
        fail_group(g, o);
    }
    clear_results(c->store, g);
    gl_postgres_schedule_turn(c->store);
}

static const struct gl_postgres_call_type group_call = {
    .send = send_group, .result = on_result, .end = on_end};

/* ---- waiting commits ---- */

static void fail_list(struct gl_link *list, const struct gl_postgres_context *x, gl_ms before,
                      int status, const struct gl_why *why)
{
    for (struct gl_link *l = list->next, *next; l != list; l = next) {
        struct gl_postgres_op *op = GL_CONTAINER(l, struct gl_postgres_op, queue);
        next = l->next;
        if ((x == NULL || op->context == x) && op->query.until < before) {
            finish_failed(op, status, why);
            next = list->next; /* finishing one may move others */
        }
    }
}

void gl_postgres_lanes_fail(struct gl_postgres *s, struct gl_postgres_context *x, int status,
                            const struct gl_why *why)
{
    fail_list(&s->held, x, INT64_MAX, status, why);
    for (size_t i = 0; i < s->url.lanes_n; i++) {
        fail_list(&s->lanes[i].queue, x, INT64_MAX, status, why);
    }
}

/* These were never sent, so certainly not written. While a lane has a group in flight its queue is
 * not given up: the connection works. */
void gl_postgres_lanes_tick(struct gl_postgres *s, gl_ms now)
{
    for (size_t i = 0; i < s->url.lanes_n; i++) {
        struct gl_postgres_conn *c = &s->conns[GL_POSTGRES_LANE + i];
        struct gl_why why;
        int status = gl_why(&why, GL_E_UNAVAILABLE, "store unavailable: no connection to %s: %s",
                            s->url.display, gl_postgres_conn_why(c));
        if (!s->lanes[i].group.is_busy) {
            fail_list(&s->lanes[i].queue, NULL, now, status, &why);
        }
    }
}
