/* sqlite_batch.h - the way back: finished calls, with the memory their results stand in, handed to
 * the control thread by one post. */
#ifndef GL_STORE_SQLITE_BATCH_H
#define GL_STORE_SQLITE_BATCH_H

#include "os/loop.h"
#include "store/common/calls.h"

struct gl_sqlite;

struct gl_sqlite_batch {
    struct gl_loop_task task;
    struct gl_sqlite *store;
    struct gl_link calls;
    struct gl_arena arena; /* lives until the last `done` of the batch has run */
};

struct gl_sqlite_batch *gl_sqlite_batch_new(struct gl_sqlite *s);
void gl_sqlite_batch_post(struct gl_sqlite_batch *b); /* taken; must not be empty */

#endif
