/* node_state.h - the node's memory, and what the files of this room offer each other.
 *
 * Private to src/node/. Each file has a section here, named after it. Memory that only one file
 * uses is not here but in its part (node/part.h). */
#ifndef GL_NODE_NODE_STATE_H
#define GL_NODE_NODE_STATE_H

#include "api/query.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/claims/claim.h"
#include "core/core.h"
#include "node/chain.h"
#include "node/node.h"
#include "node/part.h"

/* The effects of one step of the core. Lives until the last of them is done. */
struct gl_batch {
    struct gl_link link; /* of feed.c */
    struct gl_arena arena;
    struct gl_effects effects;
    uint32_t refs;
};

struct gl_node {
    struct gl_node_config config;
    struct gl_node_ports ports;
    struct gl_arena strings; /* of the configuration */
    struct gl_core *core;
    void *parts[GL_PARTS]; /* each part's memory, private to its file */
    struct gl_query_context queries;
    struct gl_blobs *blobs; /* NULL: files are not shared (node/blobs.h) */

    gl_ms now;
    gl_ms alarm_at;
    bool started, exec_up, ready, draining, stopping, lost;
    gl_str session;        /* in `strings`; "": none yet */
    struct gl_link chains; /* all struct gl_chain */
    size_t outstanding;    /* calls to ports that are not answered yet */

    void (*stopped)(void *owner);
    void *stopped_owner;
};

/* ---- node.c ---- */
void gl_node_rearm(struct gl_node *n);

/* ---- feed.c ---- */
void gl_node_feed(struct gl_node *n, struct gl_event *ev); /* sets ev->now */
void gl_node_execute(struct gl_node *n, struct gl_batch *b, size_t number);
void gl_node_release(struct gl_node *n, struct gl_batch *b);
bool gl_feed_is_on(const struct gl_node *n);       /* is the core handling an event? */
struct gl_trace *gl_feed_trace(struct gl_node *n); /* the trace to give the core */

/* ---- commits.c ---- */
void gl_commits_begin(struct gl_node *n, struct gl_batch *b, size_t number);

/* ---- component_calls.c ---- */
void gl_component_calls_begin(struct gl_node *n, struct gl_batch *b, size_t number);

/* ---- sessions.c ---- */
/* Store health, as this node sees it. */
enum gl_store_health gl_sessions_store_health(const struct gl_node *n);
/* Report a change of the store's health, or a lost session, to the owner of the node. */
void gl_sessions_report(struct gl_node *n);
/* The connection to the store was replaced. */
void gl_sessions_on_changed(struct gl_node *n);
/* Tell the executor until when our session is valid. It ends attempts that need the session when
 * the session and the orphan grace are over, because by then other nodes assume they are dead. */
void gl_sessions_limit_exec(const struct gl_node *n);
/* Executes the effects VALID and LOST. */
void gl_sessions_set_valid_until(struct gl_node *n, const struct gl_effect *e);
void gl_sessions_set_lost(struct gl_node *n, const struct gl_effect *e);
void gl_sessions_renew(struct gl_node *n, struct gl_store_req *req);
void gl_sessions_on_renewed(struct gl_node *n,
                            const struct gl_store_req *req); /* the outcome of a renewal */
/* The store answered, and refused this request because it is full. */
bool gl_sessions_is_store_full(const struct gl_store_req *req);
/* Reports such a refusal of a call that the core did not make. (The core learns about its own calls
 * from their outcome.) */
void gl_sessions_on_refused(struct gl_node *n, const struct gl_store_req *req);
void gl_sessions_start(struct gl_node *n);
gl_ms gl_sessions_ttl(const struct gl_node *n);
/* After this time other nodes may declare us dead, so nothing may start. INT64_MAX on a store that
 * is not shared. */
gl_ms gl_sessions_valid_until(const struct gl_node *n);
/* When the store last accepted a write of ours for the session. */
gl_ms gl_sessions_renewed_at(const struct gl_node *n);
/* Close the session, if nothing of ours is running. True: an answer is pending. */
bool gl_sessions_close(struct gl_node *n);

/* Writes a line to the operator's log. */
void gl_sessions_log(const struct gl_node *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A transaction that took over this job from a dead session has committed. */
void gl_sessions_note_taken(struct gl_node *n, gl_str job, gl_str from);
void gl_sessions_log_taken(struct gl_node *n);

/* Another node has used this rate: read its record again and give it to the core. */
void gl_sessions_read_rate(struct gl_node *n, gl_str key);

/* ---- loads.c ---- */
void gl_loads_begin(struct gl_node *n, const struct gl_effect *e);
void gl_loads_find(struct gl_node *n, const struct gl_effect *e);

/* ---- starts.c ---- */
void gl_starts_begin(struct gl_node *n, const struct gl_effect *e);
/* If the start has not been sent to the executor yet, it never will be. */
void gl_starts_cancel(struct gl_node *n, const struct gl_effect *e);
struct gl_attempt_key gl_starts_key(struct gl_arena *a, const struct gl_effect *e);

/* ---- exec_events.c ---- */
void gl_exec_events_attach(struct gl_node *n, const struct gl_effect *e);
void gl_exec_events_stop(struct gl_node *n, const struct gl_effect *e);
void gl_exec_events_ack(struct gl_node *n, const struct gl_effect *e);
void gl_exec_events_list(struct gl_node *n);
struct gl_exec_events gl_exec_events_callbacks(struct gl_node *n);

/* ---- lookup.c ---- */
struct gl_lookup_wish { /* what to read, and for whom; copied */
    struct gl_spec *spec;
    uint32_t of;          /* the step of the flow whose references are read */
    bool with_needs;      /* also read the steps it needs */
    int64_t item;         /* of an instance; -1: not an instance */
    uint32_t step_number; /* for the caller's own use */
    gl_str context, job, run_id, step_id;
    gl_ms submitted_at;
    gl_str retry_of; /* also look into this job; "": none */
};

/* GL_E_UNAVAILABLE: retry later. Any other error is permanent. */
typedef void gl_lookup_done(void *owner, const struct gl_lookup_wish *wish, int code,
                            const char *why, gl_str json);
/* `done` runs once, never from inside the call, and not at all if the node is freed first. */
void gl_lookup_gather(struct gl_node *n, const struct gl_lookup_wish *wish, gl_lookup_done *done,
                      void *owner);
void gl_lookup_resolve(struct gl_node *n, const struct gl_effect *e);

/* ---- values.c ---- */
/* Can its arguments and variables be passed to a program? */
int gl_starts_check(const struct gl_exec_start *x, struct gl_why *why);

/* ---- run_ids.c ---- */
/* A submission or retry used a run id or request key that is taken: is it the same submission? */
void gl_run_ids_compare(struct gl_node *n, struct gl_request *rq, bool by_request_key);
/* Refuse a submission, unless its request key shows that it was accepted before. What is refused
 * now may have been valid then, and a caller that sees a refusal would submit it again under a new
 * key. */
void gl_run_ids_refuse(struct gl_node *n, struct gl_request *rq, int code, const char *why);
void gl_run_ids_retry(struct gl_node *n, struct gl_request *rq, gl_str job);

/* ---- metrics.c ---- */
/* Since when and why the store is read-only; "": it is not, or it does not answer at all. */
gl_str gl_metrics_store_read_only(const struct gl_node *n, struct gl_arena *a);
void gl_metrics_write_node(struct gl_node *n, struct gl_buf *out);
void gl_metrics_write(struct gl_node *n, struct gl_buf *out);
/* For parts that have metrics of their own. */
void gl_metrics_counter(struct gl_buf *out, const char *name, const char *help, uint64_t value);
void gl_metrics_histogram(struct gl_buf *out, const char *name, const char *help,
                          const struct gl_histogram *h);
void gl_metrics_claims(struct gl_buf *out, const struct gl_claim_counts *c);

/* ---- requests.c ---- */
struct gl_requests_stored { /* a submission whose flow and inputs are in the store already */
    gl_str flow, hash, inputs, retry_of, retry_from;
};

void gl_requests_submit(struct gl_node *n, struct gl_request *rq,
                        const struct gl_requests_stored *stored);
/* The same, once everything it needs is in the store. */
void gl_requests_accept(struct gl_node *n, struct gl_request *rq,
                        const struct gl_requests_stored *stored);
/* Queues an answer; gl_requests_drain() delivers it. The content of `body` is taken; it may be
 * NULL. */
void gl_requests_answer(struct gl_node *n, struct gl_request *rq, int code, const char *why,
                        struct gl_buf *body);
void gl_requests_reply(struct gl_node *n, const struct gl_effect *e);
/* A reply whose transaction did not commit. */
void gl_requests_fail(struct gl_node *n, const struct gl_effect *e, const struct gl_tx *tx,
                      int code, size_t refused, const char *why);
void gl_requests_notify(struct gl_node *n, gl_str job, bool ended);
/* Is a client waiting for events of this job? */
bool gl_requests_is_watched(const struct gl_node *n, gl_str job);
void gl_requests_drain(struct gl_node *n); /* deliver queued answers */
void gl_requests_refuse_commands(struct gl_node *n);
/* Is gl_node_request() on the stack? It rearms the node when it returns. */
bool gl_requests_is_inside(const struct gl_node *n);
bool gl_requests_are_answered(const struct gl_node *n); /* no answer is queued */
bool gl_requests_have_watchers(const struct gl_node *n);

/* ---- submit_wait.c ---- */
/* Must this submission wait until the files of its flow are in the store? Then gl_requests_accept()
 * follows. */
bool gl_submit_wait_for_files(struct gl_node *n, struct gl_request *rq,
                              const struct gl_requests_stored *stored);
/* Counts another attempt of this submission. False: there were too many. */
bool gl_submit_wait_may_retry(struct gl_request *rq);
/* The guard on record `kind`/`id` refused it. True: it is submitted once more. */
bool gl_submit_wait_retry(struct gl_node *n, struct gl_request *rq, gl_str kind, gl_str id,
                          gl_str flow);

#endif
