/* All content of a context, page by page.
 *
 * First the whole keyspace is walked through for the names of listings, indexes, logs: the plan,
 * which is sorted and kept from page to page. Then each is read from its beginning. Where to go on
 * is "<bytes of name>:<name><place>", so a page can be asked for also when the plan is lost. */
#include <stdlib.h>

#include "base/check.h"
#include "store/redis/redis_parts.h"

struct gl_redis_plan {
    gl_str context;
    struct gl_arena arena;
    gl_str *names; /* "ids:job", "index:wake", "log:events:ID", sorted */
    size_t names_n, names_cap;
    gl_str cursor; /* of the walk */
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
    if (s->plan == NULL || !gl_str_eq(s->plan->context, op->context)) {
        gl_redis_plan_free(s->plan);
        s->plan = gl_mem_alloc(sizeof(*s->plan));
        s->plan->context = gl_str_dup(&s->plan->arena, op->context);
        s->plan->cursor = GL_S("0");
    }
    return s->plan;
}

static void plan_add(struct gl_redis_plan *p, const struct gl_redis_reply *names)
{
    for (size_t i = 0; i < names->items_n; i++) {
        if (p->names_n == p->names_cap) {
            p->names_cap = p->names_cap * 2 + 64;
            p->names = gl_mem_realloc(p->names, p->names_cap * sizeof(*p->names));
        }
        p->names[p->names_n++] = gl_str_dup(&p->arena, gl_redis_text(gl_redis_item(names, i)));
    }
}

/* A walk may meet a name twice. */
static void plan_finish(struct gl_redis_plan *p)
{
    size_t n = 0;
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
}

/* ---- where we are ---- */

struct spot {
    gl_str full;       /* "log:events:ID" */
    gl_str what, name; /* "log", "events:ID" */
    gl_str place;      /* in it; "" : its beginning */
    size_t number;     /* in the plan */
};

/* The first name at or behind the one in `after`; false: there is none. */
static bool find_spot(const struct gl_redis_plan *p, gl_str after, struct spot *ret)
{
    gl_str rest, full = {0}, place = {0};
    uint64_t n;
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
    *ret = (struct spot){.full = p->names[low], .number = low};
    ret->place = gl_str_eq(ret->full, full) ? place : (gl_str){0};
    ret->what = gl_str_cut(ret->full, ':', &ret->name);
    return true;
}

static gl_str spot_text(gl_str full, gl_str place, struct gl_arena *a)
{
    return gl_str_fmt(a, "%zu:%.*s%.*s", full.n, GL_STR_ARG(full), GL_STR_ARG(place));
}

/* ---- asking ---- */

static void bound_after(struct gl_buf *out, gl_str place)
{
    if (place.n == 0) {
        gl_redis_arg_char(out, '-');
        return;
    }
    gl_redis_arg_open(out, place.n + 1);
    gl_buf_char(out, '(');
    gl_buf_str(out, place);
    gl_redis_arg_close(out);
}

/* Names come from keys: they are encoded already. */
static void encode_page(struct gl_redis *s, const struct gl_redis_op *op, const struct spot *at,
                        struct gl_buf *out)
{
    size_t limit = op->u.export.limit;
    if (gl_str_is(at->what, "ids")) {
        gl_redis_eval(s, op, GL_REDIS_SCRIPT_LIST, 8, out);
        gl_redis_arg_c(out, "ids");
        gl_redis_arg(out, at->name);
        gl_redis_arg_c(out, "ZRANGEBYLEX");
        bound_after(out, at->place);
        gl_redis_arg_char(out, '+');
        gl_redis_arg_u64(out, limit);
        gl_redis_arg_char(out, '1');
        gl_redis_arg_char(out, '0'); /* whatever their size */
    } else if (gl_str_is(at->what, "index")) {
        gl_redis_eval(s, op, GL_REDIS_SCRIPT_RANGE, 4, out);
        gl_redis_arg(out, at->name);
        bound_after(out, at->place);
        gl_redis_arg_char(out, '+');
        gl_redis_arg_u64(out, limit);
    } else {
        gl_redis_eval(s, op, GL_REDIS_SCRIPT_LOG, 3, out);
        gl_redis_arg(out, at->name);
        gl_redis_arg(out, at->place.n > 0 ? at->place : GL_S("0"));
        gl_redis_arg_u64(out, limit);
    }
}

static void encode(struct gl_redis *s, const struct gl_redis_op *op, struct gl_buf *out)
{
    struct gl_redis_plan *p = plan_of(s, op);
    struct spot at;
    if (p->complete && find_spot(p, op->u.export.after, &at)) {
        encode_page(s, op, &at, out);
        return;
    }
    gl_redis_eval(s, op, GL_REDIS_SCRIPT_SCAN, 1, out);
    gl_redis_arg(out, p->cursor);
}

/* ---- answers ---- */

struct page {
    struct gl_write *writes;
    size_t n;
    gl_str place;   /* behind the last */
    size_t read;    /* entries in the answer */
    gl_str damaged; /* the id of a record that is; "" : none */
};

static void read_records(struct page *p, gl_str kind, const struct gl_redis_reply *reply)
{
    for (size_t i = 0; i + 1 < reply->items_n; i += 2) {
        struct gl_record r = {.kind = kind, .id = gl_redis_text(gl_redis_item(reply, i))};
        gl_redis_record(&r, gl_redis_item(reply, i + 1), true);
        p->place = r.id;
        p->read++;
        p->damaged = r.damaged ? r.id : p->damaged;
        p->writes[p->n++] = (struct gl_write){.type = GL_WRITE_PUT,
                                              .kind = kind,
                                              .id = r.id,
                                              .rev = r.rev,
                                              .owner = r.owner,
                                              .token = r.token,
                                              .live = r.live,
                                              .value = r.value};
    }
}

static void read_entries(struct page *p, gl_str index, const struct gl_redis_reply *reply)
{
    for (size_t i = 0; i < reply->items_n; i++) {
        struct gl_write w = {.type = GL_WRITE_INDEX, .kind = index};
        p->place = gl_redis_text(gl_redis_item(reply, i));
        p->read++;
        if (gl_redis_unscore(p->place, &w.score, &w.id)) {
            p->writes[p->n++] = w;
        }
    }
}

static void read_log(struct page *p, gl_str kind, gl_str id, const struct gl_redis_reply *reply,
                     struct gl_arena *a)
{
    for (size_t i = 0; i < reply->items_n; i++) {
        const struct gl_redis_reply *entry = gl_redis_item(reply, i);
        gl_str rest, seq = gl_str_cut(gl_redis_text(gl_redis_item(entry, 0)), '-', &rest);
        struct gl_write w = {.type = GL_WRITE_LOG, .kind = kind, .id = id};
        p->read++;
        if (gl_str_i64(seq, &w.seq)) {
            w.value = gl_redis_text(gl_redis_item(gl_redis_item(entry, 1), 1));
            p->place = gl_str_fmt(a, "%lld", (long long)w.seq + 1);
            p->writes[p->n++] = w;
        }
    }
}

static void read_page(struct page *p, const struct spot *at, const struct gl_redis_reply *reply,
                      struct gl_arena *a)
{
    p->writes = GL_NEW_ARRAY(a, struct gl_write, reply->items_n + 1);
    if (gl_str_is(at->what, "log")) {
        gl_str id, kind = gl_str_cut(at->name, ':', &id);
        read_log(p, gl_redis_unname(kind, a), id, reply, a);
        return;
    }
    gl_str name = gl_redis_unname(at->name, a);
    if (gl_str_is(at->what, "ids")) {
        read_records(p, name, reply);
    } else {
        read_entries(p, name, reply);
    }
}

static enum gl_redis_next on_walk(struct gl_redis_plan *p, const struct gl_redis_reply *reply)
{
    gl_str cursor = gl_redis_text(gl_redis_item(reply, 0));
    plan_add(p, gl_redis_item(reply, 1));
    p->cursor = gl_str_dup(&p->arena, cursor);
    if (cursor.n == 0 || gl_str_is(cursor, "0")) {
        plan_finish(p);
    }
    return GL_REDIS_AGAIN;
}

static enum gl_redis_next decode(struct gl_redis *s, struct gl_redis_op *op,
                                 const struct gl_redis_reply *reply, struct gl_arena *a)
{
    struct gl_redis_plan *p = plan_of(s, op);
    struct gl_store_req *req = op->req;
    struct spot at;
    if (!p->complete) {
        (void)on_walk(p, reply);
        /* An empty context, or a place behind the last. */
        return p->complete && !find_spot(p, op->u.export.after, &at) ? GL_REDIS_DONE
                                                                     : GL_REDIS_AGAIN;
    }
    if (!find_spot(p, op->u.export.after, &at)) {
        return GL_REDIS_DONE;
    }
    struct page page = {0};
    read_page(&page, &at, reply, a);
    if (page.damaged.n > 0) { /* In a copy it would look sound. */
        req->status = gl_why(&req->why, GL_E_DAMAGED, "the record %.*s:%.*s is damaged",
                             GL_STR_ARG(at.name), GL_STR_ARG(page.damaged));
        return GL_REDIS_DONE;
    }
    req->writes = page.writes;
    req->writes_n = page.n;
    if (page.read >= op->u.export.limit) {
        req->next = spot_text(at.full, page.place, a);
    } else if (at.number + 1 < p->names_n) {
        req->next = spot_text(p->names[at.number + 1], (gl_str){0}, a);
    }
    return GL_REDIS_DONE;
}

const struct gl_redis_verb gl_redis_verb_export = {.encode = encode, .decode = decode};
