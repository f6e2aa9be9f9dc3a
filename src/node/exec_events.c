/* exec_events.c - what the node asks the executor about attempts (attach, stop, list, ack), and the
 * events the executor sends by itself.
 *
 * Answers and events become events of the core. Nothing is decided here. */
#include "base/check.h"
#include "node/node_state.h"

#include "node/blobs.h"
#include "node/log_copies.h"

struct exec_calls {
    struct gl_chain_call listing; /* the list of the executor's attempts */
};

struct exec_call { /* an attach or a stop in flight */
    struct gl_chain chain;
    struct gl_attempt_key key;
    uint64_t token;
    gl_str epoch;
};

static const struct gl_chain_kind exec_calls = {.bytes = sizeof(struct exec_call)};

static struct exec_calls *own(const struct gl_node *n)
{
    return n->parts[GL_PART_EXEC_EVENTS];
}

static struct exec_call *exec_call_new(struct gl_node *n, const struct gl_effect *e)
{
    struct exec_call *c = gl_chain_new(n, &exec_calls, e->context);

    GL_ASSERT(e->attempt.n > 0);
    GL_ASSERT(e->job.n > 0);
    c->key = gl_starts_key(&c->chain.arena, e);
    c->token = e->token;
    c->epoch = gl_str_dup(&c->chain.arena, e->epoch);
    return c;
}

static struct gl_event_result result_of(const struct gl_exec_result *r)
{
    return (struct gl_event_result){.output = r->output,
                                    .end = (uint8_t)r->end,
                                    .exit_code = r->exit_code,
                                    .signal = r->signal,
                                    .started_at = r->started_at,
                                    .ended_at = r->ended_at,
                                    .error = r->error};
}

static void on_attached(struct gl_exec_req *req)
{
    struct exec_call *c = req->owner;
    struct gl_event ev = {.type = GL_EV_ATTACHED,
                          .context = c->key.context,
                          .job = c->key.job,
                          .attached = {.attempt = c->key.attempt,
                                       .token = c->token,
                                       .code = req->status,
                                       .state = (uint8_t)req->state}};

    GL_ASSERT(c->key.attempt.n > 0);
    if (req->status == 0 && req->state == GL_EXEC_ENDED) {
        ev.attached.result = result_of(&req->result);
    }
    if (req->status == 0 && req->state == GL_EXEC_RUNNING) {
        gl_log_copies_on_running(c->chain.node, &c->key);
    } else if (req->status == 0 && req->state != GL_EXEC_NEVER) {
        gl_log_copies_on_ended(c->chain.node, &c->key);
    }
    gl_node_feed(c->chain.node, &ev);
    gl_chain_end(&c->chain);
}

static void on_stopped(struct gl_exec_req *req)
{
    struct exec_call *c = req->owner;

    /* Success shows when the attempt ends; if it was not delivered, the core asks again. */
    gl_chain_end(&c->chain);
}

/* A start of the same attempt that has not been sent yet must be cancelled first. Otherwise the
 * executor would answer "never", and the attempt would start afterwards. */
void gl_exec_events_attach(struct gl_node *n, const struct gl_effect *e)
{
    struct exec_call *c = exec_call_new(n, e);

    GL_ASSERT(e->token > 0);
    GL_ASSERT(e->type == GL_FX_ATTACH);
    gl_starts_cancel(n, e);
    n->ports.exec->ops->attach(n->ports.exec, gl_chain_exec(&c->chain, on_attached), &c->key,
                               c->token, c->epoch);
}

void gl_exec_events_stop(struct gl_node *n, const struct gl_effect *e)
{
    struct exec_call *c = exec_call_new(n, e);

    GL_ASSERT(e->grace_ms >= 0);
    GL_ASSERT(e->type == GL_FX_STOP);
    gl_starts_cancel(n, e);
    n->ports.exec->ops->stop(n->ports.exec, gl_chain_exec(&c->chain, on_stopped), &c->key, c->token,
                             e->grace_ms);
}

void gl_exec_events_ack(struct gl_node *n, const struct gl_effect *e)
{
    struct gl_attempt_key key = {.context = e->context, .job = e->job, .attempt = e->attempt};

    GL_ASSERT(e->attempt.n > 0);
    GL_ASSERT(e->type == GL_FX_ACK);
    gl_starts_cancel(n, e);
    gl_log_copies_on_acked(n, &key);
    n->ports.exec->ops->ack(n->ports.exec, &key, e->token);
}

static void on_list(struct gl_exec_req *req)
{
    struct gl_node *n = req->owner;
    struct gl_arena scratch = {0};
    struct gl_event_info *infos = GL_NEW_ARRAY(&scratch, struct gl_event_info, req->infos_n + 1);
    struct gl_event ev = {.type = GL_EV_LISTED, .listed = {.code = req->status}};

    for (size_t i = 0; i < req->infos_n && req->status == 0; i++) {
        const struct gl_exec_info *x = &req->infos[i];

        infos[i] = (struct gl_event_info){.context = x->key.context,
                                          .job = x->key.job,
                                          .attempt = x->key.attempt,
                                          .token = x->token,
                                          .state = (uint8_t)x->state};
        ev.listed.infos.n++;
    }
    ev.listed.infos.items = infos;
    gl_node_feed(n, &ev);
    gl_arena_done(&scratch);
    GL_ASSERT(ev.listed.infos.n <= req->infos_n);
}

void gl_exec_events_list(struct gl_node *n)
{
    n->ports.exec->ops->list(n->ports.exec, gl_chain_call_exec(&own(n)->listing, n, on_list, n));
}

/* ---- events of the executor ---- */

static void on_up(void *owner, gl_str epoch)
{
    struct gl_node *n = owner;
    struct gl_event ev = {.type = GL_EV_EXEC_UP, .exec_up = {.epoch = epoch}};

    n->exec_up = true;
    gl_sessions_limit_exec(n); /* before it gets anything to start */
    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

static void on_down(void *owner, const char *why)
{
    struct gl_node *n = owner;
    struct gl_event ev = {.type = GL_EV_EXEC_DOWN, .exec_down = {.why = gl_str_of(why)}};

    n->exec_up = false;
    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

static void on_ended(void *owner, const struct gl_attempt_key *key, uint64_t token,
                     const struct gl_exec_result *result)
{
    struct gl_node *n = owner;
    struct gl_event ev = {
        .type = GL_EV_ENDED,
        .context = key->context,
        .job = key->job,
        .ended = {.attempt = key->attempt, .token = token, .result = result_of(result)}};

    gl_blobs_on_ended(n->blobs, &ev);
    gl_log_copies_on_ended(n, key);
    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

static void on_beacon(void *owner, const struct gl_attempt_key *key, uint64_t token)
{
    struct gl_node *n = owner;
    struct gl_event ev = {.type = GL_EV_BEACON,
                          .context = key->context,
                          .job = key->job,
                          .beacon = {.attempt = key->attempt, .token = token}};

    gl_node_feed(n, &ev);
    gl_node_rearm(n);
}

static void on_said(void *owner, const struct gl_attempt_key *key, uint64_t token, gl_str line)
{
    struct gl_event ev = {.type = GL_EV_SAID,
                          .context = key->context,
                          .job = key->job,
                          .said = {.attempt = key->attempt, .token = token, .why = line}};

    gl_node_feed(owner, &ev);
    gl_node_rearm(owner);
}

struct gl_exec_events gl_exec_events_callbacks(struct gl_node *n)
{
    return (struct gl_exec_events){
        .owner = n,
        .up = on_up,
        .down = on_down,
        .ended = on_ended,
        .beacon = on_beacon,
        .said = on_said,
    };
}

const struct gl_node_part gl_exec_events_part = {.bytes = sizeof(struct exec_calls)};
