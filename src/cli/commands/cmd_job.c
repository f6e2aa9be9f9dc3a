/* cmd_job.c - glia job status, result and events: shows one job. */
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "cli/output/progress.h"
#include "cli/output/rows.h"

enum { REASON_INDENT = 6, LINE_MIN = 20 };

/* Print prose on a terminal, wrapped at words. */
static void print_prose(const struct gl_term *term, gl_str text, int indent)
{
    size_t used = (size_t)indent;
    size_t room = term->columns > used + LINE_MIN ? term->columns - used : LINE_MIN;

    while (text.n > 0) {
        gl_str line = gl_term_line(text, room, &text);

        (void)fprintf(term->file, "%*s%.*s\n", indent, "", GL_STR_ARG(line));
    }
}

/* ---- status ---- */

static void print_head(struct gl_cli *cli, struct gl_api_reply *p)
{
    gl_str status = gl_api_reply_text(p, p->root, "status");
    gl_str reason = gl_api_reply_text(p, p->root, "reason");
    enum gl_color color = gl_term_status_color(status);
    gl_ms submitted = gl_api_reply_time(p, p->root, "submitted_at");
    gl_ms ended = gl_api_reply_time(p, p->root, "ended_at");
    gl_str took = gl_api_reply_span(p, submitted, ended != 0 ? ended : gl_term_now());

    gl_str why = gl_term_safe(&p->arena, gl_api_reply_text(p, p->root, "why"));
    gl_str retry_of = gl_api_reply_text(p, p->root, "retry_of");

    if (!cli->out.is_tty) { /* the steps are the data */
        if (why.n > 0) {
            bool has_subject =
                !gl_str_starts(why, GL_S("is ")) && !gl_str_starts(why, GL_S("completed "));

            gl_cli_note(cli, "%s%.*s", has_subject ? "" : "the job ", GL_STR_ARG(why));
        }
        return;
    }
    (void)fprintf(cli->out.file, "%s%.*s%s  %.*s\n", gl_term_on(&cli->out, color),
                  GL_STR_ARG(status), gl_term_off(&cli->out, color),
                  GL_STR_ARG(gl_term_safe(&p->arena, gl_api_reply_text(p, p->root, "name"))));
    (void)fprintf(
        cli->out.file, "job %.*s, submitted %.*s, %.*s\n",
        GL_STR_ARG(gl_api_reply_text(p, p->root, "job_id")),
        GL_STR_ARG(gl_term_time(&p->arena, gl_api_reply_text(p, p->root, "submitted_at"))),
        GL_STR_ARG(took));
    if (retry_of.n > 0) {
        (void)fprintf(cli->out.file, "a retry of job %.*s\n", GL_STR_ARG(retry_of));
    }
    print_prose(&cli->out, why.n > 0 ? why : gl_term_safe(&p->arena, reason), 0);
    (void)fputc('\n', cli->out.file);
}

static gl_str reason_cell(const struct gl_row *row)
{
    return gl_api_reply_reason(row->p, row->node);
}

static const struct gl_column steps_columns[] = {
    {"STEP", .kind = GL_COLUMN_NAME},
    {"STATUS", .key = "status"},
    {"ATTEMPTS", GL_COLUMN_NUMBER, .key = "attempt_count", .absent = "0", .least = 2},
    {"STARTED", .key = "started_at", .least = 1},
    {"TOOK", GL_COLUMN_SPAN, .key = "started_at", .until = "ended_at"},
    {"REASON", .cell = reason_cell},
};

static gl_jnode steps_of(struct gl_api_reply *p)
{
    return gl_json_get(&p->j, gl_json_get(&p->j, p->root, "workflow_state"), "steps");
}

static void print_steps(struct gl_cli *cli, struct gl_api_reply *p)
{
    struct gl_rows l = {.cli = cli, GL_COLUMNS(steps_columns)};

    gl_rows_add_list(&l, p, steps_of(p));
    gl_rows_print(&l);
    gl_rows_done(&l);
}

int gl_cmd_job_status(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    int err;

    gl_connect_init(&connection, cli);
    err = gl_cli_option(cli, "--all") != NULL ? gl_api_reply_ask_all(&page, &connection, &rq, &why)
                                              : gl_api_reply_ask(&page, &connection, &rq, &why);
    if (err != 0) {
        err = gl_cli_fail_why(cli, err, &why);
    } else if (cli->json) {
        err = gl_api_reply_print_json(&page, cli);
        gl_api_reply_report_partial(&page, cli);
    } else {
        print_head(cli, &page);
        print_steps(cli, &page);
        gl_api_reply_report_partial(&page, cli);
        (void)gl_connect_warn_no_node(&connection, gl_api_reply_text(&page, page.root, "status"));
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return err;
}

/* ---- result ---- */

/* An output that is too large for the status is requested separately. */
static int print_asked(struct gl_connection *connection, gl_str job, gl_str id);

/* The output of a step with foreach can be too large for any reply: then assemble it from its
 * instances. */
static int print_items(struct gl_connection *connection, gl_str job, gl_str id, int64_t n)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    FILE *out = connection->cli->out.file;
    int err = 0;

    (void)fputc('[', out);
    for (int64_t i = 0; i < n && err == 0; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        err = print_asked(connection, job,
                          gl_str_fmt(&a, "%.*s[%lld]", GL_STR_ARG(id), (long long)i));
    }
    (void)fputc(']', out);
    return err;
}

static int print_asked(struct gl_connection *connection, gl_str job, gl_str id)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = job, .status.step = id};
    struct gl_api_reply page;
    struct gl_why why;
    int err = gl_api_reply_ask(&page, connection, &rq, &why);

    if (err != 0) {
        err = gl_cli_fail_why(connection->cli, err, &why);
    } else {
        gl_jnode step = gl_json_get(&page.j, steps_of(&page), gl_str_c(&page.arena, id));
        gl_jnode output = gl_json_get(&page.j, step, "output");
        bool is_cut = gl_api_reply_number(&page, step, "output_bytes") > 0;

        if (is_cut) {
            err = print_items(connection, job, id, gl_api_reply_number(&page, step, "items_n"));
        } else {
            gl_str text = output != NULL ? gl_json_raw(&page.j, output) : GL_S("null");

            gl_term_write(&connection->cli->out, text);
        }
    }
    gl_api_reply_done(&page);
    return err;
}

/* Print the output as JSON; "null" if it has none. */
static int print_output(struct gl_connection *connection, struct gl_api_reply *p, gl_jnode step)
{
    gl_jnode output = gl_json_get(&p->j, step, "output");
    gl_str text = output != NULL ? gl_json_raw(&p->j, output) : GL_S("null");

    if (gl_api_reply_number(p, step, "output_bytes") > 0) {
        return print_asked(connection, gl_api_reply_text(p, p->root, "job_id"),
                           gl_api_reply_text(p, step, "step_id"));
    }
    gl_term_write(&connection->cli->out, text);
    return 0;
}

static bool is_ended(struct gl_api_reply *p)
{
    gl_str status = gl_api_reply_text(p, p->root, "status");

    return gl_str_is(status, "completed") || gl_str_is(status, "failed") ||
           gl_str_is(status, "cancelled");
}

/* Collect the ids of steps that another step needs. */
static void note_needed(struct gl_api_reply *p, struct gl_map *needed)
{
    gl_jnode steps = steps_of(p);

    for (gl_jnode k = gl_json_first(&p->j, steps); k; k = gl_json_after(&p->j, steps, k)) {
        gl_jnode needs = gl_json_get(&p->j, gl_json_value(k), "needs");

        for (gl_jnode e = gl_json_first(&p->j, needs); e; e = gl_json_after(&p->j, needs, e)) {
            gl_str id = gl_json_str(&p->j, e, &p->arena);

            if (gl_map_find(needed, id) == NULL) {
                gl_map_add(needed, id, p);
            }
        }
    }
}

static int print_one(struct gl_connection *connection, struct gl_api_reply *p, const char *id)
{
    struct gl_cli *cli = connection->cli;
    int err;
    gl_jnode step = gl_json_get(&p->j, steps_of(p), id);
    gl_str status = gl_api_reply_text(p, step, "status");

    if (step == NULL) {
        return gl_cli_fail(cli, GL_R_NO_SUCH_STEP,
                           gl_str_fmt(&p->arena, "the job has no step '%s'; '%s' lists its steps",
                                      id, gl_cli_hint(cli, "job status %s", cli->words[0]))
                               .p);
    }
    if (!gl_progress_is_end(status)) {
        return gl_cli_fail(cli, GL_R_NO_OUTPUT_YET,
                           gl_str_fmt(&p->arena, "step %s has no output yet; its status is %.*s",
                                      id, GL_STR_ARG(status))
                               .p);
    }
    err = print_output(connection, p, step);
    (void)fputc('\n', cli->out.file);
    return err != 0 ? err : gl_str_is(status, "completed") ? GL_EXIT_OK : GL_EXIT_FAILED;
}

/* The steps that no other step needs, without instances of `foreach`: their step has the list. */
static int print_last(struct gl_connection *connection, struct gl_api_reply *p)
{
    struct gl_cli *cli = connection->cli;
    FILE *out = cli->out.file;
    gl_jnode steps = steps_of(p);
    struct gl_map needed = {0};
    const char *before = "";
    int err = 0;

    note_needed(p, &needed);
    (void)fputs(cli->json ? "{" : "", out);
    for (gl_jnode k = gl_json_first(&p->j, steps); k && err == 0;
         k = gl_json_after(&p->j, steps, k)) {
        gl_str id = gl_json_str(&p->j, k, &p->arena);

        if (gl_map_find(&needed, id) != NULL || gl_str_ends(id, GL_S("]"))) {
            continue;
        }
        (void)fprintf(out, cli->json ? "%s\"%.*s\":" : "%s%.*s\t", before, GL_STR_ARG(id));
        err = print_output(connection, p, gl_json_value(k));
        before = cli->json ? "," : "\n";
    }
    (void)fputs(cli->json ? "}\n" : before, out);
    gl_map_done(&needed);
    return err;
}

static int print_result(struct gl_connection *connection, struct gl_api_reply *p)
{
    struct gl_cli *cli = connection->cli;
    int err = 0;
    gl_str status = gl_api_reply_text(p, p->root, "status");

    if (cli->words_n > 1) {
        return print_one(connection, p, cli->words[1]);
    }
    if (!is_ended(p)) {
        int code =
            gl_cli_fail(cli, GL_R_NO_RESULT_YET,
                        gl_str_fmt(&p->arena, "the job has no result yet; its status is %.*s",
                                   GL_STR_ARG(status))
                            .p);

        return gl_str_is(status, "paused") ? GL_EXIT_WAITING : code;
    }
    if (gl_json_get(&p->j, p->root, "bundle") != NULL) { /* a bundle has its own result */
        gl_jnode result = gl_json_get(&p->j, p->root, "result");

        gl_term_print(&cli->out, result != NULL ? gl_json_raw(&p->j, result) : GL_S("null"));
    } else {
        err = print_last(connection, p);
    }
    return err != 0 ? err : gl_str_is(status, "completed") ? GL_EXIT_OK : GL_EXIT_FAILED;
}

int gl_cmd_job_result(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS,
                            .job = gl_str_of(cli->words[0]),
                            .status.step = gl_str_of(cli->words_n > 1 ? cli->words[1] : "")};
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    int err;

    gl_connect_init(&connection, cli);
    err = rq.status.step.n > 0 ? gl_api_reply_ask(&page, &connection, &rq, &why)
                               : gl_api_reply_ask_all(&page, &connection, &rq, &why);
    err = err != 0 ? gl_cli_fail_why(cli, err, &why) : print_result(&connection, &page);
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return err;
}

/* ---- events ---- */

/* The step, or the agent of a bundle: an agent is run by the step "@agent". */
static gl_str subject_of(struct gl_api_reply *p, gl_jnode e)
{
    gl_str step = gl_api_reply_text(p, e, "step_id");

    return step.n == 0        ? gl_api_reply_text(p, e, "agent_id")
           : step.p[0] == '@' ? (gl_str){.p = step.p + 1, .n = step.n - 1}
                              : step;
}

static void add_detail(struct gl_buf *out, const char *front, gl_str text)
{
    if (text.n > 0) {
        gl_buf_fmt(out, "%s%s%.*s", out->n > 0 ? " " : "", front, GL_STR_ARG(text));
    }
}

/* Details of agents' events: "draft from writer as message 12", "draft to critic", "message 12",
 * "in pool default". */
static gl_str details(struct gl_api_reply *p, gl_jnode e)
{
    gl_jnode payload = gl_json_get(&p->j, e, "payload");
    gl_str id = gl_api_reply_text(p, payload, "message_id"), rest = {0};
    struct gl_buf out = {0};
    gl_str text;

    add_detail(&out, "", gl_api_reply_text(p, payload, "type"));
    add_detail(&out, "from ", gl_api_reply_text(p, payload, "from"));
    add_detail(&out, "to ", gl_api_reply_text(p, payload, "to"));
    add_detail(&out, "in pool ", gl_api_reply_text(p, payload, "pool"));
    (void)gl_str_cut(id, '-', &rest); /* "<job>-<number>" */
    add_detail(&out, out.n > 0 ? "as message " : "message ", rest);
    text = gl_str_dup(&p->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

/* For people: lines that the terminal does not wrap. */
static void draw_event(const struct gl_term *term, struct gl_api_reply *p, gl_jnode e,
                       const char *attempt, gl_str reason)
{
    gl_str type =
        gl_term_safe(&p->arena, gl_api_reply_text(p, e, "type")); /* a worker may name it */
    gl_str line = gl_str_fmt(
        &p->arena, "%4lld  %.*s  %-38.*s  %.*s %s", (long long)gl_api_reply_number(p, e, "seq"),
        GL_STR_ARG(gl_term_time(&p->arena, gl_api_reply_text(p, e, "timestamp"))), GL_STR_ARG(type),
        GL_STR_ARG(gl_term_safe(&p->arena, subject_of(p, e))), attempt);
    bool fits = gl_term_width(line) + 2 + gl_term_width(reason) <= term->columns;

    (void)fprintf(term->file, "%.*s%s%.*s\n", GL_STR_ARG(line), fits ? "  " : "",
                  GL_STR_ARG(fits ? reason : (gl_str){0}));
    if (!fits) {
        print_prose(term, reason, REASON_INDENT);
    }
}

static void print_event(struct gl_cli *cli, struct gl_api_reply *p, gl_jnode e)
{
    gl_str told = gl_api_reply_text(p, e, "reason");
    gl_str reason = gl_term_safe(&p->arena, told.n > 0 ? told : details(p, e));
    int64_t attempt = gl_api_reply_number(p, e, "attempt");
    const char *attempt_text =
        attempt > 0 ? gl_str_fmt(&p->arena, "%lld", (long long)attempt).p : "";

    if (cli->json) {
        gl_str raw = gl_json_raw(&p->j, e);

        gl_term_print(&cli->out, raw);
    } else if (cli->out.is_tty) {
        draw_event(&cli->out, p, e, attempt_text, reason);
    } else {
        (void)fprintf(cli->out.file, "%lld\t%.*s\t%.*s\t%.*s\t%s\t%.*s\n",
                      (long long)gl_api_reply_number(p, e, "seq"),
                      GL_STR_ARG(gl_api_reply_text(p, e, "timestamp")),
                      GL_STR_ARG(gl_api_reply_text(p, e, "type")), GL_STR_ARG(subject_of(p, e)),
                      attempt_text, GL_STR_ARG(reason));
    }
}

/* Print a page of events; *ret_more: there are more, or will be. */
static int show_events(struct gl_cli *cli, struct gl_connection *connection, struct gl_request *rq,
                       bool follow, bool *ret_more)
{
    struct gl_api_reply page;
    struct gl_why why;
    int64_t before = rq->events.from;
    bool ended = false;
    int err = gl_api_reply_ask(&page, connection, rq, &why);

    if (err != 0) {
        err = gl_cli_fail_why(cli, err, &why);
    } else {
        gl_jnode events = gl_json_get(&page.j, page.root, "events");

        for (gl_jnode e = gl_json_first(&page.j, events); e;
             e = gl_json_after(&page.j, events, e)) {
            print_event(cli, &page, e);
        }
        rq->events.from = gl_api_reply_number(&page, page.root, "next_seq");
        (void)gl_json_bool(gl_json_get(&page.j, page.root, "ended"), &ended);
        /* Without a node nothing more will happen. */
        *ret_more = rq->events.from > before || (follow && !ended && connection->client.fd >= 0);
        (void)fflush(cli->out.file);
    }
    gl_api_reply_done(&page);
    return err;
}

int gl_cmd_job_events(struct gl_cli *cli)
{
    const char *from = gl_cli_option(cli, "--from");
    bool follow = gl_cli_option(cli, "--follow") != NULL, more = true;
    struct gl_request rq = {.verb = GL_VERB_EVENTS,
                            .job = gl_str_of(cli->words[0]),
                            .events.from = 1,
                            .events.wait_ms = follow ? 10000 : 0,
                            .events.limit = GL_PAGE_MAX};
    struct gl_connection connection;
    int err = 0;

    if (from != NULL && (!gl_str_i64(gl_str_of(from), &rq.events.from) || rq.events.from < 0)) {
        return gl_cli_usage(cli, "--from takes the number of an event");
    }
    gl_connect_init(&connection, cli);
    connection.waits_for_node = follow;
    connection.silence_ms = follow ? GL_CONNECT_SILENCE_SHORT_MS : 0;
    while (err == 0 && more) {
        err = show_events(cli, &connection, &rq, follow, &more);
    }
    gl_connect_done(&connection);
    return err;
}
