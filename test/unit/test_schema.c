#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "model/schema.h"
#include "support/golden.h"

static const char *const colours[] = {"red", "green", "blue", NULL};

struct wheel {
    uint32_t size;
    gl_str maker;
};

struct car {
    gl_str name;
    bool electric;
    int64_t balance;
    uint64_t serial;
    uint32_t doors;
    gl_ms built_at, sold_at, warranty_ms;
    uint8_t colour;
    gl_str extra;
    struct gl_strs tags;
    struct gl_items wheels;
    struct wheel spare;
    uint32_t secret;
};

static const struct gl_field wheel_fields[] = {
    GL_FIELD(wheel, size, U32, GL_FF_REQUIRED, "inches"),
    GL_FIELD(wheel, maker, STR, 0, "who made it"),
};

static const struct gl_schema wheel_schema = {
    .name = "wheel",
    .bytes = sizeof(struct wheel),
    .fields = wheel_fields,
    .fields_n = GL_COUNT(wheel_fields),
};

static const struct gl_field car_fields[] = {
    GL_FIELD(car, name, STR, GL_FF_REQUIRED | GL_FF_ALWAYS, "what it is called"),
    GL_FIELD(car, electric, BOOL, 0, "no petrol"),
    GL_FIELD(car, balance, I64, 0, "money"),
    GL_FIELD(car, serial, U64, 0, "number"),
    GL_FIELD(car, doors, U32, GL_FF_ALWAYS, "count"),
    GL_FIELD(car, built_at, TIME, 0, "when"),
    GL_FIELD(car, sold_at, TIME, GL_FF_ALWAYS, "when"),
    GL_FIELD(car, warranty_ms, SPAN, 0, "how long"),
    GL_FIELD_ENUM(car, colour, colours, 0, "colour"),
    GL_FIELD(car, extra, RAW, 0, "anything"),
    GL_FIELD(car, tags, STRS, 0, "words"),
    GL_FIELD_SUB(car, wheels, LIST, &wheel_schema, 0, "wheels"),
    GL_FIELD_SUB(car, spare, OBJECT, &wheel_schema, 0, "spare wheel"),
    GL_FIELD(car, secret, U32, GL_FF_STORE_ONLY, "not for everyone"),
};

static const struct gl_schema car_schema = {
    .name = "car",
    .bytes = sizeof(struct car),
    .fields = car_fields,
    .fields_n = GL_COUNT(car_fields),
};

static struct gl_arena arena;
static struct gl_why why;
static struct gl_buf out;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    gl_buf_done(&out);
    return 0;
}

static const char *written(const struct car *c, enum gl_audience audience)
{
    struct gl_jw w;
    gl_buf_reset(&out);
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_schema_write(&car_schema, c, &w, audience);
    gl_jw_end(&w);
    gl_buf_char(&out, 0);
    return out.p;
}

static int read_car(const char *json, bool strict, struct car *ret)
{
    struct gl_json j;
    assert_int_equal(gl_json_parse(&j, gl_str_of(json), 4096, &arena, &why), 0);
    return gl_schema_read(&car_schema, &j, gl_json_root(&j), strict, &arena, ret, &why);
}

static struct car full_car(void)
{
    static const gl_str tags[] = {{"fast", 4}, {"re\"d", 4}};
    static struct wheel wheels[] = {{.size = 17, .maker = {"X", 1}}, {.size = 18}};
    return (struct car){
        .name = GL_S("Beetle"),
        .electric = true,
        .balance = INT64_MIN,
        .serial = UINT64_MAX,
        .doors = UINT32_MAX,
        .built_at = 1794740149123,
        .warranty_ms = 5000,
        .colour = 2,
        .extra = GL_S("[1, {\"a\": null}]"),
        .tags = {tags, 2},
        .wheels = {wheels, 2},
        .spare = {.size = 19},
        .secret = 42,
    };
}

static void every_type_is_written_for_the_store(void **state)
{
    (void)state;
    struct car c = full_car();
    assert_string_equal(
        written(&c, GL_FOR_STORE),
        "{\"name\":\"Beetle\",\"electric\":true,\"balance\":-9223372036854775808,"
        "\"serial\":18446744073709551615,\"doors\":4294967295,\"built_at\":1794740149123,"
        "\"sold_at\":0,\"warranty_ms\":5000,\"colour\":\"blue\",\"extra\":[1, {\"a\": null}],"
        "\"tags\":[\"fast\",\"re\\\"d\"],\"wheels\":[{\"size\":17,\"maker\":\"X\"},{\"size\":18}],"
        "\"spare\":{\"size\":19},\"secret\":42}");
}

static void the_api_sees_times_as_text_and_no_secrets(void **state)
{
    (void)state;
    struct car c = {.name = GL_S("x"), .built_at = 1794740149123, .secret = 42};
    assert_string_equal(written(&c, GL_FOR_API),
                        "{\"name\":\"x\",\"doors\":0,\"built_at\":\"2026-11-15T10:55:49.123Z\","
                        "\"sold_at\":null}");
}

static void what_is_empty_is_left_out(void **state)
{
    (void)state;
    struct car c = {0};
    assert_string_equal(written(&c, GL_FOR_STORE), "{\"name\":\"\",\"doors\":0,\"sold_at\":0}");
}

static void what_was_written_is_read_back(void **state)
{
    (void)state;
    struct car c = full_car(), back;
    const enum gl_audience both[] = {GL_FOR_STORE, GL_FOR_API};
    for (int i = 0; i < 2; i++) {
        const char *first = gl_str_c(&arena, gl_str_of(written(&c, both[i])));
        assert_int_equal(read_car(first, true, &back), 0);
        assert_string_equal(written(&back, both[i]), first);
        assert_true(back.built_at == c.built_at);
        assert_int_equal(back.colour, 2);
        assert_int_equal(((struct wheel *)back.wheels.items)[1].size, 18);
        assert_true(gl_str_is(back.tags.items[1], "re\"d"));
        assert_true(gl_str_is(back.extra, "[1, {\"a\": null}]"));
    }
}

static void the_order_of_fields_does_not_matter(void **state)
{
    (void)state;
    struct car c;
    assert_int_equal(read_car("{\"colour\":\"green\",\"doors\":3,\"n\\u0061me\":\"a\"}", true, &c),
                     0);
    assert_int_equal(c.colour, 1);
    assert_int_equal(c.doors, 3);
    assert_true(gl_str_is(c.name, "a"));
}

static void what_is_absent_is_zero(void **state)
{
    (void)state;
    struct car c;
    memset(&c, 0xff, sizeof(c));
    assert_int_equal(read_car("{\"name\":\"\",\"sold_at\":null}", true, &c), 0);
    assert_int_equal(c.doors, 0);
    assert_true(c.sold_at == 0);
    assert_int_equal(c.wheels.n, 0);
    assert_int_equal(c.extra.n, 0);
}

static void unknown_fields_are_refused_only_when_strict(void **state)
{
    (void)state;
    struct car c;
    assert_int_equal(read_car("{\"name\":\"a\",\"later\":{\"x\":[1]},\"doors\":2}", false, &c), 0);
    assert_int_equal(c.doors, 2);
    assert_int_equal(read_car("{\"name\":\"a\",\"later\":1}", true, &c), GL_E_INVALID);
    golden_say("later", gl_str_of(why.text));
}

static void a_wrong_value_is_named_with_what_was_expected(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "[]",
        "{}",
        "{\"name\":1}",
        "{\"name\":null}",
        "{\"name\":\"\",\"electric\":1}",
        "{\"name\":\"\",\"balance\":1.5}",
        "{\"name\":\"\",\"serial\":-1}",
        "{\"name\":\"\",\"doors\":4294967296}",
        "{\"name\":\"\",\"built_at\":\"soon\"}",
        "{\"name\":\"\",\"warranty_ms\":\"5s\"}",
        "{\"name\":\"\",\"colour\":\"pink\"}",
        "{\"name\":\"\",\"colour\":1}",
        "{\"name\":\"\",\"tags\":\"a\"}",
        "{\"name\":\"\",\"tags\":[\"a\",2]}",
        "{\"name\":\"\",\"wheels\":{}}",
        "{\"name\":\"\",\"wheels\":[{\"size\":1},{}]}",
        "{\"name\":\"\",\"wheels\":[3]}",
        "{\"name\":\"\",\"spare\":{\"size\":\"x\"}}",
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct car c;
        int rc = read_car(cases[i], true, &c);
        if (rc != GL_E_INVALID) {
            fail_msg("%s gives %d, %s", cases[i], rc, why.text);
        }
        assert_non_null(strstr(why.text, "(line 1, column "));
        golden_say(cases[i], gl_str_of(why.text));
    }
}

static void reading_nothing_is_an_error_not_a_crash(void **state)
{
    (void)state;
    struct gl_json j;
    struct car c;
    assert_int_equal(gl_json_parse(&j, GL_S("{}"), 100, &arena, &why), 0);
    gl_jnode nothing = gl_json_get(&j, gl_json_root(&j), "car");
    assert_int_equal(gl_schema_read(&car_schema, &j, nothing, true, &arena, &c, &why),
                     GL_E_INVALID);
    assert_int_equal(gl_schema_read(&car_schema, &j, nothing, true, &arena, &c, NULL),
                     GL_E_INVALID);
}

static void words_have_numbers(void **state)
{
    (void)state;
    assert_int_equal(gl_schema_word(colours, GL_S("blue")), 2);
    assert_int_equal(gl_schema_word(colours, GL_S("blu")), -1);
    assert_int_equal(gl_schema_word(colours, (gl_str){0}), -1);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/schema.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_type_is_written_for_the_store, tear_down),
        cmocka_unit_test_teardown(the_api_sees_times_as_text_and_no_secrets, tear_down),
        cmocka_unit_test_teardown(what_is_empty_is_left_out, tear_down),
        cmocka_unit_test_teardown(what_was_written_is_read_back, tear_down),
        cmocka_unit_test_teardown(the_order_of_fields_does_not_matter, tear_down),
        cmocka_unit_test_teardown(what_is_absent_is_zero, tear_down),
        cmocka_unit_test_teardown(unknown_fields_are_refused_only_when_strict, tear_down),
        cmocka_unit_test_teardown(a_wrong_value_is_named_with_what_was_expected, tear_down),
        cmocka_unit_test_teardown(reading_nothing_is_an_error_not_a_crash, tear_down),
        cmocka_unit_test_teardown(words_have_numbers, tear_down),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
