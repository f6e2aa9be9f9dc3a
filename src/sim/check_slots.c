/* check_slots.c - the processes that really run never need more slots than their pool has, and an
 * agent's lease lasts through its immediate retries.
 *
 * The events say when a lease exists: it is acquired and released alternately, and exists while its
 * agent runs, or keeps its slots between two attempts; an agent of a paused job keeps none. Nothing
 * else gets the slots it keeps: an attempt that starts meanwhile must fit beside it. That is
 * checked when the lease continues. A lease that ends may have been given up in a transaction that
 * came later than the start, or was undone by a fault.
 *
 * A sleeper that wakes up beside its successor is a separate node for a moment, with its own slots,
 * and its attempts may be inherited in addition to what its successor runs already. So in histories
 * with sleepers, or several machines, each incarnation is checked against the attempts it started
 * itself, of jobs that it owns by the disk. If a failover has undone a start, no node knows of that
 * attempt until it is found. */
#include "base/check.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/bundle/agent.h"
#include "sim/sim_checks.h"

struct lease { /* of an agent */
    struct gl_buf key;
    const struct gl_step_spec *spec;
    bool is_held, is_fresh; /* by the events; in this transaction */
    bool waits;             /* between two attempts, since ... */
    uint32_t faults;        /* ... this number of faults, ... */
    struct gl_buf session;  /* ... with this owner */
    bool is_crowded;        /* meanwhile an attempt started that does not fit ... */
    struct gl_buf by;       /* ... with this owner */
};

struct slots_state {
    struct gl_map leases; /* "job/@agent" -> struct lease */
};

/* ---- leases ---- */

static struct lease *lease_get(struct sim_checks *c, struct slots_state *s, gl_str job, gl_str unit)
{
    gl_str key = gl_str_fmt(&c->arena, "%.*s/%.*s", GL_STR_ARG(job), GL_STR_ARG(unit));
    struct lease *l = gl_map_find(&s->leases, key);
    if (l == NULL) {
        l = gl_mem_alloc(sizeof(*l));
        gl_buf_str(&l->key, key);
        gl_map_add(&s->leases, gl_buf_view(&l->key), l);
    }
    return l;
}

static void set_text(struct gl_buf *b, gl_str text)
{
    gl_buf_reset(b);
    gl_buf_str(b, text);
}

static void check_event(struct sim_checks *c, struct slots_state *s, gl_str job, gl_str line)
{
    struct gl_json j;
    if (gl_json_parse(&j, line, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        sim_world_fail(c->world, "slots: an event of job %.*s cannot be read", GL_STR_ARG(job));
        return;
    }
    gl_str type = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "type"), &c->arena);
    gl_str agent = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "agent_id"), &c->arena);
    bool acquired = gl_str_is(type, "executor_lease_acquired");
    if (!acquired && !gl_str_is(type, "executor_lease_released")) {
        return;
    }
    struct lease *l = lease_get(c, s, job, gl_str_fmt(&c->arena, "@%.*s", GL_STR_ARG(agent)));
    if (l->is_held == acquired) {
        sim_world_fail(c->world, "slots: the lease of %.*s of job %.*s is %s twice",
                       GL_STR_ARG(agent), GL_STR_ARG(job), acquired ? "acquired" : "released");
    }
    l->is_held = acquired;
    l->is_fresh = acquired;
}

static void on_log(struct sim_checks *c, void *me, const struct sim_change *ch,
                   const struct gl_write *w)
{
    gl_str rest = w->value, word = GL_S("\"executor_lease_");
    while (ch->job->flow->bundle != NULL && rest.n > 0) {
        gl_str line = gl_str_cut(rest, '\n', &rest);
        if (memmem(line.p, line.n, word.p, word.n) != NULL) {
            check_event(c, me, ch->job->id, line);
        }
    }
}

static bool is_executor(const struct gl_step_spec *spec)
{
    return gl_str_is(spec->driver, "worker") && gl_str_starts(spec->id, GL_S("@"));
}

static bool goes_on(const struct gl_job_record *r)
{
    return r->status == GL_JOB_RUNNING && r->verdict == GL_VERDICT_NONE;
}

/* From one attempt to the next. */
static void check_try(struct sim_checks *c, struct slots_state *s, const struct sim_change *ch)
{
    const struct gl_step_record *was = &ch->step->r, *now = ch->step_now;
    struct lease *l = lease_get(c, s, ch->job->id, ch->step->spec->id);
    gl_str owner = ch->owner_now;
    bool again = was->status == GL_STEP_RUNNING && now->status == GL_STEP_RETRY_WAIT &&
                 now->letter == was->letter && now->tries > was->tries;
    l->spec = ch->step->spec;
    if (again && goes_on(ch->job_now) && !now->keeps_slots) {
        sim_world_fail(c->world, "slots: %.*s of job %.*s loses its slots between two attempts",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
    }
    if (l->waits && l->is_crowded && !l->is_fresh && now->status == GL_STEP_RUNNING &&
        l->faults == c->world->faults_hit && gl_str_eq(gl_buf_view(&l->by), owner)) {
        sim_world_fail(c->world,
                       "slots: what %.*s of job %.*s kept between two attempts was given away",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
    }
    if (now->keeps_slots && !l->waits) {
        l->faults = c->world->faults_hit;
        l->is_crowded = false;
        set_text(&l->session, owner);
    }
    l->waits = now->keeps_slots;
}

/* All steps of the transaction have been applied. */
static void check_leases(struct sim_checks *c, struct slots_state *s, const struct sim_change *ch)
{
    const struct sim_fact_job *j = ch->job;
    for (uint32_t i = 0; i < gl_flow_agents_n(j->flow); i++) {
        const struct sim_fact_step *st = &j->steps[i];
        if (!st->known || !is_executor(st->spec)) {
            continue;
        }
        struct lease *l = lease_get(c, s, j->id, st->spec->id);
        if (l->is_held != (st->r.status == GL_STEP_RUNNING || st->r.keeps_slots)) {
            sim_world_fail(c->world, "slots: %.*s of job %.*s is %s and its lease is %s",
                           GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id),
                           gl_step_status_words[st->r.status], l->is_held ? "held" : "released");
        }
        if (st->r.keeps_slots && !goes_on(ch->job_now) && !sim_fact_was_spoilt(j)) {
            sim_world_fail(c->world, "slots: job %.*s is %s and its %.*s keeps its slots",
                           GL_STR_ARG(j->id), gl_job_status_words[ch->job_now->status],
                           GL_STR_ARG(st->spec->id));
        }
        l->is_fresh = false;
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    if (ch->job->flow->bundle == NULL) {
        return;
    }
    if (ch->step == NULL) {
        check_leases(c, me, ch);
    } else if (is_executor(ch->step->spec)) {
        check_try(c, me, ch);
    }
}

/* The outcome of its leases is unknown. */
static void on_torn(struct sim_checks *c, void *me, struct sim_fact_job *j)
{
    struct slots_state *s = me;
    struct lease *l;
    (void)c;
    for (size_t i = 0; (l = gl_map_next(&s->leases, &i)) != NULL;) {
        if (gl_str_starts(gl_buf_view(&l->key), j->id)) {
            l->waits = l->is_crowded = false;
        }
    }
}

/* The slots kept by a job that is paused for a damaged record are not counted. */
static bool is_spoilt(struct sim_checks *c, const struct lease *l)
{
    gl_str rest;
    const struct sim_fact_job *j =
        sim_facts_job(&c->facts, gl_str_cut(gl_buf_view(&l->key), '/', &rest));
    return sim_fact_was_spoilt(j);
}

/* Agents between two attempts count in addition to running processes. */
static void crowd(struct sim_checks *c, struct slots_state *s, const struct sim_fact_job *j,
                  const struct sim_process *p, uint32_t used, uint32_t have)
{
    bool beside = c->world->options.zombies > 0 || c->disk->shared;
    gl_str owner = gl_buf_view(&j->owner);
    for (int mark = 0; mark < 2; mark++) {
        struct lease *l;
        for (size_t i = 0; (l = gl_map_next(&s->leases, &i)) != NULL;) {
            if (!l->waits || is_spoilt(c, l) || !gl_str_eq(l->spec->pool, p->spec->pool) ||
                (beside && !gl_str_eq(gl_buf_view(&l->session), owner))) {
                continue;
            }
            used += mark == 0 ? l->spec->slots : 0;
            if (mark == 1) {
                l->is_crowded = true;
                set_text(&l->by, owner);
            }
        }
        if (used <= have) {
            return;
        }
    }
}

/* ---- processes ---- */

static uint32_t in_use(const struct sim_checks *c, const struct sim_fact_job *j,
                       const struct sim_process *p)
{
    uint32_t used = p->spec->slots;
    const struct sim_attempt *at;
    const struct sim_keeper *keeper = sim_checks_keeper(c, p);
    bool beside = c->world->options.zombies > 0 || c->disk->shared;
    for (size_t i = 0; (at = gl_map_next(&keeper->attempts, &i)) != NULL;) {
        const struct sim_process *other = at->process;
        if (other == p || other->ended_at != 0 || other->spec == NULL ||
            !gl_str_eq(other->spec->pool, p->spec->pool)) {
            continue;
        }
        const struct sim_fact_job *its = sim_facts_job(&c->facts, other->job);
        bool same_owner = gl_str_eq(gl_buf_view(&its->owner), gl_buf_view(&j->owner));
        bool counts =
            (!beside || (gl_str_eq(other->by, p->by) && !its->torn)) && !sim_fact_was_spoilt(its);
        /* On a shared store it may also run for the owner of another job. */
        used += (same_owner || c->disk->shared) && counts ? other->spec->slots : 0;
    }
    return used;
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    if (p->token != j->token) {
        return; /* decided in time, but its job was taken from the node that decided it: it does not
                   count */
    }
    uint32_t have = sim_checks_slots(c, p, st->spec->pool);
    uint32_t used = in_use(c, j, p);
    if (used > have) {
        sim_world_fail(c->world, "slots: with %.*s of job %.*s the pool %.*s uses %u of %u slots",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), GL_STR_ARG(st->spec->pool), used,
                       have);
    }
    crowd(c, me, j, p, used, have);
}

static void done(void *me)
{
    struct slots_state *s = me;
    struct lease *l;
    for (size_t i = 0; (l = gl_map_next(&s->leases, &i)) != NULL;) {
        gl_buf_done(&l->key);
        gl_buf_done(&l->session);
        gl_buf_done(&l->by);
        gl_mem_free(l);
    }
    gl_map_done(&s->leases);
}

const struct sim_check sim_check_slots = {.name = "slots",
                                          .state_bytes = sizeof(struct slots_state),
                                          .on_change = on_change,
                                          .on_log = on_log,
                                          .on_start = on_start,
                                          .on_torn = on_torn,
                                          .done = done};
