/* live_facts.h - copies what only the memory of a running node knows about a job, for a reader on
 * another thread.
 *
 * gl_facts_collect() runs on the control thread; gl_facts_live() then answers the questions of
 * reason.h from the copy, on any thread. */
#ifndef GL_API_LIVE_FACTS_H
#define GL_API_LIVE_FACTS_H

#include "api/reason.h"

struct gl_fact { /* what is known about one step */
    uint32_t place;
    gl_str step_id;
    gl_str waits_for, refused; /* "": nothing */
    enum gl_why_code code;     /* the code of waits_for */
    bool has_beacon;           /* the next two are known */
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

/* On the control thread. `live` may be NULL. Everything is copied into `a`. Asks about the first
 * hundred queued steps of the view only. */
void gl_facts_collect(struct gl_facts *f, struct gl_arena *a, const struct gl_view *v,
                      const struct gl_reason_live *live);
/* NULL: no node is running. Borrowed from `f`. */
const struct gl_reason_live *gl_facts_live(const struct gl_facts *f);

#endif
