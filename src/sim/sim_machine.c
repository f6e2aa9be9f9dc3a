#include "sim/sim_machine.h"

#include "base/check.h"
#include "sim/sim_cluster.h"

#define SECOND 1000LL
#define MINUTE (60 * SECOND)

#define BLUE "blue"

enum { FUSE_CALLS = 8, STOP_MS = 30000, BURN_MS = 2000 };

static struct sim_world *world_of(const struct sim_machine *m)
{
    return &m->cluster->world;
}

static gl_ms draw(const struct sim_machine *m, gl_ms lo, gl_ms hi)
{
    return gl_rng_range(&m->cluster->rng, lo, hi);
}

static bool chance(const struct sim_machine *m, uint32_t per_million)
{
    return gl_rng_chance(&m->cluster->rng, per_million);
}

static gl_ms grace_of(const struct sim_machine *m)
{
    const struct sim_cluster_options *o = &world_of(m)->cluster;
    bool is_longer = o->graces != 0 && m->number % 2 == 0;
    return (gl_ms)o->orphan_grace_ms * (is_longer ? (gl_ms)o->graces : 1);
}

static gl_ms ttl_of(const struct sim_machine *m)
{
    return (gl_ms)world_of(m)->cluster.ttl_ms;
}

/* ---- nodes ---- */

static void on_lost(void *owner, struct sim_node *n)
{
    struct sim_machine *m = owner;
    (void)n; /* it is removed with all others that have lost their session */
    if (!sim_call_waits(&m->bury)) {
        sim_world_at(world_of(m), &m->bury, world_of(m)->now + draw(m, 0, 200));
    }
}

/* While there are faults, its node may be in the other stack. Not among guests, which would abandon
 * the jobs they start there. */
static const char *draw_stack(struct sim_machine *m)
{
    const struct sim_world *w = world_of(m);
    bool may = w->faults && w->cluster.stacks != 0 && w->cluster.guests == 0;
    m->is_astray = may && w->cluster.restacks != 0 && chance(m, w->cluster.restacks);
    return m->is_astray == (m->stack != NULL) ? NULL : BLUE;
}

static void on_start(struct sim_call *call)
{
    struct sim_machine *m = GL_CONTAINER(call, struct sim_machine, start);
    struct sim_cluster *s = m->cluster;
    struct sim_world *w = &s->world;
    GL_ASSERT(m->current == NULL);
    GL_ASSERT(!m->is_gone);
    if (w->faults && chance(m, w->options.clock_jumps)) {
        m->wall = draw(m, -20 * SECOND, 20 * SECOND);
        SIM_TRACE(w, NODE, .number = m->wall, .what = "its clock jumps", .from = m->keeper.node);
    }
    struct sim_node_options options = {
        .machine = m->number,
        .incarnation = ++m->incarnations,
        .stack = draw_stack(m),
        .guest = m->is_guest,
        .session_ttl_ms = (gl_ms)w->cluster.ttl_ms,
        .orphan_grace_ms = grace_of(m),
        .pools = m->pools,
        .hot_jobs_max = w->options.hot_narrow,
        .keep = {.job_ms = w->options.keep_ms, .jobs = w->options.keep_jobs},
        .renew = s->renew,
        .record = s->record,
        .round_trip = w->seed % 4 == 0,
        .on_lost = on_lost,
        .owner = m};
    m->current = sim_node_new(w, &s->disk, &m->keeper, &options);
    gl_list_push(&s->nodes, &m->current->link);
}

/* Each pool that steps need must stay on some machine, as large as they may need it. */
static bool are_whole(const struct sim_pools *have, const struct sim_pools *wanted)
{
    return have->default_slots >= wanted->default_slots && have->gpu_slots >= wanted->gpu_slots &&
           have->executor_slots >= wanted->executor_slots;
}

static uint32_t more_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

bool sim_machine_may_go(const struct sim_machine *m)
{
    uint32_t others = 0;
    struct sim_pools left = {0};
    for (uint32_t i = 0; i < m->cluster->machines_n; i++) {
        const struct sim_machine *other = &m->cluster->machines[i];
        if (other != m && !other->is_gone && !other->is_guest && other->stack == m->stack) {
            others++;
            left.default_slots = more_of(left.default_slots, other->pools.default_slots);
            left.gpu_slots = more_of(left.gpu_slots, other->pools.gpu_slots);
            left.executor_slots = more_of(left.executor_slots, other->pools.executor_slots);
        }
    }
    return others > 0 && are_whole(&left, &m->cluster->pools);
}

/* Only if every machine may run every job: a guest, or a machine of another stack, cannot help one
 * that lacks a pool. The first machine has all pools, unless the second and the third divide them
 * between them. */
static void draw_pools(struct sim_machine *m, uint32_t number)
{
    const struct sim_world *w = world_of(m);
    struct sim_pools *p = &m->pools;
    struct gl_rng r;
    bool is_split;
    *p = m->cluster->pools;
    if (w->cluster.pools_differ == 0 || w->cluster.stacks != 0 || w->cluster.guests != 0) {
        return;
    }
    gl_rng_init(&r, w->seed ^ gl_str_hash(GL_S("pools")));
    is_split = w->cluster.nodes_n > 2 && gl_rng_chance(&r, 300000);
    for (uint32_t i = 0; i < number; i++) { /* each machine has its own random numbers */
        (void)gl_rng_u64(&r);
    }
    if (is_split && number == 2) {
        p->gpu_slots = 0;
    } else if (is_split && number == 3) {
        p->default_slots = p->executor_slots = 0;
    } else if ((is_split || number > 1) && gl_rng_chance(&r, w->cluster.pools_differ)) {
        p->default_slots = (uint32_t)gl_rng_below(&r, p->default_slots + 1);
        p->executor_slots = (uint32_t)gl_rng_below(&r, p->executor_slots + 1);
        p->gpu_slots = p->default_slots + p->executor_slots > 0 ? (uint32_t)gl_rng_below(&r, 2) : 1;
    }
}

static void leave(struct sim_machine *m)
{
    m->is_gone = true;
    m->keeper.is_left = true;
    SIM_TRACE(world_of(m), NODE, .what = "gone for good", .from = m->keeper.node);
}

/* Its node is dead. The next one starts at once, soon, late, or never. */
static void start_later(struct sim_machine *m)
{
    struct sim_world *w = world_of(m);
    m->current = NULL;
    m->dies = false;
    sim_world_cancel(w, &m->finish);
    if (w->faults && sim_machine_may_go(m) && chance(m, w->cluster.losses)) {
        leave(m);
        return;
    }
    gl_ms most = chance(m, 300000) ? 0 : chance(m, 500000) ? ttl_of(m) : 5 * ttl_of(m);
    sim_world_at(w, &m->start, w->now + draw(m, 0, most));
}

static void kill_current(struct sim_machine *m)
{
    sim_node_kill(m->current);
    start_later(m);
}

static void kill_sleeper(struct sim_machine *m)
{
    sim_world_cancel(world_of(m), &m->rouse);
    sim_node_kill(m->sleeper);
    m->sleeper = NULL;
}

static void on_rouse(struct sim_call *call)
{
    struct sim_machine *m = GL_CONTAINER(call, struct sim_machine, rouse);
    struct sim_world *w = world_of(m);
    if (m->sleeper == NULL) { /* it was only paused */
        sim_node_wake(m->current);
        if (m->current->lost && !sim_call_waits(&m->bury)) { /* and was about to be removed */
            sim_world_at(w, &m->bury, w->now);
        }
        return;
    }
    sim_node_wake(m->sleeper);
    if (chance(m, 500000)) { /* before it can learn that it has a successor */
        sim_client_visit(&m->cluster->client, m->sleeper);
    }
    if (!sim_call_waits(&m->bury)) {
        sim_world_at(w, &m->bury, w->now + draw(m, 0, MINUTE));
    }
}

static void on_bury(struct sim_call *call)
{
    struct sim_machine *m = GL_CONTAINER(call, struct sim_machine, bury);
    if (m->sleeper != NULL && !m->sleeper->gate.shut) {
        kill_sleeper(m);
    }
    if (m->current != NULL && m->current->lost && !m->current->gate.shut) {
        /* Like the daemon: the next one begins in the same process. */
        sim_node_kill(m->current);
        m->current = NULL;
        m->dies = false;
        sim_world_cancel(world_of(m), &m->finish);
        sim_world_at(world_of(m), &m->start, world_of(m)->now);
    }
}

static void on_finish(struct sim_call *call)
{
    struct sim_machine *m = GL_CONTAINER(call, struct sim_machine, finish);
    kill_current(m);
}

void sim_machine_after_step(struct sim_machine *m)
{
    if (m->dies && (m->current->fuse.blown || m->current->stopped)) {
        kill_current(m);
    }
}

/* ---- trouble ---- */

/* Between two calls it makes, in order, or at once. */
static void crash(struct sim_machine *m)
{
    struct sim_world *w = world_of(m);
    if (chance(m, w->options.half_crashes)) {
        m->dies = true;
        m->current->fuse.calls_left = (int)gl_rng_below(&m->cluster->rng, FUSE_CALLS);
        sim_world_at(w, &m->finish, w->now + BURN_MS);
    } else if (chance(m, w->options.orderly_stops)) {
        m->dies = true;
        sim_node_stop(m->current);
        sim_world_at(w, &m->finish, w->now + STOP_MS);
    } else {
        kill_current(m);
    }
}

static void sleep_for(struct sim_machine *m, gl_ms most)
{
    struct sim_world *w = world_of(m);
    sim_world_at(w, &m->rouse, w->now + draw(m, 0, most));
}

static void cut_off(struct sim_machine *m)
{
    struct sim_world *w = world_of(m);
    gl_ms until = w->now + draw(m, 100, 3 * ttl_of(m));
    SIM_TRACE(w, TX, .number = until - w->now, .what = "cut off from the store",
              .from = m->current->name);
    sim_store_cut(&m->current->store, until);
}

bool sim_machine_trouble(struct sim_machine *m, enum sim_trouble what)
{
    struct sim_world *w = world_of(m);
    bool lives = m->current != NULL && !m->current->gate.shut && !m->dies;
    if (!lives) {
        return false;
    }
    switch (what) {
    case SIM_TROUBLE_kill:
        crash(m);
        return true;
    case SIM_TROUBLE_machine_crash:
        kill_current(m);
        sim_keeper_crash(&m->keeper, sim_call_waits(&m->start) ? m->start.due - w->now : 0);
        return true;
    case SIM_TROUBLE_zombie:
        if (m->sleeper != NULL) {
            return false;
        }
        m->sleeper = m->current;
        sim_node_sleep(m->sleeper);
        sleep_for(m, 2 * MINUTE);
        start_later(m);
        return true;
    case SIM_TROUBLE_pause:
        if (m->sleeper != NULL) {
            return false;
        }
        sim_node_sleep(m->current);
        sleep_for(m, 3 * ttl_of(m));
        return true;
    case SIM_TROUBLE_partition:
        cut_off(m);
        return true;
    case SIM_TROUBLE_cycle:
        if (m->current->has_exec) {
            sim_exec_break(&m->current->exec, draw(m, 0, 10 * SECOND));
        }
        return m->current->has_exec;
    case SIM_TROUBLE_keeper_crash:
        sim_keeper_crash(&m->keeper, draw(m, 0, 5 * SECOND));
        return true;
    case SIM_TROUBLE_outage:
    case SIM_TROUBLE_failover:
    case SIM_TROUBLES:
        break;
    }
    GL_UNREACHABLE();
}

/* ---- life cycle ---- */

void sim_machine_init(struct sim_machine *m, struct sim_cluster *cluster, uint32_t number)
{
    struct sim_world *w = &cluster->world;
    *m = (struct sim_machine){.cluster = cluster, .number = number};
    sim_keeper_init_at(&m->keeper, w, number, &m->wall);
    if (w->bundles.blobs > 0) {
        sim_keeper_give_folder(&m->keeper);
    }
    m->keeper.orphan_grace_ms = grace_of(m);
    m->stack = w->cluster.stacks != 0 && number % 2 == 0 ? BLUE : NULL;
    m->is_guest = w->cluster.guests != 0 && number % w->cluster.guests == 0;
    draw_pools(m, number);
    m->wall = draw(m, -2 * SECOND, 2 * SECOND);
    sim_call_init(&m->start, on_start, NULL);
    sim_call_init(&m->rouse, on_rouse, NULL);
    sim_call_init(&m->bury, on_bury, NULL);
    sim_call_init(&m->finish, on_finish, NULL);
    /* Most are there from the beginning. */
    gl_ms most = number == 1 || chance(m, 700000) ? SECOND : 2 * MINUTE;
    sim_world_at(w, &m->start, w->now + draw(m, 0, most));
}

void sim_machine_lose(struct sim_machine *m)
{
    struct sim_world *w = world_of(m);
    GL_ASSERT(m->current != NULL && m->sleeper == NULL);
    sim_node_kill(m->current);
    m->current = NULL;
    sim_world_cancel(w, &m->bury);
    sim_world_cancel(w, &m->finish);
    leave(m);
}

void sim_machine_heal(struct sim_machine *m, bool restart)
{
    struct sim_world *w = world_of(m);
    if (m->sleeper != NULL) {
        kill_sleeper(m);
    }
    if (m->current != NULL && m->current->gate.shut) {
        sim_world_cancel(w, &m->rouse);
        sim_node_wake(m->current);
    }
    if (m->current != NULL && (m->dies || m->current->lost || m->is_astray || restart)) {
        sim_node_kill(m->current);
        m->current = NULL;
        m->dies = false;
        sim_world_cancel(w, &m->finish);
    }
    if (m->current == NULL && !m->is_gone && !sim_call_waits(&m->start)) {
        sim_world_at(w, &m->start, w->now);
    }
    if (m->current != NULL && w->now < m->current->store.away_until) {
        m->current->store.away_until = w->now;
        sim_world_cancel(w, &m->current->store.mend);
        sim_world_at(w, &m->current->store.mend, w->now);
    }
}

void sim_machine_done(struct sim_machine *m)
{
    struct sim_world *w = world_of(m);
    if (m->sleeper != NULL) {
        kill_sleeper(m);
    }
    if (m->current != NULL) {
        sim_node_kill(m->current);
    }
    sim_world_cancel(w, &m->start);
    sim_world_cancel(w, &m->rouse);
    sim_world_cancel(w, &m->bury);
    sim_world_cancel(w, &m->finish);
}
