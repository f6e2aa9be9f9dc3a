/* daemon.h - runs a whole node in this process: the composition root.
 *
 *   gl_daemon_start()   lock the data folder, open store and executor, serve the socket
 *   gl_daemon_drain()   accept no more jobs, start nothing more; running attempts may end
 *   gl_daemon_stop()    close everything and release the folder; running steps stay with the keeper
 *
 * src/app/ is the only place that names concrete adapters. The node runs on threads of its own; all
 * functions here may be called from the main thread. */
#ifndef GL_APP_DAEMON_H
#define GL_APP_DAEMON_H

#include "api/request.h"
#include "port/store.h"

struct gl_daemon;

struct gl_daemon_config { /* borrowed during the call */
    const char *data;     /* the data folder, absolute */
    gl_str context;    /* the context whose jobs it runs; borrowed for as long as the node lives */
    const char *store; /* URL of the store (port/storeurl.h); NULL or "": SQLite */
    bool allow_loss;   /* accept a store whose settings may silently lose data */
    gl_ms session_ttl_ms, orphan_grace_ms; /* for shared stores; see node/node.h */
    const char *name;                      /* name of the node; NULL or "": the machine's */
    const char *stack, *env_scope;         /* NULL or "": none */
    const char *what;                      /* purpose of the lock: "serve", "run" */
    const char *pools;                     /* as in GLIA_POOLS; NULL or "": the default */
    const char *labels;                    /* as in GLIA_LABELS; NULL or "": none */
    const char *executor_pools;            /* more pools for workers; NULL or "": none */
    uint32_t executor_slots;               /* slots of the default pool for workers; 0: 50 */
    const char *runs_root;                 /* MN_RUNS_ROOT, absolute; NULL or "": inside `data` */
    const char *modules, *modules_trusted; /* as in exec/module_exec.h; NULL or "": none */
    const char *listen;                    /* also listen on TCP (os/tcp.h); NULL or "": no */
    bool debug;                            /* log everything to stderr */
    bool stays;                            /* never yields the folder to another node */
    bool passive;  /* carry out commands, but start nothing and look for no work */
    gl_ms keep_ms; /* retention; see core/core.h */
    int64_t keep_jobs;
    int64_t keep_bytes;
    gl_ms keep_workspaces_ms;
    uint32_t body_bytes;  /* see node/node.h */
    int64_t log_bytes;    /* see node/node.h */
    int64_t record_bytes; /* size of the flight recorder; 0: off */
};

/* Returns when the node is ready. One that stays also returns while its shared store is
 * unreachable; it becomes ready when the store is back. The node runs on threads of its own, which
 * receive no signals. GL_E_BUSY: another process is the node of this folder.
 *
 * On a shared store other nodes may declare the node's session dead. It then opens a new one, and
 * is not ready meanwhile. */
int gl_daemon_start(struct gl_daemon **ret, const struct gl_daemon_config *config,
                    struct gl_why *reterr_why);

/* Returns when everything is closed. NULL is allowed. */
void gl_daemon_stop(struct gl_daemon *d);

/* A passive node has finished its command: from now on it yields the folder, too. */
void gl_daemon_command_done(struct gl_daemon *d);

/* Another node has asked for the folder, and this one is yielding it. Only gl_daemon_stop() is left
 * to call. */
bool gl_daemon_is_yielding(struct gl_daemon *d);

/* From now on submissions are refused and nothing starts. Does not wait: returns how many attempts
 * were running when the control thread last looked (UINT64_MAX: it has not yet), and makes it look
 * again. */
uint64_t gl_daemon_drain(struct gl_daemon *d);

/* Has the control thread run since the last call? For a watchdog. */
bool gl_daemon_is_responsive(struct gl_daemon *d);

/* Does the node accept work? *ret_why: the last obstacle; its code is 0 if there was none. */
bool gl_daemon_is_ready(struct gl_daemon *d, struct gl_why *ret_why);
/* Health of the store, once the node has been ready; if it is not OK, why. */
enum gl_store_health gl_daemon_store_health(struct gl_daemon *d, struct gl_why *ret_why);
/* How many sessions the node has opened: one, unless other nodes declared it dead. */
uint64_t gl_daemon_sessions_opened(struct gl_daemon *d);

/* Why the node stopped by itself; NULL: it has not. */
const char *gl_daemon_lost(struct gl_daemon *d);

/* A problem that limits the node and that its operator can fix; "": none. */
const char *gl_daemon_warning(const struct gl_daemon *d);

/* "127.0.0.1:7464": where it listens on TCP; "": it does not. *ret_is_local: reachable from this
 * machine only. */
const char *gl_daemon_address(const struct gl_daemon *d, bool *ret_is_local);

/* The jobs quarantined because they repeatedly crashed this node; returns their number. */
size_t gl_daemon_quarantined(const struct gl_daemon *d, const gl_str **ret);

#endif
