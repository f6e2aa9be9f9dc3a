#include "api/stored_log.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/gzip.h"
#include "base/limits.h"
#include "model/log_state.h"

enum { ANSWER_BYTES_MAX = 256 << 20 };

static uint64_t number_of(const struct gl_json *j, gl_jnode object, const char *name)
{
    uint64_t number = 0;

    (void)gl_json_u64(j, gl_json_get(j, object, name), &number); /* absent: 0 */
    return number;
}

bool gl_stored_log_read(gl_str body, struct gl_arena *a, struct gl_stored_logs *ret)
{
    struct gl_json j;
    struct gl_stored_log *logs;
    gl_jnode list, chunk;

    *ret = (struct gl_stored_logs){0};
    if (gl_json_parse(&j, gl_str_dup(a, body), ANSWER_BYTES_MAX, a, NULL) != 0) {
        return false;
    }
    list = gl_json_get(&j, gl_json_root(&j), "attempts");
    if (list == NULL) {
        return false;
    }
    logs = GL_NEW_ARRAY(a, struct gl_stored_log, list->count + 1);
    for (gl_jnode e = gl_json_first(&j, list); e != NULL; e = gl_json_after(&j, list, e)) {
        logs[ret->n++] =
            (struct gl_stored_log){.step = gl_json_str(&j, gl_json_get(&j, e, "step_id"), a),
                                   .node = gl_json_str(&j, gl_json_get(&j, e, "node"), a),
                                   .attempt = (uint32_t)number_of(&j, e, "attempt"),
                                   .bytes = number_of(&j, e, "bytes"),
                                   .from = number_of(&j, e, "from"),
                                   .to = number_of(&j, e, "to"),
                                   .ended = gl_json_is(gl_json_get(&j, e, "ended"), GL_JSON_TRUE),
                                   .full = gl_json_is(gl_json_get(&j, e, "full"), GL_JSON_TRUE)};
    }
    ret->logs = logs;
    chunk = gl_json_get(&j, gl_json_root(&j), "chunk");
    ret->has_chunk = chunk != NULL;
    ret->chunk_from = number_of(&j, chunk, "from");
    ret->chunk = gl_json_str(&j, gl_json_get(&j, chunk, "gzip"), a);
    return true;
}

int gl_stored_log_text(const struct gl_stored_logs *s, uint64_t offset, struct gl_buf *out,
                       uint64_t *ret_next, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf packed = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf lines = {0};

    *ret_next = offset;
    if (!s->has_chunk) {
        return 0;
    }
    if (!gl_base64_decode(s->chunk, &packed) ||
        gl_gzip_unpack(gl_buf_view(&packed), GL_LOG_PAGE_BYTES, &lines, NULL) != 0) {
        return gl_why(reterr_why, GL_E_DAMAGED, "a part of this log is damaged in the store");
    }
    *ret_next = gl_log_chunk_slice(gl_buf_view(&lines), s->chunk_from, offset, out);
    return 0;
}

gl_str gl_stored_log_missing(const struct gl_stored_log *l, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};

    if (l->from > 0) {
        gl_buf_fmt(&text, "the first %llu bytes are not in the store", (unsigned long long)l->from);
    }
    if (l->full) {
        gl_buf_fmt(&text,
                   "%sthe last %llu bytes are not, because the logs of the job have reached "
                   "their limit",
                   text.n > 0 ? ", and " : "",
                   (unsigned long long)(l->bytes > l->to ? l->bytes - l->to : 0));
    } else if (!l->ended) {
        gl_buf_fmt(&text, "%sits end may be missing: the node has not finished copying it",
                   text.n > 0 ? "; " : "");
    }
    return gl_str_dup(a, gl_buf_view(&text));
}
