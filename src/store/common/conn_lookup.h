/* conn_lookup.h - resolves a host name on a separate thread, because the system's resolver blocks
 * for an unbounded time. After gl_conn_lookup() either `found` runs once or the owner cancels. */
#ifndef GL_STORE_CONN_LOOKUP_H
#define GL_STORE_CONN_LOOKUP_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

struct gl_loop;
struct gl_conn_lookup;

struct gl_conn_address {
    int family;
    socklen_t bytes;
    struct sockaddr_storage address;
};

/* n == 0: the lookup failed, and `why` has the reason. */
typedef void gl_conn_looked_up(void *owner, const struct gl_conn_address *addresses, size_t n,
                               const struct gl_why *why);

/* `found` is called once, later, on the loop, unless the lookup is cancelled. */
struct gl_conn_lookup *gl_conn_lookup(struct gl_loop *loop, const char *host, uint16_t port,
                                      gl_conn_looked_up *found, void *owner);
/* Cancel: `found` will not be called. A thread that is blocked in the resolver ends on its own. */
void gl_conn_lookup_cancel(struct gl_conn_lookup *l);

#endif
