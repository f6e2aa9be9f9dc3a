#include "support/cmocka_all.h"

#include <string.h>

#include "base/id.h"
#include "base/rng.h"
#include "base/times.h"

static void an_id_holds_its_time_and_its_chance(void **state)
{
    (void)state;
    struct gl_ulid id;
    const uint8_t zero[10] = {0}, full[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    gl_id_make(&id, 0, zero);
    assert_string_equal(id.text, "00000000000000000000000000");
    gl_id_make(&id, ((gl_ms)1 << 48) - 1, full);
    assert_string_equal(id.text, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    /* From the ULID specification: 1469918176385 is 01ARYZ6S41. */
    gl_id_make(&id, 1469918176385, zero);
    assert_memory_equal(id.text, "01ARYZ6S41", 10);
    assert_true(gl_id_time(gl_str_of(id.text)) == 1469918176385);
}

static void ids_sort_by_time(void **state)
{
    (void)state;
    struct gl_rng rng;
    struct gl_ulid last = {{0}}, id;
    gl_rng_init(&rng, 9);
    for (gl_ms t = 1; t < (gl_ms)1 << 47; t = t * 3 / 2 + 1) {
        uint8_t chance[10];
        gl_rng_fill(&rng, chance, sizeof(chance));
        gl_id_make(&id, t, chance);
        assert_true(strcmp(last.text, id.text) < 0);
        assert_true(gl_id_valid(gl_str_of(id.text)));
        assert_true(gl_id_time(gl_str_of(id.text)) == t);
        last = id;
    }
}

static void what_is_no_id_is_refused(void **state)
{
    (void)state;
    assert_true(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FAV")));
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FA")));
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FAVV")));
    assert_false(gl_id_valid(GL_S("01arz3ndektsv4rrffq69g5fav")));
    assert_false(gl_id_valid(GL_S("81ARZ3NDEKTSV4RRFFQ69G5FAV"))); /* overflow */
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FAU"))); /* no U, I, L, O */
    assert_false(gl_id_valid(GL_S("01ARZ3NDEKTSV4RRFFQ69G5FA-")));
    assert_false(gl_id_valid((gl_str){"01ARZ3NDEKTSV4RRFFQ69G5FA\0", 26}));
    assert_false(gl_id_valid((gl_str){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_holds_its_time_and_its_chance),
        cmocka_unit_test(ids_sort_by_time),
        cmocka_unit_test(what_is_no_id_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
