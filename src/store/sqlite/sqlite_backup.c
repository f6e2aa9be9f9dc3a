/* sqlite_backup.c - makes a backup with SQLite's backup API, verifies it, and pauses the jobs of a
 * restored one.
 *
 * The source is opened like any reader, so a running node is not disturbed. Its log is checked
 * first (sqlite_synced.h): a backup of a database that lost commits would hide the loss. */
#include "store/sqlite/sqlite_backup.h"

#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "model/job.h"
#include "store/sqlite/sqlite_checksum.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/sqlite_query.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/sqlite_synced.h"

enum { BUSY_WAIT_MS = 10000, BUSY_POLL_MS = 50 }; /* while another program holds the lock */

/* Returns the rc. */
static int count_jobs(struct gl_sqlite_db *db, uint64_t *ret_jobs, uint64_t *ret_unfinished)
{
    int64_t jobs = 0, live = 0;
    int rc =
        gl_sqlite_query_number(db->conn, "SELECT count(*) FROM record WHERE kind = 'job'", &jobs);
    if (rc == SQLITE_OK) {
        rc = gl_sqlite_query_number(db->conn,
                                    "SELECT count(*) FROM record INDEXED BY record_live"
                                    " WHERE kind = 'job' AND live",
                                    &live);
    }
    *ret_jobs = (uint64_t)jobs;
    *ret_unfinished = (uint64_t)live;
    return rc;
}

/* Is the file ours, of a known version, and intact? An older schema is upgraded, so that the copy
 * can be used right away. */
static int verify(struct gl_sqlite_db *db, uint64_t *ret_jobs, uint64_t *ret_unfinished,
                  struct gl_why *reterr_why)
{
    char found[256] = "";
    int err = gl_sqlite_schema_upgrade(db, gl_sqlite_schema_steps, gl_sqlite_schema_steps_n, false,
                                       reterr_why);
    if (err < 0) {
        return err;
    }
    int rc = gl_sqlite_query_text(db->conn, "PRAGMA quick_check(1)", found, sizeof(found));
    if (rc == SQLITE_OK && strcmp(found, "ok") != 0) {
        return gl_why(reterr_why, GL_E_DAMAGED, "%s is damaged: %s", db->path, found);
    }
    rc = rc != SQLITE_OK ? rc : count_jobs(db, ret_jobs, ret_unfinished);
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(db, rc, reterr_why);
}

/* Copy all pages in one step, under one read lock: writers continue, and their commits are not part
 * of the copy. */
static int copy_pages(struct gl_sqlite_db *from, struct gl_sqlite_db *to)
{
    sqlite3_backup *b = sqlite3_backup_init(to->conn, "main", from->conn, "main");
    if (b == NULL) {
        return sqlite3_extended_errcode(to->conn);
    }
    int rc, waited = 0;
    while ((rc = sqlite3_backup_step(b, -1)) == SQLITE_BUSY || rc == SQLITE_LOCKED) {
        if (waited >= BUSY_WAIT_MS) {
            break;
        }
        (void)sqlite3_sleep(BUSY_POLL_MS);
        waited += BUSY_POLL_MS;
    }
    int last = sqlite3_backup_finish(b);
    return rc == SQLITE_DONE ? last : rc;
}

static int make(struct gl_sqlite_db *from, struct gl_sqlite_db *to, uint64_t *ret_jobs,
                uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    char mode[32] = "";
    int rc = copy_pages(from, to);
    if (rc == SQLITE_OK) { /* so that it is a single file; a node sets it back */
        rc = gl_sqlite_query_text(to->conn, "PRAGMA journal_mode = DELETE", mode, sizeof(mode));
    }
    if (rc != SQLITE_OK) {
        return gl_sqlite_error_why(to, rc, reterr_why);
    }
    return verify(to, ret_jobs, ret_unfinished, reterr_why);
}

int gl_sqlite_backup_make(const char *from, const char *to, bool salvage, uint64_t *ret_jobs,
                          uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_sqlite_query_closep) struct gl_sqlite_db source = {0}, target = {0};
    if (access(from, F_OK) != 0) {
        return gl_why(reterr_why, GL_R_NOTHING_HAS_RUN,
                      "there is no %s: nothing has been run here yet", from);
    }
    struct gl_sqlite_wal_mark mark = {0};
    int err = salvage ? 0 : gl_sqlite_synced_check(from, false, &mark, reterr_why);
    if (err == 0) {
        err = gl_sqlite_query_open(&source, from, SQLITE_OPEN_READONLY, BUSY_WAIT_MS, reterr_why);
    }
    if (err == 0) {
        err = gl_sqlite_synced_check_group(source.conn, from, &mark, reterr_why);
    }
    if (err == 0) {
        err = gl_sqlite_query_open(&target, to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                   BUSY_WAIT_MS, reterr_why);
    }
    return err < 0 ? err : make(&source, &target, ret_jobs, ret_unfinished, reterr_why);
}

/* ---- preparing a restored copy ---- */

/* In an UPDATE the columns on the right have their old values. So this compares the checksum with
 * the unmodified record: a valid one becomes 0, to be recomputed at the end (sums_sql), and a
 * damaged record stays damaged. */
#define KEEP_SUM ", sum = iif(sum IN (0, " GL_SQLITE_CHECKSUM "), 0, sum)"
static const char sums_sql[] = "UPDATE record SET sum = " GL_SQLITE_CHECKSUM
                               " WHERE kind IN ('job', 'step') AND live AND sum = 0;";

/* Writes what a node would have written for a pause, except what needs knowledge of processes. A
 * step that was queued for slots must queue again. */
static const char pause_sql[] =
    "UPDATE record SET rev = rev + 1, value = json_set(value, '$.status', '%s', '$.hold',"
    " 'person', '$.reason', %Q)" KEEP_SUM
    " WHERE kind = 'job' AND live AND json_extract(value, '$.status') = '%s';"
    "UPDATE record SET value = json_set(value, '$.status', '%s')" KEEP_SUM
    " WHERE kind = 'step' AND live AND json_extract(value, '$.status') = '%s';";

/* A job without running attempts has nothing to wait for: it is paused at once, and its wake-up
 * time set to "never", so that nothing looks at it until a person resumes it. */
static const char pause_idle_sql[] =
    "UPDATE entry SET score = %lld WHERE name = 'wake' AND score != %d AND id IN (SELECT id FROM"
    " record WHERE kind = 'job' AND live AND json_extract(value, '$.status') = '%s'"
    " AND json_extract(value, '$.verdict') IS NULL);"
    "UPDATE record SET value = json_set(value, '$.status', '%s', '$.wake', %lld)" KEEP_SUM
    " WHERE kind = 'job' AND live AND json_extract(value, '$.status') = '%s'"
    " AND json_extract(value, '$.wake') != %d AND json_extract(value, '$.verdict') IS NULL;";

/* All in one transaction: a crash leaves either the restored state or the paused one. Returns the
 * rc. */
static int pause_jobs(sqlite3 *conn, const char *reason)
{
    const char *pausing = gl_job_status_words[GL_JOB_PAUSING];
    /* The words come from the model, so that they cannot differ from what nodes write. */
    char *first =
        sqlite3_mprintf(pause_sql, pausing, reason, gl_job_status_words[GL_JOB_RUNNING],
                        gl_step_status_words[GL_STEP_READY], gl_step_status_words[GL_STEP_QUEUED]);
    char *second = sqlite3_mprintf(pause_idle_sql, (long long)GL_WAKE_NEVER, GL_WAKE_RUNNING,
                                   pausing, gl_job_status_words[GL_JOB_PAUSED],
                                   (long long)GL_WAKE_NEVER, pausing, GL_WAKE_RUNNING);
    int rc = gl_sqlite_checksum_register(conn);

    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, first, NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, second, NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, sums_sql, NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : sqlite3_exec(conn, "COMMIT", NULL, NULL, NULL);
    sqlite3_free(first);
    sqlite3_free(second);
    return rc;
}

int gl_sqlite_backup_pause(const char *path, const char *reason, uint64_t *ret_jobs,
                           uint64_t *ret_unfinished, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_sqlite_query_closep) struct gl_sqlite_db db = {0};
    int err = gl_sqlite_query_open(&db, path, SQLITE_OPEN_READWRITE, BUSY_WAIT_MS, reterr_why);
    if (err == 0) {
        err = verify(&db, ret_jobs, ret_unfinished, reterr_why);
    }
    if (err < 0 || reason == NULL) {
        return err;
    }
    int rc = pause_jobs(db.conn, reason);
    return rc == SQLITE_OK ? 0 : gl_sqlite_error_why(&db, rc, reterr_why);
}
