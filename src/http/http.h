/* http.h - the API of a node over HTTP, on sockets that listen already.
 *
 * libmicrohttpd runs one HTTP thread per listener beside the control thread. That thread reads and
 * checks requests, passes those for the node to the loop as a `struct gl_request`, and suspends the
 * connection until the answer comes back, so a slow or dead client delays no one else. Requests for
 * files only (blobs, logs) are served on the HTTP thread.
 *
 * The unix socket accepts the user of the node and root; TCP requires the node's token. Web pages
 * of other origins are always refused.
 *
 *   gl_http_start()     serve
 *   gl_http_refuse()    answer new requests with "unavailable"; requests already passed on are
 *                       still answered
 *   gl_http_stop()      close all connections and end the threads */
#ifndef GL_HTTP_HTTP_H
#define GL_HTTP_HTTP_H

#include <sys/types.h>

#include "api/request.h"
#include "os/loop.h"
#include "port/blob.h"
#include "port/entropy.h"
#include "port/logs.h"

struct gl_http;

struct gl_http_config {
    int listen_fd;     /* a unix socket; taken, also when starting fails */
    uid_t uid;         /* the user who may connect there, besides root */
    int tcp_fd;        /* listening already; taken as well; -1: none */
    const char *token; /* 64 hex digits: what clients over TCP must present; needed with tcp_fd */
    struct gl_loop *loop; /* borrowed until gl_http_stop() returns, like all that follows */
    /* Called on the loop's thread; answer by calling rq->done there, exactly once. */
    void (*ask)(void *owner, struct gl_request *rq);
    void (*log)(void *owner, const char *line); /* from any thread; may be NULL */
    /* A client asks this node to yield its folder. Called on the HTTP thread; NULL: the node never
     * yields. */
    void (*yield)(void *owner);
    void *owner;
    struct gl_blob *blob;
    struct gl_logs *logs;
    struct gl_entropy *entropy;
    const char *runs_root; /* where the folders of bundles' runs are; NULL: there are none */
    const char *node;      /* on a shared store: the node's name, as recorded in steps; else NULL */
};

int gl_http_start(struct gl_http **ret, const struct gl_http_config *config,
                  struct gl_why *reterr_why);

void gl_http_refuse(struct gl_http *h);

/* Call from any thread but the loop's, after gl_http_refuse() has returned and all requests passed
 * on have been answered. */
void gl_http_stop(struct gl_http *h);

#endif
