#include "support/cmocka_all.h"

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/error_envelope.h"

struct bench {
    struct gl_arena a;
    struct gl_json j;
};

static int set_up(void **state)
{
    static struct bench b;

    memset(&b, 0, sizeof(b));
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    gl_arena_done(&b->a);
    return 0;
}

static gl_jnode written(struct bench *b, const struct gl_error_envelope *e)
{
    struct gl_why why;

    if (gl_json_parse(&b->j, gl_error_envelope_text(e, &b->a), 1 << 20, &b->a, &why) != 0) {
        fail_msg("%s", why.text);
    }
    return gl_json_root(&b->j);
}

static gl_str text(struct bench *b, gl_jnode of, const char *name)
{
    return gl_json_str(&b->j, gl_json_get(&b->j, of, name), &b->a);
}

static gl_jnode member(struct bench *b, gl_jnode of, const char *name)
{
    gl_jnode n = gl_json_get(&b->j, of, name);

    if (n == NULL) {
        fail_msg("there is no '%s' in %.*s", name, GL_STR_ARG(b->j.text));
    }
    return n;
}

static void a_failure_has_all_fields_of_the_envelope(void **state)
{
    struct bench *b = *state;
    struct gl_error_envelope e = {.failure = GL_FAILURE_EXIT,
                                  .message =
                                      GL_S("\n  exit code 24: no  reviewer\nTraceback ...\n"),
                                  .step_id = GL_S("approve"),
                                  .agent_id = GL_S("gate"),
                                  .attempt = 2,
                                  .max_attempts = 3,
                                  .occurred_at = 1000,
                                  .event_id = GL_S("17")};
    gl_jnode root = written(b, &e), details = member(b, root, "details");
    bool flag = true;

    assert_int_equal(root->count, 9);
    assert_true(gl_str_is(text(b, root, "schema_version"), "mn.error.v1"));
    assert_true(gl_str_is(text(b, root, "code"), "worker_failed"));
    assert_true(gl_str_is(text(b, root, "desc"), "exit code 24: no reviewer"));
    assert_true(gl_str_is(text(b, root, "severity"), "error"));
    assert_true(gl_str_is(text(b, root, "occurred_at"), "1970-01-01T00:00:01.000Z"));
    assert_true(gl_str_is(text(b, root, "event_id"), "17"));
    assert_true(text(b, root, "remediation").n > 10);
    assert_true(gl_json_is(member(b, root, "links"), GL_JSON_ARRAY));
    assert_int_equal(details->count, 7);
    assert_true(
        gl_str_is(text(b, details, "message"), "exit code 24: no  reviewer\nTraceback ..."));
    assert_true(gl_str_is(text(b, details, "category"), "worker"));
    assert_true(gl_json_bool(member(b, details, "retryable"), &flag) && !flag);
    assert_true(gl_str_is(text(b, details, "step_id"), "approve"));
    assert_true(gl_str_is(text(b, details, "agent_id"), "gate"));
    assert_true(gl_str_is(gl_json_raw(&b->j, member(b, details, "attempt")), "2"));
    assert_true(gl_str_is(gl_json_raw(&b->j, member(b, details, "max_attempts")), "3"));
}

static void what_is_not_known_is_null(void **state)
{
    struct bench *b = *state;
    struct gl_error_envelope e = {.failure = GL_FAILURE_TIMEOUT};
    gl_jnode root = written(b, &e), details = member(b, root, "details");

    assert_true(gl_str_is(text(b, root, "desc"), "worker_timed_out"));
    assert_true(gl_json_is(member(b, details, "message"), GL_JSON_NULL));
    assert_true(gl_json_is(member(b, details, "step_id"), GL_JSON_NULL));
    assert_true(gl_json_is(member(b, details, "attempt"), GL_JSON_NULL));
    assert_true(gl_json_is(member(b, root, "event_id"), GL_JSON_NULL));
}

static void each_failure_has_a_code_a_category_and_a_word_about_trying_again(void **state)
{
    struct bench *b = *state;

    for (int f = 0; f < GL_FAILURE_COUNT; f++) {
        struct gl_error_envelope e = {.failure = (enum gl_failure)f, .message = GL_S("x")};
        gl_jnode root = written(b, &e), details = member(b, root, "details");

        assert_true(text(b, root, "code").n > 0 && text(b, details, "category").n > 0);
    }
}

static void a_transient_failure_can_be_tried_again_and_a_handled_one_is_a_warning(void **state)
{
    struct bench *b = *state;
    struct gl_error_envelope e = {
        .failure = GL_FAILURE_EXIT, .is_transient = true, .is_handled = true};
    gl_jnode root = written(b, &e), details = member(b, root, "details");
    bool flag = false;

    assert_true(gl_json_bool(member(b, details, "retryable"), &flag) && flag);
    assert_true(gl_str_is(text(b, details, "category"), "transient"));
    assert_true(gl_str_is(text(b, root, "severity"), "warning"));
}

static size_t chars_of(gl_str s)
{
    size_t chars = 0, bad;

    assert_true(gl_str_is_utf8(s, &bad));
    for (size_t at = 0; at < s.n; chars++) {
        at += gl_str_utf8_at((gl_str){.p = s.p + at, .n = s.n - at});
    }
    return chars;
}

static void desc_has_at_most_160_characters_and_is_cut_between_them(void **state)
{
    static const char *const units[] = {"x", "ä", "€", "𝄞"};
    struct bench *b = *state;

    for (size_t u = 0; u < GL_COUNT(units); u++) {
        for (size_t n = 158; n <= 162; n++) {
            struct gl_buf long_text = {0};
            struct gl_error_envelope e = {.failure = GL_FAILURE_EXIT};
            gl_str desc;

            for (size_t i = 0; i < n; i++) {
                gl_buf_c(&long_text, units[u]);
            }
            e.message = gl_buf_view(&long_text);
            desc = text(b, written(b, &e), "desc");
            assert_int_equal(chars_of(desc), n <= 160 ? n : 160);
            assert_true(gl_str_ends(desc, gl_str_of(n <= 160 ? units[u] : "…")));
            gl_buf_done(&long_text);
        }
    }
}

static void the_message_is_bounded(void **state)
{
    struct bench *b = *state;
    struct gl_buf long_text = {0};
    struct gl_error_envelope e = {.failure = GL_FAILURE_EXIT};
    gl_str message;

    for (int i = 0; i < 100000; i++) {
        gl_buf_c(&long_text, "€ ");
    }
    e.message = e.step_id = e.agent_id = e.event_id = e.remediation = gl_buf_view(&long_text);
    message = text(b, member(b, written(b, &e), "details"), "message");
    assert_in_range(message.n, GL_ERROR_ENVELOPE_MESSAGE_BYTES - 8,
                    GL_ERROR_ENVELOPE_MESSAGE_BYTES);
    (void)chars_of(message); /* whole characters */
    assert_true(b->j.text.n < 8192);
    gl_buf_done(&long_text);
}

static void hostile_bytes_become_a_document_all_the_same(void **state)
{
    struct bench *b = *state;
    struct gl_error_envelope e = {.failure = GL_FAILURE_EXIT,
                                  .message = GL_S("a\0b\x01\xff\xc3\"\\\x1b[31m\n\x7f")};
    gl_jnode root = written(b, &e);

    assert_true(gl_str_starts(text(b, root, "desc"), GL_S("a b ")));
    (void)chars_of(text(b, root, "desc"));
}

/* ---- redaction ---- */

static const char *const pairs[][2] = {
    {"nothing to hide: 12 of 13", "nothing to hide: 12 of 13"},
    {"curl https://bob:hunter2@example.org/x?y=1", "curl https://***@example.org/x?y=1"},
    {"postgres://u:p@ss@db:5432/x", "postgres://***@db:5432/x"},
    {"see https://example.org/a@b", "see https://example.org/a@b"},
    {"GET /x?token=abc123&user=bob", "GET /x?token=***&user=bob"},
    {"Authorization: Bearer abc.def", "Authorization: ***"},
    {"sent Bearer 0123456789abcdef, refused", "sent Bearer ***, refused"},
    {"BEARER 0123456789abcdef", "BEARER ***"},
    {"a bearer of news", "a bearer of news"},
    {"{\"api_key\": \"k-123\", \"n\": 1}", "{\"api_key\": \"***\", \"n\": 1}"},
    {"{\"apiKey\":\"a\\\"b\",\"n\":1}", "{\"apiKey\":\"***\",\"n\":1}"},
    {"'{\\\"token\\\": \\\"abc\\\", \\\"n\\\": 1}'",
     "'{\\\"token\\\": \\\"***\\\", \\\"n\\\": 1}'"},
    {"{'password': 'x y z', 'n': 1}", "{'password': '***', 'n': 1}"},
    {"DB_PASSWORD=hunter2 retry", "DB_PASSWORD=*** retry"},
    {"tool --password hunter2 --host x", "tool --password *** --host x"},
    {"tool --auth-token=abc --host x", "tool --auth-token=*** --host x"},
    {"Set-Cookie: a=b; Path=/\nnext", "Set-Cookie: ***\nnext"},
    {"max_tokens: 4096", "max_tokens: 4096"},
    {"PWD=/home/x", "PWD=/home/x"},
    {"idempotency_key: r:s:1", "idempotency_key: r:s:1"},
    {"invalid token", "invalid token"},
    {"key ghp_0123456789abcdefABCDEF is bad", "key *** is bad"},
    {"eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "***"},
    {"AKIAIOSFODNN7EXAMPLE", "***"},
    {"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n***\nb"},
    {"-----BEGIN PRIVATE KEY-----\nMIIE", "***"},
    {"-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----"},
    {"password=", "password="},
    {"", ""},
};

static void what_looks_like_a_secret_is_hidden_and_nothing_else(void **state)
{
    struct bench *b = *state;

    for (size_t i = 0; i < GL_COUNT(pairs); i++) {
        gl_str got = gl_redaction_apply(gl_str_of(pairs[i][0]), NULL, 0, &b->a);

        if (!gl_str_is(got, pairs[i][1])) {
            fail_msg("'%s' became '%.*s', not '%s'", pairs[i][0], GL_STR_ARG(got), pairs[i][1]);
        }
    }
}

static void values_of_secret_variables_are_hidden_wherever_they_stand(void **state)
{
    struct bench *b = *state;
    const gl_str env[] = {GL_S("API_TOKEN=hunter2"), GL_S("OTHER_SECRET=hunter22"),
                          GL_S("HOME=/home/bob"), GL_S("TINY_TOKEN=ab"), GL_S("broken")};
    gl_str got = gl_redaction_apply(GL_S("I am hunter22 of /home/bob, xhunter2x, ab"), env,
                                    GL_COUNT(env), &b->a);

    assert_true(gl_str_is(got, "I am *** of /home/bob, x***x, ab"));
}

/* What is cut off must be hidden before: else its first half would be shown. */
static void a_secret_at_the_place_of_the_cut_does_not_show(void **state)
{
    struct bench *b = *state;
    const gl_str env[] = {GL_S("API_TOKEN=abcdefghijklmnop")};
    struct gl_buf long_text = {0};
    struct gl_error_envelope e = {.failure = GL_FAILURE_EXIT, .env = env, .env_n = 1};
    gl_jnode root;

    for (int i = 0; i < 150; i++) {
        gl_buf_char(&long_text, 'x');
    }
    gl_buf_c(&long_text, " abcdefghijklmnop");
    e.message = gl_buf_view(&long_text);
    root = written(b, &e);
    assert_null(memmem(b->j.text.p, b->j.text.n, "abc", 3));
    assert_true(gl_str_ends(text(b, root, "desc"), GL_S("x ***")));
    gl_buf_done(&long_text);
}

static void names_of_secrets_are_known(void **state)
{
    static const char *const secret[] = {"API_TOKEN",      "dbPassword",  "aws-secret-access-key",
                                         "x_auth",         "accessToken", "MY_PWD",
                                         "OPENAI_API_KEY", "Cookie",      "PGPASSWORD"};
    static const char *const others[] = {"MAX_TOKENS", "PWD",       "MN_WORKFLOW_IDEMPOTENCY_KEY",
                                         "AUTHOR",     "KEY",       "",
                                         "tokenizer",  "PASSENGERS"};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(secret); i++) {
        if (!gl_redaction_is_secret_name(gl_str_of(secret[i]))) {
            fail_msg("%s is one", secret[i]);
        }
    }
    for (size_t i = 0; i < GL_COUNT(others); i++) {
        if (gl_redaction_is_secret_name(gl_str_of(others[i]))) {
            fail_msg("%s is none", others[i]);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_failure_has_all_fields_of_the_envelope),
        TEST(what_is_not_known_is_null),
        TEST(each_failure_has_a_code_a_category_and_a_word_about_trying_again),
        TEST(a_transient_failure_can_be_tried_again_and_a_handled_one_is_a_warning),
        TEST(desc_has_at_most_160_characters_and_is_cut_between_them),
        TEST(the_message_is_bounded),
        TEST(hostile_bytes_become_a_document_all_the_same),
        TEST(what_looks_like_a_secret_is_hidden_and_nothing_else),
        TEST(values_of_secret_variables_are_hidden_wherever_they_stand),
        TEST(a_secret_at_the_place_of_the_cut_does_not_show),
        TEST(names_of_secrets_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
