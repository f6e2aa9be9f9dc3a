/* fault_step.c - the step of the fault tests: it writes what happens to it into a ledger that no
 * node, keeper or server can touch.
 *
 *     fault_step LEDGER MS [deaf] [gate=FILE]
 *
 * Appends "start JOB STEP ATTEMPT ATTEMPT_ID PID NS WHERE", then, while it works, the same with
 * "beat" every 100 ms, so that an attempt that should be gone is seen if it is not; at its end
 * "end", and "stopped" if it is told to stop. WHERE is the file for its output, by which its node
 * is known. It works for MS milliseconds, or until FILE exists. A deaf one does not stop. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES = 1024,
    TURN_MS = 20,
    BEAT_MS = 100,
    EXIT_BROKEN = 99,
    EXIT_STOPPED = 143,
};

static volatile sig_atomic_t is_stopped;

static void on_term(int number)
{
    (void)number;
    is_stopped = 1;
}

/* A ledger that cannot be written makes every conclusion wrong. */
static void give_up(const char *what)
{
    (void)fprintf(stderr, "fault_step: %s: %s\n", what, strerror(errno));
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

static long long now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One write to a file opened for appending: lines of several steps do not mix. */
static void note(int fd, const char *what)
{
    char line[LINE_BYTES];
    struct timespec t;
    int n;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    n = snprintf(line, sizeof(line), "%s %s %s %s %s %ld %lld %s\n", what, variable("GLIA_JOB_ID"),
                 variable("GLIA_STEP_ID"), variable("GLIA_ATTEMPT"), variable("GLIA_ATTEMPT_ID"),
                 (long)getpid(), (long long)t.tv_sec * 1000000000 + t.tv_nsec,
                 variable("GLIA_OUTPUT"));
    if (n >= (int)sizeof(line) || write(fd, line, (size_t)n) != n) {
        give_up("the ledger");
    }
}

/* True when the work is done, false when it was told to stop. */
static bool work(int fd, long ms, const char *gate)
{
    long long end = now_ms() + ms, beat = now_ms() + BEAT_MS;

    while (gate != NULL ? access(gate, F_OK) != 0 : now_ms() < end) {
        (void)nanosleep(&(struct timespec){.tv_nsec = TURN_MS * 1000000L}, NULL);
        if (is_stopped) {
            return false;
        }
        if (now_ms() >= beat) {
            note(fd, "beat");
            beat += BEAT_MS;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_term};
    const char *gate = NULL;
    int fd;

    if (argc < 3) {
        give_up("usage: fault_step LEDGER MS [deaf] [gate=FILE]");
    }
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "deaf") == 0) {
            action.sa_handler = SIG_IGN;
        } else if (strncmp(argv[i], "gate=", 5) == 0) {
            gate = argv[i] + 5;
        }
    }
    (void)sigaction(SIGTERM, &action, NULL);
    fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        give_up(argv[1]);
    }
    note(fd, "start");
    if (!work(fd, strtol(argv[2], NULL, 10), gate)) {
        note(fd, "stopped");
        return EXIT_STOPPED;
    }
    note(fd, "end");
    return 0;
}
