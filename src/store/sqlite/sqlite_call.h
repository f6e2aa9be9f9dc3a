/* sqlite_call.h - what the writer does besides groups of commits, one call at a time: sessions and
 * the fate of transactions. */
#ifndef GL_STORE_SQLITE_CALL_H
#define GL_STORE_SQLITE_CALL_H

#include "store/common/calls.h"

struct gl_sqlite_worker;

/* The request's status. Results are copied to w->arena. */
int gl_sqlite_call_run(struct gl_sqlite_worker *w, struct gl_call *call);

#endif
