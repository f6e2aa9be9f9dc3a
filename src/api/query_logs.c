/* query_logs.c - the query STORED_LOGS: logs in the store (model/log_state.h).
 *
 * Without a step it lists the heads of the job. With a step and an attempt it reads one head and
 * the chunk that holds the given offset. The chunk is returned as the store has it, compressed:
 * the caller unpacks it (api/stored_log.h), not this thread. */
#include "api/query_parts.h"
#include "base/base64.h"
#include "base/check.h"
#include "base/limits.h"
#include "model/log_state.h"

enum {
    HEADS_PAGE = 100,
    AGAIN_MAX = 5, /* while the chunk is replaced by later ones */
};

struct reading {
    gl_str attempt; /* "step:attempt:n" */
    struct gl_log_head head;
    uint64_t from; /* of the chunk */
    unsigned again_n;
};

static bool split_attempt(gl_str attempt, gl_str *ret_step, uint64_t *ret_number)
{
    static const gl_str infix = GL_S(":attempt:");

    for (size_t i = attempt.n; i-- > 0;) {
        gl_str rest = {.p = attempt.p + i, .n = attempt.n - i};

        if (gl_str_starts(rest, infix)) {
            *ret_step = (gl_str){.p = attempt.p, .n = i};
            return gl_str_u64((gl_str){.p = rest.p + infix.n, .n = rest.n - infix.n}, ret_number);
        }
    }
    return false;
}

static void write_head(struct gl_query *q, gl_str attempt, const struct gl_log_head *h)
{
    uint64_t number = 0;
    gl_str step;

    if (!split_attempt(attempt, &step, &number)) {
        return;
    }
    gl_jw_object(&q->w);
    gl_jw_put_str(&q->w, "step_id", step);
    gl_jw_put_u64(&q->w, "attempt", number);
    gl_jw_put_str(&q->w, "node", h->node);
    gl_jw_put_u64(&q->w, "bytes", h->size);
    gl_jw_put_u64(&q->w, "from", gl_log_head_dropped(h));
    gl_jw_put_u64(&q->w, "to", gl_log_head_end(h));
    gl_jw_put_bool(&q->w, "ended", h->ended);
    gl_jw_put_bool(&q->w, "full", h->full);
    gl_jw_end(&q->w);
}

/* ---- the list ---- */

static void run_heads(struct gl_query *q)
{
    for (size_t i = 0; i < q->records_n; i++) {
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
        struct gl_log_head h;
        gl_str attempt;

        (void)gl_str_cut(q->records[i].id, '/', &attempt);
        if (!q->records[i].damaged && gl_log_head_read(q->records[i].value, &a, &h)) {
            write_head(q, attempt, &h);
        }
        q->last = q->records[i].id;
    }
    q->last = gl_str_dup(&q->arena, q->last);
}

static void on_heads(struct gl_store_req *req);

static void heads_rendered(struct gl_query *q)
{
    if (q->has_more) {
        q->listing.after = q->last;
        gl_query_read(q, on_heads);
        return;
    }
    gl_jw_end(&q->w);
    gl_jw_end(&q->w);
    gl_query_succeed(q);
}

static void on_heads(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    q->has_more = gl_listing_has_more(&q->listing, req->records, req->records_n);
    gl_query_render(q, run_heads, heads_rendered);
}

static void list_heads(struct gl_query *q)
{
    gl_jw_object(&q->w);
    gl_jw_put_array(&q->w, "attempts");
    q->listing = (struct gl_listing){.kind = GL_LOG_KIND,
                                     .prefix = gl_str_fmt(&q->arena, "%.*s/", GL_STR_ARG(q->job)),
                                     .limit = HEADS_PAGE};
    gl_query_read(q, on_heads);
}

/* ---- one chunk ---- */

static struct reading *reading_of(struct gl_query *q)
{
    GL_ASSERT(q->counts != NULL);
    return q->counts;
}

static void begin_answer(struct gl_query *q)
{
    struct reading *r = reading_of(q);

    gl_jw_object(&q->w);
    gl_jw_put_array(&q->w, "attempts");
    write_head(q, r->attempt, &r->head);
    gl_jw_end(&q->w);
}

static void run_chunk(struct gl_query *q)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};

    GL_ASSERT(q->records_n == 1);
    begin_answer(q);
    gl_base64_encode(q->records[0].value, &text);
    gl_jw_put_object(&q->w, "chunk");
    gl_jw_put_u64(&q->w, "from", reading_of(q)->from);
    gl_jw_put_str(&q->w, "gzip", gl_buf_view(&text));
    gl_jw_end(&q->w);
    gl_jw_end(&q->w);
}

static void read_head(struct gl_query *q);

static void on_chunk(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    const struct gl_record *r = &req->records[0];

    if (r->rev == 0 && ++reading_of(q)->again_n <= AGAIN_MAX) {
        read_head(q); /* later lines have taken its place */
    } else if (r->rev == 0 || r->damaged) {
        gl_query_fail(q, GL_E_DAMAGED, "a part of this log is damaged in the store");
    } else {
        gl_query_render(q, run_chunk, gl_query_succeed);
    }
}

static void on_head(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct reading *r = reading_of(q);
    const struct gl_record *record = &req->records[0];
    const struct gl_log_chunk *chunks;
    int64_t at;

    if (record->rev == 0) {
        gl_jw_object(&q->w);
        gl_jw_put_array(&q->w, "attempts");
        gl_jw_end(&q->w);
        gl_jw_end(&q->w);
        gl_query_succeed(q);
        return;
    }
    if (record->damaged || !gl_log_head_read(record->value, &q->arena, &r->head)) {
        gl_query_fail(q, GL_E_DAMAGED, "the record of this log is damaged in the store");
        return;
    }
    r->head.node = gl_str_dup(&q->arena, r->head.node);
    at = gl_log_head_find(&r->head, (uint64_t)q->rq->stored_logs.offset);
    if (at < 0) {
        begin_answer(q);
        gl_jw_end(&q->w);
        gl_query_succeed(q);
        return;
    }
    chunks = r->head.chunks.items;
    r->from = chunks[at].from;
    gl_query_get(q, GL_LOG_CHUNK_KIND,
                 gl_log_chunk_id(q->job, r->attempt, r->head.first + (uint32_t)at, &q->arena),
                 on_chunk);
}

static void read_head(struct gl_query *q)
{
    gl_query_get(q, GL_LOG_KIND, gl_log_head_id(q->job, reading_of(q)->attempt, &q->arena),
                 on_head);
}

void gl_query_stored_logs(struct gl_query *q)
{
    const struct gl_stored_logs_request *rq = &q->rq->stored_logs;
    struct reading *r;
    int64_t item;
    gl_str name;

    if (rq->step.n == 0) {
        list_heads(q);
        return;
    }
    if (!gl_str_split_step(rq->step, &name, &item)) {
        gl_query_fail(q, GL_R_NO_SUCH_STEP, "this job has no such step");
        return;
    }
    r = GL_NEW(&q->arena, struct reading);
    r->attempt = gl_str_fmt(&q->arena, "%.*s:attempt:%u", GL_STR_ARG(rq->step), rq->attempt);
    q->counts = r;
    read_head(q);
}
