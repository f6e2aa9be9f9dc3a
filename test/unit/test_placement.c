/* test_placement.c - which node gets an attempt, and why the others do not. */
#include "core/scheduling/placement.h"
#include "support/cmocka_all.h"

enum { NODES_MAX = 8 };

struct world {
    struct gl_place_node nodes[NODES_MAX];
    struct gl_place_pool pools[NODES_MAX][2];
    size_t n;
};

static struct gl_place_node *add(struct world *w, const char *id, uint32_t slots, uint32_t others,
                                 uint32_t ours)
{
    struct gl_place_node *node = &w->nodes[w->n];
    struct gl_place_pool *p = w->pools[w->n++];

    p[0] = (struct gl_place_pool){
        .name = gl_str_of("default"), .slots = slots, .others = others, .ours = ours};
    *node = (struct gl_place_node){.id = gl_str_of(id), .takes = true, .pools = p, .pools_n = 1};
    return node;
}

static const char *place(const struct world *w, struct gl_place_request r)
{
    enum gl_place_result result;
    int64_t at;

    r.pool = r.pool.n > 0 ? r.pool : gl_str_of("default");
    r.slots = r.slots > 0 ? r.slots : 1;
    at = gl_place(w->nodes, w->n, &r, &result);
    return at < 0 || result != GL_PLACE_FITS ? gl_place_word(result) : w->nodes[at].id.p;
}

static void the_node_with_the_largest_free_part_is_chosen(void **state)
{
    struct world w = {0};

    (void)state;
    add(&w, "a", 4, 2, 0);
    add(&w, "b", 16, 4, 4);
    assert_string_equal(place(&w, (struct gl_place_request){0}), "a"); /* both half: smaller id */
    add(&w, "c", 100, 0, 49);
    assert_string_equal(place(&w, (struct gl_place_request){0}), "c");
    assert_string_equal(place(&w, (struct gl_place_request){.slots = 3}), "c");
}

static void attempts_spread_evenly(void **state)
{
    struct world w = {0};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        static const char *const ids[] = {"a", "b", "c", "d"};
        add(&w, ids[i], 4, 0, 0);
    }
    for (unsigned i = 0; i < 16; i++) {
        struct gl_place_request r = {.pool = gl_str_of("default"), .slots = 1};
        enum gl_place_result result;
        int64_t at = gl_place(w.nodes, w.n, &r, &result);

        assert_int_equal(result, GL_PLACE_FITS);
        w.pools[at][0].ours++;
        assert_true(w.pools[at][0].ours <= i / 4 + 1);
    }
    assert_string_equal(place(&w, (struct gl_place_request){0}), "busy");
}

static void each_node_has_a_reason(void **state)
{
    struct world w = {0};
    struct gl_place_request r = {.pool = gl_str_of("gpu"), .slots = 2};

    (void)state;
    add(&w, "none", 8, 0, 0);
    add(&w, "small", 1, 0, 0)->pools[0].name = gl_str_of("gpu");
    add(&w, "busy", 4, 2, 1)->pools[0].name = gl_str_of("gpu");
    add(&w, "leaving", 4, 0, 0)->pools[0].name = gl_str_of("gpu");
    w.nodes[3].takes = false;
    assert_int_equal(gl_place_judge(&w.nodes[0], &r), GL_PLACE_NO_POOL);
    assert_int_equal(gl_place_judge(&w.nodes[1], &r), GL_PLACE_POOL_TOO_SMALL);
    assert_int_equal(gl_place_judge(&w.nodes[2], &r), GL_PLACE_BUSY);
    assert_int_equal(gl_place_judge(&w.nodes[3], &r), GL_PLACE_NOT_TAKING);
    assert_string_equal(place(&w, r), "busy"); /* the best of the reasons */
    w.nodes[3].takes = true;
    assert_string_equal(place(&w, r), "leaving");
}

static void a_node_is_avoided_only_if_there_is_another(void **state)
{
    struct world w = {0};
    struct gl_place_request r = {.avoid = gl_str_of("a")};

    (void)state;
    add(&w, "a", 4, 0, 0);
    assert_string_equal(place(&w, r), "a");
    add(&w, "b", 4, 3, 0);
    assert_string_equal(place(&w, r), "b");
    w.pools[1][0].others = 4;
    assert_string_equal(place(&w, r), "a");
    r.except = gl_str_of("a");
    assert_string_equal(place(&w, r), "busy");
}

static void numbers_that_contradict_each_other_do_no_harm(void **state)
{
    struct world w = {0};

    (void)state;
    assert_string_equal(place(&w, (struct gl_place_request){0}), "not_taking");
    add(&w, "a", 0, 0, 0);
    assert_string_equal(place(&w, (struct gl_place_request){0}), "no_pool");
    add(&w, "b", 4, UINT32_MAX, UINT32_MAX);
    assert_string_equal(place(&w, (struct gl_place_request){0}), "busy");
    w.nodes[1].pools_n = 0;
    w.nodes[1].pools = NULL;
    assert_string_equal(place(&w, (struct gl_place_request){0}), "no_pool");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_node_with_the_largest_free_part_is_chosen),
        cmocka_unit_test(attempts_spread_evenly),
        cmocka_unit_test(each_node_has_a_reason),
        cmocka_unit_test(a_node_is_avoided_only_if_there_is_another),
        cmocka_unit_test(numbers_that_contradict_each_other_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
