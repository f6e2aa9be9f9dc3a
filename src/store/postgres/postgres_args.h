/* postgres_args.h - parameters of a statement, and columns of its answer, in PostgreSQL's binary
 * form: no escaping, every byte as it is. Arrays are built column by column. */
#ifndef GL_STORE_POSTGRES_ARGS_H
#define GL_STORE_POSTGRES_ARGS_H

#include "store/common/arg.h"
#include "store/postgres/postgres_lib.h"

enum { GL_POSTGRES_ARGS_MAX = 56 };

enum gl_postgres_type { /* object ids of the server's own types: they never change */
                        GL_POSTGRES_BOOL = 16,
                        GL_POSTGRES_BYTES = 17,
                        GL_POSTGRES_INT8 = 20,
                        GL_POSTGRES_INT4 = 23,
                        GL_POSTGRES_TEXT = 25,
};

struct gl_postgres_args { /* all-zero is an empty one */
    int n;
    struct gl_postgres_arg {
        struct gl_buf buf;
        bool is_array;
        enum gl_postgres_type type;
        uint32_t items_n;
    } args[GL_POSTGRES_ARGS_MAX];
    /* By gl_postgres_args_finish(), for libpq. */
    const char *values[GL_POSTGRES_ARGS_MAX];
    int lengths[GL_POSTGRES_ARGS_MAX], formats[GL_POSTGRES_ARGS_MAX];
};

void gl_postgres_args_done(struct gl_postgres_args *a);
void gl_postgres_args_reset(struct gl_postgres_args *a); /* keeps the memory */

/* The next parameters: gl_postgres_args_put(a, GL_ARGS(gl_arg_text(kind), gl_arg_i32(1))). A
 * GL_ARG_TOP is left out. Text is also for bytes. */
void gl_postgres_args_put(struct gl_postgres_args *a, const struct gl_arg *args, size_t n);
/* The next parameter is an array; its number, for the items that follow in any order. */
int gl_postgres_args_array(struct gl_postgres_args *a, enum gl_postgres_type type);
void gl_postgres_args_add(struct gl_postgres_args *a, int array, const struct gl_arg *item);

void gl_postgres_args_finish(struct gl_postgres_args *a);

/* Columns of a binary answer; a column of another length gives 0. Texts are borrowed from it. */
gl_str gl_postgres_args_get_text(const struct gl_postgres_lib *lib, const PGresult *r, int row,
                                 int column);
int64_t gl_postgres_args_get_int(const struct gl_postgres_lib *lib, const PGresult *r, int row,
                                 int column); /* int8, int4, bool */
/* Item `i` of an array of int4 in the binary form; `none` if it has not so many. */
int32_t gl_postgres_args_item(gl_str array, size_t i, int32_t none);

#endif
