#include "store/sqlite_error.h"

#include <errno.h>
#include <string.h>

#include "store/sqlite_db.h"

static int primary(int rc)
{
    return rc & 0xff;
}

bool gl_sqlite_error_full(const struct gl_sqlite_db *db, int rc)
{
    if (primary(rc) == SQLITE_FULL) {
        return true;
    }
    /* A quota and a limit on file sizes are no SQLITE_FULL, but the same for the user. Only a failed
     * write proves that the bytes are not there; a failed sync proves nothing. */
    if (rc != SQLITE_IOERR_WRITE) {
        return false;
    }
    int err = sqlite3_system_errno(db->conn);
    return err == ENOSPC || err == EDQUOT || err == EFBIG;
}

static int io_why(const struct gl_sqlite_db *db, struct gl_why *why)
{
    int err = sqlite3_system_errno(db->conn);
    if (err == EROFS) {
        return gl_why(why, GL_E_UNAVAILABLE,
                      "store unavailable: %s is on a read-only file system; the store goes on as "
                      "soon as it can be written again",
                      db->path);
    }
    return gl_why(why, GL_E_UNAVAILABLE, "store unavailable: %s on %s%s%s",
                  sqlite3_errmsg(db->conn), db->path, err != 0 ? ": " : "",
                  err != 0 ? strerror(err) : "");
}

int gl_sqlite_error_why(const struct gl_sqlite_db *db, int rc, struct gl_why *why)
{
    if (gl_sqlite_error_full(db, rc)) {
        return gl_why(why, GL_E_UNAVAILABLE,
                      "store unavailable: disk full while writing %s; free some space and the store "
                      "goes on by itself",
                      db->path);
    }
    switch (primary(rc)) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return gl_why(why, GL_E_DAMAGED,
                      "%s is damaged (%s): stop the node, keep a copy of its folder, then restore a "
                      "backup, or save what is readable with: sqlite3 %s .recover",
                      db->path, sqlite3_errstr(primary(rc)), db->path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return gl_why(why, GL_E_UNAVAILABLE,
                      "store unavailable: %s is read-only; the store goes on as soon as the file and "
                      "its folder can be written again",
                      db->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return gl_why(why, GL_E_UNAVAILABLE,
                      "store unavailable: another program holds a lock on %s", db->path);
    case SQLITE_TOOBIG:
        return gl_why(why, GL_E_LIMIT, "a value is larger than SQLite takes");
    case SQLITE_CONSTRAINT:
        return gl_why(why, GL_E_INVALID, "a write breaks a rule of the store: %s",
                      sqlite3_errmsg(db->conn));
    default:
        return io_why(db, why);
    }
}
