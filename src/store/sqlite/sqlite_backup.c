#include "store/sqlite/sqlite_backup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "model/job.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/sqlite_sum.h"
#include "store/sqlite/sqlite_synced.h"

enum { PATIENCE_MS = 10000, PAUSE_MS = 50 }; /* with a stranger who holds the lock */

/* A connection without the statements of a store. */
static int connect_file(struct gl_sqlite_db *db, const char *path, int flags,
                        struct gl_why *reterr_why)
{
    *db = (struct gl_sqlite_db){.path = path};
    int rc = sqlite3_open_v2(path, &db->conn, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(db->conn, 1);
        (void)sqlite3_busy_timeout(db->conn, PATIENCE_MS);
    }
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(db, rc, reterr_why);
}

static void closep(struct gl_sqlite_db *db)
{
    int rc = sqlite3_close(db->conn);
    GL_ASSERT(rc == SQLITE_OK); /* else a statement is left */
}

/* The first column of the first row, into `ret`. */
static int ask(struct gl_sqlite_db *db, const char *sql, char *ret, size_t bytes)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->conn, sql, -1, &st, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(st, 0);
        (void)snprintf(ret, bytes, "%s", text != NULL ? (const char *)text : "");
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(st); /* repeats rc */
    return rc;
}

static int ask_number(struct gl_sqlite_db *db, const char *sql, uint64_t *ret)
{
    char text[32] = "";
    int rc = ask(db, sql, text, sizeof(text));
    if (rc == SQLITE_OK && !gl_str_u64(gl_str_of(text), ret)) {
        rc = SQLITE_CORRUPT;
    }
    return rc;
}

static int count_jobs(struct gl_sqlite_db *db, uint64_t *ret_jobs, uint64_t *ret_unfinished)
{
    int rc = ask_number(db, "SELECT count(*) FROM record WHERE kind = 'job'", ret_jobs);
    return rc != SQLITE_OK ? rc
                           : ask_number(db,
                                        "SELECT count(*) FROM record INDEXED BY record_live"
                                        " WHERE kind = 'job' AND live",
                                        ret_unfinished);
}

/* Is it ours, of a version we know, and whole? One of an older release is brought up to date, so
 * that it can be read at once. */
static int look_over(struct gl_sqlite_db *db, uint64_t *ret_jobs, uint64_t *ret_unfinished,
                     struct gl_why *reterr_why)
{
    char found[256] = "";
    int err = gl_sqlite_schema_bring(db, gl_sqlite_schema_steps, gl_sqlite_schema_steps_n, false,
                                     reterr_why);
    if (err < 0) {
        return err;
    }
    int rc = ask(db, "PRAGMA quick_check(1)", found, sizeof(found));
    if (rc == SQLITE_OK && strcmp(found, "ok") != 0) {
        return gl_why(reterr_why, GL_E_DAMAGED, "%s is damaged: %s", db->path, found);
    }
    rc = rc != SQLITE_OK ? rc : count_jobs(db, ret_jobs, ret_unfinished);
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(db, rc, reterr_why);
}

/* All pages in one step, under one read lock: writers go on, and their commits come after. */
static int copy_pages(struct gl_sqlite_db *from, struct gl_sqlite_db *to)
{
    sqlite3_backup *b = sqlite3_backup_init(to->conn, "main", from->conn, "main");
    if (b == NULL) {
        return sqlite3_extended_errcode(to->conn);
    }
    int rc, waited = 0;
    while ((rc = sqlite3_backup_step(b, -1)) == SQLITE_BUSY || rc == SQLITE_LOCKED) {
        if (waited >= PATIENCE_MS) {
            break;
        }
        (void)sqlite3_sleep(PAUSE_MS);
        waited += PAUSE_MS;
    }
    int last = sqlite3_backup_finish(b);
    return rc == SQLITE_DONE ? last : rc;
}

static int make(struct gl_sqlite_db *from, struct gl_sqlite_db *to, uint64_t *ret_jobs,
                uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    char mode[32] = "";
    int rc = copy_pages(from, to);
    if (rc == SQLITE_OK) { /* so that it is one file; a node sets it back */
        rc = ask(to, "PRAGMA journal_mode = DELETE", mode, sizeof(mode));
    }
    if (rc != SQLITE_OK) {
        return gl_sqlite_error_why(to, rc, reterr_why);
    }
    return look_over(to, ret_jobs, ret_unfinished, reterr_why);
}

int gl_sqlite_backup_make(const char *from, const char *to, bool salvage, uint64_t *ret_jobs,
                          uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    GL_CLEANUP(closep) struct gl_sqlite_db source = {0}, target = {0};
    if (access(from, F_OK) != 0) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "there is no %s: nothing has run here yet", from);
    }
    struct gl_sqlite_wal_mark mark = {0};
    int err = salvage ? 0 : gl_sqlite_synced_check(from, false, &mark, reterr_why);
    if (err == 0) {
        err = connect_file(&source, from, SQLITE_OPEN_READONLY, reterr_why);
    }
    if (err == 0) {
        err = gl_sqlite_synced_check_group(source.conn, from, &mark, reterr_why);
    }
    if (err == 0) {
        err = connect_file(&target, to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, reterr_why);
    }
    return err < 0 ? err : make(&source, &target, ret_jobs, ret_unfinished, reterr_why);
}

/* ---- a second life ---- */

/* In an UPDATE the columns on the right are the old ones: a record that was sound gets its new sum
 * at the end, one that was damaged stays so. */
#define SUM_LATER ", sum = iif(sum IN (0, " GL_SQLITE_SUM "), 0, sum)"
static const char sums_sql[] =
    "UPDATE record SET sum = " GL_SQLITE_SUM " WHERE kind IN ('job', 'step') AND live AND sum = 0;";

/* What a node would have written for a pause, as far as it needs no knowledge of processes. A step
 * that waited for slots must wait anew. */
static const char hold_sql[] =
    "UPDATE record SET rev = rev + 1, value = json_set(value, '$.status', '%s', '$.hold',"
    " 'person', '$.reason', %Q)" SUM_LATER
    " WHERE kind = 'job' AND live AND json_extract(value, '$.status') = '%s';"
    "UPDATE record SET value = json_set(value, '$.status', '%s')" SUM_LATER
    " WHERE kind = 'step' AND live AND json_extract(value, '$.status') = '%s';";

/* One without running attempts has nothing to wait for: it is paused at once, and nobody need look
 * at it before a person does. */
static const char rest_sql[] =
    "UPDATE entry SET score = %lld WHERE name = 'wake' AND score != %d AND id IN (SELECT id FROM"
    " record WHERE kind = 'job' AND live AND json_extract(value, '$.status') = '%s'"
    " AND json_extract(value, '$.verdict') IS NULL);"
    "UPDATE record SET value = json_set(value, '$.status', '%s', '$.wake', %lld)" SUM_LATER
    " WHERE kind = 'job' AND live AND json_extract(value, '$.status') = '%s'"
    " AND json_extract(value, '$.wake') != %d AND json_extract(value, '$.verdict') IS NULL;";

static int hold(sqlite3 *conn, const char *reason)
{
    const char *pausing = gl_job_status_words[GL_JOB_PAUSING];
    char *first =
        sqlite3_mprintf(hold_sql, pausing, reason, gl_job_status_words[GL_JOB_RUNNING],
                        gl_step_status_words[GL_STEP_READY], gl_step_status_words[GL_STEP_QUEUED]);
    char *second = sqlite3_mprintf(rest_sql, (long long)GL_WAKE_NEVER, GL_WAKE_RUNNING, pausing,
                                   gl_job_status_words[GL_JOB_PAUSED], (long long)GL_WAKE_NEVER,
                                   pausing, GL_WAKE_RUNNING);
    int rc = gl_sqlite_sum_teach(conn);

    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, first, NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, second, NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, sums_sql, NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, "COMMIT", NULL, NULL, NULL);
    sqlite3_free(first);
    sqlite3_free(second);
    return rc;
}

int gl_sqlite_backup_hold(const char *path, const char *reason, uint64_t *ret_jobs,
                          uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    GL_CLEANUP(closep) struct gl_sqlite_db db = {0};
    int err = connect_file(&db, path, SQLITE_OPEN_READWRITE, reterr_why);
    if (err == 0) {
        err = look_over(&db, ret_jobs, ret_unfinished, reterr_why);
    }
    if (err < 0 || reason == NULL) {
        return err;
    }
    int rc = hold(db.conn, reason);
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(&db, rc, reterr_why);
}
