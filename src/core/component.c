/* component.c - dispatches timers, answers and snapshot lines to the components, and makes their
 * calls. Components run in the order of the table, which is that of GL_COMPONENTS. */
#include "core/component.h"

#include "base/check.h"
#include "base/limits.h"
#include "core/agents/human_requests.h"
#include "core/claims/claims.h"
#include "core/cluster/inbox.h"
#include "core/cluster/leader.h"
#include "core/cluster/membership.h"
#include "core/cluster/offers.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/outbox.h"
#include "core/cluster/renewal.h"
#include "core/cluster/taken.h"
#include "core/retention/retention.h"

static const struct gl_component *const components[] = {
    [GL_COMPONENT_RENEWAL] = &gl_renewal,      [GL_COMPONENT_ROOM] = &gl_store_full,
    [GL_COMPONENT_PEERS] = &gl_membership,     [GL_COMPONENT_LEADER] = &gl_leader,
    [GL_COMPONENT_INBOX] = &gl_inbox,          [GL_COMPONENT_OUTBOX] = &gl_outbox,
    [GL_COMPONENT_CLAIMS] = &gl_claims,        [GL_COMPONENT_RETENTION] = &gl_retention,
    [GL_COMPONENT_HUMAN] = &gl_human_requests, [GL_COMPONENT_OFFERS] = &gl_offers,
    [GL_COMPONENT_TAKEN] = &gl_taken,
};

void gl_components_init(struct gl_core *c, const struct gl_core_config *config)
{
    GL_ASSERT(config->ttl_ms >= 0);
    GL_ASSERT(c->last_call == 0);
    c->renewal = (struct gl_renewal_state){.ttl_ms = config->ttl_ms,
                                           .due = INT64_MAX,
                                           .steady_since = INT64_MAX,
                                           .valid_until = INT64_MAX};
    c->room.due = INT64_MAX;
    c->leader.leads = !c->shared;
    gl_membership_init(c);
    gl_inbox_init(c);
    gl_outbox_init(c);
    gl_offers_init(c);
    gl_taken_init(c);
    gl_claims_init(c);
    gl_retention_init(c, config);
    gl_human_requests_init(c);
    GL_ASSERT(!gl_components_may_finish(c)); /* there is no session yet */
}

void gl_components_done(struct gl_core *c)
{
    gl_membership_done(c);
    gl_inbox_done(c);
    gl_outbox_done(c);
    gl_offers_done(c);
    gl_taken_done(c);
    gl_other_nodes_done(c);
    gl_claims_done(c);
    gl_retention_done(c);
    gl_human_requests_done(c);
    gl_core_set(c, &c->room.why, (gl_str){0});
}

void gl_components_on_changed(struct gl_core *c)
{
    gl_renewal_on_changed(c);
    gl_membership_on_changed(c);
    gl_leader_on_changed(c);
    gl_offers_on_changed(c);
    gl_taken_on_changed(c);
}

bool gl_components_may_finish(const struct gl_core *c)
{
    return c->session.n > 0 && !c->renewal.is_lost && c->renewal.ttl_ms > 0;
}

bool gl_components_are_on(const struct gl_core *c)
{
    return gl_components_may_finish(c) && !c->ending;
}

gl_ms gl_components_due(const struct gl_core *c)
{
    gl_ms due = INT64_MAX;

    if (!gl_components_are_on(c)) {
        return INT64_MAX;
    }
    for (size_t i = 0; i < GL_COUNT(components); i++) {
        gl_ms at = components[i]->due(c);

        due = at < due ? at : due;
    }
    return due;
}

void gl_components_on_time(struct gl_core *c)
{
    for (size_t i = 0; i < GL_COUNT(components); i++) {
        if (gl_components_are_on(c) && components[i]->due(c) <= c->now) {
            components[i]->on_time(c);
        }
    }
}

void gl_components_on_answer(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by < GL_COUNT(components));
    components[ev->answer.by]->on_answer(c, ev);
}

void gl_components_save(const struct gl_core *c, struct gl_buf *out)
{
    for (size_t i = 0; i < GL_COUNT(components); i++) {
        components[i]->save(c, out);
    }
}

bool gl_components_restore(struct gl_core *c, gl_str kind, struct gl_snapshot_line *l, int *ret)
{
    for (size_t i = 0; i < GL_COUNT(components); i++) {
        if (gl_str_is(kind, components[i]->name)) {
            *ret = components[i]->restore(c, l);
            return true;
        }
    }
    return false;
}

/* ---- calls ---- */

static struct gl_core_call *call(struct gl_core *c, enum gl_component_id by,
                                 enum gl_core_call_type type)
{
    struct gl_effect *e = gl_effect_add(c->out, GL_FX_CALL, 0);
    struct gl_core_call *call = GL_NEW(c->out->arena, struct gl_core_call);

    GL_ASSERT(by < GL_COUNT(components));
    GL_ASSERT(gl_components_may_finish(c));
    *call = (struct gl_core_call){.by = by, .type = type, .number = ++c->last_call};
    e->context = gl_str_dup(c->out->arena, c->context);
    e->call = call;
    return call;
}

uint64_t gl_component_view(struct gl_core *c, enum gl_component_id by, const struct gl_key *keys,
                           size_t keys_n, const struct gl_core_view *view)
{
    struct gl_core_call *x = call(c, by, GL_CORE_CALL_GET);
    struct gl_key *copy = GL_NEW_ARRAY(c->out->arena, struct gl_key, keys_n);

    GL_ASSERT(keys_n > 0);
    for (size_t i = 0; i < keys_n; i++) {
        GL_ASSERT(keys[i].kind.n > 0);
        copy[i] = (struct gl_key){.kind = gl_str_dup(c->out->arena, keys[i].kind),
                                  .id = gl_str_dup(c->out->arena, keys[i].id)};
    }
    x->keys = copy;
    x->keys_n = keys_n;
    x->view = view;
    return x->number;
}

uint64_t gl_component_get(struct gl_core *c, enum gl_component_id by, const struct gl_key *keys,
                          size_t keys_n)
{
    return gl_component_view(c, by, keys, keys_n, NULL);
}

static uint64_t call_range(struct gl_core *c, enum gl_component_id by, const struct gl_range *range,
                           enum gl_core_call_type type)
{
    struct gl_core_call *x = call(c, by, type);

    GL_ASSERT(range->limit > 0 && range->limit <= GL_PAGE_MAX);
    GL_ASSERT(range->index.n > 0);
    GL_ASSERT(range->score_min <= range->score_max);
    x->range = *range;
    x->range.index = gl_str_dup(c->out->arena, range->index);
    x->range.after_id = gl_str_dup(c->out->arena, range->after_id);
    return x->number;
}

uint64_t gl_component_range(struct gl_core *c, enum gl_component_id by,
                            const struct gl_range *range)
{
    return call_range(c, by, range, GL_CORE_CALL_RANGE);
}

uint64_t gl_component_count(struct gl_core *c, enum gl_component_id by,
                            const struct gl_range *range)
{
    return call_range(c, by, range, GL_CORE_CALL_COUNT);
}

uint64_t gl_component_list(struct gl_core *c, enum gl_component_id by,
                           const struct gl_listing *listing, const struct gl_core_view *view)
{
    struct gl_core_call *x = call(c, by, GL_CORE_CALL_LIST);

    GL_ASSERT(listing->limit > 0 && listing->limit <= GL_PAGE_MAX);
    GL_ASSERT(listing->kind.n > 0);
    x->listing = *listing;
    x->listing.kind = gl_str_dup(c->out->arena, listing->kind);
    x->listing.prefix = gl_str_dup(c->out->arena, listing->prefix);
    x->listing.after = gl_str_dup(c->out->arena, listing->after);
    x->view = view;
    return x->number;
}

uint64_t gl_component_time(struct gl_core *c, enum gl_component_id by)
{
    GL_ASSERT(c->shared);
    return call(c, by, GL_CORE_CALL_TIME)->number;
}

uint64_t gl_component_commit(struct gl_core *c, enum gl_component_id by, const struct gl_tx *tx)
{
    struct gl_core_call *x = call(c, by, GL_CORE_CALL_COMMIT);

    GL_ASSERT(tx->id == 0 && tx->writes_n > 0);
    GL_ASSERT(gl_str_eq(tx->session, c->session));
    x->tx = tx;
    return x->number;
}

uint64_t gl_component_restamp(struct gl_core *c, enum gl_component_id by, const struct gl_tx *tx)
{
    struct gl_core_call *x = call(c, by, GL_CORE_CALL_RESTAMP);

    GL_ASSERT(tx->id == 0 && tx->writes_n == 1 && tx->writes[0].type == GL_WRITE_PUT);
    x->tx = tx;
    return x->number;
}

uint64_t gl_component_measure(struct gl_core *c, enum gl_component_id by)
{
    return call(c, by, GL_CORE_CALL_MEASURE)->number;
}

uint64_t gl_component_files(struct gl_core *c, enum gl_component_id by,
                            const struct gl_core_files *files)
{
    struct gl_core_call *x = call(c, by, GL_CORE_CALL_FILES);
    gl_str *names = GL_NEW_ARRAY(c->out->arena, gl_str, files->names_n + 1);

    GL_ASSERT(files->age_ms >= 0);
    GL_ASSERT(GL_IMPLIES(files->type == GL_FILES_LIST_WORK, files->limit > 0));
    for (size_t i = 0; i < files->names_n; i++) {
        names[i] = gl_str_dup(c->out->arena, files->names[i]);
    }
    x->files = *files;
    x->files.names = names;
    return x->number;
}

uint64_t gl_component_expire(struct gl_core *c, enum gl_component_id by, gl_str job)
{
    struct gl_core_call *x = call(c, by, GL_CORE_CALL_EXPIRE);

    GL_ASSERT(job.n == GL_ULID_BYTES);
    x->job = gl_str_dup(c->out->arena, job);
    x->at = c->now;
    return x->number;
}

uint64_t gl_component_renew(struct gl_core *c, enum gl_component_id by)
{
    return call(c, by, GL_CORE_CALL_RENEW)->number;
}

uint64_t gl_component_sessions(struct gl_core *c, enum gl_component_id by)
{
    GL_ASSERT(c->shared);
    return call(c, by, GL_CORE_CALL_SESSIONS)->number;
}

uint64_t gl_component_declare(struct gl_core *c, enum gl_component_id by, gl_str session)
{
    struct gl_core_call *x = call(c, by, GL_CORE_CALL_DECLARE);

    GL_ASSERT(session.n > 0 && !gl_str_eq(session, c->session));
    GL_ASSERT(c->shared);
    x->session = gl_str_dup(c->out->arena, session);
    return x->number;
}

struct gl_tx *gl_component_tx(struct gl_core *c, const struct gl_guard *guards, size_t guards_n,
                              const struct gl_write *writes, size_t writes_n)
{
    struct gl_arena *a = c->out->arena;
    struct gl_tx *tx = GL_NEW(a, struct gl_tx);
    struct gl_guard *g = GL_NEW_ARRAY(a, struct gl_guard, guards_n + 1);
    struct gl_write *w = GL_NEW_ARRAY(a, struct gl_write, writes_n);

    GL_ASSERT(writes_n > 0);
    for (size_t i = 0; i < guards_n; i++) {
        g[i] = guards[i];
        g[i].kind = gl_str_dup(a, g[i].kind);
        g[i].id = gl_str_dup(a, g[i].id);
        g[i].owner = gl_str_dup(a, g[i].owner);
    }
    for (size_t i = 0; i < writes_n; i++) {
        GL_ASSERT(writes[i].kind.n > 0);
        w[i] = writes[i];
        w[i].kind = gl_str_dup(a, w[i].kind);
        w[i].id = gl_str_dup(a, w[i].id);
        w[i].owner = gl_str_dup(a, w[i].owner);
    }
    *tx = (struct gl_tx){.context = gl_str_dup(a, c->context),
                         .session = gl_str_dup(a, c->session),
                         .guards = g,
                         .guards_n = guards_n,
                         .writes = w,
                         .writes_n = writes_n};
    GL_ASSERT(tx->session.n > 0);
    return tx;
}

void gl_component_say(struct gl_core *c, gl_str line)
{
    struct gl_effect *e = gl_effect_add(c->out, GL_FX_SAY, 0);

    GL_ASSERT(line.n > 0);
    e->why = gl_str_dup(c->out->arena, line);
}
