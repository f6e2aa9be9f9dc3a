/* check_slots.c - the processes that really run never need more slots than their pool has.
 *
 * A sleeper that wakes up beside its successor is a node of its own for a moment, with slots of its
 * own, and what it started may be inherited on top of what its successor runs already. So where a
 * history has sleepers, or other machines, each incarnation is held to what it started itself, of
 * the jobs that are its by the disk; and of a start that a change of primary has undone nobody
 * knows until it is found. */
#include "sim/sim_checks.h"

static uint32_t in_use(const struct sim_checks *c, const struct sim_fact_job *j,
                       const struct sim_process *p)
{
    uint32_t used = p->spec->slots;
    const struct sim_attempt *at;
    const struct sim_keeper *keeper = sim_checks_keeper(c, p);
    bool beside = c->world->options.zombies > 0 || c->disk->shared;
    for (size_t i = 0; (at = gl_map_next(&keeper->attempts, &i)) != NULL;) {
        const struct sim_process *other = at->process;
        if (other == p || other->ended_at != 0 || other->spec == NULL ||
            !gl_str_eq(other->spec->pool, p->spec->pool)) {
            continue;
        }
        const struct sim_fact_job *its = sim_facts_job(&c->facts, other->job);
        bool same_owner = gl_str_eq(gl_buf_view(&its->owner), gl_buf_view(&j->owner));
        bool counts = !beside || (gl_str_eq(other->by, p->by) && !its->torn);
        used += same_owner && counts ? other->spec->slots : 0;
    }
    return used;
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    if (p->token != j->token) {
        return; /* decided in time, but taken from the node that decided it: it counts nothing now
                 */
    }
    uint32_t have = gl_str_is(st->spec->pool, "gpu")                ? c->pools.gpu_slots
                    : gl_str_is(st->spec->pool, "executor.default") ? c->pools.executor_slots
                                                                    : c->pools.default_slots;
    uint32_t used = in_use(c, j, p);
    if (used > have) {
        sim_world_fail(c->world, "slots: with %.*s of job %.*s the pool %.*s uses %u of %u slots",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), GL_STR_ARG(st->spec->pool), used,
                       have);
    }
}

const struct sim_check sim_check_slots = {.name = "slots", .on_start = on_start};
