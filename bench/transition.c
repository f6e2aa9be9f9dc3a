/* transition.c - does a transition cost more in a long job than in a short one?
 *
 * The core alone, over a store that commits at once and an executor that ends everything at once:
 * chains of 1,000 and of 100,000 steps, the same number of transitions each, alternating, so that
 * noise affects both alike. */
#define _GNU_SOURCE

#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TRANSITIONS = 100000, ROUNDS = 5 };

struct rig {
    struct gl_trace trace;
    struct gl_core *core;
    struct gl_arena arena, batch;
    struct { /* the attempt that runs */
        char job[32], attempt[64];
        bool is_set;
    } running;
    unsigned jobs;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void feed(struct rig *r, struct gl_event ev);

static void on_effect(struct rig *r, const struct gl_effect *e)
{
    if (e->type == GL_FX_COMMIT) {
        feed(r, (struct gl_event){.type = GL_EV_DONE, .job = e->job, .done = {.op = e->op}});
    } else if (e->type == GL_FX_START) {
        (void)snprintf(r->running.job, sizeof(r->running.job), "%.*s", GL_STR_ARG(e->job));
        (void)snprintf(r->running.attempt, sizeof(r->running.attempt), "%.*s",
                       GL_STR_ARG(e->attempt));
        r->running.is_set = true;
        gl_spec_unref(e->spec);
        feed(r, (struct gl_event){.type = GL_EV_STARTED,
                                  .job = e->job,
                                  .started = {.attempt = e->attempt, .number = e->start_number}});
    } else if (e->type == GL_FX_FIND) {
        feed(r, (struct gl_event){.type = GL_EV_FOUND});
    } else if (e->type == GL_FX_LIST) {
        feed(r, (struct gl_event){.type = GL_EV_LISTED});
    }
}

static void feed(struct rig *r, struct gl_event ev)
{
    struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};

    ev.now = 1000;
    ev.context = GL_S("default");
    gl_core_step(r->core, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        on_effect(r, &out.items[i]);
    }
    gl_arena_done(&arena);
}

static gl_str chain(struct rig *r, unsigned n)
{
    static struct gl_flow_errors errors;
    struct gl_buf t = {0}, out = {0};
    struct gl_flow *flow;
    struct gl_json j;
    gl_str text;

    gl_buf_c(&t, "{\"steps\":{\"s0\":{\"noop\":true}");
    for (unsigned i = 1; i < n; i++) {
        gl_buf_fmt(&t, ",\"s%u\":{\"noop\":true,\"needs\":[\"s%u\"]}", i, i - 1);
    }
    gl_buf_c(&t, "}}");
    if (gl_json_parse(&j, gl_buf_view(&t), GL_FLOW_BYTES_MAX, &r->arena, NULL) != 0 ||
        gl_flow_parse(&j, gl_json_root(&j), NULL, &r->arena, &flow, &errors) != 0) {
        exit(1);
    }
    gl_flow_encode(flow, &out);
    text = gl_str_dup(&r->arena, gl_buf_view(&out));
    gl_buf_done(&t);
    gl_buf_done(&out);
    return text;
}

/* Seconds for TRANSITIONS transitions in jobs of n steps; submitting them is not counted. */
static double run(struct rig *r, gl_str flow, unsigned n)
{
    char job[32];
    double spent = 0;

    for (unsigned done = 0; done < TRANSITIONS; done += n) {
        double began;

        (void)snprintf(job, sizeof(job), "01HZZZZZZZZZZZZZZZZZ%06u", ++r->jobs);
        feed(r,
             (struct gl_event){
                 .type = GL_EV_SUBMIT,
                 .job = gl_str_of(job),
                 .submit = {.flow = flow, .flow_hash = n > 1000 ? GL_S("long") : GL_S("short")}});
        began = now_s();
        while (r->running.is_set) {
            char attempt[64], of[32];

            r->running.is_set = false;
            (void)snprintf(attempt, sizeof(attempt), "%s", r->running.attempt);
            (void)snprintf(of, sizeof(of), "%s", r->running.job);
            feed(r, (struct gl_event){.type = GL_EV_ENDED,
                                      .job = gl_str_of(of),
                                      .ended = {.attempt = gl_str_of(attempt),
                                                .token = 1,
                                                .result = {.end = GL_EXEC_EXITED}}});
        }
        spent += now_s() - began;
    }
    return spent;
}

int main(void)
{
    struct rig *r = calloc(1, sizeof(*r));
    struct gl_core_pool pool = {.name = GL_S("default"), .slots = 4};
    struct gl_core_config config = {
        .context = GL_S("default"), .pools = &pool, .pools_n = 1, .trace = &r->trace};
    double best[2] = {1e9, 1e9};
    gl_str flows[2];

    r->core = gl_core_new(&config);
    feed(r, (struct gl_event){.type = GL_EV_SESSION, .session = {.session = GL_S("n#1")}});
    feed(r, (struct gl_event){.type = GL_EV_EXEC_UP, .exec_up = {.epoch = GL_S("e")}});
    flows[0] = chain(r, 1000);
    flows[1] = chain(r, 100000);
    for (int i = 0; i < ROUNDS; i++) {
        double t0 = run(r, flows[0], 1000), t1 = run(r, flows[1], 100000);

        best[0] = t0 < best[0] ? t0 : best[0];
        best[1] = t1 < best[1] ? t1 : best[1];
    }
    printf("transition, 1,000 steps   %7.0f ns of CPU\n", best[0] / TRANSITIONS * 1e9);
    printf("transition, 100,000 steps %7.0f ns of CPU   ratio %.2f\n", best[1] / TRANSITIONS * 1e9,
           best[1] / best[0]);
    gl_core_free(r->core);
    gl_arena_done(&r->arena);
    free(r);
    return 0;
}
