/* check_owner.c - a record has one writer; tokens and revisions never decrease; a job changes hands
 * only when its owner is dead, and with a higher token. */
#include "sim/sim_checks.h"

static void check_handover(struct sim_checks *c, const struct sim_change *ch)
{
    const struct sim_fact_job *j = ch->job;
    gl_str before = gl_buf_view(&j->owner);
    bool same = gl_str_eq(before, ch->owner_now);
    /* On a shared store an owner may raise its token above the one its keeper knows. */
    if (same && (c->disk->shared ? ch->token_now < j->token : ch->token_now != j->token)) {
        sim_world_fail(
            c->world, "owner: the token of job %.*s changed from %llu to %llu with the same owner",
            GL_STR_ARG(j->id), (unsigned long long)j->token, (unsigned long long)ch->token_now);
    }
    if (same) {
        return;
    }
    if (ch->owner_now.n == 0 && ch->token_now >= j->token) {
        return; /* returned to the store, for any node with free slots */
    }
    const struct sim_disk_session *s = sim_disk_session_find(c->disk, before);
    if (s != NULL && !s->dead) {
        sim_world_fail(c->world, "owner: job %.*s was taken from %.*s, which is alive",
                       GL_STR_ARG(j->id), GL_STR_ARG(before));
    }
    if (ch->token_now <= j->token) {
        sim_world_fail(
            c->world, "owner: job %.*s was taken over with token %llu, which is not above %llu",
            GL_STR_ARG(j->id), (unsigned long long)ch->token_now, (unsigned long long)j->token);
    }
}

/* Its transaction guards on the job's owner and token being unchanged. */
static bool is_guarded(const struct sim_change *ch)
{
    for (size_t i = 0; i < ch->tx->guards_n; i++) {
        const struct gl_guard *g = &ch->tx->guards[i];
        if (g->type == GL_GUARD_OWNED && gl_str_is(g->kind, "job") &&
            gl_str_eq(g->id, ch->job->id) && g->token == ch->job->token &&
            gl_str_eq(g->owner, gl_buf_view(&ch->job->owner))) {
            return true;
        }
    }
    return false;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    const struct sim_fact_job *j = ch->job;
    /* Its owner returns it, or it is created for a node that offers the pools it needs. */
    bool released = c->disk->shared && ch->owner_now.n == 0 &&
                    (!j->known || gl_str_eq(ch->tx->session, gl_buf_view(&j->owner)));
    if (!released && !gl_str_eq(ch->tx->session, ch->owner_now)) {
        sim_world_fail(c->world, "owner: job %.*s was written by %.*s but belongs to %.*s",
                       GL_STR_ARG(j->id), GL_STR_ARG(ch->tx->session), GL_STR_ARG(ch->owner_now));
    }
    if (ch->token_now == 0) {
        sim_world_fail(c->world, "owner: job %.*s has no token", GL_STR_ARG(j->id));
    }
    if (ch->step != NULL || !j->known) {
        return;
    }
    if (ch->rev_now != j->rev + 1) {
        sim_world_fail(c->world, "owner: job %.*s went from revision %llu to %llu",
                       GL_STR_ARG(j->id), (unsigned long long)j->rev,
                       (unsigned long long)ch->rev_now);
    }
    if (!is_guarded(ch)) {
        sim_world_fail(c->world, "owner: job %.*s was written without a guard on its token",
                       GL_STR_ARG(j->id));
    }
    check_handover(c, ch);
}

const struct sim_check sim_check_owner = {
    .name = "owner", .sees_torn = true, .on_change = on_change};
