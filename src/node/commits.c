/* commits.c - transactions in flight.
 *
 * An effect that belongs to a transaction is executed only once that transaction is known to have
 * committed. An unknown outcome is resolved by asking the store for the transaction's id, never by
 * repeating the transaction. Until it is resolved, answers to later transactions of the same job
 * wait, so that the core sees the outcomes in order.
 *
 * If the process dies here, the store's records decide: the job is loaded again, and whatever
 * committed is in them. */
#include "base/check.h"
#include "node/node_state.h"

enum { RESOLVE_MS = 200 };

struct commits {
    struct gl_link unknown; /* struct commit: outcome unknown */
    gl_ms due;              /* when to ask again */
    struct gl_histogram time;
    uint64_t committed_n, refused_n;
};

struct commit { /* lives in its batch's arena */
    struct gl_chain_call call;
    struct gl_node *node;
    gl_ms begun_at;
    struct gl_batch *batch;
    size_t number;         /* of the COMMIT effect in the batch */
    struct gl_link link;   /* in `unknown` */
    struct gl_link behind; /* answered transactions of the same job that wait for this one */
};

static struct commits *own(const struct gl_node *n)
{
    return n->parts[GL_PART_COMMITS];
}

static const struct gl_effect *effect_of(const struct commit *c)
{
    GL_ASSERT(c->number < c->batch->effects.n);
    return &c->batch->effects.items[c->number];
}

/* The effects of a transaction come directly after its COMMIT. */
static void release_effects(struct commit *c, int code)
{
    struct gl_batch *b = c->batch;
    uint64_t op = effect_of(c)->op;

    GL_ASSERT(c->number < c->batch->effects.n);
    GL_ASSERT(effect_of(c)->type == GL_FX_COMMIT);
    for (size_t i = c->number + 1; i < b->effects.n && b->effects.items[i].after == op; i++) {
        struct gl_effect *e = &b->effects.items[i];

        if (code == 0) {
            gl_node_execute(c->node, b, i);
        } else if (e->type == GL_FX_REPLY) {
            gl_requests_fail(c->node, e, effect_of(c)->tx, code, c->call.req.store.refused,
                             c->call.req.store.why.text);
        } else if (e->spec != NULL) {
            gl_spec_unref(e->spec);
        }
        e->spec = NULL; /* ownership passed on, or released */
    }
}

/* The limit that another node used first, if that is why this one was refused. */
static gl_str limit_of(struct commit *c, int code)
{
    const struct gl_tx *tx = effect_of(c)->tx;
    const struct gl_guard *g =
        &tx->guards[c->call.req.store.refused < tx->guards_n ? c->call.req.store.refused : 0];

    GL_ASSERT(code <= 0);
    if (code != GL_E_CONFLICT || c->call.req.store.refused >= tx->guards_n ||
        !(gl_str_is(g->kind, "limit") || gl_str_is(g->kind, "rate"))) {
        return (gl_str){0};
    }
    if (gl_str_is(g->kind, "rate")) {
        gl_sessions_read_rate(c->node, g->id);
    }
    return gl_str_fmt(&c->batch->arena, "%.*s/%.*s", GL_STR_ARG(g->kind), GL_STR_ARG(g->id));
}

/* A transaction guarded by "that session is dead" takes the job over from that session; with a
 * name, the guard is about an attempt that ran there (core/cluster/offers.c). */
static void note_taken(struct commit *c)
{
    const struct gl_effect *e = effect_of(c);

    GL_ASSERT(e->type == GL_FX_COMMIT);
    for (size_t i = 0; i < e->tx->guards_n; i++) {
        if (e->tx->guards[i].type == GL_GUARD_DEAD && e->tx->guards[i].kind.n == 0) {
            gl_sessions_note_taken(c->node, e->job, e->tx->guards[i].owner);
        }
    }
}

static void deliver(struct commit *c, int code)
{
    struct gl_node *n = c->node;
    struct gl_batch *b = c->batch;
    const struct gl_effect *e = effect_of(c);
    struct gl_event ev = {.type = GL_EV_DONE,
                          .context = e->context,
                          .job = e->job,
                          .done = {.op = e->op,
                                   .code = code,
                                   .number = c->call.req.store.refused,
                                   .needs_help = gl_sessions_is_store_full(&c->call.req.store),
                                   .guard = limit_of(c, code),
                                   .why = gl_str_of(code != 0 ? c->call.req.store.why.text : "")}};

    GL_ASSERT(e->type == GL_FX_COMMIT);
    GL_ASSERT(c->batch->refs > 0);
    if (code == 0) {
        note_taken(c);
        own(n)->committed_n++;
        gl_histogram_add(&own(n)->time, n->ports.clock->now(n->ports.clock) - c->begun_at);
    } else {
        own(n)->refused_n++;
    }
    release_effects(c, code);
    gl_node_feed(n, &ev);
    gl_sessions_report(n);
    gl_node_release(n, b);
}

static struct commit *find_unknown(struct gl_node *n, gl_str job)
{
    GL_ASSERT(job.n == GL_ULID_BYTES);
    for (struct gl_link *l = own(n)->unknown.next; l != &own(n)->unknown; l = l->next) {
        struct commit *c = GL_CONTAINER(l, struct commit, link);

        if (gl_str_eq(effect_of(c)->job, job)) {
            return c;
        }
    }
    return NULL;
}

static void on_commit(struct gl_store_req *req);

/* The outcome of `c` is known now, and so are the answers that wait for it, unless one of them is
 * unknown itself. */
static void settle(struct commit *c, int code)
{
    struct gl_link behind;

    GL_ASSERT(c->batch->refs > 0);
    GL_ASSERT(!c->call.is_under_way);
    GL_ASSERT(!gl_list_empty(&c->link));
    gl_list_take_all(&behind, &c->behind);
    gl_list_remove(&c->link);
    deliver(c, code);
    for (struct gl_link *l; (l = gl_list_first(&behind)) != NULL;) {
        struct commit *next = GL_CONTAINER(l, struct commit, link);

        gl_list_remove(l);
        on_commit(&next->call.req.store);
    }
}

static void on_resolved(struct gl_store_req *req)
{
    struct commit *c = req->owner;
    struct gl_node *n = c->node;

    GL_ASSERT(!gl_list_empty(&c->link));
    if (req->status == 0 || req->status == GL_E_CONFLICT) {
        GL_MARK(n->config.trace,
                req->status == 0 ? "commits.unknown_was_committed" : "commits.unknown_was_not");
        req->refused = SIZE_MAX;
        settle(c, req->status == 0 ? 0 : GL_E_UNAVAILABLE);
    } else {
        own(n)->due = n->now + RESOLVE_MS;
    }
}

static void resolve(struct commit *c)
{
    struct gl_node *n = c->node;
    const struct gl_tx *tx = effect_of(c)->tx;
    struct gl_why why = c->call.req.store.why;
    struct gl_store_req *req = gl_chain_call_store(&c->call, n, on_resolved, c);

    GL_ASSERT(effect_of(c)->tx->id != 0);
    req->why = why; /* keeps the error of the commit */
    n->ports.store->ops->resolve(n->ports.store, req, tx->context, tx->session, tx->id);
}

static void on_commit(struct gl_store_req *req)
{
    struct commit *c = req->owner;
    struct gl_node *n = c->node;
    struct commit *before = find_unknown(n, effect_of(c)->job);

    GL_ASSERT(!c->call.is_under_way);
    if (before != NULL) {
        GL_MARK(n->config.trace, "commits.held_behind_unknown");
        gl_list_push(&before->behind, &c->link);
    } else if (req->status == GL_E_UNKNOWN && GL_PLANT(10)) {
        deliver(c, 0); /* planted: assume that it committed */
    } else if (req->status == GL_E_UNKNOWN) {
        gl_list_push(&own(n)->unknown, &c->link);
        resolve(c);
    } else {
        deliver(c, req->status);
    }
}

void gl_commits_begin(struct gl_node *n, struct gl_batch *b, size_t number)
{
    struct commit *c = GL_NEW(&b->arena, struct commit);

    GL_ASSERT(number < b->effects.n);
    GL_ASSERT(b->effects.items[number].type == GL_FX_COMMIT);
    c->node = n;
    c->begun_at = n->now;
    c->batch = b;
    c->number = number;
    gl_list_init(&c->link);
    gl_list_init(&c->behind);
    b->refs++;
    n->ports.store->ops->commit(n->ports.store, gl_chain_call_store(&c->call, n, on_commit, c),
                                b->effects.items[number].tx);
    GL_ASSERT(b->refs > 1);
}

/* ---- the part ---- */

static void init(struct gl_node *n)
{
    gl_list_init(&own(n)->unknown);
    own(n)->due = INT64_MAX;
}

static gl_ms due(const struct gl_node *n)
{
    return own(n)->due;
}

static void on_time(struct gl_node *n)
{
    if (own(n)->due > n->now) {
        return;
    }
    own(n)->due = INT64_MAX;
    for (struct gl_link *l = own(n)->unknown.next; l != &own(n)->unknown; l = l->next) {
        struct commit *c = GL_CONTAINER(l, struct commit, link);

        if (!c->call.is_under_way) {
            resolve(c);
        }
    }
}

static bool is_busy(const struct gl_node *n)
{
    return !gl_list_empty(&own(n)->unknown);
}

static void measure(struct gl_node *n, struct gl_buf *out)
{
    const struct commits *m = own(n);

    gl_metrics_histogram(out, "glia_store_commit_seconds",
                         "Time from the decision of a transaction to its outcome.", &m->time);
    gl_metrics_counter(out, "glia_store_commits_total", "Transactions that committed.",
                       m->committed_n);
    gl_metrics_counter(out, "glia_store_commits_refused_total", "Transactions that did not commit.",
                       m->refused_n);
}

const struct gl_node_part gl_commits_part = {.bytes = sizeof(struct commits),
                                             .init = init,
                                             .due = due,
                                             .on_time = on_time,
                                             .is_busy = is_busy,
                                             .measure = measure};
