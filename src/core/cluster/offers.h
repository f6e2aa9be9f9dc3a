/* offers.h - the owner's side of attempts that run on other nodes (model/offer.h has the records).
 *
 *                    taken, and its node reports
 *   OPEN ────────────────────────────────────────► over: the ledger moves the step on
 *     │                                              ▲
 *     └─► withdrawn, because it was not taken in ────┘
 *         time or is to be stopped
 *
 * Rules:
 *   - The decision that an attempt runs, and where, is a transaction of the job; nothing is acted
 *     on before it has committed, because the node can only see what is committed.
 *   - Once offered, the attempt is over only if its record says so, or if the session that took it
 *     is dead and no newer session of that node lives. The transaction that moves the step on
 *     deletes the record; if it gives up an attempt of a dead session it guards on that.
 *   - An offer is withdrawn by creating the record that a take would create. So either one of them
 *     happens, never both.
 *   - The index of results is a hint; each offer is also looked at regularly.
 *
 * Called: gl_offers_make() when an attempt is decided, gl_offers_add() for one of a job just
 * loaded; gl_offers_stop() to stop it, gl_offers_look() to ask about it; gl_offers_end() when the
 * step moves on, gl_offers_forget() when its job leaves memory. */
#ifndef GL_CORE_CLUSTER_OFFERS_H
#define GL_CORE_CLUSTER_OFFERS_H

#include "core/core_state.h"

void gl_offers_init(struct gl_core *c);
void gl_offers_done(struct gl_core *c);

/* The step's new attempt is offered to the node in its record. */
void gl_offers_make(struct gl_core *c, struct gl_step *st);
/* The step of a job just loaded has an attempt elsewhere. */
void gl_offers_add(struct gl_core *c, struct gl_step *st);
/* What has become of it? The answer comes through gl_attempts_on_elsewhere(). */
void gl_offers_look(struct gl_core *c, struct gl_step *st);
/* The step's record says why it is to be stopped: its node is to read that. */
void gl_offers_stop(struct gl_core *c, struct gl_step *st);
/* The step moves on: removes what the store has of the offer, in the same transaction. */
void gl_offers_end(struct gl_core *c, struct gl_step *st);
void gl_offers_forget(struct gl_core *c, struct gl_step *st);

/* Another node has written something for this one. */
void gl_offers_on_woken(struct gl_core *c);
/* A session has been declared dead. */
void gl_offers_on_death(struct gl_core *c, gl_str session);
/* The store may have lost its latest writes. */
void gl_offers_on_changed(struct gl_core *c);

/* The word that wakes a node that has got an offer or a result. */
#define GL_OFFERS_WORD "offers"
/* Adds the node to those that this transaction wakes. */
gl_str gl_offers_wake(struct gl_core *c, gl_str word, gl_str node);

/* Snapshots of the core: the offer of the step named by the line before. */
struct gl_snapshot_line;
void gl_offers_save(const struct gl_step *st, struct gl_buf *out);
int gl_offers_restore(struct gl_core *c, struct gl_snapshot_line *l);

#endif
