/* Broken manifests, and exactly what is said about them: test/flows/bundles-broken/NAME.json with
 * NAME.expected, in the words and with the caret that `glia validate` shows. With the name of a
 * file as argument it prints what would be said. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "model/manifest.h"

#define FOLDER GL_SOURCE_ROOT "/test/flows/bundles-broken"

enum { FILES_MIN = 12 };

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

static struct gl_payload payloads[] = {
    {.path = {"data.txt", 8}},
    {.path = {"skills/alpha/src/alpha/__init__.py", 34}},
    {.path = {"worker/lib/util.py", 18}},
    {.path = {"worker/run.py", 13}},
};

static void put_caret(struct gl_buf *out, gl_str text, const struct gl_flow_error *e)
{
    gl_str line = {0};
    for (unsigned i = 0; i < e->line; i++) {
        line = gl_str_cut(text, '\n', &text);
    }
    gl_buf_fmt(out, "%6u | %.*s\n       | %*s^\n", e->line, GL_STR_ARG(line), (int)e->column - 1,
               "");
}

/* All that is said about a manifest. */
static void judge(struct gl_arena *a, gl_str text, struct gl_buf *out)
{
    static struct gl_flow_errors errors;
    const struct gl_manifest_given given = {.payloads = {payloads, GL_COUNT(payloads)}};
    struct gl_json j;
    struct gl_flow *flow;
    struct gl_why why;
    if (gl_json_parse(&j, text, 1 << 20, a, &why)) {
        gl_buf_fmt(out, "%s\n", why.text);
        return;
    }
    if (gl_manifest_parse(&j, gl_json_root(&j), &given, a, &flow, &errors) == 0) {
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

static void check_file(struct gl_arena *a, const char *name)
{
    gl_str stem = {name, strlen(name) - strlen(".json")};
    gl_str text = read_all(a, gl_str_fmt(a, FOLDER "/%s", name).p);
    gl_str expected = read_all(a, gl_str_fmt(a, FOLDER "/%.*s.expected", GL_STR_ARG(stem)).p);
    struct gl_buf out = {0};
    judge(a, text, &out);
    if (!gl_str_eq(gl_buf_view(&out), expected)) {
        fail_msg("%s: expected\n%.*s\ngot\n%.*s", name, GL_STR_ARG(expected),
                 GL_STR_ARG(gl_buf_view(&out)));
    }
    gl_buf_done(&out);
}

static void every_broken_manifest_gets_its_exact_words(void **state)
{
    (void)state;
    struct gl_arena a = {0};
    DIR *folder = opendir(FOLDER);
    unsigned files = 0;
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (gl_str_ends(gl_str_of(e->d_name), GL_S(".json"))) {
            check_file(&a, e->d_name);
            files++;
        }
    }
    (void)closedir(folder);
    gl_arena_done(&a);
    assert_true(files >= FILES_MIN);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        struct gl_arena a = {0};
        struct gl_buf out = {0};
        judge(&a, read_all(&a, argv[1]), &out);
        (void)fwrite(out.p, 1, out.n, stdout);
        gl_buf_done(&out);
        gl_arena_done(&a);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_manifest_gets_its_exact_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
