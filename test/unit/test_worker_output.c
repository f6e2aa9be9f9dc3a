#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/worker_output.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

static struct gl_worker_output said_of(const char *text)
{
    struct gl_worker_output said;

    if (gl_worker_output_read(gl_str_of(text), &arena, &said, &why) != 0) {
        fail_msg("%s: %s", text, why.text);
    }
    return said;
}

#define EQ(str, literal) assert_string_equal(gl_str_c(&arena, (str)), literal)

/* Results. */

static void a_result_comes_back_as_it_was(void **state)
{
    (void)state;
    struct gl_worker_result r = {.stdout_text = GL_S("a \"line\"\n\tand\x01"),
                                 .stderr_text = GL_S("caf\xc3\xa9"),
                                 .is_cut = true,
                                 .stdout_bytes = 5000000000},
                            back;
    struct gl_buf out = {0};

    gl_worker_result_write(&r, &out);
    assert_int_equal(gl_worker_result_read(gl_buf_view(&out), &arena, &back, &why), 0);
    assert_true(gl_str_eq(back.stdout_text, r.stdout_text));
    assert_true(gl_str_eq(back.stderr_text, r.stderr_text));
    assert_true(back.is_cut);
    assert_int_equal(back.stdout_bytes, 5000000000);
    gl_buf_done(&out);
}

static void a_result_that_says_less_is_one_too(void **state)
{
    (void)state;
    struct gl_worker_result r;

    assert_int_equal(gl_worker_result_read((gl_str){0}, &arena, &r, &why), 0);
    assert_int_equal(r.stdout_text.n, 0);
    assert_int_equal(gl_worker_result_read(GL_S("{\"stdout\":\"abc\"}"), &arena, &r, &why), 0);
    assert_int_equal(r.stdout_bytes, 3);
    assert_false(r.is_cut);
}

static void a_wrong_result_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "x",
        "[]",
        "{\"stdout\":1}",
        "{\"stderr\":{}}",
        "{\"is_cut\":\"yes\"}",
        "{\"stdout_bytes\":-1}",
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_worker_result r;

        assert_int_equal(gl_worker_result_read(gl_str_of(cases[i]), &arena, &r, &why),
                         GL_E_INVALID);
        golden_say(cases[i], gl_str_of(why.text));
    }
}

/* What stdout says. */

static void what_is_no_json_says_nothing(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",       " \n ",         "hello",         "{\"events\":[]", "{} {}",
        "NaN",    "{'a':1}",      "x\n[1]",        "x\n17",          "{\"next_state\":1}\nbye",
        "\xff\n", "{\"a\":1,}\n", "text {\"a\":1}"};

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_worker_output said = said_of(cases[i]);

        if (said.is_json || said.is_structured || said.has_state || said.emits != NULL) {
            fail_msg("%s says something", cases[i]);
        }
    }
}

static void other_json_is_not_structured(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "1", "\"text\"", "null", "[{\"events\":[]}]", "{\"result\":{\"events\":[]}}", "\n{}\n"};

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_worker_output said = said_of(cases[i]);

        assert_true(said.is_json);
        assert_false(said.is_structured);
        assert_false(said.has_step_shape);
    }
}

static void the_last_line_may_be_the_answer(void **state)
{
    (void)state;
    struct gl_worker_output said =
        said_of("working\n{\"x\":\n\n  {\"next_state\":{\"n\":1}}  \r\n\n");

    assert_true(said.is_json && said.is_structured && said.has_state);
    EQ(said.next_state, "{\"n\":1}");
}

static void a_text_of_many_lines_may_be_one_value(void **state)
{
    (void)state;
    struct gl_worker_output said = said_of("{\n  \"complete_step\": {\n    \"a\": 1\n  }\n}\n");

    assert_true(said.is_structured && said.completes_step);
    assert_memory_equal(said.step_value.p, "{\n", 2);
}

static void each_of_five_names_makes_it_structured(void **state)
{
    (void)state;
    static const char *const cases[] = {"{\"events\":null}", "{\"emit_messages\":{}}",
                                        "{\"next_state\":null}", "{\"complete_step\":false}",
                                        "{\"complete_run\":null}"};

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_worker_output said = said_of(cases[i]);

        assert_true(said.is_structured);
        assert_false(said.has_state || said.completes_step || said.completes_run);
        assert_null(said.emits);
        assert_int_equal(said.events.n, 0);
    }
}

static void only_events_of_the_right_shape_count(void **state)
{
    (void)state;
    struct gl_worker_output said =
        said_of("{\"events\":[{\"type\":\"a\",\"payload\":{\"k\":[1]}},{\"type\":\"b\"},7,"
                "{\"type\":1,\"payload\":{}},{\"type\":\"c\",\"payload\":[]},"
                "{\"payload\":{},\"type\":\"\\u0064\"}]}");
    const struct gl_worker_event *events = said.events.items;

    assert_int_equal(said.events.n, 2);
    EQ(events[0].type, "a");
    EQ(events[0].payload, "{\"k\":[1]}");
    EQ(events[1].type, "d");
    EQ(events[1].payload, "{}");
}

static void completion_is_of_the_step_or_else_of_the_run(void **state)
{
    (void)state;
    struct gl_worker_output said = said_of("{\"complete_step\":true,\"complete_run\":true}");

    assert_true(said.completes_step);
    assert_false(said.completes_run);
    assert_int_equal(said.step_value.n, 0);
    said = said_of("{\"complete_step\":false,\"complete_run\":{\"ok\":1}}");
    assert_false(said.completes_step);
    assert_true(said.completes_run);
    EQ(said.run_value, "{\"ok\":1}");
    said = said_of("{\"complete_step\":0}");
    assert_true(said.completes_step);
    EQ(said.step_value, "0");
    said = said_of("{\"complete_step\":null,\"complete_run\":true}");
    assert_true(said.completes_run);
    assert_int_equal(said.run_value.n, 0);
}

static void emitted_messages_are_an_array(void **state)
{
    (void)state;
    struct gl_worker_output said =
        said_of("{\"emit_messages\":[{\"type\":\"x\"},{\"type\":\"y\"}]}");

    assert_non_null(said.emits);
    assert_int_equal(said.emits->count, 2);
}

static void the_old_name_of_completion_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"{\"complete_job\":true}", "{\"complete_job?\":null}",
                                        "log\n{\"events\":[],\"complete_job\":{}}"};

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_worker_output said;

        assert_int_equal(gl_worker_output_read(gl_str_of(cases[i]), &arena, &said, &why),
                         GL_E_INVALID);
        assert_non_null(strstr(why.text, "use `complete_step`"));
    }
}

static gl_str many(const char *before, const char *unit, const char *after, size_t n)
{
    struct gl_buf b = {0};
    gl_str text;

    gl_buf_c(&b, before);
    for (size_t i = 0; i < n; i++) {
        gl_buf_c(&b, unit);
    }
    gl_buf_c(&b, after);
    text = gl_str_dup(&arena, gl_buf_view(&b));
    gl_buf_done(&b);
    return text;
}

static void what_is_too_large_is_refused_and_what_is_too_deep_no_json(void **state)
{
    (void)state;
    struct gl_worker_output said;
    gl_str text = many("{\"next_state\":\"", "x", "\"}", GL_STATE_BYTES_MAX);

    assert_int_equal(gl_worker_output_read(text, &arena, &said, &why), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "next_state"));
    text = many("{\"emit_messages\":[0", ",0", "]}", GL_EMITS_MAX);
    assert_int_equal(gl_worker_output_read(text, &arena, &said, &why), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "10001 messages"));
    text = many("{\"next_state\":", "[", "", 40);
    text = gl_str_fmt(&arena, "%s%s", text.p, many("", "]", "}", 40).p);
    assert_int_equal(gl_worker_output_read(text, &arena, &said, &why), 0);
    assert_true(said.has_state);
    text = many("{\"next_state\":", "[", "", GL_VALUE_DEPTH_MAX);
    text = gl_str_fmt(&arena, "%s%s", text.p, many("", "]", "}", GL_VALUE_DEPTH_MAX).p);
    assert_int_equal(gl_worker_output_read(text, &arena, &said, &why), 0);
    assert_false(said.is_json);
    text = many("", "[", "", 100000);
    assert_int_equal(gl_worker_output_read(text, &arena, &said, &why), 0);
    assert_false(said.is_json);
}

/* The default payload. */

static const struct gl_worker_turn_facts turn = {.agent_id = {"one", 3},
                                                 .node_name = {"here", 4},
                                                 .remote_dir = {"/tmp/x", 6},
                                                 .attempts = 2,
                                                 .lease_id = {"L", 1},
                                                 .pool = {"executor.default", 16},
                                                 .slots = 3,
                                                 .queue_wait_ms = 17};

static void the_default_payload_tells_how_it_ran(void **state)
{
    (void)state;
    struct gl_worker_result r = {.stdout_text = GL_S("{\"a\":1}\n"), .stderr_text = GL_S("w")};
    struct gl_worker_output said = said_of("{\"a\":1}\n");

    EQ(gl_worker_output_payload(&turn, &r, &said, &arena),
       "{\"agent_id\":\"one\",\"sandbox\":{\"exit_code\":0,\"runner_exit_code\":0,"
       "\"stdout\":\"{\\\"a\\\":1}\\n\",\"stderr\":\"w\",\"logs\":\"w\","
       "\"raw_output\":\"{\\\"a\\\":1}\\n\",\"sandbox_name\":\"host_local\","
       "\"remote_dir\":\"/tmp/x\",\"runner\":\"host_local\",\"node_name\":\"here\","
       "\"attempts\":2,\"lease\":{\"lease_id\":\"L\",\"pool\":\"default\",\"slots\":3,"
       "\"queue_wait_ms\":17}}}");
}

static void the_shape_of_a_step_is_the_payload(void **state)
{
    (void)state;
    struct gl_worker_result r = {0};
    struct gl_worker_output said =
        said_of("{\"status\":\"ok\",\"metrics\":{},\"artifacts\":[1],\"other\":1,"
                "\"outputs\":{\"selected_branch\":\"left\"},\"run_id\":\"R\"}");

    EQ(gl_worker_output_payload(&turn, &r, &said, &arena),
       "{\"agent_id\":\"one\",\"outputs\":{\"selected_branch\":\"left\"},\"artifacts\":[1],"
       "\"metrics\":{},\"status\":\"ok\",\"run_id\":\"R\"}");
    assert_false(
        said_of("{\"status\":1,\"metrics\":{},\"artifacts\":[],\"outputs\":{}}").has_step_shape);
    assert_false(said_of("{\"status\":\"\",\"metrics\":{},\"artifacts\":[]}").has_step_shape);
}

static void metadata_of_steps_is_passed_on(void **state)
{
    (void)state;
    struct gl_worker_result r = {0};
    struct gl_worker_turn_facts t = {.agent_id = GL_S("a"),
                                     .input_body =
                                         GL_S("{\"x\":1,\"_mn_step\":{\"run_inputs\":{},\"k\":[2],"
                                              "\"step_input\":1,\"l\":\"m\"}}")};
    struct gl_worker_output said =
        said_of("{\"status\":\"\",\"metrics\":{},\"artifacts\":[],\"outputs\":{}}");

    EQ(gl_worker_output_payload(&t, &r, &said, &arena),
       "{\"agent_id\":\"a\",\"outputs\":{},\"artifacts\":[],\"metrics\":{},\"status\":\"\","
       "\"_mn_step\":{\"k\":[2],\"l\":\"m\"}}");
    t.input_body = GL_S("[\"_mn_step\"]");
    assert_null(strstr(gl_worker_output_payload(&t, &r, &said, &arena).p, "_mn_step"));
    t.input_body = GL_S("{\"_mn_step\":");
    assert_null(strstr(gl_worker_output_payload(&t, &r, &said, &arena).p, "_mn_step"));
}

static void a_long_stdout_is_not_told_twice(void **state)
{
    (void)state;
    struct gl_worker_result r = {.stdout_text = many("a", "\xc3\xa9", "", 200000)};
    struct gl_worker_output said = said_of("");
    gl_str text = gl_worker_output_payload(&turn, &r, &said, &arena);
    struct gl_json j;

    assert_true(text.n < r.stdout_text.n + 20000);
    assert_int_equal(gl_json_parse(&j, text, 1 << 20, &arena, &why), 0);
    assert_non_null(strstr(text.p, "(400001 bytes; "));
    assert_null(memmem(text.p, text.n, "\xef\xbf\xbd", 3)); /* no broken character */
}

static void the_default_payload_fits_the_output_of_a_step(void **state)
{
    static const char *const units[] = {"x", "\x01", "\n"};
    struct gl_worker_output said = said_of("");

    (void)state;
    for (size_t i = 0; i < GL_COUNT(units); i++) {
        struct gl_worker_result r = {.stdout_text = many("", units[i], "", GL_STDOUT_BYTES),
                                     .stderr_text = many("", units[i], "", 64 << 10)};
        gl_str text = gl_worker_output_payload(&turn, &r, &said, &arena);
        struct gl_json j;

        assert_true(text.n <= GL_OUTPUT_BYTES_MAX);
        assert_true(text.n > GL_OUTPUT_BYTES_MAX / 2);
        assert_int_equal(gl_json_parse(&j, text, GL_OUTPUT_BYTES_MAX, &arena, &why), 0);
        assert_non_null(strstr(text.p, "(1048576 bytes; "));
    }
}

/* Failures, events. */

static void failures_that_pass_are_known_by_their_words(void **state)
{
    (void)state;
    static const char *const yes[] = {
        "H2 Protocol Error",
        "peer closed connection",
        "rpc Status: Unknown.",
        "error reading a body from connection",
        "TLS close_notify",
        "simulated transport error",
        "Connection reset by peer",
        "CONNECTION REFUSED",
        "host local command timed out",
        "agent beacon deadline exceeded",
        "ddeadline exceeded",
        "artifact_not_ready",
        "service UNAVAILABLE",
    };
    static const char *const no[] = {"", "error", "timed  out", "connection", "unavailabl", "h2"};

    for (size_t i = 0; i < GL_COUNT(yes); i++) {
        gl_str text = gl_str_of(yes[i]), none = {0};

        assert_true(gl_worker_output_is_transient(text, none, none));
        assert_true(gl_worker_output_is_transient(none, text, none));
        assert_true(gl_worker_output_is_transient(none, none, text));
    }
    for (size_t i = 0; i < GL_COUNT(no); i++) {
        assert_false(
            gl_worker_output_is_transient(gl_str_of(no[i]), gl_str_of(no[i]), (gl_str){0}));
    }
}

static void an_event_names_its_step(void **state)
{
    (void)state;
    static const struct {
        const char *payload, *step;
    } cases[] = {
        {"", ""},
        {"{}", ""},
        {"{\"step\":\"a\",\"step_id\":\"b\"}", "a"},
        {"{\"phase\":\"p\",\"workflow_step_id\":\"w\"}", "w"},
        {"{\"phase_id\":\"q\",\"phase\":\"p\"}", "p"},
        {"{\"phase_id\":\"q\"}", "q"},
        {"{\"step\":null,\"step_id\":\"b\"}", "b"},
        {"{\"step\":{},\"phase\":3}", "3"},
        {"{\"step\":\"\"}", ""},
        {"{\"x\":{\"step\":\"a\"}}", ""},
        {"[\"step\"]", ""},
        {"\"step", ""},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        EQ(gl_worker_output_event_step(gl_str_of(cases[i].payload), &arena), cases[i].step);
    }
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/worker_output.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_result_comes_back_as_it_was),
        T(a_result_that_says_less_is_one_too),
        T(a_wrong_result_is_refused),
        T(what_is_no_json_says_nothing),
        T(other_json_is_not_structured),
        T(the_last_line_may_be_the_answer),
        T(a_text_of_many_lines_may_be_one_value),
        T(each_of_five_names_makes_it_structured),
        T(only_events_of_the_right_shape_count),
        T(completion_is_of_the_step_or_else_of_the_run),
        T(emitted_messages_are_an_array),
        T(the_old_name_of_completion_is_refused),
        T(what_is_too_large_is_refused_and_what_is_too_deep_no_json),
        T(the_default_payload_tells_how_it_ran),
        T(the_shape_of_a_step_is_the_payload),
        T(metadata_of_steps_is_passed_on),
        T(a_long_stdout_is_not_told_twice),
        T(the_default_payload_fits_the_output_of_a_step),
        T(failures_that_pass_are_known_by_their_words),
        T(an_event_names_its_step),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
