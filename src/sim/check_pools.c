/* check_pools.c - a node never fails a step because it lacks the step's pool: on a shared store
 * another machine has that pool, or will have it again. check_forgotten.c checks that such a job
 * ends, and check_slots.c that nothing starts on a machine without its pool. */
#include "sim/sim_checks.h"

static bool says(gl_str text, const char *words)
{
    return text.n > 0 && memmem(text.p, text.n, words, strlen(words)) != NULL;
}

static bool blames_a_pool(gl_str text)
{
    return says(text, "which this node does not have") || says(text, "', which has ");
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    const struct gl_step_record *now = ch->step_now;
    (void)me;
    if (!c->disk->shared || now == NULL) {
        return;
    }
    if (blames_a_pool(now->last_error) || blames_a_pool(now->terminal_reason)) {
        sim_world_fail(c->world, "pools: step %.*s of job %.*s failed because of its pool: %.*s",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id),
                       GL_STR_ARG(now->last_error));
    }
}

const struct sim_check sim_check_pools = {.name = "pools", .on_change = on_change};
