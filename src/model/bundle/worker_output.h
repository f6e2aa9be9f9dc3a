/* worker_output.h - parses the output of a bundle's worker.
 *
 * Native modules return the same format: gl_worker_output_read() takes it in place of stdout. */
#ifndef GL_MODEL_BUNDLE_WORKER_OUTPUT_H
#define GL_MODEL_BUNDLE_WORKER_OUTPUT_H

#include "model/bundle/agent.h"
#include "model/bundle/message.h"

/* The result of a worker as the executor reports it (gl_exec_result.output): a JSON object. */
struct gl_worker_result {
    gl_str stdout_text, stderr_text;
    bool is_cut;           /* stdout exceeded its limit and was cut; it contains a note */
    uint64_t stdout_bytes; /* before it was cut */
};

/* Strings borrow or live in `a`. */
int gl_worker_result_read(gl_str output, struct gl_arena *a, struct gl_worker_result *ret,
                          struct gl_why *reterr_why);
void gl_worker_result_write(const struct gl_worker_result *r, struct gl_buf *out);

struct gl_worker_event {
    gl_str type;
    gl_str payload; /* JSON object */
};

struct gl_worker_output {
    bool is_json, is_structured;
    bool has_state;
    gl_str next_state;      /* JSON */
    struct gl_items events; /* struct gl_worker_event, in order */
    bool completes_step, completes_run;
    gl_str step_value, run_value; /* JSON; "" : the default payload */
    gl_jnode emits;               /* the array emit_messages in `json`; NULL: none */
    bool has_step_shape; /* outputs, artifacts, metrics, status: see gl_worker_output_payload() */
    struct gl_json json; /* of stdout, valid as long as the arena */
};

/* stdout, trimmed, is one JSON value, or its last line is. GL_E_INVALID: it has complete_job. */
int gl_worker_output_read(gl_str stdout_text, struct gl_arena *a, struct gl_worker_output *ret,
                          struct gl_why *reterr_why);

/* How a message was handled, for the default payload. */
struct gl_worker_turn_facts {
    gl_str agent_id, runner, node_name, remote_dir;
    int64_t exit_code;
    uint32_t attempts; /* immediate attempts */
    gl_str lease_id, pool;
    uint32_t slots;
    gl_ms queue_wait_ms;
    gl_str input_body; /* of the message: its _mn_step is passed on */
};

/* {agent_id, sandbox: {...}}, or {outputs, artifacts, metrics, status, ...} of the SDK's shape. */
gl_str gl_worker_output_payload(const struct gl_worker_turn_facts *t,
                                const struct gl_worker_result *r,
                                const struct gl_worker_output *said, struct gl_arena *a);

/* Whether the output looks like a transient failure, so that an immediate retry may help. */
bool gl_worker_output_is_transient(gl_str error, gl_str stdout_text, gl_str stderr_text);

/* The step an event's payload names (step, step_id, workflow_step_id, phase, phase_id), as text;
 * "" : none. */
gl_str gl_worker_output_event_step(gl_str payload, struct gl_arena *a);

#endif
