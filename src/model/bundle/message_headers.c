/* message_headers.c - the headers mn.workflow.*, in which the ledger labels a message. */
#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/message.h"

#define PREFIX "mn.workflow."

enum kind { TEXT, TIME, SECONDS, MILLISECONDS, ATTEMPT, REVISION };

static const struct field {
    const char *name;
    enum kind kind;
    size_t offset;
} fields[] = {
#define F(name, kind, member)                                         \
    {                                                                 \
        PREFIX name, kind, offsetof(struct gl_message_ledger, member) \
    }
    F("run_id", TEXT, run_id),
    F("step_id", TEXT, step_id),
    F("graph_revision", REVISION, graph_revision),
    F("template_id", TEXT, template_id),
    F("region_id", TEXT, region_id),
    F("attempt_id", TEXT, attempt_id),
    F("attempt", ATTEMPT, attempt),
    F("deadline_at", TIME, deadline_at),
    F("heartbeat_deadline_at", TIME, heartbeat_deadline_at),
    F("idempotency_key", TEXT, idempotency_key),
    F("timeout_seconds", SECONDS, timeout_ms),
    F("heartbeat_timeout_ms", MILLISECONDS, heartbeat_timeout_ms),
    F("source_step_id", TEXT, source_step_id),
#undef F
};

static void put_seconds(struct gl_jw *w, gl_ms ms)
{
    struct gl_buf text = {0};

    gl_buf_i64(&text, ms / 1000);
    if (ms % 1000 != 0) {
        gl_buf_fmt(&text, ".%03d", (int)(ms % 1000));
    }
    gl_jw_raw(w, gl_buf_view(&text));
    gl_buf_done(&text);
}

static void put_field(struct gl_jw *w, const struct field *f, const struct gl_message_ledger *l)
{
    const void *at = (const char *)l + f->offset;
    char text[GL_TIMES_BYTES];

    if (f->kind == TEXT && ((const gl_str *)at)->n > 0) {
        gl_jw_key(w, f->name);
        gl_jw_str(w, *(const gl_str *)at);
    } else if (f->kind == REVISION && l->has_revision) {
        gl_jw_key(w, f->name);
        gl_jw_u64(w, l->graph_revision);
    } else if (f->kind == ATTEMPT && l->attempt > 0) {
        gl_jw_key(w, f->name);
        gl_jw_u64(w, l->attempt);
    } else if (f->kind == TIME && *(const gl_ms *)at > 0) {
        gl_jw_key(w, f->name);
        gl_jw_str(w, gl_times_format(*(const gl_ms *)at, text));
    } else if (f->kind == SECONDS && *(const gl_ms *)at > 0) {
        gl_jw_key(w, f->name);
        put_seconds(w, *(const gl_ms *)at);
    } else if (f->kind == MILLISECONDS && *(const gl_ms *)at > 0) {
        gl_jw_key(w, f->name);
        gl_jw_i64(w, *(const gl_ms *)at);
    }
}

/* Whether it may contain one of our headers; an escape may hide it. */
static bool may_have_ours(gl_str headers)
{
    return headers.p != NULL && (memmem(headers.p, headers.n, PREFIX, sizeof PREFIX - 1) != NULL ||
                                 memchr(headers.p, '\\', headers.n) != NULL);
}

static void put_others(struct gl_jw *w, gl_str headers, struct gl_arena *a)
{
    struct gl_json j;

    if (headers.n == 0 || gl_json_parse(&j, headers, GL_RECORD_BYTES_MAX, a, NULL) != 0 ||
        !gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        return;
    }
    for (gl_jnode k = gl_json_first(&j, gl_json_root(&j)); k != NULL;
         k = gl_json_after(&j, gl_json_root(&j), k)) {
        gl_str key = gl_json_str(&j, k, a);

        if (!gl_str_starts(key, GL_S(PREFIX))) {
            gl_jw_key_str(w, key);
            gl_jw_raw(w, gl_json_raw(&j, gl_json_value(k)));
        }
    }
}

gl_str gl_message_headers(struct gl_arena *a, gl_str headers, const struct gl_message_ledger *l)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str text;

    if (l == NULL && !may_have_ours(headers)) {
        return headers;
    }
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    put_others(&w, headers, a);
    for (size_t i = 0; l != NULL && i < GL_COUNT(fields); i++) {
        put_field(&w, &fields[i], l);
    }
    gl_jw_end(&w);
    text = out.n > 2 ? gl_str_dup(a, gl_buf_view(&out)) : (gl_str){0};
    gl_buf_done(&out);
    return text;
}

/* "1.5" seconds, truncated to milliseconds. */
static bool seconds_of(gl_str text, gl_ms *ret)
{
    static const int64_t most = INT64_MAX / 1000 - 1;
    gl_str rest, whole = gl_str_cut(text, '.', &rest);
    uint64_t n, part = 0;

    if (!gl_str_u64(whole, &n) || n > (uint64_t)most) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        part =
            part * 10 +
            (i < rest.n && rest.p[i] >= '0' && rest.p[i] <= '9' ? (uint64_t)(rest.p[i] - '0') : 0);
    }
    *ret = (gl_ms)(n * 1000 + part);
    return true;
}

/* Headers come from outside: values of the wrong type are ignored. */
static void take_field(const struct gl_json *j, gl_jnode n, const struct field *f,
                       struct gl_arena *a, struct gl_message_ledger *l)
{
    void *at = (char *)l + f->offset;
    uint64_t v;
    gl_ms t;

    if (f->kind == TEXT) {
        *(gl_str *)at = gl_json_str(j, n, a);
    } else if (f->kind == REVISION && gl_json_u64(j, n, &v)) {
        l->has_revision = true;
        l->graph_revision = v;
    } else if (f->kind == ATTEMPT && gl_json_u64(j, n, &v) && v <= UINT32_MAX) {
        l->attempt = (uint32_t)v;
    } else if (f->kind == TIME && gl_times_parse(gl_json_str(j, n, a), &t)) {
        *(gl_ms *)at = t;
    } else if (f->kind == SECONDS && gl_json_is(n, GL_JSON_NUMBER) &&
               seconds_of(gl_json_raw(j, n), &t)) {
        *(gl_ms *)at = t;
    } else if (f->kind == MILLISECONDS && gl_json_u64(j, n, &v) && v <= INT64_MAX) {
        *(gl_ms *)at = (gl_ms)v;
    }
}

void gl_message_ledger_of(gl_str headers, struct gl_arena *a, struct gl_message_ledger *ret)
{
    struct gl_json j;

    *ret = (struct gl_message_ledger){0};
    if (!may_have_ours(headers) || gl_json_parse(&j, headers, GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        return;
    }
    for (size_t i = 0; i < GL_COUNT(fields); i++) {
        take_field(&j, gl_json_get(&j, gl_json_root(&j), fields[i].name), &fields[i], a, ret);
    }
}
