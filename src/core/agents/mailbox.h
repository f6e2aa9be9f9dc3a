/* mailbox.h - the messages of a job: queued, deferred, kept, counted, dead.
 *
 * A message is a *queued message* from the moment its sender's transaction commits until the
 * transaction that handles it: one record "letter", and one small entry in memory. A short message
 * is in memory whole; of a longer one only the envelope is, and the text is read when it is
 * handled.
 *
 *     QUEUED ──► HANDLING ──► handled: removed, KEPT or COUNTED
 *       │  ▲        └──► dead
 *       ▼  │
 *    DEFERRED  (its ledger step may not run yet)
 *
 * Rules:
 *   - A message changes status only inside a transaction, so a restart finds it where it was.
 *   - HANDLING is not written: the record of the agent unit names the message it handles, and
 *     taking up a message costs no write.
 *   - KEPT is a message that a running attempt has handled and that a retry of the attempt needs.
 *   - An agent handles messages by priority, which grows with waiting, and those of the same
 *     priority in the order in which they were sent (message_order.h).
 *
 * Order of calls: gl_mailbox_send(), gl_mailbox_take(), then gl_mailbox_drop() or
 * gl_mailbox_make_dead(); in between perhaps gl_mailbox_defer() and gl_mailbox_release(). After a
 * load: gl_mailbox_restore() for each record, gl_mailbox_is_complete(), gl_mailbox_on_load(). */
#ifndef GL_CORE_AGENTS_MAILBOX_H
#define GL_CORE_AGENTS_MAILBOX_H

#include "core/core_state.h"
#include "model/bundle/message.h"

#define GL_MESSAGE_STATUSES(X)                                               \
    X(QUEUED, "queued")     /* in its receiver's inbox */                    \
    X(DEFERRED, "held")     /* at its ledger step, which may not run yet */  \
    X(HANDLING, "handling") /* in memory only: its unit's record names it */ \
    X(KEPT, "kept")         /* handled; a retry of the attempt needs it */   \
    X(COUNTED, "counted")   /* an aggregator has received it */

enum gl_message_status {
#define X(name, word) GL_MESSAGE_##name,
    GL_MESSAGE_STATUSES(X)
#undef X
};

/* The record "letter". */
struct gl_message_record {
    uint64_t number;
    uint8_t status; /* enum gl_message_status */
    gl_str to;      /* agent */
    gl_str from, type;
    gl_str step;      /* ledger step; "": none */
    gl_str sender;    /* body.agent_id, by which an aggregator knows its senders */
    gl_ms created_at; /* by the clock of the job's owner, but not before an earlier message's */
    gl_ms expires_at;
    int64_t urgency; /* priority - GL_MESSAGE_PRIORITY; earlier releases write none */
    bool again;      /* a retry gets it again: it goes before all others */
    uint64_t body,
        body_bytes; /* a large body: number of the message that brought it, size; 0: none */
    bool large;     /* the whole message is the record "message" with the same id, ... */
    gl_str message; /* ... and this is the message without its body; JSON */
};

struct gl_queued_message {
    struct gl_link link;        /* in a mailbox, or alone */
    struct gl_heap_item waits;  /* in its receiver's inbox, ... */
    gl_ms rank;                 /* ... where the lowest goes first, then the lowest number */
    struct gl_message_record r; /* strings belong to the core's pool; `to` to the flow */
    uint32_t unit;              /* number of the unit of `to` */
    struct gl_body *body;       /* the large body; NULL: none. Holds a reference */
};

extern const struct gl_schema gl_message_schema;

/* The mailbox of a unit or a ledger step; created if it has none. */
struct gl_mailbox *gl_mailbox_of(struct gl_core *c, struct gl_step *st);
/* The message as text; empty if not all of it is in memory. */
static inline gl_str gl_mailbox_text(const struct gl_queued_message *q)
{
    return q->r.large || q->body != NULL ? (gl_str){0} : q->r.message;
}

/* ---- sending ---- */

/* Appends a new message to its receiver's inbox and sets the id of `m`. NULL: it could not be
 * delivered and is a dead letter. */
struct gl_queued_message *gl_mailbox_send(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                                          uint32_t to, const struct gl_step *step);
/* The message has no receiver: it becomes a dead letter at once. */
void gl_mailbox_send_dead(struct gl_core *c, struct gl_job *j, struct gl_message *m, gl_str why);
/* Lists the unit for gl_agents_dispatch(): it may have something to do. */
void gl_mailbox_schedule(struct gl_core *c, struct gl_step *unit);

/* ---- handling ---- */

/* Changes the status, and with it the record. */
void gl_mailbox_set_status(struct gl_core *c, struct gl_job *j, struct gl_queued_message *q,
                           enum gl_message_status status);
/* Takes it out of its receiver's inbox. */
void gl_mailbox_take(struct gl_core *c, struct gl_step *unit, struct gl_queued_message *q);
/* It has been handled: deletes the record and frees the message. */
void gl_mailbox_drop(struct gl_core *c, struct gl_job *j, struct gl_queued_message *q);
/* It cannot be handled: makes it a dead letter and frees it. */
void gl_mailbox_make_dead(struct gl_core *c, struct gl_job *j, struct gl_queued_message *q,
                          gl_str why);
/* Moves a message to the ledger step, which may not run yet. */
void gl_mailbox_defer(struct gl_core *c, struct gl_step *step, struct gl_queued_message *q);
/* Moves all messages of the ledger step back to their receivers' inboxes. */
void gl_mailbox_release(struct gl_core *c, struct gl_step *step);
/* The ledger step has ended: drops every message it has deferred. */
void gl_mailbox_discard(struct gl_core *c, struct gl_step *step);
/* The ledger step a message is for; NULL: none. */
struct gl_step *gl_mailbox_step_of(struct gl_core *c, struct gl_job *j,
                                   const struct gl_queued_message *q);

/* ---- loading and unloading ---- */

/* A message in memory, in no mailbox yet. Strings are copied. */
struct gl_queued_message *gl_mailbox_message_new(struct gl_core *c, struct gl_job *j, uint32_t unit,
                                                 const struct gl_message_record *r);
/* The step leaves memory: frees its mailbox and what is in it. */
void gl_mailbox_free_step(struct gl_core *c, struct gl_step *st);
int gl_mailbox_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
/* After the last record: are all messages there that the job's record and its units count on? */
bool gl_mailbox_is_complete(struct gl_job *j);
/* All steps are in memory: moves each message to where its status says it belongs. */
void gl_mailbox_on_load(struct gl_core *c, struct gl_job *j);

/* ---- large bodies (bodies.c) ---- */

/* Moves the body of `m`, message `number`, out of the message if it is a large one; the message
 * then names it as an artifact. Returns a reference for the message. NULL: the message keeps its
 * body. */
struct gl_body *gl_body_of(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                           uint64_t number);
/* Adds a reference to the body that message `number` brought. */
struct gl_body *gl_body_acquire(struct gl_core *c, struct gl_job *j, uint64_t number,
                                uint64_t bytes);
/* Drops a reference, in memory only. NULL is fine. */
void gl_body_release(struct gl_core *c, struct gl_body *b);
/* Drops a reference; dropping the last one deletes the records. NULL is fine. */
void gl_body_delete(struct gl_core *c, struct gl_body *b);
/* Until the end of this step of the core, `text` is known to be this body: sending it again shares
 * the records. */
void gl_body_remember(struct gl_core *c, gl_str text, gl_str sha256, struct gl_body *b);

#endif
