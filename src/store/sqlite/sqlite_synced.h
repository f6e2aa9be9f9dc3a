/* sqlite_synced.h - refuses a database whose write-ahead log has lost acknowledged commits.
 *
 * After each commit the writer notes in `state.db-synced` how far the log reaches and which group
 * is the newest. The note costs a small write and no sync: it always describes a commit that has
 * been synced already, so it can be older than the log but never ahead of it. It survives the death
 * of the process at once and a power loss as soon as the kernel has written it back (seconds).
 *
 * Before a database is opened its log is checked (sqlite_wal.h), against the note if it is about
 * this log. After it is opened, it must hold the group of the note: that finds a log that was
 * removed, emptied or replaced.
 *
 * What is covered: damage that leaves two later commits intact always; damage anywhere in what the
 * note describes, that is, everything up to the last acknowledged commit unless the power failed
 * within seconds after it. A database without a note (of an older release) has the former only. */
#ifndef GL_STORE_SQLITE_SYNCED_H
#define GL_STORE_SQLITE_SYNCED_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/sqlite/sqlite_wal.h"

struct gl_sqlite_synced {
    int fd; /* negative: nothing is noted */
    uint64_t seq;
    uint32_t page_bytes;
};

/* Before the database `path` is opened: 0, GL_E_DAMAGED, or another error if the log cannot be
 * read. Also beside a living node. With `sync` the log is synced first: a commit that a process
 * wrote and did not live to sync is visible to the next process, and must be durable before
 * anything follows it. *ret: the note; frames is 0 if there is none. */
int gl_sqlite_synced_check(const char *path, bool sync, struct gl_sqlite_wal_mark *ret,
                           struct gl_why *reterr_why);
/* After it was opened and before anything is written: 0 or GL_E_DAMAGED. Then closing the
 * connection leaves the log as it is. */
int gl_sqlite_synced_check_group(sqlite3 *conn, const char *path,
                                 const struct gl_sqlite_wal_mark *mark, struct gl_why *reterr_why);

/* The writer's. Failures are ignored: an old note covers less, and is never wrong. */
void gl_sqlite_synced_open(struct gl_sqlite_synced *s, const char *path, uint32_t page_bytes);
/* A commit has been synced, and the log has so many frames now. */
void gl_sqlite_synced_note(struct gl_sqlite_synced *s, sqlite3 *conn, uint32_t frames,
                           uint64_t group);
void gl_sqlite_synced_close(struct gl_sqlite_synced *s);

/* There is no database: a note is about another one. */
void gl_sqlite_synced_forget(const char *path);

#endif
