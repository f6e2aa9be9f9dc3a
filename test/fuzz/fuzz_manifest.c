/* fuzz_manifest - a bundle's manifest. What is accepted must compile, be read back, and compile to
 * the same bytes; what is refused says why, and where. The first byte chooses: 's' is followed by
 * settings, one a line; 'o' by an overlay, a line feed and a manifest; 'b' by a configuration, a
 * line feed and a manifest; anything else begins a manifest. */
#include <stdint.h>

#include "base/check.h"
#include "model/bundle/manifest.h"

enum { BYTES_MAX = 1 << 16, SETS_MAX = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gl_payload payloads[] = {
    {.path = {"data.txt", 8}},
    {.path = {"skills/alpha/src/alpha/__init__.py", 34}},
    {.path = {"worker/lib/util.py", 18}},
    {.path = {"worker/run.py", 13}, .executable = true},
};

static const char blob[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void check_round_trip(const struct gl_flow *f, struct gl_arena *a)
{
    struct gl_buf first = {0}, second = {0};
    struct gl_flow *back;
    struct gl_why why;

    gl_flow_encode(f, &first);
    GL_ASSERT(gl_flow_decode(gl_buf_view(&first), a, &back, &why) == 0);
    gl_flow_encode(back, &second);
    GL_ASSERT(gl_str_eq(gl_buf_view(&first), gl_buf_view(&second)));
    GL_ASSERT(gl_flow_agents_n(back) > 0);
    for (uint32_t i = 0; i < gl_flow_agents_n(back); i++) {
        const struct gl_agent_spec *x = gl_flow_agent(f, i), *y = gl_flow_agent(back, i);

        GL_ASSERT(gl_flow_find_agent(back, y->id) == i);
        GL_ASSERT(x->step == y->step && x->routes_n == y->routes_n && x->tries == y->tries);
        GL_ASSERT(x->depth_max == y->depth_max && gl_str_eq(x->output_type, y->output_type));
    }
    gl_buf_done(&first);
    gl_buf_done(&second);
}

static void fuzz_manifest(gl_str text, gl_str overlay, gl_str config, struct gl_arena *a)
{
    static struct gl_flow_errors errors;
    struct gl_manifest_given given = {
        .payloads = {payloads, GL_COUNT(payloads)}, .overlay = overlay, .config = config};
    struct gl_json j;
    struct gl_flow *f;

    for (size_t i = 0; i < GL_COUNT(payloads); i++) {
        payloads[i].blob = GL_S(blob);
    }
    if (gl_json_parse(&j, text, BYTES_MAX, a, NULL) != 0) {
        return;
    }
    (void)gl_manifest_is(&j, gl_json_root(&j));
    if (gl_manifest_parse(&j, gl_json_root(&j), &given, a, &f, &errors) == 0) {
        check_round_trip(f, a);
        return;
    }
    GL_ASSERT(errors.total > 0);
    for (size_t i = 0; i < errors.n; i++) {
        GL_ASSERT(errors.items[i].text.n > 0);
        GL_ASSERT(errors.items[i].line > 0 || config.n > 0); /* else it is a mistake of ours */
    }
}

static void fuzz_sets(gl_str text, struct gl_arena *a)
{
    gl_str items[SETS_MAX], out = {0};
    struct gl_strs sets = {.items = items};
    struct gl_why why;
    struct gl_json j;

    while (text.n > 0 && sets.n < SETS_MAX) {
        items[sets.n++] = gl_str_cut(text, '\n', &text);
    }
    if (gl_manifest_config(GL_S("{\"a\":{\"b\":1}}"), GL_S("{\"a\":{\"c\":[]}}"), &sets, a, &out,
                           &why) == 0) {
        GL_ASSERT(gl_json_parse(&j, out, BYTES_MAX * 4, a, NULL) == 0);
    } else {
        GL_ASSERT(why.text[0] != 0);
    }
    if (gl_manifest_overlay(&sets, a, &out, &why) == 0 && out.n > 0) {
        fuzz_manifest(
            GL_S("{\"manifest_version\":1,\"graph_id\":\"g\",\"job_name\":\"j\",\"nodes\":[{"
                 "\"id\":\"a\",\"agent_type\":\"router\",\"role\":\"root\"}]}"),
            out, (gl_str){0}, a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size}; /* its end is guarded under ASan */
    gl_str rest = size > 0 ? (gl_str){text.p + 1, text.n - 1} : text;
    gl_str line;

    if (size > 0 && data[0] == 's') {
        fuzz_sets(rest, &a);
    } else if (size > 0 && data[0] == 'o') {
        line = gl_str_cut(rest, '\n', &rest);
        fuzz_manifest(rest, line, (gl_str){0}, &a);
    } else if (size > 0 && data[0] == 'b') {
        line = gl_str_cut(rest, '\n', &rest);
        fuzz_manifest(rest, (gl_str){0}, line, &a);
    } else {
        fuzz_manifest(text, (gl_str){0}, (gl_str){0}, &a);
    }
    gl_arena_done(&a);
    return 0;
}
