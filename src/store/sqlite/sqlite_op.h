/* sqlite_op.h - a request on its way: from the control thread to a worker (sqlite_queue.h), and
 * back (sqlite_batch.h). It belongs to one of them at a time. */
#ifndef GL_STORE_SQLITE_OP_H
#define GL_STORE_SQLITE_OP_H

#include "port/store.h"

enum gl_sqlite_op_type {
    GL_SQLITE_OP_COMMIT,
    GL_SQLITE_OP_SESSION_OPEN,
    GL_SQLITE_OP_SESSION_RENEW,
    GL_SQLITE_OP_SESSION_END,
    GL_SQLITE_OP_SESSION_DEAD,
    GL_SQLITE_OP_RESOLVE,
    GL_SQLITE_OP_SESSION_LIST,
    GL_SQLITE_OP_GET,
    GL_SQLITE_OP_RANGE,
    GL_SQLITE_OP_LIST,
    GL_SQLITE_OP_LOG_READ,
    GL_SQLITE_OP_EXPORT,
    GL_SQLITE_OP_MEASURE,
    GL_SQLITE_OP_TIME, /* answered on the control thread */
};

struct gl_sqlite_op {
    struct gl_sqlite_op *next;
    struct gl_store_req *req;
    enum gl_sqlite_op_type type;
    gl_str context;
    union {
        const struct gl_tx *tx;
        struct {
            gl_str node, nonce, about;
        } open;
        struct {
            gl_str session, about; /* about: of a renewal */
        } session;
        struct {
            gl_str session;
            uint64_t tx_id;
        } resolve;
        struct {
            const struct gl_key *keys;
            size_t n;
        } get;
        const struct gl_range *range;
        const struct gl_listing *listing;
        struct {
            gl_str kind, id;
            int64_t from;
            size_t limit;
        } log;
        struct {
            gl_str after;
            size_t limit;
        } export;
    } u;
};

/* A list in the order of the calls; all-zero is an empty one. */
struct gl_sqlite_ops {
    struct gl_sqlite_op *first, *last;
};

static inline void gl_sqlite_op_push(struct gl_sqlite_ops *l, struct gl_sqlite_op *op)
{
    op->next = NULL;
    if (l->first == NULL) {
        l->first = op;
    } else {
        l->last->next = op;
    }
    l->last = op;
}

static inline struct gl_sqlite_op *gl_sqlite_op_pop(struct gl_sqlite_ops *l) /* NULL if empty */
{
    struct gl_sqlite_op *op = l->first;
    if (op != NULL) {
        l->first = op->next;
        op->next = NULL;
    }
    return op;
}

/* Move all of `from` to the end of `to`. */
static inline void gl_sqlite_op_splice(struct gl_sqlite_ops *to, struct gl_sqlite_ops *from)
{
    if (from->first == NULL) {
        return;
    }
    if (to->first == NULL) {
        to->first = from->first;
    } else {
        to->last->next = from->first;
    }
    to->last = from->last;
    *from = (struct gl_sqlite_ops){0};
}

#endif
