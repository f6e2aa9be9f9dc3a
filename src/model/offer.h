/* offer.h - the record of an attempt that runs on a node other than the owner of its job.
 *
 * The owner of a job offers an attempt to one node: the transaction that decides the attempt names
 * the node in the step's record and adds an entry to that node's index "offers/<node>". Creating
 * the record "taken"/<job>/<attempt> settles the offer: the node creates it to take the offer, the
 * owner to withdraw it. After a take only the node writes the record, the last time with the
 * result. The owner deletes it in the transaction that accepts the result, or that gives the
 * attempt up; this transaction rewrites the step's record, on whose revision every take is guarded,
 * so no take can come later.
 *
 * Indexes, with the time of the decision as the score, and the record's id:
 *     offers/<node>    attempts the node is to look at: to take them, or to stop them
 *     taken/<node>     attempts the node has taken and whose result is not accepted yet
 *     results/<node>   ended attempts of jobs that this node owned when they were taken */
#ifndef GL_MODEL_OFFER_H
#define GL_MODEL_OFFER_H

#include "model/schema.h"

/*   (absent) ──► RUNNING ──► ENDED | NEVER | LOST ──► (deleted)
 *       └──────► WITHDRAWN ──────────────────────────► (deleted) */
#define GL_TAKEN_STATES(X)                                                       \
    X(RUNNING, "running")     /* taken; it may not have started yet */           \
    X(ENDED, "ended")         /* with this result */                             \
    X(NEVER, "never")         /* taken, but it has not started and never will */ \
    X(LOST, "lost")           /* it may have run, and does not run any more */   \
    X(WITHDRAWN, "withdrawn") /* by the owner: no node may take it */

enum gl_taken_state {
#define X(name, word) GL_TAKEN_##name,
    GL_TAKEN_STATES(X)
#undef X
        GL_TAKEN_STATE_COUNT
};

struct gl_taken_record {
    uint8_t state;  /* enum gl_taken_state */
    gl_str session; /* which took or withdrew it */
    gl_str node;    /* of that session */
    gl_str owner;   /* the session that owned the job then */
    uint64_t token; /* of the job; the executor was given it */
    gl_str epoch;   /* of the executor */
    gl_ms at;       /* its score in the indexes */
    gl_str end;     /* ENDED: how, as in GL_EXEC_ENDS */
    int64_t exit_code, signal;
    gl_ms started_at, ended_at;
    gl_str error;    /* a sentence; "": none */
    gl_str output;   /* JSON; "": none */
    uint8_t stopped; /* enum gl_stop: why its node stopped it without being asked */
    bool is_final;   /* the same would happen again: no retry */
};

extern const struct gl_schema gl_taken_schema;
extern const char *const gl_taken_state_words[];

/* "offers/<node>" and so on. */
gl_str gl_offer_index(struct gl_arena *a, const char *name, gl_str node);
/* "node#incarnation.nonce" -> "node"; "": not the id of a session. */
gl_str gl_offer_node_of(gl_str session);

#endif
