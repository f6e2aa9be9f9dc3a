/* maker_memory.c - the simulator's store as a maker of the contract, in a world without faults:
 * once as a store of a folder, once as one that several nodes share. */
#include "base/mem.h"
#include "contract/contract.h"
#include "sim/sim_store.h"

enum { OTHERS_MAX = 16 };

struct memory_world {
    struct sim_world world;
    struct sim_disk disk;
    struct sim_store store;
    struct sim_store others[OTHERS_MAX];
    size_t others_n;
};

static void pump_until(void *world, const bool *flag)
{
    struct memory_world *w = world;
    while (!*flag) {
        assert_true(sim_world_step(&w->world));
    }
}

static struct gl_store *open_as(bool shared, void **ret_world)
{
    struct memory_world *w = gl_mem_alloc(sizeof(*w));
    sim_world_init(&w->world, 1);
    sim_disk_init(&w->disk);
    w->disk.shared = shared;
    w->disk.keeps_tail = shared;
    sim_store_open(&w->store, &w->world, &w->disk, NULL, NULL, "contract");
    *ret_world = w;
    return &w->store.port;
}

static struct gl_store *open_alone(void **ret_world)
{
    return open_as(false, ret_world);
}

static struct gl_store *open_shared(void **ret_world)
{
    return open_as(true, ret_world);
}

static struct gl_store *open_other(void *world)
{
    struct memory_world *w = world;
    assert_true(w->others_n < OTHERS_MAX);
    struct sim_store *s = &w->others[w->others_n++];
    sim_store_open(s, &w->world, &w->disk, NULL, NULL, "another");
    return &s->port;
}

static void on_closed(void *flag)
{
    *(bool *)flag = true;
}

static void close_store(struct memory_world *w, struct sim_store *s)
{
    bool closed = false;
    s->port.ops->close(&s->port, on_closed, &closed);
    pump_until(w, &closed);
}

static struct gl_store *reopen(void *world)
{
    struct memory_world *w = world;
    close_store(w, &w->store);
    sim_store_open(&w->store, &w->world, &w->disk, NULL, NULL, "contract");
    return &w->store.port;
}

static void close_all(void *world)
{
    struct memory_world *w = world;
    for (size_t i = 0; i < w->others_n; i++) {
        close_store(w, &w->others[i]);
    }
    close_store(w, &w->store);
    sim_disk_done(&w->disk);
    sim_world_done(&w->world);
    gl_mem_free(w);
}

static void advance(void *world, gl_ms ms)
{
    struct memory_world *w = world;
    sim_world_run(&w->world, w->world.now + ms);
}

static void damage(void *world, const char *kind, const char *id)
{
    struct memory_world *w = world;
    sim_disk_damage(&w->disk, GL_S("default"), gl_str_of(kind), gl_str_of(id));
}

const struct contract_maker contract_maker_memory = {
    .name = "memory",
    .open = open_alone,
    .pump_until = pump_until,
    .reopen = reopen,
    .close = close_all,
    .open_other = open_other,
    .advance = advance,
    .damage = damage,
};

const struct contract_maker contract_maker_memory_shared = {
    .name = "memory_shared",
    .open = open_shared,
    .pump_until = pump_until,
    .reopen = reopen,
    .close = close_all,
    .open_other = open_other,
    .advance = advance,
    .damage = damage,
};
