/* rundir.h - the folder of one attempt: contexts/CTX/runs/JOB/ATTEMPT/
 *
 *     work/         where the step runs, unless it was given a folder; files of the flow are copies
 *     env           its environment, without secrets, each variable ended by NUL: for people who
 *                   want to look around in work/
 *     input.json    GLIA_INPUT_FILE
 *     output.json   GLIA_OUTPUT, written by the step
 *     log           see capture.h
 *
 * When a step has succeeded, work/ goes. Workers have another folder: see workdir.h.
 *
 * Names were checked before (gl_keeper_check_key): they cannot lead out of the folder. Nothing here
 * is synced: after a power cut no process is left that could miss it. */
#ifndef GL_KEEPER_RUNDIR_H
#define GL_KEEPER_RUNDIR_H

#include "keeper/attempt.h"

/* "folder/name", NUL-terminated. A step needs a dozen of them: this is a fifth of the cost of
 * formatting. */
gl_str gl_rundir_join(struct gl_arena *a, gl_str folder, gl_str name);

/* Path of the attempt's folder, relative to the contexts' folder. */
gl_str gl_rundir_path(struct gl_arena *a, const struct gl_attempt_key *key);

/* Make the folder `path` and those that are missing above it, relative to the contexts' folder. 0
 * or an errno; EEXIST: it was there. */
int gl_rundir_mkdirs(struct gl_keeper *k, const char *path, mode_t mode);

/* Make the folder, the input, the files, and a note of `env` (NULL at its end; without secrets).
 * The sentence says what could not be made. */
int gl_rundir_make(struct gl_keeper *k, const struct gl_exec_start *s, char *const *env,
                   struct gl_floor *job, gl_str path, struct gl_why *reterr_why);

/* The step has succeeded: remove what only a failure would need. */
void gl_rundir_clear(struct gl_keeper *k, gl_str path);

/* Append what the step left in GLIA_OUTPUT. GL_E_NOT_FOUND: nothing, or an empty file; GL_E_LIMIT:
 * too much. */
int gl_rundir_output(struct gl_keeper *k, gl_str path, struct gl_buf *out,
                     struct gl_why *reterr_why);

/* The output has secrets in it, or may have: let the file say what was taken. */
void gl_rundir_replace_output(struct gl_keeper *k, gl_str path, gl_str output);

#endif
