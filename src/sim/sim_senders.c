#include "sim/sim_senders.h"

#include <stdio.h>

#include "base/check.h"
#include "model/bundle/agent.h"
#include "sim/sim_bundles.h"
#include "sim/sim_workers.h"

enum { LARGE_BYTES = 3000, TTL_MS = 5000 };

/* A few have a body of several pieces. */
static size_t draw_size(struct sim_client *cl)
{
    const struct sim_world *w = cl->checks->world;
    if (w->bundles.bodies_huge > cl->huge_n && w->bundles.body_bytes > 0 &&
        gl_rng_chance(&cl->rng, 200000)) {
        cl->huge_n++;
        return GL_BODY_PIECE_BYTES * (1 + (size_t)gl_rng_below(&cl->rng, 2)) +
               (size_t)gl_rng_below(&cl->rng, LARGE_BYTES);
    }
    return gl_rng_chance(&cl->rng, 200000) ? LARGE_BYTES : sim_workers_size(w, &cl->rng);
}

static void send(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j,
                 gl_str agent)
{
    struct gl_rng *r = &cl->rng;
    struct sim_ask *ask = sim_client_about(GL_VERB_SEND, j->id);
    gl_str ttl = {0};
    if (gl_rng_chance(r, 200000)) {
        ttl = gl_str_fmt(&ask->arena, ",\"ttl_ms\":%lld", (long long)gl_rng_range(r, 1, TTL_MS));
    }
    gl_str priority = {0};
    if (cl->checks->world->bundles.priorities > 0 &&
        gl_rng_chance(r, cl->checks->world->bundles.priorities)) {
        priority = gl_str_fmt(&ask->arena, ",\"priority\":%lld",
                              (long long)gl_message_clamp_priority(sim_workers_priority(r)));
    }
    ask->rq.command.about =
        agent.n > 0 ? gl_str_dup(&ask->arena, agent)
                    : gl_str_fmt(&ask->arena, "a%u", (unsigned)gl_rng_below(r, SIM_AGENTS_MAX));
    ask->rq.command.value = gl_str_fmt(
        &ask->arena,
        "{\"type\":\"post-%llu\",\"body\":{\"agent_id\":\"s%u\",\"text\":\"%*s\"}%.*s%.*s}",
        (unsigned long long)++cl->sent_n, (unsigned)gl_rng_below(r, 4), (int)draw_size(cl), "x",
        GL_STR_ARG(ttl), GL_STR_ARG(priority));
    sim_client_send(cl, node, ask);
}

/* ---- dead letters ---- */

/* The answer is kept: a client may redrive it much later, when it is no longer dead. */
static void on_found(void *owner, struct sim_ask *ask, bool answered)
{
    struct sim_client *cl = owner;
    struct gl_json j;
    cl->answered_n += answered ? 1 : 0;
    if (!answered || ask->rq.code != 0 ||
        gl_json_parse(&j, ask->rq.body, GL_HTTP_BODY_BYTES_MAX, &ask->arena, NULL) != 0) {
        return;
    }
    gl_jnode list = gl_json_get(&j, gl_json_root(&j), "dead_letters");
    gl_jnode one = list != NULL ? gl_json_first(&j, list) : NULL;
    gl_jnode message = one != NULL ? gl_json_get(&j, one, "message") : NULL;
    if (message != NULL && gl_json_is(message, GL_JSON_OBJECT)) {
        (void)snprintf(cl->found.job, sizeof(cl->found.job), "%.*s", GL_STR_ARG(ask->rq.job));
        cl->found.number = ask->tag;
        gl_buf_reset(&cl->found.message);
        gl_buf_str(&cl->found.message, gl_json_raw(&j, message));
    }
}

static bool find(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j)
{
    const struct sim_sorted *all = sim_disk_kind(cl->checks->disk, SIM_CONTEXT, GL_S("deadletter"));
    uint64_t numbers[64];
    size_t n = 0;
    for (size_t i = 0; all != NULL && i < all->n && n < GL_COUNT(numbers); i++) {
        gl_str digits;
        if (gl_str_eq(gl_str_cut(all->rows[i]->id, '/', &digits), j->id)) {
            n += gl_str_u64(digits, &numbers[n]) ? 1 : 0;
        }
    }
    if (n == 0) {
        return false;
    }
    struct sim_ask *ask = sim_client_about(GL_VERB_DEAD_LETTERS, j->id);
    ask->tag = numbers[gl_rng_below(&cl->rng, n)];
    ask->rq.messages.number = (int64_t)ask->tag;
    ask->done = on_found;
    sim_client_send(cl, node, ask);
    return true;
}

static void redrive_once(struct sim_client *cl, struct sim_node *node)
{
    struct sim_ask *ask = sim_client_about(GL_VERB_REDRIVE, gl_str_of(cl->found.job));
    ask->rq.command.about = gl_str_fmt(&ask->arena, "%llu", (unsigned long long)cl->found.number);
    ask->rq.command.value = gl_str_dup(&ask->arena, gl_buf_view(&cl->found.message));
    sim_client_send(cl, node, ask);
}

/* Sometimes two clients redrive it at once, and sometimes a client does so again later. */
static void redrive(struct sim_client *cl, struct sim_node *node)
{
    struct sim_node *other = gl_rng_chance(&cl->rng, 300000) ? sim_client_node(cl) : NULL;
    redrive_once(cl, node);
    if (other != NULL) {
        redrive_once(cl, other);
    }
    if (!gl_rng_chance(&cl->rng, 300000)) {
        gl_buf_reset(&cl->found.message);
    }
}

bool sim_senders_is_mended(const struct sim_fact_job *j)
{
    struct sim_fact_pos pos = {0};
    const struct sim_fact_step *st;
    if (j->spoilt || j->spoilt_until == 0) {
        return false;
    }
    while ((st = sim_facts_next(j, &pos)) != NULL) {
        if (st->known && gl_step_asks_a_person(&st->r)) {
            return false; /* the question is about something else */
        }
    }
    return true;
}

void sim_senders_meddle(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j)
{
    if (sim_fact_was_spoilt(j) && j->r.hold == GL_HOLD_REVIEW && gl_rng_chance(&cl->rng, 600000)) {
        sim_client_send(cl, node, sim_client_about(GL_VERB_RESUME, j->id)); /* repaired or not */
    } else if (cl->found.message.n > 0 && gl_rng_chance(&cl->rng, 700000)) {
        redrive(cl, node);
    } else if (!gl_rng_chance(&cl->rng, 500000) || !find(cl, node, j)) {
        send(cl, node, j, (gl_str){0});
    }
}

void sim_senders_wake(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j)
{
    for (uint32_t i = gl_flow_agents_n(j->flow); i < j->flow->steps.n; i++) {
        const struct sim_fact_step *st = &j->steps[i];
        if (st->spec->is_bound && st->known && st->r.status == GL_STEP_WAITING) {
            send(cl, node, j, st->spec->agent_ids.items[0]);
        }
    }
}

void sim_senders_done(struct sim_client *cl)
{
    gl_buf_done(&cl->found.message);
}
