/* main.c - glia-sim: the command line, and many histories. The only file of this folder that uses
 * processes and streams: forked workers, one per core, each run one history after another.
 *
 * A worker reports to its parent through a pipe, in lines: "B <seed>" when a history begins, "E
 * <seed> <ok>" when it ends, "M <hits> <mark>" at its own end. So if a history crashes its process,
 * its seed is known. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "build.h"
#include "sim/replay.h"
#include "sim/sim_cluster.h"
#include "sim/sim_swarm.h"

enum { WORKERS_MAX = 64, LINE_BYTES = 512, RENEW_PER_MILLION = 100000 };

struct arguments {
    uint64_t seed, seeds_n;
    struct sim_swarm_options options;
    int plant;
    const char *replay; /* a recording to replay; NULL: none */
    const char *job;
    uint64_t until;
    unsigned workers_n;
    bool trace, marks, keep_going, twice, renew, many, cluster;
};

struct mark { /* hits over all histories */
    char *name;
    uint64_t hits;
};

struct seed_tally {
    uint64_t passed, failed;
    struct gl_map marks; /* name -> struct mark */
};

static const char usage[] =
    "usage: glia-sim [--seed N] [--seeds COUNT] [options]\n"
    "\n"
    "Runs the production node through seeded histories of faults and checks that nothing breaks.\n"
    "\n"
    "  --seed N        the history to run, or the first of many (decimal or 0x...; default 1)\n"
    "  --seeds COUNT   run COUNT histories, spread over the cores\n"
    "  --minutes M     virtual minutes of faults (default: drawn, 10 or more)\n"
    "  --jobs N        jobs submitted in a history (default: drawn, 30 or more)\n"
    "  --set a=1,b=2   set options of the history by hand (their names are printed first)\n"
    "  --trace         print every line of the trace\n"
    "  --marks         print how often each mark was hit\n"
    "  --twice         run each history twice and compare the hashes of their traces\n"
    "  --renew         like --twice, with cores saved and restored in the second run\n"
    "  --record        record all events and replay them (every eighth history does so anyway)\n"
    "  --cluster       simulate several machines on one store, instead of one machine\n"
    "  --agents        include bundles among the jobs\n"
    "  --keep-going    do not stop at the first history that fails\n"
    "  --workers N     processes (default: one per core)\n"
    "  --plant N       plant bug number N (needs a build with -Dplant=true)\n"
    "\n"
    "       glia-sim --replay FILE [--until N] [--job ID] [--trace]\n"
    "\n"
    "Replays a recording of a node, and compares each decision with the recorded one.\n"
    "\n"
    "  --until N       stop after event number N\n"
    "  --job ID        print what happens to jobs whose ids begin with ID\n"
    "  --trace         print everything that happens\n";

/* ---- one history ---- */

static void print_line(void *owner, const char *line)
{
    (void)owner;
    (void)printf("%s\n", line);
}

static void print_tail(const struct sim_world *w)
{
    (void)printf("the last lines of the trace:\n");
    sim_world_tail(w, print_line, NULL);
}

/* The options drawn, before the history begins. */
static void write_head(const struct sim_swarm *s, struct gl_buf *out)
{
    gl_buf_fmt(out, "options: minutes=%lld jobs=%zu slots=%u+%u crashes=%u faults=%u ",
               (long long)(s->phase_one_ends - s->world.now) / 60000, s->client.orders_n,
               s->pools.default_slots, s->pools.gpu_slots, s->crashes_left, s->world.fault_budget);
    sim_options_print(&s->world.options, out);
    gl_buf_char(out, ' ');
    sim_agent_options_print(&s->world.bundles, out);
    gl_buf_char(out, '\n');
}

static void print_text(struct gl_buf *text)
{
    (void)fwrite(text->p, 1, text->n, stdout);
    gl_buf_reset(text);
}

static void write_tail(const struct sim_swarm *s, struct gl_buf *out)
{
    const struct sim_world *w = &s->world;
    gl_buf_fmt(
        out,
        "ok: hash=%016llx lines=%llu steps=%llu minutes=%lld jobs=%zu processes=%zu commits=%llu "
        "refused=%llu crashes=%u zombies=%u keeper_crashes=%u outages=%u jumps=%u faults=%u\n",
        (unsigned long long)w->hash, (unsigned long long)w->lines_n,
        (unsigned long long)w->calls_run, (long long)(w->now - SIM_EPOCH_MS) / 60000,
        gl_map_count(&s->checks.facts.jobs), s->keeper.ledger_n,
        (unsigned long long)s->disk.commits_n, (unsigned long long)s->disk.refusals_n, s->crashes_n,
        s->zombies_n, s->keeper_crashes_n, s->outages_n, s->jumps_n, w->faults_hit);
}

static void print_replay(const struct arguments *args, uint64_t seed)
{
    (void)printf("replay with: glia-sim --seed %llu --trace", (unsigned long long)seed);
    if (args->cluster) {
        (void)printf(" --cluster");
    }
    if (args->options.agents) {
        (void)printf(" --agents");
    }
    if (args->plant != 0) {
        (void)printf(" --plant %d", args->plant);
    }
    if (args->options.minutes != 0) {
        (void)printf(" --minutes %lld", (long long)args->options.minutes);
    }
    if (args->options.jobs_n != 0) {
        (void)printf(" --jobs %zu", args->options.jobs_n);
    }
    if (args->options.set != NULL) {
        (void)printf(" --set %s", args->options.set);
    }
    (void)printf(" (build %s)\n", GL_BUILD);
}

static void print_failure(const struct arguments *args, const struct sim_world *w)
{
    print_tail(w);
    (void)printf("seed %llu failed: %s\n", (unsigned long long)w->seed, w->failure);
    print_replay(args, w->seed);
}

static void count_mark(struct seed_tally *t, const char *name, uint64_t hits)
{
    struct mark *m = gl_map_find(&t->marks, gl_str_of(name));
    if (m == NULL) {
        m = gl_mem_alloc(sizeof(*m));
        m->name = strdup(name);
        gl_map_add(&t->marks, gl_str_of(m->name), m);
    }
    m->hits += hits;
}

static void count_marks(struct seed_tally *t, const struct sim_world *w)
{
    const struct sim_mark *m;
    for (size_t i = 0; (m = gl_map_next(&w->marks, &i)) != NULL;) {
        count_mark(t, m->name, m->hits);
    }
}

/* False: a checker failed. */
/* One machine, or several. */
union history {
    struct sim_swarm alone;
    struct sim_cluster cluster;
};

static struct sim_world *history_init(union history *h, const struct arguments *args,
                                      const struct sim_swarm_options *options, struct gl_buf *head)
{
    gl_buf_fmt(head, "glia-sim: seed %llu, build %s\n", (unsigned long long)options->seed,
               GL_BUILD);
    if (args->cluster) {
        sim_cluster_init(&h->cluster, options);
        sim_cluster_head(&h->cluster, head);
        return &h->cluster.world;
    }
    sim_swarm_init(&h->alone, options);
    write_head(&h->alone, head);
    return &h->alone.world;
}

static void history_done(union history *h, const struct arguments *args)
{
    if (args->cluster) {
        sim_cluster_done(&h->cluster);
    } else {
        sim_swarm_done(&h->alone);
    }
}

static void print_end(const union history *h, const struct arguments *args)
{
    struct gl_buf tail = {0};
    if (args->cluster) {
        sim_cluster_tail(&h->cluster, &tail);
    } else {
        write_tail(&h->alone, &tail);
    }
    print_text(&tail);
    gl_buf_done(&tail);
}

static bool run_once(const struct arguments *args, uint64_t seed, uint32_t renew,
                     struct seed_tally *t, uint64_t *ret_hash)
{
    struct sim_swarm_options options = args->options;
    options.renew = renew;
    options.seed = seed;
    options.print = args->trace ? print_line : NULL;
    union history *h = gl_mem_alloc(sizeof(*h));
    struct gl_buf head = {0};
    struct sim_world *w = history_init(h, args, &options, &head);
    if (!args->many) {
        print_text(&head);
        (void)fflush(stdout);
    }
    bool ok = args->cluster ? sim_cluster_run(&h->cluster) : sim_swarm_run(&h->alone);
    if (!ok) {
        print_text(&head);
        print_failure(args, w);
    } else if (!args->many) {
        print_end(h, args);
    }
    gl_buf_done(&head);
    count_marks(t, w);
    *ret_hash = w->hash;
    history_done(h, args);
    gl_mem_free(h);
    (void)fflush(stdout);
    return ok;
}

static bool run_seed(const struct arguments *args, uint64_t seed, struct seed_tally *t)
{
    uint64_t first;
    bool ok = run_once(args, seed, 0, t, &first);
    if (ok && (args->twice || args->renew)) {
        uint64_t second;
        ok = run_once(args, seed, args->renew ? RENEW_PER_MILLION : 0, t, &second);
        if (first != second) {
            (void)printf(
                "seed %llu failed: the same seed gave a different history: %016llx and %016llx\n",
                (unsigned long long)seed, (unsigned long long)first, (unsigned long long)second);
            ok = false;
        }
    }
    return ok;
}

/* ---- many histories ---- */

struct worker {
    pid_t pid;
    int from; /* read end of its pipe; -1: closed */
    struct gl_buf text;
    uint64_t seed; /* of the current history */
    bool busy;
};

static void work(const struct arguments *args, unsigned number, int to)
{
    struct seed_tally t = {0};
    gl_map_init(&t.marks);
    FILE *out = fdopen(to, "w");
    GL_ASSERT(out != NULL);
    for (uint64_t i = number; i < args->seeds_n; i += args->workers_n) {
        uint64_t seed = args->seed + i;
        (void)fprintf(out, "B %llu\n", (unsigned long long)seed);
        (void)fflush(out);
        bool ok = run_seed(args, seed, &t);
        (void)fprintf(out, "E %llu %d\n", (unsigned long long)seed, ok);
        if (!ok && !args->keep_going) {
            break;
        }
    }
    struct mark *m;
    for (size_t i = 0; (m = gl_map_next(&t.marks, &i)) != NULL;) {
        (void)fprintf(out, "M %llu %s\n", (unsigned long long)m->hits, m->name);
        free(m->name);
        gl_mem_free(m);
    }
    gl_map_done(&t.marks);
    (void)fclose(out);
}

static bool worker_start(const struct arguments *args, struct worker *workers, unsigned number)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        return false;
    }
    if (pid == 0) {
        (void)close(ends[0]);
        for (unsigned i = 0; i < number; i++) {
            (void)close(workers[i].from);
        }
        work(args, number, ends[1]);
        (void)fflush(stdout);
        exit(0);
    }
    (void)close(ends[1]);
    workers[number] = (struct worker){.pid = pid, .from = ends[0]};
    return true;
}

static void on_line(struct seed_tally *t, struct worker *w, char *line)
{
    char *rest = NULL;
    unsigned long long number = strtoull(line + 2, &rest, 10);
    if (line[0] == 'B') {
        w->seed = number;
        w->busy = true;
    } else if (line[0] == 'E') {
        bool ok = rest[1] == '1';
        t->passed += ok ? 1 : 0;
        t->failed += ok ? 0 : 1;
        w->busy = false;
    } else if (line[0] == 'M') {
        count_mark(t, rest + 1, number);
    }
}

/* A history that crashes its process leaves no trace, so it is run again with one. */
static void tell_last_lines(const struct arguments *args, uint64_t seed)
{
    int ends[2];
    (void)fflush(stdout);
    pid_t pid = pipe(ends) == 0 ? fork() : -1;
    if (pid < 0) {
        return;
    }
    if (pid == 0) {
        struct arguments loud = *args;
        struct seed_tally t = {0};
        uint64_t hash;
        loud.trace = true;
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)setvbuf(stdout, NULL, _IOLBF, 0); /* lines printed before a crash arrive, too */
        (void)close(ends[0]);
        (void)run_once(&loud, seed, args->renew ? RENEW_PER_MILLION : 0, &t, &hash);
        _exit(0);
    }
    (void)close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    char(*tail)[SIM_LINE_BYTES] = gl_mem_alloc(sizeof(*tail) * SIM_TAIL_LINES);
    size_t n = 0;
    while (in != NULL && fgets(tail[n % SIM_TAIL_LINES], SIM_LINE_BYTES, in) != NULL) {
        n++;
    }
    (void)printf("the last lines of the trace:\n");
    for (size_t i = n > SIM_TAIL_LINES ? n - SIM_TAIL_LINES : 0; i < n; i++) {
        (void)printf("%s", tail[i % SIM_TAIL_LINES]);
    }
    gl_mem_free(tail);
    (void)fclose(in);
    (void)waitpid(pid, NULL, 0); /* its exit status is known */
}

/* Reads what there is; at the end of the pipe, gets the process's exit status. */
static void worker_read(const struct arguments *args, struct seed_tally *t, struct worker *w)
{
    char bytes[4096];
    ssize_t n = read(w->from, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) {
        return;
    }
    if (n > 0) {
        gl_buf_add(&w->text, bytes, (size_t)n);
        size_t start = 0;
        for (size_t i = 0; i < w->text.n; i++) {
            if (w->text.p[i] == '\n') {
                w->text.p[i] = 0;
                on_line(t, w, w->text.p + start);
                start = i + 1;
            }
        }
        memmove(w->text.p, w->text.p + start, w->text.n - start);
        w->text.n -= start;
        return;
    }
    (void)close(w->from);
    w->from = -1;
    gl_buf_done(&w->text);
    int status = 0;
    (void)waitpid(w->pid, &status, 0); /* it is our worker, and has closed its pipe */
    if (w->busy) {
        t->failed++;
        tell_last_lines(args, w->seed);
        (void)printf("seed %llu failed: the process died (%s %d)\n", (unsigned long long)w->seed,
                     WIFSIGNALED(status) ? "signal" : "exit code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        print_replay(args, w->seed);
    }
}

static void run_many(const struct arguments *args, struct seed_tally *t)
{
    struct worker workers[WORKERS_MAX];
    for (unsigned i = 0; i < args->workers_n; i++) {
        if (!worker_start(args, workers, i)) {
            (void)fprintf(stderr, "glia-sim: cannot start a worker\n");
            exit(2);
        }
    }
    for (unsigned open = args->workers_n; open > 0;) {
        struct pollfd fds[WORKERS_MAX];
        for (unsigned i = 0; i < args->workers_n; i++) {
            fds[i] = (struct pollfd){.fd = workers[i].from, .events = POLLIN};
        }
        (void)poll(fds, args->workers_n, -1); /* interrupted: poll again */
        for (unsigned i = 0; i < args->workers_n; i++) {
            if (fds[i].revents != 0) {
                worker_read(args, t, &workers[i]);
                open -= workers[i].from < 0 ? 1 : 0;
            }
        }
        for (unsigned i = 0; t->failed > 0 && !args->keep_going && i < args->workers_n; i++) {
            if (workers[i].from >= 0) {
                (void)kill(workers[i].pid, SIGTERM);
                workers[i].busy = false;
            }
        }
    }
}

/* ---- argv ---- */

static uint64_t number_of(const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = text == NULL ? 0 : strtoull(text, &end, 0);
    if (text == NULL || *text == 0 || *end != 0 || errno != 0) {
        (void)fprintf(stderr, "glia-sim: '%s' is not a number\n\n%s", text == NULL ? "" : text,
                      usage);
        exit(2);
    }
    return v;
}

static bool read_flag(struct arguments *args, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"--trace", &args->trace},           {"--marks", &args->marks},
        {"--twice", &args->twice},           {"--renew", &args->renew},
        {"--keep-going", &args->keep_going}, {"--record", &args->options.record},
        {"--cluster", &args->cluster},       {"--agents", &args->options.agents},
    };
    for (size_t i = 0; i < GL_COUNT(flags); i++) {
        if (strcmp(name, flags[i].name) == 0) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

static bool read_value(struct arguments *args, const char *name, const char *value)
{
    if (strcmp(name, "--seed") == 0) {
        args->seed = number_of(value);
    } else if (strcmp(name, "--seeds") == 0) {
        args->seeds_n = number_of(value);
        args->many = true;
    } else if (strcmp(name, "--minutes") == 0) {
        args->options.minutes = (gl_ms)number_of(value);
    } else if (strcmp(name, "--jobs") == 0) {
        args->options.jobs_n = (size_t)number_of(value);
    } else if (strcmp(name, "--plant") == 0) {
        args->plant = (int)number_of(value);
    } else if (strcmp(name, "--workers") == 0) {
        args->workers_n = (unsigned)number_of(value);
    } else if (strcmp(name, "--until") == 0) {
        args->until = number_of(value);
    } else if (strcmp(name, "--set") == 0 && value != NULL) {
        args->options.set = value;
    } else if (strcmp(name, "--replay") == 0 && value != NULL) {
        args->replay = value;
    } else if (strcmp(name, "--job") == 0 && value != NULL) {
        args->job = value;
    } else {
        return false;
    }
    return true;
}

static void read_arguments(struct arguments *args, int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *args =
        (struct arguments){.seed = 1, .seeds_n = 1, .workers_n = cores > 0 ? (unsigned)cores : 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            (void)printf("%s", usage);
            exit(0);
        }
        if (read_flag(args, argv[i])) {
            continue;
        }
        if (!read_value(args, argv[i], argv[i + 1])) {
            (void)fprintf(stderr, "glia-sim: unknown argument '%s'\n\n%s", argv[i], usage);
            exit(2);
        }
        i++;
    }
    args->workers_n = args->workers_n > WORKERS_MAX ? WORKERS_MAX : args->workers_n;
    args->workers_n = args->workers_n > 0 ? args->workers_n : 1;
    if (args->workers_n > args->seeds_n) {
        args->workers_n = args->seeds_n > 0 ? (unsigned)args->seeds_n : 1;
    }
}

static void plant(int number)
{
#ifdef GL_WITH_PLANTS
    gl_planted = number;
#else
    if (number != 0) {
        (void)fprintf(stderr,
                      "glia-sim: this build has no planted bugs: configure it with -Dplant=true\n");
        exit(2);
    }
#endif
}

static void print_marks(struct seed_tally *t)
{
    struct mark *m;
    for (size_t i = 0; (m = gl_map_next(&t->marks, &i)) != NULL;) {
        (void)printf("mark %s %llu\n", m->name, (unsigned long long)m->hits);
    }
}

static void tally_done(struct seed_tally *t)
{
    struct mark *m;
    for (size_t i = 0; (m = gl_map_next(&t->marks, &i)) != NULL;) {
        free(m->name);
        gl_mem_free(m);
    }
    gl_map_done(&t->marks);
}

/* ---- a recording ---- */

static bool read_file(const char *path, struct gl_buf *out)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    size_t n = 1;
    while (f != NULL && n > 0) {
        n = fread(gl_buf_reserve(out, 1 << 16), 1, 1 << 16, f);
        out->n += n;
    }
    bool ok = f != NULL && !ferror(f);
    if (f != NULL && f != stdin) {
        (void)fclose(f); /* nothing was written to it */
    }
    return ok;
}

static int tell_result(const struct sim_replay_result *r)
{
    if (r->differs_at != 0) {
        (void)printf("different: %.*s", GL_STR_ARG(gl_buf_view(&r->difference)));
    }
    if (r->release.n > 0) {
        (void)printf("note: recorded by release %.*s, replayed by " GL_VERSION "\n",
                     GL_STR_ARG(gl_buf_view(&r->release)));
    }
    if (r->gaps_n > 0) {
        (void)printf("note: recording paused %llu times (the node or the disk was "
                     "too busy or too full); the events of those times are unknown\n",
                     (unsigned long long)r->gaps_n);
    }
    if (r->is_torn) {
        (void)printf("note: the file ends in the middle of a line\n");
    }
    if (r->left_out_n > 0) {
        (void)printf("note: %llu lines at the end of a segment were not written completely, as "
                     "after a crash; they were skipped\n",
                     (unsigned long long)r->left_out_n);
    }
    if (r->torn_n > 0) {
        (void)printf("note: the ends of %llu segments were not written completely, as after a "
                     "crash; they are not in this file\n",
                     (unsigned long long)r->torn_n);
    }
    (void)printf("%llu events, %s\n", (unsigned long long)r->events_n,
                 r->differs_at == 0 ? "all decisions the same" : "the last decided differently");
    (void)fflush(stdout);
    for (gl_str rest = gl_buf_view(&r->holes); rest.n > 0;) {
        gl_str sentence = gl_str_cut(rest, '\n', &rest);

        (void)fprintf(stderr, "glia-sim: incomplete: %.*s\n", GL_STR_ARG(sentence));
    }
    return r->differs_at != 0 ? 1 : r->holes.n > 0 ? 2 : 0;
}

/* 0: the same decisions, 1: different ones, 2: it cannot be replayed, or part of it is missing. */
static int replay(const struct arguments *args)
{
    struct sim_replay_options options = {.until = args->until,
                                         .job = gl_str_of(args->job),
                                         .print = args->trace || args->job ? print_line : NULL};
    struct sim_replay_result result = {0};
    struct gl_buf text = {0};
    struct gl_why why;
    int status = 2;
    if (!read_file(args->replay, &text)) {
        (void)fprintf(stderr, "glia-sim: cannot read %s: %s\n", args->replay, strerror(errno));
    } else if (sim_replay_run(gl_buf_view(&text), &options, &result, &why) != 0) {
        (void)fflush(stdout);
        (void)fprintf(stderr, "glia-sim: %s: %s\n", args->replay, why.text);
    } else {
        status = tell_result(&result);
    }
    sim_replay_done(&result);
    gl_buf_done(&text);
    return status;
}

int main(int argc, char **argv)
{
    struct arguments args;
    read_arguments(&args, argc, argv);
    plant(args.plant);
    if (args.replay != NULL) {
        return replay(&args);
    }
    struct seed_tally t = {0};
    gl_map_init(&t.marks);
    if (args.many) {
        (void)printf("glia-sim: seeds %llu to %llu, build %s, %u workers\n",
                     (unsigned long long)args.seed,
                     (unsigned long long)(args.seed + args.seeds_n - 1), GL_BUILD, args.workers_n);
    }
    if (args.many || !args.trace) {
        run_many(&args, &t);
    } else { /* in this process, printing as it happens: also for a debugger */
        bool ok = run_seed(&args, args.seed, &t);
        t.passed = ok ? 1 : 0;
        t.failed = ok ? 0 : 1;
    }
    if (args.marks) {
        print_marks(&t);
    }
    (void)printf("%llu passed, %llu failed\n", (unsigned long long)t.passed,
                 (unsigned long long)t.failed);
    bool ok = t.failed == 0;
    tally_done(&t);
    return ok ? 0 : 1;
}
