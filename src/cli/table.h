/* table.h - a table: on a terminal with a header and aligned columns, else tab-separated without
 * one. */
#ifndef GL_CLI_TABLE_H
#define GL_CLI_TABLE_H

#include "cli/term.h"

enum { GL_TABLE_COLUMNS_MAX = 8 };

struct gl_table {
    const char *const *titles; /* a column named STATUS is coloured */
    size_t columns;
    struct gl_arena arena;
    gl_str *cells; /* rows * columns */
    size_t n, cap;
};

void gl_table_init(struct gl_table *t, const char *const *titles, size_t columns);
void gl_table_done(struct gl_table *t);
void gl_table_add(struct gl_table *t, gl_str cell); /* copied; row by row */
void gl_table_print(const struct gl_table *t, const struct gl_term *term);

#endif
