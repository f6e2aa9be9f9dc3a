/* worker_questions.h - questions that workers of bundles ask people (port/questions.h), as
 * sentences and as JSON.
 *
 * The file does not say which worker asked. All that can be determined is whether a worker
 * may still be waiting for the answer: one of the job's workers that was running when the question
 * was written.
 *
 * Order of calls: gl_worker_question_of() finds the questions of a job, which the view then holds;
 * the other functions show them. */
#ifndef GL_API_WORKER_QUESTIONS_H
#define GL_API_WORKER_QUESTIONS_H

#include "api/view.h"
#include "base/json.h"

/* The open questions of this job's workers; NULL: none, or the file in its run folder belongs to
 * another job. */
const struct gl_questions_run *gl_worker_question_of(const struct gl_questions *asks,
                                                     const struct gl_view *v, struct gl_arena *a);

/* May the worker that asked still be running? */
bool gl_worker_question_has_reader(const struct gl_view *v);

/* Appended to the sentence about the job; "": no questions. */
gl_str gl_worker_question_sentence(struct gl_arena *a, const struct gl_view *v);

/* One question, as an object. `listens`: gl_worker_question_has_reader(). */
void gl_worker_question_write(struct gl_jw *w, gl_str job, gl_str run_id,
                              const struct gl_question *r, bool listens);

/* Writes members of a job into the open object: human_requests, requests, and a note about what
 * could not be read; nothing if there are none. If another node owns the job, requests_node and
 * requests_since: only a file written after that can hold questions of its workers. */
void gl_worker_question_write_job(const struct gl_view *v, struct gl_jw *w);

/* The decisions on offer; never empty. Borrowed from the question. */
struct gl_strs gl_worker_question_decisions(const struct gl_question *r);

/* The command that answers with the first decision: "human respond 01J... q --decision approve".
 * Words that come from a worker are quoted where needed, so it can be pasted into a shell. */
gl_str gl_worker_question_command(struct gl_arena *a, gl_str job, gl_str request_id,
                                  struct gl_strs decisions);

/* The other decisions: " (or reject, ask)"; "": none. */
gl_str gl_worker_question_others(struct gl_arena *a, struct gl_strs decisions);

#define GL_WORKER_QUESTION_NO_READER \
    "the worker that asked is no longer running; the answer is kept for the next attempt"

#endif
