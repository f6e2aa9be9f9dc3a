/* Bytes from a node, a keeper or a damaged journal: whatever they are, they are read without harm,
 * and what was understood means the same when it is written and read again. */
#include "base/check.h"
#include "port/keeper_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A message that was understood is written in its one canonical form. */
static void check_again(const struct gl_keeper_msg *m)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf first = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf second = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_keeper_msg again;
    gl_str message;
    size_t used = 0;
    gl_keeper_encode(m, &first);
    GL_ASSERT(gl_keeper_frame(gl_buf_view(&first), &message, &used, NULL) == 0);
    GL_ASSERT(used == first.n);
    GL_ASSERT(gl_keeper_decode(&again, message, &a, NULL) == 0);
    gl_keeper_encode(&again, &second);
    GL_ASSERT(gl_str_eq(gl_buf_view(&first), gl_buf_view(&second)));
    gl_buf_reset(&first);
    gl_keeper_add_record(m, &first);
    GL_ASSERT(gl_keeper_record(gl_buf_view(&first), &message, &used) == 0);
    GL_ASSERT(used == first.n);
}

static void read_message(gl_str message)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_why why = {0};
    struct gl_keeper_msg m;
    int r = gl_keeper_decode(&m, message, &a, &why);
    if (r < 0) {
        GL_ASSERT(why.code == r);
        GL_ASSERT(why.text[0] != 0);
        return;
    }
    check_again(&m);
    (void)gl_keeper_check_start(&m.start, &why);
    if (gl_keeper_check_key(&m.start.key, &why) == 0) { /* it may become a path: */
        GL_ASSERT(memchr(m.start.key.attempt.p, '/', m.start.key.attempt.n) == NULL);
        GL_ASSERT(memchr(m.start.key.job.p, '/', m.start.key.job.n) == NULL);
        GL_ASSERT(m.start.key.job.p[0] != '.');
    }
}

static void read_frames(gl_str bytes)
{
    gl_str message;
    size_t used = 0;
    while (gl_keeper_frame(bytes, &message, &used, NULL) == 0 && used > 0) {
        GL_ASSERT(used <= bytes.n);
        read_message(message);
        bytes.p += used;
        bytes.n -= used;
    }
}

static void read_records(gl_str bytes)
{
    gl_str message;
    size_t used = 0;
    while (gl_keeper_record(bytes, &message, &used) == 0) {
        GL_ASSERT(used <= bytes.n);
        read_message(message);
        bytes.p += used;
        bytes.n -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    gl_str rest = {.p = (const char *)bytes, .n = n};
    if (n == 0) {
        return 0;
    }
    rest.p++;
    rest.n--;
    switch (bytes[0] % 3) {
    case 0:
        read_frames(rest);
        break;
    case 1:
        read_records(rest);
        break;
    default:
        read_message(rest); /* without a length or a checksum to guess */
        break;
    }
    return 0;
}
