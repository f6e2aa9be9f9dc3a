/* cmd_list.c - glia job list: jobs, newest first, page by page. */
#include "base/check.h"
#include "base/limits.h"
#include "cli/output/overview.h"
#include "cli/output/table.h"

struct job_listing {
    struct gl_cli *cli;
    struct gl_connection connection;
    struct gl_request rq;
    bool all;
    gl_str next; /* where the next page begins; "" : there is none */
    bool has_warned;
    struct gl_table table;
    struct gl_api_reply human; /* on a terminal: what waits for a person */
    size_t asking_n;           /* jobs of the table that do */
    struct gl_buf json;
    struct gl_jw w;
};

static void add_job(struct job_listing *l, struct gl_api_reply *p, gl_jnode job, gl_ms now)
{
    struct gl_table *t = &l->table;
    gl_ms submitted = gl_api_reply_time(p, job, "submitted_at");
    gl_ms ended = gl_api_reply_time(p, job, "ended_at");
    gl_str run_id = gl_api_reply_text(p, job, "run_id"),
           status = gl_api_reply_text(p, job, "status");
    uint64_t asks = gl_overview_requests(&l->human, gl_api_reply_text(p, job, "job_id"));

    l->asking_n += asks > 0;
    if (gl_str_eq(run_id, gl_api_reply_text(p, job, "job_id"))) {
        run_id = (gl_str){0};
    }
    gl_table_add(t, gl_api_reply_text(p, job, "job_id"));
    gl_table_add(t, status.n > 0 ? status : GL_S("damaged")); /* only the id is known then */
    gl_table_add(t, gl_api_reply_text(p, job, "name"));
    gl_table_add(t, run_id);
    gl_table_add(t, gl_overview_steps(p, job, asks));
    gl_table_add(t, gl_api_reply_text(p, job, "submitted_at"));
    gl_table_add(t, gl_api_reply_span(p, submitted, ended != 0 ? ended : now));
}

static void add_page(struct job_listing *l, struct gl_api_reply *p)
{
    gl_jnode jobs = gl_json_get(&p->j, p->root, "jobs");
    gl_ms now = gl_term_now();

    for (gl_jnode e = gl_json_first(&p->j, jobs); e; e = gl_json_after(&p->j, jobs, e)) {
        if (l->cli->json) {
            gl_jw_raw(&l->w, gl_json_raw(&p->j, e));
        } else {
            add_job(l, p, e, now);
        }
        if (!l->has_warned) {
            l->has_warned =
                gl_connect_warn_no_node(&l->connection, gl_api_reply_text(p, e, "status"));
        }
    }
    l->next = gl_str_dup(&l->cli->arena, gl_api_reply_text(p, p->root, "next"));
}

static int ask_pages(struct job_listing *l, struct gl_why *reterr_why)
{
    int err;

    do {
        struct gl_api_reply page;

        err = gl_api_reply_ask(&page, &l->connection, &l->rq, reterr_why);
        if (err == 0) {
            add_page(l, &page);
        }
        gl_api_reply_done(&page);
        l->rq.list.after = l->next;
    } while (err == 0 && l->all && l->next.n > 0);
    return err;
}

static void print_json(struct job_listing *l)
{
    gl_jw_end(&l->w);
    gl_jw_key(&l->w, "next");
    if (l->next.n > 0) {
        gl_jw_str(&l->w, l->next);
    } else {
        gl_jw_null(&l->w);
    }
    gl_jw_end(&l->w);
    gl_buf_char(&l->json, '\n');
    gl_term_write(&l->cli->out, gl_buf_view(&l->json));
}

static void print_table(struct job_listing *l)
{
    bool is_filtered = l->rq.list.status.n > 0 || l->rq.list.name.n > 0 || l->rq.list.after.n > 0;

    if (l->table.n > 0) {
        gl_table_print(&l->table, &l->cli->out);
    } else {
        gl_cli_note(l->cli, "no %s; the %s is %s", is_filtered ? "such jobs" : "jobs here",
                    l->connection.is_remote ? "node" : "data folder",
                    gl_connect_location(&l->connection));
    }
    if (l->next.n > 0) {
        (void)fflush(l->cli->out.file);
        gl_cli_note(l->cli, "there may be more; use --all, or --after %.*s", GL_STR_ARG(l->next));
    }
    if (l->asking_n > 0) {
        (void)fflush(l->cli->out.file);
        gl_cli_note(l->cli, "%zu of these jobs wait%s for a person: %s", l->asking_n,
                    l->asking_n == 1 ? "s" : "", gl_cli_hint(l->cli, "human list"));
    }
}

static int show(struct job_listing *l)
{
    struct gl_why why;
    int err;

    gl_jw_init(&l->w, &l->json);
    gl_jw_object(&l->w);
    gl_jw_key(&l->w, "jobs");
    gl_jw_array(&l->w);
    err = l->cli->out.is_tty && !l->cli->json ? gl_overview_human(&l->connection, &l->human, &why)
                                              : 0;
    if (err == 0) {
        err = ask_pages(l, &why);
    }
    if (err != 0) {
        return gl_cli_fail_why(l->cli, err, &why);
    }
    (l->cli->json ? print_json : print_table)(l);
    return GL_EXIT_OK;
}

int gl_cmd_list(struct gl_cli *cli)
{
    static const char *const titles[] = {"JOB",   "STATUS",    "NAME", "RUN ID",
                                         "STEPS", "SUBMITTED", "TOOK"};
    static const char *const least[] = {"TOOK", "SUBMITTED", NULL};
    struct job_listing l = {.cli = cli, .all = gl_cli_option(cli, "--all") != NULL};
    uint64_t limit = l.all ? GL_PAGE_MAX : 100;
    int code = gl_cli_number(cli, "--limit", 1, GL_PAGE_MAX, &limit);

    if (code == 0 && l.all && gl_cli_option(cli, "--limit") != NULL) {
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
    gl_connect_init(&l.connection, cli);
    gl_table_init(&l.table, titles, GL_COUNT(titles));
    l.table.least = least;
    code = show(&l);
    gl_table_done(&l.table);
    gl_api_reply_done(&l.human);
    gl_buf_done(&l.json);
    gl_connect_done(&l.connection);
    return code;
}
