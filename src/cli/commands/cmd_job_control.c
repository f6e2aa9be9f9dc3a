/* cmd_job_control.c - glia job pause, resume, cancel, retry, rm and signal. */
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/connect/api_reply.h"
#include "cli/connect/submission.h"
#include "cli/output/job_result.h"
#include "os/fs.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

/* ---- pause, resume, cancel ---- */

/* The job has already ended. This is not an error of the user; its result is what counts. */
static bool has_ended(struct gl_follow *f)
{
    if (gl_follow_begin(f, f->connection->cli->words[0], NULL) != 0 ||
        !(gl_str_is(f->status, "completed") || gl_str_is(f->status, "failed") ||
          gl_str_is(f->status, "cancelled"))) {
        return false;
    }
    gl_cli_note(f->connection->cli, "the job has already ended: %.*s", GL_STR_ARG(f->status));
    return true;
}

/* Send a command to the node, or become it. `stay`: until the job ends or waits for a person. */
static int command(struct gl_cli *cli, enum gl_verb verb, bool stay)
{
    struct gl_request rq = {.verb = verb,
                            .job = gl_str_of(cli->words[0]),
                            .command = {.who = gl_str_of(gl_cli_user()),
                                        .reason = gl_str_of(gl_cli_option(cli, "--reason"))}};
    struct gl_http_client_reply reply;
    struct gl_progress progress;
    struct gl_follow follow;
    struct gl_connection connection;
    struct gl_why why;
    int err, code;

    gl_connect_init(&connection, cli);
    connection.is_passive = !stay;
    gl_progress_init(&progress, &cli->err, !stay);
    gl_follow_init(&follow, &connection, &progress);
    follow.pauses = stay;
    err = gl_connect_send(&connection, GL_CONNECT_RETRY, &rq, &reply, &why);
    if (err == 0) {
        err = gl_follow_begin(&follow, cli->words[0], &why);
    }
    if (stay && err == GL_E_STATE && has_ended(&follow)) {
        err = 0;
    }
    if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (stay) {
        code = gl_job_result_show(&follow, gl_follow_job(&follow), true);
    } else {
        code = gl_job_result_wait_stopped(&follow);
    }
    gl_follow_done(&follow);
    gl_connect_done(&connection);
    gl_progress_done(&progress);
    return code;
}

int gl_cmd_job_pause(struct gl_cli *cli)
{
    return command(cli, GL_VERB_PAUSE, false);
}

int gl_cmd_job_resume(struct gl_cli *cli)
{
    return command(cli, GL_VERB_RESUME, true);
}

int gl_cmd_job_cancel(struct gl_cli *cli)
{
    return command(cli, GL_VERB_CANCEL, false);
}

/* ---- retry ---- */

static void write_retry(struct gl_cli *cli, const struct gl_submission *s, struct gl_buf *body)
{
    const char *from = gl_cli_option(cli, "--from"), *run_id = gl_cli_option(cli, "--run-id");
    struct gl_jw w;

    gl_jw_init(&w, body);
    gl_jw_object(&w);
    gl_submission_write_key(s, &w);
    if (from != NULL) {
        gl_jw_put_c(&w, "from", from);
    }
    if (run_id != NULL) {
        gl_jw_put_c(&w, "run_id", run_id);
    }
    gl_jw_end(&w);
}

/* *ret is the new job's id. */
static int ask_retry(struct gl_submission *s, struct gl_buf *body, const char **ret,
                     struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_cli *cli = s->connection->cli;
    struct gl_request rq = {.verb = GL_VERB_RETRY, .job = gl_str_of(cli->words[0])};
    struct gl_http_client_reply reply;
    struct gl_json j;
    int err = gl_submission_send(s, &rq, body, &reply, reterr_why);

    if (err == 0) {
        err = gl_json_parse(&j, reply.body, ANSWER_BYTES_MAX, &a, reterr_why);
    }
    if (err == 0) {
        *ret =
            gl_str_c(&cli->arena, gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "job_id"), &a));
        if (s->is_detached && cli->json) {
            gl_term_print(&cli->out, reply.body);
        }
    }
    return err;
}

/* Warn about unsafe steps that may now run a second time. */
static void warn_unsafe(struct gl_cli *cli, struct gl_api_reply *p, gl_jnode steps)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf names = {0};

    for (gl_jnode k = gl_json_first(&p->j, steps); k; k = gl_json_after(&p->j, steps, k)) {
        gl_jnode step = gl_json_value(k);

        if (gl_json_get(&p->j, step, "unsafe") != NULL &&
            gl_api_reply_number(p, step, "attempt_count") > 0 &&
            !gl_str_is(gl_api_reply_text(p, step, "status"), "completed")) {
            gl_buf_fmt(&names, "%s%.*s", names.n > 0 ? ", " : "",
                       GL_STR_ARG(gl_json_str(&p->j, k, &p->arena)));
        }
    }
    if (names.n > 0) {
        gl_cli_note(cli,
                    "these unsafe steps were started but not completed in the earlier job, and run "
                    "again now: %.*s",
                    GL_STR_ARG(gl_buf_view(&names)));
    }
}

/* Is there nothing to rerun? A bundle always runs as a whole. */
static bool is_all_done(struct gl_api_reply *p, gl_jnode steps)
{
    bool is = gl_json_get(&p->j, p->root, "bundle") == NULL &&
              gl_json_first(&p->j, steps) != NULL &&
              gl_str_is(gl_api_reply_text(p, p->root, "status"), "completed");

    for (gl_jnode k = gl_json_first(&p->j, steps); k && is; k = gl_json_after(&p->j, steps, k)) {
        gl_str status = gl_api_reply_text(p, gl_json_value(k), "status");

        is = gl_str_is(status, "completed") || gl_str_is(status, "skipped");
    }
    return is;
}

/* Report what the earlier job means for this one. */
static void report_earlier_job(struct gl_connection *connection)
{
    struct gl_cli *cli = connection->cli;
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    struct gl_api_reply p;

    if (gl_api_reply_ask_all(&p, connection, &rq, NULL) == 0) {
        gl_jnode steps = gl_json_get(&p.j, gl_json_get(&p.j, p.root, "workflow_state"), "steps");

        warn_unsafe(cli, &p, steps);
        if (gl_cli_option(cli, "--from") == NULL && is_all_done(&p, steps)) {
            gl_cli_note(cli, "nothing to run: every step is reused; to rerun steps, "
                             "use --from STEP");
        }
    }
    gl_api_reply_done(&p);
}

int gl_cmd_job_retry(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    bool detach = gl_cli_option(cli, "--detach") != NULL;
    struct gl_progress progress;
    struct gl_follow follow;
    struct gl_connection connection;
    const char *job = NULL;
    struct gl_submission submission;
    struct gl_why why;
    int err, code = GL_EXIT_OK;

    gl_connect_init(&connection, cli);
    gl_submission_init(&submission, &connection, detach);
    write_retry(cli, &submission, &body);
    gl_progress_init(&progress, &cli->err, false);
    gl_follow_init(&follow, &connection, &progress);
    follow.pauses = true;
    err = ask_retry(&submission, &body, &job, &why);
    if (err == 0) {
        report_earlier_job(&connection);
    }
    if (err == 0 && !detach) {
        gl_cli_note(cli, "job %s", job);
        err = gl_follow_begin(&follow, job, &why);
    }
    if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (!detach) {
        code = gl_job_result_show(&follow, gl_follow_job(&follow), true);
    } else if (!cli->json) {
        (void)fprintf(cli->out.file, "%s\n", job);
    }
    gl_follow_done(&follow);
    gl_connect_done(&connection);
    gl_progress_done(&progress);
    return code;
}

/* ---- rm ---- */

/* On a terminal, ask for confirmation. */
static bool confirm_removal(struct gl_cli *cli)
{
    char answer[16] = "";

    if (gl_cli_option(cli, "--yes") != NULL || !cli->err.is_tty || isatty(STDIN_FILENO) != 1) {
        return true;
    }
    (void)fprintf(cli->err.file, "Remove %zu job%s with all events, outputs and logs? [y/N] ",
                  cli->words_n, cli->words_n == 1 ? "" : "s");
    (void)fflush(cli->err.file);
    return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

int gl_cmd_job_rm(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf json = {0};
    struct gl_connection connection;
    struct gl_jw w;
    int code = GL_EXIT_OK;

    if (!confirm_removal(cli)) {
        gl_cli_note(cli, "nothing was removed");
        return GL_EXIT_FAILED;
    }
    gl_connect_init(&connection, cli);
    connection.is_passive = true;
    gl_jw_init(&w, &json);
    gl_jw_object(&w);
    gl_jw_put_array(&w, "removed");
    for (size_t i = 0; i < cli->words_n && code == GL_EXIT_OK; i++) {
        struct gl_http_client_reply reply;
        struct gl_request rq = {.verb = GL_VERB_REMOVE, .job = gl_str_of(cli->words[i])};
        struct gl_why why;
        int err = gl_connect_send(&connection, GL_CONNECT_RETRY, &rq, &reply, &why);

        if (err != 0) {
            code = gl_cli_fail_why(cli, err, &why);
        } else if (!cli->json) {
            (void)fprintf(cli->out.file, "%s\n", cli->words[i]);
        }
        gl_jw_c(&w, cli->words[i]);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    if (cli->json && code == GL_EXIT_OK) {
        gl_term_print(&cli->out, gl_buf_view(&json));
    }
    gl_connect_done(&connection);
    return code;
}

/* ---- signal ---- */

/* The data of the signal: JSON, or nothing. */
static int read_data(struct gl_cli *cli, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *data = gl_cli_option(cli, "--data"), *file = gl_cli_option(cli, "--data-file");
    struct gl_why why;
    struct gl_json j;
    int err = 0;

    if (data != NULL && file != NULL) {
        return gl_cli_usage(cli, "give either --data or --data-file");
    }
    if (data == NULL && file == NULL) {
        return 0;
    }
    if (file != NULL) {
        err = gl_fs_read(strcmp(file, "-") == 0 ? "/dev/stdin" : file, GL_SIGNAL_BYTES_MAX, out,
                         &why);
    } else {
        gl_buf_c(out, data);
    }
    if (err != 0) {
        (void)gl_cli_fail_why(cli, err, &why);
        return GL_EXIT_USAGE;
    }
    if (gl_json_parse(&j, gl_buf_view(out), GL_SIGNAL_BYTES_MAX, &a, &why) != 0) {
        return gl_cli_usage(cli, "the data of the signal is not valid JSON: %s", why.text);
    }
    return 0;
}

int gl_cmd_job_signal(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf data = {0};
    struct gl_request rq = {
        .verb = GL_VERB_SIGNAL,
        .job = gl_str_of(cli->words[0]),
        .command = {.about = gl_str_of(cli->words[1]), .who = gl_str_of(gl_cli_user())}};
    struct gl_http_client_reply reply;
    struct gl_connection connection;
    struct gl_why why;
    int code = read_data(cli, &data), err;

    if (code != 0) {
        return code;
    }
    gl_connect_init(&connection, cli);
    connection.is_passive = true;
    rq.command.value = gl_buf_view(&data);
    /* Once: a signal that is sent twice counts twice. */
    err = gl_connect_send(&connection, GL_CONNECT_OPEN, &rq, &reply, &why);
    if (err == GL_E_GONE) {
        code = gl_cli_fail(
            cli, GL_R_ANSWER_LOST,
            "lost the connection to the node; the signal may have been delivered: see 'glia job "
            "events'");
    } else if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (cli->json) {
        gl_term_print(&cli->out, gl_str_trim(reply.body));
    } else {
        gl_cli_note(cli, "signal sent");
    }
    gl_connect_done(&connection);
    return code;
}
