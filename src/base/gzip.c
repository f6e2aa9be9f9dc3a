/* gzip.c - zlib in memory, with our allocator. Unpacking checks the limit after each piece, so a
 * small file that expands enormously is stopped early. */
#include "base/gzip.h"

#include <limits.h>
#define ZLIB_CONST /* declares input as const */
#include <zlib.h>

#include "base/check.h"
#include "base/mem.h"

enum {
    WINDOW_GZIP = 15 + 16, /* the largest window, with gzip's framing */
    MEMORY_LEVEL = 8,
    PIECE_BYTES = 64 << 10,
};

static void *take(void *owner, unsigned n, unsigned bytes)
{
    (void)owner;
    return gl_mem_alloc((size_t)n * bytes);
}

static void give(void *owner, void *p)
{
    (void)owner;
    gl_mem_free(p);
}

/* zlib counts in `unsigned`: a long text is fed in pieces. */
static void feed(z_stream *z, gl_str *rest)
{
    if (z->avail_in == 0 && rest->n > 0) {
        size_t n = rest->n < INT_MAX ? rest->n : INT_MAX;

        z->next_in = (const Bytef *)rest->p;
        z->avail_in = (unsigned)n;
        rest->p += n;
        rest->n -= n;
    }
}

static void drain_into(z_stream *z, struct gl_buf *out)
{
    z->next_out = (Bytef *)gl_buf_reserve(out, PIECE_BYTES);
    z->avail_out = PIECE_BYTES;
}

void gl_gzip_pack(gl_str bytes, struct gl_buf *out)
{
    z_stream z = {.zalloc = take, .zfree = give};
    int rc = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_GZIP, MEMORY_LEVEL,
                          Z_DEFAULT_STRATEGY);

    GL_ASSERT(rc == Z_OK); /* can only fail for lack of memory, which aborts */
    do {
        feed(&z, &bytes);
        drain_into(&z, out);
        rc = deflate(&z, bytes.n > 0 ? Z_NO_FLUSH : Z_FINISH);
        GL_ASSERT(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
        out->n += PIECE_BYTES - z.avail_out;
    } while (rc != Z_STREAM_END);
    (void)deflateEnd(&z); /* nothing is left to lose */
}

bool gl_gzip_is(gl_str bytes)
{
    return bytes.n >= 18 && memcmp(bytes.p, "\x1f\x8b\x08", 3) == 0;
}

static int unpack(z_stream *z, gl_str rest, size_t bytes_max, struct gl_buf *out,
                  struct gl_why *why)
{
    size_t before = out->n;
    int rc;

    do {
        feed(z, &rest);
        drain_into(z, out);
        rc = inflate(z, Z_NO_FLUSH);
        out->n += PIECE_BYTES - z->avail_out;
        if (out->n - before > bytes_max) {
            return gl_why(why, GL_E_LIMIT, "it expands to more than %zu bytes", bytes_max);
        }
    } while (rc == Z_OK);
    if (rc != Z_STREAM_END || z->avail_in > 0 || rest.n > 0) {
        return gl_why(why, GL_E_INVALID, "this is not gzip data, or it is damaged");
    }
    return 0;
}

int gl_gzip_unpack(gl_str bytes, size_t bytes_max, struct gl_buf *out, struct gl_why *reterr_why)
{
    z_stream z = {.zalloc = take, .zfree = give};
    int rc = inflateInit2(&z, WINDOW_GZIP);

    GL_ASSERT(rc == Z_OK);
    rc = unpack(&z, bytes, bytes_max, out, reterr_why);
    (void)inflateEnd(&z); /* only frees memory */
    return rc;
}
