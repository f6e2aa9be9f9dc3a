/* cmd_job.c - glia job: looking at jobs, and stopping or continuing them. */
#include "base/check.h"
#include "base/limits.h"
#include "cli/page.h"
#include "cli/result.h"
#include "cli/table.h"

/* ---- list ---- */

static void add_job(struct gl_table *t, struct gl_page *p, gl_jnode job, gl_ms now)
{
    int64_t done = gl_page_number(p, job, "completed_n") + gl_page_number(p, job, "partial_n") +
                   gl_page_number(p, job, "skipped_n") + gl_page_number(p, job, "failed_n");
    gl_ms submitted = gl_page_time(p, job, "submitted_at");
    gl_ms ended = gl_page_time(p, job, "ended_at");
    gl_str run_id = gl_page_text(p, job, "run_id");

    if (gl_str_eq(run_id, gl_page_text(p, job, "job_id"))) {
        run_id = (gl_str){0};
    }
    gl_table_add(t, gl_page_text(p, job, "job_id"));
    gl_table_add(t, gl_page_text(p, job, "status"));
    gl_table_add(t, gl_page_text(p, job, "name"));
    gl_table_add(t, run_id);
    gl_table_add(t, gl_str_fmt(&p->arena, "%lld/%lld", (long long)done,
                               (long long)gl_page_number(p, job, "steps_n")));
    gl_table_add(t, gl_page_text(p, job, "submitted_at"));
    gl_table_add(t, gl_page_span(p, submitted, ended != 0 ? ended : now));
}

static void print_jobs(struct gl_cli *cli, struct gl_page *p)
{
    static const char *const titles[] = {"JOB",   "STATUS",    "NAME", "RUN ID",
                                         "STEPS", "SUBMITTED", "TOOK"};
    gl_jnode jobs = gl_json_get(&p->j, p->root, "jobs");
    gl_ms now = gl_term_now();
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    for (gl_jnode e = gl_json_first(&p->j, jobs); e; e = gl_json_after(&p->j, jobs, e)) {
        add_job(&t, p, e, now);
    }
    if (t.n > 0) {
        gl_table_print(&t, &cli->out);
    } else {
        gl_cli_say(cli, "no jobs here; the data folder is %s", cli->data);
    }
    gl_table_done(&t);
}

int gl_cmd_job_list(struct gl_cli *cli)
{
    const char *limit = gl_cli_option(cli, "--limit");
    struct gl_request rq = {
        .verb = GL_VERB_LIST, .status = gl_str_of(gl_cli_option(cli, "--status")), .limit = 100};
    struct gl_reach reach;
    struct gl_page page;
    struct gl_why why;
    uint64_t n;
    int err;

    if (limit != NULL) {
        if (!gl_str_u64(gl_str_of(limit), &n) || n < 1 || n > GL_PAGE_MAX) {
            return gl_cli_usage(cli, "--limit takes a number from 1 to %d", GL_PAGE_MAX);
        }
        rq.limit = (uint32_t)n;
    }
    gl_reach_init(&reach, cli);
    err = gl_page_ask(&page, &reach, &rq, &why);
    if (err != 0) {
        err = gl_cli_fail(cli, err, why.text);
    } else if (cli->json) {
        err = gl_page_print_json(&page, cli);
    } else {
        print_jobs(cli, &page);
        gl_page_say_alone(&page, &reach);
    }
    gl_page_done(&page);
    gl_reach_done(&reach);
    return err;
}

/* ---- status ---- */

static void print_head(struct gl_cli *cli, struct gl_page *p)
{
    gl_str status = gl_page_text(p, p->root, "status");
    gl_str reason = gl_page_text(p, p->root, "reason");
    enum gl_color color = gl_term_status_color(status);
    gl_ms submitted = gl_page_time(p, p->root, "submitted_at");
    gl_ms ended = gl_page_time(p, p->root, "ended_at");
    gl_str took = gl_page_span(p, submitted, ended != 0 ? ended : gl_term_now());

    if (!cli->out.is_tty) {
        return; /* the steps are the data */
    }
    (void)fprintf(cli->out.file, "%s%.*s%s  %.*s\n", gl_term_on(&cli->out, color),
                  GL_STR_ARG(status), gl_term_off(&cli->out, color),
                  GL_STR_ARG(gl_page_text(p, p->root, "name")));
    (void)fprintf(cli->out.file, "job %.*s, submitted %.*s, %.*s\n",
                  GL_STR_ARG(gl_page_text(p, p->root, "job_id")),
                  GL_STR_ARG(gl_page_text(p, p->root, "submitted_at")), GL_STR_ARG(took));
    if (reason.n > 0) {
        (void)fprintf(cli->out.file, "%.*s\n", GL_STR_ARG(gl_term_safe(&p->arena, reason)));
    }
    (void)fputc('\n', cli->out.file);
}

static void print_steps(struct gl_cli *cli, struct gl_page *p)
{
    static const char *const titles[] = {"STEP", "STATUS", "ATTEMPTS", "STARTED", "TOOK", "REASON"};
    gl_jnode steps = gl_json_get(&p->j, gl_json_get(&p->j, p->root, "workflow_state"), "steps");
    gl_ms now = gl_term_now();
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    for (gl_jnode k = gl_json_first(&p->j, steps); k; k = gl_json_after(&p->j, steps, k)) {
        gl_jnode s = gl_json_value(k);
        gl_str reason = gl_page_text(p, s, "terminal_reason");
        gl_ms ended = gl_page_time(p, s, "ended_at");

        gl_table_add(&t, gl_json_str(&p->j, k, &p->arena));
        gl_table_add(&t, gl_page_text(p, s, "status"));
        gl_table_add(
            &t, gl_str_fmt(&p->arena, "%lld", (long long)gl_page_number(p, s, "attempt_count")));
        gl_table_add(&t, gl_page_text(p, s, "started_at"));
        gl_table_add(&t,
                     gl_page_span(p, gl_page_time(p, s, "started_at"), ended != 0 ? ended : now));
        gl_table_add(&t, reason.n > 0 ? reason : gl_page_text(p, s, "last_error"));
    }
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

int gl_cmd_job_status(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    struct gl_reach reach;
    struct gl_page page;
    struct gl_why why;
    int err;

    gl_reach_init(&reach, cli);
    err = gl_page_ask(&page, &reach, &rq, &why);
    if (err != 0) {
        err = gl_cli_fail(cli, err, why.text);
    } else if (cli->json) {
        err = gl_page_print_json(&page, cli);
    } else {
        print_head(cli, &page);
        print_steps(cli, &page);
        (void)gl_reach_say_alone(&reach, gl_page_text(&page, page.root, "status"));
    }
    gl_page_done(&page);
    gl_reach_done(&reach);
    return err;
}

/* ---- events ---- */

static void print_event(struct gl_cli *cli, struct gl_page *p, gl_jnode e)
{
    gl_str step = gl_page_text(p, e, "step_id");
    gl_str reason = gl_term_safe(&p->arena, gl_page_text(p, e, "reason"));
    int64_t attempt = gl_page_number(p, e, "attempt");
    const char *attempt_text =
        attempt > 0 ? gl_str_fmt(&p->arena, "%lld", (long long)attempt).p : "";

    if (cli->json) {
        gl_str raw = gl_json_raw(&p->j, e);

        (void)fprintf(cli->out.file, "%.*s\n", GL_STR_ARG(raw));
    } else {
        (void)fprintf(cli->out.file,
                      cli->out.is_tty ? "%4lld  %.*s  %-38.*s  %.*s %s  %.*s\n"
                                      : "%lld\t%.*s\t%.*s\t%.*s\t%s\t%.*s\n",
                      (long long)gl_page_number(p, e, "seq"),
                      GL_STR_ARG(gl_page_text(p, e, "timestamp")),
                      GL_STR_ARG(gl_page_text(p, e, "type")), GL_STR_ARG(step), attempt_text,
                      GL_STR_ARG(reason));
    }
}

/* One page of events; *ret_more: there is another, or will be. */
static int show_events(struct gl_cli *cli, struct gl_reach *reach, struct gl_request *rq,
                       bool follow, bool *ret_more)
{
    struct gl_page page;
    struct gl_why why;
    int64_t before = rq->from_seq;
    bool ended = false;
    int err = gl_page_ask(&page, reach, rq, &why);

    if (err != 0) {
        err = gl_cli_fail(cli, err, why.text);
    } else {
        gl_jnode events = gl_json_get(&page.j, page.root, "events");

        for (gl_jnode e = gl_json_first(&page.j, events); e;
             e = gl_json_after(&page.j, events, e)) {
            print_event(cli, &page, e);
        }
        rq->from_seq = gl_page_number(&page, page.root, "next_seq");
        (void)gl_json_bool(gl_json_get(&page.j, page.root, "ended"), &ended);
        /* Without a node nothing more will happen. */
        *ret_more = rq->from_seq > before || (follow && !ended && reach->client.fd >= 0);
        (void)fflush(cli->out.file);
    }
    gl_page_done(&page);
    return err;
}

int gl_cmd_job_events(struct gl_cli *cli)
{
    const char *from = gl_cli_option(cli, "--from");
    bool follow = gl_cli_option(cli, "--follow") != NULL, more = true;
    struct gl_request rq = {.verb = GL_VERB_EVENTS,
                            .job = gl_str_of(cli->words[0]),
                            .from_seq = 1,
                            .wait_ms = follow ? 10000 : 0,
                            .limit = GL_PAGE_MAX};
    struct gl_reach reach;
    int err = 0;

    if (from != NULL && (!gl_str_i64(gl_str_of(from), &rq.from_seq) || rq.from_seq < 0)) {
        return gl_cli_usage(cli, "--from takes the number of an event");
    }
    gl_reach_init(&reach, cli);
    while (err == 0 && more) {
        err = show_events(cli, &reach, &rq, follow, &more);
    }
    gl_reach_done(&reach);
    return err;
}

/* ---- pause, resume, cancel ---- */

static void write_command(struct gl_cli *cli, struct gl_buf *body)
{
    struct gl_jw w;

    gl_jw_init(&w, body);
    gl_jw_object(&w);
    gl_jw_key(&w, "who");
    gl_jw_c(&w, gl_cli_who());
    gl_jw_key(&w, "reason");
    gl_jw_str(&w, gl_str_of(gl_cli_option(cli, "--reason")));
    gl_jw_end(&w);
}

/* There is nothing to go on with. That is no mistake of who asks: how it ended is what matters. */
static bool has_ended(struct gl_follow *f)
{
    if (gl_follow_begin(f, f->reach->cli->words[0], NULL) != 0 ||
        !(gl_str_is(f->status, "completed") || gl_str_is(f->status, "failed") ||
          gl_str_is(f->status, "cancelled"))) {
        return false;
    }
    gl_cli_say(f->reach->cli, "the job has ended already: %.*s", GL_STR_ARG(f->status));
    return true;
}

/* Tell the node, or be it. `stay`: until the job has ended or waits for a person. */
static int command(struct gl_cli *cli, const char *verb, bool stay)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    struct gl_client_reply reply;
    struct gl_progress progress;
    struct gl_follow follow;
    struct gl_reach reach;
    struct gl_why why;
    int err, code;

    write_command(cli, &body);
    gl_reach_init(&reach, cli);
    gl_progress_init(&progress, &cli->err, !stay);
    gl_follow_init(&follow, &reach, &progress);
    follow.pauses = stay;
    err = gl_reach_insist(&reach, "POST",
                          gl_reach_job_path(cli, gl_str_of(cli->words[0]), "/%s", verb),
                          gl_buf_view(&body), &reply, &why);
    if (err == 0) {
        err = gl_follow_begin(&follow, cli->words[0], &why);
    }
    if (stay && err == GL_E_STATE && has_ended(&follow)) {
        err = 0;
    }
    if (err != 0) {
        code = gl_cli_fail(cli, err, why.text);
    } else if (stay) {
        code = gl_result_show(&follow, gl_follow_job(&follow), true);
    } else {
        code = gl_result_settle(&follow);
    }
    gl_follow_done(&follow);
    gl_reach_done(&reach);
    gl_progress_done(&progress);
    return code;
}

int gl_cmd_job_pause(struct gl_cli *cli)
{
    return command(cli, "pause", false);
}

int gl_cmd_job_resume(struct gl_cli *cli)
{
    return command(cli, "resume", true);
}

int gl_cmd_job_cancel(struct gl_cli *cli)
{
    return command(cli, "cancel", false);
}
