/* check_inputs.c - a job has the inputs it was submitted with, and the defaults for the rest. */
#include "sim/sim_checks.h"

static gl_str member(struct sim_checks *c, gl_str object, gl_str name)
{
    struct gl_json j;
    gl_str text = object.n > 0 ? object : GL_S("{}");
    if (gl_json_parse(&j, text, GL_INPUTS_BYTES_MAX, &c->arena, NULL) != 0) {
        return (gl_str){0};
    }
    gl_jnode v = gl_json_get(&j, gl_json_root(&j), gl_str_c(&c->arena, name));
    return v == NULL ? (gl_str){0} : gl_json_raw(&j, v);
}

static void on_answer(struct sim_checks *c, void *me, const struct gl_request *rq,
                      struct sim_fact_job *j)
{
    (void)me;
    const struct gl_flow_input *inputs = j->flow->inputs.items;
    for (size_t i = 0; rq->verb == GL_VERB_SUBMIT && i < j->flow->inputs.n; i++) {
        gl_str given = member(c, rq->submission.inputs, inputs[i].name);
        gl_str other = inputs[i].fallback.n > 0 ? inputs[i].fallback : GL_S("null");
        gl_str want = given.n > 0 ? given : other;
        gl_str have = member(c, j->inputs, inputs[i].name);
        if (!gl_str_eq(want, have)) {
            sim_world_fail(c->world, "inputs: %.*s of job %.*s is %.*s instead of %.*s",
                           GL_STR_ARG(inputs[i].name), GL_STR_ARG(j->id), GL_STR_ARG(have),
                           GL_STR_ARG(want));
        }
    }
}

/* Inputs never change afterwards. */
static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    (void)me;
    if (gl_str_is(after->kind, "inputs") && (before->rev != 0 || ch->job->known)) {
        sim_world_fail(c->world, "inputs: those of job %.*s were written again",
                       GL_STR_ARG(ch->job->id));
    }
}

const struct sim_check sim_check_inputs = {
    .name = "inputs", .on_answer = on_answer, .on_record = on_record};
