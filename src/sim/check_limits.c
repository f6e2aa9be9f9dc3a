/* check_limits.c - the processes that really run never exceed their concurrency key, and two starts
 * with one rate key are decided no closer together than the rate allows, whoever died in between.
 *
 * The keys of simulated flows always come with the same numbers, so that it does not matter whose
 * word holds. As with slots, a sleeper beside its successor is a node of its own with memory of its
 * own; and where the wall clock jumps, or machines have clocks and counts of their own, only what
 * one node has decided can be compared. */
#include "base/check.h"
#include "base/mem.h"
#include "sim/sim_checks.h"

struct rate { /* the latest start with a key */
    gl_ms at;
    struct gl_buf key, session;
};

struct state {
    struct gl_map rates; /* key -> struct rate */
};

/* ---- concurrency ---- */

static uint32_t in_use(const struct sim_checks *c, const struct sim_fact_job *j,
                       const struct sim_process *p)
{
    uint32_t used = 1;
    const struct sim_attempt *at;
    const struct sim_keeper *keeper = sim_checks_keeper(c, p);
    bool beside = c->world->options.zombies > 0 || c->disk->shared;
    for (size_t i = 0; (at = gl_map_next(&keeper->attempts, &i)) != NULL;) {
        const struct sim_process *other = at->process;
        if (other == p || other->ended_at != 0 || other->spec == NULL ||
            !gl_str_eq(other->limit_key, p->limit_key)) {
            continue;
        }
        const struct sim_fact_job *its = sim_facts_job(&c->facts, other->job);
        bool same_owner = gl_str_eq(gl_buf_view(&its->owner), gl_buf_view(&j->owner));
        bool counts =
            (!beside || (gl_str_eq(other->by, p->by) && !its->torn)) && !sim_fact_was_spoilt(its);
        used += same_owner && counts ? 1 : 0;
    }
    return used;
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    if (st->spec->limit_key.n == 0 || p->token != j->token) {
        return; /* decided in time, but taken from the node that decided it: it counts nothing */
    }
    uint32_t used = in_use(c, j, p);
    if (used > st->spec->limit_max) {
        sim_world_fail(c->world, "limits: with %.*s of job %.*s the key %.*s is used by %u of %u",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), GL_STR_ARG(p->limit_key), used,
                       st->spec->limit_max);
    }
}

/* ---- rates ---- */

static struct rate *rate_get(struct state *s, gl_str key)
{
    struct rate *r = gl_map_find(&s->rates, key);
    if (r == NULL) {
        r = gl_mem_alloc(sizeof(*r));
        gl_buf_str(&r->key, key);
        gl_map_add(&s->rates, gl_buf_view(&r->key), r);
    }
    return r;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    const struct gl_step_spec *spec = ch->step != NULL ? ch->step->spec : NULL;
    if (spec == NULL || spec->rate_key.n == 0 ||
        ch->step_now->attempt_count == ch->step->r.attempt_count) {
        return;
    }
    struct rate *r = rate_get(me, spec->rate_key);
    gl_ms apart = ch->step_now->attempt_at - r->at;
    bool same = gl_str_eq(gl_buf_view(&r->session), ch->tx->session);
    bool alike = same || (c->world->options.zombies == 0 && c->world->options.clock_jumps == 0 &&
                          !c->disk->shared);
    if (r->session.n > 0 && alike && apart < spec->rate_ms) {
        sim_world_fail(c->world,
                       "limits: step %.*s of job %.*s starts %lld ms after another one with the "
                       "rate key %.*s, which wants %lld",
                       GL_STR_ARG(spec->id), GL_STR_ARG(ch->job->id), (long long)apart,
                       GL_STR_ARG(spec->rate_key), (long long)spec->rate_ms);
    }
    r->at = ch->step_now->attempt_at;
    gl_buf_reset(&r->session);
    gl_buf_str(&r->session, ch->tx->session);
}

static void done(void *me)
{
    struct state *s = me;
    struct rate *r;
    for (size_t i = 0; (r = gl_map_next(&s->rates, &i)) != NULL;) {
        gl_buf_done(&r->key);
        gl_buf_done(&r->session);
        gl_mem_free(r);
    }
    gl_map_done(&s->rates);
}

const struct sim_check sim_check_limits = {.name = "limits",
                                           .state_bytes = sizeof(struct state),
                                           .on_change = on_change,
                                           .on_start = on_start,
                                           .done = done};
