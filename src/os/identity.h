/* identity.h - the name and id of the node of a data folder, and the secret of its clients.
 *
 * They are created on first use and stay the same after restarts. The files have mode 0600. */
#ifndef GL_OS_IDENTITY_H
#define GL_OS_IDENTITY_H

#include "base/err.h"
#include "base/id.h"
#include "port/entropy.h"

enum { GL_TOKEN_BYTES = 65 }; /* 32 random bytes in hex, and NUL */

struct gl_identity {
    char name[64];     /* for people; initially the machine's name */
    struct gl_ulid id; /* for programs; unique across machines */
};

/* For the holder of the folder's lock. */
int gl_identity_load(const char *data, struct gl_entropy *entropy, struct gl_identity *ret,
                     struct gl_why *reterr_why);

/* The token that TCP clients must present. */
int gl_identity_token(const char *data, struct gl_entropy *entropy, char ret[static GL_TOKEN_BYTES],
                      struct gl_why *reterr_why);

#endif
