/* other_nodes.h - what is known of the nodes that could run attempts of our jobs.
 *
 * Every listing of the sessions (membership.h) replaces what was known. The slots that our own
 * attempts use there are counted here, because what a node publishes is seconds old.
 *
 * Attempts are offered only while every live node of our scope understands offers: a node of an
 * earlier release that took over a job would run its attempts a second time.
 *
 * Called: gl_other_nodes_on_listed() after each listing; gl_other_nodes_choose() for a step that
 * cannot start here, then gl_other_nodes_use() and, when its attempt is over,
 * gl_other_nodes_unuse(). */
#ifndef GL_CORE_CLUSTER_OTHER_NODES_H
#define GL_CORE_CLUSTER_OTHER_NODES_H

#include "core/core_state.h"
#include "core/scheduling/placement.h"

void gl_other_nodes_done(struct gl_core *c);
void gl_other_nodes_on_listed(struct gl_core *c, const struct gl_event *ev);

/* Does this node offer attempts to others at the moment? */
bool gl_other_nodes_are_placing(const struct gl_core *c);
/* May this step run on a node other than its job's owner? Whether one has the slots is another
 * question. */
bool gl_other_nodes_may_run(const struct gl_core *c, const struct gl_step *st);
/* The same, as far as the flow decides it. */
bool gl_other_nodes_may_run_spec(const struct gl_step_spec *spec);
/* Does some node have this many slots free? */
bool gl_other_nodes_have_room(const struct gl_core *c, gl_str pool, uint32_t slots,
                              const struct gl_strs *labels, gl_str except);
/* The node that the step's next attempt is offered to; NULL: none at the moment, for the reason
 * *ret. If this node cannot run the step at all, it may queue at another one. */
struct gl_place_node *gl_other_nodes_choose(struct gl_core *c, const struct gl_step *st,
                                            bool may_queue, enum gl_place_result *ret);
/* NULL: not known. */
struct gl_place_node *gl_other_nodes_find(const struct gl_core *c, gl_str node);
void gl_other_nodes_use(struct gl_core *c, gl_str node, gl_str pool, uint32_t slots);
void gl_other_nodes_unuse(struct gl_core *c, gl_str node, gl_str pool, uint32_t slots);

/* Snapshots of the core. */
void gl_other_nodes_save(const struct gl_core *c, struct gl_buf *out);
struct gl_snapshot_line;
int gl_other_nodes_restore(struct gl_core *c, struct gl_snapshot_line *l);

#endif
