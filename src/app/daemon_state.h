/* daemon_state.h - the memory of the node in this process, shared by daemon.c, daemon_node.c and
 * daemon_human.c.
 *
 * Most of it belongs to the control thread; what other threads may touch is guarded by `mutex`. */
#ifndef GL_APP_DAEMON_STATE_H
#define GL_APP_DAEMON_STATE_H

#include <pthread.h>

#include "app/daemon.h"
#include "app/stores.h"
#include "base/trace.h"
#include "model/capacity.h"
#include "model/labels.h"
#include "node/node.h"
#include "node/workers.h"
#include "os/blob_thread.h"
#include "os/crash_counter.h"
#include "os/identity.h"
#include "os/lock.h"
#include "os/logfs.h"
#include "os/loop.h"
#include "os/pools.h"
#include "os/recorder.h"
#include "os/tcp.h"
#include "os/textlog.h"
#include "os/tidyfs.h"
#include "os/workthread.h"
#include "port/questions.h"

struct gl_daemon_human;
struct gl_http;

/* What the main thread waits for while the loop runs. */
enum gl_daemon_stage { GL_STAGE_STARTING, GL_STAGE_READY, GL_STAGE_FAILED, GL_STAGE_STOPPED };

/* The node, on the control thread. A node that lost its session is closed and replaced by a new
 * one.
 *
 *   UP ──session lost──► ENDING ──► BETWEEN ──pause──► UP */
enum gl_daemon_life { GL_LIFE_UP, GL_LIFE_ENDING, GL_LIFE_BETWEEN };

/* What the machine offers, measured again from time to time (daemon_capacity.c). */
struct gl_daemon_capacity {
    struct gl_work_task task; /* measures, on the work thread */
    bool is_posted;           /* `task` has been posted; on the control thread, like the next two */
    gl_ms measured_at;
    struct gl_capacity last;
    struct gl_capacity next; /* the task's */
};

struct gl_daemon {
    struct gl_arena arena;
    const char *data;
    struct gl_daemon_config config; /* its strings are in the arena */
    struct gl_pools_entry *pools;
    size_t pools_n;
    struct gl_labels labels;       /* of the node */
    struct gl_why warning;         /* "": none; else pools were reduced to fit a limit */
    struct gl_worker_place worker; /* in the arena */
    gl_str name;                   /* of the node */
    const char *store_url;         /* the store's URL without its password */
    const char *
        store_label; /* for messages: "the store URL", or "the store" if it is in the data folder */
    struct gl_stores_memory memory;
    struct gl_lock lock;
    struct gl_identity identity;
    char token[GL_TOKEN_BYTES]; /* for TCP clients; the socket is protected by uid */
    struct gl_entropy entropy;
    struct gl_textlog log;
    struct gl_trace trace;
    struct gl_loop *loop;
    struct gl_store *store;
    struct gl_exec *exec, *keeper; /* `exec` dispatches to the keeper and others */
    struct gl_exec_events events;  /* of the node */
    struct gl_node *node;
    struct gl_blobfs blobs;
    struct gl_blob_thread *serve; /* serves blobs on a shared store */
    struct gl_workthread *work;
    struct gl_workthread *log_work; /* NULL: the store is not shared */
    struct gl_tidyfs *tidy;
    struct gl_recorder *recorder; /* NULL: nothing is recorded */
    struct gl_logfs logs;
    struct gl_http *http;
    struct gl_daemon_human *human; /* NULL: passive */
    struct gl_ask_writer *ask_writer;
    struct gl_questions asks; /* what it has found; empty: passive */
    const char *socket;
    int socket_fd, tcp_fd;
    char address[GL_TCP_TEXT_BYTES]; /* address of tcp_fd */
    bool is_local;
    struct gl_crash_counter crashes;
    pthread_t thread, yielder;
    bool has_thread;
    struct gl_loop_task task, ping, drain, restart;
    struct gl_daemon_capacity capacity;
#ifdef GL_WITH_FAILPOINTS
    struct vfs_cut *cut;
#endif

    /* On the control thread. */
    enum gl_daemon_life life;
    bool is_detached; /* the node has stopped and gets no more events of executor and store */
    bool is_final;    /* the node is stopped for good and not replaced */
    bool has_session; /* the current node has a session */
    gl_ms session_at; /* when the session was opened */
    gl_ms pause_ms;   /* pause before the next node is made */
    gl_ms unreachable_since; /* since when the store or the executor is unreachable; 0: it is not */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    enum gl_daemon_stage stage;
    struct gl_why why;           /* the obstacle to being ready */
    enum gl_store_health health; /* health of the store, since there is a session ... */
    struct gl_why health_why;    /* ... and the reason, if it is not OK */
    uint64_t sessions_opened;
    bool is_unreachable; /* the store has not been reached yet */
    bool is_open;        /* everything is open, so it can be closed */
    bool has_command;    /* passive, and its command is not finished yet */
    bool is_yield_asked; /* another node has asked for the folder ... */
    bool is_yielding;    /* ... and `yielder` is closing this one */
    bool is_stopping;    /* being stopped, so too late to yield */
    bool has_given_up;   /* it cannot continue: another node may own our jobs, say */
    bool is_pinged;      /* `ping` is posted and has not run yet */
    bool is_draining;    /* the same for `drain` */
    uint64_t running;    /* running attempts, as `drain` found them; UINT64_MAX: not yet run */
};

/* ---- daemon.c ---- */
void gl_daemon_set_stage(struct gl_daemon *d, enum gl_daemon_stage stage);
/* Records an obstacle for waiting callers, and logs it if it is new. */
void gl_daemon_note(struct gl_daemon *d, int code, const char *why);
/* The node cannot continue. */
void gl_daemon_give_up(struct gl_daemon *d, int code, const char *why);

/* ---- daemon_node.c ---- */
void gl_daemon_listen_to_store(struct gl_daemon *d); /* once, before the first node is made */
int gl_daemon_make_node(struct gl_daemon *d, struct gl_why *reterr_why); /* node, executor, tidy */
void gl_daemon_request(struct gl_daemon *d, struct gl_request *rq);
/* Stops the node for good; then the stage is STOPPED. On the control thread. */
void gl_daemon_stop_node(struct gl_daemon *d);

/* ---- daemon_capacity.c ---- */
void gl_daemon_capacity_open(struct gl_daemon *d); /* measures at once */
/* For the node's configuration; `owner` is the daemon. Starts a measurement if the last is old. */
struct gl_capacity gl_daemon_capacity(void *owner);
/* The work thread has dropped its tasks. */
void gl_daemon_capacity_reset(struct gl_daemon *d);

/* ---- daemon_human.c ---- */
void gl_daemon_human_open(struct gl_daemon *d);
void gl_daemon_human_start(struct gl_daemon *d); /* starts its thread */
void gl_daemon_human_stop(struct gl_daemon *d);  /* stops it, but the loop may ... */
/* Before the node is freed: defaults that it wants written are written, but not reported to it. */
void gl_daemon_human_forget_node(struct gl_daemon *d);
void gl_daemon_human_free(struct gl_daemon *d); /* ... still have its task till here */

#endif
