/* node.h - one running node: feeds events to the core, executes its effects, and enforces their
 * order.
 *
 * It makes no system call of its own: everything comes through the ports it is given, so the real
 * node and the simulator run this same code. One thread.
 *
 * The rule it enforces: an effect that belongs to a transaction happens only after that transaction
 * has committed, in order per job; if it did not commit, the effect never happens. */
#ifndef GL_NODE_NODE_H
#define GL_NODE_NODE_H

#include "api/request.h"
#include "base/trace.h"
#include "core/core.h"
#include "node/workers.h"
#include "port/blob.h"
#include "port/clock.h"
#include "port/entropy.h"
#include "port/exec.h"
#include "port/record.h"
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
    gl_str name;             /* the node's identity, stable over restarts */
    gl_str context;          /* whose jobs it runs */
    gl_str stack, env_scope; /* stamped on the jobs it takes */
    gl_str warning;          /* shown in /v1/node; "" : none */
    gl_str store;            /* what is told of it: its URL without passwords; "" : "sqlite:" */
    const struct gl_pool_config *pools;
    size_t pools_n;        /* 0: one pool "default" with 8 slots */
    uint32_t hot_jobs_max; /* 0: GL_HOT_JOBS_MAX */
    gl_ms session_ttl_ms;  /* 0: GL_SESSION_TTL_MS. On a shared store: who does not renew so long is
                              taken for dead */
    uint32_t body_bytes;   /* a larger body of a message is not in it; 0: GL_BODY_BYTES_MAX */
    gl_ms orphan_grace_ms; /* on a shared store: a keeper ends the steps of a node that has been
                              silent so long; 0: GL_ORPHAN_GRACE_MS */
    gl_str host;           /* told to others with the session, like the next two */
    gl_str version;
    int64_t pid;
    struct gl_worker_place worker; /* what the workers of bundles are given; all empty: nothing */
    struct gl_keep keep;           /* which ended jobs stay; all zero: all of them */
    struct gl_trace *trace;        /* never NULL; borrowed */
    bool passive;                  /* carry out commands, start nothing, look for nothing to do */
    bool guest;       /* of a shared store: looks for no work but what earlier lives of this node
                         have left (`glia run` without a node) */
    bool may_be_half; /* look first whether a migration into the store was cut short; the simulator
                         knows none */
    /* Jobs that brought the node down again and again: held until a person resumes them. */
    const gl_str *quarantined;
    size_t quarantined_n;
    bool round_trip_events; /* the simulator: write each event down and read it back before it is
                               used */
    /* Told on the control thread; may be NULL. */
    void (*on_session)(void *owner,
                       uint64_t incarnation); /* the executor may be opened for this life */
    void (*on_trouble)(void *owner, int code,
                       const char *why); /* it cannot start: asked again soon */
    /* What an operator will ask about afterwards: who died, what was taken over. A line. */
    void (*on_notice)(void *owner, const char *line);
    /* The store does not take our renewals, or no commits, or takes them again (`why` is ""). */
    void (*on_store_health)(void *owner, enum gl_store_health health, const char *why);
    void (*on_ready)(void *owner); /* session open, executor up, first sweep under way */
    void (*on_ended)(void *owner, gl_str job); /* a job is terminal, and that is committed */
    void (*on_session_lost)(void *owner,
                            const char *why); /* must stop: someone else may own our jobs */
    /* Around every step of the core: which job it is about; "" : the step is over. */
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
    struct gl_tidy *tidy;          /* NULL: there are no files to take away */
    struct gl_blob *blob;          /* NULL: flows and messages have no files */
    struct gl_record_port *record; /* NULL: nothing is recorded */
    const struct gl_asks *asks;    /* NULL: questions of workers are not known */
    struct gl_work *work;          /* NULL: answers are rendered on the control thread */
};

/* Strings in `config` are copied. */
struct gl_node *gl_node_new(const struct gl_node_config *config, const struct gl_node_ports *ports);

/* What to give the executor when it is opened: it reports to this node. */
struct gl_exec_events gl_node_exec_events(struct gl_node *n);
/* Needed before gl_node_start() unless it stands in the ports. */
void gl_node_set_exec(struct gl_node *n, struct gl_exec *exec);

/* What the node wants to hear of its store. A store is listened to once, and may see several nodes,
 * one after the other: so whoever made both listens, and passes `woken` and `changed` on. */
struct gl_store_events gl_node_store_events(struct gl_node *n);

void gl_node_start(struct gl_node *n);

/* Tell others what it is now (`ready`) at once, not with the next renewal. */
void gl_node_publish(struct gl_node *n);

/* `rq` is borrowed until rq->done runs. Answered with GL_E_UNAVAILABLE before the node is ready and
 * after it stops. */
void gl_node_request(struct gl_node *n, struct gl_request *rq);

/* Is there nothing left to do here: no job under way in this node's memory, no transaction in
 * flight? */
bool gl_node_idle(const struct gl_node *n);

/* Is this one of config.quarantined, and has nobody resumed or cancelled it? */
bool gl_node_is_quarantined(const struct gl_node *n, gl_str job);

/* Refuse new jobs and start nothing more; what runs may end, and is dealt with. Returns how many
 * attempts run. May be called again. */
uint64_t gl_node_drain(struct gl_node *n);

/* Take no more requests, let transactions in flight end, answer what waits; running attempts stay
 * with the executor. Then `stopped` runs once. The ports are not closed. */
void gl_node_stop(struct gl_node *n, void (*stopped)(void *owner), void *owner);

/* For the simulator, which does it before some events: replace the core by one restored from its
 * snapshot. It must not make a difference. */
void gl_node_restore_core(struct gl_node *n);

/* Free it. Without gl_node_stop() before this is a crash: the ports must not call back any more. */
void gl_node_free(struct gl_node *n);

#endif
