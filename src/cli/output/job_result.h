/* job_result.h - how a job ended, and what to do next. */
#ifndef GL_CLI_OUTPUT_JOB_RESULT_H
#define GL_CLI_OUTPUT_JOB_RESULT_H

#include "cli/follow.h"

/* `code`: what gl_follow_job() returned; the same is returned. `talk`: on a job that went well
 * there is something to say. With --json the job's state goes to stdout, in any case. */
int gl_job_result_show(struct gl_follow *f, int code, bool talk);

/* After a command that only wants to be obeyed (pause, cancel): if we are the node, stay until it
 * is; then say how the job stands. */
int gl_job_result_wait_stopped(struct gl_follow *f);

#endif
