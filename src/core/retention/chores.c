/* chores.c - what a pass does after its jobs, one chore after the other; those that are not due are
 * skipped. A node that is not the leader starts with the files, because every node has its own.
 *
 * The order matters: flows are removed before blobs, because a flow keeps its blobs. And the first
 * chore of a group decides for all of it: FLOWS for BLOBS, RATES for ANSWERS and INBOX, COPIES for
 * ORPHANS and WORK. */
#include "core/retention/parts.h"

enum {
    FLOWS_MS = 60 * 60 * 1000,
    FILES_MS = 60 * 60 * 1000,
    COPY_AGE_MS = 60 * 60 * 1000, /* of a local copy of a blob of the shared store */
};

bool gl_chores_have_stage(uint8_t chore, enum gl_retention_stage stage)
{
    bool is_sweep =
        stage == GL_STAGE_SUBMISSIONS || (stage >= GL_STAGE_MARK && stage <= GL_STAGE_BLOB_FILES);
    bool is_of_flows = stage == GL_STAGE_SUBMISSIONS || stage == GL_STAGE_SUSPECTS;
    bool is_of_blobs = stage == GL_STAGE_HEADS || stage == GL_STAGE_BLOB_FILES;
    bool is_left = stage >= GL_STAGE_LEFT_LIST && stage <= GL_STAGE_LEFT_REMOVE;

    return is_sweep == (chore == GL_CHORE_FLOWS || chore == GL_CHORE_BLOBS) &&
           (!is_of_flows || chore == GL_CHORE_FLOWS) && (!is_of_blobs || chore == GL_CHORE_BLOBS) &&
           is_left == gl_leftovers_handle(chore) &&
           (stage == GL_STAGE_COPIES) == (chore == GL_CHORE_COPIES) &&
           (stage == GL_STAGE_MEASURE_AFTER) == (chore == GL_CHORE_MEASURE);
}

void gl_chores_clear(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    gl_map_done(&p->used);
    gl_map_init(&p->used);
    p->jobs = NULL;
    p->candidates = NULL;
    p->suspects = NULL;
    p->jobs_n_now = p->candidates_n = p->candidates_cap = p->suspects_n = p->suspects_cap = 0;
    p->at = p->batch = 0;
    p->is_second_look = p->is_full = false;
    gl_core_set(c, &p->after, (gl_str){0});
    gl_arena_reset(&p->arena);
}

/* ---- which are due? ---- */

static bool is_sweep_due(struct gl_core *c)
{
    const struct gl_retention_state *r = &c->retention;
    bool may_find = r->removed_n > 0 || r->young_bytes > 0 || r->again;

    GL_ASSERT(r->pass.chore == GL_CHORE_FLOWS);
    return r->pass.is_asked || (may_find && (c->now >= r->flows_due || r->pass.has_shrunk));
}

/* Each of these is called once in a pass. It decides for itself and for the chores after it that go
 * with it, and sets the time of the next one: if this one fails, it is not repeated at once. */
static void plan_sweep(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;

    GL_ASSERT(!r->pass.has_swept);
    r->pass.has_swept = is_sweep_due(c);
    if (r->pass.has_swept) {
        r->flows_due = c->now + FLOWS_MS;
        r->removed_n = 0;
        r->again = false;
    }
}

static void plan_rest(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;

    GL_ASSERT(r->pass.chore == GL_CHORE_RATES);
    GL_ASSERT(!r->pass.has_rest);
    r->pass.has_rest = !r->pass.is_asked && c->leader.leads && c->now >= r->rest_due;
    if (r->pass.has_rest) {
        r->rest_due = c->now + GL_TRIM_RECORDS_MS;
    }
    if (r->pass.has_rest &&
        c->shared) { /* the leader before us may have left garbage that we have not counted */
        r->flows_due = c->now + FLOWS_MS;
        r->again = true;
    }
}

static void plan_files(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;
    struct gl_retention_pass *p = &r->pass;
    bool is_time = r->has_files && (p->is_asked || c->now >= r->files_due);

    GL_ASSERT(p->chore == GL_CHORE_COPIES);
    GL_ASSERT(!p->has_copies && !p->has_orphans && !p->has_work);
    p->has_copies = is_time && c->shared;
    p->has_orphans = r->has_files && (r->seek_orphans || p->is_asked || p->has_copies);
    p->has_work = r->keep.work_ms > 0 && (p->has_orphans || is_time);
    if (p->has_orphans || p->has_work) {
        r->files_due = c->now + FILES_MS;
    }
    r->seek_orphans = r->seek_orphans && !p->has_orphans;
    GL_ASSERT(GL_IMPLIES(p->has_copies, p->has_orphans));
    GL_ASSERT(GL_IMPLIES(p->has_orphans || p->has_work, r->has_files));
    GL_ASSERT(GL_IMPLIES(p->has_orphans, !r->seek_orphans));
}

static bool is_due(struct gl_core *c, enum gl_chore chore)
{
    const struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(chore == p->chore);
    GL_ASSERT(chore > GL_CHORE_NONE && chore < GL_CHORE_COUNT);
    switch (chore) {
    case GL_CHORE_FLOWS:
        plan_sweep(c);
        return p->has_swept;
    case GL_CHORE_BLOBS:
        return p->has_swept && (c->shared || c->retention.has_files);
    case GL_CHORE_RATES:
        plan_rest(c);
        return p->has_rest;
    case GL_CHORE_ANSWERS:
    case GL_CHORE_INBOX:
        return p->has_rest && c->shared;
    case GL_CHORE_COPIES:
        plan_files(c);
        return p->has_copies;
    case GL_CHORE_ORPHANS:
        return p->has_orphans;
    case GL_CHORE_WORK:
        return p->has_work;
    case GL_CHORE_MEASURE:
        return p->is_asked;
    case GL_CHORE_NONE:
    case GL_CHORE_COUNT:
        break;
    }
    return false;
}

/* ---- one after the other ---- */

static void begin(struct gl_core *c, enum gl_chore chore)
{
    GL_ASSERT(chore == gl_pass(c)->chore);
    GL_ASSERT(gl_pass(c)->candidates_n == 0);
    GL_ASSERT(gl_pass(c)->after.n == 0);
    if (chore == GL_CHORE_FLOWS || chore == GL_CHORE_BLOBS) {
        gl_garbage_begin(c);
    } else if (chore == GL_CHORE_COPIES) { /* a node that needs one again fetches it */
        gl_retention_files(c, GL_STAGE_COPIES, GL_FILES_REMOVE_BLOBS, NULL, 0, COPY_AGE_MS);
    } else if (chore == GL_CHORE_MEASURE) {
        gl_retention_measure(c, GL_STAGE_MEASURE_AFTER);
    } else {
        gl_leftovers_begin(c);
    }
}

void gl_chores_next(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->call == 0);
    GL_ASSERT(p->calls_n == 0);
    GL_ASSERT(p->chore < GL_CHORE_COUNT);
    while (++p->chore < GL_CHORE_COUNT) {
        if (is_due(c, p->chore)) {
            gl_chores_clear(c);
            begin(c, p->chore);
            return;
        }
    }
    gl_retention_finish(c, 0, (gl_str){0});
}

void gl_chores_begin(struct gl_core *c, enum gl_chore first)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(first > GL_CHORE_NONE && first < GL_CHORE_COUNT);
    GL_ASSERT(p->chore == GL_CHORE_NONE);
    p->has_swept = p->has_rest = p->has_copies = p->has_orphans = p->has_work = false;
    p->chore = (uint8_t)(first - 1);
    gl_chores_next(c);
}

void gl_chores_on_copies(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_COPIES);
    GL_ASSERT(gl_pass(c)->has_copies);
    (void)ev;
    gl_chores_next(c);
}
