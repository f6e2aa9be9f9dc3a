/* options.h - the options at the end of a store URL, "?name=value&...", described by a table. Parse
 * with gl_options_set(), one option at a time; list the known names with gl_options_names(). */
#ifndef GL_STORE_OPTIONS_H
#define GL_STORE_OPTIONS_H

#include "base/err.h"
#include "base/str.h"

struct gl_option {
    const char *name;
    enum { GL_OPTION_TEXT, GL_OPTION_NUMBER, GL_OPTION_WORD } type;
    size_t at;            /* offset in the target struct, of a gl_str, int64_t or bool */
    int64_t min, max;     /* NUMBER */
    const char *off, *on; /* WORD: the texts for false and true */
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

/* Set one option, "name=value"; text values are copied to the arena. Returns 1; 0: the name is not
 * in the table; GL_E_INVALID: bad value. Messages never contain the value: it may be part of a
 * password. */
int gl_options_set(const struct gl_option *table, size_t n, void *to, gl_str option,
                   struct gl_arena *a, struct gl_why *reterr_why);
/* The names in the table, for messages: "timeout_ms, wait". */
gl_str gl_options_names(const struct gl_option *table, size_t n, struct gl_arena *a);

/* Decode percent-encoding ("%40" to "@"). False: a '%' without two hex digits, or a NUL. */
bool gl_options_decode(gl_str s, struct gl_arena *a, gl_str *ret);

#endif
