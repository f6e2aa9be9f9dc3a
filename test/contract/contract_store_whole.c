/* Whole contexts: exported and recreated, damaged, and at the limits of what fits. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "contract/contract.h"

/* ---- exports ---- */

enum { WRITES_MAX = 2000 };

struct dump { /* of a context, sorted */
    struct gl_write *w;
    size_t n;
};

static int compare_numbers(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Engines may export in any order. */
static int compare(const void *a, const void *b)
{
    const struct gl_write *x = a, *y = b;
    int c = compare_numbers(x->type, y->type);
    c = c != 0 ? c : gl_str_cmp(x->kind, y->kind);
    c = c != 0 ? c : compare_numbers(x->score, y->score);
    c = c != 0 ? c : gl_str_cmp(x->id, y->id);
    return c != 0 ? c : compare_numbers(x->seq, y->seq);
}

static struct dump export_all(struct contract *c, size_t limit)
{
    struct dump d = {GL_NEW_ARRAY(&c->arena, struct gl_write, WRITES_MAX), 0};
    gl_str after = {0};
    for (size_t pages = 0;; pages++) {
        assert_true(pages < WRITES_MAX); /* otherwise the export would loop forever */
        const struct gl_store_req *req = contract_export(c, after, limit);
        for (size_t i = 0; i < req->writes_n; i++) {
            assert_true(d.n < WRITES_MAX);
            d.w[d.n++] = req->writes[i];
        }
        if (req->next.n == 0) {
            break;
        }
        after = req->next;
    }
    qsort(d.w, d.n, sizeof(*d.w), compare);
    return d;
}

static void check_same(struct dump a, struct dump b)
{
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        const struct gl_write *x = &a.w[i], *y = &b.w[i];
        assert_int_equal(x->type, y->type);
        assert_true(gl_str_eq(x->kind, y->kind));
        assert_true(gl_str_eq(x->id, y->id));
        assert_true(gl_str_eq(x->value, y->value));
        assert_true(x->score == y->score);
        assert_true(x->seq == y->seq);
        assert_true(x->rev == y->rev);
        assert_true(gl_str_eq(x->owner, y->owner));
        assert_true(x->token == y->token);
        assert_int_equal(x->live, y->live);
    }
}

static gl_str every_byte(struct contract *c)
{
    char *bytes = gl_arena_alloc(&c->arena, 256);
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
    }
    return (gl_str){bytes, 256};
}

static void fill(struct contract *c)
{
    struct gl_write odd = put_owned("job", "Übung '%_\"\n:/\\ \x01\xff", UINT64_MAX, "n#1.x", 7);
    odd.live = true;
    odd.value = every_byte(c);
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(odd, put("job", "empty", 1, ""), put_live("job", "live", 2, "{}"),
                               put("jobs", "a", 1, "{}"), put_new("flow", "h", 1, "new"),
                               put("job", "gone", 1, "{}"), delete_record("job", "gone"))),
        0);
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(into_index("due", INT64_MIN, "a"), into_index("due", INT64_MAX, "a"),
                               into_index("due", 0, "a"), into_index("due", 0, "b'\"\n\xff"),
                               into_index("du", 1, "e"), into_index("due", 3, "gone"),
                               out_of_index("due", 3, "gone"))),
        0);
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(append("events", "a", 1, "gone"), append("events", "a", 2, "two"),
                               append("events", "a", 10, "ten"), append("events", "b", 1, ""),
                               append("event", "sb", 1, "other"), trim("events", "a", 2))),
        0);
    assert_int_equal(contract_commit_in(c, "other", NO_GUARDS, WRITES(put("job", "o", 1, "o"))), 0);
}

static void an_empty_context_exports_nothing(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a"); /* sessions belong to the store, not the context */
    assert_int_equal(export_all(c, 100).n, 0);
}

static void an_export_has_everything_whatever_the_pages(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    struct dump all = export_all(c, 1000);
    assert_int_equal(all.n, 5 + 5 + 4);
    const size_t limits[] = {1, 2, 3, 5, 7, 14};
    for (size_t i = 0; i < GL_COUNT(limits); i++) {
        check_same(export_all(c, limits[i]), all);
    }
    assert_int_equal(all.w[0].type, GL_WRITE_PUT);
    assert_true(gl_str_is(all.w[0].id, "h"));
    assert_true(all.w[2].rev == 2);
    assert_true(all.w[2].live);
}

static void what_was_exported_makes_the_same_again(void **state)
{
    struct contract *c = *state;
    contract_session(c, "a");
    fill(c);
    for (int i = 0; i < 500; i++) {
        char *id = gl_arena_alloc(&c->arena, 16);
        (void)snprintf(id, 16, "j%03d", i);
        assert_int_equal(
            contract_commit(c, NO_GUARDS,
                            WRITES(put("step", id, (uint64_t)i + 1, id),
                                   into_index("all", i % 7, id), append("log", "l", i, id))),
            0);
    }
    struct dump all = export_all(c, 64);
    struct contract copy;
    contract_begin(&copy, c->maker);
    gl_str after = {0};
    do { /* as a migration would: page by page */
        const struct gl_store_req *req = contract_export(c, after, 50);
        assert_int_equal(contract_commit(&copy, NO_GUARDS, req->writes, req->writes_n), 0);
        after = req->next;
    } while (after.n > 0);
    check_same(export_all(&copy, 64), all);
    check_value(&copy, "step", "j499", "j499");
    struct gl_listing live = {.kind = GL_S("job"), .limit = 100, .live_only = true};
    assert_int_equal(contract_list(&copy, &live)->records_n, 2);
    contract_end(&copy);
}

/* ---- damage ---- */

static void a_damaged_record_says_so(void **state)
{
    struct contract *c = *state;
    assert_non_null(c->maker->damage);
    assert_int_equal(contract_commit(c, NO_GUARDS,
                                     WRITES(put_live("job", "a", 1, "{\"n\":1}"),
                                            put("job", "b", 1, "{\"n\":2}"), put("job", "e", 1, ""),
                                            put_owned("job", "o", 3, "n#1.x", 4))),
                     0);
    struct gl_listing l = {.kind = GL_S("job"), .limit = 100};
    const struct gl_store_req *req = contract_list(c, &l);
    assert_int_equal(req->records_n, 4);
    for (size_t i = 0; i < req->records_n; i++) {
        assert_false(req->records[i].damaged);
    }
    c->maker->damage(c->world, "job", "a");
    struct gl_record r = contract_get(c, "job", "a");
    assert_true(r.damaged);
    assert_true(gl_str_is(r.id, "a"));
    assert_false(contract_get(c, "job", "b").damaged);
    assert_false(contract_get(c, "job", "none").damaged);
    req = contract_list(c, &l);
    check_ids(req, "a b e o");
    for (size_t i = 0; i < req->records_n; i++) {
        assert_int_equal(req->records[i].damaged, i == 0);
    }
}

static void a_damaged_record_can_be_replaced(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{\"n\":1}"))), 0);
    c->maker->damage(c->world, "job", "a");
    contract_reopen(c);
    assert_true(contract_get(c, "job", "a").damaged);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 2, "{\"n\":2}"))), 0);
    assert_false(contract_get(c, "job", "a").damaged);
    check_value(c, "job", "a", "{\"n\":2}");
}

/* The copy would get a valid checksum. */
static void a_damaged_record_is_not_exported(void **state)
{
    struct contract *c = *state;
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{\"n\":1}"))), 0);
    c->maker->damage(c->world, "job", "a");
    struct contract_call *call = contract_call_new(c);
    c->store->ops->export(c->store, &call->req, GL_S("default"), GL_S(""), 100);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_DAMAGED);
    assert_int_not_equal(call->req.why.text[0], '\0');
}

/* ---- edges ---- */

static void extreme_scores_keep_their_order(void **state)
{
    struct contract *c = *state;
    const int64_t big = 1LL << 53; /* beyond this a double has no odd numbers */
    const int64_t scores[] = {INT64_MIN,
                              INT64_MIN + 1,
                              -big - 1,
                              -big,
                              -big + 1,
                              -256,
                              -255,
                              -1,
                              0,
                              1,
                              9,
                              10,
                              255,
                              256,
                              big - 1,
                              big,
                              big + 1,
                              big + 2,
                              INT64_MAX - 1,
                              INT64_MAX};
    enum { N = GL_COUNT(scores) };
    struct gl_write writes[N];
    for (size_t i = 0; i < N; i++) {
        writes[i] = into_index("due", scores[(i * 7) % N], "x"); /* in no particular order */
    }
    assert_int_equal(contract_commit(c, NO_GUARDS, writes, N), 0);
    struct gl_range r = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 100};
    const struct gl_store_req *req = contract_range(c, &r);
    assert_int_equal(req->entries_n, N);
    for (size_t i = 0; i < N; i++) {
        assert_true(req->entries[i].score == scores[i]);
    }
    for (size_t i = 0; i < N; i++) {
        r = (struct gl_range){GL_S("due"), scores[i], scores[i], 0, {0}, 100};
        req = contract_range(c, &r);
        assert_int_equal(req->entries_n, 1);
        assert_true(req->entries[0].score == scores[i]);
        r = (struct gl_range){GL_S("due"), INT64_MIN, INT64_MAX, scores[i], GL_S("x"), 1};
        req = contract_range(c, &r);
        assert_int_equal(req->entries_n, i + 1 < N ? 1 : 0);
        assert_true(i + 1 == N || req->entries[0].score == scores[i + 1]);
    }
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(out_of_index("due", big + 1, "x"))), 0);
    r = (struct gl_range){GL_S("due"), big, big + 2, 0, {0}, 100};
    assert_int_equal(contract_range(c, &r)->entries_n, 2);
}

static void odd_names_do_not_collide(void **state)
{
    struct contract *c = *state;
    static const char *const kinds[] = {"a", "a:b", "a/b", "a\x01", "A", "a b", "a'"};
    static const char *const ids[] = {
        "x",    "b:x", ":x", "x:", "x\n", "x\r\n", "{x}", "*",  "[x]", "\\x", "x\x7f", "\xc3\xa4",
        "\xff", "%s",  "''", "\"", "x/1", "x/",    "/",   "$1", "-",   "0",   "null",  " "};
    struct gl_write writes[GL_COUNT(kinds) * GL_COUNT(ids)];
    size_t n = 0;
    for (size_t k = 0; k < GL_COUNT(kinds); k++) {
        for (size_t i = 0; i < GL_COUNT(ids); i++, n++) {
            writes[n] = put(kinds[k], ids[i], n + 1, ids[i]);
            writes[n].live = i % 2 == 0;
        }
    }
    assert_int_equal(contract_commit(c, NO_GUARDS, writes, n), 0);
    for (size_t i = 0; i < n; i++) {
        struct gl_record r = contract_get(c, writes[i].kind.p, writes[i].id.p);
        assert_int_equal(r.rev, i + 1);
        assert_true(gl_str_eq(r.value, writes[i].value));
        assert_int_equal(
            contract_commit(c, GUARDS(at(writes[i].kind.p, writes[i].id.p, i + 1)), NO_WRITES), 0);
    }
    for (size_t k = 0; k < GL_COUNT(kinds); k++) {
        struct gl_listing l = {.kind = gl_str_of(kinds[k]), .limit = 100};
        assert_int_equal(contract_list(c, &l)->records_n, GL_COUNT(ids));
        l.live_only = true;
        assert_int_equal(contract_list(c, &l)->records_n, GL_COUNT(ids) / 2);
        l = (struct gl_listing){.kind = gl_str_of(kinds[k]), .prefix = GL_S("x/"), .limit = 100};
        check_ids(contract_list(c, &l), "x/ x/1");
    }
}

static void logs_keep_every_byte_and_number(void **state)
{
    struct contract *c = *state;
    struct gl_write w = append("events", "a'\"\n:\xff", 1, NULL);
    w.value = every_byte(c);
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(w, append("events", "a'\"\n:\xff", 1LL << 53, "big"),
                               append("events", "a'\"\n:\xff", (1LL << 53) + 1, "bigger"))),
        0);
    const struct gl_store_req *req = contract_log(c, "events", "a'\"\n:\xff", 0, 10);
    assert_int_equal(req->log_n, 3);
    assert_true(gl_str_eq(req->log[0].value, w.value));
    assert_true(req->log[1].seq == 1LL << 53);
    assert_true(req->log[2].seq == (1LL << 53) + 1);
    check_log(contract_log(c, "events", "a'\"\n:\xff", (1LL << 53) + 1, 10),
              "9007199254740993:bigger");
}

int main(void)
{
    const struct contract_test tests[] = {
        CONTRACT_TEST(an_empty_context_exports_nothing),
        CONTRACT_TEST(an_export_has_everything_whatever_the_pages),
        CONTRACT_TEST(what_was_exported_makes_the_same_again),
        CONTRACT_TEST(a_damaged_record_says_so),
        CONTRACT_TEST(a_damaged_record_can_be_replaced),
        CONTRACT_TEST(a_damaged_record_is_not_exported),
        CONTRACT_TEST(extreme_scores_keep_their_order),
        CONTRACT_TEST(odd_names_do_not_collide),
        CONTRACT_TEST(logs_keep_every_byte_and_number),
    };
    return contract_run(tests, GL_COUNT(tests));
}
