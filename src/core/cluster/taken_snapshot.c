/* taken_snapshot.c - taken attempts, their jobs and the page of a scan, as lines of a snapshot of
 * the core. The lines of the waits come before them, and are connected here. */
#include "base/check.h"
#include "core/cluster/taken_parts.h"
#include "core/scheduling/slots_parts.h"
#include "core/snapshot.h"

static const char *const phase_words[] = {"queued", "taking", "running", "over", NULL};

struct saved_taken_job {
    gl_str id, run_id, flow;
    gl_ms submitted_at;
    uint64_t token;
    bool has_spec;
};

#define F(member, type) GL_FIELD(saved_taken_job, member, type, 0, "")

static const struct gl_field taken_job_fields[] = {
    F(id, STR),           F(run_id, STR), F(flow, STR),
    F(submitted_at, I64), F(token, U64),  F(has_spec, BOOL),
};
#undef F

GL_SNAPSHOT_SCHEMA(taken_job);

struct saved_taken_attempt {
    gl_str id, step_id, owner, epoch;
    uint32_t number, of, slots;
    int64_t item, pool;
    uint8_t phase, stopping;
    bool has_slots, is_alone, is_unwanted, is_written, is_inherited;
    uint64_t step_rev, token, rev, call, starting;
    gl_ms at, taken_at, heartbeat_at, probe_at, check_at; /* check_at 0: none */
    struct gl_taken_record end;
};

#define F(member, type) GL_FIELD(saved_taken_attempt, member, type, 0, "")

static const struct gl_field taken_attempt_fields[] = {
    F(id, STR),
    F(step_id, STR),
    F(owner, STR),
    F(epoch, STR),
    F(number, U32),
    F(of, U32),
    F(slots, U32),
    F(item, I64),
    F(pool, I64),
    GL_FIELD_ENUM(saved_taken_attempt, phase, phase_words, 0, ""),
    GL_FIELD_ENUM(saved_taken_attempt, stopping, gl_stop_words, 0, ""),
    F(has_slots, BOOL),
    F(is_alone, BOOL),
    F(is_unwanted, BOOL),
    F(is_written, BOOL),
    F(is_inherited, BOOL),
    F(step_rev, U64),
    F(token, U64),
    F(rev, U64),
    F(call, U64),
    F(starting, U64),
    F(at, I64),
    F(taken_at, I64),
    F(heartbeat_at, I64),
    F(probe_at, I64),
    F(check_at, I64),
    GL_FIELD_SUB(saved_taken_attempt, end, OBJECT, &gl_taken_schema, GL_FF_ALWAYS, ""),
};
#undef F

GL_SNAPSHOT_SCHEMA(taken_attempt);

static void save_job(const struct gl_taken_job *j, struct gl_buf *out)
{
    struct saved_taken_job s = {.id = j->id,
                                .run_id = j->run_id,
                                .flow = j->flow,
                                .submitted_at = j->submitted_at,
                                .token = j->token,
                                .has_spec = j->spec != NULL};

    GL_ASSERT(j->id.n == GL_ULID_BYTES);
    GL_ASSERT(GL_IMPLIES(j->attempts_n > 0, j->spec != NULL));
    gl_snapshot_put(out, "taken_job", &taken_job_schema, &s);
}

static void save_attempt(const struct gl_taken *t, struct gl_buf *out)
{
    struct saved_taken_attempt s = {.id = t->id,
                                    .step_id = t->step_id,
                                    .owner = t->owner,
                                    .epoch = t->epoch,
                                    .number = t->number,
                                    .of = t->of,
                                    .slots = t->slots,
                                    .item = t->item,
                                    .pool = t->pool,
                                    .phase = t->phase,
                                    .stopping = t->stopping,
                                    .has_slots = t->has_slots,
                                    .is_alone = t->is_alone,
                                    .is_unwanted = t->is_unwanted,
                                    .is_written = t->is_written,
                                    .is_inherited = t->is_inherited,
                                    .step_rev = t->step_rev,
                                    .token = t->token,
                                    .rev = t->rev,
                                    .call = t->call,
                                    .starting = t->starting,
                                    .at = t->at,
                                    .taken_at = t->taken_at,
                                    .heartbeat_at = t->heartbeat_at,
                                    .probe_at = t->probe_at,
                                    .check_at = t->check_at == INT64_MAX ? 0 : t->check_at,
                                    .end = t->end};

    GL_ASSERT(t->phase <= GL_TAKEN_OVER);
    GL_ASSERT((t->wait != NULL) == (t->phase == GL_TAKEN_QUEUED));
    gl_snapshot_put(out, "taken_attempt", &taken_attempt_schema, &s);
}

struct saved_taken_list {
    bool is_write;
    struct gl_strs ids;
};

static const struct gl_field taken_list_fields[] = {
    GL_FIELD(saved_taken_list, is_write, BOOL, 0, ""),
    GL_FIELD(saved_taken_list, ids, STRS, 0, ""),
};

GL_SNAPSHOT_SCHEMA(taken_list);

static void save_list(const struct gl_link *list, bool is_write, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct saved_taken_list s = {.is_write = is_write};
    gl_str *ids;

    if (gl_list_empty(list)) {
        return;
    }
    for (const struct gl_link *l = list->next; l != list; l = l->next) {
        s.ids.n++;
    }
    s.ids.items = ids = GL_NEW_ARRAY(&a, gl_str, s.ids.n + 1);
    for (const struct gl_link *l = list->next; l != list; l = l->next) {
        *ids++ = GL_CONTAINER(l, const struct gl_taken, link)->id;
    }
    gl_snapshot_put(out, "taken_list", &taken_list_schema, &s);
}

int gl_taken_restore_list(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_taken_list s;
    int rc = gl_snapshot_get(l, &taken_list_schema, &s);

    for (size_t i = 0; rc == 0 && i < s.ids.n; i++) {
        struct gl_taken *t = gl_map_find(&c->taken.all, s.ids.items[i]);

        if (t == NULL || !gl_list_empty(&t->link)) {
            return gl_snapshot_bad(l, "a list names a taken attempt that cannot be in it");
        }
        gl_list_push(s.is_write ? &c->taken.to_write : &c->taken.to_take, &t->link);
    }
    return rc;
}

void gl_taken_save_all(const struct gl_core *c, struct gl_buf *out)
{
    const struct gl_taken_job *j;
    const struct gl_taken *t;

    GL_ASSERT(c->taken.idle_n <= gl_map_count(&c->taken.jobs));
    GL_ASSERT(c->taken.queued_n <= gl_map_count(&c->taken.all));
    for (size_t i = 0; (j = gl_map_next(&c->taken.jobs, &i)) != NULL;) {
        if (j->attempts_n > 0) {
            save_job(j, out);
        }
    }
    for (const struct gl_link *l = c->taken.idle.next; l != &c->taken.idle; l = l->next) {
        save_job(GL_CONTAINER(l, const struct gl_taken_job, idle), out); /* in their order */
    }
    for (size_t i = 0; (t = gl_map_next(&c->taken.all, &i)) != NULL;) {
        save_attempt(t, out);
    }
    save_list(&c->taken.to_take, false, out);
    save_list(&c->taken.to_write, true, out);
    for (const struct gl_link *l = c->taken.stale.next; l != &c->taken.stale; l = l->next) {
        gl_snapshot_put(out, "taken_entry", &gl_taken_entry_schema,
                        GL_CONTAINER(l, const struct gl_taken_entry, link));
    }
    for (const struct gl_link *l = c->taken.found.next; l != &c->taken.found; l = l->next) {
        struct gl_taken_entry e = *GL_CONTAINER(l, const struct gl_taken_entry, link);

        e.is_found = true;
        gl_snapshot_put(out, "taken_entry", &gl_taken_entry_schema, &e);
    }
}

int gl_taken_restore_job(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_taken_job s;
    struct gl_taken_job *j;
    int rc = gl_snapshot_get(l, &taken_job_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (s.id.n != GL_ULID_BYTES || gl_map_find(&c->taken.jobs, s.id) != NULL) {
        return gl_snapshot_bad(l, "a job of which attempts run here has no id, or appears twice");
    }
    j = gl_taken_job_new(c, s.id);
    gl_core_set(c, &j->run_id, s.run_id);
    gl_core_set(c, &j->flow, s.flow);
    j->submitted_at = s.submitted_at;
    j->token = s.token;
    j->spec = s.has_spec ? gl_map_find(&c->specs, s.flow) : NULL;
    if (s.has_spec && j->spec == NULL) {
        return gl_snapshot_bad(l, "the flow of a job of which attempts run here is missing");
    }
    if (j->spec != NULL) {
        gl_spec_ref(j->spec);
        j->spec->jobs++;
    }
    return 0;
}

static bool is_sound(struct gl_core *c, const struct saved_taken_attempt *s,
                     const struct gl_taken_job *j)
{
    return j != NULL && j->spec != NULL && s->of < j->spec->flow->steps.n &&
           s->id.n > GL_ULID_BYTES + 1 && s->id.n <= GL_ULID_BYTES + 1 + GL_ATTEMPT_ID_BYTES_MAX &&
           s->pool >= -1 && s->pool < (int64_t)c->pools_n &&
           gl_map_find(&c->taken.all, s->id) == NULL;
}

static bool connect_wait(struct gl_core *c, struct gl_taken *t)
{
    struct gl_wait *w =
        gl_slots_find_offered(c, t->job->id, gl_flow_place(t->job->spec->flow, t->of, t->item));

    GL_ASSERT(t->phase == GL_TAKEN_QUEUED);
    if (w == NULL || !w->offered) {
        return false;
    }
    GL_CONTAINER(w, struct gl_offered_wait, wait)->taken = t;
    t->wait = w;
    c->taken.queued_n++;
    GL_ASSERT(c->taken.queued_n <= gl_map_count(&c->taken.all));
    return true;
}

int gl_taken_restore_attempt(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_taken_attempt s;
    struct gl_taken_job *j;
    struct gl_taken *t;
    gl_str rest;
    int rc = gl_snapshot_get(l, &taken_attempt_schema, &s);

    if (rc != 0) {
        return rc;
    }
    j = gl_map_find(&c->taken.jobs, gl_str_cut(s.id, '/', &rest));
    if (!is_sound(c, &s, j)) {
        return gl_snapshot_bad(l, "a taken attempt belongs to no job, step or pool");
    }
    t = gl_taken_new(c, s.id, j);
    gl_core_set(c, &t->step_id, s.step_id);
    gl_core_set(c, &t->owner, s.owner);
    gl_core_set(c, &t->epoch, s.epoch);
    t->number = s.number;
    t->of = s.of;
    t->slots = s.slots;
    t->item = s.item;
    t->pool = s.pool;
    t->phase = s.phase;
    t->stopping = s.stopping;
    t->has_slots = s.has_slots;
    t->is_alone = s.is_alone;
    t->is_unwanted = s.is_unwanted;
    t->is_written = s.is_written;
    t->is_inherited = s.is_inherited;
    t->step_rev = s.step_rev;
    t->token = s.token;
    t->rev = s.rev;
    t->call = s.call;
    t->starting = s.starting;
    t->at = s.at;
    t->taken_at = s.taken_at;
    t->heartbeat_at = s.heartbeat_at;
    t->probe_at = s.probe_at;
    gl_core_adopt(c, &gl_taken_schema, &t->end, &s.end);
    gl_taken_set_due(c, t);
    gl_taken_set_check(c, t, s.check_at == 0 ? INT64_MAX : s.check_at);
    if (t->has_slots) {
        gl_slots_take_up(c, (int)t->pool, t->slots);
    }
    if (t->phase == GL_TAKEN_QUEUED && !connect_wait(c, t)) {
        return gl_snapshot_bad(l, "an offer waits for slots, but is in no queue");
    }
    return 0;
}

int gl_taken_restore_entry(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_taken_entry read, *e;
    int rc = gl_snapshot_get(l, &gl_taken_entry_schema, &read);

    if (rc != 0) {
        return rc;
    }
    e = gl_pool_alloc(&c->mem, sizeof(*e));
    gl_list_init(&e->link);
    gl_core_adopt(c, &gl_taken_entry_schema, e, &read);
    e->is_found = false;
    gl_list_push(read.is_found ? &c->taken.found : &c->taken.stale, &e->link);
    return 0;
}
