/* daemon_state.h - the memory of the node in this process, shared by daemon.c and daemon_node.c. */
#ifndef GL_APP_DAEMON_STATE_H
#define GL_APP_DAEMON_STATE_H

#include <pthread.h>

#include "app/daemon.h"
#include "app/stores.h"
#include "base/trace.h"
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

/* What main waits for while the loop works. */
enum gl_daemon_stage { GL_STAGE_STARTING, GL_STAGE_READY, GL_STAGE_FAILED, GL_STAGE_STOPPED };

/* The node, on the control thread. One whose session is lost makes way for the next.
 *
 *   UP ──session lost──► ENDING ──► BETWEEN ──pause──► UP */
enum gl_daemon_life { GL_LIFE_UP, GL_LIFE_ENDING, GL_LIFE_BETWEEN };

struct gl_daemon {
    struct gl_arena arena;
    const char *data;
    struct gl_daemon_config config; /* its texts in the arena */
    struct gl_pools_entry *pools;
    size_t pools_n;
    struct gl_why warning;         /* "" : none; else pools were reduced to fit a limit */
    struct gl_worker_place worker; /* in the arena */
    gl_str name;                   /* of the node */
    const char *store_url;         /* the store's URL without its password */
    const char *store_label;       /* "the store URL"; the one in the data folder: "the store" */
    struct gl_stores_memory memory;
    struct gl_lock lock;
    struct gl_identity identity;
    char token[GL_TOKEN_BYTES]; /* for listeners on TCP; the socket is guarded by uid */
    struct gl_entropy entropy;
    struct gl_textlog log;
    struct gl_trace trace;
    struct gl_loop *loop;
    struct gl_store *store;
    struct gl_exec *exec, *keeper; /* the keeper stands behind the other */
    struct gl_exec_events events;  /* of the node */
    struct gl_node *node;
    struct gl_blobfs blobs;
    struct gl_blob_thread *serve; /* on a shared store */
    struct gl_workthread *work;
    struct gl_tidyfs *tidy;
    struct gl_recorder *recorder; /* NULL: nothing is recorded */
    struct gl_logfs logs;
    struct gl_http *http;
    struct gl_daemon_human *human; /* NULL: passive */
    struct gl_ask_writer *ask_writer;
    struct gl_questions asks; /* what it has found; empty: passive */
    const char *socket;
    int socket_fd, tcp_fd;
    char address[GL_TCP_TEXT_BYTES]; /* of the latter */
    bool is_local;
    struct gl_crash_counter crashes;
    pthread_t thread, yielder;
    bool has_thread;
    struct gl_loop_task task, ping, drain, restart;
#ifdef GL_WITH_FAILPOINTS
    struct vfs_cut *cut;
#endif

    /* On the control thread. */
    enum gl_daemon_life life;
    bool is_detached;        /* the node has stopped, and hears nothing of executor and store */
    bool is_final;           /* told to stop: there is no next one */
    bool has_session;        /* the node that is up */
    gl_ms session_at;        /* when it had that */
    gl_ms pause_ms;          /* before the next one is made */
    gl_ms unreachable_since; /* when the store, or the executor, was first missed; 0: it is there */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    enum gl_daemon_stage stage;
    struct gl_why why;           /* what stands in the way of being ready */
    enum gl_store_health health; /* of the store, since there is a session ... */
    struct gl_why health_why;    /* ... and what that means, if it is not heard */
    uint64_t sessions_opened;    /* sessions opened so far */
    bool is_unreachable;         /* the store has not answered yet */
    bool is_open;                /* everything is there, so that it can be closed */
    bool has_command;            /* passive, and not yet done with its command */
    bool is_yield_asked;         /* another node wants the folder ... */
    bool is_yielding;            /* ... and gets it: `leaver` ends this one */
    bool is_stopping;            /* too late for that */
    bool has_given_up;           /* someone else may own our jobs */
    bool is_pinged;              /* the loop has not yet run `beat` */
    bool is_draining;            /* the same of `drain` */
    uint64_t running; /* attempts, as `drain` found them; UINT64_MAX: it has not yet run */
};

/* ---- daemon.c ---- */
void gl_daemon_set_stage(struct gl_daemon *d, enum gl_daemon_stage stage);
/* What stands in the way, for who waits and for the log. */
void gl_daemon_note(struct gl_daemon *d, int code, const char *why);
/* It cannot go on. */
void gl_daemon_give_up(struct gl_daemon *d, int code, const char *why);

/* ---- daemon_node.c ---- */
void gl_daemon_listen_to_store(struct gl_daemon *d);                     /* to the store, once */
int gl_daemon_make_node(struct gl_daemon *d, struct gl_why *reterr_why); /* node, executor, tidy */
void gl_daemon_request(struct gl_daemon *d, struct gl_request *rq);
/* For good: then the stage is STOPPED. On the control thread. */
void gl_daemon_stop_node(struct gl_daemon *d);

/* ---- daemon_human.c ---- */
void gl_daemon_human_open(struct gl_daemon *d);
void gl_daemon_human_start(struct gl_daemon *d); /* its thread */
void gl_daemon_human_stop(struct gl_daemon *d); /* its thread; the loop may still know of it, ... */
void gl_daemon_human_free(struct gl_daemon *d); /* ... and now does not */

#endif
