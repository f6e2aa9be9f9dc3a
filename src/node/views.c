/* views.c - copies from records what a view asks for: ids, revisions, some members, or hashes. */
#include "node/views.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/sha256.h"

enum { HEX = GL_SHA256_HEX - 1 };

/* ---- a set of strings ---- */

struct texts {
    struct gl_arena *arena;
    struct gl_map known;
    gl_str *items;
    size_t n, cap;
};

static void add(struct texts *t, gl_str text)
{
    if (text.n == 0 || gl_map_find(&t->known, text) != NULL) {
        return;
    }
    if (t->n == t->cap) {
        size_t cap = t->cap * 2 + 64;
        gl_str *more = GL_NEW_ARRAY(t->arena, gl_str, cap);

        if (t->n > 0) {
            memcpy(more, t->items, t->n * sizeof(*more));
        }
        t->items = more;
        t->cap = cap;
    }
    t->items[t->n] = text;
    gl_map_add(&t->known, text, t); /* a set: the value has no meaning */
    t->n++;
}

/* Adds every run of 64 hex digits. */
static void add_hashes(struct texts *t, gl_str text)
{
    size_t run = 0;

    for (size_t i = 0; i <= text.n; i++) {
        char c = i < text.n ? text.p[i] : '"';

        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) {
            run++;
            continue;
        }
        if (run == HEX) {
            add(t, (gl_str){.p = text.p + i - HEX, .n = HEX});
        }
        run = 0;
    }
}

/* ---- one record ---- */

static gl_str members_of(const struct gl_core_view *v, gl_str value, struct gl_arena *a)
{
    void *object = gl_arena_alloc(a, v->schema->bytes);
    struct gl_buf out = {0};
    struct gl_json j;
    struct gl_jw w;
    gl_str text;

    if (gl_json_parse(&j, value, GL_RECORD_BYTES_MAX, a, NULL) != 0 ||
        gl_schema_read(v->schema, &j, gl_json_root(&j), false, a, object, NULL) != 0) {
        return (gl_str){0};
    }
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_schema_write(v->members, object, &w, GL_FOR_STORE);
    gl_jw_end(&w);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

/* The member of a readable record. */
static bool member_of(const struct gl_core_view *v, const struct gl_record *r, struct gl_arena *a,
                      gl_str *ret)
{
    void *object = gl_arena_alloc(a, v->schema->bytes);
    struct gl_json j;

    if (r->damaged || gl_json_parse(&j, r->value, GL_RECORD_BYTES_MAX, a, NULL) != 0 ||
        gl_schema_read(v->schema, &j, gl_json_root(&j), false, a, object, NULL) != 0) {
        return false;
    }
    *ret = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), v->member), a);
    return true;
}

/* From an unreadable record: the bytes where the member should be, as long as a hash. */
static gl_str salvage(const struct gl_core_view *v, gl_str value, struct gl_arena *a)
{
    gl_str key = gl_str_fmt(a, "\"%s\":\"", v->member);
    const char *at = value.n > 0 ? memmem(value.p, value.n, key.p, key.n) : NULL;
    size_t left = at != NULL ? value.n - (size_t)(at - value.p) - key.n : 0;
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str text;

    if (left < HEX) {
        return (gl_str){0};
    }
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_put_str(&w, v->member, (gl_str){.p = at + key.n, .n = HEX});
    gl_jw_end(&w);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static struct gl_event_record stamp_of(const struct gl_record *r)
{
    return (struct gl_event_record){.kind = r->kind,
                                    .id = r->id,
                                    .owner = r->owner,
                                    .rev = r->rev,
                                    .token = r->token,
                                    .live = r->live,
                                    .damaged = r->damaged};
}

/* ---- all records ---- */

struct view_reader {
    const struct gl_core_view *view;
    struct gl_arena *arena;
    struct texts names;
    struct gl_event_record *records;
    size_t records_n;
};

static void put_record(struct view_reader *x, const struct gl_record *r, gl_str value)
{
    x->records[x->records_n] = stamp_of(r);
    x->records[x->records_n++].value = value;
}

static void read_one(struct view_reader *x, const struct gl_record *r)
{
    gl_str text = {0};

    switch (x->view->type) {
    case GL_VIEW_WHOLE:
        put_record(x, r, r->damaged ? (gl_str){0} : r->value);
        break;
    case GL_VIEW_IDS:
        add(&x->names, r->id);
        break;
    case GL_VIEW_STAMPS:
        put_record(x, r, (gl_str){0});
        break;
    case GL_VIEW_MEMBERS:
        put_record(x, r, members_of(x->view, r->value, x->arena));
        break;
    case GL_VIEW_MEMBER:
        if (member_of(x->view, r, x->arena, &text)) {
            add(&x->names, text);
        } else {
            put_record(x, r, salvage(x->view, r->value, x->arena));
        }
        break;
    case GL_VIEW_HASHES:
        add_hashes(&x->names, r->value);
        break;
    }
}

void gl_views_read(const struct gl_core_call *call, const struct gl_store_req *req,
                   struct gl_arena *a, struct gl_event_answer *ret)
{
    static const struct gl_core_view whole = {.type = GL_VIEW_WHOLE};
    struct view_reader x = {.view = call->view != NULL ? call->view : &whole,
                            .arena = a,
                            .names = {.arena = a},
                            .records = GL_NEW_ARRAY(a, struct gl_event_record, req->records_n + 1)};

    gl_map_init(&x.names.known);
    for (size_t i = 0; i < req->records_n; i++) {
        read_one(&x, &req->records[i]);
    }
    gl_map_done(&x.names.known);
    ret->records = (struct gl_items){.items = x.records, .n = x.records_n};
    ret->names = (struct gl_strs){.items = x.names.items, .n = x.names.n};
    if (call->type == GL_CORE_CALL_LIST && req->records_n > 0 &&
        gl_listing_has_more(&call->listing, req->records, req->records_n)) {
        ret->next = req->records[req->records_n - 1].id;
    }
}
