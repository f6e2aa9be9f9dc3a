/* check_relays.c - a router or a sensor sends on exactly what it has handled in the same
 * transaction, with the same body. (If its facts were read for an earlier message, it must not use
 * them for this one.) */
#include "model/bundle/agent.h"
#include "sim/sim_checks.h"
#include "sim/sim_messages.h"

enum { MOVES_MAX = 128 };

struct relay_move {
    gl_str from, to, cause, body; /* body: or the hash, if the body is stored apart */
    uint64_t number;
};

struct relays_state { /* of this transaction; gone: or kept, in case of a retry of its step */
    struct relay_move gone[MOVES_MAX], come[MOVES_MAX], sent_again[MOVES_MAX];
    size_t gone_n, come_n, sent_again_n;
    bool is_full;
};

static bool is_relay(const struct gl_flow *f, gl_str agent)
{
    int64_t n = gl_flow_find_agent(f, agent);
    uint8_t kind = n < 0 ? GL_AGENT_EXECUTOR : gl_flow_agent(f, (uint32_t)n)->kind;
    return kind == GL_AGENT_ROUTER || kind == GL_AGENT_SENSOR;
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct relays_state *s = me;
    const struct gl_record *r = after->rev != 0 ? after : before;
    bool is_dead = gl_str_is(r->kind, "deadletter"), comes = before->rev == 0;
    struct gl_message m = {0};
    struct gl_body_ref ref;
    struct relay_move x = {0};
    bool has_ref = false;
    gl_str digits;
    if ((!is_dead && !gl_str_is(r->kind, "letter")) ||
        !sim_messages_read(c->disk, r->id, r->value, &c->arena, &m, &has_ref, &ref)) {
        return;
    }
    struct relay_move *moves = comes ? s->come : is_dead ? s->sent_again : s->gone;
    size_t *n = comes ? &s->come_n : is_dead ? &s->sent_again_n : &s->gone_n;
    (void)gl_str_cut(r->id, '/', &digits);
    if (*n == MOVES_MAX || !gl_str_u64(digits, &x.number)) {
        s->is_full = true;
        return;
    }
    x.from = m.from;
    x.to = m.to;
    x.cause = m.causation_id;
    x.body = has_ref ? ref.sha256 : m.body;
    if (!comes || (is_relay(ch->job->flow, x.from) && x.number > ch->job->r.letters_n)) {
        moves[(*n)++] = x;
    }
}

static bool is_sent_again(const struct relays_state *s, const struct relay_move *x)
{
    for (size_t i = 0; i < s->sent_again_n; i++) {
        const struct relay_move *dead = &s->sent_again[i];
        if (gl_str_eq(dead->from, x->from) && gl_str_eq(dead->cause, x->cause) &&
            gl_str_eq(dead->body, x->body)) {
            return true;
        }
    }
    return false;
}

static bool was_handled(struct sim_checks *c, const struct relays_state *s,
                        const struct sim_fact_job *j, const struct relay_move *x)
{
    for (size_t i = 0; i < s->gone_n; i++) {
        const struct relay_move *gone = &s->gone[i];
        gl_str id =
            gl_str_fmt(&c->arena, "%.*s-%llu", GL_STR_ARG(j->id), (unsigned long long)gone->number);
        if (gl_str_eq(id, x->cause) && gl_str_eq(gone->to, x->from)) {
            return gl_str_eq(gone->body, x->body);
        }
    }
    return false;
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct relays_state *s = me;
    if (ch->job->flow->bundle == NULL || ch->step != NULL) {
        return;
    }
    for (size_t i = 0; i < s->come_n && !s->is_full; i++) {
        const struct relay_move *x = &s->come[i];
        if (!is_sent_again(s, x) && !was_handled(c, s, ch->job, x)) {
            sim_world_fail(c->world,
                           "relays: %.*s of job %.*s sends message %llu for %.*s, which it does "
                           "not handle, or not as it was",
                           GL_STR_ARG(x->from), GL_STR_ARG(ch->job->id),
                           (unsigned long long)x->number, GL_STR_ARG(x->cause));
        }
    }
    s->gone_n = s->come_n = s->sent_again_n = 0;
    s->is_full = false;
}

const struct sim_check sim_check_relays = {.name = "relays",
                                           .state_bytes = sizeof(struct relays_state),
                                           .on_change = on_change,
                                           .on_record = on_record};
