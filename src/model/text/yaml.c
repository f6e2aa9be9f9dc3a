#include "model/text/yaml.h"

#include <yaml.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"

/* libyaml produces events. Each becomes a piece of JSON text, and the place of each value and key
 * in the YAML is recorded; the strict JSON reader then builds the tape, and finds the remaining
 * errors (duplicate keys, invalid numbers). */

struct anchor {
    size_t text_start, text_end;     /* the JSON text of the anchored value */
    size_t places_start, places_end; /* its nodes */
    unsigned depth;                  /* levels of nesting inside it */
    bool open;                       /* still being read: an alias to it would contain itself */
};

struct yaml_level {
    bool is_map;
    bool at_key; /* the next event is a key */
    bool has_item;
    struct anchor *anchor; /* NULL: none */
    unsigned inner;        /* the deepest nesting inside it so far */
};

struct maker {
    yaml_parser_t parser;
    gl_str source;
    size_t mark_bytes; /* of a byte order mark: libyaml would count it as a column and report wrong
                          places */
    size_t bytes_max;
    struct gl_buf text;
    uint32_t *places;
    size_t places_n, places_cap;
    size_t chars, bytes; /* one place in the source, in both units: libyaml counts code points */
    struct yaml_level levels[GL_JSON_DEPTH_MAX];
    unsigned depth;
    unsigned aliases_n;
    struct gl_map anchors; /* name to struct anchor */
    struct gl_arena scratch;
    struct gl_why *why;
};

/* The byte offset of a mark. Marks come in ascending order, so all walks together are linear. */
static size_t byte_of(struct maker *m, const yaml_mark_t *mark)
{
    if (mark->index < m->chars) {
        m->chars = 0;
        m->bytes = m->mark_bytes;
    }
    while (m->chars < mark->index && m->bytes < m->source.n) {
        m->bytes++;
        while (m->bytes < m->source.n && ((unsigned char)m->source.p[m->bytes] & 0xc0) == 0x80) {
            m->bytes++;
        }
        m->chars++;
    }
    return m->bytes;
}

static int fail_at(const struct maker *m, int code, size_t at, const char *text)
{
    unsigned line, column;
    gl_json_place_in(m->source, at, &line, &column);
    return gl_why(m->why, code, "line %u, column %u (byte %zu): %s", line, column, at, text);
}

static int fail(struct maker *m, const yaml_event_t *e, const char *text)
{
    return fail_at(m, GL_E_INVALID, byte_of(m, &e->start_mark), text);
}

static int check_size(struct maker *m, size_t at)
{
    if (m->text.n > m->bytes_max) {
        return fail_at(m, GL_E_LIMIT, at, "the document grows too large here");
    }
    if (m->places_n > GL_JSON_NODES_MAX) {
        return fail_at(m, GL_E_LIMIT, at, "the document has too many values");
    }
    return 0;
}

static void place_add(struct maker *m, size_t at)
{
    if (m->places_n == m->places_cap) {
        m->places_cap = m->places_cap ? m->places_cap * 2 : 256;
        m->places = gl_mem_realloc(m->places, m->places_cap * sizeof(m->places[0]));
    }
    m->places[m->places_n++] = (uint32_t)at;
}

/* Write the comma or colon before the next value or key, and count it. */
static void before_item(struct maker *m)
{
    if (m->depth == 0) {
        return;
    }
    struct yaml_level *l = &m->levels[m->depth - 1];
    if (l->is_map && !l->at_key) {
        gl_buf_char(&m->text, ':');
    } else if (l->has_item) {
        gl_buf_char(&m->text, ',');
    }
    l->has_item = true;
    l->at_key = l->is_map && !l->at_key;
}

static bool is_key_next(const struct maker *m)
{
    return m->depth && m->levels[m->depth - 1].is_map && m->levels[m->depth - 1].at_key;
}

/* Scalars: the core schema of YAML 1.2, section 10.3.2. */

enum kind { KIND_STR, KIND_NULL, KIND_BOOL, KIND_INT, KIND_FLOAT, KIND_NOT_FINITE, KIND_OTHER };

static bool is_one_of(gl_str s, const char *const *words)
{
    for (; *words; words++) {
        if (gl_str_is(s, *words)) {
            return true;
        }
    }
    return false;
}

static size_t digits_at(gl_str s, size_t at)
{
    size_t n = 0;
    while (at + n < s.n && s.p[at + n] >= '0' && s.p[at + n] <= '9') {
        n++;
    }
    return n;
}

/* 0o17 or 0x1f: its base, or 0. */
static unsigned base_of(gl_str s)
{
    if (s.n < 3 || s.p[0] != '0' || (s.p[1] != 'o' && s.p[1] != 'x')) {
        return 0;
    }
    for (size_t i = 2; i < s.n; i++) {
        char c = s.p[i], low = (char)(c | 0x20);
        bool octal = c >= '0' && c <= '7';
        bool hex = (c >= '0' && c <= '9') || (low >= 'a' && low <= 'f');
        if (s.p[1] == 'o' ? !octal : !hex) {
            return 0;
        }
    }
    return s.p[1] == 'o' ? 8 : 16;
}

static enum kind number_kind(gl_str s)
{
    if (base_of(s)) {
        return KIND_INT;
    }
    size_t at = s.n && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0;
    size_t whole = digits_at(s, at), fraction = 0;
    at += whole;
    if (whole && at == s.n) {
        return KIND_INT;
    }
    if (at < s.n && s.p[at] == '.') {
        fraction = digits_at(s, at + 1);
        at += 1 + fraction;
    }
    if (whole + fraction == 0) {
        return KIND_STR;
    }
    if (at < s.n && (s.p[at] | 0x20) == 'e') {
        at++;
        at += at < s.n && (s.p[at] == '-' || s.p[at] == '+') ? 1 : 0;
        size_t exponent = digits_at(s, at);
        at += exponent;
        if (exponent == 0) {
            return KIND_STR;
        }
    }
    return at == s.n ? KIND_FLOAT : KIND_STR;
}

static enum kind plain_kind(gl_str s)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const bools[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};
    static const char *const odd[] = {".inf",  ".Inf",  ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
                                      "-.Inf", "-.INF", ".nan", ".NaN",  ".NAN",  NULL};
    if (is_one_of(s, nulls)) {
        return KIND_NULL;
    }
    if (is_one_of(s, bools)) {
        return KIND_BOOL;
    }
    return is_one_of(s, odd) ? KIND_NOT_FINITE : number_kind(s);
}

/* The kind that a tag requires; KIND_OTHER if the tag is unknown. */
static enum kind tag_kind(const char *tag)
{
    static const struct {
        const char *tag;
        enum kind kind;
    } tags[] = {
        {YAML_STR_TAG, KIND_STR}, {YAML_NULL_TAG, KIND_NULL},   {YAML_BOOL_TAG, KIND_BOOL},
        {YAML_INT_TAG, KIND_INT}, {YAML_FLOAT_TAG, KIND_FLOAT}, {"!", KIND_STR},
    };
    for (size_t i = 0; i < GL_COUNT(tags); i++) {
        if (strcmp(tag, tags[i].tag) == 0) {
            return tags[i].kind;
        }
    }
    return KIND_OTHER;
}

/* An integer in JSON notation. False: more than 64 bits in a base other than ten. */
static bool put_int(struct gl_buf *out, gl_str s)
{
    unsigned base = base_of(s);
    if (base) {
        uint64_t v = 0;
        for (size_t i = 2; i < s.n; i++) {
            unsigned c = (unsigned char)s.p[i];
            unsigned digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
            if (v > (UINT64_MAX - digit) / base) {
                return false;
            }
            v = v * base + digit;
        }
        gl_buf_u64(out, v);
        return true;
    }
    if (s.p[0] == '-') {
        gl_buf_char(out, '-');
    }
    size_t at = s.p[0] == '-' || s.p[0] == '+' ? 1 : 0;
    while (at + 1 < s.n && s.p[at] == '0') {
        at++;
    }
    gl_buf_add(out, s.p + at, s.n - at);
    return true;
}

/* A float in JSON notation: a digit on both sides of the point, no plus, no leading zeros. */
static void put_float(struct gl_buf *out, gl_str s)
{
    size_t at = s.p[0] == '-' || s.p[0] == '+' ? 1 : 0;
    if (s.p[0] == '-') {
        gl_buf_char(out, '-');
    }
    size_t whole = digits_at(s, at);
    while (whole > 1 && s.p[at] == '0') {
        at++;
        whole--;
    }
    gl_buf_add(out, whole ? s.p + at : "0", whole ? whole : 1);
    at += whole;
    if (at < s.n && s.p[at] == '.') {
        size_t fraction = digits_at(s, at + 1);
        if (fraction) {
            gl_buf_add(out, s.p + at, fraction + 1);
        }
        at += fraction + 1;
    }
    gl_buf_add(out, s.p + at, s.n - at);
}

static void put_string(struct maker *m, gl_str s)
{
    struct gl_jw w;
    gl_jw_init(&w, &m->text);
    gl_jw_str(&w, s);
}

static int put_scalar(struct maker *m, const yaml_event_t *e, enum kind kind, gl_str s)
{
    switch (kind) {
    case KIND_STR:
        put_string(m, s);
        return 0;
    case KIND_NULL:
        gl_buf_c(&m->text, "null");
        return 0;
    case KIND_BOOL:
        gl_buf_c(&m->text, (s.p[0] | 0x20) == 't' ? "true" : "false");
        return 0;
    case KIND_INT:
        return put_int(&m->text, s) ? 0 : fail(m, e, "the number has more than 64 bits");
    case KIND_FLOAT:
        put_float(&m->text, s);
        return 0;
    case KIND_NOT_FINITE:
        return fail(m, e,
                    "infinity and not-a-number are not supported; put it in quotes if it is text");
    case KIND_OTHER:
        break;
    }
    GL_UNREACHABLE();
}

/* The kind of a scalar; KIND_OTHER with an error if its tag is unknown or does not fit. */
static int scalar_kind(struct maker *m, const yaml_event_t *e, gl_str s, enum kind *ret)
{
    const char *tag = (const char *)e->data.scalar.tag;
    enum kind plain = plain_kind(s);
    if (!tag) {
        *ret = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain : KIND_STR;
        return 0;
    }
    *ret = tag_kind(tag);
    if (*ret == KIND_OTHER) {
        return fail(m, e,
                    "only the tags !!str !!int !!float !!bool !!null !!map and !!seq are known");
    }
    bool fits = *ret == KIND_STR || *ret == plain ||
                (*ret == KIND_FLOAT && plain == KIND_INT && base_of(s) == 0);
    return fits ? 0 : fail(m, e, "the value does not fit its tag");
}

/* Anchors and aliases. */

static struct anchor *anchor_add(struct maker *m, const yaml_char_t *name)
{
    if (!name) {
        return NULL;
    }
    /* A repeated name is a new anchor, even inside the value of the first. */
    gl_str key = gl_str_dup(&m->scratch, gl_str_of((const char *)name));
    (void)gl_map_remove(&m->anchors, key);
    struct anchor *a = GL_NEW(&m->scratch, struct anchor);
    *a = (struct anchor){.text_start = m->text.n, .places_start = m->places_n, .open = true};
    gl_map_add(&m->anchors, key, a);
    return a;
}

static void anchor_close(struct maker *m, struct anchor *a, unsigned depth)
{
    if (a) {
        a->text_end = m->text.n;
        a->places_end = m->places_n;
        a->depth = depth;
        a->open = false;
    }
}

static void note_depth(struct maker *m, unsigned inner)
{
    if (m->depth) {
        struct yaml_level *l = &m->levels[m->depth - 1];
        l->inner = inner > l->inner ? inner : l->inner;
    }
}

static int on_alias(struct maker *m, const yaml_event_t *e)
{
    const struct anchor *a =
        gl_map_find(&m->anchors, gl_str_of((const char *)e->data.alias.anchor));
    size_t at = byte_of(m, &e->start_mark);
    if (!a) {
        return fail_at(m, GL_E_INVALID, at, "no anchor of this name comes before this alias");
    }
    if (a->open) {
        return fail_at(m, GL_E_INVALID, at, "the alias is inside the value it refers to");
    }
    if (is_key_next(m)) {
        return fail_at(m, GL_E_INVALID, at, "an alias cannot be a key");
    }
    if (++m->aliases_n > GL_YAML_ALIASES_MAX) {
        return fail_at(m, GL_E_LIMIT, at, "too many aliases");
    }
    if (m->depth + a->depth > GL_JSON_DEPTH_MAX) {
        return fail_at(m, GL_E_LIMIT, at, "the document is nested too deeply");
    }
    size_t text_n = a->text_end - a->text_start, places_n = a->places_end - a->places_start;
    if (m->text.n + text_n > m->bytes_max || m->places_n + places_n > GL_JSON_NODES_MAX) {
        return fail_at(m, GL_E_LIMIT, at, "the document grows too large here");
    }
    before_item(m);
    note_depth(m, a->depth);
    (void)gl_buf_reserve(&m->text, text_n); /* before the source pointer is taken: it may move */
    gl_buf_add(&m->text, m->text.p + a->text_start, text_n);
    place_add(m, at);
    for (size_t i = 1; i < places_n; i++) {
        place_add(m, m->places[a->places_start + i]);
    }
    return 0;
}

/* Events. */

static int on_scalar(struct maker *m, const yaml_event_t *e)
{
    gl_str s = {(const char *)e->data.scalar.value, e->data.scalar.length};
    size_t at = byte_of(m, &e->start_mark);
    enum kind kind;
    int rc = scalar_kind(m, e, s, &kind);
    if (rc) {
        return rc;
    }
    bool is_key = is_key_next(m);
    before_item(m);
    struct anchor *a = anchor_add(m, e->data.scalar.anchor);
    place_add(m, at);
    rc = put_scalar(m, e, is_key ? KIND_STR : kind, s);
    anchor_close(m, a, 0);
    return rc ? rc : check_size(m, at);
}

static int on_start(struct maker *m, const yaml_event_t *e, bool is_map, const yaml_char_t *anchor,
                    const yaml_char_t *tag)
{
    size_t at = byte_of(m, &e->start_mark);
    if (is_key_next(m)) {
        return fail_at(m, GL_E_INVALID, at, "a key must be a scalar");
    }
    if (tag && strcmp((const char *)tag, is_map ? YAML_MAP_TAG : YAML_SEQ_TAG) != 0) {
        return fail_at(m, GL_E_INVALID, at,
                       "only the tags !!str !!int !!float !!bool !!null !!map and !!seq are known");
    }
    if (m->depth == GL_JSON_DEPTH_MAX) {
        return fail_at(m, GL_E_LIMIT, at, "the document is nested too deeply");
    }
    before_item(m);
    struct anchor *a = anchor_add(m, anchor);
    place_add(m, at);
    m->levels[m->depth++] = (struct yaml_level){.is_map = is_map, .at_key = is_map, .anchor = a};
    gl_buf_char(&m->text, is_map ? '{' : '[');
    return check_size(m, at);
}

static void on_end(struct maker *m)
{
    struct yaml_level *l = &m->levels[--m->depth];
    gl_buf_char(&m->text, l->is_map ? '}' : ']');
    anchor_close(m, l->anchor, l->inner + 1);
    note_depth(m, l->inner + 1);
}

static int on_event(struct maker *m, const yaml_event_t *e, bool *ret_done)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(m, e);
    case YAML_ALIAS_EVENT:
        return on_alias(m, e);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(m, e, false, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return on_start(m, e, true, e->data.mapping_start.anchor, e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_end(m);
        return 0;
    case YAML_DOCUMENT_START_EVENT:
        return m->places_n ? fail(m, e, "only one document is allowed in a file") : 0;
    case YAML_STREAM_END_EVENT:
        *ret_done = true;
        return m->places_n ? 0 : fail_at(m, GL_E_INVALID, 0, "the document is empty");
    default:
        return 0;
    }
}

/* The key of a text that begins on this line before `at`: `sh` of `sh: echo a: b`. "": none. */
static gl_str key_before(gl_str source, size_t at)
{
    size_t start = at;
    while (start > 0 && source.p[start - 1] != '\n') {
        start--;
    }
    for (size_t i = start; i + 1 < at; i++) {
        if (source.p[i] == ':' && source.p[i + 1] == ' ') {
            size_t word = i;
            while (word > start && !strchr(" {[,", source.p[word - 1])) {
                word--;
            }
            gl_str key = {source.p + word, i - word};
            return gl_str_is_id(key) ? key : GL_S("key");
        }
    }
    return (gl_str){0};
}

/* libyaml's message is correct, but someone who meant a shell command needs advice. */
static int syntax_error_at(struct maker *m, size_t at, const char *context, const char *problem)
{
    bool is_colon = strstr(problem, "mapping values") != NULL;
    gl_str key = key_before(m->source, at);
    char text[512], advice[256] = "";
    if (key.n > 0) {
        (void)snprintf(advice, sizeof(advice),
                       "; %s must be in quotes, or on lines of its own below `%.*s: |`",
                       is_colon ? "a text that contains `: `" : "if this is text, all of it",
                       GL_STR_ARG(key));
    } else if (is_colon || strstr(problem, "expected key")) {
        (void)snprintf(advice, sizeof(advice), "; check the indentation of this line");
    }
    (void)snprintf(text, sizeof(text), "%s%s%s%s", context ? context : "", context ? ": " : "",
                   problem, advice);
    return fail_at(m, GL_E_INVALID, at, text);
}

static int syntax_error(struct maker *m)
{
    const yaml_parser_t *p = &m->parser;
    const char *problem = p->problem ? p->problem : "not valid YAML";
    if (p->error == YAML_READER_ERROR) {
        return fail_at(m, GL_E_INVALID, m->mark_bytes + p->problem_offset, problem);
    }
    size_t at = byte_of(m, &p->problem_mark);
    if (at < m->source.n && m->source.p[at] == '\t') {
        return fail_at(m, GL_E_INVALID, at, "a tab is not allowed here; indent with spaces");
    }
    if (at > 0 && at < m->source.n && m->source.p[at - 1] == '$' && m->source.p[at] == '{') {
        return fail_at(m, GL_E_INVALID, at - 1,
                       "between { } or [ ] a text that contains `${` must be in quotes");
    }
    return syntax_error_at(m, at, p->context, problem);
}

static int read_events(struct maker *m)
{
    bool done = false;
    int rc = 0;
    while (!done && rc == 0) {
        yaml_event_t e;
        if (!yaml_parser_parse(&m->parser, &e)) {
            GL_ASSERT(m->parser.error != YAML_MEMORY_ERROR);
            return syntax_error(m);
        }
        rc = on_event(m, &e, &done);
        yaml_event_delete(&e);
    }
    return rc;
}

static int make(struct maker *m, struct gl_json *ret, struct gl_arena *a)
{
    size_t bad = 0;
    if (!gl_str_is_utf8(m->source, &bad)) {
        return fail_at(m, GL_E_INVALID, bad, "not valid UTF-8");
    }
    int rc = read_events(m);
    if (rc) {
        return rc;
    }
    gl_str text = gl_str_dup(a, gl_buf_view(&m->text));
    return gl_json_parse_made(ret, text, m->source, m->places, m->places_n, a, m->why);
}

int gl_yaml_parse(struct gl_json *ret, gl_str text, size_t bytes_max, struct gl_arena *a,
                  struct gl_why *reterr_why)
{
    if (text.n > bytes_max || bytes_max >= UINT32_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT, "the document has %zu bytes; at most %zu are allowed",
                      text.n, bytes_max);
    }
    struct maker *m = gl_mem_alloc(sizeof(*m));
    m->source = text;
    m->bytes_max = bytes_max;
    m->why = reterr_why;
    int initialised = yaml_parser_initialize(&m->parser);
    GL_ASSERT(initialised);
    yaml_parser_set_encoding(&m->parser, YAML_UTF8_ENCODING);
    m->bytes = m->mark_bytes = gl_str_starts(text, GL_S("\xef\xbb\xbf")) ? 3 : 0;
    const char *start = text.p ? text.p + m->mark_bytes : "";
    yaml_parser_set_input_string(&m->parser, (const unsigned char *)start, text.n - m->mark_bytes);

    int rc = make(m, ret, a);

    yaml_parser_delete(&m->parser);
    gl_map_done(&m->anchors);
    gl_arena_done(&m->scratch);
    gl_mem_free(m->places);
    gl_buf_done(&m->text);
    gl_mem_free(m);
    return rc;
}
