/* Sessions, and the outcomes of their transactions. */
#include "contract/contract.h"

static bool is_dead(struct contract *c, gl_str session)
{
    bool ret;
    assert_int_equal(contract_dead(c, session, &ret), 0);
    return ret;
}

static void a_session_has_an_id_and_can_be_renewed(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "node-a");
    assert_true(gl_str_is(s, "node-a#1.0123456789abcdef"));
    assert_int_equal(contract_renew(c, s), 0);
    assert_false(is_dead(c, s));
}

static void incarnations_rise_per_node(void **state)
{
    struct contract *c = *state;
    struct contract_call *call;
    const char *nodes[] = {"a", "a", "b", "a", "b"};
    const uint64_t want[] = {1, 2, 1, 3, 2};
    for (size_t i = 0; i < GL_COUNT(nodes); i++) {
        call = contract_call_new(c);
        c->store->ops->session_open(c->store, &call->req,
                                    &(struct gl_session_options){.node = gl_str_of(nodes[i]),
                                                                 .nonce = GL_S("n"),
                                                                 .ttl_ms = 30000});
        contract_wait(call);
        assert_int_equal(call->req.status, 0);
        assert_int_equal(call->req.session.incarnation, want[i]);
    }
}

static void opening_a_session_ends_the_earlier_ones(void **state)
{
    struct contract *c = *state;
    gl_str first = contract_session(c, "a");
    gl_str second = contract_session(c, "b");
    bool alone = !c->store->ops->shared; /* a shared store does not touch those of other nodes */
    assert_int_equal(is_dead(c, first), alone);
    assert_false(is_dead(c, second));
    gl_str third = contract_session(c, "a");
    assert_true(is_dead(c, first));
    assert_int_equal(is_dead(c, second), alone);
    assert_false(is_dead(c, third));
}

static void a_dead_session_stays_dead(void **state)
{
    struct contract *c = *state;
    gl_str first = contract_session(c, "a");
    gl_str second = contract_session(c, "a");
    assert_int_equal(contract_renew(c, first), GL_E_GONE);
    assert_true(is_dead(c, first));
    contract_reopen(c);
    assert_int_equal(contract_renew(c, first), GL_E_GONE);
    assert_true(is_dead(c, first));
    assert_int_equal(contract_renew(c, second), 0);
}

/* Sessions that have been dead for long are forgotten. */
static void a_session_nobody_knows_is_dead(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    assert_int_equal(contract_renew(c, GL_S("a#7.x")), GL_E_GONE);
    assert_true(is_dead(c, GL_S("a#7.x")));
}

static void incarnations_rise_over_reopening(void **state)
{
    struct contract *c = *state;
    gl_str first = contract_session(c, "a");
    contract_reopen(c);
    assert_false(is_dead(c, first)); /* until the next one is opened */
    gl_str second = contract_session(c, "a");
    assert_true(gl_str_is(second, "a#2.0123456789abcdef"));
    assert_true(is_dead(c, first));
}

static void dead_holds_only_for_a_session_that_is_dead(void **state)
{
    struct contract *c = *state;
    gl_str first = contract_session(c, "a");
    assert_int_equal(contract_commit(c, GUARDS(dead(first)), NO_WRITES), GL_E_CONFLICT);
    gl_str second = contract_session(c, "a");
    assert_int_equal(contract_commit(c, GUARDS(dead(first)), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, GUARDS(dead(second)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(dead(GL_S("a#9.x"))), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, GUARDS(dead(GL_S(""))), NO_WRITES), GL_E_CONFLICT);
}

static void dead_holds_in_every_context_the_session_wrote_to(void **state)
{
    struct contract *c = *state;
    gl_str first = contract_session(c, "a");
    assert_int_equal(
        contract_commit_in(c, "other", NO_GUARDS, WRITES(put_owned("job", "x", 1, first.p, 1))), 0);
    contract_reopen(c);
    gl_str second = contract_session(c, "a");
    assert_int_equal(contract_commit_in(c, "other", GUARDS(dead(second)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit_in(c, "other",
                                        GUARDS(owned("job", "x", first.p, 1), dead(first)),
                                        WRITES(put_owned("job", "x", 2, second.p, 2))),
                     0);
    assert_int_equal(
        contract_commit_in(c, "other", GUARDS(owned("job", "x", first.p, 1)), NO_WRITES),
        GL_E_CONFLICT);
}

static void alive_holds_only_for_a_session_that_lives(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, GUARDS(alive(GL_S("a#1.x"))), NO_WRITES), GL_E_CONFLICT);
    gl_str first = contract_session(c, "a");
    assert_int_equal(contract_commit(c, GUARDS(alive(first)), NO_WRITES), 0);
    gl_str second = contract_session(c, "a");
    assert_int_equal(contract_commit(c, GUARDS(alive(first)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(alive(second)), NO_WRITES), 0);
}

/* ---- resolve ---- */

static void a_committed_transaction_is_remembered(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    struct contract_call *last = NULL;
    for (int i = 0; i < 700; i++) {
        last = contract_start(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}")));
    }
    contract_wait(last);
    for (uint64_t id = 1; id <= 700; id++) {
        assert_int_equal(contract_resolve(c, s, id), 0);
    }
    contract_reopen(c);
    assert_int_equal(contract_resolve(c, s, 1), 0);
    assert_int_equal(contract_resolve(c, s, 700), 0);
    assert_int_equal(contract_resolve(c, s, 701), GL_E_CONFLICT);
}

static void transactions_without_a_number_disturb_no_memory(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    struct contract_call *last = NULL;
    for (uint64_t i = 1; i <= 60; i++) {
        uint64_t keep = c->tx_id;
        c->tx_id = i % 3 == 0 ? UINT64_MAX : keep; /* the next id is 0, or higher */
        last = contract_start(c, NO_GUARDS, WRITES(put("job", "a", i, "{}")));
        c->tx_id = i % 3 == 0 ? keep : c->tx_id;
    }
    contract_wait(last);
    assert_int_equal(contract_get(c, "job", "a").rev, 60);
    for (uint64_t id = 1; id <= 40; id++) {
        assert_int_equal(contract_resolve(c, s, id), 0);
    }
    assert_int_equal(contract_resolve(c, s, 41), GL_E_CONFLICT);
}

static void a_refused_transaction_is_not_taken_for_a_committed_one(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    struct contract_call *last = NULL;
    for (uint64_t i = 1; i <= 100; i++) {
        last = i % 7 == 0 ? contract_start(c, GUARDS(absent("job", "a")), NO_WRITES)
                          : contract_start(c, NO_GUARDS, WRITES(put("job", "a", i, "{}")));
    }
    contract_wait(last);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(contract_resolve(c, s, i), i % 7 == 0 ? GL_E_CONFLICT : 0);
    }
}

static void a_transaction_that_never_arrived_is_a_refused_one(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_resolve(c, GL_S("a#1.x"), 1), GL_E_CONFLICT);
    gl_str first = contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    assert_int_equal(contract_resolve(c, first, 1), 0);
    assert_int_equal(contract_resolve(c, first, 2), GL_E_CONFLICT);
    gl_str second = contract_session(c, "a");
    assert_int_equal(contract_resolve(c, second, 1), GL_E_CONFLICT);
    assert_int_equal(contract_resolve(c, first, 1), 0);
}

/* "Never" is a promise: a copy that is still in some buffer must not be carried out. */
static void a_transaction_said_never_to_arrive_is_refused_when_it_does(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", i, "{}"))), 0);
    }
    assert_int_equal(contract_resolve(c, s, 5), GL_E_CONFLICT);
    /* Number 4 was called before number 5, which will never arrive; so neither will number 4. */
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 4, "{}"))),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 5, "{}"))),
                     GL_E_CONFLICT);
    assert_int_equal(contract_get(c, "job", "a").rev, 3);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 6, "{}"))), 0);
    assert_int_equal(contract_get(c, "job", "a").rev, 6);
    for (uint64_t i = 1; i <= 6; i++) {
        assert_int_equal(contract_resolve(c, s, i), i == 4 || i == 5 ? GL_E_CONFLICT : 0);
    }
    c->tx_id = UINT64_MAX; /* the next has no id: nobody asks about it */
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 7, "{}"))), 0);
    contract_session(c, "b"); /* and another session has its own ids */
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 8, "{}"))), 0);
}

static void resolve_waits_for_the_commits_before_it(void **state)
{
    struct contract *c = *state;
    gl_str s = contract_session(c, "a");
    for (int i = 0; i < 50; i++) {
        struct contract_call *commit =
            contract_start(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}")));
        assert_int_equal(contract_resolve(c, s, commit->tx.id), 0);
        assert_true(commit->done);
    }
}

int main(void)
{
    const struct contract_test tests[] = {
        CONTRACT_TEST(a_session_has_an_id_and_can_be_renewed),
        CONTRACT_TEST(incarnations_rise_per_node),
        CONTRACT_TEST(opening_a_session_ends_the_earlier_ones),
        CONTRACT_TEST(a_dead_session_stays_dead),
        CONTRACT_TEST(a_session_nobody_knows_is_dead),
        CONTRACT_TEST(incarnations_rise_over_reopening),
        CONTRACT_TEST(dead_holds_only_for_a_session_that_is_dead),
        CONTRACT_TEST(dead_holds_in_every_context_the_session_wrote_to),
        CONTRACT_TEST(alive_holds_only_for_a_session_that_lives),
        CONTRACT_TEST(a_committed_transaction_is_remembered),
        CONTRACT_TEST(transactions_without_a_number_disturb_no_memory),
        CONTRACT_TEST(a_refused_transaction_is_not_taken_for_a_committed_one),
        CONTRACT_TEST(a_transaction_that_never_arrived_is_a_refused_one),
        CONTRACT_TEST(a_transaction_said_never_to_arrive_is_refused_when_it_does),
        CONTRACT_TEST(resolve_waits_for_the_commits_before_it),
    };
    return contract_run(tests, GL_COUNT(tests));
}
