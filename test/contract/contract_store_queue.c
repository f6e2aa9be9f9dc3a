/* Queues: order, claims by the store's clock, acknowledging, giving back. */
#include <stdio.h>

#include "contract/contract.h"

enum {
    SHORT_MS = 100,
    LONG_MS = 600000,
};

static void fill(struct contract *c)
{
    assert_int_equal(contract_commit(c, NO_GUARDS,
                                     WRITES(push("inbox", "b", "1"), push("inbox", "a", "2"),
                                            push("outbox", "a", "x"))),
                     0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(push("inbox", "c", "3"))), 0);
}

static void items_are_taken_in_the_order_of_pushing(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    check_items(contract_take(c, "inbox", LONG_MS, 2), "b=1 a=2");
    check_items(contract_take(c, "inbox", LONG_MS, 2), "c=3");
    check_items(contract_take(c, "inbox", LONG_MS, 2), "");
    check_items(contract_take(c, "outbox", LONG_MS, 100), "a=x"); /* queues are apart */
}

static void what_is_not_there_cannot_be_taken(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    check_items(contract_take(c, "inbox", LONG_MS, 10), "");
    fill(c);
    check_items(contract_take(c, "inbox", LONG_MS, 0), "");
    check_items(contract_take(c, "in", LONG_MS, 10), "");
    struct contract_call *call = contract_call_new(c); /* contexts are apart */
    struct gl_take take = {GL_S("inbox"), c->session, LONG_MS, 10};
    c->store->ops->take(c->store, &call->req, GL_S("other"), &take);
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
    assert_int_equal(call->req.items_n, 0);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "b=1 a=2 c=3");
}

static void an_item_is_pushed_once(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    assert_int_equal(
        contract_commit(c, NO_GUARDS, WRITES(push("inbox", "b", "again"), push("inbox", "d", "4"))),
        0);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "b=1 a=2 c=3 d=4");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(push("inbox", "b", "again"))), 0);
    check_items(contract_take(c, "inbox", LONG_MS, 10), ""); /* and it is still claimed */
}

static void an_item_is_acknowledged_by_its_claim(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", 0)), NO_WRITES),
                     GL_E_CONFLICT); /* nobody has claimed it yet */
    const struct gl_store_req *req = contract_take(c, "inbox", LONG_MS, 2);
    uint64_t b = req->items[0].token, a = req->items[1].token;
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", b + 100)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(claimed("outbox", "b", b)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "none", b)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", b)),
                                     WRITES(pop("inbox", "b"), put("job", "done", 1, "{}"))),
                     0);
    assert_int_equal(
        contract_commit(c, GUARDS(claimed("inbox", "b", b)), WRITES(put("job", "done", 2, "{}"))),
        GL_E_CONFLICT); /* it is gone */
    assert_int_equal(contract_get(c, "job", "done").rev, 1);
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "a", a)), NO_WRITES), 0);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "c=3");
}

static void items_may_be_removed_by_anybody(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(pop("inbox", "a"), pop("inbox", "none"))),
                     0);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "b=1 c=3");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(pop("inbox", "c"))), 0); /* claimed */
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(push("inbox", "c", "new"))), 0);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "c=new");
}

static void an_old_claim_is_worth_nothing_for_a_new_item(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    uint64_t first = contract_take(c, "inbox", LONG_MS, 1)->items[0].token;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(pop("inbox", "b"))), 0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(push("inbox", "b", "again"))), 0);
    const struct gl_store_req *req = contract_take(c, "inbox", LONG_MS, 10);
    check_items(req, "a=2 c=3 b=again");
    assert_true(req->items[2].token > first);
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", first)), NO_WRITES),
                     GL_E_CONFLICT);
}

static void a_refused_transaction_moves_no_item(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    uint64_t token = contract_take(c, "inbox", LONG_MS, 1)->items[0].token;
    assert_int_equal(
        contract_commit(c, GUARDS(present("job", "none")),
                        WRITES(push("inbox", "d", "4"), pop("inbox", "a"), unclaim("inbox", "b"))),
        GL_E_CONFLICT);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "a=2 c=3");
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", token)), NO_WRITES), 0);
}

static void writes_to_a_queue_apply_in_their_order(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS,
                                     WRITES(push("q", "a", "1"), pop("q", "a"), push("q", "b", "2"),
                                            push("q", "a", "3"), push("q", "b", "4"))),
                     0);
    check_items(contract_take(c, "q", LONG_MS, 10), "b=2 a=3");
}

/* ---- claims end ---- */

static void a_claim_ends_with_its_lease(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    const struct gl_store_req *first = contract_take(c, "inbox", SHORT_MS, 2);
    check_items(first, "b=1 a=2");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(pop("inbox", "a"))), 0);
    contract_advance(c, SHORT_MS + 20);
    /* Late, but nobody else has it: it may still be acknowledged. */
    uint64_t old = first->items[0].token;
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", old)), NO_WRITES), 0);
    struct contract *other = contract_other(c);
    other->session = c->session;
    other->tx_id = c->tx_id + 10; /* numbers rise within a session */
    const struct gl_store_req *second = contract_take(other, "inbox", LONG_MS, 10);
    check_items(second, "b=1 c=3"); /* from its old place */
    assert_true(second->items[0].token > old);
    assert_int_equal(
        contract_commit(c, GUARDS(claimed("inbox", "b", old)), WRITES(pop("inbox", "b"))),
        GL_E_CONFLICT);
    assert_int_equal(contract_commit(other, GUARDS(claimed("inbox", "b", second->items[0].token)),
                                     WRITES(pop("inbox", "b"))),
                     0);
}

static void a_claim_lasts_as_long_as_its_lease(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    check_items(contract_take(c, "inbox", LONG_MS, 2), "b=1 a=2");
    contract_advance(c, SHORT_MS);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "c=3");
    contract_reopen(c);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "");
}

static void an_item_given_back_is_taken_from_its_old_place(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    const struct gl_store_req *req = contract_take(c, "inbox", LONG_MS, 2);
    uint64_t token = req->items[0].token;
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", token)),
                                     WRITES(unclaim("inbox", "b"), unclaim("inbox", "none"))),
                     0);
    req = contract_take(c, "inbox", LONG_MS, 10);
    check_items(req, "b=1 c=3");
    assert_true(req->items[0].token > token);
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", token)), NO_WRITES),
                     GL_E_CONFLICT);
}

static void the_claims_of_the_dead_are_over(void **state)
{
    struct contract *c = *state;
    gl_str taker = contract_session(c, "a");
    fill(c);
    uint64_t token = contract_take(c, "inbox", LONG_MS, 2)->items[0].token;
    assert_int_equal(contract_leave(c, taker), 0);
    struct contract *other = contract_other(c);
    contract_session(other, "b");
    const struct gl_store_req *req = contract_take(other, "inbox", LONG_MS, 10);
    check_items(req, "b=1 a=2 c=3");
    assert_true(req->items[0].token > token);
    assert_int_equal(contract_commit(c, GUARDS(claimed("inbox", "b", token)), NO_WRITES),
                     GL_E_CONFLICT);
}

static void the_claims_of_one_declared_dead_are_over(void **state)
{
    struct contract *c = *state;
    bool is_dead;
    gl_str taker = contract_session_for(c, "a", SHORT_MS, "{}");
    fill(c);
    check_items(contract_take(c, "inbox", LONG_MS, 2), "b=1 a=2");
    contract_advance(c, SHORT_MS + 20);
    struct contract *other = contract_other(c);
    contract_session(other, "b"); /* on a store that is not shared this ends it */
    assert_int_equal(contract_declare(other, taker, &is_dead), 0);
    assert_true(is_dead);
    check_items(contract_take(other, "inbox", LONG_MS, 10), "b=1 a=2 c=3");
}

/* ---- content ---- */

static void items_may_contain_every_byte(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    char bytes[512];
    for (int i = 0; i < 512; i++) {
        bytes[i] = (char)(i % 256);
    }
    struct gl_write all = push("q/'%_\"\n:x", "01J/Übung '%_\"\n:\xff", NULL);
    all.value = (gl_str){bytes, sizeof(bytes)};
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(all, push("q/'%_\"\n:x", "e", ""))), 0);
    const struct gl_store_req *req = contract_take(c, "q/'%_\"\n:x", LONG_MS, 10);
    assert_int_equal(req->items_n, 2);
    assert_true(gl_str_eq(req->items[0].id, all.id));
    assert_true(gl_str_eq(req->items[0].value, all.value));
    assert_int_equal(req->items[1].value.n, 0);
    assert_int_equal(
        contract_commit(
            c, GUARDS(claimed("q/'%_\"\n:x", "01J/Übung '%_\"\n:\xff", req->items[0].token)),
            WRITES(pop("q/'%_\"\n:x", "01J/Übung '%_\"\n:\xff"))),
        0);
}

static void queues_survive_reopening(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    contract_reopen(c);
    check_items(contract_take(c, "inbox", LONG_MS, 10), "b=1 a=2 c=3");
}

int main(void)
{
    const struct contract_test tests[] = {
        CONTRACT_TEST(items_are_taken_in_the_order_of_pushing),
        CONTRACT_TEST(what_is_not_there_cannot_be_taken),
        CONTRACT_TEST(an_item_is_pushed_once),
        CONTRACT_TEST(an_item_is_acknowledged_by_its_claim),
        CONTRACT_TEST(items_may_be_removed_by_anybody),
        CONTRACT_TEST(an_old_claim_is_worth_nothing_for_a_new_item),
        CONTRACT_TEST(a_refused_transaction_moves_no_item),
        CONTRACT_TEST(writes_to_a_queue_apply_in_their_order),
        CONTRACT_TEST(a_claim_ends_with_its_lease),
        CONTRACT_TEST(a_claim_lasts_as_long_as_its_lease),
        CONTRACT_TEST(an_item_given_back_is_taken_from_its_old_place),
        CONTRACT_TEST(the_claims_of_the_dead_are_over),
        CONTRACT_TEST(the_claims_of_one_declared_dead_are_over),
        CONTRACT_TEST(items_may_contain_every_byte),
        CONTRACT_TEST(queues_survive_reopening),
    };
    return contract_run(tests, GL_COUNT(tests));
}
