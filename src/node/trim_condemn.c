/* trim_condemn.c - flows of a shared store that no job names.
 *
 * Other nodes take jobs, and nobody tells us. So a flow that a look at all jobs has not found is
 * condemned first: from then on nobody can submit a job that relies on it without writing it anew
 * (model/kept.h). Then all jobs are looked through once more. What is still not named goes; the
 * guard on what we have condemned sees whoever has written it meanwhile. */
#include "node/trim_state.h"

#include "model/kept.h"

enum {
    CONDEMNED_AT_ONCE = 4, /* flows may be large */
    REMOVED_AT_ONCE = 100,
};

struct gl_guard gl_trim_condemn_guard(const struct gl_trim *t, gl_str kind, gl_str id)
{
    return (struct gl_guard){.type = GL_GUARD_OWNED,
                             .kind = kind,
                             .id = id,
                             .rev = GL_KEPT_CONDEMNED,
                             .owner = t->node->session,
                             .token = t->flows.token};
}

static void commit(struct gl_trim *t, size_t n, gl_store_done *done)
{
    t->flows.going_n = n;
    t->flows.guards[n] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = t->node->session};
    t->flows.tx = (struct gl_tx){
        .guards = t->flows.guards, .guards_n = n + 1, .writes = t->flows.writes, .writes_n = n};
    gl_trim_commit(t, &t->flows.tx, done);
}

/* ---- those that stay ---- */

static void spare_next(struct gl_trim *t);

static void on_spared(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    bool is_refused;

    if (gl_trim_landed(t, req, &is_refused)) { /* refused: somebody was faster */
        spare_next(t);
    }
}

static void on_read_spared(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    gl_str hash = t->flows.keys[0].id;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    gl_arena_reset(&t->arena);
    t->flows.guards[0] = gl_trim_condemn_guard(t, GL_S("flow"), hash);
    t->flows.writes[0] = (struct gl_write){.type = GL_WRITE_PUT,
                                           .kind = GL_S("flow"),
                                           .id = hash,
                                           .rev = GL_KEPT_WHOLE,
                                           .value = gl_str_dup(&t->arena, req->records[0].value)};
    commit(t, 1, on_spared);
}

static void spare_next(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    while (t->flows.at < t->flows.doomed_n) {
        const struct gl_trim_doomed *d = &t->flows.doomed[t->flows.at++];

        if (d->is_ours) {
            GL_MARK(t->node->config.trace, "trim.spared");
            gl_trim_flows_keep(t, d->hash);
            t->flows.keys[0] = (struct gl_key){.kind = GL_S("flow"), .id = d->hash};
            s->ops->get(s, gl_trim_call(t, on_read_spared), t->node->config.context, t->flows.keys,
                        1);
            return;
        }
    }
    gl_trim_flows_read_kept(t);
}

/* ---- those that go ---- */

static void remove_next(struct gl_trim *t);

/* Refused as a batch, they are tried one by one: what is refused then was written meanwhile. */
static void on_removed(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    bool is_refused;

    if (!gl_trim_landed(t, req, &is_refused)) {
        return;
    }
    if (is_refused && t->flows.going_n > 1) {
        t->flows.batch = 1;
        remove_next(t);
        return;
    }
    t->tally.flows_n += is_refused ? 0 : t->flows.going_n;
    for (size_t i = t->flows.at; i < t->flows.doomed_n; i++) {
        struct gl_trim_doomed *d = &t->flows.doomed[i];

        if (d->is_going && is_refused) {
            GL_MARK(t->node->config.trace, "trim.resurrected");
            gl_trim_flows_keep(t, d->hash);
        }
        d->is_ours = d->is_ours && !d->is_going;
        d->is_going = false;
    }
    remove_next(t);
}

static bool is_unnamed(const struct gl_trim *t, const struct gl_trim_doomed *d)
{
    return d->is_ours && gl_map_find(&t->flows.used, d->hash) == NULL;
}

static void remove_next(struct gl_trim *t)
{
    size_t n = 0;

    while (t->flows.at < t->flows.doomed_n && !is_unnamed(t, &t->flows.doomed[t->flows.at])) {
        t->flows.at++;
    }
    for (size_t i = t->flows.at; i < t->flows.doomed_n; i++) {
        struct gl_trim_doomed *d = &t->flows.doomed[i];

        d->is_going = n < t->flows.batch && is_unnamed(t, d);
        if (d->is_going) {
            t->flows.guards[n] = gl_trim_condemn_guard(t, GL_S("flow"), d->hash);
            t->flows.writes[n++] =
                (struct gl_write){.type = GL_WRITE_DELETE, .kind = GL_S("flow"), .id = d->hash};
        }
    }
    if (n > 0) {
        commit(t, n, on_removed);
        return;
    }
    t->flows.at = 0;
    spare_next(t);
}

static void on_second_look(struct gl_trim *t)
{
    t->flows.at = 0;
    t->flows.batch = REMOVED_AT_ONCE;
    remove_next(t);
}

/* ---- condemning ---- */

static void condemn_next(struct gl_trim *t);

static void on_condemned(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    bool is_refused;

    if (!gl_trim_landed(t, req, &is_refused)) {
        return;
    }
    for (size_t i = t->flows.at - t->flows.batch; i < t->flows.at; i++) {
        struct gl_trim_doomed *d = &t->flows.doomed[i];

        d->is_ours = d->is_going && !is_refused;
        if (d->is_going && is_refused) { /* another time */
            gl_trim_flows_keep(t, d->hash);
        }
        d->is_going = false;
    }
    condemn_next(t);
}

static void on_read(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    size_t n = 0;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    gl_arena_reset(&t->arena);
    for (size_t i = 0; i < req->records_n; i++) {
        const struct gl_record *r = &req->records[i];
        gl_str hash = t->flows.keys[i].id;

        t->flows.doomed[t->flows.at - t->flows.batch + i].is_going = r->rev != 0;
        if (r->rev == 0) {
            continue; /* gone already */
        }
        t->flows.guards[n] =
            (struct gl_guard){.type = GL_GUARD_AT, .kind = GL_S("flow"), .id = hash, .rev = r->rev};
        t->flows.writes[n++] = (struct gl_write){.type = GL_WRITE_PUT,
                                                 .kind = GL_S("flow"),
                                                 .id = hash,
                                                 .rev = GL_KEPT_CONDEMNED,
                                                 .owner = t->node->session,
                                                 .token = t->flows.token,
                                                 .value = gl_str_dup(&t->arena, r->value)};
    }
    commit(t, n, on_condemned);
}

static void condemn_next(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;
    size_t n = 0;

    while (n < CONDEMNED_AT_ONCE && t->flows.at < t->flows.doomed_n) {
        t->flows.keys[n++] =
            (struct gl_key){.kind = GL_S("flow"), .id = t->flows.doomed[t->flows.at++].hash};
    }
    t->flows.batch = n;
    if (n > 0) {
        s->ops->get(s, gl_trim_call(t, on_read), t->node->config.context, t->flows.keys, n);
    } else {
        gl_trim_flows_look(t, on_second_look);
    }
}

void gl_trim_condemn_begin(struct gl_trim *t)
{
    t->flows.token = ++t->condemned_n;
    t->flows.at = 0;
    if (t->flows.doomed_n == 0) {
        gl_trim_flows_read_kept(t);
        return;
    }
    GL_MARK(t->node->config.trace, "trim.condemns");
    condemn_next(t);
}
