/* proctree.h - finds every descendant of a step, however it detached.
 *
 * The keeper is a sub-reaper: a descendant whose parent has ended becomes its child. After each
 * exit the list of our children shows the new orphans. When a step is over its orphans are killed;
 * their own children then become ours, and so on until none is left. Double forks and new sessions
 * do not help a process escape.
 *
 * An orphan is attributed to an attempt by its mark: a limit (RLIMIT_RTTIME, which matters only to
 * real-time processes) set to a number nothing else uses, inherited by every descendant and kept
 * across exec. A process that has changed that limit is attributed by GLIA_JOB_ID and
 * GLIA_ATTEMPT_ID in its environment. One that has removed those too is a stray; it is killed at
 * the latest when no step is running any more.
 *
 * When a keeper is killed, the kernel kills its children (PDEATHSIG). The next keeper kills what is
 * left: the processes in the journal by pid and start time, all processes that carry one of its
 * marks, and those in its control group. */
#ifndef GL_KEEPER_PROCTREE_H
#define GL_KEEPER_PROCTREE_H

#include "keeper/attempt.h"

int gl_proctree_open(struct gl_keeper *k, struct gl_why *reterr_why);
void gl_proctree_close(struct gl_keeper *k);

uint64_t gl_proctree_new_mark(struct gl_keeper *k); /* 0: marks cannot be used on this machine */

void gl_proctree_add(struct gl_keeper *k, struct gl_proc *p);
struct gl_proc *gl_proctree_find(struct gl_keeper *k, pid_t pid);
/* The process has been waited for. An adopted one is freed. */
void gl_proctree_remove(struct gl_keeper *k, struct gl_proc *p);

/* Look for orphans: adopt those of running attempts, kill the others. Call it after any process has
 * exited. */
void gl_proctree_sweep(struct gl_keeper *k);

/* Kill the adopted processes of an attempt that is over. */
void gl_proctree_kill_adopted(struct gl_attempt *a);

/* Kill a process an earlier keeper of this boot left: `pid`, if it is still the one that started
 * between these ticks. */
void gl_proctree_end_process(uint64_t pid, uint64_t ticks_min, uint64_t ticks_max);
/* Kill whatever carries one of its marks. Returns the number of processes that did not die within
 * two seconds. */
size_t gl_proctree_end_marked(uint64_t mark);

/* The current time, in the unit of /proc/PID/stat. */
uint64_t gl_proctree_ticks(void);

#endif
