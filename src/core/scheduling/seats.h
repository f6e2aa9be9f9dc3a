/* seats.h - a concurrency key on a shared store has `max` seats, each a record,
 * "limit"/<key>/<seat>, that is there while somebody sits on it.
 *
 * It is made by the transaction that decides a start, which demands that it is not there, and
 * removed by the one that notes the end: so it is free whenever nobody sits on it, whoever dies.
 * That a seat is another node's shows when a start is refused; it is tried again later. */
#ifndef GL_CORE_SCHEDULING_SEATS_H
#define GL_CORE_SCHEDULING_SEATS_H

#include "core/scheduling/quotas.h"

enum gl_seat { GL_SEAT_FREE = '0', GL_SEAT_OURS = '1', GL_SEAT_OTHERS = '2' };

void gl_seats_set(struct gl_quota *l, uint32_t seat, enum gl_seat state); /* from 1; 0: nothing */
void gl_seats_grow(struct gl_core *c, struct gl_quota *l,
                   uint32_t n); /* there are so many at least */
/* An attempt begins under h->limit: it takes a seat with this transaction. */
void gl_seats_acquire(struct gl_core *c, struct gl_step *st, struct gl_slot_hold *h);
/* Its attempt has ended: its seat is free with the same transaction. */
void gl_seats_release(struct gl_core *c, struct gl_step *st);
/* Others' seats may be free again: they are tried. */
void gl_seats_forget_others(struct gl_quota *l);
void gl_seats_restore(struct gl_core *c, struct gl_quota *l, gl_str seats); /* from a snapshot */

#endif
