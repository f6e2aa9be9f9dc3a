/* adopt.c - strings that belong to the core's pool, alone and as fields of a record. The pool takes
 * the size back when it frees, so a string must never be shortened in place. */
#include "base/check.h"
#include "core/core_state.h"

void gl_core_set(struct gl_core *c, gl_str *dst, gl_str value)
{
    char *copy = NULL;

    GL_ASSERT(GL_IMPLIES(value.n > 0, value.p != NULL));
    GL_ASSERT(GL_IMPLIES(dst->n > 0, dst->p != NULL));
    if (value.n > 0) {
        copy = gl_pool_alloc(&c->mem, value.n);
        memcpy(copy, value.p, value.n);
    }
    if (dst->n > 0) {
        gl_pool_free(&c->mem, (char *)dst->p, dst->n);
    }
    *dst = (gl_str){.p = copy, .n = value.n};
}

static size_t bytes_of(const struct gl_field *f)
{
    switch (f->type) {
    case GL_F_BOOL:
        return sizeof(bool);
    case GL_F_U32:
        return sizeof(uint32_t);
    case GL_F_ENUM:
        return sizeof(uint8_t);
    case GL_F_I64:
    case GL_F_U64:
    case GL_F_TIME:
    case GL_F_SPAN:
    case GL_F_DURATION:
        return sizeof(int64_t);
    default: /* no record in the core's memory contains lists */
        GL_UNREACHABLE();
    }
}

static bool is_string(const struct gl_field *f)
{
    return f->type == GL_F_STR || f->type == GL_F_RAW;
}

void gl_core_adopt(struct gl_core *c, const struct gl_schema *schema, void *dst, const void *src)
{
    GL_ASSERT((const char *)src + schema->bytes <= (char *)dst ||
              (char *)dst + schema->bytes <= (const char *)src);
    for (size_t i = 0; i < schema->fields_n; i++) {
        const struct gl_field *f = &schema->fields[i];
        void *to = (char *)dst + f->offset;
        const void *from = (const char *)src + f->offset;
        GL_ASSERT(f->offset < schema->bytes);

        if (f->flags & GL_FF_LENT) {
            continue;
        }
        if (is_string(f)) {
            gl_core_set(c, to, *(const gl_str *)from);
        } else {
            memcpy(to, from, bytes_of(f));
        }
    }
}

void gl_core_disown(struct gl_core *c, const struct gl_schema *schema, void *object)
{
    for (size_t i = 0; i < schema->fields_n; i++) {
        const struct gl_field *f = &schema->fields[i];
        gl_str *string = (gl_str *)((char *)object + f->offset);

        /* Most strings of most records are empty, and this is done for each step and job. */
        if (is_string(f) && string->n > 0 && !(f->flags & GL_FF_LENT)) {
            gl_core_set(c, string, (gl_str){0});
        }
    }
}
