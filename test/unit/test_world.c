#include "support/cmocka_all.h"

#include "sim/world.h"

struct note {
    struct sim_call call;
    struct gl_buf *out;
    char name;
};

static void on_note(struct sim_call *call)
{
    struct note *n = GL_CONTAINER(call, struct note, call);
    gl_buf_char(n->out, n->name);
}

static void note_at(struct sim_world *w, struct note *n, gl_ms in_ms, struct gl_buf *out, char name,
                    struct sim_gate *gate)
{
    *n = (struct note){.out = out, .name = name};
    sim_call_init(&n->call, on_note, gate);
    sim_world_at(w, &n->call, w->now + in_ms);
}

static void calls_run_by_time_and_then_in_the_order_they_were_made(void **state)
{
    (void)state;
    struct sim_world w;
    sim_world_init(&w, 1);
    struct gl_buf out = {0};
    struct note n[5];
    note_at(&w, &n[0], 20, &out, 'c', NULL);
    note_at(&w, &n[1], 10, &out, 'a', NULL);
    note_at(&w, &n[2], 10, &out, 'b', NULL);
    note_at(&w, &n[3], 30, &out, 'x', NULL);
    sim_world_cancel(&w, &n[3].call);
    note_at(&w, &n[4], 40, &out, 'd', NULL);
    sim_world_run(&w, SIM_EPOCH_MS + 30);
    assert_true(gl_str_is(gl_buf_view(&out), "abc"));
    assert_int_equal(w.now, SIM_EPOCH_MS + 30);
    assert_true(sim_world_step(&w));
    assert_int_equal(w.now, SIM_EPOCH_MS + 40);
    assert_false(sim_world_step(&w));
    assert_true(gl_str_is(gl_buf_view(&out), "abcd"));
    gl_buf_done(&out);
    sim_world_done(&w);
}

static void a_shut_gate_keeps_calls_back_and_lets_them_go_in_order(void **state)
{
    (void)state;
    struct sim_world w;
    sim_world_init(&w, 1);
    struct sim_gate gate;
    sim_gate_init(&gate);
    struct gl_buf out = {0};
    struct note n[4];
    note_at(&w, &n[0], 10, &out, 'a', &gate);
    note_at(&w, &n[1], 20, &out, 'b', &gate);
    note_at(&w, &n[2], 15, &out, 'o', NULL);
    note_at(&w, &n[3], 12, &out, 'x', &gate);
    sim_gate_shut(&gate);
    sim_world_run(&w, SIM_EPOCH_MS + 100);
    assert_true(gl_str_is(gl_buf_view(&out), "o"));
    sim_world_cancel(&w, &n[3].call);
    sim_gate_open(&w, &gate);
    sim_world_run(&w, SIM_EPOCH_MS + 100);
    assert_true(gl_str_is(gl_buf_view(&out), "oab"));
    gl_buf_done(&out);
    sim_world_done(&w);
}

static void faults_happen_only_while_allowed_and_within_the_budget(void **state)
{
    (void)state;
    struct sim_world w;
    sim_world_init(&w, 1);
    struct gl_rng r;
    gl_rng_init(&r, 7);
    w.fault_budget = 3;
    assert_false(sim_world_fault(&w, &r, 1000000));
    w.faults = true;
    for (int i = 0; i < 3; i++) {
        assert_true(sim_world_fault(&w, &r, 1000000));
    }
    assert_false(sim_world_fault(&w, &r, 1000000));
    assert_int_equal(w.faults_hit, 3);
    sim_world_done(&w);
}

static uint64_t hash_of_three_lines(const char *last)
{
    struct sim_world w;
    sim_world_init(&w, 1);
    struct sim_tracer t;
    sim_tracer_init(&t, &w, "n1");
    t.trace.now = w.now + 5;
    GL_TRACE(&t.trace, JOB, .job = GL_S("j1"), .what = "taken");
    GL_MARK(&t.trace, "a.mark");
    GL_MARK(&t.trace, "a.mark");
    GL_TRACE(&t.trace, STEP, .what = last);
    assert_int_equal(sim_world_mark_hits(&w, "a.mark"), 2);
    assert_int_equal(sim_world_mark_hits(&w, "no.mark"), 0);
    uint64_t hash = w.hash;
    sim_world_done(&w);
    return hash;
}

static void the_hash_tells_one_history_from_another(void **state)
{
    (void)state;
    assert_int_equal(hash_of_three_lines("x"), hash_of_three_lines("x"));
    assert_int_not_equal(hash_of_three_lines("x"), hash_of_three_lines("y"));
}

static void count_line(void *owner, const char *line)
{
    size_t *n = owner;
    assert_string_equal(line, *n == 0 ? "t=0 sim node n=2" : line);
    (*n)++;
}

static void the_tail_keeps_the_last_lines_and_the_first_failure(void **state)
{
    (void)state;
    struct sim_world w;
    sim_world_init(&w, 1);
    for (int i = 1; i <= SIM_TAIL_LINES + 1; i++) {
        SIM_TRACE(&w, NODE, .number = i);
    }
    size_t n = 0;
    sim_world_tail(&w, count_line, &n);
    assert_int_equal(n, SIM_TAIL_LINES);
    sim_world_fail(&w, "first %d", 1);
    sim_world_fail(&w, "second");
    assert_string_equal(w.failure, "first 1");
    sim_world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_run_by_time_and_then_in_the_order_they_were_made),
        cmocka_unit_test(a_shut_gate_keeps_calls_back_and_lets_them_go_in_order),
        cmocka_unit_test(faults_happen_only_while_allowed_and_within_the_budget),
        cmocka_unit_test(the_hash_tells_one_history_from_another),
        cmocka_unit_test(the_tail_keeps_the_last_lines_and_the_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
