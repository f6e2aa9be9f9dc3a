/* sim_mail.h - messages as they lie on the simulated disk, put together as a node should do it. */
#ifndef GL_SIM_SIM_MAIL_H
#define GL_SIM_SIM_MAIL_H

#include "model/bundle/message.h"
#include "sim/sim_disk.h"

/* The body that `ref` names, out of its pieces; false: one is missing, or it is not as named. */
bool sim_mail_body(const struct sim_disk *d, gl_str job, const struct gl_body_ref *ref,
                   struct gl_arena *a, gl_str *ret);
/* What a record "letter" or "deadletter" says: its message, without a large body, and whether that
 * names one. False: it cannot be read. */
bool sim_mail_read(const struct sim_disk *d, gl_str id, gl_str value, struct gl_arena *a,
                   struct gl_message *ret, bool *ret_has_ref, struct gl_body_ref *ret_ref);

#endif
