/* Replicas, confirmation by them, and failovers led by sentinels. */
#include <event2/event.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "contract/maker_redis.h"

enum { SERVERS_N = 3, SENTINELS_N = 3 };

struct fixture {
    struct redis_server servers[SERVERS_N]; /* the first one starts as the primary */
    struct redis_server sentinels[SENTINELS_N];
    size_t servers_n, sentinels_n;
    struct redis_world world;
    struct contract c;
    struct gl_arena arena;
    char url[400];
};

static struct fixture *make(void **state, size_t replicas)
{
    struct fixture *f = gl_mem_alloc(sizeof(*f));
    char args[100];
    *state = f;
    redis_server_start(&f->servers[0], "min-replicas-to-write 0");
    (void)snprintf(args, sizeof(args), "replicaof 127.0.0.1 %u", f->servers[0].port);
    for (f->servers_n = 1; f->servers_n <= replicas; f->servers_n++) {
        redis_server_start(&f->servers[f->servers_n], args);
    }
    for (size_t i = 1; i < f->servers_n; i++) {
        redis_server_until(&f->servers[i], "INFO replication", "master_link_status:up");
    }
    (void)snprintf(args, sizeof(args), "connected_slaves:%zu", replicas);
    redis_server_until(&f->servers[0], "INFO replication", args);
    redis_world_init(&f->world, &f->servers[0]);
    return f;
}

static int with_replica(void **state)
{
    (void)make(state, 1);
    return 0;
}

static int with_sentinels(void **state)
{
    struct fixture *f = make(state, 2);
    for (; f->sentinels_n < SENTINELS_N; f->sentinels_n++) {
        redis_server_start_sentinel(&f->sentinels[f->sentinels_n], f->servers[0].port,
                                    f->sentinels_n == 0 ? "requirepass watch" : "");
    }
    /* The sentinels must know each other and the replicas before they can decide anything. */
    for (size_t i = 1; i < SENTINELS_N; i++) {
        redis_server_until(&f->sentinels[i], "SENTINEL MASTER mymaster",
                           "num-other-sentinels\r\n$1\r\n2");
        redis_server_until(&f->sentinels[i], "SENTINEL MASTER mymaster", "num-slaves\r\n$1\r\n2");
    }
    (void)snprintf(f->url, sizeof(f->url),
                   "redis+sentinel://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/mymaster/0"
                   "?timeout_ms=60000&connect_timeout_ms=1500",
                   f->sentinels[0].port, f->sentinels[1].port, f->sentinels[2].port);
    f->world.url = f->url;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    redis_world_done(&f->world);
    contract_forget(&f->c);
    for (size_t i = 0; i < f->sentinels_n; i++) {
        redis_server_stop(&f->sentinels[i]);
    }
    for (size_t i = 0; i < f->servers_n; i++) {
        redis_server_stop(&f->servers[i]);
    }
    gl_arena_done(&f->arena);
    gl_mem_free(f);
    return 0;
}

static struct contract *begin(struct fixture *f)
{
    contract_adopt(&f->c, &contract_maker_redis, &f->world, redis_world_open(&f->world));
    return &f->c;
}

static struct contract_call *start_confirmed(struct contract *c, uint64_t rev)
{
    struct contract_call *call = contract_call_new(c);
    struct gl_write w = put("job", "a", rev, "{}");
    struct gl_guard g = rev == 1 ? absent("job", "a") : at("job", "a", rev - 1);
    call->tx = (struct gl_tx){.context = GL_S("default"),
                              .session = c->session,
                              .id = ++c->tx_id,
                              .guards = gl_arena_copy(&c->arena, &g, sizeof(g)),
                              .guards_n = 1,
                              .writes = gl_arena_copy(&c->arena, &w, sizeof(w)),
                              .writes_n = 1,
                              .confirm = true};
    c->store->ops->commit(c->store, &call->req, &call->tx);
    return call;
}

static int commit_confirmed(struct contract *c, uint64_t rev)
{
    struct contract_call *call = start_confirmed(c, rev);
    contract_wait(call);
    return call->req.status;
}

/* ---- one replica, no sentinels ---- */

/* Another client of the same session, with these options. */
static struct contract *open_further(struct fixture *f, const char *options)
{
    (void)snprintf(f->world.options, sizeof(f->world.options), "%s", options);
    struct contract *c = contract_other(&f->c);
    c->session = f->c.session;
    c->tx_id = f->c.tx_id;
    return c;
}

static bool is_known(int status)
{
    return status != GL_E_UNAVAILABLE && status != GL_E_UNKNOWN;
}

/* Retry while this machine is too slow for the client: it writes the same each time. */
static int commit_when_back(struct contract *c, uint64_t rev)
{
    int status = GL_E_UNAVAILABLE;
    for (int i = 0; i < 100 && !is_known(status); i++) {
        status = contract_commit(c, NO_GUARDS, WRITES(put("job", "a", rev, "{}")));
    }
    return status;
}

static void check_why_unavailable(struct contract *c, const char *part)
{
    struct gl_why why = {0};
    for (int i = 0; i < 60 && strstr(why.text, part) == NULL; i++) {
        struct contract_call *call = contract_start(c, NO_GUARDS, WRITES(put("job", "b", 1, "{}")));
        contract_wait(call);
        why = call->req.why;
        assert_false(is_known(call->req.status));
    }
    if (strstr(why.text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", why.text, part);
    }
    assert_int_equal(why.code, GL_E_UNAVAILABLE);
}

static int renew_when_back(struct contract *c)
{
    int status;
    do {
        status = contract_renew(c, c->session);
    } while (status == GL_E_UNAVAILABLE);
    return status;
}

static void what_no_replica_confirms_is_unknown_until_one_does(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=60000&wait_ms=30000");
    struct contract *calm = begin(f);
    gl_str s = contract_session(calm, "a");
    assert_int_equal(commit_confirmed(calm, 1), 0);
    struct contract *c = open_further(f, "?timeout_ms=20000&wait_ms=1500");
    assert_int_equal(contract_commit(c, GUARDS(at("job", "a", 1)), NO_WRITES), 0);
    redis_server_freeze(&f->servers[1]);
    struct contract_call *call = start_confirmed(c, 2);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_UNKNOWN);
    assert_non_null(strstr(call->req.why.text, "0 of 1 replicas"));
    assert_int_equal(contract_resolve(c, s, call->tx.id), GL_E_UNAVAILABLE);
    assert_int_equal(contract_renew(c, s), GL_E_UNAVAILABLE);
    /* Commits that need no confirmation continue. */
    assert_int_equal(contract_commit(c, GUARDS(at("job", "a", 2)), NO_WRITES), 0);
    redis_server_thaw(&f->servers[1]);
    int status;
    do {
        status = contract_resolve(c, s, call->tx.id);
    } while (status == GL_E_UNAVAILABLE);
    assert_int_equal(status, 0);
    assert_int_equal(renew_when_back(c), 0);
}

static void every_commit_waits_if_wanted(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=60000&wait_ms=30000");
    contract_session(begin(f), "a");
    struct contract *c = open_further(f, "?timeout_ms=20000&wait_ms=1500&wait=all");
    assert_int_equal(commit_when_back(c, 1), 0);
    redis_server_freeze(&f->servers[1]);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 2, "{}"))), GL_E_UNKNOWN);
    redis_server_thaw(&f->servers[1]);
}

static void a_replica_is_no_store(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=400");
    f->world.server = &f->servers[1];
    check_why_unavailable(begin(f), "replica");
}

static void a_primary_that_becomes_a_replica_is_left(void **state)
{
    struct fixture *f = *state;
    char line[80];
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=60000&wait_replicas=0");
    contract_session(begin(f), "a");
    struct contract *c = open_further(f, "?timeout_ms=1500&wait_replicas=0");
    assert_int_equal(commit_when_back(c, 1), 0);
    redis_server_until(&f->servers[1], "HGET glia:job:a v", "{}");
    (void)redis_server_do(&f->servers[1], &f->arena, "REPLICAOF NO ONE");
    (void)snprintf(line, sizeof(line), "REPLICAOF 127.0.0.1 %u", f->servers[1].port);
    (void)redis_server_do(&f->servers[0], &f->arena, line);
    check_why_unavailable(c, "replica");
    redis_server_until(&f->servers[0], "INFO replication", "master_link_status:up");
    (void)redis_server_do(&f->servers[0], &f->arena, "REPLICAOF NO ONE");
    assert_int_equal(commit_when_back(c, 3), 0);
    assert_true(c->changed_n > 0);
}

static void a_check_warns_of_writes_without_replicas(void **state)
{
    struct fixture *f = *state;
    char url[100];
    struct gl_findings found = {0};
    struct gl_why why;
    bool said = false;
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%u?timeout_ms=60000", f->servers[0].port);
    struct gl_redis_config cfg = {.url = url, .identity = ""};
    assert_int_equal(gl_redis_check(&cfg, &f->arena, &found, &why), 0);
    for (size_t i = 0; i < found.n; i++) {
        said = said || (found.items[i].level == GL_FINDING_WARNING &&
                        strstr(found.items[i].text.p, "min-replicas-to-write") != NULL);
    }
    assert_true(said);
}

/* ---- sentinels ---- */

/* The current primary: on a busy machine the sentinels may have given up the first one. */
static struct redis_server *primary_of(struct fixture *f)
{
    char port[16];
    gl_str said =
        redis_server_do(&f->sentinels[1], &f->arena, "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
    for (size_t i = 0; i < f->servers_n; i++) {
        (void)snprintf(port, sizeof(port), "\r\n%u\r\n", f->servers[i].port);
        if (memmem(said.p, said.n, port, strlen(port)) != NULL) {
            return &f->servers[i];
        }
    }
    fail_msg("the primary is none of ours: %.*s", GL_STR_ARG(said));
    return NULL;
}

/* Every transaction guards on the one before it and is confirmed, so the committed ones form a
 * chain that a failover must not shorten. The first sentinel requires a password that we do not
 * give; the others answer. */
static void a_failover_loses_nothing_that_was_confirmed(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    gl_str s = contract_session(c, "a");
    enum { N = 60 };
    uint64_t rev = 0;
    for (int i = 0; i < N; i++) {
        if (i == N / 3) {
            redis_server_kill(primary_of(f));
        }
        struct contract_call *call = start_confirmed(c, rev + 1);
        contract_wait(call);
        int status = call->req.status;
        while (status == GL_E_UNKNOWN || status == GL_E_UNAVAILABLE) {
            status = contract_resolve(c, s, call->tx.id);
        }
        assert_true(status == 0 || status == GL_E_CONFLICT);
        rev += status == 0;
        assert_true(contract_get(c, "job", "a").rev >= rev);
        rev = contract_get(c, "job", "a").rev;
    }
    assert_true(rev > N / 2);
    assert_true(c->changed_n > 0);
    assert_int_equal(c->met_n, 1);
    int status;
    do {
        status = contract_renew(c, s);
    } while (status == GL_E_UNAVAILABLE);
    assert_int_equal(status, 0);
}

/* The primary was suspended, another was chosen, and it continues without knowing. The sentinels
 * tell it only ten seconds later; we ask them as soon as no replica confirms anything. */
static void a_primary_that_was_given_up_is_left_although_it_lives(void **state)
{
    enum { DEMOTED_AFTER_S = 8 };
    struct fixture *f = *state;
    struct timespec back, left;
    char addressed[40];
    struct contract *c = begin(f);
    contract_session(c, "a");
    assert_int_equal(commit_confirmed(c, 1), 0);
    struct redis_server *old = primary_of(f);
    size_t changed = c->changed_n;
    (void)snprintf(addressed, sizeof(addressed), "\r\n%u\r\n", old->port);
    redis_server_freeze(old);
    for (size_t i = 1; i < SENTINELS_N; i++) {
        redis_server_until_not(&f->sentinels[i], "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster",
                               addressed);
    }
    redis_server_thaw(old);
    (void)clock_gettime(CLOCK_MONOTONIC, &back);
    assert_int_equal(renew_when_back(c), 0);
    gl_str said = redis_server_do(old, &f->arena, "INFO replication");
    (void)clock_gettime(CLOCK_MONOTONIC, &left);
    /* As it still believes, unless this machine was so slow that the sentinels have told it. */
    assert_true(memmem(said.p, said.n, "role:master", 11) != NULL ||
                left.tv_sec - back.tv_sec >= DEMOTED_AFTER_S);
    assert_true(c->changed_n > changed);
}

static void a_silent_sentinel_is_passed_over(void **state)
{
    struct fixture *f = *state;
    redis_server_freeze(&f->sentinels[1]);
    struct contract *c = begin(f);
    contract_session(c, "a");
    assert_int_equal(commit_confirmed(c, 1), 0);
    redis_server_thaw(&f->sentinels[1]);
}

static void an_unknown_name_is_explained(void **state)
{
    struct fixture *f = *state;
    char url[200], says[60];
    (void)snprintf(url, sizeof(url),
                   "redis+sentinel://127.0.0.1:%u/nobody?timeout_ms=500&sentinel_password=watch",
                   f->sentinels[0].port);
    f->world.url = url;
    (void)snprintf(says, sizeof(says), "127.0.0.1:%u knows no", f->sentinels[0].port);
    check_why_unavailable(begin(f), says);
}

int main(void)
{
#define R(f) cmocka_unit_test_setup_teardown(f, with_replica, tear_down)
#define S(f) cmocka_unit_test_setup_teardown(f, with_sentinels, tear_down)
    const struct CMUnitTest tests[] = {
        R(what_no_replica_confirms_is_unknown_until_one_does),
        R(every_commit_waits_if_wanted),
        R(a_replica_is_no_store),
        R(a_primary_that_becomes_a_replica_is_left),
        R(a_check_warns_of_writes_without_replicas),
        S(a_failover_loses_nothing_that_was_confirmed),
        S(a_primary_that_was_given_up_is_left_although_it_lives),
        S(a_silent_sentinel_is_passed_over),
        S(an_unknown_name_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
