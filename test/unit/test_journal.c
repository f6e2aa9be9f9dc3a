/* The keeper's journal: synced records survive any end, whatever the disk does. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "keeper/journal.h"
#include "support/cmocka_all.h"
#include "support/folder.h"

enum { SLOW_US = 1000000 };

struct world {
    struct test_folder folder;
    struct gl_journal j;
    bool slow;      /* pretend that the disk is slow, so that the thread does the syncing */
    char read[512]; /* what was replayed: "e3 " for an end with token 3 */
};

static int note(void *owner, const struct gl_keeper_msg *m)
{
    struct world *w = owner;
    size_t n = strlen(w->read);
    snprintf(w->read + n, sizeof(w->read) - n, "%s%d ", m->type == GL_KEEPER_ENDED ? "e" : "b",
             (int)m->start.token);
    return 0;
}

static void reopen(struct world *w)
{
    struct gl_why why;
    w->read[0] = 0;
    assert_int_equal(gl_journal_open(&w->j, w->folder.path, note, w, &why), 0);
    assert_int_equal(gl_journal_repair(&w->j, &why), 0);
    w->j.sync_us = w->slow ? SLOW_US : 0;
}

static int open_world(void **state, bool slow)
{
    static struct world w;
    w = (struct world){.slow = slow};
    test_folder_make(&w.folder);
    reopen(&w);
    *state = &w;
    return 0;
}

static int open_fast(void **state)
{
    return open_world(state, false);
}

static int open_slow(void **state)
{
    return open_world(state, true);
}

static int close_world(void **state)
{
    struct world *w = *state;
    gl_journal_close(&w->j);
    test_folder_remove(&w->folder);
    return 0;
}

static uint64_t add(struct world *w, enum gl_keeper_type type, uint64_t token)
{
    struct gl_keeper_msg m = {.type = type, .start = {.token = token}};
    return gl_journal_add(&w->j, &m);
}

static int settle(struct world *w)
{
    struct gl_why why;
    int r = gl_journal_flush(&w->j, &why);
    return r < 0 ? r : gl_journal_wait(&w->j, &why);
}

/* Make writes or syncs fail: /dev/full accepts no byte, /dev/null cannot be synced. */
static int spoil(struct world *w, const char *device)
{
    int good = dup(w->j.fd);
    int bad = open(device, O_RDWR);
    assert_true(good >= 0 && bad >= 0);
    assert_true(dup2(bad, w->j.fd) >= 0);
    close(bad);
    return good;
}

static void repair(struct world *w, int good)
{
    assert_true(dup2(good, w->j.fd) >= 0);
    close(good);
}

static void records_come_back_in_order(void **state)
{
    struct world *w = *state;
    add(w, GL_KEEPER_BEGUN, 1);
    uint64_t end = add(w, GL_KEEPER_ENDED, 2);
    assert_true(w->j.synced < end);
    assert_int_equal(settle(w), 0);
    assert_true(w->j.synced >= end);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "b1 e2 ");
}

static void what_must_not_be_synced_is_not(void **state)
{
    struct world *w = *state;
    struct gl_why why;
    add(w, GL_KEEPER_BEGUN, 1);
    assert_int_equal(gl_journal_flush(&w->j, &why), 0);
    assert_int_equal(w->j.syncing, 0);
    add(w, GL_KEEPER_ENDED, 2);
    assert_int_equal(gl_journal_flush(&w->j, &why), 0);
    assert_int_equal(w->j.syncing, w->slow ? w->j.bytes : 0);
    assert_int_equal(gl_journal_wait(&w->j, &why), 0);
    assert_int_equal(w->j.synced, w->j.bytes);
}

static void an_end_that_comes_during_a_sync_waits_for_the_next(void **state)
{
    struct world *w = *state;
    struct gl_why why;
    uint64_t first = add(w, GL_KEEPER_ENDED, 1);
    assert_int_equal(gl_journal_flush(&w->j, &why), 0);
    uint64_t second = add(w, GL_KEEPER_ENDED, 2);
    assert_int_equal(gl_journal_flush(&w->j, &why), 0);
    assert_int_equal(w->j.syncing, first);
    assert_int_equal(gl_journal_wait(&w->j, &why), 0);
    assert_int_equal(w->j.synced, first);
    assert_int_equal(settle(w), 0);
    assert_int_equal(w->j.synced, second);
    assert_true(w->j.sync_us < SLOW_US); /* it is not as slow as pretended */
}

static void a_failed_write_is_made_up_for(void **state)
{
    struct world *w = *state;
    struct gl_why why;
    int good = spoil(w, "/dev/full");
    uint64_t end = add(w, GL_KEEPER_ENDED, 1);
    assert_true(gl_journal_flush(&w->j, &why) < 0);
    assert_int_equal(w->j.bytes, 0);
    repair(w, good);
    assert_int_equal(settle(w), 0);
    assert_int_equal(w->j.synced, end);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e1 ");
}

/* After a failed sync the content of the disk is unknown: everything since the last good sync is
 * rewritten at the same offset. */
static void a_failed_sync_is_made_up_for(void **state)
{
    struct world *w = *state;
    add(w, GL_KEEPER_ENDED, 1);
    assert_int_equal(settle(w), 0);
    int good = spoil(w, "/dev/null");
    uint64_t second = add(w, GL_KEEPER_ENDED, 2);
    assert_true(settle(w) < 0);
    assert_true(w->j.synced < second);
    uint64_t third = add(w, GL_KEEPER_ENDED, 3);
    assert_true(settle(w) < 0);
    assert_true(w->j.synced < second);
    repair(w, good);
    assert_int_equal(settle(w), 0);
    assert_int_equal(w->j.synced, third);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e1 e2 e3 ");
}

static void a_torn_end_is_cut_off_and_written_over(void **state)
{
    struct world *w = *state;
    add(w, GL_KEEPER_ENDED, 1);
    uint64_t good = add(w, GL_KEEPER_ENDED, 2);
    add(w, GL_KEEPER_ENDED, 3);
    assert_int_equal(settle(w), 0);
    assert_int_equal(ftruncate(w->j.fd, (off_t)w->j.bytes - 1), 0);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e1 e2 ");
    assert_int_equal(w->j.bytes, good);
    add(w, GL_KEEPER_ENDED, 4);
    assert_int_equal(settle(w), 0);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e1 e2 e4 ");
}

/* Flip each byte of three ends: the records after the damage are read, and the loss is detected. */
static void damage_drops_only_what_is_damaged_and_is_noticed(void **state)
{
    struct world *w = *state;
    uint64_t ends[3];
    for (uint64_t i = 0; i < 3; i++) {
        ends[i] = add(w, GL_KEEPER_ENDED, i + 1);
    }
    assert_int_equal(settle(w), 0);
    for (uint64_t at = 0; at < ends[2]; at++) {
        char byte, bad;
        assert_int_equal(pread(w->j.fd, &byte, 1, (off_t)at), 1);
        bad = (char)(byte ^ 1);
        assert_int_equal(pwrite(w->j.fd, &bad, 1, (off_t)at), 1);
        gl_journal_close(&w->j);
        struct gl_why why;
        w->read[0] = 0;
        assert_int_equal(gl_journal_open(&w->j, w->folder.path, note, w, &why), 0);
        assert_true(w->j.bad_bytes > 0);
        uint64_t begin = at < ends[0] ? 0 : at < ends[1] ? ends[0] : ends[1];
        bool in_length = at - begin < 4; /* the start of the next record is unknown then */
        if (at < ends[0]) {
            assert_string_equal(w->read, in_length ? "" : "e2 e3 ");
        } else if (at < ends[1]) {
            assert_string_equal(w->read, in_length ? "e1 " : "e1 e3 ");
        } else {
            assert_string_equal(w->read, "e1 e2 ");
        }
        assert_int_equal(pwrite(w->j.fd, &byte, 1, (off_t)at), 1); /* nothing was cut off */
    }
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e1 e2 e3 ");
    assert_int_equal(w->j.bad_bytes, 0);
}

/* Everything up to the rename succeeds; then no descriptor is left. */
static void a_replacement_that_fails_halfway_loses_nothing(void **state)
{
    struct world *w = *state;
    struct gl_why why;
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    struct rlimit before, few;
    add(w, GL_KEEPER_ENDED, 1);
    assert_int_equal(settle(w), 0);
    struct gl_keeper_msg m = {.type = GL_KEEPER_ENDED, .start = {.token = 9}};
    gl_keeper_add_record(&m, &content);
    int next = dup(w->j.fd); /* the lowest that is free */
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    (void)gl_journal_replace(&w->j, gl_buf_view(&content), &why); /* its result does not matter */
    add(w, GL_KEEPER_ENDED, 10);
    int settled = settle(w);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(settled == 0 || settle(w) == 0);
    assert_int_equal(w->j.synced, w->j.bytes);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e9 e10 ");
}

static void nothing_in_a_replacement_counts_before_its_name_is_synced(void **state)
{
    struct world *w = *state;
    struct gl_why why;
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    struct gl_keeper_msg m = {.type = GL_KEEPER_ENDED, .start = {.token = 9}};
    gl_keeper_add_record(&m, &content);
    char *folder = w->j.folder, nowhere[] = "/nowhere/at/all";
    w->j.folder = nowhere;
    assert_int_equal(gl_journal_replace(&w->j, gl_buf_view(&content), &why), 0);
    assert_int_equal(w->j.synced, 0);
    uint64_t end = add(w, GL_KEEPER_ENDED, 10);
    for (int i = 0; i < 2; i++) {
        assert_true(settle(w) < 0);
        assert_int_equal(w->j.synced, 0);
    }
    w->j.folder = folder;
    assert_int_equal(settle(w), 0);
    assert_int_equal(w->j.synced, end);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e9 e10 ");
}

static void it_can_be_replaced_and_goes_on(void **state)
{
    struct world *w = *state;
    struct gl_why why;
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    add(w, GL_KEEPER_ENDED, 1);
    assert_int_equal(settle(w), 0);
    add(w, GL_KEEPER_ENDED, 2); /* pending: included in the new content */
    struct gl_keeper_msg m = {.type = GL_KEEPER_ENDED, .start = {.token = 9}};
    gl_keeper_add_record(&m, &content);
    assert_int_equal(gl_journal_replace(&w->j, gl_buf_view(&content), &why), 0);
    add(w, GL_KEEPER_ENDED, 10);
    assert_int_equal(settle(w), 0);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e9 e10 ");
}

static void it_can_be_cleared_and_goes_on(void **state)
{
    struct world *w = *state;
    add(w, GL_KEEPER_ENDED, 1);
    assert_int_equal(settle(w), 0);
    gl_journal_clear(&w->j);
    add(w, GL_KEEPER_ENDED, 2);
    assert_int_equal(settle(w), 0);
    gl_journal_close(&w->j);
    reopen(w);
    assert_string_equal(w->read, "e2 ");
}

#define FAST(name) cmocka_unit_test_setup_teardown(name, open_fast, close_world),
#define SLOW(name) cmocka_unit_test_setup_teardown(name, open_slow, close_world),
#define TESTS(X)                                                 \
    X(records_come_back_in_order)                                \
    X(what_must_not_be_synced_is_not)                            \
    X(a_failed_write_is_made_up_for)                             \
    X(a_failed_sync_is_made_up_for)                              \
    X(a_torn_end_is_cut_off_and_written_over)                    \
    X(damage_drops_only_what_is_damaged_and_is_noticed)          \
    X(nothing_in_a_replacement_counts_before_its_name_is_synced) \
    X(a_replacement_that_fails_halfway_loses_nothing)            \
    X(it_can_be_replaced_and_goes_on)                            \
    X(it_can_be_cleared_and_goes_on)

int main(void)
{
    const struct CMUnitTest fast[] = {TESTS(FAST)};
    const struct CMUnitTest slow[] = {TESTS(SLOW)
                                          SLOW(an_end_that_comes_during_a_sync_waits_for_the_next)};
    return cmocka_run_group_tests_name("a fast disk", fast, NULL, NULL) +
           cmocka_run_group_tests_name("a slow disk", slow, NULL, NULL);
}
