/* effect.h - everything the core can ask the node to do.
 *
 * Ordering rules:
 *   - An effect with `after` != 0 depends on transaction `after`, which comes before it in the same
 *     batch. It is executed only once that transaction has committed. If it fails, the effect is
 *     dropped, and a REPLY carries the failure instead.
 *   - Effects of one job are executed in the order in which they were added. */
#ifndef GL_CORE_EFFECT_H
#define GL_CORE_EFFECT_H

#include "base/arena.h"
#include "core/event.h"
#include "port/exec.h"
#include "port/store.h"

#include "model/bundle/message.h"

struct gl_spec;

/* START of a unit: the message to handle, and the ledger's view of it. */
struct gl_turn {
    uint64_t message_number;
    gl_str message;            /* JSON; "" : read it from the record "message" */
    gl_str state;              /* the agent's, JSON; "" : none yet */
    uint32_t earlier_attempts; /* of the same message, without a pause */
    gl_ms queue_wait_ms;
    struct gl_message_ledger ledger;
};

/* RESOLVE of a unit: which facts to read. They come as {unit, message, counted}, null if not
 * wanted. */
enum { GL_WANT_UNIT = 1, GL_WANT_MESSAGE = 2, GL_WANT_COUNTED = 4 };

#define GL_EFFECTS(X)                                                                         \
    X(COMMIT, "commit")   /* op, tx */                                                        \
    X(LOAD, "load")       /* job: read its record, its flow and its live steps */             \
    X(FIND, "find")       /* range: a page of the index "wake" */                             \
    X(RESOLVE, "resolve") /* job, step_number, spec, retry_of: read the facts for its gate */ \
    X(START, "start")     /* job, attempt, token, epoch, start_by, spec, step_number, ... */  \
    X(ATTACH, "attach")   /* job, attempt, token, epoch */                                    \
    X(STOP, "stop")       /* job, attempt, token */                                           \
    X(ACK, "ack")         /* job, attempt, token */                                           \
    X(LIST, "list")                                                                           \
    X(REPLY, "reply") /* request, code, why, job, body */                                     \
    X(TELL, "tell")   /* job: its event log has grown; ended: it is terminal now */           \
    X(CALL, "call")   /* call: of a component (component.h) */                                \
    X(VALID, "valid") /* deadline_at: no attempt may start later, until the next VALID */     \
    X(LOST, "lost")   /* why: our session is dead */                                          \
    X(SAY, "say")     /* why: a line for the operator */

enum gl_effect_type {
#define X(name, word) GL_FX_##name,
    GL_EFFECTS(X)
#undef X
        GL_FX_COUNT
};

/* Which part of the records a component needs. Only that part enters the core and its recording. A
 * record that does not exist has revision 0. */
enum gl_core_view_type {
    GL_VIEW_WHOLE,  /* the records; a damaged one has no value */
    GL_VIEW_IDS,    /* names: the records' ids */
    GL_VIEW_STAMPS, /* the records without their values */
    /* The records; a value has only the members listed in `members`, as JSON, and is "" if `schema`
     * cannot read it. */
    GL_VIEW_MEMBERS,
    /* names: the distinct values of the text member `member`. A record that is damaged, or that
     * `schema` cannot read, comes as a record, with whatever its bytes have where that member is.
     */
    GL_VIEW_MEMBER,
    GL_VIEW_HASHES, /* names: everything in the values that looks like a SHA-256, without duplicates
                     */
};

struct gl_core_view {
    enum gl_core_view_type type;
    const struct gl_schema *schema;  /* of the whole values */
    const struct gl_schema *members; /* some of its fields, of the same struct */
    const char *member;
};

/* Work on files outside the store (port/tidy.h). */
enum gl_core_files_type {
    GL_FILES_MEASURE,
    GL_FILES_LIST_JOBS,
    GL_FILES_LIST_WORK,    /* age_ms, limit */
    GL_FILES_REMOVE_JOBS,  /* names */
    GL_FILES_REMOVE_WORK,  /* names */
    GL_FILES_REMOVE_BLOBS, /* age_ms; names: the blobs to keep */
};

struct gl_core_files {
    enum gl_core_files_type type;
    const gl_str *names;
    size_t names_n;
    gl_ms age_ms;
    size_t limit;
};

enum gl_core_call_type {
    GL_CORE_CALL_GET,      /* keys: ANSWER has a record for each, in their order */
    GL_CORE_CALL_RANGE,    /* range: a page of an index; ANSWER has its entries */
    GL_CORE_CALL_COUNT,    /* range: the same; ANSWER has their number, and the last entry */
    GL_CORE_CALL_LIST,     /* listing: a page of the records of a kind */
    GL_CORE_CALL_MEASURE,  /* the size of the store */
    GL_CORE_CALL_FILES,    /* files: list, measure or remove */
    GL_CORE_CALL_TIME,     /* ANSWER has the store's time */
    GL_CORE_CALL_COMMIT,   /* tx */
    GL_CORE_CALL_RESTAMP,  /* tx: of one write, which keeps the record's current value. ANSWER is
                              GL_E_NOT_FOUND or GL_E_DAMAGED if there is none */
    GL_CORE_CALL_RENEW,    /* renew our session, and publish this node's state with it */
    GL_CORE_CALL_SESSIONS, /* list all sessions */
    GL_CORE_CALL_DECLARE,  /* session: declare it dead if it has expired */
    GL_CORE_CALL_EXPIRE,   /* job, at: write the default decisions of its overdue requests */
};

struct gl_core_call {
    enum gl_component_id by;
    enum gl_core_call_type type;
    uint64_t number; /* returned in ANSWER */
    const struct gl_key *keys;
    size_t keys_n;
    struct gl_range range;
    struct gl_listing listing;
    const struct gl_core_view *view; /* GET, LIST; NULL: whole records. Static, never copied */
    struct gl_core_files files;
    const struct gl_tx *tx;
    gl_str session;
    gl_str job;
    gl_ms at;
};

struct gl_effect {
    enum gl_effect_type type;
    uint64_t after;
    gl_str context, job, attempt, epoch;
    uint64_t token;
    uint64_t op;
    const struct gl_tx *tx;
    struct gl_range range;
    /* START. The spec is referenced for the executing side: gl_spec_unref() when done. */
    struct gl_spec *spec;
    uint32_t step_number;
    uint32_t of; /* START, RESOLVE: the step of the flow */
    uint32_t attempt_number;
    uint64_t start_number; /* returned in STARTED, and in RESOLVED of a unit */
    gl_str step_id;        /* "step", or of an instance "step[n]" */
    gl_str run_id, idempotency_key;
    gl_ms submitted_at;
    gl_str retry_of; /* RESOLVE: the earlier job whose outputs may be reused; "" : none */
    int64_t item;    /* START, RESOLVE of an instance: which item; -1: none */
    gl_ms start_by, deadline_at;
    gl_ms grace_ms;             /* STOP: at most this; 0: the step's own grace period */
    bool needs_session;         /* START: see gl_safety_needs_session() */
    const struct gl_turn *turn; /* START of a unit */
    uint32_t wants;             /* RESOLVE of a unit: GL_WANT_* */
    uint64_t message_number;    /* RESOLVE of a unit: the message it handles */
    /* REPLY */
    uint64_t request;
    int code;
    enum gl_reason reason; /* beside the code: see base/err.h */
    gl_str why;
    gl_str body; /* the answer as JSON; "": only the job's id, or nothing with a code != 0 */
    /* TELL */
    bool ended;
    const struct gl_core_call *call;
};

struct gl_effects {
    struct gl_arena
        *arena; /* everything that effects point to; the caller keeps it until the last is done */
    struct gl_effect *items;
    size_t n, cap;
};

/* Append an effect of this type, otherwise zero. The pointer is valid until the next call. */
struct gl_effect *gl_effect_add(struct gl_effects *out, enum gl_effect_type type, uint64_t after);
const char *gl_effect_name(enum gl_effect_type type);

#endif
