/* test_labels.c - what a step requires of a node's labels. */
#include "base/check.h"
#include "model/labels.h"
#include "support/cmocka_all.h"

static bool meets(const char *labels, const char *rule)
{
    return gl_labels_meet(gl_str_of(labels), gl_str_of(rule));
}

static void a_rule_is_a_value_a_list_a_name_or_its_absence(void **state)
{
    static const char *const good[] = {"zone=a", "zone=a|b|c", "gpu", "!spot", "a.b/c-d_e=1"};
    static const char *const bad[] = {
        "",          "!",     "=a",       "zone=",   "zone=a|",    "zone=|a",
        "zone=a||b", "a b=c", "zone=a=b", "!zone=a", "z\303\266ne"};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(good); i++) {
        assert_true(gl_labels_is_rule(gl_str_of(good[i])));
    }
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        assert_false(gl_labels_is_rule(gl_str_of(bad[i])));
    }
}

static void rules_are_compared_with_whole_names_and_values(void **state)
{
    (void)state;
    assert_true(meets("zone=a,disk=ssd", "zone=a"));
    assert_true(meets("disk=ssd, zone=a", "zone=b|a"));
    assert_false(meets("zone=ab", "zone=a"));
    assert_false(meets("zone=a", "zone=ab"));
    assert_false(meets("xzone=a", "zone=a"));
    assert_false(meets("", "zone=a"));
    assert_true(meets("gpu=a100", "gpu"));
    assert_false(meets("gpus=2", "gpu"));
    assert_true(meets("zone=a", "!spot"));
    assert_true(meets("", "!spot"));
    assert_false(meets("zone=a,spot=no", "!spot"));
}

static void the_first_rule_that_is_not_met_is_named(void **state)
{
    const gl_str rules[] = {gl_str_of("zone=a"), gl_str_of("disk=ssd"), gl_str_of("!spot")};
    const struct gl_strs all = {.items = rules, .n = GL_COUNT(rules)}, none = {0};
    gl_str rule = {0};

    (void)state;
    assert_true(gl_labels_meet_all(gl_str_of("disk=ssd,zone=a"), &all, &rule));
    assert_true(gl_labels_meet_all((gl_str){0}, &none, &rule));
    assert_false(gl_labels_meet_all(gl_str_of("zone=a,spot=1"), &all, &rule));
    assert_true(gl_str_is(rule, "disk=ssd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_is_a_value_a_list_a_name_or_its_absence),
        cmocka_unit_test(rules_are_compared_with_whole_names_and_values),
        cmocka_unit_test(the_first_rule_that_is_not_met_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
