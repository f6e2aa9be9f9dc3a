/* test_sim_exec.c - the simulated keeper keeps the promises of port/exec.h, and breaks only what it
 * may. */
#include "sim/sim_exec.h"
#include "support/cmocka_all.h"

struct bench {
    struct sim_world world;
    struct sim_keeper keeper;
    struct sim_exec exec;
    struct gl_exec_events events;
    char epoch[24];
    int ups, downs, ended, beacons;
    struct gl_exec_result last;
};

static void on_up(void *owner, gl_str epoch)
{
    struct bench *b = owner;
    b->ups++;
    assert_true(epoch.n < sizeof(b->epoch));
    memcpy(b->epoch, epoch.p, epoch.n);
    b->epoch[epoch.n] = 0;
}

static void on_down(void *owner, const char *why)
{
    (void)why;
    ((struct bench *)owner)->downs++;
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    (void)key;
    (void)token;
    struct bench *b = owner;
    b->ended++;
    b->last = *result;
}

static void on_beacon(void *owner, const struct gl_attempt_key *key, uint64_t token)
{
    (void)key;
    (void)token;
    ((struct bench *)owner)->beacons++;
}

static void bench_init(struct bench *b)
{
    *b = (struct bench){0};
    sim_world_init(&b->world, 11);
    sim_keeper_init(&b->keeper, &b->world);
    b->events = (struct gl_exec_events){
        .owner = b, .up = on_up, .down = on_down, .ended = on_ended, .beacon = on_beacon};
    b->exec = (struct sim_exec){.name = "n1", .incarnation = 1, .events = b->events};
    sim_exec_open(&b->exec, &b->world, &b->keeper);
    sim_world_run(&b->world, b->world.now);
    assert_int_equal(b->ups, 1);
}

static void bench_done(struct bench *b)
{
    sim_exec_crash(&b->exec);
    sim_keeper_done(&b->keeper);
    sim_world_done(&b->world);
}

static struct gl_attempt_key key_of(const char *attempt)
{
    return (struct gl_attempt_key){
        .context = GL_S("c"), .job = GL_S("j"), .attempt = gl_str_of(attempt)};
}

struct ask {
    struct gl_exec_req req;
    bool done;
};

static void on_done(struct gl_exec_req *req)
{
    struct ask *a = req->owner;
    a->done = true;
}

static int start(struct bench *b, const char *attempt, uint64_t token, const char *epoch)
{
    struct ask a = {.req = {.done = on_done, .owner = &a}};
    struct gl_exec_start s = {.key = key_of(attempt),
                              .token = token,
                              .epoch = gl_str_of(epoch),
                              .start_by = b->world.now + 1000,
                              .driver = GL_S("process"),
                              .grace_ms = 500,
                              .beacon_ms = 100};
    b->exec.port.ops->start(&b->exec.port, &a.req, &s);
    assert_false(a.done);
    while (!a.done) {
        assert_true(sim_world_step(&b->world));
    }
    return a.req.status;
}

static struct gl_exec_req attach(struct bench *b, const char *attempt, uint64_t token,
                                 const char *epoch)
{
    struct ask a = {.req = {.done = on_done, .owner = &a}};
    struct gl_attempt_key key = key_of(attempt);
    b->exec.port.ops->attach(&b->exec.port, &a.req, &key, token, gl_str_of(epoch));
    while (!a.done) {
        assert_true(sim_world_step(&b->world));
    }
    return a.req;
}

static void an_attempt_runs_once_and_its_result_is_kept_until_acknowledged(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), 0);
    assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), 0);
    assert_int_equal(b.keeper.ledger_n, 1);
    assert_true(gl_str_is(b.keeper.ledger[0]->step, "s"));
    assert_int_equal(b.keeper.ledger[0]->number, 1);
    sim_world_run(&b.world, b.world.now + 300000);
    assert_int_equal(b.ended, 1);
    assert_int_equal(b.last.end, GL_EXEC_EXITED);
    assert_int_not_equal(b.keeper.ledger[0]->ended_at, 0);
    struct gl_exec_req r = attach(&b, "s:attempt:1", 1, b.epoch);
    assert_int_equal(r.state, GL_EXEC_ENDED);
    struct gl_attempt_key key = key_of("s:attempt:1");
    b.exec.port.ops->ack(&b.exec.port, &key, 1);
    sim_world_run(&b.world, b.world.now + 100);
    assert_int_equal(gl_map_count(&b.keeper.attempts), 0);
    bench_done(&b);
}

static void an_old_token_is_refused_after_a_newer_one_has_called(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    struct gl_exec_req r = attach(&b, "s:attempt:1", 2, b.epoch);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.state, GL_EXEC_NEVER);
    assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), GL_E_STALE);
    assert_int_equal(b.keeper.ledger_n, 0);
    assert_int_equal(start(&b, "s:attempt:2", 2, b.epoch), 0);
    bench_done(&b);
}

static void a_start_that_comes_too_late_or_from_another_epoch_is_refused(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    b.exec.offset = 5000; /* by its clock it is later than the start may be */
    assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), GL_E_STALE);
    b.exec.offset = 0;
    assert_int_equal(start(&b, "s:attempt:1", 1, "k0"), GL_E_STALE);
    assert_int_equal(b.keeper.ledger_n, 0);
    bench_done(&b);
}

static void when_the_keeper_dies_its_children_are_lost_and_its_results_are_not(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    char before[24];
    memcpy(before, b.epoch, sizeof(before));
    assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), 0);
    sim_world_run(&b.world, b.world.now + 300000);
    assert_int_equal(b.ended, 1);
    b.world.options.process_slow = 1000000;
    assert_int_equal(start(&b, "t:attempt:1", 1, b.epoch), 0);
    sim_keeper_crash(&b.keeper, 100);
    assert_int_equal(b.keeper.running_n, 0);
    sim_world_run(&b.world, b.world.now + 1000);
    assert_int_equal(b.downs, 1);
    assert_int_equal(b.ups, 2);
    assert_string_not_equal(before, b.epoch);
    assert_int_equal(b.ended, 2); /* told again, because nobody acknowledged it */
    assert_int_equal(attach(&b, "s:attempt:1", 1, before).state, GL_EXEC_ENDED);
    assert_int_equal(attach(&b, "t:attempt:1", 1, before).state, GL_EXEC_LOST);
    assert_int_equal(attach(&b, "u:attempt:1", 1, b.epoch).state, GL_EXEC_NEVER);
    bench_done(&b);
}

static void a_stop_ends_a_process_that_listens_and_one_that_does_not(void **state)
{
    (void)state;
    for (int deaf = 0; deaf < 2; deaf++) {
        struct bench b;
        bench_init(&b);
        b.world.options.process_slow = 1000000;
        b.world.options.process_deaf = deaf ? 1000000 : 0;
        assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), 0);
        struct ask a = {.req = {.done = on_done, .owner = &a}};
        struct gl_attempt_key key = key_of("s:attempt:1");
        b.exec.port.ops->stop(&b.exec.port, &a.req, &key, 1, 0);
        sim_world_run(&b.world, b.world.now + 250);
        assert_true(a.done);
        assert_int_equal(b.ended, deaf ? 0 : 1);
        sim_world_run(&b.world, b.world.now + 250);
        assert_int_equal(b.ended, 1);
        assert_int_equal(b.last.end, GL_EXEC_STOPPED);
        bench_done(&b);
    }
}

static void beacons_come_while_it_runs(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    b.world.options.process_slow = 1000000;
    assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), 0);
    gl_ms from = b.world.now;
    sim_world_run(&b.world, from + 300000);
    gl_ms ran = b.keeper.ledger[0]->ended_at - from;
    assert_true(b.beacons >= (int)(ran / 100) - 1);
    assert_true(b.beacons <= (int)(ran / 100) + 1);
    bench_done(&b);
}

static void a_broken_connection_answers_everything_and_comes_back(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    b.world.options.exec_delay_ms = 50;
    struct ask a = {.req = {.done = on_done, .owner = &a}};
    struct gl_attempt_key key = key_of("s:attempt:1");
    b.exec.port.ops->attach(&b.exec.port, &a.req, &key, 1, gl_str_of(b.epoch));
    sim_exec_break(&b.exec, 1000);
    sim_world_run(&b.world, b.world.now + 500);
    assert_true(a.done);
    assert_int_equal(a.req.status, GL_E_UNAVAILABLE);
    assert_int_equal(b.downs, 1);
    sim_world_run(&b.world, b.world.now + 1000);
    assert_int_equal(b.ups, 2);
    bench_done(&b);
}

static void a_node_that_has_a_successor_is_not_heard_any_more(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    struct bench other = {.events = b.events};
    other.events.owner = &other;
    other.exec = (struct sim_exec){.name = "n2", .incarnation = 2, .events = other.events};
    sim_exec_open(&other.exec, &b.world, &b.keeper);
    sim_world_run(&b.world, b.world.now + 1000);
    assert_int_equal(other.ups, 1);
    assert_int_equal(b.downs, 1);
    assert_int_equal(start(&b, "s:attempt:1", 1, b.epoch), GL_E_UNAVAILABLE);
    sim_keeper_crash(&b.keeper, 10);
    sim_world_run(&b.world, b.world.now + 1000);
    assert_int_equal(other.ups, 2);
    assert_int_equal(b.ups, 1);
    sim_exec_crash(&other.exec);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attempt_runs_once_and_its_result_is_kept_until_acknowledged),
        cmocka_unit_test(an_old_token_is_refused_after_a_newer_one_has_called),
        cmocka_unit_test(a_start_that_comes_too_late_or_from_another_epoch_is_refused),
        cmocka_unit_test(when_the_keeper_dies_its_children_are_lost_and_its_results_are_not),
        cmocka_unit_test(a_stop_ends_a_process_that_listens_and_one_that_does_not),
        cmocka_unit_test(beacons_come_while_it_runs),
        cmocka_unit_test(a_broken_connection_answers_everything_and_comes_back),
        cmocka_unit_test(a_node_that_has_a_successor_is_not_heard_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
