/* views.h - as much of the records that a component has asked for as it wants to see (enum
 * gl_core_view_type). Nothing is decided here. */
#ifndef GL_NODE_VIEWS_H
#define GL_NODE_VIEWS_H

#include "core/effect.h"

/* The answer to a GET or LIST that succeeded; it borrows from the request, or lives in `a`. */
void gl_views_read(const struct gl_core_call *call, const struct gl_store_req *req,
                   struct gl_arena *a, struct gl_event_answer *ret);

#endif
