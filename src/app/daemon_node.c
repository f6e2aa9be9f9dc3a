/* daemon_node.c - the node in this process and its executor: making them, forwarding events to
 * them, and replacing them.
 *
 * When the node loses its session on a shared store, it is stopped, freed, and made again with a
 * new session, in the same process. The listeners of store and executor are here, and forward
 * events to the node that is up (`is_detached`: none is). All of this runs on the control thread.
 */
#include <limits.h>
#include <unistd.h>

#include "app/daemon_state.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "exec/keeper_exec.h"
#include "exec/module_exec.h"
#include "exec/mux_exec.h"
#include "exec/noop_exec.h"
#include "os/failpoint.h"
#include "os/paths.h"

enum {
    PAUSE_MS_MIN = 100, /* pause before the next node is made ... */
    PAUSE_MS_MAX = 10000,
    LONG_LIFE_MS = 60000, /* ... doubled each time, unless the last node lived this long */
};

static gl_ms now_of(struct gl_daemon *d)
{
    struct gl_clock *clock = gl_loop_clock(d->loop);

    return clock->now(clock);
}

/* ---- callbacks of the node ---- */

static void remember(struct gl_daemon *d)
{
    struct gl_why why;

    if (gl_stores_save(d->data, &d->memory, &why) != 0) {
        gl_textlog_write(&d->log, "cannot save which store this folder belongs to: %s", why.text);
    }
}

static void on_session(void *owner, uint64_t incarnation)
{
    struct gl_daemon *d = owner;

    gl_textlog_write(&d->log, "session opened, incarnation %llu", (unsigned long long)incarnation);
    d->has_session = true;
    d->session_at = now_of(d);
    d->unreachable_since = 0;
    pthread_mutex_lock(&d->mutex);
    d->is_unreachable = false;
    d->health = GL_STORE_OK;
    d->health_why = (struct gl_why){0};
    d->sessions_opened++;
    d->why.code = 0;
    pthread_mutex_unlock(&d->mutex);
    if (d->store->ops->shared && gl_stores_rename(d->data, &d->memory, d->name)) {
        remember(d);
    }
    gl_keeper_exec_connect(d->keeper, d->memory.incarnations + incarnation);
}

/* Can a retry succeed without operator action on this machine? */
static bool is_transient(const struct gl_daemon *d, int code)
{
    return d->store->ops->shared &&
           (code == GL_E_UNAVAILABLE || code == GL_E_UNKNOWN || code == GL_E_IO);
}

static void give_up_store(struct gl_daemon *d, int code, const char *why)
{
    struct gl_why text;

    (void)gl_why(&text, code,
                 "%s (%s/" GL_PATHS_STORE ", and with it %s/" GL_PATHS_KEEPER "/epoch)", why,
                 d->data, d->data);
    gl_daemon_give_up(d, code, text.text);
}

/* Opening the session failed. */
static void on_trouble(void *owner, int code, const char *why)
{
    struct gl_daemon *d = owner;

    if (gl_err_code(code) == GL_E_GONE) { /* not the store that this folder remembers */
        give_up_store(d, code, why);
        return;
    }
    if (!is_transient(d, gl_err_code(code))) {
        gl_daemon_give_up(d, code, why);
        return;
    }
    d->unreachable_since = d->unreachable_since == 0 ? now_of(d) : d->unreachable_since;
    gl_daemon_note(d, code, why);
    pthread_mutex_lock(&d->mutex);
    d->is_unreachable = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->mutex);
}

static void on_notice(void *owner, const char *line)
{
    struct gl_daemon *d = owner;

    gl_textlog_write(&d->log, "%s", line);
}

static void on_store_health(void *owner, enum gl_store_health health, const char *why)
{
    static const char *const bad[] = {
        [GL_STORE_UNREACHABLE] = "does not answer", [GL_STORE_READ_ONLY] = "accepts no commits"};
    struct gl_daemon *d = owner;

    if (health != GL_STORE_OK) {
        gl_textlog_write(&d->log, "%s %s: %s", d->store_label, bad[health], why);
    } else {
        gl_textlog_write(&d->log, "%s %s again", d->store_label,
                         d->health == GL_STORE_READ_ONLY ? "accepts commits" : "answers");
    }
    pthread_mutex_lock(&d->mutex);
    d->health = health;
    d->health_why = (struct gl_why){0};
    if (health != GL_STORE_OK) {
        (void)gl_why(&d->health_why, GL_E_UNAVAILABLE, "%s %s: %s", d->store_label, bad[health],
                     why);
    }
    pthread_mutex_unlock(&d->mutex);
}

static void on_ready(void *owner)
{
    struct gl_daemon *d = owner;

    gl_textlog_write(&d->log, "ready, pid %ld", (long)getpid());
    if (d->config.stays) {
        gl_node_publish(d->node);
    }
    gl_daemon_set_stage(d, GL_STAGE_READY);
}

static void restart_node(struct gl_loop_task *t);

/* Other nodes own our jobs now, or soon will. The next session determines which jobs are still
 * ours. */
static void on_session_lost(void *owner, const char *why)
{
    struct gl_daemon *d = owner;

    if (!d->store->ops->shared || !d->has_session) {
        gl_daemon_give_up(d, GL_E_GONE, why); /* or the store is a different one now */
        return;
    }
    gl_daemon_note(d, GL_E_GONE, why);
    gl_daemon_set_stage(d, GL_STAGE_STARTING);
    d->restart = (struct gl_loop_task){.run = restart_node, .owner = d};
    gl_loop_post(d->loop, &d->restart); /* never from inside the node */
}

static void on_handling(void *owner, gl_str job)
{
    struct gl_daemon *d = owner;

    gl_crash_counter_set(&d->crashes, job);
    if (job.n > 0) {
        GL_FAILPOINT("daemon.handling");
    }
}

static bool is_quarantined(void *owner, gl_str job)
{
    struct gl_daemon *d = owner;

    return d->node != NULL && gl_node_is_quarantined(d->node, job);
}

/* ---- callbacks of the executor ---- */

static void on_up(void *owner, gl_str epoch)
{
    struct gl_daemon *d = owner;

    gl_textlog_write(&d->log, "keeper connected, epoch %.*s", GL_STR_ARG(epoch));
    if (!d->is_detached) {
        d->events.up(d->events.owner, epoch);
    }
}

static void on_down(void *owner, const char *why)
{
    struct gl_daemon *d = owner;

    gl_daemon_note(d, GL_E_UNAVAILABLE, why);
    if (!d->is_detached) {
        d->events.down(d->events.owner, why);
    }
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct gl_daemon *d = owner;

    if (!d->is_detached) { /* otherwise the next node gets it again */
        d->events.ended(d->events.owner, key, token, result);
    }
}

static void on_beacon(void *owner, const struct gl_attempt_key *key, uint64_t token)
{
    struct gl_daemon *d = owner;

    if (!d->is_detached) {
        d->events.beacon(d->events.owner, key, token);
    }
}

static void on_said(void *owner, const struct gl_attempt_key *key, uint64_t token, gl_str line)
{
    struct gl_daemon *d = owner;

    if (!d->is_detached) {
        d->events.said(d->events.owner, key, token, line);
    }
}

/* ---- callbacks of the store ---- */

static void on_woken(void *owner, gl_str context, gl_str word)
{
    struct gl_daemon *d = owner;

    if (!d->is_detached) {
        struct gl_store_events events = gl_node_store_events(d->node);

        events.woken(events.owner, context, word);
    }
}

static void on_changed(void *owner, const char *why)
{
    struct gl_daemon *d = owner;

    gl_textlog_write(&d->log, "%s is connected again (lost before: %s)", d->store_label, why);
    if (!d->is_detached) {
        struct gl_store_events events = gl_node_store_events(d->node);

        events.changed(events.owner, why);
    }
}

/* The store's identity is known. (The adapter itself refuses a store with an unexpected identity.)
 */
static void on_identity(void *owner, gl_str identity)
{
    struct gl_daemon *d = owner;

    gl_textlog_write(&d->log, "connected to store %s, identity %.*s", d->store_url,
                     GL_STR_ARG(identity));
    if (gl_str_is(identity, d->memory.identity) && strcmp(d->store_url, d->memory.url) == 0) {
        return;
    }
    gl_stores_set(&d->memory, d->config.store, identity);
    remember(d);
}

void gl_daemon_listen_to_store(struct gl_daemon *d)
{
    struct gl_store_events events = {
        .owner = d, .woken = on_woken, .met = on_identity, .changed = on_changed};

    d->is_detached = true; /* until there is a node */
    if (d->store->ops->shared) {
        d->store->ops->listen(d->store, &events);
    }
}

/* ---- making ---- */

static int add_modules(struct gl_daemon *d, const struct gl_exec_events *events,
                       struct gl_why *reterr_why)
{
    struct gl_module_exec_config config = {.quiet = true,
                                           .folders = d->config.modules,
                                           .trusted = d->config.modules_trusted,
                                           .handling = on_handling,
                                           .owner = d};
    struct gl_exec *modules;
    int err = gl_module_exec_open(&modules, &config, d->loop, events, reterr_why);

    if (err == 0) {
        gl_mux_exec_add(d->exec, "module", modules, gl_module_exec_knows);
    }
    return err;
}

static int open_exec(struct gl_daemon *d, struct gl_why *reterr_why)
{
    struct gl_exec_events events = {.owner = d,
                                    .up = on_up,
                                    .down = on_down,
                                    .ended = on_ended,
                                    .beacon = on_beacon,
                                    .said = on_said};
    struct gl_keeper_exec_config keeper = {
        .data_dir = d->data,
        .orphan_grace_ms = d->store->ops->shared ? d->config.orphan_grace_ms : 0};
    struct gl_noop_exec_config noop = {.quiet = true};
    struct gl_exec *first;
    int err;

    d->events = gl_node_exec_events(d->node);
    err = gl_keeper_exec_open(&d->keeper, &keeper, d->loop, &events, reterr_why);
    if (err == GL_E_NOT_FOUND) {
        return GL_E_UNAVAILABLE; /* without the keeper's program there is no node */
    }
    if (err == 0) {
        d->exec = d->keeper; /* from here on it must be closed in any case */
        err = gl_noop_exec_open(&first, &noop, d->loop, &events, reterr_why);
    }
    if (err == 0) {
        d->exec = gl_mux_exec_new(first, d->keeper);
        err = add_modules(d, &events, reterr_why);
    }
    if (err == 0) {
        gl_node_set_exec(d->node, d->exec);
    }
    return err;
}

/* A suffix of the folder's id makes the name unique: of two nodes with the same name, each would
 * take the other for an earlier session of itself. */
static void set_name(struct gl_daemon *d)
{
    const char *name = d->config.name[0] != '\0' ? d->config.name : d->identity.name;

    d->name = gl_str_fmt(&d->arena, "%s.%s", name, d->identity.id.text + GL_ULID_BYTES - 6);
}

static gl_str host_name(struct gl_arena *a)
{
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof(host) - 1); /* without one it stays empty */
    return gl_str_dup(a, gl_str_of(host));
}

static void make_node(struct gl_daemon *d)
{
    struct gl_pool_config pools[GL_POOLS_MAX];
    struct gl_node_ports ports = {.store = d->store,
                                  .clock = gl_loop_clock(d->loop),
                                  .entropy = &d->entropy,
                                  .tidy = gl_tidyfs_port(d->tidy),
                                  .blob = &d->blobs.blob,
                                  .record = gl_recorder_port(d->recorder),
                                  .asks = d->human != NULL ? &d->asks : NULL,
                                  .ask_writer = d->ask_writer,
                                  .work = gl_workthread_port(d->work)};
    struct gl_node_config config = {
        .name = d->name,
        .context = d->config.context,
        .stack = gl_str_of(d->config.stack),
        .env_scope = gl_str_of(d->config.env_scope),
        .store = gl_str_of(d->store_url),
        .warning = gl_str_of(d->warning.text),
        .session_ttl_ms = d->config.session_ttl_ms,
        .orphan_grace_ms = d->config.orphan_grace_ms,
        .body_bytes = d->config.body_bytes,
        .log_bytes = (uint64_t)d->config.log_bytes,
        .host = host_name(&d->arena),
        .version = GL_S(GL_VERSION),
        .pid = getpid(),
        .pools = pools,
        .pools_n = d->pools_n,
        .labels = d->labels,
        .capacity = gl_daemon_capacity,
        .worker = d->worker,
        .trace = &d->trace,
        .passive = d->config.passive,
        .may_be_half = true,
        .guest = d->store->ops->shared && !d->config.stays,
        .keep = {.job_ms = d->config.keep_ms,
                 .jobs = d->config.keep_jobs,
                 .bytes = d->config.keep_bytes,
                 .work_ms = d->config.keep_workspaces_ms},
        .quarantined = d->crashes.quarantined,
        .quarantined_n = d->crashes.quarantined_n,
        .on_handling = on_handling,
        .on_session = on_session,
        .on_trouble = on_trouble,
        .on_notice = on_notice,
        .on_store_health = on_store_health,
        .on_ready = on_ready,
        .on_session_lost = on_session_lost,
        .owner = d,
    };

    if (d->log_work != NULL) {
        ports.logs = &d->logs.logs;
        ports.log_work = gl_workthread_port(d->log_work);
    }
    config.worker.node_name = d->name;
    GL_ASSERT(d->pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < d->pools_n; i++) {
        pools[i] = (struct gl_pool_config){.name = d->pools[i].name, .slots = d->pools[i].slots};
    }
    d->node = gl_node_new(&config, &ports);
    d->crashes.is_quarantined = is_quarantined;
    d->crashes.owner = d;
}

int gl_daemon_make_node(struct gl_daemon *d, struct gl_why *reterr_why)
{
    int err = d->work != NULL ? 0 : gl_workthread_open(&d->work, d->loop, reterr_why);

    if (err == 0 && d->store->ops->shared && d->log_work == NULL) {
        err = gl_workthread_open(&d->log_work, d->loop, reterr_why);
    }
    err = err != 0 ? err : gl_tidyfs_open(&d->tidy, d->data, &d->blobs, d->loop, reterr_why);

    if (err == 0) {
        if (d->name.n == 0) {
            set_name(d);
        }
        make_node(d);
        err = open_exec(d, reterr_why);
    }
    if (err == 0) {
        d->has_session = false;
        d->is_detached = false;
        d->life = GL_LIFE_UP;
    }
    return err;
}

/* ---- replacing the node ---- */

/* Jobs that a person has released from quarantine are not quarantined again. */
static void drop_released(struct gl_daemon *d)
{
    size_t n = 0;

    for (size_t i = 0; i < d->crashes.quarantined_n; i++) {
        if (gl_node_is_quarantined(d->node, d->crashes.quarantined[i])) {
            d->crashes.quarantined[n++] = d->crashes.quarantined[i];
        }
    }
    d->crashes.quarantined_n = n;
}

static void make_next(void *owner)
{
    struct gl_daemon *d = owner;
    struct gl_why why;

    if (gl_daemon_make_node(d, &why) != 0) {
        gl_daemon_give_up(d, GL_E_UNAVAILABLE, why.text);
        return;
    }
    gl_node_start(d->node);
}

/* The previous node and its adapters are closed. */
static void on_old_closed(void *owner)
{
    struct gl_daemon *d = owner;
    struct gl_clock *clock = gl_loop_clock(d->loop);
    gl_ms now = clock->now(clock);

    d->tidy = NULL;
    clock->alarm(clock, INT64_MAX); /* it was the previous node's */
    drop_released(d);
    gl_workthread_clear(d->work);
    gl_daemon_human_forget_node(d);
    gl_daemon_capacity_reset(d);
    if (d->log_work != NULL) {
        gl_workthread_clear(d->log_work);
    }
    gl_node_free(d->node);
    d->node = NULL;
    d->life = GL_LIFE_BETWEEN;
    if (d->is_final) {
        gl_daemon_set_stage(d, GL_STAGE_STOPPED);
        return;
    }
    d->pause_ms = now - d->session_at > LONG_LIFE_MS ? PAUSE_MS_MIN : d->pause_ms * 2;
    d->pause_ms = d->pause_ms < PAUSE_MS_MIN   ? PAUSE_MS_MIN
                  : d->pause_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX
                                               : d->pause_ms;
    clock->fire = make_next;
    clock->owner = d;
    clock->alarm(clock, now + d->pause_ms);
}

static void on_old_exec_closed(void *owner)
{
    struct gl_daemon *d = owner;

    d->exec = d->keeper = NULL;
    gl_tidyfs_close(d->tidy, on_old_closed, d);
}

static void on_old_stopped(void *owner)
{
    struct gl_daemon *d = owner;

    d->is_detached = true;
    d->exec->ops->close(d->exec, on_old_exec_closed, d);
}

static void restart_node(struct gl_loop_task *t)
{
    struct gl_daemon *d = t->owner;

    if (d->is_final) {
        return;
    }
    gl_textlog_write(&d->log, "opening a new session");
    d->life = GL_LIFE_ENDING;
    gl_node_stop(d->node, on_old_stopped, d);
}

/* ---- ending ---- */

static void on_last_stopped(void *owner)
{
    struct gl_daemon *d = owner;

    d->is_detached = true;
    gl_daemon_set_stage(d, GL_STAGE_STOPPED);
}

void gl_daemon_stop_node(struct gl_daemon *d)
{
    struct gl_clock *clock = gl_loop_clock(d->loop);

    d->is_final = true;
    switch (d->life) {
    case GL_LIFE_UP:
        gl_node_stop(d->node, on_last_stopped, d);
        break;
    case GL_LIFE_ENDING: /* on_old_closed() sees is_final */
        break;
    case GL_LIFE_BETWEEN:
        clock->alarm(clock, INT64_MAX);
        gl_daemon_set_stage(d, GL_STAGE_STOPPED);
        break;
    }
}

/* ---- requests of clients ---- */

struct request_refusal {
    struct gl_loop_task task;
    struct gl_request *rq;
};

static void refuse_now(struct gl_loop_task *t)
{
    struct request_refusal *r = GL_CONTAINER(t, struct request_refusal, task);
    struct gl_request *rq = r->rq;

    gl_mem_free(r);
    rq->done(rq);
}

static void refuse(struct gl_daemon *d, struct gl_request *rq)
{
    struct request_refusal *r = gl_mem_alloc(sizeof(*r));
    char since[GL_TIMES_BYTES];
    struct gl_why why;

    (void)gl_daemon_is_ready(d, &why); /* it is not: that is why we are here */
    if (d->unreachable_since > 0) {
        rq->code = gl_why(&rq->why, GL_R_STORE_SILENT, "%s has not answered since %.*s: %s",
                          d->store_label, GL_STR_ARG(gl_times_format(d->unreachable_since, since)),
                          why.text);
    } else {
        rq->code = gl_why(&rq->why, GL_R_NODE_STARTING, "this node is %s%s%s",
                          d->node == NULL || d->life != GL_LIFE_UP ? "opening a new session"
                                                                   : "opening its session",
                          why.code != 0 ? ": " : "", why.code != 0 ? why.text : "");
    }
    rq->body = (gl_str){0};
    rq->job_id[0] = '\0';
    rq->count = 0;
    rq->ended = false;
    r->rq = rq;
    r->task = (struct gl_loop_task){.run = refuse_now};
    gl_loop_post(d->loop, &r->task); /* never answer from inside the call */
}

void gl_daemon_request(struct gl_daemon *d, struct gl_request *rq)
{
    if (d->life == GL_LIFE_UP && d->has_session) {
        gl_node_request(d->node, rq);
    } else {
        refuse(d, rq);
    }
}
