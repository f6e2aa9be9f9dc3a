/* results.h - writes the ends of attempts to the journal, and replays the journal of an earlier
 * keeper.
 *
 * An end counts, and may be reported, only after the journal was synced:
 *
 *     gl_results_flush()     write this turn's ends and start a sync
 *     gl_results_synced()    a sync has finished: its ends count
 *
 * At startup, gl_results_replay() takes each record, then gl_results_replayed() once. */
#ifndef GL_KEEPER_RESULTS_H
#define GL_KEEPER_RESULTS_H

#include "keeper/attempt.h"

void gl_results_flush(struct gl_keeper *k);
void gl_results_synced(struct gl_keeper *k);

/* One journal record of an earlier keeper. */
int gl_results_replay(void *keeper, const struct gl_keeper_msg *m);
/* All records are read: kill what is left of attempts that have no result. */
void gl_results_replayed(struct gl_keeper *k);

#endif
