/* fuzz_yaml - any bytes as YAML: the tape must be well-formed, its JSON must be JSON, and its
 * places must lie in the source. */
#include <stdint.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/text/yaml.h"

enum { BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tape(const struct gl_json *j, struct gl_arena *a)
{
    struct gl_json again;
    GL_ASSERT(j->text.n <= BYTES_MAX);
    GL_ASSERT(j->depth <= GL_JSON_DEPTH_MAX);
    GL_ASSERT(gl_json_parse(&again, j->text, BYTES_MAX, a, NULL) == 0);
    GL_ASSERT(again.nodes_n == j->nodes_n);
    for (size_t i = 0; i < j->nodes_n; i++) {
        GL_ASSERT(j->nodes[i].at <= j->source.n);
        GL_ASSERT(j->nodes[i].start == again.nodes[i].start);
        GL_ASSERT(j->nodes[i].end == again.nodes[i].end);
        GL_ASSERT(j->nodes[i].next == again.nodes[i].next);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    struct gl_json j;
    struct gl_why why = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size}; /* its end is guarded under ASan */
    int rc = gl_yaml_parse(&j, text, BYTES_MAX, &a, &why);
    if (rc == 0) {
        check_tape(&j, &a);
    } else {
        GL_ASSERT(rc == GL_E_INVALID || rc == GL_E_LIMIT);
        GL_ASSERT(why.text[0]);
    }
    gl_arena_done(&a);
    return 0;
}
