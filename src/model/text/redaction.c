#include "model/text/redaction.h"

#include "base/check.h"
#include "base/limits.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_alnum(char c)
{
    char l = lower(c);

    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9');
}

static bool is_word(char c)
{
    return is_alnum(c) || c == '_' || c == '-' || c == '.';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static gl_str from(gl_str s, size_t at)
{
    return (gl_str){.p = s.p + at, .n = s.n - at};
}

/* ---- names ---- */

/* Letters and digits in lower case, everything else as '_'. */
static gl_str plain_name(gl_str name, char buf[static 128])
{
    size_t n = name.n < 128 ? name.n : 128;

    for (size_t i = 0; i < n; i++) { /* of a long name, only the end counts */
        char c = name.p[name.n - n + i];

        buf[i] = is_alnum(c) ? lower(c) : '_';
    }
    return (gl_str){.p = buf, .n = n};
}

static bool contains(gl_str s, const char *part)
{
    return s.n > 0 && memmem(s.p, s.n, part, strlen(part)) != NULL;
}

bool gl_redaction_is_secret_name(gl_str name)
{
    static const char *const parts[] = {
        "secret",      "password",    "passwd",     "passphrase",     "apikey",
        "api_key",     "accesskey",   "access_key", "privatekey",     "credential",
        "private_key", "signing_key", "cookie",     "encryption_key", "authorization"};
    static const char *const segments[] = {"token", "auth", "jwt", "bearer"};
    static const char *const ends[] = {"token", "_pwd", "_pass", "sessionid", "session_id"};
    char buf[128];
    gl_str s = plain_name(name, buf), rest = s;

    for (size_t i = 0; i < GL_COUNT(parts); i++) {
        if (contains(s, parts[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < GL_COUNT(ends); i++) {
        if (gl_str_ends(s, gl_str_of(ends[i]))) {
            return true;
        }
    }
    while (rest.n > 0) {
        gl_str segment = gl_str_cut(rest, '_', &rest);

        for (size_t i = 0; i < GL_COUNT(segments); i++) {
            if (gl_str_is(segment, segments[i])) {
                return true;
            }
        }
    }
    return false;
}

/* ---- values of variables ---- */

struct values {
    gl_str items[GL_REDACTION_SECRETS_MAX];
    size_t n;
};

/* Longest first: one may be part of another. */
static void add_value(struct values *v, gl_str value)
{
    size_t at = v->n;

    if (v->n == GL_REDACTION_SECRETS_MAX) {
        return;
    }
    while (at > 0 && v->items[at - 1].n < value.n) {
        v->items[at] = v->items[at - 1];
        at--;
    }
    v->items[at] = value;
    v->n++;
}

static gl_str replaced(gl_str text, gl_str what, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    const char *found;

    if (text.n == 0 || memmem(text.p, text.n, what.p, what.n) == NULL) {
        return text;
    }
    while (text.n > 0 && (found = memmem(text.p, text.n, what.p, what.n)) != NULL) {
        gl_buf_add(&out, text.p, (size_t)(found - text.p));
        gl_buf_c(&out, "***");
        text = from(text, (size_t)(found - text.p) + what.n);
    }
    gl_buf_str(&out, text);
    return gl_str_dup(a, gl_buf_view(&out));
}

static gl_str without_values(gl_str text, const gl_str *env, size_t env_n, struct gl_arena *a)
{
    struct values v = {.n = 0};

    for (size_t i = 0; i < env_n; i++) {
        gl_str value;
        gl_str name = gl_str_cut(env[i], '=', &value);

        if (value.n >= GL_SECRET_BYTES_MIN && gl_redaction_is_secret_name(name)) {
            add_value(&v, value);
        }
    }
    for (size_t i = 0; i < v.n; i++) {
        text = replaced(text, v.items[i], a);
    }
    return text;
}

/* ---- text that looks like a secret ---- */

struct secret_scan {
    gl_str text;
    size_t at;
    struct gl_buf out;
};

static gl_str ahead(const struct secret_scan *s)
{
    return from(s->text, s->at);
}

static void copy(struct secret_scan *s, size_t n)
{
    gl_buf_add(&s->out, s->text.p + s->at, n);
    s->at += n;
}

static void hide(struct secret_scan *s, size_t n)
{
    gl_buf_c(&s->out, "***");
    s->at += n;
}

static size_t word_at(gl_str s)
{
    size_t n = 0;

    while (n < s.n && is_word(s.p[n])) {
        n++;
    }
    return n;
}

/* Up to the end of a value without quotes. */
static size_t value_at(gl_str s)
{
    size_t n = 0;

    while (n < s.n && (unsigned char)s.p[n] > ' ' && strchr(",;&\"'<>)}]", s.p[n]) == NULL) {
        n++;
    }
    return n;
}

static size_t line_at(gl_str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != '\n' && s.p[n] != '\r' && s.p[n] != '"' && s.p[n] != '\'') {
        n++;
    }
    return n;
}

/* The inside of a quoted text, after its first quote; `is_escaped`: within a text that is
 * itself quoted, so that its last quote has a backslash before it. */
static size_t quoted_at(gl_str s, char quote, bool is_escaped)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != quote && !(is_escaped && s.p[n] == '\\')) {
        n += s.p[n] == '\\' && n + 1 < s.n ? 2 : 1;
    }
    return n;
}

static bool is_said(gl_str word, const char *what)
{
    size_t n = strlen(what);

    if (word.n != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (lower(word.p[i]) != what[i]) {
            return false;
        }
    }
    return true;
}

/* user:password@ after "://". */
static void scan_url(struct secret_scan *s)
{
    size_t n = 0, at = 0;
    gl_str rest;

    copy(s, 3);
    rest = ahead(s);
    while (n < rest.n && (unsigned char)rest.p[n] > ' ' && strchr("/?#\"'<>", rest.p[n]) == NULL) {
        n++;
        at = rest.p[n - 1] == '@' ? n - 1 : at;
    }
    if (at > 0) {
        hide(s, at);
    }
}

static bool scan_pem(struct secret_scan *s)
{
    static const char begin[] = "-----BEGIN ", end[] = "PRIVATE KEY-----";
    gl_str rest = ahead(s);
    const char *mark;

    if (!gl_str_starts(rest, gl_str_of(begin))) {
        return false;
    }
    mark = memmem(rest.p, rest.n < 64 ? rest.n : 64, end, sizeof(end) - 1);
    if (mark == NULL) {
        return false;
    }
    rest = from(rest, (size_t)(mark - rest.p) + sizeof(end) - 1);
    mark = memmem(rest.p, rest.n, end, sizeof(end) - 1);
    hide(s, mark == NULL ? ahead(s).n : (size_t)(mark - ahead(s).p) + sizeof(end) - 1);
    return true;
}

/* Three parts, of which the first is a JSON object in base64. */
static bool is_web_token(gl_str w)
{
    size_t dots = 0;

    for (size_t i = 0; i < w.n; i++) {
        dots += w.p[i] == '.';
    }
    return dots >= 2 && w.n >= 20 && gl_str_starts(w, GL_S("eyJ"));
}

static bool is_marked(gl_str w)
{
    static const char *const marks[] = {"ghp_",     "gho_",        "ghu_",   "ghs_",  "ghr_",
                                        "sk-",      "github_pat_", "glpat-", "xoxb-", "xoxp-",
                                        "xoxa-",    "xoxr-",       "AKIA",   "ASIA",  "AIza",
                                        "rk_live_", "sk_live_",    "npm_",   "hf_"};

    for (size_t i = 0; i < GL_COUNT(marks); i++) {
        if (w.n >= strlen(marks[i]) + 12 && gl_str_starts(w, gl_str_of(marks[i]))) {
            return true;
        }
    }
    return is_web_token(w);
}

/* "Bearer abc...": the scheme is kept. */
static bool scan_scheme(struct secret_scan *s, gl_str word)
{
    gl_str rest = from(ahead(s), word.n);
    size_t spaces = 0, n;

    if (!is_said(word, "bearer") && !is_said(word, "basic")) {
        return false;
    }
    while (spaces < rest.n && is_space(rest.p[spaces])) {
        spaces++;
    }
    n = value_at(from(rest, spaces));
    if (spaces == 0 || n < 8) { /* a word of a sentence */
        return false;
    }
    copy(s, word.n + spaces);
    hide(s, n);
    return true;
}

/* Hide what follows the name of a secret and a separator. */
static void scan_value(struct secret_scan *s, gl_str name)
{
    gl_str rest = ahead(s);
    char buf[128];
    gl_str plain = plain_name(name, buf);

    if (rest.n > 0 && (rest.p[0] == '"' || rest.p[0] == '\'')) {
        size_t n = quoted_at(from(rest, 1), rest.p[0], s->at > 0 && rest.p[-1] == '\\');

        copy(s, 1);
        hide(s, n);
    } else if (contains(plain, "cookie") || contains(plain, "authorization")) {
        hide(s, line_at(rest)); /* several words */
    } else if (value_at(rest) > 0) {
        hide(s, value_at(rest));
    }
}

/* `name=`, `"name": `, `--name `. False: no match; nothing was consumed. */
static bool scan_named(struct secret_scan *s, gl_str word)
{
    gl_str rest = from(ahead(s), word.n);
    size_t n = 0;
    bool is_flag = gl_str_starts(word, GL_S("--"));

    if (!gl_redaction_is_secret_name(word)) {
        return false;
    }
    if (n < rest.n && (rest.p[n] == '"' || rest.p[n] == '\'')) {
        n++;
    } else if (n + 1 < rest.n && rest.p[n] == '\\' && rest.p[n + 1] == '"') {
        n += 2; /* JSON inside of a JSON string */
    }
    while (n < rest.n && is_space(rest.p[n])) {
        n++;
    }
    if (n < rest.n && (rest.p[n] == '=' || rest.p[n] == ':')) {
        n++;
    } else if (!is_flag || n == 0) {
        return false;
    }
    while (n < rest.n && is_space(rest.p[n])) {
        n++;
    }
    if (n + 1 < rest.n && rest.p[n] == '\\' && rest.p[n + 1] == '"') {
        n++;
    }
    copy(s, word.n + n);
    scan_value(s, word);
    return true;
}

static void scan_word(struct secret_scan *s)
{
    gl_str word = {.p = ahead(s).p, .n = word_at(ahead(s))};

    if (is_marked(word)) {
        hide(s, word.n);
    } else if (!scan_scheme(s, word) && !scan_named(s, word)) {
        copy(s, word.n);
    }
}

gl_str gl_redaction_apply(gl_str text, const gl_str *env, size_t env_n, struct gl_arena *a)
{
    struct secret_scan s = {.text = without_values(text, env, env_n, a)};
    gl_str result;

    while (s.at < s.text.n) {
        if (gl_str_starts(ahead(&s), GL_S("://"))) {
            scan_url(&s);
        } else if (scan_pem(&s)) {
            continue;
        } else if (is_word(s.text.p[s.at])) {
            scan_word(&s);
        } else {
            copy(&s, 1);
        }
    }
    result = gl_str_dup(a, gl_buf_view(&s.out));
    gl_buf_done(&s.out);
    return result;
}
