/* postgres_order.c - the order of commits.
 *
 * The port promises that transactions are applied, and completed, in the order of the calls; yet
 * commits are spread over lanes. The order of two transactions can be observed only if both touch
 * the same key. So transactions that touch the same key go to the same lane, where they stay in
 * order. One that conflicts with two lanes is held, and everything after it, until it conflicts
 * with at most one. Completion waits in `order` for all earlier calls.
 *
 * Within a group the same conflicts decide the batches: a transaction goes into the batch after the
 * last one it conflicts with. */
#include "base/check.h"
#include "store/postgres/postgres_parts.h"

enum { NO_LANE = -1, CROSSING = -2, SEVERAL = -1 };

void gl_postgres_order_init(struct gl_postgres *s)
{
    gl_list_init(&s->order);
    gl_list_init(&s->held);
    s->buckets = gl_mem_alloc(GL_POSTGRES_BUCKETS * sizeof(*s->buckets));
    s->cells = gl_mem_alloc(GL_POSTGRES_CELLS * sizeof(*s->cells));
}

void gl_postgres_order_done(struct gl_postgres *s)
{
    gl_mem_free(s->buckets);
    gl_mem_free(s->cells);
}

/* ---- keys ---- */

/* Spreads the bits of a hash: buckets and lanes use only the lowest ones. */
static uint32_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    return (uint32_t)(h ^ h >> 33);
}

static uint32_t key_hash(const struct gl_postgres_op *op, uint64_t shape, gl_str kind, gl_str id)
{
    return mix(gl_str_hash(kind) * 31 + gl_str_hash(id) + shape * 0x9e3779b97f4a7c15ULL +
               op->context->hash);
}

static void add_key(struct gl_postgres_op *op, uint32_t hash, enum gl_postgres_mode mode)
{
    op->keys[op->keys_n++] = (struct gl_postgres_key){.hash = hash, .mode = (uint8_t)mode};
}

enum shape { RECORD = 1, LOG, ENTRY /* plus its score */ };

static void add_write(struct gl_postgres_op *op, const struct gl_write *w)
{
    switch (w->type) {
    case GL_WRITE_PUT_NEW:
        add_key(op, key_hash(op, RECORD, w->kind, w->id), GL_POSTGRES_CREATES);
        return;
    case GL_WRITE_PUT:
    case GL_WRITE_DELETE:
        add_key(op, key_hash(op, RECORD, w->kind, w->id), GL_POSTGRES_WRITES);
        return;
    case GL_WRITE_INDEX:
    case GL_WRITE_UNINDEX:
        add_key(op, key_hash(op, ENTRY + (uint64_t)w->score, w->kind, w->id), GL_POSTGRES_WRITES);
        return;
    case GL_WRITE_LOG:
    case GL_WRITE_LOG_TRIM:
        add_key(op, key_hash(op, LOG, w->kind, w->id), GL_POSTGRES_WRITES);
        return;
    }
}

/* Collect the keys a transaction reads (guards) and writes, and its approximate size. */
static void find_keys(struct gl_postgres_op *op)
{
    const struct gl_tx *tx = op->call.tx;

    GL_ASSERT(op->call.type == GL_CALL_COMMIT);
    op->keys = gl_mem_alloc((tx->guards_n + tx->writes_n + 1) * sizeof(*op->keys));
    for (size_t i = 0; i < tx->guards_n; i++) {
        const struct gl_guard *g = &tx->guards[i];
        if (g->type != GL_GUARD_DEAD && g->type != GL_GUARD_ALIVE) {
            add_key(op, key_hash(op, RECORD, g->kind, g->id), GL_POSTGRES_READS);
        }
        op->bytes += g->kind.n + g->id.n + g->owner.n;
    }
    for (size_t i = 0; i < tx->writes_n; i++) {
        add_write(op, &tx->writes[i]);
        op->bytes += tx->writes[i].value.n + tx->writes[i].kind.n + tx->writes[i].id.n;
    }
    GL_ASSERT(op->keys_n <= tx->guards_n + tx->writes_n);
}

/* ---- lanes ---- */

static struct gl_postgres_bucket *bucket_of(struct gl_postgres *s, const struct gl_postgres_key *k)
{
    return &s->buckets[k->hash & (GL_POSTGRES_BUCKETS - 1)];
}

/* Does the order of two accesses to one key matter? */
static bool conflicts(enum gl_postgres_mode a, enum gl_postgres_mode b)
{
    GL_ASSERT(a < GL_POSTGRES_MODES);
    GL_ASSERT(b < GL_POSTGRES_MODES);
    return a != b || a == GL_POSTGRES_WRITES;
}

static bool has_conflict(const struct gl_postgres_bucket *b, enum gl_postgres_mode mode)
{
    for (int m = 0; m < GL_POSTGRES_MODES; m++) {
        if (b->n[m] > 0 && conflicts((enum gl_postgres_mode)m, mode)) {
            return true;
        }
    }
    return false;
}

/* The lane a transaction must go to. NO_LANE never results; CROSSING: it conflicts with several. */
static int lane_of(struct gl_postgres *s, const struct gl_postgres_op *op)
{
    int lane = NO_LANE;

    GL_ASSERT(op->call.type == GL_CALL_COMMIT);
    GL_ASSERT(s->url.lanes_n > 0);
    for (size_t i = 0; i < op->keys_n; i++) {
        const struct gl_postgres_key *k = &op->keys[i];
        const struct gl_postgres_bucket *b = bucket_of(s, k);
        if (!has_conflict(b, (enum gl_postgres_mode)k->mode)) {
            continue;
        }
        if (b->lane == SEVERAL || (lane != NO_LANE && lane != b->lane)) {
            return CROSSING;
        }
        lane = b->lane;
    }
    if (lane != NO_LANE) {
        return lane;
    }
    /* No conflict: the first key, which is the job's record, selects the lane. So a job keeps to
     * one lane. */
    return op->keys_n > 0 ? (int)(op->keys[0].hash % s->url.lanes_n) : 0;
}

/* Enter the keys in the buckets. A bucket may have unfinished transactions of several lanes if
 * their accesses do not conflict. */
static void join_lane(struct gl_postgres *s, struct gl_postgres_op *op, int lane)
{
    GL_ASSERT(lane >= 0);
    GL_ASSERT((size_t)lane < s->url.lanes_n);
    op->lane = lane;
    for (size_t i = 0; i < op->keys_n; i++) {
        struct gl_postgres_bucket *b = bucket_of(s, &op->keys[i]);
        bool is_free =
            b->n[GL_POSTGRES_READS] + b->n[GL_POSTGRES_CREATES] + b->n[GL_POSTGRES_WRITES] == 0;
        b->lane = is_free || b->lane == lane ? lane : SEVERAL;
        b->n[op->keys[i].mode]++;
    }
    s->lanes[lane].unfinished_n++;
    gl_list_push(&s->lanes[lane].queue, &op->queue);
    GL_ASSERT(s->lanes[lane].unfinished_n > 0);
}

static bool assign_lane(struct gl_postgres *s, struct gl_postgres_op *op)
{
    int lane = lane_of(s, op);

    GL_ASSERT(op->lane == NO_LANE);
    if (lane == CROSSING) {
        return false;
    }
    join_lane(s, op, lane);
    return true;
}

void gl_postgres_order_add(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;

    GL_ASSERT(op->call.type == GL_CALL_COMMIT);
    op->context->commits_n++;
    find_keys(op);
    op->lane = NO_LANE;
    /* A held transaction is not in the buckets yet. A later one must not pass it: a conflict
     * between the two would go unnoticed. */
    if (!gl_list_empty(&s->held) || !assign_lane(s, op)) {
        gl_list_push(&s->held, &op->queue);
    }
    gl_postgres_schedule_turn(s);
}

void gl_postgres_order_release(struct gl_postgres_op *op)
{
    struct gl_postgres *s = op->store;
    if (op->context == NULL || op->keys == NULL) {
        return;
    }
    if (op->lane != NO_LANE) {
        for (size_t i = 0; i < op->keys_n; i++) {
            bucket_of(s, &op->keys[i])->n[op->keys[i].mode]--;
        }
        GL_ASSERT(s->lanes[op->lane].unfinished_n > 0);
        s->lanes[op->lane].unfinished_n--;
    }
    GL_ASSERT(op->context->commits_n > 0);
    op->context->commits_n--;
    gl_mem_free(op->keys);
    op->keys = NULL;
    struct gl_link *l;
    while ((l = gl_list_first(&s->held)) != NULL) {
        struct gl_postgres_op *next = GL_CONTAINER(l, struct gl_postgres_op, queue);
        gl_list_remove(l);
        if (!assign_lane(s, next)) {
            gl_list_push(s->held.next, l); /* back to the front */
            break;
        }
    }
}

/* ---- batches ---- */

/* The cell of a key in the plan of the current group, by open addressing. A new stamp empties the
 * table without clearing it; GROUP_KEYS in postgres_lane.c keeps it at most half full. */
static struct gl_postgres_cell *cell_of(struct gl_postgres *s, uint32_t hash)
{
    for (uint32_t i = hash;; i++) {
        struct gl_postgres_cell *c = &s->cells[i & (GL_POSTGRES_CELLS - 1)];
        if (c->stamp != s->stamp) {
            *c = (struct gl_postgres_cell){.stamp = s->stamp, .hash = hash};
        }
        if (c->hash == hash) {
            return c;
        }
    }
}

bool gl_postgres_order_plan(struct gl_postgres *s, struct gl_postgres_op *op, bool is_first)
{
    uint8_t batch = 0;
    op->batch = 0;
    s->stamp += is_first;
    if (op->keys_n > GL_POSTGRES_CELLS / 2) {
        return is_first; /* alone in its group */
    }
    for (size_t i = 0; i < op->keys_n; i++) {
        const struct gl_postgres_cell *c = cell_of(s, op->keys[i].hash);
        for (int m = 0; m < GL_POSTGRES_MODES; m++) {
            if (conflicts((enum gl_postgres_mode)m, (enum gl_postgres_mode)op->keys[i].mode)) {
                batch = c->last[m] > batch ? c->last[m] : batch;
            }
        }
    }
    if (batch >= GL_POSTGRES_BATCHES_MAX) {
        return false;
    }
    for (size_t i = 0; i < op->keys_n; i++) {
        uint8_t *last = &cell_of(s, op->keys[i].hash)->last[op->keys[i].mode];
        *last = batch + 1 > *last ? (uint8_t)(batch + 1) : *last;
    }
    op->batch = batch;
    GL_ASSERT(op->batch < GL_POSTGRES_BATCHES_MAX);
    return true;
}

/* ---- completion ---- */

/* A `resolve` is sent only when the outcome of everything called before it is known: its own
 * transaction may still be in flight here. */
void gl_postgres_order_turn(struct gl_postgres *s)
{
    struct gl_link *l;
    while ((l = gl_list_first(&s->order)) != NULL) {
        struct gl_postgres_op *op = GL_CONTAINER(l, struct gl_postgres_op, order);
        if (!op->is_finished) {
            if (op->call.type == GL_CALL_RESOLVE && !op->is_asked) {
                op->is_asked = true;
                op->query.until = gl_calls_now(&s->calls) + s->url.timeout_ms;
                gl_postgres_conn_push(&s->conns[GL_POSTGRES_CONTROL], &op->query);
            }
            return;
        }
        gl_list_remove(l);
        gl_list_push(&s->finished, &op->query.link);
    }
}
