/* run_questions.h - the questions of one run as the API reports them (port/questions.h).
 *
 *   gl_run_questions_from_file()   the open questions of a file that has been read
 *   gl_run_questions_copy()        a copy, with a limited number of questions
 *   gl_run_questions_reader()      reads files on request, for commands without a node */
#ifndef GL_OS_RUN_QUESTIONS_H
#define GL_OS_RUN_QUESTIONS_H

#include "os/human_file.h"

/* The open questions of a file, in `a`, with truncated texts. */
void gl_run_questions_from_file(const char *root, gl_str run_id, const struct gl_human_file *f,
                                struct gl_arena *a, struct gl_questions_run *ret);

/* A copy with at most `limit` questions. */
struct gl_questions_run gl_run_questions_copy(const struct gl_questions_run *r, size_t limit,
                                              struct gl_arena *a);

/* Reads the file of one run on request; with `all`, the files of all runs. For commands without a
 * node. `root` is borrowed. */
struct gl_questions gl_run_questions_reader(const char *root);

#endif
