/* flowfile.h - reads and checks a flow file or a bundle, with the files it names.
 *
 * JSON if its name ends in .json, else YAML. A folder means the manifest or the flow in it, "-"
 * means standard input (cli/flowpath.h). The folder of a manifest is its bundle
 * (cli/bundle_folder.h). All errors are reported at once, each with its place and line.
 *
 *   gl_flowfile_read()
 *   gl_flowfile_write()    as the body of a submission
 *   gl_flowfile_done()     in any case */
#ifndef GL_CLI_FLOWFILE_H
#define GL_CLI_FLOWFILE_H

#include "base/list.h"
#include "base/sha256.h"
#include "cli/bundle_folder.h"
#include "cli/cli.h"
#include "cli/connect/submission.h"
#include "model/flow/flow.h"

/* A file of the flow, with its content when the flow was read. */
struct gl_flowfile_part {
    struct gl_link link;
    gl_str source; /* as written in the flow; "" for inline text */
    gl_str content;
    char hex[GL_SHA256_HEX];
    bool executable;
};

struct gl_flowfile {
    struct gl_flow_loader loader;
    struct gl_cli *cli;
    const char *path;
    struct gl_buf text;
    struct gl_arena arena;
    struct gl_json j;
    struct gl_flow *flow;
    struct gl_link parts; /* struct gl_flowfile_part */
    bool is_bundle;
    struct gl_bundle_folder bundle;
    struct gl_flow_errors errors;
};

/* Returns 0, GL_E_INVALID with `errors`, or the reason why the file cannot be read. Always call
 * gl_flowfile_done(). For a bundle, the command's option --set sets its configuration. */
int gl_flowfile_read(struct gl_flowfile *f, struct gl_cli *cli, const char *path,
                     struct gl_why *reterr_why);
void gl_flowfile_done(struct gl_flowfile *f);

/* "file:7:5: steps.fetch.retry: ..." with the line and a caret; on stderr. */
void gl_flowfile_print_errors(const struct gl_flowfile *f);
/* {"valid": false, "errors": [...]}, on stdout. */
void gl_flowfile_print_json_errors(const struct gl_flowfile *f);

/* The body of a submission; `inputs` is JSON, or "". */
void gl_flowfile_write(const struct gl_flowfile *f, const struct gl_submission *s, gl_str run_id,
                       gl_str inputs, struct gl_buf *out);

#endif
