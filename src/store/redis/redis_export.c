/* redis_export.c - exports all content of a context, page by page.
 *
 * First the whole keyspace is scanned for the names of listings, indexes and logs. Sorted, these
 * are the plan, which is kept from page to page. Then each name is read from its beginning. A
 * position is "<bytes of name>:<name><place>", so the next page can be read even if the plan was
 * lost and had to be rebuilt. */
#include <stdlib.h>

#include "base/check.h"
#include "store/redis/redis_parts.h"

struct gl_redis_plan {
    gl_str context;
    struct gl_arena arena;
    gl_str *names; /* "ids:job", "index:wake", "log:events:ID", sorted */
    size_t names_n, names_cap;
    gl_str cursor; /* SCAN cursor */
    bool complete;
};

void gl_redis_plan_free(struct gl_redis_plan *p)
{
    if (p != NULL) {
        gl_arena_done(&p->arena);
        gl_mem_free(p->names);
        gl_mem_free(p);
    }
}

static int compare(const void *a, const void *b)
{
    return gl_str_cmp(*(const gl_str *)a, *(const gl_str *)b);
}

static struct gl_redis_plan *plan_of(struct gl_redis *s, const struct gl_redis_op *op)
{
    if (s->plan == NULL || !gl_str_eq(s->plan->context, op->call.context)) {
        gl_redis_plan_free(s->plan);
        s->plan = gl_mem_alloc(sizeof(*s->plan));
        s->plan->context = gl_str_dup(&s->plan->arena, op->call.context);
        s->plan->cursor = GL_S("0");
    }
    return s->plan;
}

static void plan_add(struct gl_redis_plan *p, const struct gl_redis_reply *names)
{
    GL_ASSERT(!p->complete);
    for (size_t i = 0; i < names->items_n; i++) {
        if (p->names_n == p->names_cap) {
            p->names_cap = p->names_cap * 2 + 64;
            p->names = gl_mem_realloc(p->names, p->names_cap * sizeof(*p->names));
        }
        p->names[p->names_n++] = gl_str_dup(&p->arena, gl_redis_text(gl_redis_item(names, i)));
    }
    GL_ASSERT(p->names_n <= p->names_cap);
}

/* Sort the names and drop duplicates: SCAN may return a name twice. */
static void plan_finish(struct gl_redis_plan *p)
{
    size_t n = 0;

    GL_ASSERT(!p->complete);
    if (p->names_n > 0) {
        qsort(p->names, p->names_n, sizeof(*p->names), compare);
    }
    for (size_t i = 0; i < p->names_n; i++) {
        if (n == 0 || !gl_str_eq(p->names[n - 1], p->names[i])) {
            p->names[n++] = p->names[i];
        }
    }
    p->names_n = n;
    p->complete = true;
    GL_ASSERT(n <= p->names_cap);
}

/* ---- positions ---- */

struct position {
    gl_str full;       /* "log:events:ID" */
    gl_str what, name; /* "log", "events:ID" */
    gl_str place;      /* place within it; "" : the beginning */
    size_t number;     /* index in the plan */
};

/* The first name of the plan at or after the one in `after`; false: none is left. */
static bool find_position(const struct gl_redis_plan *p, gl_str after, struct position *ret)
{
    gl_str rest, full = {0}, place = {0};
    uint64_t n;

    GL_ASSERT(p->complete);
    if (gl_str_u64(gl_str_cut(after, ':', &rest), &n) && n <= rest.n) {
        full = (gl_str){rest.p, (size_t)n};
        place = (gl_str){rest.p + n, rest.n - (size_t)n};
    }
    size_t low = 0, high = p->names_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (gl_str_cmp(p->names[mid], full) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low == p->names_n) {
        return false;
    }
    *ret = (struct position){.full = p->names[low], .number = low};
    ret->place = gl_str_eq(ret->full, full) ? place : (gl_str){0};
    ret->what = gl_str_cut(ret->full, ':', &ret->name);
    GL_ASSERT(low < p->names_n);
    return true;
}

static gl_str position_text(gl_str full, gl_str place, struct gl_arena *a)
{
    return gl_str_fmt(a, "%zu:%.*s%.*s", full.n, GL_STR_ARG(full), GL_STR_ARG(place));
}

/* ---- commands ---- */

/* A lower bound for ZRANGEBYLEX that excludes `place`. */
static void bound_after(struct gl_buf *out, gl_str place)
{
    if (place.n == 0) {
        gl_redis_arg_char(out, '-');
        return;
    }
    gl_redis_joined(out, gl_arg_c("("), gl_arg_text(place));
}

/* Names were taken from keys, so they are encoded already. */
static void encode_page(const struct gl_redis_op *op, const struct position *at, struct gl_buf *out)
{
    struct gl_arg limit = gl_arg_u64(op->call.export.limit);
    if (gl_str_is(at->what, "ids")) {
        gl_redis_eval_open(op, GL_REDIS_SCRIPT_LIST, 8, out);
        gl_redis_args(out,
                      GL_ARGS(gl_arg_c("ids"), gl_arg_text(at->name), gl_arg_c("ZRANGEBYLEX")));
        bound_after(out, at->place);
        gl_redis_args(out, GL_ARGS(gl_arg_c("+"), limit, gl_arg_c("1"), gl_arg_i64(0)));
    } else if (gl_str_is(at->what, "index")) {
        gl_redis_eval_open(op, GL_REDIS_SCRIPT_RANGE, 4, out);
        gl_redis_arg(out, at->name);
        bound_after(out, at->place);
        gl_redis_args(out, GL_ARGS(gl_arg_c("+"), limit));
    } else {
        gl_redis_eval(op, GL_REDIS_SCRIPT_LOG, out, gl_arg_text(at->name),
                      gl_arg_text(at->place.n > 0 ? at->place : GL_S("0")), limit);
    }
}

/* One more step of the scan, or a page if the plan is complete. */
static void encode(const struct gl_redis_op *op, struct gl_buf *out)
{
    struct gl_redis_plan *p = plan_of(op->store, op);
    struct position at;

    GL_ASSERT(op->call.type == GL_CALL_EXPORT);
    if (p->complete && find_position(p, op->call.export.after, &at)) {
        encode_page(op, &at, out);
    } else {
        gl_redis_eval(op, GL_REDIS_SCRIPT_SCAN, out, gl_arg_text(p->cursor));
    }
}

/* ---- replies ---- */

struct export_page {
    struct gl_answer answer;
    const struct gl_redis_reply *reply;
    const struct position *position;
    gl_str kind, id; /* kind of all items; id: of a log */
    size_t at;
    gl_str place; /* after the last item read */
};

/* Convert one item. False: it is not ours, and is skipped, or it is damaged, and the request has
 * failed. */
static bool read_item(struct export_page *p, const struct gl_redis_reply *r, struct gl_write *w)
{
    *w = (struct gl_write){.kind = p->kind};
    if (gl_str_is(p->position->what, "ids")) {
        struct gl_record record = {.kind = p->kind, .id = gl_redis_text(r)};
        gl_redis_record_decode(&record, gl_redis_item(p->reply, p->at++), true);
        p->place = record.id;
        return gl_answer_export(p->answer.call->req, &record, w);
    }
    if (gl_str_is(p->position->what, "index")) {
        w->type = GL_WRITE_INDEX;
        p->place = gl_redis_text(r);
        return gl_redis_score_decode(p->place, &w->score, &w->id);
    }
    struct gl_log_entry entry;
    if (!gl_redis_log_entry_decode(&entry, r)) {
        return false;
    }
    *w = (struct gl_write){
        .type = GL_WRITE_LOG, .kind = p->kind, .id = p->id, .seq = entry.seq, .value = entry.value};
    p->place = gl_str_fmt(p->answer.arena, "%lld", (long long)entry.seq + 1);
    return true;
}

static bool next(struct gl_answer *a, void *item)
{
    struct export_page *p = GL_CONTAINER(a, struct export_page, answer);
    while (p->at < p->reply->items_n && a->call->req->status == 0) {
        if (read_item(p, gl_redis_item(p->reply, p->at++), item)) {
            return true;
        }
    }
    return false;
}

static void decode_page(struct gl_redis_op *op, const struct position *at,
                        const struct gl_redis_reply *reply)
{
    const struct gl_redis_plan *plan = op->store->plan;
    struct gl_store_req *req = op->call.req;
    struct export_page p = {.answer = {.call = &op->call, .arena = op->arena, .next = next},
                            .reply = reply,
                            .position = at};
    bool is_log = gl_str_is(at->what, "log"), is_records = gl_str_is(at->what, "ids");
    gl_str name = is_log ? gl_str_cut(at->name, ':', &p.id) : at->name;

    GL_ASSERT(plan->complete);
    GL_ASSERT(at->number < plan->names_n);
    p.kind = gl_redis_name_decode(name, op->arena);
    gl_answer_fill(&p.answer);
    if (req->status < 0) {
        return;
    }
    if (reply->items_n / (is_records ? 2 : 1) >= op->call.export.limit) {
        req->next = position_text(at->full, p.place, op->arena);
    } else if (at->number + 1 < plan->names_n) {
        req->next = position_text(plan->names[at->number + 1], (gl_str){0}, op->arena);
    }
}

static void on_scanned(struct gl_redis_plan *p, const struct gl_redis_reply *reply)
{
    gl_str cursor = gl_redis_text(gl_redis_item(reply, 0));

    GL_ASSERT(!p->complete);
    plan_add(p, gl_redis_item(reply, 1));
    p->cursor = gl_str_dup(&p->arena, cursor);
    if (cursor.n == 0 || gl_str_is(cursor, "0")) {
        plan_finish(p);
    }
}

/* Without a position the context is empty, or the export is complete: the request returns no
 * items. */
static void decode(struct gl_redis_op *op, const struct gl_redis_reply *reply)
{
    struct gl_redis_plan *p = plan_of(op->store, op);
    struct position at;

    GL_ASSERT(op->call.type == GL_CALL_EXPORT);
    if (!p->complete) {
        on_scanned(p, reply);
        op->again = !p->complete || find_position(p, op->call.export.after, &at);
    } else if (find_position(p, op->call.export.after, &at)) {
        decode_page(op, &at, reply);
    }
}

const struct gl_redis_verb gl_redis_verb_export = {.encode = encode, .decode = decode};
