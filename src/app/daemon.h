/* daemon.h - a whole node in this process: the composition root.
 *
 *   gl_daemon_start()   take the folder's lock, open store and executor, serve the socket
 *   gl_daemon_drain()   take no more work, start nothing more; what runs may end
 *   gl_daemon_stop()    leave the folder to the next; running steps stay with the keeper
 *
 * daemon.c names the concrete adapters; only offline.c and stores.c do so besides. */
#ifndef GL_APP_DAEMON_H
#define GL_APP_DAEMON_H

#include "api/request.h"
#include "port/store.h"

struct gl_daemon;

struct gl_daemon_config { /* borrowed during the call */
    const char *data;     /* the data folder, absolute */
    gl_str context;       /* whose jobs it runs; borrowed for as long as the node lives */
    const char *store;    /* the URL of a store, as port/storeurl.h has it; NULL or "": SQLite */
    bool allow_loss;      /* use the store although its settings may lose data silently */
    gl_ms session_ttl_ms, orphan_grace_ms; /* on a shared store: node/node.h says what they mean */
    const char *name;                      /* of the node; NULL or "": the machine's */
    const char *stack, *env_scope;         /* NULL or "": none */
    const char *what;                      /* "serve", "run": what the lock is held for */
    const char *pools;                     /* as in GLIA_POOLS; NULL or "": the default */
    const char *executor_pools;            /* more pools for workers; NULL or "": none */
    uint32_t executor_slots;               /* of the usual one; 0: 50 */
    const char *runs_root;                 /* MN_RUNS_ROOT, absolute; NULL or "": in `data` */
    const char *modules, *modules_trusted; /* as exec/module_exec.h has them; NULL or "": none */
    const char *listen; /* listen on TCP, too, as os/tcp.h has it; NULL or "": no */
    bool debug;         /* say everything, on stderr */
    bool stays;         /* it leaves the folder to nobody who asks for it */
    bool passive;       /* carry out commands, start nothing and look for nothing to do */
    gl_ms keep_ms;      /* retention: core/core.h says what these mean */
    int64_t keep_jobs;
    int64_t keep_bytes;
    gl_ms keep_workspaces_ms;
    uint32_t body_bytes;  /* node/node.h */
    int64_t record_bytes; /* of the flight recorder; 0: nothing is recorded */
};

/* Returns when the node is ready; one that stays also while its shared store is away, and it
 * becomes ready when that is there. It then runs on threads of its own, which take no signals.
 * GL_E_BUSY: another process is the node of this folder.
 *
 * On a shared store others may declare the node's session dead. Then it begins a new one here, and
 * is not ready meanwhile. */
int gl_daemon_start(struct gl_daemon **ret, const struct gl_daemon_config *config,
                    struct gl_why *reterr_why);

/* Returns when nothing of it is left. NULL is fine. */
void gl_daemon_stop(struct gl_daemon *d);

/* What a passive node was there for is done: from here on it makes way, too. */
void gl_daemon_command_done(struct gl_daemon *d);

/* Another node has asked for the folder, and gets it: this one ends by itself. What is left to do
 * is gl_daemon_stop(). */
bool gl_daemon_is_yielding(struct gl_daemon *d);

/* From here on submissions are refused and nothing starts. Does not wait: it returns how many
 * attempts ran when the control thread last looked (UINT64_MAX: it has not yet) and asks it to look
 * again. */
uint64_t gl_daemon_drain(struct gl_daemon *d);

/* Has the control thread got round to its work since the last call? A pulse for whoever watches
 * over this process. */
bool gl_daemon_is_responsive(struct gl_daemon *d);

/* Does it take work? *ret_why: what stood in the way last; its code is 0 if nothing did. */
bool gl_daemon_is_ready(struct gl_daemon *d, struct gl_why *ret_why);
/* Does the store take what it is told, since the node was ready first? If not, why. */
enum gl_store_health gl_daemon_store_health(struct gl_daemon *d, struct gl_why *ret_why);
/* How many sessions it has opened: one, unless others have taken it for dead. */
uint64_t gl_daemon_sessions_opened(struct gl_daemon *d);

/* Why this node cannot go on, although nobody told it to stop; NULL: it goes on. */
const char *gl_daemon_lost(struct gl_daemon *d);

/* A problem that limits the node and that its operator can fix; "" : none. */
const char *gl_daemon_warning(const struct gl_daemon *d);

/* "127.0.0.1:7464": where it listens on TCP; "" : it does not. *ret_is_local: nobody else than this
 * machine can reach that. */
const char *gl_daemon_address(const struct gl_daemon *d, bool *ret_is_local);

/* Jobs that are held because each crashed this node again and again; their number. */
size_t gl_daemon_quarantined(const struct gl_daemon *d, const gl_str **ret);

#endif
