#include <sqlite3.h>
#include <unistd.h>

#include "base/str.h"
#include "store/sqlite.h"

enum { BUSY_MS = 2000 };

/* SQLite's own check of pages and indexes: "ok", or what it has found first. */
static int quick_check(sqlite3 *conn, const char *path, struct gl_why *reterr_why)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(conn, "PRAGMA quick_check(1)", -1, &st, NULL);
    int err = 0;

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc != SQLITE_ROW) {
        err = gl_why(reterr_why, GL_E_DAMAGED, "%s cannot be read: %s", path, sqlite3_errmsg(conn));
    } else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0) {
        err = gl_why(reterr_why, GL_E_DAMAGED, "%s is damaged: %s", path,
                     (const char *)sqlite3_column_text(st, 0));
    }
    (void)sqlite3_finalize(st); /* repeats the error of the step */
    return err;
}

int gl_sqlite_check(const char *path, struct gl_why *reterr_why)
{
    sqlite3 *conn = NULL;
    int err;

    if (access(path, F_OK) != 0) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "there is no %s", path);
    }
    if (sqlite3_open_v2(path, &conn, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        err = gl_why(reterr_why, GL_E_UNAVAILABLE, "cannot open %s: %s", path,
                     conn != NULL ? sqlite3_errmsg(conn) : "out of memory");
    } else {
        (void)sqlite3_busy_timeout(conn, BUSY_MS);
        err = quick_check(conn, path, reterr_why);
    }
    (void)sqlite3_close(conn); /* no statement is left */
    return err;
}
