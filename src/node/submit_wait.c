/* submit_wait.c - submissions that wait: until the files of their flow are in the store, or to be
 * tried once more because what they relied on has been removed meanwhile. */
#include "base/check.h"
#include "node/node_state.h"

#include "base/sha256.h"
#include "node/blobs.h"

enum { TRIES_MAX = 4 };

struct holds {
    gl_ms due; /* of those that are tried once more */
};

struct hold {
    struct gl_chain chain;
    struct gl_request *rq;
    struct gl_requests_again again; /* with `is_again` */
    bool is_again;
    bool is_due; /* to be tried once more */
};

static struct holds *own(const struct gl_node *n)
{
    return n->parts[GL_PART_HOLDS];
}

static const struct gl_chain_kind holds = {.bytes = sizeof(struct hold)};

static struct hold *hold_new(struct gl_node *n, struct gl_request *rq)
{
    struct hold *h = gl_chain_new(n, &holds, n->config.context);

    h->rq = rq;
    return h;
}

/* ---- files ---- */

static void on_kept(void *owner, int code, const char *why)
{
    struct hold *h = owner;
    struct gl_node *n = h->chain.node;

    GL_ASSERT(!h->is_due);
    if (code == 0 && n->stopping) {
        code = GL_E_UNAVAILABLE;
        why = "this node is stopping";
    }
    if (code != 0) {
        gl_requests_answer(n, h->rq, code, why, NULL);
    } else {
        gl_requests_take(n, h->rq, h->is_again ? &h->again : NULL);
    }
    gl_chain_drop(&h->chain);
}

bool gl_submit_wait_for_files(struct gl_node *n, struct gl_request *rq,
                              const struct gl_requests_again *again)
{
    gl_str flow = again != NULL ? again->flow : rq->submission.compiled;
    char hex[GL_SHA256_HEX];
    struct hold *h;

    GL_ASSERT(again == NULL || again->hash.n > 0);
    if (!gl_blobs_concern(n->blobs, flow)) {
        return false;
    }
    h = hold_new(n, rq);
    if (gl_blobs_keep(n->blobs, again != NULL ? again->hash : gl_sha256_hex(flow, hex), flow,
                      on_kept, h)) {
        gl_chain_drop(&h->chain);
        return false;
    }
    if (again != NULL) {
        h->is_again = true;
        h->again = (struct gl_requests_again){
            .flow = gl_str_dup(&h->chain.arena, again->flow),
            .hash = gl_str_dup(&h->chain.arena, again->hash),
            .inputs = gl_str_dup(&h->chain.arena, again->inputs),
            .retry_of = gl_str_dup(&h->chain.arena, again->retry_of),
            .retry_from = gl_str_dup(&h->chain.arena, again->retry_from)};
    }
    return true;
}

/* ---- once more ---- */

/* How often was this one refused? */
bool gl_submit_wait_may_again(struct gl_request *rq)
{
    return rq->node.holds++ < TRIES_MAX;
}

bool gl_submit_wait_again(struct gl_node *n, struct gl_request *rq, gl_str kind, gl_str id,
                          gl_str flow)
{
    if ((!gl_str_is(kind, "flow") && !gl_str_is(kind, "blob")) || n->stopping ||
        !gl_submit_wait_may_again(rq)) {
        return false;
    }
    GL_MARK(n->config.trace, "holds.removed_meanwhile");
    gl_blobs_forget(n->blobs, id);
    gl_blobs_forget(n->blobs, flow);
    /* The core is told after us that the transaction has failed, and forgets what it believed. */
    hold_new(n, rq)->is_due = true;
    n->outstanding++;
    own(n)->due = n->now;
    return true;
}

static void try_again(struct hold *h)
{
    struct gl_node *n = h->chain.node;
    struct gl_request *rq = h->rq;

    GL_ASSERT(!h->is_due);
    GL_ASSERT(n->outstanding > 0);
    n->outstanding--;
    if (n->stopping) {
        gl_requests_answer(n, rq, GL_E_UNAVAILABLE, "this node is stopping", NULL);
    } else if (rq->verb == GL_VERB_RETRY) {
        gl_run_ids_retry(n, rq, gl_str_dup(&h->chain.arena, gl_str_of(rq->job_id)));
    } else {
        gl_requests_submit(n, rq, NULL);
    }
    gl_chain_drop(&h->chain);
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
    struct hold *next;

    if (own(n)->due > n->now) {
        return;
    }
    own(n)->due = INT64_MAX;
    for (struct hold *h = gl_chain_next(n, &holds, NULL); h != NULL; h = next) {
        next = gl_chain_next(n, &holds, &h->chain);
        if (h->is_due) {
            h->is_due = false;
            try_again(h);
        }
    }
}

const struct gl_node_part gl_submit_wait_part = {
    .bytes = sizeof(struct holds), .init = init, .due = due, .on_time = on_time};
