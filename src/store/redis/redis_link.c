/* redis_link.c - a link: one connection to the server, the requests on it, and the rules for
 * resending.
 *
 * A request moves from `waiting` to `sent` and completes with its reply. Two rules protect
 * transactions. An op marked `once` that may have reached the server is never sent again after a
 * lost connection; it ends unknown, and the caller resolves it. And transactions keep their order:
 * when the server refuses one for now, sending stops until everything in flight has been answered,
 * and a deferred op fails if a later one got through. */
#include "base/check.h"
#include "store/redis/redis_parts.h"

enum {
    WINDOW_OPS = 2048,      /* sent and unanswered; what is not sent is certainly not done */
    WINDOW_BYTES = 8 << 20, /* not yet written to the socket */
    BACKOFF_MIN_MS = 20,
    BACKOFF_MAX_MS = 2000,
    BACKOFF_SENTINEL_MS = 200, /* short: during a failover everything waits */
    PAUSE_MS = 50,             /* before resending what the server refused for now */
};

/* Move all of `from` before the first of `to`, in order. */
static void splice_front(struct gl_link *to, struct gl_link *from)
{
    while (!gl_list_empty(from)) {
        struct gl_link *last = from->prev;
        gl_list_remove(last);
        gl_list_push(to->next, last); /* appends to the list whose head is the first item */
    }
    GL_ASSERT(gl_list_empty(from));
}

void gl_redis_link_init(struct gl_redis_link *l, struct gl_redis *s, enum gl_redis_role role)
{
    GL_ASSERT(role < GL_REDIS_ROLES_N);
    l->store = s;
    l->role = role;
    gl_list_init(&l->waiting);
    gl_list_init(&l->sent);
    gl_list_init(&l->deferred);
}

static void disconnect(struct gl_redis_link *l)
{
    gl_redis_discovery_stop(l);
    gl_conn_close(l->conn);
    gl_redis_reader_free(l->reader);
    l->conn = NULL;
    l->reader = NULL;
    l->state = GL_REDIS_DOWN;
    GL_ASSERT(l->state == GL_REDIS_DOWN);
}

void gl_redis_link_done(struct gl_redis_link *l)
{
    GL_ASSERT(gl_list_empty(&l->waiting));
    GL_ASSERT(gl_list_empty(&l->sent));
    GL_ASSERT(gl_list_empty(&l->deferred));
    disconnect(l);
    gl_buf_done(&l->out);
    gl_buf_done(&l->group_error);
    gl_arena_done(&l->arena);
}

/* ---- sending ---- */

void gl_redis_link_write(struct gl_redis_link *l)
{
    gl_conn_send(l->conn, gl_buf_view(&l->out));
    l->sent_bytes += l->out.n;
    if (l->out.cap > WINDOW_BYTES) { /* one oversized request must not keep its memory */
        gl_buf_done(&l->out);
    }
    gl_buf_reset(&l->out);
    GL_ASSERT(l->out.n == 0);
}

bool gl_redis_link_needs_wait(const struct gl_redis_link *l, const struct gl_redis_op *op)
{
    return op->confirm && gl_redis_replicas_wanted(l->store) > 0;
}

void gl_redis_link_add(struct gl_redis_link *l, struct gl_redis_op *op, gl_ms now)
{
    struct gl_redis *s = l->store;

    GL_ASSERT(l->state == GL_REDIS_READY);
    /* Remembered to decide later whether any of its bytes left this process. */
    op->offset = l->sent_bytes + l->out.n;
    op->sent_at = now;
    op->deferred = false;
    op->group_n = 0;
    op->sent_wait = gl_redis_link_needs_wait(l, op);
    op->due = op->sent_wait ? 2 : 1;
    op->verb->encode(op, &l->out);
    if (op->sent_wait) {
        gl_redis_command(&l->out, gl_arg_c("WAIT"), gl_arg_i64(gl_redis_replicas_wanted(s)),
                         gl_arg_i64(s->url.wait_ms));
    }
    gl_list_remove(&op->call.link);
    gl_list_push(&l->sent, &op->call.link);
    l->sent_n++;
    GL_ASSERT(op->due > 0);
    GL_ASSERT(l->sent_n > 0);
}

/* Nothing is sent while ops are deferred or scripts missing: a later op must not overtake them. */
void gl_redis_link_send_waiting(struct gl_redis_link *l)
{
    struct gl_redis_op *op = gl_redis_first(&l->waiting);
    if (op == NULL || l->state != GL_REDIS_READY || !gl_list_empty(&l->deferred) || l->reload) {
        return;
    }
    gl_ms now = gl_calls_now(&l->store->calls);
    if (now < l->retry_at) {
        return;
    }
    while (op != NULL && l->sent_n < WINDOW_OPS && gl_conn_unsent(l->conn) < WINDOW_BYTES) {
        gl_redis_group_send(l, now);
        op = gl_redis_first(&l->waiting);
    }
}

static void flush(struct gl_loop_task *t)
{
    struct gl_redis_link *l = t->owner;

    GL_ASSERT(l->flushing);
    l->flushing = false;
    gl_redis_link_send_waiting(l);
    if (l->store->calls.closing) {
        gl_redis_schedule_tick(l->store, 0); /* the close may have been waiting for this flush */
    }
}

void gl_redis_link_push(struct gl_redis_link *l, struct gl_redis_op *op)
{
    GL_ASSERT(gl_list_empty(&op->call.link));
    gl_list_push(&l->waiting, &op->call.link);
    if (l->store->refusal.code != 0) {
        gl_redis_schedule_tick(l->store, 0);
        return;
    }
    if (l->role != GL_REDIS_WRITER || (l->sent_n == 0 && !l->flushing)) {
        gl_redis_link_send_waiting(l);
    } else if (!l->flushing) { /* requests of the same turn of the loop are sent together */
        l->flushing = true;
        l->flush = (struct gl_loop_task){.run = flush, .owner = l};
        gl_loop_post(l->store->calls.loop, &l->flush);
    }
}

/* ---- losing the connection ---- */

/* Has any byte of the op left this process? */
static bool has_left(const struct gl_redis_link *l, const struct gl_redis_op *op)
{
    return op->offset < l->sent_bytes - gl_conn_unsent(l->conn);
}

/* After losing the connection: everything in flight returns to `waiting`, except transactions that
 * may have reached the server, which are moved to `lost`. */
static void requeue_sent(struct gl_redis_link *l, struct gl_link *lost)
{
    struct gl_link again;
    gl_list_init(&again);
    splice_front(&again, &l->deferred);
    struct gl_redis_op *op;
    while ((op = gl_redis_first(&l->sent)) != NULL) {
        bool gone = op->verb->once && !op->deferred && has_left(l, op);
        gl_list_remove(&op->call.link);
        gl_list_push(gone ? lost : &again, &op->call.link);
    }
    l->sent_n = 0;
    splice_front(&l->waiting, &again);
    GL_ASSERT(gl_list_empty(&l->sent));
    GL_ASSERT(gl_list_empty(&l->deferred));
}

static gl_ms backoff(struct gl_redis_link *l)
{
    unsigned shift = l->failures < 8 ? l->failures : 8;
    gl_ms ms = (gl_ms)BACKOFF_MIN_MS << shift;
    gl_ms most = l->store->url.sentinel ? BACKOFF_SENTINEL_MS : BACKOFF_MAX_MS;
    ms = ms < most ? ms : most;
    GL_ASSERT(ms > 0);
    return ms / 2 + gl_rng_range(&l->store->calls.rng, 0,
                                 ms / 2); /* random: many nodes reconnect to one server */
}

/* Close the connection, schedule a reconnect, and complete lost transactions as unknown.
 * Completions come last: they may issue requests. */
static void drop(struct gl_redis_link *l, const struct gl_why *why)
{
    struct gl_link lost;
    gl_list_init(&lost);
    if (l->conn != NULL) {
        requeue_sent(l, &lost);
    }
    disconnect(l);
    gl_ms now = gl_calls_now(&l->store->calls);
    l->since = now;
    l->retry_at = now + backoff(l);
    l->failures++;
    gl_redis_schedule_tick(l->store, l->retry_at - now);
    struct gl_redis_op *op;
    while ((op = gl_redis_first(&lost)) != NULL) {
        gl_list_remove(&op->call.link);
        op->call.req->status = gl_why(&op->call.req->why, GL_E_UNKNOWN,
                                      "sent to the store, but no reply arrived: %s", why->text);
        gl_redis_complete(l->store, op);
    }
}

void gl_redis_link_lost(struct gl_redis_link *l, const struct gl_why *why)
{
    struct gl_redis *s = l->store;
    struct gl_why copy = *why; /* copied: it may be part of what is freed here */
    s->last_loss = copy;
    drop(l, &copy);
    if (l->role != GL_REDIS_WRITER) {
        return;
    }
    /* The writer decides which server is the right one: the other links must follow it. */
    for (int i = 0; i < GL_REDIS_ROLES_N; i++) {
        if (i != GL_REDIS_WRITER && s->links[i].state != GL_REDIS_DOWN) {
            drop(&s->links[i], &copy);
        }
    }
}

void gl_redis_link_ready(struct gl_redis_link *l)
{
    GL_ASSERT(l->state == GL_REDIS_HANDSHAKE);
    l->state = GL_REDIS_READY;
    l->failures = 0;
    l->retry_at = 0;
    l->reload = false;
    l->was_ready = true;
    gl_redis_link_send_waiting(l);
}

/* ---- replies ---- */

/* A later transaction has been carried out, so the deferred ones before it can no longer be applied
 * in order. Nothing of them was written: fail them. */
static void fail_deferred(struct gl_redis_link *l)
{
    struct gl_redis_op *op, *next = gl_redis_first(&l->deferred);
    while ((op = next) != NULL) {
        next = gl_redis_next(&l->deferred, op);
        if (op->verb->once) {
            gl_list_remove(&op->call.link);
            gl_redis_fail(l->store, op, GL_E_UNAVAILABLE,
                          "the server could not accept it in order");
        }
    }
}

static void defer(struct gl_redis_link *l, struct gl_redis_op *op)
{
    GL_ASSERT(op->deferred);
    gl_list_push(&l->deferred, &op->call.link);
}

/* Once everything in flight has been answered, resend what was deferred. */
static void resend_deferred(struct gl_redis_link *l)
{
    if (l->state != GL_REDIS_READY || gl_list_empty(&l->deferred) || !gl_list_empty(&l->sent)) {
        return;
    }
    if (l->moved) {
        struct gl_why why;
        (void)gl_why(&why, GL_E_UNAVAILABLE,
                     "the Redis server is now a replica, or holds different data");
        gl_redis_link_lost(l, &why);
        return;
    }
    splice_front(&l->waiting, &l->deferred);
    if (l->reload) {
        gl_redis_handshake_reload(l);
        return;
    }
    l->retry_at = gl_calls_now(&l->store->calls) + PAUSE_MS;
    gl_redis_schedule_tick(l->store, PAUSE_MS);
}

/* Decide by the class of the error. Only a class that guarantees that nothing was done may defer or
 * refuse; everything else leaves a `once` op unknown. */
static void on_error(struct gl_redis_link *l, struct gl_redis_op *op, gl_str error)
{
    struct gl_store_req *req = op->call.req;
    switch (gl_redis_error_classify(error)) {
    case GL_REDIS_RELOAD:
        l->reload = true;
        op->deferred = true;
        return;
    case GL_REDIS_MOVED:
        l->moved = true;
        op->deferred = true;
        (void)gl_redis_error_why(&req->why, GL_E_UNAVAILABLE, error);
        return;
    case GL_REDIS_RETRY:
        op->deferred = true;
        (void)gl_redis_error_why(&req->why, GL_E_UNAVAILABLE, error);
        return;
    case GL_REDIS_REFUSED:
        req->status = gl_redis_error_why(&req->why, GL_E_UNAVAILABLE, error);
        return;
    case GL_REDIS_UNKNOWN:
        break;
    }
    req->status =
        gl_redis_error_why(&req->why, op->verb->once ? GL_E_UNKNOWN : GL_E_UNAVAILABLE, error);
}

/* No replica confirmed. Perhaps the server was demoted while it was suspended and does not know
 * yet. Dropping the subscriber makes it ask the sentinels again; if it finds another server, all
 * links move there (redis_handshake.c). If not, at most wake-ups are lost. */
static void recheck_primary(struct gl_redis *s)
{
    struct gl_redis_link *subscriber = &s->links[GL_REDIS_SUBSCRIBER];
    struct gl_why why;
    if (s->url.sentinel && subscriber->state == GL_REDIS_READY) {
        (void)gl_why(&why, GL_E_UNAVAILABLE,
                     "no replica follows the server; checking whether it is still the primary");
        gl_redis_link_lost(subscriber, &why);
    }
}

/* The reply to WAIT: the number of replicas that have everything written so far. The command itself
 * was carried out, so too few confirmations make its outcome unknown, not failed. */
static void on_confirmed(struct gl_redis *s, struct gl_redis_op *op,
                         const struct gl_redis_reply *reply)
{
    int64_t n = 0;
    unsigned want = gl_redis_replicas_wanted(s);
    bool ok = gl_redis_i64(reply, &n) && n >= (int64_t)want;

    GL_ASSERT(op->sent_wait);
    if (n <= 0) {
        recheck_primary(s);
    }
    if (ok || op->deferred || op->call.req->status != 0) {
        return;
    }
    op->call.req->status =
        gl_why(&op->call.req->why, op->verb->once ? GL_E_UNKNOWN : GL_E_UNAVAILABLE,
               "done, but only %lld of %u replicas confirmed it within %lld ms: if the server is "
               "lost now, this may be lost, too; restore its replicas, or change wait_replicas in "
               "the store URL",
               (long long)(n > 0 ? n : 0), want, (long long)s->url.wait_ms);
}

/* All replies to the op have arrived: complete it, or defer it. */
static void finish(struct gl_redis_link *l, struct gl_redis_op *op)
{
    GL_ASSERT(l->sent_n > 0);
    GL_ASSERT(op->due == 0);
    gl_list_remove(&op->call.link);
    l->sent_n--;
    if (op->deferred) {
        defer(l, op);
        return;
    }
    if (op->verb->once && !gl_list_empty(&l->deferred)) {
        fail_deferred(l);
    }
    gl_redis_complete(l->store, op);
}

void gl_redis_link_unexpected(struct gl_redis_link *l)
{
    struct gl_why why;
    (void)gl_why(&why, GL_E_UNAVAILABLE, "unexpected reply (protocol out of sync)");
    gl_redis_link_lost(l, &why);
}

void gl_redis_link_answer(struct gl_redis_link *l, struct gl_redis_op *op,
                          const struct gl_redis_reply *reply)
{
    GL_ASSERT(op->due > 0);
    GL_ASSERT(l->sent_n > 0);
    op->due--;
    if (op->sent_wait && op->due == 0) {
        on_confirmed(l->store, op, reply);
        finish(l, op);
        return;
    }
    gl_arena_reset(&l->arena);
    if (reply->type == GL_REDIS_ERROR) {
        on_error(l, op, reply->text);
    } else {
        op->arena = &l->arena;
        op->verb->decode(op, reply);
    }
    /* Back to the front: the same request continues with another command, before any other. */
    if (op->again) {
        op->again = false;
        gl_list_remove(&op->call.link);
        l->sent_n--;
        gl_list_push(l->waiting.next, &op->call.link);
        return;
    }
    if (op->due == 0) {
        finish(l, op);
    }
}

static void on_answer(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    struct gl_redis_op *op = gl_redis_first(&l->sent);
    if (op == NULL) {
        gl_redis_link_unexpected(l);
    } else if (op->group_n > 0) {
        gl_redis_group_reply(l, op->group_n, reply);
    } else {
        gl_redis_link_answer(l, op, reply);
    }
}

/* Replies carry no ids: each belongs to the oldest op in `sent`. */
static void on_reply(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    if (l->state == GL_REDIS_HANDSHAKE) {
        gl_redis_handshake_reply(l, reply);
    } else if (l->role == GL_REDIS_SUBSCRIBER) {
        gl_redis_handshake_message(l, reply);
    } else {
        on_answer(l, reply);
    }
}

/* ---- the connection ---- */

static void on_opened(void *owner)
{
    struct gl_redis_link *l = owner;

    GL_ASSERT(l->state == GL_REDIS_CONNECTING);
    l->state = GL_REDIS_HANDSHAKE;
    l->since = gl_calls_now(&l->store->calls);
    l->step = 0;
    gl_redis_handshake(l);
}

static void on_received(void *owner, gl_str bytes)
{
    struct gl_redis_link *l = owner;
    struct gl_conn *conn = l->conn;
    const struct gl_redis_reply *reply = NULL;
    struct gl_why why;
    l->heard_at = gl_calls_now(&l->store->calls);
    int err = gl_redis_reader_feed(l->reader, bytes, &why);
    while (err == 0) {
        err = gl_redis_reader_next(l->reader, &reply, &why);
        if (err < 0 || reply == NULL) {
            break;
        }
        on_reply(l, reply);
        if (l->conn != conn) {
            return; /* dropped because of this reply */
        }
    }
    if (err < 0) {
        gl_redis_link_lost(l, &why);
        return;
    }
    resend_deferred(l);
    gl_redis_link_send_waiting(l);
}

static void on_ended(void *owner, const struct gl_why *why)
{
    gl_redis_link_lost(owner, why);
}

void gl_redis_link_connect(struct gl_redis_link *l, gl_str host, uint16_t port)
{
    struct gl_redis *s = l->store;

    GL_ASSERT(l->state == GL_REDIS_DISCOVERY);
    l->state = GL_REDIS_CONNECTING;
    l->since = gl_calls_now(&s->calls);
    l->sent_bytes = 0;
    l->reload = l->moved = false;
    l->group_seen = 0;
    gl_buf_reset(&l->group_error);
    gl_buf_reset(&l->out);
    l->reader = gl_redis_reader_new();
    l->conn = gl_conn_open(
        s->calls.loop,
        &(struct gl_conn_target){
            .host = host, .port = port, .timeout_ms = s->url.connect_timeout_ms, .tls = s->tls},
        &(struct gl_conn_events){
            .owner = l, .opened = on_opened, .received = on_received, .ended = on_ended});
}

/* ---- time ---- */

/* Fail requests that have waited too long to be sent; all of them while the server is refused.
 * Oldest first, so the first young one ends the sweep. */
static void sweep_waiting(struct gl_redis_link *l, gl_ms now)
{
    struct gl_redis *s = l->store;
    struct gl_redis_op *op;
    while ((op = gl_redis_first(&l->waiting)) != NULL) {
        if (s->refusal.code != 0) {
            gl_list_remove(&op->call.link);
            gl_redis_fail(s, op, gl_why_whole(&s->refusal), s->refusal.text);
        } else if (now - op->called_at >= s->url.timeout_ms) {
            gl_list_remove(&op->call.link);
            gl_redis_fail(s, op, GL_E_UNAVAILABLE,
                          op->call.req->why.code != 0 ? op->call.req->why.text
                          : s->last_loss.code != 0    ? s->last_loss.text
                                                      : "the request was not sent in time");
        } else {
            return;
        }
    }
}

/* Drop a connection whose server owes a reply and has sent nothing for the timeout. */
static void check_silence(struct gl_redis_link *l, gl_ms now)
{
    struct gl_redis *s = l->store;
    struct gl_redis_op *op = gl_redis_first(&l->sent);
    gl_ms since = op != NULL ? op->sent_at : l->state == GL_REDIS_HANDSHAKE ? l->since : now;
    since =
        since > l->heard_at ? since : l->heard_at; /* ops before it may be waiting for replicas */
    if (now - since < s->url.timeout_ms) {
        return;
    }
    struct gl_why why;
    (void)gl_why(&why, GL_E_UNAVAILABLE, "the server has not answered for %lld ms",
                 (long long)(now - since));
    gl_redis_link_lost(l, &why);
}

/* The other links follow the writer. */
static bool may_connect(const struct gl_redis_link *l)
{
    return l->role == GL_REDIS_WRITER || l->store->links[GL_REDIS_WRITER].state == GL_REDIS_READY;
}

void gl_redis_link_tick(struct gl_redis_link *l, gl_ms now)
{
    sweep_waiting(l, now);
    if (l->state == GL_REDIS_DOWN && now >= l->retry_at && may_connect(l)) {
        l->state = GL_REDIS_DISCOVERY;
        l->since = now;
        gl_redis_discovery_start(l);
    } else if (l->state == GL_REDIS_HANDSHAKE || l->state == GL_REDIS_READY) {
        check_silence(l, now);
    } else if (l->state == GL_REDIS_DISCOVERY) {
        gl_redis_discovery_tick(l, now);
    }
    gl_redis_link_send_waiting(l);
}

bool gl_redis_link_idle(const struct gl_redis_link *l)
{
    return l->state == GL_REDIS_READY && gl_list_empty(&l->sent) && gl_list_empty(&l->waiting) &&
           gl_list_empty(&l->deferred);
}
