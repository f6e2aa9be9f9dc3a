#include "cli/output/tarfile.h"

#include <assert.h>

#include "base/check.h"

enum { BLOCK = 512, NAME_BYTES = 100 };
#define OCTAL_MAX (((uint64_t)1 << 33) - 1)

struct header {
    char name[NAME_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type;
    char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
    char rest[12];
};

static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static void fill(struct gl_tarfile *t, uint64_t n)
{
    static const char zeros[BLOCK];

    while (n > 0) {
        size_t piece = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);

        (void)fwrite(zeros, 1, piece, t->out); /* the stream remembers errors */
        n -= piece;
    }
}

static void write_header(struct gl_tarfile *t, char type, gl_str name, uint64_t bytes, gl_ms at)
{
    struct header h = {.type = type};
    const unsigned char *p = (const unsigned char *)&h;
    unsigned sum = 0;

    memcpy(h.name, name.p, name.n < sizeof(h.name) ? name.n : sizeof(h.name));
    memcpy(h.mode, "0000644", 8);
    memcpy(h.uid, "0000000", 8);
    memcpy(h.gid, "0000000", 8);
    (void)snprintf(h.size, sizeof(h.size), "%011llo",
                   (unsigned long long)(bytes <= OCTAL_MAX ? bytes : 0));
    (void)snprintf(h.mtime, sizeof(h.mtime), "%011llo",
                   (unsigned long long)((uint64_t)(at > 0 ? at / 1000 : 0) & OCTAL_MAX));
    memcpy(h.magic, "ustar", 6);
    memcpy(h.version, "00", 2);
    memset(h.sum, ' ', sizeof(h.sum));
    for (size_t i = 0; i < sizeof(h); i++) {
        sum += p[i];
    }
    (void)snprintf(h.sum, sizeof(h.sum), "%06o", sum);
    h.sum[7] = ' ';
    (void)fwrite(&h, 1, sizeof(h), t->out);
}

/* "<length> key=value\n", where the length counts itself. */
static void add_pair(struct gl_buf *out, const char *key, gl_str value)
{
    size_t bare = strlen(key) + value.n + 3, n = bare, before;

    do {
        size_t digits = 1;

        before = n;
        for (size_t rest = n; rest >= 10; rest /= 10) {
            digits++;
        }
        n = bare + digits;
    } while (n != before);
    gl_buf_fmt(out, "%zu %s=%.*s\n", n, key, GL_STR_ARG(value));
}

void gl_tarfile_begin(struct gl_tarfile *t, gl_str name, uint64_t bytes, gl_ms modified_at)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf pairs = {0};
    char digits[24];

    if (name.n > NAME_BYTES) {
        add_pair(&pairs, "path", name);
    }
    if (bytes > OCTAL_MAX) {
        (void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)bytes);
        add_pair(&pairs, "size", gl_str_of(digits));
    }
    if (pairs.n > 0) {
        write_header(t, 'x', GL_S("pax"), pairs.n, modified_at);
        (void)fwrite(pairs.p, 1, pairs.n, t->out);
        fill(t, (BLOCK - pairs.n % BLOCK) % BLOCK);
    }
    write_header(t, '0', name, bytes, modified_at);
    t->left = bytes;
    t->padded = (BLOCK - bytes % BLOCK) % BLOCK;
}

void gl_tarfile_add(struct gl_tarfile *t, gl_str piece)
{
    size_t n = piece.n < t->left ? piece.n : (size_t)t->left;

    if (n > 0) {
        (void)fwrite(piece.p, 1, n, t->out);
    }
    t->left -= n;
}

bool gl_tarfile_end(struct gl_tarfile *t)
{
    bool is_whole = t->left == 0;

    fill(t, t->left + t->padded);
    t->left = t->padded = 0;
    return is_whole;
}

void gl_tarfile_text(struct gl_tarfile *t, gl_str name, gl_str content, gl_ms modified_at)
{
    gl_tarfile_begin(t, name, content.n, modified_at);
    gl_tarfile_add(t, content);
    (void)gl_tarfile_end(t); /* all announced bytes were written */
}

void gl_tarfile_close(struct gl_tarfile *t)
{
    fill(t, BLOCK * 2);
}
