#include "cli/output/table.h"

#include "base/check.h"

void gl_table_init(struct gl_table *t, const char *const *titles, size_t columns)
{
    GL_ASSERT(columns > 0 && columns <= GL_TABLE_COLUMNS_MAX);
    *t = (struct gl_table){.titles = titles, .columns = columns};
}

void gl_table_done(struct gl_table *t)
{
    gl_arena_done(&t->arena);
}

void gl_table_add(struct gl_table *t, gl_str cell)
{
    if (t->n == t->cap) {
        size_t cap = t->cap == 0 ? 64 : t->cap * 2;
        gl_str *cells = GL_NEW_ARRAY(&t->arena, gl_str, cap);

        if (t->n > 0) {
            memcpy(cells, t->cells, t->n * sizeof(*cells));
        }
        t->cells = cells;
        t->cap = cap;
    }
    t->cells[t->n++] = gl_term_safe(&t->arena, cell);
}

static void print_tsv(const struct gl_table *t, FILE *out)
{
    for (size_t i = 0; i < t->n; i++) {
        (void)fwrite(t->cells[i].p, 1, t->cells[i].n, out);
        (void)fputc((i + 1) % t->columns == 0 ? '\n' : '\t', out);
    }
}

/* ---- a terminal ---- */

enum {
    GAP = 2,       /* between two columns */
    CUT_MIN = 8,   /* no column is made narrower */
    LAST_MIN = 20, /* minimum width of the last column, if its text is that long */
};

struct table_layout {
    const struct gl_table *t;
    const struct gl_term *term;
    struct gl_arena arena;
    gl_str *cells; /* as displayed */
    size_t widths[GL_TABLE_COLUMNS_MAX];
    bool is_hidden[GL_TABLE_COLUMNS_MAX], is_empty[GL_TABLE_COLUMNS_MAX];
    bool is_whole[GL_TABLE_COLUMNS_MAX]; /* must not be cut: a part of it is useless */
    size_t last;                         /* of the visible columns */
};

static void measure(struct table_layout *l)
{
    const struct gl_table *t = l->t;

    l->cells = GL_NEW_ARRAY(&l->arena, gl_str, t->n + 1);
    for (size_t c = 0; c < t->columns; c++) {
        l->widths[c] = strlen(t->titles[c]);
        l->is_empty[c] = true;
        l->is_whole[c] = strcmp(t->titles[c], "STATUS") == 0;
    }
    l->is_whole[0] = true; /* the column names the row */
    for (size_t i = 0; i < t->n; i++) {
        size_t c = i % t->columns, w;

        l->cells[i] = gl_term_time(&l->arena, t->cells[i]);
        l->is_whole[c] = l->is_whole[c] || l->cells[i].n != t->cells[i].n;
        w = gl_term_width(l->cells[i]);
        l->widths[c] = w > l->widths[c] ? w : l->widths[c];
        l->is_empty[c] = l->is_empty[c] && w == 0;
    }
    l->last = t->columns - 1;
}

/* The offset of the last column. */
static size_t start_of_last(const struct table_layout *l)
{
    size_t n = 0;

    for (size_t c = 0; c < l->last; c++) {
        n += l->is_hidden[c] ? 0 : l->widths[c] + GAP;
    }
    return n;
}

/* The number of columns by which the table is too wide. */
static size_t excess(const struct table_layout *l)
{
    size_t last = l->widths[l->last] < LAST_MIN ? l->widths[l->last] : LAST_MIN;
    size_t all = start_of_last(l) + last;

    return all > l->term->columns ? all - l->term->columns : 0;
}

static void hide(struct table_layout *l, size_t column)
{
    l->is_hidden[column] = true;
    while (l->last > 0 && l->is_hidden[l->last]) {
        l->last--;
    }
}

static void hide_titled(struct table_layout *l, const char *title)
{
    for (size_t c = 1; c < l->t->columns; c++) {
        if (strcmp(l->t->titles[c], title) == 0) {
            hide(l, c);
        }
    }
}

/* The widest column that may be cut; 0: there is none. */
static size_t widest(const struct table_layout *l)
{
    size_t best = 0;

    for (size_t c = 1; c < l->last; c++) {
        if (!l->is_hidden[c] && !l->is_whole[c] && l->widths[c] > CUT_MIN &&
            (best == 0 || l->widths[c] > l->widths[best])) {
            best = c;
        }
    }
    return best;
}

static void fit(struct table_layout *l)
{
    for (size_t c = 1; c < l->t->columns && excess(l) > 0; c++) {
        if (l->is_empty[c] && l->t->n > 0) {
            hide(l, c);
        }
    }
    for (const char *const *at = l->t->least; at != NULL && *at != NULL && excess(l) > 0; at++) {
        hide_titled(l, *at);
    }
    while (excess(l) > 0 && widest(l) > 0) {
        l->widths[widest(l)]--;
    }
}

static void print_last(const struct table_layout *l, gl_str text, enum gl_color color)
{
    size_t start = start_of_last(l), columns = l->term->columns;
    size_t room = columns > start + LAST_MIN ? columns - start : LAST_MIN;
    int indent = 0;

    do {
        gl_str line = gl_term_line(text, room, &text);

        (void)fprintf(l->term->file, "%*s%s%.*s%s\n", indent, "", gl_term_on(l->term, color),
                      GL_STR_ARG(line), gl_term_off(l->term, color));
        indent = (int)start;
    } while (text.n > 0);
}

static void print_cell(struct table_layout *l, size_t column, gl_str text, enum gl_color color)
{
    gl_str cut = gl_term_cut(&l->arena, text, l->widths[column]);

    if (l->is_hidden[column]) {
        return;
    }
    if (column == l->last) {
        print_last(l, text, color);
        return;
    }
    (void)fprintf(l->term->file, "%s%.*s%s%*s", gl_term_on(l->term, color), GL_STR_ARG(cut),
                  gl_term_off(l->term, color), (int)(l->widths[column] - gl_term_width(cut)) + GAP,
                  "");
}

void gl_table_print(const struct gl_table *t, const struct gl_term *term)
{
    struct table_layout l = {.t = t, .term = term};

    GL_ASSERT(t->n % t->columns == 0);
    if (!term->is_tty) {
        print_tsv(t, term->file);
        return;
    }
    measure(&l);
    fit(&l);
    for (size_t c = 0; c < t->columns; c++) {
        print_cell(&l, c, gl_str_of(t->titles[c]), GL_DIM);
    }
    for (size_t i = 0; i < t->n; i++) {
        bool is_status = strcmp(t->titles[i % t->columns], "STATUS") == 0;

        print_cell(&l, i % t->columns, l.cells[i],
                   is_status ? gl_term_status_color(l.cells[i]) : GL_PLAIN);
    }
    gl_arena_done(&l.arena);
}
