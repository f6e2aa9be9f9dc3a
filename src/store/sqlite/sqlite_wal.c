/* sqlite_wal.c - a scanner over the frames of a write-ahead log. It keeps the running checksum like
 * SQLite's recovery, but continues after the first bad frame to see whether acknowledged commits
 * follow. */
#include "store/sqlite/sqlite_wal.h"

#include "base/check.h"

/* Offsets: https://www.sqlite.org/fileformat2.html#walformat */
enum {
    MAGIC = 0x377f0682, /* checksums are little-endian; if the lowest bit is set, big-endian */
    HEADER_PAGE = 8,
    HEADER_SALT = 16,
    HEADER_SUM = 24,
    FRAME_COMMIT = 4, /* size of the database in the last frame of a transaction; else 0 */
    FRAME_SALT = 8,
    FRAME_SUM = 16,
    SUMMED_BYTES = 8, /* of a frame's header */
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 65536,
};

/* Numbers in the file are big-endian. */
static uint32_t get(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static uint32_t get_little(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static void get_pair(uint32_t *ret, const char *p)
{
    ret[0] = get(p);
    ret[1] = get(p + 4);
}

static bool is_pair(const uint32_t *pair, const char *p)
{
    return pair[0] == get(p) && pair[1] == get(p + 4);
}

/* SQLite's checksum: two interleaved sums over pairs of 32-bit words. */
static void add_sum(uint32_t *sum, const char *bytes, size_t n, bool big_endian)
{
    uint32_t a = sum[0], b = sum[1];

    GL_ASSERT(n % 8 == 0);
    for (size_t i = 0; i + 8 <= n; i += 8) {
        a += (big_endian ? get(bytes + i) : get_little(bytes + i)) + b;
        b += (big_endian ? get(bytes + i + 4) : get_little(bytes + i + 4)) + a;
    }
    sum[0] = a;
    sum[1] = b;
}

static bool is_page_size(uint32_t n)
{
    return n >= PAGE_BYTES_MIN && n <= PAGE_BYTES_MAX && (n & (n - 1)) == 0;
}

void gl_sqlite_wal_begin(struct gl_sqlite_wal_scan *s, const char *header,
                         const struct gl_sqlite_wal_mark *mark)
{
    uint32_t sum[2] = {0};
    *s = (struct gl_sqlite_wal_scan){.page_bytes = GL_SQLITE_WAL_PAGE_BYTES, .mark = *mark};
    s->big_endian = (get(header) & 1) != 0;
    add_sum(sum, header, HEADER_SUM, s->big_endian);
    s->has_header = (get(header) & ~1u) == MAGIC && is_page_size(get(header + HEADER_PAGE)) &&
                    is_pair(sum, header + HEADER_SUM);
    get_pair(s->salt, header + HEADER_SALT);
    get_pair(s->seed, header + HEADER_SUM);
    if (s->has_header) {
        s->page_bytes = get(header + HEADER_PAGE);
    } else {
        s->big_endian = false; /* as all supported machines write it */
        s->broken_at = 1;
    }
    GL_ASSERT(is_page_size((uint32_t)s->page_bytes));
}

/* Without a readable header the salts are unknown, so every frame is read; that a frame continues
 * the one before it shows that both belong to the same log. */
bool gl_sqlite_wal_wants(const struct gl_sqlite_wal_scan *s, const char *head)
{
    return !s->has_header || is_pair(s->salt, head + FRAME_SALT);
}

/* Does the frame continue the stored checksum of the previous frame? */
static bool is_good(const struct gl_sqlite_wal_scan *s, const char *head, const char *page)
{
    GL_ASSERT(is_page_size((uint32_t)s->page_bytes));
    if (page == NULL || get(head) == 0) {
        return false;
    }
    uint32_t sum[2] = {s->seed[0], s->seed[1]};
    add_sum(sum, head, SUMMED_BYTES, s->big_endian);
    add_sum(sum, page, s->page_bytes, s->big_endian);
    return is_pair(sum, head + FRAME_SUM);
}

/* Is the mark about this log? */
static bool is_of_mark(const struct gl_sqlite_wal_scan *s)
{
    return s->mark.frames > 0 && s->salt[0] == s->mark.salt[0] && s->salt[1] == s->mark.salt[1];
}

/* A frame at or after the break. See sqlite_wal.h for what proves a loss. */
static void scan_after_break(struct gl_sqlite_wal_scan *s, bool good, bool commit)
{
    GL_ASSERT(s->broken_at != 0);
    s->is_proven |= good && s->after_commit;
    s->is_proven |= good && commit && s->linked;
    s->is_proven |= good && commit && !s->has_header; /* a header is synced before any frame */
    s->after_commit = good && commit;
    s->linked = commit || (good && s->linked);
}

void gl_sqlite_wal_frame(struct gl_sqlite_wal_scan *s, const char *head, const char *page)
{
    bool good = is_good(s, head, page);
    bool commit = page != NULL && get(head + FRAME_COMMIT) != 0;
    s->frames++;
    if (!good && s->broken_at == 0) {
        s->broken_at = s->frames;
    }
    if (s->broken_at == 0 && commit) {
        s->committed = s->frames;
        s->mark_found |= s->frames == s->mark.frames && is_pair(s->mark.sum, head + FRAME_SUM);
    } else if (s->broken_at != 0) {
        scan_after_break(s, good, commit);
    }
    /* Also for a bad frame: the next one continues the stored checksum, not the computed one. */
    get_pair(s->seed, head + FRAME_SUM);
    GL_ASSERT(s->committed <= s->frames);
    GL_ASSERT(s->broken_at <= s->frames || !s->has_header);
}

bool gl_sqlite_wal_end(const struct gl_sqlite_wal_scan *s, uint32_t *ret_at)
{
    bool is_short = s->has_header && is_of_mark(s) && !s->mark_found;

    GL_ASSERT(s->committed <= s->frames);
    if (!s->is_proven && !is_short) {
        return false;
    }
    *ret_at = !s->has_header ? 0 : s->broken_at != 0 ? s->broken_at : s->committed + 1;
    return true;
}

void gl_sqlite_wal_note(const char *head, struct gl_sqlite_wal_mark *m)
{
    get_pair(m->salt, head + FRAME_SALT);
    get_pair(m->sum, head + FRAME_SUM);
}
