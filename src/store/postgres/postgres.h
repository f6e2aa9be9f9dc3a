/* postgres.h - a shared store: port/store.h on PostgreSQL 14 or later.
 *
 * Everything runs on the event loop's thread, over several connections in pipeline mode. libpq is
 * loaded when a store is opened, not linked. docs/store-postgres.md describes the tables and the
 * settings. */
#ifndef GL_STORE_POSTGRES_H
#define GL_STORE_POSTGRES_H

#include "port/findings.h"
#include "port/store.h"

struct gl_loop;

struct gl_postgres_config { /* copied */
    /* postgres://[user[:password]@]host[:port][,host...][/database][?options], as libpq reads it,
     * plus options of our own (postgres_url.h) */
    const char *url;
    const char *identity; /* identity of the store as recorded in the data folder; "" : first use */
    bool allow_loss;      /* accept a server whose settings can lose data silently */
};

/* Open a store. Validates the URL (GL_E_INVALID) and loads libpq (GL_E_UNAVAILABLE). Connections
 * are made later, and requests wait for them for a bounded time. The loop must outlive the
 * store. */
int gl_postgres_open(struct gl_store **ret, const struct gl_postgres_config *cfg,
                     struct gl_loop *loop, struct gl_why *reterr_why);

/* Connect, check the server's settings and identity, and report findings; blocks, on a loop of its
 * own. Fails only if the server cannot be reached or queried. */
int gl_postgres_check(const struct gl_postgres_config *cfg, struct gl_arena *a,
                      struct gl_findings *ret, struct gl_why *reterr_why);

#endif
