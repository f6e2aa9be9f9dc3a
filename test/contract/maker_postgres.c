#include "contract/maker_postgres.h"

#include <event2/event.h>
#include <stdio.h>

#include "base/mem.h"

void postgres_world_pump(void *world, const bool *flag)
{
    struct postgres_world *w = world;
    while (!*flag) {
        assert_int_equal(event_base_loop(gl_loop_base(w->loop), EVLOOP_ONCE), 0);
    }
}

void postgres_world_init(struct postgres_world *w, struct postgres_server *server,
                         const char *options)
{
    static int databases_n;
    struct gl_why why;
    *w = (struct postgres_world){.server = server};
    (void)snprintf(w->database, sizeof(w->database), "test%d", ++databases_n);
    (void)snprintf(w->url, sizeof(w->url), "postgres://postgres@127.0.0.1:%d/%s%s", server->port,
                   w->database, options);
    (void)postgres_server_sql(server, "postgres", "CREATE DATABASE %s", w->database);
    assert_int_equal(gl_loop_new(&w->loop, &why), 0);
}

struct gl_store *postgres_world_open(struct postgres_world *w)
{
    struct gl_store *store = NULL;
    struct gl_why why;
    struct gl_postgres_config cfg = {
        .url = w->url, .identity = w->identity, .allow_loss = w->allow_loss};
    int err = gl_postgres_open(&store, &cfg, w->loop, &why);
    if (err != 0) {
        (void)fprintf(stderr, "%s\n", why.text);
    }
    assert_int_equal(err, 0);
    return store;
}

static void on_closed(void *flag)
{
    *(bool *)flag = true;
}

static void close_one(struct postgres_world *w, struct gl_store *store)
{
    bool closed = false;
    store->ops->close(store, on_closed, &closed);
    postgres_world_pump(w, &closed);
}

void postgres_world_close(struct postgres_world *w)
{
    while (w->others_n > 0) {
        close_one(w, w->others[--w->others_n]);
    }
    if (w->store != NULL) {
        close_one(w, w->store);
    }
    w->store = NULL;
}

void postgres_world_done(struct postgres_world *w)
{
    postgres_world_close(w);
    gl_loop_free(w->loop);
    if (w->server->pid > 0) {
        (void)postgres_server_sql(w->server, "postgres", "DROP DATABASE IF EXISTS %s WITH (FORCE)",
                                  w->database);
    }
}

/* ---- the maker ---- */

static struct postgres_server server; /* one for all tests of a program */

static void start(void)
{
    /* The contract tests logic, not the disk: no fsync. */
    static const char *const settings[] = {"fsync=off", "full_page_writes=off", NULL};
    postgres_server_start(&server, settings);
}

static void stop(void)
{
    postgres_server_stop(&server);
}

static struct gl_store *open_fresh(void **ret_world)
{
    struct postgres_world *w = gl_mem_alloc(sizeof(*w));
    postgres_world_init(w, &server, "?timeout_ms=20000");
    w->allow_loss = true;
    w->store = postgres_world_open(w);
    *ret_world = w;
    return w->store;
}

static struct gl_store *reopen(void *world)
{
    struct postgres_world *w = world;
    postgres_world_close(w);
    w->store = postgres_world_open(w);
    return w->store;
}

static struct gl_store *open_other(void *world)
{
    struct postgres_world *w = world;
    assert_true(w->others_n < POSTGRES_OTHERS_MAX);
    return w->others[w->others_n++] = postgres_world_open(w);
}

static void damage(void *world, const char *kind, const char *id)
{
    struct postgres_world *w = world;
    (void)postgres_server_sql(w->server, w->database,
                              "UPDATE glia_default.record"
                              " SET value = set_byte(value, 0, get_byte(value, 0) # 1)"
                              " WHERE kind = '%s' AND id = '%s'",
                              kind, id);
}

static void close_all(void *world)
{
    struct postgres_world *w = world;
    postgres_world_done(w);
    gl_mem_free(w);
}

const struct contract_maker contract_maker_postgres = {
    .name = "postgres",
    .start = start,
    .stop = stop,
    .open = open_fresh,
    .pump_until = postgres_world_pump,
    .reopen = reopen,
    .close = close_all,
    .open_other = open_other,
    .damage = damage,
};
