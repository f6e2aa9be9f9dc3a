/* The URL of a store: which engine, and never its password. */
#include "port/storeurl.h"
#include "support/cmocka_all.h"

#include <string.h>

static void assert_safe(const char *url, const char *expected)
{
    struct gl_arena a = {0};

    assert_string_equal(gl_str_c(&a, gl_storeurl_safe(&a, gl_str_of(url))), expected);
    gl_arena_done(&a);
}

static void passwords_are_never_shown(void **state)
{
    (void)state;
    assert_safe("redis://user:secret@host:6379/0", "redis://user:***@host:6379/0");
    assert_safe("redis://:secret@host", "redis://:***@host");
    assert_safe("redis+sentinel://u:s@a:1,b:2/name?sentinel_password=s&x=1",
                "redis+sentinel://u:***@a:1,b:2/name?sentinel_password=***&x=1");
    assert_safe("postgres://u:s@h/db?sslmode=require&sslpassword=s",
                "postgres://u:***@h/db?sslmode=require&sslpassword=***");
    assert_safe("postgres:///db?password=secret", "postgres:///db?password=***");
}

static void a_password_that_is_not_escaped_is_hidden_all_the_same(void **state)
{
    (void)state;
    assert_safe("redis://u:se@cr@et@host", "redis://u:***@host");
    assert_safe("redis://u:se/cr?et@host/1", "redis://u:***@host/1");
    assert_safe("redis://u:se:cret@host", "redis://u:***@host");
    assert_safe("u:secret@host", "u:***@host"); /* no URL at all */
}

static void without_a_password_nothing_is_hidden(void **state)
{
    (void)state;
    assert_safe("", "");
    assert_safe("sqlite:", "sqlite:");
    assert_safe("sqlite:/srv/glia", "sqlite:/srv/glia");
    assert_safe("redis://host", "redis://host");
    assert_safe("redis://user@host/1?timeout_ms=5&tls", "redis://user@host/1?timeout_ms=5&tls");
}

static void the_scheme_chooses_the_engine(void **state)
{
    static const struct {
        const char *url;
        enum gl_storeurl_kind kind;
        bool is_shared;
    } known[] = {{"", GL_STOREURL_SQLITE, false},
                 {"sqlite:", GL_STOREURL_SQLITE, false},
                 {"sqlite:/srv", GL_STOREURL_SQLITE, false},
                 {"redis://h", GL_STOREURL_REDIS, true},
                 {"rediss://h", GL_STOREURL_REDIS, true},
                 {"redis+sentinel://h/n", GL_STOREURL_REDIS, true},
                 {"postgres://h/n", GL_STOREURL_POSTGRES, true},
                 {"postgresql://h/n", GL_STOREURL_POSTGRES, true}};
    enum gl_storeurl_kind kind;

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_int_equal(gl_storeurl_kind(gl_str_of(known[i].url), &kind, NULL), 0);
        assert_int_equal(kind, known[i].kind);
        assert_int_equal(gl_storeurl_is_shared(gl_str_of(known[i].url)), known[i].is_shared);
    }
}

static void another_scheme_is_refused_with_those_there_are(void **state)
{
    static const char *const wrong[] = {"mysql://u:secret@h/n", "redis:host", "REDIS://h", "host",
                                        " redis://h"};
    static const char *const schemes[] = {" sqlite:", " redis://", " rediss://"};
    enum gl_storeurl_kind kind;
    struct gl_why why;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(gl_storeurl_kind(gl_str_of(wrong[i]), &kind, &why), GL_E_INVALID);
        for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
            assert_non_null(strstr(why.text, schemes[k]));
        }
        assert_null(strstr(why.text, "secret"));
        assert_false(gl_storeurl_is_shared(gl_str_of(wrong[i])));
    }
}

static void places_are_the_same_whoever_goes_there(void **state)
{
    static const struct {
        const char *x, *y;
        bool is_same;
    } pairs[] = {
        {"", "sqlite:", true},
        {"sqlite:/a", "sqlite:/b", false},
        {"sqlite:", "redis://h/0", false},
        {"redis://h", "redis://u:secret@h:6379/0", true},
        {"redis://h/0?timeout_ms=300", "redis://h/", true},
        {"redis://h/0", "redis://h/1", false},
        {"redis://h:1/0", "redis://h:2/0", false},
        {"redis://h/0", "redis+sentinel://h/0", false},
        {"postgres://u:p@h/db", "postgresql://other@h:5432/db", true},
        {"postgres://h/db", "postgres://h/da", false},
        {"postgres://h/0", "redis://h/0", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_int_equal(gl_storeurl_is_same(gl_str_of(pairs[i].x), gl_str_of(pairs[i].y)),
                         pairs[i].is_same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_never_shown),
        cmocka_unit_test(a_password_that_is_not_escaped_is_hidden_all_the_same),
        cmocka_unit_test(without_a_password_nothing_is_hidden),
        cmocka_unit_test(the_scheme_chooses_the_engine),
        cmocka_unit_test(another_scheme_is_refused_with_those_there_are),
        cmocka_unit_test(places_are_the_same_whoever_goes_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
