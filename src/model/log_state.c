#include "model/log_state.h"

#include "base/check.h"
#include "base/gzip.h"
#include "base/limits.h"

/* ---- records ---- */

static const struct gl_field job_fields[] = {
    GL_FIELD(gl_log_job, bytes, U64, GL_FF_ALWAYS, "size of all its chunks, compressed"),
};

static const struct gl_field chunk_fields[] = {
    GL_FIELD(gl_log_chunk, from, U64, GL_FF_ALWAYS, "where it begins in the log"),
    GL_FIELD(gl_log_chunk, to, U64, GL_FF_ALWAYS, "where it ends"),
    GL_FIELD(gl_log_chunk, bytes, U64, GL_FF_ALWAYS, "its size, compressed"),
};

static const struct gl_schema chunk_schema = {.name = "logchunk",
                                              .bytes = sizeof(struct gl_log_chunk),
                                              .fields = chunk_fields,
                                              .fields_n = GL_COUNT(chunk_fields)};

static const struct gl_field head_fields[] = {
    GL_FIELD(gl_log_head, node, STR, 0, "the node that ran the attempt"),
    GL_FIELD(gl_log_head, size, U64, GL_FF_ALWAYS, "size of the whole log"),
    GL_FIELD(gl_log_head, first, U32, GL_FF_ALWAYS, "number of the first chunk"),
    GL_FIELD_SUB(gl_log_head, chunks, LIST, &chunk_schema, 0, "its chunks, in order"),
    GL_FIELD(gl_log_head, ended, BOOL, 0, "nothing more will be written"),
    GL_FIELD(gl_log_head, full, BOOL, 0, "the job's logs have reached their limit"),
};

const struct gl_schema gl_log_job_schema = {
    .name = "log_job",
    .doc = "What the logs of a job take in the store.",
    .bytes = sizeof(struct gl_log_job),
    .fields = job_fields,
    .fields_n = GL_COUNT(job_fields),
};

const struct gl_schema gl_log_head_schema = {
    .name = "log",
    .doc = "The log of an attempt, as far as it is in the store.",
    .bytes = sizeof(struct gl_log_head),
    .fields = head_fields,
    .fields_n = GL_COUNT(head_fields),
};

static bool read_value(const struct gl_schema *s, gl_str value, struct gl_arena *a, void *ret)
{
    struct gl_json j;

    return gl_json_parse(&j, gl_str_dup(a, value), GL_RECORD_BYTES_MAX, a, NULL) == 0 &&
           gl_schema_read(s, &j, gl_json_root(&j), false, a, ret, NULL) == 0;
}

static gl_str write_value(const struct gl_schema *s, const void *object, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf buf = {0};
    struct gl_jw w;

    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_schema_write(s, object, &w, GL_FOR_STORE);
    gl_jw_end(&w);
    return gl_str_dup(a, gl_buf_view(&buf));
}

bool gl_log_job_read(gl_str value, struct gl_arena *a, struct gl_log_job *ret)
{
    return read_value(&gl_log_job_schema, value, a, ret);
}

gl_str gl_log_job_write(const struct gl_log_job *j, struct gl_arena *a)
{
    return write_value(&gl_log_job_schema, j, a);
}

bool gl_log_head_read(gl_str value, struct gl_arena *a, struct gl_log_head *ret)
{
    struct gl_log_head h;
    const struct gl_log_chunk *c;
    uint64_t at = 0;

    if (!read_value(&gl_log_head_schema, value, a, &h) || h.chunks.n > GL_LOG_CHUNKS_MAX) {
        return false;
    }
    c = h.chunks.items;
    for (size_t i = 0; i < h.chunks.n; i++) {
        if (c[i].from < at || c[i].to < c[i].from) {
            return false;
        }
        at = c[i].to;
    }
    *ret = h;
    return true;
}

gl_str gl_log_head_write(const struct gl_log_head *h, struct gl_arena *a)
{
    return write_value(&gl_log_head_schema, h, a);
}

gl_str gl_log_head_id(gl_str job, gl_str attempt, struct gl_arena *a)
{
    return gl_str_fmt(a, "%.*s/%.*s", GL_STR_ARG(job), GL_STR_ARG(attempt));
}

gl_str gl_log_chunk_id(gl_str job, gl_str attempt, uint32_t number, struct gl_arena *a)
{
    return gl_str_fmt(a, "%.*s/%.*s/%u", GL_STR_ARG(job), GL_STR_ARG(attempt), number);
}

/* ---- what is there ---- */

uint64_t gl_log_head_end(const struct gl_log_head *h)
{
    const struct gl_log_chunk *c = h->chunks.items;

    return h->chunks.n > 0 ? c[h->chunks.n - 1].to : 0;
}

uint64_t gl_log_head_dropped(const struct gl_log_head *h)
{
    const struct gl_log_chunk *c = h->chunks.items;

    return h->chunks.n > 0 ? c[0].from : 0;
}

size_t gl_log_head_spare(const struct gl_log_head *h, uint64_t keep_bytes)
{
    const struct gl_log_chunk *c = h->chunks.items;
    uint64_t sum = 0;
    size_t i = h->chunks.n;

    while (i > 0 && sum < keep_bytes) {
        i--;
        sum += c[i].to - c[i].from;
    }
    GL_ASSERT(i < h->chunks.n || h->chunks.n == 0 || keep_bytes == 0);
    return i;
}

int64_t gl_log_head_find(const struct gl_log_head *h, uint64_t offset)
{
    const struct gl_log_chunk *c = h->chunks.items;

    for (size_t i = 0; i < h->chunks.n; i++) {
        if (offset < c[i].to) {
            return (int64_t)i;
        }
    }
    return -1;
}

/* ---- chunks ---- */

static size_t whole_lines(gl_str text)
{
    const char *newline = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;

    return newline != NULL ? (size_t)(newline + 1 - text.p) : 0;
}

size_t gl_log_chunk_pack(gl_str lines, struct gl_buf *out)
{
    size_t n = whole_lines(lines), before = out->n;

    while (n > 0) {
        size_t half = whole_lines((gl_str){.p = lines.p, .n = n / 2});

        out->n = before;
        gl_gzip_pack((gl_str){.p = lines.p, .n = n}, out);
        if (out->n - before <= GL_LOG_CHUNK_BYTES_MAX) {
            break;
        }
        if (half == 0) { /* the first line takes more than half: try it alone */
            const char *newline = memchr(lines.p, '\n', n);

            half = (size_t)(newline + 1 - lines.p);
            if (half == n) {
                break; /* one line that cannot be compressed exceeds the limit a little */
            }
        }
        n = half;
    }
    GL_ASSERT(n <= lines.n);
    return n;
}

bool gl_log_chunk_grows(const struct gl_log_chunk *c)
{
    GL_ASSERT(c->from <= c->to);
    return c->bytes < GL_LOG_CHUNK_BYTES_MAX / 2 && c->to - c->from < GL_LOG_PAGE_BYTES / 2;
}

uint64_t gl_log_chunk_slice(gl_str lines, uint64_t from, uint64_t offset, struct gl_buf *out)
{
    uint64_t skip = offset > from ? offset - from : 0;

    if (offset < from) {
        gl_buf_fmt(out, "-- %llu bytes dropped --\n", (unsigned long long)(from - offset));
    }
    if (skip < lines.n) {
        gl_buf_str(out, (gl_str){.p = lines.p + skip, .n = lines.n - (size_t)skip});
    }
    return skip < lines.n ? from + lines.n : offset;
}
