/* flowpath.h - finds the flow file that a command-line argument means.
 *
 * A folder means the manifest or, without one, the flow file in it; "-" means standard input. */
#ifndef GL_CLI_FLOWPATH_H
#define GL_CLI_FLOWPATH_H

#include "base/err.h"
#include "base/str.h"

/* Returns the path in `a`, for errors and for files next to it. GL_E_NOT_FOUND: a folder without a
 * flow. Does not check that a file exists. */
int gl_flowpath_find(struct gl_arena *a, const char *word, const char **ret,
                     struct gl_why *reterr_why);

/* The file to open for that path. */
const char *gl_flowpath_open(const char *path);

#endif
