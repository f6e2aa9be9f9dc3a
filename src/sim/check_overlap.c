/* check_overlap.c - one step runs once at a time: a new try starts only when the one before it has
 * ended. Idempotent work alone may be started again at once.
 *
 * Nobody can know that of a machine whose node and keeper live, and whose node could not renew its
 * session in time because the store was out of its reach: what runs there goes on until that node
 * learns what it has lost. Nor of a node that was dead, is back, and has asked to end what is not
 * its any more, if the process does not listen and has its grace. That, and only that, is allowed.
 */
#include "sim/sim_checks.h"

enum { LEARN_MS = 15000 }; /* how long it may take to ask what is not its any more to end */

/* Is the newest session of this node dead, although it lives? It does not know yet. */
static bool is_declared_dead(const struct sim_checks *c, const struct sim_keeper *k)
{
    const struct sim_disk_session *newest = NULL;
    const struct sim_disk_session *s;
    for (size_t i = 0; (s = gl_map_next(&c->disk->sessions, &i)) != NULL;) {
        newest = gl_str_is(s->node, k->node) ? s : newest;
    }
    return newest != NULL && newest->dead;
}

static bool was_cut_off(const struct sim_checks *c, const struct sim_process *p)
{
    const struct sim_keeper *k = sim_checks_keeper(c, p);
    gl_ms until = k->cut_until + LEARN_MS + p->spec->grace_ms;
    return c->disk->shared && ((sim_keeper_is_heard(k) && is_declared_dead(c, k)) ||
                               (k->cut_until != 0 && c->world->now < until));
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    const struct sim_process *last = st->last;
    if (last == NULL || last->ended_at != 0 || st->spec->safety == GL_SAFETY_IDEMPOTENT) {
        return;
    }
    if (gl_str_eq(last->node, p->node) || !was_cut_off(c, last)) {
        sim_world_fail(c->world, "overlap: %.*s of job %.*s started while attempt %u was running",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), st->last->number);
    }
}

const struct sim_check sim_check_overlap = {
    .name = "overlap", .sees_torn = true, .on_start = on_start};
