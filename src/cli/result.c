#include "cli/result.h"

#include "base/check.h"
#include "cli/overview.h"
#include "cli/page.h"
#include "daemon.h"
#include "os/logfs.h"

enum { LOOK_BYTES = 128 << 10 };

/* "completed  hello  3 steps in 1.2s" on a terminal, "ID run status" when piped, where the run
 * is empty if it was given no id, as in a list. */
static void print_line(struct gl_cli *cli, struct gl_page *p)
{
    gl_str status = gl_page_text(p, p->root, "status");
    enum gl_color color = gl_term_status_color(status);
    gl_ms ended = gl_page_time(p, p->root, "ended_at");
    long long steps = gl_page_number(p, p->root, "steps_n");

    if (!cli->out.is_tty) {
        gl_str id = gl_page_text(p, p->root, "job_id"), run = gl_page_text(p, p->root, "run_id");

        (void)fprintf(cli->out.file, "%.*s\t%.*s\t%.*s\n", GL_STR_ARG(id),
                      GL_STR_ARG(gl_str_eq(run, id) ? (gl_str){0} : run), GL_STR_ARG(status));
        return;
    }
    ended = ended != 0 ? ended : gl_term_now();
    (void)fprintf(cli->out.file, "%s%.*s%s  %.*s  %lld step%s in %.*s\n",
                  gl_term_on(&cli->out, color), GL_STR_ARG(status), gl_term_off(&cli->out, color),
                  GL_STR_ARG(gl_term_safe(&p->arena, gl_page_text(p, p->root, "name"))), steps,
                  steps == 1 ? "" : "s",
                  GL_STR_ARG(gl_page_span(p, gl_page_time(p, p->root, "submitted_at"), ended)));
}

static void say_why(struct gl_cli *cli, struct gl_page *p)
{
    gl_str reason = gl_term_safe(&p->arena, gl_page_text(p, p->root, "reason"));
    gl_str step = gl_page_text(p, p->root, "failed_step");

    if (step.n > 0 && !gl_str_starts(reason, GL_S("step "))) {
        gl_cli_say(cli, "step %.*s failed: %.*s", GL_STR_ARG(step), GL_STR_ARG(reason));
    } else if (reason.n > 0) {
        gl_cli_say(cli, "%.*s", GL_STR_ARG(reason));
    }
}

/* Its last attempt never came to run: there is nothing it could have said. */
static bool is_silent(struct gl_cli *cli, struct gl_page *p, gl_str id)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf said = {0};
    gl_jnode steps = gl_json_get(&p->j, gl_json_get(&p->j, p->root, "workflow_state"), "steps");
    gl_jnode step = gl_json_get(&p->j, steps, gl_str_c(&p->arena, id));
    uint32_t attempt = (uint32_t)gl_page_number(p, step, "attempt_count");
    struct gl_logfs files;
    uint64_t next;

    if (attempt == 0 || gl_json_get(&p->j, step, "exit_code") != NULL) {
        return attempt == 0;
    }
    gl_logfs_init(&files, cli->data);
    return files.logs.read(&files.logs, cli->context, gl_page_text(p, p->root, "job_id"), id,
                           attempt, 0, LOOK_BYTES, &said, &next, NULL) == 0 &&
           said.n == 0;
}

/* Does a step of it wait for a decision? Else it is held for what its reason says. */
static bool asks_a_person(struct gl_reach *reach, gl_str job)
{
    struct gl_page human;
    bool asks =
        gl_overview_human(reach, &human, NULL) != 0 || gl_overview_asking_steps(&human, job) > 0;

    gl_page_done(&human);
    return asks;
}

/* NULL: there is nothing to do or to see. */
static const char *next_command(struct gl_reach *reach, struct gl_page *p, const char *id, int code)
{
    struct gl_cli *cli = reach->cli;
    gl_str step = gl_page_text(p, p->root, "failed_step");

    if ((code == GL_EXIT_WAITING || code == GL_EXIT_INTERRUPTED) &&
        gl_page_is(p, p->root, "damaged")) {
        return gl_str_fmt(&cli->arena, "%s; or mend the record, then: %s",
                          gl_cli_hint(cli, "job cancel %s", id),
                          gl_cli_hint(cli, "job resume %s", id))
            .p;
    }
    if (code == GL_EXIT_WAITING && gl_str_is(gl_page_text(p, p->root, "hold"), "review") &&
        asks_a_person(reach, gl_page_text(p, p->root, "job_id"))) {
        return gl_cli_hint(cli, "human list");
    }
    if (code == GL_EXIT_WAITING || code == GL_EXIT_INTERRUPTED) {
        return gl_cli_hint(cli, "job resume %s", id);
    }
    if (step.n > 0 && is_silent(cli, p, step)) {
        return NULL;
    }
    if (step.n > 0) {
        return gl_cli_hint(cli, "job logs %s %.*s", id, GL_STR_ARG(step));
    }
    return gl_cli_hint(cli, code == GL_EXIT_OK ? "job logs %s" : "job status %s", id);
}

static void show(struct gl_follow *f, struct gl_page *p, int code, bool talk)
{
    struct gl_cli *cli = f->reach->cli;
    const char *next;

    if (cli->json) {
        (void)gl_page_print_json(p, cli);
        return;
    }
    if (talk) {
        print_line(cli, p);
        (void)fflush(cli->out.file);
    }
    if (code != GL_EXIT_OK) {
        say_why(cli, p);
    }
    next = talk || code != GL_EXIT_OK ? next_command(f->reach, p, f->job, code) : NULL;
    if (next != NULL) {
        gl_cli_say(cli, "%s: %s", code == GL_EXIT_OK ? "to see what it said" : "next", next);
    }
}

static int ask(struct gl_follow *f, struct gl_page *p)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(f->job)};

    return gl_follow_ask(f, &rq, p);
}

int gl_result_show(struct gl_follow *f, int code, bool talk)
{
    bool has_left = code == GL_EXIT_INTERRUPTED && !f->is_pausing;
    struct gl_page page;
    int err;

    if (code == GL_EXIT_UNAVAILABLE || has_left) {
        return code; /* it has been said why */
    }
    err = ask(f, &page);
    if (err == 0) {
        show(f, &page, code, talk);
    }
    gl_page_done(&page);
    return err != 0 ? err : code;
}

int gl_result_settle(struct gl_follow *f)
{
    struct gl_cli *cli = f->reach->cli;
    struct gl_page page;
    int code;

    if (f->reach->daemon != NULL) {
        f->only_stops = true;               /* someone may have resumed it meanwhile, ... */
        gl_daemon_obeyed(f->reach->daemon); /* ... and someone may want the folder */
        code = gl_follow_job(f);
        if (code == GL_EXIT_UNAVAILABLE || code == GL_EXIT_INTERRUPTED) {
            return code;
        }
    }
    code = ask(f, &page);
    if (code == 0 && cli->json) {
        (void)gl_page_print_json(&page, cli);
    } else if (code == 0) {
        print_line(cli, &page);
    }
    gl_page_done(&page);
    return code;
}
