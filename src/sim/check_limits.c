/* check_limits.c - the processes that really run never exceed their concurrency key, and two starts
 * with one rate key are decided no closer together than the rate allows, across crashes.
 *
 * The keys of simulated flows always have the same numbers, so it does not matter which step sets
 * them. On a shared store a key is counted over all machines, including those that are cut off. On
 * one machine, as with slots, a sleeper beside its successor counts as a separate node with its own
 * memory; and if the wall clock jumps, or machines have different clocks, only the decisions of one
 * node about a rate can be compared. */
#include "base/check.h"
#include "base/mem.h"
#include "sim/sim_checks.h"

struct rate_start { /* the latest start with a key */
    gl_ms at;
    struct gl_buf key, session;
};

struct limits_state {
    struct gl_map rates; /* key -> struct rate_start */
};

/* ---- concurrency ---- */

/* On one machine: a sleeper counts the attempts it has started itself. */
static bool counts_here(const struct sim_checks *c, const struct sim_fact_job *j,
                        const struct sim_process *p, const struct sim_fact_job *its,
                        const struct sim_process *other)
{
    return gl_str_eq(gl_buf_view(&its->owner), gl_buf_view(&j->owner)) &&
           (c->world->options.zombies == 0 || gl_str_eq(other->by, p->by));
}

/* On a shared store seats are records: every running attempt has one, wherever it runs. Its seat
 * may be gone if a person has decided about unsafe work whose node cannot be asked, or if a
 * failover has undone the newest transactions. */
static bool counts_anywhere(const struct sim_fact_job *its, const struct sim_process *other)
{
    const struct sim_fact_step *st =
        sim_facts_step((struct sim_fact_job *)its, other->step); /* its key and seat are known */
    bool is_decided = other != st->last || st->r.decided_at != st->decided_at_last ||
                      its->r.verdict == GL_VERDICT_CANCELLED;
    bool by_a_person = other->spec->safety == GL_SAFETY_UNSAFE && is_decided;
    return !by_a_person && !its->torn;
}

static uint32_t in_use(const struct sim_checks *c, const struct sim_fact_job *j,
                       const struct sim_process *p)
{
    uint32_t used = 1;
    for (size_t k = 0; k < c->keepers_n; k++) {
        const struct sim_attempt *at;
        for (size_t i = 0; (at = gl_map_next(&c->keepers[k]->attempts, &i)) != NULL;) {
            const struct sim_process *other = at->process;
            if (other == p || other->ended_at != 0 || other->spec == NULL ||
                !gl_str_eq(other->limit_key, p->limit_key)) {
                continue;
            }
            const struct sim_fact_job *its = sim_facts_job(&c->facts, other->job);
            bool counts =
                c->disk->shared ? counts_anywhere(its, other) : counts_here(c, j, p, its, other);
            used += counts && !sim_fact_was_spoilt(its) ? 1 : 0;
        }
    }
    return used;
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    if (st->spec->limit_key.n == 0 || p->token != j->token) {
        return; /* decided in time, but its job was taken from the node that decided it: it does not
                   count */
    }
    uint32_t used = in_use(c, j, p);
    if (used > st->spec->limit_max) {
        sim_world_fail(c->world, "limits: with %.*s of job %.*s the key %.*s is used by %u of %u",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), GL_STR_ARG(p->limit_key), used,
                       st->spec->limit_max);
    }
}

/* ---- rates ---- */

static struct rate_start *rate_get(struct limits_state *s, gl_str key)
{
    struct rate_start *r = gl_map_find(&s->rates, key);
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
    struct rate_start *r = rate_get(me, spec->rate_key);
    gl_ms apart = ch->step_now->attempt_at - r->at;
    bool same = gl_str_eq(gl_buf_view(&r->session), ch->tx->session);
    bool alike = same || (c->world->options.zombies == 0 && c->world->options.clock_jumps == 0 &&
                          !c->disk->shared);
    if (r->session.n > 0 && alike && apart < spec->rate_ms) {
        sim_world_fail(c->world,
                       "limits: step %.*s of job %.*s starts %lld ms after another one with the "
                       "rate key %.*s, whose interval is %lld",
                       GL_STR_ARG(spec->id), GL_STR_ARG(ch->job->id), (long long)apart,
                       GL_STR_ARG(spec->rate_key), (long long)spec->rate_ms);
    }
    r->at = ch->step_now->attempt_at;
    gl_buf_reset(&r->session);
    gl_buf_str(&r->session, ch->tx->session);
}

static void done(void *me)
{
    struct limits_state *s = me;
    struct rate_start *r;
    for (size_t i = 0; (r = gl_map_next(&s->rates, &i)) != NULL;) {
        gl_buf_done(&r->key);
        gl_buf_done(&r->session);
        gl_mem_free(r);
    }
    gl_map_done(&s->rates);
}

const struct sim_check sim_check_limits = {.name = "limits",
                                           .state_bytes = sizeof(struct limits_state),
                                           .on_change = on_change,
                                           .on_start = on_start,
                                           .done = done};
