/* redis_url.h - parses the URL of a Redis store:
 *
 *     redis://[user[:password]@]host[:port][/database][?option=value&...]
 *     rediss://...                                                        with TLS
 *     redis+sentinel://[user[:password]@]host[:port],host...  /name[/database][?...]
 *     rediss+sentinel://...                                               with TLS, also to
 * sentinels
 *
 * docs/store-redis.md lists the options. Error messages never contain a password. */
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

struct gl_redis_url { /* texts are followed by a NUL; "" : not given */
    bool tls, sentinel;
    gl_str user, password;
    struct gl_redis_host hosts[GL_REDIS_HOSTS_MAX];
    size_t hosts_n;
    gl_str name; /* name of the primary, as configured in Sentinel */
    uint32_t database;

    gl_ms timeout_ms; /* limit for sending a request, and again for its reply */
    gl_ms connect_timeout_ms;
    int64_t wait_replicas; /* -1: decide automatically */
    gl_ms wait_ms;
    bool wait_all; /* all commits wait for replicas, not only those that must */
    gl_str sentinel_user, sentinel_password;
    gl_str tls_ca, tls_cert, tls_key, tls_name;
    bool tls_no_verify;
};

/* GL_E_INVALID: the sentence says what is wrong. */
int gl_redis_url_parse(struct gl_redis_url *ret, gl_str text, struct gl_arena *a,
                       struct gl_why *reterr_why);

#endif
