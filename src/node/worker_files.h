/* worker_files.h - large texts of a worker's files become blobs before it starts. */
#ifndef GL_NODE_WORKER_FILES_H
#define GL_NODE_WORKER_FILES_H

#include "port/exec.h"

struct gl_arena;
struct gl_node;

/* The bundle's files first, those that are made for this start behind them; returns how many are
 * the bundle's. */
size_t gl_worker_files_sort(struct gl_exec_start *x, struct gl_arena *arena);

/* GL_E_UNAVAILABLE: try again. */
typedef void gl_worker_files_done(void *owner, int code, const char *why);

/* True: there is nothing to do. Else `done` runs once, not from inside the call, and the files name
 * blobs then; never if the node is freed before. Nobody else refers to them: they go when nobody
 * has asked for them for a while. */
bool gl_worker_files_store(struct gl_node *n, struct gl_exec_file *files, size_t files_n,
                           struct gl_arena *arena, gl_worker_files_done *done, void *owner);

#endif
