/* cmd_human.c - glia human: lists and answers steps and worker requests that wait for a person. */
#include "api/worker_questions.h"
#include "base/check.h"
#include "base/limits.h"
#include "cli/human_files.h"
#include "cli/output/rows.h"
#include "os/run_owner.h"

/* The list: the reply of the node, with requests from the files themselves where they can be read.
 */
struct human_list {
    struct gl_api_reply *page;
    bool has_files; /* the files are visible from here: the requests of the page are left out */
    const struct gl_open_request *requests;
};

static bool is_request(struct gl_api_reply *p, gl_jnode e)
{
    return gl_str_is(gl_api_reply_text(p, e, "kind"), "request");
}

/* No worker is waiting for the answer. */
static bool has_no_listener(struct gl_api_reply *p, gl_jnode e)
{
    bool listens = true;

    (void)gl_json_bool(gl_json_get(&p->j, e, "listens"), &listens);
    return !listens;
}

/* The same for a request found in a file; a request that the node does not know yet has just been
 * asked. */
static bool request_has_no_listener(const struct human_list *l, const struct gl_open_request *f)
{
    struct gl_api_reply *p = l->page;
    gl_jnode requests = gl_json_get(&p->j, p->root, "requests");

    for (gl_jnode e = gl_json_first(&p->j, requests); e; e = gl_json_after(&p->j, requests, e)) {
        if (gl_str_eq(gl_api_reply_text(p, e, "request_id"), f->request->request_id) &&
            gl_str_eq(gl_api_reply_text(p, e, "job_id"), f->job)) {
            return has_no_listener(p, e);
        }
    }
    return false;
}

/* ---- the table ---- */

static gl_str step_cell(const struct gl_row *row)
{
    return gl_api_reply_text(row->p, row->node,
                             is_request(row->p, row->node) ? "request_id" : "step_id");
}

/* For a request from a file, a member tells whether its deadline, if any, has passed. */
static gl_str question(struct gl_api_reply *p, gl_jnode e)
{
    gl_str asked = gl_api_reply_text(p, e, "asked");
    struct gl_question ask = {
        .prompt = asked.n > 0 ? asked : gl_api_reply_text(p, e, "reason"),
        .default_decision = gl_api_reply_text(p, e, "default_decision"),
        .is_refused = gl_api_reply_is(p, e, "default_refused"),
    };

    if (gl_json_get(&p->j, e, "expired") != NULL) {
        ask.expires_at = gl_api_reply_time(p, e, "expires_at");
    }
    return gl_human_files_describe(&p->arena, &ask);
}

static gl_str question_cell(const struct gl_row *row)
{
    gl_str text = question(row->p, row->node);

    return has_no_listener(row->p, row->node)
               ? gl_str_fmt(&row->p->arena, "%.*s (" GL_WORKER_QUESTION_NO_READER ")",
                            GL_STR_ARG(text))
               : text;
}

static const struct gl_column columns[] = {
    {"JOB", .key = "job_id"},
    {"RUN", .key = "run_id", .least = 2},
    {"STEP", .cell = step_cell},
    {"KIND", .key = "kind", .least = 1},
    {"DECISIONS", GL_COLUMN_JOIN, .key = "decisions", .between = "|"},
    {"WHAT", .cell = question_cell},
};

/* ---- the list ---- */

/* Notes about files that only the node can see. */
static void report_notes(struct gl_cli *cli, const struct human_list *l)
{
    struct gl_api_reply *p = l->page;
    gl_jnode notes = gl_json_get(&p->j, p->root, "notes");
    long long more = gl_api_reply_number(p, p->root, "more");

    if (l->has_files) {
        return;
    }
    for (gl_jnode e = gl_json_first(&p->j, notes); e; e = gl_json_after(&p->j, notes, e)) {
        gl_cli_note(cli, "requests of run %.*s: %.*s",
                    GL_STR_ARG(gl_api_reply_text(p, e, "run_id")),
                    GL_STR_ARG(gl_term_safe(&p->arena, gl_api_reply_text(p, e, "text"))));
    }
    if (more > 0) {
        gl_cli_note(cli,
                    "%lld more worker requests are not shown: the node lists only the first ones",
                    more);
    }
}

static void write_request(struct gl_jw *w, const struct human_list *l,
                          const struct gl_open_request *f)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf one = {0};
    const struct gl_question *r = f->request;
    struct gl_jw inner;

    gl_jw_init(&inner, &one);
    gl_worker_question_write(&inner, f->job, f->run_id, r, !request_has_no_listener(l, f));
    if (r->expires_at != 0) {
        one.n--; /* drop the brace to add a member */
        gl_buf_fmt(&one, ",\"expired\":%s}",
                   gl_human_file_is_expired(r, gl_term_now()) ? "true" : "false");
    }
    gl_jw_raw(w, gl_buf_view(&one));
}

static void write_list(struct gl_jw *w, const struct human_list *l)
{
    struct gl_api_reply *p = l->page;
    gl_jnode requests = gl_json_get(&p->j, p->root, "requests");

    gl_jw_put_array(w, "requests");
    for (gl_jnode e = gl_json_first(&p->j, requests); e; e = gl_json_after(&p->j, requests, e)) {
        if (!is_request(p, e) || !l->has_files) {
            gl_jw_raw(w, gl_json_raw(&p->j, e));
        }
    }
    for (const struct gl_open_request *f = l->requests; f != NULL; f = f->next) {
        write_request(w, l, f);
    }
    gl_jw_end(w);
}

static int show_list(struct gl_cli *cli, const struct human_list *l)
{
    struct gl_rows rows = {
        .cli = cli, GL_COLUMNS(columns), .list = "requests", .none = "nothing waits for a person"};
    int code;

    write_list(gl_rows_begin(&rows), l);
    code = gl_rows_end(&rows);
    if (rows.n > 0) {
        gl_cli_note(cli, "to decide: %s",
                    gl_cli_hint(cli, "human respond JOB STEP --decision WORD"));
    }
    report_notes(cli, l);
    return code;
}

/* Without a node, steps that would wait for a person may not have got that far: warn. */
static void warn_no_node(struct gl_connection *connection)
{
    struct gl_request rq = {.verb = GL_VERB_LIST, .list.limit = GL_PAGE_MAX};
    struct gl_api_reply jobs;

    if (gl_api_reply_ask(&jobs, connection, &rq, NULL) == 0) {
        (void)gl_api_reply_warn_no_node(&jobs, connection);
    }
    gl_api_reply_done(&jobs);
}

int gl_cmd_human_list(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_HUMAN, .human.limit = GL_PAGE_MAX};
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    int err;

    gl_connect_init(&connection, cli);
    err = gl_api_reply_ask(&page, &connection, &rq, &why);
    if (err != 0) {
        err = gl_cli_fail_why(cli, err, &why);
    } else {
        bool has_no_node = connection.has_no_node; /* at the time of the query */
        const char *root = gl_cli_option(cli, "--runs-root");
        struct human_list l = {.page = &page, .has_files = !connection.is_remote || root != NULL};

        l.requests = l.has_files ? gl_human_files_find(&connection, root) : NULL;
        err = show_list(cli, &l);
        if (has_no_node && !cli->json) {
            warn_no_node(&connection);
        }
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return err;
}

static int read_response(struct gl_cli *cli, struct gl_request *ret)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *decision = gl_cli_option(cli, "--decision");
    const char *output = gl_cli_option(cli, "--output");
    const char *reviewer = gl_cli_option(cli, "--reviewer");
    struct gl_why why;
    struct gl_json j;

    if (decision == NULL) {
        return gl_cli_usage(cli, "--decision is missing: rerun, done or failed; for an "
                                 "approval, one of those that 'glia human list' shows");
    }
    if (output != NULL && (strcmp(decision, "rerun") == 0 || strcmp(decision, "failed") == 0)) {
        return gl_cli_usage(cli,
                            "--output cannot be combined with --decision %s: a review takes it "
                            "with done only",
                            decision);
    }
    if (output != NULL &&
        gl_json_parse(&j, gl_str_of(output), GL_OUTPUT_BYTES_MAX, &a, &why) != 0) {
        return gl_cli_usage(cli, "--output is not JSON: %s", why.text);
    }
    *ret = (struct gl_request){
        .verb = GL_VERB_RESPOND,
        .job = gl_str_of(cli->words[0]),
        .command = {.decision = gl_str_of(decision),
                    .who = gl_str_of(reviewer != NULL ? reviewer : gl_cli_user()),
                    .reason = gl_str_of(gl_cli_option(cli, "--reason")),
                    .value = gl_str_trim(gl_str_of(output))}};
    return 0;
}

static bool has_ended(gl_str status)
{
    return gl_str_is(status, "completed") || gl_str_is(status, "failed") ||
           gl_str_is(status, "cancelled");
}

/* Report the state of the job after the decision. */
static void report_recorded(struct gl_cli *cli, struct gl_connection *connection)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    bool is_node = connection->daemon != NULL;
    struct gl_api_reply page;
    gl_str status = {0};

    if (gl_api_reply_ask(&page, connection, &rq, NULL) == 0) {
        status = gl_api_reply_text(&page, page.root, "status");
    }
    if (has_ended(status)) {
        gl_cli_note(cli, "decision recorded; the job has ended: %.*s", GL_STR_ARG(status));
    } else if (is_node || gl_str_is(status, "paused")) {
        gl_cli_note(cli, "decision recorded; to resume the job: %s",
                    gl_cli_hint(cli, "job resume %s", cli->words[0]));
    } else {
        gl_cli_note(cli, "decision recorded; the job continues");
    }
    gl_api_reply_done(&page);
}

/* ---- resolving names ---- */

/* Does a step of this job with this id wait for a person? */
static bool is_waiting(struct gl_api_reply *human, gl_str job, gl_str step)
{
    gl_jnode all = gl_json_get(&human->j, human->root, "requests");

    for (gl_jnode e = gl_json_first(&human->j, all); e; e = gl_json_after(&human->j, all, e)) {
        if (gl_str_eq(gl_api_reply_text(human, e, "job_id"), job) &&
            gl_str_eq(gl_api_reply_text(human, e, "step_id"), step)) {
            return true;
        }
    }
    return false;
}

/* In a bundle, agents wait: accept the name of the agent, or of a step that it works on. */
static gl_str resolve_step(struct gl_connection *connection, struct gl_api_reply *status)
{
    struct gl_request rq = {.verb = GL_VERB_HUMAN, .human.limit = GL_PAGE_MAX};
    struct gl_arena *a = &connection->cli->arena;
    const char *word = connection->cli->words[1];
    gl_str job = gl_api_reply_text(status, status->root, "job_id"), meant = gl_str_of(word);
    gl_str agent = gl_str_fmt(a, "@%s", word);
    gl_jnode steps =
        gl_json_get(&status->j, gl_json_get(&status->j, status->root, "workflow_state"), "steps");
    gl_jnode agents = gl_json_get(&status->j, gl_json_get(&status->j, steps, word), "agent_ids");
    struct gl_api_reply human;

    if (gl_api_reply_ask(&human, connection, &rq, NULL) == 0 && !is_waiting(&human, job, meant)) {
        meant = is_waiting(&human, job, agent) ? agent : meant;
        for (gl_jnode e = gl_json_first(&status->j, agents); e;
             e = gl_json_after(&status->j, agents, e)) {
            agent = gl_str_fmt(a, "@%.*s", GL_STR_ARG(gl_json_str(&status->j, e, a)));
            meant = is_waiting(&human, job, agent) ? agent : meant;
        }
    }
    gl_api_reply_done(&human);
    return meant;
}

static bool has_request(const char *root, gl_str run_id, const char *request, struct gl_arena *a)
{
    struct gl_human_file f;

    if (gl_human_file_read(root, run_id, a, &f, NULL) == 0) {
        for (size_t i = 0; i < f.n; i++) {
            if (gl_str_is(f.requests[i].request_id, request)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_step(struct gl_api_reply *status, const char *word)
{
    gl_jnode steps =
        gl_json_get(&status->j, gl_json_get(&status->j, status->root, "workflow_state"), "steps");

    return word[0] == '@' || gl_json_get(&status->j, steps, word) != NULL;
}

/* ---- answering ---- */

/* Does a worker wait for the answer, according to the node or the store? */
static bool has_listener(struct gl_api_reply *status, const char *request)
{
    gl_jnode all = gl_json_get(&status->j, status->root, "requests");

    for (gl_jnode e = gl_json_first(&status->j, all); e; e = gl_json_after(&status->j, all, e)) {
        if (gl_str_is(gl_api_reply_text(status, e, "request_id"), request)) {
            return !has_no_listener(status, e);
        }
    }
    return true;
}

/* `status`: of the job; NULL: the job is unknown here. */
static void report_request_answered(struct gl_connection *connection, struct gl_api_reply *status,
                                    gl_str run_id)
{
    struct gl_cli *cli = connection->cli;
    gl_str word = status != NULL ? gl_api_reply_text(status, status->root, "status") : (gl_str){0};

    if (gl_str_is(word, "paused")) {
        gl_cli_note(cli, "answer recorded for run %.*s; its job is paused, to resume it: %s",
                    GL_STR_ARG(run_id), gl_cli_hint(cli, "job resume %s", cli->words[0]));
    } else if (status != NULL && !has_listener(status, cli->words[1])) {
        gl_cli_note(cli, "answer recorded for run %.*s; " GL_WORKER_QUESTION_NO_READER,
                    GL_STR_ARG(run_id));
    } else {
        gl_cli_note(cli, "answer recorded for run %.*s", GL_STR_ARG(run_id));
    }
    if (connection->has_no_node) {
        (void)gl_connect_warn_no_node(connection, word);
    }
}

static int respond_in_file(struct gl_connection *connection, struct gl_api_reply *status,
                           const char *root, gl_str run_id)
{
    struct gl_cli *cli = connection->cli;
    gl_str word = status != NULL ? gl_api_reply_text(status, status->root, "status") : (gl_str){0};
    const char *reviewer = gl_cli_option(cli, "--reviewer");
    char when[GL_TIMES_BYTES];
    gl_ms now = gl_term_now();
    struct gl_human_file_answer answer = {
        .request_id = gl_str_of(cli->words[1]),
        .decision = gl_str_of(gl_cli_option(cli, "--decision")),
        .reviewer = gl_str_of(reviewer != NULL ? reviewer : gl_cli_user()),
        .reason = gl_str_of(gl_cli_option(cli, "--reason")),
        .output = gl_str_trim(gl_str_of(gl_cli_option(cli, "--output"))),
        .now = now,
        .at = gl_times_format(now, when),
        .ended = has_ended(word) ? word : (gl_str){0},
    };
    struct gl_why why;
    int err = gl_human_file_respond(root, run_id, &answer, &cli->arena, &why);

    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    if (cli->json) {
        (void)fprintf(cli->out.file, "{\"run_id\":\"%.*s\"}\n", GL_STR_ARG(run_id));
    } else {
        report_request_answered(connection, status, run_id);
    }
    return GL_EXIT_OK;
}

/* The request is reported by a node whose files are not visible from here. */
static bool is_on_server(struct gl_connection *connection, struct gl_api_reply *status,
                         const char *request)
{
    gl_jnode all = gl_json_get(&status->j, status->root, "requests");

    for (gl_jnode e = gl_json_first(&status->j, all); e && connection->is_remote;
         e = gl_json_after(&status->j, all, e)) {
        if (gl_str_is(gl_api_reply_text(status, e, "request_id"), request)) {
            return true;
        }
    }
    return false;
}

static int respond_to_step(struct gl_connection *connection, gl_str step, struct gl_request *rq)
{
    struct gl_cli *cli = connection->cli;
    struct gl_http_client_reply reply;
    struct gl_why why;
    int err;

    rq->command.about = step;
    err = gl_connect_send(connection, GL_CONNECT_RETRY, rq, &reply, &why);
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    if (cli->json) {
        gl_term_write(&cli->out, reply.body);
    } else {
        report_recorded(cli, connection);
    }
    return GL_EXIT_OK;
}

/* Another node has the job; its workers do not read the files here. */
static bool is_on_other_node(struct gl_connection *connection, struct gl_api_reply *status,
                             const char *root, gl_str run_id)
{
    return gl_cli_option(connection->cli, "--runs-root") == NULL &&
           gl_human_files_is_remote(status, root, run_id);
}

static int fail_on_other_node(struct gl_cli *cli, struct gl_api_reply *status)
{
    gl_str node = gl_api_reply_text(status, status->root, "requests_node");

    return gl_cli_fail(cli, GL_R_JOB_ASKS_ELSEWHERE,
                       gl_str_fmt(&cli->arena,
                                  "the job is on node %.*s, and its requests are in a file there; "
                                  "answer on that machine, or give --runs-root",
                                  GL_STR_ARG(node))
                           .p);
}

static int respond(struct gl_connection *connection, struct gl_request *response)
{
    struct gl_cli *cli = connection->cli;
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    struct gl_api_reply status;
    struct gl_why why;
    int err = gl_api_reply_ask(&status, connection, &rq, &why), code;
    const char *root = gl_human_files_root(connection, gl_cli_option(cli, "--runs-root"));
    /* A run of another data folder is known only by its run folder. */
    gl_str run_id = err == 0 ? gl_api_reply_text(&status, status.root, "run_id") : rq.job;

    bool is_its = err != 0 || gl_run_owner_is_job(
                                  root, run_id, gl_api_reply_text(&status, status.root, "job_id"));

    bool is_there = err == 0 && is_on_other_node(connection, &status, root, run_id);

    if (is_its && !is_there && has_request(root, run_id, cli->words[1], &cli->arena)) {
        code = respond_in_file(connection, err == 0 ? &status : NULL, root, run_id);
    } else if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (is_on_server(connection, &status, cli->words[1])) {
        code = gl_cli_fail(cli, GL_R_REQUEST_ELSEWHERE,
                           "the request is in a file on the node's machine, which is not visible "
                           "from here; answer it there, or give --runs-root");
    } else if (gl_json_get(&status.j, status.root, "bundle") != NULL &&
               !is_step(&status, cli->words[1]) &&
               gl_str_is(resolve_step(connection, &status), cli->words[1])) {
        code = is_there ? fail_on_other_node(cli, &status)
               : is_its ? respond_in_file(connection, &status, root,
                                          run_id) /* its error lists the requests */
                        : gl_cli_fail(cli, GL_R_NOTHING_ASKED,
                                      "the job has not asked anything yet; the requests in its run "
                                      "folder belong to an earlier job");
    } else {
        code = respond_to_step(connection, resolve_step(connection, &status), response);
    }
    gl_api_reply_done(&status);
    return code;
}

int gl_cmd_human_respond(struct gl_cli *cli)
{
    struct gl_request response;
    struct gl_connection connection;
    int code = read_response(cli, &response);

    if (code == 0) {
        gl_connect_init(&connection, cli);
        connection.is_passive = true;
        code = respond(&connection, &response);
        gl_connect_done(&connection);
    }
    return code;
}
