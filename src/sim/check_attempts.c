/* check_attempts.c - attempts are counted correctly: their numbers rise by one, counted attempts
 * never exceed the flow's limit, and a retry waits for its backoff. Attempts of agents are numbered
 * per job; check_services.c checks how often an agent is restarted. */
#include "model/bundle/agent.h"
#include "sim/sim_checks.h"

static gl_ms backoff_of(const struct gl_retry *retry, uint32_t failures)
{
    double wait = (double)retry->backoff_ms;
    for (uint32_t i = 1; i < failures; i++) {
        wait *= (double)retry->factor_pct / 100.0;
    }
    gl_ms most = retry->backoff_max_ms;
    return wait >= (double)most ? most : (gl_ms)wait;
}

struct attempts_state {
    bool is_resumed; /* in this transaction */
};

/* A pause or a cancel may follow the start within one transaction, but not precede it. A job that
 * was resumed may be paused again at once, because its next decision is due. */
static void check_paused(struct sim_checks *c, const struct attempts_state *s,
                         const struct sim_change *ch)
{
    bool is_paused = ch->job->r.status != GL_JOB_RUNNING && ch->job_now->status != GL_JOB_RUNNING &&
                     !s->is_resumed;
    bool starts = ch->step_now->attempt_count != ch->step->r.attempt_count;
    if (starts && ch->job->known && (is_paused || ch->job->r.verdict != GL_VERDICT_NONE)) {
        sim_world_fail(c->world, "attempts: step %.*s of job %.*s starts though the job is %s",
                       GL_STR_ARG(ch->step_now->step_id), GL_STR_ARG(ch->job->id),
                       gl_job_status_words[ch->job_now->status]);
    }
}

/* Agents share the attempt numbers of their job. */
static void check_turns(struct sim_checks *c, const struct sim_change *ch)
{
    uint32_t was = ch->step->r.attempt_count, now = ch->step_now->attempt_count;
    if (now != was && (now <= ch->job->r.turns_n || now > ch->job_now->turns_n)) {
        sim_world_fail(c->world,
                       "attempts: agent %.*s of job %.*s went from attempt %u to %u, and the job "
                       "from %u to %u",
                       GL_STR_ARG(ch->step_now->step_id), GL_STR_ARG(ch->job->id), was, now,
                       ch->job->r.turns_n, ch->job_now->turns_n);
    }
}

static void check_counts(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r;
    const struct gl_step_record *now = ch->step_now;
    const struct gl_step_spec *spec = ch->step->spec;
    if (now->attempt_count < was->attempt_count || now->attempt_count > was->attempt_count + 1) {
        sim_world_fail(c->world, "attempts: step %.*s of job %.*s went from attempt %u to %u",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), was->attempt_count,
                       now->attempt_count);
    }
    bool person = now->decided_at != was->decided_at;
    if (now->counted < was->counted && !person) {
        sim_world_fail(
            c->world, "attempts: step %.*s of job %.*s forgot counted attempts: %u, then %u",
            GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), was->counted, now->counted);
    }
    uint32_t most = spec->retry.attempts + ch->step->reruns + (person ? 1 : 0);
    /* A step that ended before its first attempt (its condition cannot be evaluated, say) counts
     * one. */
    uint32_t attempts = now->attempt_count > 0 ? now->attempt_count : 1;
    if (now->counted > most || now->counted > attempts) {
        sim_world_fail(c->world, "attempts: step %.*s of job %.*s counts %u of %u, at attempt %u",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), now->counted, most,
                       now->attempt_count);
    }
    bool starts = now->attempt_count == was->attempt_count + 1;
    if (starts && was->counted >= most) {
        sim_world_fail(
            c->world,
            "attempts: step %.*s of job %.*s starts attempt %u after %u counted ones of %u",
            GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), now->attempt_count, was->counted,
            most);
    }
}

/* An attempt that ended by itself must be counted, even if it had been asked to stop. */
static void check_counted(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r;
    const struct gl_step_record *now = ch->step_now;
    const struct sim_process *p = ch->step->last;
    bool left = was->status == GL_STEP_RUNNING && now->status != GL_STEP_RUNNING;
    if (!left || p == NULL || p->number != was->attempt_count || !p->recorded) {
        return;
    }
    gl_str rest;
    if (!gl_str_eq(gl_str_cut(ch->tx->session, '#', &rest), p->node) || ch->job->r.is_strayed) {
        return; /* decided on another machine, which cannot ask that keeper, or after such a machine
                   owned it: then the keeper has forgotten it */
    }
    if (p->end == GL_EXEC_SIGNALED && now->blocked_on == GL_BLOCK_REVIEW) {
        return; /* a person will decide what it was */
    }
    bool by_itself = p->end == GL_EXEC_EXITED || p->end == GL_EXEC_SIGNALED;
    if (by_itself && now->counted != was->counted + 1) {
        sim_world_fail(c->world,
                       "attempts: attempt %u of step %.*s of job %.*s ended and was not counted",
                       was->attempt_count, GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
    }
}

static void check_backoff(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r;
    const struct gl_step_record *now = ch->step_now;
    gl_ms decided_at = ch->job_now->updated_at;
    /* An attempt lost with another node waits only until its keeper has ended it: see
     * check_overlap. */
    bool orphaned = c->disk->shared && now->counted == was->counted;
    if (now->status == GL_STEP_RETRY_WAIT && was->status != GL_STEP_RETRY_WAIT && !orphaned) {
        gl_ms least = backoff_of(&ch->step->spec->retry, now->counted);
        if (now->retry_at < decided_at + least) {
            sim_world_fail(
                c->world,
                "attempts: step %.*s of job %.*s waits %lld ms before its retry instead of %lld",
                GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                (long long)(now->retry_at - decided_at), (long long)least);
        }
    }
    bool leaves = was->status == GL_STEP_RETRY_WAIT && now->attempt_count > was->attempt_count;
    if (leaves && decided_at < was->retry_at) {
        sim_world_fail(c->world, "attempts: step %.*s of job %.*s started again %lld ms too early",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                       (long long)(was->retry_at - decided_at));
    }
}

/* A lost attempt is not counted, but only a limited number of times. */
static void check_losses(struct sim_checks *c, const struct sim_change *ch)
{
    struct sim_fact_step *st = ch->step;
    const struct gl_step_record *now = ch->step_now;
    const struct sim_process *p = st->last;
    bool again = st->r.status == GL_STEP_RUNNING && st->r.stopping == GL_STOP_NONE &&
                 (now->status == GL_STEP_READY || now->status == GL_STEP_QUEUED ||
                  now->attempt_count > st->r.attempt_count);
    bool lost = p != NULL && p->number == st->r.attempt_count && p->ended_at != 0 && !p->recorded;
    bool is_next = now->letter != st->r.letter; /* an agent has given up that message */
    if (!again || !lost || now->counted != st->r.counted || is_next) {
        return;
    }
    gl_ms at = ch->job_now->updated_at;
    gl_ms oldest = st->losses[GL_LOSSES_MAX - 1];
    if (oldest != 0 && at - oldest < GL_LOSSES_WINDOW_MS) {
        sim_world_fail(c->world,
                       "attempts: step %.*s of job %.*s was lost %d times in %lld s and runs again",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), GL_LOSSES_MAX + 1,
                       (long long)(at - oldest) / 1000);
    }
    memmove(&st->losses[1], &st->losses[0], sizeof(gl_ms) * (GL_LOSSES_MAX - 1));
    st->losses[0] = at;
}

static void on_log(struct sim_checks *c, void *me, const struct sim_change *ch,
                   const struct gl_write *w)
{
    struct attempts_state *s = me;
    gl_str word = GL_S("\"job_resumed\"");
    (void)c;
    (void)ch;
    s->is_resumed = s->is_resumed || memmem(w->value.p, w->value.n, word.p, word.n) != NULL;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct attempts_state *s = me;
    if (ch->step == NULL) {
        s->is_resumed = false;
        return;
    }
    check_paused(c, s, ch);
    if (ch->step->group == NULL &&
        gl_flow_is_unit(ch->job->flow, (uint32_t)(ch->step - ch->job->steps))) {
        check_turns(c, ch);
        check_losses(c, ch);
        return;
    }
    check_counts(c, ch);
    check_backoff(c, ch);
    if (!ch->step->spec->is_bound) { /* its agent's process is what runs */
        check_counted(c, ch);
        check_losses(c, ch);
    }
}

const struct sim_check sim_check_attempts = {.name = "attempts",
                                             .state_bytes = sizeof(struct attempts_state),
                                             .on_log = on_log,
                                             .on_change = on_change};
