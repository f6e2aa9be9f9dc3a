/* submission_reader.h - submissions as clients write them, one or many in a body, made into
 * requests.
 *
 * Knows no connection: it reads JSON, compiles flows and keeps their texts as blobs. A flow that
 * stands in a batch many times, in the same words, is compiled once. */
#ifndef GL_HTTP_SUBMISSION_READER_H
#define GL_HTTP_SUBMISSION_READER_H

#include "http/http_call.h"
#include "model/schema.h"

struct gl_submission_reader {
    struct gl_arena *arena; /* borrowed: what is made lives there */
    struct gl_blob *blob;
    gl_str context;
    const struct gl_json *json; /* the body */
    gl_jnode flow, files;       /* of the whole batch; NULL: none */
    struct gl_map compiled;     /* by the text of `flow` and `files` */
};

void gl_submission_reader_init(struct gl_submission_reader *s, struct gl_arena *arena,
                               struct gl_blob *blob, gl_str context, const struct gl_json *json);
void gl_submission_reader_done(struct gl_submission_reader *s);

/* The compiled form; false: it is too large, which *refusal says of `field`. */
bool gl_submission_encode_flow(struct gl_submission_reader *s, const struct gl_flow *flow,
                               const char *field, gl_str *ret, struct gl_refusal *refusal);
bool gl_submission_is_hash(gl_str s); /* 64 lower-case hex digits */

/* ---- bundle_submit.c: the member `bundle` of a submission, compiled ---- */
bool gl_bundle_submit_compile(struct gl_submission_reader *s, gl_jnode bundle, gl_str *ret,
                              struct gl_refusal *refusal);

/* Fill in `rq` from one submission. False: *refusal says why not. */
bool gl_submission_reader_next(struct gl_submission_reader *s, gl_jnode one, struct gl_request *rq,
                               struct gl_refusal *refusal);

#endif
