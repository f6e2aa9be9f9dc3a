/* fuzz_patch - patches of a flow, one per line, each on what the last one has made of it. What is
 * accepted is still a flow; what is refused has changed nothing. */
#include <stdint.h>

#include "base/check.h"
#include "model/bundle/patch.h"
#include "model/flow/flow_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char flow_text[] =
    "{\"format\":3,\"name\":\"f\",\"bundle\":{\"agents\":[{\"id\":\"a\"}],\"dynamic\":{\"enabled\":"
    "true,\"regions\":[{\"id\":\"r\",\"controller\":\"c\",\"exit\":\"f\",\"templates\":[\"t\"],"
    "\"mutable_edges\":[\"cf\"]},{\"id\":\"s\",\"is_fanout\":true,\"controller\":\"c\","
    "\"templates\":[\"t\"]}],\"templates\":[{\"id\":\"t\",\"agent\":\"a\"}]}},\"steps\":["
    "{\"id\":\"@a\",\"driver\":\"worker\",\"argv\":[\"x\"]},"
    "{\"id\":\"c\",\"driver\":\"agent\",\"agent_ids\":[\"a\"]},"
    "{\"id\":\"f\",\"driver\":\"agent\",\"agent_ids\":[\"a\"],\"needs\":[\"c\"],"
    "\"edges\":[{\"id\":\"cf\",\"accepts\":1}]}]}";

static bool has_started(void *owner, uint32_t step)
{
    (void)owner;
    return step == 1 || step == 4;
}

static void check_flow(const struct gl_flow *f, struct gl_arena *a)
{
    struct gl_buf text = {0};
    struct gl_flow *back;
    struct gl_why why = {0};

    gl_flow_encode(f, &text);
    GL_ASSERT(gl_flow_decode(gl_buf_view(&text), a, &back, &why) == 0);
    GL_ASSERT(back->steps.n == f->steps.n);
    GL_ASSERT(back->roots_n == f->roots_n);
    for (uint32_t i = 0; i < f->steps.n; i++) {
        GL_ASSERT(gl_flow_step(f, i)->children_n == gl_flow_step(back, i)->children_n);
    }
    gl_buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str rest = {gl_arena_copy(&a, data, size), size};
    struct gl_patch_job job = {.has_started = has_started, .controller = 1};
    struct gl_patch_report report;
    struct gl_why why = {0};
    struct gl_flow *f;

    GL_ASSERT(gl_flow_decode(gl_str_of(flow_text), &a, &f, &why) == 0);
    for (int i = 0; i < 8 && rest.n > 0; i++) {
        gl_str line = gl_str_cut(rest, '\n', &rest);
        struct gl_flow *next = f;

        why.text[0] = 0;
        if (gl_patch_apply(f, &job, line, &a, &next, &report, &why) == 0) {
            GL_ASSERT(next->steps.n == f->steps.n + report.added_n);
            GL_ASSERT(report.with.n == report.added_n);
            check_flow(next, &a);
            job.patches_n++;
            job.active_n += report.added_n;
        } else {
            GL_ASSERT(why.text[0]);
            GL_ASSERT(next == f);
        }
        check_flow(f, &a);
        f = next;
    }
    gl_arena_done(&a);
    return 0;
}
