/* live_facts.h - what only the memory of a running node knows of a job, copied for a reader on
 * another thread. The same questions as reason.h asks, answered from the copy. */
#ifndef GL_API_LIVE_FACTS_H
#define GL_API_LIVE_FACTS_H

#include "api/reason.h"

struct gl_fact { /* of one step */
    uint32_t place;
    gl_str step_id;
    gl_str waits_for, refused; /* "" : nothing */
    enum gl_why_code code;     /* of the first */
    bool has_beacon;           /* the following is known */
    gl_ms beacon_at, heartbeat_at;
};

struct gl_facts {
    struct gl_reason_live live;
    bool has_node;
    bool is_quarantined;
    gl_str store;
    struct gl_fact *steps;
    size_t steps_n;
};

/* On the control thread. `live` may be NULL. Everything is copied into `a`. Of queued steps only
 * the first hundred that the view tells of are asked about. */
void gl_facts_collect(struct gl_facts *f, struct gl_arena *a, const struct gl_view *v,
                      const struct gl_reason_live *live);
/* NULL: there is no node. Borrowed from `f`. */
const struct gl_reason_live *gl_facts_live(const struct gl_facts *f);

#endif
