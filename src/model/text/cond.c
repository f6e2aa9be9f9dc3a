#include "model/text/cond.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "model/text/cond_tree.h"

/* One token of lookahead. */
enum kind { END, WORD, NUMBER, TEXT, REF, SIGN };

struct cond_parser {
    gl_str text;
    size_t at;      /* after the token */
    size_t from;    /* where the token begins */
    enum kind kind; /* of the token */
    unsigned depth;
    struct gl_arena *a;
    size_t *ret_at;
    struct gl_why *why;
    int rc; /* the first error; after it nothing is read */
};

static const char *const words[] = {"and",    "or",   "not",   "in",   "contains",
                                    "exists", "true", "false", "null", NULL};

static gl_str token(const struct cond_parser *p)
{
    return (gl_str){p->text.p + p->from, p->at - p->from};
}

static void fail(struct cond_parser *p, size_t at, int code, const char *what)
{
    if (!p->rc) {
        p->rc = gl_why(p->why, code, "%s", what);
        *p->ret_at = at;
        p->kind = END;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes more than a number has, so that 1.2.3 is one bad number and not two. */
static bool is_in_number(char c)
{
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
}

static char peek(const struct cond_parser *p, size_t ahead)
{
    return p->at + ahead < p->text.n ? p->text.p[p->at + ahead] : 0;
}

static void eat_quoted(struct cond_parser *p)
{
    char quote = p->text.p[p->at++];
    while (p->at < p->text.n && p->text.p[p->at] != quote) {
        p->at += p->text.p[p->at] == '\\' ? 2 : 1;
    }
    if (p->at >= p->text.n) {
        p->at = p->text.n;
        fail(p, p->from, GL_R_QUOTE_OPEN, "a quote is not closed");
        return;
    }
    p->at++;
    p->kind = TEXT;
}

static void eat_ref(struct cond_parser *p)
{
    size_t end;
    if (!gl_ref_end(p->text, p->at, &end)) {
        fail(p, p->from, GL_R_REFERENCE_OPEN,
             "`${` has no end: a reference ends with `}` in the same line");
        return;
    }
    p->at = end;
    p->kind = REF;
}

/* Operators of other languages, and what to write instead. */
static void eat_sign(struct cond_parser *p)
{
    static const struct {
        const char *sign, *hint;
    } signs[] = {
        {"==", NULL},
        {"!=", NULL},
        {"<=", NULL},
        {">=", NULL},
        {"&&", "write `and` instead of `&&`"},
        {"||", "write `or` instead of `||`"},
        {"=", "write `==` to compare"},
        {"!", "write `not` instead of `!`"},
        {"<", NULL},
        {">", NULL},
        {"(", NULL},
        {")", NULL},
        {"[", NULL},
        {"]", NULL},
        {",", NULL},
        {"$", "a reference is written `${...}`"},
    };
    gl_str rest = {p->text.p + p->at, p->text.n - p->at};
    for (size_t i = 0; i < GL_COUNT(signs); i++) {
        if (gl_str_starts(rest, gl_str_of(signs[i].sign))) {
            p->at += strlen(signs[i].sign);
            p->kind = SIGN;
            if (signs[i].hint) {
                fail(p, p->from, GL_R_FOREIGN_SIGN, signs[i].hint);
            }
            return;
        }
    }
    fail(p, p->from, GL_R_CHARACTER_INVALID, "this character has no meaning in a condition");
}

static void next(struct cond_parser *p)
{
    if (p->rc) {
        return;
    }
    while (is_space(peek(p, 0))) {
        p->at++;
    }
    p->from = p->at;
    char c = peek(p, 0);
    if (p->at == p->text.n) {
        p->kind = END;
    } else if (c == '"' || c == '\'') {
        eat_quoted(p);
    } else if (c == '$' && peek(p, 1) == '{') {
        eat_ref(p);
    } else if (is_letter(c)) {
        while (is_letter(peek(p, 0)) || is_digit(peek(p, 0)) || peek(p, 0) == '.' ||
               peek(p, 0) == '-') {
            p->at++;
        }
        p->kind = WORD;
    } else if (is_digit(c) || (c == '-' && is_digit(peek(p, 1)))) {
        while (is_in_number(peek(p, 0))) {
            p->at++;
        }
        p->kind = NUMBER;
    } else {
        eat_sign(p);
    }
}

static bool is_token(const struct cond_parser *p, enum kind kind, const char *text)
{
    return !p->rc && p->kind == kind && gl_str_is(token(p), text);
}

static bool take(struct cond_parser *p, enum kind kind, const char *text)
{
    if (!is_token(p, kind, text)) {
        return false;
    }
    next(p);
    return true;
}

static bool enter(struct cond_parser *p)
{
    if (++p->depth > GL_COND_DEPTH_MAX) {
        fail(p, p->from, GL_R_CONDITION_TOO_DEEP, "the condition is nested too deeply");
    }
    return !p->rc;
}

/* Values. */

static void set_literal(struct cond_parser *p, struct gl_cond_value *v, gl_str json)
{
    struct gl_why why;
    if (gl_json_parse(&v->literal, json, GL_COND_BYTES_MAX * 8, p->a, &why)) {
        fail(p, p->from, GL_R_NUMBER_INVALID, "this is not a valid JSON number");
    }
}

/* The text between the quotes: \\ \" \' \n \t, and `$${` for `${`. */
static void read_text(struct cond_parser *p, struct gl_cond_value *v)
{
    gl_str in = {p->text.p + p->from + 1, p->at - p->from - 2};
    struct gl_buf plain = {0}, json = {0};
    if (gl_ref_has(in)) {
        fail(p, p->from, GL_R_QUOTED_REFERENCE,
             "in quotes this is plain text: write a reference without quotes (for a "
             "literal `${` write `$${`)");
    }
    for (size_t i = 0; i < in.n && !p->rc; i++) {
        char c = in.p[i];
        if (c == '\\') {
            c = in.p[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
            if (!c || !strchr("\\\"'\n\t", c)) {
                fail(p, p->from, GL_R_ESCAPE_INVALID,
                     "after a backslash, only \\, a quote, n or t is allowed");
            }
        }
        gl_buf_char(&plain, c);
    }
    if (!p->rc) {
        struct gl_jw w;
        gl_jw_init(&w, &json);
        gl_jw_str(&w, gl_ref_literal(gl_buf_view(&plain), p->a));
        set_literal(p, v, gl_str_dup(p->a, gl_buf_view(&json)));
    }
    gl_buf_done(&plain);
    gl_buf_done(&json);
}

static void read_ref(struct cond_parser *p, struct gl_cond_value *v)
{
    gl_str inside = {p->text.p + p->from + 2, p->at - p->from - 3};
    struct gl_why why;
    v->is_ref = true;
    if (gl_ref_parse(inside, p->a, &v->ref, &why)) {
        fail(p, p->from, gl_why_whole(&why), why.text);
    }
}

static void unknown_word(struct cond_parser *p)
{
    gl_str word = token(p);
    struct gl_suggest near;
    gl_suggest_init(&near, word);
    for (unsigned i = 0; words[i]; i++) {
        gl_suggest_offer(&near, gl_str_of(words[i]));
    }
    word.n = word.n < 60 ? word.n : 60;
    bool is_path = gl_str_starts(word, GL_S("steps.")) || gl_str_starts(word, GL_S("inputs.")) ||
                   gl_str_starts(word, GL_S("job."));
    gl_str what = is_path ? gl_str_fmt(p->a, "write `${%.*s}` for a reference", GL_STR_ARG(word))
                  : near.best.n
                      ? gl_str_fmt(p->a, "expected a value, not `%.*s`; did you mean `%.*s`?",
                                   GL_STR_ARG(word), GL_STR_ARG(near.best))
                      : gl_str_fmt(p->a, "expected a value, not `%.*s`; put text in quotes",
                                   GL_STR_ARG(word));
    fail(p, p->from, GL_R_BARE_WORD, what.p);
}

static void read_value(struct cond_parser *p, struct gl_cond_value *v);

static bool has_refs(const struct gl_cond_value *v)
{
    return v->is_ref || v->items;
}

static void read_list(struct cond_parser *p, struct gl_cond_value *v)
{
    size_t from = p->from, cap = 4, n = 0;
    bool refs = false;
    struct gl_cond_value *items = GL_NEW_ARRAY(p->a, struct gl_cond_value, cap);
    next(p);
    while (!p->rc && !is_token(p, SIGN, "]")) {
        if (n == cap) {
            struct gl_cond_value *more = GL_NEW_ARRAY(p->a, struct gl_cond_value, cap * 2);
            memcpy(more, items, n * sizeof(items[0]));
            items = more;
            cap *= 2;
        }
        read_value(p, &items[n]);
        refs = refs || has_refs(&items[n]);
        n++;
        if (!take(p, SIGN, ",") && !is_token(p, SIGN, "]")) {
            fail(p, p->from, GL_R_LIST_OPEN, "expected `,` or `]` in a list");
        }
    }
    if (p->rc || refs) {
        v->items = items;
        v->items_n = n;
        return;
    }
    struct gl_buf json = {0};
    gl_buf_char(&json, '[');
    for (size_t i = 0; i < n; i++) {
        gl_buf_c(&json, i ? "," : "");
        gl_buf_str(&json, items[i].literal.text);
    }
    gl_buf_char(&json, ']');
    p->from = from;
    set_literal(p, v, gl_str_dup(p->a, gl_buf_view(&json)));
    gl_buf_done(&json);
}

static void read_value(struct cond_parser *p, struct gl_cond_value *v)
{
    size_t from = p->from;
    if (!enter(p)) {
        return;
    }
    gl_str word = token(p);
    bool is_constant =
        gl_str_is(word, "true") || gl_str_is(word, "false") || gl_str_is(word, "null");
    if (p->kind == REF) {
        read_ref(p, v);
    } else if (p->kind == TEXT) {
        read_text(p, v);
    } else if (p->kind == NUMBER || (p->kind == WORD && is_constant)) {
        set_literal(p, v, word);
    } else if (is_token(p, SIGN, "[")) {
        read_list(p, v);
    } else if (p->kind == WORD && gl_schema_word(words, word) < 0) {
        unknown_word(p);
    } else {
        fail(p, p->from, p->kind == END ? GL_R_CONDITION_ENDS : GL_R_VALUE_EXPECTED,
             p->kind == END ? "the condition ends where a value is expected"
                            : "expected a value: a reference, text in quotes, a number, true, "
                              "false, null or a list");
    }
    v->text = (gl_str){p->text.p + from, p->at - from};
    next(p);
    p->depth--;
}

/* Conditions. */

static struct gl_cond *read_or(struct cond_parser *p);

static struct gl_cond *new_cond(struct cond_parser *p, enum gl_cond_op op)
{
    struct gl_cond *c = GL_NEW(p->a, struct gl_cond);
    c->op = op;
    return c;
}

static const struct gl_cond_value *new_value(struct cond_parser *p)
{
    struct gl_cond_value *v = GL_NEW(p->a, struct gl_cond_value);
    read_value(p, v);
    return v;
}

static bool take_operator(struct cond_parser *p, enum gl_cond_op *ret)
{
    static const struct {
        const char *text;
        enum kind kind;
        enum gl_cond_op op;
    } operators[] = {
        {"==", SIGN, GL_COND_EQ}, {"!=", SIGN, GL_COND_NE},
        {"<", SIGN, GL_COND_LT},  {"<=", SIGN, GL_COND_LE},
        {">", SIGN, GL_COND_GT},  {">=", SIGN, GL_COND_GE},
        {"in", WORD, GL_COND_IN}, {"contains", WORD, GL_COND_CONTAINS},
    };
    for (size_t i = 0; i < GL_COUNT(operators); i++) {
        if (take(p, operators[i].kind, operators[i].text)) {
            *ret = operators[i].op;
            return true;
        }
    }
    return false;
}

static struct gl_cond *read_test(struct cond_parser *p)
{
    struct gl_cond *c = new_cond(p, GL_COND_TRUTH);
    if (take(p, SIGN, "(")) {
        struct gl_cond *inner = read_or(p);
        if (!take(p, SIGN, ")")) {
            fail(p, p->from, GL_R_PAREN_OPEN, "expected `)`");
        }
        return inner;
    }
    if (take(p, WORD, "exists")) {
        if (p->kind != REF) {
            fail(p, p->from, GL_R_EXISTS_OPERAND, "`exists` takes a reference: ${...}");
        }
        c->op = GL_COND_EXISTS;
        c->left = new_value(p);
        return c;
    }
    c->left = new_value(p);
    if (take_operator(p, &c->op)) {
        c->right = new_value(p);
    } else if (is_token(p, WORD, "not")) {
        fail(p, p->from, GL_R_NOT_MISPLACED, "write `not` before the whole test: not x in [...]");
    }
    return c;
}

static struct gl_cond *read_not(struct cond_parser *p)
{
    struct gl_cond *ret = NULL;
    if (!enter(p)) {
        return NULL;
    }
    if (take(p, WORD, "not")) {
        struct gl_cond *c = new_cond(p, GL_COND_NOT);
        c->first = read_not(p);
        ret = c;
    } else {
        ret = read_test(p);
    }
    p->depth--;
    return ret;
}

/* `and` and `or` hold a list of parts, so a long chain does not add depth. */
static struct gl_cond *read_chain(struct cond_parser *p, const char *word, enum gl_cond_op op,
                                  struct gl_cond *(*read_part)(struct cond_parser *p))
{
    struct gl_cond *first = read_part(p), *last = first, *all = NULL;
    while (take(p, WORD, word)) {
        if (!all) {
            all = new_cond(p, op);
            all->first = first;
        }
        struct gl_cond *part = read_part(p);
        if (p->rc) {
            return NULL;
        }
        last->next = part;
        last = part;
    }
    return all ? all : first;
}

static struct gl_cond *read_and(struct cond_parser *p)
{
    return read_chain(p, "and", GL_COND_AND, read_not);
}

static struct gl_cond *read_or(struct cond_parser *p)
{
    return read_chain(p, "or", GL_COND_OR, read_and);
}

int gl_cond_parse(gl_str text, struct gl_arena *a, const struct gl_cond **ret, size_t *ret_at,
                  struct gl_why *reterr_why)
{
    struct cond_parser p = {
        .text = text.n ? text : GL_S(""), .a = a, .ret_at = ret_at, .why = reterr_why};
    if (text.n > GL_COND_BYTES_MAX) {
        *ret_at = 0;
        return gl_why(reterr_why, GL_R_CONDITION_TOO_LARGE, "a condition can have at most %d bytes",
                      GL_COND_BYTES_MAX);
    }
    next(&p);
    const struct gl_cond *c = read_or(&p);
    if (!p.rc && p.kind != END) {
        bool closing = is_token(&p, SIGN, ")");
        fail(&p, p.from, closing ? GL_R_PAREN_EXTRA : GL_R_OPERATOR_EXPECTED,
             closing ? "there is no `(` for this `)`"
                     : "expected `and`, `or` or a comparison (== != < <= > >= in contains) here");
    }
    if (p.rc) {
        return p.rc;
    }
    *ret = c;
    return 0;
}

/* References. */

static void value_refs(const struct gl_cond_value *v,
                       void (*each)(void *owner, const struct gl_ref *ref), void *owner)
{
    if (v && v->is_ref) {
        each(owner, &v->ref);
    }
    for (size_t i = 0; v && i < v->items_n; i++) {
        value_refs(&v->items[i], each, owner);
    }
}

void gl_cond_refs(const struct gl_cond *c, void (*each)(void *owner, const struct gl_ref *ref),
                  void *owner)
{
    for (const struct gl_cond *part = c->first; part; part = part->next) {
        gl_cond_refs(part, each, owner);
    }
    value_refs(c->left, each, owner);
    value_refs(c->right, each, owner);
}
