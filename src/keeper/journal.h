/* journal.h - what must survive the keeper: attempts begun, ended, acknowledged.
 *
 * Records are collected in memory and written once per turn. The end of an attempt must be on disk
 * before it is reported. A start or an acknowledgement is written but need not be synced: if the
 * machine crashes, no process survives either, and a result offered twice is acknowledged twice.
 *
 * On a disk that syncs within half a millisecond the sync happens inline. On a slower one a thread
 * does it, one sync at a time; meanwhile the keeper starts and reaps, and whatever ends in that
 * time shares the next sync.
 *
 * A torn end is cut off by gl_journal_repair(). A damaged record is skipped and the ones after it
 * are read; if its length is damaged too, the start of the next record is unknown and the rest is
 * not read. (Scanning for it would be unsafe: a step's output could contain what looks like a
 * record.) Either way gl_journal.bad_bytes says that something is missing.
 *
 * When little of the journal still matters, it is rewritten next to the old one and renamed.
 *
 * Call order: gl_journal_open(), gl_journal_repair(), then gl_journal_add() and gl_journal_flush()
 * each turn and gl_journal_sync_done() when `done_fd` is readable, gl_journal_close(). */
#ifndef GL_KEEPER_JOURNAL_H
#define GL_KEEPER_JOURNAL_H

#include "base/err.h"
#include "port/keeper_protocol.h"

struct gl_syncer; /* the thread */

struct gl_journal {
    char *folder, *path;
    int fd;
    bool is_renamed;    /* it replaced another file and the rename is not synced yet: nothing in it
                           counts */
    uint64_t bad_bytes; /* when it was opened: bytes that are not valid records ... */
    bool has_hole;      /* ... with valid records after them */
    uint64_t bytes;     /* written, all of it whole records */
    uint64_t synced;    /* of these, on disk or not worth syncing */
    struct gl_buf pending;  /* to be written in this turn */
    struct gl_buf unsynced; /* from `synced` to `bytes`: rewritten if the sync fails */
    bool pending_needs_sync, unsynced_needs_sync; /* holds the end of an attempt */
    uint64_t syncing; /* offset covered by the sync in progress; 0: none */
    uint32_t sync_us; /* moving average of a sync's duration */
    struct gl_syncer *syncer;
    int done_fd; /* readable when a sync is done: call gl_journal_sync_done() */
};

typedef int gl_journal_each(void *owner, const struct gl_keeper_msg *m);

/* Open and read: `each` gets every record in order, borrowed until it returns. Changes nothing. */
int gl_journal_open(struct gl_journal *j, const char *folder, gl_journal_each *each, void *owner,
                    struct gl_why *reterr_why);
/* Cut off what follows the last valid record. A keeper that cannot account for the missing part
 * must have begun a new epoch durably before this: afterwards the journal looks whole. */
int gl_journal_repair(struct gl_journal *j, struct gl_why *reterr_why);
void gl_journal_close(struct gl_journal *j); /* waits for a sync in progress */

/* Returns the offset after the record: it counts once gl_journal.synced has reached that. */
uint64_t gl_journal_add(struct gl_journal *j, const struct gl_keeper_msg *m);
/* Write what is pending, and start a sync if one is needed and none is in progress. On failure
 * everything stays pending. */
int gl_journal_flush(struct gl_journal *j, struct gl_why *reterr_why);
/* A sync has finished. If it failed, its records are pending again. */
int gl_journal_sync_done(struct gl_journal *j, struct gl_why *reterr_why);
/* Wait for the sync in progress, if any, and call gl_journal_sync_done(). */
int gl_journal_wait(struct gl_journal *j, struct gl_why *reterr_why);

/* Replace everything with `content`. Pending records are dropped: the caller has included them in
 * `content`, which counts once gl_journal.synced has reached gl_journal.bytes: usually at once,
 * else after a later flush. On failure the old content stays. Not while a sync is in progress. */
int gl_journal_replace(struct gl_journal *j, gl_str content, struct gl_why *reterr_why);

/* Nothing in it matters any more: empty it. Not synced: if old records come back, their
 * acknowledgements come back with them. Not while a sync is in progress. */
void gl_journal_clear(struct gl_journal *j);

#endif
