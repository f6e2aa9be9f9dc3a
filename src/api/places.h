/* places.h - on which nodes could a step run that waits for slots? One row per node, for `why`.
 *
 * What the core of the job's owner knows is more exact: it counts what it has offered itself. Other
 * nodes make the rows from what is published with the sessions, which is a few seconds old.
 *
 * Order of calls: gl_places_begin() when the view is complete; then, on any thread,
 * gl_places_write() for each step that is explained. */
#ifndef GL_API_PLACES_H
#define GL_API_PLACES_H

#include "api/reason.h"
#include "base/json.h"
#include "core/core.h"

enum {
    GL_PLACES_STEPS_MAX = 10, /* steps of one answer with a table */
    GL_PLACES_NODES_MAX = 64, /* rows of a table */
};

struct gl_places {
    struct gl_core_places at;
    gl_str owner; /* the node that has the job; "": none */
    bool is_read;
    unsigned left; /* how many steps may still have a table */
};

/* On the control thread. Sets `v->places` if a step of the view waits. `live` may be NULL. */
void gl_places_begin(struct gl_places *p, struct gl_arena *a, struct gl_view *v,
                     const struct gl_reason_live *live);

/* Writes the member `nodes` if the step waits for slots: [{"node", "result", "why"}]. The words are
 * those of GL_PLACE_RESULTS. */
void gl_places_write(struct gl_arena *a, const struct gl_view *v, uint32_t number,
                     enum gl_why_code code, struct gl_jw *w);

#endif
