/* journal.h - what must survive the keeper: attempts begun, ended, acknowledged.
 *
 * Records are gathered in memory and written once per turn. The end of an attempt is synced before
 * anyone hears of it; a beginning and an acknowledgement are only written, because losing them with
 * the machine does no harm: without the machine no process runs, and a result offered twice is
 * acknowledged twice.
 *
 * A torn end is cut off when the journal is opened. When little of it still matters it is written
 * anew beside itself and renamed. */
#ifndef GL_KEEPER_JOURNAL_H
#define GL_KEEPER_JOURNAL_H

#include "base/err.h"
#include "port/keep.h"

struct gl_journal {
    char *path;
    int fd;
    uint64_t bytes;        /* of good records on disk */
    struct gl_buf pending; /* to be written in this turn */
    bool want_sync;        /* some of it must be on disk before it is reported */
    uint64_t syncs;
};

typedef int gl_journal_each(void *owner, const struct gl_keep_msg *m);

/* Open and read: `each` gets every record in order (borrowed until it returns). */
int gl_journal_open(struct gl_journal *j, const char *folder, gl_journal_each *each, void *owner,
                    struct gl_why *reterr_why);
void gl_journal_close(struct gl_journal *j);

void gl_journal_add(struct gl_journal *j, const struct gl_keep_msg *m);
/* Write what is pending, and sync it if an end is among it. On failure nothing of it counts as
 * written: it stays pending. */
int gl_journal_flush(struct gl_journal *j, struct gl_why *reterr_why);

/* Replace everything by `content`, synced. What is pending is dropped: the caller has put it into
 * the content. */
int gl_journal_replace(struct gl_journal *j, gl_str content, struct gl_why *reterr_why);

/* Nothing in it matters any more. Not synced: if it comes back, its acknowledgements come back with
 * it. */
void gl_journal_clear(struct gl_journal *j);

#endif
