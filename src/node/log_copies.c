/* log_copies.c - the copies of logs, and the chain that makes one.
 *
 *   size and lines (on the log thread) ─► job and head (once) ─► chunk, head and job in one
 *   transaction ─► the next lines ...
 *
 * A transaction carries no id. If its outcome is unknown or it was refused, the records are read
 * again, and what they say decides what is still to be written. */
#include "node/log_copies.h"

#include "base/check.h"
#include "base/limits.h"
#include "model/log_state.h"
#include "node/node_state.h"

enum {
    CHAINS_MAX = 4,        /* copies at a time */
    CONFLICTS_MAX = 8,     /* others may write logs of the same job */
    FAILURES_MAX = 12,     /* of an ended attempt: a minute */
    STOP_MS = 2000,        /* a stopping node finishes copies of ended attempts for this long */
    NOTE_MS = 60000,       /* report copies that are given up at most this often */
    LINE_BYTES = 66 << 10, /* the first line after a gap may be cut, and is left out */
    OWN_WRITES = 3,        /* job, head and chunk; besides, chunks that are not needed any more */
    GUARDS = 3,            /* session, job, and the record of its logs */
    GUARD_OF_LOGS = 2,     /* the place of the last one */
};

struct log_copy {        /* an attempt whose log is being copied */
    struct gl_link link; /* in `ended`, `running` or its job's `waiting`; in none while copying */
    struct gl_arena arena;
    struct gl_attempt_key key;
    gl_str id; /* "job/attempt" */
    gl_str step;
    uint32_t number;
    gl_ms due;
    bool is_ended, is_copying;
    bool is_known;   /* `head` is what the store has */
    bool has_head;   /* ... and it has one */
    bool is_foreign; /* ... of another node: its chunks are replaced */
    unsigned failures;
    struct gl_log_head head; /* its chunks are those in `chunks` */
    struct gl_buf chunks;
};

struct log_copy_job { /* a job with copies in progress or waiting for their turn */
    gl_str id;
    struct gl_arena arena;
    bool is_busy;  /* one of its attempts is being copied */
    bool is_known; /* the next two are those of its record */
    uint64_t rev;  /* 0: no record */
    uint64_t bytes;
    struct gl_link waiting; /* struct log_copy */
    size_t copies_n;
};

struct log_copies {
    struct gl_map by_id;    /* struct log_copy */
    struct gl_map jobs;     /* struct log_copy_job */
    struct gl_link ended;   /* to be copied now */
    struct gl_link running; /* by `due` */
    size_t chains_n;
    gl_ms stop_at;  /* INT64_MAX: the node is not stopping */
    gl_ms noted_at; /* when a copy that was given up was last reported */
};

struct log_copying {
    struct gl_chain chain;
    struct log_copy *copy;
    struct log_copy_job *job;
    unsigned conflicts;

    /* For the log thread, and what it returns. */
    uint64_t end, from, keep;
    bool only_size, is_new; /* is_new: a chunk of its own, not more lines of the last one */
    bool had_ended;         /* before the log was read: so this is all of it */
    int code;
    uint64_t size, got_from, got_to;
    struct gl_buf lines, packed;

    /* The transaction. */
    struct gl_arena scratch;
    struct gl_key keys[2];
    struct gl_log_head next;
    uint64_t next_bytes;
    struct gl_guard guards[GUARDS];
};

static struct log_copies *own(const struct gl_node *n)
{
    return n->parts[GL_PART_LOG_COPIES];
}

static bool is_on(const struct gl_node *n)
{
    return n->ports.logs != NULL && n->config.log_bytes > 0 && n->ports.store->ops->shared;
}

/* ---- copies and jobs ---- */

static struct log_copy_job *job_of(struct gl_node *n, gl_str id)
{
    struct log_copies *p = own(n);
    struct log_copy_job *j = gl_map_find(&p->jobs, id);

    GL_ASSERT(is_on(n));
    GL_ASSERT(id.n > 0);
    if (j == NULL) {
        j = gl_mem_alloc(sizeof(*j));
        j->id = gl_str_dup(&j->arena, id);
        gl_list_init(&j->waiting);
        gl_map_add(&p->jobs, j->id, j);
    }
    return j;
}

static void job_free(struct log_copy_job *j)
{
    GL_ASSERT(j->id.n > 0);
    gl_arena_done(&j->arena);
    gl_mem_free(j);
}

static void copy_free(struct log_copy *c)
{
    GL_ASSERT(c->id.n > 0);
    gl_buf_done(&c->chunks);
    gl_arena_done(&c->arena);
    gl_mem_free(c);
}

/* False: not the id of an attempt. */
static bool split_attempt(gl_str attempt, gl_str *ret_step, uint32_t *ret_number)
{
    static const gl_str infix = GL_S(":attempt:");
    uint64_t number = 0;

    for (size_t i = attempt.n; i-- > 0;) {
        gl_str rest = {.p = attempt.p + i, .n = attempt.n - i};

        if (gl_str_starts(rest, infix)) {
            *ret_step = (gl_str){.p = attempt.p, .n = i};
            rest = (gl_str){.p = rest.p + infix.n, .n = rest.n - infix.n};
            if (!gl_str_u64(rest, &number) || number > UINT32_MAX) {
                return false;
            }
            *ret_number = (uint32_t)number;
            GL_ASSERT(ret_step->n + infix.n < attempt.n);
            return i > 0;
        }
    }
    return false;
}

static struct log_copy *copy_find(const struct gl_node *n, const struct gl_attempt_key *key)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    GL_ASSERT(key->job.n > 0);
    return gl_map_find(&own(n)->by_id, gl_log_head_id(key->job, key->attempt, &a));
}

/* NULL: there are too many, or this is not an attempt whose log can be named. */
static struct log_copy *copy_new(struct gl_node *n, const struct gl_attempt_key *key)
{
    struct log_copies *p = own(n);
    struct log_copy *c;
    uint32_t number;
    gl_str step;

    if (gl_map_count(&p->by_id) >= GL_LOG_COPIES_MAX || !gl_str_is_id(key->job) ||
        !split_attempt(key->attempt, &step, &number)) {
        return NULL;
    }
    c = gl_mem_alloc(sizeof(*c));
    gl_list_init(&c->link);
    c->key = (struct gl_attempt_key){.context = gl_str_dup(&c->arena, key->context),
                                     .job = gl_str_dup(&c->arena, key->job),
                                     .attempt = gl_str_dup(&c->arena, key->attempt)};
    c->step = gl_str_dup(&c->arena, step);
    c->number = number;
    c->id = gl_log_head_id(c->key.job, c->key.attempt, &c->arena);
    gl_map_add(&p->by_id, c->id, c);
    job_of(n, c->key.job)->copies_n++;
    GL_ASSERT(gl_map_find(&p->jobs, c->key.job) != NULL);
    GL_ASSERT(gl_map_count(&p->by_id) <= GL_LOG_COPIES_MAX);
    return c;
}

static void copy_drop(struct gl_node *n, struct log_copy *c)
{
    struct log_copies *p = own(n);
    struct log_copy_job *j = gl_map_find(&p->jobs, c->key.job);

    GL_ASSERT(!c->is_copying);
    GL_ASSERT(j != NULL && j->copies_n > 0);
    gl_list_remove(&c->link);
    (void)gl_map_remove(&p->by_id, c->id); /* it is `c` */
    if (--j->copies_n == 0) {
        (void)gl_map_remove(&p->jobs, j->id);
        job_free(j);
    }
    copy_free(c);
}

static void note_given_up(struct gl_node *n, const struct log_copy *c)
{
    struct log_copies *p = own(n);

    if (n->now - p->noted_at >= NOTE_MS || p->noted_at == 0) {
        p->noted_at = n->now;
        gl_sessions_log(n,
                        "the end of the log of %.*s of job %.*s is not in the store; it is on this "
                        "machine only",
                        GL_STR_ARG(c->key.attempt), GL_STR_ARG(c->key.job));
    }
}

/* ---- the chain ---- */

static void on_end(void *chain)
{
    struct log_copying *x = chain;

    gl_buf_done(&x->lines);
    gl_buf_done(&x->packed);
    gl_arena_done(&x->scratch);
}

static const struct gl_chain_kind log_copyings = {.bytes = sizeof(struct log_copying),
                                                  .done = on_end};

enum outcome { COPIED, LATER, OVER };

static void end_copy(struct log_copying *x, enum outcome outcome)
{
    struct gl_node *n = x->chain.node;
    struct log_copies *p = own(n);
    struct log_copy *c = x->copy;
    struct log_copy_job *j = x->job;
    bool is_over = outcome == OVER || (outcome == COPIED && x->had_ended) ||
                   (n->stopping && (outcome == LATER || !c->is_ended));

    GL_ASSERT(c->is_copying && j->is_busy);
    GL_ASSERT(p->chains_n > 0);
    p->chains_n--;
    j->is_busy = c->is_copying = false;
    for (struct gl_link *l; (l = gl_list_first(&j->waiting)) != NULL;) {
        gl_list_remove(l);
        gl_list_push(&p->ended, l);
    }
    if (outcome == LATER && c->is_ended && ++c->failures > FAILURES_MAX) {
        is_over = true;
    }
    if (is_over) {
        if (outcome == LATER && c->is_ended) {
            note_given_up(n, c);
        }
        copy_drop(n, c);
    } else if (outcome == COPIED && c->is_ended) { /* it has ended since the log was read */
        gl_list_push(&p->ended, &c->link);
    } else {
        c->due = n->now + GL_LOG_COPY_MS;
        gl_list_push(&p->running, &c->link);
    }
    gl_chain_end(&x->chain);
}

static void read_lines(struct log_copying *x);

/* The answer to a call: has what the chain does become pointless? */
static bool must_end(struct log_copying *x)
{
    struct gl_node *n = x->chain.node;

    return n->lost || (n->stopping && (!x->copy->is_ended || n->now >= own(n)->stop_at));
}

/* ---- reading the records ---- */

static void take_head(struct log_copy *c, const struct gl_record *r, struct gl_arena *a)
{
    struct gl_log_head h = {0};

    gl_buf_reset(&c->chunks);
    c->head = (struct gl_log_head){.node = c->head.node};
    c->has_head = r->rev != 0;
    c->is_foreign = false;
    if (c->has_head && !r->damaged && gl_log_head_read(r->value, a, &h)) {
        c->is_foreign = !gl_str_eq(h.node, c->head.node);
        gl_buf_add(&c->chunks, h.chunks.items, h.chunks.n * sizeof(struct gl_log_chunk));
        h.node = c->head.node;
        h.ended = h.ended && !c->is_foreign;
        c->head = h;
    }
    c->head.chunks =
        (struct gl_items){.items = c->chunks.p, .n = c->chunks.n / sizeof(struct gl_log_chunk)};
    c->is_known = true;
    GL_ASSERT(GL_IMPLIES(c->is_foreign, c->has_head));
    GL_ASSERT(GL_IMPLIES(!c->has_head, c->head.chunks.n == 0));
}

static void on_records(struct gl_store_req *req)
{
    struct log_copying *x = req->owner;
    struct gl_log_job sum = {0};

    GL_ASSERT(x->job->is_busy && x->copy->is_copying);
    GL_ASSERT(GL_IMPLIES(req->status == 0, req->records_n == 2));
    if (req->status != 0 || must_end(x)) {
        end_copy(x, LATER);
        return;
    }
    gl_arena_reset(&x->scratch);
    if (req->records[0].rev != 0 && !req->records[0].damaged) {
        (void)gl_log_job_read(req->records[0].value, &x->scratch, &sum); /* else it counts anew */
    }
    x->job->rev = req->records[0].rev;
    x->job->bytes = sum.bytes;
    x->job->is_known = true;
    x->copy->head.node = x->chain.node->config.name;
    take_head(x->copy, &req->records[1], &x->scratch);
    if (x->copy->head.ended) {
        end_copy(x, OVER); /* an earlier session has finished it */
    } else {
        read_lines(x);
    }
}

static void read_records(struct log_copying *x)
{
    GL_ASSERT(x->job->id.n > 0);
    GL_ASSERT(x->copy->id.n > x->job->id.n);
    x->keys[0] = (struct gl_key){.kind = GL_LOG_KIND, .id = x->job->id};
    x->keys[1] = (struct gl_key){.kind = GL_LOG_KIND, .id = x->copy->id};
    gl_chain_get_all(&x->chain, x->keys, 2, on_records);
}

/* ---- writing ---- */

static void on_committed(struct gl_store_req *req)
{
    struct log_copying *x = req->owner;
    struct log_copy *c = x->copy;
    bool is_others = req->status == GL_E_CONFLICT && req->refused == GUARD_OF_LOGS;

    GL_ASSERT(x->job->is_known && c->is_known);
    GL_ASSERT(c->is_copying);
    if (req->status == 0) {
        GL_MARK(x->chain.node->config.trace, "log_copies.copied");
        x->job->rev++;
        x->job->bytes = x->next_bytes;
        gl_buf_reset(&c->chunks);
        gl_buf_add(&c->chunks, x->next.chunks.items,
                   x->next.chunks.n * sizeof(struct gl_log_chunk));
        c->head = x->next;
        c->head.chunks.items = c->chunks.p;
        c->has_head = true;
        c->is_foreign = false;
        c->failures = 0;
        if (must_end(x)) {
            end_copy(x, LATER);
        } else {
            read_lines(x);
        }
    } else if ((is_others || req->status == GL_E_UNKNOWN) && ++x->conflicts <= CONFLICTS_MAX &&
               !must_end(x)) {
        GL_MARK(x->chain.node->config.trace, "log_copies.refused");
        read_records(x);
    } else if (req->status == GL_E_CONFLICT && !is_others) {
        end_copy(x, OVER); /* the session is dead, or the job removed */
    } else {
        gl_sessions_on_refused(x->chain.node, req);
        x->job->is_known = c->is_known = false;
        end_copy(x, LATER);
    }
}

static void commit(struct log_copying *x, struct gl_write *writes, size_t writes_n)
{
    struct gl_node *n = x->chain.node;
    struct gl_store_req *req = gl_chain_store(&x->chain, on_committed);

    GL_ASSERT(writes_n >= OWN_WRITES - 1);
    GL_ASSERT(n->session.n > 0);
    GL_ASSERT(x->job->is_known);
    /* planted (94): a log is written whatever has become of its job */
    x->guards[0] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = n->session};
    x->guards[1] =
        (struct gl_guard){.type = GL_GUARD_PRESENT, .kind = GL_S("job"), .id = x->job->id};
    x->guards[GUARD_OF_LOGS] =
        (struct gl_guard){.type = x->job->rev == 0 ? GL_GUARD_ABSENT : GL_GUARD_AT,
                          .kind = GL_LOG_KIND,
                          .id = x->job->id,
                          .rev = x->job->rev};
    x->chain.given.tx = (struct gl_tx){.context = x->chain.context,
                                       .session = n->session,
                                       .guards = x->guards,
                                       .guards_n = GL_PLANT(94) ? 1 : GUARDS,
                                       .writes = writes,
                                       .writes_n = writes_n};
    n->ports.store->ops->commit(n->ports.store, req, &x->chain.given.tx);
}

/* The sum of a damaged record is lost, and counted anew from 0. */
static void subtract(struct log_copying *x, const struct gl_log_chunk *c, size_t n)
{
    GL_ASSERT(n == 0 || c != NULL);
    for (size_t i = 0; i < n; i++) {
        x->next_bytes -= c[i].bytes < x->next_bytes ? c[i].bytes : x->next_bytes;
    }
}

/* The head with the lines that were read, in the scratch arena. *ret_drop: how many of the chunks
 * that are in the store now are not needed any more. */
static void add_lines(struct log_copying *x, size_t *ret_drop)
{
    const struct gl_log_head *old = &x->copy->head;
    const struct gl_log_chunk *have = old->chunks.items;
    size_t kept = x->copy->is_foreign ? 0 : old->chunks.n, spare, place;
    struct gl_log_chunk *c = GL_NEW_ARRAY(&x->scratch, struct gl_log_chunk, old->chunks.n + 1);

    for (size_t i = 0; i < kept; i++) {
        c[i] = have[i];
    }
    place = x->is_new ? kept++ : kept - 1;
    GL_ASSERT(kept > 0);
    subtract(x, have, x->copy->is_foreign ? old->chunks.n : 0);
    subtract(x, &c[place], x->is_new ? 0 : 1);
    x->next_bytes += x->packed.n;
    c[place] = (struct gl_log_chunk){.from = x->got_from, .to = x->got_to, .bytes = x->packed.n};
    x->next.chunks = (struct gl_items){.items = c, .n = kept};
    spare = gl_log_head_spare(&x->next, x->keep);
    subtract(x, c, spare);
    x->next.chunks = (struct gl_items){.items = c + spare, .n = kept - spare};
    GL_ASSERT(spare < kept);
    GL_ASSERT(x->got_from < x->got_to);
    *ret_drop = x->copy->is_foreign ? old->chunks.n : spare;
    x->next.first = old->first + (uint32_t)*ret_drop;
}

static void write_chunk(struct log_copying *x, bool has_lines, bool is_last)
{
    const struct log_copy *c = x->copy;
    struct gl_arena *a = &x->scratch;
    struct gl_log_job sum;
    struct gl_write *w;
    size_t drop = 0, n = 0;

    GL_ASSERT(c->is_known && x->job->is_known);
    GL_ASSERT(GL_IMPLIES(!has_lines, is_last));
    gl_arena_reset(a);
    x->next = c->head;
    x->next.size = x->size;
    x->next_bytes = x->job->bytes;
    if (has_lines) {
        add_lines(x, &drop);
        if (x->next_bytes > GL_LOG_STORE_JOB_BYTES) {
            GL_MARK(x->chain.node->config.trace, "log_copies.full");
            x->next.chunks = c->head.chunks;
            x->next.first = c->head.first;
            x->next_bytes = x->job->bytes;
            x->next.full = is_last = true;
            has_lines = false;
            drop = 0;
        }
    }
    x->next.ended = is_last && x->had_ended;
    w = GL_NEW_ARRAY(a, struct gl_write, drop + OWN_WRITES);
    sum.bytes = x->next_bytes;
    w[n++] = (struct gl_write){.type = GL_WRITE_PUT,
                               .kind = GL_LOG_KIND,
                               .id = x->job->id,
                               .rev = x->job->rev + 1,
                               .value = gl_log_job_write(&sum, a)};
    w[n++] = (struct gl_write){.type = GL_WRITE_PUT,
                               .kind = GL_LOG_KIND,
                               .id = c->id,
                               .rev = 1,
                               .value = gl_log_head_write(&x->next, a)};
    if (has_lines) {
        uint32_t number = x->next.first + (uint32_t)x->next.chunks.n - 1;

        w[n++] = (struct gl_write){.type = GL_WRITE_PUT,
                                   .kind = GL_LOG_CHUNK_KIND,
                                   .id = gl_log_chunk_id(c->key.job, c->key.attempt, number, a),
                                   .rev = 1,
                                   .value = gl_buf_view(&x->packed)};
    }
    for (size_t i = 0; i < drop; i++) {
        w[n++] = (struct gl_write){
            .type = GL_WRITE_DELETE,
            .kind = GL_LOG_CHUNK_KIND,
            .id = gl_log_chunk_id(c->key.job, c->key.attempt, c->head.first + (uint32_t)i, a)};
    }
    GL_ASSERT(n <= drop + OWN_WRITES);
    commit(x, w, n);
}

/* ---- reading the log ---- */

/* The line that the port adds where the file has a gap: "-- N bytes dropped --". */
static bool is_mark(gl_str line)
{
    static const gl_str end = GL_S(" bytes dropped --");

    return gl_str_starts(line, GL_S("-- ")) && line.n > end.n &&
           memcmp(line.p + line.n - end.n, end.p, end.n) == 0;
}

/* Reads and compresses one chunk that begins at `x->from`. */
static void read_chunk(struct log_copying *x)
{
    struct gl_logs *logs = x->chain.node->ports.logs;
    const struct log_copy *c = x->copy;
    gl_str lines, rest;
    size_t n;

    gl_buf_reset(&x->lines);
    gl_buf_reset(&x->packed);
    x->code = logs->read(logs, c->key.context, c->key.job, c->step, c->number, x->from,
                         GL_LOG_PAGE_BYTES, &x->lines, &x->got_to, NULL);
    if (x->code != 0) {
        return;
    }
    lines = gl_buf_view(&x->lines);
    if (is_mark(gl_str_cut(lines, '\n', &rest))) { /* the gap shows in the offsets */
        lines = rest;
    }
    x->got_from = x->got_to - lines.n;
    n = gl_log_chunk_pack(lines, &x->packed);
    GL_ASSERT(n <= lines.n);
    GL_ASSERT(GL_IMPLIES(n == 0, x->packed.n == 0));
    x->got_to = x->got_from + n;
}

/* On the log thread, with memory that nothing else touches while the copy is in progress. */
static void run_read(void *chain)
{
    struct log_copying *x = chain;
    struct gl_logs *logs = x->chain.node->ports.logs;
    const struct log_copy *c = x->copy;

    x->code = logs->size(logs, c->key.context, c->key.job, c->step, c->number, &x->size, NULL);
    if (x->code != 0 || x->only_size || x->size <= x->end) {
        x->got_to = x->got_from = x->end;
        return;
    }
    if (x->size - x->end > x->keep + LINE_BYTES) { /* what is between is not kept anyway */
        x->from = x->size - x->keep - LINE_BYTES;
        x->is_new = true;
    }
    read_chunk(x);
    if (x->code == 0 && !x->is_new && (x->got_from != x->from || x->got_to <= x->end)) {
        x->from = x->end; /* the last chunk cannot grow after all */
        x->is_new = true;
        read_chunk(x);
    }
}

static void on_read(void *chain)
{
    struct log_copying *x = chain;
    struct log_copy *c = x->copy;
    bool has_lines = x->got_to > x->end && x->packed.n > 0;
    bool is_last = !has_lines || x->got_to >= x->size;

    GL_ASSERT(c->is_copying && x->job->is_busy);
    GL_ASSERT(GL_IMPLIES(has_lines, !x->only_size));
    if (x->code != 0 || must_end(x)) {
        end_copy(x, LATER);
    } else if (x->only_size) {
        if (x->size == 0) {
            end_copy(x, COPIED); /* nothing was printed: the store need not be asked */
        } else {
            read_records(x);
        }
    } else if (has_lines || (x->had_ended && c->has_head)) {
        write_chunk(x, has_lines && !c->head.full, is_last || c->head.full);
    } else {
        end_copy(x, COPIED);
    }
}

/* The next lines, or how much there is if it is not known what the store has. */
static void read_lines(struct log_copying *x)
{
    struct log_copy *c = x->copy;
    const struct gl_log_chunk *chunks = c->head.chunks.items;
    size_t n = c->is_foreign ? 0 : c->head.chunks.n;

    GL_ASSERT(c->is_copying);
    x->had_ended = c->is_ended;
    x->keep = x->chain.node->config.log_bytes;
    x->only_size = !c->is_known || !x->job->is_known;
    x->end = c->is_foreign ? 0 : gl_log_head_end(&c->head);
    x->is_new = n == 0 || !gl_log_chunk_grows(&chunks[n - 1]);
    x->from = x->is_new ? x->end : chunks[n - 1].from;
    gl_buf_reset(&x->packed);
    if (c->head.ended || (c->head.full && !x->had_ended)) {
        end_copy(x, COPIED);
        return;
    }
    gl_chain_work(&x->chain, x->chain.node->ports.log_work, run_read, on_read);
}

static void begin(struct gl_node *n, struct log_copy *c)
{
    struct log_copies *p = own(n);
    struct log_copy_job *j = gl_map_find(&p->jobs, c->key.job);
    struct log_copying *x;

    GL_ASSERT(j != NULL);
    GL_ASSERT(!c->is_copying);
    gl_list_remove(&c->link);
    if (j->is_busy) {
        gl_list_push(&j->waiting, &c->link);
        return;
    }
    GL_ASSERT(p->chains_n < CHAINS_MAX);
    x = gl_chain_new(n, &log_copyings, c->key.context);
    j->is_busy = c->is_copying = true;
    p->chains_n++;
    x->copy = c;
    x->job = j;
    read_lines(x);
}

/* ---- events ---- */

void gl_log_copies_on_running(struct gl_node *n, const struct gl_attempt_key *key)
{
    struct log_copy *c;

    if (!is_on(n) || n->stopping || copy_find(n, key) != NULL) {
        return;
    }
    c = copy_new(n, key);
    if (c != NULL) {
        c->due = n->now + GL_LOG_COPY_MS;
        gl_list_push(&own(n)->running, &c->link);
    }
}

void gl_log_copies_on_ended(struct gl_node *n, const struct gl_attempt_key *key)
{
    struct log_copy *c;

    if (!is_on(n) || n->lost) {
        return;
    }
    c = copy_find(n, key);
    c = c != NULL ? c : copy_new(n, key);
    if (c == NULL || c->is_ended) {
        return;
    }
    c->is_ended = true;
    if (!c->is_copying) {
        gl_list_remove(&c->link);
        gl_list_push(&own(n)->ended, &c->link);
    }
}

void gl_log_copies_on_acked(struct gl_node *n, const struct gl_attempt_key *key)
{
    if (is_on(n) && copy_find(n, key) != NULL) {
        gl_log_copies_on_ended(n, key);
    }
}

/* ---- the part ---- */

static void init(struct gl_node *n)
{
    struct log_copies *p = own(n);

    gl_map_init(&p->by_id);
    gl_map_init(&p->jobs);
    gl_list_init(&p->ended);
    gl_list_init(&p->running);
    p->stop_at = INT64_MAX;
}

static struct log_copy *first_of(struct gl_link *list)
{
    struct gl_link *l = gl_list_first(list);

    return l != NULL ? GL_CONTAINER(l, struct log_copy, link) : NULL;
}

static gl_ms due(const struct gl_node *n)
{
    struct log_copies *p = own(n);
    const struct log_copy *c = first_of(&p->running);
    gl_ms at = c != NULL ? c->due : INT64_MAX;

    if (n->session.n == 0 || p->chains_n >= CHAINS_MAX) {
        return p->stop_at > n->now ? p->stop_at : INT64_MAX;
    }
    at = gl_list_empty(&p->ended) ? at : n->now;
    return p->stop_at > n->now && p->stop_at < at ? p->stop_at : at;
}

/* The node stops, or has lost its session: copies that have not begun are given up. */
static void drop_waiting(struct gl_node *n, struct gl_link *list)
{
    for (struct log_copy *c; (c = first_of(list)) != NULL;) {
        copy_drop(n, c);
    }
}

static void on_time(struct gl_node *n)
{
    struct log_copies *p = own(n);
    struct log_copy *c;

    if (n->lost || n->now >= p->stop_at) {
        drop_waiting(n, &p->ended);
        drop_waiting(n, &p->running);
    }
    while (n->session.n > 0 && p->chains_n < CHAINS_MAX && (c = first_of(&p->ended)) != NULL) {
        begin(n, c);
    }
    while (n->session.n > 0 && p->chains_n < CHAINS_MAX && (c = first_of(&p->running)) != NULL &&
           c->due <= n->now) {
        begin(n, c);
    }
}

/* Attempts that run stay with the executor, and the next session continues with them. */
static void stop(struct gl_node *n)
{
    struct log_copies *p = own(n);
    struct gl_link *next;

    p->stop_at = is_on(n) ? n->now + STOP_MS : INT64_MAX;
    for (struct gl_link *l = p->running.next; l != &p->running; l = next) {
        struct log_copy *c = GL_CONTAINER(l, struct log_copy, link);

        next = l->next;
        if (!c->is_ended) {
            copy_drop(n, c);
        }
    }
}

static bool is_busy(const struct gl_node *n)
{
    struct log_copies *p = own(n);

    return p->chains_n > 0 || (!gl_list_empty(&p->ended) && n->now < p->stop_at && !n->lost);
}

static void done(struct gl_node *n)
{
    struct log_copies *p = own(n);
    struct log_copy_job *j;
    struct log_copy *c;

    for (size_t i = 0; (c = gl_map_next(&p->by_id, &i)) != NULL;) {
        copy_free(c);
    }
    for (size_t i = 0; (j = gl_map_next(&p->jobs, &i)) != NULL;) {
        job_free(j);
    }
    gl_map_done(&p->by_id);
    gl_map_done(&p->jobs);
}

const struct gl_node_part gl_log_copies_part = {.bytes = sizeof(struct log_copies),
                                                .init = init,
                                                .due = due,
                                                .on_time = on_time,
                                                .stop = stop,
                                                .is_busy = is_busy,
                                                .done = done};
