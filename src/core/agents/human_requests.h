/* human_requests.h - enforces the deadlines of the questions that workers ask people.
 *
 * Workers write questions into a file of their run, human.jsonl, and people append answers to it.
 * That file is the source of truth. The node reads it and reports, for each job, the earliest
 * deadline of an open question that names a default decision (event ASKED). When that deadline
 * passes, this component has the node append the default (call EXPIRE), but only if this node owns
 * the job and the job has not ended.
 *
 * Nothing needs to survive a crash: the next node reads the files and reports them again. Writing
 * the default twice is impossible, because the writer finds the first answer in the file.
 *
 * Order of calls: gl_human_requests_init(); gl_human_requests_on_asked() for each ASKED, to
 * remember, move or forget a job's deadline; gl_human_requests_done(). The rest happens through the
 * interface of components (core/component.h). */
#ifndef GL_CORE_AGENTS_HUMAN_REQUESTS_H
#define GL_CORE_AGENTS_HUMAN_REQUESTS_H

#include "core/core_state.h"

void gl_human_requests_init(struct gl_core *c);
void gl_human_requests_done(struct gl_core *c);

void gl_human_requests_on_asked(struct gl_core *c, const struct gl_event *ev);

#endif
