/* results.h - the ends of attempts and the journal: what is written, when it counts, and what an
 * earlier keeper wrote.
 *
 *     gl_results_flush()      journal the ends of this turn and have them synced
 *     gl_results_synced()    ... only then do they count */
#ifndef GL_KEEPER_RESULTS_H
#define GL_KEEPER_RESULTS_H

#include "keeper/attempt.h"

void gl_results_flush(struct gl_keeper *k);
/* A sync of the journal is done: the ends it was about count. */
void gl_results_synced(struct gl_keeper *k);

/* One record of the journal of an earlier keeper. */
int gl_results_replay(void *keeper, const struct gl_keeper_msg *m);
/* All have been read: end what is left of the attempts that have no result. */
void gl_results_replayed(struct gl_keeper *k);

#endif
