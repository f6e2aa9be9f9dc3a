/* shelf.h - folders of attempts that said nothing and left nothing, kept for later attempts.
 *
 * Making folders and files is the dearest part of a short step, so a folder that is as good as new
 * is renamed to its next place instead. It stays where it was until then. With the folders of jobs
 * it is the same: a new job may get that of the one that has been idle for longest, with the one
 * folder that is left in it. What is still on the shelf when the keeper ends is removed. */
#ifndef GL_KEEPER_SHELF_H
#define GL_KEEPER_SHELF_H

#include "keeper/charge.h"

/* One folder: that of `attempt` of a job. */
struct gl_shelved {
    struct gl_floor *job;
    uint32_t input_bytes; /* length of its input file */
    char attempt[GL_ATTEMPT_ID_BYTES_MAX + 1];
};

/* Get a folder from the shelf to `path`. Returns the length of the input file in it; 0: there is
 * none, and it has to be made. The folder of the job is there afterwards, if it can be made. */
uint32_t gl_shelf_take(struct gl_keeper *k, struct gl_floor *job, gl_str path);

/* The attempt is over and has written no log and no output: keep its folder if nothing is in it. */
void gl_shelf_put(struct gl_keeper *k, struct gl_charge *c, gl_str path);

/* The job is forgotten: remove its folders that are on the shelf. */
void gl_shelf_forget(struct gl_keeper *k, struct gl_floor *job);
/* The keeper ends. */
void gl_shelf_clear(struct gl_keeper *k);

#endif
