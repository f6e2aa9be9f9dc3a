/* What comes to a module, what a module says, and what its process answers: whatever the bytes are,
 * they are read without harm, and a document that is made of them is one. */
#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "exec/module_call.h"
#include "exec/module_registry.h"
#include "exec/module_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct glia_text half(struct glia_text t, int which)
{
    size_t middle = t.length / 2;
    return which == 0 ? glia_text_n(t.bytes, middle)
                      : glia_text_n(t.bytes + middle, t.length - middle);
}

/* A module that says what it was given, whole or in pieces, valid or not. */
static int handle(void *instance, const struct glia_message *m, struct glia_text state,
                  struct glia_out *out)
{
    (void)instance;
    switch (m->priority) {
    case 0:
        out->set_state(out, m->body);
        out->event(out, m->type, m->headers);
        out->emit_message(out, m->body);
        return 0;
    case 1:
        return out->set_state(out, half(m->body, 0)) + out->complete_run(out, half(m->body, 1));
    case 2:
        return out->event(out, half(m->headers, 0), half(m->headers, 1));
    case 3:
        return out->fail(out, m->from);
    default:
        out->emit(out, m->type, m->body);
        out->emit_to(out, m->to, m->kind, state);
        out->complete_step(out, m->stream);
        return 0;
    }
}

static int snapshot(void *instance, struct glia_out *out)
{
    (void)instance;
    return out->set_state(out, glia_text("[1]"));
}

static int restore(void *instance, struct glia_text state, struct glia_error *error)
{
    (void)instance;
    (void)error;
    return state.length > 0 && state.bytes[0] == '"';
}

static void call(gl_str input, bool keeps_state)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct glia_module module = {
        GLIA_MODULE_HEAD,
        .name = "fuzz",
        .handle = handle,
        .snapshot = keeps_state ? snapshot : NULL,
        .restore = keeps_state ? restore : NULL,
    };
    struct gl_module_box box;
    struct gl_why why = {0};
    struct gl_json j;
    gl_module_box_init(&box, &module);
    for (int i = 0; i < 2; i++) { /* the second time there is an instance */
        gl_str document = {0};
        int r = gl_module_call(&box, input, &document, &why);
        if (r == 0) {
            GL_ASSERT(gl_json_parse(&j, document, GL_MODULE_FRAME_BYTES_MAX, &a, NULL) == 0);
            GL_ASSERT(gl_json_is(gl_json_root(&j), GL_JSON_OBJECT));
        } else {
            GL_ASSERT(why.code == r);
            GL_ASSERT(why.text[0] != 0);
        }
    }
    gl_module_box_done(&box);
}

static void read_frames(gl_str bytes)
{
    struct gl_module_head head;
    gl_str text;
    size_t used = 0;
    while (gl_module_frame_read(bytes, &head, &text, &used) == 0 && used > 0) {
        GL_ASSERT(used <= bytes.n);
        GL_ASSERT(text.n == head.bytes);
        bytes.p += used;
        bytes.n -= used;
    }
}

static void read_registry(gl_str text)
{
    struct gl_module_registry r = {.trusted = GL_S("a, b")};
    gl_map_init(&r.entries);
    gl_module_registry_read(&r, text);
    GL_ASSERT(gl_map_count(&r.entries) <= GL_MODULES_MAX);
    gl_module_registry_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    gl_str rest = {.p = (const char *)bytes, .n = n};
    if (n == 0) {
        return 0;
    }
    rest.p++;
    rest.n--;
    switch (bytes[0] % 4) {
    case 0:
        call(rest, false);
        break;
    case 1:
        call(rest, true);
        break;
    case 2:
        read_frames(rest);
        break;
    default:
        read_registry(rest);
        break;
    }
    return 0;
}
