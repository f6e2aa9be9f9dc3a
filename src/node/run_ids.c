/* run_ids.c - jobs that were there before: the same run id or request key, and retries.
 *
 * A run id is an idempotency key. Who submits under one that is taken gets the job that has it, if
 * it was the same submission: same flow, same inputs, or a retry of the same job from the same
 * step; else an error. A request key works the same way, but names the submission and not the job:
 * the run id and the dedupe key must match, too. A retry is a new submission of an ended job's flow
 * and inputs that says so: its steps look into the earlier job before they run (core/flow/gate.h).
 */
#include "base/check.h"
#include "node/node_state.h"

#include "base/limits.h"
#include "base/sha256.h"
#include "model/job.h"

struct earlier {
    struct gl_chain chain;
    struct gl_request *rq;
    struct gl_key keys[3];
    gl_str job;    /* the earlier one */
    gl_str run_id; /* its */
    gl_str hash, flow, inputs, retry_of, retry_from;
    uint8_t status;
    bool is_retry;
    const char *kind;      /* of the record that names the job: "run" or "request" */
    struct gl_why refusal; /* code != 0: the answer if neither request key nor run id names a job */
    gl_str dedupe_key;     /* the earlier job's */
};

static void finish(struct earlier *e, int code, const char *why, struct gl_buf *body)
{
    gl_requests_answer(e->chain.node, e->rq, code, why, body);
    gl_chain_end(&e->chain);
}

static void on_failed(void *chain, int code, const char *why)
{
    GL_ASSERT(code != 0);
    finish(chain, code, why, NULL);
}

static const struct gl_chain_kind earliers = {.bytes = sizeof(struct earlier), .failed = on_failed};

/* ---- the same name ---- */

/* The inputs of this request, as they would have been stored. */
static int canonical_inputs(struct earlier *e, gl_str *ret)
{
    struct gl_flow *flow;
    int rc = gl_flow_decode(e->rq->submission.compiled, &e->chain.arena, &flow, NULL);

    GL_ASSERT(e->rq->submission.compiled.n > 0);
    return rc != 0 ? rc
                   : gl_flow_inputs(flow, e->rq->submission.inputs, &e->chain.arena, ret, NULL);
}

/* A run id the caller left out is the job's own id. */
static bool has_same_names(const struct earlier *e)
{
    gl_str run_id = e->rq->submission.run_id.n > 0 ? e->rq->submission.run_id : e->job;
    bool is_retry = e->rq->verb == GL_VERB_RETRY;

    return gl_str_eq(run_id, e->run_id) && gl_str_eq(e->rq->submission.dedupe_key, e->dedupe_key) &&
           is_retry == (e->retry_of.n > 0);
}

static bool is_the_same(struct earlier *e)
{
    char hex[GL_SHA256_HEX];
    gl_str inputs = {0};

    if (strcmp(e->kind, "request") == 0 && !has_same_names(e)) {
        return false;
    }
    if (e->rq->verb == GL_VERB_RETRY) { /* gl_run_ids_retry() has noted which job is meant */
        return gl_str_is(e->retry_of, e->rq->job_id) &&
               gl_str_eq(e->retry_from, e->rq->submission.from);
    }
    return gl_str_eq(gl_sha256_hex(e->rq->submission.compiled, hex), e->hash) &&
           canonical_inputs(e, &inputs) == 0 && (gl_str_eq(inputs, e->inputs) || GL_PLANT(19));
}

static void refuse_other(struct earlier *e)
{
    struct gl_why why;

    GL_ASSERT(e->job.n == GL_ULID_BYTES);
    if (strcmp(e->kind, "request") == 0) {
        (void)gl_why(&why, GL_R_REQUEST_KEY_TAKEN,
                     "the request key '%.*s' belongs to job %.*s, which was submitted with other "
                     "content; use a new key for each submission",
                     GL_STR_ARG(e->rq->submission.request_key), GL_STR_ARG(e->job));
    } else {
        (void)gl_why(&why, GL_R_RUN_ID_TAKEN, "the run id '%.*s' belongs to job %.*s, which has %s",
                     GL_STR_ARG(e->rq->submission.run_id), GL_STR_ARG(e->job),
                     e->rq->verb == GL_VERB_RETRY ? "another origin"
                                                  : "another flow or other inputs");
    }
    finish(e, gl_why_whole(&why), why.text, NULL);
}

static void compare(struct earlier *e)
{
    struct gl_buf body = {0};
    struct gl_jw w;

    GL_ASSERT(e->job.n == GL_ULID_BYTES);
    GL_ASSERT(!e->is_retry);
    if (!is_the_same(e)) {
        refuse_other(e);
        return;
    }
    e->rq->existing = true;
    memcpy(e->rq->job_id, e->job.p, GL_ULID_BYTES);
    e->rq->job_id[GL_ULID_BYTES] = '\0';
    gl_jw_init(&w, &body);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "job_id", e->job);
    gl_jw_put_str(&w, "run_id", e->run_id);
    gl_jw_put_c(&w, "status", gl_job_status_words[e->status]);
    gl_jw_put_bool(&w, "existing", true);
    gl_jw_end(&w);
    finish(e, 0, "", &body);
}

/* ---- a retry ---- */

static bool has_step(struct earlier *e, gl_str id)
{
    struct gl_flow *flow;

    GL_ASSERT(id.n > 0);
    return gl_flow_decode(e->flow, &e->chain.arena, &flow, NULL) == 0 &&
           gl_flow_find(flow, id) >= 0;
}

static void submit_again(struct earlier *e)
{
    struct gl_node *n = e->chain.node;
    struct gl_request *rq = e->rq;
    struct gl_why why;

    GL_ASSERT(e->job.n == GL_ULID_BYTES);
    GL_ASSERT(e->is_retry);
    if (!gl_job_status_is_terminal(e->status)) {
        (void)gl_why(&why, GL_R_JOB_NOT_ENDED, "job %.*s has not ended: it is %s",
                     GL_STR_ARG(e->job), gl_job_status_words[e->status]);
        finish(e, gl_why_whole(&why), why.text, NULL);
        return;
    }
    if (rq->submission.from.n > 0 && !has_step(e, rq->submission.from)) {
        (void)gl_why(&why, GL_R_NO_SUCH_STEP, "job %.*s has no step '%.*s'", GL_STR_ARG(e->job),
                     GL_STR_ARG(rq->submission.from));
        finish(e, gl_why_whole(&why), why.text, NULL);
        return;
    }
    gl_requests_submit(n, rq,
                       &(struct gl_requests_again){.flow = e->flow,
                                                   .hash = e->hash,
                                                   .inputs = e->inputs,
                                                   .retry_of = e->job,
                                                   .retry_from = rq->submission.from});
    gl_chain_end(&e->chain);
}

static void look_up(struct earlier *e, bool by_request_key);

/* The job that had the name has been removed meanwhile: the name is free. */
static void submit_anew(struct earlier *e)
{
    struct gl_node *n = e->chain.node;

    GL_ASSERT(!e->is_retry);
    if (e->refusal.code != 0 && strcmp(e->kind, "request") == 0 && e->rq->submission.run_id.n > 0) {
        look_up(e, false); /* it may have come under its name before */
        return;
    }
    if (e->refusal.code != 0) {
        finish(e, gl_why_whole(&e->refusal), e->refusal.text, NULL);
        return;
    }
    GL_MARK(n->config.trace, "earlier.removed_meanwhile");
    if (!gl_submit_wait_may_again(e->rq)) { /* a name that its job, damaged, has left behind */
        finish(e, GL_E_EXISTS,
               "the run id or request key names a job that no longer exists; use another one",
               NULL);
        return;
    }
    if (n->stopping) {
        finish(e, GL_E_UNAVAILABLE, "this node is stopping", NULL);
        return;
    }
    if (e->rq->verb == GL_VERB_RETRY) {
        gl_run_ids_retry(n, e->rq, gl_str_dup(&e->chain.arena, gl_str_of(e->rq->job_id)));
    } else {
        gl_requests_submit(n, e->rq, NULL);
    }
    gl_chain_end(&e->chain);
}

/* ---- reading ---- */

static void on_job(struct gl_store_req *req);

static void on_rest(struct gl_store_req *req)
{
    struct earlier *e = req->owner;

    GL_ASSERT(e->job.n == GL_ULID_BYTES);
    GL_ASSERT(req->records_n == GL_COUNT(e->keys));
    e->inputs = gl_str_dup(&e->chain.arena, req->records[0].value);
    e->flow = gl_str_dup(&e->chain.arena, req->records[1].value);
    if (req->records[2].rev == 0) { /* removed meanwhile, and its inputs with it: say so */
        gl_chain_get(&e->chain, GL_S("job"), e->job, on_job);
    } else if (req->records[1].rev == 0 || req->records[1].damaged || req->records[0].damaged) {
        finish(e, GL_E_DAMAGED, "the flow of that job, or its inputs, are gone or damaged", NULL);
    } else if (e->is_retry) {
        submit_again(e);
    } else {
        compare(e);
    }
}

static void on_job(struct gl_store_req *req)
{
    struct earlier *e = req->owner;
    struct gl_job_record r;
    struct gl_json j;
    int rc;

    GL_ASSERT(e->job.n == GL_ULID_BYTES);
    if (req->records[0].rev == 0) {
        if (e->is_retry) {
            finish(e, GL_E_NOT_FOUND, "that job has been removed", NULL);
        } else {
            submit_anew(e);
        }
        return;
    }
    rc = req->records[0].damaged
             ? GL_E_DAMAGED
             : gl_json_parse(&j, gl_str_dup(&e->chain.arena, req->records[0].value),
                             GL_RECORD_BYTES_MAX, &e->chain.arena, NULL);
    if (rc == 0) {
        rc = gl_schema_read(&gl_job_schema, &j, gl_json_root(&j), false, &e->chain.arena, &r, NULL);
    }
    if (rc != 0) {
        finish(e, GL_E_DAMAGED, "the record of that job is damaged", NULL);
        return;
    }
    e->hash = r.flow;
    e->retry_of = r.retry_of;
    e->retry_from = r.retry_from;
    e->status = r.status;
    e->run_id = r.run_id;
    e->dedupe_key = r.dedupe_key;
    e->keys[0] = (struct gl_key){.kind = GL_S("inputs"), .id = e->job};
    e->keys[1] = (struct gl_key){.kind = GL_S("flow"), .id = e->hash};
    e->keys[2] = (struct gl_key){.kind = GL_S("job"), .id = e->job}; /* is it still there? */
    gl_chain_get_all(&e->chain, e->keys, GL_COUNT(e->keys), on_rest);
}

static void on_name(struct gl_store_req *req)
{
    struct earlier *e = req->owner;
    struct gl_json j;

    GL_ASSERT(req->records_n == 1);
    if (req->records[0].rev != 0 &&
        gl_json_parse(&j, gl_str_dup(&e->chain.arena, req->records[0].value), GL_RECORD_BYTES_MAX,
                      &e->chain.arena, NULL) == 0) {
        e->job = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "job_id"), &e->chain.arena);
    }
    if (e->job.n != GL_ULID_BYTES) {
        submit_anew(e);
        return;
    }
    gl_chain_get(&e->chain, GL_S("job"), e->job, on_job);
}

/* The job that has this name. */
static void look_up(struct earlier *e, bool by_request_key)
{
    GL_ASSERT(!e->is_retry);
    e->kind = by_request_key ? "request" : "run";
    gl_chain_get(&e->chain, gl_str_of(e->kind),
                 by_request_key ? e->rq->submission.request_key : e->rq->submission.run_id,
                 on_name);
}

static struct earlier *earlier_new(struct gl_node *n, struct gl_request *rq)
{
    struct earlier *e = gl_chain_new(n, &earliers, n->config.context);

    e->rq = rq;
    return e;
}

void gl_run_ids_compare(struct gl_node *n, struct gl_request *rq, bool by_request_key)
{
    look_up(earlier_new(n, rq), by_request_key);
}

void gl_run_ids_refuse(struct gl_node *n, struct gl_request *rq, int code, const char *why)
{
    struct earlier *e;

    GL_ASSERT(code != 0);
    if (rq->submission.request_key.n + rq->submission.run_id.n == 0 ||
        gl_err_code(code) == GL_E_UNAVAILABLE || n->stopping) {
        gl_requests_answer(n, rq, code, why, NULL);
        return;
    }
    e = earlier_new(n, rq);
    (void)gl_why(&e->refusal, code, "%s", why);
    look_up(e, rq->submission.request_key.n > 0);
}

void gl_run_ids_retry(struct gl_node *n, struct gl_request *rq, gl_str job)
{
    struct earlier *e = earlier_new(n, rq);

    GL_ASSERT(job.n == GL_ULID_BYTES);
    e->is_retry = true;
    e->job = gl_str_dup(&e->chain.arena, job);
    memcpy(rq->job_id, job.p, GL_ULID_BYTES);
    rq->job_id[GL_ULID_BYTES] = '\0';
    gl_chain_get(&e->chain, GL_S("job"), e->job, on_job);
}
