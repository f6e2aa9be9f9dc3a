#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "os/paths.h"
#include "os/runclaim.h"
#include "support/folder.h"

#define OLD "01KA0000000000000000000000"
#define NEW "01KB0000000000000000000000"

struct bench {
    struct test_folder folder;
    struct gl_arena a;
    struct gl_why why;
};

static int set_up(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof(b));
    test_folder_make(&b.folder);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    test_folder_remove(&b->folder);
    gl_arena_done(&b->a);
    return 0;
}

static const char *in(struct bench *b, const char *name)
{
    return gl_paths_in(&b->a, b->folder.path, name);
}

static bool is_there(struct bench *b, const char *name)
{
    struct stat st;
    return lstat(in(b, name), &st) == 0;
}

static void put(struct bench *b, const char *name, const char *text)
{
    assert_int_equal(gl_fs_write(in(b, name), gl_str_of(text), &b->why), 0);
}

static void take(struct bench *b, const char *job)
{
    assert_int_equal(gl_runclaim_take(in(b, "run"), gl_str_of(job), &b->why), 0);
}

static void assert_owner(struct bench *b, const char *job)
{
    char owner[GL_ULID_BYTES + 1];
    gl_runclaim_owner(b->folder.path, GL_S("run"), owner);
    assert_string_equal(owner, job);
}

/* ---- whose a folder is ---- */

static void what_another_job_left_is_set_aside_once(void **state)
{
    struct bench *b = *state;
    assert_owner(b, "");
    take(b, OLD);
    put(b, "run/human.jsonl", "approved");
    take(b, OLD);
    assert_true(is_there(b, "run/human.jsonl"));
    assert_owner(b, OLD);
    assert_true(gl_runclaim_is_of(b->folder.path, GL_S("run"), GL_S(OLD)));
    assert_false(gl_runclaim_is_of(b->folder.path, GL_S("run"), GL_S(NEW)));
    take(b, NEW);
    assert_owner(b, NEW);
    assert_false(is_there(b, "run/human.jsonl"));
    assert_true(is_there(b, "run." OLD "/human.jsonl"));
    put(b, "run/human.jsonl", "asked");
    take(b, NEW);
    take(b, OLD); /* it had its folder: that of a later job is never moved for it */
    assert_true(is_there(b, "run/human.jsonl"));
    assert_owner(b, NEW);
}

/* As kill -9 leaves it: moved; moved and made; everything but the list. */
static void what_was_cut_short_is_made_good(void **state)
{
    struct bench *b = *state;
    take(b, OLD);
    put(b, "run/human.jsonl", "approved");
    assert_int_equal(rename(in(b, "run"), in(b, "run." OLD)), 0);
    take(b, NEW);
    assert_owner(b, NEW);
    assert_int_equal(unlink(in(b, "run/.glia-jobs")), 0);
    assert_int_equal(rmdir(in(b, "run")), 0);
    assert_int_equal(gl_fs_mkdirs(in(b, "run"), &b->why), 0);
    take(b, NEW);
    assert_owner(b, NEW);
    assert_true(is_there(b, "run." OLD "/human.jsonl"));
    assert_false(is_there(b, "run/human.jsonl"));
}

static void a_name_that_is_taken_is_not_replaced(void **state)
{
    struct bench *b = *state;
    take(b, OLD);
    put(b, "run/x", "");
    assert_int_equal(gl_fs_mkdirs(in(b, "run." OLD), &b->why), 0);
    put(b, "run." OLD "/y", "");
    take(b, NEW);
    assert_true(is_there(b, "run." OLD "/y"));
    assert_false(is_there(b, "run." OLD "/x"));
    assert_true(is_there(b, "run." OLD ".2/x"));
}

/* Workers write what they like. */
static void a_list_that_is_none_names_nobody(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_mkdirs(in(b, "run"), &b->why), 0);
    put(b, "run/human.jsonl", "prepared");
    put(b, "run/.glia-jobs", "../../etc\n\n\xff");
    assert_owner(b, "");
    take(b, NEW);
    assert_owner(b, NEW);
    assert_true(is_there(b, "run/human.jsonl"));
    assert_int_equal(unlink(in(b, "run/.glia-jobs")), 0);
    assert_int_equal(mkfifo(in(b, "run/.glia-jobs"), 0600), 0);
    assert_owner(b, "");
    take(b, NEW); /* does not wait for a writer */
    assert_owner(b, NEW);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_another_job_left_is_set_aside_once),
        TEST(what_was_cut_short_is_made_good),
        TEST(a_name_that_is_taken_is_not_replaced),
        TEST(a_list_that_is_none_names_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
