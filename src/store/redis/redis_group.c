/* redis_group.c - groups: transactions that wait together are sent together.
 *
 * A server reads about 16 KB from a connection at a time, and with appendfsync always it syncs its
 * file after each such piece, which a handful of transactions fill. A group between MULTI and EXEC
 * is carried out and synced once, when all of it has arrived. Each transaction in it keeps an
 * outcome of its own. */
#include "base/check.h"
#include "store/redis/redis_parts.h"

enum {
    GROUP_OPS = 64, /* the server does nothing else meanwhile */
    GROUP_BYTES = 1 << 20,
};

/* ---- sending ---- */

/* Only commits, and only without a WAIT, which does not wait inside MULTI. */
static bool may_group(const struct gl_redis_link *l, const struct gl_redis_op *op)
{
    return op != NULL && op->verb == &gl_redis_verb_commit && !gl_redis_link_needs_wait(l, op) &&
           !l->store->no_groups;
}

/* The first op remembers the size, by which the replies are counted. */
static void send_group(struct gl_redis_link *l, gl_ms now)
{
    struct gl_redis_op *first = gl_redis_first(&l->waiting), *op = first;
    size_t n = 0;

    GL_ASSERT(!gl_list_empty(&l->waiting));
    gl_redis_command(&l->out, gl_arg_c("MULTI"));
    for (; n < GROUP_OPS && l->out.n < GROUP_BYTES && may_group(l, op); n++) {
        gl_redis_link_add(l, op, now);
        op = gl_redis_first(&l->waiting);
    }
    gl_redis_command(&l->out, gl_arg_c("EXEC"));
    first->group_n = n;
    GL_ASSERT(n > 0);
    GL_ASSERT(n <= GROUP_OPS);
}

void gl_redis_group_send(struct gl_redis_link *l, gl_ms now)
{
    struct gl_redis_op *first = gl_redis_first(&l->waiting);

    GL_ASSERT(l->state == GL_REDIS_READY);
    if (may_group(l, first) && may_group(l, gl_redis_next(&l->waiting, first))) {
        send_group(l, now);
    } else {
        gl_redis_link_add(l, first, now);
    }
    gl_redis_link_write(l);
}

/* ---- replies ---- */

/* MULTI was refused, so the commands were carried out one by one, and the replies that follow are
 * not those of a group. Drop the connection: each transaction then ends unknown and is resolved.
 * From now on nothing is grouped. */
static void on_multi_refused(struct gl_redis_link *l, gl_str error)
{
    struct gl_why why;
    l->store->no_groups = true;
    (void)gl_redis_error_why(&why, GL_E_UNAVAILABLE, error);
    gl_redis_link_lost(l, &why);
}

/* The reply to MULTI or to a command of the group: queued, or an error. */
static void on_queued(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    GL_ASSERT(l->group_seen <= GROUP_OPS);
    if (reply->type != GL_REDIS_STATUS && reply->type != GL_REDIS_ERROR) {
        gl_redis_link_unexpected(l);
        return;
    }
    if (reply->type == GL_REDIS_ERROR && l->group_seen == 0) {
        on_multi_refused(l, reply->text);
        return;
    }
    if (reply->type == GL_REDIS_ERROR && l->group_error.n == 0) {
        gl_buf_str(&l->group_error, reply->text);
    }
    l->group_seen++;
}

/* Why nothing of the group was done: the first error of its commands, or the one of EXEC. */
static gl_str group_error_text(const struct gl_redis_link *l, gl_str error)
{
    const gl_str abort = GL_S("EXECABORT Transaction discarded because of: ");
    if (l->group_error.n > 0) {
        return gl_buf_view(&l->group_error);
    }
    if (gl_str_starts(error, abort)) {
        return (gl_str){error.p + abort.n, error.n - abort.n};
    }
    return error;
}

void gl_redis_group_reply(struct gl_redis_link *l, size_t n, const struct gl_redis_reply *reply)
{
    struct gl_conn *conn = l->conn;
    bool is_error = reply->type == GL_REDIS_ERROR;

    GL_ASSERT(n > 0);
    GL_ASSERT(n <= GROUP_OPS);
    if (l->group_seen <= n) {
        on_queued(l, reply);
        return;
    }
    if (!is_error && (reply->type != GL_REDIS_ARRAY || reply->items_n != n)) {
        gl_redis_link_unexpected(l);
        return;
    }
    l->group_seen = 0;
    struct gl_redis_reply no = {.type = GL_REDIS_ERROR, .text = group_error_text(l, reply->text)};
    for (size_t i = 0; i < n && l->conn == conn; i++) {
        struct gl_redis_op *op = gl_redis_first(&l->sent);
        op->group_n = 0;
        gl_redis_link_answer(l, op, is_error ? &no : gl_redis_item(reply, i));
    }
    gl_buf_reset(&l->group_error);
}
