/* The core's memory as text, and back. */
#include "base/mem.h"
#include "core/core_state.h"
#include "core/snapshot.h"
#include "support/cmocka_all.h"
#include "support/core_rig.h"

#include <stdio.h>

static gl_str saved(const struct rig *r, struct gl_arena *a)
{
    struct gl_buf text = {0};
    gl_str copy;

    assert_true(gl_core_save(r->core, SIZE_MAX, &text));
    copy = gl_str_dup(a, gl_buf_view(&text));
    gl_buf_done(&text);
    return copy;
}

/* The rig goes on with a core that was made from the text of the one it had. */
static void renew(struct rig *r)
{
    struct gl_arena a = {0};
    struct gl_core *renewed = NULL;
    struct gl_why why = {0};
    gl_str before = saved(r, &a);

    if (gl_core_restore(before, &r->trace, NULL, &renewed, &why) != 0) {
        fail_msg("%s", why.text);
    }
    gl_core_free(r->core);
    r->core = renewed;
    assert_true(gl_str_eq(before, saved(r, &a)));
    gl_arena_done(&a);
}

static void who_waits_and_who_runs_is_the_same_again(void **state)
{
    struct rig *r = rig_new(2, 1);

    (void)state;
    rig_submit(r, "a; b; c p=1; d");
    rig_submit(r, "x pool=gpu; y pool=gpu");
    renew(r);
    assert_string_equal(rig_started(r), "c,a,x");
    rig_finish(r, 0);
    renew(r);
    rig_finish(r, 1);
    assert_string_equal(rig_started(r), "b,d");
    rig_finish(r, 2);
    assert_string_equal(rig_started(r), "y");
    rig_free(r);
}

static void limits_hold_as_before(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a c=db/1; b c=db/1; c c=db/1; x r=api/1000; y r=api/1000");
    assert_string_equal(rig_started(r), "a,x");
    renew(r);
    rig_settle(r);
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 0);
    assert_string_equal(rig_started(r), "b");
    renew(r);
    rig_at(r, r->now + 1000);
    assert_string_equal(rig_started(r), "y");
    rig_free(r);
}

static void slots_of_a_job_that_is_out_of_memory_are_kept(void **state)
{
    struct rig *r = rig_new(1, 1);

    (void)state;
    r->hot_max = 1;
    rig_restart(r);
    rig_submit(r, "a");
    rig_submit(r, "b");
    rig_submit(r, "c");
    assert_string_equal(rig_started(r), "a");
    r->deaf = true; /* the job of `b` is asked for, and does not come */
    rig_finish(r, 0);
    renew(r);
    r->deaf = false;
    assert_string_equal(rig_started(r), "");
    assert_int_equal(r->core->pools[0].in_use, 1);
    rig_free(r);
}

static void nothing_is_written_that_would_be_too_much(void **state)
{
    struct rig *r = rig_new(1, 1);
    struct gl_buf text = {0};

    (void)state;
    rig_submit(r, "a; b; c; d");
    assert_false(gl_core_save(r->core, 100, &text));
    gl_buf_done(&text);
    rig_free(r);
}

/* ---- text from a stranger ---- */

static int restore(gl_str text, struct gl_why *why)
{
    struct gl_trace trace = {0};
    struct gl_core *c = NULL;
    int rc = gl_core_restore(text, &trace, NULL, &c, why);

    if (rc == 0) {
        gl_core_free(c);
    }
    return rc;
}

static void what_is_no_snapshot_is_refused_with_its_line(void **state)
{
    static const char *const texts[] = {
        "",
        "hello\n",
        "[]\n",
        "{}\n",
        "{\"job\":{}}\n",
        "{\"core\":{}}\n",
        "{\"core\":{\"pools\":[]}}\n",
        "{\"core\":{\"pools\":[{\"name\":\"a\",\"slots\":0}]}}\n",
        "{\"core\":{\"pools\":[{\"name\":\"a\",\"slots\":1}],\"what\":1}}\n",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        struct gl_why why = {0};

        assert_int_not_equal(restore(gl_str_of(texts[i]), &why), 0);
        assert_non_null(strstr(why.text, "line "));
    }
}

static void a_line_that_contradicts_those_before_it_is_refused(void **state)
{
    static const char head[] = "{\"core\":{\"pools\":[{\"name\":\"default\",\"slots\":1}]}}\n";
    static const char *const lines[] = {
        "{\"core\":{\"pools\":[{\"name\":\"default\",\"slots\":1}]}}",
        "{\"record\":{\"job_id\":\"x\",\"run_id\":\"x\",\"flow\":\"x\",\"status\":\"running\"}}",
        "{\"job\":{\"id\":\"short\",\"memory\":\"hot\"}}",
        "{\"job\":{\"id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"memory\":\"cosy\"}}",
        "{\"step\":{\"r\":{\"step_id\":\"a\",\"status\":\"ready\"}}}",
        "{\"hold\":{\"slots\":1}}",
        "{\"wait\":{\"job\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"pool\":7}}",
        "{\"wait\":{\"job\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"state\":\"held\"}}",
        "{\"granted\":{\"job\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"}}",
        "{\"group\":{\"key\":\"k\",\"concurrency\":\"c:none\"}}",
        "{\"lru\":{\"ids\":[\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"]}}",
        "{\"work\":{\"list\":\"ready\",\"number\":0}}",
        "{\"signal\":{\"id\":\"a\"}}",
        "{\"parked\":{}}",
        "{\"flow\":{\"hash\":\"h\",\"text\":\"nonsense\"}}",
        "{\"counts\":[1,2,3]}",
        "{\"novelty\":{}}",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(lines); i++) {
        char text[512];
        struct gl_why why = {0};

        (void)snprintf(text, sizeof(text), "%s%s\n", head, lines[i]);
        assert_int_not_equal(restore(gl_str_of(text), &why), 0);
        assert_non_null(strstr(why.text, "line 2"));
    }
}

/* Whatever is left out, nothing breaks; most of it is noticed. */
static void a_snapshot_without_one_of_its_lines_does_no_harm(void **state)
{
    struct rig *r = rig_new(2, 1);
    struct gl_arena a = {0};
    size_t refused = 0, lines = 0;
    gl_str text;

    (void)state;
    rig_submit(r, "a c=db/1; b c=db/1; x r=api/1000; y r=api/1000; z; w");
    rig_submit(r, "a; b");
    text = saved(r, &a);
    for (gl_str rest = text; rest.n > 0; lines++) {
        gl_str line = gl_str_cut(rest, '\n', &rest);
        struct gl_buf less = {0};
        struct gl_why why = {0};

        gl_buf_add(&less, text.p, (size_t)(line.p - text.p));
        gl_buf_str(&less, rest);
        refused += restore(gl_buf_view(&less), &why) != 0;
        gl_buf_done(&less);
    }
    assert_true(lines > 20);
    assert_true(refused > lines / 2);
    gl_arena_done(&a);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_and_who_runs_is_the_same_again),
        cmocka_unit_test(limits_hold_as_before),
        cmocka_unit_test(slots_of_a_job_that_is_out_of_memory_are_kept),
        cmocka_unit_test(nothing_is_written_that_would_be_too_much),
        cmocka_unit_test(what_is_no_snapshot_is_refused_with_its_line),
        cmocka_unit_test(a_line_that_contradicts_those_before_it_is_refused),
        cmocka_unit_test(a_snapshot_without_one_of_its_lines_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
