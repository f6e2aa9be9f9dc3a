/* mailbox.h - messages of a job: on their way, waiting, held back, given up.
 *
 * A message is a *letter* from the moment its sender's transaction commits until the transaction
 * that handles it: one record, and one small entry in memory. Small ones are kept in memory whole;
 * of larger ones only what routing needs, and the text is read when it is handled.
 *
 *     QUEUED ──► HANDLING ──► gone (handled), or kept (the ledger may give it again)
 *       │  ▲        └──► DEAD
 *       ▼  │
 *      HELD  (its step may not run yet) */
#ifndef GL_CORE_AGENTS_MAILBOX_H
#define GL_CORE_AGENTS_MAILBOX_H

#include "core/core_state.h"
#include "model/bundle/message.h"

#define GL_LETTER_STATUSES(X)                                                \
    X(QUEUED, "queued")                                                      \
    X(HELD, "held")                                                          \
    X(HANDLING, "handling") /* in memory only: its unit's record names it */ \
    X(KEPT, "kept")                                                          \
    X(COUNTED, "counted") /* an aggregator has it */

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
    gl_str step;   /* of the ledger; "" : none */
    gl_str sender; /* body.agent_id, for an aggregator */
    gl_ms created_at, expires_at;
    uint64_t body, body_bytes; /* its body is a large one: the number and size of that; 0: not so */
    bool large;                /* the whole message is the record "message" of the same id, ... */
    gl_str message;            /* ... and this is it without its body; JSON */
};

struct gl_letter {
    struct gl_link link;       /* in a mail, or alone */
    struct gl_letter_record r; /* strings belong to the core's pool; `to` is the agent's */
    uint32_t unit;             /* of `to` */
    struct gl_body *body;      /* NULL: it is in the message */
};

extern const struct gl_schema gl_letter_schema;

struct gl_mailbox *gl_mailbox_of(struct gl_core *c, struct gl_step *st);
/* Its text, if all of it is in memory. */
static inline gl_str gl_mailbox_text(const struct gl_letter *l)
{
    return l->r.large || l->body != NULL ? (gl_str){0} : l->r.message;
}

/* A new letter of the job, at the end of its receiver's inbox. `m` gets its id; NULL: it could not
 * be delivered, and is dead. */
struct gl_letter *gl_mailbox_post(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                                  uint32_t to, const struct gl_step *step);
/* There is nobody for it: it is dead from the beginning. */
void gl_mailbox_post_dead(struct gl_core *c, struct gl_job *j, struct gl_message *m, gl_str why);

/* Its status has changed: the record follows. */
void gl_mailbox_set_status(struct gl_core *c, struct gl_job *j, struct gl_letter *l,
                           enum gl_letter_status status);
/* Out of its receiver's inbox. */
void gl_mailbox_take(struct gl_core *c, struct gl_step *unit, struct gl_letter *l);
/* It has been dealt with. */
void gl_mailbox_drop(struct gl_core *c, struct gl_job *j, struct gl_letter *l);
/* Nobody can handle it. */
void gl_mailbox_make_dead(struct gl_core *c, struct gl_job *j, struct gl_letter *l, gl_str why);
/* To the ledger's step, which holds it; and back to the front of its receiver's inbox, all of them.
 */
void gl_mailbox_hold(struct gl_core *c, struct gl_step *step, struct gl_letter *l);
void gl_mailbox_release(struct gl_core *c, struct gl_step *step);
/* Everything that waits at the ledger's step goes; why: for the log. */
void gl_mailbox_discard(struct gl_core *c, struct gl_step *step);
/* The unit may have something to do. */
void gl_mailbox_schedule(struct gl_core *c, struct gl_step *unit);

/* In and out of memory. */
struct gl_letter *gl_mailbox_letter_new(struct gl_core *c, struct gl_job *j, uint32_t unit,
                                        const struct gl_letter_record *r);
void gl_mailbox_free_step(struct gl_core *c, struct gl_step *st);
int gl_mailbox_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
/* All have been restored. Are none missing? */
bool gl_mailbox_is_complete(struct gl_job *j);
/* After loading: where each letter belongs. */
void gl_mailbox_on_load(struct gl_core *c, struct gl_job *j);
/* The step of the ledger a letter is for; NULL: none. */
struct gl_step *gl_mailbox_step_of(struct gl_core *c, struct gl_job *j, const struct gl_letter *l);

/* ---- large bodies (bodies.c) ---- */

/* What the message, letter `number`, carries is too large for it: from now on it names it, and
 * whoever gets this has it. NULL: it stays as it is. */
struct gl_body *gl_body_of(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                           uint64_t number);
struct gl_body *gl_body_acquire(struct gl_core *c, struct gl_job *j, uint64_t number,
                                uint64_t bytes);
/* In memory; and for good: the last who has it takes it along. NULL is fine. */
void gl_body_release(struct gl_core *c, struct gl_body *b);
void gl_body_delete(struct gl_core *c, struct gl_body *b);
/* During this step of the core `text` is this body. */
void gl_body_remember(struct gl_core *c, gl_str text, gl_str sha256, struct gl_body *b);

#endif
