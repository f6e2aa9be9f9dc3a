#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/gzip.h"
#include "base/limits.h"
#include "model/bundle/message.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

#define EQ(str, literal) assert_string_equal(gl_str_c(&arena, (str)), literal)

static gl_str written(const struct gl_message *m)
{
    struct gl_buf out = {0};
    gl_str text;

    gl_message_write(m, &out);
    text = gl_str_dup(&arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static struct gl_message sample(void)
{
    struct gl_message m;

    gl_message_defaults(&m);
    m.message_id = GL_S("M1");
    m.job_id = GL_S("J1");
    m.from = GL_S("a");
    m.to = GL_S("b");
    m.type = GL_S("done");
    m.timestamp = 1763204149123;
    m.correlation_id = GL_S("C1");
    m.headers = GL_S("{\"k\":\"v\",\"mn.workflow.step_id\":\"s\"}");
    m.body = GL_S("{\"x\":[1,2]}");
    m.artifacts = GL_S("[{\"name\":\"file\"}]");
    m.stream = GL_S("{\"chunk\":3}");
    return m;
}

/* Whole messages. */

static void a_message_has_five_parts(void **state)
{
    struct gl_message m;

    (void)state;
    gl_message_defaults(&m);
    m.type = GL_S("t");
    EQ(written(&m),
       "{\"envelope\":{\"spec_version\":\"mn-msg/1\",\"message_id\":\"\",\"job_id\":\"\","
       "\"from\":\"\",\"to\":\"\",\"type\":\"t\",\"class\":\"event\","
       "\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"correlation_id\":\"\","
       "\"causation_id\":null,\"attempt\":1,\"priority\":100,"
       "\"content_type\":\"application/json\",\"content_encoding\":\"identity\"},"
       "\"headers\":{},\"body\":null,\"artifacts\":[],\"stream\":null}");
}

static void a_message_comes_back_as_it_was(void **state)
{
    struct gl_message m = sample(), back;

    (void)state;
    m.causation_id = GL_S("M\"0\"\n");
    m.class_name = GL_S("command");
    m.attempt = 3;
    m.priority = -7;
    m.ttl_ms = 60000;
    m.content_type = GL_S("text/plain");
    m.content_encoding = GL_S("gzip");
    assert_int_equal(gl_message_read(written(&m), &arena, &back, &why), 0);
    assert_true(gl_str_eq(back.causation_id, m.causation_id));
    assert_int_equal(back.timestamp, m.timestamp);
    assert_int_equal(back.attempt, 3);
    assert_int_equal(back.priority, -7);
    assert_int_equal(back.ttl_ms, 60000);
    EQ(back.body, "{\"x\":[1,2]}");
    assert_true(gl_str_eq(written(&back), written(&m)));
}

static void what_a_message_does_not_say_is_the_usual(void **state)
{
    struct gl_message m;

    (void)state;
    assert_int_equal(
        gl_message_read(GL_S("{\"envelope\":{\"type\":\"t\",\"ttl_ms\":null},\"more\":1}"), &arena,
                        &m, &why),
        0);
    EQ(m.class_name, "event");
    EQ(m.content_type, "application/json");
    assert_int_equal(m.priority, 100);
    assert_int_equal(m.body.n + m.headers.n + m.artifacts.n + m.stream.n, 0);
}

static void a_wrong_field_is_named(void **state)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"", GL_E_INVALID},
        {"[]", GL_E_INVALID},
        {"{\"envelope\":[]}", GL_E_INVALID},
        {"{\"envelope\":{\"spec_version\":\"mn-msg/2\"}}", GL_E_VERSION},
        {"{\"envelope\":{\"type\":7}}", GL_E_INVALID},
        {"{\"envelope\":{\"priority\":\"x\"}}", GL_E_INVALID},
        {"{\"envelope\":{\"priority\":1.5}}", GL_E_INVALID},
        {"{\"envelope\":{\"attempt\":-1}}", GL_E_INVALID},
        {"{\"envelope\":{\"attempt\":4294967296}}", GL_E_INVALID},
        {"{\"envelope\":{\"ttl_ms\":-1}}", GL_E_INVALID},
        {"{\"envelope\":{\"timestamp\":\"today\"}}", GL_E_INVALID},
        {"{\"envelope\":{\"content_encoding\":\"br\"}}", GL_E_INVALID},
        {"{\"envelope\":{},\"headers\":[]}", GL_E_INVALID},
        {"{\"envelope\":{},\"artifacts\":{}}", GL_E_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_message m = {.attempt = 77};

        assert_int_equal(gl_message_read(gl_str_of(cases[i].text), &arena, &m, &why),
                         cases[i].code);
        assert_int_equal(m.attempt, 77); /* untouched */
        golden_say(cases[i].text, gl_str_of(why.text));
    }
}

static gl_str many(const char *before, const char *unit, size_t n, const char *after)
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

static void everything_has_a_limit(void **state)
{
    struct gl_message m;
    gl_str deep;

    (void)state;
    assert_int_equal(
        gl_message_read(many("{\"envelope\":{\"type\":\"", "x", GL_WORD_BYTES_MAX + 1, "\"}}"),
                        &arena, &m, &why),
        GL_E_LIMIT);
    assert_int_equal(gl_message_read(many("{\"envelope\":{},\"headers\":{\"x\":\"", "x",
                                          GL_HEADERS_BYTES_MAX, "\"}}"),
                                     &arena, &m, &why),
                     GL_E_LIMIT);
    assert_int_equal(gl_message_read(many("{\"envelope\":{},\"artifacts\":[\"", "x",
                                          GL_ARTIFACTS_BYTES_MAX, "\"]}"),
                                     &arena, &m, &why),
                     GL_E_LIMIT);
    deep = many("", "[", GL_VALUE_DEPTH_MAX, many("", "]", GL_VALUE_DEPTH_MAX, "").p);
    gl_message_defaults(&m);
    assert_int_equal(gl_message_seed(deep, &arena, &m, &why), 0);
    assert_int_equal(gl_message_read(written(&m), &arena, &m, &why), 0);
    deep = gl_str_fmt(&arena, "[%s]", deep.p);
    assert_int_equal(gl_message_seed(deep, &arena, &m, &why), GL_E_LIMIT);
}

static void the_message_in_the_documentation_is_one(void **state)
{
    static char page[64 << 10];
    static const char fence[] = "```json\n";
    FILE *file = fopen(GL_SOURCE_ROOT "/docs/messages.md", "r");
    size_t n;
    const char *block, *end;
    struct gl_message m;

    (void)state;
    assert_non_null(file);
    n = fread(page, 1, sizeof page - 1, file);
    page[n] = 0;
    (void)fclose(file); /* it was only read */
    block = strstr(page, fence);
    assert_non_null(block);
    block += sizeof fence - 1;
    end = strstr(block, "```");
    assert_non_null(end);
    if (gl_message_read((gl_str){block, (size_t)(end - block)}, &arena, &m, &why) != 0) {
        fail_msg("%s", why.text);
    }
    EQ(m.type, "page");
    assert_int_equal(m.priority, 100);
}

/* Seeds. */

static struct gl_message seeded(const char *text)
{
    struct gl_message m;

    gl_message_defaults(&m);
    m.from = GL_S("runtime");
    m.type = GL_S("init");
    m.class_name = GL_S("command");
    if (gl_message_seed(gl_str_of(text), &arena, &m, &why) != 0) {
        fail_msg("%s: %s", text, why.text);
    }
    return m;
}

static void a_seed_is_a_body_beside_its_envelope(void **state)
{
    static const struct {
        const char *seed, *body;
    } cases[] = {
        {"{}", "{}"},
        {"{\"topic\":\"x\",\"n\":1}", "{\"topic\":\"x\",\"n\":1}"},
        {"{\"topic\":\"x\",\"type\":\"go\",\"priority\":5}", "{\"topic\":\"x\"}"},
        {"{\"body\":{\"a\":1}}", "{\"a\":1}"},
        {"{\"payload\":{\"a\":1}}", "{\"a\":1}"},
        {"{\"body\":[1]}", "[1]"},
        {"{\"payload\":\"text\",\"x\":1}", "\"text\""},
        {"{\"payload\":{\"a\":1},\"gap\":true,\"a\":2}", "{\"a\":1,\"gap\":true}"},
        {"{\"body\":{\"a\":1},\"payload\":{\"b\":1}}", "{\"a\":1,\"payload\":{\"b\":1}}"},
        {"{\"body\":null}", ""},
        {"[1,2]", "[1,2]"},
        {"\"text\"", "\"text\""},
        {" 7 ", "7"},
        {"null", ""},
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        EQ(seeded(cases[i].seed).body, cases[i].body);
    }
}

static void a_seed_says_what_it_wants_and_the_rest_stays(void **state)
{
    struct gl_message m = seeded("{\"type\":\"go\",\"headers\":{\"h\":1},\"artifacts\":[2],"
                                 "\"stream\":{\"s\":3},\"correlation_id\":\"C\",\"x\":1,"
                                 "\"timestamp\":\"2026-11-15T10:55:49.5Z\"}");

    (void)state;
    EQ(m.type, "go");
    EQ(m.from, "runtime");
    EQ(m.class_name, "command");
    EQ(m.correlation_id, "C");
    EQ(m.headers, "{\"h\":1}");
    EQ(m.artifacts, "[2]");
    EQ(m.stream, "{\"s\":3}");
    EQ(m.body, "{\"x\":1}");
    assert_true(m.timestamp > 0);
}

static void a_seed_may_be_a_whole_message(void **state)
{
    struct gl_message m =
        seeded("{\"envelope\":{\"type\":\"go\"},\"body\":{\"a\":1},\"headers\":{\"h\":1}}");

    (void)state;
    EQ(m.type, "go");
    EQ(m.class_name, "command");
    EQ(m.body, "{\"a\":1}");
    EQ(m.headers, "{\"h\":1}");
}

static void a_wrong_seed_changes_nothing(void **state)
{
    struct gl_message m = sample();

    (void)state;
    assert_int_equal(gl_message_seed(GL_S("{\"type\":1}"), &arena, &m, &why), GL_E_INVALID);
    golden_say("a seed with type 1", gl_str_of(why.text));
    EQ(m.body, "{\"x\":[1,2]}");
    assert_int_equal(gl_message_seed(GL_S("{"), &arena, &m, &why), GL_E_INVALID);
}

/* What workers emit. */

static int emit(const char *text, struct gl_message *ret)
{
    struct gl_message incoming = sample();
    struct gl_json *j = GL_NEW(&arena, struct gl_json);

    incoming.class_name = GL_S("command");
    incoming.content_type = GL_S("text/plain");
    assert_int_equal(gl_json_parse(j, gl_str_of(text), 1 << 20, &arena, &why), 0);
    return gl_message_emitted(j, gl_json_root(j), &incoming, &arena, ret, &why);
}

static struct gl_message emitted(const char *text)
{
    struct gl_message m;

    if (emit(text, &m) != 0) {
        fail_msg("%s: %s", text, why.text);
    }
    return m;
}

static void what_is_emitted_inherits_from_what_came(void **state)
{
    struct gl_message m = emitted("{\"type\":\"t\",\"body\":{\"y\":1}}");

    (void)state;
    EQ(m.type, "t");
    EQ(m.to, "");
    EQ(m.from, "");
    EQ(m.message_id, "");
    EQ(m.job_id, "J1");
    EQ(m.correlation_id, "C1");
    EQ(m.causation_id, "M1");
    EQ(m.class_name, "command");
    EQ(m.content_type, "text/plain");
    EQ(m.artifacts, "[{\"name\":\"file\"}]");
    EQ(m.stream, "{\"chunk\":3}");
    EQ(m.headers, "{\"k\":\"v\",\"mn.workflow.step_id\":\"s\"}");
    EQ(m.body, "{\"y\":1}");
    assert_int_equal(m.priority, 100);
    assert_int_equal(m.attempt, 1);
}

static void what_is_emitted_may_say_otherwise(void **state)
{
    struct gl_message m =
        emitted("{\"to\":\"c\",\"type\":\"t\",\"payload\":5,\"class\":\"event\","
                "\"correlation_id\":\"X\",\"causation_id\":\"Y\",\"content_type\":\"a/b\","
                "\"artifacts\":[],\"stream\":{\"chunk\":4},\"headers\":{\"k\":\"w\",\"l\":1},"
                "\"from\":\"somebody else\",\"job_id\":\"another\",\"message_id\":\"mine\"}");

    (void)state;
    EQ(m.to, "c");
    EQ(m.class_name, "event");
    EQ(m.correlation_id, "X");
    EQ(m.causation_id, "Y");
    EQ(m.content_type, "a/b");
    EQ(m.artifacts, "");
    EQ(m.stream, "{\"chunk\":4}");
    EQ(m.headers, "{\"mn.workflow.step_id\":\"s\",\"k\":\"w\",\"l\":1}");
    EQ(m.body, "5");
    EQ(m.from, ""); /* these three are the runtime's */
    EQ(m.job_id, "J1");
    EQ(m.message_id, "");
}

/* It would be lost otherwise: a worker is not there to hear of its mistake. */
static void a_priority_that_is_emitted_is_brought_into_its_range(void **state)
{
    (void)state;
    assert_int_equal(emitted("{\"type\":\"t\",\"priority\":0}").priority, 0);
    assert_int_equal(emitted("{\"type\":\"t\",\"priority\":1000}").priority, 1000);
    assert_int_equal(emitted("{\"type\":\"t\",\"priority\":1001}").priority, 1000);
    assert_int_equal(emitted("{\"type\":\"t\",\"priority\":-1}").priority, 0);
    assert_int_equal(emitted("{\"type\":\"t\",\"priority\":9223372036854775807}").priority, 1000);
    assert_int_equal(emitted("{\"type\":\"t\",\"priority\":null}").priority, 100);
}

static void without_a_body_it_is_empty(void **state)
{
    (void)state;
    EQ(emitted("{\"type\":\"t\"}").body, "{}");
    EQ(emitted("{\"type\":\"t\",\"body\":null}").body, "");
}

static void a_wrong_emission_is_refused(void **state)
{
    static const char *const cases[] = {
        "7",
        "{}",
        "{\"type\":\"\"}",
        "{\"type\":[]}",
        "{\"type\":\"t\",\"to\":1}",
        "{\"type\":\"t\",\"body_base64\":1}",
        "{\"type\":\"t\",\"body_base64\":\"?\"}",
        "{\"type\":\"t\",\"body_base64\":\"eA==\",\"content_type\":\"application/json\"}",
        "{\"type\":\"t\",\"content_encoding\":\"zip\"}",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_message m;

        assert_int_equal(emit(cases[i], &m), GL_E_INVALID);
        golden_say(cases[i], gl_str_of(why.text));
    }
}

static void the_artifact_that_is_a_body_is_not_inherited(void **state)
{
    struct gl_message incoming = sample(), m;

    (void)state;
    gl_message_defaults(&m);
    incoming.artifacts = GL_S("[{\"name\":\"a\"},{\"name\":\"glia:body\",\"sha256\":\"x\"},7]");
    gl_message_inherit(&m, &incoming, &arena);
    EQ(m.artifacts, "[{\"name\":\"a\"},7]");
    incoming.artifacts = GL_S("[{\"name\":\"glia:body\"}]");
    gl_message_inherit(&m, &incoming, &arena);
    EQ(m.artifacts, "");
    EQ(gl_message_artifacts(&arena, GL_S("[1,{\"name\":\"glia:body\"}]"), GL_S("{\"n\":1}")),
       "[1,{\"n\":1}]");
    EQ(gl_message_artifacts(&arena, (gl_str){0}, GL_S("{\"n\":1}")), "[{\"n\":1}]");
    m = emitted("{\"type\":\"t\",\"artifacts\":[{\"name\":\"glia:body\",\"sha256\":\"stolen\"}]}");
    EQ(m.artifacts, "");
    m = emitted("{\"type\":\"t\",\"artifacts\":[{\"name\":\"\\u0067lia:body\"}]}");
    EQ(m.artifacts, "");
}

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_body_can_be_named(void **state)
{
    struct gl_body_ref ref = {.sha256 = GL_S(SHA), .bytes = 300000, .message_number = 12}, found;
    gl_str list;

    (void)state;
    list = gl_message_artifacts(&arena, GL_S("[{\"name\":\"a\"}]"),
                                gl_message_body_artifact(&ref, &arena));
    assert_true(gl_message_body_ref(list, &arena, &found));
    EQ(found.sha256, SHA);
    assert_int_equal(found.bytes, 300000);
    assert_int_equal(found.message_number, 12);
    assert_int_equal(gl_message_pieces(1), 1);
    assert_int_equal(gl_message_pieces(GL_BODY_PIECE_BYTES), 1);
    assert_int_equal(gl_message_pieces(GL_BODY_PIECE_BYTES + 1), 2);
}

static void what_names_no_body_is_told_from_what_does(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "[1]",
        "{}",
        "[{\"name\":\"a\",\"sha256\":\"" SHA "\",\"bytes\":1,\"letter\":1}]",
        "[{\"name\":\"glia:body\",\"sha256\":\"short\",\"bytes\":1,\"letter\":1}]",
        "[{\"name\":\"glia:body\",\"sha256\":\"" SHA "\",\"bytes\":0,\"letter\":1}]",
        "[{\"name\":\"glia:body\",\"sha256\":\"" SHA "\",\"bytes\":16777217,\"letter\":1}]",
        "[{\"name\":\"glia:body\",\"sha256\":\"" SHA "\",\"bytes\":1,\"letter\":-1}]",
        "[{\"name\":\"glia:body\",\"sha256\":\"" SHA "\",\"bytes\":1}]"};
    struct gl_body_ref ref;

    (void)state;
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        if (gl_message_body_ref(gl_str_of(bad[i]), &arena, &ref)) {
            fail_msg("%s names a body", bad[i]);
        }
    }
}

static void a_seed_has_no_body_elsewhere(void **state)
{
    struct gl_message m;

    (void)state;
    gl_message_defaults(&m);
    assert_int_equal(
        gl_message_seed(GL_S("{\"artifacts\":[{\"name\":\"glia:body\"}]}"), &arena, &m, NULL), 0);
    EQ(m.artifacts, "");
}

/* Bodies as bytes. */

static gl_str body_of(const struct gl_message *m)
{
    gl_str bytes;

    assert_int_equal(gl_message_body(m, &arena, &bytes, &why), 0);
    return bytes;
}

static void a_body_is_encoded_as_its_type_says(void **state)
{
    static const struct {
        const char *type, *body, *bytes;
    } cases[] = {
        {"application/json", "{\"a\":1}", "{\"a\":1}"},
        {"application/json", "", "null"},
        {"application/json; charset=utf-8", "\"x\"", "\"x\""},
        {"application/vnd.api+json", "\"x\"", "\"x\""},
        {"text/plain", "\"a\\nb\"", "a\nb"},
        {"text/plain", "\"\"", ""},
        {"text/plain", "", ""},
        {"text/plain", "null", ""},
        {"text/plain", "{\"a\":1}", "{\"a\":1}"},
        {"text/plain", "17", "17"},
        {"application/octet-stream", "\"data:;base64,Zm9v\"", "foo"},
        {"application/octet-stream", "\"data:;base64,?\"", "data:;base64,?"},
        {"application/json", "\"data:;base64,Zm9v\"", "\"data:;base64,Zm9v\""},
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_message m;

        gl_message_defaults(&m);
        m.content_type = gl_str_of(cases[i].type);
        m.body = gl_str_of(cases[i].body);
        EQ(body_of(&m), cases[i].bytes);
    }
}

static void a_packed_body_is_gzip(void **state)
{
    struct gl_message m = sample();
    struct gl_buf plain = {0};

    (void)state;
    m.content_encoding = GL_S("gzip");
    assert_int_equal(gl_gzip_unpack(body_of(&m), 100, &plain, &why), 0);
    assert_true(gl_str_eq(gl_buf_view(&plain), m.body));
    gl_buf_done(&plain);
}

static void bytes_go_through_a_message_unchanged(void **state)
{
    /* text; a text that looks like bytes; bytes; nothing */
    static const struct {
        const char *base64, *body;
        gl_str bytes;
    } cases[] = {
        {"aGVsbG8=", "\"hello\"", {"hello", 5}},
        {"ZGF0YTo7YmFzZTY0LFptOXY=",
         "\"data:;base64,ZGF0YTo7YmFzZTY0LFptOXY=\"",
         {"data:;base64,Zm9v", 17}},
        {"//4AAQ==", "\"data:;base64,//4AAQ==\"", {"\xff\xfe\x00\x01", 4}},
        {"", "\"\"", {"", 0}},
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        gl_str text =
            gl_str_fmt(&arena, "{\"type\":\"t\",\"body_base64\":\"%s\"}", cases[i].base64);
        struct gl_message m = emitted(text.p);

        EQ(m.content_type, "application/octet-stream");
        EQ(m.body, cases[i].body);
        assert_true(gl_str_eq(body_of(&m), cases[i].bytes));
    }
    EQ(emitted("{\"type\":\"t\",\"body_base64\":\"eyJhIjoxfQ==\","
               "\"content_type\":\"application/json\"}")
           .body,
       "{\"a\":1}");
}

static void packed_bytes_are_unpacked_once(void **state)
{
    /* gzip of "hello" */
    struct gl_message m =
        emitted("{\"type\":\"t\",\"content_type\":\"text/plain\",\"content_encoding\":\"gzip\","
                "\"body_base64\":\"H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==\"}");

    (void)state;
    EQ(m.body, "\"hello\"");
    assert_true(gl_gzip_is(body_of(&m)));
    assert_int_equal(emit("{\"type\":\"t\",\"content_type\":\"text/plain\","
                          "\"content_encoding\":\"gzip\","
                          "\"body_base64\":\"H4sIAAAAAAAAA8tIzcnJBwCGphA2BgAAAA==\"}",
                          &m),
                     GL_E_INVALID);
    golden_say("a damaged gzip", gl_str_of(why.text));
}

/* Headers. */

static const struct gl_message_ledger ledger = {.run_id = {"R", 1},
                                                .step_id = {"s[3]", 4},
                                                .template_id = {"t", 1},
                                                .region_id = {"g", 1},
                                                .attempt_id = {"s:attempt:2", 11},
                                                .idempotency_key = {"k", 1},
                                                .source_step_id = {"p", 1},
                                                .has_revision = true,
                                                .attempt = 2,
                                                .deadline_at = 1763204149123,
                                                .heartbeat_deadline_at = 1763204149000,
                                                .timeout_ms = 1500,
                                                .heartbeat_timeout_ms = 45000};

static void the_ledger_speaks_in_headers(void **state)
{
    gl_str text = gl_message_headers(
        &arena, GL_S("{\"mn.workflow.attempt_id\":\"old\",\"a\":{},\"mn\\u002eworkflow.x\":1}"),
        &ledger);

    (void)state;
    EQ(text, "{\"a\":{},\"mn.workflow.run_id\":\"R\",\"mn.workflow.step_id\":\"s[3]\","
             "\"mn.workflow.graph_revision\":0,\"mn.workflow.template_id\":\"t\","
             "\"mn.workflow.region_id\":\"g\",\"mn.workflow.attempt_id\":\"s:attempt:2\","
             "\"mn.workflow.attempt\":2,\"mn.workflow.deadline_at\":\"2025-11-15T10:55:49.123Z\","
             "\"mn.workflow.heartbeat_deadline_at\":\"2025-11-15T10:55:49.000Z\","
             "\"mn.workflow.idempotency_key\":\"k\",\"mn.workflow.timeout_seconds\":1.500,"
             "\"mn.workflow.heartbeat_timeout_ms\":45000,\"mn.workflow.source_step_id\":\"p\"}");
}

static void what_the_ledger_said_can_be_read_back(void **state)
{
    struct gl_message_ledger back;
    gl_str text = gl_message_headers(&arena, (gl_str){0}, &ledger), again;

    (void)state;
    gl_message_ledger_of(text, &arena, &back);
    again = gl_message_headers(&arena, (gl_str){0}, &back);
    assert_true(gl_str_eq(text, again));
    assert_int_equal(back.timeout_ms, 1500);
    assert_true(back.has_revision);
}

static void without_a_ledger_its_headers_go(void **state)
{
    gl_str plain = GL_S("{\"a\":1}");

    (void)state;
    assert_ptr_equal(gl_message_headers(&arena, plain, NULL).p, plain.p); /* not even copied */
    EQ(gl_message_headers(&arena, GL_S("{\"a\":1,\"mn.workflow.step_id\":\"s\"}"), NULL),
       "{\"a\":1}");
    EQ(gl_message_headers(&arena, GL_S("{\"mn.workflow.step_id\":\"s\"}"), NULL), "");
    EQ(gl_message_headers(&arena, (gl_str){0}, &(struct gl_message_ledger){0}), "");
}

static void headers_of_the_wrong_type_say_nothing(void **state)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{",
        ("{\"mn.workflow.step_id\":7,\"mn.workflow.attempt\":\"x\",\"mn.workflow.attempt_id\":{},"
         "\"mn.workflow.deadline_at\":5,\"mn.workflow.timeout_seconds\":\"x\","
         "\"mn.workflow.graph_revision\":-1,\"mn.workflow.heartbeat_timeout_ms\":1e3}"),
        ("{\"mn.workflow.attempt\":4294967296,\"mn.workflow.timeout_seconds\":1e300,"
         "\"mn.workflow.heartbeat_timeout_ms\":18446744073709551615}"),
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_message_ledger l = {.attempt = 9};

        gl_message_ledger_of(gl_str_of(cases[i]), &arena, &l);
        assert_int_equal(l.step_id.n + l.attempt_id.n + l.attempt, 0);
        assert_false(l.has_revision);
        assert_int_equal(l.deadline_at + l.timeout_ms + l.heartbeat_timeout_ms, 0);
    }
}

static void many_headers_are_merged_in_good_time(void **state)
{
    struct gl_buf b = {0};
    struct gl_message m = {0}, incoming = sample();
    struct gl_json j;
    gl_str headers;

    (void)state;
    gl_buf_char(&b, '{');
    for (int i = 0; i < 6000; i++) {
        gl_buf_fmt(&b, "%s\"%d\":1", i > 0 ? "," : "", i);
    }
    gl_buf_char(&b, '}');
    headers = gl_str_dup(&arena, gl_buf_view(&b));
    incoming.headers = headers;
    gl_buf_reset(&b);
    gl_buf_fmt(&b, "{\"type\":\"t\",\"headers\":%.*s}", GL_STR_ARG(headers));
    assert_int_equal(gl_json_parse(&j, gl_buf_view(&b), 1 << 20, &arena, &why), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(gl_message_emitted(&j, gl_json_root(&j), &incoming, &arena, &m, &why), 0);
    }
    assert_true(gl_str_eq(m.headers, headers));
    gl_buf_done(&b);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/message.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_message_has_five_parts),
        T(a_message_comes_back_as_it_was),
        T(what_a_message_does_not_say_is_the_usual),
        T(a_wrong_field_is_named),
        T(everything_has_a_limit),
        T(the_message_in_the_documentation_is_one),
        T(a_seed_is_a_body_beside_its_envelope),
        T(a_seed_says_what_it_wants_and_the_rest_stays),
        T(a_seed_may_be_a_whole_message),
        T(a_wrong_seed_changes_nothing),
        T(what_is_emitted_inherits_from_what_came),
        T(what_is_emitted_may_say_otherwise),
        T(a_priority_that_is_emitted_is_brought_into_its_range),
        T(without_a_body_it_is_empty),
        T(a_wrong_emission_is_refused),
        T(the_artifact_that_is_a_body_is_not_inherited),
        T(a_body_can_be_named),
        T(a_seed_has_no_body_elsewhere),
        T(what_names_no_body_is_told_from_what_does),
        T(a_body_is_encoded_as_its_type_says),
        T(a_packed_body_is_gzip),
        T(bytes_go_through_a_message_unchanged),
        T(packed_bytes_are_unpacked_once),
        T(the_ledger_speaks_in_headers),
        T(what_the_ledger_said_can_be_read_back),
        T(without_a_ledger_its_headers_go),
        T(headers_of_the_wrong_type_say_nothing),
        T(many_headers_are_merged_in_good_time),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
