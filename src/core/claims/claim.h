/* claim.h - an exclusive right by name: who holds it, until when, and which attempt it is.
 *
 * A claim is the record "claim"/<key>. No session owns the record: every change is decided here,
 * from the record that was read and the store's time, and committed under the guard that the record
 * is still the same. So of many requests for one key at the same time, exactly one succeeds.
 *
 *   found                          acquire                                  renew, complete, fail
 *   none                           attempt 1, fence 1                       not_owner
 *   claimed, lease not over        busy, also for the same owner            by owner and fence
 *   claimed, lease over            attempt + 1, fence + 1                   by owner and fence
 *   done                           attempt 1, fence + 1 (`once`: exists)    not_owner
 *   failed, expired                attempt + 1, fence + 1                   not_owner
 *
 * The fence only rises. To renew, complete or fail a claim, its holder must name both owner and
 * fence; so a holder that slept past its lease changes nothing, even if it uses the same owner
 * name.
 *
 * Every request can be repeated when its answer was lost. Completing a claim that the same fence
 * has completed succeeds. An acquisition carries a nonce: if the claim is held with that nonce, the
 * holder gets it again, with a new lease.
 *
 * Order of calls: gl_claim_check() on a client's request, then gl_claim_decide() on the decoded
 * record, then gl_claim_encode(). Nothing here reads a clock or talks to the store. */
#ifndef GL_CORE_CLAIMS_CLAIM_H
#define GL_CORE_CLAIMS_CLAIM_H

#include "base/err.h"
#include "model/schema.h"

#define GL_CLAIM_STATES(X) \
    X(CLAIMED, "claimed")  \
    X(DONE, "done")        \
    X(FAILED, "failed")    \
    X(EXPIRED, "expired")

enum gl_claim_state {
#define X(name, word) GL_CLAIM_##name,
    GL_CLAIM_STATES(X)
#undef X
};

extern const char *const gl_claim_state_words[];

struct gl_claim {
    uint8_t state;
    gl_str owner;      /* who holds it, or held it last */
    gl_ms lease_until; /* by the store's clock; also its score in the index while it is claimed */
    gl_ms lease_ms;    /* the length requested: the default of the next renewal */
    uint32_t attempt;  /* from 1; 1 again after a claim was completed */
    uint64_t fence;    /* from 1; only rises */
    gl_ms claimed_at, last_heartbeat_at, finished_at;
    gl_str work_type, error_detail;
    gl_str nonce; /* of the acquisition, to recognise it when it is repeated */
};

extern const struct gl_schema gl_claim_schema;

#define GL_CLAIM_ACTS(X)    \
    X(ACQUIRE, "acquire")   \
    X(RENEW, "renew")       \
    X(COMPLETE, "complete") \
    X(FAIL, "fail")         \
    X(RECLAIM, "reclaim") /* mark a claim whose lease is over */

enum gl_claim_act {
#define X(name, word) GL_CLAIM_##name,
    GL_CLAIM_ACTS(X)
#undef X
        GL_CLAIM_ACT_COUNT
};

extern const char *const gl_claim_act_words[];

/* What a client asks for. */
struct gl_claim_args {
    enum gl_claim_act act;
    gl_str key, owner;
    uint64_t fence; /* not of an acquisition */
    gl_ms lease_ms; /* 0: the default of ACQUIRE; of RENEW the length of the current lease */
    bool once;      /* ACQUIRE: refuse a key that is done */
    gl_str work_type, error_detail, nonce;
};

/* Nobody claims so often: what is beyond is damage. */
#define GL_CLAIM_FENCE_MAX (UINT64_MAX - 1)
#define GL_CLAIM_ATTEMPT_MAX (UINT32_MAX - 1)

/* What this node has done for its clients since it started. */
struct gl_claim_counts {
    uint64_t acquired; /* acquisitions granted, takeovers too */
    uint64_t steals;   /* of these, takeovers: attempt 2 or later */
    uint64_t busy;     /* acquisitions refused because the claim was held */
    uint64_t renewed;
    uint64_t renew_failed; /* the claim was lost, or the outcome is unknown */
    uint64_t completed;
    uint64_t failed;
    uint64_t expired; /* marked by `reclaim` */
};

/* Check the texts, the lease and the fence of a request against their limits. */
int gl_claim_check(const struct gl_claim_args *args, struct gl_why *reterr_why);
bool gl_claim_is_key(gl_str key);

/* `found` is NULL if there is no record; `now` is the store's time. Returns 0, and in *ret the
 * claim to write, whose strings are borrowed from `found` and `args`; or GL_E_BUSY, GL_E_NOT_OWNER,
 * GL_E_EXISTS or GL_E_STATE: nothing is to be written. */
int gl_claim_decide(const struct gl_claim *found, const struct gl_claim_args *args, gl_ms now,
                    struct gl_claim *ret, struct gl_why *reterr_why);

/* As stored. The decoded strings are borrowed from `value` and `a`. Decoding refuses a claim that
 * no acquisition can have written, so whatever it returns may be passed to gl_claim_decide(). */
void gl_claim_encode(const struct gl_claim *c, struct gl_buf *out);
int gl_claim_decode(gl_str value, struct gl_arena *a, struct gl_claim *ret,
                    struct gl_why *reterr_why);

/* As the API shows it: an object with its key, and with `remaining_ms` if the store's time `now` is
 * known; 0: it is not. */
void gl_claim_write(struct gl_jw *w, gl_str key, const struct gl_claim *c, gl_ms now);

#endif
