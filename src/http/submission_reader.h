/* submission_reader.h - turns the JSON of one or many submissions into requests.
 *
 * Reads JSON, compiles flows and stores their texts as blobs; knows no connection. A flow that
 * occurs several times in a batch, with the same text, is compiled once.
 *
 *   gl_submission_reader_init()    for one request body
 *   gl_submission_reader_next()    for each submission in it
 *   gl_submission_reader_done() */
#ifndef GL_HTTP_SUBMISSION_READER_H
#define GL_HTTP_SUBMISSION_READER_H

#include "http/http_call.h"
#include "model/schema.h"

struct gl_submission_reader {
    struct gl_arena *arena; /* borrowed: results live there */
    struct gl_blob *blob;
    gl_str context;
    const struct gl_json *json; /* the body */
    gl_jnode flow, files;       /* of the whole batch; NULL: none */
    struct gl_map compiled;     /* by the text of `flow` and `files` */
};

void gl_submission_reader_init(struct gl_submission_reader *s, struct gl_arena *arena,
                               struct gl_blob *blob, gl_str context, const struct gl_json *json);
void gl_submission_reader_done(struct gl_submission_reader *s);

/* The compiled form; false: it is too large, and *refusal is set for `field`. */
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
