/* request.h - what can be asked of a node, and what it answers. No bytes of HTTP, no sockets.
 *
 * Commands (submit, pause, resume, cancel, respond, signal, retry, send, redrive) become events of
 * the core and are answered when their transaction has committed. Questions (list, status, events,
 * human, why, agents, messages, dead letters) read the store and never enter the core. Remove and
 * trim take ended jobs away, past the core, which never changes them any more. Claims are changed
 * past the core, too. Metrics answers in Prometheus's text format, all others in JSON.
 *
 * The answer's body is JSON for the API's users; field names are those of docs/api.md. */
#ifndef GL_API_REQUEST_H
#define GL_API_REQUEST_H

#include "base/err.h"
#include "base/str.h"
#include "base/when.h"

#define GL_VERBS(X)                     \
    X(SUBMIT, "submit")                 \
    X(PAUSE, "pause")                   \
    X(RESUME, "resume")                 \
    X(CANCEL, "cancel")                 \
    X(RESPOND, "respond")               \
    X(SIGNAL, "signal")                 \
    X(RETRY, "retry")                   \
    X(REMOVE, "remove")                 \
    X(TRIM, "trim")                     \
    X(LIST, "list")                     \
    X(STATUS, "status")                 \
    X(EVENTS, "events")                 \
    X(HUMAN, "human")                   \
    X(WHY, "why")                       \
    X(NODE, "node")                     \
    X(METRICS, "metrics")               \
    X(CLAIM_ACQUIRE, "claim_acquire")   \
    X(CLAIM_RENEW, "claim_renew")       \
    X(CLAIM_COMPLETE, "claim_complete") \
    X(CLAIM_FAIL, "claim_fail")         \
    X(CLAIM_RECLAIM, "claim_reclaim")   \
    X(CLAIM_LIST, "claim_list")         \
    X(CLAIM_SHOW, "claim_show")         \
    X(NODES, "nodes")                   \
    X(NODE_SHOW, "node_show")           \
    X(CLUSTER, "cluster")               \
    X(SEND, "send")                     \
    X(REDRIVE, "redrive")               \
    X(AGENTS, "agents")                 \
    X(MESSAGES, "messages")             \
    X(DEAD_LETTERS, "dead_letters")

enum gl_verb {
#define X(name, word) GL_VERB_##name,
    GL_VERBS(X)
#undef X
        GL_VERB_COUNT
};

/* Queries do not queue behind commands, and neither do claims, which expire if they are renewed
 * late. */
bool gl_verb_is_urgent(enum gl_verb verb);

struct gl_request;
typedef void gl_request_done(struct gl_request *rq);

struct gl_request {
    enum gl_verb verb;
    gl_str context;

    /* Which job: its id, a unique prefix of it (4 characters or more), or its run id. Not for
     * SUBMIT, LIST. */
    gl_str job;

    /* SUBMIT: the compiled flow (gl_flow_encode) and the caller's name for the job ("" = the job's
     * id). */
    gl_str flow;
    gl_str run_id;
    gl_str dedupe_key;
    gl_str request_key; /* SUBMIT, RETRY: names this submission; sent again, it is the same job */
    gl_str stack, env_scope;
    gl_str inputs; /* SUBMIT: JSON object, as the caller gave it; "" = none */

    /* RESPOND: a step that waits for a person. SIGNAL: the signal's name. RETRY: the step to begin
     * with ("" : whatever did not complete). WHY: only this step ("" : the job and all of its live
     * steps). STATUS: only this step, whole ("" : the first `limit` of them). SEND: the agent;
     * AGENTS, MESSAGES, DEAD_LETTERS: only this agent ("" : all). REDRIVE: the number of a dead
     * letter, or "all". */
    gl_str step;
    gl_str decision; /* review: "rerun", "done", "failed"; approval: one of those it offers */
    gl_str output;   /* JSON, with "done", with a decision, or of a signal; "" = null. SEND: the
                        message, as an element of a bundle's initial_inputs */
    gl_str who;      /* also PAUSE, RESUME, CANCEL: who asked, for the record */
    gl_str reason;   /* PAUSE, CANCEL, RESPOND: why, for the record */

    /* LIST: newest first. EVENTS: from this sequence number on; with wait_ms, answer when there is
     * something to tell or the job has ended, at the latest after that time. */
    gl_str after;  /* LIST: continue behind this job id. STATUS: a page of steps, from here on */
    gl_str status; /* LIST: only jobs with this status; "" = all */
    gl_str name;   /* LIST: only jobs of flows with this name; "" = all. NODE_SHOW: which node */
    bool all;      /* NODES: also those that are dead */
    bool brief;    /* STATUS: only the job, and what keeps it from going on */
    gl_ms keep_ms; /* TRIM: remove ended jobs that ended longer ago than this; -1 = as configured */
    int64_t keep_jobs; /* TRIM: keep at most so many ended jobs; -1 = as configured */
    int64_t from_seq;
    gl_ms wait_ms;
    uint32_t limit; /* 0: the default of 100 */

    /* Claims. LIST: `claim_key` is what their keys begin with, `status` the state they are in,
     * `after` a key. RECLAIM: `limit` only. */
    gl_str claim_key, claim_owner;
    uint64_t fence; /* RENEW, COMPLETE, FAIL */
    gl_ms lease_ms; /* ACQUIRE, RENEW; 0: as before, or the default */
    gl_str nonce;   /* ACQUIRE: random; asked again with the same one, it is the same claim */
    bool once;      /* ACQUIRE: not if it is done */
    gl_str work_type, error_detail;

    /* Everything above is borrowed until `done` runs: exactly once, on the control thread, never
     * from inside the call. */
    gl_request_done *done;
    void *owner;

    /* The answer, valid inside `done` only. */
    int code; /* 0 or GL_E_* */
    struct gl_why why;
    gl_str body;     /* JSON; on failure "", or the claim that stands in the way */
    char job_id[27]; /* the job that `job` meant; "" if none was found */
    uint32_t count;  /* EVENTS: how many there are */
    bool ended;      /* EVENTS: the job is terminal, and these were the last */
    bool existing;   /* SUBMIT: a job with this run id and the same content was there already */

    void *node[8]; /* the node's own use while under way */
};

#endif
