/* node.h - one running node: feeds events to the core, executes its effects, and enforces their
 * order.
 *
 * The node makes no system call of its own. Everything comes through the ports it is given, so the
 * real node and the simulator run the same code. It runs on one thread.
 *
 * The rule it enforces: an effect that belongs to a transaction is executed only after that
 * transaction has committed, in order per job. If the transaction does not commit, the effect never
 * happens.
 *
 *    gl_node_new()          make it; the ports must outlive it
 *    gl_node_exec_events()  callbacks to open the executor with
 *    gl_node_set_exec()     hand over the executor, unless the ports had one
 *    gl_node_start()        open a session, then run
 *    gl_node_request()      requests of clients
 *    gl_node_drain()        optional: start nothing more
 *    gl_node_stop()         finish what is in flight; then `stopped` runs
 *    gl_node_free()         free it; without gl_node_stop() before, this is a crash */
#ifndef GL_NODE_NODE_H
#define GL_NODE_NODE_H

#include "api/request.h"
#include "base/trace.h"
#include "core/core.h"
#include "model/capacity.h"
#include "model/labels.h"
#include "node/workers.h"
#include "port/blob.h"
#include "port/clock.h"
#include "port/entropy.h"
#include "port/exec.h"
#include "port/logs.h"
#include "port/recording.h"
#include "port/store.h"
#include "port/tidy.h"
#include "port/work.h"

struct gl_event;
struct gl_node;

struct gl_pool_config {
    gl_str name;
    uint32_t slots;
};

struct gl_node_config {
    gl_str name;             /* the node's identity, stable across restarts */
    gl_str context;          /* the context whose jobs it runs */
    gl_str stack, env_scope; /* stamped on the jobs it accepts */
    gl_str warning;          /* shown in /v1/node; "": none */
    gl_str store;            /* the URL to show, without passwords; "": "sqlite:" */
    const struct gl_pool_config *pools;
    size_t pools_n;        /* 0: one pool "default" with 8 slots */
    uint32_t hot_jobs_max; /* 0: GL_HOT_JOBS_MAX */
    gl_ms session_ttl_ms;  /* how long a session on a shared store lives without a renewal; 0:
                              GL_SESSION_TTL_MS */
    uint32_t body_bytes;   /* bodies above this are stored apart from their message; 0:
                              GL_BODY_BYTES_MAX */
    uint64_t log_bytes; /* on a shared store: how much of the log of an attempt is copied into it;
                           0: nothing */
    gl_ms orphan_grace_ms; /* on a shared store: how long a node may be silent before its keeper
                              ends its steps; 0: GL_ORPHAN_GRACE_MS */
    gl_str host;           /* published with the session, like the next two */
    gl_str version;
    int64_t pid;
    struct gl_labels labels; /* published, too */
    /* How much of its machine the node may use; NULL: unknown. On the control thread: answers at
     * once. */
    struct gl_capacity (*capacity)(void *owner);
    struct gl_worker_place worker; /* what workers of bundles are given; all empty: nothing */
    struct gl_keep keep;           /* which ended jobs to keep; all zero: all of them */
    struct gl_trace *trace;        /* never NULL; borrowed */
    bool passive;                  /* execute commands, but start nothing and look for no work */
    bool guest; /* on a shared store: take no work except what earlier runs of this node left (`glia
                   run` without a node) */
    bool may_be_half; /* first check for an interrupted migration into the store; off in the
                         simulator, which has none */
    /* Jobs that crashed the node repeatedly: quarantined until a person resumes or cancels them. */
    const gl_str *quarantined;
    size_t quarantined_n;
    bool round_trip_events; /* the simulator: encode and decode every event before it is used */
    /* Callbacks, on the control thread. Each may be NULL. */
    void (*on_session)(void *owner,
                       uint64_t incarnation); /* the executor may be opened for this incarnation */
    void (*on_trouble)(void *owner, int code,
                       const char *why); /* opening the session failed; it is retried soon */
    /* A line for the operator's log: which node died, which jobs were taken over. */
    void (*on_notice)(void *owner, const char *line);
    /* The store became unreachable or read-only, or recovered (`why` is ""). */
    void (*on_store_health)(void *owner, enum gl_store_health health, const char *why);
    void (*on_ready)(void *owner); /* session open, executor up, first sweep under way */
    void (*on_ended)(void *owner, gl_str job); /* the job's terminal state has been committed */
    void (*on_session_lost)(void *owner,
                            const char *why); /* must stop: another node may own our jobs */
    /* Called around every step of the core: the job it handles; "" when the step is done. */
    void (*on_handling)(void *owner, gl_str job);
    /* Every event, before the core sees it. */
    void (*on_event)(void *owner, const struct gl_event *ev);
    void *owner;
};

struct gl_node_ports { /* borrowed until the node is freed */
    struct gl_store *store;
    struct gl_exec *exec;
    struct gl_clock *clock;
    struct gl_entropy *entropy;
    struct gl_tidy *tidy;             /* NULL: there are no files to clean up */
    struct gl_blob *blob;             /* NULL: flows and messages have no files */
    struct gl_recording_port *record; /* NULL: nothing is recorded */
    const struct gl_questions *asks;  /* NULL: questions of workers cannot be read */
    struct gl_ask_writer *ask_writer; /* NULL: default decisions are not written */
    struct gl_work *work;             /* NULL: answers are rendered on the control thread */
    struct gl_logs *logs;             /* NULL: logs are not copied into the store */
    struct gl_work *log_work;         /* reads and compresses logs; NULL: on the control thread */
};

/* Strings in `config` are copied. */
struct gl_node *gl_node_new(const struct gl_node_config *config, const struct gl_node_ports *ports);

/* The callbacks to open the executor with: it reports to this node. */
struct gl_exec_events gl_node_exec_events(struct gl_node *n);
/* Required before gl_node_start(), unless the ports name an executor. */
void gl_node_set_exec(struct gl_node *n, struct gl_exec *exec);

/* The callbacks for events of the store. A store has one listener but may serve several nodes in
 * turn, so the code that created both listens, and forwards `woken` and `changed`. */
struct gl_store_events gl_node_store_events(struct gl_node *n);

void gl_node_start(struct gl_node *n);

/* Publish the node's state (`ready`) at once instead of with the next renewal. */
void gl_node_publish(struct gl_node *n);

/* A file of requests to people has been read; the job's workers wait until `due` (event ASKED).
 * False: the node has no session; report it again later. */
bool gl_node_on_asked(struct gl_node *n, gl_str job, gl_ms due);

/* `rq` is borrowed until rq->done runs. Fails with GL_E_UNAVAILABLE before the node has a session
 * and after it stops. */
void gl_node_request(struct gl_node *n, struct gl_request *rq);

/* Is the node idle: no unfinished job in memory, no transaction in flight? */
bool gl_node_idle(const struct gl_node *n);

/* Is this one of config.quarantined that has not been resumed or cancelled? */
bool gl_node_is_quarantined(const struct gl_node *n, gl_str job);

/* Refuse new jobs and start nothing more; running attempts may end and are processed. Returns how
 * many attempts are running. May be called again. */
uint64_t gl_node_drain(struct gl_node *n);

/* Accept no more requests, let transactions in flight finish, answer pending requests. Running
 * attempts stay with the executor. Then `stopped` runs once. The ports are not closed. */
void gl_node_stop(struct gl_node *n, void (*stopped)(void *owner), void *owner);

/* For the simulator, before some events: replace the core by one restored from its snapshot. This
 * must not change what happens next. */
void gl_node_restore_core(struct gl_node *n);

/* Free the node. Unless gl_node_stop() has finished, this is a crash: nothing in flight is waited
 * for. The ports must not call back afterwards. */
void gl_node_free(struct gl_node *n);

#endif
