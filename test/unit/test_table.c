#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/output/table.h"

/* A "terminal" in memory. */
struct screen {
    struct gl_term term;
    char *text;
    size_t n;
};

static int set_up(void **state)
{
    static struct screen s;
    memset(&s, 0, sizeof(s));
    s.term = (struct gl_term){.file = open_memstream(&s.text, &s.n), .columns = 40, .rows = 24};
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    struct screen *s = *state;
    (void)fclose(s->term.file);
    free(s->text);
    return 0;
}

static const char *shown(struct screen *s)
{
    (void)fflush(s->term.file);
    return s->text;
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    (void)state;
    gl_str safe = gl_term_safe(&a, GL_S("a\033[31m\tb\n\177c\302\233d\377e\303\274"));
    assert_true(gl_str_is(safe, "a\\x1b[31m b\\x0a\\u007fc\\u009bd\\xffe\303\274"));
    safe = gl_term_safe(&a, GL_S("a\342\200\256b\342\201\246c\342\200\224"));
    assert_true(gl_str_is(safe, "a\\u202eb\\u2066c\342\200\224"));
    assert_int_equal(gl_term_safe(&a, (gl_str){0}).n, 0);
}

static void width_counts_characters_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(gl_term_width(GL_S("gr\303\274n")), 4);
    assert_true(gl_str_is(gl_term_clip(GL_S("gr\303\274n"), 3), "gr\303\274"));
    assert_true(gl_str_is(gl_term_clip(GL_S("abc"), 3), "abc"));
    assert_int_equal(gl_term_clip(GL_S("abc"), 0).n, 0);
}

static const char *const titles[] = {"NAME", "STATUS", "WHY"};

static void fill(struct gl_table *t)
{
    static const char *const cells[] = {"gr\303\274n", "running", "",
                                        "b",           "failed",  "exit\tcode 1"};
    gl_table_init(t, titles, GL_COUNT(titles));
    for (size_t i = 0; i < GL_COUNT(cells); i++) {
        gl_table_add(t, gl_str_of(cells[i]));
    }
}

static void a_piped_table_is_tab_separated_without_a_header(void **state)
{
    struct screen *s = *state;
    struct gl_table t;
    fill(&t);
    gl_table_print(&t, &s->term);
    assert_string_equal(shown(s), "gr\303\274n\trunning\t\nb\tfailed\texit code 1\n");
    gl_table_done(&t);
}

static void a_table_on_a_terminal_is_aligned(void **state)
{
    struct screen *s = *state;
    struct gl_table t;
    s->term.is_tty = true;
    fill(&t);
    gl_table_print(&t, &s->term);
    assert_string_equal(shown(s), "NAME  STATUS   WHY\n"
                                  "gr\303\274n  running  \n"
                                  "b     failed   exit code 1\n");
    gl_table_done(&t);
}

static void only_the_status_has_a_color(void **state)
{
    struct screen *s = *state;
    struct gl_table t;
    s->term.is_tty = s->term.has_color = true;
    fill(&t);
    gl_table_print(&t, &s->term);
    assert_non_null(strstr(shown(s), "\033[31mfailed\033[0m"));
    assert_null(strstr(shown(s), "\033[31mexit"));
    gl_table_done(&t);
}

static void a_table_keeps_to_the_width_of_the_terminal(void **state)
{
    static const char *const wide[] = {"JOB", "NAME", "AT", "EXTRA", "NONE", "WHY"};
    static const char *const least[] = {"EXTRA", NULL};
    static const char *const cells[] = {"01ABCDEF",
                                        "gr\303\274n-and-long",
                                        "2026-11-15T10:00:00.123Z",
                                        "never seen",
                                        "",
                                        "w1 word2 wd3 wd4 word-5 /a/path/that/is/longer ok"};
    struct screen *s = *state;
    struct gl_table t;
    s->term.is_tty = true;
    s->term.columns = 62;
    gl_table_init(&t, wide, GL_COUNT(wide));
    t.least = least;
    for (size_t i = 0; i < GL_COUNT(cells); i++) {
        gl_table_add(&t, gl_str_of(cells[i]));
    }
    gl_table_print(&t, &s->term);
    assert_string_equal(shown(s),
                        "JOB       NAME      AT                    WHY\n"
                        "01ABCDEF  gr\303\274n-an\342\200\246  2026-11-15T10:00:00Z  "
                        "w1 word2 wd3 wd4\n"
                        "                                          word-5\n"
                        "                                          /a/path/that/is/longer\n"
                        "                                          ok\n");
    gl_table_done(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(control_characters_do_not_reach_the_terminal),
        TEST(width_counts_characters_not_bytes),
        TEST(a_piped_table_is_tab_separated_without_a_header),
        TEST(a_table_on_a_terminal_is_aligned),
        TEST(only_the_status_has_a_color),
        TEST(a_table_keeps_to_the_width_of_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
