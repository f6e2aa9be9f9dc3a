/* daemon_human.c - a thread that reads and writes the files in which workers ask people questions
 * (os/human_timeouts.h). What follows from a question is decided in the core
 * (core/agents/human_requests.h).
 *
 * Reading files is not done on the control thread, because disks may be slow. Only the control
 * thread knows the state of a run's job, so it is asked with a request, as clients do. When the
 * thread is told to stop it does not wait for an answer. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "app/daemon_state.h"
#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "model/job.h"
#include "os/human_file.h"
#include "os/human_timeouts.h"
#include "os/run_owner.h"

enum {
    PAUSE_MS_MIN = 1000,
    PAUSE_MS_MAX = 60000,
    SHARE = 20, /* with very many runs, scanning takes at most one part in SHARE of the time */
};

struct gl_daemon_human {
    struct gl_ask_writer writer;
    struct gl_daemon *daemon;
    struct gl_link known; /* struct expiry, all of them; of the control thread */
    struct gl_human_timeouts timeouts;
    pthread_t thread;
    struct gl_loop_task task;
    struct gl_request rq;
    gl_str run_id; /* the run in question; points to run_text */
    char run_text[GL_NAME_BYTES_MAX + 1];
    char report_job[GL_ULID_BYTES + 1];
    gl_ms report_due;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool is_stopping;
    struct gl_link expiries; /* struct expiry: what the core wants written */
    bool is_asked;           /* the control thread has the request, or the report */
    bool is_heard;           /* then: the report was */
    enum gl_human_run run;
    char job[GL_ULID_BYTES + 1]; /* then: the run's */
    char since[GL_TIMES_BYTES];  /* GL_HUMAN_RUN_REMOTE: see gl_human_file_is_current() */
};

/* ---- asking ---- */

static enum gl_human_run classify(struct gl_daemon_human *h, const struct gl_request *rq)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    gl_jnode root;
    int64_t status;
    gl_str job, since;

    if (rq->code == GL_E_NOT_FOUND || rq->code == GL_E_INVALID || rq->code == GL_E_DAMAGED) {
        return GL_HUMAN_RUN_FOREIGN;
    }
    if (rq->code != 0 || gl_json_parse(&j, rq->body, SIZE_MAX, &a, NULL) != 0) {
        return GL_HUMAN_RUN_UNKNOWN;
    }
    root = gl_json_root(&j);
    status =
        gl_schema_word(gl_job_status_words, gl_json_str(&j, gl_json_get(&j, root, "status"), &a));
    job = gl_json_str(&j, gl_json_get(&j, root, "job_id"), &a);
    (void)snprintf(h->job, sizeof(h->job), "%.*s", GL_STR_ARG(job));
    since = gl_json_str(&j, gl_json_get(&j, root, "requests_since"), &a);
    (void)snprintf(h->since, sizeof(h->since), "%.*s", GL_STR_ARG(since));
    /* The name may also have matched as a prefix of another job's id. */
    if (!gl_str_eq(gl_json_str(&j, gl_json_get(&j, root, "run_id"), &a), h->run_id) || status < 0 ||
        gl_job_status_is_terminal((uint8_t)status)) {
        return GL_HUMAN_RUN_FOREIGN;
    }
    return gl_json_get(&j, root, "requests_node") != NULL ? GL_HUMAN_RUN_REMOTE : GL_HUMAN_RUN_LIVE;
}

static void on_status(struct gl_request *rq)
{
    struct gl_daemon_human *h = rq->owner;
    enum gl_human_run run = classify(h, rq);

    pthread_mutex_lock(&h->mutex);
    h->run = run;
    h->is_asked = false;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->mutex);
}

static void post_request(struct gl_loop_task *t)
{
    struct gl_daemon_human *h = t->owner;

    h->rq = (struct gl_request){
        .verb = GL_VERB_STATUS,
        .context = h->daemon->config.context,
        .job = h->run_id,
        .status.brief = !h->daemon->store->ops->shared, /* else the owner is needed, too */
        .done = on_status,
        .owner = h};
    gl_daemon_request(h->daemon, &h->rq);
}

/* Combines what is known about the job with what is in the run folder here. */
static enum gl_human_run check_folder(const char *root, gl_str run_id, enum gl_human_run run,
                                      const char *job, const char *since)
{
    if (run != GL_HUMAN_RUN_LIVE && run != GL_HUMAN_RUN_REMOTE) {
        return run;
    }
    /* Its first worker has not started yet, so the files are an earlier job's. */
    if (!gl_run_owner_is_job(root, run_id, gl_str_of(job))) {
        return GL_HUMAN_RUN_FOREIGN;
    }
    return run == GL_HUMAN_RUN_REMOTE && !gl_human_file_is_current(root, run_id, gl_str_of(since))
               ? GL_HUMAN_RUN_OTHER_FILE
               : run;
}

static enum gl_human_run ask(void *owner, gl_str run_id)
{
    struct gl_daemon_human *h = owner;
    enum gl_human_run run = GL_HUMAN_RUN_UNKNOWN;
    char job[GL_ULID_BYTES + 1] = "", since[GL_TIMES_BYTES] = "";

    if (run_id.n >= sizeof(h->run_text)) {
        return GL_HUMAN_RUN_FOREIGN;
    }
    memcpy(h->run_text, run_id.p, run_id.n);
    h->run_id = (gl_str){.p = h->run_text, .n = run_id.n};
    h->task = (struct gl_loop_task){.run = post_request, .owner = h};
    pthread_mutex_lock(&h->mutex);
    h->is_asked = true;
    pthread_mutex_unlock(&h->mutex);
    gl_loop_post(h->daemon->loop, &h->task);
    pthread_mutex_lock(&h->mutex);
    while (h->is_asked && !h->is_stopping) {
        pthread_cond_wait(&h->changed, &h->mutex);
    }
    if (!h->is_asked) {
        run = h->run;
        memcpy(job, h->job, sizeof(job));
        memcpy(since, h->since, sizeof(since));
    }
    pthread_mutex_unlock(&h->mutex);
    return check_folder(h->timeouts.root, run_id, run, job, since);
}

/* ---- reporting deadlines, and writing what is decided ---- */

static void report_now(struct gl_loop_task *t)
{
    struct gl_daemon_human *h = t->owner;
    struct gl_node *node = h->daemon->node;
    bool is_heard = node != NULL && gl_node_on_asked(node, gl_str_of(h->report_job), h->report_due);

    pthread_mutex_lock(&h->mutex);
    h->is_heard = is_heard;
    h->is_asked = false;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->mutex);
}

static bool report(void *owner, gl_str job, gl_ms due)
{
    struct gl_daemon_human *h = owner;
    bool is_heard;

    if (job.n != GL_ULID_BYTES) {
        return true; /* not the id of a job */
    }
    memcpy(h->report_job, job.p, job.n);
    h->report_due = due;
    h->task = (struct gl_loop_task){.run = report_now, .owner = h};
    pthread_mutex_lock(&h->mutex);
    h->is_asked = true;
    pthread_mutex_unlock(&h->mutex);
    gl_loop_post(h->daemon->loop, &h->task);
    pthread_mutex_lock(&h->mutex);
    while (h->is_asked && !h->is_stopping) {
        pthread_cond_wait(&h->changed, &h->mutex);
    }
    is_heard = !h->is_asked && h->is_heard;
    pthread_mutex_unlock(&h->mutex);
    return is_heard;
}

/* Defaults to be written. The node that asked for them may be freed before that is done, because it
 * loses its session; so the thread sees only what is in here. */
struct expiry {
    struct gl_loop_task task;
    struct gl_link link;         /* in `expiries`, until the thread begins with it */
    struct gl_link known;        /* in `known`, until the control thread has the outcome */
    struct gl_ask_expiry *asked; /* of the control thread; NULL: its node has been freed */
    char job[GL_ULID_BYTES + 1];
    gl_ms now;
    int status;
    size_t n;
    struct gl_why why;
};

static void on_written(struct gl_loop_task *t)
{
    struct expiry *x = t->owner;
    struct gl_ask_expiry *asked = x->asked;

    gl_list_remove(&x->known);
    if (asked != NULL) {
        asked->status = x->status;
        asked->n = x->n;
        asked->why = x->why;
    }
    gl_mem_free(x);
    if (asked != NULL) {
        asked->done(asked);
    }
}

void gl_daemon_human_forget_node(struct gl_daemon *d)
{
    struct gl_daemon_human *h = d->human;

    if (h == NULL) {
        return;
    }
    for (struct gl_link *l = h->known.next; l != &h->known; l = l->next) {
        GL_CONTAINER(l, struct expiry, known)->asked = NULL;
    }
}

/* On the control thread. */
static void expire(struct gl_ask_writer *w, struct gl_ask_expiry *asked)
{
    struct gl_daemon_human *h = GL_CONTAINER(w, struct gl_daemon_human, writer);
    struct expiry *x = gl_mem_alloc(sizeof(*x));

    GL_ASSERT(asked->job.n <= GL_ULID_BYTES);
    x->asked = asked;
    memcpy(x->job, asked->job.p, asked->job.n);
    x->now = asked->now;
    x->task = (struct gl_loop_task){.run = on_written, .owner = x};
    gl_list_push(&h->known, &x->known);
    pthread_mutex_lock(&h->mutex);
    gl_list_push(&h->expiries, &x->link);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->mutex);
}

static struct expiry *next_expiry(struct gl_daemon_human *h)
{
    struct gl_link *l;

    pthread_mutex_lock(&h->mutex);
    l = h->is_stopping ? NULL : gl_list_first(&h->expiries);
    if (l != NULL) {
        gl_list_remove(l);
    }
    pthread_mutex_unlock(&h->mutex);
    return l != NULL ? GL_CONTAINER(l, struct expiry, link) : NULL;
}

static void write_expiries(struct gl_daemon_human *h)
{
    struct expiry *x;

    while ((x = next_expiry(h)) != NULL) {
        x->status =
            gl_human_timeouts_expire(&h->timeouts, gl_str_of(x->job), x->now, &x->n, &x->why);
        gl_loop_post(h->daemon->loop, &x->task);
    }
}

static void on_line(void *owner, const char *line)
{
    struct gl_daemon_human *h = owner;

    gl_textlog_write(&h->daemon->log, "%s", line);
}

/* ---- the thread ---- */

static gl_ms clock_ms(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* True: continue. */
static bool wait_pause(struct gl_daemon_human *h, gl_ms ms)
{
    struct timespec until;
    bool is_running;
    int err = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    pthread_mutex_lock(&h->mutex);
    while (!h->is_stopping && err == 0 && gl_list_empty(&h->expiries)) {
        err = pthread_cond_timedwait(&h->changed, &h->mutex, &until);
    }
    is_running = !h->is_stopping;
    pthread_mutex_unlock(&h->mutex);
    return is_running;
}

static void *watch(void *owner)
{
    struct gl_daemon_human *h = owner;
    gl_ms pause = h->daemon->config.stays ? 0 : PAUSE_MS_MIN; /* not at once if short-lived */
    bool is_first = true;

    (void)pthread_setname_np(pthread_self(), "glia-human"); /* visible in ps and top */
    while (wait_pause(h, pause)) {
        gl_ms began = clock_ms(CLOCK_MONOTONIC);

        write_expiries(h);
        gl_human_timeouts_scan(&h->timeouts, clock_ms(CLOCK_REALTIME));
        /* The first scan reads everything, so its duration says nothing about the next ones. */
        pause = is_first ? PAUSE_MS_MIN : (clock_ms(CLOCK_MONOTONIC) - began) * SHARE;
        is_first = false;
        pause = pause < PAUSE_MS_MIN ? PAUSE_MS_MIN : pause > PAUSE_MS_MAX ? PAUSE_MS_MAX : pause;
    }
    return NULL;
}

void gl_daemon_human_open(struct gl_daemon *d)
{
    struct gl_daemon_human *h = gl_mem_alloc(sizeof(*h));
    pthread_condattr_t attr;

    h->daemon = d;
    gl_human_timeouts_init(&h->timeouts);
    h->timeouts.root = gl_str_c(&d->arena, d->worker.runs_root);
    h->timeouts.ask = ask;
    h->timeouts.log = on_line;
    h->timeouts.report = report;
    h->writer.expire = expire;
    gl_list_init(&h->expiries);
    gl_list_init(&h->known);
    h->timeouts.owner = h;
    pthread_mutex_init(&h->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attr);
    pthread_condattr_destroy(&attr);
    h->is_stopping = true; /* there is no thread to stop */
    d->human = h;
    d->asks = gl_human_timeouts_asks(&h->timeouts);
    d->ask_writer = &h->writer;
}

void gl_daemon_human_start(struct gl_daemon *d)
{
    struct gl_daemon_human *h = d->human;

    h->is_stopping = false;
    if (pthread_create(&h->thread, NULL, watch, h) != 0) {
        h->is_stopping = true;
        gl_textlog_write(&d->log,
                         "cannot start a thread; timeouts of workers' questions are not enforced");
    }
}

void gl_daemon_human_stop(struct gl_daemon *d)
{
    struct gl_daemon_human *h = d->human;
    bool is_there;

    if (h == NULL) {
        return;
    }
    pthread_mutex_lock(&h->mutex);
    is_there = !h->is_stopping;
    h->is_stopping = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->mutex);
    atomic_store(&h->timeouts.stops, true);
    if (is_there) {
        (void)pthread_join(h->thread, NULL);
    }
}

void gl_daemon_human_free(struct gl_daemon *d)
{
    struct gl_daemon_human *h = d->human;

    if (h == NULL) {
        return;
    }
    for (struct gl_link *l; (l = gl_list_first(&h->known)) != NULL;) {
        gl_list_remove(l);
        gl_mem_free(GL_CONTAINER(l, struct expiry, known));
    }
    gl_human_timeouts_done(&h->timeouts);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->mutex);
    gl_mem_free(h);
    d->human = NULL;
}
