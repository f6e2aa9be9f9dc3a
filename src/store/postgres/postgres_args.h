/* postgres_args.h - parameters of a statement and columns of its result, in PostgreSQL's binary
 * format: no escaping, every byte as it is.
 *
 * Order of calls: reset; put, or array and add; finish; then hand values, lengths and formats to
 * libpq. Arrays are built column by column. */
#ifndef GL_STORE_POSTGRES_ARGS_H
#define GL_STORE_POSTGRES_ARGS_H

#include "store/common/arg.h"
#include "store/postgres/postgres_lib.h"

enum { GL_POSTGRES_ARGS_MAX = 56 };

enum gl_postgres_type { /* object ids of the server's built-in types, which never change */
                        GL_POSTGRES_BOOL = 16,
                        GL_POSTGRES_BYTES = 17,
                        GL_POSTGRES_INT8 = 20,
                        GL_POSTGRES_INT4 = 23,
                        GL_POSTGRES_TEXT = 25,
};

struct gl_postgres_args { /* all-zero is empty */
    int n;
    struct gl_postgres_arg {
        struct gl_buf buf;
        bool is_array;
        enum gl_postgres_type type;
        uint32_t items_n;
    } args[GL_POSTGRES_ARGS_MAX];
    /* Set by gl_postgres_args_finish(), for libpq. */
    const char *values[GL_POSTGRES_ARGS_MAX];
    int lengths[GL_POSTGRES_ARGS_MAX], formats[GL_POSTGRES_ARGS_MAX];
};

void gl_postgres_args_done(struct gl_postgres_args *a);
void gl_postgres_args_reset(struct gl_postgres_args *a); /* keeps the memory */

/* Append parameters: gl_postgres_args_put(a, GL_ARGS(gl_arg_text(kind), gl_arg_i32(1))). A
 * GL_ARG_TOP is skipped. Text is also used for bytea. */
void gl_postgres_args_put(struct gl_postgres_args *a, const struct gl_arg *args, size_t n);
/* Append an array parameter. Returns its number, for adding items in any order. */
int gl_postgres_args_array(struct gl_postgres_args *a, enum gl_postgres_type type);
void gl_postgres_args_add(struct gl_postgres_args *a, int array, const struct gl_arg *item);

void gl_postgres_args_finish(struct gl_postgres_args *a);

/* Read a column of a binary result; a number of unexpected length reads as 0. Texts are borrowed
 * from the result. */
gl_str gl_postgres_args_get_text(const struct gl_postgres_lib *lib, const PGresult *r, int row,
                                 int column);
int64_t gl_postgres_args_get_int(const struct gl_postgres_lib *lib, const PGresult *r, int row,
                                 int column); /* int8, int4, bool */
/* Item `i` of a binary int4 array; `none` if the array is too short. */
int32_t gl_postgres_args_item(gl_str array, size_t i, int32_t none);

#endif
