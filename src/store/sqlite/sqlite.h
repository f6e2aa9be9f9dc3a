/* sqlite.h - the embedded maker of port/store.h: one SQLite file per context.
 *
 * `<folder>/<context>/state.db`, in WAL mode with synchronous=FULL, readable with any SQLite tool.
 * A context that is not on disk is empty for readers and is made by its first commit.
 *
 * One writer thread applies transactions in groups: while one group is being synced the next one
 * gathers, so N waiting commits cost one sync. A group is a run of consecutive commits of one
 * context and one session. Reads have a thread and read-only connections of their own: no write
 * slows them, and a read issued after a commit's `done` sees that commit. Completions reach the
 * loop in batches, one wake-up per group.
 *
 * Sessions: exclusivity is the lock on the data folder, which the caller holds; a session therefore
 * has no deadline and dies only when it is ended or the next one is opened. Its row stands in the
 * database of the context "default", and is copied into that of any other context by the first
 * commit there, which also marks the earlier sessions dead in it: a GL_GUARD_DEAD reads
 * only its own database. To it a session nobody has heard of is not dead. A renewal is written only
 * if `about` has changed. Nobody else could commit a wake-up, so nobody is woken.
 *
 * When the engine fails:
 *   disk full, read-only, I/O error before COMMIT   GL_E_UNAVAILABLE, nothing written; the next
 *                                                   transaction tries again
 *   I/O error of COMMIT itself                      GL_E_UNKNOWN; the database is reopened and made
 *                                                   certain before anything else is done with it,
 *                                                   then `resolve` answers from the transaction
 *                                                   memory (the newest GL_SQLITE_GROUPS_KEPT
 *                                                   groups; about older ones it answers
 *                                                   GL_E_UNKNOWN)
 *   damaged file                                    GL_E_DAMAGED
 *   file of a newer release                         GL_E_VERSION
 * Besides the statuses of the port, GL_E_INVALID: a context's name that is none, or a log entry
 * whose number is taken already. */
#ifndef GL_STORE_SQLITE_H
#define GL_STORE_SQLITE_H

#include "port/store.h"

struct gl_loop;

enum {
    GL_SQLITE_GROUP_MAX = 256,       /* transactions in one group */
    GL_SQLITE_GROUP_BYTES = 8 << 20, /* a group is closed by the transaction that reaches this */
    GL_SQLITE_GROUPS_KEPT = 1024,    /* groups remembered for `resolve` */
    GL_SQLITE_IDLE_MS = 1000,        /* without a commit the log is emptied after this */
};

struct gl_sqlite_config {
    const char *folder; /* of the contexts; copied; made if it is absent */
    bool read_only;     /* writes nothing: commits and sessions are unavailable */
    const char *vfs;    /* copied; NULL: SQLite's own. Tests give one that fails on demand. */
    size_t group_max;   /* 0: GL_SQLITE_GROUP_MAX */
    int64_t idle_ms;    /* 0: GL_SQLITE_IDLE_MS */
};

/* Opens the store, and the database of "default" if there is one, so that a damaged or newer file
 * is reported here. The loop must outlive the store. */
int gl_sqlite_open(struct gl_store **ret, const struct gl_sqlite_config *cfg, struct gl_loop *loop,
                   struct gl_why *reterr_why);

/* Read the whole file, with the checksums of its records, and say whether it is sound, for people
 * who doubt it; also beside a node. It takes its time. GL_E_NOT_FOUND, GL_E_DAMAGED,
 * GL_E_UNAVAILABLE. */
int gl_sqlite_check(const char *path, struct gl_why *reterr_why);

#endif
