#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/fs.h"
#include "os/logfs.h"
#include "os/pools.h"
#include "os/textlog.h"
#include "support/folder.h"

#define JOB "01ARZ3NDEKTSV4RRFFQ69G5FAV"

struct bench {
    struct test_folder folder;
    struct gl_arena a;
    struct gl_why why;
    struct gl_logfs logs;
    struct gl_buf out;
    uint64_t next;
};

static int set_up(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof(b));
    test_folder_make(&b.folder);
    gl_logfs_init(&b.logs, b.folder.path);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    gl_buf_done(&b->out);
    gl_arena_done(&b->a);
    test_folder_remove(&b->folder);
    return 0;
}

static const char *put_log(struct bench *b, const char *attempt, gl_str text)
{
    const char *folder =
        gl_str_fmt(&b->a, "%s/contexts/default/runs/" JOB "/%s", b->folder.path, attempt).p;
    const char *path = gl_str_fmt(&b->a, "%s/log", folder).p;
    assert_int_equal(gl_fs_mkdirs(folder, &b->why), 0);
    assert_int_equal(gl_fs_write(path, text, &b->why), 0);
    return path;
}

static gl_str read_from(struct bench *b, uint64_t offset)
{
    gl_buf_reset(&b->out);
    assert_int_equal(b->logs.logs.read(&b->logs.logs, GL_S("default"), GL_S(JOB), GL_S("a"), 1,
                                       offset, 128 << 10, &b->out, &b->next, &b->why),
                     0);
    return gl_buf_view(&b->out);
}

/* ---- logs ---- */

static void the_attempts_of_a_job_are_listed_in_order(void **state)
{
    struct bench *b = *state;
    struct gl_logs_attempt *found;
    size_t n;
    (void)put_log(b, "b:attempt:1", GL_S("12345"));
    (void)put_log(b, "a:attempt:10", GL_S(""));
    (void)put_log(b, "a:attempt:9", GL_S("x"));
    (void)put_log(b, "nonsense", GL_S("x"));
    (void)put_log(b, ".a:attempt:1", GL_S("x"));
    assert_int_equal(
        b->logs.logs.list(&b->logs.logs, GL_S("default"), GL_S(JOB), &b->a, &found, &n, &b->why),
        0);
    assert_int_equal(n, 3);
    assert_true(gl_str_is(found[0].step, "a") && found[0].attempt == 9 && found[0].bytes == 1);
    assert_true(gl_str_is(found[1].step, "a") && found[1].attempt == 10);
    assert_true(gl_str_is(found[2].step, "b") && found[2].bytes == 5);
}

static void a_job_that_has_said_nothing_has_no_attempts_and_an_empty_log(void **state)
{
    struct bench *b = *state;
    struct gl_logs_attempt *found;
    size_t n = 7;
    assert_int_equal(
        b->logs.logs.list(&b->logs.logs, GL_S("default"), GL_S(JOB), &b->a, &found, &n, &b->why),
        0);
    assert_int_equal(n, 0);
    assert_int_equal(read_from(b, 0).n, 0);
    assert_int_equal(b->next, 0);
}

static void only_whole_lines_are_read(void **state)
{
    struct bench *b = *state;
    (void)put_log(b, "a:attempt:1", GL_S("1 o one\n2 e two\n3 o thr"));
    assert_true(gl_str_is(read_from(b, 0), "1 o one\n2 e two\n"));
    assert_int_equal(b->next, 16);
    assert_int_equal(read_from(b, 16).n, 0);
    assert_int_equal(b->next, 16);
    (void)put_log(b, "a:attempt:1", GL_S("1 o one\n2 e two\n3 o three\n"));
    assert_true(gl_str_is(read_from(b, 16), "3 o three\n"));
}

/* A first part of `head` bytes, 5 MiB and a little less, and what the keeper put behind it. */
static uint64_t put_long_log(struct bench *b, const char *behind)
{
    struct gl_buf text = {0};
    while (text.n + 100 < GL_LOG_BYTES_MAX / 2) {
        gl_buf_fmt(&text, "%zu o line\n", text.n);
    }
    uint64_t head = text.n;
    gl_buf_c(&text, behind);
    (void)put_log(b, "a:attempt:1", gl_buf_view(&text));
    gl_buf_done(&text);
    return head;
}

static void what_was_dropped_before_it_was_read_is_told_once(void **state)
{
    struct bench *b = *state;
    uint64_t head = put_long_log(b, "-- 900 bytes dropped --\n9 o nine\n");
    assert_true(gl_str_is(read_from(b, head), "-- 900 bytes dropped --\n9 o nine\n"));
    assert_int_equal(b->next, head + 900 + 9);
    assert_int_equal(read_from(b, b->next).n, 0);
    assert_int_equal(b->next, head + 900 + 9);
}

static uint64_t size_of(struct bench *b, const char *step)
{
    uint64_t size = 77;
    assert_int_equal(b->logs.logs.size(&b->logs.logs, GL_S("default"), GL_S(JOB), gl_str_of(step),
                                       1, &size, &b->why),
                     0);
    return size;
}

static void the_size_of_a_log_counts_what_was_dropped(void **state)
{
    struct bench *b = *state;
    assert_int_equal(size_of(b, "a"), 0);
    (void)put_log(b, "a:attempt:1", GL_S("1 o one\n2 o two\n"));
    assert_int_equal(size_of(b, "a"), 16);
    assert_int_equal(size_of(b, "b"), 0);
    uint64_t head = put_long_log(b, "-- 900 bytes dropped --\n9 o nine\n");
    assert_int_equal(size_of(b, "a"), head + 900 + 9);
    (void)read_from(b, size_of(b, "a"));
    assert_int_equal(b->next, size_of(b, "a"));
}

static void a_reader_hears_how_much_it_has_missed_itself(void **state)
{
    struct bench *b = *state;
    uint64_t head = put_long_log(b, "-- 900 bytes dropped --\n9 o nine\n");
    assert_true(gl_str_is(read_from(b, head + 700), "-- 200 bytes dropped --\n9 o nine\n"));
}

static void nothing_is_read_twice_when_the_middle_is_dropped(void **state)
{
    struct bench *b = *state;
    uint64_t head = put_long_log(b, "1 o one\n2 o two\n3 o six\n");
    assert_true(gl_str_is(read_from(b, head), "1 o one\n2 o two\n3 o six\n"));
    assert_int_equal(b->next, head + 24);
    (void)put_long_log(b, "-- 16 bytes dropped --\n3 o six\n4 o ten\n");
    assert_true(gl_str_is(read_from(b, head + 24), "4 o ten\n"));
    assert_int_equal(b->next, head + 32);
}

static void a_page_ends_where_the_first_part_ends(void **state)
{
    struct bench *b = *state;
    uint64_t head = put_long_log(b, "-- 900 bytes dropped --\n9 o nine\n");
    gl_str page = read_from(b, head - 100000);
    assert_int_equal(b->next, head);
    assert_true(page.n <= 100000 && page.n > 99900);
    assert_true(gl_str_starts(read_from(b, b->next), GL_S("-- 900 ")));
}

static void a_mark_of_a_full_disk_is_a_line_like_others(void **state)
{
    struct bench *b = *state;
    uint64_t head = put_long_log(b, "-- 7 bytes dropped: disk full --\n9 o nine\n");
    assert_true(gl_str_is(read_from(b, head), "-- 7 bytes dropped: disk full --\n9 o nine\n"));
    assert_int_equal(b->next, head + 33 + 9);
}

static void a_place_within_a_line_goes_on_with_the_next(void **state)
{
    struct bench *b = *state;
    (void)put_log(b, "a:attempt:1", GL_S("1 o one\n2 e two\n"));
    assert_true(gl_str_is(read_from(b, 3), "2 e two\n"));
    assert_int_equal(read_from(b, 5000).n, 0);
    assert_int_equal(b->next, 5000);
}

static void a_long_log_comes_in_pages(void **state)
{
    struct bench *b = *state;
    struct gl_buf text = {0}, all = {0};
    for (int i = 0; i < 30000; i++) {
        gl_buf_fmt(&text, "%d o line %d\n", i, i);
    }
    (void)put_log(b, "a:attempt:1", gl_buf_view(&text));
    for (gl_str page = read_from(b, 0); page.n > 0; page = read_from(b, b->next)) {
        assert_true(page.n <= 128 << 10);
        assert_int_equal(page.p[page.n - 1], '\n');
        gl_buf_str(&all, page);
    }
    assert_true(gl_str_eq(gl_buf_view(&all), gl_buf_view(&text)));
    gl_buf_done(&text);
    gl_buf_done(&all);
}

/* ---- the node's own log ---- */

static void the_text_log_is_bounded(void **state)
{
    struct bench *b = *state;
    const char *path = gl_str_fmt(&b->a, "%s/node.log", b->folder.path).p;
    const char *old = gl_str_fmt(&b->a, "%s/node.log.1", b->folder.path).p;
    struct gl_textlog log;
    struct stat st;
    char filler[1001];
    memset(filler, 'x', sizeof(filler) - 1);
    filler[1000] = '\0';
    gl_textlog_init(&log, path);
    for (int i = 0; i < 9000; i++) {
        gl_textlog_write(&log, "%s", filler);
    }
    gl_textlog_done(&log);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= GL_TEXTLOG_BYTES_MAX + 2048);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(old, &st), 0);
    assert_true(st.st_size <= GL_TEXTLOG_BYTES_MAX + 2048);
}

static void a_line_of_the_text_log_is_one_line(void **state)
{
    struct bench *b = *state;
    const char *path = gl_str_fmt(&b->a, "%s/node.log", b->folder.path).p;
    struct gl_textlog log;
    gl_textlog_init(&log, path);
    gl_textlog_write(&log, "a1\nb2");
    gl_textlog_write(&log, "c");
    gl_textlog_done(&log);
    assert_int_equal(gl_fs_read(path, 1 << 20, &b->out, &b->why), 0);
    gl_str rest, first = gl_str_cut(gl_buf_view(&b->out), '\n', &rest);
    assert_true(gl_str_ends(first, GL_S("Z a1 b2")));
    assert_true(gl_str_ends(rest, GL_S("Z c\n")));
}

/* ---- pools ---- */

static int read_pools(struct bench *b, const char *text, struct gl_pools_entry **ret, size_t *ret_n)
{
    return gl_pools_read(text, &b->a, ret, ret_n, &b->why);
}

static void pools_are_read_as_written(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    assert_int_equal(read_pools(b, " default=8, gpu=1 ", &pools, &n), 0);
    assert_int_equal(n, 2);
    assert_true(gl_str_is(pools[0].name, "default") && pools[0].slots == 8);
    assert_true(gl_str_is(pools[1].name, "gpu") && pools[1].slots == 1);
}

static void the_default_pool_is_always_there(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    uint32_t usual = 4 * (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    assert_int_equal(read_pools(b, NULL, &pools, &n), 0);
    assert_true(n == 1 && gl_str_is(pools[0].name, "default") && pools[0].slots == usual);
    assert_int_equal(read_pools(b, "gpu=3", &pools, &n), 0);
    assert_true(n == 2 && gl_str_is(pools[1].name, "default") && pools[1].slots == usual);
}

static bool has_pool(const struct gl_pools_entry *pools, size_t n, const char *name, uint32_t slots)
{
    for (size_t i = 0; i < n; i++) {
        if (gl_str_is(pools[i].name, name)) {
            return pools[i].slots == slots;
        }
    }
    return false;
}

static void pools_of_workers_are_added_under_their_own_names(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    assert_int_equal(read_pools(b, "default=8,executor.io=2", &pools, &n), 0);
    assert_int_equal(gl_pools_add_executor("gpu=1,io=8", 50, &b->a, pools, &n, &b->why), 0);
    assert_int_equal(n, 4);
    assert_true(has_pool(pools, n, "default", 8));
    assert_true(has_pool(pools, n, "executor.default", 50));
    assert_true(has_pool(pools, n, "executor.gpu", 1));
    assert_true(has_pool(pools, n, "executor.io", 2)); /* as the operator wrote it */
    assert_int_equal(read_pools(b, NULL, &pools, &n), 0);
    assert_int_equal(gl_pools_add_executor("default=3", 50, &b->a, pools, &n, &b->why), 0);
    assert_true(n == 2 && has_pool(pools, n, "executor.default", 3));
}

static void too_many_pools_of_workers_are_refused(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    struct gl_buf text = {0};
    size_t n;
    for (int i = 0; i < GL_POOLS_MAX - 1; i++) {
        gl_buf_fmt(&text, "%sp%d=1", i > 0 ? "," : "", i);
    }
    gl_buf_char(&text, '\0');
    assert_int_equal(read_pools(b, NULL, &pools, &n), 0);
    assert_int_equal(gl_pools_add_executor(text.p, 50, &b->a, pools, &n, &b->why), GL_E_INVALID);
    assert_non_null(strstr(b->why.text, "at most 64 pools"));
    gl_buf_done(&text);
    assert_int_equal(gl_pools_add_executor("x=0", 50, &b->a, pools, &n, &b->why), GL_E_INVALID);
}

static void pools_that_make_no_sense_are_refused_with_the_part_that_does_not(void **state)
{
    static const char *const bad[] = {"x",  "x=",    "x=0",     "x=-1",     "x=100001",
                                      "=4", "a b=1", "x=1,x=2", "x=1,,y=2", ","};
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        assert_int_equal(read_pools(b, bad[i], &pools, &n), GL_E_INVALID);
        assert_non_null(strstr(b->why.text, "default=8,gpu=1"));
    }
    assert_int_equal(read_pools(b, "x=1,bad=y", &pools, &n), GL_E_INVALID);
    assert_non_null(strstr(b->why.text, "'bad=y'"));
}

static void there_can_be_only_so_many_pools(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    struct gl_buf text = {0};
    size_t n;
    for (int i = 0; i < GL_POOLS_MAX - 1; i++) {
        gl_buf_fmt(&text, "p%d=1,", i);
    }
    gl_buf_c(&text, "default=1");
    gl_buf_char(&text, '\0');
    assert_int_equal(read_pools(b, text.p, &pools, &n), 0);
    assert_int_equal(n, GL_POOLS_MAX);
    text.n--;
    gl_buf_c(&text, ",more=1");
    gl_buf_char(&text, '\0');
    assert_int_equal(read_pools(b, text.p, &pools, &n), GL_E_INVALID);
    gl_buf_done(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_attempts_of_a_job_are_listed_in_order),
        TEST(a_job_that_has_said_nothing_has_no_attempts_and_an_empty_log),
        TEST(only_whole_lines_are_read),
        TEST(what_was_dropped_before_it_was_read_is_told_once),
        TEST(the_size_of_a_log_counts_what_was_dropped),
        TEST(a_reader_hears_how_much_it_has_missed_itself),
        TEST(nothing_is_read_twice_when_the_middle_is_dropped),
        TEST(a_page_ends_where_the_first_part_ends),
        TEST(a_mark_of_a_full_disk_is_a_line_like_others),
        TEST(a_place_within_a_line_goes_on_with_the_next),
        TEST(a_long_log_comes_in_pages),
        TEST(the_text_log_is_bounded),
        TEST(a_line_of_the_text_log_is_one_line),
        TEST(pools_are_read_as_written),
        TEST(the_default_pool_is_always_there),
        TEST(pools_of_workers_are_added_under_their_own_names),
        TEST(too_many_pools_of_workers_are_refused),
        TEST(pools_that_make_no_sense_are_refused_with_the_part_that_does_not),
        TEST(there_can_be_only_so_many_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
