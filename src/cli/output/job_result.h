/* job_result.h - prints how a job ended, and the command to run next. */
#ifndef GL_CLI_OUTPUT_JOB_RESULT_H
#define GL_CLI_OUTPUT_JOB_RESULT_H

#include "cli/follow.h"

/* `code` is the result of gl_follow_job() and is returned. `talk`: also print a line for a job that
 * completed. With --json the job's state always goes to stdout. */
int gl_job_result_show(struct gl_follow *f, int code, bool talk);

/* After pause or cancel: if this process is the node, wait until the job has stopped; then print
 * its state. */
int gl_job_result_wait_stopped(struct gl_follow *f);

#endif
