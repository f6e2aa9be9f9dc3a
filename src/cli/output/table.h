/* table.h - a table: with a header and aligned columns on a terminal, tab-separated on a pipe.
 *
 * On a terminal the table keeps to its width: times lose their milliseconds, empty and less
 * important columns are left out, long cells are cut, and the last column wraps at words. */
#ifndef GL_CLI_OUTPUT_TABLE_H
#define GL_CLI_OUTPUT_TABLE_H

#include "cli/output/term.h"

enum { GL_TABLE_COLUMNS_MAX = 16 };

struct gl_table {
    const char *const *titles; /* a column named STATUS is coloured */
    size_t columns;
    const char *const *least; /* titles of columns to leave out if there is no room, least important
                                 first, ended by NULL; NULL: there are none */
    struct gl_arena arena;
    gl_str *cells; /* rows * columns */
    size_t n, cap;
};

void gl_table_init(struct gl_table *t, const char *const *titles, size_t columns);
void gl_table_done(struct gl_table *t);
void gl_table_add(struct gl_table *t, gl_str cell); /* copied; row by row */
void gl_table_print(const struct gl_table *t, const struct gl_term *term);

#endif
