/* fuzz_labels - the labels of a node, as an operator writes them and as another node publishes
 * them, and the capacity beside them. What is accepted keeps the rules and survives a round through
 * JSON; what is refused is explained. */
#include <stdint.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/capacity.h"
#include "model/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gl_labels *labels, struct gl_arena *a)
{
    struct gl_buf out = {0};
    struct gl_labels again;
    struct gl_json j;
    struct gl_jw w;

    GL_ASSERT(labels->n <= GL_LABELS_MAX);
    gl_jw_init(&w, &out);
    gl_labels_write(labels, &w);
    GL_ASSERT(gl_json_parse(&j, gl_buf_view(&out), GL_ABOUT_BYTES_MAX, a, NULL) == 0);
    GL_ASSERT(gl_labels_read(&j, gl_json_root(&j), a, &again));
    GL_ASSERT(again.n == labels->n);
    for (size_t i = 0; i < again.n; i++) {
        GL_ASSERT(again.items[i].name.n > 0 && again.items[i].name.n <= GL_LABEL_BYTES_MAX);
        GL_ASSERT(again.items[i].value.n > 0 && again.items[i].value.n <= GL_LABEL_BYTES_MAX);
        GL_ASSERT(gl_str_eq(again.items[i].name, labels->items[i].name));
        GL_ASSERT(gl_str_eq(again.items[i].value, labels->items[i].value));
    }
    gl_buf_done(&out);
}

static void check_capacity(const struct gl_capacity *c, struct gl_arena *a)
{
    struct gl_buf out = {0};
    struct gl_capacity again;
    struct gl_json j;
    struct gl_jw w;

    GL_ASSERT(c->disk_free_bytes <= c->disk_bytes);
    gl_jw_init(&w, &out);
    gl_capacity_write(c, &w);
    GL_ASSERT(gl_json_parse(&j, gl_buf_view(&out), GL_ABOUT_BYTES_MAX, a, NULL) == 0);
    GL_ASSERT(gl_capacity_read(&j, gl_json_root(&j), &again));
    GL_ASSERT(memcmp(&again, c, sizeof(again)) == 0);
    gl_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    struct gl_capacity capacity;
    struct gl_labels labels;
    struct gl_json j;
    struct gl_why why = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size}; /* its end is guarded under ASan */

    if (gl_labels_parse(text, &a, &labels, &why) == 0) {
        check(&labels, &a);
    } else {
        GL_ASSERT(why.code == GL_E_INVALID);
        GL_ASSERT(why.text[0] != '\0');
    }
    if (gl_json_parse(&j, text, GL_ABOUT_BYTES_MAX, &a, NULL) == 0) {
        if (gl_labels_read(&j, gl_json_root(&j), &a, &labels)) {
            check(&labels, &a);
        }
        if (gl_capacity_read(&j, gl_json_root(&j), &capacity)) {
            check_capacity(&capacity, &a);
        }
    }
    gl_arena_done(&a);
    return 0;
}
