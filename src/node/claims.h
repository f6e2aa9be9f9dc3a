/* claims.h - claims for outside programs: reads, decides (core/claims/claim.h) and commits.
 *
 * Any number of nodes may do so on one store at a time. Each change is guarded by the revision that
 * was read, and the time is the store's; a conflict is read again, so what is answered is true.
 * An outcome that is unknown is found out by reading and writing again: all that is asked here may
 * be repeated, so these transactions carry no number.
 *
 * Nothing here needs the core, or a session that lives. */
#ifndef GL_NODE_CLAIMS_H
#define GL_NODE_CLAIMS_H

#include "api/request.h"
#include "base/list.h"
#include "port/clock.h"
#include "port/entropy.h"
#include "port/store.h"

struct gl_claim_counts {
    uint64_t acquired; /* all that were given, stolen ones too */
    uint64_t steals;   /* of them: not the first try, because the one before did not end well */
    uint64_t busy;     /* not given */
    uint64_t renewed;
    uint64_t renew_failed; /* the holder was told that it is none any more, or nothing certain */
    uint64_t completed;
    uint64_t failed;
    uint64_t expired; /* marked by `reclaim` */
};

struct gl_claims {
    struct gl_store *store; /* borrowed, as all of them */
    struct gl_clock *clock; /* asked only if the store knows no time */
    struct gl_entropy *entropy;
    gl_str session; /* stands in the transactions; may be "" */
    /* The store has not done it; may be NULL. */
    void (*on_failed)(void *owner, const struct gl_store_req *req);
    void *owner;
    struct gl_link under_way;
    size_t under_way_n;
    struct gl_claim_counts counts;
};

void gl_claims_init(struct gl_claims *c, struct gl_store *store, struct gl_clock *clock,
                    struct gl_entropy *entropy);
/* Forget what is under way: only after the store cannot call back any more. */
void gl_claims_done(struct gl_claims *c);

/* With code 0 `body` is the claim, or what was reclaimed. Without, it is the claim that stands in
 * the way, or empty. What is in it may be taken. */
typedef void gl_claims_answer(void *owner, struct gl_request *rq, int code, const char *why,
                              struct gl_buf *body);

/* GL_VERB_CLAIM_ACQUIRE, _RENEW, _COMPLETE, _FAIL, _RECLAIM. `answer` runs once, perhaps from
 * inside the call; `rq` is borrowed until then. */
void gl_claims_run(struct gl_claims *c, struct gl_request *rq, gl_claims_answer *answer,
                   void *owner);

#endif
