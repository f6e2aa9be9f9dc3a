/* Sessions with deadlines by the store's clock, and what they fence. On a store that is not shared
 * the opposite holds: no session ends by itself. */
#include <stdio.h>

#include "base/limits.h"
#include "contract/contract.h"

enum {
    SHORT_MS = 100, /* real time, if the clock is a server's */
    LONG_MS = 600000,
};

static bool is_shared(const struct contract *c)
{
    return c->store->ops->shared;
}

static bool is_dead(struct contract *c, gl_str session)
{
    bool ret;
    assert_int_equal(contract_dead(c, session, &ret), 0);
    return ret;
}

static bool declare(struct contract *c, gl_str session)
{
    bool ret;
    assert_int_equal(contract_declare(c, session, &ret), 0);
    return ret;
}

/* A session past its deadline; without deadlines it stays alive. */
static gl_str lapsed_session(struct contract *c, const char *node)
{
    gl_str s = contract_session_for(c, node, SHORT_MS, "{}");
    contract_advance(c, SHORT_MS + 20);
    return s;
}

/* ---- deadlines ---- */

static void nobody_is_declared_dead_before_the_deadline(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session_for(c, "a", LONG_MS, "{}");
    contract_advance(c, SHORT_MS);
    assert_false(declare(c, s));
    assert_false(is_dead(c, s));
    assert_int_equal(contract_renew(c, s), 0);
}

static void a_deadline_kills_nobody_by_itself(void **state)
{
    struct contract *c = *state;
    gl_str s = lapsed_session(c, "a");
    assert_false(is_dead(c, s));
    assert_int_equal(contract_commit(c, GUARDS(alive(s)), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, GUARDS(dead(s)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_renew_for(c, s, LONG_MS, "{}"), 0); /* it was in time */
    assert_false(declare(c, s));
}

static void one_past_its_deadline_is_declared_dead_for_ever(void **state)
{
    struct contract *c = *state;
    gl_str s = lapsed_session(c, "a");
    struct contract *other = contract_other(c);
    assert_int_equal(declare(other, s), is_shared(c));
    assert_int_equal(is_dead(c, s), is_shared(c));
    int gone = is_shared(c) ? GL_E_GONE : 0, refused = is_shared(c) ? GL_E_CONFLICT : 0;
    assert_int_equal(contract_renew_for(c, s, LONG_MS, "{}"), gone);
    assert_int_equal(contract_renew_for(c, s, LONG_MS, "{}"), gone);
    assert_int_equal(contract_commit(c, GUARDS(alive(s)), WRITES(put("job", "a", 1, "{}"))),
                     refused);
    assert_int_equal(contract_get(c, "job", "a").rev, is_shared(c) ? 0 : 1);
    assert_int_equal(contract_commit(c, GUARDS(dead(s)), NO_WRITES),
                     is_shared(c) ? 0 : GL_E_CONFLICT);
    assert_int_equal(declare(c, s), is_shared(c)); /* again */
}

static void a_renewal_moves_the_deadline(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session_for(c, "a", SHORT_MS, "{}");
    assert_int_equal(contract_renew_for(c, s, LONG_MS, "{}"), 0);
    contract_advance(c, SHORT_MS + 20);
    assert_false(declare(c, s));
    assert_int_equal(contract_renew_for(c, s, SHORT_MS, "{}"),
                     0); /* an earlier deadline is allowed, too */
    contract_advance(c, SHORT_MS + 20);
    assert_int_equal(declare(c, s), is_shared(c));
}

static void the_clock_goes_on(void **state)
{
    struct contract *c = *state;
    gl_ms first = contract_time(c);
    assert_true(first > 0);
    contract_advance(c, 30);
    gl_ms second = contract_time(c);
    assert_true(second >= first + 30);
    assert_true(contract_time(contract_other(c)) >= second); /* one clock for all */
}

/* ---- leaving ---- */

static void who_leaves_is_dead(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    assert_int_equal(contract_leave(c, s), 0);
    assert_true(is_dead(c, s));
    assert_int_equal(contract_renew(c, s), GL_E_GONE);
    assert_int_equal(contract_commit(c, GUARDS(alive(s)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(dead(s)), NO_WRITES), 0);
    assert_int_equal(contract_leave(c, s), 0); /* ending it twice is allowed */
    gl_str next = contract_session(c, "a");
    assert_true(gl_str_is(next, "a#2.0123456789abcdef"));
    assert_false(is_dead(c, next));
    assert_int_equal(contract_leave(c, GL_S("a#9.x")), GL_E_GONE);
}

static void who_leaves_is_dead_in_every_context(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    assert_int_equal(
        contract_commit_in(c, "other", GUARDS(alive(s)), WRITES(put("job", "a", 1, "{}"))), 0);
    assert_int_equal(contract_leave(c, s), 0);
    assert_int_equal(contract_commit_in(c, "other", GUARDS(alive(s)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit_in(c, "other", GUARDS(dead(s)), NO_WRITES), 0);
}

static void who_has_left_stays_dead_over_reopening(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    assert_int_equal(contract_leave(c, s), 0);
    contract_reopen(c);
    assert_true(is_dead(c, s));
    assert_int_equal(contract_renew(c, s), GL_E_GONE);
}

/* ---- listing ---- */

static const struct gl_session_info *find(const struct gl_store_req *req, gl_str id)
{
    for (size_t i = 0; i < req->sessions_n; i++) {
        if (gl_str_eq(req->sessions[i].id, id)) {
            return &req->sessions[i];
        }
    }
    fail_msg("session %.*s is not listed", GL_STR_ARG(id));
    return NULL;
}

static void an_empty_store_has_no_sessions(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_sessions(c)->sessions_n, 0);
}

static void a_listed_session_has_all_it_was_given(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session_for(c, "node-a", LONG_MS, "{\"slots\":4}");
    const struct gl_store_req *req = contract_sessions(c);
    assert_int_equal(req->sessions_n, 1);
    assert_true(gl_str_eq(req->sessions[0].id, s));
    assert_true(gl_str_is(req->sessions[0].node, "node-a"));
    assert_int_equal(req->sessions[0].incarnation, 1);
    assert_true(gl_str_is(req->sessions[0].about, "{\"slots\":4}"));
    assert_false(req->sessions[0].dead);
    gl_ms left = req->sessions[0].left_ms;
    assert_true(is_shared(c) ? left > 0 && left <= LONG_MS : left == INT64_MAX);
}

static void a_renewal_tells_something_new(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session_for(c, "a", LONG_MS, "{\"n\":1}");
    assert_int_equal(contract_renew_for(c, s, LONG_MS / 2, "{\"n\":2}"), 0);
    const struct gl_store_req *req = contract_sessions(contract_other(c));
    assert_true(gl_str_is(req->sessions[0].about, "{\"n\":2}"));
    assert_true(!is_shared(c) || req->sessions[0].left_ms <= LONG_MS / 2);
    assert_int_equal(contract_renew_for(c, s, LONG_MS, "{\"n\":2}"), 0); /* unchanged */
    req = contract_sessions(c);
    assert_true(gl_str_is(req->sessions[0].about, "{\"n\":2}"));
    assert_true(req->sessions[0].left_ms > LONG_MS / 2);
}

static void what_a_node_tells_may_be_long(void **state)
{
    struct contract *c = *state;
    char *about = gl_arena_alloc(&c->arena, GL_ABOUT_BYTES_MAX + 1);
    memset(about, 'x', GL_ABOUT_BYTES_MAX);
    gl_str s = contract_session_for(c, "a", LONG_MS, about);
    assert_int_equal(contract_sessions(c)->sessions[0].about.n, GL_ABOUT_BYTES_MAX);
    about[7] = 'y';
    assert_int_equal(contract_renew_for(c, s, LONG_MS, about), 0);
    assert_string_equal(contract_sessions(c)->sessions[0].about.p, about);
}

static void one_past_its_deadline_is_listed_as_such(void **state)
{
    struct contract *c = *state;
    gl_str s = lapsed_session(c, "a");
    const struct gl_session_info *info = find(contract_sessions(c), s);
    assert_false(info->dead);
    assert_true(is_shared(c) ? info->left_ms < 0 : info->left_ms == INT64_MAX);
    assert_int_equal(declare(c, s), is_shared(c));
    assert_int_equal(find(contract_sessions(c), s)->dead, is_shared(c));
}

static void the_living_are_listed_before_the_dead(void **state)
{
    struct contract *c = *state;
    gl_str old = contract_session(c, "a");
    gl_str other = contract_session(c, "b");
    gl_str fresh = contract_session(c, "a");
    const struct gl_store_req *req = contract_sessions(c);
    assert_int_equal(req->sessions_n, 3);
    bool seen_dead = false;
    for (size_t i = 0; i < req->sessions_n; i++) {
        assert_true(!seen_dead || req->sessions[i].dead);
        seen_dead = req->sessions[i].dead;
    }
    assert_true(find(req, old)->dead);
    assert_int_equal(find(req, other)->dead, !is_shared(c));
    assert_false(find(req, fresh)->dead);
}

static void a_long_listing_keeps_the_newest(void **state)
{
    struct contract *c = *state;
    enum { MORE = 20, ALL = GL_SESSIONS_LISTED + MORE };
    struct gl_session_options wish = {GL_S("a"), GL_S("0123456789abcdef"), LONG_MS, GL_S("{}")};
    static struct contract_call *calls[ALL];
    for (size_t i = 0; i < ALL; i++) { /* concurrently: one by one it would take long */
        calls[i] = contract_call_new(c);
        c->store->ops->session_open(c->store, &calls[i]->req, &wish);
        if (i == MORE - 1) {
            contract_wait(calls[i]);
            contract_advance(c, 5); /* so that the first ones are older, by any clock */
        }
    }
    for (size_t i = 0; i < ALL; i++) {
        contract_wait(calls[i]);
        assert_int_equal(calls[i]->req.status, 0);
    }
    const struct gl_store_req *req = contract_sessions(c);
    bool forgets = gl_str_is(gl_str_of(c->store->ops->name), "sqlite");
    assert_int_equal(req->sessions_n, forgets ? GL_SESSIONS_KEPT : GL_SESSIONS_LISTED);
    assert_int_equal(req->sessions[0].incarnation, ALL);
    for (size_t i = 0; i < req->sessions_n; i++) {
        assert_int_equal(req->sessions[i].dead, i > 0);
        assert_true(req->sessions[i].incarnation > MORE);
    }
}

/* ---- fencing ---- */

static struct gl_guard owned_by(const char *id, gl_str owner, uint64_t token)
{
    return owned("job", id, owner.p, token);
}

static void what_the_dead_owned_may_be_taken_over_once(void **state)
{
    struct contract *c = *state;
    gl_str old = lapsed_session(c, "a");
    assert_int_equal(
        contract_commit(c, GUARDS(alive(old)), WRITES(put_owned("job", "j", 1, old.p, 1))), 0);
    if (is_shared(c)) {
        /* Nobody takes over from a session that has not been declared dead, however late it is. */
        assert_int_equal(contract_commit(c, GUARDS(owned_by("j", old, 1), dead(old)),
                                         WRITES(put_owned("job", "j", 2, "thief", 2))),
                         GL_E_CONFLICT);
    }
    struct contract *b = contract_other(c), *d = contract_other(c);
    gl_str of_b = contract_session(b, "b");
    gl_str of_d = is_shared(c) ? contract_session(d, "d") : (d->session = of_b);
    assert_true(declare(b, old)); /* without deadlines the next session has ended it */
    struct contract_call *first = contract_start(b, GUARDS(owned_by("j", old, 1), dead(old)),
                                                 WRITES(put_owned("job", "j", 2, of_b.p, 2)));
    struct contract_call *second = contract_start(d, GUARDS(owned_by("j", old, 1), dead(old)),
                                                  WRITES(put_owned("job", "j", 2, of_d.p, 2)));
    contract_wait(first);
    contract_wait(second);
    assert_int_equal((first->req.status == 0) + (second->req.status == 0), 1);
    const struct contract_call *loser = first->req.status == 0 ? second : first;
    assert_int_equal(loser->req.status, GL_E_CONFLICT);
    assert_int_equal(loser->req.refused, 0);
    /* Whatever the old owner still sends is refused. */
    assert_int_equal(contract_commit(c, GUARDS(owned_by("j", old, 1)),
                                     WRITES(put_owned("job", "j", 9, old.p, 1))),
                     GL_E_CONFLICT);
    assert_int_equal(contract_get(c, "job", "j").token, 2);
}

static void the_nodes_of_a_shared_store_live_beside_each_other(void **state)
{
    struct contract *c = *state;
    struct contract *other = contract_other(c);
    gl_str a = contract_session(c, "a"), b = contract_session(other, "b");
    assert_int_equal(contract_renew(c, a), is_shared(c) ? 0 : GL_E_GONE);
    assert_int_equal(contract_renew(other, b), 0);
    assert_int_equal(contract_commit(other, GUARDS(alive(a)), NO_WRITES),
                     is_shared(c) ? 0 : GL_E_CONFLICT);
    gl_str again = contract_session(c, "a"); /* ends only its own earlier session, if shared */
    assert_true(is_dead(other, a));
    assert_int_equal(is_dead(c, b), !is_shared(c));
    assert_false(is_dead(other, again));
}

/* ---- wake-ups ---- */

static int commit_waking(struct contract *c, const struct gl_guard *guard, const char *word)
{
    struct contract_call *call = contract_call_new(c);
    struct gl_write w = put("job", "woken", 1, "{}");
    call->tx = (struct gl_tx){.context = GL_S("default"),
                              .session = c->session,
                              .id = ++c->tx_id,
                              .guards = guard,
                              .guards_n = guard != NULL ? 1 : 0,
                              .writes = &w,
                              .writes_n = 1,
                              .wake = gl_str_of(word)};
    c->store->ops->commit(c->store, &call->req, &call->tx);
    contract_wait(call);
    return call->req.status;
}

static bool has_heard(const struct contract *c, const char *word)
{
    gl_str words = gl_buf_view(&c->words);
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= words.n; i++) {
        if (memcmp(words.p + i, word, n) == 0) {
            return true;
        }
    }
    return false;
}

static void words_reach_the_other_clients(void **state)
{
    struct contract *c = *state;
    struct contract *other = contract_other(c);
    struct gl_guard never = at("job", "none", 1);
    contract_session(c, "a");
    assert_int_equal(commit_waking(c, &never, "refused"), GL_E_CONFLICT);
    if (!is_shared(c)) { /* no other client to wake */
        assert_int_equal(commit_waking(c, NULL, "inbox"), 0);
        return;
    }
    /* A wake-up may be lost, and a new client may not be subscribed yet; but not forever. */
    for (int i = 0; i < 500 && !has_heard(other, "default/inbox "); i++) {
        assert_int_equal(commit_waking(c, NULL, "inbox"), 0);
        contract_advance(c, 5);
    }
    assert_true(has_heard(other, "default/inbox "));
    assert_false(has_heard(other, "refused"));
}

static void a_commit_may_ask_to_be_confirmed(void **state)
{
    struct contract *c = *state;
    struct contract_call *call = contract_call_new(c);
    struct gl_write w = put("job", "a", 1, "{}");
    gl_str s = contract_session(c, "a");
    call->tx = (struct gl_tx){.context = GL_S("default"),
                              .session = s,
                              .id = 1,
                              .writes = &w,
                              .writes_n = 1,
                              .confirm = true};
    c->store->ops->commit(c->store, &call->req, &call->tx);
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
    assert_int_equal(contract_resolve(c, s, 1), 0);
    assert_int_equal(contract_get(c, "job", "a").rev, 1);
}

int main(void)
{
    const struct contract_test tests[] = {
        CONTRACT_TEST(nobody_is_declared_dead_before_the_deadline),
        CONTRACT_TEST(a_deadline_kills_nobody_by_itself),
        CONTRACT_TEST(one_past_its_deadline_is_declared_dead_for_ever),
        CONTRACT_TEST(a_renewal_moves_the_deadline),
        CONTRACT_TEST(the_clock_goes_on),
        CONTRACT_TEST(who_leaves_is_dead),
        CONTRACT_TEST(who_leaves_is_dead_in_every_context),
        CONTRACT_TEST(who_has_left_stays_dead_over_reopening),
        CONTRACT_TEST(an_empty_store_has_no_sessions),
        CONTRACT_TEST(a_listed_session_has_all_it_was_given),
        CONTRACT_TEST(a_renewal_tells_something_new),
        CONTRACT_TEST(what_a_node_tells_may_be_long),
        CONTRACT_TEST(one_past_its_deadline_is_listed_as_such),
        CONTRACT_TEST(the_living_are_listed_before_the_dead),
        CONTRACT_TEST(a_long_listing_keeps_the_newest),
        CONTRACT_TEST(what_the_dead_owned_may_be_taken_over_once),
        CONTRACT_TEST(the_nodes_of_a_shared_store_live_beside_each_other),
        CONTRACT_TEST(words_reach_the_other_clients),
        CONTRACT_TEST(a_commit_may_ask_to_be_confirmed),
    };
    return contract_run(tests, GL_COUNT(tests));
}
