/* sqlite.h - the embedded store: port/store.h on one SQLite file per context.
 *
 * The file is `<folder>/<context>/state.db`, in WAL mode with synchronous=FULL, readable with any
 * SQLite tool. A context without a file is empty for readers; its first commit creates the file.
 *
 * Threads. One writer thread applies transactions in groups: while one group is being synced the
 * next one gathers, so N waiting commits cost one sync. A group is a run of consecutive commits of
 * one context and one session. Reads have a thread and read-only connections of their own: writes
 * do not slow them down, and a read issued after a commit's `done` sees that commit. Completions
 * reach the loop in batches, one wake-up per group.
 *
 * Sessions. Exclusivity comes from the lock on the data folder, which the caller holds, so a
 * session has no deadline and dies only when it is ended or the next one is opened. Its row is in
 * the database of the context "default". The first commit in any other context copies the row there
 * and marks earlier sessions dead, because a GL_GUARD_DEAD reads only its own database. A renewal
 * is written only if `about` has changed. No wake-ups are reported: no other process could commit
 * one.
 *
 * When the engine fails:
 *   disk full, read-only, I/O error before COMMIT   GL_E_UNAVAILABLE, nothing written; the next
 *                                                   transaction tries again
 *   I/O error of COMMIT itself                      GL_E_UNKNOWN; the database is reopened and the
 *                                                   outcome made durable before any other use, then
 *                                                   `resolve` answers from the remembered groups
 *                                                   (the newest GL_SQLITE_GROUPS_KEPT; for older
 *                                                   ones it answers GL_E_UNKNOWN)
 *   damaged file                                    GL_E_DAMAGED
 *   file of a newer release                         GL_E_VERSION
 *
 * In addition to the statuses of the port, GL_E_INVALID: an invalid context name, or a log entry
 * whose number is taken. */
#ifndef GL_STORE_SQLITE_H
#define GL_STORE_SQLITE_H

#include "port/store.h"

struct gl_loop;

enum {
    GL_SQLITE_GROUP_MAX = 256,       /* transactions in one group */
    GL_SQLITE_GROUP_BYTES = 8 << 20, /* the transaction that reaches this size closes its group */
    GL_SQLITE_GROUPS_KEPT = 1024,    /* groups remembered for `resolve` */
    GL_SQLITE_IDLE_MS = 1000,        /* after this time without a commit the WAL is truncated */
};

struct gl_sqlite_config {
    const char *folder; /* parent folder of the contexts; copied; created if absent */
    bool read_only;     /* never write: commits and sessions are unavailable */
    const char *vfs;    /* copied; NULL: SQLite's default. Tests pass one that fails on demand. */
    size_t group_max;   /* 0: GL_SQLITE_GROUP_MAX */
    int64_t idle_ms;    /* 0: GL_SQLITE_IDLE_MS */
};

/* Open the store. The database of "default" is opened at once, if it exists, so that a damaged or
 * newer file is reported here. The loop must outlive the store. */
int gl_sqlite_open(struct gl_store **ret, const struct gl_sqlite_config *cfg, struct gl_loop *loop,
                   struct gl_why *reterr_why);

/* Verify a whole database file, including the checksums of its records; safe while a node is
 * running. Takes time proportional to the file. GL_E_NOT_FOUND, GL_E_DAMAGED, GL_E_UNAVAILABLE. */
int gl_sqlite_check(const char *path, struct gl_why *reterr_why);

#endif
