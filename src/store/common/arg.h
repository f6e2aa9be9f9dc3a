/* arg.h - typed values to be bound to an SQL statement or encoded into a Redis command. A gl_arg is
 * a temporary: its text is borrowed and must outlive the statement or the encoding. */
#ifndef GL_STORE_ARG_H
#define GL_STORE_ARG_H

#include "base/str.h"

enum gl_arg_type {
    GL_ARG_TEXT,
    GL_ARG_I64,
    GL_ARG_U64, /* same bits as I64; Redis stores text, without a sign */
    GL_ARG_I32,
    GL_ARG_BOOL,
    GL_ARG_TOP, /* sorts after any text; SQLite only */
};

struct gl_arg {
    enum gl_arg_type type;
    gl_str text;
    int64_t number;
};

static inline struct gl_arg gl_arg_text(gl_str text)
{
    return (struct gl_arg){.type = GL_ARG_TEXT, .text = text};
}

static inline struct gl_arg gl_arg_c(const char *text)
{
    return gl_arg_text(gl_str_of(text));
}

static inline struct gl_arg gl_arg_i64(int64_t number)
{
    return (struct gl_arg){.type = GL_ARG_I64, .number = number};
}

static inline struct gl_arg gl_arg_u64(uint64_t number)
{
    return (struct gl_arg){.type = GL_ARG_U64, .number = (int64_t)number};
}

static inline struct gl_arg gl_arg_i32(int32_t number)
{
    return (struct gl_arg){.type = GL_ARG_I32, .number = number};
}

static inline struct gl_arg gl_arg_bool(bool value)
{
    return (struct gl_arg){.type = GL_ARG_BOOL, .number = value};
}

/* Several values, as an array and its length. */
#define GL_ARGS(...)                      \
    (const struct gl_arg[]){__VA_ARGS__}, \
        sizeof((struct gl_arg[]){__VA_ARGS__}) / sizeof(struct gl_arg)

#endif
