/* worker_questions.h - what workers of bundles ask people (port/questions.h), as sentences and as
 * JSON.
 *
 * Which worker has asked the file does not say. What can be told is whether anybody may still be
 * there to read the answer: a worker of the job that was at work when the question was written. */
#ifndef GL_API_WORKER_QUESTIONS_H
#define GL_API_WORKER_QUESTIONS_H

#include "api/view.h"
#include "base/json.h"

/* What the workers of this job ask; NULL: nothing, or what lies in its run's folder is not its. */
const struct gl_questions_run *gl_worker_question_of(const struct gl_questions *asks,
                                                     const struct gl_view *v, struct gl_arena *a);

/* May a worker that has asked still be running? */
bool gl_worker_question_has_reader(const struct gl_view *v);

/* Behind what is said of the job; "" : nobody asks anything. */
gl_str gl_worker_question_sentence(struct gl_arena *a, const struct gl_view *v);

/* One question, an object. `listens` as above. */
void gl_worker_question_write(struct gl_jw *w, gl_str job, gl_str run_id,
                              const struct gl_question *r, bool listens);

/* Of a job, members of the object that is open in `w`: human_requests, requests, and what of them
 * is not told; nothing if there are none. If another node has the job requests_node, and
 * requests_since: only a file that was written later can hold what its workers ask. */
void gl_worker_question_write_job(const struct gl_view *v, struct gl_jw *w);

/* What may be decided; never empty. Borrowed from the question. */
struct gl_strs gl_worker_question_decisions(const struct gl_question *r);

/* "human respond 01J... q --decision approve", with the first decision; to be pasted into a shell
 * as it is, so words are quoted where they must be: they come from a worker. */
gl_str gl_worker_question_command(struct gl_arena *a, gl_str job, gl_str request_id,
                                  struct gl_strs decisions);

/* What else may stand at its end: " (or reject, ask)"; "" : nothing. */
gl_str gl_worker_question_others(struct gl_arena *a, struct gl_strs decisions);

#define GL_WORKER_QUESTION_NO_READER \
    "no worker that may have asked is running: the answer waits for the next attempt"

#endif
