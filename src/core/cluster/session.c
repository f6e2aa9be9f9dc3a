#include "core/cluster/session.h"

#include "core/heal/sweep.h"

void gl_session_on_open(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->session.n > 0);
    GL_ASSERT(c->session.n ==
              0); /* a node that loses its session ends; it does not get a second one */
    gl_core_set(c, &c->session, ev->session);
    GL_TRACE(c->trace, NODE, .number = (int64_t)ev->number, .what = "session");
    gl_sweep_begin(c);
}
