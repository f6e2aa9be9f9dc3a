#include "support/cmocka_all.h"

#include "base/check.h"
#include "base/trace.h"

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
        cmocka_unit_test(a_trace_record_reads_like_a_line),
        cmocka_unit_test(a_trace_without_a_listener_is_silent),
        cmocka_unit_test(a_trace_line_is_cut_to_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
