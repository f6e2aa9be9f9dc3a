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
    CLEAR_AGAIN_MS = 500, /* kill leftovers again after this */
};

/* ---- timers ---- */

static void set_timer(struct gl_keeper *k, struct gl_attempt *c)
{
    gl_ms due = c->deadline;

    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING || c->state == GL_ATTEMPT_CLEARING);
    due = c->kill_at < due ? c->kill_at : due;
    due = c->beacon_at < due ? c->beacon_at : due;
    due = c->clear_at < due ? c->clear_at : due;
    gl_keeper_set_timer(k, &c->timer, due);
}

/* ---- the end ---- */

/* How a process ended that nobody stopped. */
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

/* As far as a keeper can tell: the node may still not like the output. */
static bool has_succeeded(const struct gl_attempt *c)
{
    return c->result.end == GL_EXEC_EXITED && c->result.exit_code == 0 && c->error.n == 0;
}

/* The line has been redacted with the rest of stdout, the file has not. In both a number may have
 * become "***". */
static void redact_output(struct gl_keeper *k, struct gl_attempt *c, gl_str path)
{
    bool from_file = c->output_source == GL_KEEPER_FROM_FILE;
    bool replaced =
        from_file ? gl_redact_text(c->redactor, &c->output) : c->capture.out.redact.replaced;
    if (!replaced) {
        return;
    }
    gl_redact_mend_json(&c->output);
    if (c->output.n > GL_OUTPUT_BYTES_MAX) { /* mending can make it longer */
        gl_buf_reset(&c->output);
        c->output_source = GL_KEEPER_NO_OUTPUT;
    }
    if (from_file && c->output.n == 0) {
        gl_buf_c(&c->error, "output larger than 1 MiB");
    }
    if (from_file) {
        gl_rundir_replace_output(k, path, gl_buf_view(&c->output));
    }
    GL_ASSERT(c->output.n <= GL_OUTPUT_BYTES_MAX);
}

static void take_output(struct gl_keeper *k, struct gl_attempt *c)
{
    struct gl_why why;
    gl_str path = gl_rundir_path(&k->scratch, &c->key);

    GL_ASSERT(c->state == GL_ATTEMPT_CLEARING);
    GL_ASSERT(c->output.n == 0);
    if (c->capture.log_bytes == 0 && has_succeeded(c) && gl_dir_cache_put(k, c, path)) {
        return; /* it has said nothing and left nothing */
    }
    c->floor->has_left = c->has_left = true;
    int r = gl_rundir_output(k, path, &c->output, &why);
    if (r == 0) {
        c->output_source = GL_KEEPER_FROM_FILE;
    } else if (r != GL_E_NOT_FOUND) {
        gl_buf_c(&c->error, why.text);
        if (c->redactor != NULL) { /* nobody has looked for secrets in it */
            gl_rundir_replace_output(k, path, (gl_str){0});
        }
    } else if (gl_capture_last(&c->capture).n > 0) {
        gl_buf_str(&c->output, gl_capture_last(&c->capture));
        c->output_source = GL_KEEPER_FROM_LINE;
    }
    if (c->redactor != NULL) {
        redact_output(k, c, path);
    }
}

/* What a worker leaves is what it has said; its folder goes, whatever its end was. */
static void clear_worker(struct gl_keeper *k, struct gl_attempt *c)
{
    bool is_silent = c->capture.log_bytes == 0;

    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING || c->state == GL_ATTEMPT_CLEARING);
    gl_workdir_remove(k, gl_rundir_path(&k->scratch, &c->key), is_silent);
    c->floor->has_left = true;
}

static void end_charge(struct gl_keeper *k, struct gl_attempt *c)
{
    GL_ASSERT(c->noted_at == 0);
    (void)gl_redact_text(c->redactor, &c->error); /* whether something was found does not matter */
    gl_redact_put(&k->redactors, c->redactor);
    c->redactor = NULL;
    c->result.ended_at = gl_keeper_wall(k);
    k->result_bytes += gl_attempt_bytes(c);
    gl_attempt_move(k, c, GL_ATTEMPT_ENDING);
    GL_ASSERT(k->result_bytes >= GL_ATTEMPT_BYTES);
}

/* Its process has been waited for and no descendant is left. */
static void finish(struct gl_keeper *k, struct gl_attempt *c)
{
    GL_ASSERT(c->state == GL_ATTEMPT_CLEARING);
    gl_capture_finish(k, &c->capture);
    if (c->heard != NULL) {
        clear_worker(k, c);
    }
    if (c->lost) {
        gl_attempt_bury(k, c);
        return;
    }
    set_natural_end(&c->result, c->wait_status);
    if (c->stopping) {
        c->result.end = c->why;
    }
    if (c->heard == NULL) {
        take_output(k, c);
    }
    end_charge(k, c);
}

/* It could not be started: that is a result too. */
static void end_not_executed(struct gl_keeper *k, struct gl_attempt *c, int code,
                             const struct gl_why *why)
{
    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING);
    GL_ASSERT(code < 0);
    gl_capture_finish(k, &c->capture);
    c->result.end = GL_EXEC_NOT_EXECUTED;
    c->result.exit_code = code == GL_E_DAMAGED ? code : 0;
    gl_buf_c(&c->error, why->text);
    if (c->heard != NULL) {
        clear_worker(k, c);
    } else {
        c->floor->has_left = c->has_left = true;
    }
    end_charge(k, c);
}

/* ---- stopping ---- */

/* The process is our child and has not been waited for, so its pid and its group are still its own.
 */
static void signal_group(const struct gl_attempt *c, int sig)
{
    GL_ASSERT(c->proc.pid > 1);
    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING);
    (void)kill(-c->proc.pid, sig);
}

static void clear(struct gl_keeper *k, struct gl_attempt *c, int status)
{
    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING);
    GL_ASSERT(c->proc.direct);
    c->wait_status = status;
    c->deadline = c->kill_at = INT64_MAX;
    gl_proctree_remove(k, &c->proc);
    gl_attempt_move(k, c, GL_ATTEMPT_CLEARING);
    gl_proctree_kill_adopted(c);
}

void gl_attempt_life_stop(struct gl_keeper *k, struct gl_attempt *c, enum gl_exec_end why)
{
    int status;

    GL_ASSERT(why == GL_EXEC_TIMEOUT || why == GL_EXEC_STOPPED || why == GL_EXEC_ORPHANED);
    if (c->state != GL_ATTEMPT_RUNNING || c->stopping) {
        return;
    }
    /* It may have ended by itself a moment ago; then that is its result, and not that we stopped
     * it. */
    if (waitpid(c->proc.pid, &status, WNOHANG) == c->proc.pid) {
        clear(k, c, status);
        k->reaped = true;
        return;
    }
    c->stopping = true;
    c->why = why;
    c->deadline = INT64_MAX;
    c->kill_at = gl_keeper_after(k, c->grace_ms);
    signal_group(c, SIGTERM);
    (void)kill(-c->proc.pid, SIGCONT); /* a stopped process would not hear it */
    set_timer(k, c);
}

void gl_attempt_life_hurry(struct gl_keeper *k, struct gl_attempt *c, gl_ms grace_ms)
{
    gl_ms kill_at = gl_keeper_after(k, grace_ms);

    GL_ASSERT(grace_ms >= 0);
    if (c->state != GL_ATTEMPT_RUNNING) {
        return;
    }
    c->grace_ms = c->grace_ms < grace_ms ? c->grace_ms : grace_ms;
    if (c->stopping && c->kill_at > kill_at) {
        c->kill_at = kill_at;
        set_timer(k, c);
    }
}

/* ---- orphans ---- */

void gl_attempt_life_vouch(const struct gl_keeper *k, struct gl_attempt *c)
{
    GL_ASSERT(k->orphan_grace_ms >= 0);
    c->incarnation = k->epoch.incarnation;
    c->orphan_grace_ms = k->orphan_grace_ms;
}

/* When its node has last spoken for it. One without a session speaks, but not for what others will
 * run again. */
static gl_ms heard_at(const struct gl_keeper *k, const struct gl_attempt *c)
{
    if (c->incarnation != k->epoch.incarnation) {
        return c->heard_at;
    }
    return c->needs_session && k->session_until < k->heard_at ? k->session_until : k->heard_at;
}

void gl_attempt_life_note_heard(struct gl_keeper *k)
{
    struct gl_attempt *c;
    for (size_t i = 0; (c = gl_map_next(&k->charges, &i)) != NULL;) {
        c->heard_at = heard_at(k, c);
    }
}

gl_ms gl_attempt_life_end_orphans(struct gl_keeper *k)
{
    gl_ms next = INT64_MAX;
    struct gl_attempt *c;
    for (size_t i = 0; (c = gl_map_next(&k->charges, &i)) != NULL;) {
        gl_ms heard = heard_at(k, c);
        gl_ms end = heard + c->orphan_grace_ms, due = end - c->orphan_grace_ms / 4;
        if (c->state != GL_ATTEMPT_RUNNING || c->why == GL_EXEC_ORPHANED) {
            continue;
        }
        if (due > k->now) {
            next = due < next ? due : next;
            continue;
        }
        if (k->silence != heard) { /* once for each */
            gl_keeper_say("no node has spoken for its steps for %lld ms%s: ending them",
                          (long long)(k->now - heard), c->needs_session ? " with a session" : "");
            k->silence = heard;
        }
        gl_attempt_life_hurry(k, c, end > k->now ? end - k->now : 0); /* late: we stood still */
        gl_attempt_life_stop(k, c, GL_EXEC_ORPHANED);
    }
    GL_ASSERT(next > k->now);
    return next;
}

void gl_attempt_life_leave(struct gl_keeper *k)
{
    struct gl_attempt *c;

    GL_ASSERT(k->leaving);
    for (size_t i = 0; (c = gl_map_next(&k->charges, &i)) != NULL;) {
        if (c->state == GL_ATTEMPT_RUNNING || c->state == GL_ATTEMPT_CLEARING) {
            c->lost = k->lost = true;
            c->grace_ms = c->grace_ms < GL_KEEPER_LEAVE_MS ? c->grace_ms : GL_KEEPER_LEAVE_MS;
            gl_attempt_life_stop(k, c, GL_EXEC_STOPPED);
        }
    }
}

/* ---- due times ---- */

static void send_beacon(struct gl_keeper *k, const struct gl_attempt *c)
{
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_BEACON,
        .start = {.key = c->key, .token = c->token},
    };

    GL_ASSERT(c->beacon_ms > 0);
    gl_client_tell(k, &m);
}

static void on_due(struct gl_keeper *k, struct gl_timer *t)
{
    struct gl_attempt *c = GL_CONTAINER(t, struct gl_attempt, timer);

    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING || c->state == GL_ATTEMPT_CLEARING);
    if (k->now >= c->deadline) {
        gl_attempt_life_stop(k, c, GL_EXEC_TIMEOUT);
    }
    if (k->now >= c->kill_at && c->state == GL_ATTEMPT_RUNNING) {
        signal_group(c, SIGKILL);
        (void)kill(c->proc.pid, SIGKILL); /* it may have left its own group */
        c->kill_at = gl_keeper_after(k, CLEAR_AGAIN_MS);
    }
    if (k->now >= c->clear_at) {
        gl_proctree_kill_adopted(c);
        c->clear_at = gl_keeper_after(k, CLEAR_AGAIN_MS);
    }
    if (k->now >= c->beacon_at) {
        send_beacon(k, c);
        c->beacon_at = gl_keeper_after(k, c->beacon_ms);
    }
    if (c->state == GL_ATTEMPT_RUNNING || c->state == GL_ATTEMPT_CLEARING) {
        set_timer(k, c);
    }
}

/* ---- beginning ---- */

static int may_begin(struct gl_keeper *k, struct gl_why *why)
{
    if (k->leaving) {
        return gl_why(why, GL_E_UNAVAILABLE, "the keeper is about to end");
    }
    if (k->retry.fire != NULL) {
        return gl_why(why, GL_E_UNAVAILABLE, "the keeper cannot write its journal");
    }
    if (k->running_n >= k->running_max) {
        return gl_why(why, GL_E_UNAVAILABLE, "%zu attempts run already", k->running_max);
    }
    if (k->result_bytes >= GL_KEEPER_RESULT_BYTES_MAX) {
        return gl_why(why, GL_E_UNAVAILABLE, "too many results wait to be acknowledged");
    }
    return 0;
}

static void set_times(struct gl_keeper *k, struct gl_attempt *c, const struct gl_exec_start *s)
{
    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING);
    c->grace_ms = s->grace_ms;
    c->beacon_ms = s->beacon_ms;
    c->deadline = s->timeout_ms > 0 ? gl_keeper_after(k, s->timeout_ms) : INT64_MAX;
    c->beacon_at = s->beacon_ms > 0 ? gl_keeper_after(k, s->beacon_ms) : INT64_MAX;
    c->timer.fire = on_due;
    set_timer(k, c);
}

static int launch(struct gl_keeper *k, struct gl_attempt *c, struct gl_launch *l,
                  struct gl_why *why)
{
    GL_ASSERT(c->state == GL_ATTEMPT_RUNNING);
    l->mark = c->mark = gl_proctree_new_mark(k);
    c->proc = (struct gl_proc){.charge = c, .direct = true};
    c->ticks_min = gl_proctree_ticks();
    GL_FAILPOINT("keeper.before_spawn");
    int r = gl_launch_go(k, l, &c->proc.pid, why);
    if (r == 0) {
        GL_FAILPOINT("keeper.after_spawn");
        c->ticks_max = gl_proctree_ticks();
        gl_proctree_add(k, &c->proc);
        struct gl_keeper_msg m = gl_attempt_begun(k, c);
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
    struct gl_attempt *c = gl_attempt_new(k, &s->key, s->token, GL_ATTEMPT_RUNNING);
    gl_attempt_life_vouch(k, c);
    c->needs_session = s->needs_session;
    gl_str path = gl_rundir_path(&k->scratch, &c->key);
    gl_str log = gl_rundir_join(&k->scratch, path, GL_S("log"));
    c->redactor = gl_redact_get(&k->redactors, s->secrets, s->secrets_n);
    c->heard = c->capture.heard = s->is_worker ? gl_worker_lines_new(c, s->stdout_max) : NULL;
    r = gl_capture_open(k, &c->capture, log, c->redactor, &l.out_fd, &l.err_fd, reterr_why);
    if (r < 0) {
        gl_attempt_bury(k, c);
        return r;
    }
    c->result.started_at = gl_keeper_wall(k);
    gl_launch_prepare(k, &l, s, gl_rundir_join(&k->scratch, gl_str_of(k->contexts), path));
    r = s->is_worker ? gl_workdir_make(k, s, l.cwd, path, &why)
                     : gl_rundir_make(k, s, l.env + s->secrets_n, c->floor, path, &why);
    if (r == 0) {
        r = launch(k, c, &l, &why);
    }
    if (r == GL_E_UNAVAILABLE) { /* no space, no processes left: as if it had never come */
        c->floor->has_left = true;
        if (c->heard != NULL) {
            clear_worker(k, c);
        }
        gl_attempt_bury(k, c);
        return gl_why(reterr_why, r, "%s", why.text);
    }
    if (r < 0) {
        end_not_executed(k, c, r, &why);
    } else {
        set_times(k, c, s);
    }
    GL_ASSERT(r == 0 || c->state == GL_ATTEMPT_ENDING);
    return 0;
}

/* ---- ended processes ---- */

static void on_process_end(struct gl_keeper *k, pid_t pid, int status)
{
    struct gl_proc *p = gl_proctree_find(k, pid);

    GL_ASSERT(pid > 0);
    if (p == NULL) {
        return; /* an orphan that ended before we saw it */
    }
    if (p->direct) {
        clear(k, p->charge, status);
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
        struct gl_attempt *c = GL_CONTAINER(l, struct gl_attempt, link);
        next = l->next;
        if (gl_list_empty(&c->adopted)) {
            finish(k, c);
        } else if (c->clear_at == INT64_MAX) {
            c->clear_at = gl_keeper_after(k, CLEAR_AGAIN_MS);
            set_timer(k, c);
        }
    }
    GL_ASSERT(!k->reaped);
}

/* ---- acknowledged ---- */

void gl_attempt_life_ack(struct gl_keeper *k, struct gl_attempt *c, bool failed)
{
    if (c->state != GL_ATTEMPT_ENDED) {
        return;
    }
    if (c->has_left && has_succeeded(c) && !failed) {
        gl_rundir_clear(k, gl_rundir_path(&k->scratch, &c->key));
    }
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_ACK,
        .start = {.key = c->key, .token = c->token},
    };
    (void)gl_journal_add(&k->journal, &m);
    GL_ASSERT(k->result_bytes >= gl_attempt_bytes(c));
    k->result_bytes -= gl_attempt_bytes(c);
    gl_attempt_bury(k, c);
}
