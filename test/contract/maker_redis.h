/* maker_redis.h - the Redis maker, for the contract and for the tests of that engine: a server, and
 * clients of its store on one loop. */
#ifndef GL_TEST_MAKER_REDIS_H
#define GL_TEST_MAKER_REDIS_H

#include "contract/contract.h"
#include "os/loop.h"
#include "store/redis/redis.h"
#include "support/redis_server.h"

enum { REDIS_CLIENTS_MAX = 16 };

struct redis_world {
    struct redis_server *server;
    unsigned database;
    uint16_t sentinel_port; /* 0: the URL names the server itself */
    struct gl_loop *loop;
    struct gl_store *stores[REDIS_CLIENTS_MAX]; /* the first one is the contract's */
    size_t stores_n;
    char identity[64]; /* "" : first use */
    char options[400]; /* appended to the URL: "?timeout_ms=..." */
    char before[128];  /* before the host: "user:password@" */
    const char *url;   /* the whole URL, if not NULL */
    bool allow_loss;
};

/* A world without a client. */
void redis_world_init(struct redis_world *w, struct redis_server *server);
void redis_world_done(struct redis_world *w);             /* closes all clients */
struct gl_store *redis_world_open(struct redis_world *w); /* another client */
void redis_world_close(struct redis_world *w, struct gl_store *store);
void redis_world_pump(void *world, const bool *flag);

/* A struct contract on its first client, ended by redis_contract_end(). */
void redis_contract_begin(struct contract *c, struct redis_world *w, struct redis_server *server);
void redis_contract_end(struct contract *c, struct redis_world *w);

#endif
