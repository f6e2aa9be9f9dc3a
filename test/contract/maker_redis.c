#include "contract/maker_redis.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* One server for all tests of a program. It is emptied when the first of the worlds open at the
 * same time begins. */
static struct redis_server the_server, the_replica, the_sentinel;
static unsigned worlds_n;

void redis_world_pump(void *world, const bool *flag)
{
    struct redis_world *w = world;
    while (!*flag) {
        int err = event_base_loop(gl_loop_base(w->loop), EVLOOP_ONCE);
        assert_int_equal(err, 0);
    }
}

void redis_world_init(struct redis_world *w, struct redis_server *server)
{
    struct gl_why why;
    *w = (struct redis_world){.server = server};
    assert_int_equal(gl_loop_new(&w->loop, &why), 0);
}

struct gl_store *redis_world_open(struct redis_world *w)
{
    char url[1024];
    struct gl_why why;
    struct gl_store *store = NULL;
    (void)snprintf(url, sizeof(url), "redis%s://%s127.0.0.1:%u/%u%s", w->server->tls ? "s" : "",
                   w->before, w->server->port, w->database, w->options);
    if (w->sentinel_port != 0) {
        (void)snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%u/mymaster/%u%s",
                       w->sentinel_port, w->database, w->options);
    }
    struct gl_redis_config cfg = {
        .url = w->url != NULL ? w->url : url, .identity = w->identity, .allow_loss = w->allow_loss};
    assert_int_equal(gl_redis_open(&store, &cfg, w->loop, &why), 0);
    assert_true(w->stores_n < REDIS_CLIENTS_MAX);
    w->stores[w->stores_n++] = store;
    return store;
}

static void on_closed(void *flag)
{
    *(bool *)flag = true;
}

void redis_world_close(struct redis_world *w, struct gl_store *store)
{
    bool closed = false;
    store->ops->close(store, on_closed, &closed);
    redis_world_pump(w, &closed);
    for (size_t i = 0; i < w->stores_n; i++) {
        if (w->stores[i] == store) {
            w->stores[i] = w->stores[--w->stores_n];
        }
    }
}

void redis_world_done(struct redis_world *w)
{
    while (w->stores_n > 0) {
        redis_world_close(w, w->stores[0]);
    }
    gl_loop_free(w->loop);
}

void redis_contract_begin(struct contract *c, struct redis_world *w, struct redis_server *server)
{
    redis_world_init(w, server);
    contract_adopt(c, &contract_maker_redis, w, redis_world_open(w));
}

void redis_contract_end(struct contract *c, struct redis_world *w)
{
    redis_world_done(w);
    contract_forget(c);
}

/* ---- the maker ---- */

static void start(void)
{
    redis_server_start(&the_server, "");
}

static void stop(void)
{
    redis_server_stop(&the_server);
}

static struct gl_store *open_fresh(void **ret_world)
{
    struct redis_world *w = gl_mem_alloc(sizeof(*w));
    struct gl_arena a = {0};
    redis_world_init(w, &the_server);
    /* These tests are not about timeouts, and 33 MiB take a while on a busy machine. */
    (void)snprintf(w->options, sizeof(w->options), "?timeout_ms=20000");
    w->sentinel_port = the_sentinel.port;
    if (worlds_n == 0) {
        (void)redis_server_do(&the_server, &a, "FLUSHALL");
        gl_arena_done(&a);
    }
    w->database = 16 * worlds_n++;
    *ret_world = w;
    return redis_world_open(w);
}

static struct gl_store *reopen(void *world)
{
    struct redis_world *w = world;
    redis_world_close(w, w->stores[0]);
    struct gl_store *store = redis_world_open(w);
    w->stores[w->stores_n - 1] = w->stores[0];
    w->stores[0] = store;
    return store;
}

static void close_all(void *world)
{
    struct redis_world *w = world;
    redis_world_done(w);
    gl_mem_free(w);
    worlds_n--;
}

static struct gl_store *open_other(void *world)
{
    return redis_world_open(world);
}

static void damage(void *world, const char *kind, const char *id)
{
    struct redis_world *w = world;
    struct gl_arena a = {0};
    char line[400];
    (void)snprintf(line, sizeof(line),
                   "EVAL \"redis.call('SELECT','%u') return redis.call('EXISTS',"
                   "'glia:%s:%s') + redis.call('HSET','glia:%s:%s','v',"
                   "'!' .. string.sub(redis.call('HGET','glia:%s:%s','v'),2))\" 0",
                   w->database, kind, id, kind, id, kind, id);
    gl_str answer = redis_server_do(w->server, &a, line);
    assert_true(gl_str_starts(answer, GL_S(":1")));
    gl_arena_done(&a);
}

const struct contract_maker contract_maker_redis = {
    .name = "redis",
    .start = start,
    .stop = stop,
    .open = open_fresh,
    .pump_until = redis_world_pump,
    .reopen = reopen,
    .close = close_all,
    .open_other = open_other,
    .damage = damage,
};

/* ---- the same behind a sentinel, with a confirming replica ---- */

static void start_sentinel(void)
{
    char args[64];
    start();
    (void)snprintf(args, sizeof(args), "replicaof 127.0.0.1 %u", the_server.port);
    redis_server_start(&the_replica, args);
    redis_server_until(&the_server, "INFO replication", "state=online");
    redis_server_start_sentinel(&the_sentinel, the_server.port, "");
}

static void stop_sentinel(void)
{
    redis_server_stop(&the_sentinel);
    redis_server_stop(&the_replica);
    the_sentinel = (struct redis_server){0};
    stop();
}

const struct contract_maker contract_maker_sentinel = {
    .name = "redis+sentinel",
    .rare = true,
    .start = start_sentinel,
    .stop = stop_sentinel,
    .open = open_fresh,
    .pump_until = redis_world_pump,
    .reopen = reopen,
    .close = close_all,
    .open_other = open_other,
    .damage = damage,
};
