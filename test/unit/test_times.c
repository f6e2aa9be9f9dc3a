#include "support/cmocka_all.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/times.h"

static void times_are_written_as_rfc_3339(void **state)
{
    (void)state;
    static const struct {
        gl_ms t;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {1794740149123, "2026-11-15T10:55:49.123Z"},
        {4107542399999, "2100-02-28T23:59:59.999Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"}, /* 2100 is no leap year */
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {253402300800000, "9999-12-31T23:59:59.999Z"}, /* clamped */
        {-1, "1970-01-01T00:00:00.000Z"},              /* clamped */
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        char buf[GL_TIMES_BYTES];
        assert_string_equal(gl_times_format(cases[i].t, buf).p, cases[i].text);
    }
}

static void a_time_that_was_written_is_read_back(void **state)
{
    (void)state;
    struct gl_rng rng;
    gl_rng_init(&rng, 5);
    for (int i = 0; i < 20000; i++) {
        gl_ms t = gl_rng_range(&rng, 0, 253402300799999), back = -1;
        char buf[GL_TIMES_BYTES];
        assert_true(gl_times_parse(gl_times_format(t, buf), &back));
        assert_true(back == t);
    }
}

static void times_with_any_offset_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        gl_ms t;
    } cases[] = {
        {"2026-11-15T10:55:49Z", 1794740149000},
        {"2026-11-15t10:55:49z", 1794740149000},
        {"2026-11-15 10:55:49Z", 1794740149000},
        {"2026-11-15T11:55:49+01:00", 1794740149000},
        {"2026-11-15T05:25:49-05:30", 1794740149000},
        {"2026-11-15T10:55:49.1Z", 1794740149100},
        {"2026-11-15T10:55:49.123999Z", 1794740149123},
        {"2016-12-31T23:59:60Z", 1483228800000}, /* a leap second is the next midnight */
        {"1969-12-31T23:59:59Z", -1000},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_ms t = 0;
        assert_true(gl_times_parse(gl_str_of(cases[i].text), &t));
        assert_true(t == cases[i].t);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "2026-11-15",
        "2026-11-15T10:55:49",
        "2026-13-15T10:55:49Z",
        "2026-00-15T10:55:49Z",
        "2026-02-29T10:55:49Z",
        "2026-04-31T10:55:49Z",
        "2026-11-00T10:55:49Z",
        "2026-11-15T24:00:00Z",
        "2026-11-15T10:60:49Z",
        "2026-11-15T10:55:61Z",
        "2026-11-15T10:55:49.Z",
        "2026-11-15T10:55:49+1:00",
        "2026-11-15T10:55:49+24:00",
        "2026-11-15T10:55:49Z ",
        "26-11-15T10:55:49Z",
        "2026-11-15T10:55Z",
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_ms t = 77;
        assert_false(gl_times_parse(gl_str_of(cases[i]), &t));
        assert_true(t == 77);
    }
}

static void spans_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        gl_ms span;
    } cases[] = {
        {"90s", 90000},
        {"1.5h", 5400000},
        {"2m30s", 150000},
        {"250ms", 250},
        {"1d", 86400000},
        {"5", 5000},
        {"0.5", 500},
        {"0", 0},
        {"1d2h3m4s5ms", 93784005},
        {"3m 20s", 200000},
        {" 7s ", 7000},
        {"0.0015s", 1},
        {"3650d", 315360000000},
        {"1.123456789123s", 1123},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_ms span = -1;
        assert_true(gl_times_parse_span(gl_str_of(cases[i].text), &span));
        assert_true(span == cases[i].span);
    }
}

static void what_is_no_span_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        " ",
        "s",
        "-5s",
        "+5s",
        "5x",
        "5 s",
        "30s2m",
        "1s1s",
        "2m30",
        "1.s",
        ".5",
        "1..5",
        "3651d",
        "1e3",
        "5S",
        "99999999999999999999s",
        "3650d1ms",
        "5,5s",
        "1h ago",
        "1m m",
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_ms span = 77;
        if (gl_times_parse_span(gl_str_of(cases[i]), &span)) {
            fail_msg("\"%s\" was read as %lld ms", cases[i], (long long)span);
        }
        assert_true(span == 77);
    }
}

static void spans_are_written_shortly(void **state)
{
    (void)state;
    static const struct {
        gl_ms span;
        const char *text;
    } cases[] = {
        {0, "0ms"},          {999, "999ms"},     {1000, "1s"},
        {1234, "1.2s"},      {59999, "59.9s"},   {60000, "1m 0s"},
        {200000, "3m 20s"},  {3600000, "1h 0m"}, {86399999, "23h 59m"},
        {90000000, "1d 1h"}, {-1500, "-1.5s"},   {INT64_MIN, "-106751991167d 7h"},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        char buf[GL_TIMES_BYTES];
        assert_string_equal(gl_times_format_span(cases[i].span, buf).p, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_written_as_rfc_3339),
        cmocka_unit_test(a_time_that_was_written_is_read_back),
        cmocka_unit_test(times_with_any_offset_are_read),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(spans_are_read_as_people_write_them),
        cmocka_unit_test(what_is_no_span_is_refused),
        cmocka_unit_test(spans_are_written_shortly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
