/* Claims: what is decided from what was found, row by row. */
#include "base/check.h"
#include "base/limits.h"
#include "core/claims/claim.h"
#include "support/cmocka_all.h"

enum { T0 = 1000000, LEASE = 60000 };

static struct gl_claim_args args_of(enum gl_claim_act act, const char *owner, uint64_t fence)
{
    return (struct gl_claim_args){.act = act,
                                  .key = GL_S("k"),
                                  .owner = gl_str_of(owner),
                                  .fence = fence,
                                  .lease_ms = LEASE,
                                  .nonce = GL_S("n1")};
}

static struct gl_claim held(uint8_t state, const char *owner, uint32_t attempt, uint64_t fence)
{
    return (struct gl_claim){.state = state,
                             .owner = gl_str_of(owner),
                             .lease_until = T0 + LEASE,
                             .lease_ms = LEASE,
                             .attempt = attempt,
                             .fence = fence,
                             .claimed_at = T0,
                             .last_heartbeat_at = T0,
                             .nonce = GL_S("n0")};
}

static void acquire_follows_the_table(void **state)
{
    static const struct {
        int found; /* -1: none */
        const char *by;
        gl_ms now;
        bool once;
        int code;
        uint32_t attempt;
        uint64_t fence;
    } rows[] = {
        {-1, "", T0, false, 0, 1, 1},
        {-1, "", T0, true, 0, 1, 1},
        {GL_CLAIM_CLAIMED, "a", T0, false, GL_E_BUSY, 0, 0},
        {GL_CLAIM_CLAIMED, "b", T0, false, GL_E_BUSY, 0, 0}, /* not re-entrant */
        {GL_CLAIM_CLAIMED, "a", T0 + LEASE - 1, false, GL_E_BUSY, 0, 0},
        {GL_CLAIM_CLAIMED, "a", T0 + LEASE, false, 0, 4, 8},
        {GL_CLAIM_CLAIMED, "b", T0 + LEASE, true, 0, 4, 8},
        {GL_CLAIM_DONE, "a", T0, false, 0, 1, 8},
        {GL_CLAIM_DONE, "a", T0, true, GL_E_EXISTS, 0, 0},
        {GL_CLAIM_FAILED, "a", T0, false, 0, 4, 8},
        {GL_CLAIM_FAILED, "a", T0, true, 0, 4, 8},
        {GL_CLAIM_EXPIRED, "a", T0, false, 0, 4, 8},
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(rows); i++) {
        struct gl_claim_args args = args_of(GL_CLAIM_ACQUIRE, "b", 0);
        struct gl_claim found, made = {0};
        struct gl_why why;
        int code;

        found = held((uint8_t)(rows[i].found < 0 ? 0 : rows[i].found), rows[i].by, 3, 7);
        args.once = rows[i].once;
        code = gl_claim_decide(rows[i].found < 0 ? NULL : &found, &args, rows[i].now, &made, &why);
        assert_int_equal(code, rows[i].code);
        if (code == 0) {
            assert_int_equal(made.state, GL_CLAIM_CLAIMED);
            assert_int_equal(made.attempt, rows[i].attempt);
            assert_int_equal(made.fence, rows[i].fence);
            assert_int_equal(made.lease_until, rows[i].now + LEASE);
            assert_int_equal(made.claimed_at, rows[i].now);
            assert_int_equal(made.finished_at, 0);
            assert_true(gl_str_is(made.owner, "b"));
        }
    }
}

static void the_same_acquisition_once_more_gets_the_same_claim(void **state)
{
    struct gl_claim_args args = args_of(GL_CLAIM_ACQUIRE, "a", 0);
    struct gl_claim found = held(GL_CLAIM_CLAIMED, "a", 3, 7), made;
    struct gl_why why;

    (void)state;
    assert_int_equal(gl_claim_decide(&found, &args, T0 + 10, &made, &why), GL_E_BUSY);
    args.nonce = GL_S("n0");
    assert_int_equal(gl_claim_decide(&found, &args, T0 + 10, &made, &why), 0);
    assert_int_equal(made.fence, 7);
    assert_int_equal(made.attempt, 3);
    assert_int_equal(made.claimed_at, T0);
    assert_int_equal(made.lease_until, T0 + 10 + LEASE);
    args.owner = GL_S("b");
    assert_int_equal(gl_claim_decide(&found, &args, T0 + 10, &made, &why), GL_E_BUSY);
    args.owner = GL_S("a");
    assert_int_equal(gl_claim_decide(&found, &args, T0 + LEASE, &made, &why), 0);
    assert_int_equal(made.fence, 8); /* too late: it might have been somebody else's since */
}

static void only_owner_and_fence_together_may_change_a_claim(void **state)
{
    static const enum gl_claim_act acts[] = {GL_CLAIM_RENEW, GL_CLAIM_COMPLETE, GL_CLAIM_FAIL};
    static const uint8_t ends[] = {GL_CLAIM_CLAIMED, GL_CLAIM_DONE, GL_CLAIM_FAILED};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(acts); i++) {
        struct gl_claim found = held(GL_CLAIM_CLAIMED, "a", 3, 7), made;
        struct gl_claim_args mine = args_of(acts[i], "a", 7), stale = args_of(acts[i], "a", 6),
                             other = args_of(acts[i], "b", 7), later = args_of(acts[i], "a", 8);
        struct gl_claim expired = held(GL_CLAIM_EXPIRED, "a", 3, 7);
        struct gl_why why;

        assert_int_equal(gl_claim_decide(NULL, &mine, T0, &made, &why), GL_E_NOT_OWNER);
        assert_int_equal(gl_claim_decide(&found, &stale, T0, &made, &why), GL_E_NOT_OWNER);
        assert_int_equal(gl_claim_decide(&found, &later, T0, &made, &why), GL_E_NOT_OWNER);
        assert_int_equal(gl_claim_decide(&found, &other, T0, &made, &why), GL_E_NOT_OWNER);
        assert_int_equal(gl_claim_decide(&expired, &mine, T0, &made, &why), GL_E_NOT_OWNER);
        assert_int_equal(gl_claim_decide(&found, &mine, T0 + 5, &made, &why), 0);
        assert_int_equal(made.state, ends[i]);
        assert_int_equal(made.fence, 7);
        assert_int_equal(made.attempt, 3);
        /* Late, but nobody was faster. */
        assert_int_equal(gl_claim_decide(&found, &mine, T0 + LEASE * 2, &made, &why), 0);
    }
}

static void an_end_can_be_said_twice_and_not_otherwise(void **state)
{
    struct gl_claim done = held(GL_CLAIM_DONE, "a", 3, 7),
                    failed = held(GL_CLAIM_FAILED, "a", 3, 7);
    struct gl_claim_args complete = args_of(GL_CLAIM_COMPLETE, "a", 7),
                         fail = args_of(GL_CLAIM_FAIL, "a", 7),
                         renew = args_of(GL_CLAIM_RENEW, "a", 7);
    struct gl_claim made;
    struct gl_why why;

    (void)state;
    done.finished_at = failed.finished_at = T0 + 1;
    assert_int_equal(gl_claim_decide(&done, &complete, T0 + 9, &made, &why), 0);
    assert_int_equal(made.finished_at, T0 + 1);
    assert_int_equal(gl_claim_decide(&failed, &fail, T0 + 9, &made, &why), 0);
    assert_int_equal(gl_claim_decide(&done, &fail, T0 + 9, &made, &why), GL_E_NOT_OWNER);
    assert_int_equal(gl_claim_decide(&failed, &complete, T0 + 9, &made, &why), GL_E_NOT_OWNER);
    assert_int_equal(gl_claim_decide(&done, &renew, T0 + 9, &made, &why), GL_E_NOT_OWNER);
}

static void only_a_lease_that_is_over_is_reclaimed(void **state)
{
    struct gl_claim_args args = {.act = GL_CLAIM_RECLAIM, .key = GL_S("k")};
    struct gl_claim found = held(GL_CLAIM_CLAIMED, "a", 3, 7),
                    done = held(GL_CLAIM_DONE, "a", 1, 1);
    struct gl_claim made;
    struct gl_why why;

    (void)state;
    assert_int_equal(gl_claim_decide(&found, &args, T0 + LEASE - 1, &made, &why), GL_E_STATE);
    assert_int_equal(gl_claim_decide(&done, &args, T0 + LEASE, &made, &why), GL_E_STATE);
    assert_int_equal(gl_claim_decide(NULL, &args, T0 + LEASE, &made, &why), GL_E_STATE);
    assert_int_equal(gl_claim_decide(&found, &args, T0 + LEASE, &made, &why), 0);
    assert_int_equal(made.state, GL_CLAIM_EXPIRED);
    assert_int_equal(made.fence, 7);
}

/* An acquisition with another text at that place. */
static int check_text(size_t at, gl_str text)
{
    struct gl_claim_args args = args_of(GL_CLAIM_ACQUIRE, "a", 0);
    struct gl_why why;

    memcpy((char *)&args + at, &text, sizeof(text));
    return gl_claim_check(&args, &why);
}

static int check_lease(gl_ms lease_ms)
{
    struct gl_claim_args args = args_of(GL_CLAIM_ACQUIRE, "a", 0);
    struct gl_why why;

    args.lease_ms = lease_ms;
    return gl_claim_check(&args, &why);
}

static void limits_are_said(void **state)
{
    static char x[GL_CLAIM_DETAIL_BYTES_MAX + 1];
    static const size_t key = offsetof(struct gl_claim_args, key),
                        owner = offsetof(struct gl_claim_args, owner),
                        type = offsetof(struct gl_claim_args, work_type),
                        nonce = offsetof(struct gl_claim_args, nonce),
                        detail = offsetof(struct gl_claim_args, error_detail);
    const struct {
        size_t at;
        gl_str text;
        bool is_fine;
    } texts[] = {
        {key, GL_S("k"), true},
        {key, {.p = x, .n = GL_KEY_BYTES_MAX}, true},
        {key,
         GL_S("Gr\xc3\xb6\xc3\x9f"
              "e/2026 \xe2\x86\x92 x"),
         true},
        {key, GL_S("\xc2\xa0"), true},
        {key, {0}, false},
        {key, {.p = x, .n = GL_KEY_BYTES_MAX + 1}, false},
        {key, GL_S("a\nb"), false},
        {key, GL_S("a\x7f"), false},
        {key, GL_S("a\xc2\x85"), false},
        {key, GL_S("a\xff"), false},
        {key, GL_S("a\0b"), false},
        {owner, {.p = x, .n = GL_ID_BYTES_MAX}, true},
        {owner, {.p = x, .n = GL_ID_BYTES_MAX + 1}, false},
        {owner, {0}, false},
        {type, {0}, true},
        {type, {.p = x, .n = GL_ID_BYTES_MAX + 1}, false},
        {nonce, {0}, true},
        {nonce, {.p = x, .n = GL_ID_BYTES_MAX + 1}, false},
        {detail, {.p = x, .n = GL_CLAIM_DETAIL_BYTES_MAX}, true},
        {detail, GL_S("line\nline\ttab"), true},
        {detail, {.p = x, .n = GL_CLAIM_DETAIL_BYTES_MAX + 1}, false},
        {detail, GL_S("a\0b"), false},
    };
    struct gl_claim_args renew = args_of(GL_CLAIM_RENEW, "a", 0);
    struct gl_why why;

    (void)state;
    memset(x, 'x', sizeof(x));
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        assert_int_equal(check_text(texts[i].at, texts[i].text),
                         texts[i].is_fine ? 0 : GL_E_INVALID);
    }
    assert_int_equal(check_lease(0), 0); /* the default */
    assert_int_equal(check_lease(GL_LEASE_MS_MIN), 0);
    assert_int_equal(check_lease(GL_LEASE_MS_MAX), 0);
    assert_int_equal(check_lease(GL_LEASE_MS_MIN - 1), GL_E_INVALID);
    assert_int_equal(check_lease(-1), GL_E_INVALID);
    assert_int_equal(check_lease(GL_LEASE_MS_MAX + 1), GL_E_INVALID);
    assert_int_equal(gl_claim_check(&renew, &why), GL_E_INVALID); /* without a fence */
}

static void a_claim_survives_its_text(void **state)
{
    struct gl_claim c = held(GL_CLAIM_FAILED, "\xc3\xa4 \"q\"", 3, UINT64_MAX >> 1), back;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_why why;

    (void)state;
    c.error_detail = GL_S("a\nb");
    c.work_type = GL_S("episode");
    c.finished_at = T0 + 3;
    gl_claim_encode(&c, &text);
    assert_int_equal(gl_claim_decode(gl_buf_view(&text), &a, &back, &why), 0);
    assert_int_equal(back.state, c.state);
    assert_int_equal(back.fence, c.fence);
    assert_int_equal(back.attempt, c.attempt);
    assert_int_equal(back.lease_until, c.lease_until);
    assert_int_equal(back.finished_at, c.finished_at);
    assert_true(gl_str_eq(back.owner, c.owner));
    assert_true(gl_str_eq(back.nonce, c.nonce));
    assert_true(gl_str_eq(back.error_detail, c.error_detail));
    assert_true(gl_str_eq(back.work_type, c.work_type));
    assert_int_not_equal(gl_claim_decode(GL_S("{\"state\":\"lost\"}"), &a, &back, &why), 0);
    assert_int_not_equal(gl_claim_decode(GL_S("nonsense"), &a, &back, &why), 0);
}

static void the_api_shows_no_nonce_and_how_long_is_left(void **state)
{
    struct gl_claim c = held(GL_CLAIM_CLAIMED, "a", 1, 1);
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;

    (void)state;
    gl_jw_init(&w, &text);
    gl_claim_write(&w, GL_S("k"), &c, T0 + 59000);
    gl_buf_char(&text, '\0');
    assert_string_equal(text.p,
                        "{\"key\":\"k\",\"state\":\"claimed\",\"owner\":\"a\",\"lease_until\":"
                        "\"1970-01-01T00:17:40.000Z\",\"lease_ms\":60000,\"attempt\":1,\"fence\":1,"
                        "\"claimed_at\":\"1970-01-01T00:16:40.000Z\",\"last_heartbeat_at\":"
                        "\"1970-01-01T00:16:40.000Z\",\"remaining_ms\":1000}");
}

/* Such records come from a store that somebody has edited. */
static void a_number_that_cannot_rise_is_damage(void **state)
{
    struct gl_claim_args args = args_of(GL_CLAIM_ACQUIRE, "b", 0);
    struct gl_claim most = held(GL_CLAIM_FAILED, "a", GL_CLAIM_ATTEMPT_MAX, 7),
                    last = held(GL_CLAIM_FAILED, "a", 5, GL_CLAIM_FENCE_MAX),
                    good = held(GL_CLAIM_FAILED, "a", GL_CLAIM_ATTEMPT_MAX - 1,
                                GL_CLAIM_FENCE_MAX - 1),
                    made;
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_why why;

    (void)state;
    assert_int_equal(gl_err_code(gl_claim_decide(&most, &args, T0, &made, &why)), GL_E_DAMAGED);
    assert_int_equal(why.reason, GL_REASON_CLAIM_DAMAGED);
    assert_int_equal(gl_err_code(gl_claim_decide(&last, &args, T0, &made, &why)), GL_E_DAMAGED);
    assert_int_equal(gl_claim_decide(&good, &args, T0, &made, &why), 0);
    gl_claim_encode(&made, &text); /* what it has made can be written */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquire_follows_the_table),
        cmocka_unit_test(the_same_acquisition_once_more_gets_the_same_claim),
        cmocka_unit_test(only_owner_and_fence_together_may_change_a_claim),
        cmocka_unit_test(an_end_can_be_said_twice_and_not_otherwise),
        cmocka_unit_test(only_a_lease_that_is_over_is_reclaimed),
        cmocka_unit_test(limits_are_said),
        cmocka_unit_test(a_claim_survives_its_text),
        cmocka_unit_test(the_api_shows_no_nonce_and_how_long_is_left),
        cmocka_unit_test(a_number_that_cannot_rise_is_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
