/* leader.c - the owner of the record lease/leader is the leader.
 *
 * The lease is taken over like a job: by a transaction that is guarded on the death of the owner's
 * session and on the lease's revision, so of two candidates one wins. The lease itself is never
 * renewed; it is as good as the session that owns it. */
#include "core/cluster/leader.h"

#include "base/check.h"
#include "core/cluster/membership.h"
#include "core/component.h"

/* Temporary nodes do not lead: retention would stop each time such a node ends. */
static bool may_lead(const struct gl_core *c)
{
    return c->shared && !c->guest && !c->passive && c->exec_up;
}

static gl_ms due(const struct gl_core *c)
{
    return may_lead(c) && c->leader.call == 0 ? c->leader.due : INT64_MAX;
}

static void on_time(struct gl_core *c)
{
    struct gl_key key = {.kind = GL_S("lease"), .id = GL_S("leader")};

    GL_ASSERT(c->leader.call == 0);
    GL_ASSERT(c->shared);
    c->leader.due = INT64_MAX;
    c->leader.is_standing = false;
    c->leader.call = gl_component_get(c, GL_COMPONENT_LEADER, &key, 1);
    GL_ASSERT(c->leader.call == c->last_call);
}

static void take_lease(struct gl_core *c, const struct gl_event_record *lease)
{
    struct gl_guard guards[3] = {{.type = GL_GUARD_ALIVE, .owner = c->session}};
    struct gl_write write = {.type = GL_WRITE_PUT,
                             .kind = GL_S("lease"),
                             .id = GL_S("leader"),
                             .rev = lease->rev + 1,
                             .owner = c->session,
                             .token = lease->token + 1,
                             .live = true,
                             .value = GL_S("{}")};
    struct gl_tx *tx;
    size_t n = 1;

    GL_ASSERT(!c->leader.leads);
    GL_ASSERT(c->leader.call == 0);
    GL_ASSERT(c->shared);
    GL_ASSERT(!c->guest && !c->passive);
    if (lease->rev == 0) {
        guards[n++] =
            (struct gl_guard){.type = GL_GUARD_ABSENT, .kind = write.kind, .id = write.id};
    } else {
        guards[n++] = (struct gl_guard){.type = GL_GUARD_OWNED,
                                        .kind = write.kind,
                                        .id = write.id,
                                        .rev = lease->rev,
                                        .owner = lease->owner,
                                        .token = lease->token};
        guards[n++] = (struct gl_guard){.type = GL_GUARD_DEAD, .owner = lease->owner};
    }
    GL_ASSERT(n <= GL_COUNT(guards));
    tx = gl_component_tx(c, guards, GL_PLANT(74) ? 1 : n, &write, 1); /* planted: just taken */
    tx->confirm = true;
    c->leader.is_standing = true;
    c->leader.token = write.token;
    c->leader.call = gl_component_commit(c, GL_COMPONENT_LEADER, tx);
    GL_ASSERT(c->leader.call == c->last_call);
}

static void become_leader(struct gl_core *c)
{
    GL_ASSERT(!c->leader.is_standing);
    GL_ASSERT(c->leader.call == 0);
    GL_ASSERT(gl_components_are_on(c));
    c->leader.leads = true;
    c->leader.due = INT64_MAX;
}

static void on_taken(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_ANSWER);
    if (ev->answer.code == 0) { /* if the outcome is unknown, the next read will show it */
        become_leader(c);
        GL_TRACE(c->trace, NODE, .what = "leads");
        gl_component_say(c, GL_S("became leader: this node now runs retention"));
    }
}

static void on_read(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *lease = ev->answer.records.items;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    if (ev->answer.code != 0 || ev->answer.records.n == 0) {
        return;
    }
    if (lease->rev > 0 && gl_str_eq(lease->owner, c->session)) {
        c->leader.token = lease->token;
        become_leader(c);
    } else if (lease->rev == 0 || gl_membership_is_dead(c, lease->owner) || GL_PLANT(74)) {
        take_lease(c, lease);
    }
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    bool has_stood = c->leader.is_standing;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_LEADER);
    if (ev->answer.number != c->leader.call) {
        return;
    }
    c->leader.call = 0;
    c->leader.is_standing = false;
    if (!gl_components_are_on(c)) {
        return;
    }
    c->leader.due = c->now + c->renewal.ttl_ms / 3;
    if (has_stood) {
        on_taken(c, ev);
    } else {
        on_read(c, ev);
    }
}

void gl_leader_on_changed(struct gl_core *c)
{
    if (c->shared) {
        c->leader.leads = false;
        c->leader.due = c->now;
    }
}

/* ---- in a snapshot of the core ---- */

#define F(member, type) GL_FIELD(gl_leader_state, member, type, 0, "")

static const struct gl_field fields[] = {
    F(call, U64), F(is_standing, BOOL), F(leads, BOOL), F(due, I64), F(token, U64),
};
#undef F

static const struct gl_schema schema = {.name = "leader",
                                        .bytes = sizeof(struct gl_leader_state),
                                        .fields = fields,
                                        .fields_n = GL_COUNT(fields)};

static void save(const struct gl_core *c, struct gl_buf *out)
{
    gl_snapshot_put(out, "leader", &schema, &c->leader);
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    return gl_snapshot_get(l, &schema, &c->leader);
}

const struct gl_component gl_leader = {.name = "leader",
                                       .due = due,
                                       .on_time = on_time,
                                       .on_answer = on_answer,
                                       .save = save,
                                       .restore = restore};
