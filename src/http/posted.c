/* posted.c - the bodies of requests: JSON, read strictly. */
#include "base/check.h"
#include "base/limits.h"
#include "http/routes.h"
#include "http/submits.h"
#include "http/text.h"
#include "model/schema.h"

struct body {
    gl_str decision, output, who, reason;
    gl_str to, type, body, headers, class, correlation_id;
    gl_str from, run_id, request_key;
    gl_str keep_for;
    int64_t keep_jobs;
};

#define FIELD(member, type, flags, doc) GL_FIELD(body, member, type, flags, doc)

static const struct gl_field command_fields[] = {
    FIELD(who, STR, 0, "Who asks, for the record."),
    FIELD(reason, STR, 0, "Why, for the record."),
};

static const struct gl_field respond_fields[] = {
    FIELD(decision, STR, GL_FF_REQUIRED,
          "rerun, done or failed; of an approval, one of those it offers."),
    FIELD(output, RAW, 0, "With `done`, or with what an approval decides: the step's output."),
    FIELD(who, STR, 0, "Who decides, for the record."),
    FIELD(reason, STR, 0, "Why, for the record."),
};

static const struct gl_field retry_fields[] = {
    FIELD(from, STR, 0, "The step to begin with. Without it: whatever did not complete."),
    FIELD(run_id, STR, 0, "The caller's name for the new job."),
    FIELD(request_key, STR, 0, "Names this request: sending it again returns the same job."),
};

static const struct gl_field trim_fields[] = {
    FIELD(keep_for, STR, 0, "Keep jobs that ended less long ago: \"7d\", \"12h\"."),
    FIELD(keep_jobs, I64, 0, "Keep at most so many ended jobs."),
};

static const struct gl_field message_fields[] = {
    FIELD(to, STR, GL_FF_REQUIRED, "The agent that gets it."),
    FIELD(type, STR, 0, "Its type; `input` if absent."),
    FIELD(body, RAW, 0, "What it says: any JSON value, at most 16 MiB."),
    FIELD(headers, RAW, 0, "Its headers: an object."),
    FIELD(class, STR, 0, "`event` or `command`; a command if absent."),
    FIELD(correlation_id, STR, 0, "What it belongs to; a new one if absent."),
    FIELD(who, STR, 0, "Who sends it, for the record."),
};

#define SCHEMA(word)                                                                  \
    const struct gl_schema gl_posted_##word##_schema = {.name = #word,                \
                                                        .bytes = sizeof(struct body), \
                                                        .fields = word##_fields,      \
                                                        .fields_n = GL_COUNT(word##_fields)}

SCHEMA(command);
SCHEMA(respond);
SCHEMA(retry);
SCHEMA(trim);
SCHEMA(message);

bool gl_posted_json(struct gl_call *c, struct gl_json *ret)
{
    struct gl_why why = {0};
    gl_str text = gl_buf_view(&c->body);

    if (text.n == 0) {
        text = GL_S("{}");
    }
    if (gl_json_parse(ret, text, GL_HTTP_BODY_BYTES_MAX, &c->arena, &why) != 0) {
        (void)gl_why_prefix(&why, "the body is not JSON");
        gl_reply_error(c, GL_E_INVALID, why.text, NULL);
        return false;
    }
    return true;
}

static bool read_body(struct gl_call *c, const struct gl_schema *schema, struct gl_json *j,
                      struct body *ret)
{
    struct gl_why why = {0};

    if (!gl_posted_json(c, j)) {
        return false;
    }
    if (gl_schema_read(schema, j, gl_json_root(j), true, &c->arena, ret, &why) != 0) {
        gl_reply_error(c, GL_E_INVALID, why.text, "docs/api.md lists the fields");
        return false;
    }
    if (ret->reason.n > GL_REASON_BYTES_MAX || ret->who.n > GL_NAME_BYTES_MAX) {
        gl_reply_error(c, GL_E_INVALID, "'reason' can have 512 bytes and 'who' 256", NULL);
        return false;
    }
    return true;
}

bool gl_posted_command(struct gl_call *c)
{
    struct gl_json j;
    struct body b;

    if (!read_body(c, &gl_posted_command_schema, &j, &b)) {
        return false;
    }
    c->rq.who = b.who;
    c->rq.reason = b.reason;
    return true;
}

bool gl_posted_respond(struct gl_call *c)
{
    struct gl_json j;
    struct body b;

    if (!read_body(c, &gl_posted_respond_schema, &j, &b)) {
        return false;
    }
    b.output = gl_text_compact(b.output, &c->arena);
    if (b.output.n > GL_OUTPUT_BYTES_MAX || j.depth > GL_VALUE_DEPTH_MAX) {
        gl_reply_error_at(c, GL_E_INVALID, "an output can have 1 MiB and 48 levels of nesting",
                          NULL, "output", NULL);
        return false;
    }
    c->rq.decision = b.decision;
    c->rq.output = b.output;
    c->rq.who = b.who;
    c->rq.reason = b.reason;
    return true;
}

bool gl_posted_retry(struct gl_call *c)
{
    struct gl_json j;
    struct body b;

    if (!read_body(c, &gl_posted_retry_schema, &j, &b)) {
        return false;
    }
    c->rq.step = b.from;
    c->rq.run_id = b.run_id;
    c->rq.request_key = b.request_key;
    return true;
}

bool gl_posted_trim(struct gl_call *c)
{
    struct gl_json j;
    struct body b;

    if (!read_body(c, &gl_posted_trim_schema, &j, &b)) {
        return false;
    }
    c->rq.keep_ms = c->rq.keep_jobs = -1;
    if (b.keep_for.n > 0 && !gl_when_parse_span(b.keep_for, &c->rq.keep_ms)) {
        gl_reply_error_at(c, GL_E_INVALID, "'keep_for' must be a duration, as \"7d\" or \"12h\"",
                          NULL, "keep_for", NULL);
        return false;
    }
    if (gl_json_get(&j, gl_json_root(&j), "keep_jobs") != NULL) {
        if (b.keep_jobs < 0) {
            gl_reply_error_at(c, GL_E_INVALID, "'keep_jobs' must be 0 or more", NULL, "keep_jobs",
                              NULL);
            return false;
        }
        c->rq.keep_jobs = b.keep_jobs;
    }
    return true;
}

bool gl_posted_signal(struct gl_call *c)
{
    struct gl_json j;

    if (!gl_str_is_id(c->rq.step)) {
        gl_reply_error_at(c, GL_E_INVALID,
                          "the name of a signal has 1 to 128 ASCII letters, digits, '_', '.' or "
                          "'-', and begins with none of the last two",
                          NULL, "name", NULL);
        return false;
    }
    if (c->body.n == 0) {
        return true;
    }
    if (!gl_posted_json(c, &j)) {
        return false;
    }
    c->rq.output = gl_text_compact(gl_buf_view(&c->body), &c->arena);
    if (c->rq.output.n > GL_SIGNAL_BYTES_MAX || j.depth > GL_VALUE_DEPTH_MAX) {
        gl_reply_error(c, GL_E_INVALID,
                       "the data of a signal can have 256 KiB and 48 levels of nesting", NULL);
        return false;
    }
    return true;
}

static void write_part(struct gl_jw *w, const char *name, gl_str text)
{
    if (text.n > 0) {
        gl_jw_key(w, name);
        gl_jw_str(w, text);
    }
}

/* As an element of a bundle's `initial_inputs` has it. */
static gl_str message_of(struct gl_call *c, const struct body *b)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    write_part(&w, "type", b->type);
    write_part(&w, "class", b->class);
    write_part(&w, "correlation_id", b->correlation_id);
    if (b->headers.n > 0) {
        gl_jw_key(&w, "headers");
        gl_jw_raw(&w, gl_text_compact(b->headers, &c->arena));
    }
    gl_jw_key(&w, "body");
    gl_jw_raw(&w, b->body.n > 0 ? gl_text_compact(b->body, &c->arena) : GL_S("null"));
    gl_jw_end(&w);
    return gl_str_dup(&c->arena, gl_buf_view(&out));
}

bool gl_posted_message(struct gl_call *c)
{
    struct gl_json j;
    struct body b;

    if (!read_body(c, &gl_posted_message_schema, &j, &b)) {
        return false;
    }
    if (b.headers.n > 0 &&
        !gl_json_is(gl_json_get(&j, gl_json_root(&j), "headers"), GL_JSON_OBJECT)) {
        gl_reply_error_at(c, GL_E_INVALID, "'headers' must be an object", NULL, "headers", NULL);
        return false;
    }
    c->rq.step = b.to;
    c->rq.who = b.who;
    c->rq.output = message_of(c, &b);
    if (c->rq.output.n > GL_MESSAGE_BYTES_MAX || j.depth > GL_VALUE_DEPTH_MAX) {
        gl_reply_error_at(c, GL_E_INVALID,
                          "a message that is sent can have 16 MiB and 48 levels of nesting", NULL,
                          "body", NULL);
        return false;
    }
    return true;
}

bool gl_posted_submit(struct gl_call *c)
{
    struct gl_refusal refusal;
    struct gl_submits s;
    struct gl_json j;
    bool is_fine;

    if (!gl_posted_json(c, &j)) {
        return false;
    }
    gl_submits_init(&s, &c->arena, c->config->blob, c->rq.context, &j);
    is_fine = gl_submits_read(&s, gl_json_root(&j), &c->rq, &refusal);
    gl_submits_done(&s);
    if (!is_fine) {
        gl_reply_refusal(c, &refusal);
    }
    return is_fine;
}
