#include "keeper/redact.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"

#define STARS "***"

static_assert(sizeof(STARS) - 1 <= GL_SECRET_BYTES_MIN, "a text does not grow");

/* A node of the automaton: the bytes on the way to it are the longest suffix of the text that is a
 * prefix of some pattern. Node 0 is the root: no such suffix. */
struct node {
    uint32_t child, sibling; /* 0: none */
    uint32_t fail;           /* the next shorter such suffix */
    uint32_t depth;
    uint32_t match; /* length of the longest pattern that ends here; 0: none */
    uint8_t byte;
};

struct gl_redactor {
    size_t users_n;
    gl_str key;
    uint32_t first[256]; /* the root's children */
    struct node *nodes;
    size_t nodes_n, nodes_cap;
    char text[]; /* of the key */
};

/* ---- building ---- */

static uint32_t find_child(const struct gl_redactor *r, uint32_t at, uint8_t byte)
{
    GL_ASSERT(at < r->nodes_n);
    if (at == 0) {
        return r->first[byte];
    }
    uint32_t c = r->nodes[at].child;
    while (c != 0 && r->nodes[c].byte != byte) {
        c = r->nodes[c].sibling;
    }
    return c;
}

static uint32_t add_child(struct gl_redactor *r, uint32_t at, uint8_t byte)
{
    GL_ASSERT(at < r->nodes_n);
    if (r->nodes_n == r->nodes_cap) {
        r->nodes_cap = r->nodes_cap * 2;
        r->nodes = gl_mem_realloc(r->nodes, r->nodes_cap * sizeof(struct node));
    }
    uint32_t c = (uint32_t)r->nodes_n++;
    r->nodes[c] = (struct node){.depth = r->nodes[at].depth + 1, .byte = byte};
    if (at == 0) {
        r->first[byte] = c;
    } else {
        r->nodes[c].sibling = r->nodes[at].child;
        r->nodes[at].child = c;
    }
    GL_ASSERT(c != 0);
    GL_ASSERT(r->nodes_n <= r->nodes_cap);
    return c;
}

static void add_word(struct gl_redactor *r, gl_str word)
{
    uint32_t at = 0;
    if (word.n < GL_SECRET_BYTES_MIN) {
        return;
    }
    for (size_t i = 0; i < word.n; i++) {
        uint8_t byte = (uint8_t)word.p[i];
        uint32_t next = find_child(r, at, byte);
        at = next != 0 ? next : add_child(r, at, byte);
    }
    r->nodes[at].match = r->nodes[at].depth;
    GL_ASSERT(r->nodes[at].depth == word.n);
}

/* One non-ASCII code point as a JSON escape. Bytes that are not UTF-8 stay as they are. */
static size_t add_escaped_unicode(struct gl_buf *out, gl_str rest)
{
    size_t n = gl_str_utf8_at(rest);

    GL_ASSERT(rest.n > 0);
    if (n < 2) {
        gl_buf_char(out, rest.p[0]);
        return 1;
    }
    uint32_t point = (uint8_t)rest.p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        point = point << 6 | ((uint8_t)rest.p[i] & 0x3fu);
    }
    if (point < 0x10000) {
        gl_buf_fmt(out, "\\u%04x", point);
    } else {
        point -= 0x10000;
        gl_buf_fmt(out, "\\u%04x\\u%04x", 0xd800 + (point >> 10), 0xdc00 + (point & 0x3ff));
    }
    return n;
}

/* `word` as it is written in a JSON string. */
static void escape(gl_str word, bool ascii, struct gl_buf *out)
{
    static const char plain[] = "\"\\\n\r\t\b\f", escape[] = "\"\\nrtbf";
    for (size_t i = 0; i < word.n;) {
        char c = word.p[i];
        const char *special = memchr(plain, c, sizeof(plain) - 1);
        if (special != NULL) {
            gl_buf_char(out, '\\');
            gl_buf_char(out, escape[special - plain]);
        } else if ((uint8_t)c < 0x20) {
            gl_buf_fmt(out, "\\u%04x", (unsigned)c);
        } else if (ascii && (uint8_t)c >= 0x80) {
            i += add_escaped_unicode(out, (gl_str){.p = word.p + i, .n = word.n - i});
            continue;
        } else {
            gl_buf_char(out, c);
        }
        i++;
    }
}

static void add_forms(struct gl_redactor *r, gl_str word)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf escaped = {0};
    add_word(r, word);
    if (word.n < GL_SECRET_BYTES_MIN) {
        return; /* the escaped form would be long enough, but stands for something harmless */
    }
    escape(word, false, &escaped);
    add_word(r, gl_buf_view(&escaped)); /* often identical: then nothing is added */
    gl_buf_reset(&escaped);
    escape(word, true, &escaped);
    add_word(r, gl_buf_view(&escaped));
}

static void add_secret(struct gl_redactor *r, gl_str value)
{
    add_forms(r, value);
    if (value.n > 0 && memchr(value.p, '\n', value.n) != NULL) {
        for (gl_str rest = value; rest.n > 0;) {
            add_forms(r, gl_str_trim(gl_str_cut(rest, '\n', &rest)));
        }
    }
}

/* A child's suffixes are its parent's suffixes plus one byte. Nodes are visited by depth, because
 * the shorter suffixes must be linked first. */
static void link_child(struct gl_redactor *r, uint32_t parent, uint32_t c)
{
    uint32_t at = parent, found = 0;

    GL_ASSERT(parent != 0);
    GL_ASSERT(c != 0);
    while (at != 0 && found == 0) {
        at = r->nodes[at].fail;
        found = find_child(r, at, r->nodes[c].byte);
    }
    r->nodes[c].fail = found;
    if (r->nodes[c].match == 0) {
        r->nodes[c].match = r->nodes[found].match;
    }
    GL_ASSERT(r->nodes[found].depth < r->nodes[c].depth);
}

static void link_nodes(struct gl_redactor *r)
{
    uint32_t *queue = gl_mem_alloc(r->nodes_n * sizeof(*queue));
    size_t n = 0;
    for (size_t b = 0; b < GL_COUNT(r->first); b++) {
        if (r->first[b] != 0) {
            queue[n++] = r->first[b];
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (uint32_t c = r->nodes[queue[i]].child; c != 0; c = r->nodes[c].sibling) {
            link_child(r, queue[i], c);
            queue[n++] = c;
        }
    }
    GL_ASSERT(n == r->nodes_n - 1);
    gl_mem_free(queue);
}

static gl_str value_of(gl_str secret)
{
    gl_str value;
    (void)gl_str_cut(secret, '=', &value);
    return value;
}

/* All values, NUL-terminated. None contains a NUL byte. */
static void make_key(struct gl_buf *out, const gl_str *secrets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        gl_buf_str(out, value_of(secrets[i]));
        gl_buf_char(out, 0);
    }
}

struct gl_redactor *gl_redact_get(struct gl_map *all, const gl_str *secrets, size_t n)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf key = {0};
    if (n == 0) {
        return NULL;
    }
    make_key(&key, secrets, n);
    struct gl_redactor *r = gl_map_find(all, gl_buf_view(&key));
    if (r == NULL) {
        r = gl_mem_alloc(sizeof(*r) + key.n);
        memcpy(r->text, key.p, key.n);
        r->key = (gl_str){.p = r->text, .n = key.n};
        r->nodes_cap = 64;
        r->nodes = gl_mem_alloc(r->nodes_cap * sizeof(struct node));
        r->nodes_n = 1;
        for (size_t i = 0; i < n; i++) {
            add_secret(r, value_of(secrets[i]));
        }
        link_nodes(r);
        gl_map_add(all, r->key, r);
    }
    r->users_n++;
    GL_ASSERT(r->users_n > 0);
    return r;
}

void gl_redact_put(struct gl_map *all, struct gl_redactor *r)
{
    GL_ASSERT(r == NULL || r->users_n > 0);
    if (r != NULL && --r->users_n == 0) {
        (void)gl_map_remove(all, r->key);
        gl_mem_free(r->nodes);
        gl_mem_free(r);
    }
}

/* ---- a text in pieces ---- */

static uint32_t next_state(const struct gl_redactor *r, uint32_t at, uint8_t byte)
{
    for (;;) {
        uint32_t next = find_child(r, at, byte);
        if (next != 0 || at == 0) {
            return next;
        }
        at = r->nodes[at].fail;
    }
}

/* Spans that overlap or touch become one. A new span begins at or after `done`: bytes that may be
 * the beginning of a secret are not done yet. */
static void add_span(struct gl_redact *x, uint64_t from, uint64_t to)
{
    bool said = false;

    GL_ASSERT(from < to);
    GL_ASSERT(from >= x->done);
    while (x->spans_n > 0 && x->spans[x->spans_n - 1].to >= from) {
        const struct gl_redact_span *last = &x->spans[--x->spans_n];
        from = last->from < from ? last->from : from;
        said = said || last->written;
    }
    if (x->spans_n == x->spans_cap) {
        x->spans_cap = x->spans_cap > 0 ? x->spans_cap * 2 : 4;
        x->spans = gl_mem_realloc(x->spans, x->spans_cap * sizeof(*x->spans));
    }
    x->spans[x->spans_n++] = (struct gl_redact_span){.from = from, .to = to, .written = said};
    GL_ASSERT(x->spans_n <= x->spans_cap);
}

static void scan(struct gl_redact *x, gl_str text)
{
    const struct gl_redactor *r = x->redactor;
    uint32_t state = x->state;
    for (size_t i = 0; i < text.n; i++) {
        state = next_state(r, state, (uint8_t)text.p[i]);
        uint32_t match = r->nodes[state].match;
        if (match > 0) {
            uint64_t to = x->seen + i + 1;
            add_span(x, to - match, to);
        }
    }
    x->state = state;
    x->seen += text.n;
}

/* Deal with everything before `certain`. A span that reaches it may still grow, but only at its
 * end: it is announced, and stays. */
static void write_certain(struct gl_redact *x, uint64_t certain, struct gl_buf *out)
{
    uint64_t begin = x->done;
    size_t over_n = 0;

    GL_ASSERT(certain <= x->seen);
    while (x->done < certain) {
        struct gl_redact_span *s = over_n < x->spans_n ? &x->spans[over_n] : NULL;
        if (s != NULL && s->from <= x->done) {
            if (!s->written) {
                gl_buf_c(out, STARS);
                s->written = x->replaced = true;
            }
            x->done = s->to < certain ? s->to : certain;
            over_n += s->to < certain;
        } else {
            uint64_t to = s != NULL && s->from < certain ? s->from : certain;
            gl_buf_add(out, x->held.p + (x->done - begin), (size_t)(to - x->done));
            x->done = to;
        }
    }
    if (over_n > 0) {
        x->spans_n -= over_n;
        memmove(x->spans, x->spans + over_n, x->spans_n * sizeof(*x->spans));
    }
    if (x->done > begin) {
        x->held.n -= (size_t)(x->done - begin);
        memmove(x->held.p, x->held.p + (x->done - begin), x->held.n);
    }
    GL_ASSERT(x->done <= x->seen);
    GL_ASSERT(x->held.n == x->seen - x->done);
}

void gl_redact_feed(struct gl_redact *x, gl_str text, struct gl_buf *out)
{
    if (text.n > 0) {
        gl_buf_str(&x->held, text);
        scan(x, text);
        write_certain(x, x->seen - x->redactor->nodes[x->state].depth, out);
    }
}

void gl_redact_end(struct gl_redact *x, struct gl_buf *out)
{
    write_certain(x, x->seen, out);
    GL_ASSERT(x->held.n == 0);
    x->state = 0;
    x->spans_n = 0;
}

void gl_redact_done(struct gl_redact *x)
{
    gl_buf_done(&x->held);
    gl_mem_free(x->spans);
    *x = (struct gl_redact){0};
}

bool gl_redact_text(const struct gl_redactor *r, struct gl_buf *text)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf clean = {0};
    GL_CLEANUP(gl_redact_done) struct gl_redact x = {.redactor = r};
    if (r == NULL) {
        return false;
    }
    gl_redact_feed(&x, gl_buf_view(text), &clean);
    gl_redact_end(&x, &clean);
    if (x.replaced) {
        gl_buf_reset(text);
        gl_buf_str(text, gl_buf_view(&clean));
    }
    return x.replaced;
}

/* ---- JSON ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A number, a word, or the rest of one. */
static bool is_scalar(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '.' || c == '*';
}

/* Copy an escape; an escape whose end was removed is dropped. Returns its length. */
static size_t repair_escape(gl_str rest, struct gl_buf *out)
{
    size_t n = 2;

    GL_ASSERT(rest.n > 0);
    GL_ASSERT(rest.p[0] == '\\');
    if (rest.n < 2 || rest.p[1] == '*') {
        return 1;
    }
    if (rest.p[1] == 'u') {
        while (n < 6 && n < rest.n && is_hex(rest.p[n])) {
            n++;
        }
        if (n < 6) {
            return n;
        }
    }
    gl_buf_add(out, rest.p, n);
    return n;
}

static size_t repair_scalar(gl_str rest, struct gl_buf *out)
{
    size_t n = 0;

    GL_ASSERT(rest.n > 0);
    while (n < rest.n && is_scalar(rest.p[n])) {
        n++;
    }
    if (memmem(rest.p, n, STARS, strlen(STARS)) != NULL) {
        gl_buf_c(out, "\"" STARS "\"");
    } else {
        gl_buf_add(out, rest.p, n);
    }
    GL_ASSERT(n > 0);
    return n;
}

void gl_redact_repair_json(struct gl_buf *text)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    bool in_string = false;
    for (size_t i = 0; i < text->n;) {
        gl_str rest = {.p = text->p + i, .n = text->n - i};
        if (in_string && rest.p[0] == '\\') {
            i += repair_escape(rest, &out);
        } else if (!in_string && is_scalar(rest.p[0])) {
            i += repair_scalar(rest, &out);
        } else {
            in_string = in_string != (rest.p[0] == '"');
            gl_buf_char(&out, rest.p[0]);
            i++;
        }
    }
    gl_buf_reset(text);
    gl_buf_str(text, gl_buf_view(&out));
}
