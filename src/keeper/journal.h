/* journal.h - what must survive the keeper: attempts begun, ended, acknowledged.
 *
 * Records are gathered in memory and written once per turn. The end of an attempt must be on disk
 * before anyone hears of it; a beginning and an acknowledgement are only written, because losing
 * them with the machine does no harm: without the machine no process runs, and a result offered
 * twice is acknowledged twice.
 *
 * On a disk that syncs within half a millisecond this is done on the spot. On a slower one a thread
 * does it, one sync at a time: meanwhile the keeper starts and reaps, and whatever ends in that
 * time shares the next sync.
 *
 * A torn end is cut off by gl_journal_repair(). A damaged record is skipped and the ones after it
 * are read; if its length is damaged, too, nobody can say where the next one begins, and the rest
 * is not read. (It is not searched for: a step's output could contain what looks like a record.)
 * Either way gl_journal.bad_bytes says that something is missing.
 *
 * When little of it still matters it is written anew beside itself and renamed. */
#ifndef GL_KEEPER_JOURNAL_H
#define GL_KEEPER_JOURNAL_H

#include "base/err.h"
#include "port/keeper_protocol.h"

struct gl_syncer; /* the thread */

struct gl_journal {
    char *folder, *path;
    int fd;
    bool is_renamed; /* it has replaced another, and its name is not synced: nothing in it counts */
    uint64_t bad_bytes;     /* when it was opened: bytes that are no good records ... */
    bool has_hole;          /* ... and good ones follow them */
    uint64_t bytes;         /* written, all of it whole records */
    uint64_t synced;        /* of these, on disk, or not worth it */
    struct gl_buf pending;  /* to be written in this turn */
    struct gl_buf unsynced; /* from `synced` to `bytes`: written again if the sync fails */
    bool pending_needs_sync, unsynced_needs_sync; /* an end is among it */
    uint64_t syncing; /* the sync under way will have reached this; 0: none is */
    uint32_t sync_us; /* how long a sync takes, about */
    struct gl_syncer *syncer;
    int done_fd; /* readable when a sync is done: then call gl_journal_sync_done() */
};

typedef int gl_journal_each(void *owner, const struct gl_keeper_msg *m);

/* Open and read: `each` gets every record in order (borrowed until it returns). Changes nothing. */
int gl_journal_open(struct gl_journal *j, const char *folder, gl_journal_each *each, void *owner,
                    struct gl_why *reterr_why);
/* Cut off what follows the last good record. Before that, a keeper that cannot vouch for what is
 * missing must have begun a new epoch durably: afterwards the journal looks whole. */
int gl_journal_repair(struct gl_journal *j, struct gl_why *reterr_why);
void gl_journal_close(struct gl_journal *j); /* waits for a sync under way */

/* Returns where its end will be: it counts when gl_journal.synced has reached that. */
uint64_t gl_journal_add(struct gl_journal *j, const struct gl_keeper_msg *m);
/* Write what is pending, and begin a sync if one is wanted and none is under way. On failure
 * nothing of it counts as written: it stays pending. */
int gl_journal_flush(struct gl_journal *j, struct gl_why *reterr_why);
/* A sync is done. If it has failed, what it was about is pending again. */
int gl_journal_sync_done(struct gl_journal *j, struct gl_why *reterr_why);
/* Wait for the sync under way, if any; then gl_journal_sync_done() has been called. */
int gl_journal_wait(struct gl_journal *j, struct gl_why *reterr_why);

/* Replace everything by `content`. What is pending is dropped: the caller has put it into the
 * content, which counts when gl_journal.synced has reached gl_journal.bytes: usually at once, else
 * a later flush tries again. On failure the old content stays. Not while a sync is under way. */
int gl_journal_replace(struct gl_journal *j, gl_str content, struct gl_why *reterr_why);

/* Nothing in it matters any more. Not synced: if it comes back, its acknowledgements come back with
 * it. Not while a sync is under way. */
void gl_journal_clear(struct gl_journal *j);

#endif
