/* workdir.h - the folder an attempt runs in, and what is put into it before.
 *
 * A step's files are the flow's, for its owner only. A worker has a folder of its own with files of
 * the bundle and texts made for it; it is new for each attempt, and removed when the attempt is
 * over. All are copies: whatever a process does to them, nobody else will see. */
#ifndef GL_KEEPER_WORKDIR_H
#define GL_KEEPER_WORKDIR_H

#include "keeper/keeper.h"

/* Write all of it; 0 or an errno. */
int gl_workdir_write(int fd, gl_str bytes);

/* Where a worker's folder work/ is, given its attempt's folder: beside that, and without a colon in
 * its name, because workers put paths of it into PATH, PYTHONPATH and the like. */
gl_str gl_workdir_path(struct gl_arena *a, gl_str path);

/* Make one file in work/ of the attempt's folder `path`. A snapshot whose content is not what its
 * name says is GL_E_DAMAGED. */
int gl_workdir_put(struct gl_keeper *k, const struct gl_exec_start *s, gl_str path,
                   const struct gl_exec_file *f, struct gl_why *reterr_why);

/* Of a worker: the folder, its files, where it runs (`cwd`, absolute) and what else is to be made.
 */
int gl_workdir_make(struct gl_keeper *k, const struct gl_exec_start *s, const char *cwd,
                    gl_str path, struct gl_why *reterr_why);
/* Remove it; `all`: with the attempt's folder, in which there is nothing else. */
void gl_workdir_remove(struct gl_keeper *k, gl_str path, bool all);

#endif
