#include "cli/output/rows.h"

#include "base/check.h"

/* ---- cells ---- */

static gl_str span(const struct gl_row *row, const struct gl_column *c)
{
    gl_ms until = gl_api_reply_time(row->p, row->node, c->until);

    return gl_api_reply_span(row->p, gl_api_reply_time(row->p, row->node, c->key),
                             until != 0 ? until : gl_term_now());
}

static gl_str join(struct gl_api_reply *p, gl_jnode list, const char *between)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_jnode first = gl_json_first(&p->j, list);

    for (gl_jnode e = first; e; e = gl_json_after(&p->j, list, e)) {
        gl_buf_fmt(&out, "%s%.*s", e != first ? between : "",
                   GL_STR_ARG(gl_json_str(&p->j, e, &p->arena)));
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

static gl_str cell_of_kind(const struct gl_row *row, const struct gl_column *c)
{
    struct gl_api_reply *p = row->p;
    gl_jnode n = c->key != NULL ? gl_json_get(&p->j, row->node, c->key) : row->node;

    switch (c->kind) {
    case GL_COLUMN_TEXT:
        return gl_json_str(&p->j, n, &p->arena);
    case GL_COLUMN_NUMBER:
        return gl_json_is(n, GL_JSON_NUMBER) ? gl_json_raw(&p->j, n) : (gl_str){0};
    case GL_COLUMN_YES_NO:
        return gl_json_is(n, GL_JSON_TRUE) ? GL_S("yes") : GL_S("no");
    case GL_COLUMN_SPAN:
        return span(row, c);
    case GL_COLUMN_JOIN:
        return join(p, n, c->between);
    case GL_COLUMN_NAME:
        return row->name;
    }
    return (gl_str){0};
}

static gl_str cell(const struct gl_row *row, const struct gl_column *c)
{
    gl_str text = c->cell != NULL ? c->cell(row) : cell_of_kind(row, c);

    return text.n == 0 && c->absent != NULL ? gl_str_of(c->absent) : text;
}

/* ---- collecting ---- */

void gl_rows_add(struct gl_rows *l, struct gl_api_reply *p, gl_jnode node, gl_str name)
{
    struct gl_row row = {.p = p, .node = node, .name = name, .owner = l->owner};

    l->n++;
    if (l->cli->json) {
        gl_jw_raw(&l->w, gl_json_raw(&p->j, node));
        return;
    }
    for (size_t c = 0; c < l->columns_n; c++) {
        gl_table_add(&l->table, cell(&row, &l->columns[c]));
    }
}

void gl_rows_add_list(struct gl_rows *l, struct gl_api_reply *p, gl_jnode list)
{
    bool has_names = gl_json_is(list, GL_JSON_OBJECT);

    for (gl_jnode e = gl_json_first(&p->j, list); e; e = gl_json_after(&p->j, list, e)) {
        gl_rows_add(l, p, has_names ? gl_json_value(e) : e,
                    has_names ? gl_json_str(&p->j, e, &p->arena) : (gl_str){0});
    }
}

static void add_document(struct gl_rows *l, struct gl_api_reply *p)
{
    if (l->head != NULL || l->list == NULL) {
        gl_rows_add(l, p, p->root, gl_str_of(l->head));
    }
    if (l->list != NULL) {
        gl_rows_add_list(l, p, gl_json_get(&p->j, p->root, l->list));
    }
}

struct gl_jw *gl_rows_begin(struct gl_rows *l)
{
    gl_jw_init(&l->w, &l->json);
    gl_jw_object(&l->w);
    return &l->w;
}

static void end_pages(struct gl_rows *l)
{
    gl_jw_end(&l->w);
    if (l->has_next) {
        gl_jw_key(&l->w, "next");
        if (l->after->n > 0) {
            gl_jw_str(&l->w, *l->after);
        } else {
            gl_jw_null(&l->w);
        }
    }
    gl_jw_end(&l->w);
}

int gl_rows_ask(struct gl_rows *l, struct gl_connection *r, struct gl_request *rq,
                struct gl_why *reterr_why)
{
    int err;

    gl_jw_put_array(gl_rows_begin(l), l->list);
    do {
        struct gl_api_reply page;

        err = gl_api_reply_ask(&page, r, rq, reterr_why);
        if (err == 0) {
            add_document(l, &page);
            *l->after = gl_str_dup(&l->cli->arena, gl_api_reply_text(&page, page.root, "next"));
            if (l->on_page != NULL) {
                l->on_page(l, &page);
            }
        }
        gl_api_reply_done(&page);
    } while (err == 0 && l->all && l->after->n > 0);
    end_pages(l);
    return err;
}

gl_str gl_rows_size(struct gl_arena *a, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    uint64_t tenths = bytes * 10;
    size_t unit = 0;

    while (tenths >= 10240 && unit + 1 < GL_COUNT(units)) {
        tenths /= 1024;
        unit++;
    }
    if (unit == 0) {
        return gl_str_fmt(a, "%llu B", (unsigned long long)bytes);
    }
    return gl_str_fmt(a, "%llu.%llu %s", (unsigned long long)tenths / 10,
                      (unsigned long long)tenths % 10, units[unit]);
}

/* ---- printing ---- */

static void print_table(struct gl_rows *l)
{
    const char *titles[GL_TABLE_COLUMNS_MAX], *least[GL_TABLE_COLUMNS_MAX + 1] = {0};
    size_t least_n = 0;

    GL_ASSERT(l->columns_n <= GL_TABLE_COLUMNS_MAX);
    for (size_t c = 0; c < l->columns_n; c++) {
        titles[c] = l->columns[c].title;
    }
    for (size_t rank = 1; rank <= l->columns_n; rank++) {
        for (size_t c = 0; c < l->columns_n; c++) {
            if (l->columns[c].least == rank) {
                least[least_n++] = titles[c];
            }
        }
    }
    l->table.titles = titles;
    l->table.columns = l->columns_n;
    l->table.least = least;
    gl_table_print(&l->table, &l->cli->out);
}

void gl_rows_print(struct gl_rows *l)
{
    if (l->cli->json) {
        gl_term_print(&l->cli->out, gl_buf_view(&l->json));
    } else if (l->n == 0 && l->none != NULL) {
        gl_cli_note(l->cli, "%s", l->none);
    } else if (l->columns_n > 0) {
        print_table(l);
    }
    (void)fflush(l->cli->out.file); /* a write error is detected when the command ends */
}

static void print_record(struct gl_rows *l, struct gl_api_reply *p)
{
    const char *const titles[] = {"WHAT", l->heading};
    struct gl_row row = {.p = p, .node = p->root, .owner = l->owner};

    gl_table_init(&l->table, titles, GL_COUNT(titles));
    for (size_t c = 0; c < l->columns_n; c++) {
        gl_str text = cell(&row, &l->columns[c]);

        if (text.n > 0) {
            gl_table_add(&l->table, gl_str_of(l->columns[c].title));
            gl_table_add(&l->table, text);
        }
    }
    gl_table_print(&l->table, &l->cli->out);
}

void gl_rows_done(struct gl_rows *l)
{
    gl_table_done(&l->table);
    gl_buf_done(&l->json);
}

/* ---- whole commands ---- */

static int show_document(struct gl_rows *l, struct gl_api_reply *p)
{
    struct gl_why why;
    int err;

    if (l->cli->json) {
        return gl_api_reply_print_json(p, l->cli);
    }
    err = p->root == NULL ? gl_api_reply_parse(p, &why) : 0;
    if (err != 0) {
        return gl_cli_fail_why(l->cli, err, &why);
    }
    if (l->heading != NULL) {
        print_record(l, p);
    } else {
        add_document(l, p);
        gl_rows_print(l);
    }
    return GL_EXIT_OK;
}

int gl_rows_show(struct gl_rows *l, struct gl_api_reply *p)
{
    int code = show_document(l, p);

    gl_rows_done(l);
    return code;
}

int gl_rows_end(struct gl_rows *l)
{
    struct gl_api_reply made = {0};
    int code;

    gl_jw_end(&l->w);
    made.body = l->json; /* taken */
    l->json = (struct gl_buf){0};
    code = gl_rows_show(l, &made);
    gl_api_reply_done(&made);
    return code;
}

int gl_rows_run(struct gl_rows *l, struct gl_request *rq)
{
    struct gl_api_reply page = {0};
    struct gl_connection connection;
    struct gl_why why;
    int err, code = GL_EXIT_OK;

    gl_connect_init(&connection, l->cli);
    err = l->after != NULL ? gl_rows_ask(l, &connection, rq, &why)
                           : gl_api_reply_ask(&page, &connection, rq, &why);
    if (err != 0) {
        code = gl_cli_fail_why(l->cli, err, &why);
    } else if (l->after != NULL) {
        gl_rows_print(l);
    } else {
        code = show_document(l, &page);
    }
    gl_rows_done(l);
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return code;
}
