/* code_sh.c - references in shell text. Each becomes the expansion of a variable, so the shell
 * inserts the value without parsing it. Where the shell does not expand (in single quotes, in a
 * here-document with a quoted word) a reference is an error, because it would silently be text. In
 * $(( )) it is also an error, because some shells run commands contained in such a value. Comments
 * are unchanged.
 *
 * The scanner understands quoting, nesting and here-documents, and nothing else of the language. If
 * it misreads some rare text, a reference is refused, or stays as text in the program; a value is
 * never pasted. */
#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/step_read.h"

enum { NESTED_MAX = 64, HERE_MAX = 16 };

static const char in_quotes[] =
    "the shell expands nothing in single quotes: use double quotes, or a variable of `env`";
static const char in_here[] =
    "the shell expands nothing in a here-document with a quoted word: remove the quotes from the "
    "word, or use a variable of `env`";
static const char in_arithmetic[] =
    "some shells run commands found in a value inside $(( )): compute with expr "
    "\"${...}\" + 1, or in Python";

enum context {
    COMMANDS,   /* at the top, in $( ), in ( ) */
    BACKTICK,   /* ` ` */
    DOUBLE,     /* " " */
    PARAMETER,  /* ${ }, not ours */
    ARITHMETIC, /* $(( )) */
};

struct shell_level {
    enum context context;
    unsigned cases;     /* open `case` ... `esac`: a ) of a pattern closes nothing */
    unsigned parens;    /* open in arithmetic */
    bool quoted;        /* inside double quotes, where single quotes are literal */
    bool wants_command; /* the next word is a command or keyword */
};

struct here {
    gl_str word;
    bool quoted, tabs;
};

struct shell_scan {
    struct gl_step_code *c;
    struct shell_level levels[NESTED_MAX];
    size_t depth; /* of the innermost level */
    struct here here[HERE_MAX];
    size_t here_n;
};

static struct shell_level *top(struct shell_scan *s)
{
    return &s->levels[s->depth];
}

static char at(const struct shell_scan *s, size_t i)
{
    return i < s->c->text.n ? s->c->text.p[i] : 0;
}

/* Too deep to track: stay at this level. */
static void push(struct shell_scan *s, enum context context)
{
    bool quoted = context == DOUBLE || (context == PARAMETER && top(s)->quoted);
    if (s->depth + 1 < NESTED_MAX) {
        s->levels[++s->depth] =
            (struct shell_level){.context = context, .quoted = quoted, .wants_command = true};
    }
}

static void pop(struct shell_scan *s)
{
    s->depth -= s->depth > 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool ends_word(char c)
{
    return c == 0 || is_blank(c) || strchr("\n;&|()<>", c);
}

static size_t put_single(struct shell_scan *s, size_t i)
{
    i = gl_step_code_copy(s->c, i, 1);
    while (i < s->c->text.n && at(s, i) != '\'') {
        i = gl_step_code_put(s->c, i, in_quotes);
    }
    return gl_step_code_copy(s->c, i, i < s->c->text.n);
}

static size_t put_line(struct shell_scan *s, size_t i)
{
    while (i < s->c->text.n && at(s, i) != '\n') {
        i = gl_step_code_copy(s->c, i, 1);
    }
    return i;
}

static bool is_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* `${input.n}`: shell names have no dots, so this is a mistyped root, which the shell would
 * report only when the step runs. (Some Korn shells have such names: write `$${` for them.) */
static void check_name(struct shell_scan *s, size_t i)
{
    static const char *const roots[] = {"steps", "inputs", "job"};
    struct gl_step_code *c = s->c;
    if (at(s, i + 1) != '{' || gl_step_code_is_ref(c->text, i)) {
        return;
    }
    gl_str word = {c->text.p + i + 2, 0};
    while (is_name(at(s, i + 2 + word.n))) {
        word.n++;
    }
    if (at(s, i + 2 + word.n) != '.' || !gl_flow_check_env_name(word)) {
        return;
    }
    struct gl_suggest near;
    gl_suggest_init(&near, word);
    for (size_t k = 0; k < GL_COUNT(roots); k++) {
        gl_suggest_offer(&near, gl_str_of(roots[k]));
    }
    gl_flow_read_error_in(
        c->r, c->n, c->at, c->text, i, GL_REASON_REFERENCE_INVALID,
        "a shell variable has no dot in its name; a reference begins with `steps`, "
        "`inputs` or `job`%s",
        gl_flow_read_suggestion(c->r, &near));
}

/* Here-documents. */

/* `<<` or `<<-` and its word. */
static size_t put_here_word(struct shell_scan *s, size_t i)
{
    struct here h = {0};
    struct gl_buf word = {0};
    char quote = 0;
    i = gl_step_code_copy(s->c, i, 2);
    h.tabs = at(s, i) == '-';
    i = gl_step_code_copy(s->c, i, h.tabs);
    while (is_blank(at(s, i))) {
        i = gl_step_code_copy(s->c, i, 1);
    }
    for (; i < s->c->text.n && (quote ? at(s, i) != '\n' : !ends_word(at(s, i)));
         i = gl_step_code_copy(s->c, i, 1)) {
        char ch = at(s, i);
        if (quote ? ch == quote : ch == '\'' || ch == '"') {
            quote = quote ? 0 : ch;
            h.quoted = true;
        } else if (ch == '\\' && !quote) {
            h.quoted = true;
        } else {
            gl_buf_char(&word, ch);
        }
    }
    h.word = gl_str_dup(s->c->r->a, gl_buf_view(&word));
    gl_buf_done(&word);
    if (s->here_n < HERE_MAX) {
        s->here[s->here_n++] = h;
    }
    return i;
}

static bool is_end_of_here(struct shell_scan *s, const struct here *h, size_t i)
{
    while (h->tabs && at(s, i) == '\t') {
        i++;
    }
    gl_str rest, line = {s->c->text.p + i, s->c->text.n - i};
    return gl_str_eq(gl_str_cut(line, '\n', &rest), h->word);
}

/* From the first byte of the body to after the line that ends it. */
static size_t put_here_body(struct shell_scan *s, const struct here *h, size_t i)
{
    while (i < s->c->text.n && !is_end_of_here(s, h, i)) {
        while (i < s->c->text.n && at(s, i) != '\n') {
            if (!h->quoted && at(s, i) == '$') {
                check_name(s, i);
            }
            i = at(s, i) == '\\' && !h->quoted
                    ? gl_step_code_copy(s->c, i, 2)
                    : gl_step_code_put(s->c, i, h->quoted ? in_here : NULL);
        }
        i = gl_step_code_copy(s->c, i, i < s->c->text.n);
    }
    i = put_line(s, i);
    return gl_step_code_copy(s->c, i, i < s->c->text.n);
}

static size_t put_newline(struct shell_scan *s, size_t i)
{
    i = gl_step_code_copy(s->c, i, 1);
    for (size_t k = 0; k < s->here_n; k++) {
        i = put_here_body(s, &s->here[k], i);
    }
    s->here_n = 0;
    top(s)->wants_command = true;
    return i;
}

/* Commands. */

static bool is_plain(char c)
{
    return !ends_word(c) && !strchr("'\"\\$`#{}", c);
}

/* After these another command follows. */
static const char *const leaders[] = {"if",    "then", "else", "elif", "while",
                                      "until", "do",   "!",    "{",    NULL};

/* A word of plain letters; only `case` and `esac` matter. */
static size_t put_word(struct shell_scan *s, size_t i)
{
    size_t n = 0;
    while (i + n < s->c->text.n && is_plain(at(s, i + n))) {
        n++;
    }
    gl_str word = {s->c->text.p + i, n};
    struct shell_level *l = top(s);
    bool whole = ends_word(at(s, i + n));
    if (l->wants_command && whole && gl_str_is(word, "case")) {
        l->cases++;
    } else if (l->wants_command && whole && gl_str_is(word, "esac")) {
        l->cases -= l->cases > 0;
    }
    l->wants_command = l->wants_command && whole && gl_schema_word(leaders, word) >= 0;
    return gl_step_code_copy(s->c, i, n);
}

static size_t put_closing_paren(struct shell_scan *s, size_t i)
{
    struct shell_level *l = top(s);
    if (l->cases) {
        l->wants_command = true; /* the end of a pattern */
    } else if (l->context == COMMANDS) {
        pop(s);
    }
    return gl_step_code_copy(s->c, i, 1);
}

static bool begins_word(const struct shell_scan *s, size_t i)
{
    return i == 0 || ends_word(at(s, i - 1));
}

/* $( $(( ${ ` and references: treated alike in commands, in double quotes and in parameters. */
static size_t put_expansion(struct shell_scan *s, size_t i)
{
    gl_str rest = {s->c->text.p + i, s->c->text.n - i};
    if (gl_str_starts(rest, GL_S("$(("))) {
        push(s, ARITHMETIC);
        return gl_step_code_copy(s->c, i, 3);
    }
    if (gl_str_starts(rest, GL_S("$("))) {
        push(s, COMMANDS);
        return gl_step_code_copy(s->c, i, 2);
    }
    if (gl_step_code_is_ref(s->c->text, i)) {
        return gl_step_code_put(s->c, i, NULL);
    }
    if (gl_str_starts(rest, GL_S("${")) || gl_str_starts(rest, GL_S("$${"))) {
        check_name(s, i);
        push(s, PARAMETER);
        return rest.p[1] == '{' ? gl_step_code_copy(s->c, i, 2) : gl_step_code_put(s->c, i, NULL);
    }
    return gl_step_code_copy(s->c, i, 1);
}

static size_t put_backtick(struct shell_scan *s, size_t i)
{
    /* A second one closes the first, at any depth. */
    size_t depth = s->depth;
    while (depth > 0 && s->levels[depth].context != BACKTICK) {
        depth--;
    }
    if (depth > 0) {
        s->depth = depth - 1;
    } else {
        push(s, BACKTICK);
    }
    return gl_step_code_copy(s->c, i, 1);
}

static size_t put_command(struct shell_scan *s, size_t i)
{
    char ch = at(s, i);
    struct shell_level *l = top(s);
    gl_str rest = {s->c->text.p + i, s->c->text.n - i};
    if (ch == '\n') {
        return put_newline(s, i);
    }
    if (ch == '#' && begins_word(s, i)) {
        return put_line(s, i);
    }
    if (gl_str_starts(rest, GL_S("<<<"))) {
        return gl_step_code_copy(s->c, i, 3);
    }
    if (gl_str_starts(rest, GL_S("<<"))) {
        return put_here_word(s, i);
    }
    if (ch == '(') {
        push(s, COMMANDS);
        return gl_step_code_copy(s->c, i, 1);
    }
    if (ch == ')') {
        return put_closing_paren(s, i);
    }
    if (is_plain(ch)) {
        return put_word(s, i);
    }
    l->wants_command =
        strchr(";&|", ch) ? true : (is_blank(ch) || ch == '{' || ch == '}') && l->wants_command;
    return gl_step_code_copy(s->c, i, 1);
}

static size_t put_arithmetic(struct shell_scan *s, size_t i)
{
    struct shell_level *l = top(s);
    char ch = at(s, i);
    if (ch == ')' && l->parens == 0) {
        pop(s);
        return gl_step_code_copy(s->c, i, at(s, i + 1) == ')' ? 2 : 1);
    }
    l->parens += ch == '(';
    l->parens -= ch == ')';
    return gl_step_code_put(s->c, i, in_arithmetic);
}

static bool is_in_arithmetic(const struct shell_scan *s)
{
    for (size_t i = 0; i <= s->depth; i++) {
        if (s->levels[i].context == ARITHMETIC) {
            return true;
        }
    }
    return false;
}

static size_t put_next(struct shell_scan *s, size_t i)
{
    char ch = at(s, i);
    struct shell_level *l = top(s);
    bool is_command = l->context == COMMANDS || l->context == BACKTICK;
    if (ch == '\\') {
        l->wants_command = false;
        return gl_step_code_copy(s->c, i, 2);
    }
    if (ch == '`') {
        return put_backtick(s, i);
    }
    if (ch == '$' && is_in_arithmetic(s) && gl_step_code_is_ref(s->c->text, i)) {
        return gl_step_code_put(s->c, i, in_arithmetic);
    }
    if (ch == '$') {
        l->wants_command = false;
        return put_expansion(s, i);
    }
    if (ch == '"') {
        l->wants_command = false;
        if (l->context == DOUBLE) {
            pop(s);
        } else {
            push(s, DOUBLE);
        }
        return gl_step_code_copy(s->c, i, 1);
    }
    if (ch == '\'' && !l->quoted && l->context != ARITHMETIC) {
        l->wants_command = false;
        return put_single(s, i);
    }
    if (l->context == ARITHMETIC) {
        return put_arithmetic(s, i);
    }
    if (l->context == PARAMETER && ch == '}') {
        pop(s);
    }
    return is_command ? put_command(s, i) : gl_step_code_copy(s->c, i, 1);
}

gl_str gl_code_sh(struct gl_step_code *c)
{
    struct shell_scan s = {.c = c, .levels[0] = {.context = COMMANDS, .wants_command = true}};
    size_t i = 0;
    while (i < c->text.n) {
        size_t next = put_next(&s, i);
        GL_ASSERT(next > i);
        i = next;
    }
    return gl_buf_view(&c->out);
}
