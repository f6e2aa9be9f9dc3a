/* submit.h - creates a job from a submission. The job's first transaction creates it and starts the
 * steps that can start, so a crash leaves either no job or one that is under way.
 *
 * Also the cache of compiled flows: jobs of the same flow share one, and a number of unused ones is
 * kept for the next submission.
 *
 * Order of calls: gl_submit_on_request() for each SUBMIT. A load gets its flow from
 * gl_submit_spec() as well, and retention calls gl_submit_forget() before it deletes a flow. */
#ifndef GL_CORE_FLOW_SUBMIT_H
#define GL_CORE_FLOW_SUBMIT_H

#include "core/core_state.h"

/* The event SUBMIT: creates the job, or answers why not. */
void gl_submit_on_request(struct gl_core *c, const struct gl_event *ev);

/* The compiled flow with this hash, from the cache or read from `text`. The caller gets a
 * reference. */
int gl_submit_spec(struct gl_core *c, gl_str hash, gl_str text, struct gl_spec **ret,
                   struct gl_why *reterr_why);

/* Retention is about to delete the flow's record. Drops it from the cache unless a job in memory
 * uses it, so that the next submission writes the record again. */
void gl_submit_forget(struct gl_core *c, gl_str hash);

#endif
