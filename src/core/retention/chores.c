/* chores.c - what a pass does after its jobs, one thing after the other; those that are not due are
 * passed over. A node that does not lead begins with the files: everybody has some. */
#include "core/retention/parts.h"

enum {
    FLOWS_MS = 60 * 60 * 1000,
    FILES_MS = 60 * 60 * 1000,
    REST_MS = 6 * 60 * 60 * 1000,
    COPY_AGE_MS = 60 * 60 * 1000, /* of a file that is in a shared store, too */
};

static struct gl_retention_pass *pass(struct gl_core *c)
{
    return &c->retention.pass;
}

void gl_chores_ready(struct gl_core *c)
{
    c->retention.rest_due = c->now + REST_MS;
}

void gl_chores_clear(struct gl_core *c)
{
    struct gl_retention_pass *p = pass(c);

    gl_map_done(&p->used);
    gl_map_init(&p->used);
    gl_map_done(&c->retention.named);
    gl_map_init(&c->retention.named);
    p->doomed = NULL;
    p->suspects = NULL;
    p->waited = NULL;
    p->doomed_n = p->doomed_cap = p->suspects_n = p->suspects_cap = p->waited_n = 0;
    p->at = p->batch = 0;
    p->is_second_look = p->is_full = false;
    gl_core_set(c, &p->after, (gl_str){0});
    p->jobs = NULL;
    p->jobs_n_now = 0;
    gl_arena_reset(&p->arena);
}

/* ---- which are due? ---- */

static bool is_sweep_due(struct gl_core *c)
{
    const struct gl_retention_state *r = &c->retention;
    bool may_find = r->removed_n > 0 || r->young_bytes > 0 || r->again;

    return r->pass.is_asked || (may_find && (c->now >= r->flows_due || r->pass.has_shrunk));
}

static bool begin_flows(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;

    r->pass.has_swept = is_sweep_due(c);
    if (r->pass.has_swept) {
        r->flows_due = c->now + FLOWS_MS;
        r->removed_n = 0;
        r->again = false;
        gl_garbage_begin(c);
    }
    return r->pass.has_swept;
}

static bool begin_blobs(struct gl_core *c)
{
    bool has_blobs = c->shared || c->retention.has_files;

    if (pass(c)->has_swept && has_blobs) {
        gl_garbage_begin(c);
    }
    return pass(c)->has_swept && has_blobs;
}

static bool begin_rates(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;

    r->pass.has_rest = !r->pass.is_asked && c->leader.leads && c->now >= r->rest_due;
    if (r->pass.has_rest) {
        r->rest_due = c->now + REST_MS;
        if (c->shared) { /* nobody knows what the leader before us has left */
            r->flows_due = c->now + FLOWS_MS;
            r->again = true;
        }
        gl_left_begin(c);
    }
    return r->pass.has_rest;
}

static bool begin_shared_rest(struct gl_core *c)
{
    if (pass(c)->has_rest && c->shared) {
        gl_left_begin(c);
    }
    return pass(c)->has_rest && c->shared;
}

static bool begin_copies(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;

    r->pass.is_files_time = r->has_files && (r->pass.is_asked || c->now >= r->files_due);
    if (r->pass.is_files_time && c->shared) { /* whoever needs one fetches it */
        gl_retention_stage(c, GL_STAGE_COPIES,
                           gl_retention_files(c, GL_FILES_REMOVE_BLOBS, NULL, 0, COPY_AGE_MS));
    }
    return r->pass.is_files_time && c->shared;
}

static bool begin_orphans(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;
    bool is_time = r->pass.is_files_time;
    bool is_due = r->has_files && (r->seek_orphans || r->pass.is_asked || (c->shared && is_time));

    r->pass.has_work = r->keep.work_ms > 0 && (is_due || is_time);
    if (is_due || r->pass.has_work) {
        r->files_due = c->now + FILES_MS;
    }
    if (is_due) {
        r->seek_orphans = false;
        gl_left_begin(c);
    }
    return is_due;
}

static bool begin_work(struct gl_core *c)
{
    if (pass(c)->has_work) {
        gl_left_begin(c);
    }
    return pass(c)->has_work;
}

static bool begin_measure(struct gl_core *c)
{
    if (pass(c)->is_asked) {
        gl_retention_stage(c, GL_STAGE_MEASURE_AFTER,
                           gl_component_measure(c, GL_COMPONENT_RETENTION));
    }
    return pass(c)->is_asked;
}

/* False: it is not due, or there is nothing to do. */
static bool (*const chores[GL_CHORE_COUNT])(struct gl_core *c) = {
    [GL_CHORE_FLOWS] = begin_flows,       [GL_CHORE_BLOBS] = begin_blobs,
    [GL_CHORE_RATES] = begin_rates,       [GL_CHORE_ANSWERS] = begin_shared_rest,
    [GL_CHORE_INBOX] = begin_shared_rest, [GL_CHORE_COPIES] = begin_copies,
    [GL_CHORE_ORPHANS] = begin_orphans,   [GL_CHORE_WORK] = begin_work,
    [GL_CHORE_MEASURE] = begin_measure,
};

void gl_chores_begin(struct gl_core *c, enum gl_chore first)
{
    struct gl_retention_pass *p = pass(c);

    p->has_swept = p->has_rest = p->is_files_time = p->has_work = false;
    for (p->chore = (uint8_t)first; p->chore < GL_CHORE_COUNT; p->chore++) {
        gl_chores_clear(c);
        if (chores[p->chore](c)) {
            return;
        }
    }
    gl_retention_over(c, 0, (gl_str){0});
}

void gl_chores_next(struct gl_core *c)
{
    struct gl_retention_pass *p = pass(c);

    while (++p->chore < GL_CHORE_COUNT) {
        gl_chores_clear(c);
        if (chores[p->chore](c)) {
            return;
        }
    }
    gl_retention_over(c, 0, (gl_str){0});
}

void gl_chores_on_copies(struct gl_core *c, const struct gl_event *ev)
{
    if (gl_retention_has_tidied(c, ev)) {
        gl_chores_next(c);
    }
}

void gl_chores_on_measured(struct gl_core *c, const struct gl_event *ev)
{
    if (gl_retention_is_good(c, ev)) {
        pass(c)->store_bytes = ev->answer.bytes;
        gl_chores_next(c);
    }
}
