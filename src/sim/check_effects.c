/* check_effects.c - an effect happens only after the transaction that records its decision: a
 * process starts only for an attempt that is running by a committed record, under the token that
 * decided it. */
#include "sim/sim_checks.h"

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    uint64_t decided = sim_facts_token_of(st, p->number);
    if (decided == 0) {
        sim_world_fail(c->world,
                       "effects: %.*s of job %.*s started before its decision was committed",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id));
    } else if (p->token < decided || p->token > j->token) {
        sim_world_fail(
            c->world,
            "effects: %.*s of job %.*s was decided under token %llu and started under %llu",
            GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), (unsigned long long)decided,
            (unsigned long long)p->token);
    } else if (st->r.attempt_count != p->number || st->r.status != GL_STEP_RUNNING) {
        sim_world_fail(c->world,
                       "effects: %.*s of job %.*s started though its step is %s at attempt %u",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id),
                       gl_step_status_words[st->r.status], st->r.attempt_count);
    }
}

const struct sim_check sim_check_effects = {.name = "effects", .on_start = on_start};
