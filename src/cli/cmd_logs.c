/* cmd_logs.c - glia job logs: what steps have said. */
#include <poll.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "os/logfs.h"

enum {
    PAGE_BYTES = 1 << 20,
    PAUSE_MS = 20, /* when something came just now */
    PAUSE_MS_MAX = 300,
    PATH_BYTES = 512, /* not in the command's arena, which a long wait would fill */
};

struct paper {
    struct gl_cli *cli;
    struct gl_reach reach;
    struct gl_page page; /* the job's state */
    gl_str job, step;    /* step "": all */
    uint32_t attempt;    /* 0: the last */
    bool follow;
    bool with_names; /* lines begin with the step's id */
    struct gl_jw w;  /* --json */
    struct gl_buf json;
};

/* ---- lines ---- */

static void write_json(struct paper *p, gl_str step, uint32_t attempt, gl_str time, gl_str stream,
                       gl_str text)
{
    char when[GL_WHEN_BYTES];
    int64_t ms = 0;

    (void)gl_str_i64(time, &ms);
    gl_jw_object(&p->w);
    gl_jw_key(&p->w, "step_id");
    gl_jw_str(&p->w, step);
    gl_jw_key(&p->w, "attempt");
    gl_jw_u64(&p->w, attempt);
    gl_jw_key(&p->w, "timestamp");
    gl_jw_str(&p->w, gl_when_format(ms, when));
    gl_jw_key(&p->w, "stream");
    gl_jw_c(&p->w, gl_str_is(stream, "e") ? "stderr" : "stdout");
    gl_jw_key(&p->w, "text");
    gl_jw_str(&p->w, text);
    gl_jw_end(&p->w);
}

static void show_line(struct paper *p, gl_str step, uint32_t attempt, gl_str line)
{
    FILE *out = p->cli->out.file;
    gl_str rest, time, stream;

    if (gl_str_starts(line, GL_S("-- "))) {
        time = stream = (gl_str){0};
        rest = line;
    } else {
        time = gl_str_cut(line, ' ', &rest);
        stream = gl_str_cut(rest, ' ', &rest);
    }
    if (p->cli->json) {
        write_json(p, step, attempt, time, stream, rest);
        return;
    }
    if (p->with_names) {
        (void)fprintf(out, p->cli->out.is_tty ? "%.*s | " : "%.*s\t", GL_STR_ARG(step));
    }
    (void)fwrite(rest.p, 1, rest.n, out);
    (void)fputc('\n', out);
}

/* ---- pages ---- */

/* From the node, or without one from the file. */
static int read_page(struct paper *p, gl_str step, uint32_t attempt, uint64_t *offset,
                     struct gl_buf *out, struct gl_why *reterr_why)
{
    char path[PATH_BYTES];
    struct gl_client_reply reply;
    struct gl_logfs files;
    int err = GL_E_GONE;

    if (p->reach.client.fd >= 0) {
        (void)snprintf(path, sizeof(path),
                       "/v1/contexts/default/jobs/%.*s/logs?step=%.*s&attempt=%u&offset=%llu",
                       GL_STR_ARG(p->job), GL_STR_ARG(step), attempt, (unsigned long long)*offset);
        err = gl_reach_call(&p->reach, "GET", path, (gl_str){0}, &reply, reterr_why);
    }
    if (err == 0) {
        (void)gl_str_u64(gl_client_header(&reply, "Glia-Next-Offset"), offset);
        gl_buf_str(out, reply.body);
        return 0;
    }
    if (!gl_reach_is_gone(&p->reach, err)) {
        return err;
    }
    gl_logfs_init(&files, p->cli->data);
    return files.logs.read(&files.logs, GL_S("default"), p->job, step, attempt, *offset, PAGE_BYTES,
                           out, offset, reterr_why);
}

/* What it has said from *offset on; *ret_any: something. */
static int show_attempt(struct paper *p, gl_str step, uint32_t attempt, uint64_t *offset,
                        bool *ret_any, struct gl_why *reterr_why)
{
    for (;;) {
        GL_CLEANUP(gl_buf_done) struct gl_buf lines = {0};
        int err = read_page(p, step, attempt, offset, &lines, reterr_why);

        if (err != 0 || lines.n == 0) {
            return err;
        }
        *ret_any = true;
        for (gl_str rest = gl_buf_view(&lines); rest.n > 0;) {
            show_line(p, step, attempt, gl_str_cut(rest, '\n', &rest));
        }
    }
}

/* ---- following ---- */

static int ask_state(struct paper *p, gl_str job, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = job};

    gl_page_done(&p->page);
    return gl_page_ask(&p->page, &p->reach, &rq, reterr_why);
}

/* Is anything going to be said by this step, as the state of the job has it? */
static bool is_over(struct paper *p, gl_jnode step, uint32_t attempt)
{
    gl_str job = gl_page_text(&p->page, p->page.root, "status");
    gl_str status = gl_page_text(&p->page, step, "status");
    bool is_settled = gl_str_is(job, "completed") || gl_str_is(job, "failed") ||
                      gl_str_is(job, "cancelled") || gl_str_is(job, "paused");
    bool is_past =
        gl_page_number(&p->page, step, "attempt_count") > attempt || !gl_str_is(status, "running");

    (void)gl_reach_say_alone(&p->reach, job);
    return p->reach.is_alone || is_settled || gl_progress_is_end(status) ||
           (p->attempt != 0 && is_past);
}

/* One attempt after the other, until the step has ended. The state is read before the log: so a log
 * that is said to be complete is. */
static int follow_step(struct paper *p, struct gl_why *reterr_why)
{
    uint32_t attempt = p->attempt;
    uint64_t offset = 0;
    int pause_ms = PAUSE_MS;

    for (;;) {
        gl_jnode state = gl_json_get(&p->page.j, p->page.root, "workflow_state");
        gl_jnode step =
            gl_json_get(&p->page.j, gl_json_get(&p->page.j, state, "steps"), p->cli->words[1]);
        uint32_t latest = (uint32_t)gl_page_number(&p->page, step, "attempt_count");
        bool over, any = false;
        int err = 0;

        attempt = attempt == 0 ? latest : attempt;
        over = is_over(p, step, attempt);
        if (attempt > 0) {
            err = show_attempt(p, p->step, attempt, &offset, &any, reterr_why);
        }
        if (err == 0 && p->attempt == 0 && latest > attempt) {
            attempt++;
            offset = 0;
            continue;
        }
        (void)fflush(p->cli->out.file);
        if (err != 0 || over || ferror(p->cli->out.file)) {
            return err;
        }
        pause_ms = any ? PAUSE_MS : pause_ms * 3 / 2;
        pause_ms = pause_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : pause_ms;
        (void)poll(NULL, 0, pause_ms);
        err = ask_state(p, p->job, reterr_why);
        if (err != 0) {
            return err;
        }
    }
}

/* ---- all that is there ---- */

static int show_steps(struct paper *p, struct gl_why *reterr_why)
{
    struct gl_page *page = &p->page;
    gl_jnode steps =
        gl_json_get(&page->j, gl_json_get(&page->j, page->root, "workflow_state"), "steps");

    p->with_names = p->step.n == 0 && steps != NULL && steps->count > 1;
    for (gl_jnode k = gl_json_first(&page->j, steps); k; k = gl_json_after(&page->j, steps, k)) {
        gl_str id = gl_json_str(&page->j, k, &page->arena);
        int64_t last = gl_page_number(page, gl_json_value(k), "attempt_count");
        uint32_t attempt = p->attempt != 0 ? p->attempt : (uint32_t)last;
        bool wanted = p->step.n == 0 || gl_str_eq(id, p->step), any;
        uint64_t offset = 0;
        int err = 0;

        if (wanted && p->step.n > 0 && attempt > last) {
            return gl_why(reterr_why, GL_E_NOT_FOUND, "step %.*s has had %lld attempt%s",
                          GL_STR_ARG(id), (long long)last, last == 1 ? "" : "s");
        }
        if (wanted && p->follow) {
            return follow_step(p, reterr_why);
        }
        if (wanted && attempt > 0 && attempt <= last) {
            err = show_attempt(p, id, attempt, &offset, &any, reterr_why);
        }
        if (err != 0 || (wanted && p->step.n > 0)) {
            return err;
        }
    }
    return p->step.n == 0 ? 0
                          : gl_why(reterr_why, GL_E_NOT_FOUND, "the job has no step '%.*s'",
                                   GL_STR_ARG(p->step));
}

static int show(struct paper *p)
{
    struct gl_why why;
    int err = ask_state(p, gl_str_of(p->cli->words[0]), &why);

    if (err == 0) {
        p->job = gl_str_dup(&p->cli->arena, gl_page_text(&p->page, p->page.root, "job_id"));
        if (p->cli->json) {
            gl_jw_init(&p->w, &p->json);
            gl_jw_object(&p->w);
            gl_jw_key(&p->w, "lines");
            gl_jw_array(&p->w);
        }
        err = show_steps(p, &why);
    }
    if (err != 0) {
        return gl_cli_fail(p->cli, err, why.text);
    }
    if (p->cli->json) {
        gl_jw_end(&p->w);
        gl_jw_end(&p->w);
        (void)fwrite(p->json.p, 1, p->json.n, p->cli->out.file);
        (void)fputc('\n', p->cli->out.file);
    }
    return GL_EXIT_OK;
}

int gl_cmd_logs(struct gl_cli *cli)
{
    const char *attempt = gl_cli_option(cli, "--attempt");
    struct paper p = {.cli = cli, .follow = gl_cli_option(cli, "--follow") != NULL};
    uint64_t number = 0;
    int code;

    if (attempt != NULL &&
        (!gl_str_u64(gl_str_of(attempt), &number) || number < 1 || number > UINT32_MAX)) {
        return gl_cli_usage(cli, "--attempt takes a number from 1");
    }
    if (p.follow && (cli->words_n < 2 || cli->json)) {
        return gl_cli_usage(cli, "--follow needs a STEP, and does not go with --json");
    }
    p.step = cli->words_n > 1 ? gl_str_of(cli->words[1]) : (gl_str){0};
    p.attempt = (uint32_t)number;
    gl_reach_init(&p.reach, cli);
    code = show(&p);
    gl_page_done(&p.page);
    gl_buf_done(&p.json);
    gl_reach_done(&p.reach);
    return code;
}
