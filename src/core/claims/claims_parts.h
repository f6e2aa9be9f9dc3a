/* claims_parts.h - requests for claims in memory; only the files of this folder include it.
 *
 * A request lives from gl_claims_on_request() to gl_claims_finish(), which answers and frees it. So
 * nothing looks at a request after gl_claims_finish(), gl_claims_fail() or a function that may call
 * them. A request has calls in flight as long as it lives. */
#ifndef GL_CORE_CLAIMS_CLAIMS_PARTS_H
#define GL_CORE_CLAIMS_CLAIMS_PARTS_H

#include "core/claims/claims.h"

#define GL_CLAIM_PHASES(X)  \
    X(READING, "reading")   \
    X(WRITING, "writing")   \
    X(LISTING, "listing")   \
    X(FETCHING, "fetching") \
    X(MARKING, "marking")

enum gl_claim_phase {
#define X(name, word) GL_CLAIM_##name,
    GL_CLAIM_PHASES(X)
#undef X
};

/* Strings belong to the core's pool. */
struct gl_claim_op {
    struct gl_link link; /* in core->claims.under_way */
    uint64_t request;    /* number of the client's request */
    uint8_t phase;       /* enum gl_claim_phase */
    uint8_t act;         /* enum gl_claim_act */
    struct gl_claim_args args;
    uint32_t limit;         /* RECLAIM: claims of the page */
    uint32_t rounds;        /* how often reading has begun */
    bool was_unknown;       /* an earlier commit may have been made */
    uint64_t time_call;     /* in flight; 0: none */
    uint64_t record_call;   /* the same: for the record, the page or its records; or the commit */
    int64_t error;          /* of the first call that failed since reading began, ... */
    gl_str why;             /* ... and its sentence */
    gl_ms now;              /* the store's time */
    gl_str value;           /* of the record that was read; "": damaged, ... */
    uint64_t rev;           /* ... or absent, if this is 0 */
    gl_str shown;           /* WRITING: the claim being written, as the answer will show it, ... */
    uint32_t attempt;       /* ... and its attempt */
    struct gl_link changes; /* RECLAIM: struct gl_claim_change */
};

/* RECLAIM: one claim of the page. */
struct gl_claim_change {
    struct gl_link link;
    gl_str key;
    int64_t score; /* its place in the index */
    uint64_t call; /* in flight; 0: nothing to write, or it has been answered */
    gl_str shown;  /* the claim being written, as the answer will show it; "": only its place in the
                      index is removed */
    bool is_done;  /* marked as expired */
};

extern const struct gl_schema gl_claim_change_schema;

/* Read the claim from its record; *ret_is_found is false if there is no record. Fails if the record
 * is damaged. */
int gl_claims_read(struct gl_core *c, gl_str key, uint64_t rev, gl_str value, bool *ret_is_found,
                   struct gl_claim *ret, struct gl_why *reterr_why);
/* Write `made` if the record is still as it was read: `found` at revision `rev`, or absent. Returns
 * the number of the call. */
uint64_t gl_claims_commit(struct gl_core *c, gl_str key, uint64_t rev, const struct gl_claim *found,
                          const struct gl_claim *made);
/* A claim as the API shows it, at the store's time `now`. */
gl_str gl_claims_format(struct gl_core *c, gl_str key, const struct gl_claim *claim, gl_ms now);
/* Answer the request and free it. */
void gl_claims_finish(struct gl_core *c, struct gl_claim_op *r, int code, gl_str why, gl_str body);
/* The same, with an error: nothing was changed, or the outcome is unknown. */
void gl_claims_fail(struct gl_core *c, struct gl_claim_op *r, int code, gl_str why);

/* ---- reclaim.c ---- */
void gl_reclaim_begin(struct gl_core *c, struct gl_claim_op *r); /* `r->now` is known */
void gl_reclaim_on_answer(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev);
void gl_reclaim_free_changes(struct gl_core *c, struct gl_claim_op *r);

#endif
