/* worker_world.h - shared by the tests of workers under a keeper. */
#ifndef GL_TEST_WORKER_WORLD_H
#define GL_TEST_WORKER_WORLD_H

#include <limits.h>

#include "contract/exec_world.h"
#include "model/bundle/worker_output.h"

struct worker_end {
    struct reported_end *end;
    struct gl_worker_result output;
};

int worker_open_world(void **state);

/* Put a blob into the context's area; its name lives in the world's arena. */
gl_str worker_blob(struct exec_world *w, gl_str content);
void worker_spoil_blob(struct exec_world *w, gl_str hash);

/* Start `sh -c script` as a worker with a new name, which is returned, and with the given files,
 * folder, environment, ... */
const char *worker_start(struct exec_world *w, const char *script, struct exec_options options);
struct worker_end worker_read(struct exec_world *w, struct reported_end *end);
/* Start it and wait for its end. */
struct worker_end worker_run(struct exec_world *w, const char *script, struct exec_options options);

/* Where a worker of this attempt runs. */
void worker_folder(const struct exec_world *w, const char *attempt, char path[static PATH_MAX]);

/* Without an executor: wait until that folder is gone. */
void worker_wait_for_end(struct exec_world *w, const char *attempt);
/* ... until a file is there. */
void worker_wait_for_file(const char *path);
/* ... until half of the disk is free. */
void worker_wait_for_room(struct exec_world *w);

#endif
