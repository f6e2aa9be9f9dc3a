/* claim.h - an exclusive right by name for whoever asks: who has it, until when, which try it is.
 *
 * A claim is the record "claim" / key. Nobody owns its record: every change is decided here, from
 * what was read and from the store's time, and committed under the guard that the record is still
 * what was read. So of many who want one key at the same time exactly one gets it.
 *
 *   found                          acquire                                  renew, complete, fail
 *   none                           attempt 1, fence 1                       not_owner
 *   claimed, lease not over        busy, also for the same owner            by owner and fence
 *   claimed, lease over            attempt + 1, fence + 1                   by owner and fence
 *   done                           attempt 1, fence + 1 (`once`: exists)    not_owner
 *   failed, expired                attempt + 1, fence + 1                   not_owner
 *
 * The fence only rises. Whoever renews, completes or fails must name owner and fence, so a holder
 * that slept too long changes nothing, whatever it is called.
 *
 * What was asked may be asked again when its answer was lost. Completing what the same fence has
 * completed is fine. An acquisition carries a nonce: the one with which the claim is held gets the
 * same claim again, with a lease that begins anew. */
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
    gl_str owner;
    gl_ms lease_until; /* by the store's clock; also its place in the index while it is claimed */
    gl_ms lease_ms;    /* how long it was asked for: the next renewal's default */
    uint32_t attempt;
    uint64_t fence;
    gl_ms claimed_at, last_heartbeat_at, finished_at;
    gl_str work_type, error_detail;
    gl_str nonce; /* of the acquisition */
};

extern const struct gl_schema gl_claim_schema;

#define GL_CLAIM_ACTS(X)    \
    X(ACQUIRE, "acquire")   \
    X(RENEW, "renew")       \
    X(COMPLETE, "complete") \
    X(FAIL, "fail")         \
    X(RECLAIM, "reclaim") /* mark one whose lease is over */

enum gl_claim_act {
#define X(name, word) GL_CLAIM_##name,
    GL_CLAIM_ACTS(X)
#undef X
        GL_CLAIM_ACT_COUNT
};

extern const char *const gl_claim_act_words[];

struct gl_claim_wish {
    enum gl_claim_act act;
    gl_str key, owner;
    uint64_t fence; /* not of an acquisition */
    gl_ms lease_ms; /* ACQUIRE, RENEW; 0: as before, or the default */
    bool once;      /* ACQUIRE: not if it is done */
    gl_str work_type, error_detail, nonce;
};

/* What a node has done for its clients, since it began. */
struct gl_claim_counts {
    uint64_t acquired; /* all that were given, stolen ones too */
    uint64_t steals;   /* of them: not the first attempt, because the one before did not end well */
    uint64_t busy;     /* not given */
    uint64_t renewed;
    uint64_t renew_failed; /* the holder was told that it has lost it, or nothing certain */
    uint64_t completed;
    uint64_t failed;
    uint64_t expired; /* marked by `reclaim` */
};

/* Does it make sense at all? GL_E_INVALID and a sentence if not. */
int gl_claim_check(const struct gl_claim_wish *wish, struct gl_why *reterr_why);
bool gl_claim_is_key(gl_str key);

/* `found` is NULL if there is no record; `now` is the store's time. 0: *ret is what is to be
 * written; its strings are borrowed from both. GL_E_BUSY, GL_E_NOT_OWNER, GL_E_EXISTS: nothing is
 * to be written. */
int gl_claim_decide(const struct gl_claim *found, const struct gl_claim_wish *wish, gl_ms now,
                    struct gl_claim *ret, struct gl_why *reterr_why);

/* As it is stored. Reading borrows from `value` and `a`. */
void gl_claim_encode(const struct gl_claim *c, struct gl_buf *out);
int gl_claim_decode(gl_str value, struct gl_arena *a, struct gl_claim *ret,
                    struct gl_why *reterr_why);

/* As the API shows it: an object with its key; with `now`, the store's time, also with
 * `remaining_ms`. now = 0: nobody has asked what time it is. */
void gl_claim_write(struct gl_jw *w, gl_str key, const struct gl_claim *c, gl_ms now);

#endif
