/* postgres_schema.h - the tables and functions on the server, and the statements that use them.
 *
 * The schema "glia" holds what belongs to the store: its identity, contexts, sessions, and the
 * memory of transactions. Each context has a schema of its own, "glia_<context>", written '@' in
 * the texts here. docs/store-postgres.md describes the layout for people. */
#ifndef GL_STORE_POSTGRES_SCHEMA_H
#define GL_STORE_POSTGRES_SCHEMA_H

#include "base/str.h"

enum {
    GL_POSTGRES_STORE_VERSION = 1,   /* of the schema "glia" */
    GL_POSTGRES_CONTEXT_VERSION = 1, /* of a context's schema */
    GL_POSTGRES_IDS_KEPT = 100000,   /* transaction ids remembered per session, at least */
};

enum gl_postgres_statement {
    /* Of the store. */
    GL_POSTGRES_SESSION_OPEN,
    GL_POSTGRES_SESSION_RENEW,
    GL_POSTGRES_SESSION_END,
    GL_POSTGRES_SESSION_DEAD,
    GL_POSTGRES_SESSION_LIST,
    GL_POSTGRES_RESOLVE,
    GL_POSTGRES_TIME,
    GL_POSTGRES_CONTEXT_GET,
    /* Of a context. */
    GL_POSTGRES_COMMIT,
    GL_POSTGRES_GET,
    GL_POSTGRES_RANGE,
    GL_POSTGRES_RANGE_AFTER,
    GL_POSTGRES_LOG_READ,
    GL_POSTGRES_MEASURE,
    GL_POSTGRES_EXPORT_RECORDS,
    GL_POSTGRES_EXPORT_ENTRIES,
    GL_POSTGRES_EXPORT_LOG,
    GL_POSTGRES_LIST, /* the first of GL_POSTGRES_LISTS: add gl_postgres_list_flags */
    GL_POSTGRES_LISTS = 32,
    GL_POSTGRES_STATEMENTS = GL_POSTGRES_LIST + GL_POSTGRES_LISTS,
};

enum gl_postgres_list_flag {
    GL_POSTGRES_LIST_LIVE = 1,
    GL_POSTGRES_LIST_DOWN = 2,
    GL_POSTGRES_LIST_IDS = 4,
    GL_POSTGRES_LIST_BELOW = 8,  /* with an upper bound */
    GL_POSTGRES_LIST_BYTES = 16, /* ends at a total size; not combined with IDS */
};

/* The parts of a batch (see the function commit_1) that are present, so that it skips the others.
 * 16, 16384 and 32768 belonged to queues, which no longer exist. */
enum gl_postgres_batch_flag {
    GL_POSTGRES_BATCH_GUARDS = 1,
    GL_POSTGRES_BATCH_LOCKS = 2,   /* guards that lock a record exclusively */
    GL_POSTGRES_BATCH_PRESENT = 4, /* guards that lock a record against removal */
    GL_POSTGRES_BATCH_ALIVE = 8,   /* guards on sessions other than the batch's own */
    GL_POSTGRES_BATCH_HOLDS = 32,  /* keys that must stay absent and are not written */
    GL_POSTGRES_BATCH_PUTS = 64,   /* class 0 */
    GL_POSTGRES_BATCH_FRESH = 128, /* class 1: guarded as absent */
    GL_POSTGRES_BATCH_NEW = 256,   /* class 2: left alone if present */
    GL_POSTGRES_BATCH_DELETES = 512,
    GL_POSTGRES_BATCH_ENTRIES_IN = 1024,
    GL_POSTGRES_BATCH_ENTRIES_OUT = 2048,
    GL_POSTGRES_BATCH_LOG = 4096,
    GL_POSTGRES_BATCH_TRIMS = 8192,
    GL_POSTGRES_BATCH_SHARES = 65536, /* guards that take a shared lock against changes */
};

/* The quoted schema name of a context, whose name must be a valid id. */
void gl_postgres_schema_name(struct gl_buf *out, gl_str context);

/* The text of a statement; `schema` is ignored for those of the store. */
void gl_postgres_schema_statement(struct gl_buf *out, int statement, gl_str schema);

/* The script that creates or completes the schema "glia": one string of many statements. */
void gl_postgres_schema_store(struct gl_buf *out, gl_str identity);

/* Statement `i` of the script that creates a context, to be run in one transaction; false: no
 * more. */
bool gl_postgres_schema_context(struct gl_buf *out, size_t i, gl_str context, gl_str schema);

#endif
