#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "os/paths.h"
#include "support/bench.h"

static void folders_are_made_for_their_owner_only(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_mkdirs(in(b, "a/b//c/"), &b->why), 0);
    assert_int_equal(mode_of(in(b, "a")), 0700);
    assert_int_equal(mode_of(in(b, "a/b/c")), 0700);
    assert_int_equal(gl_fs_mkdirs(in(b, "a/b/c"), &b->why), 0);
}

static void a_file_in_the_way_of_a_folder_is_named(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_write(in(b, "a"), GL_S("x"), &b->why), 0);
    assert_int_equal(gl_fs_mkdirs(in(b, "a/b"), &b->why), GL_E_IO);
    assert_non_null(strstr(b->why.text, in(b, "a")));
}

static void a_written_file_is_read_back_whole_and_is_private(void **state)
{
    struct bench *b = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_buf_c(&out, "before:");
    assert_int_equal(gl_fs_write(in(b, "f"), GL_S("old"), &b->why), 0);
    assert_int_equal(gl_fs_write(in(b, "f"), GL_S("new text"), &b->why), 0);
    assert_int_equal(gl_fs_read(in(b, "f"), 8, &out, &b->why), 0);
    assert_true(gl_str_is(gl_buf_view(&out), "before:new text"));
    assert_int_equal(mode_of(in(b, "f")), 0600);
}

static void a_file_larger_than_the_limit_is_refused_and_nothing_is_kept(void **state)
{
    struct bench *b = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_buf_c(&out, "kept");
    assert_int_equal(gl_fs_write(in(b, "f"), GL_S("123456789"), &b->why), 0);
    assert_int_equal(gl_fs_read(in(b, "f"), 8, &out, &b->why), GL_E_LIMIT);
    assert_true(gl_str_is(gl_buf_view(&out), "kept"));
}

static void a_missing_file_is_not_found(void **state)
{
    struct bench *b = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    assert_int_equal(gl_fs_read(in(b, "nothing"), 8, &out, &b->why), GL_E_NOT_FOUND);
    assert_int_equal(gl_fs_write(in(b, "no/folder"), GL_S("x"), &b->why), GL_E_NOT_FOUND);
}

static void a_failed_write_leaves_no_temporary_file(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_mkdirs(in(b, "d/target"), &b->why), 0);
    assert_int_not_equal(gl_fs_write(in(b, "d/target"), GL_S("x"), &b->why), 0);
    assert_int_equal(rmdir(in(b, "d/target")), 0);
    assert_int_equal(rmdir(in(b, "d")), 0); /* succeeds only when empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folders_are_made_for_their_owner_only),
        TEST(a_file_in_the_way_of_a_folder_is_named),
        TEST(a_written_file_is_read_back_whole_and_is_private),
        TEST(a_file_larger_than_the_limit_is_refused_and_nothing_is_kept),
        TEST(a_missing_file_is_not_found),
        TEST(a_failed_write_leaves_no_temporary_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
