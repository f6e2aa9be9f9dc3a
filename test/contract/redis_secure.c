/* TLS, passwords and ACLs. */
#include <stdio.h>

#include "base/mem.h"
#include "contract/maker_redis.h"

/* For what must succeed: longer than any pause of the machine. */
#define CALM "timeout_ms=60000"

struct fixture {
    struct redis_server server;
    struct redis_world world;
    struct contract c;
    struct gl_arena arena;
};

static struct fixture *make(void **state)
{
    struct fixture *f = gl_mem_alloc(sizeof(*f));
    *state = f;
    return f;
}

static void init_world(struct fixture *f)
{
    redis_world_init(&f->world, &f->server);
    (void)snprintf(f->world.options, sizeof(f->world.options), "?" CALM);
}

static int with_tls(void **state)
{
    struct fixture *f = make(state);
    redis_server_start_tls(&f->server, "");
    init_world(f);
    return 0;
}

static int with_acl(void **state)
{
    struct fixture *f = make(state);
    redis_server_start(
        &f->server,
        "requirepass secret\n"
        "user glia on >p%40ss:w/rd ~glia:* &glia:* +@read +@write +@scripting "
        "+@connection +info +wait +time +publish +subscribe +select +memory +multi +exec\n"
        "user shy on >shy ~glia:* &glia:* +@all -config\n"
        "user weak on >weak ~other:* +@all\n");
    init_world(f);
    return 0;
}

/* A user that may do everything until another connection, which needs no password, revokes it. */
static int with_user(void **state)
{
    struct fixture *f = make(state);
    redis_server_start(&f->server, "user glia on >pw ~glia:* &glia:* +@all\n");
    init_world(f);
    (void)snprintf(f->world.before, sizeof(f->world.before), "glia:pw@");
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    redis_world_done(&f->world);
    contract_forget(&f->c);
    redis_server_stop(&f->server);
    gl_arena_done(&f->arena);
    gl_mem_free(f);
    return 0;
}

static struct contract *begin(struct fixture *f)
{
    contract_adopt(&f->c, &contract_maker_redis, &f->world, redis_world_open(&f->world));
    return &f->c;
}

static void check_works(struct contract *c)
{
    gl_str s = contract_session(c, "a");
    assert_int_equal(
        contract_commit(c, GUARDS(alive(s), absent("job", "a")),
                        WRITES(put_live("job", "a", 1, "{}"), into_index("due", 1, "a"),
                               append("events", "a", 1, "x"))),
        0);
    check_value(c, "job", "a", "{}");
    struct gl_range all = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 100};
    check_entries(contract_range(c, &all), "1:a");
    check_log(contract_log(c, "events", "a", 0, 10), "1:x");
    assert_int_equal(contract_commit_in(c, "other", NO_GUARDS, WRITES(put("job", "b", 1, "b"))), 0);
    assert_true(contract_measure(c) > 0);
    assert_true(contract_time(c) > 0);
    assert_true(contract_export(c, GL_S(""), 100)->writes_n > 0);
    assert_int_equal(contract_renew(c, s), 0);
}

/* On a busy machine another reason may come first. */
static void check_fails(struct contract *c, const char *says, const char *never)
{
    struct gl_why why = {0};
    for (int i = 0; i < 30 && strstr(why.text, says) == NULL; i++) {
        struct contract_call *call = contract_start(c, NO_GUARDS, WRITES(put("job", "w", 1, "{}")));
        contract_wait(call);
        why = call->req.why;
        assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
        assert_null(strstr(why.text, never));
    }
    if (strstr(why.text, says) == NULL) {
        fail_msg("'%s' does not say '%s'", why.text, says);
    }
}

static void a_store_works_over_tls(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?" CALM "&tls_ca=%s/ca.pem",
                   f->server.folder.path);
    check_works(begin(f));
}

static void a_name_is_looked_up_and_must_be_in_the_certificate(void **state)
{
    struct fixture *f = *state;
    char url[400];
    (void)snprintf(url, sizeof(url), "rediss://localhost:%u?" CALM "&tls_ca=%s/ca.pem",
                   f->server.port, f->server.folder.path);
    f->world.url = url;
    check_works(begin(f));
}

static void a_name_that_does_not_exist_is_explained(void **state)
{
    struct fixture *f = *state;
    f->world.url = "redis://no-such-host.invalid?timeout_ms=1000";
    check_fails(begin(f), "no-such-host.invalid", "secret");
}

static void large_values_pass_tls(void **state)
{
    struct fixture *f = *state;
    enum { BYTES = 3 << 20 };
    (void)snprintf(f->world.options, sizeof(f->world.options), "?" CALM "&tls_ca=%s/ca.pem",
                   f->server.folder.path);
    struct contract *c = begin(f);
    char *bytes = gl_arena_alloc(&f->arena, BYTES);
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (char)(i * 31 + (i >> 9));
    }
    assert_int_equal(
        contract_commit(c, NO_GUARDS, WRITES(put_bytes("f", "l", (gl_str){bytes, BYTES}))), 0);
    struct gl_record r = contract_get(c, "f", "l");
    assert_int_equal(r.value.n, BYTES);
    assert_memory_equal(r.value.p, bytes, BYTES);
}

static void an_unknown_authority_is_not_trusted(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=1000");
    check_fails(begin(f), "not trusted", "secret");
}

static void a_certificate_for_another_name_is_not_trusted(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options),
                   "?timeout_ms=1000&tls_ca=%s/ca.pem&tls_name=redis.example",
                   f->server.folder.path);
    check_fails(begin(f), "not trusted", "secret");
}

static void verification_can_be_switched_off(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?" CALM "&tls_verify=no");
    check_works(begin(f));
}

static void plain_talk_to_a_tls_port_is_explained(void **state)
{
    struct fixture *f = *state;
    char url[100];
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u?timeout_ms=1000", f->server.port);
    f->world.url = url;
    check_fails(begin(f), "127.0.0.1", "secret");
}

static void tls_talk_to_a_plain_port_is_explained(void **state)
{
    struct fixture *f = *state;
    char url[100];
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%u?timeout_ms=1000", f->server.port);
    f->world.url = url;
    check_fails(begin(f), "127.0.0.1", "secret");
}

static void a_password_opens(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.before, sizeof(f->world.before), ":secret@");
    check_works(begin(f));
}

static void a_user_with_just_enough_rights_can_do_everything(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.before, sizeof(f->world.before), "glia:p%%2540ss%%3Aw%%2Frd@");
    check_works(begin(f));
}

static void without_config_it_works_and_a_check_says_so(void **state)
{
    struct fixture *f = *state;
    char url[100];
    struct gl_findings found = {0};
    struct gl_why why;
    bool said = false;
    (void)snprintf(f->world.before, sizeof(f->world.before), "shy:shy@");
    check_works(begin(f));
    (void)snprintf(url, sizeof(url), "redis://shy:shy@127.0.0.1:%u?" CALM, f->server.port);
    struct gl_redis_config cfg = {.url = url, .identity = ""};
    assert_int_equal(gl_redis_check(&cfg, &f->arena, &found, &why), 0);
    for (size_t i = 0; i < found.n; i++) {
        said = said || (found.items[i].level == GL_FINDING_WARNING &&
                        strstr(found.items[i].text.p, "CONFIG") != NULL);
    }
    assert_true(said);
}

static void what_is_forbidden_is_explained(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=1000");
    (void)snprintf(f->world.before, sizeof(f->world.before), "weak:weak@");
    check_fails(begin(f), "ACL", "weak@");
}

static void check_whole(struct contract *c, const char *value, const char *log)
{
    struct gl_listing live = {.kind = GL_S("job"), .limit = 10, .live_only = true};
    struct gl_range due = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 100};
    check_value(c, "job", "a", value);
    check_value(c, "job", "b", "b");
    check_ids(contract_list(c, &live), "a b");
    check_entries(contract_range(c, &due), "1:a 2:b");
    check_log(contract_log(c, "events", "a", 0, 10), log);
}

static void a_right_that_is_taken_away_spoils_nothing(void **state)
{
    static const char *const rights[] = {"zadd", "zrem", "xadd", "hset", "del", "hmget", "hget"};
    struct fixture *f = *state;
    struct contract *c = begin(f);
    gl_str s = contract_session(c, "a");
    char line[100];
    assert_int_equal(
        contract_commit(c, GUARDS(alive(s)),
                        WRITES(put_live("job", "a", 1, "a"), put_live("job", "b", 1, "b"),
                               into_index("due", 1, "a"), into_index("due", 2, "b"),
                               append("events", "a", 1, "x"))),
        0);
    for (size_t i = 0; i < GL_COUNT(rights); i++) {
        (void)snprintf(line, sizeof(line), "ACL SETUSER glia -%s", rights[i]);
        (void)redis_server_do(&f->server, &f->arena, line);
        struct contract_call *call =
            contract_start(c, GUARDS(alive(s), at("job", "a", 1)),
                           WRITES(append("events", "a", 2, "y"), put_live("job", "a", 2, "new"),
                                  out_of_index("due", 2, "b"), into_index("due", 9, "b"),
                                  put("job", "b", 2, "new")));
        contract_wait(call);
        assert_int_not_equal(call->req.status, 0);
        assert_int_not_equal(call->req.status, GL_E_CONFLICT);
        assert_non_null(strstr(call->req.why.text, "ACL"));
        (void)redis_server_do(&f->server, &f->arena, "ACL SETUSER glia +@all");
        check_whole(c, "a", "1:x");
    }
    /* The only effect: wake-ups are not delivered. */
    (void)redis_server_do(&f->server, &f->arena, "ACL SETUSER glia -publish");
    assert_int_equal(contract_commit(c, GUARDS(alive(s), at("job", "a", 1)),
                                     WRITES(put_live("job", "a", 2, "c"))),
                     0);
    check_whole(c, "c", "1:x");
}

static void a_wrong_password_is_not_repeated_to_people(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=1000");
    (void)snprintf(f->world.before, sizeof(f->world.before), "glia:hunter2@");
    check_fails(begin(f), "password", "hunter2");
}

static void no_password_is_explained(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=1000");
    check_fails(begin(f), "requires a", "secret");
}

int main(void)
{
#define TLS(f) cmocka_unit_test_setup_teardown(f, with_tls, tear_down)
#define ACL(f) cmocka_unit_test_setup_teardown(f, with_acl, tear_down)
#define USER(f) cmocka_unit_test_setup_teardown(f, with_user, tear_down)
    const struct CMUnitTest tests[] = {
        TLS(a_store_works_over_tls),
        TLS(a_name_is_looked_up_and_must_be_in_the_certificate),
        ACL(a_name_that_does_not_exist_is_explained),
        TLS(large_values_pass_tls),
        TLS(an_unknown_authority_is_not_trusted),
        TLS(a_certificate_for_another_name_is_not_trusted),
        TLS(verification_can_be_switched_off),
        TLS(plain_talk_to_a_tls_port_is_explained),
        ACL(tls_talk_to_a_plain_port_is_explained),
        ACL(a_password_opens),
        ACL(a_user_with_just_enough_rights_can_do_everything),
        ACL(without_config_it_works_and_a_check_says_so),
        ACL(what_is_forbidden_is_explained),
        USER(a_right_that_is_taken_away_spoils_nothing),
        ACL(a_wrong_password_is_not_repeated_to_people),
        ACL(no_password_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
