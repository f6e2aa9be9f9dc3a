/* message_parts.h - shared by the files that implement model/bundle/message.h. */
#ifndef GL_MODEL_BUNDLE_MESSAGE_PARTS_H
#define GL_MODEL_BUNDLE_MESSAGE_PARTS_H

#include "model/bundle/message.h"

/* The body decoded from base64, according to the content type and encoding of `m`. */
int gl_message_set_base64_body(gl_str base64, struct gl_arena *a, struct gl_message *m,
                               struct gl_why *reterr_why);

#endif
