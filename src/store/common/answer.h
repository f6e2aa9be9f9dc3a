/* answer.h - collects the results of a read, item by item, into its request.
 *
 * The engine sets up a struct gl_answer whose `next` yields one item per call, then calls
 * gl_answer_fill(), which applies the page limits. A GET calls gl_answer_records() instead and
 * fills in the records that exist. */
#ifndef GL_STORE_ANSWER_H
#define GL_STORE_ANSWER_H

#include "store/common/calls.h"

/* The results of one call. An item has the type the call returns: struct gl_record (LIST),
 * gl_index_entry (RANGE), gl_log_entry (LOG_READ), gl_session_info (SESSION_LIST) or gl_write
 * (EXPORT). Texts in an item live as long as the answer. */
struct gl_answer {
    struct gl_call *call;
    struct gl_arena *arena; /* holds the results */
    size_t page_bytes;      /* an export page ends when its values reach this size; 0: no limit */
    /* Fill `item`, which is zeroed. False: no more items, or the request has failed. */
    bool (*next)(struct gl_answer *a, void *item);
};

/* Read all items, or as many as the call's byte limit allows, into the request. */
void gl_answer_fill(struct gl_answer *a);

/* The result array of a GET: one record per key, all marked absent, to be filled in. */
struct gl_record *gl_answer_records(struct gl_call *call, struct gl_arena *arena);

/* Convert an exported record to a write. False: the record is damaged, and a copy would get a valid
 * checksum. */
bool gl_answer_export(struct gl_store_req *req, const struct gl_record *r, struct gl_write *ret);

/* The smallest text greater than every text that starts with `prefix`; false: there is none. */
bool gl_answer_upper_bound(gl_str prefix, struct gl_arena *a, gl_str *ret);

#endif
