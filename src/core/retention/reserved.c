/* reserved.c - keeps the flows of jobs whose records cannot be read.
 *
 * A damaged record usually still shows which flow the job names; then that flow is kept like any
 * other that is named. The hash itself may be damaged, so it counts only if such a flow exists.
 *
 * Otherwise the job may name any flow that existed when it was first found damaged. All of these
 * are reserved until the record is repaired or the job is removed. Later flows are collected as
 * usual, so one damaged record does not stop garbage collection. Reservations are in memory only:
 * another node, or the same after a restart, reserves again. */
#include "base/sha256.h"
#include "core/retention/parts.h"

enum { HEX = GL_SHA256_HEX - 1, FLOWS_READ = 100 };

static void free_texts(struct gl_core *c, struct gl_map *m)
{
    gl_str *text;

    for (size_t i = 0; (text = gl_map_next(m, &i)) != NULL;) {
        gl_core_set(c, text, (gl_str){0});
        gl_pool_free(&c->mem, text, sizeof(*text));
    }
    gl_map_done(m);
    gl_map_init(m);
}

static bool is_hex(gl_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
    }
    return text.n == HEX;
}

/* ---- jobs whose flow is not known ---- */

struct gl_damaged_job *gl_reserved_add_job(struct gl_core *c, gl_str id)
{
    struct gl_damaged_job *d = gl_pool_alloc(&c->mem, sizeof(*d));
    size_t before = gl_map_count(&c->retention.damaged);

    *d = (struct gl_damaged_job){0};
    gl_core_set(c, &d->id, id);
    gl_map_add(&c->retention.damaged, d->id, d);
    GL_ASSERT(gl_map_count(&c->retention.damaged) == before + 1);
    return d;
}

static void add_unknown(struct gl_core *c, gl_str id)
{
    struct gl_damaged_job *d = gl_map_find(&c->retention.damaged, id);

    if (d == NULL) {
        d = gl_reserved_add_job(c, id);
        c->retention.reserve_all = true; /* every flow that exists now */
    }
    d->look = c->retention.damaged_look;
    GL_ASSERT(gl_map_count(&c->retention.damaged) > 0);
}

/* Drop the jobs that the last scan has not found damaged, or all. */
static void drop_damaged(struct gl_core *c, bool all)
{
    struct gl_damaged_job *d;

    for (size_t i = 0; (d = gl_map_next(&c->retention.damaged, &i)) != NULL;) {
        if (all || d->look != c->retention.damaged_look) {
            (void)gl_map_remove(&c->retention.damaged, d->id); /* the one just visited */
            gl_core_set(c, &d->id, (gl_str){0});
            gl_pool_free(&c->mem, d, sizeof(*d));
        }
    }
    GL_ASSERT(GL_IMPLIES(all, gl_map_count(&c->retention.damaged) == 0));
}

void gl_reserved_begin(struct gl_core *c)
{
    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_FLOWS);
    c->retention.damaged_look++;
    gl_pass(c)->suspects_n = 0;
}

void gl_reserved_note(struct gl_core *c, const struct gl_event_record *job)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_job_record r = {0};

    GL_ASSERT(p->stage == GL_STAGE_MARK);
    if (!gl_retention_read(c->out->arena, &gl_trim_job_schema, job->value, &r) || !is_hex(r.flow)) {
        add_unknown(c, job->id);
        return;
    }
    p->suspects =
        gl_retention_grow(p, p->suspects, p->suspects_n, &p->suspects_cap, sizeof(*p->suspects));
    GL_ASSERT(p->suspects_n < p->suspects_cap);
    p->suspects[p->suspects_n++] = (struct gl_suspect){.job = gl_str_dup(&p->arena, job->id),
                                                       .flow = gl_str_dup(&p->arena, r.flow)};
}

/* ---- the end of marking ---- */

void gl_reserved_on_flows(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_record *flows = ev->answer.records.items;

    GL_ASSERT(p->stage == GL_STAGE_SUSPECTS);
    GL_ASSERT(p->suspects_n > 0);
    if (!gl_retention_check(c, ev->answer.records.n <= p->suspects_n)) {
        return;
    }
    for (size_t i = 0; i < ev->answer.records.n; i++) {
        const struct gl_suspect *s = &p->suspects[--p->suspects_n];

        if (flows[i].rev > 0 && !GL_PLANT(85)) { /* planted: a damaged job names nothing */
            GL_MARK(c->trace, "trim.flow_of_damaged");
            gl_retention_add_text(p, &p->used, s->flow);
        } else {
            add_unknown(c, s->job);
        }
    }
    gl_reserved_resolve(c);
}

void gl_reserved_resolve(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_key keys[FLOWS_READ];
    size_t n = 0;

    GL_ASSERT(p->chore == GL_CHORE_FLOWS);
    for (; n < p->suspects_n && n < FLOWS_READ;
         n++) { /* from the end, where on_flows() takes them */
        keys[n] =
            (struct gl_key){.kind = GL_S("flow"), .id = p->suspects[p->suspects_n - 1 - n].flow};
    }
    if (n > 0) {
        gl_retention_get(c, GL_STAGE_SUSPECTS, keys, n, &gl_view_stamps);
        return;
    }
    GL_ASSERT(p->suspects_n == 0);
    drop_damaged(c, false);
    if (gl_map_count(&c->retention.damaged) == 0) {
        free_texts(c, &c->retention.reserved);
        c->retention.reserve_all = false;
    }
    gl_garbage_marked(c);
}

/* ---- reserved flows ---- */

void gl_reserved_on_list(struct gl_core *c, bool is_begin)
{
    struct gl_retention_state *r = &c->retention;

    GL_ASSERT(r->pass.chore == GL_CHORE_FLOWS);
    GL_ASSERT(!r->pass.is_second_look);
    if (is_begin) {
        r->is_reserving = r->reserve_all;
    } else if (r->is_reserving) { /* every flow has been listed, so all of them are reserved */
        r->reserve_all = r->is_reserving = false;
    }
}

void gl_reserved_add_flow(struct gl_core *c, gl_str flow)
{
    gl_str *copy = gl_pool_alloc(&c->mem, sizeof(*copy));
    size_t before = gl_map_count(&c->retention.reserved);

    *copy = (gl_str){0};
    gl_core_set(c, copy, flow);
    gl_map_add(&c->retention.reserved, *copy, copy);
    GL_ASSERT(gl_map_count(&c->retention.reserved) == before + 1);
}

bool gl_reserved_has(struct gl_core *c, gl_str flow)
{
    bool is_reserved = gl_map_find(&c->retention.reserved, flow) != NULL;

    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_CANDIDATES);
    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_FLOWS);
    if (c->retention.reserve_all && !is_reserved) {
        GL_MARK(c->trace, "trim.flow_reserved");
        gl_reserved_add_flow(c, flow);
        is_reserved = true;
    }
    return is_reserved;
}

void gl_reserved_done(struct gl_core *c)
{
    drop_damaged(c, true);
    gl_map_done(&c->retention.damaged);
    free_texts(c, &c->retention.reserved);
    gl_map_done(&c->retention.reserved);
}
