/* fuzz_error_envelope - a secret (the first line) and what was said (the rest). The envelope is a
 * document within its limits, and the secret is not in it. */
#include <stdint.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/error_envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t chars_of(gl_str s)
{
    size_t chars = 0;

    for (size_t at = 0; at < s.n; chars++) {
        size_t n = gl_str_utf8_at((gl_str){.p = s.p + at, .n = s.n - at});

        GL_ASSERT(n > 0);
        at += n;
    }
    return chars;
}

static void check_document(gl_str text, struct gl_arena *a)
{
    struct gl_json j;
    gl_jnode root, details;

    GL_ASSERT(gl_json_parse(&j, text, 64 << 10, a, NULL) == 0);
    root = gl_json_root(&j);
    details = gl_json_get(&j, root, "details");
    GL_ASSERT(chars_of(gl_json_str(&j, gl_json_get(&j, root, "desc"), a)) <=
              GL_ERROR_ENVELOPE_DESC_CHARS);
    /* A byte that is no UTF-8 is shown as three. */
    GL_ASSERT(gl_json_str(&j, gl_json_get(&j, details, "message"), a).n <=
              3 * GL_ERROR_ENVELOPE_MESSAGE_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str rest = {.p = (const char *)data, .n = size};
    gl_str secret = size > 0 ? gl_str_cut(rest, '\n', &rest) : (gl_str){0};
    GL_CLEANUP(gl_buf_done) struct gl_buf pair = {0};
    struct gl_error_envelope e = {.failure = (enum gl_failure)(size % GL_FAILURE_COUNT),
                                  .message = rest};
    gl_str env, shown;

    gl_buf_c(&pair, "API_TOKEN=");
    gl_buf_str(&pair, secret);
    env = gl_buf_view(&pair);
    e.env = &env;
    e.env_n = 1;
    check_document(gl_error_envelope_text(&e, &a), &a);
    shown = gl_redaction_apply(rest, &env, 1, &a);
    if (secret.n >= GL_SECRET_BYTES_MIN && memchr(secret.p, '*', secret.n) == NULL && shown.n > 0) {
        GL_ASSERT(memmem(shown.p, shown.n, secret.p, secret.n) == NULL);
    }
    return 0;
}
