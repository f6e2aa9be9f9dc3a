#include "model/flow/flow_read.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "model/flow/flow_check.h"

enum { CLIP_BYTES = 80 };

gl_str gl_flow_read_clip(gl_str s)
{
    if (s.n > CLIP_BYTES) {
        s.n = CLIP_BYTES;
        while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80) {
            s.n--;
        }
    }
    return s;
}

/* Errors. */

static gl_str path_text(struct gl_flow_reader *r, struct gl_flow_path at)
{
    struct gl_buf out = {0};
    gl_buf_str(&out, at.of);
    if (at.field) {
        gl_buf_fmt(&out, "%s%s", out.n ? "." : "", at.field);
    }
    if (at.key.n) {
        gl_buf_fmt(&out, "%s%.*s", out.n ? "." : "", GL_STR_ARG(gl_flow_read_clip(at.key)));
    }
    if (at.item) {
        gl_buf_fmt(&out, "[%u]", at.item - 1);
    }
    gl_str ret = gl_str_dup(r->a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

bool gl_flow_read_error_has_room(const struct gl_flow_reader *r)
{
    return r->errors->n < GL_COUNT(r->errors->items);
}

static struct gl_flow_error *add_error(struct gl_flow_reader *r, struct gl_flow_path at,
                                       enum gl_reason reason, const char *fmt, va_list args)
    __attribute__((format(printf, 4, 0)));

/* NULL: it will not be shown. */
static struct gl_flow_error *add_error(struct gl_flow_reader *r, struct gl_flow_path at,
                                       enum gl_reason reason, const char *fmt, va_list args)
{
    r->errors->total++;
    if (!gl_flow_read_error_has_room(r)) {
        return NULL;
    }
    char text[GL_WHY_BYTES];
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a sentence that is too long is truncated */
    struct gl_flow_error *e = &r->errors->items[r->errors->n++];
    *e = (struct gl_flow_error){
        .path = path_text(r, at), .reason = reason, .text = gl_str_dup(r->a, gl_str_of(text))};
    return e;
}

void gl_flow_read_error(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                        enum gl_reason reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct gl_flow_error *e = add_error(r, at, reason, fmt, args);
    va_end(args);
    if (e && n) {
        gl_json_place(r->j, n, &e->line, &e->column);
    }
}

/* The offset of `what` in `text`, from `from` on; text.n if absent. */
static size_t find_from(gl_str text, gl_str what, size_t from)
{
    if (from >= text.n || !text.p || !what.p) {
        return text.n;
    }
    const char *hit = memmem(text.p + from, text.n - from, what.p, what.n);
    return hit ? (size_t)(hit - text.p) : text.n;
}

/* The place in the source of the byte at `offset` in this text. Text that folding, escapes or an
 * alias have changed is not found; the result is then the place of the value. */
static size_t place_of(const struct gl_flow_reader *r, gl_jnode n, gl_str text, size_t offset)
{
    gl_str what = {text.p + offset, text.n - offset};
    gl_str source = r->j->source;
    size_t end = source.n, before = 0;
    bool has_next = (size_t)(n - r->j->nodes) + 1 < r->j->nodes_n;
    if (has_next && n[1].at > n->at) {
        end = n[1].at;
    }
    what.n = what.n < CLIP_BYTES ? what.n : CLIP_BYTES;
    what = gl_str_cut(what, '\n', &(gl_str){0});
    if (n->at >= end || text.n == 0) {
        return n->at;
    }
    if (offset == text.n) { /* after its end */
        size_t begin = place_of(r, n, text, 0);
        return gl_str_starts((gl_str){source.p + begin, end - begin}, text) ? begin + text.n
                                                                            : n->at;
    }
    for (size_t i = 0; (i = find_from(text, what, i)) < offset; i++) {
        before++;
    }
    gl_str part = {source.p + n->at, end - n->at};
    size_t found = find_from(part, what, 0);
    while (before-- && found < part.n) {
        found = find_from(part, what, found + 1);
    }
    return found < part.n ? n->at + found : n->at;
}

void gl_flow_read_error_in(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                           gl_str text, size_t offset, enum gl_reason reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct gl_flow_error *e = add_error(r, at, reason, fmt, args);
    va_end(args);
    if (e) {
        gl_json_place_in(r->j->source, place_of(r, n, text, offset), &e->line, &e->column);
    }
}

const char *gl_flow_read_suggestion(struct gl_flow_reader *r, const struct gl_suggest *near)
{
    return near->best.n ? gl_str_fmt(r->a, "; did you mean `%.*s`?", GL_STR_ARG(near->best)).p : "";
}

/* Field names of other tools. */
static const struct {
    const char *theirs, *ours;
} foreign_names[] = {
    {"depends_on", "needs"},
    {"dependsOn", "needs"},
    {"depends", "needs"},
    {"after", "needs"},
    {"requires", "needs"},
    {"environment", "env"},
    {"command", "run"},
    {"cmd", "sh"},
    {"shell", "sh"},
    {"args", "run"},
    {"bash", "sh"},
    {"retries", "retry"},
    {"attempts", "retry"},
    {"working_dir", "cwd"},
    {"workdir", "cwd"},
    {"rule", "trigger_rule"},
    {"jobs", "steps"},
    {"tasks", "steps"},
    {"stages", "steps"},
    {"queue", "pool"},
    {"deadline", "timeout"},
    {"working_directory", "cwd"},
    {"trigger", "trigger_rule"},
    {"if", "when"},
    {"condition", "when"},
    {"for_each", "foreach"},
    {"loop", "foreach"},
    {"with_items", "foreach"},
    {"matrix", "foreach"},
    {"parameters", "inputs"},
    {"params", "inputs"},
    {"wait", "sleep"},
    {"delay", "sleep"},
    {"max_attempts", "attempts"},
    {"prompt", "message"},
    {"text", "message"},
    {"options", "decisions"},
    {"choices", "decisions"},
    {"description", "doc"},
    {"limit", "max"},
};

bool gl_flow_read_is_field(const char *of, gl_str name)
{
    for (size_t i = 0; i < gl_flow_fields_n; i++) {
        if (strcmp(gl_flow_fields[i].of, of) == 0 && gl_str_is(name, gl_flow_fields[i].name)) {
            return true;
        }
    }
    return false;
}

void gl_flow_read_unknown(struct gl_flow_reader *r, gl_jnode key, const char *of,
                          struct gl_flow_path at)
{
    gl_str name = gl_json_str(r->j, key, r->a);
    struct gl_suggest near;
    gl_suggest_init(&near, name);
    for (size_t i = 0; i < gl_flow_fields_n; i++) {
        if (strcmp(gl_flow_fields[i].of, of) == 0) {
            gl_suggest_offer(&near, gl_str_of(gl_flow_fields[i].name));
        }
    }
    for (size_t i = 0; !near.best.n && i < GL_COUNT(foreign_names); i++) {
        gl_str ours = gl_str_of(foreign_names[i].ours), theirs = gl_str_of(foreign_names[i].theirs);
        if (gl_suggest_distance(name, theirs, theirs.n > 4) <= (theirs.n > 4) &&
            gl_flow_read_is_field(of, ours)) {
            near.best = ours;
        }
    }
    at.key = name;
    static const char *const nouns[] = {"flow", "step", "input", "secret", NULL};
    const char *fmt = gl_schema_word(nouns, gl_str_of(of)) < 0 ? "in `%s`"
                      : of[0] == 'i'                           ? "in an %s"
                                                               : "in a %s";
    char where[40];
    (void)snprintf(where, sizeof(where), fmt, of);
    gl_flow_read_error(r, key, at, GL_REASON_UNKNOWN_FIELD, "there is no field `%.*s` %s%s",
                       GL_STR_ARG(gl_flow_read_clip(name)), where,
                       gl_flow_read_suggestion(r, &near));
}

/* Values. */

/* YAML reads 007 as 7 and 0x10 as 16. Where text is expected, that would be a silent change. */
static bool is_rewritten_number(const struct gl_flow_reader *r, gl_jnode n)
{
    gl_str raw = gl_json_raw(r->j, n), source = r->j->source;
    if (n->at >= source.n || !strchr("+-.0123456789", source.p[n->at]) || !source.p[n->at]) {
        return false; /* after an alias or a tag */
    }
    return !gl_str_starts((gl_str){source.p + n->at, source.n - n->at}, raw);
}

bool gl_flow_read_scalar(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_str *ret)
{
    if (gl_json_is(n, GL_JSON_STRING)) {
        *ret = gl_json_str(r->j, n, r->a);
    } else if (gl_json_is(n, GL_JSON_ARRAY) || gl_json_is(n, GL_JSON_OBJECT)) {
        gl_flow_read_error(r, n, at, GL_REASON_WRONG_TYPE, "expected text, not %s",
                           gl_json_type_name(n));
        return false;
    } else if (gl_json_is(n, GL_JSON_NULL)) {
        *ret = (gl_str){0};
    } else if (gl_json_is(n, GL_JSON_NUMBER) && is_rewritten_number(r, n)) {
        gl_str raw = gl_flow_read_clip(gl_json_raw(r->j, n));
        gl_flow_read_error(r, n, at, GL_REASON_NUMBER_AS_TEXT,
                           "YAML reads this as the number %.*s; put it in quotes if it is text",
                           GL_STR_ARG(raw));
        return false;
    } else {
        *ret = gl_json_raw(r->j, n);
    }
    if (!gl_flow_check_is_text(*ret)) {
        gl_flow_read_error(r, n, at, GL_REASON_NUL_BYTE,
                           "a NUL byte cannot be passed to a program");
        return false;
    }
    return true;
}

bool gl_flow_read_text(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_str *ret)
{
    gl_str text;
    if (!gl_json_is(n, GL_JSON_STRING)) {
        gl_flow_read_error(r, n, at, GL_REASON_WRONG_TYPE, "expected text, not %s",
                           gl_json_type_name(n));
        return false;
    }
    if (!gl_flow_read_scalar(r, n, at, &text)) {
        return false;
    }
    if (gl_str_trim(text).n == 0) {
        gl_flow_read_error(r, n, at, GL_REASON_EMPTY_TEXT, "the text is empty");
        return false;
    }
    *ret = text;
    return true;
}

bool gl_flow_read_int(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, int64_t lo,
                      int64_t hi, int64_t *ret)
{
    int64_t v;
    if (!gl_json_i64(r->j, n, &v) || v < lo || v > hi) {
        gl_flow_read_error(r, n, at, GL_REASON_OUT_OF_RANGE,
                           "expected a whole number from %lld to %lld%s%s", (long long)lo,
                           (long long)hi, gl_json_is(n, GL_JSON_NUMBER) ? "" : ", not ",
                           gl_json_is(n, GL_JSON_NUMBER) ? "" : gl_json_type_name(n));
        return false;
    }
    *ret = v;
    return true;
}

bool gl_flow_read_span(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_ms lo,
                       gl_ms *ret)
{
    gl_ms v = -1;
    gl_str text = gl_json_is(n, GL_JSON_NUMBER) ? gl_json_raw(r->j, n) : gl_json_str(r->j, n, r->a);
    if (!gl_times_parse_span(text, &v)) {
        gl_flow_read_error(
            r, n, at, GL_REASON_NOT_A_DURATION,
            "expected a duration like 90s, 5m, 1.5h or 2m30s (a number means seconds), at most "
            "ten years");
        return false;
    }
    if (v < lo) {
        gl_flow_read_error(r, n, at, GL_REASON_TOO_SHORT, "the shortest duration here is %lldms",
                           (long long)lo);
        return false;
    }
    *ret = v;
    return true;
}

bool gl_flow_read_bool(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, bool *ret)
{
    if (!gl_json_bool(n, ret)) {
        gl_flow_read_error(r, n, at, GL_REASON_WRONG_TYPE, "expected true or false, not %s",
                           gl_json_is(n, GL_JSON_STRING) ? "text" : gl_json_type_name(n));
        return false;
    }
    return true;
}

bool gl_flow_read_word(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                       const char *const *words, const char *const *aliases, uint8_t *ret)
{
    gl_str word = gl_json_str(r->j, n, r->a);
    struct gl_suggest near;
    gl_suggest_init(&near, word);
    struct gl_buf list = {0};
    bool found = false;
    for (uint8_t i = 0; words[i] && !found; i++) {
        found =
            gl_json_is(n, GL_JSON_STRING) &&
            (gl_str_is(word, words[i]) || (aliases && aliases[i] && gl_str_is(word, aliases[i])));
        *ret = found ? i : *ret;
        gl_suggest_offer(&near, gl_str_of(words[i]));
        gl_buf_fmt(&list, "%s%s", i ? ", " : "", words[i]);
    }
    if (!found) {
        gl_flow_read_error(r, n, at, GL_REASON_UNKNOWN_WORD, "expected one of %.*s%s",
                           GL_STR_ARG(gl_buf_view(&list)), gl_flow_read_suggestion(r, &near));
    }
    gl_buf_done(&list);
    return found;
}

bool gl_flow_read_percent(struct gl_flow_reader *r, gl_jnode n, uint32_t *ret)
{
    gl_str rest, whole = gl_str_cut(gl_json_raw(r->j, n), '.', &rest);
    uint64_t v = 0, cents = 0;
    if (!gl_json_is(n, GL_JSON_NUMBER) || !gl_str_u64(whole, &v) || v > 100 || rest.n > 2 ||
        (rest.n && !gl_str_u64(rest, &cents))) {
        return false;
    }
    *ret = (uint32_t)(v * 100 + (rest.n == 1 ? cents * 10 : cents));
    return true;
}

const struct gl_flow_file *gl_flow_read_file(struct gl_flow_reader *r, gl_jnode n,
                                             struct gl_flow_path at, gl_str path, gl_str text)
{
    struct gl_map *known = path.n ? &r->paths : &r->texts;
    gl_str key = path.n ? path : text;
    struct gl_flow_file *file = gl_map_find(known, key);
    if (file) {
        return file;
    }
    if (!r->loader) {
        gl_flow_read_error(r, n, at, GL_REASON_NO_FILES,
                           "files cannot be read here; use `sh` or `run`");
        return NULL;
    }
    if (gl_map_count(&r->paths) + gl_map_count(&r->texts) >= GL_FILES_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_TOO_MANY,
                           "a flow can have at most %d different files", GL_FILES_MAX);
        return NULL;
    }
    char hex[65] = {0};
    bool executable = false;
    struct gl_why why = {0};
    if (r->loader->load(r->loader, path, text, hex, &executable, &why)) {
        gl_flow_read_error(r, n, at, why.reason, "%s", why.text);
        return NULL;
    }
    file = GL_NEW(r->a, struct gl_flow_file);
    file->blob = gl_str_dup(r->a, gl_str_of(hex));
    file->executable = executable;
    gl_map_add(known, key, file);
    return file;
}
