/* Every guard against a change that is faster by a moment: another program changes what the guard
 * reads, and commits only when our commit is already waiting for it. A guard that was evaluated too
 * early would let the change pass. */
#include <event2/event.h>
#include <stdio.h>

#include "contract/maker_postgres.h"

static int64_t waiting(const struct postgres_world *w)
{
    return postgres_server_sql(w->server, w->database,
                               "SELECT count(*) FROM pg_stat_activity"
                               " WHERE datname = current_database() AND wait_event_type = 'Lock'");
}

/* The commit meets the other program's change, waits, and is refused by the guard with this number.
 */
static void check_refused(struct contract *c, const char *stranger_sql, struct gl_guard guard,
                          struct gl_write write)
{
    struct postgres_world *w = c->world;
    struct postgres_stranger *x = postgres_stranger_new(w->server, w->database, stranger_sql);
    struct contract_call *call = contract_start(
        c, GUARDS(present("job", "always"), guard),
        WRITES(write, put("job", "written", 1, "{}"), append("events", "written", 1, "{}")));
    while (waiting(w) == 0) {
        (void)event_base_loop(gl_loop_base(w->loop), EVLOOP_NONBLOCK);
        assert_false(call->done); /* it did not even wait */
    }
    postgres_stranger_commit(x);
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_CONFLICT);
    assert_int_equal(call->req.refused, 1);
    check_absent(c, "job", "written");
    check_log(contract_log(c, "events", "written", 0, 10), "");
}

static void fill(struct contract *c)
{
    contract_session(c, "a");
    assert_int_equal(contract_commit(c, NO_GUARDS,
                                     WRITES(put("job", "always", 1, "{}"), put("job", "a", 1, "{}"),
                                            put_owned("job", "o", 1, c->session.p, 4),
                                            put("run", "r", 1, "{}"))),
                     0);
}

#define INSERT(kind, id, live)                                                       \
    "INSERT INTO glia_default.record(kind, id, rev, owner, token, live, sum, value)" \
    " VALUES('" kind "', '" id "', 1, '', 0, " live ", 0, '{}')"

static void a_record_that_is_changed_meanwhile(void **state)
{
    struct contract *c = *state;
    fill(c);
    check_refused(c, "UPDATE glia_default.record SET rev = 2 WHERE id = 'a'", at("job", "a", 1),
                  put("job", "a", 2, "{}"));
    /* Even if the record is only read. */
    check_refused(c, "UPDATE glia_default.record SET rev = 3 WHERE id = 'a'", at("job", "a", 2),
                  put("job", "b", 1, "{}"));
    check_refused(c, "UPDATE glia_default.record SET token = 5 WHERE id = 'o'",
                  owned("job", "o", c->session.p, 4), put("job", "o", 2, "{}"));
}

static void a_record_that_is_removed_meanwhile(void **state)
{
    struct contract *c = *state;
    fill(c);
    check_refused(c, "DELETE FROM glia_default.record WHERE id = 'a'", present("job", "a"),
                  put("job", "b", 1, "{}"));
}

static void a_record_that_comes_meanwhile(void **state)
{
    struct contract *c = *state;
    fill(c);
    check_refused(c, INSERT("job", "n", "false"), absent("job", "n"), put("job", "n", 1, "mine"));
    check_refused(c, INSERT("job", "m", "false"), absent("job", "m"), put("job", "b", 1, "{}"));
    assert_int_equal(contract_get(c, "job", "n").value.n, 2); /* the other program's */
    check_absent(c, "job", "b");
}

static void a_record_that_gets_alive_meanwhile(void **state)
{
    struct contract *c = *state;
    fill(c);
    check_refused(c, "UPDATE glia_default.record SET live = true WHERE kind = 'run'",
                  not_live("run", "r"), put_live("run", "r", 2, "mine"));
    check_refused(c, INSERT("run", "n", "true"), not_live("run", "n"),
                  put_live("run", "n", 1, "mine"));
    check_refused(c, INSERT("run", "m", "true"), not_live("run", "m"), put("job", "b", 1, "{}"));
}

static void a_session_that_dies_meanwhile(void **state)
{
    struct contract *c = *state;
    char text[200];
    fill(c);
    gl_str mine = c->session, theirs = contract_session(c, "b");
    const gl_str both[] = {theirs, mine}; /* another session's, then the committing one's */
    for (size_t i = 0; i < GL_COUNT(both); i++) {
        c->session = mine;
        c->tx_id = 10 + i;
        (void)snprintf(text, sizeof(text), "SELECT glia.session_end_1('%.*s')",
                       GL_STR_ARG(both[i]));
        check_refused(c, text, alive(both[i]), put("job", "b", 1, "{}"));
    }
}

/* ---- running ---- */

static int set_up(void **state)
{
    static struct contract c;
    contract_begin(&c, &contract_maker_postgres);
    *state = &c;
    return 0;
}

static int tear_down(void **state)
{
    contract_end(*state);
    return 0;
}

static int start(void **state)
{
    (void)state;
    contract_maker_postgres.start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    contract_maker_postgres.stop();
    return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_record_that_is_changed_meanwhile), TEST(a_record_that_is_removed_meanwhile),
        TEST(a_record_that_comes_meanwhile),      TEST(a_record_that_gets_alive_meanwhile),
        TEST(a_session_that_dies_meanwhile),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
