/* handlers.c - handlers that do more than pass the request to the node. */
#include "base/check.h"
#include "base/limits.h"
#include "http/http_text.h"
#include "http/routes.h"
#include "http/submission_reader.h"

enum { NODE_BYTES_MAX = 1 << 20 };

void gl_route_ask(struct gl_http_call *c)
{
    if (gl_routes_read_body(c)) {
        gl_http_call_ask_node(c);
    }
}

/* ---- the node ---- */

static void reply_health(struct gl_http_call *c)
{
    gl_reply_json(c, MHD_HTTP_OK, GL_S("{\"status\":\"ok\"}"));
}

void gl_route_health(struct gl_http_call *c)
{
    c->then = reply_health;
    gl_housekeeping_ping(c);
}

static void reply_ready(struct gl_http_call *c)
{
    gl_str text = gl_str_dup(&c->arena, gl_buf_view(&c->out));
    bool is_ready = true;
    gl_str reason = {0}, word = {0};
    struct gl_json j;

    if (gl_json_parse(&j, text, NODE_BYTES_MAX, &c->arena, NULL) == 0) {
        gl_jnode root = gl_json_root(&j);

        (void)gl_json_bool(gl_json_get(&j, root, "ready"), &is_ready);
        reason = gl_json_str(&j, gl_json_get(&j, root, "reason"), &c->arena);
        word = gl_json_str(&j, gl_json_get(&j, root, "reason_code"), &c->arena);
    }
    if (is_ready) {
        gl_reply_json(c, MHD_HTTP_OK, GL_S("{\"status\":\"ready\"}"));
    } else {
        gl_reply_error(c,
                       word.n > 0 ? gl_err_join(GL_E_UNAVAILABLE,
                                                gl_reason_from_word(gl_str_c(&c->arena, word)))
                                  : GL_R_NODE_NOT_READY,
                       reason.n > 0 ? gl_str_c(&c->arena, reason) : "the node is not ready", NULL);
    }
}

static void ask_ready(struct gl_http_call *c)
{
    c->rq.verb = GL_VERB_NODE;
    c->then = reply_ready;
    gl_http_call_ask_node(c);
}

/* Ping the loop first: a hung loop would never answer the request. */
void gl_route_ready(struct gl_http_call *c)
{
    c->then = ask_ready;
    gl_housekeeping_ping(c);
}

static void reply_metrics(struct gl_http_call *c)
{
    c->status = MHD_HTTP_OK;
    c->type = "text/plain; version=0.0.4";
}

void gl_route_metrics(struct gl_http_call *c)
{
    c->then = reply_metrics;
    gl_http_call_ask_node(c);
}

void gl_route_yield(struct gl_http_call *c)
{
    if (c->config->yield == NULL) {
        gl_reply_error(c, GL_R_NODE_STAYS, "this node does not yield its data folder", NULL);
        return;
    }
    c->config->yield(c->config->owner);
    gl_reply_json(c, MHD_HTTP_ACCEPTED, GL_S("{\"yielding\":true}"));
}

/* ---- jobs ---- */

void gl_route_submit(struct gl_http_call *c)
{
    struct gl_refusal refusal;
    struct gl_submission_reader s;
    struct gl_json j;
    bool is_fine;

    if (!gl_routes_parse_json(c, &j)) {
        return;
    }
    gl_submission_reader_init(&s, &c->arena, c->config->blob, c->rq.context, &j);
    is_fine = gl_submission_reader_next(&s, gl_json_root(&j), &c->rq, &refusal);
    gl_submission_reader_done(&s);
    if (is_fine) {
        gl_http_call_ask_node(c);
    } else {
        gl_reply_refusal(c, &refusal);
    }
}

void gl_route_events(struct gl_http_call *c)
{
    if (gl_http_text_accepts(gl_http_call_header(c, MHD_HTTP_HEADER_ACCEPT), "text/event-stream")) {
        gl_job_event_stream_start(c);
    } else {
        gl_http_call_ask_node(c);
    }
}

/* ---- commands ---- */

/* The nesting of the whole body counts. */
static bool check_size(struct gl_http_call *c, size_t max, const struct gl_json *j,
                       const char *message, const char *field)
{
    bool check_size = c->rq.command.value.n <= max && j->depth <= GL_VALUE_DEPTH_MAX;

    if (!check_size) {
        gl_reply_error_at(c, GL_E_INVALID, message, NULL, field, NULL);
    }
    return check_size;
}

void gl_route_respond(struct gl_http_call *c)
{
    gl_str step = c->rq.command.about;
    struct gl_json j;

    if (!gl_routes_read_fields(c, &j, &c->rq.command)) {
        return;
    }
    c->rq.command.about = step;
    c->rq.command.value = gl_http_text_compact(c->rq.command.value, &c->arena);
    if (check_size(c, GL_OUTPUT_BYTES_MAX, &j,
                   "an output can have at most 1 MiB and 48 levels of nesting", "output")) {
        gl_http_call_ask_node(c);
    }
}

void gl_route_signal(struct gl_http_call *c)
{
    struct gl_json j;

    if (!gl_str_is_id(c->rq.command.about)) {
        gl_reply_error_at(c, GL_R_SIGNAL_NAME_INVALID,
                          "the name of a signal has 1 to 128 ASCII letters, digits, '_', '.' or "
                          "'-', and does not begin with '.' or '-'",
                          NULL, "name", NULL);
        return;
    }
    if (c->body.n > 0) {
        if (!gl_routes_parse_json(c, &j)) {
            return;
        }
        c->rq.command.value = gl_http_text_compact(gl_buf_view(&c->body), &c->arena);
        if (!check_size(c, GL_SIGNAL_BYTES_MAX, &j,
                        "the data of a signal can have at most 256 KiB and 48 levels of nesting",
                        NULL)) {
            return;
        }
    }
    gl_http_call_ask_node(c);
}

static void put_optional(struct gl_jw *w, const char *name, gl_str text)
{
    if (text.n > 0) {
        gl_jw_put_str(w, name, text);
    }
}

/* The same form as an element of a bundle's `initial_inputs`. */
static gl_str write_message(struct gl_http_call *c, const struct gl_message_request *m)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    put_optional(&w, "type", m->type);
    put_optional(&w, "class", m->class);
    put_optional(&w, "correlation_id", m->correlation_id);
    if (m->headers.n > 0) {
        gl_jw_put_raw(&w, "headers", gl_http_text_compact(m->headers, &c->arena));
    }
    if (m->priority >= 0) {
        gl_jw_put_i64(&w, "priority", m->priority);
    }
    gl_jw_put_raw(&w, "body",
                  m->body.n > 0 ? gl_http_text_compact(m->body, &c->arena) : GL_S("null"));
    gl_jw_end(&w);
    return gl_str_dup(&c->arena, gl_buf_view(&out));
}

void gl_route_send(struct gl_http_call *c)
{
    struct gl_message_request m;
    struct gl_json j;

    if (!gl_routes_read_fields(c, &j, &m)) {
        return;
    }
    if (m.headers.n > 0 &&
        !gl_json_is(gl_json_get(&j, gl_json_root(&j), "headers"), GL_JSON_OBJECT)) {
        gl_reply_error_at(c, GL_R_HEADERS_INVALID, "'headers' must be an object", NULL, "headers",
                          NULL);
        return;
    }
    c->rq.command =
        (struct gl_command_request){.about = m.to, .who = m.who, .value = write_message(c, &m)};
    if (check_size(c, GL_MESSAGE_BYTES_MAX, &j,
                   "a message can have at most 16 MiB and 48 levels of nesting", "body")) {
        gl_http_call_ask_node(c);
    }
}

/* ---- files ---- */

void gl_route_put_blob(struct gl_http_call *c)
{
    gl_str sha256 = c->rq.blob.sha256;
    struct gl_why why = {0};
    int err =
        c->config->blob->put(c->config->blob, c->rq.context, sha256, gl_buf_view(&c->body), &why);

    if (err == GL_E_LIMIT) {
        gl_reply_status(c, MHD_HTTP_CONTENT_TOO_LARGE, gl_why_whole(&why), why.text);
    } else if (err != 0) {
        gl_reply_error(c, gl_err_join(err == GL_E_IO ? GL_E_UNAVAILABLE : err, why.reason),
                       why.text, NULL);
    } else {
        gl_reply_json(c, MHD_HTTP_CREATED,
                      gl_str_fmt(&c->arena, "{\"sha256\":\"%.*s\",\"bytes\":%zu}",
                                 GL_STR_ARG(sha256), c->body.n));
    }
}
