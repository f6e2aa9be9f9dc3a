/* postgres.h - the maker of port/store.h on PostgreSQL 14 or later. */
#ifndef GL_STORE_POSTGRES_H
#define GL_STORE_POSTGRES_H

#include "port/findings.h"
#include "port/store.h"

struct gl_loop;

struct gl_postgres_config { /* copied */
    /* postgres://[user[:password]@]host[:port][,host...][/database][?options], as libpq reads it,
     * but for options of our own */
    const char *url;
    const char *identity; /* of the store, as the data folder remembers it; "" : the first time */
    bool allow_loss;      /* go on although the server's settings may lose data silently */
};

/* Only the URL is looked at here (GL_E_INVALID), and libpq is loaded (GL_E_UNAVAILABLE);
 * connections come later, and requests wait for them for a bounded time. The loop must outlive the
 * store. */
int gl_postgres_open(struct gl_store **ret, const struct gl_postgres_config *cfg,
                     struct gl_loop *loop, struct gl_why *reterr_why);

/* Connect, look at everything that matters, and report; blocks, on a loop of its own. An error only
 * if the server cannot be reached or asked. */
int gl_postgres_check(const struct gl_postgres_config *cfg, struct gl_arena *a,
                      struct gl_findings *ret, struct gl_why *reterr_why);

#endif
