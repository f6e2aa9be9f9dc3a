/* peers.c - the other nodes of a shared store: who lives, who has died, who has room, who leads.
 *
 * Sessions are listed often enough to notice a deadline soon after it has passed. One that is past
 * it is declared dead, irrevocably, but only by a node whose own renewals have been good for a
 * whole TTL: after an outage of the store everybody gets the time to renew first.
 *
 * The leader is the owner of the record lease/leader. It is taken like a job: when its owner is
 * dead. Nothing depends on there being one at every moment. */
#include "node/node_state.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    DEAD_KEPT = 4096, /* ids of dead sessions remembered: they never come back */
    LATE_MS = 20,     /* after a deadline, to be on the safe side of it */
    LEAST_MS = 50,    /* between two listings */
    LINE_BYTES = 512,
    JUDGED_MAX = 64, /* sessions declared dead after one listing */
};

struct peer { /* in alive or dead; its id stands behind it */
    gl_str id;
    uint64_t heard;  /* of a dead one: the last listing that may not know of it */
    bool is_foreign; /* of a living one: it is of another stack or env scope */
};

struct gl_peers {
    struct gl_node *node;
    struct gl_store_req req;
    bool busy;
    gl_ms due;
    struct gl_map alive, dead;
    struct gl_arena arena; /* of one round */
    gl_str judged[JUDGED_MAX];
    size_t judged_n, judged_at;
    struct gl_event_record pools[GL_POOLS_MAX]; /* ours, with the others' free slots */
    struct gl_map offers; /* sets of pools that others offer, in the arena: cluster/offers.h */
    bool offers_unknown;  /* somebody does not say */
    uint64_t hunts;
    uint64_t taken_n;              /* jobs taken from dead nodes since the last line about it ... */
    char taken[GL_ULID_BYTES + 1]; /* ... and the last of them */
    uint64_t asked_n, listed_n;    /* listings begun, and the number of the last that has ended */
    uint64_t unsure;               /* a death was heard of during this listing; UINT64_MAX: none */

    struct gl_store_req lease_req;
    bool lease_busy;
    gl_ms lease_due;
    uint64_t token; /* of our leadership */
    struct gl_key lease_key;
    struct gl_arena lease_arena;
    struct gl_guard guards[3];
    struct gl_write write;
    struct gl_tx tx;
};

static struct peer *peer_new(gl_str id)
{
    struct peer *p = gl_mem_alloc(sizeof(*p) + id.n);

    memcpy(p + 1, id.p, id.n);
    p->id = (gl_str){.p = (const char *)(p + 1), .n = id.n};
    return p;
}

static void forget_all(struct gl_map *m)
{
    struct peer *p;

    for (size_t i = 0; (p = gl_map_next(m, &i)) != NULL;) {
        gl_mem_free(p);
    }
    gl_map_done(m);
    gl_map_init(m);
}

bool gl_peers_lives(const struct gl_node *n, gl_str session)
{
    return gl_map_find(&n->peers->alive, session) != NULL;
}

/* "node#incarnation.nonce" -> "node" */
static gl_str node_of(gl_str session)
{
    size_t n = session.n;

    while (n > 0 && session.p[n - 1] != '#') {
        n--;
    }
    return (gl_str){.p = session.p, .n = n > 0 ? n - 1 : 0};
}

/* Its death has been heard of since the others were last looked at: perhaps it died because its
 * node has begun its next life. */
static bool is_news(const struct gl_peers *p, gl_str session)
{
    const struct peer *dead = gl_map_find(&p->dead, session);

    return dead != NULL && dead->heard >= p->listed_n;
}

bool gl_peers_have(const struct gl_node *n, gl_str owner, bool runs)
{
    gl_str node = node_of(owner);
    const struct peer *p;

    if (gl_peers_lives(n, owner)) {
        return true;
    }
    if (!runs || owner.n == 0 || gl_str_eq(node, n->config.name) || GL_PLANT(30)) {
        return false; /* planted: what runs is anybody's */
    }
    if (is_news(n->peers, owner)) {
        return true; /* until we know: then it is looked for again */
    }
    for (size_t i = 0; (p = gl_map_next(&n->peers->alive, &i)) != NULL;) {
        if (gl_str_eq(node_of(p->id), node) && !p->is_foreign) {
            return true;
        }
    }
    return false;
}

bool gl_peers_is_own(const struct gl_node *n, gl_str session)
{
    return gl_str_eq(node_of(session), n->config.name);
}

bool gl_peers_mind(const struct gl_node *n, gl_str job, gl_str owner, bool runs)
{
    bool is_wanted = gl_str_eq(node_of(owner), n->config.name) || gl_requests_wait_for(n, job);

    return gl_peers_have(n, owner, runs) || (n->config.guest && (GL_PLANT(63) || !is_wanted));
}

bool gl_peers_is_dead(const struct gl_node *n, gl_str session)
{
    return gl_map_find(&n->peers->dead, session) != NULL;
}

/* `heard`: the last listing that may not know of it. */
static void note_dead(struct gl_node *n, gl_str session, uint64_t heard)
{
    struct gl_peers *p = n->peers;
    struct peer *was = gl_map_remove(&p->alive, session);
    struct peer *dead;

    gl_mem_free(was);
    if (gl_peers_is_dead(n, session)) {
        return;
    }
    if (gl_map_count(&p->dead) >= DEAD_KEPT) {
        forget_all(&p->dead);
    }
    dead = peer_new(session);
    dead->heard = heard;
    gl_map_add(&p->dead, dead->id, dead);
    GL_MARK(n->config.trace, "peers.dead");
    p->hunts |= GL_HUNT_RUNNING | GL_HUNT_READY | GL_HUNT_DUE;
}

void gl_peers_note_dead(struct gl_node *n, gl_str session)
{
    struct gl_peers *p = n->peers;

    note_dead(n, session, p->asked_n);
    if (is_news(p, session)) {
        p->unsure = p->asked_n;
        p->due = n->now;
    }
}

void gl_peers_on_changed(struct gl_node *n)
{
    struct gl_peers *p = n->peers;

    forget_all(&p->alive);
    forget_all(&p->dead);
    p->due = n->now;
    if (n->ports.store->ops->shared) {
        n->is_leader = false;
        p->lease_due = n->now;
    }
}

/* ---- what the core is told ---- */

static void tell(struct gl_node *n, const struct gl_event_record *pools, size_t pools_n)
{
    struct gl_peers *p = n->peers;
    struct gl_event ev = {.type = GL_EV_PEERS,
                          .context = n->config.context,
                          .number = p->hunts,
                          .records = {.items = (void *)pools, .n = pools_n}};

    p->hunts = 0;
    gl_node_feed(n, &ev);
}

void gl_peers_on_woken(struct gl_node *n)
{
    if (!n->config.passive && !n->config.guest) {
        n->peers->hunts |= GL_HUNT_READY;
        tell(n, NULL, 0);
    }
}

/* ---- what an operator is told ---- */

static void say(struct gl_node *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct gl_node *n, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list args;

    if (n->config.on_news == NULL) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args); /* a long line is cut */
    va_end(args);
    n->config.on_news(n->config.owner, line);
}

void gl_peers_on_taken(struct gl_node *n, gl_str job, gl_str from)
{
    struct gl_peers *p = n->peers;

    if (n->ports.store->ops->shared && job.n == GL_ULID_BYTES &&
        !gl_str_eq(node_of(from), n->config.name)) {
        p->taken_n++;
        memcpy(p->taken, job.p, GL_ULID_BYTES);
    }
}

static void say_taken(struct gl_node *n)
{
    struct gl_peers *p = n->peers;

    if (p->taken_n == 1) {
        say(n, "took over job %s of a dead node", p->taken);
    } else if (p->taken_n > 1) {
        say(n, "took over %llu jobs of dead nodes, the last of them %s",
            (unsigned long long)p->taken_n, p->taken);
    }
    p->taken_n = 0;
}

/* ---- who has room ---- */

static gl_str said(const struct gl_node *n, const struct gl_json *about, const char *key)
{
    return gl_json_str(about, gl_json_get(about, gl_json_root(about), key), &n->peers->arena);
}

static bool is_in_scope(const struct gl_node *n, const struct gl_json *about)
{
    return gl_str_eq(said(n, about, "stack"), n->config.stack) &&
           gl_str_eq(said(n, about, "env_scope"), n->config.env_scope);
}

static uint64_t number(const struct gl_json *j, gl_jnode object, const char *key)
{
    uint64_t value;

    return gl_json_u64(j, gl_json_get(j, object, key), &value) ? value : 0;
}

static void add_room(struct gl_node *n, const struct gl_json *about)
{
    struct gl_peers *p = n->peers;
    gl_jnode pools = gl_json_get(about, gl_json_root(about), "pools");

    if (!gl_str_is(said(n, about, "state"), "ready") || !gl_json_is(pools, GL_JSON_ARRAY)) {
        return;
    }
    for (gl_jnode e = gl_json_first(about, pools); e != NULL; e = gl_json_after(about, pools, e)) {
        gl_str name = gl_json_str(about, gl_json_get(about, e, "name"), &p->arena);
        uint64_t slots = number(about, e, "slots");
        uint64_t taken = number(about, e, "in_use") + number(about, e, "waiting");

        for (size_t i = 0; i < n->config.pools_n; i++) {
            if (gl_str_eq(p->pools[i].id, name) && slots > taken && slots <= GL_SLOTS_MAX) {
                p->pools[i].rev += slots - taken;
            }
        }
    }
}

/* ---- who offers which pools ---- */

/* A node that starts nothing for others offers them nothing. */
static bool is_offering(gl_str state)
{
    return gl_str_is(state, "ready") || gl_str_is(state, "starting") ||
           gl_str_is(state, GL_ROOM_STATE);
}

static void add_offer(struct gl_node *n, const struct gl_json *about)
{
    struct gl_peers *p = n->peers;
    gl_jnode pools = gl_json_get(about, gl_json_root(about), "pools");
    struct gl_buf out = {0};
    gl_str *set;

    if (!gl_json_is(pools, GL_JSON_ARRAY)) {
        p->offers_unknown = true;
        return;
    }
    for (gl_jnode e = gl_json_first(about, pools); e != NULL; e = gl_json_after(about, pools, e)) {
        gl_str name = gl_json_str(about, gl_json_get(about, e, "name"), &p->arena);

        gl_buf_fmt(&out, "%s%.*s:%llu", out.n > 0 ? "," : "", GL_STR_ARG(name),
                   (unsigned long long)number(about, e, "slots"));
    }
    if (gl_map_find(&p->offers, gl_buf_view(&out)) == NULL) {
        set = GL_NEW(&p->arena, gl_str);
        *set = gl_str_dup(&p->arena, gl_buf_view(&out));
        gl_map_add(&p->offers, *set, set);
    }
    gl_buf_done(&out);
}

/* Our pools with the others' free slots, then what the others offer. The latter is sorted, so that
 * the same nodes always look the same. */
static void tell_round(struct gl_peers *p)
{
    struct gl_node *n = p->node;
    size_t pools_n = n->config.pools_n, all_n = pools_n;
    struct gl_event_record *all =
        GL_NEW_ARRAY(&p->arena, struct gl_event_record, pools_n + gl_map_count(&p->offers) + 1);
    const gl_str *set;

    memcpy(all, p->pools, pools_n * sizeof(*all));
    for (size_t i = 0; (set = gl_map_next(&p->offers, &i)) != NULL;) {
        size_t at = all_n++;

        for (; at > pools_n && gl_str_cmp(*set, all[at - 1].value) < 0; at--) {
            all[at] = all[at - 1];
        }
        all[at] = (struct gl_event_record){.kind = GL_S("offers"), .value = *set};
    }
    if (p->offers_unknown) {
        all[all_n++] = (struct gl_event_record){.kind = GL_S("unknown")};
    }
    tell(n, all, all_n);
}

/* ---- who lives ---- */

static void round_ends(struct gl_peers *p)
{
    p->busy = false;
    say_taken(p->node);
    tell_round(p);
    gl_map_done(&p->offers);
    gl_map_init(&p->offers);
    gl_arena_reset(&p->arena);
}

static void judge_next(struct gl_peers *p);

static void on_judged(struct gl_store_req *req)
{
    struct gl_peers *p = req->owner;
    struct gl_node *n = p->node;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    if (req->status == 0 && req->session_dead) {
        GL_TRACE(n->config.trace, NODE, .what = "declared dead");
        say(n, "declared session %.*s dead: its time is over by the store's clock",
            GL_STR_ARG(p->judged[p->judged_at]));
        gl_peers_note_dead(n, p->judged[p->judged_at]);
    }
    p->judged_at++;
    judge_next(p);
    gl_node_rearm(n);
}

static void judge_next(struct gl_peers *p)
{
    struct gl_node *n = p->node;
    struct gl_store *s = n->ports.store;

    if (p->judged_at >= p->judged_n || n->stopping || n->lost || !gl_sessions_may_judge(n)) {
        round_ends(p);
        return;
    }
    p->req = (struct gl_store_req){.done = on_judged, .owner = p};
    n->outstanding++;
    s->ops->session_dead(s, &p->req, p->judged[p->judged_at], true);
}

static void look_at(struct gl_peers *p, const struct gl_session_info *s, gl_ms *next)
{
    struct gl_node *n = p->node;
    struct gl_json about;
    struct peer *peer;
    bool is_told, is_mate;

    if (gl_str_eq(s->id, n->session)) {
        return;
    }
    if (s->dead) {
        note_dead(n, s->id, p->listed_n - 1);
        return;
    }
    is_told = gl_json_parse(&about, s->about, GL_ABOUT_BYTES_MAX, &p->arena, NULL) == 0;
    is_mate = is_told && is_in_scope(n, &about);
    peer = peer_new(s->id);
    peer->is_foreign = is_told && !is_mate;
    if (gl_map_find(&p->alive, s->id) == NULL) {
        gl_map_add(&p->alive, peer->id, peer);
    } else {
        gl_mem_free(peer);
    }
    if (s->left_ms < 0) {
        if (p->judged_n < JUDGED_MAX) {
            p->judged[p->judged_n++] = gl_str_dup(&p->arena, s->id);
        }
    } else {
        if (is_told && gl_str_is(said(n, &about, "state"), GL_ROOM_STATE)) {
            gl_room_doubt(n);
        }
        if (is_mate) {
            add_room(n, &about);
        }
        if (is_mate && is_offering(said(n, &about, "state"))) {
            add_offer(n, &about);
        }
        p->offers_unknown |= !is_told;
        *next = s->left_ms + LATE_MS < *next ? s->left_ms + LATE_MS : *next;
    }
}

static void on_listed(struct gl_store_req *req)
{
    struct gl_peers *p = req->owner;
    struct gl_node *n = p->node;
    gl_ms next = n->ttl / 3;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    if (req->status != 0 || n->stopping || n->lost) {
        p->busy = false;
        p->due = n->now + next;
        gl_node_rearm(n);
        return;
    }
    forget_all(&p->alive);
    p->listed_n = p->asked_n;
    p->judged_n = p->judged_at = 0;
    gl_map_done(&p->offers);
    gl_map_init(&p->offers);
    p->offers_unknown = false;
    for (size_t i = 0; i < n->config.pools_n; i++) {
        p->pools[i] = (struct gl_event_record){.id = n->config.pools[i].name};
    }
    for (size_t i = 0; i < req->sessions_n; i++) {
        look_at(p, &req->sessions[i], &next);
    }
    p->due = n->now + (next > LEAST_MS ? next : LEAST_MS);
    if (p->unsure < p->listed_n) { /* now it is known who lives on */
        p->hunts |= GL_HUNT_RUNNING;
        p->unsure = UINT64_MAX;
    } else if (p->unsure != UINT64_MAX) {
        p->due = n->now;
    }
    judge_next(p);
    gl_node_rearm(n);
}

static void list(struct gl_node *n)
{
    struct gl_peers *p = n->peers;

    p->busy = true;
    p->due = INT64_MAX;
    p->asked_n++;
    p->req = (struct gl_store_req){.done = on_listed, .owner = p};
    n->outstanding++;
    n->ports.store->ops->session_list(n->ports.store, &p->req);
}

/* ---- who leads ---- */

static void on_elected(struct gl_store_req *req)
{
    struct gl_peers *p = req->owner;
    struct gl_node *n = p->node;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    p->lease_busy = false;
    p->lease_due = n->now + n->ttl / 3; /* one that is unknown shows itself then */
    if (req->status == 0 && !n->lost) {
        n->is_leader = true;
        p->token = p->write.token;
        p->lease_due = INT64_MAX;
        GL_TRACE(n->config.trace, NODE, .what = "leads");
        say(n, "leads: retention is this node's business now");
    }
    gl_node_rearm(n);
}

static void stand(struct gl_peers *p, const struct gl_record *lease)
{
    struct gl_node *n = p->node;
    size_t guards_n = 0;

    gl_arena_reset(&p->lease_arena);
    p->guards[guards_n++] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = n->session};
    if (lease->rev == 0) {
        p->guards[guards_n++] =
            (struct gl_guard){.type = GL_GUARD_ABSENT, .kind = GL_S("lease"), .id = GL_S("leader")};
    } else {
        gl_str owner = gl_str_dup(&p->lease_arena, lease->owner);

        p->guards[guards_n++] = (struct gl_guard){.type = GL_GUARD_OWNED,
                                                  .kind = GL_S("lease"),
                                                  .id = GL_S("leader"),
                                                  .rev = lease->rev,
                                                  .owner = owner,
                                                  .token = lease->token};
        p->guards[guards_n++] = (struct gl_guard){.type = GL_GUARD_DEAD, .owner = owner};
    }
    p->write = (struct gl_write){.type = GL_WRITE_PUT,
                                 .kind = GL_S("lease"),
                                 .id = GL_S("leader"),
                                 .rev = lease->rev + 1,
                                 .owner = n->session,
                                 .token = lease->token + 1,
                                 .live = true,
                                 .value = GL_S("{}")};
    p->tx = (struct gl_tx){.context = n->config.context,
                           .session = n->session,
                           .guards = p->guards,
                           .guards_n = guards_n,
                           .writes = &p->write,
                           .writes_n = 1,
                           .confirm = true};
    p->lease_req = (struct gl_store_req){.done = on_elected, .owner = p};
    n->outstanding++;
    n->ports.store->ops->commit(n->ports.store, &p->lease_req, &p->tx);
}

static void on_lease(struct gl_store_req *req)
{
    struct gl_peers *p = req->owner;
    struct gl_node *n = p->node;
    const struct gl_record *lease = req->records;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    p->lease_busy = false;
    p->lease_due = n->now + n->ttl / 3;
    if (req->status == 0 && !n->stopping && !n->lost && lease->rev > 0 &&
        gl_str_eq(lease->owner, n->session)) {
        n->is_leader = true;
        p->token = lease->token;
        p->lease_due = INT64_MAX;
    } else if (req->status == 0 && !n->stopping && !n->lost &&
               (lease->rev == 0 || gl_peers_is_dead(n, lease->owner))) {
        p->lease_busy = true;
        stand(p, lease);
    }
    gl_node_rearm(n);
}

static void ask_for_leader(struct gl_node *n)
{
    struct gl_peers *p = n->peers;

    p->lease_busy = true;
    p->lease_due = INT64_MAX;
    p->lease_key = (struct gl_key){.kind = GL_S("lease"), .id = GL_S("leader")};
    p->lease_req = (struct gl_store_req){.done = on_lease, .owner = p};
    n->outstanding++;
    n->ports.store->ops->get(n->ports.store, &p->lease_req, n->config.context, &p->lease_key, 1);
}

/* ---- life ---- */

void gl_peers_init(struct gl_node *n)
{
    n->peers = gl_mem_alloc(sizeof(*n->peers));
    n->peers->node = n;
    n->peers->unsure = UINT64_MAX;
    gl_map_init(&n->peers->alive);
    gl_map_init(&n->peers->dead);
    gl_map_init(&n->peers->offers);
}

void gl_peers_done(struct gl_node *n)
{
    struct gl_peers *p = n->peers;

    forget_all(&p->alive);
    forget_all(&p->dead);
    gl_map_done(&p->alive);
    gl_map_done(&p->dead);
    gl_map_done(&p->offers);
    gl_arena_done(&p->arena);
    gl_arena_done(&p->lease_arena);
    gl_mem_free(p);
    n->peers = NULL;
}

static bool is_on(const struct gl_node *n)
{
    return n->ports.store->ops->shared && n->session.n > 0 && !n->stopping && !n->lost;
}

/* Those who come for a moment lead nobody. */
static bool may_lead(const struct gl_node *n)
{
    return !n->config.guest && !n->config.passive && n->exec_up;
}

gl_ms gl_peers_due(const struct gl_node *n)
{
    const struct gl_peers *p = n->peers;
    gl_ms due = INT64_MAX;

    if (is_on(n)) {
        due = p->busy ? due : p->due;
        due = !p->lease_busy && may_lead(n) && p->lease_due < due ? p->lease_due : due;
    }
    return due;
}

void gl_peers_on_time(struct gl_node *n)
{
    struct gl_peers *p = n->peers;

    if (!is_on(n)) {
        return;
    }
    if (!p->busy && p->due <= n->now) {
        list(n);
    }
    if (!p->lease_busy && may_lead(n) && p->lease_due <= n->now) {
        ask_for_leader(n);
    }
}
