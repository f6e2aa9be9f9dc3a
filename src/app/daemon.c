/* daemon.c - opens and closes a node: folder, store, node, HTTP; and answers queries of its owner.
 *
 * Threads: the main thread waits here; the control thread runs the loop and owns the node; HTTP and
 * others have threads of their own. Resources are opened in the order of open_all() and closed in
 * the opposite order. The folder's lock is taken first and released last. */
#include "app/daemon.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "app/daemon_state.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "http/http.h"
#include "os/fs.h"
#include "os/harden.h"
#include "os/paths.h"
#include "os/random.h"
#include "os/sock.h"
#include "port/keeper_protocol.h"
#include "port/storeurl.h"

#ifdef GL_WITH_FAILPOINTS
#include "lib/vfs_cut.h"
#endif

enum { READY_SECONDS_MAX = 10 };

/* ---- stages ---- */

void gl_daemon_set_stage(struct gl_daemon *d, enum gl_daemon_stage stage)
{
    pthread_mutex_lock(&d->mutex);
    d->stage = stage;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->mutex);
}

void gl_daemon_note(struct gl_daemon *d, int code, const char *why)
{
    bool is_news;

    pthread_mutex_lock(&d->mutex);
    is_news = gl_why_whole(&d->why) != code || strcmp(d->why.text, why) != 0;
    (void)gl_why(&d->why, code, "%s", why);
    pthread_mutex_unlock(&d->mutex);
    if (is_news) { /* an outage causes the same error again and again */
        gl_textlog_write(&d->log, "%s", why);
    }
}

void gl_daemon_give_up(struct gl_daemon *d, int code, const char *why)
{
    gl_daemon_note(d, code, why);
    pthread_mutex_lock(&d->mutex);
    d->has_given_up = true;
    pthread_mutex_unlock(&d->mutex);
    gl_daemon_set_stage(d, GL_STAGE_FAILED);
}

/* Waits until the node is ready or has failed. A node that stays need not be ready if its store is
 * unreachable for now. */
static int wait_ready(struct gl_daemon *d, struct gl_why *reterr_why)
{
    struct timespec until;
    int err = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += READY_SECONDS_MAX;
    pthread_mutex_lock(&d->mutex);
    while (d->stage == GL_STAGE_STARTING && !(d->is_unreachable && d->config.stays) &&
           err != ETIMEDOUT) {
        err = pthread_cond_timedwait(&d->changed, &d->mutex, &until);
    }
    if (d->stage == GL_STAGE_STARTING && d->config.stays && d->store->ops->shared) {
        err = 0;
    } else if (d->stage != GL_STAGE_READY) {
        err = gl_why(reterr_why, d->why.code != 0 ? gl_why_whole(&d->why) : GL_E_UNAVAILABLE, "%s",
                     d->why.code != 0 ? d->why.text : "the node did not become ready");
    } else {
        err = 0;
    }
    pthread_mutex_unlock(&d->mutex);
    return err;
}

static void wait_stopped(struct gl_daemon *d)
{
    pthread_mutex_lock(&d->mutex);
    while (d->stage != GL_STAGE_STOPPED) {
        pthread_cond_wait(&d->changed, &d->mutex);
    }
    pthread_mutex_unlock(&d->mutex);
}

/* ---- callbacks of HTTP ---- */

static void on_request(void *owner, struct gl_request *rq)
{
    gl_daemon_request(owner, rq);
}

static void on_http_log(void *owner, const char *line)
{
    struct gl_daemon *d = owner;

    gl_textlog_write(&d->log, "http: %s", line);
}

static void *yield_folder(void *owner);

/* With the mutex held. A passive node does not yield in the middle of its command, which would have
 * to be repeated. */
static void yield_if_asked(struct gl_daemon *d)
{
    if (d->is_yield_asked && d->is_open && !d->is_stopping && !d->is_yielding && !d->has_command) {
        d->is_yielding = pthread_create(&d->yielder, NULL, yield_folder, d) == 0;
    }
}

/* Another node asks for the folder. Runs on the HTTP thread, which cannot close itself, possibly
 * before gl_daemon_start() has returned. */
static void on_yield(void *owner)
{
    struct gl_daemon *d = owner;

    pthread_mutex_lock(&d->mutex);
    d->is_yield_asked = true;
    yield_if_asked(d);
    pthread_mutex_unlock(&d->mutex);
}

void gl_daemon_command_done(struct gl_daemon *d)
{
    pthread_mutex_lock(&d->mutex);
    d->has_command = false;
    yield_if_asked(d);
    pthread_mutex_unlock(&d->mutex);
}

static void on_open(struct gl_daemon *d)
{
    pthread_mutex_lock(&d->mutex);
    d->is_open = true;
    yield_if_asked(d);
    pthread_mutex_unlock(&d->mutex);
}

/* ---- opening ---- */

/* In builds for crash tests the store may be on a simulated disk that forgets what was not synced.
 */
static const char *open_vfs(struct gl_daemon *d)
{
#ifdef GL_WITH_FAILPOINTS
    d->cut = vfs_cut_from_environment();
    if (d->cut != NULL) {
        return "cut";
    }
#endif
    (void)d;
    return NULL;
}

static void on_trace(struct gl_trace *t, const struct gl_trace_record *r)
{
    struct gl_daemon *d = GL_CONTAINER(t, struct gl_daemon, trace);
    char line[512];

    (void)gl_trace_format(r, line, sizeof(line));
    gl_textlog_write(&d->log, "%s", line);
}

static int open_folder(struct gl_daemon *d, struct gl_why *reterr_why)
{
    const struct gl_daemon_config *config = &d->config;
    int err = gl_paths_prepare(d->data, config->context, reterr_why);

    if (err == 0) {
        err = gl_lock_take_as(&d->lock, d->data, config->what, reterr_why);
    }
    if (err != 0) {
        return err;
    }
    gl_textlog_init(&d->log, config->debug ? NULL : gl_paths_in(&d->arena, d->data, "node.log"));
    d->trace.write = config->debug ? on_trace : NULL;
    d->entropy = gl_random_entropy();
    gl_blobfs_init(&d->blobs, d->data);
    gl_logfs_init(&d->logs, d->data);
    err = gl_identity_load(d->data, &d->entropy, &d->identity, reterr_why);
    if (err == 0) {
        err = gl_identity_token(d->data, &d->entropy, d->token, reterr_why);
    }
    if (err == 0) {
        err = gl_blobfs_sweep(&d->blobs, config->context, reterr_why);
    }
    if (err == 0) {
        d->socket = gl_paths_in(&d->arena, d->data, GL_PATHS_SOCKET);
        err = gl_sock_listen(d->socket, &d->socket_fd, reterr_why);
    }
    if (err == 0 && config->listen != NULL && config->listen[0] != '\0') {
        err = gl_tcp_listen(gl_str_of(config->listen), &d->tcp_fd, d->address, &d->is_local,
                            reterr_why);
    }
    return err == 0 ? gl_crash_counter_open(&d->crashes, d->data, NULL, &d->arena, reterr_why)
                    : err;
}

/* Nothing depends on the recorder, so a node runs without it, too. */
static void open_recorder(struct gl_daemon *d)
{
    const struct gl_daemon_config *config = &d->config;
    const char *folder = gl_paths_in(&d->arena, d->data, GL_RECORDER_FOLDER);
    struct gl_why why;

    if (config->record_bytes > 0 && !config->passive &&
        gl_recorder_open(&d->recorder, folder, (uint64_t)config->record_bytes, &why) != 0) {
        gl_textlog_write(&d->log, "flight recorder is off: %s", why.text);
    }
}

static int open_store(struct gl_daemon *d, struct gl_why *reterr_why)
{
    struct gl_stores_config config = {.url = d->config.store,
                                      .data = d->data,
                                      .allow_loss = d->config.allow_loss,
                                      .identity = d->memory.identity,
                                      .vfs = open_vfs(d)};
    int err = gl_stores_load(d->data, &d->memory, reterr_why);

    err = err != 0 ? err : gl_stores_match(d->data, d->config.store, &d->memory, reterr_why);
    err = err != 0 ? err : gl_loop_new(&d->loop, reterr_why);
    if (err == 0) {
        err = gl_stores_open(&d->store, &config, d->loop, reterr_why);
    }
    if (err == 0) {
        err = gl_blob_thread_open(&d->serve, &d->blobs, d->loop, reterr_why);
    }
    return err;
}

static int open_http(struct gl_daemon *d, struct gl_why *reterr_why)
{
    struct gl_http_config config = {
        .listen_fd = d->socket_fd,
        .uid = geteuid(),
        .tcp_fd = d->tcp_fd,
        .token = d->token,
        .yield = d->config.stays ? NULL : on_yield,
        .loop = d->loop,
        .ask = on_request,
        .log = on_http_log,
        .owner = d,
        .blob = &d->blobs.blob,
        .logs = &d->logs.logs,
        .runs_root = gl_str_c(&d->arena, d->worker.runs_root),
        .entropy = &d->entropy,
        .node = d->store->ops->shared ? gl_str_c(&d->arena, d->name) : NULL,
    };

    d->socket_fd = d->tcp_fd = -1; /* ownership passes on */
    return gl_http_start(&d->http, &config, reterr_why);
}

static void *run(void *owner)
{
    struct gl_daemon *d = owner;

    (void)pthread_setname_np(pthread_self(), "glia-control"); /* visible in ps and top */
    gl_node_start(d->node);
    gl_loop_run(d->loop);
    return NULL;
}

/* Settings that this process passes to every worker of a bundle. */
static void set_worker_place(struct gl_daemon *d)
{
    const char *target = getenv("MN_GRPC_TARGET"), *runs = d->config.runs_root;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self));

    d->worker = (struct gl_worker_place){
        .runs_root = runs[0] != '\0' ? gl_str_of(runs)
                                     : gl_str_of(gl_paths_in(&d->arena, d->data, "mn/runs")),
        .grpc_target = gl_str_dup(&d->arena, gl_str_of(target)),
        .pyenv_folder = gl_str_of(gl_paths_in(&d->arena, d->data, "python")),
        .glia_path = n > 0 && (size_t)n < sizeof(self)
                         ? gl_str_dup(&d->arena, (gl_str){.p = self, .n = (size_t)n})
                         : (gl_str){0}};
    d->worker.env = gl_worker_inherited((const char *const *)environ, &d->arena, &d->worker.env_n);
}

/* The keeper raises its soft limit of open files to the hard one. A pool with more slots than that
 * limit allows is reduced: its excess slots would count as in use while the keeper refuses to start
 * their attempts. */
static void fit_pools(struct gl_daemon *d)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf reduced = {0};
    struct rlimit files;
    size_t most;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0) {
        return;
    }
    most = gl_keeper_attempts_max(files.rlim_max);
    for (size_t i = 0; i < d->pools_n; i++) {
        if (d->pools[i].slots > most) {
            gl_buf_fmt(&reduced, "%s%.*s (%u)", reduced.n > 0 ? ", " : "",
                       GL_STR_ARG(d->pools[i].name), d->pools[i].slots);
            d->pools[i].slots = (uint32_t)most;
        }
    }
    if (reduced.n > 0) {
        (void)gl_why(&d->warning, GL_E_LIMIT,
                     "the limit of %llu open files is too low for the slots of this node; raise it "
                     "(ulimit -Hn, or LimitNOFILE= of the service) and restart the node; reduced "
                     "to %zu: %.*s",
                     (unsigned long long)files.rlim_max, most, GL_STR_ARG(gl_buf_view(&reduced)));
    }
}

static int open_all(struct gl_daemon *d, struct gl_why *reterr_why)
{
    int err = gl_pools_read(d->config.pools, &d->arena, &d->pools, &d->pools_n, reterr_why);

    if (err == 0) {
        err = gl_pools_add_executor(d->config.executor_pools, d->config.executor_slots, &d->arena,
                                    d->pools, &d->pools_n, reterr_why);
    }
    if (err == 0) {
        err = gl_labels_parse(gl_str_of(d->config.labels), &d->arena, &d->labels, reterr_why);
    }
    if (err == 0) {
        fit_pools(d);
        set_worker_place(d);
        err = open_folder(d, reterr_why);
    }
    if (err == 0) {
        err = open_store(d, reterr_why);
    }
    if (err != 0) {
        return err;
    }
    open_recorder(d);
    gl_daemon_capacity_open(d);
    gl_daemon_listen_to_store(d);
    if (!d->config.passive) {
        gl_daemon_human_open(d);
    }
    err = gl_daemon_make_node(d, reterr_why);
    if (err == 0) {
        err = pthread_create(&d->thread, NULL, run, d);
        if (err != 0) {
            return gl_why(reterr_why, GL_E_IO, "cannot start a thread: %s", strerror(err));
        }
        d->has_thread = true;
        err = wait_ready(d, reterr_why);
    }
    err = err == 0 ? open_http(d, reterr_why) : err;
    if (err == 0 && !d->config.passive) {
        gl_daemon_human_start(d);
    }
    return err;
}

/* The caller's strings do not outlive the call. */
static void copy_config(struct gl_daemon *d, const struct gl_daemon_config *config)
{
    const char **texts[] = {&d->config.data,      &d->config.store,   &d->config.name,
                            &d->config.what,      &d->config.stack,   &d->config.env_scope,
                            &d->config.pools,     &d->config.listen,  &d->config.executor_pools,
                            &d->config.runs_root, &d->config.modules, &d->config.modules_trusted,
                            &d->config.labels};

    d->config = *config;
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        *texts[i] = gl_str_c(&d->arena, gl_str_of(*texts[i]));
    }
    if (d->config.executor_slots == 0) {
        d->config.executor_slots = GL_POOLS_EXECUTOR_SLOTS;
    }
    if (d->config.orphan_grace_ms == 0) {
        d->config.orphan_grace_ms = GL_ORPHAN_GRACE_MS;
    }
    d->data = d->config.data;
    d->store_url = gl_str_c(&d->arena, gl_storeurl_safe(&d->arena, gl_str_of(d->config.store)));
    d->store_label =
        gl_str_fmt(&d->arena, "the store%s%s", d->store_url[0] != '\0' ? " " : "", d->store_url).p;
}

int gl_daemon_start(struct gl_daemon **ret, const struct gl_daemon_config *config,
                    struct gl_why *reterr_why)
{
    struct gl_daemon *d = gl_mem_alloc(sizeof(*d));
    pthread_condattr_t attr;
    sigset_t all, before;
    int err;

    d->lock.fd = d->socket_fd = d->tcp_fd = -1;
    d->running = UINT64_MAX;
    d->has_command = config->passive;
    d->log.fd = -1;
    copy_config(d, config);
    gl_harden_memory();
    pthread_mutex_init(&d->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&d->changed, &attr);
    pthread_condattr_destroy(&attr);
    /* Threads inherit the signal mask; only the main thread handles signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = open_all(d, reterr_why);
    if (err == 0) {
        on_open(d);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0) {
        gl_daemon_stop(d);
        return err;
    }
    *ret = d;
    return 0;
}

/* ---- closing, in the opposite order ---- */

static void stop_node(struct gl_loop_task *t)
{
    gl_daemon_stop_node(t->owner);
}

static void stop_loop(struct gl_loop_task *t)
{
    struct gl_daemon *d = t->owner;

    gl_loop_stop(d->loop);
}

static void on_store_closed(void *owner)
{
    struct gl_daemon *d = owner;

    d->store = NULL;
    /* Not at once: the loop frees what the adapters closed in its next turn. */
    d->restart = (struct gl_loop_task){.run = stop_loop, .owner = d};
    gl_loop_post(d->loop, &d->restart);
}

static void on_tidy_closed(void *owner)
{
    struct gl_daemon *d = owner;

    d->tidy = NULL;
    if (d->work != NULL) {
        gl_workthread_stop(d->work);
    }
    if (d->log_work != NULL) {
        gl_workthread_stop(d->log_work);
    }
    d->store->ops->close(d->store, on_store_closed, d);
}

static void on_exec_closed(void *owner)
{
    struct gl_daemon *d = owner;

    d->exec = NULL;
    if (d->tidy != NULL) {
        gl_tidyfs_close(d->tidy, on_tidy_closed, d);
    } else {
        on_tidy_closed(d);
    }
}

static void close_ports(struct gl_loop_task *t)
{
    struct gl_daemon *d = t->owner;

    if (d->exec != NULL) {
        d->exec->ops->close(d->exec, on_exec_closed, d);
    } else {
        on_exec_closed(d);
    }
}

static void post(struct gl_daemon *d, void (*run_task)(struct gl_loop_task *t))
{
    d->task = (struct gl_loop_task){.run = run_task, .owner = d};
    gl_loop_post(d->loop, &d->task);
}

/* Close the node first, while everything it may call still exists; then its callers; then what it
 * uses. */
static void close_threads(struct gl_daemon *d)
{
    gl_daemon_human_stop(d);
    if (d->has_thread) {
        if (d->http != NULL) {
            gl_http_refuse(d->http);
        }
        post(d, stop_node);
        wait_stopped(d);
    }
    if (d->http != NULL) {
        gl_http_stop(d->http);
    }
    if (d->store == NULL) {
        return;
    }
    if (!d->has_thread) {
        d->is_detached = true; /* otherwise the control thread has set this */
    }
    post(d, close_ports);
    if (d->has_thread) {
        (void)pthread_join(d->thread, NULL);
    } else {
        gl_loop_run(d->loop);
    }
}

/* Closes everything except the memory of `d`. The lock goes last: after that, the next node may
 * start. */
static void close_all(struct gl_daemon *d)
{
    if (d->socket != NULL) {
        (void)unlink(d->socket); /* new clients find no node; new nodes wait for the lock */
    }
    close_threads(d);
    if (d->node != NULL) {
        gl_node_free(d->node);
    }
    gl_daemon_human_free(d);
    gl_blob_thread_close(d->serve);
    gl_recorder_close(d->recorder);
    gl_loop_free(d->loop);
    gl_workthread_free(d->work);
    gl_workthread_free(d->log_work);
#ifdef GL_WITH_FAILPOINTS
    if (d->cut != NULL) {
        vfs_cut_free(d->cut);
    }
#endif
    gl_crash_counter_close(&d->crashes);
    gl_fs_closep(&d->socket_fd);
    gl_fs_closep(&d->tcp_fd);
    if (d->lock.fd >= 0) {
        gl_textlog_write(&d->log, "stopped");
        gl_textlog_done(&d->log);
    }
    gl_lock_drop(&d->lock);
}

static void *yield_folder(void *owner)
{
    close_all(owner);
    return NULL;
}

void gl_daemon_stop(struct gl_daemon *d)
{
    bool is_yielding;

    if (d == NULL) {
        return;
    }
    pthread_mutex_lock(&d->mutex);
    d->is_stopping = true;
    is_yielding = d->is_yielding;
    pthread_mutex_unlock(&d->mutex);
    if (is_yielding) {
        (void)pthread_join(d->yielder, NULL);
    } else {
        close_all(d);
    }
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->mutex);
    gl_arena_done(&d->arena);
    gl_mem_free(d);
}

/* ---- queries of its owner ---- */

bool gl_daemon_is_yielding(struct gl_daemon *d)
{
    bool is_yielding;

    pthread_mutex_lock(&d->mutex);
    is_yielding = d->is_yielding;
    pthread_mutex_unlock(&d->mutex);
    return is_yielding;
}

static void on_drain(struct gl_loop_task *t)
{
    struct gl_daemon *d = t->owner;
    uint64_t running = d->life == GL_LIFE_UP ? gl_node_drain(d->node) : 0;

    pthread_mutex_lock(&d->mutex);
    d->running = running;
    d->is_draining = false;
    pthread_mutex_unlock(&d->mutex);
}

uint64_t gl_daemon_drain(struct gl_daemon *d)
{
    uint64_t running;

    pthread_mutex_lock(&d->mutex);
    running = d->running;
    if (!d->is_draining) {
        d->is_draining = true;
        d->drain = (struct gl_loop_task){.run = on_drain, .owner = d};
        gl_loop_post(d->loop, &d->drain);
    }
    pthread_mutex_unlock(&d->mutex);
    return running;
}

static void on_ping(struct gl_loop_task *t)
{
    struct gl_daemon *d = t->owner;

    pthread_mutex_lock(&d->mutex);
    d->is_pinged = false;
    pthread_mutex_unlock(&d->mutex);
}

bool gl_daemon_is_responsive(struct gl_daemon *d)
{
    bool is_alive;

    pthread_mutex_lock(&d->mutex);
    is_alive = !d->is_pinged;
    if (is_alive) {
        d->is_pinged = true;
        d->ping = (struct gl_loop_task){.run = on_ping, .owner = d};
        gl_loop_post(d->loop, &d->ping);
    }
    pthread_mutex_unlock(&d->mutex);
    return is_alive;
}

bool gl_daemon_is_ready(struct gl_daemon *d, struct gl_why *ret_why)
{
    bool is_ready;

    pthread_mutex_lock(&d->mutex);
    is_ready = d->stage == GL_STAGE_READY;
    *ret_why = d->why;
    pthread_mutex_unlock(&d->mutex);
    return is_ready;
}

enum gl_store_health gl_daemon_store_health(struct gl_daemon *d, struct gl_why *ret_why)
{
    enum gl_store_health health;

    pthread_mutex_lock(&d->mutex);
    health = d->health;
    *ret_why = d->health_why;
    pthread_mutex_unlock(&d->mutex);
    return health;
}

uint64_t gl_daemon_sessions_opened(struct gl_daemon *d)
{
    uint64_t sessions_opened;

    pthread_mutex_lock(&d->mutex);
    sessions_opened = d->sessions_opened;
    pthread_mutex_unlock(&d->mutex);
    return sessions_opened;
}

const char *gl_daemon_warning(const struct gl_daemon *d)
{
    return d->warning.text;
}

const char *gl_daemon_lost(struct gl_daemon *d)
{
    const char *why;

    pthread_mutex_lock(&d->mutex);
    why = d->has_given_up ? d->why.text : NULL;
    pthread_mutex_unlock(&d->mutex);
    return why;
}

const char *gl_daemon_address(const struct gl_daemon *d, bool *ret_is_local)
{
    *ret_is_local = d->is_local;
    return d->address;
}

size_t gl_daemon_quarantined(const struct gl_daemon *d, const gl_str **ret)
{
    *ret = d->crashes.quarantined;
    return d->crashes.quarantined_n;
}
