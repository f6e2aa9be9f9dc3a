/* spawn_bench [STEPS [CONCURRENCY [STEPS_PER_JOB]]] - steps per second through the keeper, compared
 * with a bare posix_spawn loop of the same concurrency.
 *
 * Both run /bin/true. The keeper adds a private folder, an input file, two pipes, a journal that is
 * synced before an end is reported, and a round trip over its socket. The two alternate, so that
 * other load on the machine affects both alike; the median of the rounds counts. */
#include <event2/event.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "exec/keeper_exec.h"
#include "os/fs.h"
#include "os/loop.h"

extern char **environ;

enum { ROUNDS = 5 };

struct slot {
    struct gl_exec_req req;
    struct run *run;
};

struct run {
    struct gl_loop *loop;
    struct gl_exec *x;
    char epoch[64];
    int steps, per_job, started, ended;
    int round;
    struct slot *slots;
    int concurrency;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double bare(int steps, int concurrency)
{
    char *argv[] = {(char *)(uintptr_t) "/bin/true", NULL};
    int running = 0;
    double begin = now();
    for (int i = 0; i < steps; i++) {
        if (running == concurrency) {
            (void)wait(NULL);
            running--;
        }
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0) {
            abort();
        }
        running++;
    }
    while (running-- > 0) {
        (void)wait(NULL);
    }
    return steps / (now() - begin);
}

static void on_started(struct gl_exec_req *req)
{
    if (req->status != 0) {
        (void)fprintf(stderr, "start: %s\n", req->why.text);
        abort();
    }
}

static void start_one(struct run *r, struct slot *slot)
{
    char job[64], attempt[64];
    gl_str argv[] = {GL_S("/bin/true")};
    int n = r->started++;
    (void)snprintf(job, sizeof(job), "JOB%d-%d", r->round, n / r->per_job);
    (void)snprintf(attempt, sizeof(attempt), "%d:attempt:1", (int)(slot - r->slots) + n * 1000);
    struct gl_exec_start s = {
        .key = {GL_S("default"), gl_str_of(job), gl_str_of(attempt)},
        .token = 1,
        .epoch = gl_str_of(r->epoch),
        .driver = GL_S("process"),
        .argv = argv,
        .argv_n = 1,
        .grace_ms = 10000,
        .beacon_ms = 5000,
        .input = GL_S("{}"),
    };
    slot->run = r;
    slot->req = (struct gl_exec_req){.done = on_started, .owner = slot};
    r->x->ops->start(r->x, &slot->req, &s);
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct run *r = owner;
    uint64_t number;
    gl_str rest;
    if (result->end != GL_EXEC_EXITED || result->exit_code != 0 ||
        !gl_str_u64(gl_str_cut(key->attempt, ':', &rest), &number)) {
        abort();
    }
    r->x->ops->ack(r->x, key, token);
    if (r->started < r->steps) {
        start_one(r, &r->slots[number % 1000]);
    }
    if (++r->ended == r->steps) {
        gl_loop_stop(r->loop);
    }
}

static void on_up(void *owner, gl_str epoch)
{
    struct run *r = owner;
    (void)snprintf(r->epoch, sizeof(r->epoch), "%.*s", GL_STR_ARG(epoch));
    gl_loop_stop(r->loop);
}

static void on_down(void *owner, const char *why)
{
    (void)owner;
    (void)fprintf(stderr, "down: %s\n", why);
    exit(1);
}

static void on_beacon(void *owner, const struct gl_attempt_key *key, uint64_t token)
{
    (void)owner;
    (void)key;
    (void)token;
}

static void on_closed(void *owner)
{
    gl_loop_stop(((struct run *)owner)->loop);
}

static double kept(struct run *r, int steps)
{
    r->steps = steps;
    r->started = r->ended = 0;
    r->round++;
    double begin = now();
    for (int i = 0; i < r->concurrency && i < steps; i++) {
        start_one(r, &r->slots[i]);
    }
    gl_loop_run(r->loop);
    return steps / (now() - begin);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof(*values), by_size);
    return values[ROUNDS / 2];
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int open_run(struct run *r, const char *data, struct gl_why *why)
{
    struct gl_exec_events events = {
        .owner = r, .up = on_up, .down = on_down, .ended = on_ended, .beacon = on_beacon};
    struct gl_keeper_exec_config config = {
        .data_dir = data, .keeper_path = getenv("GLIA_KEEPER"), .idle_ms = 100};
    int err = gl_loop_new(&r->loop, why);
    if (err == 0) {
        err = gl_keeper_exec_open(&r->x, &config, r->loop, &events, why);
    }
    if (err == 0) {
        gl_keeper_exec_connect(r->x, 1);
        gl_loop_run(r->loop);
    }
    return err;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 2000;
    struct run r = {.concurrency = argc > 2 ? atoi(argv[2]) : 8,
                    .per_job = argc > 3 ? atoi(argv[3]) : 1};
    char data[PATH_MAX];
    double bare_rates[ROUNDS], kept_rates[ROUNDS];
    struct gl_why why;
    if (r.concurrency < 1 || r.concurrency > 1000 || steps < 1 || r.per_job < 1) {
        return 2;
    }
    r.slots = gl_mem_alloc(sizeof(struct slot) * (size_t)r.concurrency);
    const char *folder = getenv("TMPDIR");
    (void)snprintf(data, sizeof(data), "%s/glia-spawn-XXXXXX", folder != NULL ? folder : "/tmp");
    if (mkdtemp(data) == NULL || open_run(&r, data, &why) < 0) {
        (void)fprintf(stderr, "spawn_bench: %s\n", why.text);
        return 1;
    }
    for (int i = 0; i < ROUNDS; i++) {
        bare_rates[i] = bare(steps, r.concurrency);
        kept_rates[i] = kept(&r, steps);
        (void)printf("round %d: bare %.0f/s, keeper %.0f/s (%.0f %%)\n", i, bare_rates[i],
                     kept_rates[i], 100 * kept_rates[i] / bare_rates[i]);
    }
    double b = median(bare_rates), k = median(kept_rates);
    (void)printf("/bin/true, %d at once: bare posix_spawn %.0f/s, keeper %.0f/s: %.0f %%\n",
                 r.concurrency, b, k, 100 * k / b);
    r.x->ops->close(r.x, on_closed, &r);
    gl_loop_run(r.loop);
    gl_loop_free(r.loop);
    (void)nftw(data, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    gl_mem_free(r.slots);
    return 0;
}
