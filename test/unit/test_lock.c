#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "os/lock.h"
#include "support/bench.h"

static void a_second_holder_is_told_the_pid_of_the_first(void **state)
{
    struct bench *b = *state;
    struct gl_lock first = {.fd = -1}, second = {.fd = -1};
    assert_int_equal(gl_lock_take(&first, b->folder.path, &b->why), 0);
    assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), GL_E_BUSY);
    assert_int_equal(second.fd, -1);
    assert_non_null(strstr(b->why.text, gl_str_fmt(&b->a, "process %d", (int)getpid()).p));
    gl_lock_drop(&first);
    assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), 0);
    gl_lock_drop(&second);
    gl_lock_drop(&second);
}

static void the_lock_vanishes_with_its_holder(void **state)
{
    struct bench *b = *state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gl_lock l;
        _exit(gl_lock_take(&l, b->folder.path, NULL) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct gl_lock l;
    assert_int_equal(gl_lock_take(&l, b->folder.path, &b->why), 0);
    gl_lock_drop(&l);
}

static void the_lock_is_not_inherited_over_exec(void **state)
{
    struct bench *b = *state;
    struct gl_lock l;
    assert_int_equal(gl_lock_take(&l, b->folder.path, &b->why), 0);
    assert_true(fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
    gl_lock_drop(&l);
}

static void the_holder_of_a_lock_is_known(void **state)
{
    struct bench *b = *state;
    struct gl_lock_holder holder;
    struct gl_lock first, second = {.fd = -1};

    assert_false(gl_lock_find(b->folder.path, &holder)); /* there is no such file */
    assert_int_equal(gl_lock_take_as(&first, b->folder.path, "serve", &b->why), 0);
    assert_true(gl_lock_find(b->folder.path, &holder));
    assert_int_equal(holder.pid, getpid());
    assert_string_equal(holder.what, "serve");
    assert_true(holder.since > 0);
    assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), GL_E_BUSY);
    assert_non_null(strstr(b->why.text, "(glia serve), since 20"));
    gl_lock_drop(&first);
    assert_false(gl_lock_find(b->folder.path, &holder));
    /* A shorter text replaces a longer one. */
    assert_int_equal(gl_lock_take(&first, b->folder.path, &b->why), 0);
    assert_true(gl_lock_find(b->folder.path, &holder));
    assert_string_equal(holder.what, "");
    gl_lock_drop(&first);
}

static void a_lock_that_tells_nonsense_is_busy_all_the_same(void **state)
{
    static const char *const texts[] = {"", "x\n", "12", "-\n\n\n", "1\nnever\n../../etc\n"};
    struct bench *b = *state;
    struct gl_lock first, second = {.fd = -1};

    assert_int_equal(gl_lock_take(&first, b->folder.path, &b->why), 0);
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        assert_int_equal(ftruncate(first.fd, 0), 0);
        assert_int_equal(pwrite(first.fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
        assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), GL_E_BUSY);
        assert_null(strstr(b->why.text, ".."));
    }
    gl_lock_drop(&first);
}

static void a_reservation_is_seen_by_others_and_ends_with_its_holder(void **state)
{
    struct bench *b = *state;
    struct gl_lock reservation, other = {.fd = -1}, lock;

    assert_false(gl_lock_is_reserved(b->folder.path));
    assert_int_equal(gl_lock_reserve(&reservation, b->folder.path, &b->why), 0);
    assert_true(gl_lock_is_reserved(b->folder.path));
    assert_int_equal(gl_lock_reserve(&other, b->folder.path, &b->why), GL_E_BUSY);
    assert_int_equal(gl_lock_take(&lock, b->folder.path, &b->why), 0); /* it is not the lock */
    gl_lock_drop(&reservation);
    assert_false(gl_lock_is_reserved(b->folder.path));
    gl_lock_drop(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_second_holder_is_told_the_pid_of_the_first),
        TEST(the_lock_vanishes_with_its_holder),
        TEST(the_lock_is_not_inherited_over_exec),
        TEST(the_holder_of_a_lock_is_known),
        TEST(a_lock_that_tells_nonsense_is_busy_all_the_same),
        TEST(a_reservation_is_seen_by_others_and_ends_with_its_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
