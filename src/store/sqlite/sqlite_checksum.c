/* sqlite_checksum.c - the SQL function glia_sum(kind, id, rev, owner, token, live, value). It must
 * agree with gl_checksum_record() byte for byte: both are stored in the same column. */
#include "store/sqlite/sqlite_checksum.h"

#include "base/check.h"
#include "port/checksum.h"

enum { ARGUMENTS_N = 7 };

/* As a blob: no conversion, and a NUL inside is kept. */
static gl_str text_of(sqlite3_value *v)
{
    const char *p = sqlite3_value_blob(v);
    return (gl_str){.p = p, .n = (size_t)sqlite3_value_bytes(v)};
}

static void sum(sqlite3_context *context, int n, sqlite3_value **v)
{
    GL_ASSERT(n == ARGUMENTS_N);
    (void)n;
    struct gl_record r = {.kind = text_of(v[0]),
                          .id = text_of(v[1]),
                          .rev = (uint64_t)sqlite3_value_int64(v[2]),
                          .owner = text_of(v[3]),
                          .token = (uint64_t)sqlite3_value_int64(v[4]),
                          .live = sqlite3_value_int64(v[5]) != 0,
                          .value = text_of(v[6])};
    sqlite3_result_int64(context, gl_checksum_record(&r));
}

int gl_sqlite_checksum_register(sqlite3 *conn)
{
    return sqlite3_create_function_v2(conn, "glia_sum", ARGUMENTS_N,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, sum, NULL, NULL,
                                      NULL);
}
