/* maker_postgres.h - the PostgreSQL maker, for the contract and for the tests of that engine: a
 * database of its own on a private server. */
#ifndef GL_TEST_MAKER_POSTGRES_H
#define GL_TEST_MAKER_POSTGRES_H

#include "contract/contract.h"
#include "os/loop.h"
#include "store/postgres/postgres.h"
#include "support/postgres_server.h"

enum { POSTGRES_OTHERS_MAX = 16 };

struct postgres_world {
    struct postgres_server *server;
    char database[32];
    char url[256];
    char identity[64]; /* remembered from the first connection, as a data folder does */
    bool allow_loss;
    struct gl_loop *loop;
    struct gl_store *store;
    struct gl_store *others[POSTGRES_OTHERS_MAX];
    size_t others_n;
};

/* A world with an empty database, without a store; `options` are appended to the URL ("" or
 * "?name=value"). */
void postgres_world_init(struct postgres_world *w, struct postgres_server *server,
                         const char *options);
void postgres_world_done(struct postgres_world *w);
struct gl_store *postgres_world_open(struct postgres_world *w);
void postgres_world_close(struct postgres_world *w); /* with all its clients */
void postgres_world_pump(void *world, const bool *flag);

#endif
