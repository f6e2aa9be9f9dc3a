/* taken_scan.c - reads what was taken by earlier sessions of this node, and what is offered to it.
 *
 * A scan reads an index page by page. For each page it reads the records that the entries name,
 * then the jobs that are not known yet, then their flows; only then it decides about the entries,
 * all at once. A call that fails ends the scan; the next one begins anew. */
#include "base/check.h"
#include "core/cluster/taken_parts.h"
#include "core/component.h"
#include "core/flow/submit.h"
#include "core/recovery/attempts.h"
#include "core/scheduling/slots_parts.h"
#include "model/job.h"

enum {
    PAGE = 64,
    SCAN_MS = 1000,   /* between two scans */
    QUEUED_MAX = 512, /* offers that wait here at a time */
};

#define F(member, type) GL_FIELD(gl_taken_entry, member, type, 0, "")

static const struct gl_field entry_fields[] = {
    F(id, STR),        F(score, I64),
    F(is_taken, BOOL), F(is_wanted, BOOL),
    F(rev, U64),       F(token, U64),
    F(queued_at, I64), F(owner, STR),
    F(epoch, STR),     GL_FIELD_ENUM(gl_taken_entry, state, gl_taken_state_words, 0, ""),
    F(is_found, BOOL),
};
#undef F

const struct gl_schema gl_taken_entry_schema = {.name = "entry",
                                                .bytes = sizeof(struct gl_taken_entry),
                                                .fields = entry_fields,
                                                .fields_n = GL_COUNT(entry_fields)};

static struct gl_taken_entry *entry_of(struct gl_link *l)
{
    return GL_CONTAINER(l, struct gl_taken_entry, link);
}

static void entry_free(struct gl_core *c, struct gl_taken_entry *e)
{
    GL_ASSERT(!gl_list_empty(&e->link));
    gl_list_remove(&e->link);
    gl_core_disown(c, &gl_taken_entry_schema, e);
    gl_pool_free(&c->mem, e, sizeof(*e));
}

void gl_taken_entries_drop(struct gl_core *c, struct gl_link *list)
{
    for (struct gl_link *l; (l = gl_list_first(list)) != NULL;) {
        entry_free(c, entry_of(l));
    }
    GL_ASSERT(gl_list_empty(list));
}

static void make_stale(struct gl_core *c, struct gl_taken_entry *e)
{
    GL_ASSERT(!gl_list_empty(&e->link));
    gl_list_remove(&e->link);
    gl_list_push(&c->taken.stale, &e->link);
    GL_ASSERT(!gl_list_empty(&c->taken.stale));
}

static gl_str job_of(const struct gl_taken_entry *e)
{
    gl_str rest;

    return gl_str_cut(e->id, '/', &rest);
}

/* ---- pages ---- */

static void ask_page(struct gl_core *c)
{
    bool adopts = !c->taken.is_adopted;
    struct gl_range range = {
        .index = gl_offer_index(c->out->arena, adopts ? "taken" : "offers", c->node),
        .score_min = 0,
        .score_max = INT64_MAX,
        .after_score = c->taken.after_score,
        .after_id = c->taken.after_id,
        .limit = PAGE};

    GL_ASSERT(c->taken.scan_call == 0);
    GL_ASSERT(gl_list_empty(&c->taken.found));
    c->taken.stage = adopts ? GL_TAKEN_LIST : GL_TAKEN_OFFERS;
    c->taken.due = INT64_MAX;
    c->taken.scan_call = gl_component_range(c, GL_COMPONENT_TAKEN, &range);
    GL_ASSERT(c->taken.scan_call == c->last_call);
}

void gl_taken_scan(struct gl_core *c)
{
    GL_ASSERT(c->taken.scan_call == 0);
    GL_ASSERT(gl_list_empty(&c->taken.found));
    c->taken.is_again = c->taken.is_void = false;
    c->taken.after_score = 0;
    gl_core_set(c, &c->taken.after_id, (gl_str){0});
    if (c->guest && c->taken.is_adopted) { /* a guest takes nothing new */
        c->taken.due = INT64_MAX;
        return;
    }
    ask_page(c);
}

static void scan_ends(struct gl_core *c, gl_ms wait)
{
    GL_ASSERT(c->taken.scan_call == 0);
    GL_ASSERT(wait > 0);
    gl_taken_entries_drop(c, &c->taken.found);
    gl_core_set(c, &c->taken.after_id, (gl_str){0});
    gl_taken_job_trim(c);
    c->taken.due = c->now + (c->taken.is_again ? 0 : wait);
    GL_ASSERT(c->taken.due >= c->now);
    GL_ASSERT(gl_list_empty(&c->taken.found));
}

static void next_page(struct gl_core *c)
{
    GL_ASSERT(c->taken.scan_call == 0);
    if (c->taken.is_void) {
        GL_MARK(c->trace, "taken.read_again");
        c->taken.is_again = true;
        scan_ends(c, SCAN_MS);
        return;
    }
    gl_taken_entries_drop(c, &c->taken.found);
    if (c->taken.has_more && c->taken.queued_n < QUEUED_MAX) {
        ask_page(c);
        return;
    }
    if (!c->taken.is_adopted) {
        GL_MARK(c->trace, "taken.adopted");
        c->taken.is_adopted = true;
        c->taken.is_again = true; /* now what is offered */
    }
    scan_ends(c, SCAN_MS);
}

/* Attempts in memory are skipped, unless an entry among the offers asks to look at one that runs.
 */
static bool is_news(struct gl_core *c, const struct gl_event_entry *e, bool is_taken)
{
    gl_str attempt, job = gl_str_cut(e->id, '/', &attempt);
    const struct gl_taken *t = gl_taken_find(c, job, attempt);

    if (job.n != GL_ULID_BYTES || attempt.n == 0 || attempt.n > GL_ATTEMPT_ID_BYTES_MAX) {
        return false;
    }
    return t == NULL || (!is_taken && t->phase == GL_TAKEN_RUNNING_HERE);
}

static void on_page(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *all = ev->answer.entries.items;
    bool is_taken = c->taken.stage == GL_TAKEN_LIST;
    struct gl_key keys[PAGE];
    size_t n = 0;

    GL_ASSERT(is_taken || c->taken.stage == GL_TAKEN_OFFERS);
    GL_ASSERT(gl_list_empty(&c->taken.found));
    c->taken.has_more = ev->answer.entries.n == PAGE;
    for (size_t i = 0; i < ev->answer.entries.n && n < PAGE; i++) {
        struct gl_taken_entry *e;
        if (is_taken && GL_PLANT(116)) { /* planted: what was taken before a restart is forgotten */
            break;
        }
        gl_str attempt, job = gl_str_cut(all[i].id, '/', &attempt);
        gl_str step = gl_attempts_step_of(attempt);

        if (!is_news(c, &all[i], is_taken) || step.n == 0) {
            continue;
        }
        e = gl_pool_alloc(&c->mem, sizeof(*e));
        gl_list_init(&e->link);
        gl_core_set(c, &e->id, all[i].id);
        e->score = all[i].score;
        e->is_taken = is_taken;
        gl_list_push(&c->taken.found, &e->link);
        keys[n++] = is_taken ? (struct gl_key){.kind = GL_S("taken"), .id = all[i].id}
                             : (struct gl_key){.kind = GL_S("step"),
                                               .id = gl_str_fmt(c->out->arena, "%.*s/%.*s",
                                                                GL_STR_ARG(job), GL_STR_ARG(step))};
    }
    if (ev->answer.entries.n > 0) {
        c->taken.after_score = all[ev->answer.entries.n - 1].score;
        gl_core_set(c, &c->taken.after_id, all[ev->answer.entries.n - 1].id);
    }
    GL_ASSERT(n <= PAGE);
    if (n == 0) {
        next_page(c);
        return;
    }
    c->taken.stage = is_taken ? GL_TAKEN_RECORDS : GL_TAKEN_STEPS;
    c->taken.scan_call = gl_component_get(c, GL_COMPONENT_TAKEN, keys, n);
    GL_ASSERT(c->taken.scan_call == c->last_call);
}

/* ---- records ---- */

static bool read_value(struct gl_core *c, const struct gl_event_record *r,
                       const struct gl_schema *schema, void *ret)
{
    struct gl_json json;

    return r->rev > 0 && !r->damaged &&
           gl_json_parse(&json, r->value, GL_RECORD_BYTES_MAX, c->out->arena, NULL) == 0 &&
           gl_schema_read(schema, &json, gl_json_root(&json), false, c->out->arena, ret, NULL) == 0;
}

/* Taken by an earlier session of this node. */
static void on_taken_record(struct gl_core *c, struct gl_taken_entry *e,
                            const struct gl_event_record *r)
{
    struct gl_taken_record rec;

    GL_ASSERT(e->is_taken);
    if (r->rev == 0) {
        make_stale(c, e);
        return;
    }
    e->is_wanted = read_value(c, r, &gl_taken_schema, &rec);
    if (!e->is_wanted) {
        return;
    }
    e->rev = r->rev;
    e->token = rec.token;
    e->state = rec.state;
    gl_core_set(c, &e->owner, rec.owner);
    gl_core_set(c, &e->epoch, rec.epoch);
    GL_ASSERT(e->rev > 0);
}

/* Does the step's record still name this attempt, and this node? */
static bool is_current(const struct gl_core *c, const struct gl_taken_entry *e,
                       const struct gl_step_record *s)
{
    gl_str attempt;
    uint32_t number;

    GL_ASSERT(!e->is_taken);
    (void)gl_str_cut(e->id, '/', &attempt);
    return s->status == GL_STEP_RUNNING && s->is_elsewhere && gl_str_eq(s->node, c->node) &&
           gl_attempts_number_of(attempt, &number) && number == s->attempt_count;
}

static void on_step(struct gl_core *c, struct gl_taken_entry *e, const struct gl_event_record *r)
{
    gl_str attempt, job = gl_str_cut(e->id, '/', &attempt);
    struct gl_taken *t = gl_taken_find(c, job, attempt);
    struct gl_step_record s;

    GL_ASSERT(!e->is_taken);
    GL_ASSERT(!gl_list_empty(&e->link));
    if (r->damaged) {
        return;
    }
    if (!read_value(c, r, &gl_step_schema, &s) || !is_current(c, e, &s)) {
        if (t != NULL) {
            gl_taken_set_check(c, t, c->now);
        }
        make_stale(c, e);
        return;
    }
    if (t != NULL && t->is_unwanted) {
        return; /* once that one has ended */
    }
    if (t != NULL) { /* it runs here: is it to be stopped? */
        if (s.stopping != GL_STOP_NONE && t->stopping == GL_STOP_NONE) {
            GL_MARK(c->trace, "taken.stopped");
            gl_taken_stop(c, t, (enum gl_stop)s.stopping);
        }
        e->rev = r->rev;
        make_stale(c, e);
        return;
    }
    e->is_wanted = s.stopping == GL_STOP_NONE && !c->stopping;
    e->rev = r->rev;
    e->token = r->token;
    e->queued_at = s.queued_at;
    gl_core_set(c, &e->owner, r->owner);
    GL_ASSERT(e->rev > 0);
}

/* ---- jobs and flows ---- */

static const struct gl_field job_members[] = {
    GL_FIELD(gl_job_record, job_id, STR, 0, ""),
    GL_FIELD(gl_job_record, run_id, STR, 0, ""),
    GL_FIELD(gl_job_record, flow, STR, 0, ""),
    GL_FIELD(gl_job_record, submitted_at, TIME, 0, ""),
};

static const struct gl_schema job_member_schema = {.name = "job",
                                                   .bytes = sizeof(struct gl_job_record),
                                                   .fields = job_members,
                                                   .fields_n = GL_COUNT(job_members)};

static const struct gl_core_view job_view = {
    .type = GL_VIEW_MEMBERS, .schema = &gl_job_schema, .members = &job_member_schema};

static bool has_key(const struct gl_key *keys, size_t n, gl_str id)
{
    GL_ASSERT(n <= PAGE);
    for (size_t i = 0; i < n; i++) {
        if (gl_str_eq(keys[i].id, id)) {
            return true;
        }
    }
    return false;
}

static void decide(struct gl_core *c);

/* Reads the flows of jobs that have none yet. */
static void ask_flows(struct gl_core *c)
{
    struct gl_key keys[PAGE];
    size_t n = 0;

    GL_ASSERT(c->taken.scan_call == 0);
    for (struct gl_link *l = c->taken.found.next; l != &c->taken.found; l = l->next) {
        struct gl_taken_job *j = gl_map_find(&c->taken.jobs, job_of(entry_of(l)));

        if (j != NULL && j->spec == NULL && !has_key(keys, n, j->flow)) {
            GL_ASSERT(n < PAGE);
            keys[n++] = (struct gl_key){.kind = GL_S("flow"), .id = j->flow};
        }
    }
    if (n == 0) {
        decide(c);
        return;
    }
    c->taken.stage = GL_TAKEN_FLOWS;
    c->taken.scan_call = gl_component_get(c, GL_COMPONENT_TAKEN, keys, n);
    GL_ASSERT(c->taken.scan_call == c->last_call);
}

static void ask_jobs(struct gl_core *c)
{
    struct gl_key keys[PAGE];
    size_t n = 0;

    GL_ASSERT(c->taken.scan_call == 0);
    for (struct gl_link *l = c->taken.found.next; l != &c->taken.found; l = l->next) {
        gl_str id = job_of(entry_of(l));

        if (entry_of(l)->is_wanted && gl_map_find(&c->taken.jobs, id) == NULL &&
            !has_key(keys, n, id)) {
            GL_ASSERT(n < PAGE);
            keys[n++] = (struct gl_key){.kind = GL_S("job"), .id = id};
        }
    }
    if (n == 0) {
        ask_flows(c);
        return;
    }
    c->taken.stage = GL_TAKEN_JOBS;
    c->taken.scan_call = gl_component_view(c, GL_COMPONENT_TAKEN, keys, n, &job_view);
    GL_ASSERT(c->taken.scan_call == c->last_call);
}

static void set_spec(struct gl_core *c, struct gl_taken_job *j, gl_str text)
{
    if (gl_submit_spec(c, j->flow, text, &j->spec, NULL) == 0) {
        j->spec->jobs++;
    }
    GL_ASSERT(GL_IMPLIES(j->spec != NULL, j->spec->jobs > 0));
}

static void on_job(struct gl_core *c, const struct gl_event_record *r)
{
    struct gl_job_record rec;
    struct gl_taken_job *j;

    if (!read_value(c, r, &job_member_schema, &rec) || r->id.n != GL_ULID_BYTES ||
        gl_map_find(&c->taken.jobs, r->id) != NULL) {
        return;
    }
    j = gl_taken_job_new(c, r->id);
    gl_core_set(c, &j->run_id, rec.run_id);
    gl_core_set(c, &j->flow, rec.flow);
    j->submitted_at = rec.submitted_at;
    if (gl_core_knows_flow(c, rec.flow)) {
        set_spec(c, j, (gl_str){0});
    }
}

static void on_flow(struct gl_core *c, const struct gl_event_record *r)
{
    struct gl_taken_job *j;

    for (size_t i = 0; (j = gl_map_next(&c->taken.jobs, &i)) != NULL;) {
        if (j->spec == NULL && r->rev > 0 && !r->damaged && gl_str_eq(j->flow, r->id)) {
            set_spec(c, j, r->value);
        }
    }
}

/* ---- deciding ---- */

/* The attempt as the flow of its job describes it; NULL: the flow has no such step. */
static struct gl_taken *make(struct gl_core *c, const struct gl_taken_entry *e,
                             struct gl_taken_job *j)
{
    gl_str attempt, step;
    uint32_t of, number;
    int32_t item;
    struct gl_taken *t;

    GL_ASSERT(e->is_wanted);
    GL_ASSERT(j->spec->jobs > 0);
    (void)gl_str_cut(e->id, '/', &attempt);
    step = gl_attempts_step_of(attempt);
    if (!gl_attempts_number_of(attempt, &number) ||
        !gl_step_split_id(j->spec->flow, step, &of, &item)) {
        return NULL;
    }
    t = gl_taken_new(c, e->id, j);
    t->number = number;
    t->of = of;
    t->item = item;
    t->at = e->score;
    t->token = e->token;
    j->token = e->token > j->token ? e->token : j->token;
    t->taken_at = c->now;
    t->slots = gl_flow_step(j->spec->flow, of)->slots;
    t->pool = gl_slots_find_pool(c, gl_flow_step(j->spec->flow, of)->pool);
    gl_core_set(c, &t->step_id, step);
    gl_core_set(c, &t->owner, e->owner);
    GL_ASSERT(t->step_id.n > 0);
    GL_ASSERT(t->pool < (int64_t)c->pools_n);
    GL_ASSERT(t->of < j->spec->flow->steps.n);
    return t;
}

/* An offer queues for its slots. If this node cannot run it, it is left alone: its owner withdraws
 * it when it finds a node that can. */
static void queue(struct gl_core *c, const struct gl_taken_entry *e, struct gl_taken_job *j)
{
    struct gl_taken *t = make(c, e, j);
    const struct gl_step_spec *spec;

    GL_ASSERT(!e->is_taken);
    GL_ASSERT(e->rev > 0);
    if (t == NULL) {
        return;
    }
    spec = gl_flow_step(j->spec->flow, t->of);
    t->phase = GL_TAKEN_QUEUED;
    t->step_rev = e->rev;
    if (gl_slots_possible(c, spec, NULL)) {
        t->wait = gl_slots_queue_offered(c, t, j->id, gl_flow_place(j->spec->flow, t->of, t->item),
                                         (int)t->pool, t->slots,
                                         e->queued_at - spec->priority * GL_AGEING_MS);
    }
    if (t->wait == NULL) {
        gl_taken_drop(c, t);
        return;
    }
    GL_ASSERT(t->wait->offered);
    c->taken.queued_n++;
    gl_taken_set_due(c, t);
    GL_ASSERT(gl_heap_has(&t->timer));
    GL_ASSERT(!t->has_slots);
}

/* Taken by an earlier session of this node: its slots are in use, and the executor is asked. */
static void adopt(struct gl_core *c, const struct gl_taken_entry *e, struct gl_taken_job *j)
{
    struct gl_taken *t = make(c, e, j);

    GL_ASSERT(e->is_taken);
    GL_ASSERT(e->rev > 0);
    if (t == NULL) {
        return;
    }
    GL_MARK(c->trace, "taken.taken_up");
    t->rev = e->rev;
    gl_core_set(c, &t->epoch, e->epoch);
    if (e->state == GL_TAKEN_RUNNING) {
        gl_ms heartbeat_ms = gl_flow_step(j->spec->flow, t->of)->heartbeat_ms;

        t->phase = GL_TAKEN_RUNNING_HERE;
        t->heartbeat_at = heartbeat_ms > 0 ? c->now + heartbeat_ms : 0;
        t->has_slots = true;
        gl_slots_take_up(c, (int)t->pool, t->slots);
        gl_taken_attach(c, t);
        gl_taken_write(c, t); /* under this session */
    } else {
        t->phase = GL_TAKEN_OVER;
        t->end.state = e->state;
        t->is_written = t->is_inherited = true;
    }
    gl_taken_set_check(c, t, c->now);
    GL_ASSERT(t->phase >= GL_TAKEN_RUNNING_HERE);
    GL_ASSERT(t->has_slots == (t->phase == GL_TAKEN_RUNNING_HERE));
    GL_ASSERT(gl_heap_has(&t->check));
}

static void decide(struct gl_core *c)
{
    GL_ASSERT(c->taken.scan_call == 0);
    for (struct gl_link *l = c->taken.found.next, *next; l != &c->taken.found; l = next) {
        struct gl_taken_entry *e = entry_of(l);
        struct gl_taken_job *j = gl_map_find(&c->taken.jobs, job_of(e));

        next = l->next;
        if (!e->is_wanted || j == NULL || j->spec == NULL) {
            continue;
        }
        if (e->is_taken) {
            adopt(c, e, j);
        } else {
            queue(c, e, j);
        }
    }
    /* A job whose flow could not be read is read again with the next scan. */
    for (struct gl_link *l = c->taken.idle.next, *next; l != &c->taken.idle; l = next) {
        struct gl_taken_job *j = GL_CONTAINER(l, struct gl_taken_job, idle);

        next = l->next;
        if (j->spec == NULL) {
            gl_taken_job_drop(c, j);
        }
    }
    next_page(c);
}

static void on_records(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *records = ev->answer.records.items;
    struct gl_link *l = c->taken.found.next, *next;

    GL_ASSERT(c->taken.stage == GL_TAKEN_RECORDS || c->taken.stage == GL_TAKEN_STEPS);
    /* One for each entry, in their order. */
    for (size_t i = 0; i < ev->answer.records.n && l != &c->taken.found; i++, l = next) {
        next = l->next;
        if (c->taken.stage == GL_TAKEN_RECORDS) {
            on_taken_record(c, entry_of(l), &records[i]);
        } else {
            on_step(c, entry_of(l), &records[i]);
        }
    }
    ask_jobs(c);
}

void gl_taken_on_scanned(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *records = ev->answer.records.items;

    GL_ASSERT(ev->answer.number == c->taken.scan_call);
    GL_ASSERT(c->taken.stage <= GL_TAKEN_FLOWS);
    c->taken.scan_call = 0;
    if (ev->answer.code != 0 || !gl_components_are_on(c)) {
        scan_ends(c, SCAN_MS);
        c->taken.due = c->now + SCAN_MS; /* the store is away: not at once */
        return;
    }
    switch ((enum gl_taken_stage)c->taken.stage) {
    case GL_TAKEN_LIST:
    case GL_TAKEN_OFFERS:
        on_page(c, ev);
        break;
    case GL_TAKEN_RECORDS:
    case GL_TAKEN_STEPS:
        on_records(c, ev);
        break;
    case GL_TAKEN_JOBS:
        for (size_t i = 0; i < ev->answer.records.n; i++) {
            on_job(c, &records[i]);
        }
        ask_flows(c);
        break;
    case GL_TAKEN_FLOWS:
        for (size_t i = 0; i < ev->answer.records.n; i++) {
            on_flow(c, &records[i]);
        }
        decide(c);
        break;
    }
}
