#include "sim/facts.h"

#include "base/check.h"
#include "base/mem.h"

void sim_facts_init(struct sim_facts *f)
{
    gl_map_init(&f->jobs);
}

void sim_facts_done(struct sim_facts *f)
{
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&f->jobs, &i)) != NULL;) {
        for (size_t k = 0; k < j->flow->steps.n; k++) {
            gl_mem_free(j->steps[k].tokens);
        }
        gl_buf_done(&j->owner);
        gl_arena_done(&j->arena);
        gl_mem_free(j);
    }
    gl_map_done(&f->jobs);
}

struct sim_fact_job *sim_facts_job(const struct sim_facts *f, gl_str id)
{
    return gl_map_find(&f->jobs, id);
}

struct sim_fact_job *sim_facts_job_make(struct sim_facts *f, gl_str id, gl_str flow_text)
{
    struct sim_fact_job *j = gl_mem_alloc(sizeof(*j));
    int rc = gl_flow_decode(gl_str_dup(&j->arena, flow_text), &j->arena, &j->flow, NULL);
    if (rc != 0) {
        gl_arena_done(&j->arena);
        gl_mem_free(j);
        return NULL;
    }
    j->id = gl_str_dup(&j->arena, id);
    j->steps = GL_NEW_ARRAY(&j->arena, struct sim_fact_step, j->flow->steps.n);
    for (uint32_t i = 0; i < j->flow->steps.n; i++) {
        j->steps[i].spec = gl_flow_step(j->flow, i);
    }
    gl_map_add(&f->jobs, j->id, j);
    return j;
}

struct sim_fact_step *sim_facts_step(struct sim_fact_job *job, gl_str step_id)
{
    int64_t number = gl_flow_find(job->flow, step_id);
    return number < 0 ? NULL : &job->steps[number];
}

static void remember_token(struct sim_fact_step *st, uint32_t attempt, uint64_t token)
{
    while (st->tokens_n < attempt) {
        if (st->tokens_n == st->tokens_cap) {
            st->tokens_cap = st->tokens_cap == 0 ? 4 : st->tokens_cap * 2;
            st->tokens = gl_mem_realloc(st->tokens, st->tokens_cap * sizeof(uint64_t));
        }
        st->tokens[st->tokens_n++] = 0;
    }
    if (st->tokens[attempt - 1] == 0) {
        st->tokens[attempt - 1] = token;
    }
}

uint64_t sim_facts_token_of(const struct sim_fact_step *st, uint32_t attempt)
{
    return attempt >= 1 && attempt <= st->tokens_n ? st->tokens[attempt - 1] : 0;
}

static void apply_step(const struct sim_change *ch)
{
    struct sim_fact_step *st = ch->step;
    const struct gl_step_record *now = ch->step_now;
    if (now->decided_at != st->r.decided_at) {
        bool again = gl_str_is(now->decision, "rerun");
        st->reruns += again ? 1 : 0;
        st->done_by_person = !again;
    }
    if (now->status == GL_STEP_RUNNING && now->attempt_count > 0) {
        remember_token(st, now->attempt_count, ch->token_now);
    }
    st->r = *now;
    st->known = true;
    gl_str *strings[] = {&st->r.step_id, &st->r.epoch,    &st->r.terminal_reason, &st->r.last_error,
                         &st->r.output,  &st->r.decision, &st->r.decided_by};
    for (size_t i = 0; i < GL_COUNT(strings); i++) {
        *strings[i] = (gl_str){0};
    }
}

void sim_facts_apply(const struct sim_change *ch, gl_ms now)
{
    struct sim_fact_job *j = ch->job;
    if (ch->step != NULL) {
        apply_step(ch);
        return;
    }
    if (!j->known) {
        j->run_id = gl_str_dup(&j->arena, ch->job_now->run_id);
        j->dedupe_key = gl_str_dup(&j->arena, ch->job_now->dedupe_key);
    }
    j->known = true;
    j->r = *ch->job_now;
    gl_str *strings[] = {&j->r.job_id, &j->r.run_id,    &j->r.name,
                         &j->r.flow,   &j->r.reason,    &j->r.failed_step,
                         &j->r.stack,  &j->r.env_scope, &j->r.dedupe_key};
    for (size_t i = 0; i < GL_COUNT(strings); i++) {
        *strings[i] = (gl_str){0};
    }
    j->rev = ch->rev_now;
    j->token = ch->token_now;
    gl_buf_reset(&j->owner);
    gl_buf_str(&j->owner, ch->owner_now);
    j->changed_at = now;
}

void sim_facts_started(struct sim_fact_step *st, const struct sim_process *p)
{
    st->last = p;
    st->processes_n++;
    st->reruns_at_last = st->reruns;
}
