/* workdir.h - the folder an attempt runs in, and the files put into it.
 *
 * A step gets the files of its flow, readable by its owner only. A worker has a folder of its own
 * with files of the bundle and generated files; it is new for each attempt and removed when the
 * attempt is over. All files are copies: no attempt sees what another does to them. */
#ifndef GL_KEEPER_WORKDIR_H
#define GL_KEEPER_WORKDIR_H

#include "keeper/keeper.h"

/* Write all of it; 0 or an errno. */
int gl_workdir_write(int fd, gl_str bytes);

/* The parent of a worker's work/, given the attempt's folder: next to it, without colons in its
 * name, because workers put its paths into PATH, PYTHONPATH and the like. */
gl_str gl_workdir_path(struct gl_arena *a, gl_str path);

/* Create one file in work/ of the attempt's folder `path`. GL_E_DAMAGED: a snapshot is gone, or its
 * content does not match its hash. */
int gl_workdir_put(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path,
                   const struct gl_exec_file *f, struct gl_why *reterr_why);

/* Create a worker's folder, its files, its current folder (`cwd`, absolute) and the run folders the
 * start asks for. */
int gl_workdir_make(struct gl_keeper *k, const struct gl_exec_start *s, const char *cwd,
                    gl_str path, struct gl_why *reterr_why);
/* Remove it; `all`: together with the attempt's folder, which is otherwise empty. */
void gl_workdir_remove(struct gl_keeper *k, gl_str path, bool all);

#endif
