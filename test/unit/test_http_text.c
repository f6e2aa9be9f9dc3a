/* What clients send, read by the small pure functions of the API, and its table of routes. */
#include "support/cmocka_all.h"

#include "http/routes.h"
#include "http/text.h"

static void unescape(const char *given, const char *wanted)
{
    char text[128];

    assert_true(strlen(given) < sizeof(text));
    memcpy(text, given, strlen(given) + 1);
    assert_int_equal(gl_text_unescape(text), strlen(wanted));
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
    assert_true(gl_str_is(gl_text_host(GL_S("localhost:80")), "localhost"));
    assert_true(gl_str_is(gl_text_host(GL_S("localhost")), "localhost"));
    assert_true(gl_str_is(gl_text_host(GL_S("[::1]:80")), "::1"));
    assert_true(gl_str_is(gl_text_host(GL_S("[::1]")), "::1"));
    assert_true(gl_str_is(gl_text_host(GL_S("")), ""));
    assert_false(gl_str_is(gl_text_host(GL_S("localhost.evil.example:80")), "localhost"));
}

static void json_is_brought_onto_one_line_and_stays_the_same(void **state)
{
    struct gl_arena a = {0};

    (void)state;
    assert_true(gl_str_is(gl_text_compact(GL_S("{ \"a b\" :\n[1 ,\t\"x\\\" \\\\\" ] }\r\n"), &a),
                          "{\"a b\":[1,\"x\\\" \\\\\"]}"));
    assert_true(gl_str_is(gl_text_compact(GL_S(" null "), &a), "null"));
    gl_arena_done(&a);
}

static void a_stream_is_wanted_only_by_who_names_it(void **state)
{
    (void)state;
    assert_true(gl_text_accepts(GL_S("text/event-stream"), "text/event-stream"));
    assert_true(gl_text_accepts(GL_S("a/b, Text/Event-Stream;q=0.9"), "text/event-stream"));
    assert_false(gl_text_accepts(GL_S("*/*"), "text/event-stream"));
    assert_false(gl_text_accepts(GL_S(""), "text/event-stream"));
    assert_false(gl_text_accepts(GL_S("text/event-streams"), "text/event-stream"));
}

static void a_secret_is_known_only_as_a_whole(void **state)
{
    (void)state;
    assert_true(gl_text_is_secret(GL_S("abc"), GL_S("abc")));
    assert_false(gl_text_is_secret(GL_S("ab"), GL_S("abc")));
    assert_false(gl_text_is_secret(GL_S("abcd"), GL_S("abc")));
    assert_false(gl_text_is_secret(GL_S("abd"), GL_S("abc")));
    assert_false(gl_text_is_secret(GL_S(""), GL_S("abc")));
    assert_false(gl_text_is_secret(GL_S(""), GL_S(""))); /* no secret lets nobody in */
}

static void a_path_gives_its_parts_to_its_route(void **state)
{
    struct gl_captures found;
    const struct gl_http_route *r;
    bool is_known;

    (void)state;
    r = gl_routes_match(GL_S("POST"), GL_S("/v1/contexts/c/jobs/j/steps/s[1]/respond"), &found,
                        &is_known);
    assert_non_null(r);
    assert_string_equal(r->id, "respond");
    assert_true(gl_str_is(found.context, "c") && gl_str_is(found.job, "j"));
    assert_true(gl_str_is(found.step, "s[1]"));
    r = gl_routes_match(GL_S("POST"), GL_S("/v1/contexts/c/jobs:batch"), &found, &is_known);
    assert_non_null(r);
    assert_string_equal(r->id, "submit_batch");
    assert_null(gl_routes_match(GL_S("PATCH"), GL_S("/v1/node"), &found, &is_known));
    assert_true(is_known);
    assert_null(gl_routes_match(GL_S("GET"), GL_S("/v1/contexts//jobs"), &found, &is_known));
    assert_false(is_known);
    assert_null(gl_routes_match(GL_S("GET"), GL_S("/v1/node/more"), &found, &is_known));
    assert_false(is_known);
}

/* The OpenAPI document relies on both. */
static void routes_of_one_path_stand_together_and_have_names_of_their_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < gl_routes_n; i++) {
        for (size_t k = i + 1; k < gl_routes_n; k++) {
            assert_string_not_equal(gl_routes[i].id, gl_routes[k].id);
            if (strcmp(gl_routes[i].path, gl_routes[k].path) == 0) {
                assert_string_equal(gl_routes[k - 1].path, gl_routes[k].path);
            }
        }
        assert_non_null(gl_routes[i].doc);
        assert_non_null(gl_routes[i].answer);
    }
}

/* A GET changes nothing and is answered from the store or from memory: it must not queue behind
 * submissions. */
static void every_query_is_urgent_and_no_command_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < gl_routes_n; i++) {
        if (strcmp(gl_routes[i].method, "GET") == 0 && gl_routes[i].verb != GL_VERB_COUNT) {
            assert_true(gl_verb_is_urgent(gl_routes[i].verb));
        }
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
        cmocka_unit_test(a_path_gives_its_parts_to_its_route),
        cmocka_unit_test(every_query_is_urgent_and_no_command_is),
        cmocka_unit_test(routes_of_one_path_stand_together_and_have_names_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
