/* claim.c - the limits of a request, the decision, and a claim as text. */
#include "core/claims/claim.h"

#include "base/check.h"
#include "base/limits.h"

const char *const gl_claim_state_words[] = {
#define X(name, word) word,
    GL_CLAIM_STATES(X)
#undef X
        NULL};

const char *const gl_claim_act_words[] = {
#define X(name, word) word,
    GL_CLAIM_ACTS(X)
#undef X
        NULL};

#define CF(member, type, flags, doc) GL_FIELD(gl_claim, member, type, flags, doc)

static const struct gl_field claim_fields[] = {
    GL_FIELD_ENUM(gl_claim, state, gl_claim_state_words, GL_FF_REQUIRED | GL_FF_ALWAYS,
                  "Its state; stays `claimed` after the lease has expired, until a node notices."),
    CF(owner, STR, GL_FF_REQUIRED, "Who holds it, or held it last."),
    CF(lease_until, TIME, GL_FF_REQUIRED, "When others may take it, by the store's clock."),
    CF(lease_ms, SPAN, GL_FF_REQUIRED, "The length of the lease that was requested."),
    CF(attempt, U32, GL_FF_REQUIRED, "Number of the attempt: 1 again after a claim was completed."),
    CF(fence, U64, GL_FF_REQUIRED, "Rises with every acquisition of this key."),
    CF(claimed_at, TIME, 0, "When it was acquired."),
    CF(last_heartbeat_at, TIME, 0, "When it was acquired or last renewed."),
    CF(finished_at, TIME, 0, "When it was completed, failed, or found expired."),
    CF(work_type, STR, 0, "What kind of work it is, in the owner's words."),
    CF(error_detail, STR, 0, "Why it failed, in the owner's words."),
    CF(nonce, STR, GL_FF_STORE_ONLY,
       "The nonce of the acquisition, by which a repetition is recognised."),
};

const struct gl_schema gl_claim_schema = {
    .name = "claim",
    .doc = "An exclusive right by name, held for a while.",
    .bytes = sizeof(struct gl_claim),
    .fields = claim_fields,
    .fields_n = GL_COUNT(claim_fields),
};

/* ---- limits of a request ---- */

/* UTF-8 without control characters, including C1 (U+0080 to U+009F). */
static bool is_plain(gl_str s)
{
    size_t bad_at;

    if (!gl_str_is_utf8(s, &bad_at)) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < 0x20 || c == 0x7f ||
            (c == 0xc2 && i + 1 < s.n && (unsigned char)s.p[i + 1] < 0xa0)) {
            return false;
        }
    }
    return true;
}

bool gl_claim_is_key(gl_str key)
{
    return key.n > 0 && key.n <= GL_KEY_BYTES_MAX && is_plain(key);
}

static bool is_text(gl_str s, size_t bytes_max)
{
    size_t bad_at;

    return s.n <= bytes_max && gl_str_is_utf8(s, &bad_at) &&
           (s.n == 0 || memchr(s.p, '\0', s.n) == NULL);
}

int gl_claim_check(const struct gl_claim_args *args, struct gl_why *reterr_why)
{
    GL_ASSERT(args->act < GL_CLAIM_ACT_COUNT);
    if (!gl_claim_is_key(args->key)) {
        return gl_why(
            reterr_why, GL_E_INVALID,
            "the key of a claim must be 1 to %d bytes of UTF-8 without control characters",
            GL_KEY_BYTES_MAX);
    }
    if (args->owner.n == 0 || args->owner.n > GL_ID_BYTES_MAX || !is_plain(args->owner)) {
        return gl_why(
            reterr_why, GL_E_INVALID,
            "the owner of a claim must be 1 to %d bytes of UTF-8 without control characters",
            GL_ID_BYTES_MAX);
    }
    if (args->act != GL_CLAIM_ACQUIRE && args->fence == 0) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "`fence` is missing: pass the fence that was returned with the claim");
    }
    if (args->lease_ms != 0 &&
        (args->lease_ms < GL_LEASE_MS_MIN || args->lease_ms > GL_LEASE_MS_MAX)) {
        return gl_why(reterr_why, GL_R_CLAIM_LEASE_INVALID,
                      "a lease must be 1 second to 1 day long");
    }
    if (args->work_type.n > GL_ID_BYTES_MAX || !is_plain(args->work_type)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "the work_type of a claim must be at most %d bytes of UTF-8 without control "
                      "characters",
                      GL_ID_BYTES_MAX);
    }
    if (args->nonce.n > GL_ID_BYTES_MAX || !is_plain(args->nonce)) {
        return gl_why(
            reterr_why, GL_E_INVALID,
            "the nonce of an acquisition must be at most %d bytes of UTF-8 without control "
            "characters",
            GL_ID_BYTES_MAX);
    }
    if (!is_text(args->error_detail, GL_CLAIM_DETAIL_BYTES_MAX)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "the error_detail of a claim must be at most %d bytes of UTF-8 without NUL",
                      GL_CLAIM_DETAIL_BYTES_MAX);
    }
    return 0;
}

/* ---- deciding ---- */

/* A new holder, or the first one. */
static struct gl_claim grant(const struct gl_claim_args *args, gl_ms now, uint32_t attempt,
                             uint64_t fence)
{
    gl_ms lease_ms = args->lease_ms != 0 ? args->lease_ms : GL_LEASE_MS_DEFAULT;

    GL_ASSERT(attempt > 0);
    GL_ASSERT(fence > 0);
    GL_ASSERT(args->act == GL_CLAIM_ACQUIRE);
    GL_ASSERT(args->owner.n > 0);
    GL_ASSERT(lease_ms >= GL_LEASE_MS_MIN && lease_ms <= GL_LEASE_MS_MAX);
    return (struct gl_claim){.state = GL_CLAIM_CLAIMED,
                             .owner = args->owner,
                             .lease_until = now + lease_ms,
                             .lease_ms = lease_ms,
                             .attempt = attempt,
                             .fence = fence,
                             .claimed_at = now,
                             .last_heartbeat_at = now,
                             .work_type = args->work_type,
                             .nonce = args->nonce};
}

/* The same holder, with a lease that starts now. */
static struct gl_claim extend(const struct gl_claim *found, gl_ms lease_ms, gl_ms now)
{
    struct gl_claim c = *found;

    GL_ASSERT(found->state == GL_CLAIM_CLAIMED);
    c.lease_ms = lease_ms != 0 ? lease_ms : c.lease_ms;
    c.lease_until = now + c.lease_ms;
    c.last_heartbeat_at = now;
    GL_ASSERT(c.lease_until > now);
    GL_ASSERT(c.fence == found->fence);
    return c;
}

/* Is this the same acquisition again, because its answer was lost? */
static bool is_repeated(const struct gl_claim *found, const struct gl_claim_args *args)
{
    GL_ASSERT(args->act == GL_CLAIM_ACQUIRE);
    GL_ASSERT(found->state == GL_CLAIM_CLAIMED);
    return args->nonce.n > 0 && gl_str_eq(found->nonce, args->nonce) &&
           gl_str_eq(found->owner, args->owner);
}

/* A claim is not re-entrant: two processes may use the same owner name, and only the nonce tells
 * them apart. */
static int acquire(const struct gl_claim *found, const struct gl_claim_args *args, gl_ms now,
                   struct gl_claim *ret, struct gl_why *reterr_why)
{
    char span[GL_TIMES_BYTES];

    GL_ASSERT(args->act == GL_CLAIM_ACQUIRE);
    if (found == NULL) {
        *ret = grant(args, now, 1, 1);
        return 0;
    }
    if (found->state == GL_CLAIM_CLAIMED && found->lease_until > now) {
        if (is_repeated(found, args)) {
            *ret = extend(found, args->lease_ms, now);
            return 0;
        }
        return gl_why(reterr_why, GL_R_CLAIM_HELD, "'%.*s' is claimed by '%.*s' for another %.*s",
                      GL_STR_ARG(args->key), GL_STR_ARG(found->owner),
                      GL_STR_ARG(gl_times_format_span(found->lease_until - now, span)));
    }
    if (found->state == GL_CLAIM_DONE && args->once) {
        return gl_why(reterr_why, GL_R_CLAIM_DONE, "'%.*s' has already been completed by '%.*s'",
                      GL_STR_ARG(args->key), GL_STR_ARG(found->owner));
    }
    if (found->fence >= GL_CLAIM_FENCE_MAX ||
        (found->state != GL_CLAIM_DONE && found->attempt >= GL_CLAIM_ATTEMPT_MAX)) {
        return gl_why(reterr_why, GL_R_CLAIM_DAMAGED,
                      "the record of '%.*s' is damaged: nobody can have claimed it so often",
                      GL_STR_ARG(args->key));
    }
    *ret =
        grant(args, now, found->state == GL_CLAIM_DONE ? 1 : found->attempt + 1, found->fence + 1);
    GL_ASSERT(ret->fence > found->fence);
    GL_ASSERT(GL_IMPLIES(found->state != GL_CLAIM_DONE, ret->attempt > found->attempt));
    return 0;
}

static int not_owner(const struct gl_claim *found, const struct gl_claim_args *args,
                     struct gl_why *reterr_why)
{
    GL_ASSERT(args->act != GL_CLAIM_ACQUIRE && args->act != GL_CLAIM_RECLAIM);
    if (found == NULL) {
        return gl_why(reterr_why, GL_R_CLAIM_UNKNOWN, "'%.*s' has never been claimed",
                      GL_STR_ARG(args->key));
    }
    if (found->state != GL_CLAIM_CLAIMED) {
        return gl_why(reterr_why, GL_R_CLAIM_OVER, "'%.*s' is no longer held: its state is %s",
                      GL_STR_ARG(args->key), gl_claim_state_words[found->state]);
    }
    return gl_why(reterr_why, GL_R_CLAIM_OTHER,
                  "'%.*s' is held by '%.*s' with fence %llu, not by '%.*s' with fence %llu",
                  GL_STR_ARG(args->key), GL_STR_ARG(found->owner), (unsigned long long)found->fence,
                  GL_STR_ARG(args->owner), (unsigned long long)args->fence);
}

/* Complete or fail it. Repeated by the same holder, this changes nothing. */
static int finish(const struct gl_claim *found, const struct gl_claim_args *args, gl_ms now,
                  struct gl_claim *ret, struct gl_why *reterr_why)
{
    uint8_t state = args->act == GL_CLAIM_COMPLETE ? GL_CLAIM_DONE : GL_CLAIM_FAILED;

    GL_ASSERT(args->act == GL_CLAIM_COMPLETE || args->act == GL_CLAIM_FAIL);
    GL_ASSERT(found->fence == args->fence);
    GL_ASSERT(gl_str_eq(found->owner, args->owner));
    if (found->state == state) {
        *ret = *found;
        return 0;
    }
    if (found->state != GL_CLAIM_CLAIMED) {
        return not_owner(found, args, reterr_why);
    }
    *ret = *found;
    ret->state = state;
    ret->finished_at = now;
    ret->error_detail = args->act == GL_CLAIM_FAIL ? args->error_detail : (gl_str){0};
    return 0;
}

int gl_claim_decide(const struct gl_claim *found, const struct gl_claim_args *args, gl_ms now,
                    struct gl_claim *ret, struct gl_why *reterr_why)
{
    bool is_over = found != NULL && found->state == GL_CLAIM_CLAIMED && found->lease_until <= now;

    GL_ASSERT(args->act < GL_CLAIM_ACT_COUNT);
    GL_ASSERT(args->key.n > 0);
    GL_ASSERT(found == NULL || (found->fence > 0 && found->attempt > 0));
    if (args->act == GL_CLAIM_ACQUIRE) {
        return acquire(found, args, now, ret, reterr_why);
    }
    if (args->act == GL_CLAIM_RECLAIM) {
        if (!is_over) {
            return gl_why(reterr_why, GL_R_CLAIM_LEASE_RUNNING,
                          "the lease of '%.*s' has not expired yet", GL_STR_ARG(args->key));
        }
        *ret = *found;
        ret->state = GL_CLAIM_EXPIRED;
        ret->finished_at = now;
        return 0;
    }
    /* A holder may be late: while the fence is still its own, no one has acquired the claim since.
     */
    if (found == NULL || found->fence != args->fence || !gl_str_eq(found->owner, args->owner)) {
        return not_owner(found, args, reterr_why);
    }
    if (args->act == GL_CLAIM_RENEW) {
        if (found->state != GL_CLAIM_CLAIMED) {
            return not_owner(found, args, reterr_why);
        }
        *ret = extend(found, args->lease_ms, now);
        return 0;
    }
    return finish(found, args, now, ret, reterr_why);
}

/* ---- as text ---- */

/* A record that no acquisition can have written is damaged. */
static bool is_sound(const struct gl_claim *c)
{
    return c->fence > 0 && c->fence <= GL_CLAIM_FENCE_MAX && c->attempt > 0 &&
           c->attempt <= GL_CLAIM_ATTEMPT_MAX && c->lease_ms > 0 && c->lease_ms <= GL_LEASE_MS_MAX;
}

void gl_claim_encode(const struct gl_claim *c, struct gl_buf *out)
{
    struct gl_jw w;

    GL_ASSERT(c->fence > 0);
    GL_ASSERT(c->attempt > 0);
    GL_ASSERT(c->lease_ms > 0);
    GL_ASSERT(c->state <= GL_CLAIM_EXPIRED);
    GL_ASSERT(is_sound(c)); /* what is written can be read */
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_schema_write(&gl_claim_schema, c, &w, GL_FOR_STORE);
    gl_jw_end(&w);
}

int gl_claim_decode(gl_str value, struct gl_arena *a, struct gl_claim *ret,
                    struct gl_why *reterr_why)
{
    struct gl_json j;
    struct gl_claim c;
    int err = gl_json_parse(&j, value, GL_RECORD_BYTES_MAX, a, reterr_why);

    if (err == 0) {
        err = gl_schema_read(&gl_claim_schema, &j, gl_json_root(&j), false, a, &c, reterr_why);
    }
    if (err == 0 && !is_sound(&c)) {
        err = gl_why(reterr_why, GL_E_DAMAGED, "%s", gl_err_text(GL_E_DAMAGED));
    }
    if (err == 0) {
        *ret = c;
    }
    return err;
}

void gl_claim_write(struct gl_jw *w, gl_str key, const struct gl_claim *c, gl_ms now)
{
    GL_ASSERT(c->state <= GL_CLAIM_EXPIRED);
    gl_jw_object(w);
    gl_jw_key(w, "key");
    gl_jw_str(w, key);
    gl_schema_write(&gl_claim_schema, c, w, GL_FOR_API);
    if (now > 0 && c->state == GL_CLAIM_CLAIMED) {
        gl_jw_key(w, "remaining_ms");
        gl_jw_i64(w, c->lease_until > now ? c->lease_until - now : 0);
    }
    gl_jw_end(w);
}
