/* run_ids.c - submissions that refer to an existing job: the same run id or request key, and
 * retries.
 *
 * A run id is an idempotency key. Submitting under one that is taken returns the job that has it,
 * if the submission is the same: same flow and same inputs, or a retry of the same job from the
 * same step. Otherwise it is an error. A request key works in the same way but names the submission
 * instead of the job: run id and dedupe key must match as well.
 *
 * A retry is a new submission of an ended job's flow and inputs, marked as such: its steps look
 * into the earlier job before they run (core/flow/gate.h). */
#include "base/check.h"
#include "node/node_state.h"

#include "base/limits.h"
#include "base/sha256.h"
#include "model/job.h"

struct prior_job {
    struct gl_chain chain;
    struct gl_request *rq;
    struct gl_key keys[3];
    gl_str job;    /* the existing job */
    gl_str run_id; /* its */
    gl_str hash, flow, inputs, retry_of, retry_from;
    uint8_t status;
    bool is_retry;
    const char *kind;      /* kind of the record that names the job: "run" or "request" */
    struct gl_why refusal; /* code != 0: the answer if neither request key nor run id names a job */
    gl_str dedupe_key;     /* of the existing job */
};

static void finish(struct prior_job *p, int code, const char *why, struct gl_buf *body)
{
    gl_requests_answer(p->chain.node, p->rq, code, why, body);
    gl_chain_end(&p->chain);
}

static void on_failed(void *chain, int code, const char *why)
{
    GL_ASSERT(code != 0);
    finish(chain, code, why, NULL);
}

static const struct gl_chain_kind prior_jobs = {.bytes = sizeof(struct prior_job),
                                                .failed = on_failed};

/* ---- the same name ---- */

/* The inputs of this request in the form in which they would be stored. */
static int canonical_inputs(struct prior_job *p, gl_str *ret)
{
    struct gl_flow *flow;
    int rc = gl_flow_decode(p->rq->submission.compiled, &p->chain.arena, &flow, NULL);

    GL_ASSERT(p->rq->submission.compiled.n > 0);
    return rc != 0 ? rc
                   : gl_flow_inputs(flow, p->rq->submission.inputs, &p->chain.arena, ret, NULL);
}

/* A run id that the caller left out is the job's own id. */
static bool has_same_names(const struct prior_job *p)
{
    gl_str run_id = p->rq->submission.run_id.n > 0 ? p->rq->submission.run_id : p->job;
    bool is_retry = p->rq->verb == GL_VERB_RETRY;

    return gl_str_eq(run_id, p->run_id) && gl_str_eq(p->rq->submission.dedupe_key, p->dedupe_key) &&
           is_retry == (p->retry_of.n > 0);
}

static bool is_the_same(struct prior_job *p)
{
    char hex[GL_SHA256_HEX];
    gl_str inputs = {0};

    if (strcmp(p->kind, "request") == 0 && !has_same_names(p)) {
        return false;
    }
    if (p->rq->verb == GL_VERB_RETRY) { /* rq->job_id: the job to retry */
        return gl_str_is(p->retry_of, p->rq->job_id) &&
               gl_str_eq(p->retry_from, p->rq->submission.from);
    }
    return gl_str_eq(gl_sha256_hex(p->rq->submission.compiled, hex), p->hash) &&
           canonical_inputs(p, &inputs) == 0 && (gl_str_eq(inputs, p->inputs) || GL_PLANT(19));
}

static void refuse_other(struct prior_job *p)
{
    struct gl_why why;

    GL_ASSERT(p->job.n == GL_ULID_BYTES);
    if (strcmp(p->kind, "request") == 0) {
        (void)gl_why(&why, GL_R_REQUEST_KEY_TAKEN,
                     "the request key '%.*s' belongs to job %.*s, which was submitted with "
                     "different content; use a new key for each submission",
                     GL_STR_ARG(p->rq->submission.request_key), GL_STR_ARG(p->job));
    } else {
        (void)gl_why(&why, GL_R_RUN_ID_TAKEN, "the run id '%.*s' belongs to job %.*s, which has %s",
                     GL_STR_ARG(p->rq->submission.run_id), GL_STR_ARG(p->job),
                     p->rq->verb == GL_VERB_RETRY ? "a different origin"
                                                  : "a different flow or inputs");
    }
    finish(p, gl_why_whole(&why), why.text, NULL);
}

static void compare(struct prior_job *p)
{
    struct gl_buf body = {0};
    struct gl_jw w;

    GL_ASSERT(p->job.n == GL_ULID_BYTES);
    GL_ASSERT(!p->is_retry);
    if (!is_the_same(p)) {
        refuse_other(p);
        return;
    }
    p->rq->existing = true;
    memcpy(p->rq->job_id, p->job.p, GL_ULID_BYTES);
    p->rq->job_id[GL_ULID_BYTES] = '\0';
    gl_jw_init(&w, &body);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "job_id", p->job);
    gl_jw_put_str(&w, "run_id", p->run_id);
    gl_jw_put_c(&w, "status", gl_job_status_words[p->status]);
    gl_jw_put_bool(&w, "existing", true);
    gl_jw_end(&w);
    finish(p, 0, "", &body);
}

/* ---- a retry ---- */

static bool has_step(struct prior_job *p, gl_str id)
{
    struct gl_flow *flow;

    GL_ASSERT(id.n > 0);
    return gl_flow_decode(p->flow, &p->chain.arena, &flow, NULL) == 0 &&
           gl_flow_find(flow, id) >= 0;
}

static void submit_retry(struct prior_job *p)
{
    struct gl_node *n = p->chain.node;
    struct gl_request *rq = p->rq;
    struct gl_why why;

    GL_ASSERT(p->job.n == GL_ULID_BYTES);
    GL_ASSERT(p->is_retry);
    if (!gl_job_status_is_terminal(p->status)) {
        (void)gl_why(&why, GL_R_JOB_NOT_ENDED, "job %.*s has not ended (it is %s)",
                     GL_STR_ARG(p->job), gl_job_status_words[p->status]);
        finish(p, gl_why_whole(&why), why.text, NULL);
        return;
    }
    if (rq->submission.from.n > 0 && !has_step(p, rq->submission.from)) {
        (void)gl_why(&why, GL_R_NO_SUCH_STEP, "job %.*s has no step '%.*s'", GL_STR_ARG(p->job),
                     GL_STR_ARG(rq->submission.from));
        finish(p, gl_why_whole(&why), why.text, NULL);
        return;
    }
    gl_requests_submit(n, rq,
                       &(struct gl_requests_stored){.flow = p->flow,
                                                    .hash = p->hash,
                                                    .inputs = p->inputs,
                                                    .retry_of = p->job,
                                                    .retry_from = rq->submission.from});
    gl_chain_end(&p->chain);
}

static void look_up(struct prior_job *p, bool by_request_key);

/* The job that had the name has been removed meanwhile, so the name is free. */
static void resubmit(struct prior_job *p)
{
    struct gl_node *n = p->chain.node;

    GL_ASSERT(!p->is_retry);
    if (p->refusal.code != 0 && strcmp(p->kind, "request") == 0 && p->rq->submission.run_id.n > 0) {
        look_up(p, false); /* the job may still be found by its run id */
        return;
    }
    if (p->refusal.code != 0) {
        finish(p, gl_why_whole(&p->refusal), p->refusal.text, NULL);
        return;
    }
    GL_MARK(n->config.trace, "earlier.removed_meanwhile");
    if (!gl_submit_wait_may_retry(p->rq)) { /* a name left over from a damaged job */
        finish(p, GL_E_EXISTS,
               "the run id or request key belongs to a job that no longer exists; use another one",
               NULL);
        return;
    }
    if (n->stopping) {
        finish(p, GL_E_UNAVAILABLE, "this node is stopping", NULL);
        return;
    }
    if (p->rq->verb == GL_VERB_RETRY) {
        gl_run_ids_retry(n, p->rq, gl_str_dup(&p->chain.arena, gl_str_of(p->rq->job_id)));
    } else {
        gl_requests_submit(n, p->rq, NULL);
    }
    gl_chain_end(&p->chain);
}

/* ---- reading ---- */

static void on_job(struct gl_store_req *req);

static void on_rest(struct gl_store_req *req)
{
    struct prior_job *p = req->owner;

    GL_ASSERT(p->job.n == GL_ULID_BYTES);
    GL_ASSERT(req->records_n == GL_COUNT(p->keys));
    p->inputs = gl_str_dup(&p->chain.arena, req->records[0].value);
    p->flow = gl_str_dup(&p->chain.arena, req->records[1].value);
    if (req->records[2].rev == 0) { /* removed meanwhile together with its inputs: report that */
        gl_chain_get(&p->chain, GL_S("job"), p->job, on_job);
    } else if (req->records[1].rev == 0 || req->records[1].damaged || req->records[0].damaged) {
        finish(p, GL_E_DAMAGED, "the job's flow or inputs are missing or damaged", NULL);
    } else if (p->is_retry) {
        submit_retry(p);
    } else {
        compare(p);
    }
}

static void on_job(struct gl_store_req *req)
{
    struct prior_job *p = req->owner;
    struct gl_job_record r;
    struct gl_json j;
    int rc;

    GL_ASSERT(p->job.n == GL_ULID_BYTES);
    if (req->records[0].rev == 0) {
        if (p->is_retry) {
            finish(p, GL_E_NOT_FOUND, "the job has been removed", NULL);
        } else {
            resubmit(p);
        }
        return;
    }
    rc = req->records[0].damaged
             ? GL_E_DAMAGED
             : gl_json_parse(&j, gl_str_dup(&p->chain.arena, req->records[0].value),
                             GL_RECORD_BYTES_MAX, &p->chain.arena, NULL);
    if (rc == 0) {
        rc = gl_schema_read(&gl_job_schema, &j, gl_json_root(&j), false, &p->chain.arena, &r, NULL);
    }
    if (rc != 0) {
        finish(p, GL_E_DAMAGED, "the job's record is damaged", NULL);
        return;
    }
    p->hash = r.flow;
    p->retry_of = r.retry_of;
    p->retry_from = r.retry_from;
    p->status = r.status;
    p->run_id = r.run_id;
    p->dedupe_key = r.dedupe_key;
    p->keys[0] = (struct gl_key){.kind = GL_S("inputs"), .id = p->job};
    p->keys[1] = (struct gl_key){.kind = GL_S("flow"), .id = p->hash};
    p->keys[2] = (struct gl_key){.kind = GL_S("job"), .id = p->job}; /* gone meanwhile? */
    gl_chain_get_all(&p->chain, p->keys, GL_COUNT(p->keys), on_rest);
}

static void on_name(struct gl_store_req *req)
{
    struct prior_job *p = req->owner;
    struct gl_json j;

    GL_ASSERT(req->records_n == 1);
    if (req->records[0].rev != 0 &&
        gl_json_parse(&j, gl_str_dup(&p->chain.arena, req->records[0].value), GL_RECORD_BYTES_MAX,
                      &p->chain.arena, NULL) == 0) {
        p->job = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "job_id"), &p->chain.arena);
    }
    if (p->job.n != GL_ULID_BYTES) {
        resubmit(p);
        return;
    }
    gl_chain_get(&p->chain, GL_S("job"), p->job, on_job);
}

/* Finds the job that has this name. */
static void look_up(struct prior_job *p, bool by_request_key)
{
    GL_ASSERT(!p->is_retry);
    p->kind = by_request_key ? "request" : "run";
    gl_chain_get(&p->chain, gl_str_of(p->kind),
                 by_request_key ? p->rq->submission.request_key : p->rq->submission.run_id,
                 on_name);
}

static struct prior_job *prior_job_new(struct gl_node *n, struct gl_request *rq)
{
    struct prior_job *p = gl_chain_new(n, &prior_jobs, n->config.context);

    p->rq = rq;
    return p;
}

void gl_run_ids_compare(struct gl_node *n, struct gl_request *rq, bool by_request_key)
{
    GL_ASSERT(gl_verbs[rq->verb].kind == GL_KIND_SUBMISSION);
    look_up(prior_job_new(n, rq), by_request_key);
}

void gl_run_ids_refuse(struct gl_node *n, struct gl_request *rq, int code, const char *why)
{
    struct prior_job *p;

    GL_ASSERT(code != 0);
    GL_ASSERT(gl_verbs[rq->verb].kind == GL_KIND_SUBMISSION);
    if (rq->submission.request_key.n + rq->submission.run_id.n == 0 ||
        gl_err_code(code) == GL_E_UNAVAILABLE || n->stopping) {
        gl_requests_answer(n, rq, code, why, NULL);
        return;
    }
    p = prior_job_new(n, rq);
    (void)gl_why(&p->refusal, code, "%s", why);
    look_up(p, rq->submission.request_key.n > 0);
}

void gl_run_ids_retry(struct gl_node *n, struct gl_request *rq, gl_str job)
{
    struct prior_job *p = prior_job_new(n, rq);

    GL_ASSERT(job.n == GL_ULID_BYTES);
    p->is_retry = true;
    p->job = gl_str_dup(&p->chain.arena, job);
    memcpy(rq->job_id, job.p, GL_ULID_BYTES);
    rq->job_id[GL_ULID_BYTES] = '\0';
    gl_chain_get(&p->chain, GL_S("job"), p->job, on_job);
}
