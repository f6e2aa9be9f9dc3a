#include "sim/sim_repeats.h"

#include <stdio.h>

#include "base/check.h"

/* ---- submissions ---- */

bool sim_repeats_is_named(const struct sim_order *o)
{
    return o->run_id[0] != 0 || o->request_key[0] != 0;
}

/* A random order with a name that is a job; NULL: none. */
static struct sim_order *pick_order(struct sim_client *cl)
{
    struct sim_order *o = &cl->orders[gl_rng_below(&cl->rng, cl->orders_n)];
    return o->job_id[0] != 0 && sim_repeats_is_named(o) ? o : NULL;
}

/* Is there a job with a name of this request for which `is` holds? */
static bool has_job(const struct sim_client *cl, const struct gl_request *rq,
                    bool (*is)(const struct sim_fact_job *j))
{
    const struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&cl->checks->facts.jobs, &i)) != NULL;) {
        bool has = (rq->submission.run_id.n > 0 && gl_str_eq(j->run_id, rq->submission.run_id)) ||
                   (rq->submission.request_key.n > 0 &&
                    gl_str_eq(j->request_key, rq->submission.request_key));
        if (has && is(j)) {
            return true;
        }
    }
    return false;
}

static bool is_gone(const struct sim_fact_job *j)
{
    return j->removed || j->lost;
}

/* Has a job of that name ended and been removed? Then any job may get the name. */
static bool is_given_back(const struct sim_client *cl, const struct gl_request *rq)
{
    return has_job(cl, rq, is_gone);
}

static void on_same(void *owner, struct sim_ask *ask, bool answered)
{
    struct sim_client *cl = owner;
    const struct sim_order *o = &cl->orders[ask->tag];
    char id[GL_ULID_BYTES + 1];
    cl->answered_n += answered ? 1 : 0;
    if (!answered || ask->rq.code == GL_E_UNAVAILABLE || ask->rq.code == GL_E_BUSY ||
        (ask->rq.code == GL_E_DAMAGED && cl->world->bundles.damages > 0)) {
        return;
    }
    if (is_given_back(cl, &ask->rq)) {
        if (ask->rq.code == 0 && sim_client_job_id(ask->rq.body, id)) {
            sim_checks_answer(cl->checks, &ask->rq, gl_str_of(id));
        }
    } else if (ask->rq.code != 0) {
        sim_world_fail(cl->world,
                       "names: run id '%s', request key '%s' was submitted again and refused: %s",
                       o->run_id, o->request_key, ask->rq.why.text);
    } else if (!sim_client_job_id(ask->rq.body, id) || strcmp(id, o->job_id) != 0 ||
               !ask->rq.existing) {
        sim_world_fail(
            cl->world,
            "names: run id '%s', request key '%s' was submitted again and got another job",
            o->run_id, o->request_key);
    } else {
        sim_checks_answer(cl->checks, &ask->rq, gl_str_of(id));
    }
}

void sim_repeats_same(struct sim_client *cl, struct sim_node *node)
{
    struct sim_order *o = pick_order(cl);
    if (o == NULL) {
        return;
    }
    struct sim_ask *ask = sim_ask_new(GL_VERB_SUBMIT);
    ask->rq.submission.compiled = gl_buf_view(&o->flow);
    ask->rq.submission.inputs = gl_buf_view(&o->given.inputs);
    ask->rq.submission.run_id = gl_str_of(o->run_id);
    ask->rq.submission.dedupe_key = gl_str_of(o->dedupe_key);
    ask->rq.submission.request_key = gl_str_of(o->request_key);
    ask->tag = (uint64_t)(o - cl->orders);
    ask->done = on_same;
    sim_client_send(cl, node, ask);
}

static void on_rival(void *owner, struct sim_ask *ask, bool answered)
{
    struct sim_client *cl = owner;
    gl_str name = ask->rq.submission.run_id.n > 0 ? ask->rq.submission.run_id
                                                  : ask->rq.submission.request_key;
    cl->answered_n += answered ? 1 : 0;
    if (is_given_back(cl, &ask->rq)) {
        return;
    }
    if (answered && ask->rq.code == 0) {
        sim_world_fail(cl->world,
                       "names: run id or request key %.*s was given to another submission",
                       GL_STR_ARG(name));
    } else if (answered && ask->rq.code != GL_E_EXISTS && ask->rq.code != GL_E_UNAVAILABLE &&
               ask->rq.code != GL_E_BUSY && ask->rq.code != GL_E_INVALID &&
               !(ask->rq.code == GL_E_DAMAGED && cl->world->bundles.damages > 0)) {
        sim_world_fail(cl->world,
                       "names: run id or request key %.*s is taken, but the answer is: %s",
                       GL_STR_ARG(name), ask->rq.why.text);
    }
}

void sim_repeats_rival(struct sim_client *cl, struct sim_node *node)
{
    struct sim_order *o = pick_order(cl);
    const struct sim_order *other = &cl->orders[gl_rng_below(&cl->rng, cl->orders_n)];
    if (o == NULL || o == other) {
        return;
    }
    bool same_flow = gl_rng_chance(&cl->rng, 300000);
    const struct sim_order *from = same_flow ? o : other;
    struct sim_ask *ask = sim_ask_new(GL_VERB_SUBMIT);
    ask->rq.submission.compiled = gl_buf_view(&from->flow);
    /* The same flow with inputs that no other order has, or with inputs although it takes none. */
    ask->rq.submission.inputs =
        same_flow ? GL_S("{\"k\":77,\"flag\":true,\"list\":[],\"text\":\"other\"}")
                  : gl_buf_view(&other->given.inputs);
    ask->rq.submission.run_id = gl_str_of(o->run_id);
    ask->rq.submission.request_key = gl_str_of(o->run_id[0] != 0 ? "" : o->request_key);
    ask->done = on_rival;
    if (!same_flow && gl_str_eq(ask->rq.submission.compiled, gl_buf_view(&o->flow))) {
        sim_ask_free(ask);
        return;
    }
    sim_client_send(cl, node, ask);
}

/* ---- retries ---- */

static void retry(struct sim_retry *y, struct sim_node *node);

static void plan_again(struct sim_retry *y)
{
    struct sim_client *cl = y->client;
    bool is_named = y->run_id[0] != 0 || y->request_key[0] != 0;
    if (is_named && !sim_call_waits(&y->call)) {
        sim_world_at(cl->world, &y->call, cl->world->now + gl_rng_range(&cl->rng, 1, 4000));
    } else {
        y->open = is_named; /* without a name it is unknown whether the job exists already */
    }
}

static void on_retried(void *owner, struct sim_ask *ask, bool answered)
{
    struct sim_client *cl = owner;
    struct sim_retry *y = &cl->retries[ask->tag];
    const struct sim_fact_job *j = sim_facts_job(&cl->checks->facts, gl_str_of(y->job));
    char id[GL_ULID_BYTES + 1];
    int code = ask->rq.code;
    cl->answered_n += answered ? 1 : 0;
    if (!answered || code == GL_E_UNAVAILABLE || code == GL_E_BUSY ||
        sim_client_may_lack(cl, ask)) {
        plan_again(y);
        return;
    }
    y->open = false;
    if (code == 0 && sim_client_job_id(ask->rq.body, id)) {
        sim_checks_answer(cl->checks, &ask->rq, gl_str_of(id));
    } else if (code == GL_E_NOT_FOUND &&
               (j->removed || j->lost || gl_flow_find(j->flow, gl_str_of(y->from)) < 0)) {
        return;
    } else if (code == GL_E_DAMAGED &&
               (sim_fact_was_spoilt(j) || has_job(cl, &ask->rq, sim_fact_was_spoilt))) {
        return; /* its record, or that of the retry itself, cannot be read: the answer says so */
    } else if (code != GL_E_STATE || y->had_ended) {
        sim_world_fail(cl->world, "reuse: a retry of job %s was refused: %s", y->job,
                       ask->rq.why.text);
    }
}

static void retry(struct sim_retry *y, struct sim_node *node)
{
    struct sim_client *cl = y->client;
    struct sim_ask *ask = sim_ask_new(GL_VERB_RETRY);
    ask->rq.job = gl_str_of(y->job);
    ask->rq.submission.from = gl_str_of(y->from);
    ask->rq.submission.run_id = gl_str_of(y->run_id);
    ask->rq.submission.request_key = gl_str_of(y->request_key);
    ask->tag = (uint64_t)(y - cl->retries);
    ask->done = on_retried;
    sim_client_send(cl, node, ask);
}

static void on_again(struct sim_call *call)
{
    struct sim_retry *y = GL_CONTAINER(call, struct sim_retry, call);
    struct sim_node *node = sim_client_node(y->client);
    if (node == NULL) {
        plan_again(y);
    } else {
        retry(y, node);
    }
}

static void choose_from(struct sim_retry *y, const struct sim_fact_job *j)
{
    struct gl_rng *r = &y->client->rng;
    uint64_t kind = gl_rng_below(r, 10);
    const struct gl_step_spec *st =
        gl_flow_step(j->flow, (uint32_t)gl_rng_below(r, j->flow->steps.n));
    if (kind == 0) {
        (void)snprintf(y->from, sizeof(y->from), "nowhere");
    } else if (kind < 5 && j->flow->bundle == NULL) { /* a bundle runs again as a whole */
        (void)snprintf(y->from, sizeof(y->from), "%.*s", GL_STR_ARG(st->id));
    }
}

void sim_repeats_retry(struct sim_client *cl, struct sim_node *node, const struct sim_fact_job *j)
{
    if (cl->retries_n == SIM_RETRIES_MAX) {
        return;
    }
    struct sim_retry *y = &cl->retries[cl->retries_n++];
    *y = (struct sim_retry){.client = cl, .open = true};
    y->had_ended = gl_job_status_is_terminal(j->r.status);
    sim_call_init(&y->call, on_again, NULL);
    (void)snprintf(y->job, sizeof(y->job), "%.*s", GL_STR_ARG(j->id));
    choose_from(y, j);
    if (gl_rng_chance(&cl->rng, 700000)) {
        (void)snprintf(y->run_id, sizeof(y->run_id), "again-%zu", cl->retries_n);
    }
    if (y->run_id[0] == 0) {
        (void)snprintf(y->request_key, sizeof(y->request_key), "request-again-%zu", cl->retries_n);
    }
    retry(y, node);
    if (y->run_id[0] != 0 && gl_rng_chance(&cl->rng, 200000)) {
        retry(y, node);
    }
}
