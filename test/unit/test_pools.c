#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/pools.h"
#include "support/bench.h"

static int read_pools(struct bench *b, const char *text, struct gl_pools_entry **ret, size_t *ret_n)
{
    return gl_pools_read(text, &b->a, ret, ret_n, &b->why);
}

static void pools_are_read_as_written(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    assert_int_equal(read_pools(b, " default=8, gpu=1 ", &pools, &n), 0);
    assert_int_equal(n, 2);
    assert_true(gl_str_is(pools[0].name, "default") && pools[0].slots == 8);
    assert_true(gl_str_is(pools[1].name, "gpu") && pools[1].slots == 1);
}

static void the_default_pool_is_always_there(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    uint32_t usual = 4 * (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    assert_int_equal(read_pools(b, NULL, &pools, &n), 0);
    assert_true(n == 1 && gl_str_is(pools[0].name, "default") && pools[0].slots == usual);
    assert_int_equal(read_pools(b, "gpu=3", &pools, &n), 0);
    assert_true(n == 2 && gl_str_is(pools[1].name, "default") && pools[1].slots == usual);
}

static bool has_pool(const struct gl_pools_entry *pools, size_t n, const char *name, uint32_t slots)
{
    for (size_t i = 0; i < n; i++) {
        if (gl_str_is(pools[i].name, name)) {
            return pools[i].slots == slots;
        }
    }
    return false;
}

static void pools_of_workers_are_added_under_their_own_names(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    assert_int_equal(read_pools(b, "default=8,executor.io=2", &pools, &n), 0);
    assert_int_equal(gl_pools_add_executor("gpu=1,io=8", 50, &b->a, pools, &n, &b->why), 0);
    assert_int_equal(n, 4);
    assert_true(has_pool(pools, n, "default", 8));
    assert_true(has_pool(pools, n, "executor.default", 50));
    assert_true(has_pool(pools, n, "executor.gpu", 1));
    assert_true(has_pool(pools, n, "executor.io", 2)); /* as the operator wrote it */
    assert_int_equal(read_pools(b, NULL, &pools, &n), 0);
    assert_int_equal(gl_pools_add_executor("default=3", 50, &b->a, pools, &n, &b->why), 0);
    assert_true(n == 2 && has_pool(pools, n, "executor.default", 3));
}

static void too_many_pools_of_workers_are_refused(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    struct gl_buf text = {0};
    size_t n;
    for (int i = 0; i < GL_POOLS_MAX - 1; i++) {
        gl_buf_fmt(&text, "%sp%d=1", i > 0 ? "," : "", i);
    }
    gl_buf_char(&text, '\0');
    assert_int_equal(read_pools(b, NULL, &pools, &n), 0);
    assert_int_equal(gl_pools_add_executor(text.p, 50, &b->a, pools, &n, &b->why), GL_E_INVALID);
    assert_non_null(strstr(b->why.text, "at most 64 pools"));
    gl_buf_done(&text);
    assert_int_equal(gl_pools_add_executor("x=0", 50, &b->a, pools, &n, &b->why), GL_E_INVALID);
}

static void pools_that_make_no_sense_are_refused_with_the_part_that_does_not(void **state)
{
    static const char *const bad[] = {"x",  "x=",    "x=0",     "x=-1",     "x=100001",
                                      "=4", "a b=1", "x=1,x=2", "x=1,,y=2", ","};
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    size_t n;
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        assert_int_equal(read_pools(b, bad[i], &pools, &n), GL_E_INVALID);
        assert_non_null(strstr(b->why.text, "default=8,gpu=1"));
    }
    assert_int_equal(read_pools(b, "x=1,bad=y", &pools, &n), GL_E_INVALID);
    assert_non_null(strstr(b->why.text, "'bad=y'"));
}

static void there_can_be_only_so_many_pools(void **state)
{
    struct bench *b = *state;
    struct gl_pools_entry *pools;
    struct gl_buf text = {0};
    size_t n;
    for (int i = 0; i < GL_POOLS_MAX - 1; i++) {
        gl_buf_fmt(&text, "p%d=1,", i);
    }
    gl_buf_c(&text, "default=1");
    gl_buf_char(&text, '\0');
    assert_int_equal(read_pools(b, text.p, &pools, &n), 0);
    assert_int_equal(n, GL_POOLS_MAX);
    text.n--;
    gl_buf_c(&text, ",more=1");
    gl_buf_char(&text, '\0');
    assert_int_equal(read_pools(b, text.p, &pools, &n), GL_E_INVALID);
    gl_buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pools_are_read_as_written),
        TEST(the_default_pool_is_always_there),
        TEST(pools_of_workers_are_added_under_their_own_names),
        TEST(too_many_pools_of_workers_are_refused),
        TEST(pools_that_make_no_sense_are_refused_with_the_part_that_does_not),
        TEST(there_can_be_only_so_many_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
