/* effect.c - appends effects, and asserts the rule that a transaction waits for nothing. */
#include "core/effect.h"

#include "base/check.h"

struct gl_effect *gl_effect_add(struct gl_effects *out, enum gl_effect_type type, uint64_t after)
{
    GL_ASSERT(type < GL_FX_COUNT);
    if (out->n == out->cap) {
        size_t cap = out->cap == 0 ? 8 : out->cap * 2;
        struct gl_effect *items = GL_NEW_ARRAY(out->arena, struct gl_effect, cap);

        if (out->n > 0) {
            memcpy(items, out->items, out->n * sizeof(*items));
        }
        out->items = items;
        out->cap = cap;
    }
    GL_ASSERT(out->n < out->cap);
    GL_ASSERT(GL_IMPLIES(type == GL_FX_COMMIT, after == 0)); /* a transaction waits for nothing */
    out->items[out->n] = (struct gl_effect){.type = type, .after = after};
    return &out->items[out->n++];
}

const char *gl_effect_name(enum gl_effect_type type)
{
#define X(name, word) word,
    static const char *const words[] = {GL_EFFECTS(X)};
#undef X
    GL_ASSERT(type < GL_FX_COUNT);
    return words[type];
}
