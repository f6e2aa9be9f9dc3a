/* options.h - the options at the end of a store's URL, "?name=value&...", as a table. */
#ifndef GL_STORE_OPTIONS_H
#define GL_STORE_OPTIONS_H

#include "base/err.h"
#include "base/str.h"

struct gl_option {
    const char *name;
    enum { GL_OPTION_TEXT, GL_OPTION_NUMBER, GL_OPTION_WORD } type;
    size_t at;            /* in the struct it goes to: a gl_str, an int64_t, or a bool */
    int64_t min, max;     /* NUMBER */
    const char *off, *on; /* WORD: the bool is false, true */
};

#define GL_OPTION_TO_TEXT(s, member)                                       \
    {                                                                      \
        .name = #member, .type = GL_OPTION_TEXT, .at = offsetof(s, member) \
    }
#define GL_OPTION_TO_NUMBER(s, member, lowest, highest)                                        \
    {                                                                                          \
        .name = #member, .type = GL_OPTION_NUMBER, .at = offsetof(s, member), .min = (lowest), \
        .max = (highest)                                                                       \
    }
#define GL_OPTION_TO_WORD(option, s, member, no, yes)                                     \
    {                                                                                     \
        .name = (option), .type = GL_OPTION_WORD, .at = offsetof(s, member), .off = (no), \
        .on = (yes)                                                                       \
    }

/* Set one option, "name=value"; texts are copied to the arena. 1; 0: none of the table has that
 * name; GL_E_INVALID: what the value must be. Values are never shown: they can be a part of a
 * password. */
int gl_options_set(const struct gl_option *table, size_t n, void *to, gl_str option,
                   struct gl_arena *a, struct gl_why *reterr_why);
/* The names of the table, for people: "timeout_ms, wait". */
gl_str gl_options_names(const struct gl_option *table, size_t n, struct gl_arena *a);

/* "%40" into "@"; false: a '%' without two hexadecimal digits, or a NUL. */
bool gl_options_decode(gl_str s, struct gl_arena *a, gl_str *ret);

#endif
