/* Broken manifests, and exactly what is said about them (support/broken.h). With the name of a file
 * as argument it prints what would be said. */
#include "support/cmocka_all.h"

#include "base/check.h"
#include "model/bundle/manifest.h"
#include "support/broken.h"

static struct gl_payload payloads[] = {
    {.path = {"data.txt", 8}},
    {.path = {"skills/alpha/src/alpha/__init__.py", 34}},
    {.path = {"worker/lib/util.py", 18}},
    {.path = {"worker/run.py", 13}},
};

static int judge(const struct gl_json *j, struct gl_arena *a, struct gl_flow_errors *reterr)
{
    const struct gl_manifest_given given = {.payloads = {payloads, GL_COUNT(payloads)}};
    struct gl_flow *flow;
    return gl_manifest_parse(j, gl_json_root(j), &given, a, &flow, reterr);
}

static const struct broken_kind manifests = {.folder = GL_SOURCE_ROOT "/test/flows/bundles-broken",
                                             .ending = ".json",
                                             .files_min = 12,
                                             .parse = gl_json_parse,
                                             .judge = judge};

static void every_broken_manifest_gets_its_exact_words(void **state)
{
    (void)state;
    broken_check_all(&manifests);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_manifest_gets_its_exact_words)};
    return broken_print(&manifests, argc, argv) ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
