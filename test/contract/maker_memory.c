/* maker_memory.c - the simulator's store as a maker of the contract: its world without faults. */
#include "base/mem.h"
#include "contract/contract.h"
#include "sim/sim_store.h"

struct memory_world {
    struct sim_world world;
    struct sim_disk disk;
    struct sim_store store;
};

static void pump_until(void *world, const bool *flag)
{
    struct memory_world *w = world;
    while (!*flag) {
        assert_true(sim_world_step(&w->world));
    }
}

static struct gl_store *open_fresh(void **ret_world)
{
    struct memory_world *w = gl_mem_alloc(sizeof(*w));
    sim_world_init(&w->world, 1);
    sim_disk_init(&w->disk);
    sim_store_open(&w->store, &w->world, &w->disk, NULL, NULL, "contract");
    *ret_world = w;
    return &w->store.port;
}

static void on_closed(void *flag)
{
    *(bool *)flag = true;
}

static void close_store(struct memory_world *w)
{
    bool closed = false;
    w->store.port.ops->close(&w->store.port, on_closed, &closed);
    pump_until(w, &closed);
}

static struct gl_store *reopen(void *world)
{
    struct memory_world *w = world;
    close_store(w);
    sim_store_open(&w->store, &w->world, &w->disk, NULL, NULL, "contract");
    return &w->store.port;
}

static void close_all(void *world)
{
    struct memory_world *w = world;
    close_store(w);
    sim_disk_done(&w->disk);
    sim_world_done(&w->world);
    gl_mem_free(w);
}

const struct contract_maker contract_maker_memory = {
    .name = "memory",
    .open = open_fresh,
    .pump_until = pump_until,
    .reopen = reopen,
    .close = close_all,
};
