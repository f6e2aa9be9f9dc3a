/* The address of a Redis store, and how names and scores stand in its keys. */
#include "base/check.h"
#include "store/redis/redis_parts.h"
#include "support/cmocka_all.h"

static struct gl_arena arena;

static struct gl_redis_url good(const char *text)
{
    struct gl_redis_url u;
    struct gl_why why = {0};
    if (gl_redis_url_parse(&u, gl_str_of(text), &arena, &why) != 0) {
        fail_msg("'%s': %s", text, why.text);
    }
    return u;
}

static void bad(const char *text, const char *says)
{
    struct gl_redis_url u;
    struct gl_why why = {0};
    assert_int_equal(gl_redis_url_parse(&u, gl_str_of(text), &arena, &why), GL_E_INVALID);
    if (strstr(why.text, says) == NULL) {
        fail_msg("'%s': '%s' does not say '%s'", text, why.text, says);
    }
    assert_null(strstr(why.text, "hunter2"));
}

static int done(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

static void a_host_is_enough(void **state)
{
    (void)state;
    struct gl_redis_url u = good("redis://redis.example");
    assert_string_equal(u.hosts[0].host.p, "redis.example");
    assert_int_equal(u.hosts[0].port, 6379);
    assert_int_equal(u.database, 0);
    assert_false(u.tls || u.sentinel);
    assert_int_equal(u.wait_replicas, -1);
    assert_int_equal(u.timeout_ms, 5000);
}

static void all_parts_are_understood(void **state)
{
    (void)state;
    struct gl_redis_url u =
        good("rediss://us%3Aer:p%40s%2Fs@[::1]:7000/12?timeout_ms=200&wait_replicas=2&wait=all"
             "&tls_ca=/etc/ca%20file.pem&tls_verify=no&wait_ms=50");
    assert_true(u.tls);
    assert_string_equal(u.user.p, "us:er");
    assert_string_equal(u.password.p, "p@s/s");
    assert_string_equal(u.hosts[0].host.p, "::1");
    assert_int_equal(u.hosts[0].port, 7000);
    assert_int_equal(u.database, 12);
    assert_int_equal(u.timeout_ms, 200);
    assert_int_equal(u.wait_replicas, 2);
    assert_int_equal(u.wait_ms, 50);
    assert_true(u.wait_all);
    assert_true(u.tls_no_verify);
    assert_string_equal(u.tls_ca.p, "/etc/ca file.pem");
    assert_true(u.connect_timeout_ms < 200); /* a connection must fail before its request does */
}

static void sentinels_are_a_list(void **state)
{
    (void)state;
    struct gl_redis_url u =
        good("redis+sentinel://:pw@a:1,b,[::2]:3/mymaster/4?sentinel_user=s&sentinel_password=x");
    assert_true(u.sentinel);
    assert_int_equal(u.hosts_n, 3);
    assert_int_equal(u.hosts[0].port, 1);
    assert_int_equal(u.hosts[1].port, 26379);
    assert_string_equal(u.hosts[2].host.p, "::2");
    assert_string_equal(u.name.p, "mymaster");
    assert_int_equal(u.database, 4);
    assert_int_equal(u.user.n, 0);
    assert_string_equal(u.password.p, "pw");
    assert_string_equal(u.sentinel_user.p, "s");
    assert_true(good("rediss+sentinel://a/n").tls);
}

static void mistakes_are_named_and_passwords_are_not(void **state)
{
    (void)state;
    bad("http://a", "redis+sentinel://");
    bad("redis://", "host");
    bad("redis://u:hunter2@", "host");
    bad("redis://u:hunter2@a:99999", "a:99999");
    bad("redis://u:hunter2@a:0", "a:0");
    bad("redis://u:hunter2@a/x", "database");
    bad("redis://u:hunter2%zz@a", "%25");
    bad("redis://u:hunter2%4@a", "%25");
    bad("redis://u:hunter2%00@a", "%25");
    bad("redis://u:hunter2@a,b", "several hosts");
    bad("redis+sentinel://u:hunter2@a", "NAME");
    bad("redis://[::1", "brackets");
    bad("redis://[::1]x", "brackets");
    bad("redis://a?timeout=1", "'timeout'");
    bad("redis://a?timeout_ms=soon", "timeout_ms");
    bad("redis://a?wait=most", "wait");
    bad("redis://a?tls_ca=%", "tls_ca");
    bad("redis+sentinel://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/n", "more than 16");
}

static void names_are_told_apart_in_keys(void **state)
{
    static const char *const names[] = {"job", "a:b", "a%3ab", ".ids", "@x", "x.y@z", "%", ""};
    (void)state;
    struct gl_buf b = {0};
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        gl_str key = gl_str_dup(&arena, gl_redis_name_encode(gl_str_of(names[i]), &b));
        assert_null(memchr(key.p, ':', key.n));
        assert_true(key.n == 0 || (key.p[0] != '.' && key.p[0] != '@'));
        assert_true(gl_str_is(gl_redis_name_decode(key, &arena), names[i]));
        for (size_t k = 0; k < i; k++) {
            assert_false(gl_str_eq(key, gl_redis_name_encode(gl_str_of(names[k]), &b)));
        }
    }
    assert_true(gl_str_is(gl_redis_name_encode(GL_S("wake/a/b"), &b), "wake/a/b"));
    gl_buf_done(&b);
}

static void scores_are_ordered_as_text(void **state)
{
    static const int64_t scores[] = {
        INT64_MIN, INT64_MIN + 1,   -(INT64_C(1) << 53) - 1, -1,       0, 1, 1789000000000,
        1LL << 53, (1LL << 53) + 1, INT64_MAX - 1,           INT64_MAX};
    (void)state;
    char before[GL_REDIS_SCORE_BYTES + 3], text[GL_REDIS_SCORE_BYTES + 3];
    for (size_t i = 0; i < GL_COUNT(scores); i++) {
        int64_t score;
        gl_str id;
        gl_redis_score_encode(scores[i], text);
        memcpy(text + GL_REDIS_SCORE_BYTES, ":id", 3);
        assert_true(gl_redis_score_decode((gl_str){text, sizeof(text)}, &score, &id));
        assert_true(score == scores[i]);
        assert_true(gl_str_is(id, "id"));
        assert_true(i == 0 || memcmp(before, text, sizeof(text)) < 0);
        memcpy(before, text, sizeof(text));
    }
    int64_t score;
    gl_str id;
    assert_false(gl_redis_score_decode(GL_S("short"), &score, &id));
    assert_false(gl_redis_score_decode(GL_S("8000000000000000-id"), &score, &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_enough),
        cmocka_unit_test(all_parts_are_understood),
        cmocka_unit_test(sentinels_are_a_list),
        cmocka_unit_test(mistakes_are_named_and_passwords_are_not),
        cmocka_unit_test(names_are_told_apart_in_keys),
        cmocka_unit_test(scores_are_ordered_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
