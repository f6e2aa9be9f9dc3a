/* check_promises.c - a committed decision is never lost: whatever was acknowledged to a client is
 * on the disk at that moment, and stays. */
#include "sim/sim_checks.h"

static void on_answer(struct sim_checks *c, void *me, const struct gl_request *rq,
                      struct sim_fact_job *j)
{
    (void)me;
    bool ended = gl_job_status_is_terminal(j->r.status);
    switch (rq->verb) {
    case GL_VERB_SUBMIT:
    case GL_VERB_RETRY:
        j->promised = true;
        if (rq->submission.run_id.n > 0 && !gl_str_eq(rq->submission.run_id, j->run_id)) {
            sim_world_fail(
                c->world, "promises: run id %.*s was answered with job %.*s of run id %.*s",
                GL_STR_ARG(rq->submission.run_id), GL_STR_ARG(j->id), GL_STR_ARG(j->run_id));
        }
        if (rq->submission.request_key.n > 0 && rq->submission.run_id.n == 0 &&
            !gl_str_eq(rq->submission.request_key, j->request_key)) {
            sim_world_fail(c->world,
                           "promises: request key %.*s was answered with job %.*s of key '%.*s'",
                           GL_STR_ARG(rq->submission.request_key), GL_STR_ARG(j->id),
                           GL_STR_ARG(j->request_key));
        }
        return;
    case GL_VERB_RESPOND:
        if (sim_facts_step(j, rq->command.about)->r.decided_at == 0) {
            sim_world_fail(c->world,
                           "promises: step %.*s of job %.*s was acknowledged as decided and is not",
                           GL_STR_ARG(rq->command.about), GL_STR_ARG(j->id));
        }
        return;
    case GL_VERB_CANCEL:
        if (!ended && j->r.verdict == GL_VERDICT_NONE) {
            sim_world_fail(c->world, "promises: job %.*s was acknowledged as cancelled and is %s",
                           GL_STR_ARG(j->id), gl_job_status_words[j->r.status]);
        }
        return;
    default:
        return;
    }
}

/* Only ended jobs may be removed, and no flow that a job still names. */
void sim_check_promises_removed(struct sim_checks *c, const struct gl_record *before)
{
    gl_str rest;
    struct sim_fact_job *j = sim_facts_job(&c->facts, gl_str_cut(before->id, '/', &rest));
    bool is_job = gl_str_is(before->kind, "job");
    if (is_job || gl_str_is(before->kind, "step")) {
        /* The rest of a large job follows it, also if a failover came between. */
        bool had_ended = j != NULL && (j->known ? gl_job_status_is_terminal(j->r.status)
                                                : j->removed && !is_job);
        if (!had_ended) {
            sim_world_fail(c->world, "promises: %.*s %.*s was deleted, and had not ended",
                           GL_STR_ARG(before->kind), GL_STR_ARG(before->id));
        } else {
            j->removed = j->removed || is_job;
        }
    }
    for (size_t i = 0;
         gl_str_is(before->kind, "flow") && (j = gl_map_next(&c->facts.jobs, &i)) != NULL;) {
        if (j->known && !j->removed && gl_str_eq(j->flow_hash, before->id)) {
            sim_world_fail(c->world, "promises: a flow was deleted that job %.*s names",
                           GL_STR_ARG(j->id));
        }
    }
}

static void at_end(struct sim_checks *c, void *me)
{
    (void)me;
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&c->facts.jobs, &i)) != NULL;) {
        const struct sim_disk_record *r = sim_disk_peek(c->disk, SIM_CONTEXT, GL_S("job"), j->id);
        if (j->promised && r == NULL && !j->removed && !j->lost) {
            sim_world_fail(c->world, "promises: job %.*s was accepted and is gone",
                           GL_STR_ARG(j->id));
        }
    }
}

const struct sim_check sim_check_promises = {
    .name = "promises", .on_answer = on_answer, .at_end = at_end};
