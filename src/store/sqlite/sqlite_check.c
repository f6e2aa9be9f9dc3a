#include <sqlite3.h>
#include <unistd.h>

#include "base/str.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_sum.h"
#include "store/sqlite/sqlite_synced.h"

enum { BUSY_MS = 2000 };

/* The first column of the first row of a check, which says "ok" or what it has found. */
static int ask(sqlite3 *conn, const char *sql, const char *path, struct gl_why *reterr_why)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(conn, sql, -1, &st, NULL);
    int err = 0;

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    const char *found = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (found == NULL) {
        err = gl_why(reterr_why, GL_E_DAMAGED, "%s cannot be read: %s", path, sqlite3_errmsg(conn));
    } else if (strcmp(found, "ok") != 0) {
        err = gl_why(reterr_why, GL_E_DAMAGED, "%s is damaged: %s", path, found);
    }
    (void)sqlite3_finalize(st); /* repeats the error of the step */
    return err;
}

/* Records that somebody else than this program has written or changed. */
static const char sums_sql[] =
    "SELECT iif(n = 0, 'ok', printf('%d record(s) have a wrong checksum, as %s', n, first))"
    " FROM (SELECT count(*) AS n, min(kind || ' ' || id) AS first FROM record"
    " WHERE sum != 0 AND sum != " GL_SQLITE_SUM ")";
/* A database of an older release has no sums. */
static const char has_sums_sql[] =
    "SELECT iif(count(*) = 1, 'ok', 'no') FROM pragma_table_info('record') WHERE name = 'sum'";

static int check_all(sqlite3 *conn, const char *path, struct gl_why *reterr_why)
{
    int err = ask(conn, "PRAGMA quick_check(1)", path, reterr_why);
    if (err < 0 || gl_sqlite_sum_teach(conn) != SQLITE_OK ||
        ask(conn, has_sums_sql, path, NULL) < 0) {
        return err;
    }
    return ask(conn, sums_sql, path, reterr_why);
}

int gl_sqlite_check(const char *path, struct gl_why *reterr_why)
{
    struct gl_sqlite_wal_mark mark;
    sqlite3 *conn = NULL;
    int err;

    if (access(path, F_OK) != 0) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "there is no %s", path);
    }
    err = gl_sqlite_synced_check(path, false, &mark, reterr_why);
    if (err < 0) {
        return err;
    }
    if (sqlite3_open_v2(path, &conn, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        err = gl_why(reterr_why, GL_E_UNAVAILABLE, "cannot open %s: %s", path,
                     conn != NULL ? sqlite3_errmsg(conn) : "out of memory");
    } else {
        (void)sqlite3_busy_timeout(conn, BUSY_MS);
        err = gl_sqlite_synced_check_group(conn, path, &mark, reterr_why);
        err = err < 0 ? err : check_all(conn, path, reterr_why);
    }
    (void)sqlite3_close(conn); /* no statement is left */
    return err;
}
