#include "sim/sim_cluster.h"

#include "base/check.h"

#define SECOND 1000LL
#define MINUTE (60 * SECOND)

enum {
    KILLS_MIN = 3,
    FAULTS_MAX = 400, /* the largest budget: a history must also make progress */
    JOBS_MIN = 12,
    TAIL_MAX = 8,       /* transactions a failover waits for, so that there is something to lose */
    TROUBLE_MS = 10000, /* at most between two troubles, while there are any */
    FORGET_MS = 20000,  /* dead sessions are forgotten then; above the lag of a failover */
    TAKEOVER_MS = 4000, /* beyond the TTL: until other nodes own a dead node's jobs */
};
#define LIVENESS_MS (240 * MINUTE) /* everything must have ended by then */
#define STILLNESS_MS (45 * MINUTE) /* nothing has ended for this long, before the end: stuck */

static const char *const trouble_names[] = {
#define X(name) #name,
    SIM_TROUBLE(X)
#undef X
};

/* ---- the store ---- */

static void cut_all(struct sim_cluster *s, gl_ms until)
{
    struct sim_disk *d = &s->disk;
    d->away_until = until; /* for handles opened meanwhile, too */
    for (struct gl_link *l = d->handles.next; l != &d->handles; l = l->next) {
        sim_store_cut(GL_CONTAINER(l, struct sim_store, link), until);
    }
}

static void outage(struct sim_cluster *s)
{
    struct sim_world *w = &s->world;
    gl_ms until = w->now + gl_rng_range(&s->rng, 100, 4 * (gl_ms)w->cluster.ttl_ms);
    SIM_TRACE(w, TX, .number = until - w->now, .what = "the store is away");
    cut_all(s, until);
}

/* Another server becomes the primary: it may lack the newest transactions, and has its own clock.
 */
static void failover(struct sim_cluster *s)
{
    struct sim_world *w = &s->world;
    struct sim_disk *d = &s->disk;
    gl_ms jump = (gl_ms)w->cluster.failover_jump_ms;
    cut_all(s, w->now + gl_rng_range(&s->rng, 50, 3 * (gl_ms)w->cluster.ttl_ms));
    uint64_t before = d->undone_n;
    d->now = w->now;
    sim_disk_promote(d, gl_rng_range(&s->rng, 0, (gl_ms)w->cluster.failover_lag_ms));
    d->offset += gl_rng_range(&s->rng, -jump, jump);
    SIM_TRACE(w, TX, .number = (int64_t)(d->undone_n - before), .what = "another primary");
}

/* ---- trouble ---- */

static void plan_troubles(struct sim_cluster *s)
{
    const struct sim_options *o = &s->world.options;
    const struct sim_cluster_options *c = &s->world.cluster;
    s->left[SIM_TROUBLE_kill] = KILLS_MIN + (uint32_t)gl_rng_below(&s->rng, 10);
    s->left[SIM_TROUBLE_machine_crash] = c->machine_crashes;
    s->left[SIM_TROUBLE_zombie] = o->zombies;
    s->left[SIM_TROUBLE_pause] = c->pauses;
    s->left[SIM_TROUBLE_partition] = c->partitions;
    s->left[SIM_TROUBLE_cycle] = o->exec_cycles;
    s->left[SIM_TROUBLE_keeper_crash] = o->keeper_crashes;
    s->left[SIM_TROUBLE_outage] = c->outages;
    s->left[SIM_TROUBLE_failover] = c->failovers;
}

static void on_trouble(struct sim_call *call)
{
    struct sim_cluster *s = GL_CONTAINER(call, struct sim_cluster, trouble);
    struct sim_world *w = &s->world;
    uint32_t all = 0;
    for (size_t i = 0; i < SIM_TROUBLES; i++) {
        all += s->left[i];
    }
    uint64_t pick = all == 0 ? 0 : gl_rng_below(&s->rng, all);
    size_t what = 0;
    while (what < SIM_TROUBLES && pick >= s->left[what]) {
        pick -= s->left[what++];
    }
    struct sim_machine *m = &s->machines[gl_rng_below(&s->rng, s->machines_n)];
    bool done = what < SIM_TROUBLES;
    if (what == SIM_TROUBLE_outage) {
        outage(s);
    } else if (what == SIM_TROUBLE_failover) {
        s->failover_tail = 1 + (size_t)gl_rng_below(&s->rng, TAIL_MAX);
        s->failover_at = w->now + TROUBLE_MS;
    } else if (done) {
        done = sim_machine_trouble(m, (enum sim_trouble)what);
    }
    if (done) {
        s->left[what]--;
        s->had[what]++;
    }
    sim_world_at(w, call, w->now + gl_rng_range(&s->rng, 1, TROUBLE_MS));
}

/* ---- a history ---- */

static void apply_settings(struct sim_cluster *s, const char *set)
{
    gl_str rest = gl_str_of(set);
    while (rest.n > 0) {
        gl_str value;
        gl_str one = gl_str_cut(rest, ',', &rest);
        gl_str name = gl_str_cut(one, '=', &value);
        uint64_t v = 0;
        if (!gl_str_u64(value, &v) ||
            (!sim_options_set(&s->world.options, name, (uint32_t)v) &&
             !sim_cluster_options_set(&s->world.cluster, name, (uint32_t)v) &&
             !sim_agent_options_set(&s->world.bundles, name, (uint32_t)v))) {
            sim_world_fail(&s->world, "unknown option %.*s", GL_STR_ARG(one));
        }
    }
}

static void draw_options(struct sim_cluster *s, const struct sim_swarm_options *options)
{
    struct sim_world *w = &s->world;
    struct gl_rng draw;
    gl_rng_fork(&w->rng, &draw, "options");
    sim_options_draw(&w->options, &draw);
    gl_rng_fork(&w->rng, &draw, "cluster");
    sim_cluster_options_draw(&w->cluster, &draw);
    w->options.keeper_lenient = 0; /* only for one machine */
    w->options.flows_wide = 0;
    w->options.steps_max = w->options.steps_max > 12 ? 12 : w->options.steps_max;
    sim_swarm_draw_agents(w, options);
    apply_settings(s, options->set);
    if (w->cluster.nodes_n < 2 || w->cluster.nodes_n > SIM_MACHINES_MAX) {
        sim_world_fail(w, "nodes_n must be between 2 and %d", SIM_MACHINES_MAX);
        w->cluster.nodes_n = 2;
    }
}

void sim_cluster_init(struct sim_cluster *s, const struct sim_swarm_options *options)
{
    *s = (struct sim_cluster){0};
    struct sim_world *w = &s->world;
    sim_world_init(w, options->seed);
    w->print = options->print;
    w->print_owner = options->owner;
    draw_options(s, options);
    gl_rng_fork(&w->rng, &s->rng, "machines");
    w->faults = true;
    w->fault_budget = (uint32_t)gl_rng_below(&s->rng, FAULTS_MAX);
    s->renew = options->renew;
    s->record = options->record || options->seed % 16 == 5;
    s->pools.default_slots = w->options.slots_narrow == 0 ? 4 : w->options.slots_narrow;
    s->pools.gpu_slots = 1;
    sim_swarm_agents(w, options, &s->pools);
    s->has_agents = options->agents;
    sim_disk_init(&s->disk);
    s->disk.shared = true;
    s->disk.keeps_tail = w->cluster.failovers > 0;
    s->disk.sessions_kept_ms = w->seed % 3 == 0 ? 0 : FORGET_MS;
    gl_list_init(&s->nodes);
    s->machines_n = w->cluster.nodes_n;
    for (uint32_t i = 0; i < s->machines_n; i++) {
        sim_machine_init(&s->machines[i], s, i + 1);
        if (i == 0) {
            sim_checks_init(&s->checks, w, &s->disk, &s->machines[0].keeper, &s->machines[0].pools);
        } else {
            sim_checks_add_keeper(&s->checks, &s->machines[i].keeper, &s->machines[i].pools);
        }
    }
    sim_call_init(&s->trouble, on_trouble, NULL);
    /* Many machines do much in a short time. */
    gl_ms drawn = gl_rng_range(&s->rng, 2, 5);
    gl_ms minutes = options->minutes != 0 ? options->minutes : s->machines_n > 8 ? 2 : drawn;
    size_t jobs_n = options->jobs_n == 0 ? JOBS_MIN + gl_rng_below(&s->rng, 24) : options->jobs_n;
    s->phase_one_ends = w->now + minutes * MINUTE;
    plan_troubles(s);
    sim_client_init(&s->client, &s->checks, &s->nodes, &s->pools, jobs_n, minutes * MINUTE);
    sim_damage_init(&s->damage, &s->checks, minutes * MINUTE);
    sim_full_init(&s->full, w, &s->disk, minutes * MINUTE);
    sim_world_at(w, &s->trouble, w->now + gl_rng_range(&s->rng, 1, TROUBLE_MS));
}

static void phase_one(struct sim_cluster *s)
{
    struct sim_world *w = &s->world;
    while (!w->failed && w->now < s->phase_one_ends && sim_world_step(w)) {
        for (uint32_t i = 0; i < s->machines_n; i++) {
            sim_machine_after_step(&s->machines[i]);
        }
        if (s->failover_tail != 0 &&
            (s->disk.tail_n >= s->failover_tail || w->now >= s->failover_at)) {
            s->failover_tail = 0;
            failover(s);
        }
    }
}

/* Faults end here, sleepers too; but one machine may be lost. */
static void heal(struct sim_cluster *s)
{
    struct sim_world *w = &s->world;
    w->faults = false;
    w->calm_since = w->now;
    sim_damage_heal(&s->damage);
    sim_full_heal(&s->full);
    s->disk.away_until = s->disk.away_until < w->now ? s->disk.away_until : w->now;
    sim_world_cancel(w, &s->trouble);
    /* In half of the histories all nodes restart: everything must be restored from the disk. In the
     * other half the nodes must recover by themselves. */
    bool restart = gl_rng_chance(&s->rng, 500000);
    for (uint32_t i = 0; i < s->machines_n; i++) {
        sim_machine_heal(&s->machines[i], restart);
    }
    gl_ms calm = 3 * (gl_ms)w->cluster.ttl_ms + 15 * SECOND;
    s->kill_at = gl_rng_chance(&s->rng, 700000) ? w->now + calm + gl_rng_range(&s->rng, 0, MINUTE)
                                                : INT64_MAX;
    SIM_TRACE(w, NODE, .what = "phase two");
    sim_client_steward(&s->client);
}

/* ---- phase two ---- */

static void lose_one(struct sim_cluster *s)
{
    struct sim_machine *alive[SIM_MACHINES_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->machines_n; i++) {
        if (s->machines[i].current != NULL && sim_machine_may_go(&s->machines[i])) {
            alive[n++] = &s->machines[i];
        }
    }
    s->kill_at = INT64_MAX;
    if (n > 0) {
        s->victim = alive[gl_rng_below(&s->rng, n)];
        s->killed_at = s->world.now;
        sim_machine_lose(s->victim);
    }
}

/* Other nodes must own the victim's jobs by now. */
static void check_takeover(struct sim_cluster *s)
{
    gl_ms most = (gl_ms)s->world.cluster.ttl_ms + TAKEOVER_MS;
    const struct sim_fact_job *j;
    if (s->victim == NULL || s->world.now < s->killed_at + most) {
        return;
    }
    for (size_t i = 0; (j = gl_map_next(&s->checks.facts.jobs, &i)) != NULL;) {
        gl_str rest;
        gl_str node = gl_str_cut(gl_buf_view(&j->owner), '#', &rest);
        if (j->known && j->r.wake == GL_WAKE_RUNNING && gl_str_is(node, s->victim->keeper.node)) {
            sim_world_fail(
                &s->world, "takeover: job %.*s is still owned by %.*s, %lld ms after its death",
                GL_STR_ARG(j->id), GL_STR_ARG(node), (long long)(s->world.now - s->killed_at));
        }
    }
    s->victim = NULL;
}

/* Where every node may run every step. */
static void check_waiting(struct sim_cluster *s)
{
    const struct sim_world *w = &s->world;
    bool has_node[SIM_MACHINES_MAX];
    if (s->has_agents || w->cluster.guests != 0 || w->cluster.stacks != 0 || w->failed) {
        return;
    }
    for (uint32_t i = 0; i < s->machines_n; i++) {
        const struct sim_machine *m = &s->machines[i];
        has_node[i] = m->current != NULL && m->current->ready && !m->current->lost &&
                      !m->current->stopping && !m->dies && m->keeper.up;
    }
    sim_check_elsewhere_calm(&s->checks, has_node, s->machines_n);
}

static bool at_rest(struct sim_cluster *s)
{
    bool rest = sim_client_satisfied(&s->client) && s->kill_at == INT64_MAX && s->victim == NULL &&
                sim_check_full_is_over(&s->checks);
    for (uint32_t i = 0; i < s->machines_n; i++) {
        struct sim_machine *m = &s->machines[i];
        if (m->is_gone) {
            continue;
        }
        /* They poll all the time: it suffices that each has been idle since then. */
        m->was_idle =
            rest && m->current != NULL &&
            (m->was_idle || (gl_node_idle(m->current->node) && gl_list_empty(&m->current->asks)));
        rest = rest && gl_map_count(&m->keeper.attempts) == 0;
    }
    for (uint32_t i = 0; i < s->machines_n; i++) {
        rest = rest && (s->machines[i].is_gone || s->machines[i].was_idle);
    }
    return rest;
}

static uint32_t live_jobs(const struct sim_cluster *s)
{
    uint32_t n = 0;
    const struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&s->checks.facts.jobs, &i)) != NULL;) {
        n += j->known && !gl_job_status_is_terminal(j->r.status) ? 1 : 0;
    }
    return n;
}

static void phase_two(struct sim_cluster *s)
{
    struct sim_world *w = &s->world;
    gl_ms until = w->now + LIVENESS_MS;
    gl_ms still_since = w->now;
    uint32_t live = live_jobs(s);
    while (!w->failed) {
        gl_ms next = w->now + SECOND / 5;
        while (!w->failed && w->now < next) {
            sim_world_run(w, w->now + SECOND / 20);
        }
        if (w->now >= s->kill_at) {
            lose_one(s);
        }
        check_takeover(s);
        check_waiting(s);
        if (!w->failed && at_rest(s)) {
            s->ended = true;
            return;
        }
        if (live_jobs(s) != live) {
            live = live_jobs(s);
            still_since = w->now;
        }
        if (w->now > until || w->now - still_since > STILLNESS_MS) {
            return; /* the checkers report what has not ended */
        }
    }
}

bool sim_cluster_run(struct sim_cluster *s)
{
    struct sim_world *w = &s->world;
    phase_one(s);
    if (!w->failed) {
        heal(s);
        phase_two(s);
    }
    if (!w->failed) {
        sim_checks_end(&s->checks);
    }
    if (!w->failed && !s->ended) {
        sim_world_fail(w, "forgotten: a node does not become idle, although every job has ended");
    }
    return !w->failed;
}

void sim_cluster_done(struct sim_cluster *s)
{
    struct sim_world *w = &s->world;
    for (uint32_t i = 0; i < s->machines_n; i++) {
        sim_machine_done(&s->machines[i]);
    }
    sim_world_cancel(w, &s->trouble);
    sim_world_cancel(w, &s->damage.call);
    sim_world_cancel(w, &s->full.call);
    sim_client_done(&s->client);
    sim_checks_done(&s->checks);
    for (uint32_t i = 0; i < s->machines_n; i++) {
        sim_keeper_done(&s->machines[i].keeper);
    }
    sim_disk_done(&s->disk);
    sim_world_done(w);
}

/* ---- output ---- */

void sim_cluster_head(const struct sim_cluster *s, struct gl_buf *out)
{
    gl_buf_fmt(out, "options: minutes=%lld jobs=%zu slots=%u kills=%u faults=%u ",
               (long long)(s->phase_one_ends - s->world.now) / MINUTE, s->client.orders_n,
               s->pools.default_slots, s->left[SIM_TROUBLE_kill], s->world.fault_budget);
    sim_cluster_options_print(&s->world.cluster, out);
    gl_buf_char(out, ' ');
    sim_options_print(&s->world.options, out);
    gl_buf_char(out, ' ');
    sim_agent_options_print(&s->world.bundles, out);
    gl_buf_char(out, '\n');
}

void sim_cluster_tail(const struct sim_cluster *s, struct gl_buf *out)
{
    const struct sim_world *w = &s->world;
    size_t processes_n = 0;
    size_t lost_n = 0;
    const struct sim_fact_job *j;
    for (uint32_t i = 0; i < s->machines_n; i++) {
        processes_n += s->machines[i].keeper.ledger_n;
    }
    for (size_t i = 0; (j = gl_map_next(&s->checks.facts.jobs, &i)) != NULL;) {
        lost_n += j->lost ? 1 : 0;
    }
    gl_buf_fmt(out,
               "ok: hash=%016llx lines=%llu steps=%llu minutes=%lld jobs=%zu lost=%zu "
               "processes=%zu commits=%llu refused=%llu undone=%llu faults=%u",
               (unsigned long long)w->hash, (unsigned long long)w->lines_n,
               (unsigned long long)w->calls_run, (long long)(w->now - SIM_EPOCH_MS) / MINUTE,
               gl_map_count(&s->checks.facts.jobs), lost_n, processes_n,
               (unsigned long long)s->disk.commits_n, (unsigned long long)s->disk.refusals_n,
               (unsigned long long)s->disk.undone_n, w->faults_hit);
    for (size_t i = 0; i < SIM_TROUBLES; i++) {
        gl_buf_fmt(out, " %s=%u", trouble_names[i], s->had[i]);
    }
    gl_buf_char(out, '\n');
}
