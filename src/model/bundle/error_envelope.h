/* error_envelope.h - describes a failure as the document mn.error.v1 of bundles.
 *
 *   {schema_version, code, desc, details {message, category, retryable, step_id, agent_id, attempt,
 *    max_attempts}, severity, occurred_at, event_id, remediation, links}
 *
 * `desc` is one line of at most 160 characters, `details.message` has at most
 * GL_ERROR_ENVELOPE_MESSAGE_BYTES. Both come from what a worker printed, so secrets are removed
 * first (model/text/redaction.h). Texts are cut after the redaction, so that half of a secret
 * cannot remain, and only between characters. */
#ifndef GL_MODEL_BUNDLE_ERROR_ENVELOPE_H
#define GL_MODEL_BUNDLE_ERROR_ENVELOPE_H

#include "base/json.h"
#include "base/times.h"
#include "model/text/redaction.h"

enum {
    GL_ERROR_ENVELOPE_DESC_CHARS = 160,
    GL_ERROR_ENVELOPE_MESSAGE_BYTES = 2000,
    GL_ERROR_ENVELOPE_NAME_BYTES = 256, /* of ids in `details` */
};

/* code, category, whether a retry may help, remedy */
#define GL_FAILURES(X)                                                                             \
    X(EXIT, "worker_failed", "worker", false,                                                      \
      "Check the worker's output: 'glia job logs' shows its stdout and stderr.")                   \
    X(SIGNAL, "worker_killed", "worker", true,                                                     \
      "A signal ended the worker. If the kernel killed it for lack of memory, give it less work.") \
    X(TIMEOUT, "worker_timed_out", "timeout", true,                                                \
      "Raise timeout_seconds of the agent or the step, or give the worker less work per message.") \
    X(BEACON, "agent_beacon_missed", "timeout", true,                                              \
      "The worker must send a beacon within beacon_timeout_ms; otherwise set "                     \
      "agent_beacon_required to false.")                                                           \
    X(NOT_STARTED, "worker_not_started", "configuration", false,                                   \
      "The command could not be run: check it, its files and its environment.")                    \
    X(LEASE, "executor_lease_rejected", "resources", true,                                         \
      "Give the pool more slots (MN_EXECUTOR_MAX_CONCURRENCY, MN_EXECUTOR_POOL_CAPACITIES), or "   \
      "raise lease_queue_timeout_ms.")                                                             \
    X(DECLARED, "workflow_step_failed", "workflow", false,                                         \
      "The worker itself reported that its step failed; the message is from the worker.")          \
    X(OUTPUT, "worker_output_rejected", "contract", false,                                         \
      "The worker's answer is not allowed; docs/bundles.md describes valid answers.")              \
    X(PATCH, "workflow_graph_patch_rejected", "contract", false,                                   \
      "The patch breaks a rule of its region; the message names the rule.")                        \
    X(LIMIT, "limit_reached", "resources", false, "docs/limits.md names the limits.")              \
    X(DELIVERY, "message_undeliverable", "delivery", false,                                        \
      "'glia job dead-letters' shows it, and can send it again.")                                  \
    X(RESTARTS, "restarts_exhausted", "recovery", false,                                           \
      "Find out why it fails repeatedly; policies.restart limits how often it is restarted.")      \
    X(REVIEW, "recovery_requires_review", "recovery", false,                                       \
      "It is unknown whether the worker did its work: check, then resume or cancel the job.")      \
    X(CANCELLED, "job_cancelled", "cancelled", false, "")                                          \
    X(INTERNAL, "internal_error", "runtime", true, "'glia why' shows what the node knows about it.")

enum gl_failure {
#define X(name, code, category, retryable, remedy) GL_FAILURE_##name,
    GL_FAILURES(X)
#undef X
        GL_FAILURE_COUNT
};

struct gl_error_envelope {
    enum gl_failure failure;
    bool is_transient;              /* the message looks transient, so the error is retryable */
    bool is_handled;                /* the job continues: a warning */
    gl_str message;                 /* as reported; any bytes */
    gl_str step_id, agent_id;       /* "" : none */
    uint32_t attempt, max_attempts; /* 0: not known */
    gl_ms occurred_at;
    gl_str event_id;    /* "" : none */
    gl_str remediation; /* "" : the remedy of the table */
    const gl_str *env;  /* "NAME=value" of the worker: secrets among them are redacted */
    size_t env_n;
};

/* The document, as one value. `scratch` may be discarded afterwards. */
void gl_error_envelope_write(const struct gl_error_envelope *e, struct gl_arena *scratch,
                             struct gl_jw *w);
gl_str gl_error_envelope_text(const struct gl_error_envelope *e, struct gl_arena *a);

#endif
