/* Who may start when: ageing, concurrency and rates. */
#include "core/scheduling/quotas.h"
#include "support/cmocka_all.h"
#include "support/core_rig.h"
#include "support/golden.h"

#include <stdio.h>

/* ---- ageing ---- */

static void waiting_is_worth_a_point_of_priority_every_ten_seconds(void **state)
{
    struct rig *r = rig_new(1, 1);

    (void)state;
    rig_submit(r, "a");
    rig_submit(r, "old");
    rig_at(r, r->now + 15000);
    rig_submit(r, "keen p=1");
    rig_submit(r, "keener p=2");
    assert_string_equal(rig_started(r), "a");
    rig_finish(r, 0);
    rig_finish(r, 1);
    rig_finish(r, 2);
    assert_string_equal(rig_started(r), "keener,old,keen");
    rig_free(r);
}

static void what_a_step_has_waited_is_not_lost_in_a_restart(void **state)
{
    struct rig *r = rig_new(1, 1);

    (void)state;
    rig_submit(r, "a");
    rig_submit(r, "old");
    rig_at(r, r->now + 15000);
    rig_submit(r, "keen p=1");
    rig_restart(r);
    rig_finish(r, 0);
    rig_finish(r, 1);
    assert_string_equal(rig_started(r), "a,old,keen");
    rig_free(r);
}

/* ---- concurrency ---- */

static void a_key_is_used_by_no_more_than_its_max_and_blocks_nobody_else(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a c=db/2; b c=db/2; c c=db/2; d c=db/2; x; y c=other/1");
    assert_string_equal(rig_started(r), "a,b,x,y");
    rig_finish(r, 2);
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 1);
    assert_string_equal(rig_started(r), "c");
    rig_finish(r, 0);
    assert_string_equal(rig_started(r), "d");
    rig_free(r);
}

static void a_key_is_shared_by_jobs_and_goes_by_priority_then_age(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a c=db/1");
    rig_at(r, r->now + 1000);
    rig_submit(r, "b c=db/1");
    rig_at(r, r->now + 1000);
    rig_submit(r, "c c=db/1; d c=db/1 p=3");
    rig_finish(r, 0);
    rig_finish(r, 1);
    rig_finish(r, 2);
    assert_string_equal(rig_started(r), "a,d,b,c");
    rig_free(r);
}

static void who_was_held_back_comes_back_to_its_old_place(void **state)
{
    struct rig *r = rig_new(2, 1);

    (void)state;
    rig_submit(r, "a c=db/1; x; early c=db/1");
    rig_at(r, r->now + 1000);
    rig_submit(r, "late1");
    rig_submit(r, "late2");
    rig_finish(r, 0); /* frees the key and one slot: `early` has waited longest */
    rig_finish(r, 1);
    assert_string_equal(rig_started(r), "a,x,early,late1");
    rig_free(r);
}

static void one_end_moves_one_of_many_that_wait(void **state)
{
    struct rig *r = rig_new(8, 1);
    struct gl_buf flow = {0};
    uint64_t calls;

    (void)state;
    for (int i = 0; i < 200; i++) {
        gl_buf_fmt(&flow, "s%d c=db/1;", i);
    }
    rig_submit(r, gl_str_c(&r->arena, gl_buf_view(&flow)));
    gl_buf_done(&flow);
    assert_int_equal(r->runs_n, 1);
    calls = r->core->quotas->calls_n;
    rig_finish(r, 0);
    assert_int_equal(r->runs_n, 2);
    assert_int_equal(r->core->quotas->calls_n - calls, 1);
    rig_free(r);
}

static void a_full_pool_does_not_keep_a_key_from_another_pool(void **state)
{
    struct rig *r = rig_new(1, 4);

    (void)state;
    rig_submit(r, "a c=db/1 pool=gpu; x; b c=db/1; c c=db/1 pool=gpu");
    assert_string_equal(rig_started(r), "a,x");
    rig_finish(r, 0); /* `b` is first, but its pool is full */
    assert_string_equal(rig_started(r), "c");
    rig_free(r);
}

static void a_large_request_that_is_held_back_starves_nobody(void **state)
{
    struct rig *r = rig_new(4, 1);

    (void)state;
    rig_submit(r, "a c=db/1; big c=db/1 n=4; x; y");
    assert_string_equal(rig_started(r), "a,x,y");
    rig_finish(r, 1);
    rig_finish(r, 0);
    rig_submit(r, "later"); /* `big` is called now, and being first it keeps the slots free */
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 2);
    assert_string_equal(rig_started(r), "big");
    rig_free(r);
}

static void the_latest_asker_says_how_many(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a c=db/1; b c=db/1; c c=db/1");
    assert_string_equal(rig_started(r), "a");
    rig_submit(r, "d c=db/3");
    assert_string_equal(rig_started(r), "b,c");
    rig_submit(r, "e c=db/1");
    rig_finish(r, 0);
    rig_finish(r, 1);
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 2);
    assert_string_equal(rig_started(r), "d");
    rig_free(r);
}

static void running_attempts_are_counted_again_after_a_restart(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a c=db/2; b c=db/2");
    rig_submit(r, "c c=db/2; x");
    assert_string_equal(rig_started(r), "a,b,x");
    rig_restart(r);
    rig_submit(r, "d c=db/2");
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 0);
    assert_string_equal(rig_started(r), "c");
    rig_free(r);
}

static void attempts_in_a_pool_that_is_gone_still_count(void **state)
{
    struct rig *r = rig_new(8, 4);

    (void)state;
    rig_submit(r, "a c=db/1 pool=gpu");
    r->pools[1].name = GL_S("other");
    rig_restart(r);
    rig_submit(r, "b c=db/1");
    assert_string_equal(rig_started(r), "a");
    rig_finish(r, 0);
    assert_string_equal(rig_started(r), "b");
    rig_free(r);
}

static void a_start_that_was_not_committed_gives_its_key_back(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a c=db/1");
    rig_submit(r, "b c=db/1");
    rig_command(r, r->job, GL_CMD_PAUSE);
    rig_finish(r, 0);
    r->refuse_next = true;
    rig_command(r, r->job,
                GL_CMD_RESUME); /* the start of `b` is refused, and its job loaded again */
    assert_int_equal(r->loads_n, 1);
    assert_string_equal(rig_started(r), "a");
    rig_submit(r, "c c=db/1");
    assert_string_equal(rig_started(r), "c");
    rig_free(r);
}

static void an_attempt_counts_on_while_its_job_is_loaded_again(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a c=db/1; x");
    rig_submit(r, "b c=db/1");
    r->refuse_next = r->deaf = true;
    rig_finish(r, 1); /* the end of `x` is refused */
    rig_submit(r, "c c=db/1 p=1");
    assert_string_equal(rig_started(r), "a,x");
    r->deaf = false;
    rig_load(r, GL_S("01HZZZZZZZZZZZZZZZZZ000001"));
    assert_int_equal(r->core->running_n, 2);
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 0);
    assert_string_equal(rig_started(r), "c");
    rig_free(r);
}

static void a_pause_or_a_cancellation_leaves_the_key_to_others(void **state)
{
    struct rig *r = rig_new(1, 1);
    char paused[32], cancelled[32];

    (void)state;
    rig_submit(r, "a c=db/1");
    rig_submit(r, "p c=db/1");
    (void)snprintf(paused, sizeof(paused), "%s", r->job);
    rig_submit(r, "q c=db/1");
    (void)snprintf(cancelled, sizeof(cancelled), "%s", r->job);
    rig_submit(r, "b c=db/1");
    rig_command(r, paused, GL_CMD_PAUSE);
    rig_command(r, cancelled, GL_CMD_CANCEL);
    rig_finish(r, 0);
    assert_string_equal(rig_started(r), "a,b");
    rig_command(r, paused, GL_CMD_RESUME);
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 1);
    assert_string_equal(rig_started(r), "p");
    rig_free(r);
}

static void who_is_called_and_then_paused_is_replaced_by_the_next(void **state)
{
    struct rig *r = rig_new(2, 1);
    char paused[32];

    (void)state;
    rig_submit(r, "a c=db/1; x");
    rig_submit(r, "p c=db/1 n=2");
    (void)snprintf(paused, sizeof(paused), "%s", r->job);
    rig_submit(r, "b c=db/1");
    rig_finish(r, 0); /* calls `p`, which wants two slots: there is one */
    assert_string_equal(rig_started(r), "a,x");
    rig_command(r, paused, GL_CMD_PAUSE);
    assert_string_equal(rig_started(r), "b");
    rig_free(r);
}

static void jobs_out_of_memory_keep_their_place_and_their_key(void **state)
{
    struct rig *r = rig_new(8, 1);
    char cold[32];

    (void)state;
    gl_core_free(r->core);
    r->hot_max = 1;
    rig_begin(r);
    rig_submit(r, "a c=db/1");
    rig_submit(r, "b c=db/1");
    (void)snprintf(cold, sizeof(cold), "%s", r->job);
    rig_submit(r, "c c=db/1");
    rig_submit(r, "d c=db/1");
    assert_int_equal(r->loads_n, 0);
    golden_say("why", gl_str_of(rig_why(r, cold, 0)));
    r->deaf = true;
    rig_finish(r, 0); /* granted to `b`, whose job is asked for */
    golden_say("why", gl_str_of(rig_why(r, cold, 0)));
    rig_submit(r, "e c=db/1 p=9"); /* comes too late */
    assert_string_equal(rig_started(r), "a");
    r->deaf = false;
    rig_load(r, gl_str_of(cold));
    assert_string_equal(rig_started(r), "b");
    rig_finish(r, 1);
    assert_string_equal(rig_started(r), "e");
    rig_free(r);
}

/* ---- rates ---- */

static void starts_with_one_rate_key_keep_their_distance(void **state)
{
    struct rig *r = rig_new(8, 4);
    gl_ms t0 = r->now;

    (void)state;
    rig_submit(r, "a r=api/1000; b r=api/1000 pool=gpu; c r=api/1000; x");
    assert_string_equal(rig_started(r), "a,x");
    rig_finish(r, 0); /* an end does not bring the next one forward */
    assert_int_equal(gl_quotas_next_due(r->core), t0 + 1000);
    rig_at(r, t0 + 999);
    assert_string_equal(rig_started(r), "");
    rig_at(r, t0 + 1000);
    assert_string_equal(rig_started(r), "b");
    rig_at(r, t0 + 5000);
    assert_string_equal(rig_started(r), "c");
    rig_submit(r, "d r=api/1000");
    assert_string_equal(rig_started(r), "");
    rig_at(r, t0 + 6000);
    assert_string_equal(rig_started(r), "d");
    rig_free(r);
}

static void a_rate_outlives_the_node(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;

    (void)state;
    rig_submit(r, "a r=api/60000; b r=api/60000");
    rig_at(r, t0 + 30000);
    rig_restart(r);
    rig_at(r, t0 + 59999);
    assert_string_equal(rig_started(r), "a");
    rig_at(r, t0 + 60000);
    assert_string_equal(rig_started(r), "b");
    rig_free(r);
}

static void a_rate_comes_due_also_while_nothing_can_start(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a r=api/1000; b r=api/1000");
    rig_feed(r, (struct gl_event){.type = GL_EV_EXEC_DOWN});
    rig_at(r, r->now + 1000); /* would not return if it stayed due */
    assert_string_equal(rig_started(r), "a");
    rig_feed(r, (struct gl_event){.type = GL_EV_EXEC_UP, .exec_up = {.epoch = GL_S("e2")}});
    assert_string_equal(rig_started(r), "b");
    rig_free(r);
}

static void a_rate_whose_time_is_over_costs_no_memory(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_submit(r, "a r=api/1000; b c=db/1");
    assert_int_equal(gl_map_count(&r->core->quotas->keys), 2);
    rig_finish(r, 0);
    rig_finish(r, 1);
    rig_at(r, r->now + 1000);
    assert_int_equal(gl_map_count(&r->core->quotas->keys), 0);
    assert_int_equal(gl_map_count(&r->core->quotas->groups), 0);
    assert_int_equal(r->core->quotas->active_n, 0);
    rig_restart(r);
    assert_int_equal(gl_map_count(&r->core->quotas->keys), 0);
    rig_free(r);
}

static void a_damaged_rate_holds_nobody_up(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_row(r, GL_S("rate"), GL_S("api"))->value = GL_S("{\"next_at\":\"soon\"");
    rig_row(r, GL_S("rate"), GL_S(""))->value = GL_S("{\"next_at\":9999999999999}");
    rig_restart(r);
    rig_submit(r, "a r=api/1000");
    assert_string_equal(rig_started(r), "a");
    rig_free(r);
}

static void a_time_that_a_wrong_clock_wrote_is_not_waited_for(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    rig_row(r, GL_S("rate"), GL_S("api"))->value = GL_S("{\"next_at\":9999999999999}");
    rig_restart(r);
    rig_submit(r, "a r=api/1000");
    assert_string_equal(rig_started(r), "");
    rig_at(r, r->now + 1000);
    assert_string_equal(rig_started(r), "a");
    rig_free(r);
}

static void a_start_that_never_was_asks_for_its_rate_again(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;

    (void)state;
    rig_submit(r, "a r=api/1000; b r=api/1000");
    r->attached = GL_EXEC_NEVER;
    rig_at(r, t0 + 500);
    rig_restart(r);
    assert_string_equal(rig_started(r), "a");
    rig_at(r, t0 + 1000);
    rig_at(r, t0 + 2000);
    assert_string_equal(rig_started(r), "b,a");
    assert_string_equal(r->runs[2].attempt, "a:attempt:2");
    rig_free(r);
}

static void a_cold_job_has_its_rate_from_its_real_start_on(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;
    char cold[32];

    (void)state;
    gl_core_free(r->core);
    r->hot_max = 1;
    rig_begin(r);
    rig_submit(r, "a r=api/1000");
    rig_submit(r, "b r=api/1000");
    (void)snprintf(cold, sizeof(cold), "%s", r->job);
    rig_submit(r, "c r=api/1000");
    rig_submit(r, "d");
    r->deaf = true;
    rig_at(r, t0 + 1000);
    rig_at(r, t0 + 3000);
    assert_string_equal(rig_started(r), "a,d");
    r->deaf = false;
    rig_load(r, gl_str_of(cold));
    assert_string_equal(rig_started(r), "b");
    rig_at(r, t0 + 3999);
    assert_string_equal(rig_started(r), "");
    rig_at(r, t0 + 4000);
    assert_string_equal(rig_started(r), "c");
    rig_free(r);
}

/* ---- together ---- */

static void both_limits_of_a_step_must_be_free_together(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;

    (void)state;
    rig_submit(r, "a c=db/1 r=api/1000; b c=db/1 r=api/1000; c c=db/1; d r=api/1000");
    assert_string_equal(rig_started(r), "a");
    rig_at(r, t0 + 1000); /* the rate is free, the key is not: `d` needs the rate alone */
    assert_string_equal(rig_started(r), "d");
    rig_finish(r, 0); /* the key is free, the rate is not: `c` needs the key alone */
    assert_string_equal(rig_started(r), "c");
    rig_at(r, t0 + 5000);
    assert_string_equal(rig_started(r), "");
    rig_finish(r, 2);
    assert_string_equal(rig_started(r), "b");
    rig_free(r);
}

static void a_key_beyond_the_most_that_are_kept_waits_with_a_reason(void **state)
{
    struct rig *r = rig_new(GL_LIMITS_MAX + 10, 1);
    struct gl_buf flow = {0};

    (void)state;
    for (int i = 0; i < GL_LIMITS_MAX; i++) {
        gl_buf_fmt(&flow, "s%d c=k%d/1;", i, i);
    }
    rig_submit(r, gl_str_c(&r->arena, gl_buf_view(&flow)));
    gl_buf_done(&flow);
    assert_int_equal(r->runs_n, GL_LIMITS_MAX);
    (void)rig_started(r);
    rig_submit(r, "more c=more/1");
    rig_submit(r, "known c=k7/2"); /* needs no other key */
    assert_string_equal(rig_started(r), "known");
    golden_say("why", gl_str_of(rig_why(r, "01HZZZZZZZZZZZZZZZZZ000002", 0)));
    rig_finish(r, 3);
    assert_string_equal(rig_started(r), "more");
    rig_free(r);
}

static void check_that_nobody_is_over(const struct rig *r)
{
    const struct gl_quota *q;

    for (size_t i = 0; (q = gl_map_next(&r->core->quotas->keys, &i)) != NULL;) {
        assert_true(q->is_rate || q->in_use <= q->max);
    }
}

static void whatever_ends_in_whatever_order_nobody_waits_for_ever(void **state)
{
    uint32_t rng = 12345;

    (void)state;
    for (int round = 0; round < 30; round++) {
        struct rig *r = rig_new(1 + (uint32_t)round % 5, 2);
        size_t jobs = 0, ended = 0;

        for (int i = 0; i < 60; i++) {
            struct gl_buf flow = {0};

            for (int k = 0; k < 4; k++) {
                rng = rng * 1664525u + 1013904223u;
                gl_buf_fmt(&flow, "s%d p=%u", k, (rng >> 8) % 3);
                gl_buf_c(&flow, (rng >> 12) % 3 == 0 ? " pool=gpu" : "");
                if ((rng >> 16) % 3 != 0) {
                    gl_buf_fmt(&flow, " c=k%u/%u", (rng >> 20) % 3, (rng >> 20) % 3 + 1);
                }
                if ((rng >> 24) % 3 == 0) {
                    gl_buf_fmt(&flow, " r=q%u/%u", (rng >> 28) % 2, 50 + (rng >> 28) % 2 * 50);
                }
                gl_buf_c(&flow, ";");
            }
            rig_submit(r, gl_str_c(&r->arena, gl_buf_view(&flow)));
            gl_buf_done(&flow);
            jobs++;
        }
        for (int turns = 0; r->ended_n < jobs && turns < 20000; turns++) {
            size_t n = 0, pick = 0;

            for (size_t i = 0; i < r->runs_n; i++) {
                rng = rng * 1664525u + 1013904223u;
                n += !r->runs[i].ended;
                pick = !r->runs[i].ended && (rng >> 8) % n == 0 ? i : pick;
            }
            if (n > 0 && turns % 3 != 0) {
                rig_finish(r, pick);
                ended++;
            } else {
                rig_at(r, r->now + 7);
            }
            check_that_nobody_is_over(r);
            if (turns % 97 == 96) {
                rig_restart(r);
            }
        }
        assert_int_equal(r->ended_n, jobs);
        assert_int_equal(ended, r->runs_n);
        rig_free(r);
    }
}

/* ---- why ---- */

static void a_step_can_say_what_it_waits_for(void **state)
{
    struct rig *r = rig_new(2, 2);

    (void)state;
    r->now = 1800000000000;
    rig_submit(r,
               "a c=db/1 r=api/60000 pool=gpu; b c=db/1; c c=db/1; d r=api/60000; e r=api/60000; "
               "f c=db/1 r=api/60000; x; y; z n=2; last");
    assert_string_equal(rig_started(r), "a,x,y");
    assert_string_equal(rig_why(r, r->job, 0), "");
    golden_say("why", gl_str_of(rig_why(r, r->job, 1)));
    golden_say("why", gl_str_of(rig_why(r, r->job, 2)));
    golden_say("why", gl_str_of(rig_why(r, r->job, 3)));
    golden_say("why", gl_str_of(rig_why(r, r->job, 5)));
    golden_say("why", gl_str_of(rig_why(r, r->job, 8)));
    golden_say("why", gl_str_of(rig_why(r, r->job, 9)));
    rig_free(r);
}

static void a_node_that_starts_nothing_says_so(void **state)
{
    struct rig *r = rig_new(1, 1);

    (void)state;
    rig_submit(r, "a; b");
    rig_feed(r, (struct gl_event){.type = GL_EV_EXEC_DOWN});
    golden_say("why", gl_str_of(rig_why(r, r->job, 1)));
    rig_feed(r, (struct gl_event){.type = GL_EV_STOP});
    golden_say("why", gl_str_of(rig_why(r, r->job, 1)));
    assert_string_equal(rig_why(r, "no job", 1), "");
    rig_free(r);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/quotas.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_worth_a_point_of_priority_every_ten_seconds),
        cmocka_unit_test(what_a_step_has_waited_is_not_lost_in_a_restart),
        cmocka_unit_test(a_key_is_used_by_no_more_than_its_max_and_blocks_nobody_else),
        cmocka_unit_test(a_key_is_shared_by_jobs_and_goes_by_priority_then_age),
        cmocka_unit_test(who_was_held_back_comes_back_to_its_old_place),
        cmocka_unit_test(one_end_moves_one_of_many_that_wait),
        cmocka_unit_test(a_full_pool_does_not_keep_a_key_from_another_pool),
        cmocka_unit_test(a_large_request_that_is_held_back_starves_nobody),
        cmocka_unit_test(the_latest_asker_says_how_many),
        cmocka_unit_test(running_attempts_are_counted_again_after_a_restart),
        cmocka_unit_test(attempts_in_a_pool_that_is_gone_still_count),
        cmocka_unit_test(a_start_that_was_not_committed_gives_its_key_back),
        cmocka_unit_test(an_attempt_counts_on_while_its_job_is_loaded_again),
        cmocka_unit_test(a_pause_or_a_cancellation_leaves_the_key_to_others),
        cmocka_unit_test(who_is_called_and_then_paused_is_replaced_by_the_next),
        cmocka_unit_test(jobs_out_of_memory_keep_their_place_and_their_key),
        cmocka_unit_test(starts_with_one_rate_key_keep_their_distance),
        cmocka_unit_test(a_rate_outlives_the_node),
        cmocka_unit_test(a_rate_comes_due_also_while_nothing_can_start),
        cmocka_unit_test(a_rate_whose_time_is_over_costs_no_memory),
        cmocka_unit_test(a_damaged_rate_holds_nobody_up),
        cmocka_unit_test(a_time_that_a_wrong_clock_wrote_is_not_waited_for),
        cmocka_unit_test(a_start_that_never_was_asks_for_its_rate_again),
        cmocka_unit_test(a_cold_job_has_its_rate_from_its_real_start_on),
        cmocka_unit_test(both_limits_of_a_step_must_be_free_together),
        cmocka_unit_test(a_key_beyond_the_most_that_are_kept_waits_with_a_reason),
        cmocka_unit_test(whatever_ends_in_whatever_order_nobody_waits_for_ever),
        cmocka_unit_test(a_step_can_say_what_it_waits_for),
        cmocka_unit_test(a_node_that_starts_nothing_says_so),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
