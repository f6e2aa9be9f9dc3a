#include "support/cmocka_all.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

static void break_assertion(void)
{
    GL_ASSERT(2 < 1);
}

static void run_out_of_memory(void)
{
    gl_check_out_of_memory(4711);
}

/* What it says when it aborts. */
static void abort_of(void (*run)(void), char text[static 512])
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], 2);
        (void)signal(SIGABRT, SIG_DFL);
        run();
        _exit(0);
    }
    (void)close(fds[1]);
    memset(text, 0, 512);
    assert_true(read(fds[0], text, 511) > 0);
    (void)close(fds[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_broken_assertion_aborts_and_says_where(void **state)
{
    (void)state;
    char text[512];
    abort_of(break_assertion, text);
    assert_non_null(strstr(text, "test_check.c"));
    assert_non_null(strstr(text, "assertion failed: 2 < 1"));
}

static void running_out_of_memory_does_not_look_like_a_defect(void **state)
{
    (void)state;
    char text[512];
    abort_of(run_out_of_memory, text);
    assert_non_null(strstr(text, "memory:"));
    assert_non_null(strstr(text, "4711 bytes"));
    assert_null(strstr(text, "assertion"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_assertion_aborts_and_says_where),
        cmocka_unit_test(running_out_of_memory_does_not_look_like_a_defect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
