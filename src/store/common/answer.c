/* answer.c - reads items into a growing buffer and hands them to the request as one array.
 *
 * The table `shapes` says, for each type of call, how large an item is and which two members of
 * struct gl_store_req (pointer and count) receive the result. One loop can therefore serve all
 * types. */
#include "store/common/answer.h"

#include "base/check.h"

static const struct {
    size_t item_bytes, at, n_at; /* offsets in struct gl_store_req: of the array, of its length */
} shapes[GL_CALLS_N] = {
#define SHAPE(type, member)                                  \
    {                                                        \
        sizeof(type), offsetof(struct gl_store_req, member), \
            offsetof(struct gl_store_req, member##_n)        \
    }
    [GL_CALL_LIST] = SHAPE(struct gl_record, records),
    [GL_CALL_RANGE] = SHAPE(struct gl_index_entry, entries),
    [GL_CALL_LOG_READ] = SHAPE(struct gl_log_entry, log),
    [GL_CALL_SESSION_LIST] = SHAPE(struct gl_session_info, sessions),
    [GL_CALL_EXPORT] = SHAPE(struct gl_write, writes),
};

/* Only values are counted: keys and scores are small. Calls without values never reach a byte
 * limit. */
static size_t bytes_of(const struct gl_call *call, const void *item)
{
    GL_ASSERT(call->type < GL_CALLS_N);
    return call->type == GL_CALL_LIST     ? ((const struct gl_record *)item)->value.n
           : call->type == GL_CALL_EXPORT ? ((const struct gl_write *)item)->value.n
                                          : 0;
}

void gl_answer_fill(struct gl_answer *a)
{
    struct gl_call *call = a->call;
    size_t size = shapes[call->type].item_bytes, bytes = 0;
    size_t bytes_max = call->type == GL_CALL_LIST ? call->listing->bytes_max : a->page_bytes;
    struct gl_buf items = {0};

    GL_ASSERT(call->type < GL_CALLS_N);
    GL_ASSERT(size > 0);
    /* The item that reaches the limit still belongs to the page, so a page always makes progress,
     * however large its first item is. */
    for (bool is_full = false; !is_full;) {
        void *item = memset(gl_buf_reserve(&items, size), 0, size);
        if (!a->next(a, item)) {
            break;
        }
        items.n += size;
        bytes += bytes_of(call, item);
        is_full = bytes_max > 0 && bytes >= bytes_max;
    }
    GL_ASSERT(items.n % size == 0);
    /* A request that failed halfway returns no items: a partial page could be mistaken for the last
     * one. */
    if (call->req->status == 0) {
        const void *all = gl_arena_copy(a->arena, items.p, items.n);
        size_t n = items.n / size;
        memcpy((char *)call->req + shapes[call->type].at, &all, sizeof(void *));
        memcpy((char *)call->req + shapes[call->type].n_at, &n, sizeof(n));
    }
    gl_buf_done(&items);
}

struct gl_record *gl_answer_records(struct gl_call *call, struct gl_arena *arena)
{
    size_t n = call->get.n;
    struct gl_record *records = GL_NEW_ARRAY(arena, struct gl_record, n + 1);

    GL_ASSERT(call->type == GL_CALL_GET);
    for (size_t i = 0; i < n; i++) {
        records[i].kind = call->get.keys[i].kind;
        records[i].id = call->get.keys[i].id;
    }
    call->req->records = records;
    call->req->records_n = n;
    return records;
}

bool gl_answer_export(struct gl_store_req *req, const struct gl_record *r, struct gl_write *ret)
{
    *ret = (struct gl_write){.type = GL_WRITE_PUT,
                             .kind = r->kind,
                             .id = r->id,
                             .rev = r->rev,
                             .owner = r->owner,
                             .token = r->token,
                             .live = r->live,
                             .value = r->value};
    if (r->damaged) {
        req->status = gl_why(&req->why, GL_E_DAMAGED,
                             "%.*s %.*s is damaged: its checksum is wrong; restore it from a "
                             "backup, or delete it",
                             GL_STR_ARG(r->kind), GL_STR_ARG(r->id));
    }
    return !r->damaged;
}

bool gl_answer_upper_bound(gl_str prefix, struct gl_arena *a, gl_str *ret)
{
    /* A byte of 0xff cannot be incremented: drop it and increment the byte before it. A prefix of
     * only such bytes has no upper bound. */
    while (prefix.n > 0 && (unsigned char)prefix.p[prefix.n - 1] == 0xff) {
        prefix.n--;
    }
    if (prefix.n == 0) {
        return false;
    }
    char *p = gl_arena_copy(a, prefix.p, prefix.n);
    p[prefix.n - 1]++;
    *ret = (gl_str){p, prefix.n};
    GL_ASSERT(prefix.n > 0);
    return true;
}
