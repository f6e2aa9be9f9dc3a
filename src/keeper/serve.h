/* serve.h - handles the messages of a node: HELLO first, then starts, stops and questions. */
#ifndef GL_KEEPER_SERVE_H
#define GL_KEEPER_SERVE_H

#include "keeper/client.h"

/* Handle one message of this client. Replies are queued; a message out of place refuses and
 * disconnects the client. */
void gl_serve_message(struct gl_keeper *k, struct gl_client *c, gl_str message);

#endif
