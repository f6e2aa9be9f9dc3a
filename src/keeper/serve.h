/* serve.h - what a node may ask of its keeper, message by message. */
#ifndef GL_KEEPER_SERVE_H
#define GL_KEEPER_SERVE_H

#include "keeper/client.h"

void gl_serve_message(struct gl_keeper *k, struct gl_client *c, gl_str message);

#endif
