/* check_damage.c - a job with a damaged record is paused until a person resumes it, and no other
 * job is: a job paused for that reason has, or recently had, a damaged record, and its reason names
 * the record. A damaged record is not mistaken for another state, and is not removed unless it was
 * in memory: the other checkers use the state before the damage. */
#include "sim/sim_checks.h"

enum { LATE_MS = 60000 }; /* how much later a damaged record that was read may still be reported */

static bool says(gl_str text, const char *words)
{
    return text.n > 0 && memmem(text.p, text.n, words, strlen(words)) != NULL;
}

static bool is_lately(const struct sim_checks *c, const struct sim_fact_job *j)
{
    return j->spoilt || (j->spoilt_until != 0 && c->world->now - j->spoilt_until < LATE_MS);
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    const struct gl_job_record *now = ch->job_now;
    gl_str why = now->reason;
    (void)me;
    if (ch->step != NULL || now->hold != GL_HOLD_REVIEW ||
        (ch->job->known && ch->job->r.hold == GL_HOLD_REVIEW)) {
        return;
    }
    bool is_damage = says(why, "damaged") || says(why, "cannot receive message");
    if (is_damage && !is_lately(c, ch->job)) {
        sim_world_fail(c->world,
                       "damage: job %.*s is paused, and none of its records is damaged: %.*s",
                       GL_STR_ARG(ch->job->id), GL_STR_ARG(why));
    } else if (says(why, "the record ") && !says(why, ch->job->spoilt_name)) {
        sim_world_fail(c->world, "damage: job %.*s is paused for another record than %s: %.*s",
                       GL_STR_ARG(ch->job->id), ch->job->spoilt_name, GL_STR_ARG(why));
    }
}

const struct sim_check sim_check_damage = {.name = "damage", .on_change = on_change};
