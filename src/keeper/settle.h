/* settle.h - the ends of attempts and the journal: what is written, when it counts, and what an
 * earlier keeper wrote.
 *
 *     gl_settle_turn()      journal the ends of this turn and have them synced
 *     gl_settle_synced()    ... only then do they count */
#ifndef GL_KEEPER_SETTLE_H
#define GL_KEEPER_SETTLE_H

#include "keeper/charge.h"

void gl_settle_turn(struct gl_keeper *k);
/* A sync of the journal is done: the ends it was about count. */
void gl_settle_synced(struct gl_keeper *k);

/* One record of the journal of an earlier keeper. */
int gl_settle_replay(void *keeper, const struct gl_keep_msg *m);
/* All have been read: end what is left of the attempts that have no result. */
void gl_settle_replayed(struct gl_keeper *k);

#endif
