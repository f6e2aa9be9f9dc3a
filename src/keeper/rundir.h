/* rundir.h - the folder of one attempt: contexts/CTX/runs/JOB/ATTEMPT/
 *
 *     work/         where the step runs, unless it was given a folder; holds copies of the flow's
 * files env           its environment without secrets, NUL-separated, for debugging in work/
 *     input.json    GLIA_INPUT_FILE
 *     output.json   GLIA_OUTPUT, written by the step
 *     log           see capture.h
 *
 * work/ is removed when the step has succeeded. Workers have another folder: see workdir.h.
 *
 * Names were checked before (gl_keeper_check_key), so they cannot lead out of the folder. Nothing
 * here is synced: after a power failure no process is left to miss it. */
#ifndef GL_KEEPER_RUNDIR_H
#define GL_KEEPER_RUNDIR_H

#include "keeper/attempt.h"

/* "folder/name", NUL-terminated. A start needs a dozen of these; this costs a fifth of formatting
 * them. */
gl_str gl_rundir_join(struct gl_arena *a, gl_str folder, gl_str name);

/* Path of the attempt's folder, relative to the contexts' folder. */
gl_str gl_rundir_path(struct gl_arena *a, const struct gl_attempt_key *key);

/* Create the folder `path` and its missing parents, relative to the contexts' folder. 0 or an
 * errno; EEXIST: it already existed. */
int gl_rundir_mkdirs(struct gl_keeper *k, const char *path, mode_t mode);

/* Create the folder, the input, the files, and the env file from `env` (NULL-terminated, without
 * secrets). `reterr_why` names what could not be created. */
int gl_rundir_make(struct gl_keeper *k, const struct gl_exec_start *s, char *const *env,
                   struct gl_floor *job, gl_str path, struct gl_why *reterr_why);

/* The step succeeded: remove what only a failure would need. */
void gl_rundir_clear(struct gl_keeper *k, gl_str path);

/* Append what the step left in GLIA_OUTPUT. GL_E_NOT_FOUND: no file, or an empty one; GL_E_LIMIT:
 * too large. */
int gl_rundir_output(struct gl_keeper *k, gl_str path, struct gl_buf *out,
                     struct gl_why *reterr_why);

/* The output file may contain secrets: overwrite it with the redacted output. */
void gl_rundir_replace_output(struct gl_keeper *k, gl_str path, gl_str output);

#endif
