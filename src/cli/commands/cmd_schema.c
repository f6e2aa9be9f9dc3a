/* cmd_schema.c - glia schema: the flow format for editors. */
#include "base/check.h"
#include "cli/cli.h"
#include "model/flow/flow_jsonschema.h"

int gl_cmd_schema(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    gl_flow_jsonschema(&out);
    gl_term_print(&cli->out, gl_buf_view(&out));
    return GL_EXIT_OK;
}
