/* membership.c - lists the sessions of a shared store and declares the expired ones dead.
 *
 * One call is in flight at a time: a listing, then one declaration after another. Every listing
 * replaces what was known about living sessions; dead ones are only ever added. */
#include "core/cluster/membership.h"

#include "base/check.h"
#include "core/cluster/node_pools.h"
#include "core/cluster/offers.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/rebalance.h"
#include "core/cluster/renewal.h"
#include "core/cluster/session.h"
#include "core/cluster/store_full.h"
#include "core/component.h"

enum {
    DEAD_KEPT = 4096,  /* dead sessions remembered */
    LATE_MS = 20,      /* a listing comes this long after a deadline, so that it has passed */
    LEAST_MS = 50,     /* between two listings */
    DECLARED_MAX = 64, /* sessions declared dead after one listing */
};

struct gl_peer {
    gl_str id;       /* belongs to the pool */
    uint64_t heard;  /* dead: listings up to this one may not know of the death */
    bool is_foreign; /* alive: of another stack or env scope */
    bool is_over;    /* alive: its deadline has passed, so it is to be declared dead */
};

static struct gl_peer *add(struct gl_core *c, struct gl_map *to, gl_str id)
{
    struct gl_peer *p = gl_pool_alloc(&c->mem, sizeof(*p));

    *p = (struct gl_peer){0};
    gl_core_set(c, &p->id, id);
    gl_map_add(to, p->id, p);
    return p;
}

static void drop(struct gl_core *c, struct gl_peer *p)
{
    gl_core_set(c, &p->id, (gl_str){0});
    gl_pool_free(&c->mem, p, sizeof(*p));
}

static void forget_all(struct gl_core *c, struct gl_map *m)
{
    struct gl_peer *p;

    for (size_t i = 0; (p = gl_map_next(m, &i)) != NULL;) {
        drop(c, p);
    }
    gl_map_done(m);
    gl_map_init(m);
    GL_ASSERT(gl_map_count(m) == 0);
}

void gl_membership_init(struct gl_core *c)
{
    GL_ASSERT(c->peers.asked_n == 0);
    GL_ASSERT(c->peers.call == 0);
    c->peers.unsure = UINT64_MAX;
    gl_map_init(&c->peers.alive);
    gl_map_init(&c->peers.dead);
}

void gl_membership_done(struct gl_core *c)
{
    forget_all(c, &c->peers.alive);
    forget_all(c, &c->peers.dead);
    gl_map_done(&c->peers.alive);
    gl_map_done(&c->peers.dead);
}

/* ---- who owns it? ---- */

/* "node#incarnation.nonce" -> "node" */
static gl_str node_of(gl_str session)
{
    size_t n = session.n;

    while (n > 0 && session.p[n - 1] != '#') {
        n--;
    }
    GL_ASSERT(n <= session.n);
    GL_ASSERT(GL_IMPLIES(n > 0, session.p[n - 1] == '#'));
    return (gl_str){.p = session.p, .n = n > 0 ? n - 1 : 0};
}

bool gl_membership_lives(const struct gl_core *c, gl_str session)
{
    return gl_map_find(&c->peers.alive, session) != NULL;
}

bool gl_membership_is_dead(const struct gl_core *c, gl_str session)
{
    return gl_map_find(&c->peers.dead, session) != NULL;
}

bool gl_membership_is_own(const struct gl_core *c, gl_str session)
{
    return gl_str_eq(node_of(session), c->node);
}

/* Did we learn of its death only after the last listing? Then its node may have restarted with a
 * new session that we do not know yet. */
static bool died_since_listing(const struct gl_core *c, gl_str session)
{
    const struct gl_peer *dead = gl_map_find(&c->peers.dead, session);

    GL_ASSERT(c->peers.listed_n <= c->peers.asked_n);
    return dead != NULL && dead->heard >= c->peers.listed_n;
}

bool gl_membership_owned_elsewhere(const struct gl_core *c, gl_str owner, bool runs)
{
    const struct gl_peer *p;

    if (gl_membership_lives(c, owner)) {
        return true;
    }
    if (!runs || owner.n == 0 || gl_membership_is_own(c, owner) || GL_PLANT(30)) {
        return false; /* planted: running attempts do not matter */
    }
    if (died_since_listing(c, owner)) {
        return true; /* until the next listing, which triggers another orphan scan */
    }
    for (size_t i = 0; (p = gl_map_next(&c->peers.alive, &i)) != NULL;) {
        if (gl_str_eq(node_of(p->id), node_of(owner)) && !p->is_foreign) {
            return true;
        }
    }
    return false;
}

bool gl_membership_must_not_take(const struct gl_core *c, gl_str owner, bool runs, bool is_wanted)
{
    bool may_take = !c->guest || (!GL_PLANT(63) && (gl_membership_is_own(c, owner) || is_wanted));

    return gl_membership_owned_elsewhere(c, owner, runs) || !may_take;
}

/* ---- deaths ---- */

static void request_orphan_scan(struct gl_core *c, uint8_t parts)
{
    GL_ASSERT(parts != 0);
    GL_ASSERT(c->shared);
    c->sweep.orphan_parts |= parts;
    c->sweep.orphans_due = c->now;
}

/* `heard`: listings up to this one may not know of the death. */
static void note_dead(struct gl_core *c, gl_str session, uint64_t heard)
{
    struct gl_membership_state *p = &c->peers;
    struct gl_peer *was = gl_map_remove(&p->alive, session);

    GL_ASSERT(heard <= p->asked_n);
    if (was != NULL) {
        drop(c, was);
    }
    if (gl_membership_is_dead(c, session)) {
        return;
    }
    if (gl_map_count(&p->dead) >= DEAD_KEPT) {
        forget_all(c, &p->dead);
    }
    add(c, &p->dead, session)->heard = heard;
    GL_MARK(c->trace, "peers.dead");
    gl_offers_on_death(c, session);
    request_orphan_scan(c, GL_ORPHAN_SCAN_RUNNING | GL_ORPHAN_SCAN_READY | GL_ORPHAN_SCAN_DUE);
    GL_ASSERT(gl_map_count(&p->dead) <= DEAD_KEPT);
    GL_ASSERT(gl_membership_is_dead(c, session));
    GL_ASSERT(!gl_membership_lives(c, session));
}

void gl_membership_note_dead(struct gl_core *c, gl_str session)
{
    struct gl_membership_state *p = &c->peers;

    if (!c->shared || gl_membership_is_dead(c, session)) {
        return;
    }
    note_dead(c, session, p->asked_n);
    if (died_since_listing(c, session)) {
        p->unsure = p->asked_n;
        p->due = c->now;
    }
    GL_ASSERT(gl_map_count(&c->peers.dead) > 0);
}

void gl_membership_on_given(struct gl_core *c)
{
    if (c->shared && !c->passive && !c->guest) {
        request_orphan_scan(c, GL_ORPHAN_SCAN_READY);
    }
}

void gl_membership_on_changed(struct gl_core *c)
{
    forget_all(c, &c->peers.alive);
    forget_all(c, &c->peers.dead);
    c->peers.due = c->now;
    GL_ASSERT(gl_map_count(&c->peers.alive) == 0);
    GL_ASSERT(gl_map_count(&c->peers.dead) == 0);
}

/* ---- declaring sessions dead, one at a time ---- */

static void declare_next(struct gl_core *c)
{
    const struct gl_peer *p;

    GL_ASSERT(c->peers.call == 0);
    if (!gl_renewal_may_declare_dead(c)) {
        return;
    }
    for (size_t i = 0; (p = gl_map_next(&c->peers.alive, &i)) != NULL;) {
        if (p->is_over) {
            c->peers.is_declaring = true;
            c->peers.call = gl_component_declare(c, GL_COMPONENT_PEERS, p->id);
            GL_ASSERT(c->peers.call == c->last_call);
            return;
        }
    }
}

static void on_declared(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_peer *p = gl_map_find(&c->peers.alive, ev->answer.session);

    GL_ASSERT(c->peers.is_declaring);
    GL_ASSERT(c->peers.call == 0);
    if (p != NULL) {
        p->is_over = false;
    }
    if (ev->answer.code == 0 && ev->answer.is_dead) {
        GL_TRACE(c->trace, NODE, .what = "declared dead");
        gl_component_say(c, gl_str_fmt(c->out->arena,
                                       "declared session %.*s dead: it expired by the store's "
                                       "clock",
                                       GL_STR_ARG(ev->answer.session)));
        gl_membership_note_dead(c, ev->answer.session);
    }
    declare_next(c);
}

/* ---- listing ---- */

static void note_listed(struct gl_core *c, const struct gl_event_peer *s, size_t *over_n)
{
    struct gl_peer *p;

    GL_ASSERT(c->peers.listed_n > 0);
    GL_ASSERT(!gl_str_eq(s->id, c->session));
    if (s->dead) {
        note_dead(c, s->id, c->peers.listed_n - 1);
        return;
    }
    p = gl_map_find(&c->peers.alive, s->id);
    p = p != NULL ? p : add(c, &c->peers.alive, s->id);
    p->is_foreign = s->is_told && !gl_session_in_scope(c, s->stack, s->env_scope);
    p->is_over = s->left_ms < 0 && (*over_n)++ < DECLARED_MAX;
    if (s->left_ms >= 0 && s->is_told && gl_str_is(s->state, GL_STATE_NO_ROOM)) {
        gl_store_full_suspect(c);
    }
}

/* When to list sessions again: soon after the next deadline, at the latest after a third of the
 * TTL.
 */
static gl_ms next_listing(const struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_peer *all = ev->answer.sessions.items;
    gl_ms next = c->renewal.ttl_ms / 3;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(c->renewal.ttl_ms > 0);
    for (size_t i = 0; i < ev->answer.sessions.n; i++) {
        bool is_next = !all[i].dead && all[i].left_ms >= 0 && all[i].left_ms + LATE_MS < next &&
                       !gl_str_eq(all[i].id, c->session);

        next = is_next ? all[i].left_ms + LATE_MS : next;
    }
    GL_ASSERT(next >= 0);
    GL_ASSERT(next <= c->renewal.ttl_ms / 3);
    return c->now + (next > LEAST_MS ? next : LEAST_MS);
}

static void on_listed(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_peer *all = ev->answer.sessions.items;
    struct gl_membership_state *p = &c->peers;
    size_t over_n = 0;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(!c->peers.is_declaring);
    GL_ASSERT(c->peers.call == 0);
    if (ev->answer.code != 0) {
        p->due = c->now + c->renewal.ttl_ms / 3;
        return;
    }
    forget_all(c, &p->alive);
    p->listed_n = p->asked_n;
    for (size_t i = 0; i < ev->answer.sessions.n; i++) {
        if (!gl_str_eq(all[i].id, c->session)) {
            note_listed(c, &all[i], &over_n);
        }
    }
    gl_rebalance_on_listed(c, ev);
    gl_node_pools_on_listed(c, ev);
    gl_other_nodes_on_listed(c, ev);
    p->due = next_listing(c, ev);
    if (p->unsure < p->listed_n) { /* now we know which nodes have a new session */
        request_orphan_scan(c, GL_ORPHAN_SCAN_RUNNING);
        p->unsure = UINT64_MAX;
    } else if (p->unsure != UINT64_MAX) {
        p->due = c->now;
    }
    GL_ASSERT(p->due >= c->now);
    declare_next(c);
}

static gl_ms due(const struct gl_core *c)
{
    return c->shared && c->peers.call == 0 ? c->peers.due : INT64_MAX;
}

static void on_time(struct gl_core *c)
{
    GL_ASSERT(c->shared);
    GL_ASSERT(c->peers.call == 0);
    c->peers.due = INT64_MAX;
    c->peers.asked_n++;
    c->peers.is_declaring = false;
    c->peers.call = gl_component_sessions(c, GL_COMPONENT_PEERS);
    GL_ASSERT(c->peers.call == c->last_call);
    GL_ASSERT(c->peers.asked_n > c->peers.listed_n);
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_PEERS);
    if (ev->answer.number != c->peers.call) {
        return;
    }
    c->peers.call = 0;
    if (!gl_components_are_on(c)) {
        return;
    }
    if (c->peers.is_declaring) {
        on_declared(c, ev);
    } else {
        on_listed(c, ev);
    }
}

/* ---- in a snapshot of the core ---- */

#define F(member, type) GL_FIELD(gl_peer, member, type, 0, "")

static const struct gl_field peer_fields[] = {
    F(id, STR),
    F(heard, U64),
    F(is_foreign, BOOL),
    F(is_over, BOOL),
};
#undef F

static const struct gl_schema peer_schema = {.name = "peer",
                                             .bytes = sizeof(struct gl_peer),
                                             .fields = peer_fields,
                                             .fields_n = GL_COUNT(peer_fields)};

struct saved_peers {
    uint64_t call, asked_n, listed_n, unsure;
    gl_ms due;
    bool is_declaring;
    struct gl_items alive, dead; /* struct gl_peer */
};

#define F(member, type) GL_FIELD(saved_peers, member, type, 0, "")

static const struct gl_field peers_fields[] = {
    F(call, U64),
    F(asked_n, U64),
    F(listed_n, U64),
    F(unsure, U64),
    F(due, I64),
    F(is_declaring, BOOL),
    GL_FIELD_SUB(saved_peers, alive, LIST, &peer_schema, 0, ""),
    GL_FIELD_SUB(saved_peers, dead, LIST, &peer_schema, 0, ""),
};
#undef F

GL_SNAPSHOT_SCHEMA(peers);

static struct gl_items copy_peers(const struct gl_map *m, struct gl_arena *a)
{
    struct gl_peer *all = GL_NEW_ARRAY(a, struct gl_peer, gl_map_count(m) + 1);
    struct gl_items ret = {.items = all};
    const struct gl_peer *p;

    for (size_t i = 0; (p = gl_map_next(m, &i)) != NULL;) {
        all[ret.n++] = *p;
    }
    GL_ASSERT(ret.n == gl_map_count(m));
    return ret;
}

static void save(const struct gl_core *c, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_membership_state *p = &c->peers;
    struct saved_peers s = {.call = p->call,
                            .asked_n = p->asked_n,
                            .listed_n = p->listed_n,
                            .unsure = p->unsure,
                            .due = p->due,
                            .is_declaring = p->is_declaring,
                            .alive = copy_peers(&p->alive, &a),
                            .dead = copy_peers(&p->dead, &a)};

    gl_snapshot_put(out, "peers", &peers_schema, &s);
}

static int fill(struct gl_core *c, struct gl_snapshot_line *l, struct gl_map *to,
                const struct gl_items *from)
{
    const struct gl_peer *all = from->items;

    for (size_t i = 0; i < from->n; i++) {
        struct gl_peer *p;

        if (all[i].id.n == 0 || gl_map_find(to, all[i].id) != NULL) {
            return gl_snapshot_bad(l, "a session has no id, or appears twice");
        }
        p = add(c, to, all[i].id);
        p->heard = all[i].heard;
        p->is_foreign = all[i].is_foreign;
        p->is_over = all[i].is_over;
    }
    return 0;
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_membership_state *p = &c->peers;
    struct saved_peers s;
    int rc = gl_snapshot_get(l, &peers_schema, &s);

    if (rc == 0) {
        p->call = s.call;
        p->asked_n = s.asked_n;
        p->listed_n = s.listed_n;
        p->unsure = s.unsure;
        p->due = s.due;
        p->is_declaring = s.is_declaring;
        rc = fill(c, l, &p->alive, &s.alive);
    }
    return rc == 0 ? fill(c, l, &p->dead, &s.dead) : rc;
}

const struct gl_component gl_membership = {.name = "peers",
                                           .due = due,
                                           .on_time = on_time,
                                           .on_answer = on_answer,
                                           .save = save,
                                           .restore = restore};
