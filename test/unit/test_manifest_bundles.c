/* Every bundle of examples/ and test/ compiles, and its compiled form is read back the same. With a
 * folder as argument it prints what is said about that bundle, and its compiled form. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "model/bundle/manifest.h"

enum { BUNDLES_MIN = 10, FILE_MAX = 1 << 20 };

static const char *const folders[] = {GL_SOURCE_ROOT "/examples/bundles",
                                      GL_SOURCE_ROOT "/test/bundles",
                                      GL_SOURCE_ROOT "/test/bundles/forms"};

static gl_str read_all(struct gl_arena *a, const char *path)
{
    char *text = gl_arena_alloc(a, FILE_MAX);
    FILE *file = fopen(path, "r");
    size_t n;

    if (file == NULL) {
        return (gl_str){0};
    }
    n = fread(text, 1, FILE_MAX, file);
    (void)fclose(file);
    return (gl_str){.p = text, .n = n};
}

/* nftw() gives its callback no argument. */
static struct gl_payload found[1000];
static size_t found_n, found_from;
static struct gl_arena *found_in;

static int note_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type == FTW_F && found_n < 1000) {
        char hex[65];

        found[found_n].path = gl_str_dup(found_in, gl_str_of(path + found_from));
        found[found_n++].blob = gl_str_dup(found_in, gl_sha256_hex(gl_str_of(path), hex));
    }
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return gl_str_cmp(((const struct gl_payload *)a)->path, ((const struct gl_payload *)b)->path);
}

static void list_payloads(struct gl_arena *a, const char *bundle)
{
    gl_str root = gl_str_fmt(a, "%s/payloads", bundle);

    found_n = 0;
    found_from = root.n + 1;
    found_in = a;
    (void)nftw(root.p, note_file, 8, FTW_PHYS);
    qsort(found, found_n, sizeof(found[0]), by_path);
}

static int judge(struct gl_arena *a, const char *bundle, struct gl_buf *out)
{
    static struct gl_flow_errors errors;
    struct gl_manifest_given given = {0};
    struct gl_json j;
    struct gl_flow *f, *back;
    struct gl_buf again = {0};
    struct gl_why why = {0};
    gl_str text = read_all(a, gl_str_fmt(a, "%s/manifest.json", bundle).p);
    int rc;

    list_payloads(a, bundle);
    given.payloads = (struct gl_items){.items = found, .n = found_n};
    rc = gl_manifest_config(read_all(a, gl_str_fmt(a, "%s/config/default.json", bundle).p),
                            read_all(a, gl_str_fmt(a, "%s/config/overwrite.json", bundle).p), NULL,
                            a, &given.config, &why);
    if (rc != 0 || (rc = gl_json_parse(&j, text, FILE_MAX, a, &why)) != 0) {
        gl_buf_fmt(out, "%s\n", why.text);
        return rc;
    }
    assert_true(gl_manifest_is(&j, gl_json_root(&j)));
    if (gl_manifest_parse(&j, gl_json_root(&j), &given, a, &f, &errors) != 0) {
        for (size_t i = 0; i < errors.n; i++) {
            gl_buf_fmt(out, "%u:%u: %.*s: %.*s\n", errors.items[i].line, errors.items[i].column,
                       GL_STR_ARG(errors.items[i].path), GL_STR_ARG(errors.items[i].text));
        }
        return GL_E_INVALID;
    }
    gl_flow_encode(f, out);
    rc = gl_flow_decode(gl_buf_view(out), a, &back, &why);
    if (rc != 0) {
        gl_buf_fmt(out, "\ncannot be read back: %s\n", why.text);
        return rc;
    }
    gl_flow_encode(back, &again);
    assert_true(gl_str_eq(gl_buf_view(out), gl_buf_view(&again)));
    gl_buf_done(&again);
    return 0;
}

static unsigned check_folder(const char *path)
{
    DIR *folder = opendir(path);
    unsigned bundles = 0;

    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        struct gl_arena a = {0};
        struct gl_buf out = {0};
        gl_str bundle = gl_str_fmt(&a, "%s/%s", path, e->d_name);

        if (e->d_name[0] != '.' &&
            read_all(&a, gl_str_fmt(&a, "%s/manifest.json", bundle.p).p).n > 0) {
            if (judge(&a, bundle.p, &out) != 0) {
                fail_msg("%s:\n%.*s", bundle.p, GL_STR_ARG(gl_buf_view(&out)));
            }
            bundles++;
        }
        gl_buf_done(&out);
        gl_arena_done(&a);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return bundles;
}

static void every_bundle_here_compiles(void **state)
{
    unsigned bundles = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        bundles += check_folder(folders[i]);
    }
    assert_true(bundles >= BUNDLES_MIN);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_bundle_here_compiles)};

    if (argc == 2) {
        struct gl_arena a = {0};
        struct gl_buf out = {0};
        int rc = judge(&a, argv[1], &out);

        (void)printf("%.*s\n", GL_STR_ARG(gl_buf_view(&out)));
        gl_buf_done(&out);
        gl_arena_done(&a);
        return rc != 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
