/* renewal.c - sends renewals, and derives from their answers how long the session is valid and
 * whether this node may judge others. Only a renewal that succeeded moves `valid_until` later. */
#include "core/cluster/renewal.h"

#include "base/check.h"
#include "core/component.h"

enum {
    RETRY_MS = 500,
    MARGIN_MS = 100,     /* plus a tenth of the TTL: clocks run at slightly different speeds */
    JUDGE_MS_MIN = 3000, /* other nodes need time to reconnect, however short the TTL is */
};

static void extend_validity(struct gl_core *c, gl_ms until)
{
    c->renewal.valid_until = until;
    gl_effect_add(c->out, GL_FX_VALID, 0)->deadline_at = until;
    GL_ASSERT(c->out->items[c->out->n - 1].deadline_at == until);
}

static void on_renewed(struct gl_core *c)
{
    struct gl_renewal_state *r = &c->renewal;

    GL_ASSERT(r->ttl_ms > 0);
    GL_ASSERT(r->sent_at <= c->now);
    if (c->shared) {
        /* Counted from the answer, because the request may have waited for a connection. An answer
         * that comes after our session could have expired starts the count over: the store may have
         * been away, and other nodes may not have had their chance to renew yet. */
        bool is_steady = r->steady_since != INT64_MAX && c->now < r->valid_until;

        r->steady_since = is_steady ? r->steady_since : c->now;
        extend_validity(c, GL_PLANT(73) ? INT64_MAX /* planted: it never expires */
                                        : r->sent_at + r->ttl_ms - r->ttl_ms / 10 - MARGIN_MS);
    }
    r->due = (c->shared ? r->sent_at : c->now) + r->ttl_ms / 3;
    GL_ASSERT(r->due >= r->sent_at);
    GL_ASSERT(GL_IMPLIES(c->shared, r->steady_since <= c->now));
}

void gl_renewal_begin(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_SESSION);
    GL_ASSERT(c->renewal.call == 0);
    GL_ASSERT(!c->renewal.is_lost);
    if (gl_components_are_on(c)) {
        c->renewal.sent_at = ev->session.sent_at;
        on_renewed(c);
    }
}

void gl_renewal_renew_now(struct gl_core *c)
{
    if (c->renewal.call == 0 && gl_components_are_on(c)) {
        c->renewal.due = c->now;
    }
}

void gl_renewal_on_changed(struct gl_core *c)
{
    c->renewal.steady_since = INT64_MAX;
    gl_renewal_renew_now(c); /* does the store still know us? */
}

bool gl_renewal_may_declare_dead(const struct gl_core *c)
{
    const struct gl_renewal_state *r = &c->renewal;
    gl_ms wait = r->ttl_ms > JUDGE_MS_MIN ? r->ttl_ms : JUDGE_MS_MIN;

    GL_ASSERT(wait >= r->ttl_ms);
    GL_ASSERT(r->steady_since == INT64_MAX || r->steady_since <= c->now);
    if (c->now >= r->valid_until) {
        return false; /* we were suspended, or the store was away, perhaps for all nodes */
    }
    return r->steady_since != INT64_MAX && (c->now - r->steady_since >= wait || GL_PLANT(26));
}

/* Other nodes may take over our jobs from now on: nothing starts any more. */
static void lose_session(struct gl_core *c, gl_str why)
{
    struct gl_renewal_state *r = &c->renewal;

    GL_ASSERT(!r->is_lost);
    r->is_lost = true;
    r->due = INT64_MAX;
    extend_validity(c, c->now < r->valid_until ? c->now : r->valid_until);
    c->stopping = true;
    c->leader.leads = false;
    GL_TRACE(c->trace, NODE, .what = "session lost");
    gl_effect_add(c->out, GL_FX_LOST, 0)->why =
        gl_str_dup(c->out->arena, why.n > 0 ? why : GL_S("this node's session was declared dead"));
    GL_ASSERT(r->valid_until <= c->now);
    GL_ASSERT(!gl_components_may_finish(c));
}

static gl_ms due(const struct gl_core *c)
{
    return c->renewal.call == 0 ? c->renewal.due : INT64_MAX;
}

static void on_time(struct gl_core *c)
{
    GL_ASSERT(c->renewal.call == 0);
    GL_ASSERT(c->renewal.ttl_ms > 0);
    GL_ASSERT(!c->renewal.is_lost);
    c->renewal.due = INT64_MAX;
    c->renewal.sent_at = c->now;
    c->renewal.call = gl_component_renew(c, GL_COMPONENT_RENEWAL);
    GL_ASSERT(c->renewal.call == c->last_call);
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_renewal_state *r = &c->renewal;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_RENEWAL);
    if (ev->answer.number != r->call) {
        return;
    }
    r->call = 0;
    if (!gl_components_are_on(c)) {
        return;
    }
    if (ev->answer.code == GL_E_GONE) {
        lose_session(c, ev->answer.why);
    } else if (ev->answer.code != 0) {
        r->due = c->now + (r->ttl_ms / 6 < RETRY_MS ? r->ttl_ms / 6 : RETRY_MS);
        r->steady_since = INT64_MAX;
        GL_ASSERT(r->due - c->now <= r->ttl_ms / 3); /* no later than after a success */
    } else {
        on_renewed(c);
    }
}

/* ---- in a snapshot of the core ---- */

#define F(member, type) GL_FIELD(gl_renewal_state, member, type, 0, "")

static const struct gl_field fields[] = {
    F(call, U64),         F(due, I64),         F(ttl_ms, I64),   F(sent_at, I64),
    F(steady_since, I64), F(valid_until, I64), F(is_lost, BOOL),
};
#undef F

static const struct gl_schema schema = {.name = "renewal",
                                        .bytes = sizeof(struct gl_renewal_state),
                                        .fields = fields,
                                        .fields_n = GL_COUNT(fields)};

static void save(const struct gl_core *c, struct gl_buf *out)
{
    gl_snapshot_put(out, "renewal", &schema, &c->renewal);
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    return gl_snapshot_get(l, &schema, &c->renewal);
}

const struct gl_component gl_renewal = {.name = "renewal",
                                        .due = due,
                                        .on_time = on_time,
                                        .on_answer = on_answer,
                                        .save = save,
                                        .restore = restore};
