/* request.c - the tables of verbs and their fields, made from verbs.def and requests.def; reading
 * and writing requests by them. */
#include "api/request.h"

#include "base/check.h"
#include "base/limits.h"

/* ---- the fields of each verb ---- */

#define PATH GL_FF_PATH
#define QUERY GL_FF_QUERY
#define BODY 0
#define REQUIRED (GL_FF_REQUIRED | GL_FF_ALWAYS)
#define OR_UNSET GL_FF_OR_UNSET
#define NOT_ZERO GL_FF_NOT_ZERO

#define SCHEMA(request, of)                                                                     \
    static const struct gl_schema takes_##request = {.name = #request,                          \
                                                     .bytes = sizeof(struct gl_##of##_request), \
                                                     .fields = request##_fields,                \
                                                     .fields_n = GL_COUNT(request##_fields)};
#define REQUEST(request) static const struct gl_field request##_fields[] = {
#define END(request) \
    }                \
    ;                \
    SCHEMA(request, request)
#define VARIANT(request, of) REQUEST(request)
#define END_VARIANT(request, of) \
    }                            \
    ;                            \
    SCHEMA(request, of)
#define SHOWN(s, member, word, ftype, fflags, fmax, fdoc) \
    {.name = (word),                                      \
     .type = GL_F_##ftype,                                \
     .offset = offsetof(struct gl_##s##_request, member), \
     .flags = (fflags),                                   \
     .max = (fmax),                                       \
     .doc = (fdoc)},
#define TEXT(s, member, flags, max, doc) SHOWN(s, member, #member, STR, flags, max, doc)
#define JSON(s, member, flags, max, doc) SHOWN(s, member, #member, RAW, flags, max, doc)
#define COUNT(s, member, flags, max, doc) SHOWN(s, member, #member, U32, flags, max, doc)
#define NUMBER(s, member, flags, max, doc) SHOWN(s, member, #member, I64, flags, max, doc)
#define SPAN(s, member, flags, max, doc) SHOWN(s, member, #member, DURATION, flags, max, doc)
#define FLAG(s, member, flags, doc) SHOWN(s, member, #member, BOOL, flags, 0, doc)
#define INNER(s, type, member)
#include "api/requests.def"
#undef BODY

static const struct gl_schema takes_nothing = {.name = "nothing"};

/* ---- the verbs ---- */

const struct gl_verb_row gl_verbs[GL_VERB_COUNT] = {
#define VERB(name, id, is, verb, where, fields, form, http, query, success, text, says) \
    [GL_VERB_##name] = {.word = #id,                                                    \
                        .kind = GL_KIND_##is,                                           \
                        .method = #verb,                                                \
                        .path = where,                                                  \
                        .takes = &takes_##fields,                                       \
                        .body = GL_CONTENT_##form,                                      \
                        .status = (success),                                            \
                        .doc = (text),                                                  \
                        .answer = (says)},
#include "api/verbs.def"
#undef VERB
};

bool gl_verb_is_urgent(enum gl_verb verb)
{
    enum gl_verb_kind kind = gl_verbs[verb].kind;

    return kind == GL_KIND_QUERY || kind == GL_KIND_NODE || kind == GL_KIND_CLAIM;
}

/* The next segment of a path. A trailing slash is ignored. */
static bool next_segment(gl_str *rest, gl_str *ret)
{
    if (rest->n > 0 && rest->p[0] == '/') {
        rest->p++;
        rest->n--;
    }
    if (rest->n == 0) {
        return false;
    }
    for (ret->p = rest->p, ret->n = 0; ret->n < rest->n && rest->p[ret->n] != '/'; ret->n++) {
    }
    rest->p += ret->n;
    rest->n -= ret->n;
    return true;
}

static bool is_brace(gl_str segment)
{
    return segment.n > 0 && segment.p[0] == '{';
}

static bool matches(const char *row, gl_str path, struct gl_captures *ret)
{
    gl_str pattern = gl_str_of(row);
    gl_str want, have;

    *ret = (struct gl_captures){0};
    for (;;) {
        bool has_want = next_segment(&pattern, &want);
        bool has_have = next_segment(&path, &have);

        if (!has_want || !has_have) {
            return has_want == has_have;
        }
        if (is_brace(want)) {
            if (have.n == 0) {
                return false;
            }
            ret->values[ret->n++] = have;
        } else if (!gl_str_eq(want, have)) {
            return false;
        }
    }
}

enum gl_verb gl_verb_find(gl_str method, gl_str path, struct gl_captures *ret, bool *ret_known)
{
    *ret_known = false;
    for (size_t i = 0; i < GL_VERB_COUNT; i++) {
        if (!matches(gl_verbs[i].path, path, ret)) {
            continue;
        }
        *ret_known = true;
        if (gl_str_is(method, gl_verbs[i].method)) {
            return (enum gl_verb)i;
        }
    }
    return GL_VERB_COUNT;
}

bool gl_verb_has_path(enum gl_verb verb, gl_str path)
{
    struct gl_captures ignored;

    return matches(gl_verbs[verb].path, path, &ignored);
}

/* ---- reading ---- */

/* The fields of the verb. All members of the union begin at the same address. */
static void *rest_of(struct gl_request *rq)
{
    return &rq->submission;
}

void gl_request_init(struct gl_request *rq, enum gl_verb verb, gl_str context)
{
    *rq = (struct gl_request){.verb = verb, .context = context};
    gl_schema_clear(gl_verbs[verb].takes, rest_of(rq));
}

static const struct gl_field *field_in(const struct gl_schema *s, gl_str name, uint32_t where)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        if ((s->fields[i].flags & where) != 0 && gl_str_is(name, s->fields[i].name)) {
            return &s->fields[i];
        }
    }
    return NULL;
}

/* The member that a brace of a path stands for: context, job, or a field of the verb. */
static gl_str *place_of(struct gl_request *rq, gl_str brace)
{
    gl_str name = {.p = brace.p + 1, .n = brace.n - 2};
    const struct gl_field *f = field_in(gl_verbs[rq->verb].takes, name, GL_FF_PATH);

    if (gl_str_is(name, "context")) {
        return &rq->context;
    }
    if (gl_str_is(name, "job")) {
        return &rq->job;
    }
    GL_ASSERT(f != NULL && f->type == GL_F_STR); /* a test checks all rows */
    return (gl_str *)((char *)rest_of(rq) + f->offset);
}

void gl_request_place(struct gl_request *rq, const struct gl_captures *captures)
{
    gl_str pattern = gl_str_of(gl_verbs[rq->verb].path), segment;
    size_t n = 0;

    while (next_segment(&pattern, &segment)) {
        if (is_brace(segment)) {
            *place_of(rq, segment) = captures->values[n++];
        }
    }
    GL_ASSERT(n == captures->n);
}

int gl_request_argument(struct gl_request *rq, gl_str name, gl_str value, struct gl_why *reterr_why)
{
    const struct gl_field *f = field_in(gl_verbs[rq->verb].takes, name, GL_FF_QUERY);

    if (f == NULL) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "this request does not take that argument");
    }
    return gl_schema_read_text(f, value, rest_of(rq), reterr_why);
}

int gl_request_body(struct gl_request *rq, const struct gl_json *j, struct gl_arena *a,
                    struct gl_why *reterr_why)
{
    return gl_schema_read_more(gl_verbs[rq->verb].takes, j, gl_json_root(j), true, a, rest_of(rq),
                               reterr_why);
}

/* ---- writing ---- */

gl_str gl_request_escape(struct gl_arena *a, gl_str text)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.';

        if (plain) {
            gl_buf_char(&out, c);
        } else {
            gl_buf_fmt(&out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
    return gl_str_dup(a, gl_buf_view(&out));
}

static void put_argument(struct gl_arena *a, const struct gl_field *f, const void *rest,
                         struct gl_buf *out)
{
    const void *at = (const char *)rest + f->offset;
    gl_str value = {0};

    switch (f->type) {
    case GL_F_STR:
        value = gl_request_escape(a, *(const gl_str *)at);
        break;
    case GL_F_BOOL:
        value = *(const bool *)at ? GL_S("true") : value;
        break;
    case GL_F_U32:
        value = *(const uint32_t *)at > 0 ? gl_str_fmt(a, "%u", *(const uint32_t *)at) : value;
        break;
    case GL_F_I64:
        value = *(const int64_t *)at > 0 ? gl_str_fmt(a, "%lld", (long long)*(const int64_t *)at)
                                         : value;
        break;
    default:
        GL_UNREACHABLE();
    }
    if (value.n > 0) {
        gl_buf_fmt(out, "%c%s=%.*s", memchr(out->p, '?', out->n) == NULL ? '?' : '&', f->name,
                   GL_STR_ARG(value));
    }
}

const char *gl_request_path(struct gl_arena *a, const struct gl_request *rq)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_request copy = *rq; /* place_of() needs a mutable request */
    const struct gl_schema *s = gl_verbs[rq->verb].takes;
    gl_str pattern = gl_str_of(gl_verbs[rq->verb].path), segment;

    while (next_segment(&pattern, &segment)) {
        gl_str text = is_brace(segment) ? gl_request_escape(a, *place_of(&copy, segment)) : segment;

        gl_buf_fmt(&out, "/%.*s", GL_STR_ARG(text));
    }
    for (size_t i = 0; i < s->fields_n; i++) {
        if ((s->fields[i].flags & GL_FF_QUERY) != 0) {
            put_argument(a, &s->fields[i], rest_of(&copy), &out);
        }
    }
    return gl_str_c(a, gl_buf_view(&out));
}

void gl_request_write(const struct gl_request *rq, struct gl_buf *out)
{
    struct gl_jw w;

    if (rq->verb == GL_VERB_SIGNAL) {
        gl_buf_str(out, rq->command.value);
    }
    if (gl_verbs[rq->verb].body != GL_CONTENT_FIELDS) {
        return;
    }
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_schema_write(gl_verbs[rq->verb].takes, &rq->submission, &w, GL_FOR_API);
    gl_jw_end(&w);
}
