/* safety.h - an attempt is lost: nobody knows whether it did its work, but it does not run any
 * more. May it run again? */
#ifndef GL_CORE_HEAL_SAFETY_H
#define GL_CORE_HEAL_SAFETY_H

#include "core/core_state.h"

void gl_safety_lost(struct gl_core *c, struct gl_step *st);

#endif
