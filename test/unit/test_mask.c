/* A recording without the values in it. */
#include "base/check.h"
#include "base/json.h"
#include "cli/mask.h"
#include "model/flow/flow.h"
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#define JOB "01ARZ3NDEKTSV4RRFFQ69G5FAV"

struct box {
    struct gl_mask *mask;
    struct gl_buf out;
    struct gl_arena arena;
};

static const char *mask(struct box *b, const char *line)
{
    struct gl_why why = {0};

    gl_buf_reset(&b->out);
    if (gl_mask_line(b->mask, gl_str_of(line), &b->out, &why) != 0) {
        fail_msg("%s", why.text);
    }
    assert_true(b->out.n > 0 && b->out.p[b->out.n - 1] == '\n');
    b->out.p[b->out.n - 1] = 0;
    return b->out.p;
}

static gl_str compile(struct box *b, const char *text)
{
    struct gl_flow_errors *errors = GL_NEW(&b->arena, struct gl_flow_errors);
    struct gl_flow *flow;
    struct gl_json j;
    struct gl_buf out = {0};
    gl_str compiled;

    assert_int_equal(gl_json_parse(&j, gl_str_of(text), 1 << 20, &b->arena, NULL), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), NULL, &b->arena, &flow, errors), 0);
    gl_flow_encode(flow, &out);
    compiled = gl_str_dup(&b->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return compiled;
}

/* The line that brings a flow, masked; and the flow that is left of it. */
static const char *mask_flow(struct box *b, const char *text, struct gl_flow **ret)
{
    struct gl_buf line = {0};
    const char *masked;
    struct gl_json j;
    struct gl_jw w;
    struct gl_why why;

    gl_jw_init(&w, &line);
    gl_jw_object(&w);
    gl_jw_key(&w, "flow");
    gl_jw_object(&w);
    gl_jw_key(&w, "hash");
    gl_jw_c(&w, "h");
    gl_jw_key(&w, "text");
    gl_jw_str(&w, compile(b, text));
    gl_jw_end(&w);
    gl_jw_end(&w);
    masked = mask(b, gl_str_c(&b->arena, gl_buf_view(&line)));
    gl_buf_done(&line);
    assert_int_equal(gl_json_parse(&j, gl_str_of(masked), 1 << 20, &b->arena, NULL), 0);
    if (gl_flow_decode(
            gl_json_str(&j, gl_json_get(&j, gl_json_get(&j, gl_json_root(&j), "flow"), "text"),
                        &b->arena),
            &b->arena, ret, &why) != 0) {
        fail_msg("%s", why.text);
    }
    return masked;
}

static int begin(void **state)
{
    struct box *b = calloc(1, sizeof(*b));

    b->mask = gl_mask_new((const uint8_t[32]){1});
    *state = b;
    return 0;
}

static int end(void **state)
{
    struct box *b = *state;

    gl_mask_free(b->mask);
    gl_buf_done(&b->out);
    gl_arena_done(&b->arena);
    free(b);
    return 0;
}

static void a_flow_keeps_its_shape_and_loses_its_texts(void **state)
{
    struct box *b = *state;
    struct gl_flow *flow;
    const struct gl_step_spec *s;
    const char *text =
        mask_flow(b,
                  "{\"inputs\":{\"who\":\"secret-1\",\"list\":[\"secret-2\"]},\"steps\":{"
                  "\"a\":{\"run\":[\"secret-3\",\"${inputs.who}\"],\"env\":{\"NAME\":\"secret-4\"},"
                  "\"retry\":3,\"cwd\":\"/secret-5\"},"
                  "\"b\":{\"needs\":\"a\",\"sh\":\"echo secret-6 ${steps.a.output}\","
                  "\"when\":\"${inputs.who} == 'x'\"},"
                  "\"c\":{\"needs\":\"b\",\"approval\":\"secret-7 ${inputs.who} secret-8\"},"
                  "\"d\":{\"noop\":true,\"foreach\":[\"secret-9\",\"secret-10\"]}}}",
                  &flow);

    assert_null(strstr(text, "secret"));
    assert_int_equal(flow->steps.n, 4);
    s = gl_flow_step(flow, 0);
    assert_int_equal(s->argv.n, 2);
    assert_true(gl_str_is(s->env.items[0], "NAME=***"));
    assert_int_equal(s->retry.attempts, 3);
    assert_true(gl_str_is(gl_flow_step(flow, 1)->when, "${inputs.who} == 'x'"));
    assert_true(gl_flow_step(flow, 2)->has_gate);
    assert_true(gl_str_is(gl_flow_step(flow, 2)->approval, "***${inputs.who}"));
    assert_true(gl_str_is(gl_flow_step(flow, 3)->foreach, "[\"***\",\"***\"]"));
}

static void values_of_events_keep_only_their_types(void **state)
{
    struct box *b = *state;

    assert_string_equal(
        mask(b, "{\"event\":{\"now\":5,\"type\":\"submit\",\"job\":\"" JOB
                "\",\"run_id\":\"r\",\"inputs\":\"{\\\"a\\\":\\\"secret\\\",\\\"b\\\":7,"
                "\\\"c\\\":[1],\\\"d\\\":{\\\"e\\\":1},\\\"f\\\":true}\"}}"),
        "{\"event\":{\"now\":5,\"type\":\"submit\",\"job\":\"" JOB
        "\",\"run_id\":\"r\",\"inputs\":\"{\\\"a\\\":\\\"***\\\",\\\"b\\\":0,\\\"c\\\":[],"
        "\\\"d\\\":{},\\\"f\\\":false}\"}}");
    assert_string_equal(
        mask(b, "{\"event\":{\"now\":5,\"type\":\"ended\",\"output\":\"{\\\"k\\\":1}\","
                "\"error\":\"secret\",\"exit_code\":3}}"),
        "{\"event\":{\"now\":5,\"type\":\"ended\",\"output\":\"{}\","
        "\"error\":\"***\",\"exit_code\":3}}");
    assert_string_equal(
        mask(b, "{\"event\":{\"now\":5,\"type\":\"command\",\"verb\":\"respond\",\"step\":\"d\","
                "\"decision\":\"approve\",\"who\":\"secret\",\"reason\":\"secret\"}}"),
        "{\"event\":{\"now\":5,\"type\":\"command\",\"verb\":\"respond\",\"step\":\"d\","
        "\"decision\":\"approve\",\"who\":\"***\",\"reason\":\"***\"}}");
}

static void records_keep_what_decides(void **state)
{
    struct box *b = *state;

    assert_string_equal(
        mask(b, "{\"step\":{\"number\":1,\"r\":{\"step_id\":\"a\",\"status\":\"blocked\","
                "\"last_error\":\"secret\",\"output\":{\"x\":\"secret\"},\"asked\":\"secret\"}}}"),
        "{\"step\":{\"number\":1,\"r\":{\"step_id\":\"a\",\"status\":\"blocked\","
        "\"last_error\":\"***\",\"output\":{},\"asked\":\"***\"}}}");
    assert_string_equal(
        mask(
            b,
            "{\"event\":{\"now\":1,\"type\":\"loaded\",\"records\":[{\"kind\":\"job\",\"id\":\"i\","
            "\"value\":\"{\\\"reason\\\":\\\"secret\\\",\\\"steps_n\\\":2}\"},"
            "{\"kind\":\"novelty\",\"value\":\"{\\\"a\\\":\\\"secret\\\"}\"}]}}"),
        "{\"event\":{\"now\":1,\"type\":\"loaded\",\"records\":[{\"kind\":\"job\",\"id\":\"i\","
        "\"value\":\"{\\\"reason\\\":\\\"***\\\",\\\"steps_n\\\":2}\"},"
        "{\"kind\":\"novelty\",\"value\":\"{}\"}]}}");
    assert_string_equal(
        mask(b, "{\"signal\":{\"id\":\"a/1\",\"name\":\"go\",\"data\":\"secret\"}}"),
        "{\"signal\":{\"id\":\"a/1\",\"name\":\"go\",\"data\":\"***\"}}");
}

/* They are in events, and in the snapshot of the node that runs them. */
static void attempts_of_other_nodes_lose_their_values(void **state)
{
    struct box *b = *state;
    const char *text = mask(
        b, "{\"event\":{\"now\":1,\"type\":\"answer\",\"by\":\"offers\",\"number\":4,\"records\":["
           "{\"kind\":\"taken\",\"id\":\"" JOB "/a:attempt:1\",\"value\":\"{\\\"state\\\":"
           "\\\"ended\\\",\\\"error\\\":\\\"secret\\\",\\\"output\\\":{\\\"x\\\":"
           "\\\"secret\\\"}}\"}]}}");

    assert_null(strstr(text, "secret"));
    assert_non_null(strstr(text, "\\\"state\\\":\\\"ended\\\""));
    assert_string_equal(mask(b,
                             "{\"taken_attempt\":{\"id\":\"i\",\"phase\":\"over\",\"end\":{"
                             "\"state\":\"ended\",\"error\":\"secret\",\"output\":\"secret\"}}}"),
                        "{\"taken_attempt\":{\"id\":\"i\",\"phase\":\"over\",\"end\":{"
                        "\"state\":\"ended\",\"error\":\"***\",\"output\":\"***\"}}}");
    assert_string_equal(mask(b, "{\"taken_list\":{\"is_write\":true}}"),
                        "{\"taken_list\":{\"is_write\":true}}");
}

/* The node that runs an attempt reads the flow of its job with a call of its own. */
static void a_flow_that_is_read_as_a_record_stays_a_flow(void **state)
{
    struct box *b = *state;
    gl_str text = compile(b, "{\"name\":\"f\",\"steps\":{\"a\":{\"sh\":\"echo secret\"}}}");
    struct gl_buf line = {0};
    struct gl_flow *flow;
    const char *masked;
    struct gl_json j;
    struct gl_jw w;

    gl_jw_init(&w, &line);
    gl_jw_object(&w);
    gl_jw_put_object(&w, "event");
    gl_jw_put_i64(&w, "now", 1);
    gl_jw_put_c(&w, "type", "answer");
    gl_jw_put_array(&w, "records");
    gl_jw_object(&w);
    gl_jw_put_c(&w, "kind", "flow");
    gl_jw_put_c(&w, "id", "hash");
    gl_jw_put_str(&w, "value", text);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_jw_end(&w);
    masked = mask(b, gl_str_c(&b->arena, gl_buf_view(&line)));
    assert_null(strstr(masked, "secret"));
    assert_int_equal(gl_json_parse(&j, gl_str_of(masked), 1 << 20, &b->arena, NULL), 0);
    text = gl_json_str(
        &j,
        gl_json_get(&j,
                    gl_json_first(
                        &j, gl_json_get(&j, gl_json_get(&j, gl_json_root(&j), "event"), "records")),
                    "value"),
        &b->arena);
    assert_int_equal(gl_flow_decode(text, &b->arena, &flow, NULL), 0);
    assert_true(gl_str_is(gl_flow_step(flow, 0)->id, "a"));
    gl_buf_done(&line);
}

/* A command in an inbox is an event. It must stay one: whether it can be read decides. */
static void commands_of_other_nodes_lose_their_values(void **state)
{
    struct box *b = *state;
    const char *text = mask(
        b, "{\"event\":{\"now\":1,\"type\":\"answer\",\"by\":\"inbox\",\"number\":4,\"records\":["
           "{\"kind\":\"inbox\",\"id\":\"i\",\"value\":\"{\\\"now\\\":1,"
           "\\\"type\\\":\\\"command\\\",\\\"job\\\":\\\"" JOB
           "\\\",\\\"verb\\\":\\\"signal\\\",\\\"step\\\":\\\"go\\\","
           "\\\"output\\\":\\\"\\\\\\\"secret\\\\\\\"\\\","
           "\\\"who\\\":\\\"secret\\\",\\\"reason\\\":\\\"secret\\\"}\"},"
           "{\"kind\":\"answer\",\"value\":\"{\\\"code\\\":-2,"
           "\\\"why\\\":\\\"secret\\\"}\"}]}}");

    assert_null(strstr(text, "secret"));
    assert_non_null(strstr(text, "\\\"verb\\\":\\\"signal\\\""));
    assert_non_null(strstr(text, JOB));
    assert_non_null(strstr(text, "\\\"code\\\":-2"));
    assert_string_equal(mask(b, "{\"inbox\":{\"call\":3,\"accepted\":[{\"state\":\"answering\","
                                "\"id\":\"i\",\"why\":\"secret\"}]}}"),
                        "{\"inbox\":{\"call\":3,\"accepted\":[{\"state\":\"answering\","
                        "\"id\":\"i\",\"why\":\"***\"}]}}");
}

/* Whether two of them are the same decides. */
static void claims_keep_which_names_are_the_same(void **state)
{
    struct box *b = *state;
    const char *asked =
        mask(b, "{\"event\":{\"now\":1,\"type\":\"claim\",\"request\":4,\"act\":\"fail\","
                "\"key\":\"secret-key\",\"owner\":\"secret-owner\",\"fence\":3,"
                "\"error_detail\":\"secret\",\"nonce\":\"secret-nonce\"}}");
    char owner[64];

    assert_null(strstr(asked, "secret"));
    assert_non_null(strstr(asked, "\"fence\":3,\"error_detail\":\"***\""));
    assert_int_equal(sscanf(strstr(asked, "owner"), "owner\":\"%17s", owner), 1);
    const char *read =
        mask(b, "{\"event\":{\"now\":1,\"type\":\"answer\",\"by\":\"claims\",\"records\":["
                "{\"kind\":\"claim\",\"id\":\"secret-key\",\"owner\":\"secret-owner\",\"rev\":1,"
                "\"value\":\"{\\\"state\\\":\\\"claimed\\\",\\\"owner\\\":\\\"secret-owner\\\","
                "\\\"lease_until\\\":7,\\\"work_type\\\":\\\"secret\\\"}\"},"
                "{\"kind\":\"claim\",\"value\":\"secret\"}],\"entries\":[{\"score\":5,"
                "\"id\":\"secret-key\"}]}}");
    assert_null(strstr(read, "secret"));
    assert_non_null(strstr(read, "\\\"state\\\":\\\"claimed\\\""));
    assert_non_null(strstr(read, "\\\"lease_until\\\":7"));
    assert_non_null(strstr(strstr(read, "\\\"owner\\\""), owner));
    const char *saved =
        mask(b, "{\"claims\":{\"acquired\":5,\"requests\":[{\"phase\":\"writing\",\"key\":"
                "\"secret-key\",\"owner\":\"secret-owner\",\"shown\":\"{\\\"owner\\\":"
                "\\\"secret-owner\\\"}\",\"changes\":[{\"key\":\"secret\",\"score\":3}]}]}}");
    assert_null(strstr(saved, "secret"));
    assert_non_null(strstr(strstr(saved, "shown"), owner));
    assert_non_null(strstr(saved, "\"acquired\":5"));
}

/* ---- facts ---- */

static const char *mask_facts(struct box *b, const char *when)
{
    struct gl_flow *flow;
    char text[512];

    (void)snprintf(
        text, sizeof(text),
        "{\"inputs\":{\"a\":\"x\",\"b\":\"x\",\"c\":\"x\",\"n\":1},\"steps\":{\"s\":{\"noop\":true,"
        "\"needs\":\"p\",\"when\":\"%s\"},\"p\":{\"noop\":true}}}",
        when);
    (void)mask_flow(b, text, &flow);
    (void)mask(b, "{\"event\":{\"now\":1,\"type\":\"submit\",\"job\":\"" JOB
                  "\",\"flow_hash\":\"h\"}}");
    return mask(b,
                "{\"event\":{\"now\":1,\"type\":\"resolved\",\"job\":\"" JOB
                "\",\"facts\":\"{\\\"inputs\\\":{\\\"a\\\":\\\"prod\\\",\\\"b\\\":\\\"secret\\\","
                "\\\"c\\\":\\\"secret\\\",\\\"n\\\":42},\\\"job\\\":{\\\"name\\\":\\\"flow\\\"},"
                "\\\"steps\\\":{\\\"p\\\":{\\\"status\\\":\\\"completed\\\","
                "\\\"output\\\":[\\\"other\\\",\\\"\\\"]}}}\"}}");
}

static void facts_keep_what_a_condition_compares(void **state)
{
    struct box *b = *state;
    const char *text = mask_facts(b, "${inputs.a} == 'prod' and ${inputs.b} != ${inputs.c}");
    gl_str kept;

    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "other"));
    assert_non_null(strstr(
        text, "\\\"a\\\":\\\"prod\\\",\\\"b\\\":\\\"***1\\\",\\\"c\\\":\\\"***1\\\",\\\"n\\\":0"));
    assert_non_null(strstr(text, "\\\"output\\\":[]"));
    assert_non_null(strstr(text, "completed"));
    assert_false(gl_mask_kept(b->mask, 0, &kept));
}

/* The condition, and how it leaves the inputs a ("prod"), b and c (both "secret") and n (42), and
 * the output of p, ["other", ""]. */
static void facts_keep_as_little_as_decides(void **state)
{
    static const struct {
        const char *when, *inputs, *output;
        bool is_kept;
    } cases[] = {
        {"exists ${inputs.a}", "***,***,***,0", "[]", false},
        {"${inputs.n} > 5", "***,***,***,42", "[]", false},
        {"${inputs.b}", "***,***1,***,0", "[]", false},
        {"${inputs.a} < 'zz' and ${inputs.c} != ''", "***1,***,***2,0", "[]", false},
        {"${inputs.a} in ['prod','x']", "prod,***,***,0", "[]", false},
        {"${inputs.b} contains 'other'", "***,***1,***,0", "[]", false},
        {"${inputs.b} contains 'ecr' and ${inputs.c} != 'x'", "***,secret,***1,0", "[]", true},
        {"${inputs.b} contains 'ec' and ${inputs.c} contains 'ecr'", "***,secret,secret,0", "[]",
         true},
        {"${steps.p.output}", "***,***,***,0", "[\"***\",\"***\"]", false},
        {"${steps.p.output[1]} == ''", "***,***,***,0", "[\"***\",\"\"]", false},
        {"${inputs.b} in ${steps.p.output}", "***,***1,***,0", "[\"***\",\"***\"]", false},
        {"${steps.p.output[0]} > 'ot'", "***,***,***,0", "[\"other\",\"***\"]", true},
        {"${steps.p.output.deeper} == null", "***,***,***,0", "[\"***\",\"***\"]", false},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        (void)end(state);
        (void)begin(state);
        struct box *b = *state;
        const char *text = mask_facts(b, cases[i].when);
        char inputs[256] = "", output[128];
        struct gl_json line, facts;
        gl_jnode all, found;
        gl_str kept, names[] = {GL_S("a"), GL_S("b"), GL_S("c"), GL_S("n")};

        assert_int_equal(gl_json_parse(&line, gl_str_of(text), 1 << 20, &b->arena, NULL), 0);
        all = gl_json_get(&line, gl_json_get(&line, gl_json_root(&line), "event"), "facts");
        assert_int_equal(
            gl_json_parse(&facts, gl_json_str(&line, all, &b->arena), 1 << 20, &b->arena, NULL), 0);
        all = gl_json_get(&facts, gl_json_root(&facts), "inputs");
        for (size_t k = 0; k < GL_COUNT(names); k++) {
            found = gl_json_get(&facts, all, names[k].p);
            (void)snprintf(inputs + strlen(inputs), sizeof(inputs) - strlen(inputs), "%s%.*s",
                           k > 0 ? "," : "",
                           GL_STR_ARG(gl_json_is(found, GL_JSON_STRING)
                                          ? gl_json_str(&facts, found, &b->arena)
                                          : gl_json_raw(&facts, found)));
        }
        found = gl_json_get(&facts, gl_json_get(&facts, gl_json_root(&facts), "steps"), "p");
        (void)snprintf(output, sizeof(output), "%.*s",
                       GL_STR_ARG(gl_json_raw(&facts, gl_json_get(&facts, found, "output"))));
        assert_string_equal(inputs, cases[i].inputs);
        assert_string_equal(output, cases[i].output);
        assert_int_equal(gl_mask_kept(b->mask, 0, &kept), cases[i].is_kept);
    }
}

static void facts_that_are_looked_into_stay_and_are_named(void **state)
{
    struct box *b = *state;
    const char *text = mask_facts(b, "${inputs.b} contains 'ecr'");
    gl_str kept;

    assert_non_null(strstr(text, "secret"));
    assert_true(gl_mask_kept(b->mask, 0, &kept));
    assert_true(gl_str_is(kept, "flow/s"));
    assert_false(gl_mask_kept(b->mask, 1, &kept));
}

static void what_is_not_known_is_not_shown(void **state)
{
    static const char *const lines[] = {"",   "secret", "{\"novelty\":\"secret\"}",
                                        "[]", "{}",     "{\"event\":{},\"more\":1}"};
    struct box *b = *state;

    for (size_t i = 0; i < GL_COUNT(lines); i++) {
        struct gl_why why = {0};

        gl_buf_reset(&b->out);
        assert_int_not_equal(gl_mask_line(b->mask, gl_str_of(lines[i]), &b->out, &why), 0);
        assert_int_equal(b->out.n, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_flow_keeps_its_shape_and_loses_its_texts, begin, end),
        cmocka_unit_test_setup_teardown(values_of_events_keep_only_their_types, begin, end),
        cmocka_unit_test_setup_teardown(records_keep_what_decides, begin, end),
        cmocka_unit_test_setup_teardown(attempts_of_other_nodes_lose_their_values, begin, end),
        cmocka_unit_test_setup_teardown(a_flow_that_is_read_as_a_record_stays_a_flow, begin, end),
        cmocka_unit_test_setup_teardown(commands_of_other_nodes_lose_their_values, begin, end),
        cmocka_unit_test_setup_teardown(claims_keep_which_names_are_the_same, begin, end),
        cmocka_unit_test_setup_teardown(facts_keep_what_a_condition_compares, begin, end),
        cmocka_unit_test_setup_teardown(facts_keep_as_little_as_decides, begin, end),
        cmocka_unit_test_setup_teardown(facts_that_are_looked_into_stay_and_are_named, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_known_is_not_shown, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
