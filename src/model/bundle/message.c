#include "model/bundle/message.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "model/bundle/message_parts.h"

enum { FEW_MEMBERS = 8 };

void gl_message_defaults(struct gl_message *m)
{
    *m = (struct gl_message){
        .class_name = GL_S("event"),
        .attempt = 1,
        .priority = GL_MESSAGE_PRIORITY,
        .content_type = GL_S("application/json"),
        .content_encoding = GL_S("identity"),
    };
}

int64_t gl_message_clamp_priority(int64_t priority)
{
    return priority < 0                         ? 0
           : priority > GL_MESSAGE_PRIORITY_MAX ? GL_MESSAGE_PRIORITY_MAX
                                                : priority;
}

/* Writing. */

static void put(struct gl_jw *w, const char *name, gl_str value)
{
    gl_jw_name(w, name);
    gl_jw_str(w, value);
}

static void put_time(struct gl_jw *w, const char *name, gl_ms t)
{
    char text[GL_TIMES_BYTES];

    gl_jw_name(w, name);
    gl_jw_str(w, gl_times_format(t, text));
}

static void put_raw(struct gl_jw *w, const char *name, gl_str json, const char *fallback)
{
    gl_jw_name(w, name);
    gl_jw_raw(w, json.n > 0 ? json : gl_str_of(fallback));
}

static void put_envelope(const struct gl_message *m, struct gl_jw *w)
{
    gl_jw_name(w, "envelope");
    gl_jw_object(w);
    put(w, "spec_version", GL_S(GL_MESSAGE_SPEC));
    put(w, "message_id", m->message_id);
    put(w, "job_id", m->job_id);
    put(w, "from", m->from);
    put(w, "to", m->to);
    put(w, "type", m->type);
    put(w, "class", m->class_name);
    put_time(w, "timestamp", m->timestamp);
    put(w, "correlation_id", m->correlation_id);
    gl_jw_name(w, "causation_id");
    if (m->causation_id.n > 0) {
        gl_jw_str(w, m->causation_id);
    } else {
        gl_jw_null(w);
    }
    gl_jw_name(w, "attempt");
    gl_jw_u64(w, m->attempt);
    gl_jw_name(w, "priority");
    gl_jw_i64(w, m->priority);
    if (m->ttl_ms > 0) {
        gl_jw_name(w, "ttl_ms");
        gl_jw_i64(w, m->ttl_ms);
    }
    put(w, "content_type", m->content_type);
    put(w, "content_encoding", m->content_encoding);
    gl_jw_end(w);
}

void gl_message_write(const struct gl_message *m, struct gl_buf *out)
{
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    put_envelope(m, &w);
    put_raw(&w, "headers", m->headers, "{}");
    put_raw(&w, "body", m->body, "null");
    put_raw(&w, "artifacts", m->artifacts, "[]");
    put_raw(&w, "stream", m->stream, "null");
    gl_jw_end(&w);
}

/* Reading. The same names are used in an envelope, beside the body of a seed, and in the messages
 * that a worker emits. */

enum kind { TEXT, TIME, NUMBER, COUNT, SPAN, ENCODING, OBJECT, LIST, ANY };

struct part {
    const char *name;
    enum kind kind;
    size_t offset;
    bool is_emitted; /* a worker may set it */
    bool is_envelope;
};

#define PART(name, kind, member, emitted, envelope)                        \
    {                                                                      \
        name, kind, offsetof(struct gl_message, member), emitted, envelope \
    }

static const struct part parts[] = {
    PART("message_id", TEXT, message_id, false, true),
    PART("job_id", TEXT, job_id, false, true),
    PART("from", TEXT, from, false, true),
    PART("to", TEXT, to, true, true),
    PART("type", TEXT, type, true, true),
    PART("class", TEXT, class_name, true, true),
    PART("timestamp", TIME, timestamp, false, true),
    PART("correlation_id", TEXT, correlation_id, true, true),
    PART("causation_id", TEXT, causation_id, true, true),
    PART("attempt", COUNT, attempt, false, true),
    PART("priority", NUMBER, priority, true, true),
    PART("ttl_ms", SPAN, ttl_ms, true, true),
    PART("content_type", TEXT, content_type, true, true),
    PART("content_encoding", ENCODING, content_encoding, true, true),
    PART("headers", OBJECT, headers, true, false),
    PART("artifacts", LIST, artifacts, true, false),
    PART("stream", ANY, stream, true, false),
};

struct message_reader {
    const struct gl_json *j;
    struct gl_arena *a;
    struct gl_why *why;
    const char *where; /* "envelope.", or "" */
};

static int wrong(const struct message_reader *r, const struct part *p, gl_jnode n,
                 const char *wanted)
{
    return gl_why(r->why, GL_E_INVALID, "`%s%s` is %s, not %s", r->where, p->name,
                  gl_json_type_name(n), wanted);
}

static int too_long(const struct message_reader *r, const struct part *p, size_t n, int max)
{
    return gl_why(r->why, GL_E_LIMIT, "`%s%s` has %zu bytes; at most %d are allowed", r->where,
                  p->name, n, max);
}

static int read_text(const struct message_reader *r, const struct part *p, gl_jnode n, gl_str *ret)
{
    gl_str text;

    if (!gl_json_is(n, GL_JSON_STRING)) {
        return wrong(r, p, n, "text");
    }
    text = gl_json_str(r->j, n, r->a);
    if (text.n > GL_WORD_BYTES_MAX) {
        return too_long(r, p, text.n, GL_WORD_BYTES_MAX);
    }
    if (p->kind == ENCODING && !gl_str_is(text, "identity") && !gl_str_is(text, "gzip")) {
        return gl_why(r->why, GL_E_INVALID,
                      "`%s%s` is \"%.*s\"; it must be \"identity\" or \"gzip\"", r->where, p->name,
                      GL_STR_ARG(text));
    }
    *ret = text;
    return 0;
}

static int read_time(const struct message_reader *r, const struct part *p, gl_jnode n, gl_ms *ret)
{
    gl_str text = gl_json_str(r->j, n, r->a);
    gl_ms t;

    if (!gl_json_is(n, GL_JSON_STRING) || !gl_times_parse(text, &t)) {
        return gl_why(r->why, GL_E_INVALID,
                      "`%s%s` is not a time; write it like \"2026-11-15T10:55:49Z\"", r->where,
                      p->name);
    }
    *ret = t;
    return 0;
}

static int read_number(const struct message_reader *r, const struct part *p, gl_jnode n, void *ret)
{
    int64_t v;

    if (!gl_json_i64(r->j, n, &v)) {
        return wrong(r, p, n, "an integer of 64 bits");
    }
    if (p->kind != NUMBER && (v < 0 || (p->kind == COUNT && v > UINT32_MAX))) {
        return gl_why(r->why, GL_E_INVALID, "`%s%s` is out of range", r->where, p->name);
    }
    if (p->kind == COUNT) {
        *(uint32_t *)ret = (uint32_t)v;
    } else {
        *(int64_t *)ret = v;
    }
    return 0;
}

static int read_raw(const struct message_reader *r, const struct part *p, gl_jnode n, gl_str *ret)
{
    gl_str text = gl_json_raw(r->j, n);
    int max = p->kind == LIST ? GL_ARTIFACTS_BYTES_MAX : GL_HEADERS_BYTES_MAX;

    if (p->kind == OBJECT && !gl_json_is(n, GL_JSON_OBJECT)) {
        return wrong(r, p, n, "an object");
    }
    if (p->kind == LIST && !gl_json_is(n, GL_JSON_ARRAY)) {
        return wrong(r, p, n, "an array");
    }
    if (text.n > (size_t)max) {
        return too_long(r, p, text.n, max);
    }
    *ret = n->count > 0 || p->kind == ANY ? text : (gl_str){0};
    return 0;
}

static int read_part(const struct message_reader *r, const struct part *p, gl_jnode n,
                     struct gl_message *m)
{
    void *at = (char *)m + p->offset;

    if (n == NULL || n->type == GL_JSON_NULL) {
        return 0;
    }
    switch (p->kind) {
    case TEXT:
    case ENCODING:
        return read_text(r, p, n, at);
    case TIME:
        return read_time(r, p, n, at);
    case NUMBER:
    case COUNT:
    case SPAN:
        return read_number(r, p, n, at);
    case OBJECT:
    case LIST:
    case ANY:
        return read_raw(r, p, n, at);
    }
    GL_UNREACHABLE();
}

enum which { ENVELOPE, REST, ALL, EMITTED };

static int read_parts(const struct message_reader *r, gl_jnode object, enum which which,
                      struct gl_message *m)
{
    for (size_t i = 0; i < GL_COUNT(parts); i++) {
        const struct part *p = &parts[i];
        bool wanted = which == ALL || (which == EMITTED && p->is_emitted) ||
                      (which == ENVELOPE && p->is_envelope) || (which == REST && !p->is_envelope);
        int rc = wanted ? read_part(r, p, gl_json_get(r->j, object, p->name), m) : 0;

        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int read_whole(struct message_reader *r, gl_jnode root, struct gl_message *m)
{
    gl_jnode envelope = gl_json_get(r->j, root, "envelope");
    gl_jnode spec = gl_json_get(r->j, envelope, "spec_version");
    gl_jnode body = gl_json_get(r->j, root, "body");
    int rc;

    if (!gl_json_is(envelope, GL_JSON_OBJECT)) {
        return gl_why(r->why, GL_E_INVALID, "`envelope` is %s",
                      envelope != NULL ? "no object" : "missing");
    }
    if (spec != NULL && !gl_str_is(gl_json_str(r->j, spec, r->a), GL_MESSAGE_SPEC)) {
        return gl_why(r->why, GL_E_VERSION,
                      "`envelope.spec_version` is not \"" GL_MESSAGE_SPEC "\"");
    }
    r->where = "envelope.";
    rc = read_parts(r, envelope, ENVELOPE, m);
    r->where = "";
    rc = rc == 0 ? read_parts(r, root, REST, m) : rc;
    if (rc == 0 && body != NULL) {
        m->body = body->type == GL_JSON_NULL ? (gl_str){0} : gl_json_raw(r->j, body);
    }
    return rc;
}

static int check_depth(const struct gl_json *j, unsigned max, struct gl_why *why)
{
    return j->depth <= max ? 0
                           : gl_why(why, GL_E_LIMIT, "it has more than %d levels of nesting",
                                    GL_VALUE_DEPTH_MAX);
}

int gl_message_read(gl_str text, struct gl_arena *a, struct gl_message *ret,
                    struct gl_why *reterr_why)
{
    struct gl_message m;
    struct gl_json j;
    struct message_reader r = {.j = &j, .a = a, .why = reterr_why, .where = ""};
    int rc = gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, a, reterr_why);

    rc = rc == 0 ? check_depth(&j, GL_VALUE_DEPTH_MAX + 1, reterr_why) : rc;
    if (rc != 0) {
        return rc;
    }
    gl_message_defaults(&m);
    rc = read_whole(&r, gl_json_root(&j), &m);
    if (rc == 0) {
        *ret = m;
    }
    return rc;
}

/* Seeds. */

static bool is_part(gl_str name)
{
    for (size_t i = 0; i < GL_COUNT(parts); i++) {
        if (gl_str_is(name, parts[i].name)) {
            return true;
        }
    }
    return false;
}

static gl_str text_of(struct gl_buf *out, struct gl_arena *a)
{
    gl_str text = gl_str_dup(a, gl_buf_view(out));

    gl_buf_done(out);
    return text;
}

/* The members of an object by name. Many members get a map, because the sender may be hostile. */
struct names {
    const struct gl_json *j;
    gl_jnode object;
    struct gl_arena *a;
    struct gl_map map;
};

static void names_init(struct names *s, const struct gl_json *j, gl_jnode object,
                       struct gl_arena *a)
{
    *s = (struct names){.j = j, .object = object, .a = a};
    if (gl_json_is(object, GL_JSON_OBJECT) && object->count > FEW_MEMBERS) {
        for (gl_jnode k = gl_json_first(j, object); k != NULL; k = gl_json_after(j, object, k)) {
            gl_map_add(&s->map, gl_json_str(j, k, a), (void *)(uintptr_t)k);
        }
    }
}

static bool names_have(const struct names *s, gl_str name)
{
    if (gl_map_count(&s->map) > 0) {
        return gl_map_find(&s->map, name) != NULL;
    }
    for (gl_jnode k = gl_json_first(s->j, s->object);
         gl_json_is(s->object, GL_JSON_OBJECT) && k != NULL;
         k = gl_json_after(s->j, s->object, k)) {
        if (gl_str_eq(gl_json_str(s->j, k, s->a), name)) {
            return true;
        }
    }
    return false;
}

static void put_member(struct gl_jw *w, const struct gl_json *j, gl_jnode key, struct gl_arena *a)
{
    gl_jw_key_str(w, gl_json_str(j, key, a));
    gl_jw_raw(w, gl_json_raw(j, gl_json_value(key)));
}

static void put_members(struct gl_jw *w, const struct gl_json *j, gl_jnode object,
                        struct gl_arena *a)
{
    for (gl_jnode k = gl_json_first(j, object); k != NULL; k = gl_json_after(j, object, k)) {
        put_member(w, j, k, a);
    }
}

/* The body of a seed: its field `body` or `payload`; if that is an object or absent, together with
 * all fields that do not belong to the envelope. */
static gl_str seed_body(const struct message_reader *r, gl_jnode root)
{
    const struct gl_json *j = r->j;
    const char *name = gl_json_get(j, root, "body") != NULL ? "body" : "payload";
    gl_jnode body = gl_json_get(j, root, name);
    struct names names;
    struct gl_buf out = {0};
    struct gl_jw w;

    if (body != NULL && !gl_json_is(body, GL_JSON_OBJECT)) {
        return body->type == GL_JSON_NULL ? (gl_str){0} : gl_json_raw(j, body);
    }
    names_init(&names, j, body, r->a);
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    put_members(&w, j, body, r->a);
    for (gl_jnode k = gl_json_first(j, root); k != NULL; k = gl_json_after(j, root, k)) {
        gl_str key = gl_json_str(j, k, r->a);

        if (!is_part(key) && !gl_str_is(key, name) && !names_have(&names, key)) {
            put_member(&w, j, k, r->a);
        }
    }
    gl_jw_end(&w);
    gl_map_done(&names.map);
    return text_of(&out, r->a);
}

int gl_message_seed(gl_str value, struct gl_arena *a, struct gl_message *ret,
                    struct gl_why *reterr_why)
{
    struct gl_message m = *ret;
    struct gl_json *j = GL_NEW(a, struct gl_json);
    struct message_reader r = {.j = j, .a = a, .why = reterr_why, .where = ""};
    int rc = gl_json_parse(j, value, GL_RECORD_BYTES_MAX, a, reterr_why);

    rc = rc == 0 ? check_depth(j, GL_VALUE_DEPTH_MAX, reterr_why) : rc;
    if (rc != 0) {
        return rc;
    }
    if (!gl_json_is(gl_json_root(j), GL_JSON_OBJECT)) {
        bool is_null = gl_json_is(gl_json_root(j), GL_JSON_NULL);

        m.body = is_null ? (gl_str){0} : gl_json_raw(j, gl_json_root(j));
    } else if (gl_json_is(gl_json_get(j, gl_json_root(j), "envelope"), GL_JSON_OBJECT)) {
        rc = read_whole(&r, gl_json_root(j), &m);
    } else {
        rc = read_parts(&r, gl_json_root(j), ALL, &m);
        m.body = rc == 0 ? seed_body(&r, gl_json_root(j)) : m.body;
    }
    if (rc == 0) {
        *ret = m;
        ret->artifacts = gl_message_artifacts(a, m.artifacts, (gl_str){0}); /* it has none yet */
    }
    return rc;
}

/* Messages that agents send. */

/* Any letter of the name may be written as an escape. */
static bool may_name_body(gl_str artifacts)
{
    return artifacts.p != NULL && (memmem(artifacts.p, artifacts.n, "glia", 4) != NULL ||
                                   memchr(artifacts.p, '\\', artifacts.n) != NULL);
}

gl_str gl_message_artifacts(struct gl_arena *a, gl_str artifacts, gl_str body)
{
    struct gl_buf out = {0};
    struct gl_json j = {0};
    struct gl_jw w;
    bool has_any = body.n > 0;

    if (body.n == 0 && !may_name_body(artifacts)) {
        return artifacts;
    }
    gl_jw_init(&w, &out);
    gl_jw_array(&w);
    if (artifacts.n > 0 && gl_json_parse(&j, artifacts, GL_RECORD_BYTES_MAX, a, NULL) == 0) {
        gl_jnode list = gl_json_root(&j);

        for (gl_jnode n = gl_json_first(&j, list); n != NULL; n = gl_json_after(&j, list, n)) {
            gl_str name = gl_json_str(&j, gl_json_get(&j, n, "name"), a);

            if (!gl_str_is(name, GL_ARTIFACT_BODY)) {
                gl_jw_raw(&w, gl_json_raw(&j, n));
                has_any = true;
            }
        }
    }
    if (body.n > 0) {
        gl_jw_raw(&w, body);
    }
    gl_jw_end(&w);
    if (!has_any) {
        gl_buf_done(&out);
        return (gl_str){0};
    }
    return text_of(&out, a);
}

void gl_message_inherit(struct gl_message *m, const struct gl_message *incoming, struct gl_arena *a)
{
    m->job_id = incoming->job_id;
    m->correlation_id = incoming->correlation_id;
    m->causation_id = incoming->message_id;
    m->class_name = incoming->class_name;
    m->content_type = incoming->content_type;
    m->content_encoding = incoming->content_encoding;
    m->headers = incoming->headers;
    m->artifacts = gl_message_artifacts(a, incoming->artifacts, (gl_str){0});
    m->stream = incoming->stream;
}

static int emitted_body(const struct message_reader *r, gl_jnode n, struct gl_message *m)
{
    gl_jnode body = gl_json_get(r->j, n, "body"), encoded = gl_json_get(r->j, n, "body_base64");

    body = body != NULL ? body : gl_json_get(r->j, n, "payload");
    if (body != NULL) {
        m->body = body->type == GL_JSON_NULL ? (gl_str){0} : gl_json_raw(r->j, body);
        return 0;
    }
    if (encoded == NULL || encoded->type == GL_JSON_NULL) {
        m->body = GL_S("{}");
        return 0;
    }
    if (!gl_json_is(encoded, GL_JSON_STRING)) {
        return gl_why(r->why, GL_E_INVALID, "`body_base64` is %s, not text",
                      gl_json_type_name(encoded));
    }
    if (!gl_json_is(gl_json_get(r->j, n, "content_type"), GL_JSON_STRING)) {
        m->content_type = GL_S("application/octet-stream");
    }
    return gl_message_set_base64_body(gl_json_str(r->j, encoded, r->a), r->a, m, r->why);
}

/* A worker's headers are merged into those of the message it handled. */
static gl_str merged(gl_str under, gl_str over, struct gl_arena *a)
{
    struct gl_json u, o;
    struct names names;
    struct gl_buf out = {0};
    struct gl_jw w;

    if (under.n == 0 || over.n == 0 || gl_json_parse(&u, under, GL_RECORD_BYTES_MAX, a, NULL) ||
        gl_json_parse(&o, over, GL_RECORD_BYTES_MAX, a, NULL)) {
        return over.n > 0 ? over : under;
    }
    names_init(&names, &o, gl_json_root(&o), a);
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    for (gl_jnode k = gl_json_first(&u, gl_json_root(&u)); k != NULL;
         k = gl_json_after(&u, gl_json_root(&u), k)) {
        if (!names_have(&names, gl_json_str(&u, k, a))) {
            put_member(&w, &u, k, a);
        }
    }
    put_members(&w, &o, gl_json_root(&o), a);
    gl_jw_end(&w);
    gl_map_done(&names.map);
    return text_of(&out, a);
}

int gl_message_emitted(const struct gl_json *j, gl_jnode n, const struct gl_message *incoming,
                       struct gl_arena *a, struct gl_message *ret, struct gl_why *reterr_why)
{
    struct message_reader r = {.j = j, .a = a, .why = reterr_why, .where = ""};
    struct gl_message m;
    int rc;

    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return gl_why(reterr_why, GL_E_INVALID, "it is %s, not an object", gl_json_type_name(n));
    }
    gl_message_defaults(&m);
    if (incoming != NULL) {
        gl_message_inherit(&m, incoming, a);
    }
    m.headers = (gl_str){0};
    rc = read_parts(&r, n, EMITTED, &m);
    if (rc == 0 && m.type.n == 0) {
        rc = gl_why(reterr_why, GL_E_INVALID, "`type` is missing: every message needs one");
    }
    rc = rc == 0 ? emitted_body(&r, n, &m) : rc;
    if (rc != 0) {
        return rc;
    }
    m.priority = gl_message_clamp_priority(m.priority);
    m.headers = merged(incoming != NULL ? incoming->headers : (gl_str){0}, m.headers, a);
    m.artifacts = gl_message_artifacts(a, m.artifacts, (gl_str){0});
    *ret = m;
    return 0;
}
