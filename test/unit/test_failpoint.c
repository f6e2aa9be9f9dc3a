#include "support/cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/failpoint.h"

/* Reach "a" and "b" in turn, three times each, in a process of its own. Returns how often it came
 * past them, or -1 if it did not end by SIGKILL or by itself. */
static int passes(const char *setting)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setenv("GLIA_FAILPOINT", setting, 1);
        for (int i = 0; i < 3; i++) {
            GL_FAILPOINT("a");
            ssize_t n = write(fds[1], "a", 1);
            GL_FAILPOINT("b");
            n += write(fds[1], "b", 1);
            if (n != 2) {
                _exit(1);
            }
        }
        _exit(0);
    }
    (void)close(fds[1]);
    int status, count = 0;
    char c;
    while (read(fds[0], &c, 1) == 1) {
        count++;
    }
    (void)close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return killed || status == 0 ? count : -1;
}

#ifdef GL_WITH_FAILPOINTS

static void a_failpoint_kills_where_and_when_it_was_told(void **state)
{
    (void)state;
    assert_int_equal(passes("a"), 0);
    assert_int_equal(passes("b"), 1);
    assert_int_equal(passes("a:2"), 2);
    assert_int_equal(passes("b:3"), 5);
    assert_int_equal(passes("b:4"), 6);
    assert_int_equal(passes("c"), 6);
    assert_int_equal(passes(""), 6);
}

#else

static void a_build_without_failpoints_passes_them_all(void **state)
{
    (void)state;
    assert_int_equal(passes("a"), 6);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef GL_WITH_FAILPOINTS
        cmocka_unit_test(a_failpoint_kills_where_and_when_it_was_told),
#else
        cmocka_unit_test(a_build_without_failpoints_passes_them_all),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
