/* check_states.c - a message changes its agent's state exactly once: the state's own count rises by
 * one with each message, no message is counted twice over all lives of all nodes, and all messages
 * that the agent sends are committed with it (sim_workers.h describes a state). */
#include <stdio.h>

#include "base/mem.h"
#include "model/bundle/agent.h"
#include "sim/sim_bundles.h"
#include "sim/sim_checks.h"
#include "sim/sim_workers.h"

struct states_state {
    struct gl_map seen; /* "<job> <agent> <message id>" -> the same, allocated */
    bool is_made;
    uint64_t sent[SIM_AGENTS_MAX], put[SIM_AGENTS_MAX]; /* by agent, in this transaction */
};

static bool add(struct states_state *s, const char *key)
{
    gl_str name = gl_str_of(key);
    if (!s->is_made) {
        gl_map_init(&s->seen);
        s->is_made = true;
    }
    if (gl_map_find(&s->seen, name) != NULL) {
        return false;
    }
    char *copy = gl_mem_alloc(name.n + 1);
    memcpy(copy, name.p, name.n);
    gl_map_add(&s->seen, (gl_str){.p = copy, .n = name.n}, copy);
    return true;
}

static void check_change(struct sim_checks *c, struct states_state *s, const struct sim_change *ch)
{
    const struct sim_fact_step *st = ch->step;
    uint32_t agent = (uint32_t)(st - ch->job->steps);
    struct sim_worker_state was = sim_workers_state(st->output, &c->arena);
    struct sim_worker_state now = sim_workers_state(ch->step_now->output, &c->arena);
    char key[256];
    if (now.n == was.n && gl_str_eq(now.last, was.last)) {
        return;
    }
    (void)snprintf(key, sizeof(key), "%.*s %.*s %.*s", GL_STR_ARG(ch->job->id),
                   GL_STR_ARG(st->spec->id), GL_STR_ARG(now.last));
    if (now.n != was.n + 1) {
        sim_world_fail(c->world, "states: %.*s of job %.*s went from %llu messages to %llu",
                       GL_STR_ARG(st->spec->id), GL_STR_ARG(ch->job->id), (unsigned long long)was.n,
                       (unsigned long long)now.n);
    } else if (!add(s, key)) {
        sim_world_fail(c->world, "states: message %.*s has changed the state of %.*s twice",
                       GL_STR_ARG(now.last), GL_STR_ARG(st->spec->id));
    } else if (ch->step_now->processed <= st->r.processed) {
        sim_world_fail(c->world, "states: message %.*s has changed %.*s, which still handles it",
                       GL_STR_ARG(now.last), GL_STR_ARG(st->spec->id));
    }
    s->sent[agent] += now.sent - was.sent;
}

static void judge(struct sim_checks *c, struct states_state *s, const struct sim_fact_job *j)
{
    for (uint32_t i = 0; i < gl_flow_agents_n(j->flow) && i < SIM_AGENTS_MAX; i++) {
        const struct gl_agent_spec *a = gl_flow_agent(j->flow, i);
        bool says = a->kind == GL_AGENT_EXECUTOR || a->kind == GL_AGENT_MODULE;
        if (says && s->sent[i] != s->put[i]) {
            sim_world_fail(c->world,
                           "states: agent %.*s of job %.*s has sent %llu messages, and %llu were "
                           "committed with its state",
                           GL_STR_ARG(a->id), GL_STR_ARG(j->id), (unsigned long long)s->sent[i],
                           (unsigned long long)s->put[i]);
        }
        s->sent[i] = s->put[i] = 0;
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    if (ch->job->flow->bundle == NULL) {
        return;
    }
    if (ch->step == NULL) {
        judge(c, me, ch->job);
    } else if (ch->step->group == NULL &&
               gl_flow_is_unit(ch->job->flow, (uint32_t)(ch->step - ch->job->steps)) &&
               ch->step - ch->job->steps < SIM_AGENTS_MAX) {
        check_change(c, me, ch);
    }
}

/* A message of its own (type "hop") exists, or cannot be delivered. A dead letter that is removed
 * was redriven by a client: the message that replaces it was not sent by the agent. */
static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct states_state *s = me;
    struct gl_json j;
    bool is_new = before->rev == 0 && after->rev != 0;
    bool is_dead = gl_str_is(before->kind, "deadletter");
    bool is_redriven = is_dead && after->rev == 0;
    if ((!is_new && !is_redriven) || (!gl_str_is(before->kind, "letter") && !is_dead) ||
        gl_json_parse(&j, is_new ? after->value : before->value, GL_RECORD_BYTES_MAX, &c->arena,
                      NULL) != 0) {
        return;
    }
    gl_jnode root = gl_json_root(&j);
    gl_str type = gl_json_str(&j, gl_json_get(&j, root, "type"), &c->arena);
    gl_str reason = gl_json_str(&j, gl_json_get(&j, root, "reason"), &c->arena);
    int64_t from = gl_flow_find_agent(ch->job->flow,
                                      gl_json_str(&j, gl_json_get(&j, root, "from"), &c->arena));
    bool was_there =
        is_new && gl_str_is(reason, "its time to live has expired"); /* as a queued message */
    if (gl_str_is(type, "hop") && from >= 0 && from < SIM_AGENTS_MAX && !was_there) {
        s->put[from] += is_redriven ? -1ull : 1; /* it is completed in this transaction */
    }
}

static void on_torn(struct sim_checks *c, void *me, struct sim_fact_job *j)
{
    struct states_state *s = me;
    (void)c;
    (void)j;
    memset(s->sent, 0, sizeof(s->sent));
    memset(s->put, 0, sizeof(s->put));
}

static void done(void *me)
{
    struct states_state *s = me;
    char *copy;
    for (size_t i = 0; s->is_made && (copy = gl_map_next(&s->seen, &i)) != NULL;) {
        gl_mem_free(copy);
    }
    if (s->is_made) {
        gl_map_done(&s->seen);
    }
}

const struct sim_check sim_check_states = {.name = "states",
                                           .state_bytes = sizeof(struct states_state),
                                           .on_change = on_change,
                                           .on_record = on_record,
                                           .on_torn = on_torn,
                                           .done = done};
