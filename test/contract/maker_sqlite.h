/* maker_sqlite.h - the SQLite maker, for the contract and for the tests of that engine: a store in
 * a private folder, optionally on the power-cut VFS. */
#ifndef GL_TEST_MAKER_SQLITE_H
#define GL_TEST_MAKER_SQLITE_H

#include "contract/contract.h"
#include "lib/vfs_cut.h"
#include "os/loop.h"
#include "store/sqlite/sqlite.h"
#include "support/folder.h"

struct sqlite_world {
    struct test_folder folder;
    char contexts[300]; /* "<folder>/contexts" */
    char path[340];     /* of the database of "default" */
    struct gl_loop *loop;
    struct gl_store *store;
    struct vfs_cut *vfs; /* NULL: SQLite's default */
    bool read_only;
    int64_t idle_ms; /* 0: the log is not truncated when idle */
};

/* A world without a store. */
void sqlite_world_init(struct sqlite_world *w, struct vfs_cut *vfs);
void sqlite_world_done(struct sqlite_world *w); /* the store must be closed */
int sqlite_world_open(struct sqlite_world *w, struct gl_why *reterr_why);
void sqlite_world_close(struct sqlite_world *w);

/* The same for a struct contract on it, which must be ended by sqlite_contract_end(). */
void sqlite_contract_begin(struct contract *c, struct sqlite_world *w, struct vfs_cut *vfs);
void sqlite_contract_end(struct contract *c, struct sqlite_world *w);

/* Run SQL on the database of "default" on a connection of its own; returns the first column of the
 * first row, or 0. */
int64_t sqlite_world_sql(struct sqlite_world *w, const char *sql);

#endif
