#include "sim/sim_full.h"

enum {
    LASTS_MS_MIN = 500,
    LASTS_MS_MAX = 30000,
};

static void plan(struct sim_full *x)
{
    gl_ms now = x->world->now;
    if (x->left > 0 && x->ends_at > now) {
        sim_world_at(x->world, &x->call,
                     now + gl_rng_range(&x->rng, 1, 1 + (x->ends_at - now) / x->left));
    }
}

static void fill(struct sim_full *x)
{
    x->left--;
    x->had_n++;
    x->disk->is_full = true;
    x->disk->full_since = x->world->now;
    x->disk->left_bytes =
        gl_rng_chance(&x->rng, 500000) ? 0 : (size_t)gl_rng_below(&x->rng, SIM_LEFT_BYTES_MAX + 1);
    SIM_TRACE(x->world, TX, .number = (int64_t)x->disk->left_bytes, .what = "the store is full");
    sim_world_at(x->world, &x->call,
                 x->world->now + gl_rng_range(&x->rng, LASTS_MS_MIN, LASTS_MS_MAX));
}

static void on_call(struct sim_call *call)
{
    struct sim_full *x = GL_CONTAINER(call, struct sim_full, call);
    if (x->disk->is_full) {
        x->disk->is_full = false;
        SIM_TRACE(x->world, TX, .what = "the store has room");
        plan(x);
    } else {
        fill(x);
    }
}

void sim_full_init(struct sim_full *x, struct sim_world *w, struct sim_disk *disk, gl_ms span_ms)
{
    *x = (struct sim_full){
        .world = w, .disk = disk, .ends_at = w->now + span_ms, .left = w->options.store_full};
    gl_rng_init(&x->rng, w->seed ^ gl_str_hash(GL_S("full"))); /* other draws stay as they were */
    sim_call_init(&x->call, on_call, NULL);
    plan(x);
}

void sim_full_heal(struct sim_full *x)
{
    sim_world_cancel(x->world, &x->call);
    x->left = 0;
    x->disk->is_full = false;
}
