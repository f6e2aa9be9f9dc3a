#include "cli/table.h"

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

static void print_cell(const struct gl_table *t, const struct gl_term *term, size_t column,
                       gl_str text, size_t width, enum gl_color color)
{
    bool is_last = column + 1 == t->columns;
    int pad = is_last ? 0 : (int)(width - gl_term_width(text)) + 2;

    (void)fprintf(term->file, "%s%.*s%s%*s", gl_term_on(term, color), GL_STR_ARG(text),
                  gl_term_off(term, color), pad, "");
}

void gl_table_print(const struct gl_table *t, const struct gl_term *term)
{
    size_t widths[GL_TABLE_COLUMNS_MAX] = {0}, status = SIZE_MAX;

    GL_ASSERT(t->n % t->columns == 0);
    if (!term->is_tty) {
        print_tsv(t, term->file);
        return;
    }
    for (size_t c = 0; c < t->columns; c++) {
        widths[c] = strlen(t->titles[c]);
        status = strcmp(t->titles[c], "STATUS") == 0 ? c : status;
    }
    for (size_t i = 0; i < t->n; i++) {
        size_t w = gl_term_width(t->cells[i]), *widest = &widths[i % t->columns];

        *widest = w > *widest ? w : *widest;
    }
    for (size_t c = 0; c < t->columns; c++) {
        print_cell(t, term, c, gl_str_of(t->titles[c]), widths[c], GL_DIM);
    }
    (void)fputc('\n', term->file);
    for (size_t i = 0; i < t->n; i++) {
        size_t c = i % t->columns;

        print_cell(t, term, c, t->cells[i], widths[c],
                   c == status ? gl_term_status_color(t->cells[i]) : GL_PLAIN);
        if (c + 1 == t->columns) {
            (void)fputc('\n', term->file);
        }
    }
}
