/* human_requests.h - enforces the deadlines of the questions that workers ask people.
 *
 * Workers write questions into a file of their run, human.jsonl, and people append answers to it.
 * That file is the durable truth. The node reads it and reports, for each job, the earliest
 * deadline of an open question that names a default decision (event ASKED). When that time is over,
 * this component decides whether the default is written down: only by the node that owns the job,
 * and only while the job lives. The call EXPIRE then makes the node append it.
 *
 * Nothing needs to survive a crash: the next node reads the files and reports them again. Writing
 * the default twice is impossible, because the writer finds the first answer in the file.
 *
 *   gl_human_requests_on_asked()   remember, move or forget a job's deadline
 *
 * The rest happens through the interface of components (core/component.h). */
#ifndef GL_CORE_AGENTS_HUMAN_REQUESTS_H
#define GL_CORE_AGENTS_HUMAN_REQUESTS_H

#include "core/core_state.h"

void gl_human_requests_init(struct gl_core *c);
void gl_human_requests_done(struct gl_core *c);

void gl_human_requests_on_asked(struct gl_core *c, const struct gl_event *ev);

#endif
