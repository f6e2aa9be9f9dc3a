/* sqlite_error.c - what SQLite's result codes mean for the port. The important distinction is
 * whether a failed write certainly did not happen (refusals) or may have happened. */
#include "store/sqlite/sqlite_error.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "store/sqlite/sqlite_db.h"

/* Extended codes have details above the low byte. */
static int primary(int rc)
{
    return rc & 0xff;
}

static int file_errno(sqlite3_file *file)
{
    int err = 0;
    if (file != NULL && file->pMethods != NULL) {
        (void)file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &err); /* or 0 */
    }
    return err;
}

/* The errno of an I/O error. The write-ahead log is asked first, because commits write to it.
 * sqlite3_system_errno() only covers opening. */
static int last_errno(const struct gl_sqlite_db *db)
{
    const int which[] = {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER};
    for (size_t i = 0; i < GL_COUNT(which); i++) {
        sqlite3_file *file = NULL;
        (void)sqlite3_file_control(db->conn, "main", which[i], &file); /* or NULL */
        int err = file_errno(file);
        if (err != 0) {
            return err;
        }
    }
    return sqlite3_system_errno(db->conn);
}

/* SQLite reports a quota or a file size limit as a plain write error; to the user it is a full
 * disk. */
static bool is_full(const struct gl_sqlite_db *db, int rc)
{
    if (rc == SQLITE_IOERR_WRITE) {
        int err = last_errno(db);
        return err == ENOSPC || err == EDQUOT || err == EFBIG;
    }
    return primary(rc) == SQLITE_FULL;
}

static bool is_read_only(const struct gl_sqlite_db *db, int rc)
{
    if (rc == SQLITE_IOERR_WRITE) {
        int err = last_errno(db);
        return err == EROFS || err == EPERM;
    }
    return primary(rc) == SQLITE_READONLY || primary(rc) == SQLITE_PERM;
}

bool gl_sqlite_error_is_refusal(const struct gl_sqlite_db *db, int rc)
{
    return is_full(db, rc) || is_read_only(db, rc);
}

static int io_why(const struct gl_sqlite_db *db, struct gl_why *why)
{
    int err = last_errno(db);
    return gl_why(why, GL_E_UNAVAILABLE, "store unavailable: %s on %s%s%s",
                  sqlite3_errmsg(db->conn), db->path, err != 0 ? ": " : "",
                  err != 0 ? strerror(err) : "");
}

static int refused_why(const struct gl_sqlite_db *db, int rc, struct gl_why *why)
{
    GL_ASSERT(gl_sqlite_error_is_refusal(db, rc));
    if (is_full(db, rc)) {
        (void)gl_why(
            why, GL_E_UNAVAILABLE,
            "store unavailable: disk full while writing %s; free some space, and the store "
            "resumes by itself",
            db->path);
    } else {
        (void)gl_why(
            why, GL_E_UNAVAILABLE,
            "store unavailable: %s is read-only; the store resumes as soon as the file and "
            "its folder are writable again",
            db->path);
    }
    if (why != NULL) {
        why->needs_help = true;
    }
    return GL_E_UNAVAILABLE;
}

int gl_sqlite_error_why(const struct gl_sqlite_db *db, int rc, struct gl_why *why)
{
    GL_ASSERT(rc != SQLITE_OK);
    if (gl_sqlite_error_is_refusal(db, rc)) {
        return refused_why(db, rc, why);
    }
    switch (primary(rc)) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return gl_why(
            why, GL_E_DAMAGED,
            "%s is damaged (%s): stop the node, keep a copy of its folder, then restore a "
            "backup, or save what is readable with: sqlite3 %s .recover",
            db->path, sqlite3_errstr(primary(rc)), db->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return gl_why(why, GL_E_UNAVAILABLE,
                      "store unavailable: another program holds a lock on %s", db->path);
    case SQLITE_TOOBIG:
        return gl_why(why, GL_E_LIMIT, "a value is larger than SQLite accepts");
    case SQLITE_CONSTRAINT:
        return gl_why(why, GL_E_INVALID, "a write violates a constraint of the store: %s",
                      sqlite3_errmsg(db->conn));
    default:
        return io_why(db, why);
    }
}
