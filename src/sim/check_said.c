/* check_said.c - what workers report while they run: a logged event was reported, is logged once,
 * and in the order in which it was reported. Without faults it is logged, whichever node started
 * its worker; and a worker that sends beacons is not treated as dead. */
#include <stdio.h>

#include "base/mem.h"
#include "model/bundle/agent.h"
#include "sim/sim_checks.h"
#include "sim/sim_workers.h"

enum {
    CALM_MS = 10000, /* after the last fault */
    SOON_MS = 5000,  /* by then an event has been logged */
};

struct heard {     /* "<job> <attempt>" */
    uint64_t next; /* the lowest number that has not been logged */
    char key[];
};

struct said_state {
    struct gl_map heard;
    bool is_made;
    gl_ms calm_since; /* 0: not yet */
};

static const struct sim_process *process_of(const struct sim_checks *c, gl_str job, gl_str attempt)
{
    for (size_t k = 0; k < c->keepers_n; k++) {
        for (size_t i = c->keepers[k]->ledger_n; i > 0; i--) {
            const struct sim_process *p = c->keepers[k]->ledger[i - 1];
            if (gl_str_eq(p->job, job) && gl_str_eq(p->attempt, attempt)) {
                return p;
            }
        }
    }
    return NULL;
}

static void check_line(struct sim_checks *c, struct said_state *s, gl_str job, gl_str attempt,
                       uint64_t number)
{
    char key[96];
    const struct sim_process *p = process_of(c, job, attempt);
    if (!s->is_made) {
        gl_map_init(&s->heard);
        s->is_made = true;
    }
    (void)snprintf(key, sizeof(key), "%.*s %.*s", GL_STR_ARG(job), GL_STR_ARG(attempt));
    struct heard *h = gl_map_find(&s->heard, gl_str_of(key));
    if (h == NULL) {
        h = gl_mem_alloc(sizeof(*h) + strlen(key) + 1);
        memcpy(h->key, key, strlen(key) + 1);
        gl_map_add(&s->heard, gl_str_of(h->key), h);
    }
    if (p == NULL || number >= p->lines_n) {
        sim_world_fail(c->world, "said: line %llu of %s is logged and was never reported",
                       (unsigned long long)number, key);
    } else if (number < h->next) {
        sim_world_fail(c->world, "said: line %llu of %s is logged after line %llu",
                       (unsigned long long)number, key, (unsigned long long)h->next - 1);
    }
    h->next = number + 1;
}

static void check_event(struct sim_checks *c, struct said_state *s, const struct sim_fact_job *job,
                        gl_str line)
{
    struct gl_json j;
    uint64_t number = 0;
    if (gl_json_parse(&j, line, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return;
    }
    gl_jnode payload = gl_json_get(&j, gl_json_root(&j), "payload");
    if (payload != NULL && gl_json_u64(&j, gl_json_get(&j, payload, "n"), &number)) {
        check_line(c, s, job->id, gl_json_str(&j, gl_json_get(&j, payload, "of"), &c->arena),
                   number);
    }
}

static void on_log(struct sim_checks *c, void *me, const struct sim_change *ch,
                   const struct gl_write *w)
{
    gl_str rest = w->value, word = GL_S("\"type\":\"progress\"");
    while (ch->job->flow->bundle != NULL && rest.n > 0) {
        gl_str line = gl_str_cut(rest, '\n', &rest);
        if (memmem(line.p, line.n, word.p, word.n) != NULL) {
            check_event(c, me, ch->job, line);
        }
    }
}

static bool has_failed(const struct gl_step_record *r)
{
    return r->status == GL_STEP_RETRY_WAIT || r->terminal_outcome == GL_OUTCOME_FAILED;
}

/* Only when there are no faults any more, and no delays because of earlier ones: else lines are
 * late, or lost with a connection. */
static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    const struct sim_fact_step *st = ch->step;
    (void)me;
    if (st == NULL || !st->spec->is_bound || c->world->faults || st->r.status != GL_STEP_RUNNING ||
        ch->step_now->status == GL_STEP_RUNNING || !has_failed(ch->step_now) ||
        !gl_str_is(ch->step_now->last_error, "agent beacon deadline exceeded")) {
        return;
    }
    int64_t agent = gl_flow_find_agent(ch->job->flow, st->spec->agent_ids.items[0]);
    const struct sim_fact_step *unit = &ch->job->steps[agent];
    const struct sim_process *p = unit->last;
    gl_ms timeout = gl_flow_agent(ch->job->flow, (uint32_t)agent)->beacon_timeout_ms;
    if (unit->r.status == GL_STEP_RUNNING && unit->r.letter == st->r.letter && p != NULL &&
        p->number == unit->r.attempt_count && p->beat_at > p->started_at &&
        p->started_at >= c->world->calm_since && c->world->now - p->beat_at < timeout / 2) {
        sim_world_fail(c->world,
                       "said: step %.*s of job %.*s is given up, and its worker sent a beacon "
                       "%lld ms ago",
                       GL_STR_ARG(ch->step_now->step_id), GL_STR_ARG(ch->job->id),
                       (long long)(c->world->now - p->beat_at));
    }
}

static bool is_progress(const struct sim_checks *c, const struct sim_process *p, uint32_t number)
{
    char line[SIM_WORKERS_LINE];
    (void)sim_workers_line(c->world, p, number, line); /* a beacon is not an event */
    return strstr(line, "progress") != NULL;
}

/* Its process ends now, and the lines it reported a while ago must have been logged. */
static void on_end(struct sim_checks *c, void *me, struct sim_fact_job *j, struct sim_fact_step *st,
                   const struct sim_process *p)
{
    struct said_state *s = me;
    char key[96];
    s->calm_since = c->world->faults ? 0 : s->calm_since == 0 ? c->world->now : s->calm_since;
    if (s->calm_since == 0 || c->disk->shared || j->r.verdict != GL_VERDICT_NONE ||
        st->r.status != GL_STEP_RUNNING || st->r.attempt_count != p->number) {
        return;
    }
    (void)snprintf(key, sizeof(key), "%.*s %.*s", GL_STR_ARG(j->id), GL_STR_ARG(p->attempt));
    const struct heard *h = s->is_made ? gl_map_find(&s->heard, gl_str_of(key)) : NULL;
    for (uint32_t i = h != NULL ? (uint32_t)h->next : 0; i < p->lines_n; i++) {
        if (p->told_at[i] > s->calm_since + CALM_MS && p->told_at[i] < c->world->now - SOON_MS &&
            is_progress(c, p, i)) {
            sim_world_fail(c->world,
                           "said: line %u of %s was reported %lld ms ago and is not logged", i, key,
                           (long long)(c->world->now - p->told_at[i]));
        }
    }
}

static void done(void *me)
{
    struct said_state *s = me;
    struct heard *h;
    for (size_t i = 0; s->is_made && (h = gl_map_next(&s->heard, &i)) != NULL;) {
        gl_mem_free(h);
    }
    if (s->is_made) {
        gl_map_done(&s->heard);
    }
}

const struct sim_check sim_check_said = {.name = "said",
                                         .state_bytes = sizeof(struct said_state),
                                         .on_log = on_log,
                                         .on_end = on_end,
                                         .on_change = on_change,
                                         .done = done};
