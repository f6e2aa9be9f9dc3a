/* What clients send, read by the small pure functions of the API, and its table of routes. */
#include "support/cmocka_all.h"

#include "http/http_text.h"
#include "http/routes.h"

static void unescape(const char *given, const char *wanted)
{
    char text[128];

    assert_true(strlen(given) < sizeof(text));
    memcpy(text, given, strlen(given) + 1);
    assert_int_equal(gl_http_text_unescape(text), strlen(wanted));
    assert_string_equal(text, wanted);
}

static void escapes_are_read_but_no_text_is_lost_and_no_slash_appears(void **state)
{
    (void)state;
    unescape("", "");
    unescape("a%20b", "a b");
    unescape("%41%5b3%5D", "A[3]");
    unescape("x%00y", "x%00y");
    unescape("..%2f..%2F", "..\x1f..\x1f"); /* never a slash that parts a path */
    unescape("a%1fb", "a%1fb");
    unescape("%", "%");
    unescape("%4", "%4");
    unescape("%zz%4x", "%zz%4x");
    unescape("%25%32%66", "%2f"); /* decoded once, not twice */
}

static void a_host_is_known_with_and_without_its_port(void **state)
{
    (void)state;
    assert_true(gl_str_is(gl_http_text_host(GL_S("localhost:80")), "localhost"));
    assert_true(gl_str_is(gl_http_text_host(GL_S("localhost")), "localhost"));
    assert_true(gl_str_is(gl_http_text_host(GL_S("[::1]:80")), "::1"));
    assert_true(gl_str_is(gl_http_text_host(GL_S("[::1]")), "::1"));
    assert_true(gl_str_is(gl_http_text_host(GL_S("")), ""));
    assert_false(gl_str_is(gl_http_text_host(GL_S("localhost.evil.example:80")), "localhost"));
}

static void json_is_brought_onto_one_line_and_stays_the_same(void **state)
{
    struct gl_arena a = {0};

    (void)state;
    assert_true(
        gl_str_is(gl_http_text_compact(GL_S("{ \"a b\" :\n[1 ,\t\"x\\\" \\\\\" ] }\r\n"), &a),
                  "{\"a b\":[1,\"x\\\" \\\\\"]}"));
    assert_true(gl_str_is(gl_http_text_compact(GL_S(" null "), &a), "null"));
    gl_arena_done(&a);
}

static void a_stream_is_wanted_only_by_who_names_it(void **state)
{
    (void)state;
    assert_true(gl_http_text_accepts(GL_S("text/event-stream"), "text/event-stream"));
    assert_true(gl_http_text_accepts(GL_S("a/b, Text/Event-Stream;q=0.9"), "text/event-stream"));
    assert_false(gl_http_text_accepts(GL_S("*/*"), "text/event-stream"));
    assert_false(gl_http_text_accepts(GL_S(""), "text/event-stream"));
    assert_false(gl_http_text_accepts(GL_S("text/event-streams"), "text/event-stream"));
}

static void a_secret_is_known_only_as_a_whole(void **state)
{
    (void)state;
    assert_true(gl_http_text_is_secret(GL_S("abc"), GL_S("abc")));
    assert_false(gl_http_text_is_secret(GL_S("ab"), GL_S("abc")));
    assert_false(gl_http_text_is_secret(GL_S("abcd"), GL_S("abc")));
    assert_false(gl_http_text_is_secret(GL_S("abd"), GL_S("abc")));
    assert_false(gl_http_text_is_secret(GL_S(""), GL_S("abc")));
    assert_false(gl_http_text_is_secret(GL_S(""), GL_S(""))); /* no secret lets nobody in */
}

static void a_path_gives_its_parts_to_its_verb(void **state)
{
    struct gl_captures found;
    struct gl_request rq;
    bool is_known;

    (void)state;
    assert_int_equal(gl_verb_find(GL_S("POST"), GL_S("/v1/contexts/c/jobs/j/steps/s[1]/respond"),
                                  &found, &is_known),
                     GL_VERB_RESPOND);
    gl_request_init(&rq, GL_VERB_RESPOND, (gl_str){0});
    gl_request_place(&rq, &found);
    assert_true(gl_str_is(rq.context, "c") && gl_str_is(rq.job, "j"));
    assert_true(gl_str_is(rq.command.about, "s[1]"));
    assert_int_equal(
        gl_verb_find(GL_S("POST"), GL_S("/v1/contexts/c/jobs:batch"), &found, &is_known),
        GL_VERB_SUBMIT_BATCH);
    assert_int_equal(gl_verb_find(GL_S("PATCH"), GL_S("/v1/node"), &found, &is_known),
                     GL_VERB_COUNT);
    assert_true(is_known);
    assert_int_equal(gl_verb_find(GL_S("GET"), GL_S("/v1/contexts//jobs"), &found, &is_known),
                     GL_VERB_COUNT);
    assert_false(is_known);
    assert_int_equal(gl_verb_find(GL_S("GET"), GL_S("/v1/node/more"), &found, &is_known),
                     GL_VERB_COUNT);
    assert_false(is_known);
}

/* The OpenAPI document relies on both. */
static void verbs_of_one_path_stand_together_and_have_names_of_their_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < GL_VERB_COUNT; i++) {
        for (size_t k = i + 1; k < GL_VERB_COUNT; k++) {
            assert_string_not_equal(gl_verbs[i].word, gl_verbs[k].word);
            if (strcmp(gl_verbs[i].path, gl_verbs[k].path) == 0) {
                assert_string_equal(gl_verbs[k - 1].path, gl_verbs[k].path);
            }
        }
        assert_non_null(gl_verbs[i].doc);
        assert_non_null(gl_verbs[i].answer);
    }
}

/* A value of its own for every field, and the same for the path. */
static void fill(struct gl_request *rq, struct gl_arena *a)
{
    const struct gl_schema *s = gl_verbs[rq->verb].takes;

    for (size_t i = 0; i < s->fields_n; i++) {
        void *at = (char *)&rq->submission + s->fields[i].offset;

        switch (s->fields[i].type) {
        case GL_F_STR:
            *(gl_str *)at = gl_str_fmt(a, "a %%/%zu", i);
            break;
        case GL_F_RAW:
            *(gl_str *)at = gl_str_fmt(a, "{\"n\":%zu}", i);
            break;
        case GL_F_BOOL:
            *(bool *)at = true;
            break;
        case GL_F_U32:
            *(uint32_t *)at = (uint32_t)i + 1;
            break;
        default:
            *(int64_t *)at = (int64_t)i + 1;
        }
    }
    rq->context = GL_S("c");
    rq->job = strstr(gl_verbs[rq->verb].path, "{job}") != NULL ? GL_S("j j") : rq->job;
}

static void read_query(struct gl_request *rq, gl_str query, struct gl_arena *a)
{
    while (query.n > 0) {
        gl_str value, name = gl_str_cut(gl_str_cut(query, '&', &query), '=', &value);
        char *text = (char *)gl_str_c(a, value);

        (void)gl_http_text_unescape(text);
        for (char *p = text; *p != '\0'; p++) {
            *p = *p == GL_HTTP_TEXT_SLASH ? '/' : *p;
        }
        assert_int_equal(gl_request_argument(rq, name, gl_str_of(text), NULL), 0);
    }
}

/* What a client writes is what a node reads: of every verb, every field. */
static void requests_are_read_as_they_were_written(void **state)
{
    (void)state;
    for (int v = 0; v < GL_VERB_COUNT; v++) {
        const struct gl_schema *s = gl_verbs[v].takes;
        struct gl_arena a = {0};
        struct gl_buf body = {0};
        struct gl_request sent, got;
        struct gl_captures found;
        struct gl_json j;
        bool is_known;
        gl_str query, path;
        char *text;

        gl_request_init(&sent, (enum gl_verb)v, (gl_str){0});
        fill(&sent, &a);
        path = gl_str_cut(gl_str_of(gl_request_path(&a, &sent)), '?', &query);
        text = (char *)gl_str_c(&a, path);
        (void)gl_http_text_unescape(text);
        assert_int_equal(
            gl_verb_find(gl_str_of(gl_verbs[v].method), gl_str_of(text), &found, &is_known), v);
        for (size_t i = 0; i < found.n; i++) {
            for (size_t k = 0; k < found.values[i].n; k++) {
                char *p = (char *)&found.values[i].p[k];

                *p = *p == GL_HTTP_TEXT_SLASH ? '/' : *p;
            }
        }
        gl_request_init(&got, (enum gl_verb)v, (gl_str){0});
        gl_request_place(&got, &found);
        read_query(&got, query, &a);
        gl_request_write(&sent, &body);
        if (gl_verbs[v].body == GL_CONTENT_FIELDS) {
            assert_int_equal(gl_json_parse(&j, gl_buf_view(&body), 1 << 20, &a, NULL), 0);
            assert_int_equal(gl_request_body(&got, &j, &a, NULL), 0);
        }
        assert_true(gl_str_eq(got.job, sent.job));
        for (size_t i = 0; i < s->fields_n; i++) {
            const void *x = (char *)&sent.submission + s->fields[i].offset;
            const void *y = (char *)&got.submission + s->fields[i].offset;

            if (s->fields[i].type == GL_F_STR || s->fields[i].type == GL_F_RAW) {
                assert_true(gl_str_eq(*(const gl_str *)x, *(const gl_str *)y));
            } else if (s->fields[i].type == GL_F_BOOL) {
                assert_int_equal(*(const bool *)x, *(const bool *)y);
            } else {
                assert_int_equal(*(const uint32_t *)x, *(const uint32_t *)y);
            }
        }
        gl_buf_done(&body);
        gl_arena_done(&a);
    }
}

/* A GET changes nothing and is answered from the store or from memory: it must not queue behind
 * submissions. */
static void every_query_is_urgent_and_no_command_is(void **state)
{
    (void)state;
    for (enum gl_verb verb = 0; verb < GL_VERB_COUNT; verb++) {
        bool is_get = strcmp(gl_verbs[verb].method, "GET") == 0;

        assert_true(!is_get || gl_verbs[verb].kind == GL_KIND_LOCAL || gl_verb_is_urgent(verb));
    }
    assert_false(gl_verb_is_urgent(GL_VERB_SUBMIT));
    assert_false(gl_verb_is_urgent(GL_VERB_TRIM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_read_but_no_text_is_lost_and_no_slash_appears),
        cmocka_unit_test(a_host_is_known_with_and_without_its_port),
        cmocka_unit_test(json_is_brought_onto_one_line_and_stays_the_same),
        cmocka_unit_test(a_stream_is_wanted_only_by_who_names_it),
        cmocka_unit_test(a_secret_is_known_only_as_a_whole),
        cmocka_unit_test(a_path_gives_its_parts_to_its_verb),
        cmocka_unit_test(requests_are_read_as_they_were_written),
        cmocka_unit_test(every_query_is_urgent_and_no_command_is),
        cmocka_unit_test(verbs_of_one_path_stand_together_and_have_names_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
