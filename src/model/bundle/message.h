/* message.h - messages between agents: {envelope, headers, body, artifacts, stream}.
 *
 * The runtime reads the envelope and the headers. A body is raw text, passed on unchanged; above
 * GL_BODY_BYTES_MAX it is stored in pieces, and `body` is null while `artifacts` names it
 * (GL_ARTIFACT_BODY). */
#ifndef GL_MODEL_BUNDLE_MESSAGE_H
#define GL_MODEL_BUNDLE_MESSAGE_H

#include "base/json.h"
#include "base/times.h"
#include "model/schema.h"

#define GL_MESSAGE_SPEC "mn-msg/1"
/* Name of the artifact that is the body: {name, sha256, bytes, letter} */
#define GL_ARTIFACT_BODY "glia:body"

/* In a message whose content type is not JSON, a text with this prefix is base64. */
#define GL_BODY_BYTES "data:;base64,"

struct gl_message {
    gl_str message_id, job_id, from, to, type;
    gl_str class_name; /* "event", "command" */
    gl_ms timestamp;
    gl_str correlation_id, causation_id;
    uint32_t attempt;
    int64_t priority; /* higher is handled sooner; GL_MESSAGE_PRIORITY is the usual one */
    gl_ms ttl_ms;     /* 0: none */
    gl_str content_type, content_encoding;   /* application/json; identity or gzip */
    gl_str headers, body, artifacts, stream; /* JSON; "" : {}, null, [], null */
};

/* The headers mn.workflow.*, with which the ledger labels a message. Zero and "" are omitted. */
struct gl_message_ledger {
    gl_str run_id, step_id, template_id, region_id, attempt_id, idempotency_key, source_step_id;
    bool has_revision;
    uint64_t graph_revision;
    uint32_t attempt;
    gl_ms deadline_at, heartbeat_deadline_at, timeout_ms, heartbeat_timeout_ms;
};

/* A body that is not in its message: the JSON text `sha256`, in pieces of GL_BODY_PIECE_BYTES under
 * the number of the message that carried it. */
struct gl_body_ref {
    gl_str sha256;
    uint64_t bytes, message_number;
};

void gl_message_defaults(struct gl_message *m);
/* The nearest allowed one: a message that is already on its way may have any number. */
int64_t gl_message_clamp_priority(int64_t priority);
/* The whole message as JSON. */
void gl_message_write(const struct gl_message *m, struct gl_buf *out);
/* Strings borrow from `text` or live in `a`. GL_E_INVALID names the invalid field. */
int gl_message_read(gl_str text, struct gl_arena *a, struct gl_message *ret,
                    struct gl_why *reterr_why);
/* A value from `initial_inputs`, or the data of a signal: an object may contain parts of the
 * envelope beside its body; anything else is the body. Absent fields are unchanged in `ret`, so
 * callers set defaults first. */
int gl_message_seed(gl_str value, struct gl_arena *a, struct gl_message *ret,
                    struct gl_why *reterr_why);
/* One element of `emit_messages`: {to?, type, body|payload|body_base64, ...}. Absent fields are
 * inherited from `incoming`, as the contract requires (class, correlation, content type, artifacts,
 * ...). body_base64 becomes a JSON string in `body`, or a JSON value if content_type is JSON; bytes
 * that are not text follow the prefix GL_BODY_BYTES. The default content_type is
 * application/octet-stream. */
int gl_message_emitted(const struct gl_json *j, gl_jnode n, const struct gl_message *incoming,
                       struct gl_arena *a, struct gl_message *ret, struct gl_why *reterr_why);
/* What an emitted message inherits from the one it answers: all but the artifact that was its
 * body. (A caller that passes that body on sets `artifacts` itself.) */
void gl_message_inherit(struct gl_message *m, const struct gl_message *incoming,
                        struct gl_arena *a);
/* `artifacts` without the artifact that is the body, plus `body` (a JSON object; "" : none). */
gl_str gl_message_artifacts(struct gl_arena *a, gl_str artifacts, gl_str body);
/* The artifact that stands for a body; and the body that `artifacts` names, if any. */
gl_str gl_message_body_artifact(const struct gl_body_ref *ref, struct gl_arena *a);
bool gl_message_body_ref(gl_str artifacts, struct gl_arena *a, struct gl_body_ref *ret);
/* The number of pieces of a body of this size. */
uint64_t gl_message_pieces(uint64_t bytes);
/* Whether workers read this body unchanged, because it is JSON and not compressed. */
bool gl_message_is_plain(const struct gl_message *m);
/* `headers` without any mn.workflow.*, plus those of `l` (NULL: none). */
gl_str gl_message_headers(struct gl_arena *a, gl_str headers, const struct gl_message_ledger *l);
void gl_message_ledger_of(gl_str headers, struct gl_arena *a, struct gl_message_ledger *ret);

/* The body for MN_BODY_FILE, encoded according to content type and encoding (the text of a JSON
 * string for types other than JSON, gzip). It must be in the message: see GL_ARTIFACT_BODY. */
int gl_message_body(const struct gl_message *m, struct gl_arena *a, gl_str *ret,
                    struct gl_why *reterr_why);

#endif
