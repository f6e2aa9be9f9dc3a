/* postgres_check.h - what a look at the server shows: its version, and whether it keeps what it is
 * told. The same look is taken at each new connection and by `glia store check`. */
#ifndef GL_STORE_POSTGRES_CHECK_H
#define GL_STORE_POSTGRES_CHECK_H

#include "port/findings.h"
#include "store/postgres/postgres_lib.h"

struct gl_postgres_server { /* texts are borrowed from the answer */
    int version;            /* 150020 is 15.20 */
    bool is_standby, has_store, may_create, has_checksums, has_autovacuum;
    const char *fsync, *synchronous_commit, *full_page_writes, *encoding, *standby_names;
    int standbys_n, connections_max;
};

extern const char gl_postgres_check_query[];

void gl_postgres_check_read(struct gl_postgres_server *ret, const struct gl_postgres_lib *lib,
                            const PGresult *r);
/* May it be used? GL_E_INVALID says why not. */
int gl_postgres_check_server(const struct gl_postgres_server *l, bool allow_loss,
                             struct gl_why *reterr_why);
void gl_postgres_check_diagnose(const struct gl_postgres_server *l, struct gl_arena *a,
                                struct gl_findings *ret);
/* Is there a store, or may one be made? */
void gl_postgres_check_diagnose_store(const struct gl_postgres_server *l, struct gl_arena *a,
                                      struct gl_findings *ret);

#endif
