/* asksrun.h - what is told of one run's questions (port/asks.h), made of its file or of another. */
#ifndef GL_OS_ASKSRUN_H
#define GL_OS_ASKSRUN_H

#include "os/humanfile.h"

/* The open ones of a file, in `a`, with texts that are cut. */
void gl_asksrun_of(const char *root, gl_str run_id, const struct gl_humanfile *f,
                   struct gl_arena *a, struct gl_asks_run *ret);

/* The same once more, with at most `limit` questions. */
struct gl_asks_run gl_asksrun_copy(const struct gl_asks_run *r, size_t limit, struct gl_arena *a);

/* Reads the file of one run when asked; of all runs for `all`. For commands that have no node.
 * `root` is borrowed. */
struct gl_asks gl_asksrun_reader(const char *root);

#endif
