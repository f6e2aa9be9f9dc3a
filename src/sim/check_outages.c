/* check_outages.c - an outage of the store kills no node: when it is over, every node gets a whole
 * TTL to renew its session before any session may be declared dead. */
#include "sim/sim_checks.h"

static void on_declared(struct sim_checks *c, void *me, gl_str node)
{
    (void)me;
    gl_ms back_at = c->disk->away_until;
    gl_ms ttl = (gl_ms)c->world->cluster.ttl_ms;
    if (back_at != 0 && c->world->now < back_at + ttl) {
        sim_world_fail(
            c->world,
            "outages: %.*s was declared dead %lld ms after the store was back, before the "
            "%lld ms that every node has",
            GL_STR_ARG(node), (long long)(c->world->now - back_at), (long long)ttl);
    }
}

const struct sim_check sim_check_outages = {.name = "outages", .on_declared = on_declared};
