/* worker_files.h - stores large files of a worker as blobs before the worker starts.
 *
 * The executor's protocol carries small files as text and large ones by hash.
 *
 *    gl_worker_files_sort()   first: separates the bundle's files from those made for this start
 *    gl_worker_files_store()  then: writes the large ones */
#ifndef GL_NODE_WORKER_FILES_H
#define GL_NODE_WORKER_FILES_H

#include "port/exec.h"

struct gl_arena;
struct gl_node;

/* Puts the bundle's files first and those made for this start after them. Returns how many are the
 * bundle's. */
size_t gl_worker_files_sort(struct gl_exec_start *x, struct gl_arena *arena);

/* GL_E_UNAVAILABLE: retry later. */
typedef void gl_worker_files_done(void *owner, int code, const char *why);

/* True: there is nothing to do. Otherwise `done` runs once, never from inside the call, and not at
 * all if the node is freed first; the files then name blobs. Nothing else refers to these blobs, so
 * retention removes them once they have not been used for a while. */
bool gl_worker_files_store(struct gl_node *n, struct gl_exec_file *files, size_t files_n,
                           struct gl_arena *arena, gl_worker_files_done *done, void *owner);

#endif
