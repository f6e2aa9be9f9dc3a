/* postgres_url.h - the URL of a store: what is ours, and what libpq is told for each host.
 *
 * Options of our own, behind "?", taken out before libpq sees the rest:
 *     timeout_ms    how long a request waits for a connection, and then for its answer (5000)
 *     connections   connections that commit (3)
 * Everything else is as libpq reads it. Hosts are tried one by one, because libpq has no time-out
 * for a single host when it is driven by a loop. */
#ifndef GL_STORE_POSTGRES_URL_H
#define GL_STORE_POSTGRES_URL_H

#include "base/times.h"
#include "store/postgres/postgres_lib.h"

enum {
    GL_POSTGRES_HOSTS_MAX = 16,
    GL_POSTGRES_LANES_MAX = 16,
};

struct gl_postgres_host {
    const char *host, *address, *port; /* NULL: libpq's own choice */
};

struct gl_postgres_url {
    const char *url;     /* without our options */
    const char *display; /* the same for people: without the password */
    gl_ms timeout_ms;
    int64_t connections; /* as the option says ... */
    size_t lanes_n;      /* ... and as they are */
    struct gl_postgres_host hosts[GL_POSTGRES_HOSTS_MAX];
    size_t hosts_n;
};

/* All texts are in the arena. GL_E_INVALID. */
int gl_postgres_url_read(struct gl_postgres_url *ret, const struct gl_postgres_lib *lib,
                         struct gl_arena *arena, const char *text, struct gl_why *reterr_why);

#endif
