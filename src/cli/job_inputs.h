/* job_inputs.h - what a job is given, as the command line says it: --input-file and --set.
 *
 * The file is a JSON or YAML object. A --set names a member, with dots for what lies deeper
 * (`db.host=a`), and wins over the file; of two for the same member the later wins. Where nothing
 * else was given, what dots reach into is the default of the input. Its value is the text as it is
 * for an input of type string; for others it is JSON if it reads as JSON, else text. */
#ifndef GL_CLI_JOB_INPUTS_H
#define GL_CLI_JOB_INPUTS_H

#include "cli/cli.h"
#include "model/flow.h"

/* What `flow` is given. Append the object to `out`; nothing if nothing was given. 0, or an exit
 * code after what is wrong has been said. The command has the options --set and --input-file. */
int gl_job_inputs_read(struct gl_cli *cli, const struct gl_flow *flow, struct gl_buf *out);

/* A job was refused with this sentence: if inputs are missing, say how they are given. */
void gl_job_inputs_report_missing(struct gl_cli *cli, const char *text);

#endif
