/* check_unsafe.c - unsafe work is never started again unless a person decides so, or the previous
 * attempt is known to have ended by itself; and no attempt of any step ever starts twice. */
#include "sim/sim_checks.h"

/* Work that was begun and whose outcome is open (neither counted nor decided by a person) must not
 * be begun again. */
static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    const struct sim_fact_step *st = ch->step;
    if (st == NULL || st->spec->safety != GL_SAFETY_UNSAFE || st->r.status != GL_STEP_RUNNING) {
        return;
    }
    const struct gl_step_record *now = ch->step_now;
    bool again = now->status == GL_STEP_READY || now->status == GL_STEP_QUEUED ||
                 now->attempt_count > st->r.attempt_count;
    /* An agent's unit runs once for each message: given up, done, or retried for a reason. */
    if (gl_str_starts(st->spec->id, GL_S("@")) &&
        (now->letter != st->r.letter || now->tries > st->r.tries)) {
        return;
    }
    bool began = st->last != NULL && st->last->number == st->r.attempt_count;
    if (again && began && now->counted == st->r.counted && now->decided_at == st->r.decided_at) {
        sim_world_fail(
            c->world,
            "unsafe: step %.*s of job %.*s is to run again although its attempt %u was begun",
            GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id), st->r.attempt_count);
    }
}

/* A start that a failover has undone may be decided again, unless it had to be confirmed. */
static bool may_repeat(const struct sim_fact_job *j, const struct sim_fact_step *st)
{
    return j->torn && st->spec->safety != GL_SAFETY_UNSAFE;
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    const struct sim_process *last = st->last;
    if (last != NULL && last->number >= p->number && !may_repeat(j, st)) {
        sim_world_fail(c->world, "unsafe: %.*s of job %.*s started after attempt %u had started",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), last->number);
    }
    if (st->spec->safety != GL_SAFETY_UNSAFE || last == NULL || st->reruns > st->reruns_at_last) {
        return;
    }
    /* "failed" is a decision, too: an agent continues as its restart policy prescribes. */
    if (gl_str_starts(st->spec->id, GL_S("@")) && st->r.decided_at != st->decided_at_last) {
        return;
    }
    if (last->ended_at == 0 || !last->recorded) {
        sim_world_fail(c->world,
                       "unsafe: %.*s of job %.*s started although the end of attempt %u is unknown",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), last->number);
    }
    bool is_whole = last->end == GL_EXEC_EXITED || last->end == GL_EXEC_NOT_EXECUTED;
    if (!is_whole && st->spec->retry.on.n == 0 && !gl_str_starts(st->spec->id, GL_S("@"))) {
        sim_world_fail(c->world, "unsafe: %.*s of job %.*s started after attempt %u was cut off",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), last->number);
    }
}

const struct sim_check sim_check_unsafe = {
    .name = "unsafe", .sees_torn = true, .on_change = on_change, .on_start = on_start};
