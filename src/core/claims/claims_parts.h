/* claims_parts.h - requests for claims in memory; for the files of this room alone. */
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
struct gl_claim_work {
    struct gl_link link; /* in core->claims.under_way */
    uint64_t request;    /* to be answered */
    uint8_t phase;       /* enum gl_claim_phase */
    uint8_t act;         /* enum gl_claim_act */
    struct gl_claim_wish wish;
    uint32_t limit; /* RECLAIM: of the page */
    uint32_t tries;
    bool was_unknown;       /* an earlier try may have been committed */
    uint64_t time_call;     /* under way; 0: none. The same below */
    uint64_t record_call;   /* of the record, the page, the page's records; or the commit */
    int64_t error;          /* of the first call of this try that failed, with its reason; ... */
    gl_str why;             /* ... and its sentence */
    gl_ms now;              /* the store's time */
    gl_str value;           /* of the record that was read; "": damaged ... */
    uint64_t rev;           /* ... or, if this is 0, not there */
    gl_str shown;           /* WRITING: the claim that is being written, as it will be answered */
    uint32_t attempt;       /* ... and which attempt it is */
    struct gl_link changes; /* RECLAIM: struct gl_claim_change */
};

/* One claim of a page. */
struct gl_claim_change {
    struct gl_link link;
    gl_str key;
    int64_t score; /* its place in the index */
    uint64_t call; /* 0: nothing is to be written, or it has been */
    gl_str shown;  /* the claim that is being written, as it will be answered; "": only the place is
                      removed */
    bool is_done;  /* marked */
};

extern const struct gl_schema gl_claim_change_schema;

/* What a record says; *ret_is_found is false if there is none. Else GL_E_DAMAGED with its reason:
 * nothing that can be used. */
int gl_claims_read(struct gl_core *c, gl_str key, uint64_t rev, gl_str value, bool *ret_is_found,
                   struct gl_claim *ret, struct gl_why *reterr_why);
/* Write `made` if the record is still as it was read. Returns the number of the call. */
uint64_t gl_claims_commit(struct gl_core *c, gl_str key, uint64_t rev, const struct gl_claim *found,
                          const struct gl_claim *made);
/* A claim as the API shows it, at the store's time `now`. */
gl_str gl_claims_show(struct gl_core *c, gl_str key, const struct gl_claim *claim, gl_ms now);
/* Answer it, with this body, and forget it. */
void gl_claims_end(struct gl_core *c, struct gl_claim_work *r, int code, gl_str why, gl_str body);
/* The store did not do it, or it is not known whether it did. */
void gl_claims_give_up(struct gl_core *c, struct gl_claim_work *r, int code, gl_str why);

/* ---- reclaim.c ---- */
void gl_reclaim_begin(struct gl_core *c, struct gl_claim_work *r); /* the time is known */
void gl_reclaim_on_answer(struct gl_core *c, struct gl_claim_work *r, const struct gl_event *ev);
void gl_reclaim_drop(struct gl_core *c, struct gl_claim_work *r); /* its changes */

#endif
