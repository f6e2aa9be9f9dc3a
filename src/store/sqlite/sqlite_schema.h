/* sqlite_schema.h - the tables, their version, and the upgrade from each version to the next.
 *
 * The version is in `PRAGMA user_version` (and, for people, in the table meta); `PRAGMA
 * application_id` marks the file as ours. To change the schema, append a step. */
#ifndef GL_STORE_SQLITE_SCHEMA_H
#define GL_STORE_SQLITE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct gl_sqlite_db;

/* The upgrade from version `to` - 1 to version `to`. A released step never changes. */
struct gl_sqlite_schema_step {
    int to;
    const char *sql;
};

/* The steps of this release. */
extern const struct gl_sqlite_schema_step gl_sqlite_schema_steps[];
extern const size_t gl_sqlite_schema_steps_n;

/* Upgrade a database to the version of the last step, in one transaction, so that nobody sees an
 * intermediate version.
 *
 *   GL_E_VERSION     it is newer; or older, and `read_only`
 *   GL_E_NOT_FOUND   it is empty, and `read_only`
 *   GL_E_DAMAGED     it is damaged, or not one of ours */
int gl_sqlite_schema_upgrade(struct gl_sqlite_db *db, const struct gl_sqlite_schema_step *steps,
                             size_t steps_n, bool read_only, struct gl_why *reterr_why);

#endif
