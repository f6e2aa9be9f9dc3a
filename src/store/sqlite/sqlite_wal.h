/* sqlite_wal.h - tell damage in a write-ahead log from the torn end of one.
 *
 * SQLite's recovery reads the log up to the first frame that does not check out and silently drops
 * the rest. That is right for a commit that power loss tore apart before its sync returned. It is
 * wrong for a flipped bit: commits after it were synced and acknowledged. This module reads the log
 * before SQLite does and tells the two apart. It reads bytes only; sqlite_synced.h has the files.
 *
 * What it relies on:
 *   - The writer syncs each commit before it begins the next, so at most the last commit of a log
 *     can be torn. A COMMIT whose sync failed is followed by a new log with other salts.
 *   - A frame's checksum continues the stored checksum of the frame before it. So each frame can be
 *     checked on its own, also after a break.
 *   - Frames of a transaction that was rolled back, or torn by an earlier power loss, can follow
 *     the end with the same salts. Nothing was ever written after the commit frame of such a
 *     transaction, so no frame continues its checksum.
 *
 * A log is damaged if, at or after the first bad frame,
 *   - a good frame continues a good commit frame, or
 *   - a good commit frame is reached through good frames only from a frame that is marked as a
 *     commit, good or not.
 * Both show that a commit was complete, and therefore synced, before the next one was written. It
 * is also damaged if it does not hold what the mark says was synced. Without a mark, damage that
 * leaves only one intact commit after it cannot be told from a tear.
 *
 * Order of calls: begin, frame for each whole frame of the file, end. */
#ifndef GL_STORE_SQLITE_WAL_H
#define GL_STORE_SQLITE_WAL_H

#include "base/str.h"

enum {
    GL_SQLITE_WAL_HEADER_BYTES = 32,
    GL_SQLITE_WAL_FRAME_BYTES = 24,  /* before each page */
    GL_SQLITE_WAL_PAGE_BYTES = 8192, /* of the logs we write: for one whose header is unreadable */
};

/* What was in the log when a commit had been synced. */
struct gl_sqlite_wal_mark {
    uint32_t salt[2]; /* which log */
    uint32_t frames;  /* 0: there is no mark */
    uint32_t sum[2];  /* the stored checksum of the last of them */
    uint64_t group;   /* the newest group in the database, see sqlite_group.c */
};

struct gl_sqlite_wal_scan {
    size_t page_bytes;
    struct gl_sqlite_wal_mark mark;

    /* Internal. */
    bool has_header, big_endian;
    uint32_t salt[2], seed[2];
    uint32_t frames;
    uint32_t committed; /* the last frame SQLite's recovery will use */
    uint32_t broken_at; /* the first bad frame; 0: none yet */
    bool mark_found;    /* the frame of the mark is as it was */
    bool after_commit;  /* after the break: the frame before is a good commit frame */
    bool linked;        /* ... good frames lead here from one marked as a commit */
    bool is_proven;     /* that acknowledged commits follow the break */
};

/* `header`: the first bytes of the file; an incomplete one is not read at all, as SQLite does. */
void gl_sqlite_wal_begin(struct gl_sqlite_wal_scan *s, const char *header,
                         const struct gl_sqlite_wal_mark *mark);
/* Could the frame with this header belong to the log? If not, its page need not be read. */
bool gl_sqlite_wal_wants(const struct gl_sqlite_wal_scan *s, const char *head);
/* `page` is NULL for a frame that is not wanted. */
void gl_sqlite_wal_frame(struct gl_sqlite_wal_scan *s, const char *head, const char *page);
/* Takes salts and checksum from the header of the last frame. */
void gl_sqlite_wal_note(const char *head, struct gl_sqlite_wal_mark *m);
/* Is the log damaged? *ret_at: the frame, counted from 1; 0: its header. */
bool gl_sqlite_wal_end(const struct gl_sqlite_wal_scan *s, uint32_t *ret_at);

#endif
