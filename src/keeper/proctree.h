/* proctree.h - every process that comes from a step, wherever it has gone.
 *
 * The keeper is a sub-reaper: a descendant whose parent has ended becomes its child. So after every
 * end of a process a look at the list of our children shows the orphans, and when a step is over
 * they are killed; their own children then become ours, and so on until none is left. No process
 * can leave this way by forking twice or by making a session of its own.
 *
 * Whose an orphan is tells its mark: a limit (RLIMIT_RTTIME, which means something only to
 * real-time processes) set to a number that nobody else uses, inherited by every descendant and
 * kept over exec. A process that has changed that limit is known by GLIA_JOB_ID and GLIA_ATTEMPT_ID
 * in its environment; one that has removed those too is nobody's, and ends at the latest when no
 * step runs any more.
 *
 * When a keeper was killed, the kernel kills its children (PDEATHSIG); the next keeper ends what
 * else is left: the processes of the journal by pid and start time, all processes that bear one of
 * its marks, and those in its control group. */
#ifndef GL_KEEPER_PROCTREE_H
#define GL_KEEPER_PROCTREE_H

#include "keeper/attempt.h"

int gl_proctree_open(struct gl_keeper *k, struct gl_why *reterr_why);
void gl_proctree_close(struct gl_keeper *k);

uint64_t gl_proctree_new_mark(struct gl_keeper *k); /* 0: this machine has no room for marks */

void gl_proctree_add(struct gl_keeper *k, struct gl_proc *p);
struct gl_proc *gl_proctree_find(struct gl_keeper *k, pid_t pid);
/* It has been waited for. An adopted one is freed. */
void gl_proctree_remove(struct gl_keeper *k, struct gl_proc *p);

/* Look for orphans: adopt those of running attempts, kill the others. To be called when any process
 * has ended. */
void gl_proctree_sweep(struct gl_keeper *k);

/* Kill the adopted processes of an attempt that is over. */
void gl_proctree_kill_adopted(struct gl_attempt *a);

/* End what an earlier keeper of this boot left behind: its process `pid`, if that is still the one
 * that started between these ticks. */
void gl_proctree_end_process(uint64_t pid, uint64_t ticks_min, uint64_t ticks_max);
/* ... and whatever bears one of its marks. Returns the number of processes that would not die
 * within two seconds. */
size_t gl_proctree_end_marked(uint64_t mark);

/* Now, as /proc/PID/stat counts. */
uint64_t gl_proctree_ticks(void);

#endif
