/* Databases of the previous release, and wrong checksums. */
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "contract/maker_sqlite.h"
#include "store/sqlite/sqlite_backup.h"

static const char ended[] = "01M7G4T1YMWPH7915YMHFMP90V", waiting[] = "01M7G4T20YE8GEKYJ894VT9VHN";

struct fixture {
    struct contract c;
    struct sqlite_world w;
};

/* Create a context's database from sqlite_v1.sql. */
static void make_old(struct sqlite_world *w, const char *context)
{
    static char sql[64 << 10];
    FILE *file = fopen(GL_SOURCE_ROOT "/test/contract/sqlite_v1.sql", "r");
    assert_non_null(file);
    size_t n = fread(sql, 1, sizeof(sql) - 1, file);
    assert_in_range(n, 1000, sizeof(sql) - 2);
    assert_int_equal(fclose(file), 0);
    sql[n] = '\0';
    char path[400];
    (void)mkdir(w->contexts, 0700); /* or it exists */
    (void)snprintf(path, sizeof(path), "%s/%s", w->contexts, context);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/%s/state.db", w->contexts, context);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int set_up(void **state)
{
    static struct fixture f; /* tests run one at a time */
    f = (struct fixture){0};
    sqlite_world_init(&f.w, NULL);
    make_old(&f.w, "default");
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    sqlite_contract_end(&f->c, &f->w);
    return 0;
}

static void open_it(struct fixture *f)
{
    struct gl_why why;
    assert_int_equal(sqlite_world_open(&f->w, &why), 0);
    contract_adopt(&f->c, &contract_maker_sqlite, &f->w, f->w.store);
}

/* ---- the previous release ---- */

static size_t exported_n(struct contract *c)
{
    char after[256] = "";
    size_t n = 0;
    do {
        const struct gl_store_req *req = contract_export(c, gl_str_of(after), 1000);
        n += req->writes_n;
        (void)snprintf(after, sizeof(after), "%.*s", GL_STR_ARG(req->next));
    } while (after[0] != '\0');
    return n;
}

static void what_the_release_before_has_left_is_all_there(void **state)
{
    struct fixture *f = *state;
    open_it(f);
    assert_int_equal(sqlite_world_sql(&f->w, "PRAGMA user_version"), 2);
    struct gl_record r = contract_get(&f->c, "job", waiting);
    assert_int_equal(r.rev, 2);
    assert_true(r.live);
    assert_false(r.damaged); /* it has no checksum, and is not verified */
    assert_true(gl_str_is(r.owner, "host.2WRN55#2.d3amtcuncrtaacti"));
    assert_false(contract_get(&f->c, "job", ended).live);
    struct gl_range all = {GL_S("wake"), INT64_MIN, INT64_MAX, 0, {0}, 100};
    check_entries(contract_range(&f->c, &all), "9223372036854775806:01M7G4T20YE8GEKYJ894VT9VHN");
    assert_int_equal(contract_log(&f->c, "events", waiting, 0, 100)->log_n, 2);
    const struct gl_store_req *req = contract_sessions(&f->c);
    assert_int_equal(req->sessions_n, 2);
    assert_int_equal(req->sessions[0].incarnation, 2);
    assert_false(req->sessions[0].dead);
    assert_int_equal(req->sessions[0].about.n, 0);
    assert_int_equal(contract_resolve(&f->c, GL_S("host.2WRN55#2.d3amtcuncrtaacti"), 2), 0);
    assert_int_equal(exported_n(&f->c), 11 + 2 + 4);
}

static void it_is_used_like_a_new_one(void **state)
{
    struct fixture *f = *state;
    struct contract *c = &f->c;
    open_it(f);
    gl_str s = contract_session(c, "host.2WRN55");
    assert_true(gl_str_is(s, "host.2WRN55#3.0123456789abcdef"));
    assert_int_equal(
        contract_commit(c,
                        GUARDS(owned("job", waiting, "host.2WRN55#2.d3amtcuncrtaacti", 1),
                               dead(GL_S("host.2WRN55#2.d3amtcuncrtaacti"))),
                        WRITES(put_owned("job", waiting, 3, s.p, 2))),
        0);
    assert_int_equal(sqlite_world_sql(&f->w, "SELECT count(*) FROM record WHERE sum <> 0"), 1);
    contract_maker_sqlite.damage(&f->w, "job", waiting);
    assert_true(contract_get(c, "job", waiting).damaged);
    contract_maker_sqlite.damage(&f->w, "job", ended); /* without a checksum nobody can tell */
    assert_false(contract_get(c, "job", ended).damaged);
}

/* When a node looks for its work, reads come first. */
static void a_context_that_is_only_read_is_brought_up_to_date(void **state)
{
    struct fixture *f = *state;
    make_old(&f->w, "other");
    open_it(f);
    assert_int_equal(contract_get_in(&f->c, "other", "job", waiting).rev, 2);
    struct contract_call *read = contract_call_new(&f->c);
    struct gl_key key = {GL_S("job"), gl_str_of(ended)};
    make_old(&f->w, "third");
    f->c.store->ops->get(f->c.store, &read->req, GL_S("third"), &key, 1); /* both at once */
    assert_int_equal(contract_commit_in(&f->c, "third", GUARDS(at("job", waiting, 2)),
                                        WRITES(put("job", "new", 1, "{}"))),
                     0);
    contract_wait(read);
    assert_int_equal(read->req.status, 0);
    assert_int_equal(read->req.records[0].rev, 2);
}

static void who_may_only_read_says_what_to_do(void **state)
{
    struct fixture *f = *state;
    struct gl_why why = {0};
    f->w.read_only = true;
    assert_int_equal(sqlite_world_open(&f->w, &why), GL_E_VERSION);
    assert_non_null(strstr(why.text, "older release"));
    assert_int_equal(sqlite_world_sql(&f->w, "PRAGMA user_version"), 1);
}

static void a_backup_of_the_release_before_can_be_restored(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    uint64_t jobs = 0, unfinished = 0;
    char copy[400];
    (void)snprintf(copy, sizeof(copy), "%s/copy.db", f->w.folder.path);
    assert_int_equal(gl_sqlite_backup_make(f->w.path, copy, false, &jobs, &unfinished, &why), 0);
    assert_int_equal(jobs, 2);
    assert_int_equal(unfinished, 1);
    assert_int_equal(sqlite_world_sql(&f->w, "PRAGMA user_version"), 1); /* only the copy */
    assert_int_equal(gl_sqlite_backup_pause(f->w.path, "restored", &jobs, &unfinished, &why), 0);
    open_it(f);
    struct gl_record r = contract_get(&f->c, "job", waiting);
    assert_false(r.damaged);
    assert_int_equal(r.rev, 3);
    assert_non_null(strstr(r.value.p, "\"restored\""));
}

/* ---- checksums ---- */

static void a_check_reads_the_sums(void **state)
{
    struct fixture *f = *state;
    struct gl_why why = {0};
    assert_int_equal(gl_sqlite_check(f->w.path, &why), 0); /* there are none yet */
    open_it(f);
    assert_int_equal(
        contract_commit(&f->c, NO_GUARDS,
                        WRITES(put("job", "a", 1, "{\"n\":1}"), put("job", "b", 1, "{\"n\":2}"))),
        0);
    assert_int_equal(gl_sqlite_check(f->w.path, &why), 0);
    contract_maker_sqlite.damage(&f->w, "job", "b");
    assert_int_equal(gl_sqlite_check(f->w.path, &why), GL_E_DAMAGED);
    assert_non_null(strstr(why.text, "job b"));
    assert_non_null(strstr(why.text, "1 record"));
    (void)sqlite_world_sql(&f->w, "UPDATE record SET token = 9 WHERE kind = 'job' AND id = 'a'");
    assert_true(contract_get(&f->c, "job", "a").damaged);
    assert_int_equal(gl_sqlite_check(f->w.path, &why), GL_E_DAMAGED);
    assert_non_null(strstr(why.text, "2 record"));
}

static void a_restored_job_is_sound_unless_it_was_damaged(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    uint64_t jobs, unfinished;
    static const char job[] = "{\"status\":\"running\",\"wake\":5}";
    open_it(f);
    assert_int_equal(
        contract_commit(&f->c, NO_GUARDS,
                        WRITES(put_live("job", "a", 1, job), put_live("job", "b", 1, job),
                               put_live("step", "a/s", 1, "{\"status\":\"queued\"}"))),
        0);
    (void)sqlite_world_sql(&f->w, "UPDATE record SET token = 9 WHERE kind = 'job' AND id = 'b'");
    sqlite_world_close(&f->w);
    assert_int_equal(gl_sqlite_backup_pause(f->w.path, "restored", &jobs, &unfinished, &why), 0);
    contract_forget(&f->c);
    open_it(f);
    struct gl_record a = contract_get(&f->c, "job", "a"), b = contract_get(&f->c, "job", "b");
    assert_non_null(strstr(a.value.p, "restored"));
    assert_false(a.damaged);
    assert_true(b.damaged);
    assert_non_null(strstr(contract_get(&f->c, "step", "a/s").value.p, "ready"));
    assert_false(contract_get(&f->c, "step", "a/s").damaged);
    contract_maker_sqlite.damage(&f->w, "job", "a"); /* and verified from now on */
    assert_true(contract_get(&f->c, "job", "a").damaged);
}

#define VERSION_TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERSION_TEST(what_the_release_before_has_left_is_all_there),
        VERSION_TEST(it_is_used_like_a_new_one),
        VERSION_TEST(a_context_that_is_only_read_is_brought_up_to_date),
        VERSION_TEST(who_may_only_read_says_what_to_do),
        VERSION_TEST(a_backup_of_the_release_before_can_be_restored),
        VERSION_TEST(a_check_reads_the_sums),
        VERSION_TEST(a_restored_job_is_sound_unless_it_was_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
