#include "sim/sim_swarm.h"

#include "base/check.h"
#include "base/mem.h"

#define SECOND 1000LL
#define MINUTE (60 * SECOND)

enum {
    CRASHES_MIN = 5,
    FAULTS_MAX = 400,       /* the largest budget: a history must also make progress */
    CALLS_PER_CRASH = 1500, /* a crash by steps happens within this many */
    FUSE_CALLS = 8,
    FUSE_PATIENCE = 200, /* steps after which a lit fuse counts as blown */
};
#define LIVENESS_MS (240 * MINUTE) /* everything must have ended by then */
#define STILLNESS_MS (45 * MINUTE) /* nothing committed for this long, before the end: stuck */

/* ---- nodes ---- */

static void on_lost(void *owner, struct sim_node *n)
{
    struct sim_swarm *s = owner;
    (void)n; /* it is removed with all others that have lost their session */
    if (!sim_call_waits(&s->bury)) {
        sim_world_at(&s->world, &s->bury, s->world.now + gl_rng_range(&s->rng, 0, 200));
    }
}

static void plan_crash(struct sim_swarm *s)
{
    gl_ms left = s->phase_one_ends - s->world.now;
    s->crash_at = INT64_MAX;
    s->crash_at_calls = UINT64_MAX;
    if (s->crashes_left == 0 || left <= 0) {
        return;
    }
    if (gl_rng_chance(&s->rng, 500000)) {
        uint64_t most = CALLS_PER_CRASH >> gl_rng_below(&s->rng, 6);
        s->crash_at_calls = s->world.calls_run + 1 + gl_rng_below(&s->rng, most);
    }
    /* Also by time, so that all of them happen within the phase. */
    gl_ms span = left / s->crashes_left;
    s->crash_at = s->world.now + gl_rng_range(&s->rng, 0, span > 1 ? span : 1);
}

static void jump_clock(struct sim_swarm *s)
{
    struct sim_world *w = &s->world;
    if (w->faults && gl_rng_chance(&s->rng, w->options.clock_jumps)) {
        bool back = gl_rng_chance(&s->rng, 500000);
        w->wall_offset +=
            back ? -gl_rng_range(&s->rng, 0, 90 * SECOND) : gl_rng_range(&s->rng, 0, 20 * MINUTE);
        s->jumps_n++;
        SIM_TRACE(w, NODE, .number = w->wall_offset, .what = "the clock jumps");
    }
}

static void on_start(struct sim_call *call)
{
    struct sim_swarm *s = GL_CONTAINER(call, struct sim_swarm, start);
    GL_ASSERT(s->current == NULL);
    jump_clock(s);
    struct sim_node_options options = {
        .incarnation = ++s->incarnations,
        .pools = s->pools,
        .hot_jobs_max = s->world.options.hot_narrow,
        .keep = {.job_ms = s->world.options.keep_ms, .jobs = s->world.options.keep_jobs},
        .renew = s->renew,
        .record = s->record,
        .round_trip = s->world.seed % 4 == 0,
        .on_lost = on_lost,
        .owner = s};
    s->current = sim_node_new(&s->world, &s->disk, &s->keeper, &options);
    gl_list_push(&s->nodes, &s->current->link);
    s->doomed = false;
    plan_crash(s);
}

static void start_soon(struct sim_swarm *s)
{
    s->current = NULL;
    gl_ms most = gl_rng_chance(&s->rng, 500000)   ? 0
                 : gl_rng_chance(&s->rng, 700000) ? 3 * SECOND
                                                  : MINUTE;
    sim_world_at(&s->world, &s->start, s->world.now + gl_rng_range(&s->rng, 0, most));
}

static void kill_current(struct sim_swarm *s)
{
    sim_node_kill(s->current);
    s->crashes_n++;
    s->crashes_left -= s->crashes_left > 0 ? 1 : 0;
    start_soon(s);
}

static void kill_sleeper(struct sim_swarm *s)
{
    sim_world_cancel(&s->world, &s->rouse);
    sim_node_kill(s->sleeper);
    s->sleeper = NULL;
}

/* The node sleeps; its machine takes it for dead and starts another one. */
static void leave_asleep(struct sim_swarm *s)
{
    s->sleeper = s->current;
    s->zombies_n++;
    s->crashes_n++;
    s->crashes_left -= s->crashes_left > 0 ? 1 : 0;
    sim_node_sleep(s->sleeper);
    sim_world_at(&s->world, &s->rouse, s->world.now + gl_rng_range(&s->rng, 0, 2 * MINUTE));
    start_soon(s);
}

static void on_rouse(struct sim_call *call)
{
    struct sim_swarm *s = GL_CONTAINER(call, struct sim_swarm, rouse);
    sim_node_wake(s->sleeper);
    if (gl_rng_chance(&s->rng, 500000)) { /* before it can learn that it has a successor */
        sim_client_visit(&s->client, s->sleeper);
    }
    if (!sim_call_waits(&s->bury)) {
        sim_world_at(&s->world, &s->bury, s->world.now + gl_rng_range(&s->rng, 0, MINUTE));
    }
}

static void on_bury(struct sim_call *call)
{
    struct sim_swarm *s = GL_CONTAINER(call, struct sim_swarm, bury);
    if (s->sleeper != NULL && !s->sleeper->gate.shut) {
        kill_sleeper(s);
    }
    if (s->current != NULL && s->current->lost) {
        sim_node_kill(s->current);
        start_soon(s);
    }
}

static void crash(struct sim_swarm *s)
{
    struct sim_world *w = &s->world;
    s->crash_at = INT64_MAX;
    s->crash_at_calls = UINT64_MAX;
    if (s->sleeper == NULL && s->zombies_n < w->options.zombies && gl_rng_chance(&s->rng, 400000)) {
        leave_asleep(s);
    } else if (!s->doomed && gl_rng_chance(&s->rng, w->options.half_crashes)) {
        s->doomed = true;
        s->doomed_calls = w->calls_run;
        s->current->fuse.calls_left = (int)gl_rng_below(&s->rng, FUSE_CALLS);
    } else if (gl_rng_chance(&s->rng, w->options.orderly_stops)) {
        s->patience = w->now + 30 * SECOND;
        sim_node_stop(s->current);
    } else {
        bool power_cut = gl_rng_chance(&s->rng, 100000) && w->options.keeper_crashes > 0;
        kill_current(s);
        if (power_cut) {
            sim_keeper_crash(&s->keeper, gl_rng_range(&s->rng, 0, 2 * SECOND));
        }
    }
}

/* ---- the rest of the machine ---- */

static void on_trouble(struct sim_call *call)
{
    struct sim_swarm *s = GL_CONTAINER(call, struct sim_swarm, trouble);
    struct sim_world *w = &s->world;
    switch (gl_rng_below(&s->rng, 3)) {
    case 0:
        if (s->keeper_crashes_n < w->options.keeper_crashes) {
            s->keeper_crashes_n++;
            sim_keeper_crash(&s->keeper, gl_rng_range(&s->rng, 0, 5 * SECOND));
        }
        break;
    case 1:
        if (s->outages_n < w->options.store_outages) {
            s->outages_n++;
            s->disk.away_until = w->now + gl_rng_range(&s->rng, 100, 20 * SECOND);
            SIM_TRACE(w, TX, .number = s->disk.away_until - w->now, .what = "the store is away");
        }
        break;
    default:
        if (s->cycles_n < w->options.exec_cycles && s->current != NULL && s->current->has_exec) {
            s->cycles_n++;
            sim_exec_break(&s->current->exec, gl_rng_range(&s->rng, 0, 10 * SECOND));
        }
        break;
    }
    sim_world_at(w, call, w->now + gl_rng_range(&s->rng, 1, MINUTE));
}

/* ---- a history ---- */

static void apply_settings(struct sim_swarm *s, const char *set)
{
    gl_str rest = gl_str_of(set);
    while (rest.n > 0) {
        gl_str value;
        gl_str one = gl_str_cut(rest, ',', &rest);
        gl_str name = gl_str_cut(one, '=', &value);
        uint64_t v = 0;
        if (!gl_str_u64(value, &v) ||
            (!sim_options_set(&s->world.options, name, (uint32_t)v) &&
             !sim_agent_options_set(&s->world.bundles, name, (uint32_t)v))) {
            sim_world_fail(&s->world, "unknown option %.*s", GL_STR_ARG(one));
        }
    }
}

void sim_swarm_draw_agents(struct sim_world *w, const struct sim_swarm_options *options)
{
    struct gl_rng draw;
    if (options->agents) {
        gl_rng_init(&draw, options->seed ^ gl_str_hash(GL_S("bundles")));
        sim_agent_options_draw(&w->bundles, &draw);
        w->agents = true;
    }
}

void sim_swarm_agents(struct sim_world *w, const struct sim_swarm_options *options,
                      struct sim_pools *pools)
{
    struct gl_rng draw;
    if (!options->agents) {
        return; /* draws nothing: other histories stay unchanged */
    }
    gl_rng_fork(&w->rng, &draw, "agents");
    pools->executor_slots = 1 + (uint32_t)gl_rng_below(&draw, 6);
}

void sim_swarm_init(struct sim_swarm *s, const struct sim_swarm_options *options)
{
    *s = (struct sim_swarm){0};
    struct sim_world *w = &s->world;
    sim_world_init(w, options->seed);
    w->print = options->print;
    w->print_owner = options->owner;
    struct gl_rng draw;
    gl_rng_fork(&w->rng, &draw, "options");
    sim_options_draw(&w->options, &draw);
    sim_swarm_draw_agents(w, options);
    apply_settings(s, options->set);
    gl_rng_fork(&w->rng, &s->rng, "swarm");
    sim_swarm_agents(w, options, &s->pools);
    w->faults = true;
    w->fault_budget = (uint32_t)gl_rng_below(&s->rng, FAULTS_MAX);
    s->renew = options->renew;
    s->record = options->record || options->seed % 8 == 5;
    s->pools.default_slots = w->options.slots_narrow == 0 ? 8 : w->options.slots_narrow;
    s->pools.gpu_slots = 1 + (uint32_t)gl_rng_below(&s->rng, 2);
    sim_disk_init(&s->disk);
    sim_keeper_init(&s->keeper, w);
    if (w->bundles.blobs > 0) {
        sim_keeper_give_folder(&s->keeper);
    }
    sim_checks_init(&s->checks, w, &s->disk, &s->keeper, &s->pools);
    gl_list_init(&s->nodes);
    sim_call_init(&s->start, on_start, NULL);
    sim_call_init(&s->trouble, on_trouble, NULL);
    sim_call_init(&s->rouse, on_rouse, NULL);
    sim_call_init(&s->bury, on_bury, NULL);
    gl_ms minutes = options->minutes == 0 ? gl_rng_range(&s->rng, 10, 14) : options->minutes;
    size_t jobs_n =
        options->jobs_n == 0 ? SIM_CLIENT_JOBS_MIN + gl_rng_below(&s->rng, 9) : options->jobs_n;
    s->phase_one_ends = w->now + minutes * MINUTE;
    s->crashes_left = CRASHES_MIN + (uint32_t)gl_rng_below(&s->rng, 10);
    sim_client_init(&s->client, &s->checks, &s->nodes, &s->pools, jobs_n, minutes * MINUTE);
    sim_damage_init(&s->damage, &s->checks, minutes * MINUTE);
    sim_full_init(&s->full, w, &s->disk, minutes * MINUTE);
    sim_world_at(w, &s->start, w->now);
    sim_world_at(w, &s->trouble, w->now + gl_rng_range(&s->rng, 1, MINUTE));
}

static void after_step(struct sim_swarm *s)
{
    struct sim_world *w = &s->world;
    if (s->current == NULL) {
        return;
    }
    bool burnt =
        s->doomed && (s->current->fuse.blown || w->calls_run > s->doomed_calls + FUSE_PATIENCE);
    bool gone = s->current->stopping && (s->current->stopped || w->now > s->patience);
    if (burnt || gone) {
        kill_current(s);
    } else if (w->calls_run >= s->crash_at_calls || w->now >= s->crash_at) {
        crash(s);
    }
}

static void phase_one(struct sim_swarm *s)
{
    struct sim_world *w = &s->world;
    while (!w->failed && w->now < s->phase_one_ends && sim_world_step(w)) {
        after_step(s);
    }
}

/* Faults end here: no sleepers, one node. */
static void heal(struct sim_swarm *s)
{
    struct sim_world *w = &s->world;
    w->faults = false;
    w->calm_since = w->now;
    s->disk.away_until = 0;
    sim_damage_heal(&s->damage);
    sim_full_heal(&s->full);
    sim_world_cancel(w, &s->trouble);
    if (s->sleeper != NULL) {
        kill_sleeper(s);
    }
    s->crashes_left = 0;
    /* In half of the histories there is one last restart: everything must be restored from the
     * disk. In the other half the node must recover by itself. */
    bool dying = s->doomed || (s->current != NULL && s->current->stopping);
    if (s->current != NULL && (dying || gl_rng_chance(&s->rng, 500000))) {
        sim_node_kill(s->current);
        s->crashes_n++;
        s->current = NULL;
        sim_world_at(w, &s->start, w->now);
    }
    SIM_TRACE(w, NODE, .what = "phase two");
    sim_client_steward(&s->client);
}

static bool at_rest(struct sim_swarm *s)
{
    return s->current != NULL && gl_map_count(&s->keeper.attempts) == 0 &&
           sim_client_satisfied(&s->client) && gl_node_idle(s->current->node) &&
           gl_list_empty(&s->current->asks) && sim_check_full_is_over(&s->checks);
}

static void phase_two(struct sim_swarm *s)
{
    struct sim_world *w = &s->world;
    gl_ms until = w->now + LIVENESS_MS;
    uint64_t commits = s->disk.commits_n;
    gl_ms still_since = w->now;
    while (!w->failed) {
        sim_world_run(w, w->now + SECOND);
        if (at_rest(s)) {
            s->ended = true;
            return;
        }
        if (s->disk.commits_n != commits) {
            commits = s->disk.commits_n;
            still_since = w->now;
        }
        if (w->now > until || w->now - still_since > STILLNESS_MS) {
            return; /* the checkers report what has not ended */
        }
    }
}

bool sim_swarm_run(struct sim_swarm *s)
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
        sim_world_fail(w, "forgotten: the node does not become idle, although every job has ended");
    }
    return !w->failed;
}

void sim_swarm_done(struct sim_swarm *s)
{
    struct sim_world *w = &s->world;
    if (s->sleeper != NULL) {
        kill_sleeper(s);
    }
    if (s->current != NULL) {
        sim_node_kill(s->current);
    }
    sim_world_cancel(w, &s->start);
    sim_world_cancel(w, &s->trouble);
    sim_world_cancel(w, &s->bury);
    sim_world_cancel(w, &s->damage.call);
    sim_world_cancel(w, &s->full.call);
    sim_client_done(&s->client);
    sim_checks_done(&s->checks);
    sim_keeper_done(&s->keeper);
    sim_disk_done(&s->disk);
    sim_world_done(w);
}
