#include "model/bundle/manifest_read.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

enum { SUGGESTED_MAX = 20000 }; /* names compared for one suggestion */

/* The path of a value. */

static bool holds(gl_jnode n, const struct gl_json *j, uint32_t at)
{
    return at >= (uint32_t)(n - j->nodes) && at < n->next;
}

/* One step down towards node number `at`; adds the step to the path. */
static gl_jnode descend(const struct gl_json *j, gl_jnode from, uint32_t at, struct gl_arena *a,
                        struct gl_buf *out)
{
    uint32_t i = 0;

    for (gl_jnode e = gl_json_first(j, from); e; e = gl_json_after(j, from, e), i++) {
        bool is_member = from->type == GL_JSON_OBJECT;
        gl_jnode value = is_member ? gl_json_value(e) : e;

        if (!holds(value, j, at) && (uint32_t)(e - j->nodes) != at) {
            continue;
        }
        if (is_member) {
            gl_str key = gl_flow_read_clip(gl_json_str(j, e, a));

            gl_buf_fmt(out, "%s%.*s", out->n > 0 ? "." : "", GL_STR_ARG(key));
        } else {
            gl_buf_fmt(out, "[%u]", i);
        }
        return (uint32_t)(e - j->nodes) == at ? NULL : value;
    }
    return NULL;
}

gl_str gl_manifest_path(struct gl_manifest *m, gl_jnode n)
{
    const struct gl_json *j = m->r.j;
    uint32_t at = (uint32_t)(n - j->nodes);
    struct gl_buf out = {0};
    gl_jnode from = m->root;
    gl_str ret;

    while (from != NULL && from != n) {
        from = descend(j, from, at, m->r.a, &out);
    }
    ret = gl_str_dup(m->r.a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

static void add_mistyped(struct gl_manifest *m, gl_jnode n, const char *key, char *text)
{
    gl_str there = gl_flow_read_clip(gl_manifest_lint_typo_of(m, n, key));
    size_t at = strlen(text);

    if (there.n > 0) { /* truncated if it does not fit */
        (void)snprintf(text + at, GL_WHY_BYTES - at, "; `%.*s` is not read: did you mean `%.*s`?",
                       GL_STR_ARG(there), (int)strcspn(key, "."), key);
    }
}

void gl_manifest_error(struct gl_manifest *m, gl_jnode n, const char *key, enum gl_reason reason,
                       const char *fmt, ...)
{
    char text[GL_WHY_BYTES];
    struct gl_flow_path at = {.field = key};
    gl_jnode field = key != NULL ? gl_json_get(m->r.j, n, key) : NULL;
    va_list args;

    if (!gl_flow_read_error_has_room(&m->r)) {
        m->r.errors->total++;
        return;
    }
    if (field != NULL) { /* it exists: point at it */
        n = field;
        at.field = NULL;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a sentence that is too long is truncated */
    va_end(args);
    if (field == NULL && key != NULL) {
        add_mistyped(m, n, key, text);
    }
    at.of = gl_manifest_path(m, n);
    gl_flow_read_error(&m->r, m->is_rewritten ? NULL : n, at, reason, "%s", text);
}

enum { NOTES_MAX = 32 };

bool gl_manifest_note_has_room(const struct gl_manifest *m)
{
    return m->notes.n / sizeof(gl_str) < NOTES_MAX;
}

void gl_manifest_note(struct gl_manifest *m, const char *fmt, ...)
{
    char text[GL_WHY_BYTES];
    size_t n = m->notes.n / sizeof(gl_str);
    gl_str note;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (gl_manifest_note_has_room(m)) {
        note = gl_str_dup(m->r.a, gl_str_of(n + 1 < NOTES_MAX ? text : "and more of this kind"));
        gl_buf_add(&m->notes, &note, sizeof(note));
    }
}

const char *gl_manifest_suggestion(struct gl_manifest *m, const struct gl_map *known, gl_str word)
{
    struct gl_suggest near;

    if (!gl_flow_read_error_has_room(&m->r)) {
        return "";
    }
    gl_suggest_init(&near, word);
    for (size_t i = 0; i < known->entries_n && i < SUGGESTED_MAX; i++) {
        if (known->entries[i].value != NULL) {
            gl_suggest_offer(&near, known->entries[i].key);
        }
    }
    return gl_flow_read_suggestion(&m->r, &near);
}

void gl_manifest_unknown(struct gl_manifest *m, gl_jnode n, enum gl_reason reason, const char *what,
                         const struct gl_map *known, gl_str word)
{
    gl_manifest_error(m, n, NULL, reason, "there is no %s `%.*s`%s", what,
                      GL_STR_ARG(gl_flow_read_clip(word)), gl_manifest_suggestion(m, known, word));
}

bool gl_manifest_check_step_id(struct gl_manifest *m, gl_jnode n, gl_str id)
{
    if (id.n == 0 || id.p[0] == '@' || !gl_str_is_step_id(id)) {
        gl_manifest_error(
            m, n, "id", GL_REASON_NAME_INVALID,
            "an id has 1 to 128 ASCII letters, digits, _ . : and -, and begins with a "
            "letter, a digit or _");
        return false;
    }
    return true;
}

bool gl_manifest_expect(struct gl_manifest *m, gl_jnode n, enum gl_json_type type, const char *what)
{
    bool ret = gl_json_is(n, type);

    if (!ret) {
        gl_manifest_error(m, n, NULL, GL_REASON_WRONG_TYPE, "expected %s, not %s", what,
                          gl_json_type_name(n));
    }
    return ret;
}

/* Values. */

gl_jnode gl_manifest_get(struct gl_manifest *m, gl_jnode obj, const char *key)
{
    gl_jnode n = gl_json_get(m->r.j, obj, key);

    return gl_json_is(n, GL_JSON_NULL) ? NULL : n;
}

gl_jnode gl_manifest_either(struct gl_manifest *m, gl_jnode obj, const char *key, const char * or)
{
    gl_jnode n = gl_manifest_get(m, obj, key);

    return n != NULL ? n : gl_manifest_get(m, obj, or);
}

bool gl_manifest_is_set(gl_jnode n)
{
    if (n == NULL) {
        return false;
    }
    switch ((enum gl_json_type)n->type) {
    case GL_JSON_NULL:
    case GL_JSON_FALSE:
        return false;
    case GL_JSON_STRING:
        return n->end - n->start > 2;
    case GL_JSON_ARRAY:
    case GL_JSON_OBJECT:
        return n->count > 0;
    case GL_JSON_TRUE:
    case GL_JSON_NUMBER:
        break;
    }
    return true;
}

static void wrong_type(struct gl_manifest *m, gl_jnode n, const char *what)
{
    gl_manifest_error(m, n, NULL, GL_REASON_WRONG_TYPE, "expected %s, not %s", what,
                      gl_json_is(n, GL_JSON_STRING) ? "text" : gl_json_type_name(n));
}

bool gl_manifest_text(struct gl_manifest *m, gl_jnode obj, const char *key, gl_str *ret)
{
    gl_jnode n = gl_manifest_get(m, obj, key);
    gl_str text;

    if (n == NULL) {
        return false;
    }
    if (!gl_json_is(n, GL_JSON_STRING)) {
        wrong_type(m, n, "text");
        return false;
    }
    text = gl_json_str(m->r.j, n, m->r.a);
    if (gl_str_trim(text).n == 0) {
        gl_manifest_error(m, n, NULL, GL_REASON_EMPTY_TEXT, "the text is empty");
        return false;
    }
    *ret = text;
    return true;
}

bool gl_manifest_int(struct gl_manifest *m, gl_jnode obj, const char *key, int64_t lo, int64_t hi,
                     int64_t *ret)
{
    gl_jnode n = gl_manifest_get(m, obj, key);
    int64_t v;

    if (n == NULL) {
        return false;
    }
    if (!gl_json_i64(m->r.j, n, &v) || v < lo || v > hi) {
        bool is_number = gl_json_is(n, GL_JSON_NUMBER);

        gl_manifest_error(m, n, NULL, GL_REASON_OUT_OF_RANGE,
                          "expected a whole number from %lld to %lld%s%s", (long long)lo,
                          (long long)hi, is_number ? "" : ", not ",
                          is_number                       ? ""
                          : gl_json_is(n, GL_JSON_STRING) ? "text"
                                                          : gl_json_type_name(n));
        return false;
    }
    *ret = v;
    return true;
}

bool gl_manifest_bool(struct gl_manifest *m, gl_jnode obj, const char *key, bool *ret)
{
    gl_jnode n = gl_manifest_get(m, obj, key);

    if (n == NULL) {
        return false;
    }
    if (!gl_json_bool(n, ret)) {
        wrong_type(m, n, "true or false");
        return false;
    }
    return true;
}

const char *gl_manifest_near(struct gl_manifest *m, const char *const *words, gl_str word)
{
    struct gl_suggest near;

    gl_suggest_init(&near, word);
    for (size_t i = 0; words[i] != NULL; i++) {
        gl_suggest_offer(&near, gl_str_of(words[i]));
    }
    return gl_flow_read_suggestion(&m->r, &near);
}

bool gl_manifest_word(struct gl_manifest *m, gl_jnode obj, const char *key,
                      const char *const *words, uint8_t *ret)
{
    gl_jnode n = gl_manifest_get(m, obj, key);
    gl_str word = gl_json_str(m->r.j, n, m->r.a);
    int found = gl_schema_word(words, word);
    struct gl_buf list = {0};

    if (n == NULL) {
        return false;
    }
    if (found >= 0) {
        *ret = (uint8_t)found;
        return true;
    }
    if (!gl_json_is(n, GL_JSON_STRING)) {
        wrong_type(m, n, "a word");
        return false;
    }
    for (size_t i = 0; words[i] != NULL; i++) {
        gl_buf_fmt(&list, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    gl_manifest_error(m, n, NULL, GL_REASON_UNKNOWN_WORD, "`%.*s` is not %s%.*s%s",
                      GL_STR_ARG(gl_flow_read_clip(word)), words[1] != NULL ? "one of " : "",
                      GL_STR_ARG(gl_buf_view(&list)), gl_manifest_near(m, words, word));
    gl_buf_done(&list);
    return false;
}

gl_jnode gl_manifest_object(struct gl_manifest *m, gl_jnode obj, const char *key)
{
    gl_jnode n = gl_manifest_get(m, obj, key);

    if (n != NULL && !gl_json_is(n, GL_JSON_OBJECT)) {
        wrong_type(m, n, "an object");
        return NULL;
    }
    return n;
}

gl_jnode gl_manifest_list(struct gl_manifest *m, gl_jnode obj, const char *key)
{
    gl_jnode n = gl_manifest_get(m, obj, key);

    if (n != NULL && !gl_json_is(n, GL_JSON_ARRAY)) {
        wrong_type(m, n, "a list");
        return NULL;
    }
    return n;
}

gl_jnode gl_manifest_element(struct gl_manifest *m, gl_jnode list, size_t i)
{
    gl_jnode e = list;

    if (gl_json_is(list, GL_JSON_ARRAY) && gl_flow_read_error_has_room(&m->r)) {
        e = gl_json_first(m->r.j, list);
        for (; e != NULL && i > 0; i--) {
            e = gl_json_after(m->r.j, list, e);
        }
    }
    return e != NULL ? e : list;
}

struct gl_strs gl_manifest_texts(struct gl_manifest *m, gl_jnode obj, const char *key)
{
    gl_jnode n = gl_manifest_get(m, obj, key);
    struct gl_strs ret = {0};
    gl_str *items;

    if (n == NULL) {
        return ret;
    }
    if (gl_json_is(n, GL_JSON_STRING)) {
        items = GL_NEW_ARRAY(m->r.a, gl_str, 1);
        ret.n = gl_manifest_text(m, obj, key, &items[0]) ? 1 : 0;
        ret.items = items;
        return ret;
    }
    if (!gl_json_is(n, GL_JSON_ARRAY)) {
        wrong_type(m, n, "a list of texts");
        return ret;
    }
    items = GL_NEW_ARRAY(m->r.a, gl_str, n->count);
    for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e)) {
        if (!gl_json_is(e, GL_JSON_STRING) || e->end - e->start <= 2) {
            gl_manifest_error(m, e, NULL, GL_REASON_EMPTY_TEXT, "expected text that is not empty");
            continue;
        }
        items[ret.n++] = gl_json_str(m->r.j, e, m->r.a);
    }
    ret.items = items;
    return ret;
}

bool gl_manifest_is_program_text(gl_str s)
{
    return s.n == 0 || (memchr(s.p, 0, s.n) == NULL && memchr(s.p, 1, s.n) == NULL);
}

gl_str gl_manifest_compact(struct gl_manifest *m, gl_jnode n)
{
    struct gl_buf out = {0};
    gl_str ret;

    gl_manifest_merge(NULL, NULL, m->r.j, n, &out);
    ret = gl_str_dup(m->r.a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

bool gl_manifest_add_expansion(struct gl_manifest *m, gl_jnode n, size_t bytes)
{
    bool was_fine = m->expansion_bytes <= GL_FLOW_BYTES_MAX;

    m->expansion_bytes += bytes < GL_FLOW_BYTES_MAX ? bytes : GL_FLOW_BYTES_MAX + 1;
    if (m->expansion_bytes <= GL_FLOW_BYTES_MAX) {
        return true;
    }
    if (was_fine) {
        gl_manifest_error(m, n, NULL, GL_REASON_TOO_LARGE,
                          "too many agents share this: the compiled bundle would have more than %d "
                          "bytes",
                          GL_FLOW_BYTES_MAX);
    }
    m->expansion_bytes = GL_FLOW_BYTES_MAX + 1;
    return false;
}
