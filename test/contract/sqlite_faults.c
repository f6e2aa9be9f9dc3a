/* The SQLite store on a failing disk. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

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
    assert_int_equal(contract_commit(&f.c, NO_GUARDS, WRITES(put("job", "a", 1, "kept"))), 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    sqlite_contract_end(&f->c, &f->w);
    vfs_cut_free(f->vfs);
    return 0;
}

static bool says(const struct contract_call *call, const char *words)
{
    return strstr(call->req.why.text, words) != NULL;
}

static struct contract_call *try_put(struct fixture *f, const char *id)
{
    struct contract_call *call = contract_start(&f->c, NO_GUARDS, WRITES(put("job", id, 1, "{}")));
    contract_wait(call);
    return call;
}

/* ---- unavailable ---- */

static void a_full_disk_refuses_and_recovers(void **state)
{
    struct fixture *f = *state;
    vfs_cut_fail(f->vfs, VFS_CUT_FULL, "");
    for (int i = 0; i < 3; i++) {
        struct contract_call *call = try_put(f, "b");
        assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
        assert_true(says(call, "store unavailable: disk full"));
        assert_true(call->req.why.needs_help);
        assert_true(says(call, f->w.path));
        assert_int_equal(contract_resolve(&f->c, f->c.session, call->tx.id), GL_E_CONFLICT);
    }
    check_value(&f->c, "job", "a", "kept");
    check_absent(&f->c, "job", "b");
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    assert_int_equal(try_put(f, "b")->req.status, 0);
    contract_reopen(&f->c);
    check_value(&f->c, "job", "a", "kept");
    check_value(&f->c, "job", "b", "{}");
}

static void a_disk_that_fills_in_the_middle_of_a_group_takes_none_of_it(void **state)
{
    struct fixture *f = *state;
    static char large[3 << 20]; /* larger than the page cache: the log is written before COMMIT */
    memset(large, 'x', sizeof(large));
    struct contract_call *calls[6];
    vfs_cut_fail(f->vfs, VFS_CUT_FULL, "-wal");
    for (int i = 0; i < 6; i++) {
        gl_str value = {large, i % 2 == 0 ? 10 : sizeof(large)};
        calls[i] = contract_start(&f->c, NO_GUARDS, WRITES(put_bytes("f", "x", value)));
    }
    contract_wait(calls[5]);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(calls[i]->req.status, GL_E_UNAVAILABLE);
    }
    check_absent(&f->c, "f", "x");
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    assert_int_equal(try_put(f, "b")->req.status, 0);
}

static void a_read_only_disk_refuses_and_recovers(void **state)
{
    struct fixture *f = *state;
    struct contract_call *call = NULL;
    vfs_cut_fail(f->vfs, VFS_CUT_READ_ONLY, "");
    for (int i = 0; i < 3; i++) {
        call = try_put(f, "b");
        assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
        assert_true(says(call, "store unavailable"));
        assert_true(says(call, "read-only"));
    }
    check_value(&f->c, "job", "a", "kept");
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    assert_int_equal(contract_resolve(&f->c, f->c.session, call->tx.id), GL_E_CONFLICT);
    assert_int_equal(try_put(f, "b")->req.status, 0);
    check_value(&f->c, "job", "b", "{}");
}

static void a_store_does_not_open_on_a_read_only_disk(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    vfs_cut_fail(f->vfs, VFS_CUT_READ_ONLY, "");
    sqlite_world_close(&f->w);
    assert_int_equal(sqlite_world_open(&f->w, &why), GL_E_UNAVAILABLE);
    assert_non_null(strstr(why.text, "store unavailable"));
    assert_non_null(strstr(why.text, "read-only"));
    f->w.read_only = true; /* but it can be opened for reading */
    assert_int_equal(sqlite_world_open(&f->w, &why), 0);
    f->c.store = f->w.store;
    check_value(&f->c, "job", "a", "kept");
}

static void a_store_opened_for_reading_writes_nothing(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    sqlite_world_close(&f->w);
    f->w.read_only = true;
    assert_int_equal(sqlite_world_open(&f->w, &why), 0);
    f->c.store = f->w.store;
    struct contract_call *call = try_put(f, "b");
    assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
    assert_true(says(call, "store unavailable"));
    assert_true(says(call, "read-only"));
    check_value(&f->c, "job", "a", "kept");
    assert_int_equal(contract_renew(&f->c, GL_S("a#1.x")), GL_E_UNAVAILABLE);
}

static void a_failing_read_is_reported_and_recovers(void **state)
{
    struct fixture *f = *state;
    contract_reopen(&f->c); /* Otherwise the pages would be in memory. */
    vfs_cut_fail(f->vfs, VFS_CUT_READ_ERROR, "");
    struct contract_call *call = contract_call_new(&f->c);
    struct gl_key key = {GL_S("job"), GL_S("a")};
    f->c.store->ops->get(f->c.store, &call->req, GL_S("default"), &key, 1);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
    assert_true(says(call, "store unavailable"));
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    check_value(&f->c, "job", "a", "kept");
}

/* A limit on file sizes acts like a full disk without a special VFS: the real VFS gets EFBIG. */
static void a_limit_on_file_sizes_is_a_full_disk(void **state)
{
    (void)state;
    struct contract c;
    struct sqlite_world w;
    sqlite_contract_begin(&c, &w, NULL);
    assert_int_equal(contract_commit(&c, NO_GUARDS, WRITES(put("job", "a", 1, "kept"))), 0);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 200000;
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    static char large[1 << 20];
    memset(large, 'x', sizeof(large));
    struct contract_call *call =
        contract_start(&c, NO_GUARDS, WRITES(put_bytes("f", "x", (gl_str){large, sizeof(large)})));
    contract_wait(call);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, old);
    assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
    assert_true(says(call, "disk full"));
    check_absent(&c, "f", "x");
    assert_int_equal(
        contract_commit(&c, GUARDS(at("job", "a", 1)), WRITES(put("job", "a", 2, "more"))), 0);
    sqlite_contract_end(&c, &w);
}

static void a_checkpoint_that_fails_loses_nothing(void **state)
{
    struct fixture *f = *state;
    static char large[1 << 20];
    memset(large, 'x', sizeof(large));
    gl_str value = {large, sizeof(large)};
    vfs_cut_fail(f->vfs, VFS_CUT_WRITE_ERROR, "state.db"); /* the log is still writable */
    for (int i = 0; i < 12; i++) {
        assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put_bytes("f", "x", value))), 0);
    }
    assert_int_equal(contract_get(&f->c, "f", "x").value.n, sizeof(large));
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    contract_reopen(&f->c);
    assert_int_equal(contract_get(&f->c, "f", "x").value.n, sizeof(large));
}

/* ---- unknown ---- */

/* COMMIT fails in the sync. Whatever the outcome is then, `resolve` and the records must agree on
 * it forever. */
static void fail_a_commit(struct fixture *f, enum vfs_cut_fault fault, bool with_reader)
{
    if (with_reader) { /* Its connection keeps the shared memory, which has not seen the commit. */
        check_value(&f->c, "job", "a", "kept");
    }
    vfs_cut_fail(f->vfs, fault, "-wal");
    struct contract_call *b = contract_start(&f->c, NO_GUARDS, WRITES(put("job", "b", 1, "b")));
    struct contract_call *r = contract_start(&f->c, GUARDS(absent("job", "a")), NO_WRITES);
    contract_wait(r);
    assert_int_equal(b->req.status, GL_E_UNKNOWN);
    assert_true(b->req.why.code == GL_E_UNKNOWN);
    /* While the fault lasts the outcome stays unknown, and nothing else is done. */
    assert_int_equal(contract_resolve(&f->c, f->c.session, b->tx.id), GL_E_UNAVAILABLE);
    struct contract_call *d = try_put(f, "d");
    assert_int_equal(d->req.status, GL_E_UNAVAILABLE);
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    int status = contract_resolve(&f->c, f->c.session, b->tx.id);
    assert_true(status == 0 || status == GL_E_CONFLICT);
    assert_int_equal(contract_get(&f->c, "job", "b").rev, status == 0 ? 1 : 0);
    assert_int_equal(contract_resolve(&f->c, f->c.session, r->tx.id), GL_E_CONFLICT);
    assert_int_equal(contract_resolve(&f->c, f->c.session, d->tx.id), GL_E_CONFLICT);
    /* The answer holds, even if the power fails now. */
    vfs_cut_power(f->vfs, 0);
    sqlite_world_close(&f->w);
    vfs_cut_restore(f->vfs);
    struct gl_why why;
    assert_int_equal(sqlite_world_open(&f->w, &why), 0);
    f->c.store = f->w.store;
    assert_int_equal(contract_resolve(&f->c, f->c.session, b->tx.id), status);
    assert_int_equal(contract_get(&f->c, "job", "b").rev, status == 0 ? 1 : 0);
    check_value(&f->c, "job", "a", "kept");
    assert_int_equal(try_put(f, "e")->req.status, 0);
}

static void a_commit_whose_sync_fails_is_unknown_and_then_resolved(void **state)
{
    fail_a_commit(*state, VFS_CUT_SYNC_LOST, false);
}

static void so_is_one_that_reached_the_disk_nevertheless(void **state)
{
    fail_a_commit(*state, VFS_CUT_SYNC_LATE, false);
}

static void and_with_readers_too(void **state)
{
    fail_a_commit(*state, VFS_CUT_SYNC_LOST, true);
}

static void and_with_readers_when_it_reached_the_disk(void **state)
{
    fail_a_commit(*state, VFS_CUT_SYNC_LATE, true);
}

static void an_unwritten_commit_is_not_taken_for_a_committed_one(void **state)
{
    struct fixture *f = *state;
    vfs_cut_fail(f->vfs, VFS_CUT_WRITE_ERROR, "-wal");
    struct contract_call *call = try_put(f, "b");
    assert_int_equal(call->req.status, GL_E_UNKNOWN);
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    assert_int_equal(contract_resolve(&f->c, f->c.session, call->tx.id), GL_E_CONFLICT);
    check_absent(&f->c, "job", "b");
}

static void transactions_behind_an_unknown_one_are_judged_by_their_guards(void **state)
{
    struct fixture *f = *state;
    vfs_cut_fail(f->vfs, VFS_CUT_SYNC_LOST, "-wal");
    struct contract_call *lost = try_put(f, "b");
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    struct contract_call *next =
        contract_start(&f->c, GUARDS(at("job", "b", 1)), WRITES(put("job", "b", 2, "2")));
    contract_wait(next);
    assert_int_equal(lost->req.status, GL_E_UNKNOWN);
    int resolved = contract_resolve(&f->c, f->c.session, lost->tx.id);
    assert_int_equal(next->req.status, resolved);
    assert_int_equal(contract_get(&f->c, "job", "b").rev, resolved == 0 ? 2 : 0);
}

static void a_session_that_could_not_be_opened_is_opened_again(void **state)
{
    struct fixture *f = *state;
    gl_str first = f->c.session;
    vfs_cut_fail(f->vfs, VFS_CUT_SYNC_LOST, "-wal");
    struct contract_call *call = contract_call_new(&f->c);
    f->c.store->ops->session_open(
        f->c.store, &call->req,
        &(struct gl_session_options){.node = GL_S("a"), .nonce = GL_S("x"), .ttl_ms = 30000});
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    gl_str second = contract_session(&f->c, "a");
    assert_int_equal(contract_renew(&f->c, first), GL_E_GONE);
    assert_int_equal(contract_renew(&f->c, second), 0);
    assert_int_equal(contract_commit(&f->c, GUARDS(dead(first)), NO_WRITES), 0);
}

/* ---- calls other than commits that write ---- */

static void a_session_that_could_not_end_ends_later(void **state)
{
    struct fixture *f = *state;
    gl_str s = f->c.session;
    vfs_cut_fail(f->vfs, VFS_CUT_FULL, "");
    assert_int_equal(contract_leave(&f->c, s), GL_E_UNAVAILABLE);
    assert_int_equal(contract_renew_for(&f->c, s, 30000, "{\"n\":2}"), GL_E_UNAVAILABLE);
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    bool is_dead = true;
    assert_int_equal(contract_dead(&f->c, s, &is_dead), 0);
    assert_false(is_dead);
    assert_int_equal(contract_renew_for(&f->c, s, 30000, "{\"n\":2}"), 0);
    assert_true(gl_str_is(contract_sessions(&f->c)->sessions[0].about, "{\"n\":2}"));
    vfs_cut_fail(f->vfs, VFS_CUT_SYNC_LATE, "-wal"); /* it ends, and nobody notices */
    assert_int_equal(contract_leave(&f->c, s), GL_E_UNAVAILABLE);
    vfs_cut_fail(f->vfs, VFS_CUT_OK, "");
    assert_int_equal(contract_dead(&f->c, s, &is_dead), 0);
    assert_int_equal(contract_renew_for(&f->c, s, 30000, "{\"n\":2}"), is_dead ? GL_E_GONE : 0);
    assert_int_equal(contract_leave(&f->c, s), 0);
    assert_int_equal(contract_renew_for(&f->c, s, 30000, "{\"n\":2}"), GL_E_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_disk_refuses_and_recovers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_disk_that_fills_in_the_middle_of_a_group_takes_none_of_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_only_disk_refuses_and_recovers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_does_not_open_on_a_read_only_disk, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_store_opened_for_reading_writes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_failing_read_is_reported_and_recovers, set_up, tear_down),
        cmocka_unit_test(a_limit_on_file_sizes_is_a_full_disk),
        cmocka_unit_test_setup_teardown(a_checkpoint_that_fails_loses_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_commit_whose_sync_fails_is_unknown_and_then_resolved,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(so_is_one_that_reached_the_disk_nevertheless, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(and_with_readers_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(and_with_readers_when_it_reached_the_disk, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_unwritten_commit_is_not_taken_for_a_committed_one,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            transactions_behind_an_unknown_one_are_judged_by_their_guards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_could_not_be_opened_is_opened_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_could_not_end_ends_later, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
