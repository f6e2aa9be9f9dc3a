/* bench_agents.c - messages between native agents, on a store, in one process.
 *
 *   messages   pairs of agents that play ball: one durable message after the other
 *   agents     a million agents, each of which has handled a message and waits */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "bench_node.h"
#include "model/bundle/manifest.h"

static void compile(struct bench *b, const struct gl_buf *text, FILE *to)
{
    struct gl_flow_errors *errors = GL_NEW(&b->arena, struct gl_flow_errors);
    struct gl_manifest_given given = {0};
    struct gl_flow *flow;
    struct gl_json j;
    struct gl_buf out = {0};
    struct gl_why why;

    if (gl_json_parse(&j, gl_buf_view(text), GL_MANIFEST_BYTES_MAX, &b->arena, &why) != 0) {
        bench_fail("manifest", &why);
    }
    if (gl_manifest_parse(&j, gl_json_root(&j), &given, &b->arena, &flow, errors) != 0) {
        (void)gl_why(&why, GL_E_INVALID, "%.*s: %.*s", GL_STR_ARG(errors->items[0].path),
                     GL_STR_ARG(errors->items[0].text));
        bench_fail("manifest", &why);
    }
    gl_flow_encode(flow, &out);
    (void)fwrite(out.p, 1, out.n, to);
    gl_buf_done(&out);
}

/* In a process of its own, like the command line, so that its memory does not count for the node.
 */
static gl_str compile_apart(struct bench *b, const struct gl_buf *text)
{
    FILE *f = tmpfile();
    int status;
    char *flow;
    long n;
    pid_t pid = fork();

    if (pid == 0) {
        compile(b, text, f);
        (void)fflush(f);
        _exit(0);
    }
    if (f == NULL || waitpid(pid, &status, 0) != pid || status != 0) {
        bench_fail("manifest", NULL);
    }
    n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    rewind(f);
    flow = gl_arena_alloc(&b->arena, (size_t)n);
    if (fread(flow, 1, (size_t)n, f) != (size_t)n) {
        bench_fail("manifest", NULL);
    }
    (void)fclose(f);
    return (gl_str){.p = flow, .n = (size_t)n};
}

static void head(struct gl_buf *t, const char *id)
{
    gl_buf_fmt(t, "{\"manifest_version\":\"1.0\",\"graph_id\":\"%s\",\"job_name\":\"%s\"", id, id);
}

static void agent(struct gl_buf *t, const char *comma, const char *name, unsigned i,
                  const char *config)
{
    gl_buf_fmt(t,
               "%s{\"node_id\":\"%s%u\",\"agent_type\":\"module\",\"config\":{\"module\":"
               "\"bench.pingpong\"%s}}",
               comma, name, i, config);
}

gl_str bench_balls(struct bench *b, unsigned pairs, unsigned hops)
{
    struct gl_buf t = {0};
    char config[200];
    gl_str flow;

    head(&t, "balls");
    gl_buf_c(&t, ",\"nodes\":[");
    for (unsigned i = 0; i < pairs; i++) {
        (void)snprintf(config, sizeof(config), ",\"peer\":\"pong%u\"", i);
        agent(&t, i > 0 ? "," : "", "ping", i, config);
        (void)snprintf(config, sizeof(config), ",\"peer\":\"ping%u\"", i);
        agent(&t, ",", "pong", i, config);
    }
    gl_buf_c(&t, "],\"edges\":[],\"entrypoints\":[");
    for (unsigned i = 0; i < pairs; i++) {
        gl_buf_fmt(&t, "%s\"ping%u\"", i > 0 ? "," : "", i);
    }
    gl_buf_c(&t, "],\"initial_inputs\":{");
    for (unsigned i = 0; i < pairs; i++) {
        gl_buf_fmt(&t, "%s\"ping%u\":[{\"left\":%u}]", i > 0 ? "," : "", i, hops - 1);
    }
    gl_buf_c(&t, "}}");
    flow = compile_apart(b, &t);
    gl_buf_done(&t);
    return flow;
}

gl_str bench_scatter(struct bench *b, unsigned items)
{
    struct gl_buf t = {0};
    gl_str flow;

    gl_buf_fmt(
        &t,
        "{\"manifest_version\":\"1.0\",\"graph_id\":\"scatter\",\"job_name\":\"scatter\",\"flow\":{"
        "\"mode\":\"static_dag\",\"nodes\":["
        "{\"node_id\":\"split\",\"agent_type\":\"module\",\"config\":{\"module\":"
        "\"bench.pingpong\",\"scatter\":%u}},"
        "{\"node_id\":\"work\",\"agent_type\":\"module\",\"config\":{\"module\":"
        "\"bench.pingpong\"}},"
        "{\"node_id\":\"collect\",\"agent_type\":\"module\",\"config\":{\"module\":"
        "\"bench.pingpong\"}}],\"edges\":[],"
        "\"steps\":[{\"id\":\"split\"},{\"id\":\"work\"},{\"id\":\"collect\"}],"
        "\"graph\":{\"edges\":[{\"id\":\"e1\",\"from\":\"split\",\"to\":\"work\"},"
        "{\"id\":\"e2\",\"from\":\"work\",\"to\":\"collect\"}]}},"
        "\"entrypoints\":[\"split\"]}",
        items);
    flow = compile_apart(b, &t);
    gl_buf_done(&t);
    return flow;
}

/* Each agent gets exactly one message. */
gl_str bench_idlers(struct bench *b, unsigned agents)
{
    struct gl_buf t = {0};
    gl_str flow;

    head(&t, "idlers");
    gl_buf_c(&t, ",\"policies\":{\"job_type\":\"service\"},\"nodes\":[");
    for (unsigned i = 0; i < agents; i++) {
        agent(&t, i > 0 ? "," : "", "a", i, "");
    }
    gl_buf_c(&t, "],\"edges\":[],\"entrypoints\":[");
    for (unsigned i = 0; i < agents; i++) {
        gl_buf_fmt(&t, "%s\"a%u\"", i > 0 ? "," : "", i);
    }
    gl_buf_c(&t, "],\"initial_inputs\":[{\"left\":0}]}");
    flow = compile_apart(b, &t);
    gl_buf_done(&t);
    return flow;
}
