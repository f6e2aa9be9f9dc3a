/* sim_patches.h - what workers want changed in the flow of their job while it runs.
 *
 * The worker of a controller has an argument "patch:<controller>:<exit>" (no exit: a fan-out). When
 * it works for that step it may want one to three more steps, in a row or side by side, between
 * both, or beside itself; sometimes what it says is old, or was said before under the same name. If
 * its state tells of an earlier wish it may want those steps taken away again. */
#ifndef GL_SIM_SIM_PATCHES_H
#define GL_SIM_SIM_PATCHES_H

#include "base/json.h"
#include "base/rng.h"
#include "model/bundle/message.h"

#define SIM_PATCHES_ARG "patch:"

/* The payload of an event workflow_graph_patch; false: it wants nothing. `given` are the process's
 * arguments, one a line; `number` is the message's. `before` is what came out as `ret_grown` the
 * last time it wanted something. */
enum { SIM_PATCHES_GROWN = 64 };
bool sim_patches_write(struct gl_jw *w, struct gl_rng *r, gl_str given, const struct gl_message *m,
                       uint64_t number, gl_str before, char ret_grown[static SIM_PATCHES_GROWN]);

#endif
