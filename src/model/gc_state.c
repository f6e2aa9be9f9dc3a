#include "model/gc_state.h"

#include "base/check.h"
#include "base/limits.h"

static const struct gl_field blob_fields[] = {
    GL_FIELD(gl_gc_blob, size, U64, GL_FF_ALWAYS, "how many bytes it has"),
    GL_FIELD(gl_gc_blob, pieces, U32, GL_FF_ALWAYS, "how many pieces it has"),
    GL_FIELD(gl_gc_blob, at, TIME, GL_FF_ALWAYS, "when writing began"),
    GL_FIELD(gl_gc_blob, was_whole, BOOL, 0, "condemned, with all its pieces present"),
};

const struct gl_schema gl_gc_blob_schema = {
    .name = "blob",
    .doc = "A file of a flow, in the store.",
    .bytes = sizeof(struct gl_gc_blob),
    .fields = blob_fields,
    .fields_n = GL_COUNT(blob_fields),
};

uint32_t gl_gc_blob_pieces(uint64_t size)
{
    GL_ASSERT(size <= GL_BLOB_BYTES_MAX);
    return (uint32_t)((size + GL_GC_PIECE_BYTES - 1) / GL_GC_PIECE_BYTES);
}

bool gl_gc_blob_read(gl_str value, struct gl_arena *a, struct gl_gc_blob *ret)
{
    struct gl_json j;

    return gl_json_parse(&j, value, GL_RECORD_BYTES_MAX, a, NULL) == 0 &&
           gl_schema_read(&gl_gc_blob_schema, &j, gl_json_root(&j), false, a, ret, NULL) == 0 &&
           ret->size <= GL_BLOB_BYTES_MAX && ret->pieces == gl_gc_blob_pieces(ret->size);
}

gl_str gl_gc_blob_write(const struct gl_gc_blob *b, struct gl_arena *a)
{
    struct gl_buf buf = {0};
    struct gl_jw w;
    gl_str text;

    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_schema_write(&gl_gc_blob_schema, b, &w, GL_FOR_STORE);
    gl_jw_end(&w);
    text = gl_str_dup(a, gl_buf_view(&buf));
    gl_buf_done(&buf);
    return text;
}
