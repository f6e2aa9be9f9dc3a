#include "support/cmocka_all.h"

#include "store/redis/redis_url.h"

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

static int done(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_enough),
        cmocka_unit_test(all_parts_are_understood),
        cmocka_unit_test(sentinels_are_a_list),
        cmocka_unit_test(mistakes_are_named_and_passwords_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
