/* redis_url.h - where the server is and how to talk to it, as people write it:
 *
 *     redis://[user[:password]@]host[:port][/database][?option=value&...]
 *     rediss://...                                                        with TLS
 *     redis+sentinel://[user[:password]@]host[:port],host...  /name[/database][?...]
 *     rediss+sentinel://...                                               with TLS, also to them
 *
 * docs/store-redis.md lists the options. What an error says never contains a password. */
#ifndef GL_STORE_REDIS_URL_H
#define GL_STORE_REDIS_URL_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

enum { GL_REDIS_HOSTS_MAX = 16 };

struct gl_redis_host {
    gl_str host; /* without the brackets of an IPv6 address */
    uint16_t port;
};

struct gl_redis_url { /* texts end in NUL behind the slice; "" : not given */
    bool tls, sentinel;
    gl_str user, password;
    struct gl_redis_host hosts[GL_REDIS_HOSTS_MAX];
    size_t hosts_n;
    gl_str name; /* of the primary, as sentinels know it */
    uint32_t database;

    gl_ms timeout_ms; /* for a request to be sent, and for its answer */
    gl_ms connect_timeout_ms;
    int64_t wait_replicas; /* -1: as many as it seems to need */
    gl_ms wait_ms;
    bool wait_all; /* every commit waits for replicas, not only those that must */
    gl_str sentinel_user, sentinel_password;
    gl_str tls_ca, tls_cert, tls_key, tls_name;
    bool tls_no_verify;
};

/* GL_E_INVALID says what is wrong with it. */
int gl_redis_url_parse(struct gl_redis_url *ret, gl_str text, struct gl_arena *a,
                       struct gl_why *reterr_why);

#endif
