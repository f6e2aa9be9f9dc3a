/* sqlite_check.c - verifies a database file without opening a store: the log against its note,
 * SQLite's own quick_check, and the checksum of every record. */
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_checksum.h"
#include "store/sqlite/sqlite_query.h"
#include "store/sqlite/sqlite_synced.h"

/* Run a statement whose result is "ok" or a description of the problem. */
static int run_check(sqlite3 *conn, const char *sql, const char *path, struct gl_why *reterr_why)
{
    char found[512] = "";
    if (gl_sqlite_query_text(conn, sql, found, sizeof(found)) != SQLITE_OK || found[0] == '\0') {
        return gl_why(reterr_why, GL_E_DAMAGED, "cannot read %s: %s", path, sqlite3_errmsg(conn));
    }
    return strcmp(found, "ok") == 0
               ? 0
               : gl_why(reterr_why, GL_E_DAMAGED, "%s is damaged: %s", path, found);
}

/* Counts records with a wrong checksum: changed by something other than this program, or by a
 * failing disk. */
static const char sums_sql[] =
    "SELECT iif(n = 0, 'ok', printf('%d record(s) have a wrong checksum, as %s', n, first))"
    " FROM (SELECT count(*) AS n, min(kind || ' ' || id) AS first FROM record"
    " WHERE sum != 0 AND sum != " GL_SQLITE_CHECKSUM ")";
/* A database of an older release has no checksums. */
static const char has_sums_sql[] =
    "SELECT iif(count(*) = 1, 'ok', 'no') FROM pragma_table_info('record') WHERE name = 'sum'";

static int check_all(sqlite3 *conn, const char *path, struct gl_why *reterr_why)
{
    int err = run_check(conn, "PRAGMA quick_check(1)", path, reterr_why);
    if (err < 0 || gl_sqlite_checksum_register(conn) != SQLITE_OK ||
        run_check(conn, has_sums_sql, path, NULL) < 0) {
        return err;
    }
    return run_check(conn, sums_sql, path, reterr_why);
}

int gl_sqlite_check(const char *path, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_sqlite_query_closep) struct gl_sqlite_db db = {0};
    struct gl_sqlite_wal_mark mark;
    if (access(path, F_OK) != 0) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "there is no %s", path);
    }
    int err = gl_sqlite_synced_check(path, false, &mark, reterr_why);
    if (err == 0) {
        err = gl_sqlite_query_open(&db, path, SQLITE_OPEN_READONLY, GL_SQLITE_BUSY_MS, reterr_why);
    }
    if (err == 0) {
        err = gl_sqlite_synced_check_group(db.conn, path, &mark, reterr_why);
    }
    return err < 0 ? err : check_all(db.conn, path, reterr_why);
}
