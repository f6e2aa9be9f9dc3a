/* live_facts.c - collects the facts of one job, and answers from them. */
#include "api/live_facts.h"

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/agent.h"

enum { FACTS_MAX = 100 };

/* ---- answers ---- */

/* A linear search: only queued and running steps have facts. */
static const struct gl_fact *find(const struct gl_facts *f, uint32_t place)
{
    for (size_t i = 0; i < f->steps_n; i++) {
        if (f->steps[i].place == place) {
            return &f->steps[i];
        }
    }
    return NULL;
}

static bool answer_beacon(void *owner, gl_str job, uint32_t number, gl_ms *ret_beacon_at,
                          gl_ms *ret_heartbeat_at)
{
    const struct gl_fact *found = find(owner, number);

    (void)job;
    if (found == NULL || !found->has_beacon) {
        return false;
    }
    *ret_beacon_at = found->beacon_at;
    *ret_heartbeat_at = found->heartbeat_at;
    return true;
}

static enum gl_why_code answer_step(void *owner, gl_str job, uint32_t number, struct gl_buf *out)
{
    const struct gl_facts *f = owner;
    const struct gl_fact *found = find(f, number);

    (void)job;
    if (found == NULL) {
        return GL_BECAUSE_NONE;
    }
    gl_buf_str(out, found->waits_for);
    return found->code;
}

static gl_str answer_refused(void *owner, gl_str job, gl_str step_id)
{
    const struct gl_facts *f = owner;

    (void)job;
    for (size_t i = 0; i < f->steps_n; i++) {
        if (f->steps[i].refused.n > 0 && gl_str_eq(f->steps[i].step_id, step_id)) {
            return f->steps[i].refused;
        }
    }
    return (gl_str){0};
}

static bool answer_quarantined(void *owner, gl_str job)
{
    const struct gl_facts *f = owner;

    (void)job;
    return f->is_quarantined;
}

static gl_str answer_store(void *owner, struct gl_arena *a)
{
    const struct gl_facts *f = owner;

    (void)a;
    return f->store;
}

const struct gl_reason_live *gl_facts_live(const struct gl_facts *f)
{
    return f->has_node ? &f->live : NULL;
}

/* ---- questions ---- */

struct collector {
    struct gl_facts *facts;
    struct gl_arena *arena;
    const struct gl_view *view;
    const struct gl_reason_live *live;
    size_t queued_n, steps_max;
};

static void collect_step(struct collector *c, uint32_t number, int64_t item)
{
    const struct gl_view *v = c->view;
    const struct gl_step_record *r = item < 0 ? v->steps[number] : v->items[number].records[item];
    struct gl_fact fact = {0};

    if (r == NULL || r->step_id.n == 0 || c->facts->steps_n >= c->steps_max) {
        return;
    }
    fact.place = item < 0 ? number : gl_flow_place(v->flow, number, item);
    fact.step_id = r->step_id;
    if (r->status == GL_STEP_QUEUED && c->queued_n < FACTS_MAX) {
        GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

        c->queued_n++;
        fact.code = c->live->step(c->live->owner, v->job.job_id, fact.place, &out);
        fact.waits_for = gl_str_dup(c->arena, gl_buf_view(&out));
    }
    if (r->status == GL_STEP_RUNNING && c->live->refused != NULL) {
        fact.refused =
            gl_str_dup(c->arena, c->live->refused(c->live->owner, v->job.job_id, r->step_id));
    }
    if (r->status == GL_STEP_RUNNING && c->live->beacon != NULL) {
        fact.beacon_at = r->beacon_at;
        fact.heartbeat_at = r->heartbeat_at;
        fact.has_beacon = c->live->beacon(c->live->owner, v->job.job_id, fact.place,
                                          &fact.beacon_at, &fact.heartbeat_at);
    }
    if (fact.waits_for.n > 0 || fact.refused.n > 0 || fact.has_beacon) {
        c->facts->steps[c->facts->steps_n++] = fact;
    }
}

void gl_facts_collect(struct gl_facts *f, struct gl_arena *a, const struct gl_view *v,
                      const struct gl_reason_live *live)
{
    struct collector c = {.facts = f, .arena = a, .view = v, .live = live};
    uint32_t agents_n = gl_flow_agents_n(v->flow);

    *f = (struct gl_facts){.has_node = live != NULL};
    if (live == NULL) {
        return;
    }
    f->live = (struct gl_reason_live){.owner = f,
                                      .step = answer_step,
                                      .refused = answer_refused,
                                      .beacon = answer_beacon,
                                      .is_quarantined = answer_quarantined,
                                      .store = answer_store};
    f->is_quarantined = live->is_quarantined(live->owner, v->job.job_id);
    f->store = live->store != NULL ? gl_str_dup(a, live->store(live->owner, a)) : (gl_str){0};
    c.steps_max = v->picks_n + (agents_n < GL_PAGE_MAX ? agents_n : GL_PAGE_MAX);
    f->steps = GL_NEW_ARRAY(a, struct gl_fact, c.steps_max + 1);
    for (size_t i = 0; i < v->picks_n; i++) {
        collect_step(&c, v->picks[i].number, v->picks[i].item);
    }
    for (uint32_t i = 0; i < agents_n; i++) {
        collect_step(&c, i, -1);
    }
}
