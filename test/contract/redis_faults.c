/* Faults of a Redis server: it loses connections, scripts or its data; it is slow, full, or the
 * wrong one; and other programs that touch its keys. */
#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "contract/maker_redis.h"

/* For what must succeed: longer than any pause of the machine. */
#define CALM "?timeout_ms=60000"

struct fixture {
    struct redis_server server;
    struct redis_world world;
    struct contract c;
    struct gl_arena arena;
};

static int set_up(void **state)
{
    struct fixture *f = gl_mem_alloc(sizeof(*f));
    redis_server_start(&f->server, "");
    redis_world_init(&f->world, &f->server);
    (void)snprintf(f->world.options, sizeof(f->world.options), CALM);
    *state = f;
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

static gl_str tell(struct fixture *f, const char *line)
{
    return redis_server_do(&f->server, &f->arena, line);
}

static int commit_why(struct contract *c, struct gl_why *ret)
{
    struct contract_call *call = contract_start(c, NO_GUARDS, WRITES(put("job", "w", 1, "{}")));
    contract_wait(call);
    *ret = call->req.why;
    return call->req.status;
}

static void check_why(const struct gl_why *why, const char *part)
{
    if (strstr(why->text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", why->text, part);
    }
}

/* Retry until a commit succeeds. */
static void wait_until_back(struct contract *c)
{
    struct gl_why why;
    int status = GL_E_UNAVAILABLE;
    for (int i = 0; i < 100 && (status == GL_E_UNAVAILABLE || status == GL_E_UNKNOWN); i++) {
        status = commit_why(c, &why);
    }
    assert_int_equal(status, 0);
}

/* A second client with a short timeout that continues the session of the first. Requests to the
 * first must not fail because this machine is slow. */
static struct contract *open_hasty(struct fixture *f, const char *options)
{
    (void)snprintf(f->world.options, sizeof(f->world.options), "%s", options);
    struct contract *c = contract_other(&f->c);
    c->session = f->c.session;
    c->tx_id = f->c.tx_id;
    wait_until_back(c);
    return c;
}

/* ---- connections and scripts ---- */

/* The server is stopped until the requests and the command that cuts the connection have reached
 * it. */
static void cut(struct fixture *f, const char *order)
{
    char pong[16];
    int fd = redis_server_send(&f->server, "PING");
    assert_true(read(fd, pong, sizeof(pong)) > 0);
    redis_server_freeze(&f->server);
    for (int i = 0; i < 3; i++) {
        (void)event_base_loop(gl_loop_base(f->world.loop), EVLOOP_NONBLOCK);
    }
    assert_int_equal(write(fd, order, strlen(order)), strlen(order));
    redis_server_thaw(&f->server);
    (void)close(fd);
}

/* Each guards on the one before it: after the first failure none can have passed. */
static uint64_t count_committed(struct contract *c, struct contract_call **calls, int n,
                                int *ret_unknown)
{
    uint64_t committed = 0;
    for (int k = 0; k < n; k++) {
        assert_true(calls[k]->done);
        int status = calls[k]->req.status;
        if (status == GL_E_UNKNOWN) {
            status = contract_resolve(c, c->session, calls[k]->tx.id);
            *ret_unknown += 1;
        }
        assert_true(status == 0 || status == GL_E_CONFLICT);
        assert_true(status != 0 || committed == (uint64_t)k);
        committed += status == 0;
    }
    return committed;
}

static void killed_connections_lose_nothing(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    contract_session(c, "a");
    enum { ROUNDS = 20, N = 50 };
    uint64_t rev = 0;
    int unknown = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct contract_call *calls[N];
        for (uint64_t k = 0; k < N; k++) {
            struct gl_guard g = rev + k == 0 ? absent("job", "a") : at("job", "a", rev + k);
            calls[k] = contract_start(c, GUARDS(g), WRITES(put("job", "a", rev + k + 1, "{}")));
        }
        cut(f, i % 4 == 3 ? "CLIENT KILL TYPE pubsub\r\n" : "CLIENT KILL TYPE normal\r\n");
        contract_wait(calls[N - 1]);
        rev += count_committed(c, calls, N, &unknown);
        assert_int_equal(contract_get(c, "job", "a").rev, rev);
    }
    assert_true(c->changed_n > 0);
    assert_true(unknown > 0);
}

static void flushed_scripts_are_loaded_again(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    struct contract_call *last = NULL;
    contract_session(c, "a");
    for (uint64_t i = 0; i < 40; i++) {
        for (uint64_t k = 0; k < 20; k++) {
            uint64_t rev = i * 20 + k;
            struct gl_guard g = rev == 0 ? absent("job", "a") : at("job", "a", rev);
            last = contract_start(c, GUARDS(g), WRITES(put("job", "a", rev + 1, "{}")));
        }
        (void)tell(f, "SCRIPT FLUSH");
        (void)contract_get(c, "job", "a"); /* on another connection, which needs its own scripts */
        contract_wait(last);
        assert_int_equal(last->req.status, 0);
    }
    assert_int_equal(contract_get(c, "job", "a").rev, 800);
    assert_int_equal(c->changed_n, 0);
}

static void a_server_that_nobody_answers_for_is_unavailable(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    redis_server_kill(&f->server);
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=300");
    struct contract *c = begin(f);
    assert_int_equal(commit_why(c, &why), GL_E_UNAVAILABLE);
    check_why(&why, "cannot connect");
    redis_server_again(&f->server);
    wait_until_back(c); /* it keeps trying */
}

static void a_server_that_is_silent_leaves_commits_unknown(void **state)
{
    struct fixture *f = *state;
    struct contract *calm = begin(f);
    gl_str s = contract_session(calm, "a");
    assert_int_equal(contract_commit(calm, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    struct contract *c = open_hasty(f, "?timeout_ms=1000");
    redis_server_freeze(&f->server);
    struct contract_call *call = contract_start(c, NO_GUARDS, WRITES(put("job", "a", 2, "{}")));
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_UNKNOWN);
    check_why(&call->req.why, "not answered");
    assert_int_equal(contract_resolve(c, s, call->tx.id), GL_E_UNAVAILABLE);
    redis_server_thaw(&f->server);
    int status;
    do {
        status = contract_resolve(c, s, call->tx.id);
    } while (status == GL_E_UNAVAILABLE);
    /* It was in the server's socket: either it arrived before the question, or it never will. */
    assert_true(status == 0 || status == GL_E_CONFLICT);
    assert_int_equal(contract_get(calm, "job", "a").rev, status == 0 ? 2 : 1);
    (void)tell(f, "PING");
    assert_int_equal(contract_get(calm, "job", "a").rev, status == 0 ? 2 : 1);
}

static void a_long_script_of_somebody_else_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    contract_session(c, "a");
    (void)tell(f, "CONFIG SET busy-reply-threshold 1");
    int fd = redis_server_send(&f->server, "EVAL \"while true do end\" 0");
    redis_server_until(&f->server, "PING", "BUSY");
    struct contract_call *one = contract_start(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}")));
    struct contract_call *two =
        contract_start(c, GUARDS(at("job", "a", 1)), WRITES(put("job", "a", 2, "{}")));
    struct contract_call *read = contract_call_new(c);
    struct gl_key key = {GL_S("job"), GL_S("a")};
    c->store->ops->get(c->store, &read->req, GL_S("default"), &key, 1);
    for (int i = 0; i < 8; i++) {
        (void)event_base_loop(gl_loop_base(f->world.loop), EVLOOP_ONCE);
    }
    (void)tell(f, "SCRIPT KILL");
    contract_wait(two);
    contract_wait(read);
    (void)close(fd);
    assert_int_equal(one->req.status, 0);
    assert_int_equal(two->req.status, 0);
    assert_int_equal(read->req.status, 0);
}

/* ---- restarts ---- */

static void a_restart_with_its_data_is_only_a_pause(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), CALM);
    struct contract *c = begin(f);
    gl_str s = contract_session(c, "a");
    (void)tell(f, "CONFIG SET appendfsync always");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    redis_server_kill(&f->server);
    struct contract_call *call = contract_start(c, GUARDS(at("job", "a", 1)), NO_WRITES);
    redis_server_again(&f->server);
    contract_wait(call);
    assert_true(call->req.status == 0 || call->req.status == GL_E_UNKNOWN);
    assert_int_equal(contract_renew(c, s), 0);
    assert_int_equal(c->changed_n, 1);
    assert_int_equal(c->met_n, 1);
}

static void an_empty_server_is_not_taken_for_the_store(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    gl_str s = contract_session(c, "a");
    struct gl_why why;
    redis_server_empty(&f->server);
    int status;
    do {
        status = contract_renew(c, s);
    } while (status == GL_E_UNAVAILABLE);
    assert_int_equal(status, GL_E_GONE);
    assert_int_equal(commit_why(c, &why), GL_E_GONE);
    check_why(&why, "is empty");
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_list(c->store, &call->req);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_GONE);
    assert_true(gl_str_starts(tell(f, "DBSIZE"), GL_S(":0"))); /* nothing was created there */
}

/* Somebody runs FLUSHALL while connections are open. */
static void a_store_that_was_emptied_is_not_filled_again(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    struct gl_why why;
    contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    (void)tell(f, "FLUSHALL");
    assert_int_equal(commit_why(c, &why), GL_E_GONE);
    check_why(&why, "is empty");
    assert_true(gl_str_starts(tell(f, "DBSIZE"), GL_S(":0")));
    struct contract_call *call = contract_call_new(c);
    struct gl_session_options wish = {.node = GL_S("a"), .nonce = GL_S("n"), .ttl_ms = 1000};
    c->store->ops->session_open(c->store, &call->req, &wish);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_GONE);
    assert_true(gl_str_starts(tell(f, "DBSIZE"), GL_S(":0")));
}

static void sessions_of_an_emptied_store_are_not_said_to_be_dead(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    gl_str s = contract_session(c, "a");
    (void)tell(f, "FLUSHALL");
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_renew(c->store, &call->req, s, 1000, (gl_str){0});
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_GONE);
    check_why(&call->req.why, "is empty");
}

static void another_store_is_not_taken_for_ours(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    (void)tell(f, "HSET glia:store id 01AAAAAAAAAAAAAAAAAAAAAAAA schema 1");
    (void)snprintf(f->world.identity, sizeof(f->world.identity), "01BBBBBBBBBBBBBBBBBBBBBBBB");
    struct contract *c = begin(f);
    assert_int_equal(commit_why(c, &why), GL_E_GONE);
    check_why(&why, "01AAAAAAAAAAAAAAAAAAAAAAAA");
    assert_int_equal(c->met_n, 0);
    (void)tell(f, "HSET glia:store id 01BBBBBBBBBBBBBBBBBBBBBBBB"); /* somebody corrects it */
    while (commit_why(c, &why) != 0) {
        assert_true(why.code == GL_E_GONE || why.code == GL_E_UNAVAILABLE);
    }
    assert_int_equal(c->met_n, 1);
}

static void a_newer_schema_is_refused(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    (void)tell(f, "HSET glia:store id 01AAAAAAAAAAAAAAAAAAAAAAAA schema 9");
    assert_int_equal(commit_why(begin(f), &why), GL_E_VERSION);
    check_why(&why, "newer release");
}

static void a_database_of_another_stores_context_is_refused(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    struct contract *c = begin(f);
    assert_int_equal(contract_commit_in(c, "other", NO_GUARDS, WRITES(put("job", "a", 1, "{}"))),
                     0);
    redis_world_close(&f->world, f->world.stores[0]);
    contract_forget(&f->c);
    f->world.database = 1;
    assert_int_equal(commit_why(begin(f), &why), GL_E_INVALID);
    check_why(&why, "'other'");
}

/* ---- settings ---- */

static void settings_that_lose_data_are_refused_unless_allowed(void **state)
{
    static const struct {
        const char *set, *set2, *says;
    } bad[] = {
        {"CONFIG SET appendonly no", "PING", "appendonly"},
        {"CONFIG SET maxmemory 100mb", "CONFIG SET maxmemory-policy allkeys-lru",
         "maxmemory-policy"},
    };
    struct fixture *f = *state;
    struct gl_why why;
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        (void)tell(f, bad[i].set);
        (void)tell(f, bad[i].set2);
        f->world.allow_loss = false;
        assert_int_equal(commit_why(begin(f), &why), GL_E_INVALID);
        check_why(&why, bad[i].says);
        redis_world_close(&f->world, f->world.stores[0]);
        contract_forget(&f->c);
        f->world.allow_loss = true;
        assert_int_equal(commit_why(begin(f), &why), 0);
        redis_world_close(&f->world, f->world.stores[0]);
        contract_forget(&f->c);
        (void)tell(f, "CONFIG SET appendonly yes");
        (void)tell(f, "CONFIG SET maxmemory 0");
    }
    (void)begin(f);
}

static void a_full_server_writes_nothing_and_says_so(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    struct gl_why why;
    contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    (void)tell(f, "CONFIG SET maxmemory 1mb");
    assert_int_equal(commit_why(c, &why), GL_E_UNAVAILABLE);
    check_why(&why, "maxmemory");
    assert_true(why.needs_help);
    check_absent(c, "job", "w"); /* and reads continue */
    (void)tell(f, "CONFIG SET maxmemory 0");
    assert_int_equal(commit_why(c, &why), 0);
}

static void too_few_replicas_are_waited_for_and_named(void **state)
{
    struct fixture *f = *state;
    struct contract *calm = begin(f);
    struct gl_why why = {0};
    contract_session(calm, "a");
    struct contract *c = open_hasty(f, "?timeout_ms=1000");
    (void)tell(f, "CONFIG SET min-replicas-to-write 1");
    /* On a busy machine another reason may come first. */
    for (int i = 0; i < 20 && strstr(why.text, "min-replicas-to-write") == NULL; i++) {
        struct contract_call *call = contract_start(c, NO_GUARDS, WRITES(put("job", "n", 1, "{}")));
        contract_wait(call);
        assert_true(call->req.status == GL_E_UNAVAILABLE || call->req.status == GL_E_UNKNOWN);
        why = call->req.why;
    }
    check_why(&why, "min-replicas-to-write");
    assert_int_equal(why.code, GL_E_UNAVAILABLE);
    check_absent(calm, "job", "n");
    calm->tx_id = c->tx_id; /* they share a session */
    struct contract_call *call = contract_start(calm, NO_GUARDS, WRITES(put("job", "n", 1, "{}")));
    (void)tell(f, "CONFIG SET min-replicas-to-write 0");
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
}

/* ---- other programs ---- */

static void keys_of_a_wrong_type_do_not_stop_us(void **state)
{
    static const char *const spoils[] = {
        "SET glia:job:a text",      "SET glia:.ids:job text",   "SET glia:.live:job text",
        "SET glia:.index:due text", "SET glia:.log:events:a x",
    };
    struct fixture *f = *state;
    struct contract *c = begin(f);
    for (size_t i = 0; i < GL_COUNT(spoils); i++) {
        (void)tell(f, spoils[i]);
    }
    assert_true(contract_get(c, "job", "a").damaged);
    assert_int_equal(contract_commit(c, GUARDS(absent("job", "a")), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(at("job", "a", 1)), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(not_live("job", "a")), NO_WRITES), GL_E_CONFLICT);
    assert_int_equal(contract_commit(c, GUARDS(owned("job", "a", "", 0)), NO_WRITES),
                     GL_E_CONFLICT);
    assert_int_equal(
        contract_commit(c, GUARDS(present("job", "a")),
                        WRITES(put_live("job", "a", 2, "mine"), into_index("due", 5, "a"),
                               append("events", "a", 1, "one"))),
        0);
    check_value(c, "job", "a", "mine");
    struct gl_listing l = {.kind = GL_S("job"), .limit = 10, .live_only = true};
    check_ids(contract_list(c, &l), "a");
    check_log(contract_log(c, "events", "a", 0, 10), "1:one");
}

static void a_log_that_a_stranger_went_ahead_of_takes_entries(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(append("events", "a", 1, "one"))), 0);
    (void)tell(f, "XADD glia:.log:events:a 7-1 e seven");
    assert_int_equal(
        contract_commit(c, NO_GUARDS,
                        WRITES(append("events", "a", 2, "two"), append("events", "a", 7, "ours"),
                               append("events", "a", 8, "eight"))),
        0);
    check_log(contract_log(c, "events", "a", 0, 10), "1:one 2:two 7:ours 8:eight");
}

static void lists_of_sessions_fill_again(void **state)
{
    static const char *const spoils[] = {
        "DEL glia:.alive",      "SET glia:.alive text", "SET glia:.dead text",
        "SET glia:.nodes text", "DEL glia:.nodes",      "DEL glia:.dead",
    };
    struct fixture *f = *state;
    struct contract *c = begin(f);
    gl_str a = contract_session(c, "a"), b = contract_session(c, "b");
    for (size_t i = 0; i < GL_COUNT(spoils); i++) {
        (void)tell(f, spoils[i]);
        assert_int_equal(contract_renew(c, a), 0);
        assert_int_equal(contract_renew(c, b), 0);
        assert_int_equal(contract_commit(c, GUARDS(alive(a)), NO_WRITES), 0);
        const struct gl_store_req *all = contract_sessions(c);
        assert_int_equal(all->sessions_n, 2);
        assert_false(all->sessions[0].dead || all->sessions[1].dead);
        assert_true(gl_str_eq(all->sessions[0].id, a)); /* in the order in which they were opened */
    }
    (void)tell(f, "SET glia:.nodes text");
    assert_true(contract_session(c, "c").n > 0);
}

static void a_session_that_somebody_has_overwritten_is_dead(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    gl_str a = contract_session(c, "a"), b = contract_session(c, "b");
    char line[200];
    (void)snprintf(line, sizeof(line), "SET glia:.session:%.*s text", GL_STR_ARG(a));
    (void)tell(f, line);
    assert_int_equal(contract_commit(c, GUARDS(dead(a), alive(b)), NO_WRITES), 0);
    assert_int_equal(contract_renew(c, a), GL_E_GONE);
}

static void removed_keys_are_not_listed(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    assert_int_equal(contract_commit(c, NO_GUARDS,
                                     WRITES(put("job", "a", 1, "a"), put("job", "b", 1, "b"),
                                            put("job", "c", 1, "c"), put("job", "d", 1, "d"))),
                     0);
    (void)tell(f, "DEL glia:job:b glia:job:c");
    struct gl_listing l = {.kind = GL_S("job"), .limit = 2};
    check_ids(contract_list(c, &l), "a d"); /* the page is full although two records are missing */
}

/* ---- contexts ---- */

static void contexts_without_a_database_share_the_last(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    enum { N = 70 };
    char name[32], text[32];
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof(name), "c%d", i);
        assert_int_equal(contract_commit_in(c, name, GUARDS(absent("job", "a")),
                                            WRITES(put("job", "a", (uint64_t)i + 1, "{}"),
                                                   into_index("due", i, "x"))),
                         0);
    }
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof(name), "c%d", i);
        assert_int_equal(contract_get_in(c, name, "job", "a").rev, i + 1);
        struct contract_call *call = contract_call_new(c);
        struct gl_range r = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 100};
        c->store->ops->range(c->store, &call->req, gl_str_of(name), &r);
        contract_wait(call);
        (void)snprintf(text, sizeof(text), "%d:x", i);
        check_entries(&call->req, text);
    }
    check_absent(c, "job", "a");
    assert_true(gl_str_starts(tell(f, "HGET glia:contexts c69"), GL_S("$3\r\n63@")));
}

/* ---- glia store check ---- */

static bool has_finding(const struct gl_findings *all, enum gl_finding_level level,
                        const char *part)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->items[i].level == level && strstr(all->items[i].text.p, part) != NULL) {
            return true;
        }
    }
    return false;
}

static void a_check_says_what_it_finds(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    char url[100];
    struct gl_findings found = {0};
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u" CALM, f->server.port);
    struct gl_redis_config cfg = {.url = url, .identity = ""};
    assert_int_equal(gl_redis_check(&cfg, &f->arena, &found, &why), 0);
    assert_true(has_finding(&found, GL_FINDING_GOOD, "Redis 7"));
    assert_true(has_finding(&found, GL_FINDING_WARNING, "everysec"));
    assert_true(has_finding(&found, GL_FINDING_GOOD, "store yet"));
    assert_true(gl_str_starts(tell(f, "DBSIZE"), GL_S(":0"))); /* a check leaves nothing behind */
    (void)tell(f, "CONFIG SET appendonly no");
    (void)tell(f, "CONFIG SET maxmemory 100mb");
    (void)tell(f, "CONFIG SET maxmemory-policy allkeys-lru");
    (void)tell(f, "HSET glia:store id 01AAAAAAAAAAAAAAAAAAAAAAAA schema 1");
    cfg.identity = "01BBBBBBBBBBBBBBBBBBBBBBBB";
    found = (struct gl_findings){0};
    assert_int_equal(gl_redis_check(&cfg, &f->arena, &found, &why), 0);
    assert_true(has_finding(&found, GL_FINDING_BAD, "appendonly"));
    assert_true(has_finding(&found, GL_FINDING_BAD, "maxmemory-policy"));
    assert_true(has_finding(&found, GL_FINDING_BAD, "01AAAAAAAAAAAAAAAAAAAAAAAA"));
    redis_server_kill(&f->server);
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u?timeout_ms=1000", f->server.port);
    assert_int_equal(gl_redis_check(&cfg, &f->arena, &found, &why), GL_E_UNAVAILABLE);
    check_why(&why, "cannot connect");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(killed_connections_lose_nothing),
        T(flushed_scripts_are_loaded_again),
        T(a_server_that_nobody_answers_for_is_unavailable),
        T(a_server_that_is_silent_leaves_commits_unknown),
        T(a_long_script_of_somebody_else_is_waited_for),
        T(a_restart_with_its_data_is_only_a_pause),
        T(an_empty_server_is_not_taken_for_the_store),
        T(a_store_that_was_emptied_is_not_filled_again),
        T(sessions_of_an_emptied_store_are_not_said_to_be_dead),
        T(another_store_is_not_taken_for_ours),
        T(a_newer_schema_is_refused),
        T(a_database_of_another_stores_context_is_refused),
        T(settings_that_lose_data_are_refused_unless_allowed),
        T(a_full_server_writes_nothing_and_says_so),
        T(too_few_replicas_are_waited_for_and_named),
        T(keys_of_a_wrong_type_do_not_stop_us),
        T(a_log_that_a_stranger_went_ahead_of_takes_entries),
        T(lists_of_sessions_fill_again),
        T(a_session_that_somebody_has_overwritten_is_dead),
        T(removed_keys_are_not_listed),
        T(contexts_without_a_database_share_the_last),
        T(a_check_says_what_it_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
