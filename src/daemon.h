/* daemon.h - a whole node in this process: the composition root.
 *
 *   gl_daemon_start()   take the folder's lock, open store and executor, serve the socket
 *   gl_daemon_stop()    leave the folder to the next; running steps stay with the keeper
 *   gl_daemon_query()   answer one question from a folder that has no node
 *
 * daemon.c is the only file that names concrete adapters. */
#ifndef GL_DAEMON_H
#define GL_DAEMON_H

#include "api/request.h"

struct gl_daemon;

struct gl_daemon_config {
    const char *data;  /* the data folder, absolute; copied */
    const char *pools; /* as in GLIA_POOLS; NULL: the default */
    bool debug;        /* say everything, on stderr */
};

/* Returns when the node is ready. It then runs on threads of its own, which take no signals.
 * GL_E_BUSY: another process is the node of this folder. */
int gl_daemon_start(struct gl_daemon **ret, const struct gl_daemon_config *config,
                    struct gl_why *reterr_why);

/* Returns when nothing of it is left. NULL is fine. */
void gl_daemon_stop(struct gl_daemon *d);

/* LIST, STATUS, EVENTS (without waiting) or HUMAN: the answer is appended to `body`. Changes
 * nothing, starts nothing, takes no lock. */
int gl_daemon_query(const char *data, struct gl_request *rq, struct gl_buf *body,
                    struct gl_why *reterr_why);

#endif
