/* fuzz_flow - a flow file, and a compiled flow. What parsing accepts must compile, be read back,
 * and compile to the same bytes; what decoding accepts likewise. The first byte chooses: 'c' is
 * followed by a compiled flow, anything else begins a flow file. */
#include <stdint.h>

#include "base/check.h"
#include "base/sha256.h"
#include "model/bundle/agent.h"
#include "model/text/yaml.h"

enum { BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(struct gl_flow_loader *l, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    (void)l;
    if (gl_str_is(source, "gone")) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "gone: there is no such file");
    }
    (void)gl_sha256_hex(source.n ? source : text, ret_hex);
    *ret_executable = source.n % 2 == 1;
    return 0;
}

static void check_graph(const struct gl_flow *f)
{
    size_t needs = 0, children = 0, roots = 0;
    for (uint32_t i = 0; i < f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(f, i);
        GL_ASSERT(gl_flow_find(f, s->id) == i);
        GL_ASSERT(s->needs_n == s->needs_ids.n);
        for (uint32_t k = 0; k < s->needs_n; k++) {
            GL_ASSERT(gl_str_eq(gl_flow_step(f, s->needs[k])->id, s->needs_ids.items[k]));
        }
        needs += s->needs_n;
        children += s->children_n;
        roots += s->needs_n == 0 && !gl_flow_is_unit(f, i) && !s->is_removed;
    }
    GL_ASSERT(needs == children);
    GL_ASSERT(roots == f->roots_n);
    GL_ASSERT(roots > 0 || f->bundle != NULL);
}

static void check_round_trip(const struct gl_flow *f, struct gl_arena *a)
{
    struct gl_buf first = {0}, second = {0};
    struct gl_flow *back;
    struct gl_why why;
    check_graph(f);
    gl_flow_encode(f, &first);
    GL_ASSERT(gl_flow_decode(gl_buf_view(&first), a, &back, &why) == 0);
    check_graph(back);
    gl_flow_encode(back, &second);
    GL_ASSERT(gl_str_eq(gl_buf_view(&first), gl_buf_view(&second)));
    gl_buf_done(&first);
    gl_buf_done(&second);
}

static void fuzz_source(gl_str text, struct gl_arena *a)
{
    static struct gl_flow_errors errors;
    struct gl_flow_loader loader = {.load = load};
    struct gl_json j;
    struct gl_flow *f;
    if (gl_yaml_parse(&j, text, BYTES_MAX, a, NULL)) {
        return;
    }
    if (gl_flow_parse(&j, gl_json_root(&j), text.n % 2 ? &loader : NULL, a, &f, &errors) == 0) {
        check_round_trip(f, a);
        return;
    }
    GL_ASSERT(errors.total > 0);
    for (size_t i = 0; i < errors.n; i++) {
        GL_ASSERT(errors.items[i].line > 0); /* without a place it would be a mistake of ours */
        GL_ASSERT(errors.items[i].text.n > 0);
    }
}

static void fuzz_compiled(gl_str text, struct gl_arena *a)
{
    struct gl_flow *f;
    struct gl_why why = {0};
    if (gl_flow_decode(text, a, &f, &why) == 0) {
        check_round_trip(f, a);
    } else {
        GL_ASSERT(why.text[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size}; /* its end is guarded under ASan */
    if (size && data[0] == 'c') {
        fuzz_compiled((gl_str){text.p + 1, text.n - 1}, &a);
    } else {
        fuzz_source(text, &a);
    }
    gl_arena_done(&a);
    return 0;
}
