/* mailbox.h - the messages of a job: queued, held, kept, counted, dead.
 *
 * A message is a *letter* from the moment its sender's transaction commits until the transaction
 * that handles it: one record "letter", and one small entry in memory. A short message is in memory
 * whole; of a longer one only the envelope is, and the text is read when it is handled.
 *
 *     QUEUED ──► HANDLING ──► handled: removed, KEPT or COUNTED
 *       │  ▲        └──► dead
 *       ▼  │
 *      HELD  (its ledger step may not run yet)
 *
 * Rules:
 *   - A letter changes status only inside a transaction, so a restart finds it where it was.
 *   - HANDLING is not written: the record of the agent unit names the letter it handles, and taking
 *     up a message costs no write.
 *   - KEPT is a letter that a running attempt has handled and that a retry of the attempt needs.
 *   - An agent handles letters by priority, which grows with waiting, and those of the same
 * priority in the order in which they were sent (letter_order.h).
 *
 * Order of calls: gl_mailbox_post(), gl_mailbox_take(), then gl_mailbox_drop() or
 * gl_mailbox_make_dead(); in between perhaps gl_mailbox_hold() and gl_mailbox_release(). After a
 * load: gl_mailbox_restore() for each record, gl_mailbox_is_complete(), gl_mailbox_on_load(). */
#ifndef GL_CORE_AGENTS_MAILBOX_H
#define GL_CORE_AGENTS_MAILBOX_H

#include "core/core_state.h"
#include "model/bundle/message.h"

#define GL_LETTER_STATUSES(X)                                                \
    X(QUEUED, "queued")     /* in its receiver's inbox */                    \
    X(HELD, "held")         /* at its ledger step, which may not run yet */  \
    X(HANDLING, "handling") /* in memory only: its unit's record names it */ \
    X(KEPT, "kept")         /* handled; a retry of the attempt needs it */   \
    X(COUNTED, "counted")   /* an aggregator has received it */

enum gl_letter_status {
#define X(name, word) GL_LETTER_##name,
    GL_LETTER_STATUSES(X)
#undef X
};

/* The record "letter". */
struct gl_letter_record {
    uint64_t number;
    uint8_t status; /* enum gl_letter_status */
    gl_str to;      /* agent */
    gl_str from, type;
    gl_str step;      /* ledger step; "": none */
    gl_str sender;    /* body.agent_id, by which an aggregator knows its senders */
    gl_ms created_at; /* by the clock of the job's owner, but not before an earlier letter's */
    gl_ms expires_at;
    int64_t urgency; /* priority - GL_MESSAGE_PRIORITY; earlier releases write none */
    bool again;      /* a retry gets it again: it goes before all others */
    uint64_t body,
        body_bytes; /* a large body: number of the letter that brought it, size; 0: none */
    bool large;     /* the whole message is the record "message" with the same id, ... */
    gl_str message; /* ... and this is the message without its body; JSON */
};

struct gl_letter {
    struct gl_link link;       /* in a mailbox, or alone */
    struct gl_heap_item waits; /* in its receiver's inbox, ... */
    gl_ms rank;                /* ... where the lowest goes first, then the lowest number */
    struct gl_letter_record r; /* strings belong to the core's pool; `to` to the flow */
    uint32_t unit;             /* number of the unit of `to` */
    struct gl_body *body;      /* the large body; NULL: none. Holds a reference */
};

extern const struct gl_schema gl_letter_schema;

/* The mailbox of a unit or a ledger step; created if it has none. */
struct gl_mailbox *gl_mailbox_of(struct gl_core *c, struct gl_step *st);
/* The message as text; empty if not all of it is in memory. */
static inline gl_str gl_mailbox_text(const struct gl_letter *l)
{
    return l->r.large || l->body != NULL ? (gl_str){0} : l->r.message;
}

/* ---- sending ---- */

/* Appends a new letter to its receiver's inbox and sets the id of `m`. NULL: it could not be
 * delivered and is a dead letter. */
struct gl_letter *gl_mailbox_post(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                                  uint32_t to, const struct gl_step *step);
/* The message has no receiver: it becomes a dead letter at once. */
void gl_mailbox_post_dead(struct gl_core *c, struct gl_job *j, struct gl_message *m, gl_str why);
/* Lists the unit for gl_agents_dispatch(): it may have something to do. */
void gl_mailbox_schedule(struct gl_core *c, struct gl_step *unit);

/* ---- handling ---- */

/* Changes the status, and with it the record. */
void gl_mailbox_set_status(struct gl_core *c, struct gl_job *j, struct gl_letter *l,
                           enum gl_letter_status status);
/* Takes it out of its receiver's inbox. */
void gl_mailbox_take(struct gl_core *c, struct gl_step *unit, struct gl_letter *l);
/* It has been handled: deletes the record and frees the letter. */
void gl_mailbox_drop(struct gl_core *c, struct gl_job *j, struct gl_letter *l);
/* It cannot be handled: makes it a dead letter and frees it. */
void gl_mailbox_make_dead(struct gl_core *c, struct gl_job *j, struct gl_letter *l, gl_str why);
/* Moves a letter to the ledger step, which may not run yet. */
void gl_mailbox_hold(struct gl_core *c, struct gl_step *step, struct gl_letter *l);
/* Moves all letters of the ledger step back to their receivers' inboxes. */
void gl_mailbox_release(struct gl_core *c, struct gl_step *step);
/* The ledger step has ended: drops every letter it holds. */
void gl_mailbox_discard(struct gl_core *c, struct gl_step *step);
/* The ledger step a letter is for; NULL: none. */
struct gl_step *gl_mailbox_step_of(struct gl_core *c, struct gl_job *j, const struct gl_letter *l);

/* ---- loading and unloading ---- */

/* A letter in memory, in no mailbox yet. Strings are copied. */
struct gl_letter *gl_mailbox_letter_new(struct gl_core *c, struct gl_job *j, uint32_t unit,
                                        const struct gl_letter_record *r);
/* The step leaves memory: frees its mailbox and what is in it. */
void gl_mailbox_free_step(struct gl_core *c, struct gl_step *st);
int gl_mailbox_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
/* After the last record: are all letters there that the job's record and its units count on? */
bool gl_mailbox_is_complete(struct gl_job *j);
/* All steps are in memory: moves each letter to where its status says it belongs. */
void gl_mailbox_on_load(struct gl_core *c, struct gl_job *j);

/* ---- large bodies (bodies.c) ---- */

/* Moves the body of `m`, letter `number`, out of the message if it is a large one; the message then
 * names it as an artifact. Returns a reference for the letter. NULL: the message keeps its body. */
struct gl_body *gl_body_of(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                           uint64_t number);
/* Adds a reference to the body that letter `number` brought. */
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
