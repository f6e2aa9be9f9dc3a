/* Group commit and power cuts: everything acknowledged is there afterwards, complete, and nothing
 * is there in part. */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "contract/maker_sqlite.h"

struct fixture {
    struct contract c;
    struct sqlite_world w;
    struct vfs_cut *vfs;
};

static int set_up(void **state)
{
    static struct fixture f; /* tests run one at a time */
    f = (struct fixture){.vfs = vfs_cut_new("cut")};
    sqlite_contract_begin(&f.c, &f.w, f.vfs);
    contract_session(&f.c, "a");
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    sqlite_contract_end(&f->c, &f->w);
    vfs_cut_free(f->vfs);
    return 0;
}

/* The power comes back: open a new store on what is on the disk. */
static void restart(struct fixture *f)
{
    struct gl_why why;
    sqlite_world_close(&f->w);
    vfs_cut_restore(f->vfs);
    assert_int_equal(sqlite_world_open(&f->w, &why), 0);
    f->c.store = f->w.store;
}

/* ---- groups ---- */

static void waiting_commits_share_a_sync(void **state)
{
    struct fixture *f = *state;
    enum { N = 2000 };
    size_t before = vfs_cut_syncs_wal(f->vfs);
    struct contract_call *last = NULL;
    vfs_cut_hold(f->vfs, true); /* else a slow caller's commits are groups of their own */
    for (uint64_t i = 0; i < N; i++) {
        last = contract_start(&f->c, NO_GUARDS, WRITES(put("job", "a", i + 1, "{}")));
    }
    vfs_cut_hold(f->vfs, false);
    contract_wait(last);
    size_t syncs = vfs_cut_syncs_wal(f->vfs) - before;
    /* Full groups, except what arrived while the first ones were in flight, and two more syncs
     * whenever the log is restarted. */
    assert_true(syncs < N / 10);
    assert_true(syncs >= N / GL_SQLITE_GROUP_MAX);
}

static void a_lone_commit_costs_one_sync(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    size_t wal = vfs_cut_syncs_wal(f->vfs), other = vfs_cut_syncs_other(f->vfs);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    }
    assert_int_equal(vfs_cut_syncs_wal(f->vfs) - wal, 20);
    assert_int_equal(vfs_cut_syncs_other(f->vfs) - other, 0);
}

static void a_refused_commit_costs_no_sync(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    size_t before = vfs_cut_syncs_wal(f->vfs);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            contract_commit(&f->c, GUARDS(absent("job", "a")), WRITES(put("job", "b", 1, "{}"))),
            GL_E_CONFLICT);
        assert_int_equal(contract_renew(&f->c, f->c.session), 0);
    }
    assert_int_equal(vfs_cut_syncs_wal(f->vfs), before);
}

static void transactions_beyond_memory_are_unknown(void **state)
{
    struct fixture *f = *state;
    gl_str s = f->c.session;
    for (int i = 0; i < GL_SQLITE_GROUPS_KEPT + 10; i++) {
        assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    }
    assert_int_equal(contract_resolve(&f->c, s, 5), GL_E_UNKNOWN);
    assert_int_equal(contract_resolve(&f->c, s, 11), 0);
    assert_int_equal(contract_resolve(&f->c, s, GL_SQLITE_GROUPS_KEPT + 10), 0);
    assert_int_equal(contract_resolve(&f->c, s, GL_SQLITE_GROUPS_KEPT + 11), GL_E_CONFLICT);
    s = contract_session(&f->c, "a"); /* A new session forgets nothing. */
    assert_int_equal(contract_resolve(&f->c, s, 1), GL_E_CONFLICT);
    assert_int_equal(sqlite_world_sql(&f->w, "SELECT count(*) FROM txgroup"),
                     GL_SQLITE_GROUPS_KEPT);
}

/* ---- power cuts ---- */

static void the_vfs_loses_what_was_not_synced(void **state)
{
    /* If this test failed, those below would prove nothing. */
    struct fixture *f = *state;
    assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    sqlite3 *careless = NULL;
    assert_int_equal(sqlite3_open_v2(f->w.path, &careless, SQLITE_OPEN_READWRITE, "cut"),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(careless,
                                  "PRAGMA synchronous = OFF;"
                                  "INSERT INTO record VALUES('job', 'b', 1, '', 0, 0, '{}', 0)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(careless), SQLITE_OK);
    check_value(&f->c, "job", "b", "{}"); /* in the simulated page cache */
    vfs_cut_power(f->vfs, 0);
    restart(f);
    check_absent(&f->c, "job", "b");
    check_value(&f->c, "job", "a", "{}");
}

enum { ROUNDS = 60, PER_ROUND = 40 };

static void start_round(struct fixture *f, struct contract_call **calls, uint64_t round,
                        gl_str value)
{
    for (int i = 0; i < PER_ROUND; i++) {
        char *id = gl_arena_alloc(&f->c.arena, 32);
        (void)snprintf(id, 32, "r%03llu.%02d", (unsigned long long)round, i);
        struct gl_write w = put_bytes("job", id, value);
        calls[i] = contract_start(&f->c, NO_GUARDS,
                                  WRITES(w, put("step", id, 1, "{}"), into_index("due", i, id),
                                         append("events", "all", (int64_t)f->c.tx_id, "{}")));
    }
}

/* Is every part of this transaction present, or none? */
static bool is_whole(struct fixture *f, const struct contract_call *call)
{
    const char *id = call->tx.writes[0].id.p;
    bool there = contract_get(&f->c, "job", id).rev != 0;
    assert_int_equal(contract_get(&f->c, "step", id).rev, there);
    struct gl_range r = {GL_S("due"), call->tx.writes[2].score, call->tx.writes[2].score, 0, {0},
                         10000};
    const struct gl_store_req *entries = contract_range(&f->c, &r);
    bool indexed = false;
    for (size_t i = 0; i < entries->entries_n; i++) {
        indexed = indexed || gl_str_is(entries->entries[i].id, id);
    }
    assert_int_equal(indexed, there);
    int64_t seq = call->tx.writes[3].seq;
    const struct gl_store_req *log = contract_log(&f->c, "events", "all", seq, 1);
    assert_int_equal(log->log_n == 1 && log->log[0].seq == seq, there);
    return there;
}

static void check_round(struct fixture *f, struct contract_call **calls, int *unknown_n)
{
    for (int i = 0; i < PER_ROUND; i++) {
        assert_true(calls[i]->done);
        bool there = is_whole(f, calls[i]);
        int status = calls[i]->req.status;
        if (status == 0) {
            assert_true(there);
        } else if (status == GL_E_UNKNOWN) {
            *unknown_n += 1;
            int resolved = contract_resolve(&f->c, f->c.session, calls[i]->tx.id);
            assert_int_equal(resolved, there ? 0 : GL_E_CONFLICT);
        } else {
            assert_int_equal(status, GL_E_UNAVAILABLE);
            assert_false(there);
        }
    }
}

static void nothing_committed_is_lost_to_a_power_cut(void **state)
{
    struct fixture *f = *state;
    struct gl_rng rng;
    gl_rng_init(&rng, 20260101);
    static char large[100000];
    memset(large, 'v', sizeof(large));
    struct contract_call *calls[PER_ROUND];
    int unknown_n = 0, committed_n = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t seed = round % 3 == 0 ? 0 : gl_rng_u64(&rng) | 1;
        /* Some rounds are large enough for checkpoints and early writes of the log. */
        gl_str value = {large, (size_t)gl_rng_below(&rng, round % 2 == 0 ? 300 : sizeof(large))};
        vfs_cut_power_at_sync(f->vfs, 1 + gl_rng_below(&rng, 6), seed);
        start_round(f, calls, round, value);
        contract_wait(calls[PER_ROUND - 1]);
        if (!vfs_cut_is_off(f->vfs)) {
            vfs_cut_power(f->vfs, seed);
        }
        restart(f);
        check_round(f, calls, &unknown_n);
        for (int i = 0; i < PER_ROUND; i++) {
            committed_n += calls[i]->req.status == 0;
        }
        assert_int_equal(sqlite_world_sql(&f->w, "SELECT count(*) FROM pragma_integrity_check()"
                                                 " WHERE integrity_check = 'ok'"),
                         1);
    }
    assert_true(unknown_n > 0);
    assert_true(committed_n > 0);
}

static void a_power_cut_while_the_database_is_made_leaves_a_usable_folder(void **state)
{
    struct fixture *f = *state;
    for (uint64_t n = 1; n <= 12; n++) {
        char context[16];
        (void)snprintf(context, sizeof(context), "c%d", (int)n);
        vfs_cut_power_at_sync(f->vfs, n, n % 2 == 0 ? n : 0);
        int status = contract_commit_in(&f->c, context, NO_GUARDS, WRITES(put("job", "a", 1, "")));
        bool was_cut = vfs_cut_is_off(f->vfs);
        assert_int_equal(status == 0, !was_cut);
        if (was_cut) {
            restart(f);
        }
        vfs_cut_restore(f->vfs); /* otherwise it is still waiting for its sync */
        uint64_t rev = contract_get_in(&f->c, context, "job", "a").rev;
        assert_true(rev == 1 || status != 0);
        assert_int_equal(
            contract_commit_in(&f->c, context, NO_GUARDS, WRITES(put("job", "b", 1, ""))), 0);
    }
}

/* ---- kill -9 ---- */

/* In the child: commit forever, and report each completed number to the parent. */
static _Noreturn void commit_for_ever(struct sqlite_world *w, int out)
{
    struct contract c;
    struct gl_why why;
    w->vfs = vfs_cut_new("cut");
    if (gl_loop_new(&w->loop, &why) < 0 || sqlite_world_open(w, &why) < 0) {
        _exit(1);
    }
    contract_adopt(&c, &contract_maker_sqlite, w, w->store);
    for (;;) {
        struct contract_call *calls[8];
        for (int i = 0; i < 8; i++) {
            char *id = gl_arena_alloc(&c.arena, 16);
            (void)snprintf(id, 16, "%llu", (unsigned long long)c.tx_id + 1);
            calls[i] = contract_start(&c, NO_GUARDS, WRITES(put("job", id, 1, "{}")));
        }
        contract_wait(calls[7]);
        for (int i = 0; i < 8; i++) {
            uint64_t id = calls[i]->tx.id;
            if (calls[i]->req.status != 0 || write(out, &id, sizeof(id)) != sizeof(id)) {
                _exit(1);
            }
        }
    }
}

static void kill_9_on_this_vfs_is_a_power_cut_that_loses_nothing(void **state)
{
    (void)state;
    struct sqlite_world w;
    int ends[2];
    sqlite_world_init(&w, NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        commit_for_ever(&w, ends[1]);
    }
    assert_int_equal(close(ends[1]), 0);
    uint64_t last = 0, id;
    while (last < 1500 && read(ends[0], &id, sizeof(id)) == sizeof(id)) {
        last = id;
    }
    assert_true(last >= 1500);
    assert_int_equal(kill(child, SIGKILL), 0);
    while (read(ends[0], &id, sizeof(id)) == sizeof(id)) { /* what it reported before it died */
        last = id;
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(close(ends[0]), 0);
    struct gl_why why;
    assert_int_equal(sqlite_world_open(&w, &why), 0);
    struct contract c;
    contract_adopt(&c, &contract_maker_sqlite, &w, w.store);
    for (id = 1; id <= last; id++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%llu", (unsigned long long)id);
        assert_int_equal(contract_get(&c, "job", name).rev, 1);
    }
    sqlite_contract_end(&c, &w);
}

#define POWER_TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POWER_TEST(waiting_commits_share_a_sync),
        POWER_TEST(a_lone_commit_costs_one_sync),
        POWER_TEST(a_refused_commit_costs_no_sync),
        POWER_TEST(transactions_beyond_memory_are_unknown),
        POWER_TEST(the_vfs_loses_what_was_not_synced),
        POWER_TEST(nothing_committed_is_lost_to_a_power_cut),
        POWER_TEST(a_power_cut_while_the_database_is_made_leaves_a_usable_folder),
        cmocka_unit_test(kill_9_on_this_vfs_is_a_power_cut_that_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
