/* code_python.c - references in a Python program. Each becomes an expression that reads its value
 * from the input file. In a string it would be plain text, so it is an error there; comments are
 * unchanged. Only needs to know where strings and comments begin and end in Python. */
#include "model/flow/step_read.h"

static const char in_string[] =
    "in a Python string this is plain text: move it out of the quotes, like "
    "\"rows: \" + str(${...}) (for a literal `${` write `$${`)";

static bool is_at(gl_str text, size_t i, const char *what)
{
    return gl_str_starts((gl_str){text.p + i, text.n - i}, gl_str_of(what));
}

/* From the opening quote to after the closing one. A prefix such as r or f makes no difference: a
 * backslash keeps a quote from ending a raw string, too. */
static size_t put_string(struct gl_step_code *c, size_t i)
{
    char quote = c->text.p[i];
    char three[] = {quote, quote, quote, 0};
    bool is_long = is_at(c->text, i, three);
    i = gl_step_code_copy(c, i, is_long ? 3 : 1);
    while (i < c->text.n) {
        char ch = c->text.p[i];
        if (ch == '\\') {
            i = gl_step_code_copy(c, i, 2);
        } else if (is_long ? is_at(c->text, i, three) : ch == quote || ch == '\n') {
            return gl_step_code_copy(c, i, is_long ? 3 : 1);
        } else {
            i = gl_step_code_put(c, i, in_string);
        }
    }
    return i;
}

static size_t put_comment(struct gl_step_code *c, size_t i)
{
    const char *end = memchr(c->text.p + i, '\n', c->text.n - i);
    return gl_step_code_copy(c, i, end ? (size_t)(end - c->text.p) - i : c->text.n - i);
}

gl_str gl_code_python(struct gl_step_code *c)
{
    size_t i = 0;
    while (i < c->text.n) {
        char ch = c->text.p[i];
        i = ch == '"' || ch == '\'' ? put_string(c, i)
            : ch == '#'             ? put_comment(c, i)
                                    : gl_step_code_put(c, i, NULL);
    }
    return gl_buf_view(&c->out);
}
