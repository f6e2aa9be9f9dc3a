/* saved.c - retention in a snapshot of the core: what it knows, how far its pass is, and the lists
 * that belong to the pass. */
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

/* ---- what it knows ---- */

#define F(member, type) GL_FIELD(gl_retention_state, member, type, 0, "")

static const struct gl_field fields[] = {
    F(keep.job_ms, I64),
    F(keep.jobs, I64),
    F(keep.bytes, I64),
    F(keep.work_ms, I64),
    F(has_files, BOOL),
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

#define F(member, type) GL_FIELD(gl_leaving, member, type, 0, "")
static const struct gl_field leaving_fields[] = {
    F(id, STR),
    GL_FIELD_SUB(gl_leaving, r, OBJECT, &gl_leaving_schema, 0, ""),
    F(rev, U64),
    F(run_rev, U64),
    F(dedupe_rev, U64),
    F(request_rev, U64),
    F(retried_rev, U64),
    F(retried_by, STR),
    F(retried_token, U64),
    F(call, U64),
    F(is_over, BOOL),
    F(is_removed, BOOL),
    F(is_headless, BOOL),
    F(is_doubtful, BOOL),
    F(is_damaged, BOOL),
    F(is_retried, BOOL),
    F(has_more, BOOL),
    F(owner, STR),
    F(kind, U32),
    F(ids, STRS),
    F(log_from, I64),
};
#undef F

#define F(member, type) GL_FIELD(gl_doomed, member, type, 0, "")
static const struct gl_field doomed_fields[] = {
    F(id, STR),    F(rev, U64),    F(owner, STR),      F(token, U64),    F(score, I64),
    F(value, STR), F(pieces, U32), F(was_whole, BOOL), F(is_ours, BOOL), F(call, U64),
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
SCHEMA(leaving, gl_leaving);
SCHEMA(doomed, gl_doomed);

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

static struct gl_strs texts_of(const struct gl_map *m, struct gl_arena *a)
{
    gl_str *all = GL_NEW_ARRAY(a, gl_str, gl_map_count(m) + 1);
    struct gl_strs ret = {.items = all};
    const gl_str *text;

    for (size_t i = 0; (text = gl_map_next(m, &i)) != NULL;) {
        all[ret.n++] = *text;
    }
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
        .doomed = {.items = p->doomed, .n = p->doomed_n},
        .suspects = {.items = p->suspects, .n = p->suspects_n},
        .reserved = texts_of(&r->reserved, &a),
        .used = texts_of(&p->used, &a),
    };

    list_asks(c, &a, &s->lists);
    gl_snapshot_put(out, "retention", &retention_schema, s);
}

/* ---- and back ---- */

/* The text may be a stranger's: what its stage takes for granted must be there. */
static bool is_sound(const struct gl_core *c)
{
    const struct gl_retention_pass *p = &c->retention.pass;
    bool has_many = p->stage == GL_STAGE_BELONGINGS || p->stage == GL_STAGE_DROP ||
                    p->stage == GL_STAGE_CONDEMN;
    bool has_none = p->stage <= GL_STAGE_SUBMISSIONS;
    bool is_sweep = p->stage == GL_STAGE_SUBMISSIONS ||
                    (p->stage >= GL_STAGE_MARK && p->stage <= GL_STAGE_BLOB_FILES);
    bool is_left = p->stage >= GL_STAGE_LEFT_LIST && p->stage <= GL_STAGE_LEFT_REMOVE;
    bool is_of_files = p->chore >= GL_CHORE_COPIES && p->chore != GL_CHORE_MEASURE;

    return has_many == (p->calls_n > 0) && (p->call != 0) == (!has_many && !has_none) &&
           is_sweep == (p->chore == GL_CHORE_FLOWS || p->chore == GL_CHORE_BLOBS) &&
           is_left == gl_left_has(p->chore) && (c->retention.has_files || !is_of_files);
}

static bool are_lists_sound(const struct gl_core *c, const struct saved_lists *s)
{
    const struct gl_retention_pass *p = &c->retention.pass;
    const struct gl_leaving *jobs = s->jobs.items;
    const struct gl_doomed *doomed = s->doomed.items;
    bool needs_jobs = p->stage >= GL_STAGE_JOBS && p->stage <= GL_STAGE_JOB_FILES;
    bool is_within = p->stage == GL_STAGE_CONDEMN || p->stage == GL_STAGE_LEFT_CHECK;
    bool is_good = (s->jobs.n > 0 || !needs_jobs) && p->at <= s->doomed.n &&
                   (!is_within || p->batch <= s->doomed.n) &&
                   (p->stage != GL_STAGE_LEFT_CHECK || p->at < p->batch);

    for (size_t i = 0; i < s->jobs.n; i++) {
        is_good = is_good && jobs[i].id.n > 0 && gl_ended_has_kind(jobs[i].kind) &&
                  jobs[i].ids.n <= GL_TRIM_PAGE;
    }
    for (size_t i = 0; i < s->doomed.n; i++) {
        is_good = is_good && doomed[i].id.n > 0 &&
                  doomed[i].pieces <= GL_BLOB_BYTES_MAX / GL_GC_PIECE_BYTES;
    }
    return is_good;
}

static int restore_outside(struct gl_core *c, struct gl_snapshot_line *l,
                           const struct saved_lists *s)
{
    const struct gl_clean *asks = s->asks.items;
    const struct gl_pin *pins = s->pins.items;
    const struct gl_damaged_job *damaged = s->damaged.items;

    for (size_t i = 0; i < s->asks.n; i++) {
        gl_retention_ask(c, &asks[i]);
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
    return 0;
}

/* The lists stay where they are read: in the pass's arena. */
static void restore_pass(struct gl_retention_pass *p, const struct saved_lists *s)
{
    p->jobs = s->jobs.items;
    p->jobs_n_now = s->jobs.n;
    p->doomed = s->doomed.items;
    p->doomed_n = p->doomed_cap = s->doomed.n;
    p->suspects = s->suspects.items;
    p->suspects_n = p->suspects_cap = s->suspects.n;
    for (size_t i = 0; i < s->used.n; i++) {
        gl_retention_add(p, &p->used, s->used.items[i]);
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
    if (!is_sound(c) || !are_lists_sound(c, &s->lists)) {
        return gl_snapshot_bad(l, "retention's lists do not fit what it does");
    }
    restore_pass(p, &s->lists);
    return restore_outside(c, l, &s->lists);
}
