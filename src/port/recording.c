/* recording.c - writes and verifies the checks in a recording. The recorder and the replay share
 * it, so both agree on what a damaged recording is. */
#include "port/recording.h"

enum { HEX_BYTES = 16 };

static void put_hex(uint64_t v, char out[HEX_BYTES])
{
    for (int i = 0; i < HEX_BYTES; i++) {
        out[i] = "0123456789abcdef"[v >> (60 - i * 4) & 15];
    }
}

static bool take_hex(gl_str *text, uint64_t *ret)
{
    uint64_t v = 0;

    if (text->n < HEX_BYTES) {
        return false;
    }
    for (size_t i = 0; i < HEX_BYTES; i++) {
        char c = text->p[i];

        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
        v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    text->p += HEX_BYTES;
    text->n -= HEX_BYTES;
    *ret = v;
    return true;
}

static bool take(gl_str *text, gl_str word)
{
    if (!gl_str_starts(*text, word)) {
        return false;
    }
    text->p += word.n;
    text->n -= word.n;
    return true;
}

/* The hash of a piece, combined with the check before it if there is one. */
static uint64_t sum_of(gl_str piece, uint64_t after)
{
    char both[2 * HEX_BYTES];
    uint64_t sum = gl_str_hash(piece);

    if (after == 0) {
        return sum;
    }
    put_hex(sum, both);
    put_hex(after, both + HEX_BYTES);
    return gl_str_hash((gl_str){.p = both, .n = sizeof(both)});
}

void gl_recording_put_check(struct gl_recording_chain *c, gl_str piece, struct gl_buf *out)
{
    uint64_t sum = sum_of(piece, c->last); /* first: the piece may be in `out` */

    gl_buf_fmt(out, "{\"check\":\"%016llx\"", (unsigned long long)sum);
    if (c->last != 0) {
        gl_buf_fmt(out, ",\"after\":\"%016llx\"", (unsigned long long)c->last);
    }
    gl_buf_c(out, "}\n");
    c->last = sum;
}

/* Within a segment a check must name its predecessor. At the start of a segment a wrong predecessor
 * means that the end of the previous segment is missing. */
enum gl_recording_result gl_recording_check(struct gl_recording_chain *c, gl_str line, gl_str piece)
{
    struct gl_recording_chain before = *c;
    uint64_t sum = 0, after = 0;
    bool has_after;

    if (!take(&line, GL_S("{\"check\":"))) {
        return GL_RECORDING_NO_CHECK;
    }
    if (!take(&line, GL_S("\"")) || !take_hex(&line, &sum) || !take(&line, GL_S("\""))) {
        return GL_RECORDING_DAMAGED;
    }
    has_after = take(&line, GL_S(",\"after\":\""));
    if (has_after && (!take_hex(&line, &after) || after == 0 || !take(&line, GL_S("\"")))) {
        return GL_RECORDING_DAMAGED;
    }
    if (!gl_str_is(line, "}") || sum != sum_of(piece, after)) {
        return GL_RECORDING_DAMAGED;
    }
    *c = (struct gl_recording_chain){.last = sum, .is_chained = has_after, .in_segment = true};
    if (before.in_segment) {
        return has_after ? (after == before.last ? GL_RECORDING_FINE : GL_RECORDING_MISSING)
                         : (before.is_chained ? GL_RECORDING_MISSING : GL_RECORDING_FINE);
    }
    return has_after && before.last != 0 && after != before.last ? GL_RECORDING_END_LOST
                                                                 : GL_RECORDING_FINE;
}

void gl_recording_segment(struct gl_recording_chain *c, bool knows_last)
{
    *c = (struct gl_recording_chain){.last = knows_last ? c->last : 0};
}

void gl_recording_put_missing(uint64_t first, uint64_t last, struct gl_buf *out)
{
    if (first == last) {
        gl_buf_fmt(out, "segment %llu is missing", (unsigned long long)first);
    } else {
        gl_buf_fmt(out, "segments %llu to %llu are missing", (unsigned long long)first,
                   (unsigned long long)last);
    }
    gl_buf_fmt(out, ": what happened between segments %llu and %llu is not known",
               (unsigned long long)first - 1, (unsigned long long)last + 1);
}
