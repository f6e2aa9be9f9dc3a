/* sim_messages.h - reads messages from the simulated disk, as a node should read them. */
#ifndef GL_SIM_SIM_MESSAGES_H
#define GL_SIM_SIM_MESSAGES_H

#include "model/bundle/message.h"
#include "sim/sim_disk.h"

/* Assembles the body that `ref` names from its pieces; false: one is missing, or the body is not
 * the named one. */
bool sim_messages_body(const struct sim_disk *d, gl_str job, const struct gl_body_ref *ref,
                       struct gl_arena *a, gl_str *ret);
/* Reads a record "letter" or "deadletter": the message, without a large body, and whether it refers
 * to one. False: it cannot be read. */
bool sim_messages_read(const struct sim_disk *d, gl_str id, gl_str value, struct gl_arena *a,
                       struct gl_message *ret, bool *ret_has_ref, struct gl_body_ref *ret_ref);

#endif
