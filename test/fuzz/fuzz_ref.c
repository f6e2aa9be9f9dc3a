/* fuzz_ref - a text with references (the first line), and the facts they refer to (the rest). What
 * is walked through piece by piece must cover the text; a text that was escaped must mean itself.
 */
#include <stdint.h>

#include "base/check.h"
#include "model/text/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char usual_facts[] =
    "{\"steps\":{\"a\":{\"status\":\"completed\",\"output\":{\"rows\":[1,{\"id\":\"x\"}]}},"
    "\"b\":{\"status\":\"skipped\"}},\"inputs\":{\"n\":3,\"o\":{}},\"job\":{\"id\":\"J\"}}";

static void walk(gl_str text, struct gl_arena *a)
{
    size_t pos = 0;
    bool has_refs = false, ok = true;
    while (pos < text.n && ok) {
        struct gl_ref_piece piece;
        struct gl_why why = {0};
        size_t before = pos;
        ok = gl_ref_next(text, &pos, a, &piece, &why) == 0;
        GL_ASSERT(ok ? pos > before : why.text[0]);
        GL_ASSERT(piece.at == before);
        has_refs = has_refs || piece.is_ref;
        if (ok && piece.is_ref) {
            struct gl_ref again;
            GL_ASSERT(gl_ref_parse(piece.ref.text, a, &again, &why) == 0);
            GL_ASSERT(again.path.n == piece.ref.path.n);
        }
    }
    GL_ASSERT(has_refs == gl_ref_has(text) || !ok);
}

static void expand(gl_str text, const struct gl_json *facts, struct gl_arena *a)
{
    struct gl_why why = {0};
    struct gl_json value;
    gl_str out;
    if (gl_ref_expand(text, facts, a, &out, &why)) {
        GL_ASSERT(why.text[0]);
    }
    if (gl_ref_json(text, facts, a, &out, &why) == 0) {
        GL_ASSERT(gl_json_parse(&value, out, 1 << 22, a, &why) == 0);
    }
    gl_str escaped = gl_ref_escape(text, a);
    GL_ASSERT(!gl_ref_has(escaped));
    GL_ASSERT(gl_str_eq(gl_ref_literal(escaped, a), text));
    if (text.n && !memchr(text.p, 0, text.n)) {
        GL_ASSERT(gl_ref_expand(escaped, facts, a, &out, &why) == 0 ? gl_str_eq(out, text)
                                                                    : why.code == GL_E_LIMIT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str rest, all = {gl_arena_copy(&a, data, size), size};
    gl_str line = gl_str_cut(all, '\n', &rest);
    gl_str text = {gl_arena_copy(&a, line.p, line.n), line.n}; /* its end is guarded under ASan */
    struct gl_json facts;
    if (gl_json_parse(&facts, rest, 1 << 16, &a, NULL)) {
        GL_ASSERT(gl_json_parse(&facts, gl_str_of(usual_facts), 1 << 16, &a, NULL) == 0);
    }
    walk(text, &a);
    expand(text, &facts, &a);
    gl_arena_done(&a);
    return 0;
}
