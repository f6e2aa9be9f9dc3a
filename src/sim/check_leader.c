/* check_leader.c - on a shared store only the leader does the leader's work: leadership changes
 * hands only when its owner is dead, with a higher token, and only its owner removes ended jobs. */
#include "sim/sim_checks.h"

static void check_lease(struct sim_checks *c, const struct gl_tx *tx,
                        const struct gl_record *before, const struct gl_record *after)
{
    const struct sim_disk_session *s = sim_disk_session_find(c->disk, before->owner);
    if (before->rev == 0) {
        return;
    }
    if (!gl_str_eq(before->owner, after->owner) && s != NULL && !s->dead) {
        sim_world_fail(c->world, "leader: the lease was taken from %.*s, which is alive, by %.*s",
                       GL_STR_ARG(before->owner), GL_STR_ARG(tx->session));
    }
    if (after->token < before->token ||
        (after->token == before->token && !gl_str_eq(before->owner, after->owner))) {
        sim_world_fail(c->world, "leader: the token of the lease went from %llu to %llu",
                       (unsigned long long)before->token, (unsigned long long)after->token);
    }
}

static void on_any(struct sim_checks *c, void *me, const struct gl_tx *tx,
                   const struct gl_record *before, const struct gl_record *after)
{
    (void)me;
    if (!c->disk->shared) {
        return;
    }
    if (gl_str_is(before->kind, "lease") && gl_str_is(before->id, "leader")) {
        check_lease(c, tx, before, after);
    }
    bool removes =
        after->rev == 0 && (gl_str_is(before->kind, "job") || gl_str_is(before->kind, "step") ||
                            gl_str_is(before->kind, "flow"));
    const struct sim_disk_record *lease =
        removes ? sim_disk_peek(c->disk, tx->context, GL_S("lease"), GL_S("leader")) : NULL;
    if (removes && (lease == NULL || !gl_str_eq(lease->owner, tx->session))) {
        sim_world_fail(c->world, "leader: %.*s %.*s was removed by %.*s, which does not lead",
                       GL_STR_ARG(before->kind), GL_STR_ARG(before->id), GL_STR_ARG(tx->session));
    }
}

const struct sim_check sim_check_leader = {.name = "leader", .on_any = on_any};
