/* fuzz_route - the conditions of an edge (the first line), and the payload they ask about (the
 * rest). The same question has the same answer, and its opposite the opposite one; who does not
 * read the state does not depend on it. */
#include <stdint.h>

#include "base/check.h"
#include "model/bundle/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(gl_str conditions, gl_str payload, struct gl_arena *a)
{
    struct gl_message m;
    struct gl_route_facts facts = {.payload = payload, .incoming = &m};
    struct gl_json j;
    struct gl_why why = {0};
    bool first, is_condition;

    gl_message_defaults(&m);
    m.type = GL_S("t");
    m.headers = GL_S("{\"mn.workflow.step_id\":\"s\",\"h\":{\"i\":1}}");
    m.body = payload;
    first = gl_route_holds(conditions, &facts, a);
    GL_ASSERT(gl_route_holds(conditions, &facts, a) == first);
    if (!gl_route_reads_state(conditions)) {
        facts.state = GL_S("{\"x\":[1,2,{\"y\":\"z\"}]}");
        GL_ASSERT(gl_route_holds(conditions, &facts, a) == first);
        facts.state = (gl_str){0};
    }
    if (gl_json_parse(&j, conditions, 1 << 16, a, NULL) != 0) {
        return;
    }
    is_condition = gl_route_check(&j, gl_json_root(&j), &why) == 0;
    GL_ASSERT(is_condition || why.text[0]);
    if (is_condition && gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        gl_str no = gl_str_fmt(a, "{\"not\":%.*s}", GL_STR_ARG(conditions));

        if (gl_json_parse(&j, no, 1 << 16, a, NULL) == 0) { /* it may be too long now */
            GL_ASSERT(gl_route_holds(no, &facts, a) == !first);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str rest, all = {gl_arena_copy(&a, data, size), size};
    gl_str line = gl_str_cut(all, '\n', &rest);
    gl_str conditions = {gl_arena_copy(&a, line.p, line.n), line.n};

    ask(conditions, (gl_str){gl_arena_copy(&a, rest.p, rest.n), rest.n}, &a);
    gl_arena_done(&a);
    return 0;
}
