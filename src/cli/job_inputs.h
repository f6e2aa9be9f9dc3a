/* job_inputs.h - reads the inputs of a job from --input-file and --set.
 *
 * The file is a JSON or YAML object. --set names a member, with dots for nested ones (`db.host=a`),
 * and overrides the file; the later of two for one member wins. A nested --set without any other
 * value starts from the default of the input. The value is text for an input of type string; for
 * others it is JSON if it parses as JSON, else text. */
#ifndef GL_CLI_JOB_INPUTS_H
#define GL_CLI_JOB_INPUTS_H

#include "cli/cli.h"
#include "model/flow/flow.h"

/* Append the object of inputs for `flow` to `out`; nothing if no input was given, or if it is a
 * bundle. Returns 0, or an exit code after printing the errors. The command has the options --set
 * and --input-file. */
int gl_job_inputs_read(struct gl_cli *cli, const struct gl_flow *flow, struct gl_buf *out);

/* Check the inputs that were given as the node does when a job is submitted; without any, nothing
 * is checked. Returns 0, or an exit code after printing the errors. */
int gl_job_inputs_check(struct gl_cli *cli, const struct gl_flow *flow);

/* `text` is why a job was refused. If inputs are missing, print the options that set them. */
void gl_job_inputs_report_missing(struct gl_cli *cli, const char *text);

#endif
