/* sql.h - reads, shared by the engines that use SQL: the parameters of their statements, and the
 * conversion of rows to results. Both engines have the tables record, entry and log with the same
 * columns; they differ only in how values are bound and read.
 *
 * Order of calls: gl_sql_parameters(), the engine's own bind and execute, gl_sql_read_rows().
 *
 * Columns of the result:
 *     GET            position of the key (from 1), rev, owner, token, live, sum, value
 *     LIST           id, rev, owner, token, live, sum, value
 *     RANGE          score, id
 *     LOG_READ       seq, value
 *     SESSION_LIST   id, incarnation, node, about, left_ms, dead
 *     EXPORT         kind, id, rev, owner, token, live, sum, value; kind, id, score; or kind, id,
 *                    seq, value
 *     MEASURE        bytes */
#ifndef GL_STORE_SQL_H
#define GL_STORE_SQL_H

#include "store/common/answer.h"
#include "store/common/arg.h"

/* ---- parameters ---- */

enum { GL_SQL_ARGS_MAX = 5 };

struct gl_sql_args {
    size_t n;
    struct gl_arg at[GL_SQL_ARGS_MAX];
};

enum {
    GL_SQL_RECORDS,
    GL_SQL_ENTRIES,
    GL_SQL_LOGS,
    GL_SQL_TABLES
}; /* the tables of an export, in order */

/* The parameters of a read (except GET); texts point into the call or the arena.
 *     RANGE          index, lowest score, highest, limit [, id after which]
 *     LIST           kind, lowest id, limit, bound above all ids
 *     LOG_READ       kind, id, lowest seq, limit
 *     SESSION_LIST   limit
 *     EXPORT         kind, id, limit [, score or seq]: after that row of call->export.table
 * GL_E_INVALID: the position an export should continue from is malformed. */
int gl_sql_parameters(struct gl_call *call, struct gl_arena *a, struct gl_sql_args *ret,
                      struct gl_why *reterr_why);

/* Does a RANGE continue after a given entry? */
bool gl_sql_is_after(const struct gl_range *r);

/* ---- rows ---- */

struct gl_sql_rows {
    struct gl_answer answer; /* the engine sets call, arena, page_bytes */
    bool (*step)(struct gl_sql_rows
                     *r); /* advance to the next row; the first call: to the first. False: none */
    int64_t (*number)(const struct gl_sql_rows *r, int column);
    gl_str (*text)(const struct gl_sql_rows *r, int column); /* lives as long as the answer */
};

/* Read all rows into the request of the call. */
void gl_sql_read_rows(struct gl_sql_rows *r);

#endif
