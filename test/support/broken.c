#include "support/broken.h"

#include "support/cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static gl_str read_all(struct gl_arena *a, const char *path)
{
    static char text[100000];
    FILE *file = fopen(path, "r");
    if (!file) {
        fail_msg("%s cannot be read", path);
    }
    size_t n = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    return gl_str_dup(a, (gl_str){text, n});
}

static void put_caret(struct gl_buf *out, gl_str text, const struct gl_flow_error *e)
{
    gl_str line = {0};
    for (unsigned i = 0; i < e->line; i++) {
        line = gl_str_cut(text, '\n', &text);
    }
    gl_buf_fmt(out, "%6u | %.*s\n       | %*s^\n", e->line, GL_STR_ARG(line), (int)e->column - 1,
               "");
}

/* All that is said about a file. */
static void judge(const struct broken_kind *kind, struct gl_arena *a, gl_str text,
                  struct gl_buf *out)
{
    static struct gl_flow_errors errors;
    struct gl_json j;
    struct gl_why why;
    if (kind->parse(&j, text, 1 << 20, a, &why)) {
        gl_buf_fmt(out, "%s\n", why.text);
        return;
    }
    if (kind->judge(&j, a, &errors) == 0) {
        gl_buf_c(out, "nothing is wrong\n");
        return;
    }
    for (size_t i = 0; i < errors.n; i++) {
        const struct gl_flow_error *e = &errors.items[i];
        gl_buf_fmt(out, "%u:%u: %.*s%s%.*s\n", e->line, e->column, GL_STR_ARG(e->path),
                   e->path.n ? ": " : "", GL_STR_ARG(e->text));
        put_caret(out, text, e);
    }
}

static void check_file(const struct broken_kind *kind, struct gl_arena *a, const char *name)
{
    gl_str stem = {name, strlen(name) - strlen(kind->ending)};
    gl_str text = read_all(a, gl_str_fmt(a, "%s/%s", kind->folder, name).p);
    gl_str expected =
        read_all(a, gl_str_fmt(a, "%s/%.*s.expected", kind->folder, GL_STR_ARG(stem)).p);
    struct gl_buf out = {0};
    judge(kind, a, text, &out);
    if (!gl_str_eq(gl_buf_view(&out), expected)) {
        fail_msg("%s: expected\n%.*s\ngot\n%.*s", name, GL_STR_ARG(expected),
                 GL_STR_ARG(gl_buf_view(&out)));
    }
    gl_buf_done(&out);
}

void broken_check_all(const struct broken_kind *kind)
{
    struct gl_arena a = {0};
    DIR *folder = opendir(kind->folder);
    unsigned files = 0;
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (gl_str_ends(gl_str_of(e->d_name), gl_str_of(kind->ending))) {
            check_file(kind, &a, e->d_name);
            files++;
        }
    }
    (void)closedir(folder);
    gl_arena_done(&a);
    assert_true(files >= kind->files_min);
}

bool broken_print(const struct broken_kind *kind, int argc, char **argv)
{
    struct gl_arena a = {0};
    struct gl_buf out = {0};
    if (argc != 2) {
        return false;
    }
    judge(kind, &a, read_all(&a, argv[1]), &out);
    (void)fwrite(out.p, 1, out.n, stdout);
    gl_buf_done(&out);
    gl_arena_done(&a);
    return true;
}
