/* Secrets are removed from the output of a step exactly, however the text is split. */
#include <stdio.h>

#include "base/check.h"
#include "base/limits.h"
#include "keeper/redact.h"
#include "support/cmocka_all.h"

enum { SECRETS_MAX = 8 };

struct world {
    struct gl_map all;
    gl_str texts[SECRETS_MAX];
    struct gl_arena a;
    struct gl_redactor *r;
    struct gl_buf out;
};

static int open_world(void **state)
{
    static struct world w;
    w = (struct world){0};
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    gl_redact_put(&w->all, w->r);
    assert_int_equal(gl_map_count(&w->all), 0);
    gl_map_done(&w->all);
    gl_arena_done(&w->a);
    gl_buf_done(&w->out);
    return 0;
}

/* Values, NULL-terminated. */
static void set_secrets(struct world *w, const char *const *values)
{
    size_t n = 0;
    for (; values[n] != NULL; n++) {
        w->texts[n] = gl_str_fmt(&w->a, "S%zu=%s", n, values[n]);
    }
    gl_redact_put(&w->all, w->r);
    w->r = gl_redact_get(&w->all, w->texts, n);
}

#define SECRETS(w, ...) set_secrets(w, (const char *const[]){__VA_ARGS__, NULL})

/* The text in two pieces, and byte by byte after `cut`. */
static const char *cut_at(struct world *w, gl_str text, size_t cut, bool single)
{
    GL_CLEANUP(gl_redact_done) struct gl_redact x = {.redactor = w->r};
    gl_buf_reset(&w->out);
    gl_redact_feed(&x, (gl_str){.p = text.p, .n = cut}, &w->out);
    for (size_t i = cut; single && i < text.n; i++) {
        gl_redact_feed(&x, (gl_str){.p = text.p + i, .n = 1}, &w->out);
    }
    if (!single) {
        gl_redact_feed(&x, (gl_str){.p = text.p + cut, .n = text.n - cut}, &w->out);
    }
    gl_redact_end(&x, &w->out);
    gl_buf_char(&w->out, 0);
    return w->out.p;
}

/* However it is split. */
static void becomes(struct world *w, const char *text, const char *expected)
{
    gl_str t = gl_str_of(text);
    for (size_t cut = 0; cut <= t.n; cut++) {
        assert_string_equal(cut_at(w, t, cut, false), expected);
        assert_string_equal(cut_at(w, t, cut, true), expected);
    }
}

static void a_secret_becomes_three_stars_wherever_the_text_was_cut(void **state)
{
    struct world *w = *state;
    SECRETS(w, "hunter2!");
    becomes(w, "the password is hunter2! and that is that", "the password is *** and that is that");
    becomes(w, "hunter2!", "***");
    becomes(w, "", "");
    becomes(w, "no secret here\nnor here", "no secret here\nnor here");
    becomes(w, "hunter2!\nhunter2!\n", "***\n***\n");
}

static void what_only_begins_like_a_secret_stays(void **state)
{
    struct world *w = *state;
    SECRETS(w, "hunter2!");
    becomes(w, "hunter2", "hunter2");
    becomes(w, "hunter2? hunhunter2! hunter", "hunter2? hun*** hunter");
    SECRETS(w, "aaab");
    becomes(w, "aaaaaaab aaa", "aaaa*** aaa");
}

static void one_secret_after_the_other_is_one_gap(void **state)
{
    struct world *w = *state;
    SECRETS(w, "abcd");
    becomes(w, "xabcdabcdabcdy", "x***y");
}

static void overlapping_secrets_leave_nothing_of_either(void **state)
{
    struct world *w = *state;
    SECRETS(w, "abcdef", "defghi", "cdefg");
    becomes(w, "-abcdefghi-", "-***-");
    becomes(w, "-abcdefg-", "-***-");
    SECRETS(w, "abab");
    becomes(w, "xabababax", "x***ax");
}

static void a_secret_inside_another_does_not_keep_it_from_being_found(void **state)
{
    struct world *w = *state;
    SECRETS(w, "bcde", "abcdefgh");
    becomes(w, "abcdefgh abcdefgx bcde", "*** a***fgx ***");
    SECRETS(w, "1234", "__1234__1234__!");
    becomes(w, "__1234__1234__!", "***");
    becomes(w, "__1234__1234__?", "__***__***__?");
}

static void each_line_of_a_secret_counts(void **state)
{
    struct world *w = *state;
    SECRETS(w, "-----BEGIN-----\n  line one  \r\nab\nline two");
    becomes(w, "<line one>\n<line two>\n<ab>\n", "<***>\n<***>\n<ab>\n");
    becomes(w, "x-----BEGIN-----\n  line one  \r\nab\nline twoy", "x***y");
    SECRETS(w, "abc\ndef\nghi");
    becomes(w, "abc\ndef\n|abc\ndef\nghi", "abc\ndef\n|***");
}

static void the_form_a_secret_has_in_json_counts(void **state)
{
    struct world *w = *state;
    SECRETS(w, "a\"b\\c\td\x01");
    becomes(w, "{\"x\":\"a\\\"b\\\\c\\td\\u0001\"}", "{\"x\":\"***\"}");
    becomes(w, "a\"b\\c\td\x01", "***");
    SECRETS(w, "one\ntwo2");
    becomes(w, "\"one\\ntwo2\"", "\"***\"");
    SECRETS(w, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
    becomes(w, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80.", "***.");
    becomes(w, "gr\\u00fc\\u00df \\ud83d\\ude00.", "***.");
    SECRETS(w, "\xff\xfe\xfd\xfc");
    becomes(w, "-\xff\xfe\xfd\xfc-", "-***-");
}

static void the_escaped_form_of_a_short_line_is_no_secret(void **state)
{
    struct world *w = *state;
    SECRETS(w, "first\n\"\"\n\x01\nlast");
    becomes(w, "{\"x\": \"\\\"\\\"\", \"y\": \"\\u0001\"}",
            "{\"x\": \"\\\"\\\"\", \"y\": \"\\u0001\"}");
}

/* ---- compared with a naive redactor ---- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void random_word(uint32_t *seed, char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        word[i] = (char)('a' + next_random(seed) % 2);
    }
    word[n] = 0;
}

static void redact_simply(const char *const *words, const char *text, char *out)
{
    size_t n = strlen(text);
    bool covered[512] = {0};
    for (size_t w = 0; words[w] != NULL; w++) {
        size_t len = strlen(words[w]);
        for (size_t i = 0; i + len <= n; i++) {
            if (memcmp(text + i, words[w], len) == 0) {
                memset(covered + i, 1, len);
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!covered[i]) {
            *out++ = text[i];
        } else if (i == 0 || !covered[i - 1]) {
            memcpy(out, "***", 3);
            out += 3;
        }
    }
    *out = 0;
}

static void in_random_pieces(struct world *w, const char *text, uint32_t *seed)
{
    GL_CLEANUP(gl_redact_done) struct gl_redact x = {.redactor = w->r};
    gl_str rest = gl_str_of(text);
    gl_buf_reset(&w->out);
    while (rest.n > 0) {
        size_t n = 1 + next_random(seed) % 9;
        n = n < rest.n ? n : rest.n;
        gl_redact_feed(&x, (gl_str){.p = rest.p, .n = n}, &w->out);
        rest.p += n;
        rest.n -= n;
    }
    gl_redact_end(&x, &w->out);
    gl_buf_char(&w->out, 0);
}

static void it_finds_exactly_what_a_simple_search_finds(void **state)
{
    struct world *w = *state;
    uint32_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        char words[3][16], text[256], expected[1024];
        for (size_t i = 0; i < 3; i++) {
            random_word(&seed, words[i], 4 + next_random(&seed) % 8);
        }
        random_word(&seed, text, next_random(&seed) % 200);
        const char *const list[] = {words[0], words[1], words[2], NULL};
        set_secrets(w, list);
        redact_simply(list, text, expected);
        in_random_pieces(w, text, &seed);
        assert_string_equal(w->out.p, expected);
        gl_arena_reset(&w->a);
    }
}

/* ---- cost ---- */

static void no_more_is_held_back_than_may_be_a_secret(void **state)
{
    struct world *w = *state;
    GL_CLEANUP(gl_redact_done) struct gl_redact x = {0};
    SECRETS(w, "aaaaaaaaaa");
    x.redactor = w->r;
    for (int i = 0; i < 100000; i++) {
        gl_redact_feed(&x, GL_S("aaa"), &w->out);
        assert_true(x.held.n <= 10);
        assert_true(x.spans_n <= 1);
    }
    gl_redact_feed(&x, GL_S("a-line-that-has-nothing-to-do-with-it"), &w->out);
    assert_int_equal(x.held.n, 0);
    gl_redact_end(&x, &w->out);
    gl_buf_char(&w->out, 0);
    assert_string_equal(w->out.p, "***-line-that-has-nothing-to-do-with-it");
}

static void the_largest_secret_is_found(void **state)
{
    struct world *w = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf value = {0};
    uint32_t seed = 3;
    while (value.n < GL_SECRET_BYTES_MAX) {
        gl_buf_char(&value,
                    next_random(&seed) % 8 == 0 ? '\n' : (char)('!' + next_random(&seed) % 90));
    }
    w->texts[0] = gl_str_fmt(&w->a, "BIG=%.*s", (int)value.n, value.p);
    w->r = gl_redact_get(&w->all, w->texts, 1);
    struct gl_buf text = {0};
    gl_buf_c(&text, "before ");
    gl_buf_str(&text, gl_buf_view(&value));
    gl_buf_c(&text, " after");
    assert_true(gl_redact_text(w->r, &text));
    assert_true(gl_str_is(gl_buf_view(&text), "before *** after"));
    gl_buf_done(&text);
}

static void attempts_with_the_same_secrets_share_a_redactor(void **state)
{
    struct world *w = *state;
    SECRETS(w, "abcd", "efgh");
    const gl_str same[] = {GL_S("OTHER=abcd"), GL_S("NAMES=efgh")};
    const gl_str other[] = {GL_S("A=abcde"), GL_S("B=fgh")};
    struct gl_redactor *second = gl_redact_get(&w->all, same, 2);
    struct gl_redactor *third = gl_redact_get(&w->all, other, 2);
    assert_ptr_equal(second, w->r);
    assert_ptr_not_equal(third, w->r);
    assert_null(gl_redact_get(&w->all, NULL, 0));
    gl_redact_put(&w->all, second);
    gl_redact_put(&w->all, third);
    becomes(w, "abcd", "***");
}

static void a_text_without_secrets_is_left_alone(void **state)
{
    struct world *w = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    gl_buf_c(&text, "hello");
    assert_false(gl_redact_text(NULL, &text));
    SECRETS(w, "abcd");
    assert_false(gl_redact_text(w->r, &text));
    assert_true(gl_str_is(gl_buf_view(&text), "hello"));
}

/* ---- JSON ---- */

static void mends(const char *text, const char *expected)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    gl_buf_c(&b, text);
    gl_redact_repair_json(&b);
    gl_buf_char(&b, 0);
    assert_string_equal(b.p, expected);
}

static void a_document_stays_a_document(void **state)
{
    (void)state;
    mends("{\"a\": \"x***\", \"n\": 12}", "{\"a\": \"x***\", \"n\": 12}");
    mends("{\"a\": ***, \"b\": 5***.1e-3, \"c\": [-***,true]}",
          "{\"a\": \"***\", \"b\": \"***\", \"c\": [\"***\",true]}");
    mends("{\"a\": \"\\\"***\\\\\", \"b\": ***}", "{\"a\": \"\\\"***\\\\\", \"b\": \"***\"}");
    mends("[\"x\\***\", \"\\u00***\", \"\\u00e9\\u***\"]", "[\"x***\", \"***\", \"\\u00e9***\"]");
    mends("[\"\\", "[\"");
    mends("", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_secret_becomes_three_stars_wherever_the_text_was_cut),
        TEST(what_only_begins_like_a_secret_stays),
        TEST(one_secret_after_the_other_is_one_gap),
        TEST(overlapping_secrets_leave_nothing_of_either),
        TEST(a_secret_inside_another_does_not_keep_it_from_being_found),
        TEST(each_line_of_a_secret_counts),
        TEST(the_form_a_secret_has_in_json_counts),
        TEST(the_escaped_form_of_a_short_line_is_no_secret),
        TEST(it_finds_exactly_what_a_simple_search_finds),
        TEST(no_more_is_held_back_than_may_be_a_secret),
        TEST(the_largest_secret_is_found),
        TEST(attempts_with_the_same_secrets_share_a_redactor),
        TEST(a_text_without_secrets_is_left_alone),
        TEST(a_document_stays_a_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
