/* Several hosts, a failover, and the findings about a server's settings. */
#include <arpa/inet.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract/maker_postgres.h"

static struct postgres_server primary, standby;

/* The standby is connected and has everything that was committed. */
static void wait_until_followed(void)
{
    int64_t following = 0;
    for (int i = 0; i < 3000 && following == 0; i++) {
        following = postgres_server_sql(&primary, "postgres",
                                        "SELECT count(*) FROM pg_stat_replication"
                                        " WHERE replay_lsn >= pg_current_wal_lsn()");
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(following, 1);
}

/* ---- findings ---- */

static int look_at(struct gl_arena *a, int port, const char *options, struct gl_findings *ret,
                   struct gl_why *why)
{
    char url[160];
    (void)snprintf(url, sizeof(url), "postgres://postgres@127.0.0.1:%d/postgres?timeout_ms=%s",
                   port, options);
    struct gl_postgres_config cfg = {.url = url, .identity = ""};
    *ret = (struct gl_findings){0};
    return gl_postgres_check(&cfg, a, ret, why);
}

static bool found(const struct gl_findings *f, enum gl_finding_level level, const char *part)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->items[i].level == level && strstr(f->items[i].text.p, part) != NULL) {
            return true;
        }
    }
    return false;
}

static size_t count(const struct gl_findings *f, enum gl_finding_level level)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        n += f->items[i].level == level;
    }
    return n;
}

static void a_look_finds_what_can_be_lost(void **state)
{
    struct gl_arena a = {0};
    struct gl_findings f;
    struct gl_why why;
    (void)state;
    assert_int_equal(look_at(&a, primary.port, "60000", &f, &why), 0);
    assert_int_equal(count(&f, GL_FINDING_BAD), 0);
    assert_true(found(&f, GL_FINDING_GOOD, "on disk"));
    assert_true(
        found(&f, GL_FINDING_WARNING, "synchronous_standby_names")); /* one standby is connected */
    assert_true(found(&f, GL_FINDING_WARNING, "checksums"));
    assert_true(found(&f, GL_FINDING_GOOD, "empty"));
    assert_int_equal(
        look_at(&a, primary.port, "60000&options=-c%20synchronous_commit%3Doff", &f, &why), 0);
    assert_true(found(&f, GL_FINDING_BAD, "synchronous_commit"));
    (void)postgres_server_sql(&primary, "postgres",
                              "ALTER SYSTEM SET synchronous_standby_names = '*'");
    (void)postgres_server_sql(&primary, "postgres", "SELECT pg_reload_conf()");
    for (int i = 0; i < 1000 && !found(&f, GL_FINDING_GOOD, "synchronous_standby_names = *"); i++) {
        assert_int_equal(look_at(&a, primary.port, "60000", &f, &why), 0);
    }
    assert_true(found(&f, GL_FINDING_GOOD, "synchronous_standby_names = *"));
    (void)postgres_server_sql(&primary, "postgres", "ALTER SYSTEM RESET synchronous_standby_names");
    (void)postgres_server_sql(&primary, "postgres", "SELECT pg_reload_conf()");
    assert_int_equal(look_at(&a, standby.port, "60000", &f, &why), 0);
    assert_true(found(&f, GL_FINDING_BAD, "standby"));
    gl_arena_done(&a);
}

static void a_look_at_nobody_is_an_error(void **state)
{
    struct gl_arena a = {0};
    struct gl_findings f;
    struct gl_why why;
    (void)state;
    assert_int_equal(look_at(&a, 1, "300", &f, &why), GL_E_UNAVAILABLE);
    assert_non_null(strstr(why.text, "127.0.0.1:1"));
    gl_arena_done(&a);
}

static void a_look_changes_nothing(void **state)
{
    struct gl_arena a = {0};
    struct gl_findings f;
    struct gl_why why;
    (void)state;
    assert_int_equal(look_at(&a, primary.port, "60000", &f, &why), 0);
    assert_int_equal(
        postgres_server_sql(&primary, "postgres",
                            "SELECT count(*) FROM pg_namespace WHERE nspname = 'glia'"),
        0);
    gl_arena_done(&a);
}

/* ---- several hosts ---- */

/* A port that accepts connections and never answers. */
static int listen_mute(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* It may be retried: it writes the same whenever it is carried out. */
static bool is_late(int status)
{
    return status == GL_E_UNAVAILABLE || status == GL_E_UNKNOWN;
}

static void the_host_that_takes_writes_is_found(void **state)
{
    struct postgres_world w;
    struct contract c;
    int port;
    (void)state;
    int mute = listen_mute(&port);
    postgres_world_init(&w, &primary, "");
    (void)snprintf(w.url, sizeof(w.url),
                   "postgres://postgres@127.0.0.1:%d,127.0.0.1:1,127.0.0.1:%d,127.0.0.1:%d/"
                   "%s?timeout_ms=1000",
                   port, standby.port, primary.port, w.database);
    w.store = postgres_world_open(&w);
    contract_adopt(&c, &contract_maker_postgres, &w, w.store);
    int status = GL_E_UNAVAILABLE;
    for (int i = 0; i < 60 && is_late(status); i++) {
        status = contract_commit(&c, NO_GUARDS, WRITES(put("job", "a", 1, "{}")));
    }
    assert_int_equal(status, 0);
    postgres_world_done(&w);
    contract_forget(&c);
    (void)close(mute);
}

static void after_a_failover_the_store_goes_on(void **state)
{
    struct postgres_world w;
    struct contract c;
    (void)state;
    postgres_world_init(&w, &primary, "");
    (void)snprintf(w.url, sizeof(w.url),
                   "postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?timeout_ms=1000", primary.port,
                   standby.port, w.database);
    w.store = postgres_world_open(&w);
    contract_adopt(&c, &contract_maker_postgres, &w, w.store);
    gl_str session = contract_session(&c, "a");
    assert_int_equal(contract_commit(&c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    wait_until_followed();
    postgres_server_kill(&primary);
    (void)snprintf(w.url, sizeof(w.url), "postgres://postgres@127.0.0.1:%d/%s?timeout_ms=60000",
                   standby.port, w.database); /* for the next client */
    (void)postgres_server_sql(&standby, "postgres", "SELECT pg_promote()::int");
    int status = GL_E_UNAVAILABLE;
    for (int i = 0; i < 60 && is_late(status); i++) {
        status = contract_commit(&c, GUARDS(at("job", "a", 1), alive(session)),
                                 WRITES(put("job", "b", 1, "{}")));
    }
    assert_int_equal(status, 0);
    assert_true(c.changed_n > 0);
    do {
        status = contract_renew(&c, session);
    } while (is_late(status));
    assert_int_equal(status, 0);
    struct contract *calm = contract_other(&c);
    assert_int_equal(contract_get(calm, "job", "a").rev, 1);
    w.server = &standby;
    postgres_world_done(&w);
    contract_forget(&c);
}

static int start(void **state)
{
    (void)state;
    postgres_server_start(&primary, NULL);
    postgres_server_follow(&standby, &primary);
    wait_until_followed();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    postgres_server_stop(&standby);
    postgres_server_stop(&primary);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_finds_what_can_be_lost),
        cmocka_unit_test(a_look_at_nobody_is_an_error),
        cmocka_unit_test(a_look_changes_nothing),
        cmocka_unit_test(the_host_that_takes_writes_is_found),
        cmocka_unit_test(
            after_a_failover_the_store_goes_on), /* last: there is no primary any more */
    };
    return cmocka_run_group_tests(tests, start, stop);
}
