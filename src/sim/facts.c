#include "sim/facts.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "model/bundle/agent.h"

enum { GROWTH_MAX = 256 }; /* steps that patches add to one job */

void sim_facts_init(struct sim_facts *f)
{
    gl_map_init(&f->jobs);
}

void sim_facts_done(struct sim_facts *f)
{
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&f->jobs, &i)) != NULL;) {
        struct sim_fact_pos pos = {0};
        for (struct sim_fact_step *st; (st = sim_facts_next(j, &pos)) != NULL;) {
            gl_mem_free(st->tokens);
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

static void specify(struct sim_fact_job *j)
{
    for (uint32_t i = 0; i < j->flow->steps.n; i++) {
        struct sim_fact_step *st = &j->steps[i];
        st->spec = gl_flow_step(j->flow, i);
        for (uint32_t k = 0; k < st->items_n; k++) {
            if (st->items[k] != NULL) {
                st->items[k]->spec = st->spec;
            }
        }
    }
}

bool sim_facts_grow(struct sim_fact_job *job, gl_str record)
{
    struct gl_json json;
    struct gl_flow *flow;
    gl_str text = gl_str_dup(&job->arena, record);
    if (gl_json_parse(&json, text, GL_RECORD_BYTES_MAX, &job->arena, NULL) != 0) {
        return false;
    }
    gl_jnode n = gl_json_get(&json, gl_json_root(&json), "flow");
    if (n == NULL || gl_flow_decode(gl_json_raw(&json, n), &job->arena, &flow, NULL) != 0 ||
        flow->steps.n > job->steps_room) {
        return false;
    }
    job->flow = flow;
    specify(job);
    return true;
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
    bool may_grow = j->flow->bundle != NULL && j->flow->bundle->dynamic.enabled;
    j->first_flow = j->flow;
    j->steps_room = (uint32_t)j->flow->steps.n + (may_grow ? GROWTH_MAX : 0);
    j->steps = GL_NEW_ARRAY(&j->arena, struct sim_fact_step, j->steps_room);
    specify(j);
    gl_map_add(&f->jobs, j->id, j);
    return j;
}

static struct sim_fact_step *instance_of(struct sim_fact_job *j, struct sim_fact_step *group,
                                         uint32_t item)
{
    if (item >= group->items_cap) {
        uint32_t cap = item * 2 + 8;
        struct sim_fact_step **more = GL_NEW_ARRAY(&j->arena, struct sim_fact_step *, cap);
        for (uint32_t i = 0; i < group->items_n; i++) {
            more[i] = group->items[i];
        }
        group->items = more;
        group->items_cap = cap;
    }
    if (group->items[item] == NULL) {
        struct sim_fact_step *st = GL_NEW(&j->arena, struct sim_fact_step);
        *st = (struct sim_fact_step){.spec = group->spec, .group = group, .item = item};
        group->items[item] = st;
        group->items_n = item >= group->items_n ? item + 1 : group->items_n;
    }
    return group->items[item];
}

struct sim_fact_step *sim_facts_step(struct sim_fact_job *job, gl_str step_id)
{
    gl_str rest = {0};
    gl_str name = gl_str_cut(step_id, '[', &rest);
    int64_t number = gl_flow_find(job->flow, name);
    uint64_t item = 0;
    if (number < 0 || name.n == step_id.n) {
        return number < 0 ? NULL : &job->steps[number];
    }
    gl_str digits = {.p = rest.p, .n = rest.n > 0 ? rest.n - 1 : 0};
    bool ok = gl_str_ends(rest, GL_S("]")) && gl_str_u64(digits, &item) && item < GL_ITEMS_MAX;
    return ok ? instance_of(job, &job->steps[number], (uint32_t)item) : NULL;
}

struct sim_fact_step *sim_facts_next(const struct sim_fact_job *job, struct sim_fact_pos *pos)
{
    while (pos->step < job->flow->steps.n) {
        struct sim_fact_step *st = &job->steps[pos->step];
        uint32_t i = pos->item++;
        if (i == 0) {
            return st;
        }
        if (i > st->items_n) {
            *pos = (struct sim_fact_pos){.step = pos->step + 1};
        } else if (st->items[i - 1] != NULL) {
            return st->items[i - 1];
        }
    }
    return NULL;
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

/* They are allocated in the transaction's arena. */
static void forget_strings(const struct gl_schema *schema, void *record)
{
    for (size_t i = 0; i < schema->fields_n; i++) {
        const struct gl_field *f = &schema->fields[i];
        if (f->type == GL_F_STR || f->type == GL_F_RAW) {
            memset((char *)record + f->offset, 0, sizeof(gl_str));
        }
    }
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
    if (!gl_str_eq(st->output, now->output)) {
        st->output = gl_str_dup(&ch->job->arena, now->output);
    }
    if (!gl_str_eq(st->limit_key, now->limit_key)) {
        st->limit_key = gl_str_dup(&ch->job->arena, now->limit_key);
    }
    st->r = *now;
    st->was_ready = st->was_ready || now->status == GL_STEP_READY;
    st->known = true;
    forget_strings(&gl_step_schema, &st->r);
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
        j->request_key = gl_str_dup(&j->arena, ch->job_now->request_key);
        j->flow_hash = gl_str_dup(&j->arena, ch->job_now->flow);
        j->retry_of = gl_str_dup(&j->arena, ch->job_now->retry_of);
        j->retry_from = gl_str_dup(&j->arena, ch->job_now->retry_from);
    }
    j->known = true;
    j->r = *ch->job_now;
    forget_strings(&gl_job_schema, &j->r);
    j->rev = ch->rev_now;
    j->token = ch->token_now;
    gl_buf_reset(&j->owner);
    gl_buf_str(&j->owner, ch->owner_now);
    j->changed_at = now;
}

void sim_facts_settle(struct sim_fact_job *job)
{
    for (uint32_t i = 0; i < job->flow->steps.n; i++) {
        struct sim_fact_step *st = &job->steps[i];
        if (st->left_pending || !st->known || st->r.status == GL_STEP_PENDING) {
            continue;
        }
        st->left_pending = true;
        st->is_settled = true;
        for (uint32_t k = 0; k < st->spec->reads_n; k++) {
            const struct sim_fact_step *read = &job->steps[st->spec->reads[k]];
            st->is_settled =
                st->is_settled && read->known && gl_step_status_is_terminal(read->r.status);
        }
    }
}

void sim_facts_started(struct sim_fact_step *st, const struct sim_process *p)
{
    st->last = p;
    st->processes_n++;
    st->reruns_at_last = st->reruns;
    st->decided_at_last = st->r.decided_at;
}

/* ---- after a failover ---- */

static bool read_record(const struct gl_schema *schema, const struct sim_disk_record *r,
                        struct gl_arena *scratch, void *ret)
{
    struct gl_json json;
    return gl_json_parse(&json, r->value, GL_RECORD_BYTES_MAX, scratch, NULL) == 0 &&
           gl_schema_read(schema, &json, gl_json_root(&json), true, scratch, ret, NULL) == 0;
}

static void reload_step(struct sim_fact_job *j, struct sim_fact_step *st, const struct sim_disk *d,
                        struct gl_arena *scratch)
{
    gl_str id = st->group == NULL
                    ? gl_str_fmt(scratch, "%.*s/%.*s", GL_STR_ARG(j->id), GL_STR_ARG(st->spec->id))
                    : gl_str_fmt(scratch, "%.*s/%.*s[%u]", GL_STR_ARG(j->id),
                                 GL_STR_ARG(st->spec->id), st->item);
    const struct sim_disk_record *r = sim_disk_peek(d, SIM_CONTEXT, GL_S("step"), id);
    struct gl_step_record now = {0};
    st->known = r != NULL && read_record(&gl_step_schema, r, scratch, &now);
    st->output = gl_str_dup(&j->arena, now.output);
    st->limit_key = gl_str_dup(&j->arena, now.limit_key);
    st->tokens_n = st->tokens_n < now.attempt_count ? st->tokens_n : now.attempt_count;
    st->r = now;
    st->was_ready = st->was_ready && st->known && now.status != GL_STEP_PENDING;
    st->left_pending = st->left_pending && st->known && now.status != GL_STEP_PENDING;
    forget_strings(&gl_step_schema, &st->r);
}

void sim_facts_reload(struct sim_fact_job *job, const struct sim_disk *d, struct gl_arena *scratch)
{
    const struct sim_disk_record *r = sim_disk_peek(d, SIM_CONTEXT, GL_S("job"), job->id);
    struct gl_job_record now = {0};
    const struct sim_disk_record *graph = sim_disk_peek(
        d, SIM_CONTEXT, GL_S("patch"), gl_str_fmt(scratch, "%.*s/graph", GL_STR_ARG(job->id)));
    if (graph == NULL || !sim_facts_grow(job, graph->value)) {
        job->flow = job->first_flow;
        specify(job);
    }
    for (uint32_t i = (uint32_t)job->flow->steps.n; i < job->steps_room; i++) {
        gl_mem_free(job->steps[i].tokens); /* it was added by a change that was undone */
        job->steps[i] = (struct sim_fact_step){0};
    }
    job->torn = true;
    job->known = r != NULL && read_record(&gl_job_schema, r, scratch, &now);
    job->lost = !job->known && !job->removed;
    job->removed = job->removed && r == NULL;
    job->r = now;
    forget_strings(&gl_job_schema, &job->r);
    job->rev = r == NULL ? 0 : r->rev;
    job->token = r == NULL ? 0 : r->token;
    gl_buf_reset(&job->owner);
    gl_buf_str(&job->owner, r == NULL ? (gl_str){0} : r->owner);
    struct sim_fact_pos pos = {0};
    for (struct sim_fact_step *st; (st = sim_facts_next(job, &pos)) != NULL;) {
        reload_step(job, st, d, scratch);
    }
}
