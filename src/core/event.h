/* event.h - everything the core can be told. Values only: an event can be written down and played
 * again.
 *
 * One flat struct for all kinds; the comment at each kind names the fields it uses. Strings are
 * borrowed for the duration of the step. */
#ifndef GL_CORE_EVENT_H
#define GL_CORE_EVENT_H

#include "base/json.h"
#include "model/schema.h"
#include "port/exec.h"

#define GL_EVENTS(X)                                                                             \
    X(SESSION, "session")   /* session, number = incarnation, sent_at: we may own jobs */        \
    X(TICK, "tick")         /* nothing but the time */                                           \
    X(SUBMIT, "submit")     /* ... run_id, flow_hash, flow, dedupe_key, stack, env_scope, ... */ \
    X(COMMAND, "command")   /* request, job, verb, step, decision, output, who, reason */        \
    X(DONE, "done")         /* op, code: a transaction has ended, for certain */                 \
    X(LOADED, "loaded")     /* job, code, records (the job's, then its live steps'), flow */     \
    X(RESOLVED, "resolved") /* job, step_number, number, code, facts: what a gate must know */   \
    X(RATES, "rates")       /* records of kind "rate": when each key may start next */           \
    X(ANSWER, "answer")     /* by, number, code, needs_help: the outcome of a CALL; records, */  \
                            /* entries, time, sessions, or session and is_dead */                \
    X(GIVEN, "given")       /* another node has given work back to the store */                  \
    X(REFUSED, "refused")   /* code, why, needs_help: the store took something of the node's */  \
                            /* not for want of room */                                           \
    X(SHOW, "show")         /* others should soon know what is new of this node */               \
    X(CHANGED, "changed")   /* the store may have lost its tail: memory may be ahead of it */    \
    X(FOUND, "found")       /* code, entries, more: a page of the index "wake" */                \
    X(EXEC_UP, "exec_up")   /* epoch */                                                          \
    X(EXEC_DOWN, "exec_down")                                                                    \
    X(STARTED,                                                                                   \
      "started") /* job, attempt, token, number, code: the executor's answer to a start */       \
    X(ATTACHED, "attached") /* job, attempt, token, code, state, and a result when ENDED */      \
    X(ENDED, "ended")       /* job, attempt, token, and a result */                              \
    X(BEACON, "beacon")     /* job, attempt, token */                                            \
    X(SAID, "said")         /* job, attempt, token, why: a line of a worker for the runtime */   \
    X(LISTED, "listed")     /* code, infos */                                                    \
    X(FORGET, "forget")     /* flow_hash: its record goes, if no job in memory uses it */        \
    X(STOP, "stop")         /* start nothing new any more: the node is about to end */           \
    X(END, "end")           /* the same, and ask nothing of the store any more */

enum gl_event_type {
#define X(name, word) GL_EV_##name,
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

#define GL_COMPONENTS(X)  \
    X(RENEWAL, "renewal") \
    X(ROOM, "room")       \
    X(PEERS, "peers")     \
    X(LEADER, "leader")

enum gl_component_id {
#define X(name, word) GL_COMPONENT_##name,
    GL_COMPONENTS(X)
#undef X
};

/* Hunts: which parts of the index "wake" may hold something that nobody looks after. */
enum { GL_HUNT_RUNNING = 1, GL_HUNT_READY = 2, GL_HUNT_DUE = 4 };

struct gl_event_record { /* one record of LOADED */
    gl_str kind, id, owner, value;
    uint64_t rev, token;
    bool owner_dead; /* its owner's session is committed dead */
    bool damaged;    /* its checksum is wrong */
};

struct gl_event_entry { /* one entry of FOUND, or of an ANSWER */
    int64_t score;
    gl_str id;
    /* FOUND on a shared store, unless it was in the core's memory already: */
    uint64_t rev;   /* of its record; 0: not known */
    gl_str owner;   /* a session */
    gl_str needs;   /* the pools it needs (cluster/offers.h) */
    bool is_wanted; /* a client of this node waits for it */
};

/* ANSWER: what another node told with its last renewal. */
struct gl_event_pool {
    gl_str name;
    uint64_t slots, in_use, waiting;
};

#define GL_STATE_NO_ROOM "no room" /* of a node that meets none in the store */

struct gl_event_session {
    gl_str id;
    int64_t left_ms; /* until its deadline, by the store's clock; negative: it has passed */
    bool dead;
    bool is_told;   /* the following could be read ... */
    bool has_pools; /* ... and so could the pools; a node of an earlier release tells none */
    gl_str state, stack, env_scope;
    struct gl_items pools; /* struct gl_event_pool */
};

struct gl_event_info { /* one attempt of LISTED */
    gl_str context, job, attempt;
    uint64_t token;
    uint8_t state; /* enum gl_exec_state */
};

struct gl_event {
    gl_ms now;    /* the only clock the core ever sees; never goes back */
    uint8_t type; /* enum gl_event_type */
    gl_str context;
    gl_str job;     /* a ULID */
    gl_str attempt; /* "step:attempt:n" */
    uint64_t token;
    uint64_t op; /* DONE */
    gl_str
        guard; /* DONE: refused by this record of a limit, "limit/<key>/<seat>" or "rate/<key>" */
    uint64_t request; /* who is to be answered; 0 = nobody */
    int64_t code;     /* 0 or GL_E_* */
    gl_str why;       /* the sentence behind a code */
    gl_str session, epoch;
    uint64_t number;
    uint8_t by;      /* ANSWER: enum gl_component_id */
    bool is_dead;    /* ANSWER to DECLARE */
    gl_ms time;      /* ANSWER to TIME: by the store's clock */
    bool needs_help; /* DONE, ANSWER, REFUSED: the store is there, and has no room */
    gl_str run_id, request_key, flow_hash, flow, dedupe_key, stack, env_scope; /* SUBMIT */
    gl_str inputs, retry_of, retry_from;                                       /* SUBMIT */
    uint32_t step_number;                                                      /* RESOLVED */
    gl_str facts; /* RESOLVED: see model/ref.h; and "earlier", see resolve.c */
    uint8_t verb; /* enum gl_command */
    gl_str step, decision, output, who, reason;
    gl_str inbox;  /* COMMAND: it came through the job's inbox, as this entry ... */
    gl_ms sent_at; /* ... which stands in the index at this time; SESSION: see renewal.h */
    uint8_t state; /* enum gl_exec_state */
    uint8_t end;   /* enum gl_exec_end */
    int64_t exit_code, signal;
    gl_ms started_at, ended_at;
    gl_str error;
    bool more;
    struct gl_items records;  /* struct gl_event_record */
    struct gl_items entries;  /* struct gl_event_entry */
    struct gl_items infos;    /* struct gl_event_info */
    struct gl_items sessions; /* struct gl_event_session */
};

extern const struct gl_schema gl_event_schema;

/* One line of JSON, without the newline; and back (everything lives in `a` or borrows from `text`).
 */
void gl_event_encode(const struct gl_event *ev, struct gl_buf *out);
int gl_event_decode(gl_str text, struct gl_arena *a, struct gl_event *ret,
                    struct gl_why *reterr_why);

#endif
