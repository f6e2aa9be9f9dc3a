#include "core/cluster/rebalance.h"

#include "base/check.h"
#include "core/cluster/membership.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/session.h"
#include "core/flow/txn.h"
#include "core/scheduling/slots.h"

enum {
    RELEASES_MAX = 16, /* jobs given away in one step */
    /* For each free slot we were told of so many are given away: there is news only every few
     * seconds, and what nobody takes in time we take back ourselves. */
    AHEAD = 8,
    SETTLED_MS =
        1000, /* what was taken a moment ago is not given on: it would go round and round */
    LOOKED_AT_MAX = 32 /* of those who wait, for one that can be */
};

/* Slots that nodes of our scope have free in this pool. */
static uint64_t free_of(const struct gl_core *c, const struct gl_event_peer *s, gl_str pool)
{
    const struct gl_event_pool *all = s->pools.items;
    uint64_t n = 0;

    for (size_t i = 0; i < s->pools.n && gl_session_in_scope(c, s->stack, s->env_scope); i++) {
        uint64_t taken = all[i].in_use + all[i].waiting;

        if (gl_str_eq(all[i].name, pool) && all[i].slots > taken && all[i].slots <= GL_SLOTS_MAX) {
            n += all[i].slots - taken;
        }
    }
    GL_ASSERT(n <= s->pools.n * GL_SLOTS_MAX);
    return n;
}

void gl_rebalance_on_listed(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_peer *all = ev->answer.sessions.items;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(c->shared);
    for (size_t i = 0; i < c->pools_n; i++) {
        uint64_t n = 0;

        for (size_t k = 0; k < ev->answer.sessions.n; k++) {
            if (gl_membership_lives(c, all[k].id) && all[k].left_ms >= 0 &&
                gl_str_is(all[k].state, "ready")) {
                n += free_of(c, &all[k], c->pools[i].name);
            }
        }
        c->pools[i].others_free = (n < GL_SLOTS_MAX ? (uint32_t)n : GL_SLOTS_MAX) * AHEAD;
        GL_ASSERT(c->pools[i].others_free <= GL_SLOTS_MAX * AHEAD);
    }
}

size_t gl_rebalance_room(const struct gl_core *c)
{
    size_t room = 0;

    if (!c->exec_up || c->stopping) {
        return 0;
    }
    for (size_t i = 0; i < c->pools_n; i++) {
        const struct gl_core_pool_state *p = &c->pools[i];

        if (p->in_use < p->slots && p->queue.n == 0) {
            /* What waits needs a slot of the usual pool, mostly: bundles' pools are wide. */
            room += gl_str_starts(p->name, GL_S("executor.")) ? 1 : p->slots - p->in_use;
        }
    }
    return room > c->jobs_loading ? room - c->jobs_loading : 0;
}

bool gl_rebalance_may_give(const struct gl_core *c, const struct gl_job *j)
{
    return j->memory == GL_MEM_HOT && c->now - j->hot_at >= SETTLED_MS && gl_job_is_mine(c, j) &&
           j->inflight_n == 0 && !j->changed && j->r.status == GL_JOB_RUNNING &&
           j->r.verdict == GL_VERDICT_NONE && gl_job_running(j) == 0 &&
           gl_job_count(j, GL_STEP_READY) == 0 && gl_list_empty(&j->making) &&
           gl_list_empty(&j->spread) && gl_list_empty(&j->busy) && gl_list_empty(&j->touched) &&
           gl_list_empty(&j->parked) && gl_list_empty(&j->holds) && !j->is_suspect &&
           j->asked_n == 0; /* else what was asked for comes back to a job that is gone */
}

void gl_rebalance_give(struct gl_core *c, struct gl_job *j, gl_str why)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    GL_ASSERT(j->r.verdict == GL_VERDICT_NONE);
    GL_ASSERT(gl_job_running(j) == 0);
    GL_ASSERT(j->rev == 0 || gl_job_is_mine(c, j)); /* a new one has no owner yet */
    GL_ASSERT(j->inflight_n == 0);
    GL_ASSERT(gl_list_empty(&j->holds));
    GL_ASSERT(!j->releases);
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        gl_slots_unqueue(c, GL_CONTAINER(l, struct gl_step, live));
    }
    j->releases = true;
    gl_txn_log(c, j, NULL, "job_released", why, (gl_str){0});
    GL_ASSERT(!gl_list_empty(&j->touched));
}

/* Of those who came last, in an order that a snapshot keeps: how a heap lies in memory it does not.
 */
static struct gl_job *find_last(struct gl_core *c, size_t pool)
{
    struct gl_wait *w;
    size_t at = SIZE_MAX;

    GL_ASSERT(pool < c->pools_n);
    for (unsigned i = 0; i < LOOKED_AT_MAX && (w = gl_map_prev(&c->waits, &at)) != NULL; i++) {
        if (w->pool == pool && w->step != NULL && gl_rebalance_may_give(c, w->step->job) &&
            gl_node_pools_elsewhere(c, w->step->job->r.pools)) {
            return w->step->job;
        }
    }
    return NULL;
}

void gl_rebalance_out(struct gl_core *c)
{
    if (!c->shared || c->passive || c->guest || c->session.n == 0) {
        return; /* whoever comes for a moment takes nothing back that nobody wants */
    }
    for (size_t i = 0; i < c->pools_n; i++) {
        struct gl_core_pool_state *p = &c->pools[i];

        for (unsigned given = 0; given < RELEASES_MAX && p->others_free > 0 && p->queue.n > 0 &&
                                 (p->in_use >= p->slots || !c->exec_up);
             given++) {
            struct gl_job *j = find_last(c, i);

            if (j == NULL) {
                break;
            }
            GL_MARK(c->trace, "peers.released");
            gl_rebalance_give(c, j, GL_S("another node has room for it"));
            GL_ASSERT(p->others_free > 0);
            GL_ASSERT(!gl_rebalance_may_give(c, j)); /* so it is not given away twice */
            p->others_free--;
        }
    }
}
