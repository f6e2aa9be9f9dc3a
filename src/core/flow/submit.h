/* submit.h - a new job: its first transaction creates it and starts what can start. */
#ifndef GL_CORE_FLOW_SUBMIT_H
#define GL_CORE_FLOW_SUBMIT_H

#include "core/core_state.h"

void gl_submit_on_request(struct gl_core *c, const struct gl_event *ev);

/* The compiled flow with this hash: from the cache, or compiled from `text`. One reference for the
 * caller. */
int gl_submit_spec(struct gl_core *c, gl_str hash, gl_str text, struct gl_spec **ret,
                   struct gl_why *reterr_why);

/* No record names this flow any more, and its own is about to go: unless a job in memory uses it,
 * it is forgotten, and a job that comes later writes it again. */
void gl_submit_forget(struct gl_core *c, gl_str hash);

#endif
