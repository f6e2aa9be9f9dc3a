/* routes.c - turns a method, a path, a query and a body into a request, by the table of verbs. */
#include "http/routes.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "http/http_text.h"
#include "port/store.h"

static void (*const routes[GL_VERB_COUNT])(struct gl_http_call *c) = {
#define VERB(name, word, kind, method, path, takes, body, http, ...) \
    [GL_VERB_##name] = gl_route_##http,
#include "api/verbs.def"
#undef VERB
};

/* ---- arguments ---- */

struct query {
    struct gl_http_call *call;
    bool is_fine;
};

static void suggest(struct gl_http_call *c, gl_str name)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf hint = {0};
    const struct gl_schema *s = gl_verbs[c->rq.verb].takes;
    struct gl_suggest near;

    gl_suggest_init(&near, name);
    for (size_t i = 0; i < s->fields_n; i++) {
        if ((s->fields[i].flags & GL_FF_QUERY) != 0) {
            gl_suggest_offer(&near, gl_str_of(s->fields[i].name));
            gl_buf_fmt(&hint, "%s%s", hint.n > 0 ? ", " : "allowed: ", s->fields[i].name);
        }
    }
    if (near.best.n > 0) {
        gl_buf_reset(&hint);
        gl_buf_fmt(&hint, "did you mean '%.*s'?", GL_STR_ARG(near.best));
    } else if (hint.n == 0) {
        gl_buf_c(&hint, "this request takes no arguments");
    }
    gl_reply_error_at(c, GL_R_UNKNOWN_ARGUMENT, "unknown query argument",
                      gl_str_c(&c->arena, gl_buf_view(&hint)), gl_str_c(&c->arena, name), NULL);
}

static enum MHD_Result take_argument(void *owner, enum MHD_ValueKind kind, const char *key,
                                     const char *value)
{
    struct query *q = owner;
    struct gl_http_call *c = q->call;
    struct gl_why why;
    int err = gl_request_argument(&c->rq, gl_str_of(key),
                                  gl_http_call_unescape(c, gl_str_of(value)), &why);

    (void)kind;
    if (err == GL_E_NOT_FOUND) {
        suggest(c, gl_str_of(key));
    } else if (err != 0) {
        gl_reply_error_at(c, gl_why_whole(&why), why.text, NULL,
                          gl_str_c(&c->arena, gl_str_of(key)), NULL);
    }
    q->is_fine = err == 0;
    return q->is_fine ? MHD_YES : MHD_NO;
}

static bool take_arguments(struct gl_http_call *c)
{
    struct query q = {.call = c, .is_fine = true};

    (void)MHD_get_connection_values(c->connection, MHD_GET_ARGUMENT_KIND, take_argument, &q);
    return q.is_fine;
}

/* ---- bodies ---- */

bool gl_routes_parse_json(struct gl_http_call *c, struct gl_json *ret)
{
    struct gl_why why = {0};
    gl_str text = gl_buf_view(&c->body);

    if (text.n == 0) {
        text = GL_S("{}");
    }
    if (gl_json_parse(ret, text, GL_HTTP_BODY_BYTES_MAX, &c->arena, &why) != 0) {
        (void)gl_why_prefix(&why, "the body is not JSON");
        gl_reply_error(c, GL_R_BODY_INVALID, why.text, NULL);
        return false;
    }
    return true;
}

static bool check_read(struct gl_http_call *c, int err, const struct gl_why *why)
{
    if (err != 0) {
        gl_reply_error(c, gl_err_join(GL_E_INVALID, why->reason), why->text,
                       "docs/api.md lists the fields");
    }
    return err == 0;
}

bool gl_routes_read_fields(struct gl_http_call *c, struct gl_json *ret_json, void *ret)
{
    struct gl_why why = {0};

    return gl_routes_parse_json(c, ret_json) &&
           check_read(c,
                      gl_schema_read(gl_verbs[c->rq.verb].takes, ret_json, gl_json_root(ret_json),
                                     true, &c->arena, ret, &why),
                      &why);
}

bool gl_routes_read_body(struct gl_http_call *c)
{
    struct gl_why why = {0};
    struct gl_json j;

    return gl_verbs[c->rq.verb].body != GL_CONTENT_FIELDS ||
           (gl_routes_parse_json(c, &j) &&
            check_read(c, gl_request_body(&c->rq, &j, &c->arena, &why), &why));
}

/* ---- finding ---- */

static const char *methods_of(struct gl_http_call *c)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (size_t i = 0; i < GL_VERB_COUNT; i++) {
        if (gl_verb_has_path((enum gl_verb)i, gl_str_of(c->url))) {
            gl_buf_fmt(&out, "%s%s", out.n > 0 ? ", " : "", gl_verbs[i].method);
        }
    }
    return gl_str_c(&c->arena, gl_buf_view(&out));
}

static void refuse_path(struct gl_http_call *c, bool is_known)
{
    if (!is_known) {
        gl_reply_error(c, GL_R_NO_SUCH_PATH, "no such path",
                       "docs/api.md and /v1/openapi.json list them");
        return;
    }
    c->allow = methods_of(c);
    if (strcmp(c->method, MHD_HTTP_METHOD_OPTIONS) == 0) {
        c->status = MHD_HTTP_NO_CONTENT; /* no CORS headers */
        return;
    }
    gl_reply_refusal(
        c, &(struct gl_refusal){.code = GL_R_METHOD_NOT_ALLOWED,
                                .status = MHD_HTTP_METHOD_NOT_ALLOWED,
                                .message = "method not allowed for this path",
                                .hint = gl_str_fmt(&c->arena, "allowed: %s", c->allow).p});
}

void gl_routes_dispatch(struct gl_http_call *c)
{
    struct gl_captures found;
    bool is_known;
    enum gl_verb verb = gl_verb_find(gl_str_of(c->method), gl_str_of(c->url), &found, &is_known);

    if (verb == GL_VERB_COUNT) {
        refuse_path(c, is_known);
        return;
    }
    for (size_t i = 0; i < found.n; i++) {
        found.values[i] = gl_http_call_unescape(c, found.values[i]);
    }
    gl_request_init(&c->rq, verb, GL_CONTEXT_DEFAULT); /* unless the path names one */
    gl_request_place(&c->rq, &found);
    if (!gl_str_eq(c->rq.context, GL_CONTEXT_DEFAULT)) {
        gl_reply_error(c, GL_R_NO_SUCH_CONTEXT, "no such context", "the only context is default");
        return;
    }
    if (take_arguments(c)) {
        routes[verb](c);
    }
}
