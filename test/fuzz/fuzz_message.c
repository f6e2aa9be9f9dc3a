/* fuzz_message - a message, a seed, an emission, headers: the same text as each of them. What is
 * accepted can be written and read again, and then says the same. */
#include <stdint.h>

#include "base/check.h"
#include "model/bundle/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static gl_str written(const struct gl_message *m, struct gl_arena *a)
{
    struct gl_buf out = {0};
    gl_str text;

    gl_message_write(m, &out);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static void check_again(const struct gl_message *m, struct gl_arena *a)
{
    struct gl_message back;
    struct gl_message_ledger l;
    struct gl_why why = {0};
    gl_str text = written(m, a), body, headers;

    GL_ASSERT(gl_message_read(text, a, &back, &why) == 0);
    GL_ASSERT(gl_str_eq(written(&back, a), text));
    GL_ASSERT(gl_message_body(&back, a, &body, &why) == 0);
    gl_message_ledger_of(back.headers, a, &l);
    headers = gl_message_headers(a, back.headers, &l);
    GL_ASSERT(gl_str_eq(gl_message_headers(a, headers, &l), headers));
    headers = gl_message_headers(a, headers, NULL);
    gl_message_ledger_of(headers, a, &l);
    GL_ASSERT(l.step_id.n == 0);
    GL_ASSERT(l.attempt_id.n == 0);
    GL_ASSERT(!l.has_revision);
}

static void emit(gl_str text, const struct gl_message *incoming, struct gl_arena *a)
{
    struct gl_json j;
    struct gl_message m;
    struct gl_why why = {0};

    if (gl_json_parse(&j, text, 1 << 20, a, NULL) != 0 || j.depth > 48) {
        return;
    }
    if (gl_message_emitted(&j, gl_json_root(&j), incoming, a, &m, &why) == 0) {
        GL_ASSERT(m.type.n > 0);
        check_again(&m, a);
    } else {
        GL_ASSERT(why.text[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size};
    struct gl_message m, usual;
    struct gl_why why = {0};

    gl_message_defaults(&usual);
    usual.message_id = GL_S("M");
    usual.headers = GL_S("{\"a\":1,\"mn.workflow.step_id\":\"s\"}");
    usual.artifacts = GL_S("[{\"name\":\"glia:body\"},1]");
    (void)gl_message_body_ref(text, &a, &(struct gl_body_ref){0}); /* it need not name one */
    if (gl_message_read(text, &a, &m, &why) == 0) {
        check_again(&m, &a);
        emit(GL_S("{\"type\":\"t\",\"headers\":{\"a\":2}}"), &m, &a);
    } else {
        GL_ASSERT(why.text[0]);
    }
    m = usual;
    if (gl_message_seed(text, &a, &m, &why) == 0) {
        check_again(&m, &a);
    }
    emit(text, &usual, &a);
    gl_arena_done(&a);
    return 0;
}
