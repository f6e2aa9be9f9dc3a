#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/id.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "base/times.h"
#include "base/trace.h"

/* Times. */

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

/* Ids. */

static void an_id_holds_its_time_and_its_chance(void **state)
{
    (void)state;
    struct gl_ulid id;
    const uint8_t zero[10] = {0}, full[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    gl_id_make(&id, 0, zero);
    assert_string_equal(id.text, "00000000000000000000000000");
    gl_id_make(&id, ((gl_ms)1 << 48) - 1, full);
    assert_string_equal(id.text, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    /* From the ULID specification: 1469918176385 is 01ARYZ6S41. */
    gl_id_make(&id, 1469918176385, zero);
    assert_memory_equal(id.text, "01ARYZ6S41", 10);
    assert_true(gl_id_time(gl_str_of(id.text)) == 1469918176385);
}

static void ids_sort_by_time(void **state)
{
    (void)state;
    struct gl_rng rng;
    struct gl_ulid last = {{0}}, id;
    gl_rng_init(&rng, 9);
    for (gl_ms t = 1; t < (gl_ms)1 << 47; t = t * 3 / 2 + 1) {
        uint8_t chance[10];
        gl_rng_fill(&rng, chance, sizeof(chance));
        gl_id_make(&id, t, chance);
        assert_true(strcmp(last.text, id.text) < 0);
        assert_true(gl_id_valid(gl_str_of(id.text)));
        assert_true(gl_id_time(gl_str_of(id.text)) == t);
        last = id;
    }
}

static void what_is_no_id_is_refused(void **state)
{
    (void)state;
    assert_true(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FAV")));
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FA")));
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FAVV")));
    assert_false(gl_id_valid(GL_S("01arz3ndektsv4rrffq69g5fav")));
    assert_false(gl_id_valid(GL_S("81ARZ3NDEKTSV4RRFFQ69G5FAV"))); /* overflow */
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FAU"))); /* no U, I, L, O */
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FA-")));
    assert_false(gl_id_valid((gl_str){"01ARZ3NDEKTSV4RRFFQ69G5FA\0", 26}));
    assert_false(gl_id_valid((gl_str){0}));
}

/* Digests. */

static void digests_are_those_of_the_standard(void **state)
{
    (void)state;
    char hex[GL_SHA256_HEX];
    assert_string_equal(gl_sha256_hex((gl_str){0}, hex).p,
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(gl_sha256_hex(GL_S("abc"), hex).p,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(
        gl_sha256_hex(GL_S("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), hex).p,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    struct gl_sha256 s;
    uint8_t digest[GL_SHA256_BYTES];
    static char as[1000];
    memset(as, 'a', sizeof(as));
    gl_sha256_init(&s);
    for (int i = 0; i < 1000; i++) {
        gl_sha256_add(&s, as, sizeof(as));
    }
    gl_sha256_done(&s, digest);
    assert_int_equal(digest[0], 0xcd); /* a million times "a": cdc76e5c... */
    assert_int_equal(digest[1], 0xc7);
    assert_int_equal(digest[31], 0xd0);
}

static void a_digest_does_not_depend_on_how_the_bytes_come(void **state)
{
    (void)state;
    char text[300], hex[GL_SHA256_HEX];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)i;
    }
    for (size_t n = 0; n <= sizeof(text); n += 7) {
        gl_str whole = gl_sha256_hex((gl_str){text, n}, hex);
        for (size_t cut = 0; cut <= n; cut += 13) {
            struct gl_sha256 s;
            uint8_t digest[GL_SHA256_BYTES];
            gl_sha256_init(&s);
            gl_sha256_add(&s, text, cut);
            gl_sha256_add(&s, text + cut, n - cut);
            gl_sha256_done(&s, digest);
            for (size_t i = 0; i < GL_SHA256_BYTES; i++) {
                assert_int_equal("0123456789abcdef"[digest[i] >> 4], whole.p[2 * i]);
                assert_int_equal("0123456789abcdef"[digest[i] & 15], whole.p[2 * i + 1]);
            }
        }
    }
}

/* Chance. */

static void the_same_seed_gives_the_same_draws(void **state)
{
    (void)state;
    struct gl_rng a, b, c;
    gl_rng_init(&a, 42);
    gl_rng_init(&b, 42);
    gl_rng_init(&c, 43);
    bool differs = false;
    for (int i = 0; i < 100; i++) {
        uint64_t v = gl_rng_u64(&a);
        assert_true(v == gl_rng_u64(&b));
        differs = differs || v != gl_rng_u64(&c);
    }
    assert_true(differs);
}

static void draws_stay_in_their_range_and_reach_all_of_it(void **state)
{
    (void)state;
    struct gl_rng r;
    unsigned seen[7] = {0};
    gl_rng_init(&r, 1);
    for (int i = 0; i < 7000; i++) {
        seen[gl_rng_below(&r, 7)]++;
        int64_t v = gl_rng_range(&r, -3, 3);
        assert_in_range(v + 3, 0, 6);
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(seen[i], 850, 1150);
    }
    assert_true(gl_rng_range(&r, 5, 5) == 5);
    (void)gl_rng_range(&r, INT64_MIN, INT64_MAX);
    assert_false(gl_rng_chance(&r, 0));
    assert_true(gl_rng_chance(&r, 1000000));
}

static void a_fork_has_its_own_draws(void **state)
{
    (void)state;
    struct gl_rng a, b, x, y;
    gl_rng_init(&a, 1);
    b = a;
    gl_rng_fork(&a, &x, "store");
    gl_rng_fork(&b, &y, "exec");
    assert_true(gl_rng_u64(&x) != gl_rng_u64(&y));
    assert_true(gl_rng_u64(&a) == gl_rng_u64(&b)); /* one draw each, whatever the name */
}

static void filling_bytes_touches_exactly_those(void **state)
{
    (void)state;
    struct gl_rng r;
    unsigned char bytes[32] = {0};
    gl_rng_init(&r, 1);
    gl_rng_fill(&r, bytes, 19);
    unsigned zeros = 0;
    for (int i = 0; i < 19; i++) {
        zeros += bytes[i] == 0;
    }
    assert_true(zeros < 5);
    for (int i = 19; i < 32; i++) {
        assert_int_equal(bytes[i], 0);
    }
}

/* The trace. */

struct keep {
    struct gl_trace t;
    char line[200];
    unsigned n;
};

static void keep_line(struct gl_trace *t, const struct gl_trace_record *r)
{
    struct keep *k = GL_CONTAINER(t, struct keep, t);
    (void)gl_trace_format(r, k->line, sizeof(k->line));
    k->n++;
}

static void a_trace_record_reads_like_a_line(void **state)
{
    (void)state;
    struct keep k = {.t = {.write = keep_line, .node = "n1", .now = 3000}};
    GL_TRACE(&k.t, OWNER, .job = GL_S("a7"), .token = 2, .what = "taken");
    assert_string_equal(k.line, "t=3000 n1 owner job=a7 token=2 taken");
    GL_TRACE(&k.t, STEP, .job = GL_S("a7"), .step = GL_S("fetch"), .number = 3, .from = "ready",
             .to = "running");
    assert_string_equal(k.line, "t=3000 n1 step job=a7 step=fetch n=3 ready->running");
    GL_MARK(&k.t, "owner.taken_over");
    assert_string_equal(k.line, "t=3000 n1 mark owner.taken_over");
    assert_int_equal(k.n, 3);
}

static void a_trace_without_a_listener_is_silent(void **state)
{
    (void)state;
    struct gl_trace t = {0};
    GL_MARK(&t, "x");
    GL_MARK(NULL, "x");
}

static void a_trace_line_is_cut_to_its_buffer(void **state)
{
    (void)state;
    char small[12];
    struct gl_trace_record r = {.kind = GL_TR_JOB, .job = GL_S("a-rather-long-name"), .token = 1};
    assert_int_equal(gl_trace_format(&r, small, sizeof(small)), 11);
    assert_string_equal(small, "t=0 job job");
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
        cmocka_unit_test(an_id_holds_its_time_and_its_chance),
        cmocka_unit_test(ids_sort_by_time),
        cmocka_unit_test(what_is_no_id_is_refused),
        cmocka_unit_test(digests_are_those_of_the_standard),
        cmocka_unit_test(a_digest_does_not_depend_on_how_the_bytes_come),
        cmocka_unit_test(the_same_seed_gives_the_same_draws),
        cmocka_unit_test(draws_stay_in_their_range_and_reach_all_of_it),
        cmocka_unit_test(a_fork_has_its_own_draws),
        cmocka_unit_test(filling_bytes_touches_exactly_those),
        cmocka_unit_test(a_trace_record_reads_like_a_line),
        cmocka_unit_test(a_trace_without_a_listener_is_silent),
        cmocka_unit_test(a_trace_line_is_cut_to_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
