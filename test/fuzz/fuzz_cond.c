/* fuzz_cond - a condition (the first line), and the facts it asks about (the rest). The same
 * question has the same answer, and its opposite the opposite one. */
#include <stdint.h>

#include "base/check.h"
#include "model/text/cond.h"
#include "model/text/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char usual_facts[] =
    "{\"steps\":{\"a\":{\"status\":\"completed\",\"output\":{\"rows\":[1,{\"id\":\"x\"}],"
    "\"n\":1.50e3}}},\"inputs\":{\"n\":3,\"o\":{\"k\":[]},\"t\":\"text\"},\"job\":{\"id\":\"J\"}}";

static void count(void *owner, const struct gl_ref *ref)
{
    GL_ASSERT(ref->text.n > 0);
    ++*(size_t *)owner;
}

static void ask(const struct gl_cond *c, gl_str text, const struct gl_json *facts,
                struct gl_arena *a)
{
    struct gl_why why = {0};
    bool first = false, second = false;
    const struct gl_cond *opposite;
    size_t at, refs = 0;
    int rc = gl_cond_eval(c, facts, a, &first, &why);
    GL_ASSERT(rc == 0 || why.text[0]);
    GL_ASSERT(gl_cond_eval(c, facts, a, &second, NULL) == rc && first == second);
    gl_cond_refs(c, count, &refs);
    GL_ASSERT(refs <= text.n);
    gl_str no = gl_str_fmt(a, "not (%.*s)", GL_STR_ARG(text));
    if (gl_cond_parse(no, a, &opposite, &at, NULL) == 0) { /* it may be too deep now */
        GL_ASSERT(gl_cond_eval(opposite, facts, a, &second, NULL) == rc);
        GL_ASSERT(rc || second == !first);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str rest, all = {gl_arena_copy(&a, data, size), size};
    gl_str line = gl_str_cut(all, '\n', &rest);
    gl_str text = {gl_arena_copy(&a, line.p, line.n), line.n}; /* its end is guarded under ASan */
    struct gl_json facts;
    struct gl_why why = {0};
    const struct gl_cond *c;
    size_t at = SIZE_MAX;
    if (gl_json_parse(&facts, rest, 1 << 16, &a, NULL)) {
        GL_ASSERT(gl_json_parse(&facts, gl_str_of(usual_facts), 1 << 16, &a, NULL) == 0);
    }
    if (memchr(text.p, 0, text.n)) {
        text.n = (size_t)((const char *)memchr(text.p, 0, text.n) - text.p);
    }
    if (gl_cond_parse(text, &a, &c, &at, &why) == 0) {
        ask(c, text, &facts, &a);
    } else {
        GL_ASSERT(at <= text.n);
        GL_ASSERT(why.text[0]);
    }
    gl_arena_done(&a);
    return 0;
}
