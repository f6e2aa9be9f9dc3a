/* sqlite_query.c - runs a statement that returns at most one value. The results are copied before
 * the statement is finalized, so callers hold no SQLite memory. */
#include "store/sqlite/sqlite_query.h"

#include <stdio.h>

#include "base/check.h"
#include "store/sqlite/sqlite_error.h"

int gl_sqlite_query_open(struct gl_sqlite_db *db, const char *path, int flags, int busy_ms,
                         struct gl_why *reterr_why)
{
    GL_ASSERT(busy_ms >= 0);
    *db = (struct gl_sqlite_db){.path = path};
    int rc = sqlite3_open_v2(path, &db->conn, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        return gl_sqlite_error_why(db, rc, reterr_why);
    }
    (void)sqlite3_extended_result_codes(db->conn, 1);
    (void)sqlite3_busy_timeout(db->conn, busy_ms);
    return 0;
}

void gl_sqlite_query_closep(struct gl_sqlite_db *db)
{
    int rc = sqlite3_close(db->conn);
    GL_ASSERT(rc == SQLITE_OK); /* else a statement was not finalized */
}

/* Returns the rc: SQLITE_ROW, SQLITE_DONE, or an error. *ret must be finalized in any case. */
static int first_row(sqlite3 *conn, const char *sql, sqlite3_stmt **ret)
{
    int rc = sqlite3_prepare_v2(conn, sql, -1, ret, NULL);
    return rc != SQLITE_OK ? rc : sqlite3_step(*ret);
}

int gl_sqlite_query_text(sqlite3 *conn, const char *sql, char *ret, size_t bytes)
{
    sqlite3_stmt *st = NULL;
    int rc = first_row(conn, sql, &st);
    const unsigned char *text = rc == SQLITE_ROW ? sqlite3_column_text(st, 0) : NULL;

    GL_ASSERT(bytes > 0);
    (void)snprintf(ret, bytes, "%s", text != NULL ? (const char *)text : "");
    (void)sqlite3_finalize(st); /* returns rc again */
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int gl_sqlite_query_number(sqlite3 *conn, const char *sql, int64_t *ret)
{
    sqlite3_stmt *st = NULL;
    int rc = first_row(conn, sql, &st);
    *ret = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    (void)sqlite3_finalize(st); /* returns rc again */
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}
