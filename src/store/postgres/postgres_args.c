/* postgres_args.c - encodes parameters in PostgreSQL's binary format: network byte order, and for
 * arrays a header of 20 bytes (12 if empty) followed by items, each with a length. */
#include "store/postgres/postgres_args.h"

#include <limits.h>

#include "base/check.h"

enum { HEADER_BYTES = 20, EMPTY_BYTES = 12, ITEM_HEADER_BYTES = 4 };

static void put_32(char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (char)(v >> (24 - 8 * i));
    }
}

static uint32_t get_32(const char *at)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        v = v << 8 | (uint8_t)at[i];
    }
    return v;
}

static void add_32(struct gl_buf *b, uint32_t v)
{
    char bytes[4];
    put_32(bytes, v);
    gl_buf_add(b, bytes, sizeof(bytes));
}

void gl_postgres_args_done(struct gl_postgres_args *a)
{
    for (size_t i = 0; i < GL_POSTGRES_ARGS_MAX; i++) {
        gl_buf_done(&a->args[i].buf);
    }
}

/* A buffer that once held a very large record is released. */
enum { KEPT_BYTES = 1 << 20 };

void gl_postgres_args_reset(struct gl_postgres_args *a)
{
    for (int i = 0; i < a->n; i++) {
        if (a->args[i].buf.cap > KEPT_BYTES) {
            gl_buf_done(&a->args[i].buf);
        }
        gl_buf_reset(&a->args[i].buf);
    }
    a->n = 0;
}

static struct gl_postgres_arg *next(struct gl_postgres_args *a)
{
    GL_ASSERT(a->n < GL_POSTGRES_ARGS_MAX);
    struct gl_postgres_arg *arg = &a->args[a->n++];
    gl_buf_reset(&arg->buf);
    arg->is_array = false;
    arg->items_n = 0;
    return arg;
}

static void add_value(struct gl_buf *b, const struct gl_arg *arg)
{
    switch (arg->type) {
    case GL_ARG_TEXT:
        gl_buf_str(b, arg->text);
        return;
    case GL_ARG_I64:
    case GL_ARG_U64:
        add_32(b, (uint32_t)((uint64_t)arg->number >> 32));
        add_32(b, (uint32_t)arg->number);
        return;
    case GL_ARG_I32:
        add_32(b, (uint32_t)arg->number);
        return;
    case GL_ARG_BOOL:
        gl_buf_char(b, arg->number != 0 ? 1 : 0);
        return;
    case GL_ARG_TOP:
        break;
    }
    GL_UNREACHABLE();
}

void gl_postgres_args_put(struct gl_postgres_args *a, const struct gl_arg *args, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (args[i].type != GL_ARG_TOP) {
            add_value(&next(a)->buf, &args[i]);
        }
    }
}

int gl_postgres_args_array(struct gl_postgres_args *a, enum gl_postgres_type type)
{
    static const char blank[HEADER_BYTES];
    struct gl_postgres_arg *arg = next(a);
    arg->is_array = true;
    arg->type = type;
    gl_buf_add(&arg->buf, blank, sizeof(blank)); /* filled in by finish_array() */
    return a->n - 1;
}

void gl_postgres_args_add(struct gl_postgres_args *a, int array, const struct gl_arg *item)
{
    static const uint32_t bytes[] = {
        [GL_ARG_I64] = 8, [GL_ARG_U64] = 8, [GL_ARG_I32] = 4, [GL_ARG_BOOL] = 1};
    struct gl_postgres_arg *arg = &a->args[array];
    arg->items_n++;
    add_32(&arg->buf, item->type == GL_ARG_TEXT ? (uint32_t)item->text.n : bytes[item->type]);
    add_value(&arg->buf, item);
}

static void finish_array(struct gl_postgres_arg *arg)
{
    char *head = arg->buf.p;
    put_32(head, arg->items_n > 0 ? 1 : 0); /* dimensions */
    put_32(head + 4, 0);                    /* no item is null */
    put_32(head + 8, (uint32_t)arg->type);
    put_32(head + 12, arg->items_n);
    put_32(head + 16, 1); /* lower bound of the index */
    if (arg->items_n == 0) {
        arg->buf.n = EMPTY_BYTES;
    }
}

void gl_postgres_args_finish(struct gl_postgres_args *a)
{
    for (int i = 0; i < a->n; i++) {
        struct gl_postgres_arg *arg = &a->args[i];
        if (arg->is_array) {
            finish_array(arg);
        }
        GL_ASSERT(arg->buf.n < INT_MAX);
        a->values[i] = arg->buf.n > 0 ? arg->buf.p : ""; /* a NULL pointer would be an SQL null */
        a->lengths[i] = (int)arg->buf.n;
        a->formats[i] = 1;
    }
}

gl_str gl_postgres_args_get_text(const struct gl_postgres_lib *lib, const PGresult *r, int row,
                                 int column)
{
    return (gl_str){lib->PQgetvalue(r, row, column), (size_t)lib->PQgetlength(r, row, column)};
}

/* Deduces the type from the length, so that callers need not distinguish int4, int8 and bool. */
int64_t gl_postgres_args_get_int(const struct gl_postgres_lib *lib, const PGresult *r, int row,
                                 int column)
{
    const char *p = lib->PQgetvalue(r, row, column);
    switch (lib->PQgetlength(r, row, column)) {
    case 1:
        return p[0] != 0;
    case 4:
        return (int32_t)get_32(p);
    case 8:
        return (int64_t)((uint64_t)get_32(p) << 32 | get_32(p + 4));
    default:
        return 0;
    }
}

int32_t gl_postgres_args_item(gl_str array, size_t i, int32_t none)
{
    size_t at = HEADER_BYTES + i * (ITEM_HEADER_BYTES + 4);
    if (array.n < at + ITEM_HEADER_BYTES + 4 || get_32(array.p + at) != 4) {
        return none;
    }
    return (int32_t)get_32(array.p + at + ITEM_HEADER_BYTES);
}
