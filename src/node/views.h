/* views.h - reduces records to what a component of the core asked for (enum gl_core_view_type).
 *
 * Records may be large, and the core must not depend on members it does not use. This file selects
 * members and decides nothing. It has one function, which component_calls.c calls with each answer
 * of the store. */
#ifndef GL_NODE_VIEWS_H
#define GL_NODE_VIEWS_H

#include "core/effect.h"

/* Fills in the answer to a GET or LIST that succeeded. It borrows from the request or lives in `a`.
 */
void gl_views_read(const struct gl_core_call *call, const struct gl_store_req *req,
                   struct gl_arena *a, struct gl_event_answer *ret);

#endif
