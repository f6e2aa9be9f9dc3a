/* Faults of a PostgreSQL server: it dies, hangs, comes back empty, is the wrong one, or is
 * configured to lose data; and other programs that touch its rows. */
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>

#include "base/mem.h"
#include "contract/maker_postgres.h"

static struct postgres_server server; /* one for all tests; each test has a database of its own */

/* For what must succeed: longer than any pause of the machine. */
#define CALM "?timeout_ms=60000"

struct fixture {
    struct postgres_world world;
    struct contract c;
};

static struct contract *open_with(struct fixture *f, const char *options)
{
    postgres_world_init(&f->world, &server, options);
    f->world.store = postgres_world_open(&f->world);
    contract_adopt(&f->c, &contract_maker_postgres, &f->world, f->world.store);
    return &f->c;
}

static void end(struct fixture *f)
{
    postgres_world_done(&f->world);
    contract_forget(&f->c);
}

/* A second client with a short timeout that continues the session of the first. Requests to the
 * first must not fail because this machine is slow. */
static struct contract *open_hasty(struct fixture *f, int timeout_ms)
{
    (void)snprintf(f->world.url, sizeof(f->world.url),
                   "postgres://postgres@127.0.0.1:%d/%s?timeout_ms=%d", server.port,
                   f->world.database, timeout_ms);
    struct contract *c = contract_other(&f->c);
    c->session = f->c.session;
    c->tx_id = f->c.tx_id;
    return c;
}

/* Close the store and open it again, with the identity that the folder has remembered. */
static void reopen(struct fixture *f)
{
    postgres_world_close(&f->world);
    f->world.store = postgres_world_open(&f->world);
    f->c.store = f->world.store;
}

static int64_t sql(struct fixture *f, const char *text)
{
    return postgres_server_sql(&server, f->world.database, "%s", text);
}

static void check_why(const struct gl_why *why, const char *part)
{
    if (strstr(why->text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", why->text, part);
    }
}

static int commit_why(struct contract *c, struct gl_why *ret)
{
    struct contract_call *call = contract_start(c, NO_GUARDS, WRITES(put("job", "w", 1, "{}")));
    contract_wait(call);
    *ret = call->req.why;
    return call->req.status;
}

static void pause_shortly(struct contract *c)
{
    struct timeval pause = {.tv_usec = 100000};
    struct postgres_world *w = c->world;
    (void)event_base_loopexit(gl_loop_base(w->loop), &pause);
    (void)event_base_dispatch(gl_loop_base(w->loop));
}

/* Retry until a commit succeeds: the store has recovered. */
static void wait_until_back(struct contract *c)
{
    struct gl_why why;
    int status = GL_E_UNAVAILABLE;
    for (int i = 0; i < 100 && status != 0; i++) {
        status = commit_why(c, &why);
        if (status != 0) {
            pause_shortly(c);
        }
    }
    assert_int_equal(status, 0);
}

/* Commits and renewals use different connections, which recover independently. */
static void renew_when_back(struct contract *c)
{
    int status = GL_E_UNAVAILABLE;
    for (int i = 0; i < 100 && status == GL_E_UNAVAILABLE; i++) {
        status = contract_renew(c, c->session);
        if (status == GL_E_UNAVAILABLE) {
            pause_shortly(c);
        }
    }
    assert_int_equal(status, 0);
}

/* ---- dying ---- */

enum { KILLED_TXS = 200, KILLS_MAX = 10 };

/* Number of commits that were unknown at first. */
static size_t check_history(struct contract *c, int round, struct contract_call **calls)
{
    size_t unknown_n = 0;
    for (int i = 0; i < KILLED_TXS; i++) {
        int status = calls[i]->req.status;
        if (status == GL_E_UNKNOWN) {
            status = contract_resolve(c, c->session, calls[i]->tx.id);
            assert_int_not_equal(status, GL_E_UNAVAILABLE);
            unknown_n++;
        }
        assert_true(status == 0 || status == GL_E_CONFLICT || status == GL_E_UNAVAILABLE);
        char id[32];
        (void)snprintf(id, sizeof(id), "k%d-%d", round, i);
        assert_int_equal(contract_get(c, "job", id).rev, status == 0 ? 1 : 0);
    }
    return unknown_n;
}

static size_t kill_amid_commits(struct contract *c, int round)
{
    struct contract_call *calls[KILLED_TXS];
    size_t changed = c->changed_n;
    for (int i = 0; i < KILLED_TXS; i++) {
        calls[i] =
            contract_start(c, NO_GUARDS,
                           WRITES(put("job", gl_str_fmt(&c->arena, "k%d-%d", round, i).p, 1, "{}"),
                                  put("job", "all", (uint64_t)i + 1,
                                      "{}"))); /* each guards on the one before it */
        if (i == KILLED_TXS / 2) {
            contract_wait(calls[i / 4]);
        }
    }
    contract_wait(calls[KILLED_TXS / 4]);
    postgres_server_kill(&server);
    for (int i = 0; i < KILLED_TXS; i++) {
        if (!calls[i]->done) {
            contract_wait(calls[i]); /* the death is noticed */
            break;
        }
    }
    postgres_server_again(&server);
    contract_wait(calls[KILLED_TXS - 1]);
    wait_until_back(c);
    assert_true(c->changed_n > changed);
    return check_history(c, round, calls);
}

static void what_was_acknowledged_survives_a_killed_server(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    size_t unknown_n = 0;
    (void)state;
    contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "first", 1, "{}"))), 0);
    c->tx_id++;
    /* Now and then everything sent has been answered when it dies. */
    for (int round = 0; round < KILLS_MAX && unknown_n == 0; round++) {
        unknown_n = kill_amid_commits(c, round);
    }
    assert_true(unknown_n > 0);
    end(&f);
}

/* Commit with wake-ups until one arrives: those sent before the listener is back are lost. */
static void check_wakes(struct contract *c)
{
    size_t heard = c->words.n;
    for (int i = 0; i < 600 && c->words.n == heard; i++) {
        struct contract_call *call = contract_call_new(c);
        call->tx = (struct gl_tx){.context = GL_S("default"), .wake = GL_S("hello")};
        c->store->ops->commit(c->store, &call->req, &call->tx);
        contract_wait(call);
        assert_int_equal(call->req.status, 0);
        if (c->words.n == heard) {
            pause_shortly(c);
        }
    }
    assert_true(c->words.n > heard);
}

static void cut_connections_are_made_again(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    (void)state;
    contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    for (int i = 0; i < 3; i++) {
        size_t changed = c->changed_n;
        (void)sql(&f, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                      " WHERE datname = current_database() AND application_name = 'glia'");
        assert_int_equal(contract_get(c, "job", "a").rev, 1); /* a read is repeated */
        assert_int_equal(contract_renew(c, c->session), 0);
        wait_until_back(c);
        assert_true(c->changed_n > changed);
        check_wakes(c);
    }
    end(&f);
}

static void without_a_server_requests_end_in_time(void **state)
{
    struct fixture f;
    struct contract *calm = open_with(&f, CALM);
    struct gl_why why;
    (void)state;
    contract_session(calm, "a");
    struct contract *c = open_hasty(&f, 600);
    wait_until_back(c);
    postgres_server_halt(&server);
    for (int i = 0; i < 2; i++) {
        int status = commit_why(c, &why);
        assert_true(status == GL_E_UNAVAILABLE || (i == 0 && status == GL_E_UNKNOWN));
    }
    check_why(&why, "store unavailable");
    struct contract_call *call = contract_call_new(c);
    struct gl_key key = {GL_S("job"), GL_S("a")};
    c->store->ops->get(c->store, &call->req, GL_S("default"), &key, 1);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
    assert_int_equal(contract_renew(c, c->session), GL_E_UNAVAILABLE);
    postgres_server_again(&server);
    wait_until_back(c);
    renew_when_back(c);
    end(&f);
}

static int resolve_when_back(struct contract *c, uint64_t tx_id)
{
    int status = GL_E_UNAVAILABLE;
    for (int i = 0; i < 100 && status == GL_E_UNAVAILABLE; i++) {
        status = contract_resolve(c, c->session, tx_id);
    }
    return status;
}

static void a_server_that_hangs_leaves_what_was_sent_unknown(void **state)
{
    struct fixture f;
    struct contract *calm = open_with(&f, CALM);
    struct contract_call *sent = NULL;
    struct gl_why why;
    (void)state;
    contract_session(calm, "a");
    struct contract *c = open_hasty(&f, 600);
    /* What cannot be sent any more, because the connection was lost before, is not unknown. */
    for (int i = 0; i < 10 && (sent == NULL || sent->req.status != GL_E_UNKNOWN); i++) {
        wait_until_back(c);
        postgres_server_freeze(&server);
        sent = contract_start(c, NO_GUARDS, WRITES(put("job", "s", 1, "{}")));
        contract_wait(sent);
        int next = commit_why(c, &why);
        assert_true(next == GL_E_UNAVAILABLE || sent->req.status != GL_E_UNKNOWN); /* not sent */
        postgres_server_thaw(&server);
    }
    assert_int_equal(sent->req.status, GL_E_UNKNOWN);
    wait_until_back(c);
    /* It was in the socket, so it may arrive now or never; but the answer stays true. */
    int status = resolve_when_back(c, sent->tx.id);
    assert_true(status == 0 || status == GL_E_CONFLICT);
    assert_int_equal(contract_get(calm, "job", "s").rev, status == 0 ? 1 : 0);
    assert_int_equal(resolve_when_back(c, sent->tx.id), status);
    end(&f);
}

/* ---- other programs ---- */

static void a_lock_that_stays_is_unavailable_and_nothing_written(void **state)
{
    struct fixture f;
    struct contract *calm = open_with(&f, CALM);
    struct contract_call *call = NULL;
    (void)state;
    contract_session(calm, "a");
    assert_int_equal(contract_commit(calm, NO_GUARDS,
                                     WRITES(put("job", "a", 1, "{}"), put("job", "b", 1, "{}"))),
                     0);
    struct contract *c = open_hasty(&f, 500);
    struct postgres_stranger *x = postgres_stranger_new(
        &server, f.world.database, "SELECT 1 FROM glia_default.record WHERE id = 'a' FOR UPDATE");
    /* On a busy machine other things than the lock may delay it: a connection that is not ready, a
     * reply that is late. */
    for (int i = 0; i < 20 && (call == NULL || strstr(call->req.why.text, "too long") == NULL);
         i++) {
        wait_until_back(c);
        call = contract_start(c, NO_GUARDS,
                              WRITES(put("job", "0", 1, "{}"), put("job", "a", 2, "{}")));
        contract_wait(call);
        assert_true(call->req.status == GL_E_UNAVAILABLE || call->req.status == GL_E_UNKNOWN);
    }
    assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
    check_why(&call->req.why, "timeout_ms");
    check_absent(calm, "job", "0");
    postgres_stranger_free(x);
    assert_int_equal(resolve_when_back(c, call->tx.id), GL_E_CONFLICT);
    calm->tx_id = c->tx_id; /* they share a session */
    assert_int_equal(contract_commit(calm, GUARDS(at("job", "a", 1)), NO_WRITES), 0);
    end(&f);
}

static void a_dead_declaration_waits_for_the_commit_under_way(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    (void)state;
    gl_str s = contract_session_for(c, "a", 1, "{}");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    /* The commit holds its session's row and waits for the other program. */
    struct postgres_stranger *x = postgres_stranger_new(
        &server, f.world.database, "SELECT 1 FROM glia_default.record WHERE id = 'a' FOR UPDATE");
    struct contract_call *commit =
        contract_start(c, GUARDS(alive(s)), WRITES(put("job", "a", 2, "{}")));
    while (sql(&f, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 0) {
        (void)event_base_loop(gl_loop_base(f.world.loop), EVLOOP_NONBLOCK);
    }
    struct contract *other = contract_other(c);
    struct contract_call *declare = contract_call_new(other);
    other->store->ops->session_dead(other->store, &declare->req, s, true);
    while (sql(&f, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") < 2) {
        (void)event_base_loop(gl_loop_base(f.world.loop), EVLOOP_NONBLOCK);
    }
    assert_false(declare->done);
    postgres_stranger_free(x);
    contract_wait(declare);
    assert_true(declare->req.session_dead);
    contract_wait(commit);
    assert_int_equal(commit->req.status, 0); /* it was first */
    assert_int_equal(contract_commit(c, GUARDS(alive(s)), NO_WRITES), GL_E_CONFLICT);
    end(&f);
}

static void a_poisonous_transaction_fails_alone(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    struct contract_call *calls[60];
    (void)state;
    contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(append("events", "x", 7, "first"))), 0);
    for (int i = 0; i < 60; i++) {
        const char *id = gl_str_fmt(&c->arena, "k%d", i).p;
        calls[i] =
            i == 30
                ? contract_start(c, NO_GUARDS,
                                 WRITES(put("job", id, 1, "{}"), append("events", "x", 7, "taken")))
                : contract_start(c, NO_GUARDS, WRITES(put("job", id, 1, "{}")));
    }
    for (int i = 0; i < 60; i++) {
        contract_wait(calls[i]);
        assert_int_equal(calls[i]->req.status, i == 30 ? GL_E_INVALID : 0);
        assert_int_equal(calls[i]->order, calls[0]->order + (size_t)i);
    }
    check_absent(c, "job", "k30");
    check_log(contract_log(c, "events", "x", 0, 10), "7:first");
    end(&f);
}

/* A really full disk is tested in test/faults: it requires root. */
static void who_has_no_room_needs_help_and_who_is_busy_does_not(void **state)
{
    static const struct {
        const char *state;
        bool needs_help;
    } all[] = {{"53100", true},  {"53400", true},  {"58030", true}, {"XX000", true},
               {"55P03", false}, {"53200", false}, {"57014", false}};
    (void)state;
    struct fixture f = {0};
    struct contract *c = open_with(&f, CALM);
    struct gl_why why;
    contract_session(c, "a");
    assert_int_equal(commit_why(c, &why), 0);
    (void)sql(&f, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                  " RAISE EXCEPTION 'no' USING ERRCODE = TG_ARGV[0]; END $$");
    for (size_t i = 0; i < GL_COUNT(all); i++) {
        char text[160];
        (void)snprintf(text, sizeof(text),
                       "CREATE TRIGGER refuse BEFORE INSERT ON glia_default.record"
                       " EXECUTE FUNCTION refuse('%s')",
                       all[i].state);
        (void)sql(&f, text);
        assert_int_equal(commit_why(c, &why), GL_E_UNAVAILABLE);
        assert_int_equal(why.needs_help, all[i].needs_help);
        assert_int_equal(contract_renew(c, c->session), 0);
        (void)sql(&f, "DROP TRIGGER refuse ON glia_default.record");
        assert_int_equal(commit_why(c, &why), 0);
    }
    end(&f);
}

static void tables_that_are_gone_are_not_made_again(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    struct gl_why why;
    (void)state;
    contract_session(c, "a");
    wait_until_back(c);
    (void)sql(&f, "DROP SCHEMA glia_default CASCADE");
    assert_int_equal(commit_why(c, &why), GL_E_DAMAGED);
    check_why(&why, "backup");
    (void)sql(&f, "DROP SCHEMA glia CASCADE");
    assert_int_not_equal(commit_why(c, &why), 0);
    for (int i = 0; i < 50 && why.code != GL_E_GONE; i++) {
        assert_int_not_equal(commit_why(c, &why), 0);
    }
    assert_int_equal(why.code, GL_E_GONE);
    end(&f);
}

/* ---- the wrong server ---- */

static void a_server_that_comes_back_empty_is_not_adopted(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    struct gl_why why;
    (void)state;
    contract_session(c, "a");
    wait_until_back(c);
    assert_int_equal(c->met_n, 1);
    (void)sql(&f, "ALTER SCHEMA glia RENAME TO away");
    (void)sql(&f, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                  " WHERE datname = current_database() AND application_name = 'glia'");
    int status = commit_why(c, &why);
    for (int i = 0; i < 50 && status != GL_E_GONE; i++) {
        status = commit_why(c, &why);
    }
    assert_int_equal(status, GL_E_GONE);
    check_why(&why, "no store");
    assert_int_equal(contract_renew(c, c->session), GL_E_GONE);
    assert_int_equal(sql(&f, "SELECT count(*) FROM pg_namespace WHERE nspname = 'glia'"), 0);
    (void)sql(&f, "ALTER SCHEMA away RENAME TO glia"); /* it was the right one after all */
    wait_until_back(c);
    end(&f);
}

static void another_store_under_the_same_url_is_refused(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    struct gl_why why;
    (void)state;
    contract_session(c, "a");
    (void)snprintf(f.world.identity, sizeof(f.world.identity), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    reopen(&f);
    assert_int_equal(commit_why(c, &why), GL_E_GONE);
    check_why(&why, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    end(&f);
}

static void a_newer_schema_is_refused(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    struct gl_why why;
    (void)state;
    contract_session(c, "a");
    wait_until_back(c);
    (void)sql(&f, "UPDATE glia.context SET version = 99");
    reopen(&f);
    assert_int_equal(commit_why(c, &why), GL_E_VERSION);
    check_why(&why, "99");
    (void)sql(&f, "UPDATE glia.store SET version = 98");
    reopen(&f);
    assert_int_equal(contract_renew(c, c->session), GL_E_VERSION);
    end(&f);
}

static void settings_that_lose_data_are_refused(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    struct gl_why why;
    (void)state;
    wait_until_back(c);
    (void)postgres_server_sql(&server, "postgres", "ALTER DATABASE %s SET synchronous_commit = off",
                              f.world.database);
    reopen(&f);
    assert_int_equal(commit_why(c, &why), GL_E_INVALID);
    check_why(&why, "synchronous_commit");
    f.world.allow_loss = true;
    reopen(&f);
    assert_int_equal(commit_why(c, &why), 0);
    end(&f);
}

static void an_encoding_that_changes_bytes_is_refused(void **state)
{
    struct fixture f;
    struct contract *c = open_with(&f, CALM);
    struct gl_why why;
    (void)state;
    (void)postgres_server_sql(&server, "postgres",
                              "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'");
    (void)snprintf(f.world.url, sizeof(f.world.url), "postgres://postgres@127.0.0.1:%d/latin",
                   server.port);
    reopen(&f);
    assert_int_equal(commit_why(c, &why), GL_E_INVALID);
    check_why(&why, "UTF8");
    end(&f);
}

/* ---- URLs ---- */

static void urls_are_checked_before_anything_is_tried(void **state)
{
    static const struct {
        const char *url, *part;
    } bad[] = {
        {"postgres://h/db?timeout_ms=x", "timeout_ms"},
        {"postgres://h/db?timeout_ms=1", "timeout_ms"},
        {"postgres://h/db?connections=0", "connections"},
        {"postgres://h/db?connections=99", "connections"},
        {"postgres://h/db?nonsense=1", "nonsense"},
        {"postgres://u:secret@h/db?nonsense=1", "u:***@h"},
        {"postgres://a,b:1,c:2,d/db?hostaddr=1.2.3.4", "do not match"},
    };
    struct gl_loop *loop;
    struct gl_why why;
    (void)state;
    assert_int_equal(gl_loop_new(&loop, &why), 0);
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        struct gl_store *store;
        struct gl_postgres_config cfg = {.url = bad[i].url, .identity = ""};
        assert_int_equal(gl_postgres_open(&store, &cfg, loop, &why), GL_E_INVALID);
        check_why(&why, bad[i].part);
        assert_null(strstr(why.text, "secret"));
    }
    gl_loop_free(loop);
}

static int start(void **state)
{
    (void)state;
    postgres_server_start(&server, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    postgres_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_survives_a_killed_server),
        cmocka_unit_test(cut_connections_are_made_again),
        cmocka_unit_test(without_a_server_requests_end_in_time),
        cmocka_unit_test(a_server_that_hangs_leaves_what_was_sent_unknown),
        cmocka_unit_test(a_lock_that_stays_is_unavailable_and_nothing_written),
        cmocka_unit_test(a_dead_declaration_waits_for_the_commit_under_way),
        cmocka_unit_test(a_poisonous_transaction_fails_alone),
        cmocka_unit_test(who_has_no_room_needs_help_and_who_is_busy_does_not),
        cmocka_unit_test(tables_that_are_gone_are_not_made_again),
        cmocka_unit_test(a_server_that_comes_back_empty_is_not_adopted),
        cmocka_unit_test(another_store_under_the_same_url_is_refused),
        cmocka_unit_test(a_newer_schema_is_refused),
        cmocka_unit_test(settings_that_lose_data_are_refused),
        cmocka_unit_test(an_encoding_that_changes_bytes_is_refused),
        cmocka_unit_test(urls_are_checked_before_anything_is_tried),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
