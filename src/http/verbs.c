/* verbs.c - what each route does: fill in a request to the node, or answer at once. */
#include "base/check.h"
#include "base/limits.h"
#include "http/routes.h"
#include "http/text.h"
#include "model/job.h"

enum { NODE_BYTES_MAX = 1 << 20 };

/* ---- the node ---- */

static void tell_health(struct gl_call *c)
{
    gl_reply_json(c, MHD_HTTP_OK, GL_S("{\"status\":\"ok\"}"));
}

void gl_verbs_health(struct gl_call *c)
{
    c->then = tell_health;
    gl_usher_ping(c);
}

static void tell_ready(struct gl_call *c)
{
    gl_str text = gl_str_dup(&c->arena, gl_buf_view(&c->out));
    bool is_ready = true;
    gl_str reason = {0};
    struct gl_json j;

    if (gl_json_parse(&j, text, NODE_BYTES_MAX, &c->arena, NULL) == 0) {
        gl_jnode root = gl_json_root(&j);

        (void)gl_json_bool(gl_json_get(&j, root, "ready"), &is_ready);
        reason = gl_json_str(&j, gl_json_get(&j, root, "reason"), &c->arena);
    }
    if (is_ready) {
        gl_reply_json(c, MHD_HTTP_OK, GL_S("{\"status\":\"ready\"}"));
    } else {
        gl_reply_error(c, GL_E_UNAVAILABLE,
                       reason.n > 0 ? gl_str_c(&c->arena, reason) : "the node is not ready", NULL);
    }
}

static void ask_ready(struct gl_call *c)
{
    c->then = tell_ready;
    gl_call_ask(c);
}

/* First whether the loop turns at all: if it does not, nobody would answer the question. */
void gl_verbs_ready(struct gl_call *c)
{
    c->rq.context = GL_S("default");
    c->then = ask_ready;
    gl_usher_ping(c);
}

static void tell_metrics(struct gl_call *c)
{
    c->status = MHD_HTTP_OK;
    c->type = "text/plain; version=0.0.4";
}

void gl_verbs_metrics(struct gl_call *c)
{
    c->rq.context = GL_S("default");
    c->then = tell_metrics;
    gl_call_ask(c);
}

void gl_verbs_node(struct gl_call *c)
{
    c->rq.context = GL_S("default");
    gl_call_ask(c);
}

void gl_verbs_nodes(struct gl_call *c)
{
    c->rq.context = GL_S("default");
    c->rq.all = gl_str_is(gl_call_argument(c, "all"), "true");
    gl_call_ask(c);
}

void gl_verbs_node_show(struct gl_call *c)
{
    c->rq.context = GL_S("default");
    c->rq.name = c->rq.step; /* as the path has it */
    c->rq.step = (gl_str){0};
    gl_call_ask(c);
}

void gl_verbs_yield(struct gl_call *c)
{
    if (c->config->yield == NULL) {
        gl_reply_error(c, GL_E_STATE, "this node stays", NULL);
        return;
    }
    c->config->yield(c->config->owner);
    gl_reply_json(c, MHD_HTTP_ACCEPTED, GL_S("{\"yielding\":true}"));
}

/* ---- jobs ---- */

void gl_verbs_submit(struct gl_call *c)
{
    if (gl_posted_submit(c)) {
        gl_call_ask(c);
    }
}

static void read_page_size(struct gl_call *c)
{
    c->rq.limit = (uint32_t)gl_routes_number(c, "limit", 0);
}

void gl_verbs_list(struct gl_call *c)
{
    c->rq.status = gl_call_argument(c, "status");
    c->rq.name = gl_call_argument(c, "name");
    c->rq.after = gl_call_argument(c, "after");
    if (c->rq.status.n > 0 && gl_schema_word(gl_job_status_words, c->rq.status) < 0) {
        gl_reply_error_at(c, GL_E_INVALID, "there is no such status of a job",
                          "pending, running, pausing, paused, cancelling, completed, failed or "
                          "cancelled",
                          "status", NULL);
        return;
    }
    read_page_size(c);
    gl_call_ask(c);
}

void gl_verbs_ask(struct gl_call *c)
{
    gl_call_ask(c);
}

void gl_verbs_status(struct gl_call *c)
{
    c->rq.step = gl_call_argument(c, "step");
    c->rq.after = gl_call_argument(c, "page");
    c->rq.brief = gl_str_is(gl_call_argument(c, "brief"), "true");
    read_page_size(c);
    if ((c->rq.step.n > 0) + (c->rq.after.n > 0) + c->rq.brief > 1) {
        gl_reply_error(c, GL_E_INVALID, "'step', 'page' and 'brief' exclude each other", NULL);
        return;
    }
    gl_call_ask(c);
}

void gl_verbs_events(struct gl_call *c)
{
    read_page_size(c);
    c->rq.from_seq = (int64_t)gl_routes_number(c, "from", 0);
    c->rq.wait_ms = (gl_ms)gl_routes_number(c, "wait_ms", 0);
    if (gl_text_accepts(gl_call_header(c, MHD_HTTP_HEADER_ACCEPT), "text/event-stream")) {
        gl_watch_route(c);
    } else {
        gl_call_ask(c);
    }
}

void gl_verbs_logs(struct gl_call *c)
{
    c->step = gl_call_argument(c, "step");
    c->attempt = (uint32_t)gl_routes_number(c, "attempt", 0);
    c->offset = gl_routes_number(c, "offset", 0);
    gl_paper_route(c);
}

void gl_verbs_why(struct gl_call *c)
{
    c->rq.step = gl_call_argument(c, "step");
    gl_call_ask(c);
}

void gl_verbs_command(struct gl_call *c)
{
    if (gl_posted_command(c)) {
        gl_call_ask(c);
    }
}

void gl_verbs_retry(struct gl_call *c)
{
    if (gl_posted_retry(c)) {
        gl_call_ask(c);
    }
}

void gl_verbs_signal(struct gl_call *c)
{
    c->rq.who = gl_call_argument(c, "who");
    if (c->rq.who.n > GL_NAME_BYTES_MAX) {
        gl_reply_error_at(c, GL_E_INVALID, "'who' can have 256 bytes", NULL, "who", NULL);
        return;
    }
    if (gl_posted_signal(c)) {
        gl_call_ask(c);
    }
}

void gl_verbs_respond(struct gl_call *c)
{
    if (gl_posted_respond(c)) {
        gl_call_ask(c);
    }
}

/* ---- agents ---- */

void gl_verbs_agents(struct gl_call *c)
{
    c->rq.step = gl_call_argument(c, "agent");
    c->rq.after = gl_call_argument(c, "after");
    read_page_size(c);
    gl_call_ask(c);
}

void gl_verbs_messages(struct gl_call *c)
{
    c->rq.from_seq = (int64_t)gl_routes_number(c, "number", 0);
    gl_verbs_agents(c);
}

void gl_verbs_send(struct gl_call *c)
{
    if (gl_posted_message(c)) {
        gl_call_ask(c);
    }
}

/* ---- a context ---- */

void gl_verbs_human(struct gl_call *c)
{
    read_page_size(c);
    gl_call_ask(c);
}

void gl_verbs_trim(struct gl_call *c)
{
    if (gl_posted_trim(c)) {
        gl_call_ask(c);
    }
}

void gl_verbs_put_blob(struct gl_call *c)
{
    struct gl_why why = {0};
    int err = c->config->blob->put(c->config->blob, c->rq.context, c->sha256, gl_buf_view(&c->body),
                                   &why);

    if (err == GL_E_LIMIT) {
        gl_reply_status(c, MHD_HTTP_CONTENT_TOO_LARGE, err, why.text);
    } else if (err != 0) {
        gl_reply_error(c, err == GL_E_IO ? GL_E_UNAVAILABLE : err, why.text, NULL);
    } else {
        gl_reply_json(c, MHD_HTTP_CREATED,
                      gl_str_fmt(&c->arena, "{\"sha256\":\"%.*s\",\"bytes\":%zu}",
                                 GL_STR_ARG(c->sha256), c->body.n));
    }
}
