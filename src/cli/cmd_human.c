/* cmd_human.c - glia human: what waits for a person. */
#include "base/check.h"
#include "base/limits.h"
#include "cli/page.h"
#include "cli/table.h"

/* "approve|reject" */
static gl_str decisions_of(struct gl_page *p, gl_jnode request)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_jnode words = gl_json_get(&p->j, request, "decisions");

    for (gl_jnode e = gl_json_first(&p->j, words); e; e = gl_json_after(&p->j, words, e)) {
        gl_buf_c(&out, out.n > 0 ? "|" : "");
        gl_buf_str(&out, gl_json_str(&p->j, e, &p->arena));
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

static void print_requests(struct gl_cli *cli, struct gl_page *p)
{
    static const char *const titles[] = {"JOB", "STEP", "KIND", "DECISIONS", "WHAT"};
    static const char *const least[] = {"KIND", NULL};
    gl_jnode requests = gl_json_get(&p->j, p->root, "requests");
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    t.least = least;
    for (gl_jnode e = gl_json_first(&p->j, requests); e; e = gl_json_after(&p->j, requests, e)) {
        gl_str asked = gl_page_text(p, e, "asked");

        gl_table_add(&t, gl_page_text(p, e, "job_id"));
        gl_table_add(&t, gl_page_text(p, e, "step_id"));
        gl_table_add(&t, gl_page_text(p, e, "kind"));
        gl_table_add(&t, decisions_of(p, e));
        gl_table_add(&t, asked.n > 0 ? asked : gl_page_text(p, e, "reason"));
    }
    if (t.n > 0) {
        gl_table_print(&t, &cli->out);
        (void)fflush(cli->out.file);
        gl_cli_say(cli, "to decide: %s",
                   gl_cli_hint(cli, "human respond JOB STEP --decision WORD"));
    } else {
        gl_cli_say(cli, "nothing waits for a person");
    }
    gl_table_done(&t);
}

/* Steps that nobody drives may come to wait for a person once they are. */
static void say_alone(struct gl_reach *reach)
{
    struct gl_request rq = {.verb = GL_VERB_LIST, .limit = GL_PAGE_MAX};
    struct gl_page jobs;

    if (gl_page_ask(&jobs, reach, &rq, NULL) == 0) {
        gl_page_say_alone(&jobs, reach);
    }
    gl_page_done(&jobs);
}

int gl_cmd_human_list(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_HUMAN, .limit = GL_PAGE_MAX};
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
        print_requests(cli, &page);
        if (reach.is_alone) {
            say_alone(&reach);
        }
    }
    gl_page_done(&page);
    gl_reach_done(&reach);
    return err;
}

static int write_response(struct gl_cli *cli, struct gl_buf *body)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *decision = gl_cli_option(cli, "--decision");
    const char *output = gl_cli_option(cli, "--output");
    const char *reviewer = gl_cli_option(cli, "--reviewer");
    struct gl_why why;
    struct gl_json j;
    struct gl_jw w;

    if (decision == NULL) {
        return gl_cli_usage(cli, "what was decided? --decision rerun, done or failed; for an "
                                 "approval one of those that 'glia human list' shows");
    }
    if (output != NULL && (strcmp(decision, "rerun") == 0 || strcmp(decision, "failed") == 0)) {
        return gl_cli_usage(cli,
                            "--output does not go with --decision %s: of a review, it goes "
                            "with done only",
                            decision);
    }
    gl_jw_init(&w, body);
    gl_jw_object(&w);
    gl_jw_key(&w, "decision");
    gl_jw_c(&w, decision);
    gl_jw_key(&w, "who");
    gl_jw_c(&w, reviewer != NULL ? reviewer : gl_cli_who());
    gl_jw_key(&w, "reason");
    gl_jw_str(&w, gl_str_of(gl_cli_option(cli, "--reason")));
    if (output != NULL) {
        if (gl_json_parse(&j, gl_str_of(output), GL_OUTPUT_BYTES_MAX, &a, &why) != 0) {
            return gl_cli_usage(cli, "--output is not JSON: %s", why.text);
        }
        gl_jw_key(&w, "output");
        gl_jw_raw(&w, gl_str_trim(gl_str_of(output)));
    }
    gl_jw_end(&w);
    return 0;
}

/* What becomes of the job now. */
static void say_noted(struct gl_cli *cli, struct gl_reach *reach)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    bool is_node = reach->daemon != NULL;
    struct gl_page page;
    gl_str status = {0};

    if (gl_page_ask(&page, reach, &rq, NULL) == 0) {
        status = gl_page_text(&page, page.root, "status");
    }
    if (gl_str_is(status, "completed") || gl_str_is(status, "failed") ||
        gl_str_is(status, "cancelled")) {
        gl_cli_say(cli, "noted; the job has ended: %.*s", GL_STR_ARG(status));
    } else if (is_node || gl_str_is(status, "paused")) {
        gl_cli_say(cli, "noted; to go on with the job: %s",
                   gl_cli_hint(cli, "job resume %s", cli->words[0]));
    } else {
        gl_cli_say(cli, "noted; the job goes on");
    }
    gl_page_done(&page);
}

int gl_cmd_human_respond(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    struct gl_client_reply reply;
    struct gl_reach reach;
    struct gl_why why;
    int code = write_response(cli, &body), err;

    if (code != 0) {
        return code;
    }
    gl_reach_init(&reach, cli);
    reach.is_passive = true;
    err = gl_reach_insist(
        &reach, "POST",
        gl_reach_job_path(cli, gl_str_of(cli->words[0]), "/steps/%.*s/respond",
                          GL_STR_ARG(gl_reach_escape(&cli->arena, gl_str_of(cli->words[1])))),
        gl_buf_view(&body), &reply, &why);
    if (err != 0) {
        code = gl_cli_fail(cli, err, why.text);
    } else if (cli->json) {
        (void)fwrite(reply.body.p, 1, reply.body.n, cli->out.file);
    } else {
        say_noted(cli, &reach);
    }
    gl_reach_done(&reach);
    return code;
}
