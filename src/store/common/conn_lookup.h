/* conn_lookup.h - the addresses of a name, looked up on a thread of their own: the resolver of the
 * system blocks, for as long as it likes. */
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

/* n == 0: there are none, and `why` says so. */
typedef void gl_conn_looked_up(void *owner, const struct gl_conn_address *addresses, size_t n,
                               const struct gl_why *why);

/* `found` is called once, later, on the loop, unless it is forgotten. */
struct gl_conn_lookup *gl_conn_lookup(struct gl_loop *loop, const char *host, uint16_t port,
                                      gl_conn_looked_up *found, void *owner);
/* The owner does not want to know any more. */
void gl_conn_lookup_cancel(struct gl_conn_lookup *l);

#endif
