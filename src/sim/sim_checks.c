#include "sim/sim_checks.h"

#include "base/check.h"
#include "base/mem.h"

static const struct sim_check *const checks[SIM_CHECK_COUNT] = {
#define X(name) &sim_check_##name,
    SIM_CHECKS(X)
#undef X
};

static bool judges(const struct sim_check *check, const struct sim_fact_job *j)
{
    return check->sees_torn || !j->torn;
}

/* ---- transactions ---- */

static const struct gl_write *write_of(const struct gl_tx *tx, const char *kind)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];
        bool put = w->type == GL_WRITE_PUT || w->type == GL_WRITE_PUT_NEW;
        if (put && gl_str_is(w->kind, kind)) {
            return w;
        }
    }
    return NULL;
}

static bool decode(struct sim_checks *c, const struct gl_schema *schema, gl_str text, void *ret)
{
    struct gl_json json;
    struct gl_why why = {0};
    int rc = gl_json_parse(&json, text, GL_RECORD_BYTES_MAX, &c->arena, &why);
    if (rc == 0) {
        rc = gl_schema_read(schema, &json, gl_json_root(&json), true, &c->arena, ret, &why);
    }
    if (rc != 0) {
        sim_world_fail(c->world, "records: a %s was committed that cannot be parsed: %s",
                       schema->name, why.text);
    }
    return rc == 0;
}

static struct sim_fact_job *job_of(struct sim_checks *c, const struct gl_tx *tx, gl_str id)
{
    struct sim_fact_job *j = sim_facts_job(&c->facts, id);
    if (j != NULL) {
        return j;
    }
    const struct gl_write *flow = write_of(tx, "flow");
    gl_str text = flow == NULL ? (gl_str){0} : flow->value;
    if (flow == NULL) {
        const struct sim_disk_record *r =
            sim_disk_peek(c->disk, tx->context, GL_S("flow"), c->job_now.flow);
        text = r == NULL ? text : r->value;
    }
    j = sim_facts_job_make(&c->facts, id, text);
    if (j == NULL) {
        sim_world_fail(c->world, "records: job %.*s was committed without a readable flow",
                       GL_STR_ARG(id));
    }
    return j;
}

/* New steps must be known before they are written. */
static void grow(struct sim_checks *c, const struct gl_write *graph)
{
    struct sim_fact_job *j = c->change.job;
    if (j == NULL) {
        return;
    }
    j->flow_before = graph != NULL ? j->flow : NULL;
    for (uint32_t i = 0; graph != NULL && i < j->flow->steps.n; i++) {
        struct sim_fact_step *st = &j->steps[i];
        st->had_started =
            st->known && (st->r.attempt_count > 0 || gl_step_status_is_terminal(st->r.status));
    }
    if (graph != NULL && !sim_facts_grow(j, graph->value)) {
        sim_world_fail(c->world, "patches: the flow of job %.*s cannot be parsed",
                       GL_STR_ARG(j->id));
    }
}

static void on_tx(void *owner, const struct gl_tx *tx)
{
    struct sim_checks *c = owner;
    gl_arena_reset(&c->arena);
    c->change = (struct sim_change){.tx = tx};
    const struct gl_write *w = write_of(tx, "job");
    if (w == NULL) {
        return;
    }
    if (!decode(c, &gl_job_schema, w->value, &c->job_now)) {
        return;
    }
    c->change.job = job_of(c, tx, w->id);
    c->change.job_now = &c->job_now;
    c->change.owner_now = w->owner;
    c->change.token_now = w->token;
    c->change.rev_now = w->rev;
    c->change.job_live_now = w->live;
    const struct gl_write *inputs = write_of(tx, "inputs");
    if (c->change.job != NULL && inputs != NULL && !c->change.job->known) {
        c->change.job->inputs = gl_str_dup(&c->change.job->arena, inputs->value);
    }
    grow(c, write_of(tx, "patch"));
    for (size_t i = 0; i < tx->writes_n && c->change.job != NULL; i++) {
        if (tx->writes[i].type != GL_WRITE_LOG) {
            continue;
        }
        for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
            if (checks[k]->on_log != NULL && judges(checks[k], c->change.job)) {
                checks[k]->on_log(c, c->states[k], &c->change, &tx->writes[i]);
            }
        }
    }
}

static void tell_change(struct sim_checks *c)
{
    c->changes_n++;
    if (c->change.step == NULL) {
        sim_facts_settle(c->change.job);
    }
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        if (checks[k]->on_change != NULL && judges(checks[k], c->change.job)) {
            checks[k]->on_change(c, c->states[k], &c->change);
        }
    }
    sim_facts_apply(&c->change, c->world->now);
}

static void on_step_write(struct sim_checks *c, const struct gl_record *after)
{
    gl_str step_id;
    gl_str job_id = gl_str_cut(after->id, '/', &step_id);
    struct sim_fact_job *j = c->change.job;
    if (j == NULL || !gl_str_eq(j->id, job_id)) {
        sim_world_fail(c->world, "owner: step %.*s was written without its job",
                       GL_STR_ARG(after->id));
        return;
    }
    struct gl_step_record now;
    if (!decode(c, &gl_step_schema, after->value, &now)) {
        return;
    }
    c->change.step = sim_facts_step(j, step_id);
    c->change.step_now = &now;
    c->change.step_live_now = after->live;
    if (c->change.step == NULL || !gl_str_eq(now.step_id, step_id)) {
        sim_world_fail(c->world, "records: %.*s is not a step of its job", GL_STR_ARG(after->id));
    } else {
        tell_change(c);
    }
    c->change.step = NULL;
    c->change.step_now = NULL;
}

void sim_checks_removed(struct sim_checks *c, const struct gl_record *before)
{
    struct sim_fact_job *j = sim_facts_job(&c->facts, before->id);
    sim_check_promises_removed(c, before);
    for (size_t k = 0; k < SIM_CHECK_COUNT && gl_str_is(before->kind, "job") && j != NULL; k++) {
        if (checks[k]->on_removed != NULL) {
            checks[k]->on_removed(c, c->states[k], j);
        }
    }
}

static void on_write(void *owner, const struct gl_tx *tx, const struct gl_record *before,
                     const struct gl_record *after)
{
    struct sim_checks *c = owner;
    if (c->world->failed) {
        return;
    }
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        if (checks[k]->on_any != NULL) {
            checks[k]->on_any(c, c->states[k], tx, before, after);
        }
    }
    bool is_job = gl_str_is(before->kind, "job");
    bool is_step = gl_str_is(before->kind, "step");
    if (after->rev == 0) {
        sim_checks_removed(c, before);
    }
    if ((is_job || is_step) && after->rev == 0) {
        return;
    }
    if (is_step) {
        on_step_write(c, after);
    } else if (is_job && c->change.job != NULL) {
        tell_change(c);
    } else if (c->change.job != NULL) {
        for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
            if (checks[k]->on_record != NULL && judges(checks[k], c->change.job)) {
                checks[k]->on_record(c, c->states[k], &c->change, before, after);
            }
        }
    }
}

/* ---- sessions ---- */

static void on_renewed(void *owner, const struct sim_disk_session *session)
{
    struct sim_checks *c = owner;
    for (size_t k = 0; k < SIM_CHECK_COUNT && !c->world->failed; k++) {
        if (checks[k]->on_renewed != NULL) {
            checks[k]->on_renewed(c, c->states[k], session);
        }
    }
}

static void on_declared(void *owner, gl_str node)
{
    struct sim_checks *c = owner;
    for (size_t k = 0; k < SIM_CHECK_COUNT && !c->world->failed; k++) {
        if (checks[k]->on_declared != NULL) {
            checks[k]->on_declared(c, c->states[k], node);
        }
    }
}

/* ---- failovers ---- */

static void on_undone(void *owner, gl_str kind, gl_str id)
{
    struct sim_checks *c = owner;
    gl_str rest;
    bool of_job = gl_str_is(kind, "job") || gl_str_is(kind, "step") || gl_str_is(kind, "signal");
    struct sim_fact_job *j = of_job ? sim_facts_job(&c->facts, gl_str_cut(id, '/', &rest)) : NULL;
    if (j == NULL) {
        return;
    }
    gl_arena_reset(&c->arena);
    sim_facts_reload(j, c->disk, &c->arena);
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        if (checks[k]->on_torn != NULL) {
            checks[k]->on_torn(c, c->states[k], j);
        }
    }
}

/* ---- processes ---- */

static bool find_step(struct sim_checks *c, const struct sim_process *p,
                      struct sim_fact_job **ret_j, struct sim_fact_step **ret_st)
{
    struct sim_fact_job *j = sim_facts_job(&c->facts, p->job);
    struct sim_fact_step *st = j == NULL ? NULL : sim_facts_step(j, p->step);
    if (st == NULL) {
        sim_world_fail(
            c->world,
            "effects: a process was started for %.*s %.*s, of which no record was committed",
            GL_STR_ARG(p->job), GL_STR_ARG(p->attempt));
        return false;
    }
    *ret_j = j;
    *ret_st = st;
    return true;
}

static void on_start(void *owner, struct sim_process *p)
{
    struct sim_checks *c = owner;
    struct sim_fact_job *j;
    struct sim_fact_step *st;
    if (c->world->failed || !find_step(c, p, &j, &st)) {
        return;
    }
    p->spec = st->spec;
    p->limit_key = st->limit_key;
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        if (checks[k]->on_start != NULL && judges(checks[k], j)) {
            checks[k]->on_start(c, c->states[k], j, st, p);
        }
    }
    sim_facts_started(st, p);
}

static void on_end(void *owner, const struct sim_process *p)
{
    struct sim_checks *c = owner;
    struct sim_fact_job *j;
    struct sim_fact_step *st;
    if (c->world->failed || !find_step(c, p, &j, &st)) {
        return;
    }
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        if (checks[k]->on_end != NULL && judges(checks[k], j)) {
            checks[k]->on_end(c, c->states[k], j, st, p);
        }
    }
}

/* ---- life cycle ---- */

void sim_checks_init(struct sim_checks *c, struct sim_world *w, struct sim_disk *disk,
                     struct sim_keeper *keeper, const struct sim_pools *pools)
{
    *c = (struct sim_checks){.world = w, .disk = disk};
    sim_facts_init(&c->facts);
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        c->states[k] = gl_mem_alloc(checks[k]->state_bytes + 1);
    }
    disk->watch = (struct sim_disk_watch){.owner = c,
                                          .on_tx = on_tx,
                                          .on_write = on_write,
                                          .on_renewed = on_renewed,
                                          .on_declared = on_declared,
                                          .on_undone = on_undone};
    sim_checks_add_keeper(c, keeper, pools);
}

void sim_checks_add_keeper(struct sim_checks *c, struct sim_keeper *keeper,
                           const struct sim_pools *pools)
{
    GL_ASSERT(c->keepers_n < SIM_MACHINES_MAX);
    c->pools[c->keepers_n] = *pools;
    c->keepers[c->keepers_n++] = keeper;
    keeper->watch.owner = c;
    keeper->watch.on_start = on_start;
    keeper->watch.on_end = on_end;
}

static size_t machine_of(const struct sim_checks *c, const struct sim_process *p)
{
    for (size_t i = 0; i < c->keepers_n; i++) {
        if (gl_str_is(p->node, c->keepers[i]->node)) {
            return i;
        }
    }
    GL_UNREACHABLE();
}

struct sim_keeper *sim_checks_keeper(const struct sim_checks *c, const struct sim_process *p)
{
    return c->keepers[machine_of(c, p)];
}

uint32_t sim_pools_slots(const struct sim_pools *pools, gl_str pool)
{
    return gl_str_is(pool, "gpu")                ? pools->gpu_slots
           : gl_str_is(pool, "executor.default") ? pools->executor_slots
                                                 : pools->default_slots;
}

uint32_t sim_checks_slots(const struct sim_checks *c, const struct sim_process *p, gl_str pool)
{
    return sim_pools_slots(&c->pools[machine_of(c, p)], pool);
}

void sim_checks_done(struct sim_checks *c)
{
    c->disk->watch = (struct sim_disk_watch){0};
    for (size_t i = 0; i < c->keepers_n; i++) {
        c->keepers[i]->watch = (struct sim_keeper_watch){0};
    }
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        if (checks[k]->done != NULL) {
            checks[k]->done(c->states[k]);
        }
        gl_mem_free(c->states[k]);
    }
    sim_facts_done(&c->facts);
    gl_arena_done(&c->arena);
}

void sim_checks_ask(struct sim_checks *c, const struct gl_request *rq, gl_str job_id)
{
    struct sim_fact_job *j = sim_facts_job(&c->facts, job_id);
    for (size_t k = 0; k < SIM_CHECK_COUNT && j != NULL; k++) {
        if (checks[k]->on_ask != NULL) {
            checks[k]->on_ask(c, c->states[k], rq, j);
        }
    }
}

static void tell_refusal(struct sim_checks *c, const struct gl_request *rq, struct sim_fact_job *j)
{
    for (size_t k = 0; k < SIM_CHECK_COUNT && j != NULL; k++) {
        if (checks[k]->on_refused != NULL && judges(checks[k], j)) {
            checks[k]->on_refused(c, c->states[k], rq, j);
        }
    }
}

void sim_checks_answer(struct sim_checks *c, const struct gl_request *rq, gl_str job_id)
{
    if (c->world->failed) {
        return;
    }
    struct sim_fact_job *j = sim_facts_job(&c->facts, job_id);
    if (rq->code != 0) {
        tell_refusal(c, rq, j);
        return;
    }
    if (j != NULL && j->lost) {
        return; /* the answer no longer holds: a failover came in between */
    }
    if (j == NULL || !j->known) {
        sim_world_fail(
            c->world,
            "promises: a client got an answer about job %.*s, which no committed record contains",
            GL_STR_ARG(job_id));
        return;
    }
    for (size_t k = 0; k < SIM_CHECK_COUNT; k++) {
        if (checks[k]->on_answer != NULL && judges(checks[k], j)) {
            checks[k]->on_answer(c, c->states[k], rq, j);
        }
    }
}

void sim_checks_end(struct sim_checks *c)
{
    for (size_t k = 0; k < SIM_CHECK_COUNT && !c->world->failed; k++) {
        if (checks[k]->at_end != NULL) {
            checks[k]->at_end(c, c->states[k]);
        }
    }
}
