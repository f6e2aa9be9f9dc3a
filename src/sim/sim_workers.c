#include "sim/sim_workers.h"

#include <stdio.h>

#include "base/check.h"
#include "model/bundle/worker_output.h"
#include "sim/sim_bundles.h"
#include "sim/sim_patches.h"

enum {
    EMITS_MAX = 3,
    NUMBER_MAX = 40,    /* messages with higher numbers cause no others */
    ITEMS_MAX = 5,      /* of a scatter, ... */
    ITEMS_WIDE = 600,   /* ... mostly: more than one transaction makes */
    LARGE_BYTES = 3000, /* of a message whose text has a separate record */
    TTL_MS = 3000,
    NEAR = 8, /* to the usual priority: messages wait for seconds, each of which is a point */
};

struct sim_worker_state sim_workers_state(gl_str text, struct gl_arena *a)
{
    struct sim_worker_state s = {0};
    struct gl_json j;
    if (text.n == 0 || gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        return s;
    }
    gl_jnode root = gl_json_root(&j);
    (void)gl_json_u64(&j, gl_json_get(&j, root, "n"), &s.n); /* 0: it is not one */
    (void)gl_json_u64(&j, gl_json_get(&j, root, "sent"), &s.sent);
    s.last = gl_json_str(&j, gl_json_get(&j, root, "last"), a);
    s.grown = gl_json_str(&j, gl_json_get(&j, root, "grown"), a);
    return s;
}

/* "<job>-<number>", or "<job>-<number>.<attempt>". */
static uint64_t number_of(gl_str message_id)
{
    gl_str rest, tail;
    uint64_t number = 0;
    (void)gl_str_cut(message_id, '-', &rest);
    return gl_str_u64(gl_str_cut(rest, '.', &tail), &number) ? number : UINT64_MAX;
}

size_t sim_workers_size(const struct sim_world *w, struct gl_rng *r)
{
    if (w->bundles.body_bytes > 0 && gl_rng_chance(r, w->bundles.bodies)) {
        return w->bundles.body_bytes + (size_t)gl_rng_below(r, LARGE_BYTES);
    }
    return gl_rng_chance(r, 80000) ? LARGE_BYTES : 1;
}

int64_t sim_workers_priority(struct gl_rng *r)
{
    return gl_rng_chance(r, 100000) ? gl_rng_range(r, -5, GL_MESSAGE_PRIORITY_MAX + 5)
                                    : gl_rng_range(r, -NEAR, NEAR) + GL_MESSAGE_PRIORITY;
}

/* Messages without a receiver follow the routes, all with the same body. */
static uint32_t write_emits(const struct sim_world *world, struct gl_jw *w, struct gl_rng *r,
                            uint64_t number)
{
    uint32_t n = number > NUMBER_MAX ? 0 : (uint32_t)gl_rng_below(r, EMITS_MAX + 1), sent = 0;
    struct gl_buf text = {0};
    gl_jw_key(w, "emit_messages");
    gl_jw_array(w);
    for (uint32_t i = 0; i < n; i++) {
        char name[8];
        bool is_routed = gl_rng_chance(r, 150000);
        (void)snprintf(name, sizeof(name), "a%u", (unsigned)gl_rng_below(r, SIM_AGENTS_MAX));
        gl_buf_reset(&text);
        gl_buf_fmt(&text, "{\"agent_id\":\"s%u\",\"i\":%u,\"n\":%llu,\"text\":\"%*u\"}",
                   (unsigned)gl_rng_below(r, 4), i, (unsigned long long)number,
                   (int)sim_workers_size(world, r), i);
        gl_jw_object(w);
        if (!is_routed) {
            gl_jw_key(w, "to");
            gl_jw_c(w, name);
        }
        gl_jw_key(w, "type");
        gl_jw_c(w, is_routed ? "made" : "hop");
        gl_jw_key(w, "body");
        gl_jw_raw(w, gl_buf_view(&text));
        if (gl_rng_chance(r, 80000)) {
            gl_jw_key(w, "ttl_ms");
            gl_jw_i64(w, gl_rng_range(r, 1, TTL_MS));
        }
        if (world->bundles.priorities > 0 && gl_rng_chance(r, world->bundles.priorities)) {
            gl_jw_key(w, "priority");
            gl_jw_i64(w, sim_workers_priority(r));
        }
        gl_jw_end(w);
        sent += !is_routed;
    }
    gl_jw_end(w);
    gl_buf_done(&text);
    return sent;
}

static void write_items(struct gl_jw *w, struct gl_rng *r)
{
    uint64_t n = gl_rng_chance(r, 20000) ? ITEMS_WIDE : gl_rng_below(r, ITEMS_MAX + 1);
    char name[8];
    (void)snprintf(name, sizeof(name), "t%u", (unsigned)gl_rng_below(r, SIM_LEDGER_MAX));
    gl_jw_key(w, "target");
    gl_jw_c(w, name);
    gl_jw_key(w, "items");
    gl_jw_array(w);
    for (uint64_t i = 0; i < n; i++) {
        gl_jw_u64(w, i);
    }
    gl_jw_end(w);
}

static void write_branches(struct gl_jw *w, struct gl_rng *r)
{
    gl_jw_key(w, "branches");
    gl_jw_array(w);
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "t%u", (unsigned)gl_rng_below(r, SIM_LEDGER_MAX));
        gl_jw_c(w, name);
    }
    gl_jw_end(w);
}

/* True: it requests a change of its job's flow, and reports nothing else about its step. */
static bool write_patch(struct gl_jw *w, struct gl_rng *r, const struct sim_command *cmd,
                        const struct gl_message *m, gl_str before,
                        char ret_grown[static SIM_PATCHES_GROWN])
{
    struct gl_buf payload = {0};
    struct gl_jw inner;
    uint64_t number = number_of(m->message_id);
    gl_jw_init(&inner, &payload);
    bool has = number <= NUMBER_MAX &&
               sim_patches_write(&inner, r, gl_buf_view(&cmd->given), m, number, before, ret_grown);
    if (has) {
        gl_jw_key(w, "events");
        gl_jw_array(w);
        gl_jw_object(w);
        gl_jw_key(w, "type");
        gl_jw_c(w, "workflow_graph_patch");
        gl_jw_key(w, "payload");
        gl_jw_raw(w, gl_buf_view(&payload));
        gl_jw_end(w);
        gl_jw_end(w);
    }
    gl_buf_done(&payload);
    return has;
}

static void write_events(struct gl_jw *w, struct gl_rng *r)
{
    static const char *const types[] = {"workflow_step_partial",
                                        "workflow_step_failed",
                                        "workflow_step_skipped",
                                        "workflow_step_branch",
                                        "workflow_step_scatter",
                                        "workflow_step_scatter",
                                        "progress"};
    if (!gl_rng_chance(r, 350000)) {
        return;
    }
    size_t which = (size_t)gl_rng_below(r, GL_COUNT(types));
    gl_jw_key(w, "events");
    gl_jw_array(w);
    gl_jw_object(w);
    gl_jw_key(w, "type");
    gl_jw_c(w, types[which]);
    gl_jw_key(w, "payload");
    gl_jw_object(w);
    if (which == 2) {
        gl_jw_key(w, "skip_downstream");
        gl_jw_bool(w, gl_rng_chance(r, 500000));
    } else if (which == 3) {
        write_branches(w, r);
    } else if (which == 4 || which == 5) {
        write_items(w, r);
    }
    gl_jw_end(w);
    gl_jw_end(w);
    gl_jw_end(w);
}

static void write_document(const struct sim_world *w, const struct sim_command *cmd,
                           struct gl_arena *a, struct gl_buf *out)
{
    struct gl_message m = {0};
    struct gl_rng r;
    struct gl_jw jw;
    gl_str state = gl_buf_view(&cmd->state);
    struct sim_worker_state s = sim_workers_state(state, a);
    char grown[SIM_PATCHES_GROWN];
    (void)gl_message_read(gl_buf_view(&cmd->message), a, &m, NULL); /* written by the node */
    gl_rng_init(&r, w->seed ^ gl_str_hash(m.message_id) ^ gl_str_hash(state) * 3);
    gl_jw_init(&jw, out);
    gl_jw_object(&jw);
    s.sent += write_emits(w, &jw, &r, number_of(m.message_id));
    (void)snprintf(grown, sizeof(grown), "%.*s", GL_STR_ARG(s.grown));
    if (!write_patch(&jw, &r, cmd, &m, s.grown, grown)) {
        write_events(&jw, &r);
    }
    if (gl_rng_chance(&r, 150000)) {
        gl_jw_key(&jw, gl_rng_chance(&r, 800000) ? "complete_step" : "complete_run");
        gl_jw_bool(&jw, true);
    }
    gl_jw_key(&jw, "next_state");
    gl_jw_object(&jw);
    gl_jw_key(&jw, "n");
    gl_jw_u64(&jw, s.n + 1);
    gl_jw_key(&jw, "sent");
    gl_jw_u64(&jw, s.sent);
    gl_jw_key(&jw, "last");
    gl_jw_str(&jw, m.message_id);
    if (grown[0] != '\0') {
        gl_jw_key(&jw, "grown");
        gl_jw_c(&jw, grown);
    }
    gl_jw_end(&jw);
    gl_jw_end(&jw);
}

bool sim_workers_line(const struct sim_world *w, const struct sim_process *p, uint32_t number,
                      char ret[static SIM_WORKERS_LINE])
{
    struct gl_rng r;
    gl_rng_init(&r, w->seed ^ gl_str_hash(p->job) ^ gl_str_hash(p->attempt) * 5 ^ number);
    uint64_t what = gl_rng_below(&r, 10);
    if (what < 6) {
        (void)snprintf(ret, SIM_WORKERS_LINE, GL_EXEC_BEACON "{\"status\":\"working\"}");
    } else if (what < 9) {
        (void)snprintf(ret, SIM_WORKERS_LINE,
                       GL_EXEC_SAYS
                       "{\"type\":\"progress\",\"payload\":{\"of\":\"%.*s\",\"n\":%u}}",
                       GL_STR_ARG(p->attempt), number);
    } else {
        (void)snprintf(ret, SIM_WORKERS_LINE, GL_EXEC_SAYS "{\"type\":");
    }
    return what < 6;
}

/* The interval between its lines, if there are any. */
static gl_ms draw_says(const struct sim_world *w, const struct sim_command *cmd)
{
    struct gl_rng r;
    gl_rng_init(&r, w->seed ^ gl_str_hash(cmd->job) ^ gl_str_hash(cmd->attempt) * 7);
    return gl_rng_chance(&r, 600000) ? gl_rng_range(&r, 50, 2000) : 0;
}

void sim_workers_speak(const struct sim_world *w, const struct sim_command *cmd,
                       struct sim_behaviour *b, struct gl_buf *keep)
{
    struct gl_arena a = {0};
    struct gl_buf text = {0};
    struct gl_worker_result r = {0};
    bool ok = b->result.end == GL_EXEC_EXITED && b->result.exit_code == 0;
    b->result.output = (gl_str){0};
    b->says_ms = cmd->is_module ? 0 : draw_says(w, cmd);
    b->mute = b->mute && cmd->timeout_ms > 0; /* else it is never stopped, which is correct */
    if (b->result.end != GL_EXEC_EXITED) {
        return;
    }
    if (ok) {
        write_document(w, cmd, &a, cmd->is_module ? keep : &text);
        r.stdout_text = gl_buf_view(&text);
    } else if (gl_str_hash(cmd->attempt) % 2 == 0) {
        r.stderr_text = GL_S("connection reset");
    }
    r.stdout_bytes = r.stdout_text.n;
    if (!cmd->is_module) {
        gl_worker_result_write(&r, keep);
    }
    b->result.output = gl_buf_view(keep);
    gl_buf_done(&text);
    gl_arena_done(&a);
}
