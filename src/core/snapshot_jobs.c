/* snapshot_jobs.c - the jobs of a snapshot, their steps, and the lists of steps with work to do. */
#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/offers.h"
#include "core/flow/signals.h"
#include "core/recovery/parked.h"
#include "core/scheduling/slots.h"
#include "core/snapshot.h"

/* ---- jobs ---- */

static const char *const memory_words[] = {"hot", "failed", "loading", NULL};

#define F(member, type) GL_FIELD(gl_job, member, type, 0, "")

static const struct gl_field job_fields[] = {
    GL_FIELD(gl_job, id, STR, GL_FF_REQUIRED | GL_FF_LENT, ""),
    GL_FIELD_ENUM(gl_job, memory, memory_words, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),
    F(owner, STR),
    F(rev, U64),
    F(token, U64),
    F(last_op, U64),
    F(due, I64),
    F(inflight_n, U32),
    F(load_tries, U32),
    F(is_created, BOOL),
    F(token_in_flight, BOOL),
    F(has_names, BOOL),
    F(is_adopted, BOOL),
    F(is_damaged, BOOL),
    F(is_deferred, BOOL),
    F(lacks, BOOL),
    F(outbid, U64),
    F(hot_at, I64),
};
#undef F

static const struct gl_schema job_schema = {.name = "job",
                                            .bytes = sizeof(struct gl_job),
                                            .fields = job_fields,
                                            .fields_n = GL_COUNT(job_fields)};

int gl_snapshot_jobs_job(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_job s, *j;
    int rc = gl_snapshot_get(l, &job_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (s.id.n != GL_ULID_BYTES || gl_job_find(c, s.id) != NULL) {
        return gl_snapshot_bad(l, "a job has no valid id, or that of another job");
    }
    l->job = j = gl_job_new(c, s.id);
    gl_core_adopt(c, &job_schema, j, &s);
    if (j->memory == GL_MEM_HOT) {
        j->memory = GL_MEM_LOADING; /* until its record has been read */
    }
    GL_ASSERT(j->memory != GL_MEM_HOT);
    GL_ASSERT(j->rev == s.rev);
    c->adopting_n += j->is_adopted;
    c->inflight_n += j->inflight_n;
    if (j->due != INT64_MAX) {
        gl_heap_push(&c->timers, &j->timer);
    }
    return 0;
}

int gl_snapshot_jobs_record(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_job_record r;
    struct gl_job *j = l->job;
    struct gl_spec *spec;
    int rc = gl_snapshot_get(l, &gl_job_schema, &r);

    if (rc != 0) {
        return rc;
    }
    spec = gl_map_find(&c->specs, r.flow);
    if (j == NULL || j->memory != GL_MEM_LOADING || spec == NULL) {
        return gl_snapshot_bad(l, "a record does not belong to a job, or its flow is missing");
    }
    gl_spec_ref(spec);
    j->spec = spec;
    spec->jobs++;
    gl_core_adopt(c, &gl_job_schema, &j->r, &r);
    j->memory = GL_MEM_HOT;
    GL_ASSERT(c->jobs_loading > 0);
    GL_ASSERT(spec->jobs > 0);
    c->jobs_loading--;
    c->jobs_hot++;
    return 0;
}

/* ---- steps ---- */

static gl_ms due_saved(gl_ms due)
{
    GL_ASSERT(due != 0);
    return due == INT64_MAX ? 0 : due;
}

struct saved_step {
    uint32_t number, of;
    int64_t item;
    gl_ms due, heartbeat_at, probe_at; /* 0: none */
    bool has_hold, is_listed, resolving;
    uint64_t starting;
    struct gl_step_record r;
};

#define F(member, type) GL_FIELD(saved_step, member, type, 0, "")

static const struct gl_field step_fields[] = {
    F(number, U32),
    F(of, U32),
    F(item, I64),
    F(due, I64),
    F(heartbeat_at, I64),
    F(probe_at, I64),
    F(has_hold, BOOL),
    F(is_listed, BOOL),
    F(resolving, BOOL),
    F(starting, U64),
    GL_FIELD_SUB(saved_step, r, OBJECT, &gl_step_schema, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),
};
#undef F

GL_SNAPSHOT_SCHEMA(step);

static void save_step(const struct gl_step *st, struct gl_buf *out)
{
    struct saved_step s = {.number = st->number,
                           .of = st->of,
                           .item = st->item,
                           .due = due_saved(st->due),
                           .heartbeat_at = st->heartbeat_at,
                           .probe_at = st->probe_at,
                           .has_hold = st->hold != NULL,
                           .is_listed = st->is_listed,
                           .resolving = st->resolving,
                           .starting = st->starting,
                           .r = st->r};

    GL_ASSERT(st->r.status < GL_STEP_STATUS_COUNT);
    GL_ASSERT(st->of < st->job->spec->flow->steps.n);
    GL_ASSERT(GL_IMPLIES(st->starting != 0, st->r.status == GL_STEP_RUNNING));
    gl_snapshot_put(out, "step", &step_schema, &s);
    gl_offers_save(st, out);
}

static bool is_step(const struct saved_step *s, struct gl_job *j)
{
    size_t base = gl_flow_items_base(j->spec->flow);

    if (s->of >= j->spec->flow->steps.n || gl_step_find(j, s->number) != NULL) {
        return false;
    }
    return s->item < 0
               ? s->number == s->of
               : s->item < GL_ITEMS_MAX && s->number >= base && s->number - base < GL_JOB_ITEMS_MAX;
}

static void count_step(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    uint8_t status = st->r.status;

    GL_ASSERT(st->r.status < GL_STEP_STATUS_COUNT);
    st->r.status = GL_STEP_PENDING;
    gl_job_recount(st, status);
    st->r.status = status;
    c->running_n += status == GL_STEP_RUNNING && !gl_step_is_bound(st);
    j->reviews_n += status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_REVIEW;
    j->items_live -= st->item >= 0 && gl_step_status_is_terminal(status);
    GL_ASSERT(j->reviews_n <= j->count[GL_STEP_BLOCKED]);
}

int gl_snapshot_jobs_step(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_step s;
    struct gl_job *j = l->job;
    struct gl_step *st;
    int rc = gl_snapshot_get(l, &step_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (j == NULL || j->memory != GL_MEM_HOT || !is_step(&s, j)) {
        return gl_snapshot_bad(l, "a step does not belong to its job");
    }
    st = s.item < 0 ? gl_step_get(c, j, s.number)
                    : gl_step_item(c, j, s.of, (uint32_t)s.item,
                                   s.number - gl_flow_items_base(j->spec->flow));
    gl_core_adopt(c, &gl_step_schema, &st->r, &s.r);
    GL_ASSERT(st->of == s.of);
    GL_ASSERT(st->number == s.number);
    count_step(c, st);
    l->step = st;
    st->heartbeat_at = s.heartbeat_at;
    st->probe_at = s.probe_at;
    st->is_listed = s.is_listed;
    st->resolving = s.resolving;
    st->starting = s.starting;
    if (s.due != 0) {
        st->due = s.due;
        gl_heap_push(&j->timers, &st->timer);
    }
    if (s.has_hold ? !gl_slots_find_hold(st) : s.r.keeps_slots) {
        return gl_snapshot_bad(l, "a step has slots that its job does not hold");
    }
    return 0;
}

/* ---- steps with work to do ---- */

static const char *const list_words[] = {"spread", "ready", "making", NULL};

struct saved_work {
    uint8_t list;
    uint32_t number;
};

static const struct gl_field work_fields[] = {
    GL_FIELD_ENUM(saved_work, list, list_words, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),
    GL_FIELD(saved_work, number, U32, 0, ""),
};

GL_SNAPSHOT_SCHEMA(work);

static void save_work(const struct gl_job *j, struct gl_buf *out)
{
    const struct gl_link *heads[] = {&j->spread, &j->ready, &j->making};

    GL_ASSERT(GL_IMPLIES(j->memory != GL_MEM_HOT, gl_list_empty(&j->making)));
    for (uint8_t i = 0; i < GL_COUNT(heads); i++) {
        for (const struct gl_link *l = heads[i]->next; l != heads[i]; l = l->next) {
            struct saved_work s = {.list = i,
                                   .number = GL_CONTAINER(l, struct gl_step, work)->number};

            gl_snapshot_put(out, "work", &work_schema, &s);
        }
    }
}

int gl_snapshot_jobs_work(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_work s;
    struct gl_step *st;
    int rc = gl_snapshot_get(l, &work_schema, &s);

    (void)c;
    if (rc != 0) {
        return rc;
    }
    st = l->job != NULL ? gl_step_find(l->job, s.number) : NULL;
    if (st == NULL || !gl_list_empty(&st->work)) {
        return gl_snapshot_bad(l, "a list names a step that cannot be in it");
    }
    GL_ASSERT(s.list < GL_COUNT(list_words) - 1);
    gl_list_push(s.list == 0   ? &l->job->spread
                 : s.list == 1 ? &l->job->ready
                               : &l->job->making,
                 &st->work);
    return 0;
}

/* ---- a job and all that belongs to it ---- */

void gl_snapshot_jobs_save(const struct gl_job *j, struct gl_buf *out)
{
    GL_ASSERT(gl_list_empty(&j->touched)); /* nothing is half done between two steps */
    GL_ASSERT(gl_list_empty(&j->dirty));
    GL_ASSERT(!j->changed && !j->is_suspect);
    GL_ASSERT(!j->releases);
    GL_ASSERT(j->pend.n == 0);
    gl_snapshot_put(out, "job", &job_schema, j);
    if (j->memory == GL_MEM_HOT) {
        gl_snapshot_put(out, "record", &gl_job_schema, &j->r);
    }
    gl_snapshot_agents_job(j, out);
    gl_slots_save_holds(j, out);
    for (const struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        save_step(GL_CONTAINER(l, struct gl_step, live), out);
    }
    save_work(j, out);
    gl_snapshot_agents_mailboxes(j, out);
    gl_signals_save(j, out);
    gl_parked_save(j, out);
}
