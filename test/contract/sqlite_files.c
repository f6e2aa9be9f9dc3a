/* The files of the SQLite store: damaged ones, foreign ones, those of other versions, and the
 * intact one, which any SQLite tool can read. */
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contract/maker_sqlite.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_schema.h"

struct fixture {
    struct contract c;
    struct sqlite_world w;
};

static int set_up(void **state)
{
    static struct fixture f; /* tests run one at a time */
    f = (struct fixture){0};
    sqlite_contract_begin(&f.c, &f.w, NULL);
    contract_session(&f.c, "a");
    static char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    struct contract_call *last = NULL;
    for (int i = 0; i < 200; i++) {
        char *id = gl_arena_alloc(&f.c.arena, 16);
        (void)snprintf(id, 16, "j%04d", i);
        last = contract_start(&f.c, NO_GUARDS,
                              WRITES(put_live("job", id, 1, text), into_index("due", i, id),
                                     append("events", id, 1, "{\"n\":1}")));
    }
    contract_wait(last);
    assert_int_equal(last->req.status, 0);
    sqlite_world_close(&f.w);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    sqlite_contract_end(&f->c, &f->w);
    return 0;
}

static void reopen(struct fixture *f)
{
    struct gl_why why;
    assert_int_equal(sqlite_world_open(&f->w, &why), 0);
    f->c.store = f->w.store;
}

static void expect_refusal(struct fixture *f, int code, const char *words)
{
    struct gl_why why = {0};
    assert_int_equal(sqlite_world_open(&f->w, &why), code);
    assert_int_equal(why.code, code);
    assert_non_null(strstr(why.text, f->w.path));
    assert_non_null(strstr(why.text, words));
    assert_null(f->w.store);
}

static void overwrite(const char *path, long at, size_t n)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    for (size_t i = 0; i < n; i++) {
        (void)fputc(0xa5, file);
    }
    assert_int_equal(fclose(file), 0);
}

/* ---- damaged ---- */

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct fixture *f = *state;
    overwrite(f->w.path, 0, 100);
    expect_refusal(f, GL_E_DAMAGED, "backup");
}

static void a_damaged_schema_is_refused(void **state)
{
    struct fixture *f = *state;
    overwrite(f->w.path, 100, 8000);
    expect_refusal(f, GL_E_DAMAGED, "backup");
}

static void a_missing_table_is_refused(void **state)
{
    struct fixture *f = *state;
    (void)sqlite_world_sql(&f->w, "DROP TABLE entry");
    expect_refusal(f, GL_E_DAMAGED, "table: entry");
}

static void a_database_of_someone_else_is_refused(void **state)
{
    struct fixture *f = *state;
    (void)sqlite_world_sql(&f->w, "PRAGMA application_id = 7");
    expect_refusal(f, GL_E_DAMAGED, "not a Glia database");
}

static void a_damaged_page_is_reported_when_it_is_met(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    assert_int_equal(stat(f->w.path, &st), 0);
    overwrite(f->w.path, 8192L * 12, (size_t)(st.st_size - 8192L * 12));
    reopen(f);
    struct contract_call *read = contract_call_new(&f->c);
    struct gl_listing l = {.kind = GL_S("job"), .limit = 1000};
    f->c.store->ops->list(f->c.store, &read->req, GL_S("default"), &l);
    contract_wait(read);
    assert_int_equal(read->req.status, GL_E_DAMAGED);
    assert_non_null(strstr(read->req.why.text, f->w.path));
    int damaged_n = 0;
    for (int i = 0; i < 200;
         i++) { /* Whatever page a write hits, it reports the damage or succeeds. */
        char id[16];
        (void)snprintf(id, sizeof(id), "j%04d", i);
        struct contract_call *call =
            contract_start(&f->c, GUARDS(at("job", id, 1)), WRITES(put("job", id, 2, "{}")));
        contract_wait(call);
        damaged_n += call->req.status == GL_E_DAMAGED;
        assert_true(call->req.status == 0 || call->req.status == GL_E_DAMAGED);
    }
    assert_int_not_equal(damaged_n, 0);
}

static void damage_in_one_context_leaves_the_others_alone(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    assert_int_equal(contract_commit_in(&f->c, "other", NO_GUARDS, WRITES(put("job", "a", 1, ""))),
                     0);
    sqlite_world_close(&f->w);
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/other/state.db", f->w.contexts);
    overwrite(path, 0, 100);
    reopen(f);
    assert_int_equal(contract_commit_in(&f->c, "other", NO_GUARDS, WRITES(put("job", "a", 1, ""))),
                     GL_E_DAMAGED);
    struct contract_call *read = contract_call_new(&f->c);
    struct gl_key key = {GL_S("job"), GL_S("a")};
    f->c.store->ops->get(f->c.store, &read->req, GL_S("other"), &key, 1);
    contract_wait(read);
    assert_int_equal(read->req.status, GL_E_DAMAGED);
    assert_int_equal(contract_get(&f->c, "job", "j0001").rev, 1);
}

/* ---- versions ---- */

static void a_newer_version_is_refused(void **state)
{
    struct fixture *f = *state;
    (void)sqlite_world_sql(&f->w, "PRAGMA user_version = 99");
    expect_refusal(f, GL_E_VERSION, "newer release");
    f->w.read_only = true;
    expect_refusal(f, GL_E_VERSION, "newer release");
    (void)sqlite_world_sql(&f->w, "PRAGMA user_version = 2"); /* not modified by the refusals */
    f->w.read_only = false;
    reopen(f);
    assert_int_equal(contract_get(&f->c, "job", "j0001").rev, 1);
}

static void an_older_version_is_not_changed_by_a_reader(void **state)
{
    struct fixture *f = *state;
    (void)sqlite_world_sql(&f->w, "PRAGMA user_version = 0");
    f->w.read_only = true;
    expect_refusal(f, GL_E_VERSION, "older release");
    assert_int_equal(sqlite_world_sql(&f->w, "PRAGMA user_version"), 0);
}

/* Upgrade steps that a later release could have. */
static const struct gl_sqlite_schema_step later_steps[] = {
    {1, "this is not run: the file has version 2"},
    {2, "nor is this"},
    {3, "ALTER TABLE record ADD COLUMN note TEXT NOT NULL DEFAULT 'none';"
        "UPDATE record SET note = 'old';"},
    {4, "CREATE TABLE fresh(x); INSERT INTO fresh SELECT count(*) FROM record WHERE note = 'old'"},
};

static void an_older_version_is_brought_up_to_date(void **state)
{
    struct fixture *f = *state;
    struct gl_sqlite_db db = {.path = f->w.path};
    struct gl_why why;
    assert_int_equal(sqlite3_open(f->w.path, &db.conn), SQLITE_OK);
    assert_int_equal(gl_sqlite_schema_upgrade(&db, later_steps, GL_COUNT(later_steps), true, &why),
                     GL_E_VERSION);
    assert_int_equal(gl_sqlite_schema_upgrade(&db, later_steps, GL_COUNT(later_steps), false, &why),
                     0);
    /* Again: nothing is left to do. */
    assert_int_equal(gl_sqlite_schema_upgrade(&db, later_steps, GL_COUNT(later_steps), false, &why),
                     0);
    assert_int_equal(sqlite3_close(db.conn), SQLITE_OK);
    assert_int_equal(sqlite_world_sql(&f->w, "PRAGMA user_version"), 4);
    assert_int_equal(sqlite_world_sql(&f->w, "SELECT value FROM meta WHERE name='schema_version'"),
                     4);
    assert_int_equal(sqlite_world_sql(&f->w, "SELECT x FROM fresh"), 200);
    expect_refusal(f, GL_E_VERSION, "newer release"); /* now this release is the older one */
}

static void a_step_that_fails_leaves_the_version_that_was_there(void **state)
{
    struct fixture *f = *state;
    const struct gl_sqlite_schema_step steps[] = {
        {3, "CREATE TABLE three(x)"},
        {4, "CREATE TABLE four(x); INSERT INTO nowhere VALUES(1)"},
    };
    struct gl_sqlite_db db = {.path = f->w.path};
    struct gl_why why;
    assert_int_equal(sqlite3_open(f->w.path, &db.conn), SQLITE_OK);
    assert_true(gl_sqlite_schema_upgrade(&db, steps, GL_COUNT(steps), false, &why) < 0);
    assert_int_equal(sqlite3_close(db.conn), SQLITE_OK);
    assert_int_equal(sqlite_world_sql(&f->w, "PRAGMA user_version"), 2);
    assert_int_equal(
        sqlite_world_sql(&f->w,
                         "SELECT count(*) FROM sqlite_schema WHERE name IN ('three', 'four')"),
        0);
}

/* A database that is created while another connection reads it. */
struct birth {
    struct gl_sqlite_db writer, reader;
    int commits;
};

static void begin_birth(struct birth *b, struct fixture *f)
{
    char *path = gl_arena_alloc(&f->c.arena, PATH_MAX);
    (void)snprintf(path, PATH_MAX, "%s-new", f->w.path);
    *b = (struct birth){.writer.path = path, .reader.path = path};
    assert_int_equal(sqlite3_open(path, &b->writer.conn), SQLITE_OK);
    assert_int_equal(sqlite3_exec(b->writer.conn, "PRAGMA journal_mode = WAL", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_open(path, &b->reader.conn), SQLITE_OK);
}

static void end_birth(struct birth *b)
{
    assert_int_equal(sqlite3_close(b->reader.conn), SQLITE_OK);
    assert_int_equal(sqlite3_close(b->writer.conn), SQLITE_OK);
}

static int bring(struct gl_sqlite_db *db, bool read_only)
{
    struct gl_why why;
    return gl_sqlite_schema_upgrade(db, gl_sqlite_schema_steps, gl_sqlite_schema_steps_n, read_only,
                                    &why);
}

static int read_after_commit(void *owner, sqlite3 *conn, const char *name, int pages)
{
    (void)conn;
    (void)name;
    (void)pages;
    struct birth *b = owner;
    b->commits++;
    assert_int_equal(bring(&b->reader, true), 0);
    return SQLITE_OK;
}

static void a_reader_never_sees_a_new_database_half_made(void **state)
{
    struct birth b;
    begin_birth(&b, *state);
    assert_int_equal(bring(&b.reader, true), GL_E_NOT_FOUND);
    (void)sqlite3_wal_hook(b.writer.conn, read_after_commit, &b);
    assert_int_equal(bring(&b.writer, false), 0);
    assert_true(b.commits > 0);
    end_birth(&b);
}

/* While the reader is between its queries. */
static int write_between(unsigned type, void *owner, void *statement, void *text)
{
    (void)type;
    (void)statement;
    struct birth *b = owner;
    if (strcmp(text, "PRAGMA application_id") == 0) {
        b->commits++;
        assert_int_equal(bring(&b->writer, false), 0);
    }
    return 0;
}

static void a_database_that_is_made_while_it_is_looked_at_was_empty(void **state)
{
    struct birth b;
    begin_birth(&b, *state);
    assert_int_equal(sqlite3_trace_v2(b.reader.conn, SQLITE_TRACE_STMT, write_between, &b),
                     SQLITE_OK);
    assert_int_equal(bring(&b.reader, true), GL_E_NOT_FOUND);
    assert_int_equal(b.commits, 1);
    (void)sqlite3_trace_v2(b.reader.conn, 0, NULL, NULL);
    assert_int_equal(bring(&b.reader, true), 0);
    end_birth(&b);
}

/* ---- intact files ---- */

static void any_tool_can_read_the_file_while_the_store_runs(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    assert_int_equal(
        contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "j", 5, "{\"name\":\"x\",\"n\":7}"))),
        0);
    assert_int_equal(
        sqlite_world_sql(&f->w, "SELECT json_extract(value, '$.n') FROM record WHERE id = 'j'"), 7);
    assert_int_equal(sqlite_world_sql(&f->w, "SELECT count(*) FROM log WHERE kind = 'events'"),
                     200);
    assert_int_equal(sqlite_world_sql(&f->w, "SELECT count(*) FROM pragma_quick_check()"
                                             " WHERE quick_check = 'ok'"),
                     1);
}

static void a_stranger_that_holds_the_lock_delays_but_breaks_nothing(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    sqlite3 *stranger = NULL;
    assert_int_equal(sqlite3_open(f->w.path, &stranger), SQLITE_OK);
    assert_int_equal(sqlite3_exec(stranger, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct contract_call *call = contract_start(&f->c, NO_GUARDS, WRITES(put("job", "j", 1, "{}")));
    contract_wait(call);
    assert_int_equal(call->req.status, GL_E_UNAVAILABLE);
    assert_non_null(strstr(call->req.why.text, "another program"));
    assert_int_equal(contract_get(&f->c, "job", "j0001").rev, 1); /* reads continue */
    assert_int_equal(sqlite3_close(stranger), SQLITE_OK);
    assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "j", 1, "{}"))), 0);
}

/* A log number is used only once. */
static void a_transaction_that_breaks_a_rule_fails_alone(void **state)
{
    struct fixture *f = *state;
    struct contract *c = &f->c;
    reopen(f);
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(append("events", "a", 1, "one"))), 0);
    struct contract_call *before = contract_start(c, NO_GUARDS, WRITES(put("job", "b", 1, "b")));
    struct contract_call *poison = contract_start(
        c, NO_GUARDS, WRITES(put("job", "p", 1, "p"), append("events", "a", 1, "again")));
    struct contract_call *after =
        contract_start(c, GUARDS(at("job", "b", 1)), WRITES(append("events", "a", 2, "two")));
    contract_wait(after);
    assert_int_equal(before->req.status, 0);
    assert_int_equal(poison->req.status, GL_E_INVALID);
    assert_int_equal(after->req.status, 0);
    check_absent(c, "job", "p");
    check_log(contract_log(c, "events", "a", 0, 10), "1:one 2:two");
}

static void a_context_needs_a_name(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    const char *const bad[] = {"", "..", ".", "a/b", "../../x", "-x", "a b"};
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        assert_int_equal(
            contract_commit_in(&f->c, bad[i], NO_GUARDS, WRITES(put("job", "a", 1, "{}"))),
            GL_E_INVALID);
        struct contract_call *call = contract_call_new(&f->c);
        struct gl_key key = {GL_S("job"), GL_S("a")};
        f->c.store->ops->get(f->c.store, &call->req, gl_str_of(bad[i]), &key, 1);
        contract_wait(call);
        assert_int_equal(call->req.status, GL_E_INVALID);
    }
}

static void reading_a_context_does_not_make_it(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    assert_int_equal(contract_get_in(&f->c, "nowhere", "job", "a").rev, 0);
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/nowhere", f->w.contexts);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(
        contract_commit_in(&f->c, "nowhere", NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(contract_get_in(&f->c, "nowhere", "job", "a").rev, 1);
}

static void on_closed(void *flag)
{
    *(bool *)flag = true;
}

static void requests_after_close_are_answered(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    struct contract_call *before =
        contract_start(&f->c, NO_GUARDS, WRITES(put("job", "j", 1, "{}")));
    struct gl_store *store = f->w.store;
    bool closed = false;
    store->ops->close(store, on_closed, &closed);
    f->w.store = NULL;
    struct contract_call *late = contract_start(&f->c, NO_GUARDS, WRITES(put("job", "k", 1, "")));
    struct contract_call *read = contract_call_new(&f->c);
    struct gl_key key = {GL_S("job"), GL_S("j0001")};
    store->ops->get(store, &read->req, GL_S("default"), &key, 1);
    contract_maker_sqlite.pump_until(&f->w, &closed);
    assert_true(before->done);
    assert_true(late->done);
    assert_true(read->done);
    assert_int_equal(before->req.status, 0);
    assert_int_equal(late->req.status, GL_E_UNAVAILABLE);
    assert_int_equal(read->req.status, GL_E_UNAVAILABLE);
    reopen(f);
    assert_int_equal(contract_get(&f->c, "job", "j").rev, 1);
    assert_int_equal(contract_get(&f->c, "job", "k").rev, 0);
}

#define FILE_TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_file_that_is_no_database_is_refused),
        FILE_TEST(a_damaged_schema_is_refused),
        FILE_TEST(a_missing_table_is_refused),
        FILE_TEST(a_database_of_someone_else_is_refused),
        FILE_TEST(a_damaged_page_is_reported_when_it_is_met),
        FILE_TEST(damage_in_one_context_leaves_the_others_alone),
        FILE_TEST(a_newer_version_is_refused),
        FILE_TEST(an_older_version_is_not_changed_by_a_reader),
        FILE_TEST(an_older_version_is_brought_up_to_date),
        FILE_TEST(a_step_that_fails_leaves_the_version_that_was_there),
        FILE_TEST(a_reader_never_sees_a_new_database_half_made),
        FILE_TEST(a_database_that_is_made_while_it_is_looked_at_was_empty),
        FILE_TEST(any_tool_can_read_the_file_while_the_store_runs),
        FILE_TEST(a_stranger_that_holds_the_lock_delays_but_breaks_nothing),
        FILE_TEST(a_transaction_that_breaks_a_rule_fails_alone),
        FILE_TEST(a_context_needs_a_name),
        FILE_TEST(reading_a_context_does_not_make_it),
        FILE_TEST(requests_after_close_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
