/* log_routes.c - the logs of steps. The node supplies the state of the job, the files the text. */
#include "api/stored_log.h"
#include "base/check.h"
#include "base/limits.h"
#include "http/http_text.h"
#include "http/routes.h"

enum { STATE_BYTES_MAX = 1 << 30 };

/* Read the state before the log: a log reported as complete is then complete. */
static bool read_status(struct gl_http_call *c, struct gl_json *j, gl_str *ret_job)
{
    gl_str text = gl_str_dup(&c->arena, gl_buf_view(&c->out));

    gl_buf_reset(&c->out);
    if (gl_json_parse(j, text, STATE_BYTES_MAX, &c->arena, NULL) != 0) {
        gl_reply_error(c, GL_R_JOB_DAMAGED, "the state of this job cannot be read", NULL);
        return false;
    }
    *ret_job = gl_json_str(j, gl_json_get(j, gl_json_root(j), "job_id"), &c->arena);
    return true;
}

gl_str gl_log_agent(gl_str step)
{
    return step.n > 0 && step.p[0] == '@' ? (gl_str){.p = step.p + 1, .n = step.n - 1}
                                          : (gl_str){0};
}

static gl_jnode steps_of(const struct gl_json *j)
{
    return gl_json_get(j, gl_json_get(j, gl_json_root(j), "workflow_state"), "steps");
}

/* In a bundle, agents run things: "@agent". */
static gl_jnode find_step(const struct gl_json *j, gl_str id, struct gl_arena *a)
{
    gl_str agent = gl_log_agent(id);

    if (agent.n > 0) {
        return gl_json_get(j, gl_json_get(j, gl_json_root(j), "executions"), gl_str_c(a, agent));
    }
    return gl_json_get(j, steps_of(j), gl_str_c(a, id));
}

/* ---- finding the agent, in a bundle ---- */

/* The agent of a step that ran last, or the first one. */
static gl_str agent_of(const struct gl_json *j, gl_jnode step, struct gl_arena *a)
{
    gl_jnode agents = gl_json_get(j, step, "agent_ids");
    gl_str found = {0};
    uint64_t last = 0;

    for (gl_jnode e = gl_json_first(j, agents); e != NULL; e = gl_json_after(j, agents, e)) {
        gl_str unit = gl_str_fmt(a, "@%.*s", GL_STR_ARG(gl_json_str(j, e, a)));
        uint64_t attempts = 0;

        (void)gl_json_u64(j, gl_json_get(j, find_step(j, unit, a), "attempt_count"), &attempts);
        if (found.n == 0 || attempts > last) {
            found = unit;
            last = attempts;
        }
    }
    return found;
}

/* Has the agent run, or will it work on a step? */
static bool is_agent(const struct gl_json *j, gl_str unit, struct gl_arena *a)
{
    gl_jnode steps = steps_of(j);

    if (find_step(j, unit, a) != NULL) {
        return true;
    }
    for (gl_jnode k = gl_json_first(j, steps); k != NULL; k = gl_json_after(j, steps, k)) {
        gl_jnode agents = gl_json_get(j, gl_json_value(k), "agent_ids");

        for (gl_jnode e = gl_json_first(j, agents); e != NULL; e = gl_json_after(j, agents, e)) {
            if (gl_str_eq(gl_json_str(j, e, a), gl_log_agent(unit))) {
                return true;
            }
        }
    }
    return false;
}

/* Replace the name of a step or agent by the unit that runs it. False: there is none. */
static bool resolve_step(struct gl_http_call *c, const struct gl_json *j)
{
    gl_str name, unit;
    gl_jnode step;
    int64_t item;

    if (gl_json_get(j, gl_json_root(j), "bundle") == NULL) {
        return find_step(j, c->log.step, &c->arena) != NULL;
    }
    if (gl_log_agent(c->log.step).n > 0) {
        return is_agent(j, c->log.step, &c->arena);
    }
    step = gl_str_split_step(c->log.step, &name, &item)
               ? gl_json_get(j, steps_of(j), gl_str_c(&c->arena, name))
               : NULL;
    unit = agent_of(j, step, &c->arena);
    if (unit.n == 0) {
        unit = gl_str_fmt(&c->arena, "@%.*s", GL_STR_ARG(c->log.step));
        if (!is_agent(j, unit, &c->arena)) {
            return false;
        }
    }
    c->log.step = unit;
    return true;
}

/* ---- progress ---- */

struct gl_log_progress gl_log_progress_read(const struct gl_json *status, gl_str step,
                                            struct gl_arena *a)
{
    gl_jnode root = gl_json_root(status);
    gl_jnode n = find_step(status, step, a);
    gl_str job = gl_json_str(status, gl_json_get(status, root, "status"), a);
    gl_str word = gl_json_str(status, gl_json_get(status, n, "status"), a);
    uint64_t attempts = 0;

    (void)gl_json_u64(status, gl_json_get(status, n, "attempt_count"), &attempts);
    return (struct gl_log_progress){.attempts = (uint32_t)attempts,
                                    .is_writing = gl_str_is(word, "running"),
                                    .has_ended =
                                        gl_json_get(status, n, "terminal_outcome") != NULL ||
                                        gl_str_is(job, "completed") || gl_str_is(job, "failed") ||
                                        gl_str_is(job, "cancelled")};
}

static bool is_writing(const struct gl_log_progress *s, uint32_t attempt)
{
    return s->is_writing && s->attempts == attempt;
}

/* ---- the list ---- */

static void write_attempt(const struct gl_json *j, struct gl_jw *w, gl_str step, uint32_t attempt,
                          uint64_t bytes, gl_str node)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_log_progress state = gl_log_progress_read(j, step, &a);

    gl_jw_object(w);
    gl_jw_put_str(w, "step_id", step);
    if (gl_log_agent(step).n > 0) {
        gl_jw_put_str(w, "agent_id", gl_log_agent(step));
    }
    gl_jw_put_u64(w, "attempt", attempt);
    gl_jw_put_u64(w, "bytes", bytes);
    gl_jw_put_bool(w, "ended", !is_writing(&state, attempt));
    if (node.n > 0) {
        gl_jw_put_str(w, "node", node);
    }
    gl_jw_end(w);
}

/* They are in order of step and number. */
static bool has_attempt(const struct gl_logs_attempt *attempts, size_t n,
                        const struct gl_stored_log *l)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = gl_str_cmp(attempts[mid].step, l->step);

        order = order != 0
                    ? order
                    : (attempts[mid].attempt > l->attempt) - (attempts[mid].attempt < l->attempt);
        if (order == 0) {
            return true;
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return false;
}

/* The logs in our folder, and on a shared store those that only the store has. */
static void write_list(struct gl_http_call *c, const struct gl_stored_logs *stored)
{
    struct gl_why why = {0};
    struct gl_logs_attempt *attempts;
    struct gl_jw w;
    size_t n;

    if (c->config->logs->list(c->config->logs, c->rq.context, c->log_job, &c->arena, &attempts, &n,
                              &why) != 0) {
        gl_reply_error(c, gl_err_join(GL_E_UNAVAILABLE, why.reason), why.text, NULL);
        return;
    }
    gl_buf_reset(&c->out);
    gl_jw_init(&w, &c->out);
    gl_jw_object(&w);
    gl_jw_put_array(&w, "attempts");
    for (size_t i = 0; i < n; i++) {
        write_attempt(c->log_status, &w, attempts[i].step, attempts[i].attempt, attempts[i].bytes,
                      (gl_str){0});
    }
    for (size_t i = 0; i < stored->n; i++) {
        const struct gl_stored_log *l = &stored->logs[i];

        if (!has_attempt(attempts, n, l)) {
            write_attempt(c->log_status, &w, l->step, l->attempt, l->bytes, l->node);
        }
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_reply_finish_json(c, MHD_HTTP_OK);
}

static bool read_stored(struct gl_http_call *c, struct gl_stored_logs *ret)
{
    if (!gl_stored_log_read(gl_buf_view(&c->out), &c->arena, ret)) {
        gl_reply_error(c, GL_E_UNAVAILABLE, "the answer of the node cannot be read", NULL);
        return false;
    }
    gl_buf_reset(&c->out);
    return true;
}

static void list_stored(struct gl_http_call *c)
{
    struct gl_stored_logs stored;

    if (read_stored(c, &stored)) {
        write_list(c, &stored);
    }
}

static void ask_stored(struct gl_http_call *c, gl_str step, void (*then)(struct gl_http_call *c))
{
    gl_buf_reset(&c->out);
    c->then = then;
    c->rq.verb = GL_VERB_STORED_LOGS;
    c->rq.stored_logs = (struct gl_stored_logs_request){
        .step = step, .attempt = c->log.attempt, .offset = c->log.offset};
    gl_http_call_ask_node(c);
}

static void list_attempts(struct gl_http_call *c)
{
    struct gl_json *j = GL_NEW(&c->arena, struct gl_json);
    const struct gl_stored_logs none = {0};

    if (!read_status(c, j, &c->log_job)) {
        return;
    }
    c->log_status = j;
    if (c->config->node != NULL) {
        ask_stored(c, (gl_str){0}, list_stored);
    } else {
        write_list(c, &none);
    }
}

/* ---- one log ---- */

/* Does this node have a log of the attempt? */
static bool has_local_log(struct gl_http_call *c, gl_str job)
{
    struct gl_logs_attempt *attempts;
    size_t n;

    if (c->config->logs->list(c->config->logs, c->rq.context, job, &c->arena, &attempts, &n,
                              NULL) != 0) {
        return true; /* reading the log reports the error */
    }
    for (size_t i = 0; i < n; i++) {
        if (attempts[i].attempt == c->log.attempt && gl_str_eq(attempts[i].step, c->log.step)) {
            return true;
        }
    }
    return false;
}

static void follow(struct gl_http_call *c, const struct gl_json *j, gl_str job,
                   const struct gl_log_progress *state, bool is_stored)
{
    bool is_last = c->log.attempt == 0 ? state->has_ended : !is_writing(state, c->log.attempt);
    int64_t last_seq = 0;

    (void)gl_json_i64(j, gl_json_get(j, gl_json_root(j), "last_seq"), &last_seq);
    gl_log_stream_start(c, job, is_last, last_seq + 1, is_stored);
}

static void reply_page(struct gl_http_call *c, const struct gl_log_progress *state)
{
    c->has_log_headers = true;
    c->log_ended = c->log.attempt > 0 && !is_writing(state, c->log.attempt);
    c->status = MHD_HTTP_OK;
    c->type = "text/plain; charset=utf-8";
}

/* The node has read what the store has of the log. */
static void reply_stored(struct gl_http_call *c)
{
    struct gl_log_progress state = gl_log_progress_read(c->log_status, c->log.step, &c->arena);
    struct gl_stored_logs stored;
    struct gl_why why;

    if (!read_stored(c, &stored)) {
        return;
    }
    if (stored.n == 0) {
        gl_reply_error_at(c, c->log_absent, c->log_absent_why, c->log_absent_hint, NULL, NULL);
        return;
    }
    if (c->log.follow) {
        follow(c, c->log_status, c->log_job, &state, true);
        return;
    }
    if (gl_stored_log_text(&stored, (uint64_t)c->log.offset, &c->out, &c->log_next, &why) != 0) {
        gl_reply_error(c, why.code, why.text, NULL);
        return;
    }
    c->log_node = stored.logs[0].node;
    c->log_copied = stored.logs[0].ended;
    c->log_missing = gl_stored_log_missing(&stored.logs[0], &c->arena);
    reply_page(c, &state);
}

static void refuse_unless_stored(struct gl_http_call *c, int code, const char *why,
                                 const char *hint)
{
    c->log_absent = code;
    c->log_absent_why = why;
    c->log_absent_hint = hint;
    ask_stored(c, c->log.step, reply_stored);
}

/* On a shared store a step may have run on another node. True: the call is being answered, from the
 * store or with an error. The record names only the node of the last attempt. */
static bool reply_elsewhere(struct gl_http_call *c, const struct gl_json *j, gl_str job,
                            const struct gl_log_progress *state)
{
    gl_str node =
        gl_json_str(j, gl_json_get(j, find_step(j, c->log.step, &c->arena), "node"), &c->arena);

    if (c->config->node == NULL || c->log.attempt == 0 || node.n == 0 ||
        (c->log.attempt == state->attempts && gl_str_is(node, c->config->node)) ||
        has_local_log(c, job)) {
        return false;
    }
    refuse_unless_stored(
        c, GL_R_LOG_ELSEWHERE,
        c->log.attempt == state->attempts
            ? gl_str_fmt(&c->arena,
                         "the log of attempt %u of step '%.*s' is on node %.*s, and nothing of it "
                         "is in the store",
                         c->log.attempt, GL_STR_ARG(c->log.step), GL_STR_ARG(node))
                  .p
            : gl_str_fmt(&c->arena,
                         "the log of attempt %u of step '%.*s' is neither on this node, %s, nor in "
                         "the store: it ran on another one",
                         c->log.attempt, GL_STR_ARG(c->log.step), c->config->node)
                  .p,
        "ask that node, with its --data-dir, or with --server http://HOST:PORT if it has --listen");
    return true;
}

/* The attempts of agents are numbered through all of them. */
static bool reply_no_attempt(struct gl_http_call *c, gl_str job,
                             const struct gl_log_progress *state)
{
    const char *why = "this step has had no such attempt";

    if (c->log.attempt > state->attempts) {
        gl_reply_error_at(c, GL_R_NO_SUCH_ATTEMPT, why, NULL, "attempt", NULL);
        return true;
    }
    if (gl_log_agent(c->log.step).n == 0 || c->log.attempt == state->attempts ||
        has_local_log(c, job)) {
        return false;
    }
    if (c->config->node != NULL) {
        refuse_unless_stored(c, GL_R_NO_SUCH_ATTEMPT, why, NULL);
    } else {
        gl_reply_error_at(c, GL_R_NO_SUCH_ATTEMPT, why, NULL, "attempt", NULL);
    }
    return true;
}

static void read_page(struct gl_http_call *c)
{
    struct gl_json *j = GL_NEW(&c->arena, struct gl_json);
    struct gl_why why = {0};
    struct gl_log_progress state;
    gl_str job;

    if (!read_status(c, j, &job)) {
        return;
    }
    c->log_status = j;
    c->log_job = job;
    if (!resolve_step(c, j)) {
        gl_reply_error_at(c, GL_R_NO_SUCH_STEP, "this job has no such step", NULL, "step", NULL);
        return;
    }
    state = gl_log_progress_read(j, c->log.step, &c->arena);
    c->log.attempt = c->log.attempt == 0 ? state.attempts : c->log.attempt;
    if (reply_no_attempt(c, job, &state) || reply_elsewhere(c, j, job, &state)) {
        return;
    }
    if (c->log.follow) {
        follow(c, j, job, &state, false);
        return;
    }
    if (c->log.attempt > 0 &&
        c->config->logs->read(c->config->logs, c->rq.context, job, c->log.step, c->log.attempt,
                              (uint64_t)c->log.offset, GL_HTTP_CALL_LOG_BYTES, &c->out,
                              &c->log_next, &why) != 0) {
        gl_reply_error(c, gl_err_join(GL_E_UNAVAILABLE, why.reason), why.text, NULL);
        return;
    }
    reply_page(c, &state);
}

void gl_route_logs(struct gl_http_call *c)
{
    gl_str name;
    int64_t item;

    c->log = c->rq.logs;
    if (c->log.step.n > 0 && !gl_str_split_step(c->log.step, &name, &item)) {
        gl_reply_error_at(c, GL_R_NO_SUCH_STEP, "this job has no such step", NULL, "step", NULL);
        return;
    }
    c->then = c->log.step.n > 0 ? read_page : list_attempts;
    c->rq.verb = GL_VERB_STATUS;
    c->rq.status = (struct gl_status_request){.step = c->log.step};
    gl_http_call_ask_node(c);
}
