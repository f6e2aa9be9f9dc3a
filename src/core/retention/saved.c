/* saved.c - retention in a snapshot of the core: its state, its pass, and the lists of the pass. */
#include "base/limits.h"
#include "core/retention/parts.h"
#include "model/gc_state.h"

static_assert(sizeof(size_t) == sizeof(uint64_t), "sizes are written as numbers of 64 bits");

#define X(name, word, how, handler) word,
static const char *const stage_words[] = {GL_RETENTION_STAGES(X) NULL};
#undef X
#define X(name, word) word,
static const char *const chore_words[] = {GL_CHORES(X) NULL};
#undef X

/* ---- fields ---- */

/* The names of members are keys of snapshots and recordings: a member that is renamed keeps its old
 * key here. */

#define F(member, type) GL_FIELD(gl_retention_state, member, type, 0, "")

static const struct gl_field fields[] = {
    F(keep.job_ms, I64),
    F(keep.jobs, I64),
    F(keep.bytes, I64),
    F(keep.work_ms, I64),
    F(has_files, BOOL),
    F(has_logs, BOOL),
    F(due, I64),
    F(flows_due, I64),
    F(files_due, I64),
    F(rest_due, I64),
    F(is_ready, BOOL),
    F(is_counted, BOOL),
    F(ended_n, I64),
    F(seek_begun, BOOL),
    F(seek_orphans, BOOL),
    F(again, BOOL),
    F(removed_n, U64),
    F(condemned_n, U64),
    F(young_bytes, U64),
    F(damaged_look, U64),
    F(reserve_all, BOOL),
    F(is_reserving, BOOL),
    GL_FIELD_ENUM(gl_retention_state, pass.stage, stage_words, 0, ""),
    GL_FIELD_ENUM(gl_retention_state, pass.chore, chore_words, 0, ""),
    F(pass.call, U64),
    F(pass.calls_n, U32),
    F(pass.broken, I64),
    F(pass.broken_why, STR),
    F(pass.is_asked, BOOL),
    F(pass.is_removal, BOOL),
    F(pass.request, U64),
    F(pass.job, STR),
    F(pass.keep_ms, I64),
    F(pass.keep_jobs, I64),
    F(pass.jobs_n, U64),
    F(pass.flows_n, U64),
    F(pass.blobs_n, U64),
    F(pass.work_n, U64),
    F(pass.freed, U64),
    F(pass.store_bytes, U64),
    F(pass.store_bytes_before, U64),
    F(pass.files_bytes, U64),
    F(pass.by_size_n, I64),
    F(pass.has_shrunk, BOOL),
    F(pass.after_score, I64),
    F(pass.after, STR),
    F(pass.has_swept, BOOL),
    F(pass.has_rest, BOOL),
    F(pass.has_copies, BOOL),
    F(pass.has_orphans, BOOL),
    F(pass.has_work, BOOL),
    F(pass.gone_n, U64),
    F(pass.is_single, BOOL),
    F(pass.has_conflict, BOOL),
    F(pass.is_part, BOOL),
    F(pass.why_code, I64),
    F(pass.why, STR),
    F(pass.is_second_look, BOOL),
    F(pass.token, U64),
    F(pass.began_at, I64),
    F(pass.at, U64),
    F(pass.batch, U64),
    F(pass.is_full, BOOL),
};
#undef F

static const struct gl_schema state_schema = {.name = "state",
                                              .bytes = sizeof(struct gl_retention_state),
                                              .fields = fields,
                                              .fields_n = GL_COUNT(fields)};

/* ---- lists ---- */

#define F(member, type) GL_FIELD(gl_clean, member, type, 0, "")
static const struct gl_field ask_fields[] = {
    F(request, U64), F(is_removal, BOOL), F(job, STR), F(keep_for, I64), F(keep_jobs, I64),
};
#undef F

#define F(member, type) GL_FIELD(gl_pin, member, type, 0, "")
static const struct gl_field pin_fields[] = {F(job, STR), F(by, STR)};
#undef F

#define F(member, type) GL_FIELD(gl_damaged_job, member, type, 0, "")
static const struct gl_field damaged_fields[] = {F(id, STR), F(look, U64)};
#undef F

#define F(member, type) GL_FIELD(gl_suspect, member, type, 0, "")
static const struct gl_field suspect_fields[] = {F(job, STR), F(flow, STR)};
#undef F

#define F(member, type) GL_FIELD(gl_trim_job, member, type, 0, "")
static const struct gl_field leaving_fields[] = {
    F(id, STR),           GL_FIELD_SUB(gl_trim_job, r, OBJECT, &gl_trim_job_schema, 0, ""),
    F(rev, U64),          F(run_rev, U64),
    F(dedupe_rev, U64),   F(request_rev, U64),
    F(log_rev, U64),      F(retried_rev, U64),
    F(retried_by, STR),   F(retried_token, U64),
    F(call, U64),         F(is_over, BOOL),
    F(is_removed, BOOL),  F(is_headless, BOOL),
    F(is_doubtful, BOOL), F(is_damaged, BOOL),
    F(is_retried, BOOL),  F(has_more, BOOL),
    F(owner, STR),        F(kind, U32),
    F(ids, STRS),         F(ids_kind, U32),
    F(logs_at, U32),      F(chunks_at, U32),
    F(is_adding, BOOL),   F(log_from, I64),
};
#undef F

#define F(member, type) GL_FIELD(gl_candidate, member, type, 0, "")
static const struct gl_field doomed_fields[] = {
    F(id, STR),       F(rev, U64),   F(owner, STR),       F(token, U64),
    F(score, I64),    F(value, STR), F(pieces, U32),      F(was_whole, BOOL),
    F(is_ours, BOOL), F(call, U64),  F(is_damaged, BOOL),
};
#undef F

#define SCHEMA(what, of)                            \
    static const struct gl_schema what##_schema = { \
        .name = #what,                              \
        .bytes = sizeof(struct of),                 \
        .fields = what##_fields,                    \
        .fields_n = GL_COUNT(what##_fields),        \
    }

SCHEMA(ask, gl_clean);
SCHEMA(pin, gl_pin);
SCHEMA(damaged, gl_damaged_job);
SCHEMA(suspect, gl_suspect);
SCHEMA(leaving, gl_trim_job);
SCHEMA(doomed, gl_candidate);

struct saved_lists {
    struct gl_items asks, pins, damaged, jobs, doomed, suspects;
    struct gl_strs reserved, used;
};

#define F(member) GL_FIELD(saved_lists, member, STRS, 0, "")
#define L(member, its) GL_FIELD_SUB(saved_lists, member, LIST, &its##_schema, 0, "")
static const struct gl_field lists_fields[] = {
    L(asks, ask), L(pins, pin), L(damaged, damaged),  L(jobs, leaving), L(doomed, doomed),
    F(reserved),  F(used),      L(suspects, suspect),
};
#undef F
#undef L

GL_SNAPSHOT_SCHEMA(lists);

struct saved_retention {
    struct gl_retention_state state;
    struct saved_lists lists;
};

static const struct gl_field retention_fields[] = {
    GL_FIELD_SUB(saved_retention, state, OBJECT, &state_schema, 0, ""),
    GL_FIELD_SUB(saved_retention, lists, OBJECT, &lists_schema, 0, ""),
};

GL_SNAPSHOT_SCHEMA(retention);

/* In the order of insertion, so that equal states make equal snapshots. */
static struct gl_strs texts_of(const struct gl_map *m, struct gl_arena *a)
{
    gl_str *all = GL_NEW_ARRAY(a, gl_str, gl_map_count(m) + 1);
    struct gl_strs ret = {.items = all};
    const gl_str *text;

    for (size_t i = 0; (text = gl_map_next(m, &i)) != NULL;) {
        all[ret.n++] = *text;
    }
    GL_ASSERT(ret.n == gl_map_count(m));
    return ret;
}

static size_t length(const struct gl_link *list)
{
    size_t n = 0;

    for (const struct gl_link *l = list->next; l != list; l = l->next) {
        n++;
    }
    return n;
}

static void list_asks(const struct gl_core *c, struct gl_arena *a, struct saved_lists *s)
{
    const struct gl_retention_state *r = &c->retention;
    struct gl_clean *asks = GL_NEW_ARRAY(a, struct gl_clean, length(&r->asks) + 1);
    struct gl_pin *pins = GL_NEW_ARRAY(a, struct gl_pin, length(&r->pins) + 1);
    struct gl_damaged_job *jobs =
        GL_NEW_ARRAY(a, struct gl_damaged_job, gl_map_count(&r->damaged) + 1);
    const struct gl_damaged_job *d;

    s->asks.items = asks;
    s->pins.items = pins;
    s->damaged.items = jobs;
    for (const struct gl_link *l = r->asks.next; l != &r->asks; l = l->next) {
        asks[s->asks.n++] = *GL_CONTAINER(l, struct gl_clean, link);
    }
    for (const struct gl_link *l = r->pins.next; l != &r->pins; l = l->next) {
        pins[s->pins.n++] = *GL_CONTAINER(l, struct gl_pin, link);
    }
    for (size_t i = 0; (d = gl_map_next(&r->damaged, &i)) != NULL;) {
        jobs[s->damaged.n++] = *d;
    }
    GL_ASSERT(s->damaged.n == gl_map_count(&r->damaged));
}

/* ---- what holds between two steps of the core ---- */

/* What each stage relies on. Asserted when a snapshot is saved, and checked when one is restored,
 * because anyone may have written it. Nothing here may depend on what a store answered. */
static bool is_sound(const struct gl_core *c)
{
    const struct gl_retention_state *r = &c->retention;
    const struct gl_retention_pass *p = &r->pass;
    bool has_many = gl_retention_has_many(p->stage), has_none = p->stage <= GL_STAGE_SUBMISSIONS;
    bool is_of_files = p->chore >= GL_CHORE_COPIES && p->chore != GL_CHORE_MEASURE;
    bool is_measured = p->stage == GL_STAGE_MEASURE || p->stage == GL_STAGE_MEASURE_FILES;

    return has_many == (p->calls_n > 0) && (p->call != 0) == (!has_many && !has_none) &&
           gl_chores_have_stage(p->chore, p->stage) && (r->has_files || !is_of_files) &&
           (has_none || r->due == INT64_MAX) && (has_many || p->broken == 0) &&
           (p->stage != GL_STAGE_COPIES || p->has_copies) &&
           (p->stage != GL_STAGE_MEASURE_FILES || r->has_files) &&
           (p->stage != GL_STAGE_COUNT || !r->is_counted) && (!is_measured || r->is_counted) &&
           (p->stage != GL_STAGE_IDLE || !p->is_asked) && r->keep.bytes >= 0 &&
           r->keep.work_ms >= 0 && r->ended_n >= 0 && p->keep_ms >= -1 && p->keep_jobs >= -1 &&
           p->by_size_n >= 0;
}

/* A pass that removes one job for a client skips the stages of the others. */
static bool is_removal_sound(const struct gl_retention_pass *p, const struct saved_lists *s)
{
    const struct gl_trim_job *job = s->jobs.items;
    bool is_of_jobs = p->stage >= GL_STAGE_JOBS && p->stage <= GL_STAGE_JOB_FILES;
    bool is_of_one = p->stage == GL_STAGE_BEGUN || p->stage == GL_STAGE_FLOW;

    if (!p->is_removal || p->stage == GL_STAGE_IDLE) {
        return !is_of_one;
    }
    return p->is_asked &&
           (is_of_jobs ? s->jobs.n == 1 && p->why_code != 0
                       : (p->stage >= GL_STAGE_COUNT && p->stage < GL_STAGE_PAGE &&
                          p->stage != GL_STAGE_MEASURE_AGAIN)) &&
           (p->stage != GL_STAGE_MEASURE_AFTER || p->gone_n == 1) &&
           (p->stage != GL_STAGE_BEGUN || job->is_headless) &&
           (p->stage != GL_STAGE_FLOW ||
            (job->is_doubtful && !gl_job_status_is_terminal(job->r.status)));
}

static bool are_jobs_sound(const struct gl_retention_pass *p, const struct saved_lists *s)
{
    const struct gl_trim_job *jobs = s->jobs.items;
    bool is_of_jobs = p->stage >= GL_STAGE_JOBS && p->stage <= GL_STAGE_JOB_FILES;
    bool is_of_calls = p->stage == GL_STAGE_BELONGINGS || p->stage == GL_STAGE_DROP;
    bool is_good = (s->jobs.n > 0 || !is_of_jobs) &&
                   (p->stage != GL_STAGE_JOB_FILES || (p->gone_n > 0 && p->gone_n <= s->jobs.n)) &&
                   (p->stage != GL_STAGE_DROP || !p->is_part || p->calls_n == 1) &&
                   (p->stage != GL_STAGE_DROP || p->calls_n <= GL_TRIM_IN_FLIGHT);

    for (size_t i = 0; i < s->jobs.n && is_of_jobs; i++) {
        const struct gl_trim_job *g = &jobs[i];
        bool is_read = p->stage > GL_STAGE_JOBS, is_listed = p->stage >= GL_STAGE_NAMES;

        is_good = is_good && gl_ended_has_kind(g->kind) && gl_ended_has_kind(g->ids_kind) &&
                  g->ids.n <= GL_TRIM_PAGE && g->logs_at <= g->chunks_at &&
                  g->chunks_at <= g->ids.n && (!g->is_removed || g->is_over) &&
                  (g->call == 0 || (is_of_calls && !g->is_over)) &&
                  (is_read ? g->is_headless || g->rev != 0 : !g->is_damaged && !g->is_doubtful) &&
                  (is_listed || !g->is_over);
    }
    return is_good;
}

static bool are_candidates_sound(const struct gl_core *c, const struct saved_lists *s)
{
    const struct gl_retention_pass *p = &c->retention.pass;
    const struct gl_candidate *doomed = s->doomed.items;
    uint8_t stage = p->stage;
    bool is_condemning = stage == GL_STAGE_HEADS || stage == GL_STAGE_CONDEMN;
    bool is_removing = stage == GL_STAGE_REMOVE || stage == GL_STAGE_SPARE;
    bool is_start = stage == GL_STAGE_SUBMISSIONS || stage == GL_STAGE_SUSPECTS || is_condemning;
    bool is_of_pages = stage == GL_STAGE_CANDIDATES || is_condemning ||
                       stage == GL_STAGE_BLOB_FILES || stage == GL_STAGE_SUBMISSIONS;
    bool is_of_records = p->chore >= GL_CHORE_RATES && p->chore <= GL_CHORE_INBOX;
    bool is_good =
        p->at <= s->doomed.n && (stage != GL_STAGE_CONDEMN || p->batch <= s->doomed.n) &&
        (stage != GL_STAGE_CONDEMN || p->chore == GL_CHORE_FLOWS || p->at <= p->batch) &&
        (!is_start || p->after.n == 0) && (!is_of_pages || !p->is_second_look) &&
        (!is_removing || c->shared == p->is_second_look) &&
        (!(is_condemning || stage == GL_STAGE_SPARE || p->is_second_look) ||
         (c->shared && p->token > 0)) &&
        (stage != GL_STAGE_REMOVE || !c->shared || p->batch > 0) &&
        (stage != GL_STAGE_CANDIDATES || c->shared || s->doomed.n == 0) &&
        (stage != GL_STAGE_REMOVE || c->shared || p->chore == GL_CHORE_FLOWS) &&
        (stage != GL_STAGE_MARK || p->at == 0) && (stage != GL_STAGE_SUBMISSIONS || p->at == 0) &&
        (stage != GL_STAGE_SUSPECTS || s->suspects.n > 0) &&
        (stage != GL_STAGE_LEFT_LIST || (s->doomed.n == 0 && p->at == 0)) &&
        (stage != GL_STAGE_LEFT_CHECK || (p->at < p->batch && p->batch <= s->doomed.n)) &&
        (stage != GL_STAGE_LEFT_REMOVE || p->at == s->doomed.n) &&
        (!is_of_records || s->doomed.n <= GL_TRIM_PAGE) &&
        (!p->is_full || p->chore == GL_CHORE_WORK);

    for (size_t i = 0; i < s->doomed.n; i++) {
        is_good = is_good && doomed[i].pieces <= GL_BLOB_BYTES_MAX / GL_GC_PIECE_BYTES &&
                  (doomed[i].pieces == 0 || p->chore == GL_CHORE_BLOBS);
    }
    return is_good;
}

static bool are_lists_sound(const struct gl_core *c, const struct saved_lists *s)
{
    const struct gl_retention_pass *p = &c->retention.pass;

    if (p->stage == GL_STAGE_IDLE && (s->jobs.n > 0 || s->doomed.n > 0 || s->suspects.n > 0)) {
        return false;
    }
    return is_removal_sound(p, s) && are_jobs_sound(p, s) && are_candidates_sound(c, s);
}

/* Ids come from the store, so they are checked only where a snapshot is read. */
static bool have_ids(const struct saved_lists *s)
{
    const struct gl_trim_job *jobs = s->jobs.items;
    const struct gl_candidate *doomed = s->doomed.items;
    bool have_all = true;

    for (size_t i = 0; i < s->jobs.n; i++) {
        have_all = have_all && jobs[i].id.n > 0;
    }
    for (size_t i = 0; i < s->doomed.n; i++) {
        have_all = have_all && doomed[i].id.n > 0;
    }
    return have_all;
}

void gl_retention_save(const struct gl_core *c, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_retention_state *r = &c->retention;
    const struct gl_retention_pass *p = &r->pass;
    struct saved_retention *s = GL_NEW(&a, struct saved_retention);

    s->state = *r;
    s->lists = (struct saved_lists){
        .jobs = {.items = p->jobs, .n = p->jobs_n_now},
        .doomed = {.items = p->candidates, .n = p->candidates_n},
        .suspects = {.items = p->suspects, .n = p->suspects_n},
        .reserved = texts_of(&r->reserved, &a),
        .used = texts_of(&p->used, &a),
    };

    GL_ASSERT(p->candidates_n <= p->candidates_cap);
    GL_ASSERT(p->suspects_n <= p->suspects_cap);
    GL_ASSERT(is_sound(c));
    GL_ASSERT(are_lists_sound(c, &s->lists));
    list_asks(c, &a, &s->lists);
    gl_snapshot_put(out, "retention", &retention_schema, s);
}

/* ---- restoring ---- */

/* What outlives a pass. It is copied into the core's pool. */
static int restore_outside(struct gl_core *c, struct gl_snapshot_line *l,
                           const struct saved_lists *s)
{
    const struct gl_clean *asks = s->asks.items;
    const struct gl_pin *pins = s->pins.items;
    const struct gl_damaged_job *damaged = s->damaged.items;

    for (size_t i = 0; i < s->asks.n; i++) {
        if (asks[i].is_removal && asks[i].job.n == 0) {
            return gl_snapshot_bad(l, "the removal of a job does not name it");
        }
        gl_retention_enqueue(c, &asks[i]);
    }
    for (size_t i = 0; i < s->pins.n; i++) {
        gl_pins_add(c, pins[i].job, pins[i].by);
    }
    for (size_t i = 0; i < s->damaged.n; i++) {
        if (damaged[i].id.n == 0 || gl_map_find(&c->retention.damaged, damaged[i].id) != NULL) {
            return gl_snapshot_bad(l, "a damaged job has no name, or is there twice");
        }
        gl_reserved_add_job(c, damaged[i].id)->look = damaged[i].look;
    }
    for (size_t i = 0; i < s->reserved.n; i++) {
        if (s->reserved.items[i].n == 0 ||
            gl_map_find(&c->retention.reserved, s->reserved.items[i]) != NULL) {
            return gl_snapshot_bad(l, "a flow has no name, or is reserved twice");
        }
        gl_reserved_add_flow(c, s->reserved.items[i]);
    }
    GL_ASSERT(gl_map_count(&c->retention.damaged) == s->damaged.n);
    GL_ASSERT(gl_map_count(&c->retention.reserved) == s->reserved.n);
    return 0;
}

/* The lists stay where they were read, in the pass's arena. */
static void restore_pass(struct gl_retention_pass *p, const struct saved_lists *s)
{
    p->jobs = s->jobs.items;
    p->jobs_n_now = s->jobs.n;
    p->candidates = s->doomed.items;
    p->candidates_n = p->candidates_cap = s->doomed.n;
    p->suspects = s->suspects.items;
    p->suspects_n = p->suspects_cap = s->suspects.n;
    GL_ASSERT(p->at <= p->candidates_n);
    GL_ASSERT(p->stage < GL_STAGES);
    GL_ASSERT(p->chore < GL_CHORE_COUNT);
    for (size_t i = 0; i < s->used.n; i++) {
        gl_retention_add_text(p, &p->used, s->used.items[i]);
    }
}

int gl_retention_restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct saved_retention *s = GL_NEW(l->arena, struct saved_retention);
    gl_str text = gl_str_dup(&p->arena, gl_json_raw(l->json, l->value));
    struct gl_json j;
    int rc = gl_json_parse(&j, text, SIZE_MAX, &p->arena, l->why);

    if (rc == 0) {
        rc = gl_schema_read(&retention_schema, &j, gl_json_root(&j), true, &p->arena, s, l->why);
    }
    if (rc != 0) {
        return rc;
    }
    gl_core_adopt(c, &state_schema, &c->retention, &s->state);
    if (!is_sound(c) || !are_lists_sound(c, &s->lists) || !have_ids(&s->lists)) {
        return gl_snapshot_bad(l, "the lists of retention do not fit its stage");
    }
    restore_pass(p, &s->lists);
    return restore_outside(c, l, &s->lists);
}
