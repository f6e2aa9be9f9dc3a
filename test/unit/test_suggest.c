#include "support/cmocka_all.h"

#include "base/check.h"
#include "base/str.h"
#include "base/suggest.h"

static void check_str(gl_str got, const char *text, int line)
{
    if (!gl_str_is(got, text)) {
        fail_msg("line %d: got \"%.*s\", expected \"%s\"", line, GL_STR_ARG(got), text);
    }
}

#define assert_str(s, text) check_str((s), (text), __LINE__)

static unsigned slow_distance(gl_str a, gl_str b)
{
    unsigned m[20][20];
    for (unsigned i = 0; i <= a.n; i++) {
        for (unsigned k = 0; k <= b.n; k++) {
            if (i == 0 || k == 0) {
                m[i][k] = i + k;
                continue;
            }
            unsigned v = m[i - 1][k - 1] + (a.p[i - 1] != b.p[k - 1]);
            v = m[i - 1][k] + 1 < v ? m[i - 1][k] + 1 : v;
            v = m[i][k - 1] + 1 < v ? m[i][k - 1] + 1 : v;
            if (i > 1 && k > 1 && a.p[i - 1] == b.p[k - 2] && a.p[i - 2] == b.p[k - 1]) {
                v = m[i - 2][k - 2] + 1 < v ? m[i - 2][k - 2] + 1 : v;
            }
            m[i][k] = v;
        }
    }
    return m[a.n][b.n];
}

static void the_narrow_distance_agrees_with_the_full_one(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char x[8], y[8];
        for (int i = 0; i < 8; i++) {
            seed = seed * 1664525 + 1013904223;
            x[i] = "abc"[(seed >> 16) % 3];
            y[i] = "abc"[(seed >> 24) % 3];
        }
        gl_str a = {x, (seed >> 8) % 9}, b = {y, (seed >> 12) % 9};
        unsigned full = slow_distance(a, b);
        for (unsigned max = 0; max <= 3; max++) {
            assert_int_equal(gl_suggest_distance(a, b, max), full <= max ? full : max + 1);
        }
    }
}

static gl_str nearest(const char *wanted)
{
    static const char *const words[] = {"needs", "env", "timeout", "retry", "sh", "run"};
    struct gl_suggest near;
    gl_suggest_init(&near, gl_str_of(wanted));
    for (size_t i = 0; i < GL_COUNT(words); i++) {
        gl_suggest_offer(&near, gl_str_of(words[i]));
    }
    return near.best;
}

static void a_slip_of_the_pen_gets_a_suggestion(void **state)
{
    (void)state;
    assert_str(nearest("need"), "needs");
    assert_str(nearest("tiemout"), "timeout");
    assert_str(nearest("evn"), "env");
    assert_str(nearest("rn"), "run");
    assert_str(nearest("banana"), "");
    assert_str(nearest("x"), ""); /* nearly everything short is two letters away */
    assert_str(nearest(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_narrow_distance_agrees_with_the_full_one),
        cmocka_unit_test(a_slip_of_the_pen_gets_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
