/* redis.h - the maker of port/store.h on Redis 7 or later, alone or behind Sentinel. */
#ifndef GL_STORE_REDIS_H
#define GL_STORE_REDIS_H

#include "port/findings.h"
#include "port/store.h"

struct gl_loop;

struct gl_redis_config { /* copied */
    /* redis://[user[:password]@]host[:port][/database][?options], rediss:// for TLS,
     * redis+sentinel://[user[:password]@]host[:port],host,...  /name[/database][?options] */
    const char *url;
    const char *identity; /* of the store, as the data folder remembers it; "" : the first time */
    bool allow_loss;      /* go on although the server's settings may lose data silently */
    bool read_only;       /* nobody will write: where there is no store, none is made */
};

/* Only the URL is looked at here (GL_E_INVALID); the connection comes later, and requests wait for
 * it for a bounded time. The loop must outlive the store. */
int gl_redis_open(struct gl_store **ret, const struct gl_redis_config *cfg, struct gl_loop *loop,
                  struct gl_why *reterr_why);

/* Connect, look at everything that matters, and report; blocks, on a loop of its own. An error only
 * if the server cannot be reached or asked. */
int gl_redis_check(const struct gl_redis_config *cfg, struct gl_arena *a, struct gl_findings *ret,
                   struct gl_why *reterr_why);

#endif
