/* test_sim_store.c - the faults of the simulated store: what it may lose and what it must not. The
 * plain semantics of the port are the contract suite's business. */
#include "sim/sim_store.h"
#include "support/cmocka_all.h"

enum { TX_N = 6 };

struct bench {
    struct sim_world world;
    struct sim_disk disk;
    struct sim_store store;
    struct sim_gate gate;
    struct sim_fuse fuse;
};

static void bench_init(struct bench *b, uint64_t seed)
{
    sim_world_init(&b->world, seed);
    sim_disk_init(&b->disk);
    sim_gate_init(&b->gate);
    b->fuse = (struct sim_fuse){.calls_left = -1};
    sim_store_open(&b->store, &b->world, &b->disk, &b->gate, &b->fuse, "store");
}

static void bench_done(struct bench *b)
{
    sim_disk_done(&b->disk);
    sim_world_done(&b->world);
}

struct commit { /* puts record "r"/"x" from revision n-1 to n */
    struct gl_store_req req;
    struct gl_tx tx;
    struct gl_guard guard;
    struct gl_write write;
    int order; /* of completion; 0: not yet */
    int *counter;
};

static void on_commit(struct gl_store_req *req)
{
    struct commit *c = req->owner;
    assert_int_equal(c->order, 0);
    c->order = ++*c->counter;
}

static void commit_rev(struct bench *b, struct commit *c, uint64_t rev, int *counter)
{
    *c = (struct commit){
        .req = {.done = on_commit, .owner = c},
        .guard = {.type = rev == 1 ? GL_GUARD_ABSENT : GL_GUARD_AT,
                  .kind = GL_S("r"),
                  .id = GL_S("x"),
                  .rev = rev - 1},
        .write = {.type = GL_WRITE_PUT, .kind = GL_S("r"), .id = GL_S("x"), .rev = rev},
        .counter = counter,
    };
    c->tx = (struct gl_tx){.context = GL_S("c"),
                           .session = GL_S("s"),
                           .id = rev,
                           .guards = &c->guard,
                           .guards_n = 1,
                           .writes = &c->write,
                           .writes_n = 1};
    b->store.port.ops->commit(&b->store.port, &c->req, &c->tx);
}

static uint64_t rev_on_disk(struct bench *b)
{
    const struct sim_disk_record *r = sim_disk_peek(&b->disk, GL_S("c"), GL_S("r"), GL_S("x"));
    return r == NULL ? 0 : r->rev;
}

static void pump(struct bench *b)
{
    while (sim_world_step(&b->world)) {
    }
}

static void commits_complete_in_order_whatever_the_delays(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct bench b;
        bench_init(&b, seed);
        b.world.options.store_delay_ms = 40;
        b.world.options.store_slow = 300000;
        b.world.faults = true;
        b.world.fault_budget = 100;
        struct commit c[TX_N];
        int counter = 0;
        for (int i = 0; i < TX_N; i++) {
            commit_rev(&b, &c[i], (uint64_t)i + 1, &counter);
        }
        pump(&b);
        for (int i = 0; i < TX_N; i++) {
            assert_int_equal(c[i].order, i + 1);
            assert_int_equal(c[i].req.status, 0);
        }
        assert_int_equal(rev_on_disk(&b), TX_N);
        sim_store_crash(&b.store);
        bench_done(&b);
    }
}

static void a_crash_leaves_a_prefix_of_what_was_in_flight(void **state)
{
    (void)state;
    bool seen[TX_N + 1] = {false};
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct bench b;
        bench_init(&b, seed);
        b.world.options.store_delay_ms = 40;
        struct commit c[TX_N];
        int counter = 0;
        for (int i = 0; i < TX_N; i++) {
            commit_rev(&b, &c[i], (uint64_t)i + 1, &counter);
        }
        for (uint64_t i = 0; i < seed % 8; i++) {
            (void)sim_world_step(&b.world);
        }
        int told = counter;
        sim_store_crash(&b.store);
        pump(&b);
        assert_int_equal(counter, told);
        assert_true(rev_on_disk(&b) >= (uint64_t)told);
        seen[rev_on_disk(&b)] = true;
        bench_done(&b);
    }
    for (int i = 0; i <= TX_N; i++) {
        assert_true(seen[i]);
    }
}

struct question {
    struct gl_store_req req;
    bool done;
};

static void on_question(struct gl_store_req *req)
{
    struct question *q = req->owner;
    q->done = true;
}

static void an_unknown_commit_is_told_by_asking(void **state)
{
    (void)state;
    for (int applied = 0; applied < 2; applied++) {
        struct bench b;
        bench_init(&b, 3);
        uint32_t *which =
            applied ? &b.world.options.store_unknown_yes : &b.world.options.store_unknown_no;
        *which = 1000000;
        b.world.faults = true;
        b.world.fault_budget = 1;
        struct commit c;
        int counter = 0;
        commit_rev(&b, &c, 1, &counter);
        pump(&b);
        assert_int_equal(c.req.status, GL_E_UNKNOWN);
        assert_int_equal(rev_on_disk(&b), applied);
        struct question q = {.req = {.done = on_question, .owner = &q}};
        b.store.port.ops->resolve(&b.store.port, &q.req, GL_S("c"), GL_S("s"), 1);
        pump(&b);
        assert_true(q.done);
        assert_int_equal(q.req.status, applied ? 0 : GL_E_CONFLICT);
        sim_store_crash(&b.store);
        bench_done(&b);
    }
}

static void a_commit_behind_a_lost_one_is_refused_by_its_guard(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    b.world.options.store_unknown_no = 1000000;
    b.world.faults = true;
    b.world.fault_budget = 1;
    struct commit c[2];
    int counter = 0;
    commit_rev(&b, &c[0], 1, &counter);
    commit_rev(&b, &c[1], 2, &counter);
    pump(&b);
    assert_int_equal(c[0].req.status, GL_E_UNKNOWN);
    assert_int_equal(c[1].req.status, GL_E_CONFLICT);
    assert_int_equal(c[1].req.refused, 0);
    assert_int_equal(rev_on_disk(&b), 0);
    sim_store_crash(&b.store);
    bench_done(&b);
}

static void an_outage_answers_unavailable_and_writes_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    b.disk.away_until = b.world.now + 1000;
    struct commit c;
    int counter = 0;
    commit_rev(&b, &c, 1, &counter);
    pump(&b);
    assert_int_equal(c.req.status, GL_E_UNAVAILABLE);
    assert_int_equal(rev_on_disk(&b), 0);
    sim_world_run(&b.world, b.disk.away_until);
    commit_rev(&b, &c, 1, &counter);
    pump(&b);
    assert_int_equal(c.req.status, 0);
    sim_store_crash(&b.store);
    bench_done(&b);
}

static void a_sleeper_commits_but_hears_of_it_only_when_awake(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    struct commit c;
    int counter = 0;
    commit_rev(&b, &c, 1, &counter);
    sim_gate_shut(&b.gate);
    pump(&b);
    assert_int_equal(rev_on_disk(&b), 1);
    assert_int_equal(counter, 0);
    sim_gate_open(&b.world, &b.gate);
    pump(&b);
    assert_int_equal(counter, 1);
    sim_store_crash(&b.store);
    bench_done(&b);
}

static void after_the_fuse_has_blown_no_call_is_heard(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    b.fuse.calls_left = 1;
    struct commit c[2];
    int counter = 0;
    commit_rev(&b, &c[0], 1, &counter);
    commit_rev(&b, &c[1], 2, &counter);
    assert_true(b.fuse.blown);
    pump(&b);
    assert_int_equal(counter, 1);
    assert_int_equal(rev_on_disk(&b), 1);
    sim_store_crash(&b.store);
    bench_done(&b);
}

static void a_new_session_kills_the_older_ones_of_the_folder(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    struct sim_disk_session *one = sim_disk_session_open(
        &b.disk, &(struct gl_session_options){.node = GL_S("n1"), .nonce = GL_S("aaaa")});
    assert_true(gl_str_is(one->id, "n1#1.aaaa"));
    assert_false(one->dead);
    struct sim_disk_session *two = sim_disk_session_open(
        &b.disk, &(struct gl_session_options){.node = GL_S("n1"), .nonce = GL_S("bbbb")});
    assert_true(gl_str_is(two->id, "n1#2.bbbb"));
    assert_true(one->dead);
    struct question q = {.req = {.done = on_question, .owner = &q}};
    b.store.port.ops->session_renew(&b.store.port, &q.req, one->id, 1000, (gl_str){0});
    pump(&b);
    assert_int_equal(q.req.status, GL_E_GONE);
    q = (struct question){.req = {.done = on_question, .owner = &q}};
    b.store.port.ops->session_renew(&b.store.port, &q.req, two->id, 1000, (gl_str){0});
    pump(&b);
    assert_int_equal(q.req.status, 0);
    sim_store_crash(&b.store);
    bench_done(&b);
}

/* ---- a shared one ---- */

static void bench_share(struct bench *b)
{
    bench_init(b, 3);
    sim_store_crash(&b->store);
    b->disk.shared = true;
    b->disk.keeps_tail = true;
    sim_store_open(&b->store, &b->world, &b->disk, &b->gate, &b->fuse, "store");
}

static void a_failover_loses_what_is_young_and_not_confirmed(void **state)
{
    (void)state;
    struct bench b;
    bench_share(&b);
    struct commit c[4];
    int counter = 0;
    commit_rev(&b, &c[0], 1, &counter);
    pump(&b);
    sim_world_run(&b.world, b.world.now + 500);
    commit_rev(&b, &c[1], 2, &counter);
    pump(&b);
    sim_world_run(&b.world, b.world.now + 500);
    commit_rev(&b, &c[2], 3, &counter);
    pump(&b);
    b.disk.now = b.world.now;
    sim_disk_promote(&b.disk, 600);
    assert_int_equal(rev_on_disk(&b), 1);
    assert_int_equal(b.disk.undone_n, 2);
    assert_true(sim_disk_resolve(&b.disk, GL_S("c"), GL_S("s"), 1));
    assert_false(sim_disk_resolve(&b.disk, GL_S("c"), GL_S("s"), 3));
    sim_disk_promote(&b.disk, 600); /* what the primary has left is safe */
    assert_int_equal(rev_on_disk(&b), 1);
    sim_store_crash(&b.store);
    bench_done(&b);
}

static void a_confirmed_commit_saves_everything_before_it(void **state)
{
    (void)state;
    struct bench b;
    bench_share(&b);
    struct commit c[3];
    int counter = 0;
    commit_rev(&b, &c[0], 1, &counter);
    commit_rev(&b, &c[1], 2, &counter);
    pump(&b);
    c[2] = (struct commit){.req = {.done = on_commit, .owner = &c[2]}, .counter = &counter};
    c[2].tx = (struct gl_tx){.context = GL_S("c"), .session = GL_S("s"), .id = 3, .confirm = true};
    b.store.port.ops->commit(&b.store.port, &c[2].req, &c[2].tx);
    pump(&b);
    assert_int_equal(c[2].req.status, 0);
    sim_disk_promote(&b.disk, 10000);
    assert_int_equal(rev_on_disk(&b), 2);
    assert_int_equal(b.disk.undone_n, 0);
    sim_store_crash(&b.store);
    bench_done(&b);
}

static size_t changed_n;

static void on_changed(void *owner, const char *why)
{
    (void)owner;
    (void)why;
    changed_n++;
}

static void who_is_cut_off_hears_unknown_and_later_that_it_is_back(void **state)
{
    (void)state;
    bool applied[2] = {false};
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct bench b;
        bench_init(&b, seed);
        sim_store_crash(&b.store);
        b.disk.shared = true;
        b.world.options.store_delay_ms = 40;
        sim_store_open(&b.store, &b.world, &b.disk, &b.gate, &b.fuse, "store");
        b.store.port.ops->listen(&b.store.port, &(struct gl_store_events){.changed = on_changed});
        struct commit c[2];
        int counter = 0;
        changed_n = 0;
        commit_rev(&b, &c[0], 1, &counter);
        gl_ms until = b.world.now + 1000;
        sim_store_cut(&b.store, until);
        commit_rev(&b, &c[1], 2, &counter);
        sim_world_run(&b.world, until - 1);
        assert_int_equal(c[0].req.status, GL_E_UNKNOWN);
        assert_int_equal(c[1].req.status, GL_E_UNAVAILABLE);
        assert_int_equal(changed_n, 0);
        applied[rev_on_disk(&b)] = true;
        pump(&b);
        assert_int_equal(changed_n, 1);
        sim_store_crash(&b.store);
        bench_done(&b);
    }
    assert_true(applied[0]);
    assert_true(applied[1]);
}

static void a_session_lives_by_the_clock_of_the_store(void **state)
{
    (void)state;
    struct bench b;
    bench_share(&b);
    bool dead = true;
    b.disk.now = b.world.now;
    struct sim_disk_session *one = sim_disk_session_open(
        &b.disk,
        &(struct gl_session_options){.node = GL_S("n1"), .nonce = GL_S("aaaa"), .ttl_ms = 1000});
    struct sim_disk_session *two = sim_disk_session_open(
        &b.disk,
        &(struct gl_session_options){.node = GL_S("n2"), .nonce = GL_S("bbbb"), .ttl_ms = 5000});
    assert_false(one->dead); /* another node's */
    assert_int_equal(sim_disk_session_dead(&b.disk, one->id, true, &dead), 0);
    assert_false(dead);
    b.disk.offset += 2000;
    assert_int_equal(sim_disk_session_dead(&b.disk, one->id, false, &dead), 0);
    assert_false(dead); /* nobody has declared it */
    assert_int_equal(sim_disk_session_dead(&b.disk, one->id, true, &dead), 0);
    assert_true(dead);
    assert_int_equal(sim_disk_session_renew(&b.disk, one->id, 1000, (gl_str){0}), GL_E_GONE);
    assert_int_equal(sim_disk_session_dead(&b.disk, two->id, true, &dead), 0);
    assert_false(dead);
    sim_store_crash(&b.store);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_complete_in_order_whatever_the_delays),
        cmocka_unit_test(a_crash_leaves_a_prefix_of_what_was_in_flight),
        cmocka_unit_test(an_unknown_commit_is_told_by_asking),
        cmocka_unit_test(a_commit_behind_a_lost_one_is_refused_by_its_guard),
        cmocka_unit_test(an_outage_answers_unavailable_and_writes_nothing),
        cmocka_unit_test(a_sleeper_commits_but_hears_of_it_only_when_awake),
        cmocka_unit_test(after_the_fuse_has_blown_no_call_is_heard),
        cmocka_unit_test(a_new_session_kills_the_older_ones_of_the_folder),
        cmocka_unit_test(a_failover_loses_what_is_young_and_not_confirmed),
        cmocka_unit_test(a_confirmed_commit_saves_everything_before_it),
        cmocka_unit_test(who_is_cut_off_hears_unknown_and_later_that_it_is_back),
        cmocka_unit_test(a_session_lives_by_the_clock_of_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
