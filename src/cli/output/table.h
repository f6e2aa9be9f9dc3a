/* table.h - a table: on a terminal with a header and aligned columns, else tab-separated without
 * one.
 *
 * On a terminal it keeps to the width of that: times lose their milliseconds, columns that are less
 * important or empty are left out, long cells are cut, and what stands in the last column goes on
 * in the next line, word by word. */
#ifndef GL_CLI_OUTPUT_TABLE_H
#define GL_CLI_OUTPUT_TABLE_H

#include "cli/output/term.h"

enum { GL_TABLE_COLUMNS_MAX = 8 };

struct gl_table {
    const char *const *titles; /* a column named STATUS is coloured */
    size_t columns;
    const char *const *least; /* titles of columns to do without where there is no room, ended by
                                 NULL: the least important first; NULL: there are none */
    struct gl_arena arena;
    gl_str *cells; /* rows * columns */
    size_t n, cap;
};

void gl_table_init(struct gl_table *t, const char *const *titles, size_t columns);
void gl_table_done(struct gl_table *t);
void gl_table_add(struct gl_table *t, gl_str cell); /* copied; row by row */
void gl_table_print(const struct gl_table *t, const struct gl_term *term);

#endif
