#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/run_owner.h"
#include "support/bench.h"

#define OLD "01KA0000000000000000000000"
#define NEW "01KB0000000000000000000000"
#define THIRD "01KC0000000000000000000000"

static void put(struct bench *b, const char *name, const char *text)
{
    assert_int_equal(gl_fs_write(in(b, name), gl_str_of(text), &b->why), 0);
}

static void take(struct bench *b, const char *job)
{
    assert_int_equal(gl_run_owner_take(in(b, "run"), gl_str_of(job), &b->why), 0);
}

static void assert_owner(struct bench *b, const char *job)
{
    char owner[GL_ULID_BYTES + 1];
    gl_run_owner_find(b->folder.path, GL_S("run"), owner);
    assert_string_equal(owner, job);
}

static void what_another_job_left_is_set_aside_once(void **state)
{
    struct bench *b = *state;
    assert_owner(b, "");
    take(b, OLD);
    put(b, "run/human.jsonl", "approved");
    take(b, OLD);
    assert_true(is_there(b, "run/human.jsonl"));
    assert_owner(b, OLD);
    assert_true(gl_run_owner_is_job(b->folder.path, GL_S("run"), GL_S(OLD)));
    assert_false(gl_run_owner_is_job(b->folder.path, GL_S("run"), GL_S(NEW)));
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
    assert_false(is_there(b, "run." OLD ".2"));
    put(b, ".glia/run", OLD "\n");
    take(b, NEW);
    assert_owner(b, NEW);
    assert_true(is_there(b, "run." OLD "/human.jsonl"));
    assert_false(is_there(b, "run." OLD ".2"));
    assert_false(is_there(b, "run/human.jsonl"));
    assert_int_equal(rmdir(in(b, "run")), 0);
    take(b, NEW);
    assert_true(is_there(b, "run"));
}

/* Many begin with that; or they make something else of it. */
static void a_worker_that_empties_its_folder_keeps_it(void **state)
{
    struct bench *b = *state;
    take(b, OLD);
    assert_int_equal(rmdir(in(b, "run")), 0);
    assert_int_equal(mkdir(in(b, "run"), 0700), 0);
    put(b, "run/human.jsonl", "approved");
    take(b, OLD);
    assert_true(is_there(b, "run/human.jsonl"));
    take(b, NEW);
    assert_false(is_there(b, "run/human.jsonl"));
    assert_true(is_there(b, "run." OLD "/human.jsonl"));
    assert_int_equal(rmdir(in(b, "run")), 0);
    assert_int_equal(symlink("nowhere", in(b, "run")), 0);
    take(b, THIRD);
    assert_owner(b, THIRD);
    assert_true(is_there(b, "run." NEW));
}

/* A job without a run id, and what was set aside, need no list. */
static void a_name_tells_the_job(void **state)
{
    struct bench *b = *state;
    static const char *const names[] = {OLD, "run." OLD, "run." OLD ".12"};
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        char owner[GL_ULID_BYTES + 1];
        gl_run_owner_find(b->folder.path, gl_str_of(names[i]), owner);
        assert_string_equal(owner, OLD);
        assert_int_equal(gl_fs_mkdirs(in(b, names[i]), &b->why), 0);
        put(b, gl_str_fmt(&b->a, "%s/human.jsonl", names[i]).p, "approved");
        assert_int_equal(gl_run_owner_take(in(b, names[i]), GL_S(NEW), &b->why), 0);
        assert_false(is_there(b, gl_str_fmt(&b->a, "%s/human.jsonl", names[i]).p));
        assert_true(is_there(b, gl_str_fmt(&b->a, "%s." OLD "/human.jsonl", names[i]).p));
    }
    assert_int_equal(gl_run_owner_take(in(b, ".glia"), GL_S(NEW), &b->why), GL_E_INVALID);
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

/* Somebody made the folder before the run. */
static void a_list_that_is_none_names_nobody(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_mkdirs(in(b, "run"), &b->why), 0);
    assert_int_equal(gl_fs_mkdirs(in(b, ".glia"), &b->why), 0);
    put(b, "run/human.jsonl", "prepared");
    put(b, ".glia/run", "../../etc\n\n\xff");
    assert_owner(b, "");
    take(b, NEW);
    assert_owner(b, NEW);
    assert_true(is_there(b, "run/human.jsonl"));
    assert_int_equal(unlink(in(b, ".glia/run")), 0);
    assert_int_equal(mkfifo(in(b, ".glia/run"), 0600), 0);
    assert_owner(b, "");
    take(b, NEW); /* does not wait for a writer */
    assert_owner(b, NEW);
}

/* The job itself, or anybody of its user, can put a link where the run's folder is. */
static void a_link_in_place_of_the_folder_is_refused(void **state)
{
    struct bench *b = *state;
    char data[4096];
    struct stat st;

    take(b, NEW);
    assert_int_equal(rmdir(in(b, "run")), 0);
    assert_int_equal(mkdir(in(b, "elsewhere"), 0700), 0);
    assert_int_equal(symlink("elsewhere", in(b, "run")), 0);
    assert_int_equal(gl_run_owner_take(in(b, "run"), GL_S(NEW), &b->why), GL_E_IO);
    assert_non_null(strstr(b->why.text, "symbolic link"));
    (void)snprintf(data, sizeof(data), "%s/data", in(b, "run"));
    assert_int_equal(gl_fs_mkdirs_own(data, 2, &b->why), GL_E_IO);
    assert_int_not_equal(stat(in(b, "elsewhere/data"), &st), 0);
    assert_int_equal(unlink(in(b, "run")), 0);
    take(b, NEW);
    assert_int_equal(gl_fs_mkdirs_own(data, 2, &b->why), 0);
    assert_int_equal(gl_fs_mkdirs_own(data, 2, &b->why), 0); /* and again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_another_job_left_is_set_aside_once),   TEST(what_was_cut_short_is_made_good),
        TEST(a_worker_that_empties_its_folder_keeps_it), TEST(a_name_tells_the_job),
        TEST(a_name_that_is_taken_is_not_replaced),      TEST(a_list_that_is_none_names_nobody),
        TEST(a_link_in_place_of_the_folder_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
