#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/output/progress.h"
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

static void load(struct gl_progress *p, const char *status)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    assert_int_equal(gl_json_parse(&j, gl_str_of(status), 1 << 20, &a, NULL), 0);
    gl_progress_load(p, &j, gl_json_root(&j));
}

static void apply(struct gl_progress *p, const char *event)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    assert_int_equal(gl_json_parse(&j, gl_str_of(event), 1 << 20, &a, NULL), 0);
    gl_progress_apply(p, &j, gl_json_root(&j));
}

#define TWO_STEPS                                                                             \
    "{\"workflow_state\":{\"steps\":{\"fetch\":{\"status\":\"pending\",\"attempt_count\":0}," \
    "\"b\":{\"status\":\"pending\",\"attempt_count\":0}}}}"
#define EVENT(step, status, attempt, at, more)                                                \
    "{\"type\":\"x\",\"step_id\":\"" step "\",\"status\":\"" status "\",\"attempt\":" attempt \
    ",\"timestamp\":\"2026-11-15T10:00:0" at "Z\"" more "}"

static void piped_progress_is_a_line_for_each_thing_that_happens(void **state)
{
    struct screen *s = *state;
    struct gl_progress p;
    gl_progress_init(&p, &s->term, false);
    load(&p, TWO_STEPS);
    apply(&p, EVENT("fetch", "running", "1", "0", ""));
    apply(&p, EVENT("fetch", "retry_wait", "1", "1",
                    ",\"reason\":\"exit code 7\",\"retry_in_ms\":2000"));
    apply(&p, EVENT("fetch", "running", "2", "3", ""));
    apply(&p, EVENT("fetch", "completed", "2", "4.5", ""));
    apply(&p, EVENT("nobody", "completed", "1", "5", ""));
    gl_progress_draw(&p, 1);
    assert_string_equal(shown(s), "  running     fetch\n"
                                  "  retry_wait  fetch  again in 2s  exit code 7\n"
                                  "  running     fetch  attempt 2\n"
                                  "  completed   fetch  attempt 2  1.5s\n");
    assert_int_equal(p.ended_n, 1);
    gl_progress_done(&p);
}

static void steps_that_come_later_are_shown_too(void **state)
{
    struct screen *s = *state;
    struct gl_progress p;
    char event[160];
    gl_progress_init(&p, &s->term, false);
    load(&p, "{\"workflow_state\": {\"steps\": {\"each\": {\"status\": \"waiting\"}}}}");
    for (int i = 0; i < 40; i++) {
        (void)snprintf(event, sizeof(event),
                       "{\"type\": \"x\", \"step_id\": \"each[%d]\", \"status\": \"completed\"}",
                       i);
        apply(&p, event);
    }
    assert_int_equal(p.steps_n, 41);
    assert_int_equal(p.ended_n, 40);
    assert_non_null(gl_map_find(&p.by_id, GL_S("each[39]")));
    assert_non_null(strstr(shown(s), "completed   each[39]\n"));
    gl_progress_done(&p);
}

static void instances_stand_behind_their_step_in_their_order(void **state)
{
    struct screen *s = *state;
    struct gl_progress p;
    s->term.is_tty = true;
    gl_progress_init(&p, &s->term, false);
    load(&p, TWO_STEPS);
    apply(&p, EVENT("b[0]", "ready", "0", "0", ""));
    apply(&p, EVENT("fetch[2]", "ready", "0", "0", ""));
    apply(&p, EVENT("fetch[0]", "ready", "0", "0", ""));
    apply(&p, EVENT("fetch[10]", "ready", "0", "0", ""));
    apply(&p, EVENT("fetch[1]", "ready", "0", "0", ""));
    apply(&p, EVENT("b[1]", "ready", "0", "0", ""));
    gl_progress_draw(&p, 1000);
    assert_string_equal(shown(s), "  pending     fetch\033[K\n"
                                  "  ready       fetch[0]\033[K\n"
                                  "  ready       fetch[1]\033[K\n"
                                  "  ready       fetch[2]\033[K\n"
                                  "  ready       fetch[10]\033[K\n"
                                  "  pending     b\033[K\n"
                                  "  ready       b[0]\033[K\n"
                                  "  ready       b[1]\033[K\n\033[J");
    gl_progress_done(&p);
}

static void quiet_progress_only_remembers(void **state)
{
    struct screen *s = *state;
    struct gl_progress p;
    gl_progress_init(&p, &s->term, true);
    load(&p, TWO_STEPS);
    apply(&p, EVENT("fetch", "running", "3", "0", ""));
    gl_progress_draw(&p, 1000000);
    assert_string_equal(shown(s), "");
    assert_int_equal(((struct gl_progress_step *)gl_map_find(&p.by_id, GL_S("fetch")))->attempt, 3);
    gl_progress_done(&p);
}

static void a_terminal_shows_one_line_per_step_and_goes_back_to_update_it(void **state)
{
    struct screen *s = *state;
    struct gl_progress p;
    s->term.is_tty = true;
    gl_progress_init(&p, &s->term, false);
    load(&p, TWO_STEPS);
    gl_progress_draw(&p, 1000);
    assert_string_equal(shown(s), "  pending     fetch\033[K\n  pending     b\033[K\n\033[J");
    gl_progress_draw(&p, 1001); /* nothing has changed */
    apply(&p, EVENT("b", "failed", "1", "0",
                    ",\"reason\":\"a-reason-that-is-much-longer-than-the-line\""));
    gl_progress_draw(&p, 1200);
    const char *second = strstr(shown(s), "\033[2A\r");
    assert_non_null(second);
    assert_string_equal(second, "\033[2A\r  pending     fetch\033[K\n"
                                "  failed      b      a-reason-that-is-m\033[K\n\033[J");
    gl_progress_done(&p);
}

static void too_many_steps_become_counters_and_what_needs_attention(void **state)
{
    struct screen *s = *state;
    struct gl_progress p;
    struct gl_buf doc = {0};
    s->term.is_tty = true;
    gl_buf_c(&doc, "{\"workflow_state\":{\"steps\":{");
    for (int i = 0; i < 100; i++) {
        gl_buf_fmt(&doc, "%s\"s%d\":{\"status\":\"%s\",\"attempt_count\":1}", i > 0 ? "," : "", i,
                   i < 90   ? "completed"
                   : i < 92 ? "running"
                            : "pending");
    }
    gl_buf_c(&doc, "}}}");
    gl_buf_char(&doc, '\0');
    gl_progress_init(&p, &s->term, false);
    load(&p, doc.p);
    gl_progress_draw(&p, 1000);
    assert_string_equal(shown(s), "  running     s90\033[K\n  running     s91\033[K\n"
                                  "  90 of 100 steps ended, 2 running\033[K\n\033[J");
    gl_progress_done(&p);
    gl_buf_done(&doc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(piped_progress_is_a_line_for_each_thing_that_happens),
        TEST(steps_that_come_later_are_shown_too),
        TEST(instances_stand_behind_their_step_in_their_order),
        TEST(quiet_progress_only_remembers),
        TEST(a_terminal_shows_one_line_per_step_and_goes_back_to_update_it),
        TEST(too_many_steps_become_counters_and_what_needs_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
