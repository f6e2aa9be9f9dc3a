#include "cli/output/job_result.h"

#include "app/daemon.h"
#include "base/check.h"
#include "cli/connect/api_reply.h"
#include "cli/output/overview.h"
#include "os/logfs.h"

enum { LOG_BYTES = 128 << 10 };

/* "completed  hello  3 steps in 1.2s" on a terminal, "ID RUN STATUS" on a pipe, where RUN is empty
 * if the job was given no run id, as in a list. */
static void print_line(struct gl_cli *cli, struct gl_api_reply *p)
{
    gl_str status = gl_api_reply_text(p, p->root, "status");
    enum gl_color color = gl_term_status_color(status);
    gl_ms ended = gl_api_reply_time(p, p->root, "ended_at");
    long long steps = gl_api_reply_number(p, p->root, "steps_n");

    if (!cli->out.is_tty) {
        gl_str id = gl_api_reply_text(p, p->root, "job_id"),
               run = gl_api_reply_text(p, p->root, "run_id");

        (void)fprintf(cli->out.file, "%.*s\t%.*s\t%.*s\n", GL_STR_ARG(id),
                      GL_STR_ARG(gl_str_eq(run, id) ? (gl_str){0} : run), GL_STR_ARG(status));
        return;
    }
    ended = ended != 0 ? ended : gl_term_now();
    (void)fprintf(
        cli->out.file, "%s%.*s%s  %.*s  %lld step%s in %.*s\n", gl_term_on(&cli->out, color),
        GL_STR_ARG(status), gl_term_off(&cli->out, color),
        GL_STR_ARG(gl_term_safe(&p->arena, gl_api_reply_text(p, p->root, "name"))), steps,
        steps == 1 ? "" : "s",
        GL_STR_ARG(gl_api_reply_span(p, gl_api_reply_time(p, p->root, "submitted_at"), ended)));
}

static void print_reason(struct gl_cli *cli, struct gl_api_reply *p)
{
    gl_str reason = gl_term_safe(&p->arena, gl_api_reply_text(p, p->root, "reason"));
    gl_str step = gl_api_reply_text(p, p->root, "failed_step");

    if (step.n > 0 && !gl_str_starts(reason, GL_S("step "))) {
        gl_cli_note(cli, "step %.*s failed: %.*s", GL_STR_ARG(step), GL_STR_ARG(reason));
    } else if (reason.n > 0) {
        gl_cli_note(cli, "%.*s", GL_STR_ARG(reason));
    }
}

/* The last attempt never ran, so it has no log. */
static bool has_no_output(struct gl_cli *cli, struct gl_api_reply *p, gl_str id)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf said = {0};
    gl_jnode steps = gl_json_get(&p->j, gl_json_get(&p->j, p->root, "workflow_state"), "steps");
    gl_jnode step = gl_json_get(&p->j, steps, gl_str_c(&p->arena, id));
    uint32_t attempt = (uint32_t)gl_api_reply_number(p, step, "attempt_count");
    struct gl_logfs files;
    uint64_t next;

    if (attempt == 0 || gl_json_get(&p->j, step, "exit_code") != NULL) {
        return attempt == 0;
    }
    gl_logfs_init(&files, cli->data);
    return files.logs.read(&files.logs, cli->context, gl_api_reply_text(p, p->root, "job_id"), id,
                           attempt, 0, LOG_BYTES, &said, &next, NULL) == 0 &&
           said.n == 0;
}

/* Does a step wait for a decision? If not, the reason of the job explains why it is paused. */
static bool waits_for_person(struct gl_connection *connection, gl_str job)
{
    struct gl_api_reply human;
    bool asks = gl_overview_human(connection, &human, NULL) != 0 ||
                gl_overview_asking_steps(&human, job) > 0;

    gl_api_reply_done(&human);
    return asks;
}

/* NULL: there is no next command. */
static const char *next_command(struct gl_connection *connection, struct gl_api_reply *p,
                                const char *id, int code)
{
    struct gl_cli *cli = connection->cli;
    gl_str step = gl_api_reply_text(p, p->root, "failed_step");

    if ((code == GL_EXIT_WAITING || code == GL_EXIT_INTERRUPTED) &&
        gl_api_reply_is(p, p->root, "damaged")) {
        return gl_str_fmt(&cli->arena, "%s; or repair the record, then: %s",
                          gl_cli_hint(cli, "job cancel %s", id),
                          gl_cli_hint(cli, "job resume %s", id))
            .p;
    }
    if (code == GL_EXIT_WAITING && gl_str_is(gl_api_reply_text(p, p->root, "hold"), "review") &&
        waits_for_person(connection, gl_api_reply_text(p, p->root, "job_id"))) {
        return gl_cli_hint(cli, "human list");
    }
    if (code == GL_EXIT_WAITING || code == GL_EXIT_INTERRUPTED) {
        return gl_cli_hint(cli, "job resume %s", id);
    }
    if (step.n > 0 && has_no_output(cli, p, step)) {
        return NULL;
    }
    if (step.n > 0) {
        return gl_cli_hint(cli, "job logs %s %.*s", id, GL_STR_ARG(step));
    }
    return gl_cli_hint(cli, code == GL_EXIT_OK ? "job logs %s" : "job status %s", id);
}

static void show(struct gl_follow *f, struct gl_api_reply *p, int code, bool talk)
{
    struct gl_cli *cli = f->connection->cli;
    const char *next;

    if (cli->json) {
        (void)gl_api_reply_print_json(p, cli);
        return;
    }
    if (talk) {
        print_line(cli, p);
        (void)fflush(cli->out.file);
    }
    if (code != GL_EXIT_OK) {
        print_reason(cli, p);
    }
    next = talk || code != GL_EXIT_OK ? next_command(f->connection, p, f->job, code) : NULL;
    if (next != NULL) {
        gl_cli_note(cli, "%s: %s", code == GL_EXIT_OK ? "to see its logs" : "next", next);
    }
}

static int query_job(struct gl_follow *f, struct gl_api_reply *p)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(f->job)};

    return gl_follow_ask(f, &rq, p);
}

int gl_job_result_show(struct gl_follow *f, int code, bool talk)
{
    bool has_left = code == GL_EXIT_INTERRUPTED && !f->is_pausing;
    struct gl_api_reply page;
    int err;

    if (code == GL_EXIT_UNAVAILABLE || has_left) {
        return code; /* the reason was printed */
    }
    err = query_job(f, &page);
    if (err == 0) {
        show(f, &page, code, talk);
    }
    gl_api_reply_done(&page);
    return err != 0 ? err : code;
}

int gl_job_result_wait_stopped(struct gl_follow *f)
{
    struct gl_cli *cli = f->connection->cli;
    struct gl_api_reply page;
    int code;

    if (f->connection->daemon != NULL) {
        f->only_stops = true; /* another command may have resumed it meanwhile, ... */
        gl_daemon_command_done(f->connection->daemon); /* ... or another node may want the folder */
        code = gl_follow_job(f);
        if (code == GL_EXIT_UNAVAILABLE || code == GL_EXIT_INTERRUPTED) {
            return code;
        }
    }
    code = query_job(f, &page);
    if (code == 0 && cli->json) {
        (void)gl_api_reply_print_json(&page, cli);
    } else if (code == 0) {
        print_line(cli, &page);
    }
    gl_api_reply_done(&page);
    return code;
}
