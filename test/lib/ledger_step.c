/* ledger_step.c - the step of the crash tests: it writes what happens to it into a file that none
 * of the crashes can touch.
 *
 *     ledger_step LEDGER WEIGHT SLEEP_MS PLAN
 *
 * Appends "start JOB STEP ATTEMPT ATTEMPT_ID PID TIME", sleeps, appends the same with "end" and the
 * exit code, and exits with it. PLAN is one code per attempt ("1,1,0"); the last one is for all
 * further attempts. If the code is 0, the output is {"v":N}: WEIGHT and all the "v" of the steps
 * before it, so that a value that got lost or was taken twice is noticed at the end of the flow. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES = 512,
    INPUT_BYTES = 1 << 20,
    EXIT_BROKEN = 99,
    FULL_TRIES = 500,
    FULL_PAUSE_MS = 50,
};

/* A ledger that cannot be written makes every conclusion wrong: say so by a code no plan has. */
static void give_up(const char *what)
{
    (void)fprintf(stderr, "ledger_step: %s: %s\n", what, strerror(errno));
    _exit(EXIT_BROKEN);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL) {
        give_up(name);
    }
    return value;
}

static long long now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One write to a file opened for appending: lines of several steps do not mix. */
static void note(const char *ledger, const char *what, int code)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof(line), "%s %s %s %s %s %ld %lld %d\n", what,
                     variable("GLIA_JOB_ID"), variable("GLIA_STEP_ID"), variable("GLIA_ATTEMPT"),
                     variable("GLIA_ATTEMPT_ID"), (long)getpid(), now_ns(), code);
    int fd = open(ledger, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || n >= (int)sizeof(line) || write(fd, line, (size_t)n) != n) {
        give_up(ledger);
    }
    (void)close(fd);
}

static int code_of(const char *plan, long attempt)
{
    for (; attempt > 1 && strchr(plan, ',') != NULL; attempt--) {
        plan = strchr(plan, ',') + 1;
    }
    return atoi(plan);
}

static long long sum_of_input(void)
{
    static char text[INPUT_BYTES + 1];
    int fd = open(variable("GLIA_INPUT_FILE"), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, INPUT_BYTES);
    long long sum = 0;

    if (n <= 0) {
        give_up("GLIA_INPUT_FILE");
    }
    for (const char *at = text; (at = strstr(at, "\"v\":")) != NULL;) {
        at += strlen("\"v\":");
        sum += strtoll(at, NULL, 10);
    }
    return sum;
}

static void sleep_ms(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* On a full disk it waits: the tests want to know what Glia makes of it, not a step. */
static void write_output(long long value)
{
    char text[LINE_BYTES];
    int n = snprintf(text, sizeof(text), "{\"v\":%lld}", value);

    for (int i = 0; i < FULL_TRIES; i++) {
        int fd = open(variable("GLIA_OUTPUT"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd >= 0 && write(fd, text, (size_t)n) == n && close(fd) == 0) {
            return;
        }
        if (errno != ENOSPC) {
            break;
        }
        (void)close(fd);
        sleep_ms(FULL_PAUSE_MS);
    }
    give_up("GLIA_OUTPUT");
}

int main(int argc, char **argv)
{
    long ms;
    int code;

    if (argc != 5) {
        give_up("usage: ledger_step LEDGER WEIGHT SLEEP_MS PLAN");
    }
    ms = strtol(argv[3], NULL, 10);
    code = code_of(argv[4], strtol(variable("GLIA_ATTEMPT"), NULL, 10));
    note(argv[1], "start", 0);
    sleep_ms(ms);
    if (code == 0) {
        write_output(strtoll(argv[2], NULL, 10) + sum_of_input());
    }
    note(argv[1], "end", code);
    return code;
}
