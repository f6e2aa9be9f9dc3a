/* check_stale.c - a step that runs something completes from the result of its current attempt, or
 * by a person's decision; nothing else is accepted. An agent's state changes only to what its
 * current attempt returned. */
#include "model/bundle/agent.h"
#include "model/bundle/worker_output.h"
#include "sim/sim_checks.h"

/* The state that the process returns for its agent; "": none. */
static gl_str next_state(struct sim_checks *c, const struct sim_process *p, bool is_worker)
{
    struct gl_worker_result r = {.stdout_text = gl_buf_view(&p->said)};
    struct gl_worker_output said = {0};
    if ((is_worker && gl_worker_result_read(gl_buf_view(&p->said), &c->arena, &r, NULL) != 0) ||
        gl_worker_output_read(r.stdout_text, &c->arena, &said, NULL) != 0) {
        return (gl_str){0};
    }
    return said.next_state;
}

static void check_unit(struct sim_checks *c, const struct sim_change *ch)
{
    const struct sim_fact_step *st = ch->step;
    const struct sim_process *p = st->last;
    uint32_t number = (uint32_t)(st - ch->job->steps);
    uint8_t kind = gl_flow_agent(ch->job->flow, number)->kind;
    if ((kind != GL_AGENT_EXECUTOR && kind != GL_AGENT_MODULE) ||
        gl_str_eq(st->output, ch->step_now->output)) {
        return;
    }
    if (p == NULL || p->number != st->r.attempt_count || !p->recorded || p->end != GL_EXEC_EXITED ||
        p->exit_code != 0) {
        sim_world_fail(c->world,
                       "stale: agent %.*s of job %.*s has a new state, and its attempt %u did not "
                       "exit with 0",
                       GL_STR_ARG(st->spec->id), GL_STR_ARG(ch->job->id), st->r.attempt_count);
    } else if (!gl_str_eq(next_state(c, p, kind == GL_AGENT_EXECUTOR), ch->step_now->output)) {
        sim_world_fail(
            c->world,
            "stale: agent %.*s of job %.*s has a state that its attempt %u never returned",
            GL_STR_ARG(st->spec->id), GL_STR_ARG(ch->job->id), p->number);
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    const struct sim_fact_step *st = ch->step;
    if (st != NULL && st->group == NULL &&
        gl_flow_is_unit(ch->job->flow, (uint32_t)(st - ch->job->steps))) {
        check_unit(c, ch);
        return;
    }
    if (st == NULL || ch->job->flow->bundle != NULL || ch->step_now->status != GL_STEP_COMPLETED ||
        st->r.status == GL_STEP_COMPLETED || ch->step_now->decided_at != st->r.decided_at) {
        return;
    }
    bool is_group = st->spec->foreach.n > 0 && st->group == NULL;
    if (is_group || gl_flow_waits(st->spec) || (ch->step_now->gate & GL_GATE_REUSED) != 0) {
        return; /* other checkers cover these */
    }
    const struct sim_process *p = st->last;
    gl_str id = ch->step_now->step_id;
    if (p == NULL || p->number != ch->step_now->attempt_count) {
        sim_world_fail(c->world,
                       "stale: step %.*s of job %.*s completed from attempt %u, which never ran",
                       GL_STR_ARG(id), GL_STR_ARG(ch->job->id), ch->step_now->attempt_count);
    } else if (!p->recorded || p->end != GL_EXEC_EXITED || p->exit_code != 0) {
        sim_world_fail(
            c->world,
            "stale: step %.*s of job %.*s completed, but its attempt %u did not exit with 0",
            GL_STR_ARG(id), GL_STR_ARG(ch->job->id), p->number);
    }
}

const struct sim_check sim_check_stale = {.name = "stale", .on_change = on_change};
