/* redis.h - a shared store: port/store.h on Redis 7 or later, standalone or behind Sentinel.
 *
 * Everything runs on the event loop's thread. A transaction is one Lua script, so it is atomic;
 * durability is that of the server's settings, which are checked on every new connection.
 * docs/store-redis.md describes the keys and the settings. */
#ifndef GL_STORE_REDIS_H
#define GL_STORE_REDIS_H

#include "port/findings.h"
#include "port/store.h"

struct gl_loop;

struct gl_redis_config { /* copied */
    /* redis://[user[:password]@]host[:port][/database][?options], rediss:// for TLS,
     * redis+sentinel://[user[:password]@]host[:port],host,...  /name[/database][?options] */
    const char *url;
    const char *identity; /* identity of the store as recorded in the data folder; "" : first use */
    bool allow_loss;      /* accept a server whose settings can lose data silently */
    bool read_only;       /* never write: do not create a store that does not exist */
};

/* Open a store. Only the URL is validated here (GL_E_INVALID). The connection is made later, and
 * requests wait for it for a bounded time. The loop must outlive the store. */
int gl_redis_open(struct gl_store **ret, const struct gl_redis_config *cfg, struct gl_loop *loop,
                  struct gl_why *reterr_why);

/* Connect, check the server's settings and identity, and report findings; blocks, on a loop of its
 * own. Fails only if the server cannot be reached or queried. */
int gl_redis_check(const struct gl_redis_config *cfg, struct gl_arena *a, struct gl_findings *ret,
                   struct gl_why *reterr_why);

#endif
