/* event.h - the core's inputs. An event consists of values only, so it can be recorded and
 * replayed.
 *
 * An event has a head that all kinds share, and the struct of its kind: GL_EV_SUBMIT has `submit`,
 * GL_EV_EXEC_UP has `exec_up`, and so on; reading the struct of another kind is an error. Strings
 * are borrowed for the duration of the step.
 *
 * Encoded it is one flat JSON object: the head, then the fields of its kind; fields that are zero
 * or empty are left out. Commands are stored in this form in the inbox of a shared store, where
 * nodes of other releases read them. So a field never changes its name, and a new field must be
 * optional. */
#ifndef GL_CORE_EVENT_H
#define GL_CORE_EVENT_H

#include "base/json.h"
#include "model/schema.h"
#include "port/exec.h"

/* The kind, its word, and its struct. */
#define GL_EVENTS(X)                                                                           \
    X(SESSION, "session", session)       /* we may own jobs */                                 \
    X(TICK, "tick", nothing)             /* only the time has changed */                       \
    X(SUBMIT, "submit", submit)          /* a client submits a job */                          \
    X(COMMAND, "command", command)       /* pause, resume, cancel, ... a job */                \
    X(CLAIM, "claim", claim)             /* acquire, renew, release, ... a claim */            \
    X(DONE, "done", done)                /* the final outcome of a transaction */              \
    X(LOADED, "loaded", loaded)          /* a job, read from the store */                      \
    X(RESOLVED, "resolved", resolved)    /* facts read for a gate or a unit */                 \
    X(RATES, "rates", rates)             /* when each rate key allows its next start */        \
    X(ANSWER, "answer", answer)          /* the outcome of a CALL */                           \
    X(GIVEN, "given", nothing)           /* another node has returned jobs to the store */     \
    X(WOKEN, "woken", woken)             /* another node has written something for this one */ \
    X(REFUSED, "refused", refused)       /* the store refused a write of the node's own */     \
    X(SHOW, "show", nothing)             /* this node's state has changed: publish it soon */  \
    X(CHANGED, "changed", nothing)       /* the store may have lost its latest writes, so */   \
                                         /* memory may be ahead of it */                       \
    X(FOUND, "found", found)             /* a page of the index "wake" */                      \
    X(EXEC_UP, "exec_up", exec_up)       /* the executor is available */                       \
    X(EXEC_DOWN, "exec_down", exec_down) /* the executor is not available */                   \
    X(STARTED, "started", started)       /* the executor's answer to START */                  \
    X(ATTACHED, "attached", attached)    /* the executor's answer to ATTACH */                 \
    X(ENDED, "ended", ended)             /* an attempt has ended */                            \
    X(BEACON, "beacon", beacon)          /* a heartbeat of an attempt */                       \
    X(SAID, "said", said)                /* a line printed by a worker for the runtime */      \
    X(LISTED, "listed", listed)          /* the executor's answer to LIST */                   \
    X(ASKED, "asked", asked)             /* until when a job's workers wait for a person */    \
    X(CLEAN, "clean", clean)             /* a client wants ended jobs removed */               \
    X(STOP, "stop", nothing)             /* start nothing new: the node is about to end */     \
    X(END, "end", nothing)               /* the same, and make no more calls of the store */

enum gl_event_type {
#define X(name, word, fields) GL_EV_##name,
    GL_EVENTS(X)
#undef X
        GL_EV_COUNT
};

#define GL_COMMANDS(X)    \
    X(PAUSE, "pause")     \
    X(RESUME, "resume")   \
    X(CANCEL, "cancel")   \
    X(RESPOND, "respond") \
    X(SIGNAL, "signal")   \
    X(SEND, "send")       \
    X(REDRIVE, "redrive")

enum gl_command {
#define X(name, word) GL_CMD_##name,
    GL_COMMANDS(X)
#undef X
        GL_CMD_COUNT
};

#define GL_COMPONENTS(X)      \
    X(RENEWAL, "renewal")     \
    X(ROOM, "room")           \
    X(PEERS, "peers")         \
    X(LEADER, "leader")       \
    X(INBOX, "inbox")         \
    X(OUTBOX, "outbox")       \
    X(CLAIMS, "claims")       \
    X(RETENTION, "retention") \
    X(HUMAN, "human")         \
    X(OFFERS, "offers")       \
    X(TAKEN, "taken")

enum gl_component_id {
#define X(name, word) GL_COMPONENT_##name,
    GL_COMPONENTS(X)
#undef X
};

/* Orphan scans: the parts of the index "wake" that may contain jobs without a living owner. */
enum { GL_ORPHAN_SCAN_RUNNING = 1, GL_ORPHAN_SCAN_READY = 2, GL_ORPHAN_SCAN_DUE = 4 };

/* ---- elements of lists ---- */

struct gl_event_record { /* of the store */
    gl_str kind, id, owner, value;
    uint64_t rev, token;
    bool live;
    bool owner_dead; /* its owner's session has been declared dead */
    bool damaged;    /* its checksum is wrong */
};

struct gl_event_entry { /* of an index */
    int64_t score;
    gl_str id;
    /* Only in FOUND on a shared store, for jobs that were not in the core's memory: */
    uint64_t rev;   /* of its record; 0: unknown */
    gl_str owner;   /* a session */
    gl_str needs;   /* the pools it needs (cluster/node_pools.h) */
    bool is_wanted; /* a client of this node waits for it */
};

/* A pool, as published by another node with its last renewal. */
struct gl_event_pool {
    gl_str name;
    uint64_t slots, in_use, waiting;
    uint64_t ours; /* slots in use by attempts of this node's jobs */
};

#define GL_STATE_NO_ROOM "no room" /* state of a node for which the store is full */

struct gl_event_peer {
    gl_str id;       /* its session */
    int64_t left_ms; /* until its deadline, by the store's clock; negative: it has passed */
    bool dead;
    bool is_told;   /* the published state below could be decoded */
    bool has_pools; /* and so could its pools; an earlier release publishes none */
    bool takes;     /* it understands offers (model/offer.h); an earlier release does not */
    gl_ms grace_ms; /* orphan grace of its keeper; 0: not published */
    gl_str state, stack, env_scope;
    gl_str labels;         /* as in GLIA_LABELS */
    struct gl_items pools; /* struct gl_event_pool */
};

struct gl_event_info { /* an attempt the executor has */
    gl_str context, job, attempt;
    uint64_t token;
    uint8_t state; /* enum gl_exec_state */
};

/* ---- the kinds ---- */

struct gl_event_session {
    gl_str session;
    uint64_t number; /* its incarnation */
    gl_ms sent_at;   /* see renewal.h */
};

struct gl_event_submit {
    uint64_t request; /* to answer; 0: none */
    gl_str run_id, request_key;
    gl_str flow_hash, flow; /* compiled */
    gl_str dedupe_key, stack, env_scope;
    gl_str inputs, retry_of, retry_from;
};

struct gl_event_command {
    uint64_t request; /* to answer; 0: none */
    uint8_t verb;     /* enum gl_command */
    gl_str step;      /* RESPOND: a step; else the signal, the receiver, or the dead letter */
    gl_str decision;  /* RESPOND */
    gl_str output;    /* JSON: of a step, a signal, a message */
    gl_str who, reason;
    gl_str inbox;   /* the inbox entry it came from; "" : it is a client's */
    gl_ms sent_at;  /* that entry's score in the index */
    gl_str send_as; /* on a shared store: the ULID to forward it under, if another node owns the job
                       (cluster/outbox.h) */
};

struct gl_event_claim { /* see claims/claim.h; the node has validated it (gl_claim_check) */
    uint64_t request;
    uint8_t act; /* enum gl_claim_act */
    gl_str key, owner;
    uint64_t fence;
    gl_ms lease_ms;
    bool once;
    gl_str work_type, error_detail;
    gl_str nonce;   /* ACQUIRE: never empty */
    uint32_t limit; /* RECLAIM: at most this many; 0: the default */
};

struct gl_event_done {
    uint64_t op;
    gl_str guard;    /* the limit that refused it: "limit/<key>/<seat>" or "rate/<key>"; else "" */
    int64_t code;    /* 0 or GL_E_* */
    gl_str why;      /* the error as a sentence */
    uint64_t number; /* of the guard that refused it */
    bool needs_help; /* the store is full */
};

struct gl_event_loaded {
    int64_t code;
    gl_str flow_hash, flow;
    gl_str stack, env_scope;
    struct gl_items records; /* struct gl_event_record: the job's, then its live steps' */
};

struct gl_event_resolved {
    int64_t code;
    gl_str why;
    uint64_t number; /* of a unit: the number of the RESOLVE */
    uint32_t step_number;
    gl_str facts; /* see model/text/ref.h; with "earlier", see node/lookup.c */
};

struct gl_event_rates {
    struct gl_items records; /* struct gl_event_record, of kind "rate" */
};

struct gl_event_answer {
    int64_t code;
    gl_str why;
    gl_str session;           /* DECLARE: the session */
    uint64_t number;          /* of the call */
    uint8_t by;               /* enum gl_component_id */
    bool is_dead;             /* DECLARE: it is dead now */
    gl_ms time;               /* TIME: by the store's clock */
    bool needs_help;          /* the store is full */
    struct gl_items records;  /* GET, LIST: struct gl_event_record */
    struct gl_items entries;  /* RANGE: struct gl_event_entry; COUNT: the last one only */
    struct gl_strs names;     /* LIST: what the view selects; FILES: the files found */
    gl_str next;              /* LIST: the last id, if there may be more after it */
    uint64_t n;               /* COUNT: entries; FILES: files removed; EXPIRE: answers */
    uint64_t bytes;           /* MEASURE; FILES: measured, or freed */
    uint64_t young;           /* FILES: bytes kept only because they are too new to remove */
    struct gl_items sessions; /* SESSIONS: struct gl_event_peer */
};

struct gl_event_woken {
    gl_str word; /* what was written: "inbox", "answer", or "offers" (core/cluster/offers.h) */
};

struct gl_event_refused {
    int64_t code;
    gl_str why;
    bool needs_help; /* the store is full; else it was refused for another reason */
};

struct gl_event_found {
    int64_t code;
    bool more;
    struct gl_items entries; /* struct gl_event_entry */
};

struct gl_event_exec_up {
    gl_str epoch; /* it remembers every attempt of this epoch */
};

struct gl_event_exec_down {
    gl_str why;
};

struct gl_event_started {
    gl_str attempt; /* "step:attempt:n" */
    uint64_t token;
    int64_t code;
    gl_str why;
    uint64_t number; /* of the START */
};

/* How an attempt ended. */
struct gl_event_result {
    gl_str output; /* a JSON document; "" : none */
    uint8_t end;   /* enum gl_exec_end */
    int64_t exit_code, signal;
    gl_ms started_at, ended_at;
    gl_str error; /* a sentence; "" : none */
};

struct gl_event_attached {
    gl_str attempt;
    uint64_t token;
    int64_t code;
    uint8_t state;                 /* enum gl_exec_state */
    struct gl_event_result result; /* if it has ended */
};

struct gl_event_ended {
    gl_str attempt;
    uint64_t token;
    struct gl_event_result result;
};

struct gl_event_beacon {
    gl_str attempt;
    uint64_t token;
};

struct gl_event_said {
    gl_str attempt;
    uint64_t token;
    gl_str why; /* the line */
};

struct gl_event_listed {
    int64_t code;
    struct gl_items infos; /* struct gl_event_info; if the event has a job: one, of that job */
};

/* The file human.jsonl of a job's run has been read. */
struct gl_event_asked {
    gl_ms due; /* the first deadline of an open request with a default; INT64_MAX: there is none */
};

/* Remove one job, or all ended jobs that the limits do not keep. */
struct gl_event_clean {
    uint64_t request; /* to answer */
    bool is_removal;  /* remove the event's job */
    int64_t code;     /* not 0: that job was not found */
    gl_str why, name; /* the error, and the name it was looked up by */
    gl_ms keep_for;   /* ended jobs to keep, by age and number; -1: as configured */
    int64_t keep_jobs;
};

struct gl_event {
    gl_ms now;    /* the core's only clock; never goes back */
    uint8_t type; /* enum gl_event_type */
    gl_str context;
    gl_str job; /* a ULID; "" if the event is not about a job */
    union {
        struct gl_event_session session;
        struct gl_event_submit submit;
        struct gl_event_command command;
        struct gl_event_claim claim;
        struct gl_event_done done;
        struct gl_event_loaded loaded;
        struct gl_event_resolved resolved;
        struct gl_event_rates rates;
        struct gl_event_answer answer;
        struct gl_event_woken woken;
        struct gl_event_refused refused;
        struct gl_event_found found;
        struct gl_event_exec_up exec_up;
        struct gl_event_exec_down exec_down;
        struct gl_event_started started;
        struct gl_event_attached attached;
        struct gl_event_ended ended;
        struct gl_event_beacon beacon;
        struct gl_event_said said;
        struct gl_event_listed listed;
        struct gl_event_asked asked;
        struct gl_event_clean clean;
    };
};

/* The head and the fields of one kind; its name is the kind's word. */
const struct gl_schema *gl_event_schema(enum gl_event_type type);

/* As one line of JSON, without the newline, and back. The decoded event lives in `a` or borrows
 * from `text`. A field that its kind does not have is refused. */
void gl_event_encode(const struct gl_event *ev, struct gl_buf *out);
int gl_event_decode(gl_str text, struct gl_arena *a, struct gl_event *ret,
                    struct gl_why *reterr_why);
/* Decode an object inside a document. */
int gl_event_read(const struct gl_json *j, gl_jnode object, struct gl_arena *a,
                  struct gl_event *ret, struct gl_why *reterr_why);

/* The text of the flow in a SUBMIT or LOADED, to remove or to replace; NULL for other kinds. */
gl_str *gl_event_flow(struct gl_event *ev, gl_str *ret_hash);
/* Fields that several kinds have, for code that only reports events: empty or 0 if the kind has
 * none.
 */
gl_str gl_event_attempt(const struct gl_event *ev);
int64_t gl_event_code(const struct gl_event *ev);

#endif
