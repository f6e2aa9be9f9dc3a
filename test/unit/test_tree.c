#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/tree.h"
#include "support/bench.h"

static void a_tree_goes_with_all_it_holds(void **state)
{
    struct bench *b = *state;
    struct gl_tree_sum sum = {0}, measured = {0};
    write_file(b, "t/a/b/c", "some text");
    write_file(b, "t/d", "more");
    assert_int_equal(mkfifo(in(b, "t/pipe"), 0600), 0);
    gl_tree_measure(AT_FDCWD, in(b, "t"), &measured);
    assert_true(gl_tree_remove(AT_FDCWD, in(b, "t"), &sum));
    assert_false(is_there(b, "t"));
    assert_int_equal(sum.files_n, 3);
    assert_int_equal(sum.files_n, measured.files_n);
    assert_int_equal(sum.bytes, measured.bytes);
}

static void a_link_is_removed_and_not_followed(void **state)
{
    struct bench *b = *state;
    struct gl_tree_sum sum = {0};
    write_file(b, "outside/precious", "x");
    write_file(b, "t/file", "x");
    assert_int_equal(symlink(in(b, "outside"), in(b, "t/link")), 0);
    assert_int_equal(symlink(in(b, "outside"), in(b, "top")), 0);
    assert_true(gl_tree_remove(AT_FDCWD, in(b, "t"), &sum));
    assert_true(gl_tree_remove(AT_FDCWD, in(b, "top"), &sum));
    assert_false(is_there(b, "t"));
    assert_false(is_there(b, "top"));
    assert_true(is_there(b, "outside/precious"));
}

static void a_locked_folder_is_no_obstacle(void **state)
{
    struct bench *b = *state;
    struct gl_tree_sum sum = {0};
    write_file(b, "t/shut/file", "x");
    assert_int_equal(chmod(in(b, "t/shut"), 0), 0);
    assert_int_equal(chmod(in(b, "t"), 0500), 0);
    assert_true(gl_tree_remove(AT_FDCWD, in(b, "t"), &sum));
    assert_false(is_there(b, "t"));
}

static void nesting_deeper_than_a_path_goes_too(void **state)
{
    struct bench *b = *state;
    struct gl_tree_sum sum = {0};
    enum { DEPTH = 3000 };
    int fd = open(b->folder.path, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(fd, "deep", 0700), 0);
        int next = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_true(gl_tree_remove(AT_FDCWD, in(b, "deep"), &sum));
    assert_false(is_there(b, "deep"));
}

static void what_is_not_there_is_removed_already(void **state)
{
    struct bench *b = *state;
    struct gl_tree_sum sum = {0};
    assert_true(gl_tree_remove(AT_FDCWD, in(b, "nothing"), &sum));
    assert_int_equal(sum.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tree_goes_with_all_it_holds),        TEST(a_link_is_removed_and_not_followed),
        TEST(a_locked_folder_is_no_obstacle),       TEST(nesting_deeper_than_a_path_goes_too),
        TEST(what_is_not_there_is_removed_already),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
