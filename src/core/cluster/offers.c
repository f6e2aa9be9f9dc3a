/* offers.c - looks at the records of offered attempts, and withdraws offers.
 *
 * Three kinds of calls may be in flight: a scan of the index of results followed by a read of the
 * records it names (`call`); a read of the records of offers whose time has come (`look_call`); and
 * withdrawals, each with its own call. */
#include "core/cluster/offers.h"

#include "base/check.h"
#include "core/cluster/membership.h"
#include "core/cluster/other_nodes.h"
#include "core/component.h"
#include "core/flow/txn.h"
#include "core/recovery/attempts.h"
#include "core/recovery/safety.h"
#include "core/scheduling/slots.h"
#include "model/offer.h"

enum {
    PAGE = 128,            /* results, or offers, read at a time */
    SCAN_MS = 1000,        /* between two scans of the index of results */
    OPEN_MS = 1000,        /* between two looks at an offer that has not been taken, ... */
    TAKEN_MS = 5000,       /* ... that has been taken, ... */
    INHERITED_MS = 1000,   /* ... and that was taken under an earlier owner, to whom it reports */
    UNREADABLE_MS = 15000, /* a damaged record is given up after this and twice the grace */
    PATIENCE_MS = 2000,    /* an offer is withdrawn after this if another node has free slots */
};

struct gl_offer {
    struct gl_heap_item timer; /* in offers->timers, by `look_at` */
    struct gl_step *step;
    gl_ms look_at; /* INT64_MAX: a call is in flight */
    gl_ms made_at; /* when this node made or inherited it */
    uint64_t call; /* the look or the withdrawal in flight; 0: none */
    bool is_withdrawing;
    gl_str session;    /* that has taken it, as far as known; "": none */
    gl_str reports_to; /* the node in whose index the result is, as its record says; "": ours */
    gl_ms unreadable_since; /* its record has been damaged since then; 0: it is not */
    uint64_t listing; /* the listing that must show that session, if it is unknown; 0: it is not */
};

#define F(member, type) GL_FIELD(gl_offer, member, type, 0, "")

static const struct gl_field offer_fields[] = {
    F(look_at, I64), F(made_at, I64),    F(call, U64),    F(is_withdrawing, BOOL),
    F(session, STR), F(reports_to, STR), F(listing, U64), F(unreadable_since, I64),
};
#undef F

static const struct gl_schema offer_schema = {.name = "offer",
                                              .bytes = sizeof(struct gl_offer),
                                              .fields = offer_fields,
                                              .fields_n = GL_COUNT(offer_fields)};

static bool looked_at_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_offer *x = GL_CONTAINER(a, struct gl_offer, timer);
    const struct gl_offer *y = GL_CONTAINER(b, struct gl_offer, timer);
    int by_job;

    if (x->look_at != y->look_at) {
        return x->look_at < y->look_at;
    }
    by_job = gl_str_cmp(x->step->job->id, y->step->job->id);
    GL_ASSERT(GL_IMPLIES(by_job == 0, x == y || x->step->number != y->step->number));
    return by_job != 0 ? by_job < 0 : x->step->number < y->step->number;
}

void gl_offers_init(struct gl_core *c)
{
    gl_heap_init(&c->made.timers, looked_at_before);
    c->made.due = INT64_MAX;
    GL_ASSERT(c->made.call == 0);
    GL_ASSERT(c->made.look_call == 0);
    GL_ASSERT(c->made.timers.n == 0);
}

void gl_offers_done(struct gl_core *c)
{
    GL_ASSERT(c->made.timers.n == 0); /* they have gone with their steps */
    gl_heap_done(&c->made.timers);
    gl_core_set(c, &c->made.after_id, (gl_str){0});
    GL_ASSERT(c->made.after_id.n == 0);
}

static void look_at(struct gl_core *c, struct gl_offer *o, gl_ms at)
{
    GL_ASSERT(at >= c->now);
    GL_ASSERT((at == INT64_MAX) == (o->call != 0));
    GL_ASSERT(o->step->offer == o);
    GL_ASSERT(gl_heap_has(&o->timer));
    gl_heap_remove(&c->made.timers, &o->timer);
    o->look_at = at;
    gl_heap_push(&c->made.timers, &o->timer);
    GL_ASSERT(gl_heap_has(&o->timer));
}

static struct gl_offer *offer_new(struct gl_core *c, struct gl_step *st, gl_ms look)
{
    struct gl_offer *o = gl_pool_alloc(&c->mem, sizeof(*o));

    GL_ASSERT(st->offer == NULL);
    GL_ASSERT(st->r.is_elsewhere);
    GL_ASSERT(st->r.node.n > 0);
    o->step = st;
    o->look_at = look;
    o->made_at = c->now;
    st->offer = o;
    gl_heap_push(&c->made.timers, &o->timer);
    if (c->made.due == INT64_MAX && c->made.call == 0) {
        c->made.due = c->now + SCAN_MS;
    }
    GL_ASSERT(gl_heap_has(&o->timer));
    GL_ASSERT(GL_IMPLIES(c->made.due == INT64_MAX, c->made.call != 0));
    return o;
}

static void use_slots(struct gl_core *c, const struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);

    GL_ASSERT(st->r.is_elsewhere);
    GL_ASSERT(spec->slots > 0);
    gl_other_nodes_use(c, st->r.node, spec->pool, spec->slots);
}

void gl_offers_forget(struct gl_core *c, struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_offer *o = st->offer;

    if (o == NULL) {
        return;
    }
    GL_ASSERT(o->step == st);
    GL_ASSERT(st->r.is_elsewhere);
    GL_ASSERT(st->r.node.n > 0);
    GL_ASSERT(gl_heap_has(&o->timer));
    gl_other_nodes_unuse(c, st->r.node, spec->pool, spec->slots);
    gl_heap_remove(&c->made.timers, &o->timer);
    gl_core_disown(c, &offer_schema, o);
    gl_pool_free(&c->mem, o, sizeof(*o));
    st->offer = NULL;
}

/* ---- what the job's transactions write ---- */

static gl_str id_of(const struct gl_step *st, struct gl_arena *a)
{
    GL_ASSERT(st->job->id.n == GL_ULID_BYTES);
    GL_ASSERT(st->r.step_id.n > 0);
    GL_ASSERT(st->r.attempt_count > 0);
    return gl_str_fmt(a, "%.*s/%.*s:attempt:%u", GL_STR_ARG(st->job->id), GL_STR_ARG(st->r.step_id),
                      st->r.attempt_count);
}

gl_str gl_offers_wake(struct gl_core *c, gl_str word, gl_str node)
{
    gl_str one = gl_offer_index(c->out->arena, GL_OFFERS_WORD, node);

    GL_ASSERT(node.n > 0);
    return word.n == 0 || gl_str_eq(word, one) ? one : GL_S(GL_OFFERS_WORD);
}

static void put_entry(struct gl_core *c, struct gl_step *st)
{
    struct gl_arena *a = c->out->arena;

    GL_ASSERT(st->r.is_elsewhere);
    gl_txn_write(c, st->job, GL_WRITE_INDEX, gl_offer_index(a, "offers", st->r.node), id_of(st, a))
        ->score = st->r.attempt_at;
    st->job->wakes = gl_offers_wake(c, st->job->wakes, st->r.node);
    GL_ASSERT(st->job->wakes.n > 0);
}

void gl_offers_make(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(!gl_step_is_unit(st));
    GL_ASSERT(c->shared);
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    (void)offer_new(c, st, c->now + OPEN_MS);
    use_slots(c, st);
    put_entry(c, st);
    c->counts.offers_made++;
    GL_TRACE(c->trace, EXEC, .job = st->job->id, .step = st->r.step_id, .token = st->job->token,
             .number = st->r.attempt_count, .what = "offered");
    GL_ASSERT(st->offer->call == 0);
    GL_ASSERT(st->offer->look_at > c->now);
}

void gl_offers_add(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(c->shared);
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_MARK(c->trace, "offers.inherited");
    (void)offer_new(c, st, c->now);
    use_slots(c, st);
    GL_ASSERT(st->offer->look_at == c->now);
    GL_ASSERT(st->offer->session.n == 0);
}

void gl_offers_look(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->offer != NULL);
    GL_ASSERT(st->offer->step == st);
    if (st->offer->call == 0) {
        look_at(c, st->offer, c->now);
    }
    GL_ASSERT(GL_IMPLIES(st->offer->call == 0, st->offer->look_at <= c->now));
}

void gl_offers_stop(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_ASSERT(st->r.is_elsewhere);
    GL_ASSERT(st->offer != NULL);
    GL_ASSERT(st->r.stopping != GL_STOP_NONE);
    put_entry(c, st);
    gl_offers_look(c, st); /* if it has not been taken, it is withdrawn */
}

void gl_offers_end(struct gl_core *c, struct gl_step *st)
{
    struct gl_arena *a = c->out->arena;
    gl_str id = id_of(st, a);
    const gl_str indexes[] = {
        gl_offer_index(a, "offers", st->r.node), gl_offer_index(a, "taken", st->r.node),
        gl_offer_index(a, "results",
                       st->offer != NULL && st->offer->reports_to.n > 0 ? st->offer->reports_to
                                                                        : c->node)};

    GL_ASSERT(st->r.is_elsewhere);
    GL_ASSERT(st->r.node.n > 0);
    GL_ASSERT(GL_IMPLIES(st->offer != NULL, st->offer->step == st));
    for (size_t i = 0; i < GL_COUNT(indexes); i++) {
        gl_txn_write(c, st->job, GL_WRITE_UNINDEX, indexes[i], id)->score = st->r.attempt_at;
    }
    if (!GL_PLANT(110)) { /* planted: the record stays */
        (void)gl_txn_write(c, st->job, GL_WRITE_DELETE, GL_S("taken"), id);
    }
    gl_offers_forget(c, st);
    st->r.is_elsewhere = st->is_orphaned = false;
    GL_ASSERT(!st->r.is_elsewhere);
    GL_ASSERT(!st->is_orphaned);
}

/* ---- what the records say ---- */

/* Is the session that took it dead, with no newer session of its node that answers for it? */
static bool is_lost(struct gl_core *c, struct gl_offer *o)
{
    const struct gl_membership_state *p = &c->peers;

    GL_ASSERT(o->session.n > 0);
    GL_ASSERT(o->call == 0);
    GL_ASSERT(p->listed_n <= p->asked_n);
    if (gl_membership_is_own(c, o->session) || gl_membership_owned_elsewhere(c, o->session, true)) {
        o->listing = 0;
        return false;
    }
    if (gl_membership_is_dead(c, o->session)) {
        return true;
    }
    if (o->listing == 0) { /* it may be so new that no listing has shown it yet */
        o->listing = p->asked_n + 1;
    }
    GL_ASSERT(o->listing > 0);
    return p->listed_n >= o->listing;
}

/* Nobody answers for the attempt any more. The transaction that says so guards on that, and on the
 * record being as it was read: a result that came just before the death still counts. */
static void give_up(struct gl_core *c, struct gl_offer *o, uint64_t rev)
{
    struct gl_step *st = o->step;

    GL_ASSERT(rev > 0);
    GL_ASSERT(st->offer == o);
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    GL_MARK(c->trace, "offers.lost");
    c->counts.offers_lost++;
    if (o->session.n > 0) {
        gl_txn_guard(c, st->job, GL_GUARD_DEAD, GL_S("session"), o->session)->owner =
            gl_str_dup(c->out->arena, o->session);
    }
    gl_txn_guard(c, st->job, GL_GUARD_AT, GL_S("taken"), id_of(st, c->out->arena))->rev = rev;
    st->is_orphaned = true;
    gl_safety_node_died(c, st);
    GL_ASSERT(GL_IMPLIES(st->r.status == GL_STEP_RUNNING, st->offer != NULL));
}

static void on_running(struct gl_core *c, struct gl_offer *o, const struct gl_taken_record *r,
                       uint64_t rev)
{
    bool reports_to_us = gl_str_eq(gl_offer_node_of(r->owner), c->node);

    GL_ASSERT(r->state == GL_TAKEN_RUNNING);
    GL_ASSERT(o->call == 0);
    GL_ASSERT(o->step->r.is_elsewhere);
    gl_core_set(c, &o->session, r->session);
    if (is_lost(c, o)) {
        give_up(c, o, rev);
        return;
    }
    look_at(c, o, c->now + (o->listing != 0 || !reports_to_us ? INHERITED_MS : TAKEN_MS));
}

static void withdraw(struct gl_core *c, struct gl_offer *o)
{
    struct gl_job *j = o->step->job;
    gl_str id = id_of(o->step, c->out->arena);
    struct gl_taken_record r = {.state = GL_TAKEN_WITHDRAWN,
                                .session = c->session,
                                .node = c->node,
                                .at = o->step->r.attempt_at};
    struct gl_guard guards[] = {
        {.type = GL_GUARD_OWNED,
         .kind = GL_S("job"),
         .id = j->id,
         .owner = c->session,
         .token = j->token},
        {.type = GL_GUARD_ABSENT, .kind = GL_S("taken"), .id = id},
    };
    struct gl_write write = {.type = GL_WRITE_PUT,
                             .kind = GL_S("taken"),
                             .id = id,
                             .rev = 1,
                             .value = gl_txn_encode(c->out->arena, &gl_taken_schema, &r)};

    GL_ASSERT(o->call == 0);
    GL_ASSERT(!o->is_withdrawing);
    GL_ASSERT(o->step->r.status == GL_STEP_RUNNING);
    GL_ASSERT(gl_job_is_mine(c, j));
    GL_ASSERT(j->inflight_n == 0);
    GL_MARK(c->trace, "offers.withdrawn");
    o->is_withdrawing = true;
    o->call = gl_component_commit(
        c, GL_COMPONENT_OFFERS,
        gl_component_tx(c, guards, GL_PLANT(112) ? 1 : GL_COUNT(guards), &write, 1));
    GL_ASSERT(o->call == c->last_call);
    look_at(c, o, INT64_MAX); /* planted: also if it has been taken */
}

/* It has not been taken. Is there any point in waiting on? */
static void on_open(struct gl_core *c, struct gl_offer *o)
{
    const struct gl_step *st = o->step;
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    const struct gl_place_node *node = gl_other_nodes_find(c, st->r.node);
    bool is_gone = c->others.is_heard && (node == NULL || !node->takes);
    bool is_late = c->now - o->made_at >= PATIENCE_MS;
    bool fits_elsewhere = is_late && gl_other_nodes_have_room(c, spec->pool, spec->slots,
                                                              &spec->node_labels, st->r.node);
    bool may_ask =
        gl_components_are_on(c) && gl_job_is_mine(c, st->job) && st->job->inflight_n == 0;

    GL_ASSERT(o->call == 0);
    GL_ASSERT(st->offer == o);
    GL_ASSERT(st->r.is_elsewhere);
    if ((st->r.stopping != GL_STOP_NONE || is_gone || fits_elsewhere ||
         (is_late && gl_slots_have_room(c, spec))) &&
        may_ask) {
        withdraw(c, o);
        return;
    }
    look_at(c, o, c->now + OPEN_MS);
    GL_ASSERT(o->look_at > c->now);
}

static bool read_record(struct gl_core *c, const struct gl_event_record *rec,
                        struct gl_taken_record *ret)
{
    struct gl_json json;

    GL_ASSERT(rec->rev > 0);
    return !rec->damaged &&
           gl_json_parse(&json, rec->value, GL_RECORD_BYTES_MAX, c->out->arena, NULL) == 0 &&
           gl_schema_read(&gl_taken_schema, &json, gl_json_root(&json), false, c->out->arena, ret,
                          NULL) == 0 &&
           ret->state < GL_TAKEN_STATE_COUNT;
}

/* The record is damaged. The node that runs the attempt notices that and writes it again, unless it
 * has restarted meanwhile: then it ends the attempt, because it cannot read that it took it. */
static void on_unreadable(struct gl_core *c, struct gl_offer *o, uint64_t rev)
{
    gl_ms patience = 2 * o->step->r.orphan_grace_ms + UNREADABLE_MS;

    if (o->unreadable_since == 0) {
        GL_MARK(c->trace, "offers.unreadable");
        o->unreadable_since = c->now;
    }
    if (c->now - o->unreadable_since < patience) {
        look_at(c, o, c->now + TAKEN_MS);
        return;
    }
    gl_core_set(c, &o->session, (gl_str){0}); /* it may be alive */
    give_up(c, o, rev);
}

static void on_record(struct gl_core *c, struct gl_offer *o, const struct gl_event_record *rec)
{
    struct gl_taken_record r;

    GL_ASSERT(o->call == 0);
    GL_ASSERT(o->step->r.status == GL_STEP_RUNNING);
    GL_ASSERT(o->step->offer == o);
    if (rec->rev == 0) {
        on_open(c, o);
        return;
    }
    if (!read_record(c, rec, &r)) {
        on_unreadable(c, o, rec->rev);
        return;
    }
    o->unreadable_since = 0;
    gl_core_set(c, &o->reports_to, gl_offer_node_of(r.owner));
    if (r.state == GL_TAKEN_RUNNING) {
        on_running(c, o, &r, rec->rev);
    } else {
        look_at(c, o, c->now + TAKEN_MS); /* unless the next line ends it */
        gl_attempts_on_elsewhere(c, o->step, &r);
    }
}

/* The offer that a record is about; NULL: it is over, its job is not in memory, or not ours. */
static struct gl_offer *find(struct gl_core *c, gl_str id)
{
    gl_str attempt, job_id = gl_str_cut(id, '/', &attempt);
    struct gl_job *j = gl_job_find(c, job_id);
    struct gl_step *st = j != NULL && j->memory == GL_MEM_HOT && !j->is_damaged
                             ? gl_attempts_find(j, attempt)
                             : NULL;

    GL_ASSERT(GL_IMPLIES(st != NULL, st->r.status == GL_STEP_RUNNING));
    GL_ASSERT(GL_IMPLIES(st != NULL && st->offer != NULL, st->offer->step == st));
    return st != NULL ? st->offer : NULL;
}

/* ---- looking at offers ---- */

static void look(struct gl_core *c)
{
    struct gl_key keys[PAGE];
    size_t n = 0;

    GL_ASSERT(c->made.look_call == 0);
    for (struct gl_heap_item *top; n < PAGE && (top = gl_heap_top(&c->made.timers)) != NULL; n++) {
        struct gl_offer *o = GL_CONTAINER(top, struct gl_offer, timer);

        if (o->look_at > c->now) {
            break;
        }
        GL_ASSERT(o->step->offer == o);
        GL_ASSERT(o->step->r.is_elsewhere);
        keys[n] = (struct gl_key){.kind = GL_S("taken"), .id = id_of(o->step, c->out->arena)};
        o->call = c->last_call + 1;
        look_at(c, o, INT64_MAX);
    }
    GL_ASSERT(n <= PAGE);
    if (n > 0) {
        c->made.look_call = gl_component_get(c, GL_COMPONENT_OFFERS, keys, n);
        GL_ASSERT(c->made.look_call == c->last_call);
    }
}

/* The offers whose call has failed are looked at again a little later. */
static void retry_call(struct gl_core *c, uint64_t call)
{
    GL_ASSERT(call > 0);
    GL_ASSERT(c->made.look_call != call);
    for (size_t i = 0; i < c->made.timers.n;) {
        struct gl_offer *o = GL_CONTAINER(c->made.timers.items[i], struct gl_offer, timer);

        if (o->call == call) {
            o->is_withdrawing = false;
            o->call = 0;
            look_at(c, o, c->now + OPEN_MS);
            i = 0; /* the heap has been reordered */
            continue;
        }
        i++;
    }
}

static void on_looked(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *records = ev->answer.records.items;

    GL_ASSERT(ev->answer.number == c->made.look_call);
    c->made.look_call = 0;
    for (size_t i = 0; ev->answer.code == 0 && i < ev->answer.records.n; i++) {
        struct gl_offer *o = find(c, records[i].id);

        if (o != NULL && o->call == ev->answer.number) {
            o->call = 0;
            on_record(c, o, &records[i]);
        }
    }
    retry_call(c, ev->answer.number); /* on success none is left */
    GL_ASSERT(c->made.look_call == 0);
}

static struct gl_offer *find_withdrawing(struct gl_core *c, uint64_t call)
{
    GL_ASSERT(call > 0);
    GL_ASSERT(c->made.look_call != call);
    for (size_t i = 0; i < c->made.timers.n; i++) {
        struct gl_offer *o = GL_CONTAINER(c->made.timers.items[i], struct gl_offer, timer);

        if (o->call == call && o->is_withdrawing) {
            GL_ASSERT(o->look_at == INT64_MAX);
            return o;
        }
    }
    return NULL;
}

static void on_withdrawn(struct gl_core *c, struct gl_offer *o, const struct gl_event *ev)
{
    struct gl_taken_record r = {.state = GL_TAKEN_WITHDRAWN};

    GL_ASSERT(o->is_withdrawing);
    GL_ASSERT(o->call == ev->answer.number);
    GL_ASSERT(o->step->r.status == GL_STEP_RUNNING);
    o->call = 0;
    o->is_withdrawing = false;
    if (ev->answer.code == 0) {
        c->counts.offers_withdrawn++;
        look_at(c, o, c->now + TAKEN_MS);
        gl_attempts_on_elsewhere(c, o->step, &r);
    } else { /* taken after all, or unknown: the record tells */
        look_at(c, o, c->now + (ev->answer.code == GL_E_CONFLICT ? 0 : OPEN_MS));
    }
}

/* ---- the index of results ---- */

static void scan(struct gl_core *c)
{
    struct gl_range range = {.index = gl_offer_index(c->out->arena, "results", c->node),
                             .score_min = 0,
                             .score_max = INT64_MAX,
                             .after_score = c->made.after_score,
                             .after_id = c->made.after_id,
                             .limit = PAGE};

    GL_ASSERT(c->made.call == 0);
    c->made.is_reading = c->made.is_again = false;
    c->made.due = INT64_MAX;
    c->made.call = gl_component_range(c, GL_COMPONENT_OFFERS, &range);
    GL_ASSERT(c->made.call == c->last_call);
}

static void scan_ends(struct gl_core *c, gl_ms next)
{
    bool is_first_page = c->made.after_id.n == 0;

    GL_ASSERT(next >= 0);
    c->made.call = 0;
    if (!is_first_page || c->made.is_again) {
        next = 0;
    }
    c->made.after_score = 0;
    gl_core_set(c, &c->made.after_id, (gl_str){0});
    c->made.due = c->made.timers.n > 0 || next == 0 ? c->now + next : INT64_MAX;
    GL_ASSERT(c->made.due >= c->now);
    GL_ASSERT(c->made.after_id.n == 0);
}

/* Results of jobs that are not ours (any more) are left to their owner, who looks by itself. */
static void on_scanned(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *entries = ev->answer.entries.items;
    struct gl_key keys[PAGE];
    size_t n = 0, all = ev->answer.entries.n;
    bool goes_on = ev->answer.code == 0 && gl_components_are_on(c);

    GL_ASSERT(ev->answer.number == c->made.call);
    GL_ASSERT(!c->made.is_reading);
    for (size_t i = 0; goes_on && i < all && n < PAGE; i++) {
        struct gl_offer *o = find(c, entries[i].id);

        if (o != NULL && o->call == 0) {
            keys[n++] = (struct gl_key){.kind = GL_S("taken"), .id = entries[i].id};
        }
    }
    GL_ASSERT(n <= PAGE);
    c->made.has_more = goes_on && all == PAGE;
    if (c->made.has_more) {
        c->made.after_score = entries[all - 1].score;
        gl_core_set(c, &c->made.after_id, entries[all - 1].id);
    }
    if (n > 0) {
        c->made.is_reading = true;
        c->made.call = gl_component_get(c, GL_COMPONENT_OFFERS, keys, n);
    } else if (c->made.has_more) {
        c->made.call = 0;
        scan(c);
    } else {
        gl_core_set(c, &c->made.after_id, (gl_str){0});
        scan_ends(c, SCAN_MS);
    }
    GL_ASSERT(GL_IMPLIES(c->made.is_reading, c->made.call == c->last_call));
}

static void on_results(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *records = ev->answer.records.items;

    GL_ASSERT(ev->answer.number == c->made.call);
    GL_ASSERT(c->made.is_reading);
    for (size_t i = 0; ev->answer.code == 0 && i < ev->answer.records.n; i++) {
        struct gl_offer *o = find(c, records[i].id);

        if (o != NULL && o->call == 0 && records[i].rev > 0) {
            on_record(c, o, &records[i]);
        }
    }
    c->made.call = 0;
    if (ev->answer.code == 0 && c->made.has_more && gl_components_are_on(c)) {
        scan(c);
        return;
    }
    gl_core_set(c, &c->made.after_id, (gl_str){0});
    scan_ends(c, SCAN_MS);
}

void gl_offers_on_woken(struct gl_core *c)
{
    if (c->made.timers.n == 0) {
        return; /* nothing of ours runs elsewhere */
    }
    c->made.is_again = true;
    if (c->made.call == 0) {
        c->made.due = c->now;
    }
    GL_ASSERT(GL_IMPLIES(c->made.call == 0, c->made.due <= c->now));
}

void gl_offers_on_death(struct gl_core *c, gl_str session)
{
    GL_ASSERT(session.n > 0);
    for (size_t i = 0; i < c->made.timers.n;) {
        struct gl_offer *o = GL_CONTAINER(c->made.timers.items[i], struct gl_offer, timer);

        if (o->call == 0 && o->look_at > c->now && gl_str_eq(o->session, session)) {
            look_at(c, o, c->now);
            i = 0; /* the heap has been reordered */
            continue;
        }
        i++;
    }
}

void gl_offers_on_changed(struct gl_core *c)
{
    (void)c; /* all jobs are loaded again, and their offers with them */
}

/* ---- the component ---- */

static gl_ms due(const struct gl_core *c)
{
    const struct gl_heap_item *top = gl_heap_top(&c->made.timers);
    gl_ms due = c->made.call == 0 ? c->made.due : INT64_MAX;
    gl_ms look_due = c->made.look_call == 0 && top != NULL
                         ? GL_CONTAINER(top, const struct gl_offer, timer)->look_at
                         : INT64_MAX;

    GL_ASSERT(GL_IMPLIES(top == NULL, look_due == INT64_MAX));
    return look_due < due ? look_due : due;
}

static void on_time(struct gl_core *c)
{
    GL_ASSERT(gl_components_are_on(c));
    if (c->made.call == 0 && c->made.due <= c->now) {
        scan(c);
    }
    if (c->made.look_call == 0) {
        look(c);
    }
    GL_ASSERT(GL_IMPLIES(c->made.call == 0, c->made.due > c->now));
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    uint64_t number = ev->answer.number;
    struct gl_offer *o;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_OFFERS);
    if (number == c->made.call) {
        if (c->made.is_reading) {
            on_results(c, ev);
        } else {
            on_scanned(c, ev);
        }
    } else if (number == c->made.look_call) {
        on_looked(c, ev);
    } else if ((o = find_withdrawing(c, number)) != NULL) {
        on_withdrawn(c, o, ev);
    }
}

/* ---- in a snapshot of the core ---- */

#define F(member, type) GL_FIELD(gl_offers_state, member, type, 0, "")

static const struct gl_field state_fields[] = {
    F(call, U64),      F(look_call, U64), F(due, I64),         F(is_reading, BOOL),
    F(is_again, BOOL), F(has_more, BOOL), F(after_score, I64), F(after_id, STR),
};
#undef F

static const struct gl_schema state_schema = {.name = "offers",
                                              .bytes = sizeof(struct gl_offers_state),
                                              .fields = state_fields,
                                              .fields_n = GL_COUNT(state_fields)};

static void save(const struct gl_core *c, struct gl_buf *out)
{
    gl_snapshot_put(out, "offers", &state_schema, &c->made);
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_offers_state read;
    int rc = gl_snapshot_get(l, &state_schema, &read);

    if (rc == 0) {
        gl_core_adopt(c, &state_schema, &c->made, &read);
    }
    return rc;
}

void gl_offers_save(const struct gl_step *st, struct gl_buf *out)
{
    GL_ASSERT(GL_IMPLIES(st->offer != NULL, st->offer->step == st));
    GL_ASSERT(GL_IMPLIES(st->offer != NULL, st->r.is_elsewhere));
    if (st->offer != NULL) {
        gl_snapshot_put(out, "offer", &offer_schema, st->offer);
    }
}

int gl_offers_restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_offer read, *o;
    struct gl_step *st = l->step;
    int rc = gl_snapshot_get(l, &offer_schema, &read);

    if (rc != 0) {
        return rc;
    }
    if (st == NULL || st->offer != NULL || !st->r.is_elsewhere || st->r.node.n == 0) {
        return gl_snapshot_bad(l, "an offer is for a step that runs nothing elsewhere");
    }
    o = offer_new(c, st, read.look_at);
    gl_core_adopt(c, &offer_schema, o, &read);
    GL_ASSERT(st->offer == o);
    GL_ASSERT(gl_heap_has(&o->timer));
    return 0;
}

const struct gl_component gl_offers = {.name = "offers",
                                       .due = due,
                                       .on_time = on_time,
                                       .on_answer = on_answer,
                                       .save = save,
                                       .restore = restore};
