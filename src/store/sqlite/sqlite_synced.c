/* sqlite_synced.c - the note (format, reading, writing) and the check of a log against it.
 *
 * The note is a file of two slots, written alternately, each with a sequence number and a hash. A
 * torn write destroys one slot; the other still describes an earlier commit, which is true as
 * well. */
#include "store/sqlite/sqlite_synced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/fs.h"
#include "store/sqlite/sqlite_query.h"

enum {
    SLOTS = 2, /* written alternately: a torn one leaves the other */
    SLOT_BYTES = 56,
    SLOT_EVERY = 512, /* each in its own sector */
    SCANS_MAX = 5,
    PAGE_BYTES_MAX = 65536,
};
static const char magic[8] = {'G', 'L', 'I', 'A', 'S', 'Y', 'N', '1'};

/* Appended to every message about lost commits. */
#define WHAT_TO_DO                                                                            \
    "The store was not opened and nothing was changed. Keep a copy of the data folder, then " \
    "restore a backup, or save what is left with 'glia backup --salvage DIR' and restore that"

/* ---- the note ---- */

static void put(char *to, uint64_t v, size_t n)
{
    GL_ASSERT(n <= sizeof(v));
    for (size_t i = 0; i < n; i++) {
        to[i] = (char)(v >> (8 * i));
    }
}

static uint64_t get(const char *from, size_t n)
{
    uint64_t v = 0;

    GL_ASSERT(n <= 8);
    for (size_t i = 0; i < n; i++) {
        v |= (uint64_t)(unsigned char)from[i] << (8 * i);
    }
    return v;
}

/* Layout: magic 8, seq 8, salts 4+4, frames 4, sums 4+4, padding 4, group 8, hash 8.
 * Little-endian. */
static void pack(char *slot, uint64_t seq, const struct gl_sqlite_wal_mark *m)
{
    GL_ASSERT(seq > 0);
    memset(slot, 0, SLOT_BYTES);
    memcpy(slot, magic, sizeof(magic));
    put(slot + 8, seq, 8);
    put(slot + 16, m->salt[0], 4);
    put(slot + 20, m->salt[1], 4);
    put(slot + 24, m->frames, 4);
    put(slot + 28, m->sum[0], 4);
    put(slot + 32, m->sum[1], 4);
    put(slot + 40, m->group, 8);
    put(slot + 48, gl_str_hash((gl_str){.p = slot, .n = 48}), 8);
}

/* The sequence number; 0: the slot is unreadable. */
static uint64_t unpack(const char *slot, struct gl_sqlite_wal_mark *ret)
{
    if (memcmp(slot, magic, sizeof(magic)) != 0 ||
        get(slot + 48, 8) != gl_str_hash((gl_str){.p = slot, .n = 48})) {
        return 0;
    }
    *ret = (struct gl_sqlite_wal_mark){
        .salt = {(uint32_t)get(slot + 16, 4), (uint32_t)get(slot + 20, 4)},
        .frames = (uint32_t)get(slot + 24, 4),
        .sum = {(uint32_t)get(slot + 28, 4), (uint32_t)get(slot + 32, 4)},
        .group = get(slot + 40, 8),
    };
    return get(slot + 8, 8);
}

/* Read the newer of the two slots. Returns its sequence number; 0: there is no note. */
static uint64_t read_note(int fd, struct gl_sqlite_wal_mark *ret)
{
    uint64_t newest = 0;
    *ret = (struct gl_sqlite_wal_mark){0};
    for (int i = 0; i < SLOTS && fd >= 0; i++) {
        char slot[SLOT_BYTES];
        struct gl_sqlite_wal_mark m;
        if (pread(fd, slot, sizeof(slot), i * SLOT_EVERY) == SLOT_BYTES) {
            uint64_t seq = unpack(slot, &m);
            if (seq > newest) {
                newest = seq;
                *ret = m;
            }
        }
    }
    return newest;
}

/* Open a companion file of the database. O_NOFOLLOW: a planted link must not redirect our
 * writes. */
static int open_beside(const char *path, const char *suffix, int flags)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    return open(gl_str_fmt(&a, "%s%s", path, suffix).p, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void gl_sqlite_synced_open(struct gl_sqlite_synced *s, const char *path, uint32_t page_bytes)
{
    struct gl_sqlite_wal_mark m;

    GL_ASSERT(page_bytes > 0);
    s->fd = open_beside(path, "-synced", O_RDWR | O_CREAT);
    s->page_bytes = page_bytes;
    s->seq = read_note(s->fd, &m);
}

void gl_sqlite_synced_note(struct gl_sqlite_synced *s, sqlite3 *conn, uint32_t frames,
                           uint64_t group)
{
    char head[GL_SQLITE_WAL_FRAME_BYTES], slot[SLOT_BYTES];
    sqlite3_file *log = NULL;
    sqlite3_int64 at = GL_SQLITE_WAL_HEADER_BYTES +
                       ((sqlite3_int64)frames - 1) * (GL_SQLITE_WAL_FRAME_BYTES + s->page_bytes);
    if (s->fd < 0 || frames == 0) {
        return;
    }
    (void)sqlite3_file_control(conn, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log); /* or NULL */
    if (log == NULL || log->pMethods == NULL ||
        log->pMethods->xRead(log, head, sizeof(head), at) != SQLITE_OK) {
        return;
    }
    struct gl_sqlite_wal_mark m = {.frames = frames, .group = group};
    gl_sqlite_wal_note(head, &m);
    s->seq++;
    pack(slot, s->seq, &m);
    /* Not synced: an outdated note is never wrong (see sqlite_synced.h). */
    (void)!pwrite(s->fd, slot, sizeof(slot), (off_t)(s->seq % SLOTS) * SLOT_EVERY);
    GL_ASSERT(s->seq > 0);
}

void gl_sqlite_synced_close(struct gl_sqlite_synced *s)
{
    gl_fs_closep(&s->fd);
}

void gl_sqlite_synced_forget(const char *path)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    (void)unlink(gl_str_fmt(&a, "%s-synced", path).p); /* or there is none */
}

/* ---- the log ---- */

/* Read up to `n` bytes; fewer at the end of the file. Returns their number or a negative errno. */
static ssize_t read_at(int fd, char *to, size_t n, off_t at)
{
    size_t done = 0;

    GL_ASSERT(fd >= 0);
    GL_ASSERT(at >= 0);
    while (done < n) {
        ssize_t got = pread(fd, to + done, n - done, at + (off_t)done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* Read one frame. 1: done; 0: no more frames; else a negative errno. An incomplete frame at the end
 * ends the log, as in SQLite. */
static int scan_frame(struct gl_sqlite_wal_scan *s, int fd, off_t at, char *page)
{
    char head[GL_SQLITE_WAL_FRAME_BYTES];
    ssize_t n = read_at(fd, head, sizeof(head), at);

    GL_ASSERT(at >= GL_SQLITE_WAL_HEADER_BYTES);
    if (n < (ssize_t)sizeof(head)) {
        return n < 0 ? (int)n : 0;
    }
    bool wanted = gl_sqlite_wal_wants(s, head);
    if (wanted) {
        GL_ASSERT(s->page_bytes <= PAGE_BYTES_MAX);
        n = read_at(fd, page, s->page_bytes, at + GL_SQLITE_WAL_FRAME_BYTES);
        if (n < (ssize_t)s->page_bytes) {
            return n < 0 ? (int)n : 0;
        }
    }
    gl_sqlite_wal_frame(s, head, wanted ? page : NULL);
    return 1;
}

/* Scan the whole log. 0 or a negative errno. A log without a complete header has never held a
 * commit. */
static int scan_log(struct gl_sqlite_wal_scan *s, int fd, const struct gl_sqlite_wal_mark *mark,
                    char *page)
{
    char header[GL_SQLITE_WAL_HEADER_BYTES];
    ssize_t n = read_at(fd, header, sizeof(header), 0);

    GL_ASSERT(fd >= 0);
    *s = (struct gl_sqlite_wal_scan){0};
    if (n < (ssize_t)sizeof(header)) {
        return n < 0 ? (int)n : 0;
    }
    gl_sqlite_wal_begin(s, header, mark);
    off_t at = sizeof(header);
    int got;
    while ((got = scan_frame(s, fd, at, page)) == 1) {
        at += (off_t)(GL_SQLITE_WAL_FRAME_BYTES + s->page_bytes);
    }
    return got;
}

static int damaged(const struct gl_sqlite_wal_scan *s, const char *path, uint32_t at,
                   struct gl_why *why)
{
    if (at == 0) {
        return gl_why(why, GL_E_DAMAGED,
                      "the header of %s-wal is damaged, and acknowledged commits in that file "
                      "cannot be read. " WHAT_TO_DO,
                      path);
    }
    return gl_why(why, GL_E_DAMAGED,
                  "%s-wal is damaged at frame %u of %u, and acknowledged commits after it cannot "
                  "be read. " WHAT_TO_DO,
                  path, (unsigned)at,
                  (unsigned)(s->frames > s->mark.frames ? s->frames : s->mark.frames));
}

static bool is_same(const struct gl_sqlite_wal_scan *a, const struct gl_sqlite_wal_scan *b)
{
    return a->broken_at == b->broken_at && a->salt[0] == b->salt[0] && a->salt[1] == b->salt[1];
}

/* While a node is running, a frame may be read half-written, or the log may restart while it is
 * read. But once commits after a frame are visible, that frame has been written completely. So only
 * damage found twice, at the same place of the same log, is damage. */
static int check_log(int log, int note, const char *path, struct gl_sqlite_wal_mark *ret,
                     struct gl_why *why)
{
    struct gl_sqlite_wal_scan now = {0}, before = {0};
    char *page = gl_mem_alloc(PAGE_BYTES_MAX);
    int err = 0;

    GL_ASSERT(log >= 0);
    for (int i = 0; i < SCANS_MAX; i++) {
        uint32_t at;
        (void)read_note(note, ret);
        int failed = scan_log(&now, log, ret, page);
        if (failed < 0) {
            err = gl_fs_why(why, -failed, "read the write-ahead log of", path);
            break;
        }
        if (!gl_sqlite_wal_end(&now, &at)) {
            break;
        }
        if (i > 0 && is_same(&now, &before)) {
            err = damaged(&now, path, at, why);
            break;
        }
        before = now;
    }
    gl_mem_free(page);
    return err;
}

int gl_sqlite_synced_check(const char *path, bool sync, struct gl_sqlite_wal_mark *ret,
                           struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int note = open_beside(path, "-synced", O_RDONLY);
    GL_CLEANUP(gl_fs_closep) int log = open_beside(path, "-wal", O_RDONLY);
    (void)read_note(note, ret);
    if (log < 0) {
        return errno == ENOENT ? 0
                               : gl_fs_why(reterr_why, errno, "open the write-ahead log of", path);
    }
    if (sync && fdatasync(log) < 0) {
        return gl_fs_why(reterr_why, errno, "sync the write-ahead log of", path);
    }
    return check_log(log, note, path, ret, reterr_why);
}

int gl_sqlite_synced_check_group(sqlite3 *conn, const char *path,
                                 const struct gl_sqlite_wal_mark *mark, struct gl_why *reterr_why)
{
    int64_t group = 0;
    if (mark->group == 0) {
        return 0;
    }
    /* A database that lost its log soon after its creation has no tables. Other read errors are
     * reported by the next statement. */
    int rc = gl_sqlite_query_number(conn, "SELECT max(n) FROM txgroup", &group);
    if ((rc != SQLITE_OK && rc != SQLITE_ERROR) || (uint64_t)group >= mark->group) {
        return 0;
    }
    (void)sqlite3_db_config(conn, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                            NULL); /* a setting; cannot fail here */
    return gl_why(reterr_why, GL_E_DAMAGED,
                  "%s lacks acknowledged commits: its newest group is %lld, and %llu was synced. "
                  "%s-wal was removed or emptied, or the files are an older copy. " WHAT_TO_DO,
                  path, (long long)group, (unsigned long long)mark->group, path);
}
