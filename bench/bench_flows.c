#include "base/json.h"
#include "base/limits.h"
#include "bench_node.h"
#include "model/flow/flow.h"

static gl_str compile(struct bench *b, gl_str text)
{
    struct gl_flow_errors *errors = GL_NEW(&b->arena, struct gl_flow_errors);
    struct gl_flow *flow;
    struct gl_json j;
    struct gl_buf out = {0};
    gl_str compiled;

    if (gl_json_parse(&j, text, GL_FLOW_BYTES_MAX, &b->arena, NULL) != 0 ||
        gl_flow_parse(&j, gl_json_root(&j), NULL, &b->arena, &flow, errors) != 0) {
        bench_fail("flow", NULL);
    }
    gl_flow_encode(flow, &out);
    compiled = gl_str_dup(&b->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return compiled;
}

gl_str bench_one_step(struct bench *b, const char *action)
{
    return compile(b, gl_str_fmt(&b->arena, "{\"steps\":{\"a\":{%s}}}", action));
}

gl_str bench_chain(struct bench *b, unsigned n)
{
    struct gl_buf t = {0};
    gl_str flow;

    gl_buf_c(&t, "{\"steps\":{\"s0\":{\"noop\":true}");
    for (unsigned i = 1; i < n; i++) {
        gl_buf_fmt(&t, ",\"s%u\":{\"noop\":true,\"needs\":[\"s%u\"]}", i, i - 1);
    }
    gl_buf_c(&t, "}}");
    flow = compile(b, gl_str_dup(&b->arena, gl_buf_view(&t)));
    gl_buf_done(&t);
    return flow;
}

gl_str bench_fan_out(struct bench *b, unsigned n)
{
    struct gl_buf t = {0};
    gl_str flow;

    gl_buf_c(&t, "{\"steps\":{\"root\":{\"noop\":true}");
    for (unsigned i = 0; i < n; i++) {
        gl_buf_fmt(&t, ",\"c%u\":{\"noop\":true,\"needs\":[\"root\"]}", i);
    }
    gl_buf_c(&t, ",\"join\":{\"noop\":true,\"needs\":[");
    for (unsigned i = 0; i < n; i++) {
        gl_buf_fmt(&t, "%s\"c%u\"", i > 0 ? "," : "", i);
    }
    gl_buf_c(&t, "]}}}");
    flow = compile(b, gl_str_dup(&b->arena, gl_buf_view(&t)));
    gl_buf_done(&t);
    return flow;
}
