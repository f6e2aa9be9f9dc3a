/* mail.h - messages of a job: on their way, waiting, held back, given up.
 *
 * A message is a *letter* from the moment its sender's transaction commits until the transaction
 * that handles it: one record, and one small entry in memory. Small ones are kept in memory whole;
 * of larger ones only what routing needs, and the text is read when it is handled.
 *
 *     QUEUED ──► HANDLING ──► gone (handled), or kept (the ledger may give it again)
 *       │  ▲        └──► DEAD
 *       ▼  │
 *      HELD  (its step may not run yet) */
#ifndef GL_CORE_AGENTS_MAIL_H
#define GL_CORE_AGENTS_MAIL_H

#include "core/core_state.h"
#include "model/message.h"

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
    bool large;     /* the whole message is the record "message" of the same id, ... */
    gl_str message; /* ... and this is it without its body; JSON */
};

struct gl_letter {
    struct gl_link link;       /* in a mail, or alone */
    struct gl_letter_record r; /* strings belong to the core's pool; `to` is the agent's */
    uint32_t unit;             /* of `to` */
};

extern const struct gl_schema gl_letter_schema;

struct gl_mail *gl_mail_of(struct gl_core *c, struct gl_step *st);
/* Its text, if it is in memory. */
static inline gl_str gl_mail_text(const struct gl_letter *l)
{
    return l->r.large ? (gl_str){0} : l->r.message;
}

/* A new letter of the job, at the end of its receiver's inbox. `m` gets its id; NULL: it could not
 * be delivered, and is dead. */
struct gl_letter *gl_mail_post(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                               uint32_t to, const struct gl_step *step);
/* To no agent that exists, or one whose inbox is full. */
void gl_mail_bury(struct gl_core *c, struct gl_job *j, const struct gl_message *m, gl_str text,
                  uint64_t number, gl_str why);

/* Its status has changed: the record follows. */
void gl_mail_set(struct gl_core *c, struct gl_job *j, struct gl_letter *l,
                 enum gl_letter_status status);
/* Out of its receiver's inbox. */
void gl_mail_take(struct gl_core *c, struct gl_step *unit, struct gl_letter *l);
/* It has been dealt with. */
void gl_mail_drop(struct gl_core *c, struct gl_job *j, struct gl_letter *l);
/* Nobody can handle it. */
void gl_mail_kill(struct gl_core *c, struct gl_job *j, struct gl_letter *l, gl_str text,
                  gl_str why);
/* To the ledger's step, which holds it; and back to the front of its receiver's inbox, all of them.
 */
void gl_mail_hold(struct gl_core *c, struct gl_step *step, struct gl_letter *l);
void gl_mail_release(struct gl_core *c, struct gl_step *step);
/* Everything that waits at the ledger's step goes; why: for the log. */
void gl_mail_discard(struct gl_core *c, struct gl_step *step);
/* The unit may have something to do. */
void gl_mail_call(struct gl_core *c, struct gl_step *unit);

/* In and out of memory. */
struct gl_letter *gl_mail_letter(struct gl_core *c, const struct gl_job *j, uint32_t unit,
                                 const struct gl_letter_record *r);
void gl_mail_free_step(struct gl_core *c, struct gl_step *st);
int gl_mail_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
/* After loading: where each letter belongs. */
void gl_mail_revive(struct gl_core *c, struct gl_job *j);
/* The step of the ledger a letter is for; NULL: none. */
struct gl_step *gl_mail_step(struct gl_core *c, struct gl_job *j, const struct gl_letter *l);

#endif
