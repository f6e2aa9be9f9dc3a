/* json_parse.c - the parser: one loop over a small state machine (enum expect), without recursion,
 * so that nesting cannot exhaust the stack. Nodes are collected in a temporary array and copied to
 * the arena at the end. */
#include "base/json.h"

#include <stdio.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"

enum {
    NODES_AT_HAND = 64, /* enough for most records: reading one does not use the heap */
    KEYS_DIRECT_MAX = 32,
};

struct reader {
    const char *text;
    size_t n, at;
    gl_str source;
    const uint32_t *places; /* NULL: the source is the text */
    size_t places_n;
    struct gl_json_node *nodes; /* `at_hand`, or on the heap */
    size_t nodes_n, nodes_cap;
    uint32_t open[GL_JSON_DEPTH_MAX]; /* the containers around the current value */
    unsigned depth, depth_seen;
    struct gl_why *why;
    struct gl_json_node at_hand[NODES_AT_HAND];
};

/* What the grammar allows next. */
enum expect {
    EXPECT_VALUE,
    EXPECT_ELEMENT_OR_END, /* after '[' */
    EXPECT_KEY,
    EXPECT_KEY_OR_END, /* after '{' */
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING,
};

/* An error at byte `at` of the text, which belongs to node number `node`. */
static int fail(const struct reader *r, int code, size_t at, size_t node, const char *text)
{
    if (r->places && r->places_n) {
        at = r->places[node < r->places_n ? node : r->places_n - 1];
    }
    unsigned line, column;
    gl_json_place_in(r->source, at, &line, &column);
    return gl_why(r->why, code, "line %u, column %u (byte %zu): %s", line, column, at, text);
}

static int fail_here(const struct reader *r, const char *text)
{
    return fail(r, GL_E_INVALID, r->at, r->nodes_n, text);
}

/* Add a node for the value that starts here; NULL: too many. */
static struct gl_json_node *node_add(struct reader *r, enum gl_json_type type)
{
    if (r->nodes_n == r->nodes_cap) {
        if (r->nodes_n >= GL_JSON_NODES_MAX) {
            return NULL;
        }
        size_t cap = r->nodes_cap * 2;
        bool first = r->nodes == r->at_hand;
        r->nodes = gl_mem_realloc(first ? NULL : r->nodes, cap * sizeof(r->nodes[0]));
        if (first) {
            memcpy(r->nodes, r->at_hand, sizeof(r->at_hand));
        }
        r->nodes_cap = cap;
    }
    struct gl_json_node *node = &r->nodes[r->nodes_n++];
    *node = (struct gl_json_node){
        .start = (uint32_t)r->at,
        .at = r->places ? r->places[r->nodes_n - 1] : (uint32_t)r->at,
        .next = (uint32_t)r->nodes_n,
        .type = (uint8_t)type,
    };
    return node;
}

static int too_many_nodes(const struct reader *r)
{
    return fail(r, GL_E_LIMIT, r->at, r->nodes_n, "the document has too many values");
}

static void skip_space(struct reader *r)
{
    while (r->at < r->n) {
        char c = r->text[r->at];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            break;
        }
        r->at++;
    }
}

/* Strings. */

/* Is any of these eight bytes a quote, a backslash, a control character or not ASCII? */
static bool is_special(uint64_t w)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
    uint64_t hit = (w - ones * 0x20) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | w;
    return (hit & highs) != 0;
}

static bool is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\'; /* signed: non-ASCII is negative */
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of four hex digits at `p`; -1 if they are not hex digits. */
static int32_t hex4(const char *p, size_t left)
{
    int32_t v = 0;
    if (left < 4) {
        return -1;
    }
    for (unsigned i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);
        if (d < 0) {
            return -1;
        }
        v = v * 16 + d;
    }
    return v;
}

/* Validate the escape at r->at (a backslash), and skip it. */
static int scan_escape(struct reader *r)
{
    const char *p = r->text + r->at;
    size_t left = r->n - r->at;
    if (left < 2) {
        return fail_here(r, "the document ends inside a string");
    }
    if (p[1] != 'u') {
        if (!p[1] || !strchr("\"\\/bfnrt", p[1])) {
            return fail_here(r, "a backslash may only be followed by one of \" \\ / b f n r t u");
        }
        r->at += 2;
        return 0;
    }
    int32_t unit = hex4(p + 2, left - 2);
    if (unit < 0) {
        return fail_here(r, "\\u must be followed by four hex digits");
    }
    r->at += 6;
    if (unit < 0xd800 || unit > 0xdfff) {
        return 0;
    }
    int32_t low = left >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, left - 8) : -1;
    if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff) {
        r->at -= 6;
        return fail_here(r, "half of a surrogate pair");
    }
    r->at += 6;
    return 0;
}

/* Handle a byte of a string that is not plain ASCII text, and skip it. */
static int scan_special(struct reader *r, bool *escaped)
{
    unsigned char c = (unsigned char)r->text[r->at];
    if (c == '\\') {
        *escaped = true;
        return scan_escape(r);
    }
    if (c < 0x20) {
        return fail_here(r, c == '\n' ? "a line break inside a string; write it as \\n"
                                      : "a control character inside a string; write it as \\u00XX");
    }
    size_t n = gl_str_utf8_at((gl_str){r->text + r->at, r->n - r->at});
    if (n == 0) {
        return fail_here(r, "not valid UTF-8");
    }
    r->at += n;
    return 0;
}

static int read_string(struct reader *r, bool is_key)
{
    struct gl_json_node *node = node_add(r, GL_JSON_STRING);
    if (!node) {
        return too_many_nodes(r);
    }
    bool escaped = false;
    r->at++;
    for (;;) {
        uint64_t word;
        while (r->n - r->at >= 8 && (memcpy(&word, r->text + r->at, 8), !is_special(word))) {
            r->at += 8;
        }
        while (r->at < r->n && is_plain(r->text[r->at])) {
            r->at++;
        }
        if (r->at == r->n) {
            return fail_here(r, "the document ends inside a string");
        }
        if (r->text[r->at] == '"') {
            break;
        }
        int rc = scan_special(r, &escaped);
        if (rc) {
            return rc;
        }
    }
    r->at++;
    node->end = (uint32_t)r->at;
    node->escaped = escaped;
    node->is_key = is_key;
    return 0;
}

/* Numbers and words. */

/* Would the number overflow a double? `magnitude` is the power of ten of its first significant
 * digit. */
static bool is_infinite(gl_str number, int64_t magnitude)
{
    if (magnitude != 308) {
        return magnitude > 308;
    }
    /* The smallest number that rounds to infinity starts with these digits. */
    static const char bound[] = "179769313486231580793728971405303415";
    size_t k = 0;
    bool started = false;
    for (size_t i = 0; i < number.n && number.p[i] != 'e' && number.p[i] != 'E'; i++) {
        char c = number.p[i];
        started = started || (c >= '1' && c <= '9');
        if (!started || c == '.') {
            continue;
        }
        if (k == sizeof(bound) - 1 || c != bound[k]) {
            return k < sizeof(bound) - 1 && c > bound[k];
        }
        k++;
    }
    return false; /* fewer digits, all equal: below the bound */
}

/* Skip digits; false if there are none. */
static bool skip_digits(struct reader *r)
{
    size_t from = r->at;
    while (r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9') {
        r->at++;
    }
    return r->at > from;
}

/* The power of ten of the first significant digit; INT64_MIN for zero. */
static int64_t magnitude_of(gl_str number)
{
    int64_t before = 0, zeros = 0, exponent = 0;
    bool point = false, started = false;
    size_t i = number.p[0] == '-' ? 1 : 0;
    for (; i < number.n && (number.p[i] | 0x20) != 'e'; i++) {
        if (number.p[i] == '.') {
            point = true;
            continue;
        }
        started = started || number.p[i] != '0';
        before += started && !point;
        zeros += !started && point;
    }
    if (!started) {
        return INT64_MIN;
    }
    if (i < number.n) {
        gl_str digits = {number.p + i + 1, number.n - i - 1};
        if (digits.p[0] == '+') {
            digits.p++;
            digits.n--;
        }
        bool negative = digits.p[0] == '-';
        if (!gl_str_i64(digits, &exponent) || exponent > INT32_MAX || exponent < INT32_MIN) {
            exponent = negative ? INT32_MIN : INT32_MAX;
        }
    }
    return (before ? before - 1 : -zeros - 1) + exponent;
}

static int read_number(struct reader *r)
{
    size_t start = r->at;
    struct gl_json_node *node = node_add(r, GL_JSON_NUMBER);
    if (!node) {
        return too_many_nodes(r);
    }
    if (r->text[r->at] == '-') {
        r->at++;
    }
    size_t first = r->at;
    if (!skip_digits(r)) {
        return fail_here(r, "a digit must follow the minus sign");
    }
    if (r->text[first] == '0' && r->at - first > 1) {
        return fail(r, GL_E_INVALID, start, r->nodes_n - 1, "a number must not start with 0");
    }
    bool plain = true;
    if (r->at < r->n && r->text[r->at] == '.') {
        plain = false;
        r->at++;
        if (!skip_digits(r)) {
            return fail_here(r, "a digit must follow the decimal point");
        }
    }
    if (r->at < r->n && (r->text[r->at] | 0x20) == 'e') {
        plain = false;
        r->at++;
        if (r->at < r->n && (r->text[r->at] == '+' || r->text[r->at] == '-')) {
            r->at++;
        }
        if (!skip_digits(r)) {
            return fail_here(r, "a digit must follow the exponent");
        }
    }
    node->end = (uint32_t)r->at;
    gl_str number = {r->text + start, r->at - start};
    if ((!plain || number.n > 300) && is_infinite(number, magnitude_of(number))) {
        return fail(r, GL_E_INVALID, start, r->nodes_n - 1, "the number is too large");
    }
    return 0;
}

static int read_word(struct reader *r)
{
    static const struct {
        gl_str word;
        enum gl_json_type type;
    } words[] = {
        {{"null", 4}, GL_JSON_NULL}, {{"true", 4}, GL_JSON_TRUE}, {{"false", 5}, GL_JSON_FALSE}};
    gl_str rest = {r->text + r->at, r->n - r->at};
    for (unsigned i = 0; i < GL_COUNT(words); i++) {
        if (gl_str_starts(rest, words[i].word)) {
            struct gl_json_node *node = node_add(r, words[i].type);
            if (!node) {
                return too_many_nodes(r);
            }
            r->at += words[i].word.n;
            node->end = (uint32_t)r->at;
            return 0;
        }
    }
    switch (rest.p[0]) {
    case '\'':
        return fail_here(r, "JSON text must be in double quotes, not single quotes");
    case '/':
    case '#':
        return fail_here(r, "JSON has no comments");
    case ']':
    case '}':
        return fail_here(r, "a value is missing here (an extra comma?)");
    default:
        return fail_here(r,
                         "expected a value: an object, an array, text in double quotes, a number, "
                         "true, false or null");
    }
}

/* Containers. */

static gl_str key_text(const struct reader *r, const struct gl_json_node *key, struct gl_arena *a)
{
    gl_str raw = {r->text + key->start + 1, key->end - key->start - 2};
    return key->escaped ? gl_json_unescape(raw, a) : raw;
}

static int duplicate_key(const struct reader *r, const struct gl_json_node *again, gl_str key)
{
    char text[160];
    (void)snprintf(text, sizeof(text), "the key \"%.*s\" appears twice in this object",
                   (int)(key.n < 100 ? key.n : 100), key.p);
    return fail(r, GL_E_INVALID, again->start, (size_t)(again - r->nodes), text);
}

/* Few keys: compare each with those before it, but only if its one-byte summary has been seen. */
static int check_keys_direct(const struct reader *r, const struct gl_json_node *object,
                             struct gl_arena *scratch)
{
    gl_str keys[KEYS_DIRECT_MAX];
    uint64_t seen = 0;
    const struct gl_json_node *key = object + 1;
    for (uint32_t i = 0; i < object->count; i++, key = &r->nodes[key[1].next]) {
        gl_str k = keys[i] = key_text(r, key, scratch);
        unsigned summary =
            k.n ? (unsigned)k.n * 7 + (unsigned char)k.p[0] * 31u + (unsigned char)k.p[k.n - 1] * 5u
                : 0;
        uint64_t bit = (uint64_t)1 << (summary & 63);
        for (uint32_t m = 0; (seen & bit) && m < i; m++) {
            if (gl_str_eq(keys[m], k)) {
                return duplicate_key(r, key, k);
            }
        }
        seen |= bit;
    }
    return 0;
}

struct sort_key {
    uint64_t hash;
    gl_str text;
    uint32_t node;
};

static bool sorts_before(const struct sort_key *a, const struct sort_key *b)
{
    if (a->hash != b->hash) {
        return a->hash < b->hash;
    }
    int c = gl_str_cmp(a->text, b->text);
    return c ? c < 0 : a->node < b->node;
}

/* A bottom-up merge sort: n log n for any input, so that no one can choose keys that collide.
 * Returns the array that holds the result. */
static struct sort_key *sort_keys(struct sort_key *from, struct sort_key *to, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n;
            size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
            for (size_t out = lo, i = lo, k = mid; out < hi; out++) {
                bool left = k == hi || (i < mid && !sorts_before(&from[k], &from[i]));
                to[out] = left ? from[i++] : from[k++];
            }
        }
        struct sort_key *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

static int check_keys_sorted(const struct reader *r, const struct gl_json_node *object,
                             struct gl_arena *scratch)
{
    size_t n = object->count;
    struct sort_key *keys = GL_NEW_ARRAY(scratch, struct sort_key, n);
    struct sort_key *spare = GL_NEW_ARRAY(scratch, struct sort_key, n);
    const struct gl_json_node *key = object + 1;
    for (size_t i = 0; i < n; i++, key = &r->nodes[key[1].next]) {
        gl_str text = key_text(r, key, scratch);
        keys[i] = (struct sort_key){gl_str_hash(text), text, (uint32_t)(key - r->nodes)};
    }
    keys = sort_keys(keys, spare, n);
    const struct sort_key *first = NULL; /* the first repetition in the text */
    for (size_t i = 1; i < n; i++) {
        bool same = keys[i].hash == keys[i - 1].hash && gl_str_eq(keys[i].text, keys[i - 1].text);
        if (same && (!first || keys[i].node < first->node)) {
            first = &keys[i];
        }
    }
    return first ? duplicate_key(r, &r->nodes[first->node], first->text) : 0;
}

static int check_keys(const struct reader *r, const struct gl_json_node *object)
{
    struct gl_arena scratch = {0};
    int rc = object->count <= KEYS_DIRECT_MAX ? check_keys_direct(r, object, &scratch)
                                              : check_keys_sorted(r, object, &scratch);
    gl_arena_done(&scratch);
    return rc;
}

static int open_container(struct reader *r, enum gl_json_type type, enum expect *ret_expect)
{
    if (r->depth == GL_JSON_DEPTH_MAX) {
        return fail(r, GL_E_LIMIT, r->at, r->nodes_n, "the document is nested too deeply");
    }
    if (!node_add(r, type)) {
        return too_many_nodes(r);
    }
    r->open[r->depth++] = (uint32_t)(r->nodes_n - 1);
    r->depth_seen = r->depth > r->depth_seen ? r->depth : r->depth_seen;
    r->at++;
    *ret_expect = type == GL_JSON_OBJECT ? EXPECT_KEY_OR_END : EXPECT_ELEMENT_OR_END;
    return 0;
}

static int close_container(struct reader *r, enum expect *ret_expect)
{
    struct gl_json_node *node = &r->nodes[r->open[--r->depth]];
    r->at++;
    node->end = (uint32_t)r->at;
    node->next = (uint32_t)r->nodes_n;
    *ret_expect = r->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
    return node->type == GL_JSON_OBJECT && node->count > 1 ? check_keys(r, node) : 0;
}

static int read_value(struct reader *r, enum expect *ret_expect)
{
    if (r->depth) {
        struct gl_json_node *around = &r->nodes[r->open[r->depth - 1]];
        around->count += around->type == GL_JSON_ARRAY;
    }
    char c = r->text[r->at];
    if (c == '{' || c == '[') {
        return open_container(r, c == '{' ? GL_JSON_OBJECT : GL_JSON_ARRAY, ret_expect);
    }
    *ret_expect = r->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
    if (c == '"') {
        return read_string(r, false);
    }
    return c == '-' || (c >= '0' && c <= '9') ? read_number(r) : read_word(r);
}

static int read_key(struct reader *r, enum expect *ret_expect)
{
    if (r->text[r->at] != '"') {
        return fail_here(r, r->text[r->at] == '}' ? "a key is missing here (an extra comma?)"
                                                  : "expected a key: text in double quotes");
    }
    r->nodes[r->open[r->depth - 1]].count++;
    int rc = read_string(r, true);
    if (rc) {
        return rc;
    }
    skip_space(r);
    if (r->at == r->n || r->text[r->at] != ':') {
        return fail_here(r, "expected a colon after the key");
    }
    r->at++;
    *ret_expect = EXPECT_VALUE;
    return 0;
}

static int read_comma(struct reader *r, enum expect *ret_expect)
{
    bool in_object = r->nodes[r->open[r->depth - 1]].type == GL_JSON_OBJECT;
    char c = r->text[r->at];
    if (c == ',') {
        r->at++;
        *ret_expect = in_object ? EXPECT_KEY : EXPECT_VALUE;
        return 0;
    }
    if (c == (in_object ? '}' : ']')) {
        return close_container(r, ret_expect);
    }
    return fail_here(r, in_object ? "expected a comma or } here" : "expected a comma or ] here");
}

static int read_document(struct reader *r)
{
    enum expect expect = EXPECT_VALUE;
    for (;;) {
        skip_space(r);
        if (r->at == r->n) {
            if (expect == EXPECT_NOTHING) {
                return 0;
            }
            return fail_here(r,
                             r->nodes_n ? "the document ends too early" : "the document is empty");
        }
        char c = r->text[r->at];
        int rc;
        if (expect == EXPECT_NOTHING) {
            return fail_here(r, "there is more text after the end of the document");
        } else if ((expect == EXPECT_ELEMENT_OR_END && c == ']') ||
                   (expect == EXPECT_KEY_OR_END && c == '}')) {
            rc = close_container(r, &expect);
        } else if (expect == EXPECT_COMMA_OR_END) {
            rc = read_comma(r, &expect);
        } else if (expect == EXPECT_KEY || expect == EXPECT_KEY_OR_END) {
            rc = read_key(r, &expect);
        } else {
            rc = read_value(r, &expect);
        }
        if (rc) {
            return rc;
        }
    }
}

int gl_json_parse_made(struct gl_json *ret, gl_str text, gl_str source, const uint32_t *places,
                       size_t places_n, struct gl_arena *a, struct gl_why *reterr_why)
{
    GL_ASSERT(text.n < UINT32_MAX);
    struct reader r; /* not zeroed: `at_hand` is large */
    r.text = text.p;
    r.n = text.n;
    r.at = 0;
    r.source = source;
    r.places = places;
    r.places_n = places_n;
    r.nodes = r.at_hand;
    r.nodes_n = 0;
    r.nodes_cap = NODES_AT_HAND;
    r.depth = r.depth_seen = 0;
    r.why = reterr_why;

    int rc = read_document(&r);
    if (rc == 0) {
        *ret = (struct gl_json){
            .text = text,
            .source = source,
            .nodes = gl_arena_copy(a, r.nodes, r.nodes_n * sizeof(r.nodes[0])),
            .nodes_n = r.nodes_n,
            .depth = r.depth_seen,
        };
    }
    if (r.nodes != r.at_hand) {
        gl_mem_free(r.nodes);
    }
    return rc;
}

int gl_json_parse(struct gl_json *ret, gl_str text, size_t bytes_max, struct gl_arena *a,
                  struct gl_why *reterr_why)
{
    if (text.n > bytes_max || text.n >= UINT32_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT, "the document has %zu bytes; at most %zu are allowed",
                      text.n, bytes_max);
    }
    return gl_json_parse_made(ret, text, text, NULL, 0, a, reterr_why);
}
