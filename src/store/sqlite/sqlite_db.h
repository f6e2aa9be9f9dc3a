/* sqlite_db.h - one connection to the database of one context, and its prepared statements.
 *
 * A connection belongs to one thread. Open it, then for each statement: bind all parameters; run,
 * or step and reset. Functions whose comment says "rc" return SQLite's own (extended) result codes,
 * because callers decide by them; sqlite_error.h translates them where they leave this folder. */
#ifndef GL_STORE_SQLITE_DB_H
#define GL_STORE_SQLITE_DB_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/str.h"
#include "store/common/sql.h"
#include "store/sqlite/sqlite_synced.h"

struct gl_sqlite;

/* X(name, role, sql). Roles: W writer, R reader. Parameters are numbered. */
#define GL_SQLITE_STATEMENTS(X)                                                                   \
    X(BEGIN, W, "BEGIN IMMEDIATE")                                                                \
    X(COMMIT, W, "COMMIT")                                                                        \
    X(ROLLBACK, W, "ROLLBACK")                                                                    \
    X(GUARD, W, "SELECT rev, owner, token, live FROM record WHERE kind = ?1 AND id = ?2")         \
    X(PUT, W,                                                                                     \
      "INSERT INTO record(kind, id, rev, owner, token, live, value, sum)"                         \
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(kind, id) DO UPDATE SET"               \
      " rev = ?3, owner = ?4, token = ?5, live = ?6, value = ?7, sum = ?8")                       \
    X(PUT_NEW, W,                                                                                 \
      "INSERT INTO record(kind, id, rev, owner, token, live, value, sum)"                         \
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(kind, id) DO NOTHING")                 \
    X(DELETE, W, "DELETE FROM record WHERE kind = ?1 AND id = ?2")                                \
    X(INDEX, W, "INSERT INTO entry(name, id, score) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING")   \
    X(UNINDEX, W, "DELETE FROM entry WHERE name = ?1 AND id = ?2 AND score = ?3")                 \
    X(LOG, W, "INSERT INTO log(kind, id, seq, value) VALUES(?1, ?2, ?3, ?4)")                     \
    X(LOG_TRIM, W, "DELETE FROM log WHERE kind = ?1 AND id = ?2 AND seq < ?3")                    \
    X(REMEMBER, W,                                                                                \
      "INSERT OR REPLACE INTO txgroup(slot, n, session, first, last, refused)"                    \
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                          \
    X(RECALL, W, "SELECT refused FROM txgroup WHERE session = ?1 AND first <= ?2 AND last >= ?2") \
    X(RECALL_FIRST, W, "SELECT min(first) FROM txgroup WHERE session = ?1")                       \
    X(GROUP_FIRST, W, "SELECT min(n) FROM txgroup")                                               \
    X(GROUP_LAST, W, "SELECT max(n) FROM txgroup")                                                \
    X(PAGE_BYTES, W, "PRAGMA page_size")                                                          \
    X(SESSION_GET, W, "SELECT dead, since FROM session WHERE id = ?1")                            \
    X(SESSION_LAST, W, "SELECT max(incarnation) FROM session WHERE node = ?1")                    \
    X(SESSION_KILL, W, "UPDATE session SET dead = 1 WHERE dead = 0 AND id <> ?1")                 \
    X(SESSION_FORGET, W, "DELETE FROM session WHERE dead AND node = ?1 AND incarnation <= ?2")    \
    X(SESSION_ADD, W,                                                                             \
      "INSERT INTO session(id, node, incarnation, dead, since, about)"                            \
      " VALUES(?1, ?2, ?3, 0, ?4, ?5) ON CONFLICT DO NOTHING")                                    \
    X(SESSION_END, W, "UPDATE session SET dead = 1 WHERE id = ?1")                                \
    X(SESSION_ABOUT, W, "UPDATE session SET about = ?2 WHERE id = ?1")                            \
    X(MARK, W,                                                                                    \
      "INSERT INTO meta(name, value) VALUES('recoveries', 1)"                                     \
      " ON CONFLICT(name) DO UPDATE SET value = value + 1")                                       \
    X(SNAPSHOT, R, "BEGIN")                                                                       \
    X(RELEASE, R, "COMMIT")                                                                       \
    X(GET, R,                                                                                     \
      "SELECT ?3, rev, owner, token, live, sum, value FROM record WHERE kind = ?1 AND id = ?2")   \
    X(RANGE, R,                                                                                   \
      "SELECT score, id FROM entry WHERE name = ?1 AND score >= ?2 AND score <= ?3"               \
      " ORDER BY score, id LIMIT ?4")                                                             \
    X(RANGE_AFTER, R,                                                                             \
      "SELECT score, id FROM entry WHERE name = ?1 AND (score, id) > (?2, ?5) AND score <= ?3"    \
      " ORDER BY score, id LIMIT ?4")                                                             \
    X(LIST, R, GL_SQLITE_LIST_SQL("sum, value", "", "", ""))                                      \
    X(LIST_DESC, R, GL_SQLITE_LIST_SQL("sum, value", "", "", " DESC"))                            \
    X(LIST_LIVE, R, GL_SQLITE_LIST_SQL("sum, value", " INDEXED BY record_live", " AND live", "")) \
    X(LIST_LIVE_DESC, R,                                                                          \
      GL_SQLITE_LIST_SQL("sum, value", " INDEXED BY record_live", " AND live", " DESC"))          \
    X(LIST_IDS, R, GL_SQLITE_LIST_SQL("0, ''", "", "", ""))                                       \
    X(SESSION_LIST, R,                                                                            \
      "SELECT id, incarnation, node, about, 9223372036854775807, dead FROM session"               \
      " ORDER BY dead, since DESC, incarnation DESC LIMIT ?1")                                    \
    X(EXPORT_RECORDS, R,                                                                          \
      "SELECT kind, id, rev, owner, token, live, sum, value FROM record"                          \
      " WHERE (kind, id) > (?1, ?2) ORDER BY kind, id LIMIT ?3")                                  \
    X(EXPORT_ENTRIES, R,                                                                          \
      "SELECT name, id, score FROM entry WHERE (name, score, id) > (?1, ?4, ?2)"                  \
      " ORDER BY name, score, id LIMIT ?3")                                                       \
    X(EXPORT_LOGS, R,                                                                             \
      "SELECT kind, id, seq, value FROM log WHERE (kind, id, seq) > (?1, ?2, ?4)"                 \
      " ORDER BY kind, id, seq LIMIT ?3")                                                         \
    X(MEASURE, R,                                                                                 \
      "SELECT (page_count - freelist_count) * page_size"                                          \
      " FROM pragma_page_count, pragma_freelist_count, pragma_page_size")                         \
    X(LOG_READ, R,                                                                                \
      "SELECT seq, value FROM log WHERE kind = ?1 AND id = ?2 AND seq >= ?3"                      \
      " ORDER BY seq LIMIT ?4")

#define GL_SQLITE_LIST_SQL(value, by, live, direction)             \
    "SELECT id, rev, owner, token, live, " value " FROM record" by \
    " WHERE kind = ?1 AND id >= ?2 AND id < ?4" live " ORDER BY id" direction " LIMIT ?3"

enum gl_sqlite_statement {
#define X(name, role, sql) GL_SQLITE_##name,
    GL_SQLITE_STATEMENTS(X)
#undef X
        GL_SQLITE_STATEMENTS_N,
};

enum { GL_SQLITE_BUSY_MS = 2000 }; /* how long to wait for another program's lock */

enum gl_sqlite_role { GL_SQLITE_ROLE_W, GL_SQLITE_ROLE_R, GL_SQLITE_ROLES_N };

struct gl_sqlite_db {
    struct gl_arena arena; /* holds the next two */
    gl_str context;
    const char *path;
    sqlite3 *conn;
    sqlite3_stmt *stmts[GL_SQLITE_STATEMENTS_N]; /* those of the connection's role */

    /* Used by the writer only. */
    uint64_t group_n;   /* number of the newest remembered group */
    bool session_known; /* the current session has a row in this database */
    struct gl_sqlite_synced synced;
    int wal_pages;      /* pages in the write-ahead log */
    int wal_pages_next; /* checkpoint when the log has this many pages */
};

/* Does this context have a file? */
bool gl_sqlite_db_exists(const struct gl_sqlite *s, gl_str context);

/* Open a connection. A writer creates what is missing and upgrades an older schema. A reader gets
 * GL_E_NOT_FOUND if the database does not exist or its creation is incomplete. */
int gl_sqlite_db_open(struct gl_sqlite_db **ret, const struct gl_sqlite *s, gl_str context,
                      enum gl_sqlite_role role, struct gl_why *reterr_why);
void gl_sqlite_db_free(struct gl_sqlite_db *db); /* NULL is fine */

/* ---- statements: bind all parameters, then run, or step and reset ---- */

/* Bind all parameters, in order: gl_sqlite_db_bind(db, st, gl_arg_text(kind), gl_arg_i64(seq)). The
 * bytes are not copied: they must live until the statement is reset. Stale bindings of an earlier
 * use are never read, because every use binds all parameters. */
#define gl_sqlite_db_bind(db, st, ...) gl_sqlite_db_bind_n((db), (st), GL_ARGS(__VA_ARGS__))
void gl_sqlite_db_bind_n(struct gl_sqlite_db *db, enum gl_sqlite_statement st,
                         const struct gl_arg *args, size_t n);
/* Run a statement that returns no rows. rc: SQLITE_OK or an error. */
int gl_sqlite_db_run(struct gl_sqlite_db *db, enum gl_sqlite_statement st);
/* Step to the next row. rc: SQLITE_ROW, SQLITE_DONE or an error. */
int gl_sqlite_db_step(struct gl_sqlite_db *db, enum gl_sqlite_statement st);
void gl_sqlite_db_reset(struct gl_sqlite_db *db, enum gl_sqlite_statement st);
int64_t gl_sqlite_db_int(struct gl_sqlite_db *db, enum gl_sqlite_statement st, int column);
gl_str gl_sqlite_db_str(struct gl_sqlite_db *db, enum gl_sqlite_statement st, int column);
/* Run a statement that returns one number; *ret is 0 if there is no row or it is null. rc. */
int gl_sqlite_db_number(struct gl_sqlite_db *db, enum gl_sqlite_statement st, int64_t *ret);

#endif
