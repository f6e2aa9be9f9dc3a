/* sqlite_group.h - a group of transactions: one SQL transaction, one sync. */
#ifndef GL_STORE_SQLITE_GROUP_H
#define GL_STORE_SQLITE_GROUP_H

#include "store/common/calls.h"

struct gl_sqlite_worker;

/* Commit `n` calls from `first`, all of one context and one session, and set their status. */
void gl_sqlite_group_commit(struct gl_sqlite_worker *w, struct gl_call *first, size_t n);

#endif
