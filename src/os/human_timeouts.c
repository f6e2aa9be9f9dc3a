#include "os/human_timeouts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/id.h"
#include "base/mem.h"
#include "os/fs.h"
#include "os/human_file.h"
#include "os/run_owner.h"
#include "os/run_questions.h"

enum {
    SEEN_MAX = 100000,
    PATH_BYTES = 512,
    AGAIN_MS = 30000 /* ask again whether its job has ended */
};

struct watched_run {
    gl_str run_id; /* stored after the struct */
    struct timespec changed;
    off_t bytes; /* -1: not read yet */
    ino_t inode;
    bool is_away; /* GL_HUMAN_RUN_OTHER_FILE: read again when the owner is asked again */
    bool again;   /* read it again even if it has not changed */
    gl_ms due;    /* the next deadline in the file; INT64_MAX: none */
    gl_ms reported, report_at; /* the deadline reported last, and when to report it again */
    uint64_t round;
    gl_ms ask_at;                /* INT64_MAX: not before the file changes */
    uint64_t open_n;             /* open questions in the file */
    char job[GL_ULID_BYTES + 1]; /* the job that owns the folder; "" : unknown */
    char note[256];              /* the beginning of the problem that was logged */

    struct gl_arena arena;       /* of `run`; changed with the mutex held */
    struct gl_questions_run run; /* what the API returns while this run is in `open` */
};

void gl_human_timeouts_init(struct gl_human_timeouts *o)
{
    *o = (struct gl_human_timeouts){0};
    atomic_init(&o->stops, false);
    gl_map_init(&o->seen);
    gl_map_init(&o->open);
    gl_map_init(&o->out);
    pthread_mutex_init(&o->mutex, NULL);
}

static void forget_all(struct gl_human_timeouts *o)
{
    struct watched_run *s;

    pthread_mutex_lock(&o->mutex);
    gl_map_done(&o->open);
    gl_map_init(&o->open);
    gl_map_done(&o->out);
    gl_map_init(&o->out);
    for (size_t i = 0; (s = gl_map_next(&o->seen, &i)) != NULL;) {
        gl_arena_done(&s->arena);
        gl_mem_free(s);
    }
    gl_map_done(&o->seen);
    gl_map_init(&o->seen);
    pthread_mutex_unlock(&o->mutex);
}

void gl_human_timeouts_done(struct gl_human_timeouts *o)
{
    forget_all(o);
    gl_map_done(&o->seen);
    gl_map_done(&o->open);
    gl_map_done(&o->out);
    pthread_mutex_destroy(&o->mutex);
}

static struct watched_run *remember(struct gl_human_timeouts *o, gl_str run_id)
{
    struct watched_run *s = gl_map_find(&o->seen, run_id);

    if (s != NULL) {
        return s;
    }
    if (gl_map_count(&o->seen) >= SEEN_MAX) { /* read them again */
        forget_all(o);
    }
    s = gl_mem_alloc(sizeof(*s) + run_id.n);
    memcpy(s + 1, run_id.p, run_id.n);
    s->run_id = (gl_str){.p = (const char *)(s + 1), .n = run_id.n};
    s->bytes = -1;
    s->ask_at = s->due = s->reported = INT64_MAX;
    s->job[0] = '\0';
    gl_map_add(&o->seen, s->run_id, s);
    return s;
}

static void say(struct gl_human_timeouts *o, gl_str run_id, const char *what)
{
    char line[2048];

    (void)snprintf(line, sizeof(line), "run %.*s: %.1500s", GL_STR_ARG(run_id), what);
    o->log(o->owner, line);
}

/* ---- open questions ---- */

static void close_run(struct gl_human_timeouts *o, struct watched_run *s)
{
    pthread_mutex_lock(&o->mutex);
    (void)gl_map_remove(&o->open, s->run_id); /* it may be in neither */
    (void)gl_map_remove(&o->out, s->run_id);
    gl_arena_done(&s->arena);
    s->run = (struct gl_questions_run){0};
    pthread_mutex_unlock(&o->mutex);
}

/* If there is no room for the run, only its number of questions is kept. */
static void open_run(struct gl_human_timeouts *o, struct watched_run *s,
                     const struct gl_questions_run *run)
{
    pthread_mutex_lock(&o->mutex);
    if (gl_map_find(&o->open, s->run_id) == NULL) {
        bool is_full = gl_map_count(&o->open) >= GL_QUESTIONS_RUNS_MAX;

        (void)gl_map_remove(&o->out, s->run_id); /* it may be absent */
        gl_map_add(is_full ? &o->out : &o->open, s->run_id, s);
    }
    if (gl_map_find(&o->open, s->run_id) != NULL) {
        gl_arena_done(&s->arena);
        s->run = gl_run_questions_copy(run, GL_QUESTIONS_TOLD_MAX, &s->arena);
    }
    s->open_n = run->open_n;
    pthread_mutex_unlock(&o->mutex);
}

/* Log each problem once, until it changes. */
static void note(struct gl_human_timeouts *o, struct watched_run *s, gl_str trouble)
{
    char text[sizeof(s->note)];

    (void)snprintf(text, sizeof(text), "%.*s", GL_STR_ARG(trouble));
    if (text[0] != '\0' && strcmp(text, s->note) != 0) {
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

        say(o, s->run_id, gl_str_c(&a, trouble));
    }
    memcpy(s->note, text, sizeof(text));
}

/* Ask who owns the run. Questions are reported as long as the run's job is live. */
static void judge(struct gl_human_timeouts *o, struct watched_run *s,
                  const struct gl_questions_run *run, gl_ms now)
{
    enum gl_human_run told = o->ask(o->owner, s->run_id);

    if (told == GL_HUMAN_RUN_UNKNOWN) {
        s->ask_at = now;
        return;
    }
    s->is_away = told == GL_HUMAN_RUN_OTHER_FILE;
    s->ask_at = told != GL_HUMAN_RUN_FOREIGN ? now + AGAIN_MS : INT64_MAX;
    if (told == GL_HUMAN_RUN_FOREIGN || told == GL_HUMAN_RUN_OTHER_FILE) {
        close_run(o, s);
    } else if (run != NULL) {
        open_run(o, s, run);
        note(o, s, run->trouble);
    }
}

/* ---- the scan ---- */

/* Report the next deadline. Repeat the report if it was refused or some time has passed: the
 * receiver may have started meanwhile, or have had no room. */
static void report(struct gl_human_timeouts *o, struct watched_run *s, gl_ms now)
{
    if (s->job[0] == '\0' || (s->due == INT64_MAX && s->reported == INT64_MAX)) {
        return;
    }
    if (s->due == s->reported && (now < s->report_at || s->due == INT64_MAX)) {
        return;
    }
    if (o->report(o->owner, gl_str_of(s->job), s->due)) {
        s->reported = s->due;
        s->report_at = now + AGAIN_MS;
    }
}

/* False: the file cannot be read now. */
static bool read_again(struct gl_human_timeouts *o, struct watched_run *s, gl_ms now)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_questions_run run;
    struct gl_human_file f;

    if (gl_human_file_read(o->root, s->run_id, &a, &f, NULL) != 0) {
        return false;
    }
    gl_run_questions_from_file(o->root, s->run_id, &f, &a, &run);
    s->due = gl_human_file_next_timeout(&f);
    s->reported = -1; /* the file is new or has changed: an earlier decision may be outdated */
    (void)snprintf(s->job, sizeof(s->job), "%.*s", GL_STR_ARG(run.job_id));
    s->ask_at = INT64_MAX;
    if (run.open_n == 0 && run.trouble.n == 0) {
        close_run(o, s);
        return true;
    }
    judge(o, s, &run, now);
    return s->ask_at > now; /* else read it again once its owner is known */
}

static void look_at(struct gl_human_timeouts *o, gl_str run_id, const struct stat *st, gl_ms now)
{
    struct watched_run *s = remember(o, run_id);

    s->round = o->round;
    if (s->again || (s->is_away && s->ask_at <= now) || s->bytes != st->st_size ||
        s->inode != st->st_ino || s->changed.tv_sec != st->st_mtim.tv_sec ||
        s->changed.tv_nsec != st->st_mtim.tv_nsec) {
        if (!read_again(o, s, now)) {
            return; /* retry in the next scan */
        }
        s->again = false;
        s->bytes = st->st_size;
        s->inode = st->st_ino;
        s->changed = st->st_mtim;
    } else if (s->ask_at <= now) {
        judge(o, s, NULL, now);
    }
    report(o, s, now);
}

/* Count the questions for which there was no room; read them again if there is room now. */
static void settle_out(struct gl_human_timeouts *o)
{
    uint64_t left_out = 0;
    struct watched_run *s;

    pthread_mutex_lock(&o->mutex);
    size_t room = GL_QUESTIONS_RUNS_MAX - gl_map_count(&o->open);

    for (size_t i = 0; (s = gl_map_next(&o->out, &i)) != NULL;) {
        left_out += s->open_n;
        if (room > 0) {
            s->again = true;
            room--;
        }
    }
    o->left_out = left_out;
    pthread_mutex_unlock(&o->mutex);
}

/* Forget files that have been removed or renamed. */
static void settle(struct gl_human_timeouts *o)
{
    struct watched_run *s;

    for (size_t i = 0; (s = gl_map_next(&o->seen, &i)) != NULL;) {
        if (s->round != o->round && s->bytes >= 0) {
            close_run(o, s);
            s->bytes = -1;
            s->ask_at = s->due = INT64_MAX;
            report(o, s, 0);
        }
    }
    settle_out(o);
}

void gl_human_timeouts_scan(struct gl_human_timeouts *o, gl_ms now)
{
    DIR *folder = opendir(o->root);
    const struct dirent *e;

    o->round++;
    while (folder != NULL && !atomic_load(&o->stops) && (e = readdir(folder)) != NULL) {
        gl_str run_id = gl_str_of(e->d_name);
        char path[PATH_BYTES];
        struct stat st;

        if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || !gl_str_is_id(run_id)) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/human.jsonl", e->d_name);
        if (fstatat(dirfd(folder), path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            look_at(o, run_id, &st, now);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    if (!atomic_load(&o->stops)) {
        settle(o);
    }
}

/* ---- the core's decisions ---- */

int gl_human_timeouts_expire(struct gl_human_timeouts *o, gl_str job, gl_ms now, size_t *ret_n,
                             struct gl_why *reterr_why)
{
    struct watched_run *s;
    int err = 0;

    *ret_n = 0;
    for (size_t i = 0; err == 0 && (s = gl_map_next(&o->seen, &i)) != NULL;) {
        if (gl_str_is(job, s->job) && gl_run_owner_is_job(o->root, s->run_id, job)) {
            err = gl_human_file_expire(o->root, s->run_id, now, ret_n, reterr_why);
            s->again = true; /* more may be due */
            break;
        }
    }
    return err;
}

/* ---- for the control thread ---- */

static const struct gl_questions_run *find(void *owner, gl_str run_id, struct gl_arena *a)
{
    struct gl_human_timeouts *o = owner;
    struct gl_questions_run *run = NULL;
    const struct watched_run *s;

    pthread_mutex_lock(&o->mutex);
    s = gl_map_find(&o->open, run_id);
    if (s != NULL) {
        run = GL_NEW(a, struct gl_questions_run);
        *run = gl_run_questions_copy(&s->run, GL_QUESTIONS_TOLD_MAX, a);
    } else if ((s = gl_map_find(&o->out, run_id)) != NULL) {
        run = GL_NEW(a, struct gl_questions_run);
        *run = (struct gl_questions_run){.run_id = gl_str_dup(a, s->run_id),
                                         .job_id = gl_str_dup(a, gl_str_of(s->job)),
                                         .open_n = s->open_n};
    }
    pthread_mutex_unlock(&o->mutex);
    return run;
}

static struct gl_questions_run *all(void *owner, size_t limit, struct gl_arena *a, size_t *ret_n,
                                    uint64_t *ret_open_n)
{
    struct gl_human_timeouts *o = owner;
    struct gl_questions_run *runs;
    const struct watched_run *s;

    pthread_mutex_lock(&o->mutex);
    runs = GL_NEW_ARRAY(a, struct gl_questions_run, gl_map_count(&o->open) + 1);
    *ret_n = 0;
    *ret_open_n = o->left_out;
    for (size_t i = 0; (s = gl_map_next(&o->open, &i)) != NULL;) {
        runs[*ret_n] = gl_run_questions_copy(&s->run, limit, a);
        limit -= runs[*ret_n].n;
        *ret_open_n += s->run.open_n;
        ++*ret_n;
    }
    pthread_mutex_unlock(&o->mutex);
    return runs;
}

struct gl_questions gl_human_timeouts_asks(struct gl_human_timeouts *o)
{
    return (struct gl_questions){.owner = o, .find = find, .all = all};
}
