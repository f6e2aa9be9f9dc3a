/* Broken flow files, and exactly what is said about them (support/broken.h). With the name of a
 * file as argument it prints what would be said. */
#include "support/cmocka_all.h"

#include "base/check.h"
#include "base/sha256.h"
#include "model/flow/flow.h"
#include "model/text/yaml.h"
#include "support/broken.h"

static int load(struct gl_flow_loader *l, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    (void)l;
    if (gl_str_starts(source, GL_S("missing"))) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "%.*s: there is no such file",
                      GL_STR_ARG(source));
    }
    (void)gl_sha256_hex(source.n ? source : text, ret_hex);
    *ret_executable = false;
    return 0;
}

static int judge(const struct gl_json *j, struct gl_arena *a, struct gl_flow_errors *reterr)
{
    struct gl_flow_loader loader = {.load = load};
    struct gl_flow *flow;
    return gl_flow_parse(j, gl_json_root(j), &loader, a, &flow, reterr);
}

static const struct broken_kind flows = {.folder = GL_SOURCE_ROOT "/test/flows/broken",
                                         .ending = ".yaml",
                                         .files_min = 20,
                                         .parse = gl_yaml_parse,
                                         .judge = judge};

static void every_broken_flow_gets_its_exact_words(void **state)
{
    (void)state;
    broken_check_all(&flows);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_broken_flow_gets_its_exact_words)};
    return broken_print(&flows, argc, argv) ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
