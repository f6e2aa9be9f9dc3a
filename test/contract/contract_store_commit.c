/* Transactions: guards, writes, order, limits, durability. */
#include "base/limits.h"
#include "base/mem.h"
#include "contract/contract.h"

/* ---- guards ---- */

static void at_holds_only_at_that_revision(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 3, "{}"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(at("job", "a", 3)), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, GUARDS(at("job", "a", 2)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(at("job", "a", 4)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(at("job", "b", 3)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(at("step", "a", 3)), NO_WRITES), GL_E_CONFLICT);
}

static void present_holds_for_every_revision(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, GUARDS(present("job", "a")), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 3, "x"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(present("job", "a")), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put_live("job", "a", 4, "y"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(present("job", "a")), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(delete_record("job", "a"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(present("job", "a")), NO_WRITES), GL_E_CONFLICT);
}

static void absent_holds_only_without_a_record(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, GUARDS(absent("job", "a")), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(absent("job", "a")), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(absent("job", "aa")), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(delete_record("job", "a"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(absent("job", "a")), NO_WRITES), 0);
}

static void not_live_holds_without_a_record_and_for_one_that_ended(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, GUARDS(not_live("run", "a")), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put_live("run", "a", 1, "{}"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(not_live("run", "a")), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("run", "a", 2, "{}"))), 0);
    assert_int_equal(contract_commit(c, GUARDS(not_live("run", "a")), NO_WRITES), 0);
}

static void owned_holds_only_for_that_owner_with_that_token(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put_owned("job", "a", 7, "n#1.x", 5))),
                     0);
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "a", "n#1.x", 5)), NO_WRITES), 0);
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "a", "n#1.x", 4)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "a", "n#1.x", 6)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "a", "n#2.y", 5)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "a", "", 5)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "b", "n#1.x", 5)), NO_WRITES),
                     GL_E_CONFLICT);
}

static void owned_with_a_revision_holds_only_at_it(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put_owned("job", "a", 7, "n#1.x", 5))),
                     0);
    struct gl_guard g = owned("job", "a", "n#1.x", 5);
    g.rev = 7;
    assert_int_equal(contract_commit(c, GUARDS(g), NO_WRITES), 0);
    g.rev = 8;
    assert_int_equal(contract_commit(c, GUARDS(g), NO_WRITES), GL_E_CONFLICT);
}

static void the_first_guard_that_does_not_hold_is_named(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    struct contract_call *call = contract_start(
        c, GUARDS(at("job", "a", 1), absent("job", "b"), at("job", "a", 9), absent("job", "a")),
        NO_WRITES);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_CONFLICT);
    assert_int_equal(call->req.refused, 2);
}

static void a_refused_transaction_writes_nothing(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put("job", "kept", 1, "old"), into_index("due", 5, "kept"),
                               append("events", "a", 1, "one"))),
        0);
    assert_int_equal(
        contract_commit(c, GUARDS(at("job", "kept", 1), at("job", "kept", 2)),
                        WRITES(put("job", "kept", 2, "new"), put("job", "more", 1, "{}"),
                               put_new("blob", "x", 1, "{}"), delete_record("job", "kept"),
                               into_index("due", 6, "more"), out_of_index("due", 5, "kept"),
                               append("events", "a", 2, "two"), trim("events", "a", INT64_MAX))),
        GL_E_CONFLICT);
    check_value(c, "job", "kept", "old");
    check_absent(c, "job", "more");
    check_absent(c, "blob", "x");
    struct gl_range all = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 100};
    check_entries(contract_range(c, &all), "5:kept");
    check_log(contract_log(c, "events", "a", 0, 100), "1:one");
}

static void guards_see_the_state_before_the_writes(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, GUARDS(absent("job", "a"), not_live("job", "a")),
                                     WRITES(put_live("job", "a", 1, "{}"))),
                     0);
    assert_int_equal(
        contract_commit(c, GUARDS(at("job", "a", 1)), WRITES(delete_record("job", "a"))), 0);
    check_absent(c, "job", "a");
}

/* ---- writes ---- */

static void put_creates_and_replaces_every_field(void **state)
{
    struct contract *c = *state;
    struct gl_write w = put_live("job", "a", 1, "first");
    w.owner = GL_S("n#1.x");
    w.token = 4;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(w)), 0);
    struct gl_record r = contract_get(c, "job", "a");
    assert_int_equal(r.rev, 1);
    assert_true(gl_str_is(r.owner, "n#1.x"));
    assert_int_equal(r.token, 4);
    assert_true(r.live);
    assert_true(gl_str_is(r.value, "first"));
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 2, ""))), 0);
    r = contract_get(c, "job", "a");
    assert_int_equal(r.rev, 2);
    assert_int_equal(r.owner.n, 0);
    assert_int_equal(r.token, 0);
    assert_false(r.live);
    assert_int_equal(r.value.n, 0);
}

static void put_new_leaves_what_is_there(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put_new("flow", "h", 1, "one"))), 0);
    check_value(c, "flow", "h", "one");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put_new("flow", "h", 2, "two"))), 0);
    check_value(c, "flow", "h", "one");
    assert_int_equal(contract_get(c, "flow", "h").rev, 1);
}

static void deleting_what_is_absent_is_fine(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(delete_record("job", "none"), out_of_index("due", 1, "none"),
                               trim("events", "none", 5))),
        0);
    check_absent(c, "job", "none");
}

static void writes_of_one_transaction_apply_in_their_order(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put("job", "a", 1, "1"), put("job", "a", 2, "2"),
                               put("job", "b", 1, "1"), delete_record("job", "b"),
                               into_index("due", 1, "a"), out_of_index("due", 1, "a"))),
        0);
    check_value(c, "job", "a", "2");
    check_absent(c, "job", "b");
    struct gl_range all = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 100};
    check_entries(contract_range(c, &all), "");
}

static void records_of_one_id_in_two_kinds_are_two(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put("job", "a", 1, "job"), put("step", "a", 1, "step"))),
        0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(delete_record("job", "a"))), 0);
    check_absent(c, "job", "a");
    check_value(c, "step", "a", "step");
}

static void values_and_ids_may_contain_every_byte(void **state)
{
    struct contract *c = *state;
    char bytes[512];
    for (int i = 0; i < 512; i++) {
        bytes[i] = (char)(i % 256);
    }
    assert_int_equal(
        contract_commit(c, NO_GUARDS, WRITES(put_bytes("blob", "all", (gl_str){bytes, 512}))), 0);
    struct gl_record r = contract_get(c, "blob", "all");
    assert_int_equal(r.value.n, 512);
    assert_memory_equal(r.value.p, bytes, 512);
    assert_int_equal(
        contract_commit(c, NO_GUARDS, WRITES(put("step", "01J/Übung '%_\"\n/x", 1, "odd"))), 0);
    check_value(c, "step", "01J/Übung '%_\"\n/x", "odd");
    check_absent(c, "step", "01J/Übung '%_\"\n/");
}

static void numbers_keep_all_their_bits(void **state)
{
    struct contract *c = *state;
    struct gl_write w = put("job", "a", UINT64_MAX, "{}");
    w.token = UINT64_MAX - 1;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(w)), 0);
    struct gl_record r = contract_get(c, "job", "a");
    assert_true(r.rev == UINT64_MAX);
    assert_true(r.token == UINT64_MAX - 1);
    assert_int_equal(contract_commit(c, GUARDS(at("job", "a", UINT64_MAX)), NO_WRITES), 0);
}

static void an_empty_transaction_commits(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, NO_WRITES), 0);
}

static void contexts_are_apart(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit_in(c, "default", NO_GUARDS, WRITES(put("job", "a", 1, "d"))),
                     0);
    assert_int_equal(
        contract_commit_in(c, "other", GUARDS(absent("job", "a")), WRITES(put("job", "a", 5, "o"))),
        0);
    assert_int_equal(contract_get_in(c, "default", "job", "a").rev, 1);
    assert_int_equal(contract_get_in(c, "other", "job", "a").rev, 5);
    assert_int_equal(contract_get_in(c, "nowhere", "job", "a").rev, 0);
}

/* ---- order ---- */

static void transactions_complete_in_the_order_of_the_calls(void **state)
{
    struct contract *c = *state;
    enum { N = 500 };
    struct contract_call *calls[N];
    for (int i = 0; i < N; i++) {
        /* Every third is refused: a refusal must not overtake earlier commits. */
        calls[i] = i % 3 == 0 ? contract_start(c, GUARDS(at("job", "none", 1)), NO_WRITES)
                              : contract_start_in(c, i % 50 == 1 ? "other" : "default", NO_GUARDS,
                                                  WRITES(put("job", "a", (uint64_t)i, "{}")));
    }
    contract_wait(calls[N - 1]);
    for (int i = 0; i < N; i++) {
        assert_true(calls[i]->done);
        assert_int_equal(calls[i]->order, i + 1);
        assert_int_equal(calls[i]->req.status, i % 3 == 0 ? GL_E_CONFLICT : 0);
    }
    assert_int_equal(contract_get(c, "job", "a").rev, N - 1);
}

static void pipelined_transactions_see_their_predecessors(void **state)
{
    struct contract *c = *state;
    struct contract_call *last =
        contract_start(c, GUARDS(absent("job", "a")), WRITES(put("job", "a", 1, "{}")));
    for (uint64_t rev = 1; rev < 300; rev++) {
        last =
            contract_start(c, GUARDS(at("job", "a", rev)), WRITES(put("job", "a", rev + 1, "{}")));
    }
    contract_wait(last);
    assert_int_equal(last->req.status, 0);
    assert_int_equal(contract_get(c, "job", "a").rev, 300);
}

static void when_a_predecessor_is_refused_its_successors_fail(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "1"))), 0);
    struct contract_call *refused = contract_start(c, GUARDS(at("job", "a", 1), absent("job", "a")),
                                                   WRITES(put("job", "a", 2, "2")));
    struct contract_call *successor =
        contract_start(c, GUARDS(at("job", "a", 2)), WRITES(put("job", "a", 3, "3")));
    struct contract_call *stranger =
        contract_start(c, GUARDS(absent("job", "b")), WRITES(put("job", "b", 1, "b")));
    contract_wait(stranger);
    assert_int_equal(refused->req.status, GL_E_CONFLICT);
    assert_int_equal(refused->req.refused, 1);
    assert_int_equal(successor->req.status, GL_E_CONFLICT);
    assert_int_equal(successor->req.refused, 0);
    assert_int_equal(stranger->req.status, 0);
    check_value(c, "job", "a", "1");
    check_value(c, "job", "b", "b");
}

static void start_another(struct gl_store_req *req)
{
    struct contract_call *call = req->owner;
    assert_int_equal(req->status, 0);
    if (call->tx.id < 50) { /* The request belongs to the caller again and may be reused. */
        call->tx.id++;
        call->c->store->ops->commit(call->c->store, req, &call->tx);
        return;
    }
    call->done = true;
}

static void a_completion_may_start_the_next_transaction(void **state)
{
    struct contract *c = *state;
    struct contract_call *call = contract_call_new(c);
    struct gl_write w = put("job", "a", 1, "{}");
    call->req.done = start_another;
    call->tx = (struct gl_tx){.context = GL_S("default"), .id = 1, .writes = &w, .writes_n = 1};
    c->store->ops->commit(c->store, &call->req, &call->tx);
    contract_wait(call);
    assert_int_equal(call->tx.id, 50);
    assert_int_equal(contract_get(c, "job", "a").rev, 1);
}

/* ---- limits ---- */

static void the_largest_record_is_taken_and_one_byte_more_is_not(void **state)
{
    struct contract *c = *state;
    char *bytes = gl_mem_alloc(GL_RECORD_BYTES_MAX + 1);
    memset(bytes, 'x', GL_RECORD_BYTES_MAX + 1);
    bytes[GL_RECORD_BYTES_MAX - 1] = 'y';
    gl_str largest = {bytes, GL_RECORD_BYTES_MAX}, larger = {bytes, GL_RECORD_BYTES_MAX + 1};
    struct contract_call *before = contract_start(c, NO_GUARDS, WRITES(put("job", "b", 1, "b")));
    struct contract_call *refused =
        contract_start(c, NO_GUARDS, WRITES(put("job", "r", 1, "r"), put_bytes("f", "r", larger)));
    struct contract_call *after = contract_start(c, NO_GUARDS, WRITES(put("job", "a", 1, "a")));
    contract_wait(after);
    assert_int_equal(before->req.status, 0);
    assert_int_equal(refused->req.status, GL_E_LIMIT);
    assert_int_equal(after->req.status, 0);
    check_absent(c, "job", "r");
    check_absent(c, "f", "r");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put_bytes("f", "l", largest))), 0);
    struct gl_record r = contract_get(c, "f", "l");
    assert_int_equal(r.value.n, largest.n);
    assert_memory_equal(r.value.p, largest.p, largest.n);
    gl_mem_free(bytes);
}

/* ---- durability ---- */

static void what_was_committed_survives_reopening(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put_live("job", "a", 3, "value"),
                               put_owned("job", "b", 1, "n#1.x", 2), into_index("due", -5, "a"),
                               append("events", "a", 1, "one"))),
        0);
    assert_int_equal(contract_commit_in(c, "other", NO_GUARDS, WRITES(put("job", "o", 1, "o"))), 0);
    contract_reopen(c);
    struct gl_record r = contract_get(c, "job", "a");
    assert_int_equal(r.rev, 3);
    assert_true(r.live);
    assert_true(gl_str_is(r.value, "value"));
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "b", "n#1.x", 2)), NO_WRITES), 0);
    struct gl_range all = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 100};
    check_entries(contract_range(c, &all), "-5:a");
    check_log(contract_log(c, "events", "a", 0, 10), "1:one");
    assert_int_equal(contract_get_in(c, "other", "job", "o").rev, 1);
}

static void a_read_after_a_commit_sees_it(void **state)
{
    struct contract *c = *state;
    for (uint64_t rev = 1; rev <= 200; rev++) {
        assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", rev, "{}"))), 0);
        assert_int_equal(contract_get(c, "job", "a").rev, rev);
    }
}

int main(void)
{
    const struct contract_test tests[] = {
        CONTRACT_TEST(at_holds_only_at_that_revision),
        CONTRACT_TEST(absent_holds_only_without_a_record),
        CONTRACT_TEST(present_holds_for_every_revision),
        CONTRACT_TEST(not_live_holds_without_a_record_and_for_one_that_ended),
        CONTRACT_TEST(owned_holds_only_for_that_owner_with_that_token),
        CONTRACT_TEST(owned_with_a_revision_holds_only_at_it),
        CONTRACT_TEST(the_first_guard_that_does_not_hold_is_named),
        CONTRACT_TEST(a_refused_transaction_writes_nothing),
        CONTRACT_TEST(guards_see_the_state_before_the_writes),
        CONTRACT_TEST(put_creates_and_replaces_every_field),
        CONTRACT_TEST(put_new_leaves_what_is_there),
        CONTRACT_TEST(deleting_what_is_absent_is_fine),
        CONTRACT_TEST(writes_of_one_transaction_apply_in_their_order),
        CONTRACT_TEST(records_of_one_id_in_two_kinds_are_two),
        CONTRACT_TEST(values_and_ids_may_contain_every_byte),
        CONTRACT_TEST(numbers_keep_all_their_bits),
        CONTRACT_TEST(an_empty_transaction_commits),
        CONTRACT_TEST(contexts_are_apart),
        CONTRACT_TEST(transactions_complete_in_the_order_of_the_calls),
        CONTRACT_TEST(pipelined_transactions_see_their_predecessors),
        CONTRACT_TEST(when_a_predecessor_is_refused_its_successors_fail),
        CONTRACT_TEST(a_completion_may_start_the_next_transaction),
        CONTRACT_TEST(the_largest_record_is_taken_and_one_byte_more_is_not),
        CONTRACT_TEST(what_was_committed_survives_reopening),
        CONTRACT_TEST(a_read_after_a_commit_sees_it),
    };
    return contract_run(tests, GL_COUNT(tests));
}
