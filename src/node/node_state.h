/* node_state.h - the node's memory, shared by the files of this room and by nobody else. */
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

/* The effects of one step of the core, alive until the last of them is done. */
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
    void *parts[GL_PARTS]; /* the memory of each: its own file's */
    struct gl_query_context queries;
    struct gl_blobs *blobs; /* NULL: its files are its own (node/blobs.h) */

    gl_ms now;
    gl_ms alarm_at;
    bool started, exec_up, ready, draining, stopping, lost;
    gl_str session;        /* in `strings`; "" : there is none yet */
    struct gl_link chains; /* struct gl_chain: all of them */
    size_t outstanding;    /* calls to ports that have not been answered */

    void (*stopped)(void *owner);
    void *stopped_owner;
};

/* ---- node.c ---- */
void gl_node_rearm(struct gl_node *n);

/* ---- feed.c ---- */
void gl_node_feed(struct gl_node *n, struct gl_event *ev); /* fills in the time */
void gl_node_execute(struct gl_node *n, struct gl_batch *b, size_t number);
void gl_node_release(struct gl_node *n, struct gl_batch *b);
bool gl_feed_is_on(const struct gl_node *n);       /* the core is handling an event */
struct gl_trace *gl_feed_trace(struct gl_node *n); /* for the core */

/* ---- commits.c ---- */
void gl_commits_begin(struct gl_node *n, struct gl_batch *b, size_t number);

/* ---- component_calls.c ---- */
void gl_component_calls_begin(struct gl_node *n, struct gl_batch *b, size_t number);

/* ---- sessions.c ---- */
/* How is the store to us? */
enum gl_store_health gl_sessions_store_health(const struct gl_node *n);
/* That may have changed, or the session may be lost: whoever wants to know is told if it is so. */
void gl_sessions_report(struct gl_node *n);
/* The connection to the store is another one. */
void gl_sessions_on_changed(struct gl_node *n);
/* What the executor has of ours, and others will count on being dead, lives no longer than our
 * session and the orphan grace. */
void gl_sessions_limit_exec(const struct gl_node *n);
/* The effects VALID and LOST. */
void gl_sessions_set_valid_until(struct gl_node *n, const struct gl_effect *e);
void gl_sessions_set_lost(struct gl_node *n, const struct gl_effect *e);
void gl_sessions_renew(struct gl_node *n, struct gl_store_req *req);
void gl_sessions_on_renewed(struct gl_node *n,
                            const struct gl_store_req *req); /* a renewal's outcome */
/* The store is there, and has refused this for want of room. */
bool gl_sessions_is_store_full(const struct gl_store_req *req);
/* Outside of a transaction of the core and of its calls: the core is told. */
void gl_sessions_on_refused(struct gl_node *n, const struct gl_store_req *req);
void gl_sessions_start(struct gl_node *n);
gl_ms gl_sessions_ttl(const struct gl_node *n);
/* After it others may take us for dead: nothing may start. INT64_MAX on a store that is not
 * shared. */
gl_ms gl_sessions_valid_until(const struct gl_node *n);
/* When the store last took a write of ours for the session. */
gl_ms gl_sessions_renewed_at(const struct gl_node *n);
/* Leave the store in order, if nothing of ours runs. True: the answer is on its way. */
bool gl_sessions_close(struct gl_node *n);

/* A line for the operator. */
void gl_sessions_log(const struct gl_node *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A transaction that took this job from a dead session has been committed. */
void gl_sessions_note_taken(struct gl_node *n, gl_str job, gl_str from);
void gl_sessions_log_taken(struct gl_node *n);

/* Another node has used this rate: its record is read again, and the core told. */
void gl_sessions_read_rate(struct gl_node *n, gl_str key);

/* ---- loads.c ---- */
void gl_loads_begin(struct gl_node *n, const struct gl_effect *e);
void gl_loads_find(struct gl_node *n, const struct gl_effect *e);

/* ---- starts.c ---- */
void gl_starts_begin(struct gl_node *n, const struct gl_effect *e);
/* If it has not left yet, it will not. */
void gl_starts_cancel(struct gl_node *n, const struct gl_effect *e);
struct gl_attempt_key gl_starts_key(struct gl_arena *a, const struct gl_effect *e);

/* ---- exec_events.c ---- */
void gl_exec_events_attach(struct gl_node *n, const struct gl_effect *e);
void gl_exec_events_stop(struct gl_node *n, const struct gl_effect *e);
void gl_exec_events_ack(struct gl_node *n, const struct gl_effect *e);
void gl_exec_events_list(struct gl_node *n);
struct gl_exec_events gl_exec_events_callbacks(struct gl_node *n);

/* ---- lookup.c ---- */
struct gl_lookup_wish { /* what is asked for, and by whom; copied */
    struct gl_spec *spec;
    uint32_t of;          /* the step of the flow: what its references name is read */
    bool with_needs;      /* and the steps it needs */
    int64_t item;         /* of an instance; -1: none */
    uint32_t step_number; /* the asker's own use */
    gl_str context, job, run_id, step_id;
    gl_ms submitted_at;
    gl_str retry_of; /* look into this job, too; "" : none */
};

/* GL_E_UNAVAILABLE: ask again. Anything else that is not 0: it will stay so. */
typedef void gl_lookup_done(void *owner, const struct gl_lookup_wish *wish, int code,
                            const char *why, gl_str json);
/* `done` runs once, not from inside the call; never if the node is freed before. */
void gl_lookup_gather(struct gl_node *n, const struct gl_lookup_wish *wish, gl_lookup_done *done,
                      void *owner);
void gl_lookup_resolve(struct gl_node *n, const struct gl_effect *e);

/* ---- values.c ---- */
/* Are its arguments and variables such as a program can get? */
int gl_starts_check(const struct gl_exec_start *x, struct gl_why *why);

/* ---- run_ids.c ---- */
/* A submission or a retry under a run id or request key that is taken: is it the same one? */
void gl_run_ids_compare(struct gl_node *n, struct gl_request *rq, bool by_request_key);
/* Refuse a submission, unless its request key shows that it was accepted before: what is refused
 * now may have been fine then, and a caller who hears "refused" would submit it under a new key. */
void gl_run_ids_refuse(struct gl_node *n, struct gl_request *rq, int code, const char *why);
void gl_run_ids_retry(struct gl_node *n, struct gl_request *rq, gl_str job);

/* ---- metrics.c ---- */
/* Since when the store takes no commits, and why; "" : it does, or it does not answer at all. */
gl_str gl_metrics_store_read_only(const struct gl_node *n, struct gl_arena *a);
void gl_metrics_write_node(struct gl_node *n, struct gl_buf *out);
void gl_metrics_write(struct gl_node *n, struct gl_buf *out);
/* For the parts that have figures of their own. */
void gl_metrics_counter(struct gl_buf *out, const char *name, const char *help, uint64_t value);
void gl_metrics_histogram(struct gl_buf *out, const char *name, const char *help,
                          const struct gl_histogram *h);
void gl_metrics_claims(struct gl_buf *out, const struct gl_claim_counts *c);

/* ---- requests.c ---- */
struct gl_requests_stored { /* a submission of what is in the store already */
    gl_str flow, hash, inputs, retry_of, retry_from;
};

void gl_requests_submit(struct gl_node *n, struct gl_request *rq,
                        const struct gl_requests_stored *stored);
/* The same, when everything it needs is in its place. */
void gl_requests_accept(struct gl_node *n, struct gl_request *rq,
                        const struct gl_requests_stored *stored);
/* To be answered soon. What is in `body` passes on; it may be NULL. */
void gl_requests_answer(struct gl_node *n, struct gl_request *rq, int code, const char *why,
                        struct gl_buf *body);
void gl_requests_reply(struct gl_node *n, const struct gl_effect *e);
/* A reply whose transaction did not commit. */
void gl_requests_fail(struct gl_node *n, const struct gl_effect *e, const struct gl_tx *tx,
                      int code, size_t refused, const char *why);
void gl_requests_notify(struct gl_node *n, gl_str job, bool ended);
/* Does a client wait for what becomes of it? */
bool gl_requests_is_watched(const struct gl_node *n, gl_str job);
void gl_requests_drain(struct gl_node *n); /* answer what is to be answered */
void gl_requests_refuse_commands(struct gl_node *n);
/* gl_node_request() is on the stack: it arms the node at its end. */
bool gl_requests_is_inside(const struct gl_node *n);
bool gl_requests_are_answered(const struct gl_node *n); /* those that are to be */
bool gl_requests_have_watchers(const struct gl_node *n);

/* ---- submit_wait.c ---- */
/* Must this submission wait for the files of its flow? Then gl_requests_accept() follows. */
bool gl_submit_wait_for_files(struct gl_node *n, struct gl_request *rq,
                              const struct gl_requests_stored *stored);
/* Counts one more try of this submission. False: it has been tried often enough. */
bool gl_submit_wait_may_retry(struct gl_request *rq);
/* It was refused by the guard on record `kind`/`id`. True: it is tried once more. */
bool gl_submit_wait_retry(struct gl_node *n, struct gl_request *rq, gl_str kind, gl_str id,
                          gl_str flow);

#endif
