#include "model/bundle/error_envelope.h"

#include "base/check.h"

static const struct {
    const char *code, *category;
    bool is_retryable;
    const char *remedy;
} failures[] = {
#define X(name, code, category, retryable, remedy) {code, category, retryable, remedy},
    GL_FAILURES(X)
#undef X
};

/* ---- excerpts of a text ---- */

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* The first line that is not blank, with runs of white space as single spaces. */
static gl_str first_line(gl_str text, struct gl_arena *a)
{
    gl_str line = {0};
    char *out;
    size_t n = 0;

    while (line.n == 0 && text.n > 0) {
        line = gl_str_trim(gl_str_cut(text, '\n', &text));
    }
    out = gl_arena_alloc(a, line.n + 1);
    for (size_t i = 0; i < line.n; i++) {
        bool is_space = line.p[i] == ' ' || is_control(line.p[i]);

        if (!is_space) {
            out[n++] = line.p[i];
        } else if (n > 0 && out[n - 1] != ' ') {
            out[n++] = ' ';
        }
    }
    return gl_str_trim((gl_str){.p = out, .n = n});
}

/* The length of the first character; 1 for an invalid byte, which is shown as one character. */
static size_t char_bytes(gl_str s)
{
    size_t n = gl_str_utf8_at(s);

    return n > 0 ? n : 1;
}

/* At most `max` characters; if there are more, the last of them is an ellipsis. */
static gl_str cut_chars(gl_str s, size_t max, struct gl_arena *a)
{
    size_t chars = 0, at = 0, shorter = 0;

    while (at < s.n && chars < max) {
        shorter = at;
        at += char_bytes((gl_str){.p = s.p + at, .n = s.n - at});
        chars++;
    }
    return at >= s.n ? s : gl_str_fmt(a, "%.*s\u2026", (int)shorter, s.p);
}

/* At most `max` bytes, an ellipsis included. */
static gl_str cut_bytes(gl_str s, size_t max, struct gl_arena *a)
{
    static const size_t mark = sizeof("\u2026") - 1;
    size_t at = 0;

    if (s.n <= max) {
        return s;
    }
    for (size_t next = 0; next <= max - mark;) {
        at = next;
        next += char_bytes((gl_str){.p = s.p + next, .n = s.n - next});
    }
    return gl_str_fmt(a, "%.*s\u2026", (int)at, s.p);
}

/* Text for JSON, without NUL bytes, which would end a format string. */
static gl_str without_nul(gl_str s, struct gl_arena *a)
{
    char *out;

    if (s.n == 0 || memchr(s.p, '\0', s.n) == NULL) {
        return s;
    }
    out = gl_arena_copy(a, s.p, s.n);
    for (size_t i = 0; i < s.n; i++) {
        out[i] = out[i] == '\0' ? ' ' : out[i];
    }
    return (gl_str){.p = out, .n = s.n};
}

/* ---- the document ---- */

static void put(struct gl_jw *w, const char *key, gl_str value)
{
    gl_jw_key(w, key);
    if (value.n > 0) {
        gl_jw_str(w, value);
    } else {
        gl_jw_null(w);
    }
}

static void put_number(struct gl_jw *w, const char *key, uint32_t value)
{
    gl_jw_key(w, key);
    if (value > 0) {
        gl_jw_u64(w, value);
    } else {
        gl_jw_null(w);
    }
}

static void write_details(const struct gl_error_envelope *e, gl_str message, struct gl_arena *a,
                          struct gl_jw *w)
{
    gl_jw_key(w, "details");
    gl_jw_object(w);
    put(w, "message", cut_bytes(message, GL_ERROR_ENVELOPE_MESSAGE_BYTES, a));
    gl_jw_key(w, "category");
    gl_jw_c(w, e->is_transient ? "transient" : failures[e->failure].category);
    gl_jw_key(w, "retryable");
    gl_jw_bool(w, e->is_transient || failures[e->failure].is_retryable);
    put(w, "step_id", cut_bytes(e->step_id, GL_ERROR_ENVELOPE_NAME_BYTES, a));
    put(w, "agent_id", cut_bytes(e->agent_id, GL_ERROR_ENVELOPE_NAME_BYTES, a));
    put_number(w, "attempt", e->attempt);
    put_number(w, "max_attempts", e->max_attempts);
    gl_jw_end(w);
}

void gl_error_envelope_write(const struct gl_error_envelope *e, struct gl_arena *scratch,
                             struct gl_jw *w)
{
    gl_str message, desc, remedy = e->remediation;
    char when[GL_TIMES_BYTES];

    GL_ASSERT((size_t)e->failure < GL_COUNT(failures));
    message = gl_redaction_apply(without_nul(gl_str_trim(e->message), scratch), e->env, e->env_n,
                                 scratch);
    desc = first_line(message, scratch);
    if (desc.n == 0) {
        desc = gl_str_of(failures[e->failure].code);
    }
    if (remedy.n == 0) {
        remedy = gl_str_of(failures[e->failure].remedy);
    }
    gl_jw_object(w);
    gl_jw_key(w, "schema_version");
    gl_jw_c(w, "mn.error.v1");
    gl_jw_key(w, "code");
    gl_jw_c(w, failures[e->failure].code);
    put(w, "desc", cut_chars(desc, GL_ERROR_ENVELOPE_DESC_CHARS, scratch));
    write_details(e, message, scratch, w);
    gl_jw_key(w, "severity");
    gl_jw_c(w, e->is_handled ? "warning" : "error");
    gl_jw_key(w, "occurred_at");
    gl_jw_str(w, gl_times_format(e->occurred_at, when));
    put(w, "event_id", cut_bytes(e->event_id, GL_ERROR_ENVELOPE_NAME_BYTES, scratch));
    put(w, "remediation", cut_bytes(remedy, GL_ERROR_ENVELOPE_MESSAGE_BYTES, scratch));
    gl_jw_key(w, "links");
    gl_jw_array(w);
    gl_jw_end(w);
    gl_jw_end(w);
}

gl_str gl_error_envelope_text(const struct gl_error_envelope *e, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_error_envelope_write(e, a, &w);
    return gl_str_dup(a, gl_buf_view(&out));
}
