/* Records as a damaged disk or a stranger could leave them: the core refuses them or lives with
 * them, but never dies of them.
 *
 * The input is the job's record, then its steps', one per line. */
#include "core/core.h"
#include "model/flow/flow.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static const char flow_text[] =
    "{\"steps\":{\"a\":{\"noop\":true,\"retry\":3},"
    "\"b\":{\"noop\":true,\"needs\":[\"a\"],\"unsafe\":true},"
    "\"c\":{\"noop\":true,\"needs\":[\"a\",\"b\"],\"trigger_rule\":\"one_success\","
    "\"heartbeat\":5}}}";

static gl_str compile(struct gl_arena *a)
{
    static struct gl_flow_errors errors;
    struct gl_flow *flow;
    struct gl_json j;
    struct gl_buf out = {0};
    gl_str text;

    if (gl_json_parse(&j, GL_S(flow_text), 1 << 20, a, NULL) != 0 ||
        gl_flow_parse(&j, gl_json_root(&j), NULL, a, &flow, &errors) != 0) {
        abort();
    }
    gl_flow_encode(flow, &out);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static void step(struct gl_core *c, struct gl_event ev, gl_ms now)
{
    struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};

    ev.now = now;
    ev.context = GL_S("default");
    gl_core_step(c, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        const struct gl_effect *e = &out.items[i];

        if (e->spec != NULL) {
            gl_spec_unref(e->spec);
        }
        if (e->type == GL_FX_COMMIT) {
            step(c, (struct gl_event){.type = GL_EV_DONE, .job = e->job, .done = {.op = e->op}},
                 now);
        }
    }
    gl_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const gl_str job = {.p = "01HZZZZZZZZZZZZZZZZZZZZZZZ", .n = 26};
    struct gl_arena a = {0};
    struct gl_trace trace = {0};
    struct gl_core_pool pool = {.name = GL_S("default"), .slots = 2};
    struct gl_core_config config = {
        .context = GL_S("default"), .pools = &pool, .pools_n = 1, .trace = &trace};
    struct gl_core *c = gl_core_new(&config);
    struct gl_event_record records[8] = {0};
    struct gl_event ev = {.type = GL_EV_LOADED, .job = job, .loaded = {.flow = compile(&a)}};
    gl_str rest = {.p = (const char *)data, .n = size};

    while (rest.n > 0 && ev.loaded.records.n < 8) {
        struct gl_event_record *r = &records[ev.loaded.records.n++];

        *r = (struct gl_event_record){.value = gl_str_cut(rest, '\n', &rest),
                                      .rev = 1,
                                      .token = 1,
                                      .owner = GL_S("old"),
                                      .owner_dead = true};
    }
    ev.loaded.records.items = records;
    step(c, (struct gl_event){.type = GL_EV_SESSION, .session = {.session = GL_S("n#1")}}, 1);
    step(c, (struct gl_event){.type = GL_EV_FOUND}, 1);
    step(c, (struct gl_event){.type = GL_EV_EXEC_UP, .exec_up = {.epoch = GL_S("e")}}, 1);
    step(c, (struct gl_event){.type = GL_EV_COMMAND, .job = job, .command = {.request = 1}}, 1);
    if (ev.loaded.records.n > 0) {
        step(c, ev, 1000);
        step(c,
             (struct gl_event){
                 .type = GL_EV_ENDED, .job = job, .ended = {.attempt = GL_S("a:attempt:1")}},
             2000);
        step(c,
             (struct gl_event){.type = GL_EV_COMMAND,
                               .job = job,
                               .command = {.verb = GL_CMD_RESUME, .request = 2}},
             2000);
        step(c,
             (struct gl_event){.type = GL_EV_COMMAND,
                               .job = job,
                               .command = {.verb = GL_CMD_CANCEL, .request = 3}},
             2000);
        step(c, (struct gl_event){.type = GL_EV_TICK}, 1000000);
        step(c, (struct gl_event){.type = GL_EV_TICK}, 2000000);
    }
    gl_core_free(c);
    gl_arena_done(&a);
    return 0;
}
