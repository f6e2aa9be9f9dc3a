/* limits.h - every limit of the system in one place, with the arithmetic asserted.
 *
 * Reaching a limit causes an error message, never a crash. Limits that a user can reach are
 * documented in docs/limits.md. */
#ifndef GL_BASE_LIMITS_H
#define GL_BASE_LIMITS_H

#include <assert.h>

enum {
    /* Names. */
    GL_SESSION_TTL_MS = 10000,      /* a node without a renewal for this long is considered dead */
    GL_ORPHAN_GRACE_MS = 60000,     /* a keeper whose node is silent for this long ends its steps */
    GL_ORPHAN_GRACE_MS_OLD = 10000, /* assumed for releases that do not record theirs */
    GL_ABOUT_BYTES_MAX = 64 << 10,  /* what a node publishes in its session */
    GL_SESSIONS_LISTED = 1000,      /* sessions in one listing */
    /* Opening a session deletes up to this many sessions that have been dead for this long. An
     * engine that is not shared, which has no clock of its own, keeps only the last
     * GL_SESSIONS_KEPT. */
    GL_SESSIONS_KEPT_MS = 24 * 60 * 60 * 1000,
    GL_SESSIONS_KEPT = 100,
    GL_ID_BYTES_MAX = 128,   /* a step id, a run id, a context name, a dedupe key */
    GL_NAME_BYTES_MAX = 256, /* a flow's name */
    GL_KEY_BYTES_MAX = 512,  /* of `concurrency` and `rate` */
    GL_ULID_BYTES = 26,      /* a job id, as text */
    GL_STEP_ID_BYTES_MAX = GL_ID_BYTES_MAX + 9,          /* of an instance: "step[n]" */
    GL_ATTEMPT_ID_BYTES_MAX = GL_STEP_ID_BYTES_MAX + 24, /* "step:attempt:n" */

    /* Documents. */
    GL_JSON_DEPTH_MAX = 64,  /* nesting of any document */
    GL_VALUE_DEPTH_MAX = 48, /* nesting of a value embedded in another document */
    GL_JSON_NODES_MAX = 8 << 20,
    GL_FLOW_BYTES_MAX = 32 << 20,   /* a flow file, and its compiled form */
    GL_YAML_ALIASES_MAX = 1000,     /* alias expansions in one file */
    GL_OUTPUT_BYTES_MAX = 1 << 20,  /* the output of one step */
    GL_BLOB_BYTES_MAX = 64 << 20,   /* one snapshotted file */
    GL_RECORD_BYTES_MAX = 33 << 20, /* one record in the store */
    GL_REASON_BYTES_MAX = 512,      /* why a step ended or waits, for people */

    /* Flows. */
    GL_STEPS_MAX = 200000,          /* steps of one flow */
    GL_NEEDS_MAX = 20000,           /* parents of one step */
    GL_ARGS_MAX = 4096,             /* arguments of one command */
    GL_ENVS_MAX = 4096,             /* environment entries of one step */
    GL_FILES_MAX = 1024,            /* files of one flow */
    GL_COMMAND_BYTES_MAX = 1 << 20, /* argv and environment of one command together */
    GL_ARG_BYTES_MAX = 131071,      /* one of them: Linux's MAX_ARG_STRLEN without the NUL */
    GL_ATTEMPTS_MAX = 10000,        /* `retry.attempts` */
    GL_SLOTS_MAX = 100000,          /* slots of one pool */
    GL_HUMAN_RUNS_MAX = 100000,     /* runs with a file of requests to people, on one node */
    GL_POOLS_MAX = 64,
    GL_LABELS_MAX = 32,              /* labels of one node */
    GL_LABEL_BYTES_MAX = 64,         /* the name of one, and its value */
    GL_INPUTS_MAX = 256,             /* inputs of one flow */
    GL_INPUTS_BYTES_MAX = 1 << 20,   /* all inputs of a job together */
    GL_ITEMS_MAX = 10000,            /* of one foreach; `max_items` may set a lower limit */
    GL_JOB_ITEMS_MAX = 1000000,      /* of one job, all its foreach together */
    GL_ITEMS_DEFAULT = 1000,         /* `max_items` */
    GL_SIGNAL_BYTES_MAX = 256 << 10, /* data of one signal */
    GL_SIGNALS_MAX = 1000,           /* unconsumed signals of one job */
    GL_COND_BYTES_MAX = 16 << 10,    /* a condition */
    GL_COND_DEPTH_MAX = 32,          /* its nesting */
    GL_LIMITS_MAX = 10000,           /* concurrency and rate keys in use on one node */

    /* Bundles. */
    GL_MANIFEST_BYTES_MAX = 64 << 20,
    GL_AGENTS_MAX = 100000,               /* of one bundle */
    GL_PAYLOADS_MAX = 10000,              /* files of one bundle */
    GL_BODY_BYTES_MAX = 256 << 10,        /* of a message: a larger body is stored outside, ... */
    GL_BODY_BYTES_MIN = 4 << 10,          /* ... (a node may be configured down to this) ... */
    GL_BODY_PIECE_BYTES = 1 << 20,        /* ... in pieces of this size */
    GL_HEADERS_BYTES_MAX = 64 << 10,      /* ... its headers; `stream` */
    GL_ARTIFACTS_BYTES_MAX = 256 << 10,   /* ... its list of artifacts */
    GL_WORD_BYTES_MAX = 512,              /* ... each text of its envelope */
    GL_MESSAGE_BYTES_MAX = 16 << 20,      /* a whole message */
    GL_SHORT_MESSAGE_BYTES_MAX = 2 << 10, /* a waiting message kept in memory */
    GL_MESSAGE_PRIORITY = 100,            /* of a message that names none */
    GL_MESSAGE_PRIORITY_MAX = 1000,       /* the smallest is 0 */
    GL_MESSAGE_AGEING_MS = 1000,          /* a waiting message gains a point of priority per this */
    GL_INBOX_MAX = 10000,                 /* messages waiting for one agent */
    GL_JOB_MESSAGES_MAX = 100000,         /* ... for all agents of a job */
    GL_DEAD_LETTERS_MAX = 10000,          /* of one job: one more fails it */
    GL_EMITS_MAX = 10000,                 /* messages sent in response to one message */
    GL_STATE_BYTES_MAX = 1 << 20,         /* an agent's state */
    GL_STDOUT_BYTES = 1 << 20,            /* kept of a worker's stdout by default */
    GL_STDOUT_BYTES_MAX = 8 << 20,
    GL_IDLE_AGENTS_MAX = 10000,           /* idle agents kept in memory */
    GL_MODULES_MAX = 1000,                /* native modules in one folder */
    GL_MODULE_INSTANCES_MAX = 1024,       /* instances kept of one module */
    GL_MODULE_FRAME_BYTES_MAX = 20 << 20, /* one call of a module, and its result */

    /* The core. */
    GL_AGEING_MS = 10000,     /* a waiting step gains a point of priority per this time */
    GL_HOT_JOBS_MAX = 4096,   /* jobs in memory; others are loaded on demand */
    GL_WAITING_MAX = 2 << 20, /* steps queued for slots on one node */
    GL_SPREAD_MAX = 256,      /* steps touched by one transaction: the rest follow in the next */
    GL_LOSSES_MAX = 3,        /* lost attempts forgiven ... */
    GL_LOSSES_WINDOW_MS = 600000, /* ... within this time */
    GL_PARKED_MAX = 4096,         /* events waiting for one cold job */
    GL_AHEAD_MAX = 1000,          /* queue positions are counted up to this number, for people */

    /* Claims. */
    GL_LEASE_MS_MIN = 1000, /* how long a claim is held without a renewal */
    GL_LEASE_MS_DEFAULT = 60000,
    GL_LEASE_MS_MAX = 86400000,
    GL_CLAIM_DETAIL_BYTES_MAX = 4096, /* why a claim failed */

    /* Execution. */
    GL_LOG_BYTES_MAX = 10 << 20, /* output kept per attempt: head and tail */
    /* The logs in a shared store (model/log_state.h). A setting may choose another limit for an
     * attempt, up to GL_LOG_BYTES_MAX. */
    GL_LOG_STORE_BYTES = 1 << 20,      /* of an attempt: its last lines */
    GL_LOG_STORE_JOB_BYTES = 16 << 20, /* of all attempts of a job, compressed */
    GL_LOG_CHUNK_BYTES_MAX = 64 << 10, /* one chunk, compressed (a single line may exceed it) */
    GL_LOG_PAGE_BYTES = 128 << 10,     /* ... and before; a line of the keeper fits */
    GL_LOG_CHUNKS_MAX = 4096,          /* of one attempt: far more than its limit allows */
    GL_LOG_COPY_MS = 5000,             /* how often the log of a running attempt is copied */
    GL_LOG_COPIES_MAX = 10000,         /* attempts whose logs wait to be copied, on one node */
    GL_GRACE_MS = 10000,               /* SIGTERM to SIGKILL */
    GL_SECRETS_MAX = 256,              /* secrets of one step */
    GL_SECRET_BYTES_MIN = 4,           /* shorter values cannot be redacted from a log */
    GL_SECRET_BYTES_MAX = 64 << 10,
    GL_SECRETS_BYTES_MAX = 256 << 10, /* of one step, all together */
    GL_INPUT_BYTES_MAX = 2 << 20,     /* the input document of one attempt: its parents' outputs */
    GL_FRAME_BYTES_MAX = 16 << 20,    /* one frame of the keeper's protocol */
    GL_WORKER_FILES_MAX = GL_PAYLOADS_MAX + 16, /* files of one worker */
    GL_TEXTS_BYTES_MAX = 4 << 20, /* of these, everything except payloads: message, context, ... */
    GL_STDERR_BYTES_MAX = 64 << 10,      /* the end of a worker's stderr */
    GL_SAID_BYTES_MAX = 64 << 10,        /* a line of a worker for the runtime */
    GL_SAID_WAITING_MAX = 1000,          /* such lines of one attempt waiting for the node ... */
    GL_SAID_WAITING_BYTES_MAX = 1 << 20, /* ... and their bytes */

    /* HTTP. */
    GL_HTTP_BODY_BYTES_MAX = 72 << 20,
    GL_HTTP_CONNECTIONS_MAX = 4096, /* of one listener; one peer may have three quarters of them */
    GL_HTTP_BATCH_MAX = 10000,      /* submissions in one request */
    GL_PAGE_MAX = 1000,             /* rows of one page of any listing, steps of one status */
    GL_STATUS_OUTPUT_BYTES = 64 << 10, /* a larger output is left out of a status, ... */
    GL_STATUS_BYTES = 4 << 20,         /* ... as are all after the outputs reach this size */
};

static_assert(GL_FLOW_BYTES_MAX + (1 << 16) <= GL_RECORD_BYTES_MAX,
              "a compiled flow fits a record");
static_assert(GL_OUTPUT_BYTES_MAX + (1 << 16) <= GL_RECORD_BYTES_MAX, "an output fits a record");
static_assert(GL_INPUT_BYTES_MAX + GL_COMMAND_BYTES_MAX + (1 << 16) <= GL_FRAME_BYTES_MAX,
              "a start fits one frame");
static_assert(GL_OUTPUT_BYTES_MAX + (1 << 16) <= GL_FRAME_BYTES_MAX, "a result fits one frame");
static_assert(GL_STDOUT_BYTES_MAX + GL_STDERR_BYTES_MAX + (1 << 16) <= GL_FRAME_BYTES_MAX,
              "a worker's result fits one frame");
static_assert(GL_BLOB_BYTES_MAX <= GL_HTTP_BODY_BYTES_MAX, "a blob fits a request");
static_assert(GL_FLOW_BYTES_MAX + (1 << 20) <= GL_HTTP_BODY_BYTES_MAX, "a flow fits a request");
static_assert(GL_MANIFEST_BYTES_MAX + (8 << 20) <= GL_HTTP_BODY_BYTES_MAX,
              "a manifest fits a request, with the names of its payloads");
static_assert(GL_MANIFEST_BYTES_MAX <= GL_BLOB_BYTES_MAX, "a manifest is kept as a blob");

#endif
