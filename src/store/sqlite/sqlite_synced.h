/* sqlite_synced.h - refuses a database whose write-ahead log has lost acknowledged commits.
 *
 * After each commit the writer records in `state.db-synced` how far the log reaches and which group
 * is the newest. The note costs a small write and no sync: it always describes a commit that has
 * been synced already, so it may lag behind the log but is never ahead of it. It survives the death
 * of the process at once, and a power loss as soon as the kernel has written it back (seconds).
 *
 * Order of calls. Before a database is opened its log is checked (sqlite_wal.h), against the note
 * if the note belongs to this log: gl_sqlite_synced_check(). After it is opened it must contain the
 * group of the note, which detects a log that was removed, emptied or replaced:
 * gl_sqlite_synced_check_group(). The writer then opens the note and updates it after each commit.
 *
 * What is detected: always, damage that leaves two later commits intact; and damage anywhere in
 * what the note describes, that is, everything up to the last acknowledged commit unless the power
 * failed within seconds after it. Without a note (a database of an older release) only the
 * former. */
#ifndef GL_STORE_SQLITE_SYNCED_H
#define GL_STORE_SQLITE_SYNCED_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/sqlite/sqlite_wal.h"

struct gl_sqlite_synced {
    int fd; /* negative: no note is kept */
    uint64_t seq;
    uint32_t page_bytes;
};

/* Before the database `path` is opened: returns 0, GL_E_DAMAGED, or another error if the log cannot
 * be read. Safe while a node is running. With `sync` the log is synced first: a commit that a
 * process wrote but did not live to sync is visible to the next process, and must be durable before
 * anything depends on it. *ret: the note; frames is 0 if there is none. */
int gl_sqlite_synced_check(const char *path, bool sync, struct gl_sqlite_wal_mark *ret,
                           struct gl_why *reterr_why);
/* After it is opened and before anything is written: 0 or GL_E_DAMAGED. In the latter case closing
 * the connection leaves the log as it is. */
int gl_sqlite_synced_check_group(sqlite3 *conn, const char *path,
                                 const struct gl_sqlite_wal_mark *mark, struct gl_why *reterr_why);

/* For the writer. Failures are ignored: an outdated note detects less but is never wrong. */
void gl_sqlite_synced_open(struct gl_sqlite_synced *s, const char *path, uint32_t page_bytes);
/* A commit has been synced, and the log now has `frames` frames. */
void gl_sqlite_synced_note(struct gl_sqlite_synced *s, sqlite3 *conn, uint32_t frames,
                           uint64_t group);
void gl_sqlite_synced_close(struct gl_sqlite_synced *s);

/* The database does not exist: remove a note about an earlier one. */
void gl_sqlite_synced_forget(const char *path);

#endif
