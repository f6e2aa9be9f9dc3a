/* Reading: records, indexes, listings, logs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "contract/contract.h"

/* ---- get ---- */

static void get_answers_every_key_in_order(void **state)
{
    struct contract *c = *state;
    enum { N = 300 };
    struct gl_key keys[N];
    for (int i = 0; i < N; i++) {
        char *id = gl_arena_alloc(&c->arena, 16);
        (void)snprintf(id, 16, "k%03d", i / 2); /* each key twice */
        keys[i] = (struct gl_key){GL_S("job"), gl_str_of(id)};
        if (i % 4 == 0) { /* every second key exists */
            assert_int_equal(
                contract_commit(c, NO_GUARDS, WRITES(put("job", id, (uint64_t)i + 1, id))), 0);
        }
    }
    struct contract_call *call = contract_call_new(c);
    c->store->ops->get(c->store, &call->req, GL_S("default"), keys, N);
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
    assert_int_equal(call->req.records_n, N);
    for (int i = 0; i < N; i++) {
        const struct gl_record *r = &call->req.records[i];
        assert_true(gl_str_eq(r->id, keys[i].id));
        assert_true(gl_str_eq(r->kind, keys[i].kind));
        assert_int_equal(r->rev, i % 4 < 2 ? i - i % 4 + 1 : 0);
        assert_int_equal(r->value.n, i % 4 < 2 ? 4 : 0);
    }
}

static void get_of_nothing_is_nothing(void **state)
{
    struct contract *c = *state;
    struct contract_call *call = contract_call_new(c);
    c->store->ops->get(c->store, &call->req, GL_S("default"), NULL, 0);
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
    assert_int_equal(call->req.records_n, 0);
}

/* ---- range ---- */

static struct gl_range range_of(const char *index, int64_t min, int64_t max, size_t limit)
{
    return (struct gl_range){gl_str_of(index), min, max, 0, {0}, limit};
}

static void fill_index(struct contract *c)
{
    assert_int_equal(contract_commit(c, NO_GUARDS,
                                     WRITES(into_index("due", 10, "b"), into_index("due", 10, "a"),
                                            into_index("due", 10, "c"), into_index("due", 5, "z"),
                                            into_index("due", -7, "m"), into_index("due", 20, "a"),
                                            into_index("duf", 11, "x"), into_index("du", 12, "y"))),
                     0);
}

static void a_range_ascends_by_score_then_id(void **state)
{
    struct contract *c = *state;
    fill_index(c);
    struct gl_range r = range_of("due", INT64_MIN, INT64_MAX, 100);
    check_entries(contract_range(c, &r), "-7:m 5:z 10:a 10:b 10:c 20:a");
}

static void a_range_includes_both_bounds(void **state)
{
    struct contract *c = *state;
    fill_index(c);
    struct gl_range r = range_of("due", 5, 10, 100);
    check_entries(contract_range(c, &r), "5:z 10:a 10:b 10:c");
    r = range_of("due", 6, 9, 100);
    check_entries(contract_range(c, &r), "");
    r = range_of("due", 10, 5, 100);
    check_entries(contract_range(c, &r), "");
}

static void a_range_stops_at_its_limit(void **state)
{
    struct contract *c = *state;
    fill_index(c);
    struct gl_range r = range_of("due", INT64_MIN, INT64_MAX, 3);
    check_entries(contract_range(c, &r), "-7:m 5:z 10:a");
    r.limit = 0;
    check_entries(contract_range(c, &r), "");
}

static void a_range_continues_behind_an_entry(void **state)
{
    struct contract *c = *state;
    fill_index(c);
    struct gl_range r = range_of("due", INT64_MIN, INT64_MAX, 2);
    r.after_score = 10;
    r.after_id = GL_S("a"); /* among entries with the same score */
    check_entries(contract_range(c, &r), "10:b 10:c");
    r.after_id = GL_S("bb"); /* need not exist */
    check_entries(contract_range(c, &r), "10:c 20:a");
    r.after_score = 20;
    r.after_id = GL_S("a");
    check_entries(contract_range(c, &r), "");
    r = range_of("due", 5, 10, 100);
    r.after_score = -7; /* before the range: the range begins at its start */
    r.after_id = GL_S("m");
    check_entries(contract_range(c, &r), "5:z 10:a 10:b 10:c");
}

static void one_id_may_stand_at_several_scores(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS,
                                     WRITES(into_index("due", 1, "a"), into_index("due", 2, "a"),
                                            into_index("due", 1, "a"))),
                     0);
    struct gl_range r = range_of("due", INT64_MIN, INT64_MAX, 100);
    check_entries(contract_range(c, &r), "1:a 2:a");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(out_of_index("due", 1, "a"))), 0);
    check_entries(contract_range(c, &r), "2:a");
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(out_of_index("due", 1, "a"), out_of_index("due", 2, "b"))),
        0);
    check_entries(contract_range(c, &r), "2:a");
}

static void scores_reach_from_end_to_end(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(into_index("due", INT64_MAX, "last"),
                               into_index("due", INT64_MIN, "first"), into_index("due", 0, "mid"))),
        0);
    struct gl_range r = range_of("due", INT64_MIN, INT64_MAX, 100);
    const struct gl_store_req *req = contract_range(c, &r);
    assert_int_equal(req->entries_n, 3);
    assert_true(req->entries[0].score == INT64_MIN);
    assert_true(req->entries[2].score == INT64_MAX);
    r.after_score = INT64_MIN;
    r.after_id = GL_S("first");
    assert_int_equal(contract_range(c, &r)->entries_n, 2);
}

/* A million if there is time. The simulator's store is an array, which is too slow for that many.
 */
static int long_rows(const struct contract *c)
{
    const char *full = getenv("GLIA_CONTRACT_FULL");
    bool is_simulated = c->maker->advance != NULL;
    return full != NULL && strcmp(full, "1") == 0 && !is_simulated ? 1000000 : 30000;
}

static void fill_long_index(struct contract *c, int rows)
{
    enum { PER_TX = 500, AT_ONCE = 50 };
    struct contract_call *last = NULL;
    static char ids[PER_TX * AT_ONCE][16]; /* of the pending transactions */
    static struct gl_write writes[PER_TX];
    for (int i = 0; i < rows; i++) {
        char *id = ids[i % (PER_TX * AT_ONCE)];
        (void)snprintf(id, sizeof(ids[0]), "j%07d", i);
        writes[i % PER_TX] = into_index("due", (int64_t)i * 7919 % rows, id);
        if (i % PER_TX == PER_TX - 1) {
            last = contract_start(c, NO_GUARDS, writes, PER_TX);
        }
        if (i % (PER_TX * AT_ONCE) == PER_TX * AT_ONCE - 1) {
            contract_wait(last);
        }
    }
    contract_wait(last);
    assert_int_equal(last->req.status, 0);
}

/* The seconds that reads at many places of an index take. */
static double time_reads(struct contract *c, const char *index, int rows)
{
    struct timespec began, ended;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    for (int i = 0; i < 1000; i++) {
        int64_t from = (int64_t)i * rows / 1000 < rows - 10 ? (int64_t)i * rows / 1000 : rows - 10;
        struct gl_range r = range_of(index, from, rows, 10);
        const struct gl_store_req *req = contract_range(c, &r);
        assert_int_equal(req->entries_n, 10);
        assert_int_equal(req->entries[0].score, from);
        assert_int_equal(req->entries[9].score, from + 9);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    return (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
}

static void the_head_of_a_long_index_is_read_alone(void **state)
{
    struct contract *c = *state;
    int rows = long_rows(c);
    struct gl_write few[20];
    for (int i = 0; i < (int)GL_COUNT(few); i++) {
        few[i] = into_index("few", i, gl_str_fmt(&c->arena, "%d", i).p);
    }
    assert_int_equal(contract_commit(c, NO_GUARDS, few, GL_COUNT(few)), 0);
    fill_long_index(c, rows);
    double of_few = time_reads(c, "few", GL_COUNT(few)), of_many = time_reads(c, "due", rows);
    /* Some milliseconds each, even on a busy machine; a scan of a million takes far longer. The
     * short index shows how busy the machine is. */
    assert_true(of_many < 30 + 10 * of_few);
}

/* ---- list ---- */

static void fill_records(struct contract *c)
{
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put_live("step", "j1/b", 1, "v1"), put("step", "j1/a", 2, "v2"),
                               put_live("step", "j1/c", 3, "v3"), put("step", "j10/a", 4, "v4"),
                               put_live("step", "j2/a", 5, "v5"), put("step", "j1", 6, "v6"),
                               put("job", "j1/x", 7, "v7"))),
        0);
}

static void a_listing_is_ordered_by_id(void **state)
{
    struct contract *c = *state;
    fill_records(c);
    struct gl_listing l = {.kind = GL_S("step"), .limit = 100};
    check_ids(contract_list(c, &l), "j1 j1/a j1/b j1/c j10/a j2/a");
    l.descending = true;
    check_ids(contract_list(c, &l), "j2/a j10/a j1/c j1/b j1/a j1");
}

static void a_listing_gives_whole_records(void **state)
{
    struct contract *c = *state;
    fill_records(c);
    struct gl_listing l = {.kind = GL_S("step"), .prefix = GL_S("j1/b"), .limit = 100};
    const struct gl_store_req *req = contract_list(c, &l);
    assert_int_equal(req->records_n, 1);
    assert_int_equal(req->records[0].rev, 1);
    assert_true(req->records[0].live);
    assert_true(gl_str_is(req->records[0].kind, "step"));
    assert_true(gl_str_is(req->records[0].value, "v1"));
}

static void a_listing_keeps_to_its_prefix(void **state)
{
    struct contract *c = *state;
    fill_records(c);
    struct gl_listing l = {.kind = GL_S("step"), .prefix = GL_S("j1/"), .limit = 100};
    check_ids(contract_list(c, &l), "j1/a j1/b j1/c");
    l.descending = true;
    check_ids(contract_list(c, &l), "j1/c j1/b j1/a");
    l.prefix = GL_S("j1");
    check_ids(contract_list(c, &l), "j10/a j1/c j1/b j1/a j1");
    l.prefix = GL_S("k");
    check_ids(contract_list(c, &l), "");
}

static void a_listing_of_live_records_has_no_others(void **state)
{
    struct contract *c = *state;
    fill_records(c);
    struct gl_listing l = {.kind = GL_S("step"), .limit = 100, .live_only = true};
    check_ids(contract_list(c, &l), "j1/b j1/c j2/a");
    l.descending = true;
    check_ids(contract_list(c, &l), "j2/a j1/c j1/b");
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put("step", "j1/c", 4, "over"), put_live("step", "j1/a", 3, "back"),
                               delete_record("step", "j2/a"))),
        0);
    check_ids(contract_list(c, &l), "j1/b j1/a");
}

static void a_listing_goes_on_page_by_page(void **state)
{
    struct contract *c = *state;
    fill_records(c);
    struct gl_listing l = {.kind = GL_S("step"), .limit = 2};
    check_ids(contract_list(c, &l), "j1 j1/a");
    l.after = GL_S("j1/a");
    check_ids(contract_list(c, &l), "j1/b j1/c");
    l.after = GL_S("j1/c");
    check_ids(contract_list(c, &l), "j10/a j2/a");
    l.after = GL_S("j2/a");
    check_ids(contract_list(c, &l), "");
    l.after = GL_S("j1/bb"); /* need not exist */
    check_ids(contract_list(c, &l), "j1/c j10/a");
    l.descending = true;
    l.after = GL_S("j10/a");
    check_ids(contract_list(c, &l), "j1/c j1/b");
    l.after = GL_S("j1");
    check_ids(contract_list(c, &l), "");
    l = (struct gl_listing){
        .kind = GL_S("step"), .prefix = GL_S("j1/"), .after = GL_S("j1/b"), .limit = 100};
    check_ids(contract_list(c, &l), "j1/c");
    l.descending = true;
    check_ids(contract_list(c, &l), "j1/a");
    l.after = GL_S("zz"); /* after the prefix: all of it */
    check_ids(contract_list(c, &l), "j1/c j1/b j1/a");
    l.descending = false;
    check_ids(contract_list(c, &l), "");
    l.after = GL_S("a");
    check_ids(contract_list(c, &l), "j1/a j1/b j1/c");
}

static void a_page_of_a_listing_ends_after_a_sum_of_bytes(void **state)
{
    struct contract *c = *state;
    enum { N = 9, BYTES = 1000 };
    char *value = gl_arena_alloc(&c->arena, BYTES + 1);
    memset(value, 'x', BYTES);
    for (int i = 0; i < N; i++) {
        char *id = gl_arena_alloc(&c->arena, 16);
        (void)snprintf(id, 16, "k%d", i);
        assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", id, 1, value))), 0);
    }
    struct gl_listing l = {.kind = GL_S("job"), .limit = 100, .bytes_max = 3 * BYTES};
    const struct gl_store_req *page = contract_list(c, &l);
    assert_true(gl_listing_has_more(&l, page->records, page->records_n));
    check_ids(page, "k0 k1 k2");
    l.prefix = GL_S("k"); /* with an upper bound */
    l.after = GL_S("k2");
    l.bytes_max = 2 * BYTES + 1;
    check_ids(contract_list(c, &l), "k3 k4 k5");
    l.after = GL_S("k5");
    l.descending = true;
    l.bytes_max = 1; /* one always fits */
    check_ids(contract_list(c, &l), "k4");
    l = (struct gl_listing){.kind = GL_S("job"), .limit = 2, .bytes_max = 3 * BYTES};
    check_ids(contract_list(c, &l), "k0 k1");
    l.after = GL_S("k6");
    l.limit = 100;
    page = contract_list(c, &l);
    assert_false(gl_listing_has_more(&l, page->records, page->records_n));
    check_ids(page, "k7 k8");
}

static void ids_are_ordered_by_their_bytes(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put("job", "\xff\xff", 1, ""), put("job", "\xff", 1, ""),
                               put("job", "Z", 1, ""), put("job", "a", 1, ""),
                               put("job", "\xc3\xa4", 1, ""), put("job", "a\x01", 1, ""))),
        0);
    struct gl_listing l = {.kind = GL_S("job"), .limit = 100};
    check_ids(contract_list(c, &l), "Z a a\x01 \xc3\xa4 \xff \xff\xff");
    l.prefix = GL_S("\xff");
    check_ids(contract_list(c, &l), "\xff \xff\xff");
    l.prefix = GL_S("a");
    l.after = GL_S("a");
    check_ids(contract_list(c, &l), "a\x01");
}

/* ---- logs ---- */

static void a_log_is_read_from_a_number(void **state)
{
    struct contract *c = *state;
    for (int64_t i = 1; i <= 5; i++) {
        static const char *const text[] = {"zero", "one", "two", "three", "four", "five"};
        assert_int_equal(contract_commit(c, NO_GUARDS,
                                         WRITES(append("events", "a", i, text[i]),
                                                append("events", "b", i, "other"))),
                         0);
    }
    check_log(contract_log(c, "events", "a", 0, 100), "1:one 2:two 3:three 4:four 5:five");
    check_log(contract_log(c, "events", "a", 3, 100), "3:three 4:four 5:five");
    check_log(contract_log(c, "events", "a", 2, 2), "2:two 3:three");
    check_log(contract_log(c, "events", "a", 6, 100), "");
    check_log(contract_log(c, "events", "none", 0, 100), "");
    check_log(contract_log(c, "other", "a", 0, 100), "");
}

static void a_log_is_trimmed_below_a_number(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(append("events", "a", 1, "x"), append("events", "a", 2, "y"),
                               append("events", "a", 3, "z"), append("events", "b", 1, "b"))),
        0);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(trim("events", "a", 3))), 0);
    check_log(contract_log(c, "events", "a", 0, 100), "3:z");
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(append("events", "a", 4, "w"), trim("events", "a", INT64_MAX))),
        0);
    check_log(contract_log(c, "events", "a", 0, 100), "");
    check_log(contract_log(c, "events", "b", 0, 100), "1:b");
}

static void a_listing_of_ids_leaves_the_values(void **state)
{
    struct contract *c = *state;
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(put("step", "a/1", 3, "one"), put("step", "a/2", 4, "two"),
                               put("step", "b/1", 5, "other"))),
        0);
    struct gl_listing l = {
        .kind = GL_S("step"), .prefix = GL_S("a/"), .limit = 9, .ids_only = true};
    const struct gl_store_req *req = contract_list(c, &l);
    check_ids(req, "a/1 a/2");
    assert_int_equal(req->records[1].rev, 4);
    assert_int_equal(req->records[1].value.n, 0);
    l.after = GL_S("a/1");
    check_ids(contract_list(c, &l), "a/2");
}

static void what_was_removed_is_not_measured(void **state)
{
    struct contract *c = *state;
    enum { N = 200, BYTES = 4000 };
    char *value = gl_arena_alloc(&c->arena, BYTES + 1);
    memset(value, 'x', BYTES);
    for (int i = 0; i < N; i++) {
        char *id = gl_arena_alloc(&c->arena, 16);
        (void)snprintf(id, 16, "k%03d", i);
        assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", id, 1, value))), 0);
    }
    uint64_t full = contract_measure(c);
    assert_true(full > N * BYTES);
    assert_true(full < 3 * N * BYTES);
    for (int i = 0; i < N; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "k%03d", i);
        assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(delete_record("job", id))), 0);
    }
    assert_true(contract_measure(c) < full / 4);
}

static void an_empty_context_has_nothing_to_read(void **state)
{
    struct contract *c = *state;
    check_absent(c, "job", "a");
    struct gl_range r = range_of("due", INT64_MIN, INT64_MAX, 100);
    check_entries(contract_range(c, &r), "");
    struct gl_listing l = {.kind = GL_S("job"), .limit = 100};
    check_ids(contract_list(c, &l), "");
    check_log(contract_log(c, "events", "a", 0, 100), "");
    assert_true(contract_measure(c) < 1 << 20);
}

int main(void)
{
    const struct contract_test tests[] = {
        CONTRACT_TEST(get_answers_every_key_in_order),
        CONTRACT_TEST(get_of_nothing_is_nothing),
        CONTRACT_TEST(a_range_ascends_by_score_then_id),
        CONTRACT_TEST(a_range_includes_both_bounds),
        CONTRACT_TEST(a_range_stops_at_its_limit),
        CONTRACT_TEST(a_range_continues_behind_an_entry),
        CONTRACT_TEST(one_id_may_stand_at_several_scores),
        CONTRACT_TEST(scores_reach_from_end_to_end),
        CONTRACT_TEST(the_head_of_a_long_index_is_read_alone),
        CONTRACT_TEST(a_listing_is_ordered_by_id),
        CONTRACT_TEST(a_listing_gives_whole_records),
        CONTRACT_TEST(a_listing_keeps_to_its_prefix),
        CONTRACT_TEST(a_listing_of_live_records_has_no_others),
        CONTRACT_TEST(a_listing_goes_on_page_by_page),
        CONTRACT_TEST(a_page_of_a_listing_ends_after_a_sum_of_bytes),
        CONTRACT_TEST(ids_are_ordered_by_their_bytes),
        CONTRACT_TEST(a_log_is_read_from_a_number),
        CONTRACT_TEST(a_log_is_trimmed_below_a_number),
        CONTRACT_TEST(a_listing_of_ids_leaves_the_values),
        CONTRACT_TEST(what_was_removed_is_not_measured),
        CONTRACT_TEST(an_empty_context_has_nothing_to_read),
    };
    return contract_run(tests, GL_COUNT(tests));
}
