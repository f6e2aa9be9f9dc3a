/* openapi.c - the API as an OpenAPI 3.0 document, from the tables that drive it. */
#include "base/check.h"
#include "base/limits.h"
#include "http/routes.h"

static void write_type(struct gl_jw *w, enum gl_field_type type)
{
    static const char *const words[] = {
        [GL_F_BOOL] = "boolean",  [GL_F_I64] = "integer",     [GL_F_U64] = "integer",
        [GL_F_U32] = "integer",   [GL_F_STR] = "string",      [GL_F_TIME] = "string",
        [GL_F_SPAN] = "integer",  [GL_F_DURATION] = "string", [GL_F_ENUM] = "string",
        [GL_F_RAW] = NULL,        [GL_F_STRS] = "array",      [GL_F_LIST] = "array",
        [GL_F_OBJECT] = "object",
    };

    if (words[type] != NULL) { /* a field of any type has no `type` */
        gl_jw_put_c(w, "type", words[type]);
    }
}

static void write_schema(struct gl_jw *w, const struct gl_schema *s)
{
    gl_jw_object(w);
    gl_jw_put_c(w, "type", "object");
    gl_jw_put_bool(w, "additionalProperties", false);
    gl_jw_put_object(w, "properties");
    for (size_t i = 0; i < s->fields_n; i++) {
        if (!gl_schema_is_body(&s->fields[i])) {
            continue;
        }
        gl_jw_put_object(w, s->fields[i].name);
        write_type(w, s->fields[i].type);
        gl_jw_put_c(w, "description", s->fields[i].doc);
        gl_jw_end(w);
    }
    gl_jw_end(w);
    for (size_t i = 0, n = 0; i < s->fields_n; i++) {
        if ((s->fields[i].flags & GL_FF_REQUIRED) != 0) {
            if (n++ == 0) {
                gl_jw_put_array(w, "required");
            }
            gl_jw_c(w, s->fields[i].name);
        }
        if (i + 1 == s->fields_n && n > 0) {
            gl_jw_end(w);
        }
    }
    gl_jw_end(w);
}

/* ---- parameters ---- */

static void write_parameter(struct gl_jw *w, gl_str name, const char *where,
                            const struct gl_field *f)
{
    gl_jw_object(w);
    gl_jw_put_str(w, "name", name);
    gl_jw_put_c(w, "in", where);
    gl_jw_put_bool(w, "required", f == NULL || (f->flags & GL_FF_PATH) != 0);
    if (f != NULL) {
        gl_jw_put_c(w, "description", f->doc);
    }
    gl_jw_put_object(w, "schema");
    write_type(w, f != NULL ? f->type : GL_F_STR);
    if (f != NULL && f->max > 0 && f->type != GL_F_STR) {
        gl_jw_put_u64(w, "minimum", 0);
        gl_jw_put_u64(w, "maximum", f->max);
    }
    gl_jw_end(w);
    gl_jw_end(w);
}

static const struct gl_field *path_field(const struct gl_schema *s, gl_str name)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        if ((s->fields[i].flags & GL_FF_PATH) != 0 && gl_str_is(name, s->fields[i].name)) {
            return &s->fields[i];
        }
    }
    return NULL; /* the context, the job */
}

static void write_parameters(struct gl_jw *w, const struct gl_verb_row *r)
{
    gl_str rest = gl_str_of(r->path);

    gl_jw_put_array(w, "parameters");
    while (rest.n > 0) {
        (void)gl_str_cut(rest, '{', &rest);
        if (rest.n > 0) {
            gl_str name = gl_str_cut(rest, '}', &rest);

            write_parameter(w, name, "path", path_field(r->takes, name));
        }
    }
    for (size_t i = 0; i < r->takes->fields_n; i++) {
        const struct gl_field *f = &r->takes->fields[i];

        if ((f->flags & GL_FF_QUERY) != 0) {
            write_parameter(w, gl_str_of(f->name), "query", f);
        }
    }
    gl_jw_end(w);
}

/* ---- bodies and answers ---- */

static void write_body(struct gl_jw *w, const struct gl_verb_row *r)
{
    if (r->body == GL_CONTENT_NONE) {
        return;
    }
    gl_jw_put_object(w, "requestBody");
    gl_jw_put_object(w, "content");
    gl_jw_put_object(w,
                     r->body == GL_CONTENT_BYTES ? "application/octet-stream" : "application/json");
    gl_jw_key(w, "schema");
    if (r->body == GL_CONTENT_FIELDS) {
        write_schema(w, r->takes);
    } else {
        gl_jw_raw(w, r->body == GL_CONTENT_BYTES
                         ? GL_S("{\"type\":\"string\",\"format\":\"binary\"}")
                         : GL_S("{}"));
    }
    gl_jw_end(w);
    gl_jw_end(w);
    gl_jw_end(w);
}

static void write_answers(struct gl_jw *w, const struct gl_verb_row *r)
{
    char status[8];
    struct gl_buf text = {0};

    gl_buf_u64(&text, r->status);
    memcpy(status, text.p, text.n);
    status[text.n] = '\0';
    gl_buf_done(&text);
    gl_jw_put_object(w, "responses");
    gl_jw_put_object(w, status);
    gl_jw_put_c(w, "description", r->answer);
    gl_jw_end(w);
    gl_jw_put_raw(w, "default", GL_S("{\"$ref\":\"#/components/responses/Error\"}"));
    gl_jw_end(w);
}

static void write_route(struct gl_jw *w, const struct gl_verb_row *r)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    char *method = (char *)gl_arena_copy(&a, r->method, strlen(r->method) + 1);

    for (char *p = method; *p != '\0'; p++) {
        *p = (char)(*p - 'A' + 'a');
    }
    gl_jw_put_object(w, method);
    gl_jw_put_c(w, "operationId", r->word);
    gl_jw_put_c(w, "summary", r->doc);
    write_parameters(w, r);
    write_body(w, r);
    write_answers(w, r);
    gl_jw_end(w);
}

/* ---- the document ---- */

static const char security[] =
    "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":"
    "\"Over TCP only. On the unix socket the peer's user id counts.\"}}";

static const char responses[] =
    "{\"Error\":{\"description\":\"Describes an error.\",\"content\":"
    "{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}}";

static const char error_schema[] =
    "{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"object\","
    "\"properties\":{\"code\":{\"type\":\"string\"},\"reason\":{\"$ref\":"
    "\"#/components/schemas/Reason\"},\"message\":{\"type\":\"string\"},"
    "\"field\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"},\"details\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"integer\"},"
    "\"column\":{\"type\":\"integer\"},\"path\":{\"type\":\"string\"},\"reason\":{\"$ref\":"
    "\"#/components/schemas/Reason\"},\"message\":{\"type\":\"string\"}}}},"
    "\"request_id\":{\"type\":\"string\"}},"
    "\"required\":[\"code\",\"message\",\"request_id\"]}},\"required\":[\"error\"]}";

/* The words of reasons.def, so that a client knows all of them. */
static void write_words(struct gl_jw *w)
{
    gl_jw_put_object(w, "Reason");
    gl_jw_put_c(w, "type", "string");
    gl_jw_put_c(w, "description", "The exact failure. Later releases may add words.");
    gl_jw_put_array(w, "x-extensible-enum");
    for (int i = GL_REASON_NONE + 1; i < GL_REASON_COUNT; i++) {
        gl_jw_c(w, gl_reason_word((enum gl_reason)i));
    }
    gl_jw_end(w);
    gl_jw_end(w);
    gl_jw_put_object(w, "WhyCode");
    gl_jw_put_c(w, "type", "string");
    gl_jw_put_c(w, "description", "`why_code`: why a job or a step is in its state.");
    gl_jw_put_array(w, "x-extensible-enum");
    for (int i = GL_BECAUSE_NONE + 1; i < GL_BECAUSE_COUNT; i++) {
        gl_jw_c(w, gl_why_code_word((enum gl_why_code)i));
    }
    gl_jw_end(w);
    gl_jw_end(w);
}

static void write_components(struct gl_jw *w)
{
    gl_jw_put_object(w, "components");
    gl_jw_put_raw(w, "securitySchemes", GL_S(security));
    gl_jw_put_raw(w, "responses", GL_S(responses));
    gl_jw_put_object(w, "schemas");
    gl_jw_put_raw(w, "Error", GL_S(error_schema));
    write_words(w);
    gl_jw_end(w);
    gl_jw_end(w);
}

void gl_openapi_write(struct gl_buf *out)
{
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_put_c(&w, "openapi", "3.0.3");
    gl_jw_put_object(&w, "info");
    gl_jw_put_c(&w, "title", "Glia");
    gl_jw_put_c(&w, "version", GL_VERSION);
    gl_jw_end(&w);
    gl_jw_put_raw(&w, "security", GL_S("[{},{\"token\":[]}]"));
    gl_jw_put_object(&w, "paths");
    for (size_t i = 0; i < GL_VERB_COUNT; i++) {
        /* Routes of one path are adjacent. */
        bool is_first = i == 0 || strcmp(gl_verbs[i - 1].path, gl_verbs[i].path) != 0;

        if (is_first && i > 0) {
            gl_jw_end(&w);
        }
        if (is_first) {
            gl_jw_put_object(&w, gl_verbs[i].path);
        }
        write_route(&w, &gl_verbs[i]);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    write_components(&w);
    gl_jw_end(&w);
}

void gl_route_openapi(struct gl_http_call *c)
{
    gl_openapi_write(&c->out);
    gl_reply_finish_json(c, MHD_HTTP_OK);
}
