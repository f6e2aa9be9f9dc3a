/* answer.h - the answers of reads, put together item by item into a request. */
#ifndef GL_STORE_ANSWER_H
#define GL_STORE_ANSWER_H

#include "store/common/calls.h"

/* What an engine has read for a call. An item is of the type the call answers with: a struct
 * gl_record (LIST), gl_index_entry (RANGE), gl_log_entry (LOG_READ), gl_session_info (SESSION_LIST)
 * or gl_write (EXPORT). Its texts live as long as the answer. */
struct gl_answer {
    struct gl_call *call;
    struct gl_arena *arena; /* of the results */
    size_t page_bytes;      /* a page of an export ends when its values reach this; 0: no bound */
    /* Fill an item, which is all zero; false: there are no more, or the request has failed. */
    bool (*next)(struct gl_answer *a, void *item);
};

/* Every item, or as many as the call's bound of bytes allows, into the request. */
void gl_answer_fill(struct gl_answer *a);

/* The results of a GET: for each key a record that is not there, to be filled. */
struct gl_record *gl_answer_records(struct gl_call *call, struct gl_arena *arena);

/* An exported record as a write; false: it is damaged, and a copy would look sound. */
bool gl_answer_export(struct gl_store_req *req, const struct gl_record *r, struct gl_write *ret);

/* The smallest text above all that start with `prefix`; false: there is none. */
bool gl_answer_upper_bound(gl_str prefix, struct gl_arena *a, gl_str *ret);

#endif
