/* cmd_why.c - glia why: what a job or a step waits for, or how it ended.
 *
 * The node makes the sentences; `glia job status` shows the same ones. */
#include "base/check.h"
#include "cli/output/progress.h"
#include "cli/output/rows.h"

static const struct gl_column columns[] = {
    {"WHAT", .kind = GL_COLUMN_NAME},
    {"STATUS", .key = "status"},
    {"WHY", .key = "why"},
};

/* Where a step that waits for slots could run, and why it does not. */
static gl_str step_cell(const struct gl_row *row)
{
    return *(const gl_str *)row->owner;
}

static const struct gl_column nodes_columns[] = {
    {"STEP", .cell = step_cell},
    {"NODE", .key = "node"},
    {"RESULT", .key = "result"},
    {"WHY", .key = "why"},
};

/* The sentence about a job or a step. */
static gl_str sentence(struct gl_api_reply *p, gl_jnode n)
{
    gl_str told = gl_api_reply_text(p, n, "why"),
           text = told.n > 0 ? told : gl_api_reply_reason(p, n);

    return text.n > 0 ? text
                      : gl_str_fmt(&p->arena, "its status is %.*s",
                                   GL_STR_ARG(gl_api_reply_text(p, n, "status")));
}

static void write_one(struct gl_api_reply *p, gl_jnode n, struct gl_jw *w)
{
    static const char *const codes[] = {"why_code", "why_also", "nodes"};

    gl_jw_put_str(w, "status", gl_api_reply_text(p, n, "status"));
    gl_jw_put_str(w, "why", sentence(p, n));
    for (size_t i = 0; i < GL_COUNT(codes); i++) {
        gl_jnode code = gl_json_get(&p->j, n, codes[i]);

        if (code != NULL) {
            gl_jw_put_raw(w, codes[i], gl_json_raw(&p->j, code));
        }
    }
}

/* The job and its steps that have not ended, or one step. */
static void write_all(struct gl_api_reply *p, gl_jnode steps, gl_jnode only, struct gl_jw *w)
{
    gl_jw_put_str(w, "job_id", gl_api_reply_text(p, p->root, "job_id"));
    write_one(p, p->root, w);
    gl_jw_put_object(w, "steps");
    for (gl_jnode k = gl_json_first(&p->j, steps); k; k = gl_json_after(&p->j, steps, k)) {
        gl_jnode s = gl_json_value(k);

        if (only == NULL ? !gl_progress_is_end(gl_api_reply_text(p, s, "status")) : s == only) {
            gl_jw_key_str(w, gl_json_str(&p->j, k, &p->arena));
            gl_jw_object(w);
            write_one(p, s, w);
            gl_jw_end(w);
        }
    }
    gl_jw_end(w);
}

/* The first of the shown steps that has a table of nodes; NULL: none has. */
static gl_jnode nodes_of(struct gl_api_reply *p, gl_jnode steps, gl_jnode only, gl_str *ret_step)
{
    for (gl_jnode k = gl_json_first(&p->j, steps); k; k = gl_json_after(&p->j, steps, k)) {
        gl_jnode s = gl_json_value(k), nodes = gl_json_get(&p->j, s, "nodes");

        if (nodes != NULL && (only == NULL || s == only)) {
            *ret_step = gl_json_str(&p->j, k, &p->arena);
            return nodes;
        }
    }
    return NULL;
}

/* For people; as JSON, each step has its own. */
static int show_nodes(struct gl_cli *cli, struct gl_api_reply *p, gl_jnode steps, gl_jnode only)
{
    gl_str step;
    gl_jnode nodes = cli->json ? NULL : nodes_of(p, steps, only, &step);
    struct gl_rows l = {.cli = cli, GL_COLUMNS(nodes_columns), .list = "nodes", .owner = &step};

    if (nodes == NULL) {
        return GL_EXIT_OK;
    }
    (void)fputc('\n', cli->out.file);
    gl_jw_put_raw(gl_rows_begin(&l), "nodes", gl_json_raw(&p->j, nodes));
    return gl_rows_end(&l);
}

static int explain(struct gl_cli *cli, struct gl_api_reply *p)
{
    gl_jnode steps = gl_json_get(&p->j, gl_json_get(&p->j, p->root, "workflow_state"), "steps");
    gl_jnode only = cli->words_n > 1 ? gl_json_get(&p->j, steps, cli->words[1]) : NULL;
    struct gl_rows l = {
        .cli = cli, GL_COLUMNS(columns), .list = "steps", .head = only == NULL ? "job" : NULL};
    int code;

    if (cli->words_n > 1 && only == NULL) {
        return gl_cli_fail(cli, GL_R_NO_SUCH_STEP,
                           gl_str_fmt(&p->arena, "the job has no step '%s'; '%s' lists its steps",
                                      cli->words[1],
                                      gl_cli_hint(cli, "job status %s", cli->words[0]))
                               .p);
    }
    write_all(p, steps, only, gl_rows_begin(&l));
    code = gl_rows_end(&l);
    return code != GL_EXIT_OK ? code : show_nodes(cli, p, steps, only);
}

int gl_cmd_why(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    int err, code;

    gl_connect_init(&connection, cli);
    err = gl_api_reply_ask(&page, &connection, &rq, &why);
    if (err == 0 && cli->words_n > 1 &&
        !gl_api_reply_is_complete(&page)) { /* the step may not be among these */
        rq.status.step = gl_str_of(cli->words[1]);
        gl_api_reply_done(&page);
        err = gl_api_reply_ask(&page, &connection, &rq, &why);
    }
    if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else {
        code = explain(cli, &page);
        (void)gl_connect_warn_no_node(&connection, gl_api_reply_text(&page, page.root, "status"));
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return code;
}
