/* submit.c - checks a submission and creates its job in memory.
 *
 * Everything that can refuse a submission is checked before the job is created. After that only the
 * guards of the job's first transaction can. */
#include "core/flow/submit.h"

#include "base/check.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/rebalance.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/scheduling/slots.h"

enum { SPECS_MAX = 64 }; /* the cache is trimmed when it holds this many flows */

/* Drops the flows that no job in memory uses, once there are too many. */
static void trim_specs(struct gl_core *c)
{
    struct gl_spec *s;

    if (gl_map_count(&c->specs) < SPECS_MAX) {
        return;
    }
    for (size_t i = 0; (s = gl_map_next(&c->specs, &i)) != NULL;) {
        GL_ASSERT(s->refs > 0);
        if (s->jobs == 0) {
            (void)gl_map_remove(&c->specs, s->hash); /* removing the current entry is allowed */
            gl_spec_unref(s);
        }
    }
}

void gl_submit_forget(struct gl_core *c, gl_str hash)
{
    struct gl_spec *s = gl_map_find(&c->specs, hash);

    if (s != NULL && s->jobs == 0) {
        GL_ASSERT(s->refs > 0);
        (void)gl_map_remove(&c->specs, hash); /* known to be there: it is `s` */
        gl_spec_unref(s);
    }
}

int gl_submit_spec(struct gl_core *c, gl_str hash, gl_str text, struct gl_spec **ret,
                   struct gl_why *reterr_why)
{
    struct gl_spec *s = gl_map_find(&c->specs, hash);
    int rc;

    if (s == NULL) {
        rc = gl_spec_new(hash, text, &s, reterr_why);
        if (rc != 0) {
            return rc;
        }
        trim_specs(c);
        gl_map_add(&c->specs, s->hash, s);
    }
    gl_spec_ref(s);
    *ret = s;
    GL_ASSERT(s->refs > 1);
    return 0;
}

/* A job in memory that exists nowhere else yet: revision 0. */
static struct gl_job *create(struct gl_core *c, const struct gl_event *ev, struct gl_spec *spec)
{
    struct gl_job *j = gl_job_new(c, ev->job);

    GL_ASSERT(ev->type == GL_EV_SUBMIT);
    GL_ASSERT(c->session.n > 0);
    GL_ASSERT(spec->refs > 1);
    j->memory = GL_MEM_HOT; /* nothing to load: no other node knows the job yet */
    j->hot_at = c->now;
    c->jobs_loading--;
    c->jobs_hot++;
    gl_list_push(&c->lru, &j->lru);
    j->spec = spec;
    spec->jobs++;
    gl_core_set(c, &j->r.job_id, ev->job);
    gl_core_set(c, &j->r.run_id, ev->submit.run_id.n > 0 ? ev->submit.run_id : ev->job);
    gl_core_set(c, &j->r.name, spec->flow->name);
    gl_core_set(c, &j->r.flow, spec->hash);
    gl_core_set(c, &j->r.stack, ev->submit.stack);
    gl_core_set(c, &j->r.env_scope, ev->submit.env_scope);
    gl_core_set(c, &j->r.dedupe_key, ev->submit.dedupe_key);
    gl_core_set(c, &j->r.request_key, ev->submit.request_key);
    gl_core_set(c, &j->r.retry_of, ev->submit.retry_of);
    gl_core_set(c, &j->r.retry_from, ev->submit.retry_from);
    gl_core_set(c, &j->owner, c->session);
    j->r.steps_n = (uint32_t)spec->flow->steps.n - gl_flow_agents_n(spec->flow);
    j->r.submitted_at = c->now;
    if (c->shared) {
        gl_core_set(c, &j->r.pools, gl_node_pools_needs(c->out->arena, spec->flow));
    }
    if (spec->flow->bundle != NULL) {
        j->known = gl_pool_alloc(&c->mem, gl_flow_agents_n(spec->flow) / 8 + 1);
    }
    GL_ASSERT(j->rev == 0);
    GL_ASSERT(j->r.steps_n <= spec->flow->steps.n);
    GL_ASSERT(c->jobs_hot <= gl_map_count(&c->jobs));
    return j;
}

void gl_submit_on_request(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_why why;
    struct gl_spec *spec;
    struct gl_job *j;
    gl_str inputs = {0};
    int rc;

    GL_ASSERT(ev->type == GL_EV_SUBMIT);
    GL_ASSERT(ev->job.n == GL_ULID_BYTES);
    GL_ASSERT(gl_job_find(c, ev->job) == NULL);
    if (c->session.n == 0 || c->stopping) {
        gl_txn_refuse(c, ev->submit.request, GL_R_NODE_BUSY,
                      "this node is not accepting jobs; try again later");
        return;
    }
    if (gl_map_count(&c->waits) >= GL_WAITING_MAX) { /* the queues are bounded */
        gl_txn_refuse(c, ev->submit.request, GL_R_STEPS_WAITING,
                      "%d steps are already waiting for slots: try again later", GL_WAITING_MAX);
        return;
    }
    rc = gl_submit_spec(c, ev->submit.flow_hash, ev->submit.flow, &spec, &why);
    if (rc != 0) {
        gl_txn_refuse(c, ev->submit.request, rc, "%s", why.text);
        return;
    }
    rc = gl_node_pools_may_submit(c, spec->flow, &why);
    if (rc == 0 &&
        gl_flow_inputs(spec->flow, ev->submit.inputs, c->out->arena, &inputs, &why) != 0) {
        rc = GL_E_INVALID;
    }
    if (rc != 0) {
        gl_spec_unref(spec);
        gl_txn_refuse(c, ev->submit.request, gl_err_join(gl_err_code(rc), why.reason), "%s",
                      why.text);
        return;
    }
    /* Nothing can be refused from here on, except by the guards of the transaction. */
    c->counts.jobs_submitted++;
    j = create(c, ev, spec);
    gl_ledger_move_job(c, j, GL_JOB_RUNNING);
    if (inputs.n > 0) {
        gl_txn_write(c, j, GL_WRITE_PUT, GL_S("inputs"), j->id)->value = inputs;
    }
    if (spec->flow->bundle != NULL) {
        const struct gl_strs *notes = &spec->flow->bundle->notes;

        gl_txn_log(c, j, NULL, "job_validated", (gl_str){0}, (gl_str){0});
        gl_txn_log(c, j, NULL, "job_scheduled", (gl_str){0}, (gl_str){0});
        for (size_t i = 0; i < notes->n; i++) {
            gl_txn_log(c, j, NULL, "job_note", notes->items[i], (gl_str){0});
        }
    }
    gl_txn_log(c, j, NULL, "job_running", (gl_str){0}, (gl_str){0});
    if (!gl_node_pools_may_take(c, j->r.pools) && c->offers_heard) {
        GL_MARK(c->trace, "offers.submitted_for_another");
        gl_rebalance_give(c, j, GL_S("another node offers the pools it needs"));
    }
    gl_txn_reply(c, j, ev->submit.request, 0, NULL);
}
