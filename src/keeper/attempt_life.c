#include "keeper/attempt_life.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "keeper/client.h"
#include "keeper/dir_cache.h"
#include "keeper/launch.h"
#include "keeper/proctree.h"
#include "keeper/rundir.h"
#include "keeper/workdir.h"
#include "os/failpoint.h"

enum {
    CLEAR_AGAIN_MS = 500, /* interval between kills of leftover processes */
};

/* ---- timers ---- */

static void set_timer(struct gl_keeper *k, struct gl_attempt *a)
{
    gl_ms due = a->deadline;

    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING || a->state == GL_ATTEMPT_CLEARING);
    due = a->kill_at < due ? a->kill_at : due;
    due = a->beacon_at < due ? a->beacon_at : due;
    due = a->clear_at < due ? a->clear_at : due;
    gl_keeper_set_timer(k, &a->timer, due);
}

/* ---- the end ---- */

/* The end of a process that nothing stopped. */
static void set_natural_end(struct gl_exec_result *r, int status)
{
    if (WIFSIGNALED(status)) {
        r->end = GL_EXEC_SIGNALED;
        r->signal = WTERMSIG(status);
    } else {
        r->end = GL_EXEC_EXITED;
        r->exit_code = WEXITSTATUS(status);
    }
}

/* As far as the keeper can tell: the node may still reject the output. */
static bool has_succeeded(const struct gl_attempt *a)
{
    return a->result.end == GL_EXEC_EXITED && a->result.exit_code == 0 && a->error.n == 0;
}

/* The line was redacted with the rest of stdout; the file was not. In both, a number may have
 * become "***", which is not valid JSON. */
static void redact_output(struct gl_keeper *k, struct gl_attempt *a, gl_str path)
{
    bool from_file = a->output_source == GL_KEEPER_FROM_FILE;
    bool replaced =
        from_file ? gl_redact_text(a->redactor, &a->output) : a->capture.out.redact.replaced;
    if (!replaced) {
        return;
    }
    gl_redact_repair_json(&a->output);
    if (a->output.n > GL_OUTPUT_BYTES_MAX) { /* mending can make it longer */
        gl_buf_reset(&a->output);
        a->output_source = GL_KEEPER_NO_OUTPUT;
    }
    if (from_file && a->output.n == 0) {
        gl_buf_c(&a->error, "output larger than 1 MiB");
    }
    if (from_file) {
        gl_rundir_replace_output(k, path, gl_buf_view(&a->output));
    }
    GL_ASSERT(a->output.n <= GL_OUTPUT_BYTES_MAX);
}

static void take_output(struct gl_keeper *k, struct gl_attempt *a)
{
    struct gl_why why;
    gl_str path = gl_rundir_path(&k->scratch, &a->key);

    GL_ASSERT(a->state == GL_ATTEMPT_CLEARING);
    GL_ASSERT(a->output.n == 0);
    if (a->capture.log_bytes == 0 && has_succeeded(a) && gl_dir_cache_put(k, a, path)) {
        return; /* it wrote nothing and left nothing */
    }
    a->floor->has_files = a->has_files = true;
    int r = gl_rundir_output(k, path, &a->output, &why);
    if (r == 0) {
        a->output_source = GL_KEEPER_FROM_FILE;
    } else if (r != GL_E_NOT_FOUND) {
        gl_buf_c(&a->error, why.text);
        if (a->redactor != NULL) { /* it was not searched for secrets */
            gl_rundir_replace_output(k, path, (gl_str){0});
        }
    } else if (gl_capture_last(&a->capture).n > 0) {
        gl_buf_str(&a->output, gl_capture_last(&a->capture));
        a->output_source = GL_KEEPER_FROM_LINE;
    }
    if (a->redactor != NULL) {
        redact_output(k, a, path);
    }
}

/* A worker leaves only its output: its folder is removed however it ended. */
static void clear_worker(struct gl_keeper *k, struct gl_attempt *a)
{
    bool is_silent = a->capture.log_bytes == 0;

    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING || a->state == GL_ATTEMPT_CLEARING);
    gl_workdir_remove(k, gl_rundir_path(&k->scratch, &a->key), is_silent);
    a->floor->has_files = true;
}

static void end_attempt(struct gl_keeper *k, struct gl_attempt *a)
{
    GL_ASSERT(a->journal_at == 0);
    (void)gl_redact_text(a->redactor, &a->error); /* whether a secret was found does not matter */
    gl_redact_put(&k->redactors, a->redactor);
    a->redactor = NULL;
    a->result.ended_at = gl_keeper_wall(k);
    k->result_bytes += gl_attempt_bytes(a);
    gl_attempt_move(k, a, GL_ATTEMPT_ENDING);
    GL_ASSERT(k->result_bytes >= GL_ATTEMPT_BYTES);
}

/* Its process was waited for and no descendant is left. */
static void finish(struct gl_keeper *k, struct gl_attempt *a)
{
    GL_ASSERT(a->state == GL_ATTEMPT_CLEARING);
    gl_capture_finish(k, &a->capture);
    if (a->worker != NULL) {
        clear_worker(k, a);
    }
    if (a->lost) {
        gl_attempt_remove(k, a);
        return;
    }
    set_natural_end(&a->result, a->wait_status);
    if (a->stopping) {
        a->result.end = a->why;
    }
    if (a->worker == NULL) {
        take_output(k, a);
    }
    end_attempt(k, a);
}

/* It could not be executed, which is a result too. */
static void end_not_executed(struct gl_keeper *k, struct gl_attempt *a, int code,
                             const struct gl_why *why)
{
    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING);
    GL_ASSERT(code < 0);
    gl_capture_finish(k, &a->capture);
    a->result.end = GL_EXEC_NOT_EXECUTED;
    a->result.exit_code = code == GL_E_DAMAGED ? code : 0;
    gl_buf_c(&a->error, why->text);
    if (a->worker != NULL) {
        clear_worker(k, a);
    } else {
        a->floor->has_files = a->has_files = true;
    }
    end_attempt(k, a);
}

/* ---- stopping ---- */

/* The process is our child and was not waited for, so its pid and group cannot have been reused. */
static void signal_group(const struct gl_attempt *a, int sig)
{
    GL_ASSERT(a->proc.pid > 1);
    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING);
    (void)kill(-a->proc.pid, sig);
}

static void clear(struct gl_keeper *k, struct gl_attempt *a, int status)
{
    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING);
    GL_ASSERT(a->proc.direct);
    a->wait_status = status;
    a->deadline = a->kill_at = INT64_MAX;
    gl_proctree_remove(k, &a->proc);
    gl_attempt_move(k, a, GL_ATTEMPT_CLEARING);
    gl_proctree_kill_adopted(a);
}

void gl_attempt_life_stop(struct gl_keeper *k, struct gl_attempt *a, enum gl_exec_end why)
{
    int status;

    GL_ASSERT(why == GL_EXEC_TIMEOUT || why == GL_EXEC_STOPPED || why == GL_EXEC_ORPHANED);
    if (a->state != GL_ATTEMPT_RUNNING || a->stopping) {
        return;
    }
    /* It may have exited by itself a moment ago: then that is its result, not the stop. */
    if (waitpid(a->proc.pid, &status, WNOHANG) == a->proc.pid) {
        clear(k, a, status);
        k->reaped = true;
        return;
    }
    a->stopping = true;
    a->why = why;
    a->deadline = INT64_MAX;
    a->kill_at = gl_keeper_after(k, a->grace_ms);
    signal_group(a, SIGTERM);
    (void)kill(-a->proc.pid, SIGCONT); /* a stopped process would not receive SIGTERM */
    set_timer(k, a);
}

void gl_attempt_life_limit_grace(struct gl_keeper *k, struct gl_attempt *a, gl_ms grace_ms)
{
    gl_ms kill_at = gl_keeper_after(k, grace_ms);

    GL_ASSERT(grace_ms >= 0);
    if (a->state != GL_ATTEMPT_RUNNING) {
        return;
    }
    a->grace_ms = a->grace_ms < grace_ms ? a->grace_ms : grace_ms;
    if (a->stopping && a->kill_at > kill_at) {
        a->kill_at = kill_at;
        set_timer(k, a);
    }
}

/* ---- orphans ---- */

void gl_attempt_life_set_node(const struct gl_keeper *k, struct gl_attempt *a)
{
    GL_ASSERT(k->orphan_grace_ms >= 0);
    a->incarnation = k->epoch.incarnation;
    a->orphan_grace_ms = k->orphan_grace_ms;
}

/* When its node was last heard of. A node without a session still sends messages, but they do not
 * count for steps that other nodes will run again. */
static gl_ms last_contact(const struct gl_keeper *k, const struct gl_attempt *a)
{
    if (a->incarnation != k->epoch.incarnation) {
        return a->contact_at;
    }
    return a->needs_session && k->session_until < k->contact_at ? k->session_until : k->contact_at;
}

void gl_attempt_life_save_contact(struct gl_keeper *k)
{
    struct gl_attempt *a;
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        a->contact_at = last_contact(k, a);
    }
}

gl_ms gl_attempt_life_end_orphans(struct gl_keeper *k)
{
    gl_ms next = INT64_MAX;
    struct gl_attempt *a;
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        gl_ms contact = last_contact(k, a);
        gl_ms end = contact + a->orphan_grace_ms, due = end - a->orphan_grace_ms / 4;
        if (a->state != GL_ATTEMPT_RUNNING || a->why == GL_EXEC_ORPHANED) {
            continue;
        }
        if (due > k->now) {
            next = due < next ? due : next;
            continue;
        }
        if (k->logged_contact_at != contact) { /* log each contact time once */
            gl_keeper_log("node silent for %lld ms%s; terminating its steps",
                          (long long)(k->now - contact),
                          a->needs_session ? " or without a session" : "");
            k->logged_contact_at = contact;
        }
        gl_attempt_life_limit_grace(
            k, a, end > k->now ? end - k->now : 0); /* late: this process was suspended */
        gl_attempt_life_stop(k, a, GL_EXEC_ORPHANED);
    }
    GL_ASSERT(next > k->now);
    return next;
}

void gl_attempt_life_shut_down(struct gl_keeper *k)
{
    struct gl_attempt *a;

    GL_ASSERT(k->shutting_down);
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        if (a->state == GL_ATTEMPT_RUNNING || a->state == GL_ATTEMPT_CLEARING) {
            a->lost = k->lost = true;
            a->grace_ms = a->grace_ms < GL_KEEPER_SHUTDOWN_MS ? a->grace_ms : GL_KEEPER_SHUTDOWN_MS;
            gl_attempt_life_stop(k, a, GL_EXEC_STOPPED);
        }
    }
}

/* ---- due times ---- */

static void send_beacon(struct gl_keeper *k, const struct gl_attempt *a)
{
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_BEACON,
        .start = {.key = a->key, .token = a->token},
    };

    GL_ASSERT(a->beacon_ms > 0);
    gl_client_notify(k, &m);
}

static void on_due(struct gl_keeper *k, struct gl_timer *t)
{
    struct gl_attempt *a = GL_CONTAINER(t, struct gl_attempt, timer);

    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING || a->state == GL_ATTEMPT_CLEARING);
    if (k->now >= a->deadline) {
        gl_attempt_life_stop(k, a, GL_EXEC_TIMEOUT);
    }
    if (k->now >= a->kill_at && a->state == GL_ATTEMPT_RUNNING) {
        signal_group(a, SIGKILL);
        (void)kill(a->proc.pid, SIGKILL); /* it may have left its own group */
        a->kill_at = gl_keeper_after(k, CLEAR_AGAIN_MS);
    }
    if (k->now >= a->clear_at) {
        gl_proctree_kill_adopted(a);
        a->clear_at = gl_keeper_after(k, CLEAR_AGAIN_MS);
    }
    if (k->now >= a->beacon_at) {
        send_beacon(k, a);
        a->beacon_at = gl_keeper_after(k, a->beacon_ms);
    }
    if (a->state == GL_ATTEMPT_RUNNING || a->state == GL_ATTEMPT_CLEARING) {
        set_timer(k, a);
    }
}

/* ---- beginning ---- */

static int may_begin(struct gl_keeper *k, struct gl_why *why)
{
    if (k->shutting_down) {
        return gl_why(why, GL_E_UNAVAILABLE, "the keeper is shutting down");
    }
    if (k->retry.fire != NULL) {
        return gl_why(why, GL_E_UNAVAILABLE, "the keeper cannot write its journal");
    }
    if (k->running_n >= k->running_max) {
        return gl_why(why, GL_E_UNAVAILABLE, "the limit of %zu running attempts is reached",
                      k->running_max);
    }
    if (k->result_bytes >= GL_KEEPER_RESULT_BYTES_MAX) {
        return gl_why(why, GL_E_UNAVAILABLE, "too many results are not acknowledged yet");
    }
    return 0;
}

static void set_times(struct gl_keeper *k, struct gl_attempt *a, const struct gl_exec_start *s)
{
    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING);
    a->grace_ms = s->grace_ms;
    a->beacon_ms = s->beacon_ms;
    a->deadline = s->timeout_ms > 0 ? gl_keeper_after(k, s->timeout_ms) : INT64_MAX;
    a->beacon_at = s->beacon_ms > 0 ? gl_keeper_after(k, s->beacon_ms) : INT64_MAX;
    a->timer.fire = on_due;
    set_timer(k, a);
}

static int launch(struct gl_keeper *k, struct gl_attempt *a, struct gl_launch *l,
                  struct gl_why *why)
{
    GL_ASSERT(a->state == GL_ATTEMPT_RUNNING);
    l->mark = a->mark = gl_proctree_new_mark(k);
    a->proc = (struct gl_proc){.attempt = a, .direct = true};
    a->ticks_min = gl_proctree_ticks();
    GL_FAILPOINT("keeper.before_spawn");
    int r = gl_launch_start(k, l, &a->proc.pid, why);
    if (r == 0) {
        GL_FAILPOINT("keeper.after_spawn");
        a->ticks_max = gl_proctree_ticks();
        gl_proctree_add(k, &a->proc);
        struct gl_keeper_msg m = gl_attempt_begun(k, a);
        (void)gl_journal_add(&k->journal, &m);
    }
    return r;
}

int gl_attempt_life_begin(struct gl_keeper *k, const struct gl_exec_start *s,
                          struct gl_why *reterr_why)
{
    struct gl_why why;
    struct gl_launch l = {0};
    int r = may_begin(k, reterr_why);
    if (r < 0) {
        return r;
    }
    struct gl_attempt *a = gl_attempt_new(k, &s->key, s->token, GL_ATTEMPT_RUNNING);
    gl_attempt_life_set_node(k, a);
    a->needs_session = s->needs_session;
    gl_str path = gl_rundir_path(&k->scratch, &a->key);
    gl_str log = gl_rundir_join(&k->scratch, path, GL_S("log"));
    a->redactor = gl_redact_get(&k->redactors, s->secrets, s->secrets_n);
    a->worker = a->capture.worker = s->is_worker ? gl_worker_lines_new(a, s->stdout_max) : NULL;
    r = gl_capture_open(k, &a->capture, log, a->redactor, &l.out_fd, &l.err_fd, reterr_why);
    if (r < 0) {
        gl_attempt_remove(k, a);
        return r;
    }
    a->result.started_at = gl_keeper_wall(k);
    gl_launch_prepare(k, &l, s, gl_rundir_join(&k->scratch, gl_str_of(k->contexts), path));
    r = s->is_worker ? gl_workdir_make(k, s, l.cwd, path, &why)
                     : gl_rundir_make(k, s, l.env + s->secrets_n, a->floor, path, &why);
    if (r == 0) {
        r = launch(k, a, &l, &why);
    }
    if (r == GL_E_UNAVAILABLE) { /* out of space or processes: as if the start had never arrived */
        a->floor->has_files = true;
        if (a->worker != NULL) {
            clear_worker(k, a);
        }
        gl_attempt_remove(k, a);
        return gl_why(reterr_why, r, "%s", why.text);
    }
    if (r < 0) {
        end_not_executed(k, a, r, &why);
    } else {
        set_times(k, a, s);
    }
    GL_ASSERT(r == 0 || a->state == GL_ATTEMPT_ENDING);
    return 0;
}

/* ---- ended processes ---- */

static void on_process_end(struct gl_keeper *k, pid_t pid, int status)
{
    struct gl_proc *p = gl_proctree_find(k, pid);

    GL_ASSERT(pid > 0);
    if (p == NULL) {
        return; /* an orphan that exited before a sweep saw it */
    }
    if (p->direct) {
        clear(k, p->attempt, status);
    } else {
        gl_proctree_remove(k, p);
    }
}

void gl_attempt_life_reap(struct gl_keeper *k)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        on_process_end(k, pid, status);
        k->reaped = true;
    }
    if (!k->reaped) {
        return;
    }
    k->reaped = false;
    gl_proctree_sweep(k);
    for (struct gl_link *l = k->clearing.next, *next; l != &k->clearing; l = next) {
        struct gl_attempt *a = GL_CONTAINER(l, struct gl_attempt, link);
        next = l->next;
        if (gl_list_empty(&a->adopted)) {
            finish(k, a);
        } else if (a->clear_at == INT64_MAX) {
            a->clear_at = gl_keeper_after(k, CLEAR_AGAIN_MS);
            set_timer(k, a);
        }
    }
    GL_ASSERT(!k->reaped);
}

/* ---- acknowledged ---- */

void gl_attempt_life_ack(struct gl_keeper *k, struct gl_attempt *a, bool failed)
{
    if (a->state != GL_ATTEMPT_ENDED) {
        return;
    }
    if (a->has_files && has_succeeded(a) && !failed) {
        gl_rundir_clear(k, gl_rundir_path(&k->scratch, &a->key));
    }
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_ACK,
        .start = {.key = a->key, .token = a->token},
    };
    (void)gl_journal_add(&k->journal, &m);
    GL_ASSERT(k->result_bytes >= gl_attempt_bytes(a));
    k->result_bytes -= gl_attempt_bytes(a);
    gl_attempt_remove(k, a);
}
