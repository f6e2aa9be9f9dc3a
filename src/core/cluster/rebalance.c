/* rebalance.c - counts the free slots that other nodes report, and returns the newest waiting jobs
 * for them. The oldest stay, because they are the next to get slots here. */
#include "core/cluster/rebalance.h"

#include "base/check.h"
#include "core/cluster/membership.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/session.h"
#include "core/flow/txn.h"
#include "core/scheduling/slots.h"

enum {
    RELEASES_MAX = 16, /* jobs returned to the store in one step */
    /* Jobs returned for each free slot that others report. Reports come only every few seconds, and
     * a job that no other node takes comes back to us. */
    AHEAD = 8,
    /* A job that came into memory less than this ago stays, or it would bounce between nodes. */
    SETTLED_MS = 1000,
    LOOKED_AT_MAX = 32 /* waiting steps examined to find a job that can be returned */
};

/* The free slots that this node reports for the pool; 0 if it is not of our scope. */
static uint64_t free_slots_of(const struct gl_core *c, const struct gl_event_peer *s, gl_str pool)
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
                n += free_slots_of(c, &all[k], c->pools[i].name);
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

        if (p->in_use < p->slots && gl_slots_waiting(p) == 0) {
            /* Most jobs need the default pool. A bundle's executor pools have many slots that say
             * nothing about it, so each counts as one. */
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
           j->asked_n == 0; /* else the answer would come back to a job that has left */
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

/* May the steps of the job run on other nodes, so that it need not move itself? The agents of a
 * bundle may not. */
static bool steps_may_go(const struct gl_core *c, const struct gl_job *j)
{
    return gl_other_nodes_are_placing(c) && j->spec->flow->bundle == NULL;
}

/* A job of one of the newest waits that may be returned. The order is that of the map of waits,
 * which a snapshot preserves; it does not preserve the layout of a heap. */
static struct gl_job *find_newest_waiting(struct gl_core *c, size_t pool)
{
    struct gl_wait *w;
    size_t at = SIZE_MAX;

    GL_ASSERT(pool < c->pools_n);
    for (unsigned i = 0; i < LOOKED_AT_MAX && (w = gl_map_prev(&c->waits, &at)) != NULL; i++) {
        if (w->pool == pool && w->step != NULL && !steps_may_go(c, w->step->job) &&
            gl_rebalance_may_give(c, w->step->job) &&
            gl_node_pools_elsewhere(c, w->step->job->r.pools)) {
            return w->step->job;
        }
    }
    return NULL;
}

void gl_rebalance_return_jobs(struct gl_core *c)
{
    if (!c->shared || c->passive || c->guest || c->session.n == 0) {
        return; /* a guest must not take jobs back, so it does not return any either */
    }
    for (size_t i = 0; i < c->pools_n; i++) {
        struct gl_core_pool_state *p = &c->pools[i];

        for (unsigned given = 0; given < RELEASES_MAX && p->others_free > 0 &&
                                 gl_slots_waiting(p) > 0 && (p->in_use >= p->slots || !c->exec_up);
             given++) {
            struct gl_job *j = find_newest_waiting(c, i);

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
