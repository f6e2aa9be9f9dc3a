/* submits.h - submissions as clients write them, one or many in a body, made into requests.
 *
 * Knows no connection: it reads JSON, compiles flows and keeps their texts as blobs. A flow that
 * stands in a batch many times, in the same words, is compiled once. */
#ifndef GL_HTTP_SUBMITS_H
#define GL_HTTP_SUBMITS_H

#include "http/call.h"
#include "model/schema.h"

struct gl_submits {
    struct gl_arena *arena; /* borrowed: what is made lives there */
    struct gl_blob *blob;
    gl_str context;
    const struct gl_json *json; /* the body */
    gl_jnode flow, files;       /* of the whole batch; NULL: none */
    struct gl_map compiled;     /* by the text of `flow` and `files` */
};

void gl_submits_init(struct gl_submits *s, struct gl_arena *arena, struct gl_blob *blob,
                     gl_str context, const struct gl_json *json);
void gl_submits_done(struct gl_submits *s);

/* The compiled form; false: it is too large, which *refusal says of `field`. */
bool gl_submits_encode(struct gl_submits *s, const struct gl_flow *flow, const char *field,
                       gl_str *ret, struct gl_refusal *refusal);
bool gl_submits_is_hash(gl_str s); /* 64 lower-case hex digits */

/* ---- packet.c: the member `bundle` of a submission, compiled ---- */
bool gl_packet_compile(struct gl_submits *s, gl_jnode bundle, gl_str *ret,
                       struct gl_refusal *refusal);

/* Fill in `rq` from one submission. False: *refusal says why not. */
bool gl_submits_read(struct gl_submits *s, gl_jnode one, struct gl_request *rq,
                     struct gl_refusal *refusal);

#endif
