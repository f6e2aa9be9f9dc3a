/* message.h - messages between agents: {envelope, headers, body, artifacts, stream}.
 *
 * The runtime reads the envelope and the headers. A body is raw text, passed on as it came; above
 * GL_BODY_BYTES_MAX it lies in the store in pieces, and `body` is null while `artifacts` names it
 * (GL_ARTIFACT_BODY). */
#ifndef GL_MODEL_BUNDLE_MESSAGE_H
#define GL_MODEL_BUNDLE_MESSAGE_H

#include "base/json.h"
#include "base/times.h"
#include "model/schema.h"

#define GL_MESSAGE_SPEC "mn-msg/1"
/* Name of the artifact that is the body: {name, sha256, bytes, letter} */
#define GL_ARTIFACT_BODY "glia:body"

/* A text that begins so, in a message whose content type is not JSON, is the base64 of bytes. */
#define GL_BODY_BYTES "data:;base64,"

struct gl_message {
    gl_str message_id, job_id, from, to, type;
    gl_str class_name; /* "event", "command" */
    gl_ms timestamp;
    gl_str correlation_id, causation_id;
    uint32_t attempt;
    int64_t priority;
    gl_ms ttl_ms;                            /* 0: none */
    gl_str content_type, content_encoding;   /* application/json; identity or gzip */
    gl_str headers, body, artifacts, stream; /* JSON; "" : {}, null, [], null */
};

/* The headers mn.workflow.*, with which the ledger labels a message. Zero and "" are left out. */
struct gl_message_ledger {
    gl_str run_id, step_id, template_id, region_id, attempt_id, idempotency_key, source_step_id;
    bool has_revision;
    uint64_t graph_revision;
    uint32_t attempt;
    gl_ms deadline_at, heartbeat_deadline_at, timeout_ms, heartbeat_timeout_ms;
};

/* A body that is not in its message: the JSON text `sha256`, in pieces of GL_BODY_PIECE_BYTES under
 * the number of the letter that brought it. */
struct gl_body_ref {
    gl_str sha256;
    uint64_t bytes, letter;
};

void gl_message_defaults(struct gl_message *m);
/* The whole message as JSON. */
void gl_message_write(const struct gl_message *m, struct gl_buf *out);
/* Strings borrow from `text` or live in `a`. GL_E_INVALID names the field that is wrong. */
int gl_message_read(gl_str text, struct gl_arena *a, struct gl_message *ret,
                    struct gl_why *reterr_why);
/* A value from `initial_inputs`, or the data of a signal: an object may name parts of the envelope
 * beside its body; anything else is the body. What it does not say is left as it is in `ret`, so
 * that a caller sets defaults first. */
int gl_message_seed(gl_str value, struct gl_arena *a, struct gl_message *ret,
                    struct gl_why *reterr_why);
/* One element of `emit_messages`: {to?, type, body|payload|body_base64, ...}; what it does not say
 * comes from `incoming` as the contract has it (class, correlation, content type, artifacts, ...).
 * body_base64 becomes a JSON string in `body`, or the value it is if content_type says JSON; bytes
 * that are no text stand behind GL_BODY_BYTES. Without content_type it is application/octet-stream.
 */
int gl_message_emitted(const struct gl_json *j, gl_jnode n, const struct gl_message *incoming,
                       struct gl_arena *a, struct gl_message *ret, struct gl_why *reterr_why);
/* What an emitted message takes over from the one it answers: all but the artifact that was its
 * body. (Who passes that body on sets `artifacts` itself.) */
void gl_message_inherit(struct gl_message *m, const struct gl_message *incoming,
                        struct gl_arena *a);
/* `artifacts` without the one that is the body, and with `body` (a JSON object; "" : none). */
gl_str gl_message_artifacts(struct gl_arena *a, gl_str artifacts, gl_str body);
/* The artifact that stands for a body; and what `artifacts` say of one, if they do. */
gl_str gl_message_body_artifact(const struct gl_body_ref *ref, struct gl_arena *a);
bool gl_message_body_ref(gl_str artifacts, struct gl_arena *a, struct gl_body_ref *ret);
/* The number of pieces of a body of this size. */
uint64_t gl_message_pieces(uint64_t bytes);
/* Do workers read this body as it stands in the message, JSON that is not packed? */
bool gl_message_is_plain(const struct gl_message *m);
/* `headers` without any mn.workflow.*, and with those of `l` (NULL: none). */
gl_str gl_message_headers(struct gl_arena *a, gl_str headers, const struct gl_message_ledger *l);
void gl_message_ledger_of(gl_str headers, struct gl_arena *a, struct gl_message_ledger *ret);

/* The body as MN_BODY_FILE has it: encoded as content type and encoding say (text of a JSON string
 * for other types than JSON, gzip). It is in the message: see GL_ARTIFACT_BODY. */
int gl_message_body(const struct gl_message *m, struct gl_arena *a, gl_str *ret,
                    struct gl_why *reterr_why);

#endif
