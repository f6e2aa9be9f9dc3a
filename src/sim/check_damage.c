/* check_damage.c - a job of which a record is damaged is held until a person resumes it, and no
 * other job is: who is held for that has, or had until a moment ago, a damaged record, and is told
 * which one. What is damaged is not taken for something else, and does not go unless it was in
 * memory: the other checkers count what there was. */
#include "sim/sim_checks.h"

enum { LATE_MS = 60000 }; /* what was read while it was damaged may be told so much later */

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
        sim_world_fail(c->world, "damage: job %.*s is held, and nothing of it is damaged: %.*s",
                       GL_STR_ARG(ch->job->id), GL_STR_ARG(why));
    } else if (says(why, "the record ") && !says(why, ch->job->spoilt_name)) {
        sim_world_fail(c->world, "damage: job %.*s is held for another record than %s: %.*s",
                       GL_STR_ARG(ch->job->id), ch->job->spoilt_name, GL_STR_ARG(why));
    }
}

const struct sim_check sim_check_damage = {.name = "damage", .on_change = on_change};
