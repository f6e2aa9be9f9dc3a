/* submit_wait.c - submissions that wait, either for the files of their flow to reach the store, or
 * to be submitted again because a record they relied on was removed meanwhile.
 *
 * A waiting submission is a chain without calls of its own. One that is due counts in
 * node->outstanding, so that a stopping node answers it first. */
#include "base/check.h"
#include "node/node_state.h"

#include "base/sha256.h"
#include "node/blobs.h"

enum { ATTEMPTS_MAX = 4 };

struct waits {
    gl_ms due; /* when the due ones are submitted again */
};

struct wait {
    struct gl_chain chain;
    struct gl_request *rq;
    struct gl_requests_stored stored; /* set if `is_stored` */
    bool is_stored;
    bool is_due; /* is to be submitted again */
};

static struct waits *own(const struct gl_node *n)
{
    return n->parts[GL_PART_SUBMIT_WAIT];
}

static const struct gl_chain_kind waits = {.bytes = sizeof(struct wait)};

static struct wait *wait_new(struct gl_node *n, struct gl_request *rq)
{
    struct wait *w = gl_chain_new(n, &waits, n->config.context);

    w->rq = rq;
    return w;
}

/* ---- files ---- */

static void on_files_stored(void *owner, int code, const char *why)
{
    struct wait *w = owner;
    struct gl_node *n = w->chain.node;

    GL_ASSERT(!w->is_due);
    if (code == 0 && n->stopping) {
        code = GL_E_UNAVAILABLE;
        why = "this node is stopping";
    }
    if (code != 0) {
        gl_requests_answer(n, w->rq, code, why, NULL);
    } else {
        gl_requests_accept(n, w->rq, w->is_stored ? &w->stored : NULL);
    }
    gl_chain_drop(&w->chain);
}

bool gl_submit_wait_for_files(struct gl_node *n, struct gl_request *rq,
                              const struct gl_requests_stored *stored)
{
    gl_str flow = stored != NULL ? stored->flow : rq->submission.compiled;
    char hex[GL_SHA256_HEX];
    struct wait *w;

    GL_ASSERT(stored == NULL || stored->hash.n > 0);
    if (!gl_blobs_may_have_files(n->blobs, flow)) {
        return false;
    }
    w = wait_new(n, rq);
    if (gl_blobs_keep(n->blobs, stored != NULL ? stored->hash : gl_sha256_hex(flow, hex), flow,
                      on_files_stored, w)) {
        gl_chain_drop(&w->chain);
        return false;
    }
    if (stored != NULL) {
        w->is_stored = true;
        w->stored = (struct gl_requests_stored){
            .flow = gl_str_dup(&w->chain.arena, stored->flow),
            .hash = gl_str_dup(&w->chain.arena, stored->hash),
            .inputs = gl_str_dup(&w->chain.arena, stored->inputs),
            .retry_of = gl_str_dup(&w->chain.arena, stored->retry_of),
            .retry_from = gl_str_dup(&w->chain.arena, stored->retry_from)};
    }
    return true;
}

/* ---- submitting again ---- */

bool gl_submit_wait_may_retry(struct gl_request *rq)
{
    return rq->node.resubmits++ < ATTEMPTS_MAX;
}

bool gl_submit_wait_retry(struct gl_node *n, struct gl_request *rq, gl_str kind, gl_str id,
                          gl_str flow)
{
    if ((!gl_str_is(kind, "flow") && !gl_str_is(kind, "blob")) || n->stopping ||
        !gl_submit_wait_may_retry(rq)) {
        return false;
    }
    GL_MARK(n->config.trace, "holds.removed_meanwhile");
    gl_blobs_forget(n->blobs, id);
    gl_blobs_forget(n->blobs, flow);
    /* Not now: the core has yet to learn that the transaction failed, and to forget what it
     * assumed. */
    wait_new(n, rq)->is_due = true;
    n->outstanding++;
    own(n)->due = n->now;
    return true;
}

static void resubmit(struct wait *w)
{
    struct gl_node *n = w->chain.node;
    struct gl_request *rq = w->rq;

    GL_ASSERT(!w->is_due);
    GL_ASSERT(n->outstanding > 0);
    n->outstanding--;
    if (n->stopping) {
        gl_requests_answer(n, rq, GL_E_UNAVAILABLE, "this node is stopping", NULL);
    } else if (rq->verb == GL_VERB_RETRY) {
        gl_run_ids_retry(n, rq, gl_str_dup(&w->chain.arena, gl_str_of(rq->job_id)));
    } else {
        gl_requests_submit(n, rq, NULL);
    }
    gl_chain_drop(&w->chain);
}

/* ---- the part ---- */

static void init(struct gl_node *n)
{
    own(n)->due = INT64_MAX;
}

static gl_ms due(const struct gl_node *n)
{
    return own(n)->due;
}

static void on_time(struct gl_node *n)
{
    struct wait *next;

    if (own(n)->due > n->now) {
        return;
    }
    own(n)->due = INT64_MAX;
    for (struct wait *w = gl_chain_next(n, &waits, NULL); w != NULL; w = next) {
        next = gl_chain_next(n, &waits, &w->chain);
        if (w->is_due) {
            w->is_due = false;
            resubmit(w);
        }
    }
}

const struct gl_node_part gl_submit_wait_part = {
    .bytes = sizeof(struct waits), .init = init, .due = due, .on_time = on_time};
