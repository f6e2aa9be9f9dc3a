/* A write-ahead log, whatever became of it: it is read without harm, frame after frame, and the
 * finding names a place in it. The first bytes are the note; the rest is the log. */
#include "base/check.h"
#include "store/sqlite/sqlite_wal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static size_t feed(struct gl_sqlite_wal_scan *s, const char *p, size_t n)
{
    size_t frames = 0;
    for (size_t at = 0; n - at >= GL_SQLITE_WAL_FRAME_BYTES + s->page_bytes; frames++) {
        const char *head = p + at;
        bool wanted = gl_sqlite_wal_wants(s, head);
        gl_sqlite_wal_frame(s, head, wanted ? head + GL_SQLITE_WAL_FRAME_BYTES : NULL);
        at += GL_SQLITE_WAL_FRAME_BYTES + s->page_bytes;
    }
    return frames;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct gl_sqlite_wal_mark mark = {0};
    struct gl_sqlite_wal_scan s;
    const char *p = (const char *)bytes;
    uint32_t at = UINT32_MAX;
    if (n < GL_SQLITE_WAL_FRAME_BYTES + 1 + GL_SQLITE_WAL_HEADER_BYTES) {
        return 0;
    }
    gl_sqlite_wal_note(p, &mark);
    mark.frames = bytes[GL_SQLITE_WAL_FRAME_BYTES];
    p += GL_SQLITE_WAL_FRAME_BYTES + 1;
    n -= GL_SQLITE_WAL_FRAME_BYTES + 1;
    gl_sqlite_wal_begin(&s, p, &mark);
    GL_ASSERT(s.page_bytes >= 512 && s.page_bytes <= 65536);
    size_t frames = feed(&s, p + GL_SQLITE_WAL_HEADER_BYTES, n - GL_SQLITE_WAL_HEADER_BYTES);
    GL_ASSERT(s.frames == frames && s.committed <= frames);
    if (gl_sqlite_wal_end(&s, &at)) {
        GL_ASSERT(at <= frames + 1);
        GL_ASSERT(at == 0 || at > s.committed);
    }
    return 0;
}
