/* sim_patches.h - the changes that workers request to the flow of their job while it runs.
 *
 * The worker of a controller has an argument "patch:<controller>:<exit>" (no exit: a fan-out). When
 * it works for that step it may request one to three more steps, in a row or side by side, between
 * the two, or beside itself. Sometimes its patch is outdated, or was sent before under the same
 * name. If its state shows an earlier patch, it may request the removal of those steps. */
#ifndef GL_SIM_SIM_PATCHES_H
#define GL_SIM_SIM_PATCHES_H

#include "base/json.h"
#include "base/rng.h"
#include "model/bundle/message.h"

#define SIM_PATCHES_ARG "patch:"

/* The payload of an event workflow_graph_patch; false: no change is requested. `given` has the
 * process's arguments, one per line; `number` is the message's. `before` is the value of
 * `ret_grown` from its last request. */
enum { SIM_PATCHES_GROWN = 64 };
bool sim_patches_write(struct gl_jw *w, struct gl_rng *r, gl_str given, const struct gl_message *m,
                       uint64_t number, gl_str before, char ret_grown[static SIM_PATCHES_GROWN]);

#endif
