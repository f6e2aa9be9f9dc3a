/* postgres_url.h - parses the URL of a PostgreSQL store into options of our own and what libpq is
 * given for each host.
 *
 * Our options, removed before libpq sees the rest:
 *     timeout_ms    how long a request waits for a connection, and then for its answer (5000)
 *     connections   number of connections that commit (3)
 * Everything else is as libpq reads it. Hosts are tried one by one, because libpq has no timeout
 * for a single host in non-blocking mode. */
#ifndef GL_STORE_POSTGRES_URL_H
#define GL_STORE_POSTGRES_URL_H

#include "base/times.h"
#include "store/postgres/postgres_lib.h"

enum {
    GL_POSTGRES_HOSTS_MAX = 16,
    GL_POSTGRES_LANES_MAX = 16,
};

struct gl_postgres_host {
    const char *host, *address, *port; /* NULL: libpq's default */
};

struct gl_postgres_url {
    const char *url;     /* without our options */
    const char *display; /* for messages: without the password */
    gl_ms timeout_ms;
    int64_t connections; /* value of the option ... */
    size_t lanes_n;      /* ... and the number in use */
    struct gl_postgres_host hosts[GL_POSTGRES_HOSTS_MAX];
    size_t hosts_n;
};

/* All texts are allocated in the arena. GL_E_INVALID: the sentence says what is wrong. */
int gl_postgres_url_read(struct gl_postgres_url *ret, const struct gl_postgres_lib *lib,
                         struct gl_arena *arena, const char *text, struct gl_why *reterr_why);

#endif
