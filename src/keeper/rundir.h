/* rundir.h - the folder of one attempt: contexts/CTX/runs/JOB/ATTEMPT/
 *
 *     work/         where the step runs, unless it was given a folder; files of the flow are copies
 *     input.json    GLIA_INPUT_FILE
 *     output.json   GLIA_OUTPUT, written by the step
 *     log           see capture.h
 *
 * Names were checked before (gl_keep_check_key): they cannot lead out of the folder. Nothing here
 * is synced: after a power cut no process is left that could miss it.
 *
 * A step that said nothing and left nothing leaves no folder either: it goes to a shelf and becomes
 * the folder of a later step. Making folders and files is the dearest part of a short step. */
#ifndef GL_KEEPER_RUNDIR_H
#define GL_KEEPER_RUNDIR_H

#include "keeper/keeper.h"

/* Path of the attempt's folder, relative to the contexts' folder. */
gl_str gl_rundir_path(struct gl_arena *a, const struct gl_attempt_key *key);

/* Make the folder, the input and the files. The sentence says what could not be made. `new_job`:
 * the job has no attempts here yet, so its folder is probably missing too. */
int gl_rundir_make(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path, bool new_job,
                   struct gl_why *reterr_why);

/* The attempt is over and has written no log and no output: take the folder away if there is
 * nothing in it. */
void gl_rundir_put_back(struct gl_keeper *k, gl_str path);

int gl_rundir_open_shelf(struct gl_keeper *k, struct gl_why *reterr_why);
void gl_rundir_close_shelf(struct gl_keeper *k);

/* Append what the step left in GLIA_OUTPUT. GL_E_NOT_FOUND: nothing, or nothing but an empty file;
 * GL_E_LIMIT: too much. */
int gl_rundir_output(struct gl_keeper *k, gl_str path, struct gl_buf *out,
                     struct gl_why *reterr_why);

#endif
