/* sqlite_schema.c - creating and upgrading the tables. A new database runs all steps, so that there
 * is one way to reach a version. */
#include "store/sqlite/sqlite_schema.h"

#include <stdio.h>

#include "base/check.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/sqlite_query.h"

#ifndef GL_VERSION
#define GL_VERSION "0"
#endif

enum { APPLICATION_ID = 0x474c4941 }; /* "GLIA" */

/* Measured (docs/store-sqlite.md): with ascending keys, rowid tables with an index beat clustered
 * tables for rows of this size. The small rows of `entry` are nothing but the key. `txgroup` is a
 * ring. */
static const char version_1[] =
    "CREATE TABLE meta("
    " name TEXT NOT NULL PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE record("
    " kind TEXT NOT NULL, id TEXT NOT NULL, rev INTEGER NOT NULL,"
    " owner TEXT NOT NULL, token INTEGER NOT NULL, live INTEGER NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY(kind, id));"
    "CREATE INDEX record_live ON record(kind, id) WHERE live;"
    "CREATE TABLE entry(" /* of an index */
    " name TEXT NOT NULL, score INTEGER NOT NULL, id TEXT NOT NULL,"
    " PRIMARY KEY(name, score, id)) WITHOUT ROWID;"
    "CREATE TABLE log("
    " kind TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY(kind, id, seq));"
    "CREATE TABLE session("
    " id TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, incarnation INTEGER NOT NULL,"
    " dead INTEGER NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE txgroup("
    " slot INTEGER PRIMARY KEY, n INTEGER NOT NULL, session TEXT NOT NULL,"
    " first INTEGER NOT NULL, last INTEGER NOT NULL, refused TEXT NOT NULL);"
    "INSERT INTO meta VALUES('made_by', 'glia " GL_VERSION "');";

/* `sum` is the checksum of port/checksum.h; 0: the record was written by an older release and is
 * not verified. The table `item` was never used; it stays so that older releases can read the
 * file. */
static const char version_2[] =
    "ALTER TABLE record ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE session ADD COLUMN about TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE item("
    " n INTEGER PRIMARY KEY, queue TEXT NOT NULL, id TEXT NOT NULL, value TEXT NOT NULL,"
    " token INTEGER NOT NULL DEFAULT 0, taker TEXT NOT NULL DEFAULT '',"
    " until INTEGER NOT NULL DEFAULT 0, UNIQUE(queue, id));"
    "CREATE INDEX item_order ON item(queue, n);";

const struct gl_sqlite_schema_step gl_sqlite_schema_steps[] = {
    {1, version_1},
    {2, version_2},
};
const size_t gl_sqlite_schema_steps_n = GL_COUNT(gl_sqlite_schema_steps);

/* The version is written in the same transaction as the tables, so it is always true. Returns the
 * rc. */
static int take_step(struct gl_sqlite_db *db, const struct gl_sqlite_schema_step *step)
{
    char sql[256];

    GL_ASSERT(step->to > 0);
    (void)snprintf(sql, sizeof(sql),
                   "PRAGMA application_id = %d; PRAGMA user_version = %d;"
                   "INSERT OR REPLACE INTO meta(name, value) VALUES('schema_version', %d);",
                   (int)APPLICATION_ID, step->to, step->to);
    int rc = sqlite3_exec(db->conn, step->sql, NULL, NULL, NULL);
    return rc != SQLITE_OK ? rc : sqlite3_exec(db->conn, sql, NULL, NULL, NULL);
}

static int end_transaction(struct gl_sqlite_db *db, int rc)
{
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db->conn, "COMMIT", NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK && sqlite3_get_autocommit(db->conn) == 0) {
        (void)sqlite3_exec(db->conn, "ROLLBACK", NULL, NULL,
                           NULL); /* the caller gets rc, which explains more */
    }
    return rc;
}

/* All steps in one transaction: a concurrent reader sees the old version or the newest, and never
 * mistakes a database that is being created for one of an older release. */
static int take_steps(struct gl_sqlite_db *db, const struct gl_sqlite_schema_step *steps,
                      size_t steps_n)
{
    int64_t version = 0;
    int rc = sqlite3_exec(db->conn, "BEGIN IMMEDIATE", NULL, NULL, NULL);

    GL_ASSERT(steps_n > 0);
    /* Under the write lock: another connection may just have done the upgrade. */
    rc = rc != SQLITE_OK ? rc : gl_sqlite_query_number(db->conn, "PRAGMA user_version", &version);
    for (size_t i = 0; i < steps_n && rc == SQLITE_OK; i++) {
        rc = steps[i].to > version ? take_step(db, &steps[i]) : SQLITE_OK;
    }
    return end_transaction(db, rc);
}

/* What the file says about itself, read at one moment. */
struct found {
    int64_t version, application, tables;
};

static int read_version(struct gl_sqlite_db *db, struct found *ret)
{
    int rc = sqlite3_exec(db->conn, "BEGIN", NULL, NULL, NULL);
    rc = rc != SQLITE_OK ? rc
                         : gl_sqlite_query_number(db->conn, "PRAGMA user_version", &ret->version);
    rc = rc != SQLITE_OK
             ? rc
             : gl_sqlite_query_number(db->conn, "PRAGMA application_id", &ret->application);
    rc = rc != SQLITE_OK
             ? rc
             : gl_sqlite_query_number(db->conn, "SELECT count(*) FROM sqlite_schema", &ret->tables);
    return end_transaction(db, rc);
}

int gl_sqlite_schema_upgrade(struct gl_sqlite_db *db, const struct gl_sqlite_schema_step *steps,
                             size_t steps_n, bool read_only, struct gl_why *reterr_why)
{
    GL_ASSERT(steps_n > 0);
    struct found found = {0};
    int newest = steps[steps_n - 1].to;
    int rc = read_version(db, &found);
    if (rc != SQLITE_OK) {
        return gl_sqlite_error_why(db, rc, reterr_why);
    }
    if (found.tables == 0 && read_only) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "%s is empty", db->path);
    }
    if (found.tables > 0 && found.application != APPLICATION_ID) {
        return gl_why(reterr_why, GL_E_DAMAGED,
                      "%s is not a Glia database: move it away, or restore a backup", db->path);
    }
    if (found.version > newest) {
        return gl_why(
            reterr_why, GL_E_VERSION,
            "%s has schema version %d, written by a newer release of glia; this one reads "
            "up to version %d: use the newer release",
            db->path, (int)found.version, newest);
    }
    if (found.version < newest && read_only) {
        return gl_why(reterr_why, GL_E_VERSION,
                      "%s has schema version %d of an older release; it is upgraded to version %d "
                      "when a node first writes to it",
                      db->path, (int)found.version, newest);
    }
    rc = found.version < newest ? take_steps(db, steps, steps_n) : SQLITE_OK;
    return rc != SQLITE_OK ? gl_sqlite_error_why(db, rc, reterr_why) : 0;
}
