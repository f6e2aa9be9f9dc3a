/* cmd_human.c - glia human: what waits for a person: steps, and requests in the files of runs. */
#include "base/check.h"
#include "base/limits.h"
#include "cli/page.h"
#include "cli/table.h"
#include "os/humanfile.h"

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

static void add_steps(struct gl_table *t, struct gl_page *p)
{
    gl_jnode requests = gl_json_get(&p->j, p->root, "requests");

    for (gl_jnode e = gl_json_first(&p->j, requests); e; e = gl_json_after(&p->j, requests, e)) {
        gl_str asked = gl_page_text(p, e, "asked");

        gl_table_add(t, gl_page_text(p, e, "job_id"));
        gl_table_add(t, gl_page_text(p, e, "step_id"));
        gl_table_add(t, gl_page_text(p, e, "kind"));
        gl_table_add(t, decisions_of(p, e));
        gl_table_add(t, asked.n > 0 ? asked : gl_page_text(p, e, "reason"));
    }
}

/* ---- requests in the files of runs ---- */

/* One that is open. */
struct asked {
    struct asked *next;
    gl_str job, run_id;
    const struct gl_humanfile_request *request;
};

/* Where the folders of runs are: the option, what the node says, what is set. */
static const char *runs_root(struct gl_reach *reach)
{
    struct gl_cli *cli = reach->cli;
    const char *given = gl_cli_option(cli, "--runs-root");
    struct gl_client_reply reply;
    struct gl_json j;
    gl_str told = {0};

    if (given != NULL) {
        return given;
    }
    if (!reach->is_alone &&
        gl_reach_call(reach, "GET", "/v1/node", (gl_str){0}, &reply, NULL) == 0 &&
        gl_json_parse(&j, gl_str_dup(&cli->arena, reply.body), SIZE_MAX, &cli->arena, NULL) == 0) {
        told = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "runs_root"), &cli->arena);
    }
    return told.n > 0 ? gl_str_c(&cli->arena, told) : cli->settings->values[GL_SET_RUNS_ROOT].text;
}

static struct asked **add_open(struct gl_cli *cli, struct asked **end, const char *root, gl_str job,
                               gl_str run_id)
{
    struct gl_humanfile f;
    struct gl_why why = {0};

    if (gl_humanfile_read(root, run_id, &cli->arena, &f, &why) != 0) {
        gl_cli_say(cli, "requests of run %.*s: %s", GL_STR_ARG(run_id), why.text);
        return end;
    }
    for (size_t i = 0; i < f.n; i++) {
        if (!f.requests[i].is_answered) {
            *end = GL_NEW(&cli->arena, struct asked);
            **end = (struct asked){.job = gl_str_dup(&cli->arena, job),
                                   .run_id = gl_str_dup(&cli->arena, run_id),
                                   .request = &f.requests[i]};
            end = &(*end)->next;
        }
    }
    return end;
}

/* Of the newest live jobs. */
static struct asked *find_open(struct gl_reach *reach)
{
    static const char *const live[] = {"running", "pausing", "paused"};
    const char *root = runs_root(reach);
    struct asked *first = NULL, **end = &first;

    for (size_t i = 0; i < GL_COUNT(live); i++) {
        struct gl_request rq = {
            .verb = GL_VERB_LIST, .status = gl_str_of(live[i]), .limit = GL_PAGE_MAX};
        struct gl_page p;
        gl_jnode jobs = NULL;

        if (gl_page_ask(&p, reach, &rq, NULL) == 0) {
            jobs = gl_json_get(&p.j, p.root, "jobs");
        }
        for (gl_jnode e = gl_json_first(&p.j, jobs); e; e = gl_json_after(&p.j, jobs, e)) {
            end = add_open(reach->cli, end, root, gl_page_text(&p, e, "job_id"),
                           gl_page_text(&p, e, "run_id"));
        }
        gl_page_done(&p);
    }
    return first;
}

/* "ship it? (until 2026-...; then: reject)" */
static gl_str what_is_asked(struct gl_cli *cli, const struct gl_humanfile_request *r)
{
    char when[GL_WHEN_BYTES];
    gl_str then = r->default_decision.n > 0
                      ? gl_str_fmt(&cli->arena, "; then: %.*s", GL_STR_ARG(r->default_decision))
                      : (gl_str){0};

    return r->expires_at == 0
               ? r->prompt
               : gl_str_fmt(&cli->arena, "%.*s (%s %.*s%.*s)", GL_STR_ARG(r->prompt),
                            gl_humanfile_is_over(r, gl_term_now()) ? "expired" : "until",
                            GL_STR_ARG(gl_when_format(r->expires_at, when)), GL_STR_ARG(then));
}

static void print_requests(struct gl_cli *cli, struct gl_page *p, const struct asked *asked)
{
    static const char *const titles[] = {"JOB", "STEP", "KIND", "DECISIONS", "WHAT"};
    static const char *const least[] = {"KIND", NULL};
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    t.least = least;
    add_steps(&t, p);
    for (const struct asked *a = asked; a != NULL; a = a->next) {
        gl_table_add(&t, a->job);
        gl_table_add(&t, a->request->request_id);
        gl_table_add(&t, GL_S("request"));
        gl_table_add(&t, gl_humanfile_decisions(a->request, "|", &cli->arena));
        gl_table_add(&t, what_is_asked(cli, a->request));
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

static void write_end(struct gl_jw *w, const struct gl_humanfile_request *r)
{
    char when[GL_WHEN_BYTES];

    if (r->expires_at != 0) {
        gl_jw_key(w, "expires_at");
        gl_jw_str(w, gl_when_format(r->expires_at, when));
        gl_jw_key(w, "expired");
        gl_jw_bool(w, gl_humanfile_is_over(r, gl_term_now()));
    }
    if (r->default_decision.n > 0) {
        gl_jw_key(w, "default_decision");
        gl_jw_str(w, r->default_decision);
    }
}

static void write_asked(struct gl_jw *w, const struct asked *a)
{
    const struct gl_humanfile_request *r = a->request;

    gl_jw_object(w);
    gl_jw_key(w, "job_id");
    gl_jw_str(w, a->job);
    gl_jw_key(w, "run_id");
    gl_jw_str(w, a->run_id);
    gl_jw_key(w, "request_id");
    gl_jw_str(w, r->request_id);
    gl_jw_key(w, "kind");
    gl_jw_c(w, "request");
    gl_jw_key(w, "reason");
    gl_jw_str(w, r->prompt);
    gl_jw_key(w, "decisions");
    gl_jw_array(w);
    for (size_t i = 0; i < r->decisions.n; i++) {
        gl_jw_str(w, r->decisions.items[i]);
    }
    if (r->decisions.n == 0) {
        gl_jw_c(w, "approve");
        gl_jw_c(w, "reject");
    }
    gl_jw_end(w);
    write_end(w, r);
    gl_jw_end(w);
}

static void print_json(struct gl_cli *cli, struct gl_page *p, const struct asked *asked)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_jnode requests = gl_json_get(&p->j, p->root, "requests");
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_key(&w, "requests");
    gl_jw_array(&w);
    for (gl_jnode e = gl_json_first(&p->j, requests); e; e = gl_json_after(&p->j, requests, e)) {
        gl_jw_raw(&w, gl_json_raw(&p->j, e));
    }
    for (; asked != NULL; asked = asked->next) {
        write_asked(&w, asked);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    (void)fprintf(cli->out.file, "%.*s\n", GL_STR_ARG(gl_buf_view(&out)));
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
        print_json(cli, &page, find_open(&reach));
    } else {
        print_requests(cli, &page, find_open(&reach));
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

/* ---- which one is meant ---- */

/* Does a step of this job with this id wait for a person? */
static bool waits(struct gl_page *human, gl_str job, gl_str step)
{
    gl_jnode all = gl_json_get(&human->j, human->root, "requests");

    for (gl_jnode e = gl_json_first(&human->j, all); e; e = gl_json_after(&human->j, all, e)) {
        if (gl_str_eq(gl_page_text(human, e, "job_id"), job) &&
            gl_str_eq(gl_page_text(human, e, "step_id"), step)) {
            return true;
        }
    }
    return false;
}

/* In a bundle it is an agent that waits: its name, or a step that is its, will do. */
static gl_str step_meant(struct gl_reach *reach, struct gl_page *status)
{
    struct gl_request rq = {.verb = GL_VERB_HUMAN, .limit = GL_PAGE_MAX};
    struct gl_arena *a = &reach->cli->arena;
    const char *word = reach->cli->words[1];
    gl_str job = gl_page_text(status, status->root, "job_id"), meant = gl_str_of(word);
    gl_str agent = gl_str_fmt(a, "@%s", word);
    gl_jnode steps =
        gl_json_get(&status->j, gl_json_get(&status->j, status->root, "workflow_state"), "steps");
    gl_jnode agents = gl_json_get(&status->j, gl_json_get(&status->j, steps, word), "agent_ids");
    struct gl_page human;

    if (gl_page_ask(&human, reach, &rq, NULL) == 0 && !waits(&human, job, meant)) {
        meant = waits(&human, job, agent) ? agent : meant;
        for (gl_jnode e = gl_json_first(&status->j, agents); e;
             e = gl_json_after(&status->j, agents, e)) {
            agent = gl_str_fmt(a, "@%.*s", GL_STR_ARG(gl_json_str(&status->j, e, a)));
            meant = waits(&human, job, agent) ? agent : meant;
        }
    }
    gl_page_done(&human);
    return meant;
}

static bool has_request(const char *root, gl_str run_id, const char *request, struct gl_arena *a)
{
    struct gl_humanfile f;

    if (gl_humanfile_read(root, run_id, a, &f, NULL) == 0) {
        for (size_t i = 0; i < f.n; i++) {
            if (gl_str_is(f.requests[i].request_id, request)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_step(struct gl_page *status, const char *word)
{
    gl_jnode steps =
        gl_json_get(&status->j, gl_json_get(&status->j, status->root, "workflow_state"), "steps");

    return word[0] == '@' || gl_json_get(&status->j, steps, word) != NULL;
}

/* ---- answering ---- */

static int respond_in_file(struct gl_cli *cli, const char *root, gl_str run_id)
{
    const char *reviewer = gl_cli_option(cli, "--reviewer");
    char when[GL_WHEN_BYTES];
    gl_ms now = gl_term_now();
    struct gl_humanfile_answer answer = {
        .request_id = gl_str_of(cli->words[1]),
        .decision = gl_str_of(gl_cli_option(cli, "--decision")),
        .reviewer = gl_str_of(reviewer != NULL ? reviewer : gl_cli_who()),
        .reason = gl_str_of(gl_cli_option(cli, "--reason")),
        .output = gl_str_trim(gl_str_of(gl_cli_option(cli, "--output"))),
        .now = now,
        .at = gl_when_format(now, when),
    };
    struct gl_why why;
    int err = gl_humanfile_respond(root, run_id, &answer, &cli->arena, &why);

    if (err != 0) {
        return gl_cli_fail(cli, err, why.text);
    }
    if (cli->json) {
        (void)fprintf(cli->out.file, "{\"run_id\":\"%.*s\"}\n", GL_STR_ARG(run_id));
    } else {
        gl_cli_say(cli, "noted for run %.*s", GL_STR_ARG(run_id));
    }
    return GL_EXIT_OK;
}

static int respond_to_step(struct gl_reach *reach, gl_str step, gl_str body)
{
    struct gl_cli *cli = reach->cli;
    struct gl_client_reply reply;
    struct gl_why why;
    int err =
        gl_reach_insist(reach, "POST",
                        gl_reach_job_path(cli, gl_str_of(cli->words[0]), "/steps/%.*s/respond",
                                          GL_STR_ARG(gl_reach_escape(&cli->arena, step))),
                        body, &reply, &why);

    if (err != 0) {
        return gl_cli_fail(cli, err, why.text);
    }
    if (cli->json) {
        (void)fwrite(reply.body.p, 1, reply.body.n, cli->out.file);
    } else {
        say_noted(cli, reach);
    }
    return GL_EXIT_OK;
}

static int respond(struct gl_reach *reach, gl_str body)
{
    struct gl_cli *cli = reach->cli;
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    struct gl_page status;
    struct gl_why why;
    int err = gl_page_ask(&status, reach, &rq, &why), code;
    const char *root = runs_root(reach);
    /* A run of another data folder is known by its folder only. */
    gl_str run_id = err == 0 ? gl_page_text(&status, status.root, "run_id") : rq.job;

    if (has_request(root, run_id, cli->words[1], &cli->arena)) {
        code = respond_in_file(cli, root, run_id);
    } else if (err != 0) {
        code = gl_cli_fail(cli, err, why.text);
    } else if (gl_json_get(&status.j, status.root, "bundle") != NULL &&
               !is_step(&status, cli->words[1]) &&
               gl_str_is(step_meant(reach, &status), cli->words[1])) {
        code = respond_in_file(cli, root, run_id); /* it says which there are */
    } else {
        code = respond_to_step(reach, step_meant(reach, &status), body);
    }
    gl_page_done(&status);
    return code;
}

int gl_cmd_human_respond(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    struct gl_reach reach;
    int code = write_response(cli, &body);

    if (code == 0) {
        gl_reach_init(&reach, cli);
        reach.is_passive = true;
        code = respond(&reach, gl_buf_view(&body));
        gl_reach_done(&reach);
    }
    return code;
}
