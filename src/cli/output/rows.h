/* rows.h - the rows of a list: one description of the columns shows them as a table, and --json
 * prints the same rows as JSON.
 *
 * Rows are JSON values: the elements of an array, the members of an object, or a whole document. A
 * reply of the API has them; a command that makes its rows itself writes them as a document first,
 * so that both forms come from it.
 *
 *   gl_rows_run()          asks the node or the store, and shows what it answers
 *   gl_rows_show()         shows a reply that is there already
 *   gl_rows_begin()        begins a document of the command's own; gl_rows_end() ends and shows it
 * or, for a command that does something in between:
 *   gl_rows_ask()          adds the rows of one page, or of all
 *   gl_rows_add_list()     adds rows of a document; gl_rows_add() one of them
 *   gl_rows_print()
 *   gl_rows_done()         in any case
 *
 * A struct gl_rows shows one list, once. */
#ifndef GL_CLI_OUTPUT_ROWS_H
#define GL_CLI_OUTPUT_ROWS_H

#include "cli/connect/api_reply.h"
#include "cli/output/table.h"

enum gl_column_kind {
    GL_COLUMN_TEXT,
    GL_COLUMN_NUMBER, /* printed as written */
    GL_COLUMN_YES_NO,
    GL_COLUMN_SPAN, /* from the time in `key` to the one in `until`, or to now */
    GL_COLUMN_JOIN, /* the texts of an array, with `between` between them */
    GL_COLUMN_NAME, /* the key of the row, where the rows are members of an object */
};

/* The row passed to a cell function. */
struct gl_row {
    struct gl_api_reply *p; /* the document; cells allocate from its arena */
    gl_jnode node;
    gl_str name;
    void *owner; /* the owner in struct gl_rows */
};

struct gl_column {
    const char *title;
    enum gl_column_kind kind;
    const char *key; /* the member of the row; NULL: the row itself */
    const char *until, *between;
    const char *absent;                       /* shown instead of nothing; NULL: nothing */
    gl_str (*cell)(const struct gl_row *row); /* computes the cell; NULL: use `kind` */
    uint8_t least; /* 1: the first column to leave out on a narrow terminal, then 2; 0: never */
};

struct gl_rows {
    /* Set by the caller. */
    struct gl_cli *cli;
    const struct gl_column *columns; /* borrowed */
    size_t columns_n;                /* 0: no table, `on_page` prints the rows */
    const char *list;    /* the member that holds the rows; NULL: the document is the only row */
    const char *head;    /* the name of a first row for the document itself; NULL: there is none */
    const char *heading; /* show the document as a record, one line per column that is not empty,
                            with this title for the values; NULL: as a table */
    const char *none;    /* printed if there are no rows; NULL: print an empty table */
    gl_str *after; /* where the next page begins, in the request; "": there are no more pages. NULL:
                      the list has no pages */
    bool all;      /* read all pages */
    bool has_next; /* the JSON says where the next page begins */
    void (*on_page)(struct gl_rows *l, struct gl_api_reply *p); /* for each reply; may be NULL */
    void *owner;

    size_t n; /* rows so far */
    struct gl_table table;
    struct gl_buf json;
    struct gl_jw w;
};

/* The columns of a table, and how many. */
#define GL_COLUMNS(table) .columns = (table), .columns_n = GL_COUNT(table)

/* Each returns an exit code, prints its errors, and calls gl_rows_done(). */
int gl_rows_run(struct gl_rows *l, struct gl_request *rq);
int gl_rows_show(struct gl_rows *l, struct gl_api_reply *p); /* parsed here if it is not yet */
int gl_rows_end(struct gl_rows *l);

/* The document is an object: write its members to the returned writer. */
struct gl_jw *gl_rows_begin(struct gl_rows *l);

/* Read pages according to `after` and `all`. On success *l->after is where the next one begins. */
int gl_rows_ask(struct gl_rows *l, struct gl_connection *r, struct gl_request *rq,
                struct gl_why *reterr_why);
void gl_rows_add(struct gl_rows *l, struct gl_api_reply *p, gl_jnode row, gl_str name);
void gl_rows_add_list(struct gl_rows *l, struct gl_api_reply *p, gl_jnode list);
void gl_rows_print(struct gl_rows *l); /* and flush, before any message */
void gl_rows_done(struct gl_rows *l);

/* "12.3 MiB", for a cell. */
gl_str gl_rows_size(struct gl_arena *a, uint64_t bytes);

#endif
