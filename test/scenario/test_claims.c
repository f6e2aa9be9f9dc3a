/* Claims of many programs on one store that loses answers, delays them, and is away at times.
 *
 * The checker sees every record that is written, at the moment it is, and everything that a client
 * is told. It knows the rules and nothing of the code: a fence never falls and rises by one; what
 * is held changes hands only when its lease is over; what has ended changes only by a new
 * acquisition; a fence is told to one client only, and only if it was written for it; nobody is
 * told that it stands in its own way without having been told that it got there; and who has been
 * told that it renewed or completed did so, under the fence it named. */
#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "core/claims/claim.h"
#include "core/core.h"
#include "core/snapshot.h"
#include "sim/sim_store.h"
#include "support/cmocka_all.h"

enum { CLIENTS = 8, KEYS = 3, FENCES_MAX = 512, STEPS = 400 };

#define CONTEXT SIM_CONTEXT

struct world;

struct client {
    struct world *world;
    char name[8];
    struct sim_store store;
    struct gl_trace trace;
    struct gl_core *core;
    struct gl_arena arena; /* of all its effects: what they point to outlives its calls */
    struct gl_link calls;  /* struct call: under way */
    unsigned events_n;
    bool is_busy;
    enum gl_claim_act act; /* of the request under way ... */
    uint32_t key;
    uint64_t named; /* ... and the fence it names */
    uint64_t fence; /* of the claim it believes to have; 0: none */
    uint32_t held;  /* on which key */
    int code;       /* of the last answer */
    uint64_t told_fence;
    uint32_t told_attempt;
};

struct grant { /* what the disk has seen of a fence */
    char owner[8];
    bool is_told, is_done, is_failed;
    uint32_t renewals; /* writes that left it claimed, beyond the first */
};

struct world {
    struct sim_world sim;
    struct sim_disk disk;
    struct gl_rng rng;
    uint64_t requests_n;
    struct client clients[CLIENTS];
    char keys[KEYS][16];
    struct grant grants[KEYS][FENCES_MAX];
    char failure[256];
    uint64_t grants_n, reacquired_n;
};

/* ---- the checker ---- */

/* The first that does not hold is kept. */
__attribute__((format(printf, 3, 4))) static void must(struct world *w, bool holds, const char *fmt,
                                                       ...)
{
    va_list args;

    if (!holds && w->failure[0] == '\0') {
        va_start(args, fmt);
        (void)vsnprintf(w->failure, sizeof(w->failure), fmt, args);
        va_end(args);
    }
}

static size_t key_number(const struct world *w, gl_str id)
{
    size_t i = 0;

    while (i < KEYS - 1 && !gl_str_is(id, w->keys[i])) {
        i++;
    }
    return i;
}

static void check_grant(struct world *w, const char *key, const struct gl_claim *before,
                        const struct gl_claim *after)
{
    bool is_first = before == NULL;

    must(w, after->fence == (is_first ? 1 : before->fence + 1), "%s: fence %llu", key,
         (unsigned long long)after->fence);
    must(w, after->state == GL_CLAIM_CLAIMED, "%s: a new fence that is not claimed", key);
    must(w, after->lease_until <= w->sim.now + after->lease_ms, "%s: a lease too long", key);
    if (is_first || before->state == GL_CLAIM_DONE) {
        must(w, after->attempt == 1, "%s: attempt %u of new work", key, after->attempt);
    } else {
        must(w, after->attempt == before->attempt + 1, "%s: attempt %u", key, after->attempt);
    }
    if (!is_first && before->state == GL_CLAIM_CLAIMED) {
        must(w, before->lease_until <= w->sim.now, "%s: stolen %lld ms before its time", key,
             (long long)(before->lease_until - w->sim.now));
        w->reacquired_n++;
    }
}

static void check_change(struct world *w, const char *key, const struct gl_claim *before,
                         const struct gl_claim *after)
{
    must(w, gl_str_eq(before->owner, after->owner), "%s: another owner under one fence", key);
    must(w, before->attempt == after->attempt, "%s: another attempt under one fence", key);
    must(w, before->state == GL_CLAIM_CLAIMED || before->state == after->state,
         "%s: %s became %s without a new fence", key, gl_claim_state_words[before->state],
         gl_claim_state_words[after->state]);
    if (after->state == GL_CLAIM_EXPIRED) {
        must(w, before->lease_until <= w->sim.now, "%s: expired before its time", key);
    }
    must(w, after->state != GL_CLAIM_CLAIMED || after->lease_until >= before->lease_until,
         "%s: a lease became shorter", key);
}

static void on_write(void *owner, const struct gl_tx *tx, const struct gl_record *before,
                     const struct gl_record *after)
{
    struct world *w = owner;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_claim old = {0}, new = {0};
    size_t key = key_number(w, after->id);
    struct grant *g;

    (void)tx;
    if (!gl_str_is(after->kind, "claim")) {
        return;
    }
    assert_true(before->rev == 0 || gl_claim_decode(before->value, &a, &old, NULL) == 0);
    assert_int_equal(gl_claim_decode(after->value, &a, &new, NULL), 0);
    must(w, new.fence == after->token, "the record's token is not the fence");
    must(w, after->live == (new.state == GL_CLAIM_CLAIMED), "live, and not claimed");
    assert_true(new.fence < FENCES_MAX);
    g = &w->grants[key][new.fence];
    if (before->rev == 0 || new.fence != old.fence) {
        check_grant(w, w->keys[key], before->rev == 0 ? NULL : &old, &new);
        (void)snprintf(g->owner, sizeof(g->owner), "%.*s", GL_STR_ARG(new.owner));
        w->grants_n++;
    } else {
        check_change(w, w->keys[key], &old, &new);
        g->renewals += new.state == GL_CLAIM_CLAIMED;
    }
    g->is_done = g->is_done || new.state == GL_CLAIM_DONE;
    g->is_failed = g->is_failed || new.state == GL_CLAIM_FAILED;
}

/* What a client is told must have happened. */
static void check_told(struct client *c, uint64_t fence)
{
    struct world *w = c->world;
    struct grant *g = &w->grants[c->key][fence];

    must(w, strcmp(g->owner, c->name) == 0,
         "%s was told that it has fence %llu of %s, which is %s's", c->name,
         (unsigned long long)fence, w->keys[c->key], g->owner);
    must(w, c->act == GL_CLAIM_ACQUIRE || fence == c->named, "%s named fence %llu and changed %llu",
         c->name, (unsigned long long)c->named, (unsigned long long)fence);
    if (c->act == GL_CLAIM_ACQUIRE) {
        must(w, !g->is_told, "fence %llu was told twice", (unsigned long long)fence);
        g->is_told = true;
    }
    must(w, c->act != GL_CLAIM_RENEW || g->renewals > 0, "renewed, and nothing was written");
    must(w, c->act != GL_CLAIM_COMPLETE || g->is_done, "completed, and it is not done");
    must(w, c->act != GL_CLAIM_FAIL || g->is_failed, "failed, and it is not");
}

static void check_refused(struct client *c, uint64_t fence)
{
    struct grant *g = &c->world->grants[c->key][fence];

    must(c->world, strcmp(g->owner, c->name) != 0 || g->is_told,
         "%s waits for itself: it has fence %llu of %s and was not told", c->name,
         (unsigned long long)fence, c->world->keys[c->key]);
}

/* What was on its way to it is lost. */
static void check_crashed(struct client *c)
{
    for (size_t k = 0; k < KEYS; k++) {
        for (size_t f = 0; f < FENCES_MAX; f++) {
            struct grant *g = &c->world->grants[k][f];

            g->is_told = g->is_told || strcmp(g->owner, c->name) == 0;
        }
    }
}

/* ---- clients ---- */

static void on_reply(struct client *c, int code, gl_str body)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;

    c->is_busy = false;
    c->code = code;
    if (c->act == GL_CLAIM_RECLAIM) {
        return;
    }
    c->told_fence = c->told_attempt = 0;
    if (body.n > 0) {
        assert_int_equal(gl_json_parse(&j, body, 1 << 20, &a, NULL), 0);
        (void)gl_json_u64(&j, gl_json_get(&j, gl_json_root(&j), "fence"), &c->told_fence);
        uint64_t attempt = 0;
        (void)gl_json_u64(&j, gl_json_get(&j, gl_json_root(&j), "attempt"), &attempt);
        c->told_attempt = (uint32_t)attempt;
    }
    if (code == 0) {
        check_told(c, c->told_fence);
    } else if (code == GL_E_BUSY) {
        check_refused(c, c->told_fence);
    } else if (code == GL_E_UNKNOWN) {
        check_crashed(c); /* for all it knows */
    }
    if (c->act == GL_CLAIM_ACQUIRE && code == 0) {
        c->fence = c->told_fence;
        c->held = c->key;
    } else if (code == GL_E_NOT_OWNER || c->act == GL_CLAIM_COMPLETE || c->act == GL_CLAIM_FAIL) {
        c->fence = 0;
    }
}

/* ---- the shell around a client's core ---- */

struct call {
    struct gl_link link;
    struct client *client;
    const struct gl_core_call *asked;
    struct gl_store_req req;
};

static void feed(struct client *c, struct gl_event ev);

static void on_done(struct gl_store_req *req)
{
    struct call *x = req->owner;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_event_record *records = GL_NEW_ARRAY(&a, struct gl_event_record, req->records_n + 1);
    struct gl_event_entry *entries = GL_NEW_ARRAY(&a, struct gl_event_entry, req->entries_n + 1);
    struct gl_event_answer answer = {.by = (uint8_t)x->asked->by,
                                     .number = x->asked->number,
                                     .code = req->status,
                                     .why = gl_str_of(req->why.text)};

    for (size_t i = 0; req->status == 0 && i < req->records_n; i++) {
        records[i] = (struct gl_event_record){.kind = req->records[i].kind,
                                              .id = req->records[i].id,
                                              .value = req->records[i].value,
                                              .rev = req->records[i].rev};
        answer.records = (struct gl_items){.items = records, .n = req->records_n};
    }
    for (size_t i = 0; req->status == 0 && i < req->entries_n; i++) {
        entries[i] =
            (struct gl_event_entry){.id = req->entries[i].id, .score = req->entries[i].score};
        answer.entries = (struct gl_items){.items = entries, .n = req->entries_n};
    }
    answer.time = req->status == 0 && x->asked->type == GL_CORE_CALL_TIME ? req->time : 0;
    feed(x->client, (struct gl_event){.type = GL_EV_ANSWER, .answer = answer});
    gl_list_remove(&x->link);
    gl_mem_free(x);
}

static void call_store(struct client *c, const struct gl_core_call *asked)
{
    struct call *x = gl_mem_alloc(sizeof(*x));
    struct gl_store *s = &c->store.port;

    *x = (struct call){.client = c, .asked = asked, .req = {.done = on_done, .owner = x}};
    gl_list_push(&c->calls, &x->link);
    switch (asked->type) {
    case GL_CORE_CALL_TIME:
        (s->ops->time)(s, &x->req);
        break;
    case GL_CORE_CALL_GET:
        s->ops->get(s, &x->req, CONTEXT, asked->keys, asked->keys_n);
        break;
    case GL_CORE_CALL_RANGE:
        s->ops->range(s, &x->req, CONTEXT, &asked->range);
        break;
    default:
        assert_int_equal(asked->type, GL_CORE_CALL_COMMIT);
        s->ops->commit(s, &x->req, asked->tx);
    }
}

/* The same core, by way of its text. */
static void renew(struct client *c)
{
    struct gl_buf before = {0}, after = {0};
    struct gl_core *renewed = NULL;
    struct gl_why why;

    assert_true(gl_core_save(c->core, SIZE_MAX, &before));
    assert_int_equal(gl_core_restore(gl_buf_view(&before), &c->trace, c->core, &renewed, &why), 0);
    assert_true(gl_core_save(renewed, SIZE_MAX, &after));
    assert_true(gl_str_eq(gl_buf_view(&before), gl_buf_view(&after)));
    gl_core_free(c->core);
    c->core = renewed;
    gl_buf_done(&before);
    gl_buf_done(&after);
}

static void feed(struct client *c, struct gl_event ev)
{
    struct gl_effects out = {.arena = &c->arena};

    ev.now = c->world->sim.now;
    ev.context = CONTEXT;
    gl_core_step(c->core, &ev, &out);
    if (c->events_n++ % 5 == 0) {
        renew(c);
    }
    for (size_t i = 0; i < out.n; i++) {
        if (out.items[i].type == GL_FX_CALL) {
            call_store(c, out.items[i].call);
        } else if (out.items[i].type == GL_FX_REPLY) {
            on_reply(c, out.items[i].code, out.items[i].body);
        }
    }
}

static void ask(struct client *c, enum gl_claim_act act, uint32_t key, uint64_t fence,
                gl_ms lease_ms)
{
    struct world *w = c->world;
    char nonce[24];

    assert_false(c->is_busy);
    c->is_busy = true;
    c->code = 1;
    c->act = act;
    c->key = key;
    c->named = fence;
    (void)snprintf(nonce, sizeof(nonce), "%llu", (unsigned long long)++w->requests_n);
    feed(c, (struct gl_event){.type = GL_EV_CLAIM,
                              .claim = {.request = w->requests_n,
                                        .act = (uint8_t)act,
                                        .key = gl_str_of(w->keys[key]),
                                        .owner = gl_str_of(c->name),
                                        .fence = fence,
                                        .lease_ms = lease_ms,
                                        .nonce = gl_str_of(nonce)}});
}

static const struct gl_claim_counts *counts(const struct client *c)
{
    return gl_core_claim_counts(c->core);
}

static void client_open(struct world *w, uint32_t i)
{
    static const struct gl_core_pool pool = {.name = GL_S("default"), .slots = 1};
    struct client *c = &w->clients[i];

    c->world = w;
    (void)snprintf(c->name, sizeof(c->name), "c%u", i);
    sim_store_open(&c->store, &w->sim, &w->disk, NULL, NULL, c->name);
    gl_list_init(&c->calls);
    c->core = gl_core_new(&(struct gl_core_config){.context = CONTEXT,
                                                   .pools = &pool,
                                                   .pools_n = 1,
                                                   .passive = true,
                                                   .shared = i % 4 != 3, /* else it has no clock */
                                                   .ttl_ms = 10000,
                                                   .trace = &c->trace});
    feed(c, (struct gl_event){
                .type = GL_EV_SESSION,
                .session = {.session = gl_str_of(c->name), .number = 1, .sent_at = w->sim.now}});
    c->is_busy = false;
    c->fence = 0;
}

/* It dies in the middle of whatever it does. */
static void client_crash(struct client *c)
{
    sim_store_crash(&c->store);
    for (struct gl_link *l; (l = gl_list_first(&c->calls)) != NULL;) {
        gl_list_remove(l);
        gl_mem_free(GL_CONTAINER(l, struct call, link));
    }
    gl_core_free(c->core);
    gl_arena_done(&c->arena);
    check_crashed(c);
}

static void begin(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    sim_world_init(&w->sim, seed);
    sim_disk_init(&w->disk);
    gl_rng_fork(&w->sim.rng, &w->rng, "claims");
    w->disk.watch = (struct sim_disk_watch){.owner = w, .on_write = on_write};
    for (uint32_t i = 0; i < KEYS; i++) {
        (void)snprintf(w->keys[i], sizeof(w->keys[i]), "key/%u", i);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        client_open(w, i);
    }
}

static void end(struct world *w)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        client_crash(&w->clients[i]);
    }
    sim_disk_done(&w->disk);
    sim_world_done(&w->sim);
    if (w->failure[0] != '\0') {
        fail_msg("seed %llu: %s", (unsigned long long)w->sim.seed, w->failure);
    }
}

static void run(struct world *w, gl_ms span)
{
    sim_world_run(&w->sim, w->sim.now + span);
}

/* All of them have been answered. */
static void settle(struct world *w)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        for (unsigned n = 0; w->clients[i].is_busy; n++) {
            assert_true(n < 100000);
            run(w, 10);
        }
    }
}

static size_t indexed(struct world *w)
{
    struct gl_range all = {
        .index = GL_S("claims"), .score_min = 0, .score_max = INT64_MAX, .limit = 1000};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    size_t n;

    (void)sim_disk_range(&w->disk, CONTEXT, &all, &a, &n);
    return n;
}

static bool is_writing(const struct client *c)
{
    for (const struct gl_link *l = c->calls.next; l != &c->calls; l = l->next) {
        if (GL_CONTAINER(l, struct call, link)->asked->type == GL_CORE_CALL_COMMIT) {
            return true;
        }
    }
    return false;
}

/* ---- stories ---- */

/* All eight want key 0: how many got it? */
static unsigned race(struct world *w, unsigned *ret_busy)
{
    unsigned won = 0;

    *ret_busy = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        ask(&w->clients[i], GL_CLAIM_ACQUIRE, 0, 0, 5000);
    }
    settle(w);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        won += w->clients[i].code == 0;
        *ret_busy += w->clients[i].code == GL_E_BUSY;
    }
    return won;
}

static void of_eight_racers_one_wins_fresh_and_expired(void **state)
{
    static struct world w;
    unsigned busy;

    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        begin(&w, seed);
        w.sim.options.store_delay_ms = (uint32_t)(seed % 7);
        assert_int_equal(race(&w, &busy), 1);
        assert_int_equal(busy, CLIENTS - 1);
        assert_int_equal(race(&w, &busy), 0); /* the winner is busy, too */
        assert_int_equal(busy, CLIENTS);
        run(&w, 5000);
        assert_int_equal(race(&w, &busy), 1);
        assert_int_equal(busy, CLIENTS - 1);
        assert_int_equal(w.grants_n, 2);
        assert_int_equal(w.reacquired_n, 1);
        assert_int_equal(indexed(&w), 1);
        end(&w);
    }
}

static void a_holder_that_slept_changes_nothing(void **state)
{
    static struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];

    (void)state;
    begin(&w, 1);
    ask(a, GL_CLAIM_ACQUIRE, 0, 0, 2000);
    settle(&w);
    assert_int_equal(a->told_fence, 1);
    run(&w, 2001);
    ask(b, GL_CLAIM_ACQUIRE, 0, 0, 2000);
    settle(&w);
    assert_int_equal(b->code, 0);
    assert_int_equal(b->told_fence, 2);
    assert_int_equal(b->told_attempt, 2);
    static const enum gl_claim_act late[] = {GL_CLAIM_RENEW, GL_CLAIM_COMPLETE, GL_CLAIM_FAIL};
    for (size_t i = 0; i < GL_COUNT(late); i++) {
        ask(a, late[i], 0, 1, 2000);
        settle(&w);
        assert_int_equal(a->code, GL_E_NOT_OWNER);
        assert_int_equal(a->told_fence, 2); /* it is told who has it */
    }
    ask(b, GL_CLAIM_COMPLETE, 0, 2, 0);
    settle(&w);
    assert_int_equal(b->code, 0);
    assert_int_equal(indexed(&w), 0);
    assert_int_equal(counts(a)->renew_failed, 1);
    assert_int_equal(counts(b)->steals, 1);
    assert_int_equal(counts(b)->completed, 1);
    end(&w);
}

static void a_holder_that_renews_keeps_it(void **state)
{
    static struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1];

    (void)state;
    begin(&w, 1);
    w.sim.options.store_delay_ms = 20;
    ask(a, GL_CLAIM_ACQUIRE, 0, 0, 6000);
    settle(&w);
    for (unsigned i = 0; i < 30; i++) {
        run(&w, 2000);
        ask(a, GL_CLAIM_RENEW, 0, a->fence, 0);
        ask(b, GL_CLAIM_ACQUIRE, 0, 0, 6000);
        settle(&w);
        assert_int_equal(a->code, 0);
        assert_int_equal(b->code, GL_E_BUSY);
    }
    assert_int_equal(w.reacquired_n, 0);
    end(&w);
}

static void reclaim_marks_what_is_over_and_nothing_else(void **state)
{
    static struct world w;
    struct client *a = &w.clients[0];
    struct gl_tx litter = {.context = CONTEXT};
    struct gl_write place = {
        .type = GL_WRITE_INDEX, .kind = GL_S("claims"), .id = GL_S("nobody"), .score = 5};
    size_t refused;

    (void)state;
    begin(&w, 1);
    litter.writes = &place;
    litter.writes_n = 1;
    assert_int_equal(sim_disk_commit(&w.disk, &litter, &refused), 0);
    ask(a, GL_CLAIM_ACQUIRE, 0, 0, 2000);
    settle(&w);
    ask(a, GL_CLAIM_ACQUIRE, 1, 0, 9000);
    settle(&w);
    ask(a, GL_CLAIM_RECLAIM, 0, 0, 0);
    settle(&w);
    assert_int_equal(counts(a)->expired, 0);
    assert_int_equal(indexed(&w), 2); /* the place that led to nothing is gone */
    run(&w, 3000);
    for (uint32_t i = 1; i < CLIENTS; i++) { /* all at once: it is marked once */
        ask(&w.clients[i], GL_CLAIM_RECLAIM, 0, 0, 0);
    }
    settle(&w);
    uint64_t marked = 0;
    for (uint32_t i = 1; i < CLIENTS; i++) {
        assert_int_equal(w.clients[i].code, 0);
        marked += counts(&w.clients[i])->expired;
    }
    assert_int_equal(marked, 1);
    assert_int_equal(indexed(&w), 1);
    ask(a, GL_CLAIM_RENEW, 0, 1, 0);
    settle(&w);
    assert_int_equal(a->code, GL_E_NOT_OWNER);
    ask(a, GL_CLAIM_ACQUIRE, 0, 0, 2000);
    settle(&w);
    assert_int_equal(a->told_fence, 2);
    assert_int_equal(a->told_attempt, 2);
    end(&w);
}

/* It answers what it has begun, and asks the store for nothing more. */
static void a_node_that_ends_says_what_it_knows(void **state)
{
    static struct world w;
    struct client *a = &w.clients[0], *b = &w.clients[1], *d = &w.clients[2];

    (void)state;
    begin(&w, 1);
    w.sim.options.store_delay_ms = 20;
    ask(a, GL_CLAIM_ACQUIRE, 0, 0, 5000);
    feed(a, (struct gl_event){.type = GL_EV_END}); /* while it reads */
    settle(&w);
    assert_int_equal(a->code, GL_E_UNAVAILABLE);
    assert_int_equal(w.grants_n, 0);
    ask(a, GL_CLAIM_ACQUIRE, 0, 0, 5000);
    assert_int_equal(a->code, GL_E_UNAVAILABLE); /* at once */

    ask(b, GL_CLAIM_ACQUIRE, 0, 0, 5000);
    while (!is_writing(b)) {
        run(&w, 1);
    }
    feed(b, (struct gl_event){.type = GL_EV_END});
    settle(&w);
    assert_int_equal(b->code, 0);

    w.sim.faults = true;
    w.sim.fault_budget = 100;
    w.sim.options.store_unknown_yes = 1000000;
    ask(d, GL_CLAIM_ACQUIRE, 1, 0, 5000);
    while (!is_writing(d)) {
        run(&w, 1);
    }
    feed(d, (struct gl_event){.type = GL_EV_END});
    settle(&w);
    assert_int_equal(d->code, GL_E_UNKNOWN);
    assert_int_equal(w.grants_n, 2);
    end(&w);
}

/* ---- histories by chance ---- */

static void act(struct world *w, struct client *c)
{
    static const enum gl_claim_act verbs[] = {GL_CLAIM_RENEW, GL_CLAIM_RENEW, GL_CLAIM_COMPLETE,
                                              GL_CLAIM_FAIL};
    uint64_t draw = gl_rng_below(&w->rng, 100);

    if (draw < 3) {
        client_crash(c);
        client_open(w, (uint32_t)(c - w->clients));
    } else if (c->is_busy) {
        return;
    } else if (draw < 8) {
        ask(c, GL_CLAIM_RECLAIM, 0, 0, 0);
    } else if (c->fence > 1 && draw < 15) { /* one of an earlier life, perhaps its own */
        ask(c, verbs[gl_rng_below(&w->rng, GL_COUNT(verbs))], c->held,
            (uint64_t)gl_rng_range(&w->rng, 1, (int64_t)c->fence - 1), 0);
    } else if (c->fence != 0) {
        ask(c, verbs[gl_rng_below(&w->rng, GL_COUNT(verbs))], c->held, c->fence, 0);
    } else {
        ask(c, GL_CLAIM_ACQUIRE, (uint32_t)gl_rng_below(&w->rng, KEYS), 0,
            gl_rng_range(&w->rng, GL_LEASE_MS_MIN, 4000));
    }
}

static void no_history_breaks_a_rule(void **state)
{
    static struct world w;
    uint64_t grants = 0, reacquired = 0, done = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        begin(&w, seed);
        w.sim.faults = true;
        w.sim.fault_budget = 100000;
        w.sim.options.store_delay_ms = (uint32_t)gl_rng_below(&w.rng, 40);
        w.sim.options.store_slow = (uint32_t)gl_rng_below(&w.rng, 50000);
        w.sim.options.store_unavailable = (uint32_t)gl_rng_below(&w.rng, 100000);
        w.sim.options.store_unknown_yes = (uint32_t)gl_rng_below(&w.rng, 200000);
        w.sim.options.store_unknown_no = (uint32_t)gl_rng_below(&w.rng, 200000);
        for (unsigned i = 0; i < STEPS && w.failure[0] == '\0'; i++) {
            act(&w, &w.clients[gl_rng_below(&w.rng, CLIENTS)]);
            run(&w, gl_rng_range(&w.rng, 0, 200));
        }
        grants += w.grants_n;
        reacquired += w.reacquired_n;
        for (uint32_t i = 0; i < CLIENTS; i++) {
            done += counts(&w.clients[i])->completed;
        }
        end(&w);
    }
    /* It was worth watching. */
    assert_true(grants > 1000);
    assert_true(reacquired > 200);
    assert_true(done > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_eight_racers_one_wins_fresh_and_expired),
        cmocka_unit_test(a_holder_that_slept_changes_nothing),
        cmocka_unit_test(a_holder_that_renews_keeps_it),
        cmocka_unit_test(reclaim_marks_what_is_over_and_nothing_else),
        cmocka_unit_test(a_node_that_ends_says_what_it_knows),
        cmocka_unit_test(no_history_breaks_a_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
