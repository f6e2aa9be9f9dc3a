/* cmd_logs.c - glia job logs: the logs of steps and agents. */
#include <poll.h>
#include <stdlib.h>

#include "api/stored_log.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "cli/connect/api_reply.h"
#include "cli/output/progress.h"
#include "model/schema.h"
#include "os/logfs.h"
#include "port/storeurl.h"

enum {
    PAGE_BYTES = 1 << 20,
    PAUSE_MS = 20, /* after new output */
    PAUSE_MS_MAX = 300,
    PAUSE_MS_STORED = 1000, /* of a log in the store, which is copied every few seconds */
    LATE_MAX = 5,           /* such pauses after the end of the attempt, for the end of the copy */
};

/* A log that is read from the store, because it is not in this folder. */
struct stored_source {
    gl_str node;    /* ran the attempt; "": the log is here */
    gl_str missing; /* "": nothing */
    bool is_copied; /* nothing more will come */
};

struct paper {
    struct gl_cli *cli;
    struct gl_connection connection;
    struct gl_api_reply page; /* the job's state */
    gl_str job, step;         /* step "": all */
    uint32_t attempt;         /* 0: the last */
    bool all;                 /* every attempt */
    bool follow;
    bool with_names; /* lines begin with the step's id */
    bool with_times;
    struct stored_source stored; /* of the page read last; in the command's arena */
    struct gl_strs units;        /* of a bundle: the selected agents; empty: all */
    struct gl_map shown_turns;   /* struct shown_turns by "UNIT:ATTEMPT" */
    struct gl_jw w;              /* --json */
    struct gl_buf json;
};

/* ---- lines ---- */

/* The agent's name, if `id` is the unit of an agent ("@agent"). */
static gl_str agent_of(gl_str step)
{
    return step.n > 0 && step.p[0] == '@' ? (gl_str){.p = step.p + 1, .n = step.n - 1}
                                          : (gl_str){0};
}

static void write_json(struct paper *p, gl_str step, uint32_t attempt, gl_str time, gl_str stream,
                       gl_str text)
{
    char when[GL_TIMES_BYTES];
    int64_t ms = 0;

    (void)gl_str_i64(time, &ms);
    gl_jw_object(&p->w);
    gl_jw_put_str(&p->w, agent_of(step).n > 0 ? "agent_id" : "step_id",
                  agent_of(step).n > 0 ? agent_of(step) : step);
    gl_jw_put_u64(&p->w, "attempt", attempt);
    gl_jw_put_str(&p->w, "timestamp", gl_times_format(ms, when));
    gl_jw_put_c(&p->w, "stream", gl_str_is(stream, "e") ? "stderr" : "stdout");
    gl_jw_put_str(&p->w, "text", text);
    gl_jw_end(&p->w);
    if (p->follow) { /* one document per line: a follower cannot wait for the end of a document */
        gl_buf_char(&p->json, '\n');
        gl_term_write(&p->cli->out, gl_buf_view(&p->json));
        gl_buf_reset(&p->json);
        gl_jw_init(&p->w, &p->json);
    }
}

/* The prefix of a line: step or agent, attempt and time. */
static void print_front(struct paper *p, gl_str step, uint32_t attempt, gl_str time)
{
    FILE *out = p->cli->out.file;
    const char *end = p->cli->out.is_tty ? " | " : "\t";
    char when[GL_TIMES_BYTES];
    int64_t ms = 0;

    if (p->with_times) {
        gl_str text = gl_str_i64(time, &ms) ? gl_times_format(ms, when) : (gl_str){0};

        (void)fprintf(out, "%.*s%s", GL_STR_ARG(text), p->cli->out.is_tty ? " " : "\t");
    }
    if (p->with_names) {
        gl_str name = agent_of(step).n > 0 ? agent_of(step) : step;

        gl_term_write(&p->cli->out, name);
        (void)fputs(end, out);
    }
    if (p->all) {
        (void)fprintf(out, "%u%s", attempt, end);
    }
}

static void show_line(struct paper *p, gl_str step, uint32_t attempt, gl_str line)
{
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
    print_front(p, step, attempt, time);
    gl_term_print(&p->cli->out, rest);
}

/* ---- pages ---- */

#define ASK_THERE \
    "ask that node, with its --data-dir, or with --server http://HOST:PORT if it has --listen"

static bool is_shared(const struct paper *p)
{
    return gl_storeurl_is_shared(gl_str_of(p->cli->settings->values[GL_SET_STORE].text));
}

static bool is_here(struct paper *p, struct gl_logs *logs, gl_str step, uint32_t attempt)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_logs_attempt *attempts;
    size_t n;

    if (logs->list(logs, p->cli->context, p->job, &a, &attempts, &n, NULL) != 0) {
        return true; /* reading it says what is wrong */
    }
    for (size_t i = 0; i < n; i++) {
        if (attempts[i].attempt == attempt && gl_str_eq(attempts[i].step, step)) {
            return true;
        }
    }
    return false;
}

/* The node that a step's last attempt ran on; "": not known. */
static gl_str node_of(struct paper *p, gl_str step)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_api_reply *page = &p->page;
    gl_jnode steps =
        gl_json_get(&page->j, gl_json_get(&page->j, page->root, "workflow_state"), "steps");

    return gl_api_reply_text(page, gl_json_get(&page->j, steps, gl_str_c(&a, step)), "node");
}

static void set_stored(struct paper *p, gl_str node, gl_str missing, bool is_copied)
{
    struct gl_arena *a = &p->cli->arena;

    if (!gl_str_eq(p->stored.node, node)) {
        p->stored.node = gl_str_dup(a, node);
    }
    if (!gl_str_eq(p->stored.missing, missing)) {
        p->stored.missing = gl_str_dup(a, missing);
    }
    p->stored.is_copied = is_copied;
}

/* Without a node, on a shared store: what the store has of an attempt that ran on another node. */
static int read_stored(struct paper *p, gl_str step, uint32_t attempt, uint64_t *offset,
                       struct gl_buf *out, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    struct gl_request rq = {
        .verb = GL_VERB_STORED_LOGS,
        .job = p->job,
        .stored_logs = {.step = step, .attempt = attempt, .offset = (int64_t)*offset}};
    gl_str node = node_of(p, step);
    struct gl_stored_logs stored;
    int err = gl_connect_ask(&p->connection, &rq, &body, reterr_why);

    if (err != 0) {
        return err;
    }
    if (!gl_stored_log_read(gl_buf_view(&body), &a, &stored)) {
        return gl_why(reterr_why, GL_E_DAMAGED, "what the store has of this log cannot be read");
    }
    if (stored.n > 0) {
        set_stored(p, stored.logs[0].node, gl_stored_log_missing(&stored.logs[0], &a),
                   stored.logs[0].ended);
        return gl_stored_log_text(&stored, *offset, out, offset, reterr_why);
    }
    return node.n == 0 ? 0
                       : gl_why(reterr_why, GL_R_LOG_ELSEWHERE,
                                "the log of attempt %u of step '%.*s' is neither in %s nor in the "
                                "store; its last attempt ran on node %.*s: " ASK_THERE,
                                attempt, GL_STR_ARG(step), p->cli->data, GL_STR_ARG(node));
}

/* Read from the node or, without one, from the file. */
static int read_page(struct paper *p, gl_str step, uint32_t attempt, uint64_t *offset,
                     struct gl_buf *out, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_LOGS,
                            .job = p->job,
                            .logs = {.step = step, .attempt = attempt, .offset = (int64_t)*offset}};
    struct gl_http_client_reply reply;
    struct gl_logfs files;
    int err = p->connection.is_remote ? gl_connect_find(&p->connection, reterr_why) : GL_E_GONE;

    if (p->connection.client.fd >= 0) {
        err = gl_connect_send(&p->connection, GL_CONNECT_CALL, &rq, &reply, reterr_why);
    }
    if (err == 0) {
        (void)gl_str_u64(gl_http_client_header(&reply, "Glia-Next-Offset"), offset);
        set_stored(p, gl_http_client_header(&reply, "Glia-Log-Node"),
                   gl_http_client_header(&reply, "Glia-Log-Missing"),
                   gl_str_is(gl_http_client_header(&reply, "Glia-Log-Copied"), "true"));
        gl_buf_str(out, reply.body);
        return 0;
    }
    if (p->connection.is_remote || !gl_connect_is_lost(&p->connection, err)) {
        return err;
    }
    gl_logfs_init(&files, p->cli->data);
    if (is_shared(p) && !is_here(p, &files.logs, step, attempt)) {
        return read_stored(p, step, attempt, offset, out, reterr_why);
    }
    set_stored(p, (gl_str){0}, (gl_str){0}, false);
    return files.logs.read(&files.logs, p->cli->context, p->job, step, attempt, *offset, PAGE_BYTES,
                           out, offset, reterr_why);
}

/* After the end of a log: what of it is not in the store? */
static void report_missing(struct paper *p, gl_str step, uint32_t attempt)
{
    if (p->stored.node.n > 0 && p->stored.missing.n > 0) {
        (void)fflush(p->cli->out.file);
        gl_cli_note(p->cli, "the log of attempt %u of '%.*s' is not complete: %.*s", attempt,
                    GL_STR_ARG(step), GL_STR_ARG(p->stored.missing));
    }
}

/* Print the log from *offset on; *ret_any: something was printed. */
static int show_attempt(struct paper *p, gl_str step, uint32_t attempt, uint64_t *offset,
                        bool *ret_any, struct gl_why *reterr_why)
{
    for (;;) {
        GL_CLEANUP(gl_buf_done) struct gl_buf lines = {0};
        bool is_first = *offset == 0;
        int err = read_page(p, step, attempt, offset, &lines, reterr_why);

        if (err == 0 && is_first && lines.n > 0 && p->stored.node.n > 0) {
            gl_cli_note(p->cli,
                        "attempt %u of '%.*s' ran on node %.*s: this is its log as the "
                        "store has it",
                        attempt, GL_STR_ARG(step), GL_STR_ARG(p->stored.node));
        }
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
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = job, .status.step = p->step};

    gl_api_reply_done(&p->page);
    return p->step.n > 0 ? gl_api_reply_ask(&p->page, &p->connection, &rq, reterr_why)
                         : gl_api_reply_ask_all(&p->page, &p->connection, &rq, reterr_why);
}

/* Will no further output come, according to the state of the job? */
static bool is_settled(struct paper *p)
{
    gl_str job = gl_api_reply_text(&p->page, p->page.root, "status");

    (void)gl_connect_warn_no_node(&p->connection, job);
    return p->connection.has_no_node || gl_str_is(job, "completed") || gl_str_is(job, "failed") ||
           gl_str_is(job, "cancelled") || gl_str_is(job, "paused");
}

/* Will this step write no further output? */
static bool is_over(struct paper *p, gl_jnode step, uint32_t attempt)
{
    gl_str status = gl_api_reply_text(&p->page, step, "status");
    bool is_past = gl_api_reply_number(&p->page, step, "attempt_count") > attempt ||
                   !gl_str_is(status, "running");

    return is_settled(p) || gl_progress_is_end(status) || (p->attempt != 0 && is_past);
}

static int pause_after(const struct paper *p, bool any, int pause_ms)
{
    if (p->stored.node.n > 0) {
        return PAUSE_MS_STORED;
    }
    pause_ms = any ? PAUSE_MS : pause_ms * 3 / 2;
    return pause_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : pause_ms;
}

/* Follow one attempt after the other until the step has ended. The state is read before the log, so
 * a log reported as complete is complete. */
static int follow_step(struct paper *p, struct gl_why *reterr_why)
{
    uint32_t attempt = p->attempt;
    uint64_t offset = 0;
    int pause_ms = PAUSE_MS, late_n = 0;

    for (;;) {
        gl_jnode state = gl_json_get(&p->page.j, p->page.root, "workflow_state");
        gl_jnode step =
            gl_json_get(&p->page.j, gl_json_get(&p->page.j, state, "steps"), p->cli->words[1]);
        uint32_t latest = (uint32_t)gl_api_reply_number(&p->page, step, "attempt_count");
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
        if (over && p->stored.node.n > 0 && !p->stored.is_copied && !p->connection.has_no_node) {
            over = ++late_n > LATE_MAX;
        }
        if (err != 0 || over || ferror(p->cli->out.file)) {
            report_missing(p, p->step, attempt);
            return err;
        }
        pause_ms = pause_after(p, any, pause_ms);
        (void)poll(NULL, 0, pause_ms);
        err = ask_state(p, p->job, reterr_why);
        if (err != 0) {
            return err;
        }
    }
}

/* ---- existing logs ---- */

/* Show the selected attempts of one step that exist. */
static int show_attempts(struct paper *p, gl_str id, uint32_t last, struct gl_why *reterr_why)
{
    uint32_t first = p->all ? 1 : p->attempt != 0 ? p->attempt : last;
    uint32_t end = p->all ? last : first;
    int err = 0;

    for (uint32_t n = first; n > 0 && n <= end && n <= last && err == 0; n++) {
        uint64_t offset = 0;
        bool any;

        err = show_attempt(p, id, n, &offset, &any, reterr_why);
        if (err == 0) {
            report_missing(p, id, n);
        }
        if (err == GL_E_NOT_FOUND && (p->step.n == 0 || p->all)) { /* others may be here */
            (void)fflush(p->cli->out.file);
            gl_cli_note(p->cli, "%s", reterr_why->text);
            err = 0;
        }
    }
    return err;
}

/* Is `id` an instance of the step? */
static bool is_instance(gl_str id, gl_str step)
{
    return id.n > step.n && id.p[step.n] == '[' && gl_str_starts(id, step);
}

/* Show the instances of step `of`, or all steps if `of` is "". */
static int show_several(struct paper *p, gl_jnode steps, gl_str of, struct gl_why *reterr_why)
{
    struct gl_api_reply *page = &p->page;
    int err = 0;

    p->with_names = of.n > 0 || (steps != NULL && steps->count > 1);
    for (gl_jnode k = gl_json_first(&page->j, steps); k && err == 0;
         k = gl_json_after(&page->j, steps, k)) {
        gl_str id = gl_json_str(&page->j, k, &page->arena);

        if (of.n == 0 || is_instance(id, of)) {
            err = show_attempts(
                p, id, (uint32_t)gl_api_reply_number(page, gl_json_value(k), "attempt_count"),
                reterr_why);
        }
    }
    return err;
}

/* The reply had only the step itself; request all of them. */
static int show_instances(struct paper *p, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = p->job};
    gl_jnode state;
    int err;

    gl_api_reply_done(&p->page);
    err = gl_api_reply_ask_all(&p->page, &p->connection, &rq, reterr_why);
    if (err != 0) {
        return err;
    }
    state = gl_json_get(&p->page.j, p->page.root, "workflow_state");
    return show_several(p, gl_json_get(&p->page.j, state, "steps"), p->step, reterr_why);
}

static int show_step(struct paper *p, gl_jnode steps, struct gl_why *reterr_why)
{
    gl_jnode step = gl_json_get(&p->page.j, steps, p->cli->words[1]);
    uint32_t last = (uint32_t)gl_api_reply_number(&p->page, step, "attempt_count");

    if (step == NULL) {
        return gl_why(reterr_why, GL_R_NO_SUCH_STEP,
                      "the job has no step '%.*s'; '%s' lists its steps", GL_STR_ARG(p->step),
                      gl_cli_hint(p->cli, "job status %s", p->cli->words[0]));
    }
    if (gl_api_reply_number(&p->page, step, "items_made") > 0) {
        return p->follow ? gl_why(reterr_why, GL_E_INVALID,
                                  "step %.*s has several instances: follow one of them, such as "
                                  "'%.*s[0]'",
                                  GL_STR_ARG(p->step), GL_STR_ARG(p->step))
                         : show_instances(p, reterr_why);
    }
    if (p->attempt > last) {
        return gl_why(reterr_why, GL_R_NO_SUCH_ATTEMPT, "step %.*s has had %u attempt%s",
                      GL_STR_ARG(p->step), last, last == 1 ? "" : "s");
    }
    return p->follow ? follow_step(p, reterr_why) : show_attempts(p, p->step, last, reterr_why);
}

/* ---- bundles: agents, each message an attempt, numbered through the whole job ---- */

struct turn {
    gl_str unit; /* "@agent" */
    uint32_t attempt;
    bool is_over; /* its log is complete */
};

struct shown_turns {
    uint64_t offset;
    bool is_over;
};

static int by_number(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;

    return (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

/* The order in which the logs port lists them. */
static int by_unit_and_number(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    int order = gl_str_cmp(x->unit, y->unit);

    return order != 0 ? order : by_number(a, b);
}

static int turns_of_node(struct paper *p, struct gl_arena *a, struct turn **ret, size_t *ret_n,
                         struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_LOGS, .job = p->job};
    struct gl_http_client_reply reply;
    struct gl_json j;
    gl_jnode list, over;
    int err = gl_connect_send(&p->connection, GL_CONNECT_CALL, &rq, &reply, reterr_why);

    err = err == 0 ? gl_json_parse(&j, gl_str_dup(a, reply.body), SIZE_MAX, a, reterr_why) : err;
    if (err != 0) {
        return err;
    }
    list = gl_json_get(&j, gl_json_root(&j), "attempts");
    *ret = GL_NEW_ARRAY(a, struct turn, list != NULL ? list->count + 1 : 1);
    *ret_n = 0;
    for (gl_jnode e = gl_json_first(&j, list); e; e = gl_json_after(&j, list, e)) {
        uint64_t number = 0;

        (void)gl_json_u64(&j, gl_json_get(&j, e, "attempt"), &number);
        over = gl_json_get(&j, e, "ended");
        (*ret)[(*ret_n)++] =
            (struct turn){.unit = gl_json_str(&j, gl_json_get(&j, e, "step_id"), a),
                          .attempt = (uint32_t)number,
                          .is_over = gl_json_is(over, GL_JSON_TRUE)};
    }
    return 0;
}

/* Those that only the store has. */
static int add_stored_turns(struct paper *p, struct gl_arena *a, struct turn **ret, size_t *ret_n,
                            struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    struct gl_request rq = {.verb = GL_VERB_STORED_LOGS, .job = p->job};
    struct gl_stored_logs stored;
    struct turn *all;
    size_t n = *ret_n;
    int err = gl_connect_ask(&p->connection, &rq, &body, reterr_why);

    if (err != 0 || !gl_stored_log_read(gl_buf_view(&body), a, &stored)) {
        return err;
    }
    all = GL_NEW_ARRAY(a, struct turn, n + stored.n + 1);
    for (size_t i = 0; i < n; i++) {
        all[i] = (*ret)[i];
    }
    for (size_t i = 0; i < stored.n; i++) {
        struct turn t = {.unit = stored.logs[i].step, .attempt = stored.logs[i].attempt};

        if (bsearch(&t, *ret, *ret_n, sizeof(t), by_unit_and_number) == NULL) {
            all[n++] = t;
        }
    }
    *ret = all;
    *ret_n = n;
    return 0;
}

/* From the node, or without one from the folder. */
static int list_turns(struct paper *p, struct gl_arena *a, struct turn **ret, size_t *ret_n,
                      struct gl_why *reterr_why)
{
    struct gl_logs_attempt *attempts;
    struct gl_logfs files;
    int err = p->connection.is_remote ? gl_connect_find(&p->connection, reterr_why) : GL_E_GONE;

    if (p->connection.client.fd >= 0) {
        err = turns_of_node(p, a, ret, ret_n, reterr_why);
    }
    if (err != 0 && !p->connection.is_remote && gl_connect_is_lost(&p->connection, err)) {
        gl_logfs_init(&files, p->cli->data);
        err =
            files.logs.list(&files.logs, p->cli->context, p->job, a, &attempts, ret_n, reterr_why);
        *ret = err == 0 ? GL_NEW_ARRAY(a, struct turn, *ret_n + 1) : NULL;
        for (size_t i = 0; err == 0 && i < *ret_n; i++) {
            (*ret)[i] = (struct turn){.unit = attempts[i].step, .attempt = attempts[i].attempt};
        }
        err = err == 0 && is_shared(p) ? add_stored_turns(p, a, ret, ret_n, reterr_why) : err;
    }
    if (err == 0 && *ret_n > 0) {
        qsort(*ret, *ret_n, sizeof(**ret), by_number);
    }
    return err;
}

static bool is_wanted(const struct paper *p, const struct turn *t)
{
    bool is_named = p->units.n == 0;

    for (size_t i = 0; i < p->units.n; i++) {
        is_named |= gl_str_eq(p->units.items[i], t->unit);
    }
    return is_named && (p->attempt == 0 || p->attempt == t->attempt);
}

static struct shown_turns *seen_of(struct paper *p, const struct turn *t)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str key = gl_str_fmt(&a, "%.*s:%u", GL_STR_ARG(t->unit), t->attempt);
    struct shown_turns *s = gl_map_find(&p->shown_turns, key);

    if (s == NULL) {
        s = GL_NEW(&p->cli->arena, struct shown_turns);
        gl_map_add(&p->shown_turns, gl_str_dup(&p->cli->arena, key), s);
    }
    return s;
}

/* Show new output. *ret_over: the selected attempt will have no more. */
static int show_turns(struct paper *p, bool *ret_any, bool *ret_over, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct turn *turns = NULL;
    size_t n = 0, found = 0;
    int err = list_turns(p, &a, &turns, &n, reterr_why);

    for (size_t i = 0; i < n && err == 0; i++) {
        struct shown_turns *s = is_wanted(p, &turns[i]) ? seen_of(p, &turns[i]) : NULL;

        found += s != NULL;
        if (s != NULL && !s->is_over) {
            err = show_attempt(p, turns[i].unit, turns[i].attempt, &s->offset, ret_any, reterr_why);
            s->is_over = turns[i].is_over;
            *ret_over = p->attempt != 0 && s->is_over;
        }
    }
    if (err == 0 && found == 0 && p->attempt != 0) {
        return gl_why(reterr_why, GL_E_NOT_FOUND,
                      p->units.n > 0 ? "there is no log of attempt %u of '%.*s'"
                                     : "there is no log of attempt %u",
                      p->attempt, GL_STR_ARG(p->step));
    }
    return err;
}

/* Read the state before the logs: the log of an ended step is then complete. */
static int follow_turns(struct paper *p, struct gl_why *reterr_why)
{
    int err = 0, pause_ms = PAUSE_MS;

    for (;;) {
        bool is_end = is_settled(p), any = false, is_over = false;

        err = show_turns(p, &any, &is_over, reterr_why);
        (void)fflush(p->cli->out.file);
        if (err != 0 || is_end || is_over || ferror(p->cli->out.file)) {
            return err;
        }
        pause_ms = pause_after(p, any, pause_ms);
        (void)poll(NULL, 0, pause_ms);
        err = ask_state(p, p->job, reterr_why);
        if (err != 0) {
            return err;
        }
    }
}

static bool has_agent(struct paper *p, gl_str agent)
{
    struct gl_request rq = {
        .verb = GL_VERB_AGENTS, .job = p->job, .messages = {.agent = agent, .limit = GL_PAGE_MAX}};
    struct gl_api_reply page;
    bool has = gl_api_reply_ask(&page, &p->connection, &rq, NULL) == 0;

    gl_api_reply_done(&page);
    return has;
}

/* Find the agents of the named step, or the named agent. */
static int find_units(struct paper *p, gl_jnode steps, struct gl_why *reterr_why)
{
    struct gl_arena *a = &p->cli->arena;
    struct gl_api_reply *page = &p->page;
    gl_str rest, name = agent_of(p->step).n > 0 ? agent_of(p->step) : p->step;
    gl_str id = gl_str_cut(p->step, '[', &rest); /* instances have the same agents */
    gl_jnode step = gl_json_get(&page->j, steps, gl_str_c(a, id));
    gl_jnode agents = gl_json_get(&page->j, step, "agent_ids");
    gl_str *units = GL_NEW_ARRAY(a, gl_str, agents != NULL ? agents->count + 1 : 1);
    size_t n = 0;

    for (gl_jnode e = gl_json_first(&page->j, agents); e; e = gl_json_after(&page->j, agents, e)) {
        units[n++] = gl_str_fmt(a, "@%.*s", GL_STR_ARG(gl_json_str(&page->j, e, &page->arena)));
    }
    if (n == 0 && !has_agent(p, name)) {
        return gl_why(reterr_why, GL_R_NO_SUCH_AGENT_OR_STEP, "the job has no agent or step '%.*s'",
                      GL_STR_ARG(p->step));
    }
    if (n == 0) {
        units[n++] = gl_str_fmt(a, "@%.*s", GL_STR_ARG(name));
    }
    p->units = (struct gl_strs){.items = units, .n = n};
    return 0;
}

/* On a shared store agents may have run on other nodes, which have their logs. */
static void report_other_node(struct paper *p)
{
    struct gl_api_reply *page = &p->page;
    gl_jnode all = gl_json_get(&page->j, page->root, "executions");

    if (!is_shared(p)) {
        return;
    }
    for (gl_jnode k = gl_json_first(&page->j, all); k; k = gl_json_after(&page->j, all, k)) {
        gl_str agent = gl_json_str(&page->j, k, &page->arena);
        gl_str node = gl_api_reply_text(page, gl_json_value(k), "node");
        struct turn last = {
            .unit = gl_str_fmt(&page->arena, "@%.*s", GL_STR_ARG(agent)),
            .attempt = (uint32_t)gl_api_reply_number(page, gl_json_value(k), "attempt_count")};

        if (is_wanted(p, &last) && node.n > 0 && seen_of(p, &last)->offset == 0) {
            gl_cli_note(p->cli, "agent '%.*s' last ran on node %.*s, which has its log: " ASK_THERE,
                        GL_STR_ARG(agent), GL_STR_ARG(node));
        }
    }
}

static int show_agents(struct paper *p, gl_jnode steps, struct gl_why *reterr_why)
{
    bool any = false, is_over = false;
    int err = p->step.n > 0 ? find_units(p, steps, reterr_why) : 0;

    p->with_names = p->units.n != 1;
    if (err == 0 && p->follow) {
        return follow_turns(p, reterr_why);
    }
    err = err == 0 ? show_turns(p, &any, &is_over, reterr_why) : err;
    if (err == 0) {
        (void)fflush(p->cli->out.file);
        report_other_node(p);
    }
    return err;
}

static int show_steps(struct paper *p, struct gl_why *reterr_why)
{
    struct gl_api_reply *page = &p->page;
    gl_jnode steps =
        gl_json_get(&page->j, gl_json_get(&page->j, page->root, "workflow_state"), "steps");

    if (gl_json_get(&page->j, page->root, "bundle") != NULL) {
        return show_agents(p, steps, reterr_why);
    }
    if (p->follow && p->step.n == 0) {
        return gl_why(reterr_why, GL_E_INVALID, "--follow needs a STEP");
    }
    return p->step.n > 0 ? show_step(p, steps, reterr_why)
                         : show_several(p, steps, (gl_str){0}, reterr_why);
}

static void print_json(struct paper *p)
{
    gl_jw_end(&p->w);
    gl_jw_end(&p->w);
    gl_buf_char(&p->json, '\n');
    gl_term_write(&p->cli->out, gl_buf_view(&p->json));
}

static int show(struct paper *p)
{
    bool is_document = p->cli->json && !p->follow;
    struct gl_why why;
    int err = ask_state(p, gl_str_of(p->cli->words[0]), &why);

    gl_jw_init(&p->w, &p->json);
    if (err == 0) {
        p->job = gl_str_dup(&p->cli->arena, gl_api_reply_text(&p->page, p->page.root, "job_id"));
        if (is_document) {
            gl_jw_object(&p->w);
            gl_jw_put_array(&p->w, "lines");
        }
        err = show_steps(p, &why);
    }
    if (err != 0) {
        return gl_cli_fail_why(p->cli, err, &why);
    }
    if (is_document) {
        print_json(p);
    }
    return GL_EXIT_OK;
}

int gl_cmd_logs(struct gl_cli *cli)
{
    const char *attempt = gl_cli_option(cli, "--attempt");
    struct paper p = {.cli = cli,
                      .all = attempt != NULL && strcmp(attempt, "all") == 0,
                      .follow = gl_cli_option(cli, "--follow") != NULL,
                      .with_times = gl_cli_option(cli, "--timestamps") != NULL};
    uint64_t number = 0;
    int code;

    cli->out.is_raw = gl_cli_option(cli, "--raw") != NULL;
    if (attempt != NULL && !p.all &&
        (!gl_str_u64(gl_str_of(attempt), &number) || number < 1 || number > UINT32_MAX)) {
        return gl_cli_usage(cli, "--attempt takes a number from 1, or all");
    }
    if (p.follow && p.all) {
        return gl_cli_usage(cli, "--follow cannot be combined with --attempt all");
    }
    p.step = cli->words_n > 1 ? gl_str_of(cli->words[1]) : (gl_str){0};
    p.attempt = (uint32_t)number;
    gl_map_init(&p.shown_turns);
    gl_connect_init(&p.connection, cli);
    p.connection.waits_for_node = p.follow;
    p.connection.silence_ms = p.follow ? GL_CONNECT_SILENCE_SHORT_MS : 0;
    code = show(&p);
    gl_api_reply_done(&p.page);
    gl_map_done(&p.shown_turns);
    gl_buf_done(&p.json);
    gl_connect_done(&p.connection);
    return code;
}
