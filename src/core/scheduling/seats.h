/* seats.h - enforces a concurrency key across the nodes of a shared store.
 *
 * A key with limit `max` has `max` seats. A seat that is taken is a record "limit"/<key>/<seat>; a
 * free one has no record. The transaction that decides a start creates the record and guards on its
 * absence, and the transaction that records the end deletes it. So a seat is taken as long as,
 * by the store, the attempt runs or may run (recovery/safety.h), whichever node dies.
 *
 * A node learns that another one holds a seat when a start is refused; gl_quotas_on_refused() marks
 * the seat, and a timer clears the mark so that it is tried again.
 *
 * Order of calls: gl_seats_acquire() when an attempt starts, gl_seats_release() when it ends. */
#ifndef GL_CORE_SCHEDULING_SEATS_H
#define GL_CORE_SCHEDULING_SEATS_H

#include "core/scheduling/quotas.h"

enum gl_seat { GL_SEAT_FREE = '0', GL_SEAT_OURS = '1', GL_SEAT_OTHERS = '2' };

/* Seats are numbered from 1. Number 0, or one past the last seat, changes nothing. */
void gl_seats_set(struct gl_quota *l, uint32_t seat, enum gl_seat state);
/* Adds free seats until there are at least `n`. */
void gl_seats_grow(struct gl_core *c, struct gl_quota *l, uint32_t n);
/* An attempt begins under h->limit: takes a seat in the job's transaction. */
void gl_seats_acquire(struct gl_core *c, struct gl_step *st, struct gl_slot_hold *h);
/* The attempt has ended: frees its seat, if it has one, in the job's transaction. */
void gl_seats_release(struct gl_core *c, struct gl_step *st);
/* Seats of other nodes may be free by now: marks them free, so that a start tries them. */
void gl_seats_forget_others(struct gl_quota *l);
/* From a snapshot: `seats` holds one enum gl_seat for each. */
void gl_seats_restore(struct gl_core *c, struct gl_quota *l, gl_str seats);

#endif
