#include "sim/sim_client.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "sim/sim_bundles.h"
#include "sim/sim_repeats.h"
#include "sim/sim_senders.h"

enum {
    AGAIN_MS = 4000,  /* until a client repeats a request that got no answer */
    MEDDLE_MS = 5000, /* at most between two commands or queries */
    TEND_MS = 5000,   /* between the steward's rounds */
    DEDUPE_KEYS = 3,
    CALM_MS = 60000,  /* by then every node knows the pools of the others */
    POSTS = 250000,   /* a request about a bundle sends a message, per million */
    RETIRES = 200000, /* the steward ends a service in a round, per million */
};

/* Any node that is awake and accepts requests, as far as a client can see; NULL: none. */
struct sim_node *sim_client_node(struct sim_client *cl)
{
    struct sim_node *awake[64];
    size_t n = 0;
    for (struct gl_link *l = cl->nodes->next; l != cl->nodes && n < GL_COUNT(awake); l = l->next) {
        struct sim_node *node = GL_CONTAINER(l, struct sim_node, link);
        if (!node->gate.shut && !node->fuse.blown) {
            awake[n++] = node;
        }
    }
    if (n > 1 && cl->world->cluster.crowds != 0 &&
        gl_rng_chance(&cl->rng, cl->world->cluster.crowds)) {
        return awake[0];
    }
    return n == 0 ? NULL : awake[gl_rng_below(&cl->rng, n)];
}

void sim_client_send(struct sim_client *cl, struct sim_node *node, struct sim_ask *ask)
{
    ask->owner = cl;
    ask->asked_at = cl->world->now;
    cl->asked_n++;
    sim_checks_ask(cl->checks, &ask->rq, ask->rq.job);
    sim_node_ask(node, ask);
}

/* ---- submissions ---- */

bool sim_client_job_id(gl_str body, char ret[static GL_ULID_BYTES + 1])
{
    struct gl_arena a = {0};
    struct gl_json j;
    bool ok = gl_json_parse(&j, body, GL_HTTP_BODY_BYTES_MAX, &a, NULL) == 0;
    gl_str id = ok ? gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "job_id"), &a) : (gl_str){0};
    ok = id.n == GL_ULID_BYTES;
    if (ok) {
        memcpy(ret, id.p, id.n);
        ret[id.n] = 0;
    }
    gl_arena_done(&a);
    return ok;
}

/* "Already exists": then some job has held the dedupe key since the order was planned. (For a taken
 * run id the answer would name the job.) */
static void check_exists(struct sim_client *cl, const struct sim_ask *ask)
{
    const struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&cl->checks->facts.jobs, &i)) != NULL;) {
        bool named = ask->rq.submission.dedupe_key.n > 0 &&
                     gl_str_eq(j->dedupe_key, ask->rq.submission.dedupe_key);
        bool live = !gl_job_status_is_terminal(j->r.status) || j->changed_at >= ask->asked_at;
        if (j->known && named && live) {
            return;
        }
    }
    sim_world_fail(cl->world, "names: a submission was refused for a name that no job holds: %s",
                   ask->rq.why.text);
}

bool sim_client_may_lack(const struct sim_client *cl, const struct sim_ask *ask)
{
    const struct sim_world *w = cl->world;
    return ask->rq.code == GL_E_INVALID && w->cluster.pools_differ != 0 &&
           ask->rq.why.reason == GL_REASON_POOL_NOT_OFFERED &&
           (w->faults || w->now - w->calm_since < CALM_MS);
}

static void on_submitted(void *owner, struct sim_ask *ask, bool answered)
{
    struct sim_client *cl = owner;
    struct sim_order *o = &cl->orders[ask->tag];
    if (answered && ask->rq.code == 0) {
        char id[GL_ULID_BYTES + 1];
        if (!sim_client_job_id(ask->rq.body, id)) {
            sim_world_fail(cl->world, "client: a submission was answered without a job_id: %.*s",
                           GL_STR_ARG(ask->rq.body));
            return;
        }
        if (o->given.is_short) {
            sim_world_fail(cl->world, "inputs: job %s was accepted without a required input", id);
        }
        const struct sim_fact_job *j =
            o->job_id[0] != 0 ? sim_facts_job(&cl->checks->facts, gl_str_of(o->job_id)) : NULL;
        if (j != NULL && !j->removed && !j->lost && sim_repeats_is_named(o) &&
            strcmp(o->job_id, id) != 0) {
            sim_world_fail(cl->world, "names: run id '%s', request key '%s' is job %s and job %s",
                           o->run_id, o->request_key, o->job_id, id);
        }
        cl->accepted_n += o->accepted ? 0 : 1;
        o->accepted = true;
        memcpy(o->job_id, id, sizeof(id));
        sim_checks_answer(cl->checks, &ask->rq, gl_str_of(id));
    } else if (answered && ask->rq.code == GL_E_EXISTS) {
        o->accepted = true; /* another order has this key */
        check_exists(cl, ask);
    } else if (answered && ask->rq.code == GL_E_INVALID && o->given.is_short) {
        o->accepted = true;
    } else if (answered && ask->rq.code != GL_E_UNAVAILABLE && ask->rq.code != GL_E_BUSY &&
               !sim_client_may_lack(cl, ask) &&
               !(ask->rq.code == GL_E_DAMAGED && cl->world->bundles.damages > 0)) {
        sim_world_fail(cl->world, "client: a submission was refused: %s", ask->rq.why.text);
    }
    if (!o->accepted && !sim_call_waits(&o->call)) {
        sim_world_at(cl->world, &o->call, cl->world->now + gl_rng_range(&cl->rng, 1, AGAIN_MS));
    }
    cl->answered_n += answered ? 1 : 0;
}

static void submit(struct sim_client *cl, struct sim_node *node, struct sim_order *o)
{
    struct sim_ask *ask = sim_ask_new(GL_VERB_SUBMIT);
    ask->rq.submission.compiled = gl_buf_view(&o->flow);
    ask->rq.submission.inputs = gl_buf_view(&o->given.inputs);
    ask->rq.submission.run_id = gl_str_of(o->run_id);
    ask->rq.submission.dedupe_key = gl_str_of(o->dedupe_key);
    ask->rq.submission.request_key = gl_str_of(o->request_key);
    ask->tag = (uint64_t)(o - cl->orders);
    ask->done = on_submitted;
    sim_client_send(cl, node, ask);
}

static void on_order(struct sim_call *call)
{
    struct sim_order *o = GL_CONTAINER(call, struct sim_order, call);
    struct sim_client *cl = o->client;
    if (o->accepted) {
        return;
    }
    struct sim_node *node = sim_client_node(cl);
    if (node == NULL) {
        sim_world_at(cl->world, call, cl->world->now + gl_rng_range(&cl->rng, 1, AGAIN_MS));
        return;
    }
    /* Without a run id or a request key a repeated submission is a second job. */
    bool twice = sim_repeats_is_named(o) && cl->world->faults &&
                 gl_rng_chance(&cl->rng, cl->world->options.client_repeats);
    submit(cl, node, o);
    if (twice) {
        submit(cl, node, o);
    }
}

void sim_client_visit(struct sim_client *cl, struct sim_node *node)
{
    for (size_t i = 0; i < cl->orders_n; i++) {
        struct sim_order *o = &cl->orders[i];
        if (!o->accepted && sim_call_waits(&o->call)) {
            sim_world_cancel(cl->world, &o->call);
            submit(cl, node, o);
            return;
        }
    }
}

/* ---- commands and queries ---- */

static void check_body(struct sim_client *cl, const struct gl_request *rq)
{
    struct gl_arena a = {0};
    struct gl_json j;
    struct gl_why why = {0};
    if (gl_json_parse(&j, rq->body, GL_HTTP_BODY_BYTES_MAX, &a, &why) != 0) {
        sim_world_fail(cl->world, "client: an answer is not JSON: %s: %.*s", why.text,
                       GL_STR_ARG(rq->body));
    }
    gl_arena_done(&a);
}

static void on_answered(void *owner, struct sim_ask *ask, bool answered)
{
    struct sim_client *cl = owner;
    if (answered && ask->rq.code == 0) {
        check_body(cl, &ask->rq);
    }
    cl->answered_n += answered ? 1 : 0;
    if (answered && gl_verbs[ask->rq.verb].kind == GL_KIND_COMMAND) {
        sim_checks_answer(cl->checks, &ask->rq, ask->rq.job);
    }
}

struct sim_ask *sim_client_about(enum gl_verb verb, gl_str job_id)
{
    struct sim_ask *ask = sim_ask_new(verb);
    ask->rq.job = gl_str_dup(&ask->arena, job_id);
    if (gl_verbs[verb].kind == GL_KIND_COMMAND) {
        ask->rq.command.who = GL_S("sim");
    }
    ask->done = on_answered;
    return ask;
}

static void respond(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j,
                    const struct sim_fact_step *st)
{
    static const gl_str decisions[] = {GL_S("rerun"), GL_S("done"), GL_S("failed")};
    static const gl_str approvals[] = {GL_S("approve"), GL_S("approve"), GL_S("reject"),
                                       GL_S("later"), GL_S("done")};
    struct sim_ask *ask = sim_client_about(GL_VERB_RESPOND, j->id);
    bool review = st->r.blocked_on == GL_BLOCK_REVIEW;
    ask->rq.command.about =
        st->group == NULL ? st->spec->id
                          : gl_str_fmt(&ask->arena, "%.*s[%u]", GL_STR_ARG(st->spec->id), st->item);
    ask->rq.command.decision = review ? decisions[gl_rng_below(&cl->rng, GL_COUNT(decisions))]
                                      : approvals[gl_rng_below(&cl->rng, GL_COUNT(approvals))];
    ask->rq.command.value =
        gl_str_is(ask->rq.command.decision, "done") ? GL_S("{\"by\":\"hand\"}") : (gl_str){0};
    sim_client_send(cl, node, ask);
}

/* The data of each signal is unique. */
static void signal(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j,
                   gl_str name)
{
    struct sim_ask *ask = sim_client_about(GL_VERB_SIGNAL, j->id);
    ask->rq.command.about = name;
    ask->rq.command.value =
        gl_str_fmt(&ask->arena, "{\"n\":%llu,\"list\":[1,2]}", (unsigned long long)++cl->signals_n);
    sim_client_send(cl, node, ask);
}

/* A random job that exists; NULL: none yet. */
static struct sim_fact_job *pick_job(struct sim_client *cl)
{
    const struct gl_map *jobs = &cl->checks->facts.jobs;
    if (gl_map_count(jobs) == 0) {
        return NULL;
    }
    uint64_t skip = gl_rng_below(&cl->rng, gl_map_count(jobs));
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(jobs, &i)) != NULL;) {
        if (skip-- == 0) {
            return j->known ? j : NULL;
        }
    }
    return NULL;
}

/* Prefers a job with a step that waits for signals, though it may not have reached it yet. */
static struct sim_fact_job *pick_waiting(struct sim_client *cl, struct sim_fact_job *otherwise)
{
    for (int i = 0; i < 8; i++) {
        struct sim_fact_job *j = pick_job(cl);
        for (uint32_t k = 0; j != NULL && k < j->flow->steps.n; k++) {
            if (j->steps[k].spec->signal.n > 0 && !gl_job_status_is_terminal(j->r.status)) {
                return j;
            }
        }
    }
    return otherwise;
}

/* Answers one of this job's questions. */
static void decide(struct sim_client *cl, struct sim_node *node, struct sim_fact_job *j)
{
    struct sim_fact_pos pos = {0};
    for (const struct sim_fact_step *st; (st = sim_facts_next(j, &pos)) != NULL;) {
        if (st->known && gl_step_asks_a_person(&st->r)) {
            respond(cl, node, j, st);
        }
    }
}

/* Sends a signal that this job waits for. */
static void wake(struct sim_client *cl, struct sim_node *node, struct sim_fact_job *j)
{
    for (uint32_t i = 0; i < j->flow->steps.n; i++) {
        const struct sim_fact_step *st = &j->steps[i];
        if (st->known && st->r.status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_SIGNAL) {
            signal(cl, node, j, st->spec->signal);
        }
    }
}

static void look(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j)
{
    static const enum gl_verb verbs[] = {GL_VERB_STATUS, GL_VERB_EVENTS, GL_VERB_LIST,
                                         GL_VERB_HUMAN, GL_VERB_NODE};
    struct sim_ask *ask = sim_client_about(verbs[gl_rng_below(&cl->rng, GL_COUNT(verbs))], j->id);
    if (ask->rq.verb == GL_VERB_EVENTS && gl_rng_chance(&cl->rng, 300000)) {
        ask->rq.events.wait_ms = gl_rng_range(&cl->rng, 0, 30000);
        ask->rq.events.from = gl_rng_range(&cl->rng, 0, 20);
    }
    sim_client_send(cl, node, ask);
}

static void on_meddle(struct sim_call *call)
{
    struct sim_client *cl = GL_CONTAINER(call, struct sim_client, meddle);
    const struct sim_options *o = &cl->world->options;
    struct sim_node *node = sim_client_node(cl);
    struct sim_fact_job *j = pick_job(cl);
    if (node != NULL && j != NULL) {
        /* Draws nothing for other jobs: histories without agents stay unchanged. */
        if (j->flow->bundle != NULL && gl_rng_chance(&cl->rng, POSTS)) {
            sim_senders_meddle(cl, node, j);
        } else if (gl_rng_chance(&cl->rng, o->client_pauses)) {
            sim_client_send(cl, node, sim_client_about(GL_VERB_PAUSE, j->id));
        } else if (gl_rng_chance(&cl->rng, o->client_cancels)) {
            sim_client_send(cl, node, sim_client_about(GL_VERB_CANCEL, j->id));
        } else if (gl_rng_chance(&cl->rng, o->client_signals)) {
            signal(cl, node, pick_waiting(cl, j),
                   sim_wishes_signals[gl_rng_below(&cl->rng, SIM_SIGNALS)]);
        } else if (gl_rng_chance(&cl->rng, o->client_retries)) {
            sim_repeats_retry(cl, node, j);
        } else if (gl_rng_chance(&cl->rng, o->client_rivals)) {
            sim_repeats_rival(cl, node);
        } else if (gl_rng_chance(&cl->rng, o->client_repeats)) {
            sim_repeats_same(cl, node);
        } else if (gl_rng_chance(&cl->rng, 400000)) {
            sim_client_send(cl, node, sim_client_about(GL_VERB_RESUME, j->id));
        } else if (gl_rng_chance(&cl->rng, 500000)) {
            decide(cl, node, j);
        } else {
            look(cl, node, j);
        }
    }
    sim_world_at(cl->world, call, cl->world->now + gl_rng_range(&cl->rng, 1, MEDDLE_MS));
}

/* ---- the steward ---- */

/* It does not end by itself. */
static bool is_service(const struct sim_fact_job *j)
{
    return j->flow->bundle != NULL && j->flow->bundle->policies.job_type == GL_TYPE_SERVICE;
}

static void on_tend(struct sim_call *call)
{
    struct sim_client *cl = GL_CONTAINER(call, struct sim_client, tend);
    struct sim_node *node = sim_client_node(cl);
    struct sim_fact_job *j;
    for (size_t i = 0; node != NULL && (j = gl_map_next(&cl->checks->facts.jobs, &i)) != NULL;) {
        if (!j->known || gl_job_status_is_terminal(j->r.status)) {
            continue;
        }
        if (j->r.status == GL_JOB_PAUSED &&
            (j->r.hold != GL_HOLD_REVIEW || sim_senders_is_mended(j))) {
            sim_client_send(cl, node, sim_client_about(GL_VERB_RESUME, j->id));
        }
        decide(cl, node, j);
        wake(cl, node, j);
        sim_senders_wake(cl, node, j);
        if (is_service(j) && gl_rng_chance(&cl->rng, RETIRES)) {
            sim_client_send(cl, node, sim_client_about(GL_VERB_CANCEL, j->id));
        }
    }
    sim_world_at(cl->world, call, cl->world->now + TEND_MS);
}

void sim_client_steward(struct sim_client *cl)
{
    cl->steward = true;
    sim_world_cancel(cl->world, &cl->meddle);
    sim_world_at(cl->world, &cl->tend, cl->world->now);
}

bool sim_client_satisfied(const struct sim_client *cl)
{
    for (size_t i = 0; i < cl->orders_n; i++) {
        if (!cl->orders[i].accepted) {
            return false;
        }
    }
    for (size_t i = 0; i < cl->retries_n; i++) {
        if (cl->retries[i].open) {
            return false;
        }
    }
    const struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&cl->checks->facts.jobs, &i)) != NULL;) {
        if (j->known && !gl_job_status_is_terminal(j->r.status)) {
            return false;
        }
    }
    return true;
}

/* ---- life cycle ---- */

static void plan_order(struct sim_client *cl, size_t i, const struct sim_pools *pools,
                       gl_ms span_ms)
{
    struct sim_order *o = &cl->orders[i];
    o->client = cl;
    if (i == 0 && cl->world->options.flows_wide > 0) {
        sim_flows_wide(cl->world->options.flows_wide, gl_rng_chance(&cl->rng, 500000), &o->flow);
    } else if (cl->world->agents && gl_rng_chance(&cl->rng, 800000)) {
        sim_bundles_make(cl->world, &cl->rng, &o->flow);
    } else {
        sim_flows_make(&cl->rng, &cl->world->options, pools, &o->flow, &o->given);
    }
    if (gl_rng_chance(&cl->rng, 700000)) {
        (void)snprintf(o->run_id, sizeof(o->run_id), "run-%zu", i);
    }
    if (i % 4 != 3) { /* draws nothing: the submissions of a seed stay the same */
        (void)snprintf(o->request_key, sizeof(o->request_key), "request-%zu", i);
    }
    if (i >=
        SIM_CLIENT_JOBS_MIN) { /* some of these are refused as duplicates, the others suffice */
        (void)snprintf(o->dedupe_key, sizeof(o->dedupe_key), "key-%u",
                       (unsigned)gl_rng_below(&cl->rng, DEDUPE_KEYS));
    }
    sim_call_init(&o->call, on_order, NULL);
    gl_ms at = gl_rng_range(&cl->rng, 0, span_ms >> gl_rng_below(&cl->rng, 4));
    sim_world_at(cl->world, &o->call, cl->world->now + at);
}

void sim_client_init(struct sim_client *cl, struct sim_checks *checks, struct gl_link *nodes,
                     const struct sim_pools *pools, size_t jobs_n, gl_ms span_ms)
{
    *cl = (struct sim_client){.world = checks->world, .checks = checks, .nodes = nodes};
    gl_rng_fork(&cl->world->rng, &cl->rng, "client");
    cl->orders = gl_mem_alloc(jobs_n * sizeof(*cl->orders));
    cl->orders_n = jobs_n;
    for (size_t i = 0; i < jobs_n; i++) {
        plan_order(cl, i, pools, span_ms);
    }
    sim_call_init(&cl->meddle, on_meddle, NULL);
    sim_call_init(&cl->tend, on_tend, NULL);
    sim_world_at(cl->world, &cl->meddle, cl->world->now + gl_rng_range(&cl->rng, 1, MEDDLE_MS));
}

void sim_client_done(struct sim_client *cl)
{
    for (size_t i = 0; i < cl->orders_n; i++) {
        sim_world_cancel(cl->world, &cl->orders[i].call);
        gl_buf_done(&cl->orders[i].flow);
        sim_given_done(&cl->orders[i].given);
    }
    for (size_t i = 0; i < cl->retries_n; i++) {
        sim_world_cancel(cl->world, &cl->retries[i].call);
    }
    gl_mem_free(cl->orders);
    sim_senders_done(cl);
    sim_world_cancel(cl->world, &cl->meddle);
    sim_world_cancel(cl->world, &cl->tend);
}
