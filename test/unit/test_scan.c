/* The steps of a job, reduced to what one answer may hold. */
#include "api/scan.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka_all.h"

enum { STEPS = 50 };

struct rig {
    struct gl_arena arena;
    const struct gl_flow *flow;
    struct gl_job_record job;
};

static int make_rig(void **state)
{
    struct rig *r = test_calloc(1, sizeof(*r));
    struct gl_buf text = {0};

    gl_buf_c(&text, "{\"format\":2,\"name\":\"f\",\"steps\":[");
    for (int i = 0; i < STEPS; i++) {
        gl_buf_fmt(&text, "%s{\"id\":\"s%d\",\"argv\":[\"true\"]%s}", i > 0 ? "," : "", i,
                   i == STEPS - 1 ? ",\"foreach\":\"[1,2,3]\",\"items_max\":10" : "");
    }
    gl_buf_c(&text, "]}");
    assert_int_equal(gl_view_read_flow(&r->arena, GL_S("01J"),
                                       gl_str_dup(&r->arena, gl_buf_view(&text)), &r->flow, NULL),
                     0);
    gl_buf_done(&text);
    r->job = (struct gl_job_record){.job_id = GL_S("01J"), .status = GL_JOB_RUNNING};
    *state = r;
    return 0;
}

static int free_rig(void **state)
{
    struct rig *r = *state;

    gl_arena_done(&r->arena);
    test_free(r);
    return 0;
}

/* One page with one record. */
static void add(struct gl_scan *s, const char *id, const char *status, const char *more)
{
    char key[64], value[4096];
    struct gl_record record;

    (void)snprintf(key, sizeof(key), "01J/%s", id);
    (void)snprintf(value, sizeof(value), "{\"step_id\":\"%s\",\"status\":\"%s\"%s}", id, status,
                   more);
    record = (struct gl_record){.id = gl_str_of(key), .rev = 1, .value = gl_str_of(value)};
    gl_scan_add(s, &record, 1);
}

static void assert_picks(const struct gl_view *v, const char *expected)
{
    struct gl_buf out = {0};

    for (size_t i = 0; i < v->picks_n; i++) {
        struct gl_view_pick p = v->picks[i];
        const struct gl_step_record *r =
            p.item < 0 ? v->steps[p.number] : v->items[p.number].records[p.item];

        gl_buf_fmt(&out, "%s%.*s", i > 0 ? " " : "", GL_STR_ARG(r->step_id));
    }
    gl_buf_char(&out, '\0');
    assert_string_equal(out.p, expected);
    gl_buf_done(&out);
}

static void what_failed_is_kept_first_then_what_runs(void **state)
{
    struct rig *r = *state;
    struct gl_scan s;
    struct gl_view v;
    char id[8];

    gl_scan_begin(&s, &r->arena, &r->job, r->flow, 6, SIZE_MAX);
    for (int i = 0; i < STEPS - 1; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        add(&s, id,
            i == 40      ? "failed"
            : i == 41    ? "running"
            : i == 30    ? "running"
            : i == 20    ? "blocked"
            : i % 2 == 0 ? "queued"
                         : "completed",
            i == 20 ? ",\"blocked_on\":\"review\"" : "");
    }
    gl_scan_end(&s, &v);
    assert_true(v.is_partial);
    assert_picks(&v, "s40 s30 s41 s20 s0 s2");
    assert_int_equal(v.steps_total, STEPS);
    assert_int_equal(v.counts[GL_STEP_FAILED], 1);
    assert_int_equal(v.counts[GL_STEP_RUNNING], 2);
    assert_int_equal(v.counts[GL_STEP_PENDING], 1); /* the one without a record */
    assert_int_equal(v.counts[GL_STEP_QUEUED] + v.counts[GL_STEP_COMPLETED], STEPS - 5);
    assert_true(v.asks_person);
    /* Of the others the status is known. */
    assert_int_equal(v.steps[1]->status, GL_STEP_COMPLETED);
    assert_int_equal(v.steps[1]->step_id.n, 0);
    gl_scan_done(&s);
}

static void a_step_that_is_asked_for_is_kept_whatever_its_status(void **state)
{
    struct rig *r = *state;
    struct gl_scan s;
    struct gl_view v;

    gl_scan_begin(&s, &r->arena, &r->job, r->flow, 1, 4);
    assert_false(gl_scan_want(&s, GL_S("nobody")));
    assert_true(gl_scan_want(&s, GL_S("s3")));
    add(&s, "s3", "completed", ",\"output\":\"whole-and-large\"");
    add(&s, "s4", "failed", "");
    gl_scan_end(&s, &v);
    assert_picks(&v, "s3");
    assert_true(gl_str_is(v.steps[3]->output, "\"whole-and-large\""));
    gl_scan_done(&s);
}

static void large_outputs_are_left_out_with_their_size(void **state)
{
    struct rig *r = *state;
    struct gl_scan s;
    struct gl_view v;

    gl_scan_begin(&s, &r->arena, &r->job, r->flow, 100, 10);
    s.outputs_max = 12;
    add(&s, "s0", "completed", ",\"output\":\"123456789\""); /* 11 bytes of JSON */
    add(&s, "s1", "completed", ",\"output\":12345678");      /* 8 of 12 */
    add(&s, "s2", "completed", ",\"output\":12345");         /* no room for it */
    add(&s, "s3", "completed", "");
    add(&s, "s49", "completed", ",\"items_n\":2");
    add(&s, "s49[0]", "completed", ",\"output\":1");
    add(&s, "s49[1]", "completed", "");
    gl_scan_end(&s, &v);
    assert_int_equal(v.steps[0]->output_bytes, 11);
    assert_int_equal(v.steps[0]->output.n, 0);
    assert_int_equal(v.steps[1]->output_bytes, 0);
    assert_true(gl_str_is(v.steps[1]->output, "12345678"));
    assert_int_equal(v.steps[2]->output_bytes, 5);
    assert_int_equal(v.steps[3]->output_bytes, 0);
    assert_int_equal(s.items_n[49], 2);
    assert_int_equal(v.items_bytes[49], 7); /* [1,null] but for the first bracket */
    gl_scan_done(&s);
}

static void a_damaged_record_is_kept_by_its_name(void **state)
{
    struct rig *r = *state;
    struct gl_record bad = {.id = GL_S("01J/s7"), .rev = 1, .damaged = true};
    struct gl_scan s;
    struct gl_view v;

    gl_scan_begin(&s, &r->arena, &r->job, r->flow, 100, SIZE_MAX);
    gl_scan_add(&s, &bad, 1);
    gl_scan_end(&s, &v);
    assert_picks(&v, "s7");
    assert_non_null(v.damaged_step);
    assert_true(gl_str_is(v.damaged_step->step_id, "s7"));
    gl_scan_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, make_rig, free_rig)
        T(what_failed_is_kept_first_then_what_runs),
        T(a_step_that_is_asked_for_is_kept_whatever_its_status),
        T(large_outputs_are_left_out_with_their_size),
        T(a_damaged_record_is_kept_by_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
