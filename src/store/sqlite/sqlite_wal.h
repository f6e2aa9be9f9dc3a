/* sqlite_wal.h - distinguishes damage in a write-ahead log from a torn end.
 *
 * SQLite's recovery reads the log up to the first frame that fails its checksum and silently drops
 * the rest. That is right for a commit that a power loss tore before its sync returned. It is wrong
 * for a flipped bit: commits after it were synced and acknowledged. This module reads the log
 * before SQLite does and tells the two cases apart. It only looks at bytes; sqlite_synced.h handles
 * the files.
 *
 * It relies on these properties:
 *   - The writer syncs each commit before it begins the next, so at most the last commit of a log
 *     can be torn. After a COMMIT whose sync failed, a new log with other salts is started.
 *   - A frame's checksum continues the stored checksum of the previous frame. So each frame can be
 *     verified on its own, even after a break.
 *   - Frames of a transaction that was rolled back, or torn by an earlier power loss, can follow
 *     the end with the same salts. Nothing was ever written after the commit frame of such a
 *     transaction, so no frame continues its checksum.
 *
 * A log is damaged if, at or after the first bad frame,
 *   - a good frame continues a good commit frame, or
 *   - a good commit frame is reached, through good frames only, from a frame that is marked as a
 *     commit, good or not.
 * Both show that a commit was complete, and therefore synced, before the next one was written. A
 * log is also damaged if it does not contain what the mark says was synced. Without a mark, damage
 * that leaves only one intact commit after it cannot be distinguished from a torn end.
 *
 * Order of calls: begin; frame, for each whole frame of the file; end. */
#ifndef GL_STORE_SQLITE_WAL_H
#define GL_STORE_SQLITE_WAL_H

#include "base/str.h"

enum {
    GL_SQLITE_WAL_HEADER_BYTES = 32,
    GL_SQLITE_WAL_FRAME_BYTES = 24,  /* before each page */
    GL_SQLITE_WAL_PAGE_BYTES = 8192, /* of the logs we write: for one whose header is unreadable */
};

/* The state of the log when a commit had been synced. */
struct gl_sqlite_wal_mark {
    uint32_t salt[2]; /* identifies the log */
    uint32_t frames;  /* 0: no mark */
    uint32_t sum[2];  /* stored checksum of the last of them */
    uint64_t group;   /* newest group in the database, see sqlite_group.c */
};

struct gl_sqlite_wal_scan {
    size_t page_bytes;
    struct gl_sqlite_wal_mark mark;

    /* Internal. */
    bool has_header, big_endian;
    uint32_t salt[2], seed[2];
    uint32_t frames;
    uint32_t committed; /* the last frame that SQLite's recovery will use */
    uint32_t broken_at; /* the first bad frame; 0: none so far */
    bool mark_found;    /* the marked frame is intact */
    bool after_commit;  /* after the break: the previous frame is a good commit frame */
    bool linked;        /* ... good frames lead here from a frame marked as a commit */
    bool is_proven;     /* acknowledged commits provably follow the break */
};

/* `header`: the first bytes of the file. A file with an incomplete header is not read at all, as in
 * SQLite. */
void gl_sqlite_wal_begin(struct gl_sqlite_wal_scan *s, const char *header,
                         const struct gl_sqlite_wal_mark *mark);
/* Could the frame with this header belong to the log? If not, its page need not be read. */
bool gl_sqlite_wal_wants(const struct gl_sqlite_wal_scan *s, const char *head);
/* `page` is NULL for a frame that is not wanted. */
void gl_sqlite_wal_frame(struct gl_sqlite_wal_scan *s, const char *head, const char *page);
/* Copy salts and checksum from the header of the last frame. */
void gl_sqlite_wal_note(const char *head, struct gl_sqlite_wal_mark *m);
/* Is the log damaged? *ret_at: the damaged frame, counted from 1; 0: the header. */
bool gl_sqlite_wal_end(const struct gl_sqlite_wal_scan *s, uint32_t *ret_at);

#endif
