/* postgres_check.h - checks a server: its version, and whether its settings keep what is committed.
 * The same check runs on each new connection and in `glia store check`.
 *
 * Order of calls: send gl_postgres_check_query, read its result, then either
 * gl_postgres_check_server() to accept or refuse the server, or the diagnose functions to
 * report. */
#ifndef GL_STORE_POSTGRES_CHECK_H
#define GL_STORE_POSTGRES_CHECK_H

#include "port/findings.h"
#include "store/postgres/postgres_lib.h"

struct gl_postgres_server { /* texts are borrowed from the result */
    int version;            /* 150020 is 15.20 */
    bool is_standby, has_store, may_create, has_checksums, has_autovacuum;
    const char *fsync, *synchronous_commit, *full_page_writes, *encoding, *standby_names;
    int standbys_n, connections_max;
};

extern const char gl_postgres_check_query[];

void gl_postgres_check_read(struct gl_postgres_server *ret, const struct gl_postgres_lib *lib,
                            const PGresult *r);
/* May the server be used? GL_E_INVALID: the sentence says why not. */
int gl_postgres_check_server(const struct gl_postgres_server *l, bool allow_loss,
                             struct gl_why *reterr_why);
/* Report the findings about the server's settings. */
void gl_postgres_check_diagnose(const struct gl_postgres_server *l, struct gl_arena *a,
                                struct gl_findings *ret);
/* Report whether the database has a store, or whether one may be created. */
void gl_postgres_check_diagnose_store(const struct gl_postgres_server *l, struct gl_arena *a,
                                      struct gl_findings *ret);

#endif
