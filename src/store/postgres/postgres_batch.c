/* postgres_batch.c - a batch: commits of one context and session none of which touches what another
 * one writes. They are sent as one call of commit_1, as arrays: the guards, and the writes per
 * table. Several writes of one transaction to the same key are folded here, so that each key is
 * written once.
 *
 * Rows are sorted by key, so that all nodes lock in the same order and deadlocks are rare. */
#include <stdlib.h>

#include "base/check.h"
#include "store/postgres/postgres_parts.h"

struct row { /* one write */
    const struct gl_write *w;
    const struct gl_tx *tx;
    uint32_t number; /* of the transaction, from 1 */
    uint32_t place;  /* position in the batch */
};

/* The arrays, in the order of the function's parameters; each constant is the first array of its
 * group. A row has one item in each array of its group. Five arrays for queues follow, which no
 * longer exist. */
enum group {               /* with the names of their arrays in commit_1 */
             GUARDS,       /* tx, no, type, lock, kind, id, rev, owner, token */
             HOLDS = 9,    /* kind, id */
             RECORDS = 11, /* tx, class, kind, id, rev, owner, token, live, sum, value */
             DELETES = 21, /* tx, kind, id */
             ENTRIES = 24, /* tx, in, name, score, id */
             LOGS = 29,    /* tx, kind, id, seq, value */
             TRIMS = 34,   /* tx, kind, id, seq */
             COLUMNS = 38,
};

enum { CLASS_PUT, CLASS_FRESH, CLASS_NEW };

struct batch {
    struct gl_postgres_args *args;
    int column; /* number of the first array */
    int32_t flags;
    struct gl_str session;
    struct gl_buf rows; /* of struct row */
};

static void open_columns(struct batch *v)
{
    const enum gl_postgres_type i4 = GL_POSTGRES_INT4, i8 = GL_POSTGRES_INT8, t = GL_POSTGRES_TEXT,
                                b = GL_POSTGRES_BYTES, f = GL_POSTGRES_BOOL;
    const enum gl_postgres_type types[COLUMNS] = {
        i4, i4, i4, i4, t,  b, i8, t, i8,    /* guards */
        t,  b,                               /* holds */
        i4, i4, t,  b,  i8, t, i8, f, i8, b, /* records */
        i4, t,  b,                           /* deletes */
        i4, f,  t,  i8, b,                   /* entries */
        i4, t,  b,  i8, b,                   /* logs */
        i4, t,  b,  i8,                      /* trims */
    };
    v->column = v->args->n;
    for (int i = 0; i < COLUMNS; i++) {
        (void)gl_postgres_args_array(v->args, types[i]); /* numbered consecutively */
    }
    GL_ASSERT(v->args->n == v->column + COLUMNS);
}

static void add_row(struct batch *v, enum group group, const struct gl_arg *items, size_t n)
{
    GL_ASSERT(n > 0);
    GL_ASSERT((int)group + (int)n <= COLUMNS);
    for (size_t i = 0; i < n; i++) {
        gl_postgres_args_add(v->args, v->column + (int)group + (int)i, &items[i]);
    }
}

/* ---- guards ---- */

/* Does the transaction write the record the guard names? With `makes`: in a way that leaves it
 * present. */
static bool writes_key(const struct gl_tx *tx, const struct gl_guard *g, bool makes)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];
        bool fits = w->type == GL_WRITE_PUT || w->type == GL_WRITE_PUT_NEW ||
                    (w->type == GL_WRITE_DELETE && !makes);
        if (fits && gl_str_eq(w->id, g->id) && gl_str_eq(w->kind, g->kind)) {
            return true;
        }
    }
    return false;
}

static bool has_guard(const struct gl_tx *tx, enum gl_guard_type type, gl_str kind, gl_str id)
{
    for (size_t i = 0; i < tx->guards_n; i++) {
        const struct gl_guard *g = &tx->guards[i];
        if (g->type == type && gl_str_eq(g->id, id) && gl_str_eq(g->kind, kind)) {
            return true;
        }
    }
    return false;
}

/* A key that must stay absent until the end, although no insert of ours ensures it: commit_1
 * inserts a placeholder. */
static void hold_absent(struct batch *v, const struct gl_guard *g)
{
    GL_ASSERT(g->kind.n > 0);
    v->flags |= GL_POSTGRES_BATCH_HOLDS;
    add_row(v, HOLDS, GL_ARGS(gl_arg_text(g->kind), gl_arg_text(g->id)));
}

enum lock { LOCK_NONE, LOCK_PRESENT, LOCK_SHARE, LOCK_ALONE };

/* The weakest lock that keeps the guard true until the end of the transaction. A shared lock on a
 * record that is then written would deadlock with another holder of the share. */
static enum lock lock_of(const struct gl_tx *tx, const struct gl_guard *g)
{
    switch (g->type) {
    case GL_GUARD_AT:
    case GL_GUARD_OWNED:
    case GL_GUARD_NOT_LIVE:
        return writes_key(tx, g, false) ? LOCK_ALONE : LOCK_SHARE;
    case GL_GUARD_PRESENT:
        return LOCK_PRESENT;
    default:
        return LOCK_NONE;
    }
}

static int32_t guard_flags(struct batch *v, const struct gl_tx *tx, const struct gl_guard *g)
{
    static const int32_t locks[] = {0, GL_POSTGRES_BATCH_PRESENT, GL_POSTGRES_BATCH_SHARES,
                                    GL_POSTGRES_BATCH_LOCKS};
    int32_t flags = GL_POSTGRES_BATCH_GUARDS | locks[lock_of(tx, g)];

    GL_ASSERT((size_t)lock_of(tx, g) < GL_COUNT(locks));
    if (g->type == GL_GUARD_NOT_LIVE || (g->type == GL_GUARD_ABSENT && !writes_key(tx, g, true))) {
        hold_absent(v, g);
    } else if (g->type == GL_GUARD_ALIVE && !gl_str_eq(g->owner, v->session)) {
        flags |= GL_POSTGRES_BATCH_ALIVE;
    }
    return flags;
}

static void add_guards(struct batch *v, const struct gl_tx *tx, uint32_t number)
{
    GL_ASSERT(number > 0);
    for (size_t i = 0; i < tx->guards_n; i++) {
        const struct gl_guard *g = &tx->guards[i];
        v->flags |= guard_flags(v, tx, g);
        add_row(v, GUARDS,
                GL_ARGS(gl_arg_i32((int32_t)number), gl_arg_i32((int32_t)i),
                        gl_arg_i32((int32_t)g->type), gl_arg_i32((int32_t)lock_of(tx, g)),
                        gl_arg_text(g->kind), gl_arg_text(g->id), gl_arg_u64(g->rev),
                        gl_arg_text(g->owner), gl_arg_u64(g->token)));
    }
}

/* ---- rows ---- */

static enum group table_of(const struct gl_write *w)
{
    switch (w->type) {
    case GL_WRITE_PUT:
    case GL_WRITE_PUT_NEW:
    case GL_WRITE_DELETE:
        return RECORDS;
    case GL_WRITE_INDEX:
    case GL_WRITE_UNINDEX:
        return ENTRIES;
    case GL_WRITE_LOG:
    case GL_WRITE_LOG_TRIM:
        return LOGS;
    }
    GL_UNREACHABLE();
}

static int compare_keys(const struct gl_write *a, const struct gl_write *b)
{
    int order = (int)table_of(a) - (int)table_of(b);
    order = order != 0 ? order : gl_str_cmp(a->kind, b->kind);
    if (order == 0 && table_of(a) == ENTRIES && a->score != b->score) {
        order = a->score < b->score ? -1 : 1;
    }
    return order != 0 ? order : gl_str_cmp(a->id, b->id);
}

/* By key, so that all nodes lock in the same order; writes to one key in their given order. Within
 * a batch only PUT_NEWs of several transactions can meet at a key: the first that is not refused
 * wins. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = compare_keys(x->w, y->w);
    return order != 0 ? order : x->place < y->place ? -1 : 1;
}

static void add_put(struct batch *v, const struct row *r, int class)
{
    static const int32_t flags[] = {GL_POSTGRES_BATCH_PUTS, GL_POSTGRES_BATCH_FRESH,
                                    GL_POSTGRES_BATCH_NEW};
    const struct gl_write *w = r->w;

    GL_ASSERT(class == CLASS_PUT || class == CLASS_FRESH || class == CLASS_NEW);
    v->flags |= flags[class];
    add_row(v, RECORDS,
            GL_ARGS(gl_arg_i32((int32_t)r->number), gl_arg_i32(class), gl_arg_text(w->kind),
                    gl_arg_text(w->id), gl_arg_u64(w->rev), gl_arg_text(w->owner),
                    gl_arg_u64(w->token), gl_arg_bool(w->live), gl_arg_i64(gl_call_checksum(w)),
                    gl_arg_text(w->value)));
}

/* Fold the writes of one transaction to one record into one: the last PUT or DELETE wins; a PUT_NEW
 * counts only if the record would be absent. */
static void fold_record(struct batch *v, const struct row *r, size_t n)
{
    const struct row *last = NULL;
    int class = CLASS_PUT;
    bool was_deleted = false;

    GL_ASSERT(n > 0);
    GL_ASSERT(table_of(r->w) == RECORDS);
    for (size_t i = 0; i < n; i++) {
        if (r[i].w->type == GL_WRITE_DELETE) {
            last = NULL;
            was_deleted = true;
        } else if (r[i].w->type == GL_WRITE_PUT) {
            last = &r[i];
            class = CLASS_PUT;
        } else if (last == NULL) {
            last = &r[i];
            class = was_deleted ? CLASS_PUT : CLASS_NEW;
        }
    }
    if (last == NULL) {
        v->flags |= GL_POSTGRES_BATCH_DELETES;
        add_row(v, DELETES,
                GL_ARGS(gl_arg_i32((int32_t)r->number), gl_arg_text(r->w->kind),
                        gl_arg_text(r->w->id)));
        return;
    }
    /* A record guarded as absent is inserted without overwriting: if the insert meets a row after
     * all, commit_1 fails the batch, and it is retried. */
    bool fresh = has_guard(r->tx, GL_GUARD_ABSENT, r->w->kind, r->w->id) &&
                 !has_guard(r->tx, GL_GUARD_NOT_LIVE, r->w->kind, r->w->id);
    add_put(v, last, fresh ? CLASS_FRESH : class);
}

/* Of several writes to one entry the last wins. */
static void fold_entry(struct batch *v, const struct row *r, size_t n)
{
    const struct row *last = &r[n - 1];
    bool is_in = last->w->type == GL_WRITE_INDEX;

    GL_ASSERT(n > 0);
    GL_ASSERT(table_of(r->w) == ENTRIES);
    v->flags |= is_in ? GL_POSTGRES_BATCH_ENTRIES_IN : GL_POSTGRES_BATCH_ENTRIES_OUT;
    add_row(v, ENTRIES,
            GL_ARGS(gl_arg_i32((int32_t)last->number), gl_arg_bool(is_in),
                    gl_arg_text(last->w->kind), gl_arg_i64(last->w->score),
                    gl_arg_text(last->w->id)));
}

/* Does a later trim of the same transaction remove the entry again? */
static bool is_trimmed(const struct row *r, size_t i, size_t n)
{
    GL_ASSERT(i < n);
    for (size_t k = i + 1; k < n; k++) {
        if (r[k].w->type == GL_WRITE_LOG_TRIM &&
            (r[i].w->seq < r[k].w->seq || r[k].w->seq == INT64_MAX)) {
            return true;
        }
    }
    return false;
}

/* commit_1 trims before it appends, so entries that a later trim removes are not sent. */
static void fold_log(struct batch *v, const struct row *r, size_t n)
{
    const struct row *highest = NULL;

    GL_ASSERT(n > 0);
    GL_ASSERT(table_of(r->w) == LOGS);
    for (size_t i = 0; i < n; i++) {
        const struct gl_write *w = r[i].w;
        if (w->type == GL_WRITE_LOG_TRIM) {
            highest = highest == NULL || w->seq > highest->w->seq ? &r[i] : highest;
        } else if (!is_trimmed(r, i, n)) {
            v->flags |= GL_POSTGRES_BATCH_LOG;
            add_row(v, LOGS,
                    GL_ARGS(gl_arg_i32((int32_t)r[i].number), gl_arg_text(w->kind),
                            gl_arg_text(w->id), gl_arg_i64(w->seq), gl_arg_text(w->value)));
        }
    }
    if (highest != NULL) {
        v->flags |= GL_POSTGRES_BATCH_TRIMS;
        add_row(v, TRIMS,
                GL_ARGS(gl_arg_i32((int32_t)highest->number), gl_arg_text(highest->w->kind),
                        gl_arg_text(highest->w->id), gl_arg_i64(highest->w->seq)));
    }
}

/* Sort all writes and fold each run of the same transaction and key. */
static void fold_rows(struct batch *v)
{
    struct row *rows = (struct row *)(void *)v->rows.p;
    size_t n = v->rows.n / sizeof(*rows);

    GL_ASSERT(v->rows.n % sizeof(struct row) == 0);
    if (n > 1) {
        qsort(rows, n, sizeof(*rows), compare_rows);
    }
    for (size_t i = 0, next; i < n; i = next) {
        enum group table = table_of(rows[i].w);
        for (next = i + 1; next < n && rows[next].number == rows[i].number &&
                           compare_keys(rows[i].w, rows[next].w) == 0;
             next++) {
        }
        if (table == RECORDS) {
            fold_record(v, &rows[i], next - i);
        } else if (table == ENTRIES) {
            fold_entry(v, &rows[i], next - i);
        } else {
            fold_log(v, &rows[i], next - i);
        }
    }
}

static void add_writes(struct batch *v, const struct gl_tx *tx, uint32_t number)
{
    GL_ASSERT(number > 0);
    for (size_t i = 0; i < tx->writes_n; i++) {
        struct row r = {.w = &tx->writes[i],
                        .tx = tx,
                        .number = number,
                        .place = (uint32_t)(v->rows.n / sizeof(struct row))};
        gl_buf_add(&v->rows, &r, sizeof(r));
    }
}

/* ---- the call ---- */

/* The first parameters: flags, session, ids, forget. The flags are known only at the end; their
 * place is reserved. */
static void add_head(struct batch *v, struct gl_postgres_group *g, size_t batch)
{
    GL_ASSERT(batch < g->batches_n);
    gl_postgres_args_put(v->args, GL_ARGS(gl_arg_i32(0), gl_arg_text(v->session)));
    int ids = gl_postgres_args_array(v->args, GL_POSTGRES_INT8);
    gl_postgres_args_put(v->args, GL_ARGS(gl_arg_i64(batch == 0 ? g->forget : 0)));
    uint32_t number = 0;
    for (struct gl_link *l = g->ops.next; l != &g->ops; l = l->next) {
        struct gl_postgres_op *op = GL_CONTAINER(l, struct gl_postgres_op, queue);
        if (op->batch == batch) {
            op->number = ++number;
            const struct gl_arg id = gl_arg_u64(op->call.tx->id);
            gl_postgres_args_add(v->args, ids, &id);
        }
    }
}

static void set_flags(struct batch *v)
{
    char *at = v->args->args[0].buf.p;
    for (int i = 0; i < 4; i++) {
        at[i] = (char)((uint32_t)v->flags >> (24 - 8 * i));
    }
}

bool gl_postgres_batch_send(struct gl_postgres_conn *c, struct gl_postgres_group *g, size_t batch)
{
    struct gl_postgres *s = c->store;
    struct gl_postgres_op *first =
        GL_CONTAINER(gl_list_first(&g->ops), struct gl_postgres_op, queue);
    struct batch v = {.args = &s->args, .session = first->call.tx->session};

    GL_ASSERT(batch < g->batches_n);
    GL_ASSERT(!gl_list_empty(&g->ops));
    gl_postgres_args_reset(&s->args);
    add_head(&v, g, batch);
    open_columns(&v);
    for (struct gl_link *l = g->ops.next; l != &g->ops; l = l->next) {
        struct gl_postgres_op *op = GL_CONTAINER(l, struct gl_postgres_op, queue);
        if (op->batch == batch) {
            add_guards(&v, op->call.tx, op->number);
            add_writes(&v, op->call.tx, op->number);
        }
    }
    fold_rows(&v);
    set_flags(&v);
    gl_buf_done(&v.rows);
    return gl_postgres_conn_send(c, GL_POSTGRES_COMMIT, first->context);
}
