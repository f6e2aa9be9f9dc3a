/* framing.h - where one request ends and the next begins, strictly (RFC 9112).
 *
 * Behind a proxy that reads a request differently than we do, a client can hide a second request in
 * the first: request smuggling. libmicrohttpd is lenient, so every byte passes here before it reads
 * it (recv_filter.h). Anything that two parsers could read differently is refused: two lengths, a
 * length and a transfer coding, a coding other than chunked, lines that end with CR or LF alone,
 * folded lines, control characters, spaces before a colon.
 *
 * Pure: gl_framing_feed() takes bytes and returns how many of them are valid. */
#ifndef GL_HTTP_FRAMING_H
#define GL_HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gl_framing_state {
    GL_FRAMING_START, /* before a request; empty lines are skipped */
    GL_FRAMING_START_LF,
    GL_FRAMING_LINE, /* the request line */
    GL_FRAMING_LINE_LF,
    GL_FRAMING_FIELD, /* the beginning of a header's line */
    GL_FRAMING_NAME,
    GL_FRAMING_VALUE,
    GL_FRAMING_VALUE_LF,
    GL_FRAMING_END_LF, /* of the empty line that ends the headers, or the trailers */
    GL_FRAMING_BODY,
    GL_FRAMING_SIZE, /* of a chunk */
    GL_FRAMING_EXTENSION,
    GL_FRAMING_SIZE_LF,
    GL_FRAMING_CHUNK,
    GL_FRAMING_CHUNK_CR,
    GL_FRAMING_CHUNK_LF,
};

/* All zero: no bytes yet. */
struct gl_framing {
    enum gl_framing_state state;
    const char *why;  /* why a request is refused, or NULL. Nothing is read after it */
    uint64_t begun_n; /* requests of which bytes have arrived */
    uint64_t heads_n; /* requests whose headers are complete and valid */
    size_t head_at;   /* in the bytes fed last: where the incomplete headers begin */

    unsigned spaces_n; /* in the request line */
    bool is_trailer, has_length, has_coding, is_old /* HTTP/1.0 */;
    uint64_t left; /* bytes of the body, or of the chunk; the size of a chunk while it is read */
    unsigned digits_n;
    char name[20], value[24]; /* of a header, the version in a request line; cut if longer */
    size_t name_n, value_n;
};

/* Are the headers of a request incomplete? Empty lines before a request do not count. */
static inline bool gl_framing_is_in_head(const struct gl_framing *f)
{
    return f->heads_n < f->begun_n;
}

/* Returns how many of these bytes are valid. If fewer than n, f->why says what is wrong with the
 * next one. */
size_t gl_framing_feed(struct gl_framing *f, const char *bytes, size_t n);

#endif
