/* session.c - takes over the session that the node has opened, and starts what needs one. */
#include "core/cluster/session.h"

#include "base/check.h"
#include "core/cluster/renewal.h"
#include "core/recovery/sweep.h"
#include "core/retention/retention.h"

void gl_session_init(struct gl_core *c, const struct gl_core_config *config)
{
    struct gl_arena a = {0};

    GL_ASSERT(config->orphan_grace_ms >= 0);
    GL_ASSERT(c->session.n == 0);
    c->shared = config->shared;
    c->guest = config->guest;
    c->orphan_grace_ms = config->orphan_grace_ms;
    gl_core_set(c, &c->node, config->node);
    gl_core_set(c, &c->labels, config->labels);
    gl_core_set(c, &c->stack, config->stack);
    gl_core_set(c, &c->env_scope, config->env_scope);
    /* A store that is not shared has one index for all jobs, whatever their scope. */
    gl_core_set(c, &c->wake_index,
                c->shared ? gl_job_index(&a, "wake", c->stack, c->env_scope) : GL_S("wake"));
    gl_arena_done(&a);
    GL_ASSERT(c->wake_index.n > 0);
}

bool gl_session_in_scope(const struct gl_core *c, gl_str stack, gl_str env_scope)
{
    return !c->shared || (gl_str_eq(stack, c->stack) && gl_str_eq(env_scope, c->env_scope));
}

void gl_session_on_open(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_SESSION);
    GL_ASSERT(ev->session.session.n > 0);
    /* A node that loses its session ends; it does not get a second one. */
    GL_ASSERT(c->session.n == 0);
    gl_core_set(c, &c->session, ev->session.session);
    GL_ASSERT(!c->sweep.under_way); /* no sweep without a session */
    GL_TRACE(c->trace, NODE, .number = (int64_t)ev->session.number, .what = "session");
    gl_renewal_begin(c, ev);
    gl_sweep_begin(c);
    gl_retention_on_ready(c);
}
