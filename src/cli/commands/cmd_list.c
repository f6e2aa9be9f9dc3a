/* cmd_list.c - glia job list: jobs, newest first, page by page. */
#include "base/check.h"
#include "base/limits.h"
#include "cli/output/overview.h"
#include "cli/output/rows.h"

struct job_listing {
    struct gl_rows rows;
    struct gl_connection connection;
    struct gl_request rq;
    bool has_warned;
    struct gl_api_reply human; /* on a terminal: questions that wait for a person */
    size_t asking_n;           /* number of listed jobs that wait for a person */
};

/* The run id, if the user gave one. */
static gl_str run_id_cell(const struct gl_row *row)
{
    gl_str run_id = gl_api_reply_text(row->p, row->node, "run_id");

    return gl_str_eq(run_id, gl_api_reply_text(row->p, row->node, "job_id")) ? (gl_str){0} : run_id;
}

/* Also counts the jobs that wait for a person: each row has one such cell. */
static gl_str steps_cell(const struct gl_row *row)
{
    struct job_listing *l = row->owner;
    uint64_t asks = gl_overview_requests(&l->human, gl_api_reply_text(row->p, row->node, "job_id"));

    l->asking_n += asks > 0;
    return gl_overview_steps(row->p, row->node, asks);
}

static const struct gl_column columns[] = {
    {"JOB", .key = "job_id"},
    {"STATUS", .key = "status", .absent = "damaged"}, /* only the id is known then */
    {"NAME", .key = "name"},
    {"RUN ID", .cell = run_id_cell},
    {"STEPS", .cell = steps_cell},
    {"SUBMITTED", .key = "submitted_at", .least = 2},
    {"TOOK", GL_COLUMN_SPAN, .key = "submitted_at", .until = "ended_at", .least = 1},
};

static void on_page(struct gl_rows *rows, struct gl_api_reply *p)
{
    struct job_listing *l = rows->owner;

    l->has_warned = l->has_warned || gl_api_reply_warn_no_node(p, &l->connection);
}

static void print(struct job_listing *l)
{
    struct gl_cli *cli = l->rows.cli;
    bool is_filtered = l->rq.list.status.n > 0 || l->rq.list.name.n > 0 || l->rq.list.after.n > 0;

    l->rows.none =
        gl_str_fmt(&cli->arena, "no %s; the %s is %s", is_filtered ? "such jobs" : "jobs here",
                   l->connection.is_remote ? "node" : "data folder",
                   gl_connect_location(&l->connection))
            .p;
    gl_rows_print(&l->rows);
    if (cli->json) {
        return;
    }
    if (l->rq.list.after.n > 0) {
        gl_cli_note(cli, "there may be more; use --all, or --after %.*s",
                    GL_STR_ARG(l->rq.list.after));
    }
    if (l->asking_n > 0) {
        gl_cli_note(cli, "%zu of these jobs wait%s for a person: %s", l->asking_n,
                    l->asking_n == 1 ? "s" : "", gl_cli_hint(cli, "human list"));
    }
}

static int show(struct job_listing *l)
{
    struct gl_cli *cli = l->rows.cli;
    struct gl_why why;
    int err =
        cli->out.is_tty && !cli->json ? gl_overview_human(&l->connection, &l->human, &why) : 0;

    err = err == 0 ? gl_rows_ask(&l->rows, &l->connection, &l->rq, &why) : err;
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    print(l);
    return GL_EXIT_OK;
}

int gl_cmd_list(struct gl_cli *cli)
{
    struct job_listing l = {.rows = {.cli = cli,
                                     GL_COLUMNS(columns),
                                     .list = "jobs",
                                     .all = gl_cli_option(cli, "--all") != NULL,
                                     .has_next = true,
                                     .on_page = on_page}};
    uint64_t limit = l.rows.all ? GL_PAGE_MAX : 100;
    int code = gl_cli_number(cli, "--limit", 1, GL_PAGE_MAX, &limit);

    if (code == 0 && l.rows.all && gl_cli_option(cli, "--limit") != NULL) {
        code = gl_cli_usage(cli, "give either --all or --limit");
    }
    if (code != 0) {
        return code;
    }
    l.rq = (struct gl_request){.verb = GL_VERB_LIST,
                               .list.status = gl_str_of(gl_cli_option(cli, "--status")),
                               .list.name = gl_str_of(gl_cli_option(cli, "--name")),
                               .list.after = gl_str_of(gl_cli_option(cli, "--after")),
                               .list.limit = (uint32_t)limit};
    l.rows.after = &l.rq.list.after;
    l.rows.owner = &l;
    gl_connect_init(&l.connection, cli);
    code = show(&l);
    gl_rows_done(&l.rows);
    gl_api_reply_done(&l.human);
    gl_connect_done(&l.connection);
    return code;
}
