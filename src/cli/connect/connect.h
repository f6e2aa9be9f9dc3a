/* connect.h - connects a command to the node of its data folder.
 *
 * If there is a node, the command is its client. If there is none, a command that needs one becomes
 * the node: it takes the lock, listens on the socket and connects to itself. A node may end at any
 * time; a command that still needs one finds the next, or becomes it. `glia serve` takes the folder
 * over from such a command, which then becomes its client.
 *
 * Queries never start a node: without one they read the store. With GLIA_SERVER the node is at that
 * address only: the command never becomes a node and never opens a store.
 *
 *   gl_connect_init()
 *   gl_connect_open()    connect to the node of the data folder, or become it
 *   gl_connect_find()    connect to a node, never become one
 *   gl_connect_send()    send a request
 *   gl_connect_ask()     query the node or, without one, the store
 *   gl_connect_done()    if this process is the node, it stops */
#ifndef GL_CLI_CONNECT_CONNECT_H
#define GL_CLI_CONNECT_CONNECT_H

#include "api/request.h"
#include "cli/cli.h"
#include "cli/connect/http_client.h"

struct gl_daemon;

enum {
    GL_CONNECT_TIMEOUT_MS = 10000, /* for a node to start, or to stop */
    /* How long a node may take to answer a query or a command. Commands wait for the store, and
     * abandoning one leaves its outcome unknown. */
    GL_CONNECT_SILENCE_MS = 15000,
    GL_CONNECT_SILENCE_COMMAND_MS = 20000,
    GL_CONNECT_SILENCE_SHORT_MS = 5000, /* to check whether it answers at all */
    GL_CONNECT_SILENCE_STORE_MS = 8000, /* the node is known to answer: it gives up on its store
                                           after 5 s, and then reports the error */
};

struct gl_connection {
    struct gl_cli *cli;
    struct gl_http_client client;
    struct gl_daemon *daemon; /* not NULL: this process is the node */
    bool has_no_node;   /* the last query was answered from the store, because there is no node */
    bool is_passive;    /* set by a command that only needs its request carried out: if this process
                           becomes the node, it starts nothing and looks for no work */
    bool is_remote;     /* the node is somewhere else: see GLIA_SERVER */
    bool is_store_down; /* we could not become the node: the store cannot be opened for now */
    bool was_connected; /* a node has answered before: if it goes away, it may come back */
    int silence_ms; /* set by a command with a shorter timeout for a silent node; 0: the default */
    bool waits_for_node;   /* set by a command that follows: queries wait for a silent node, ... */
    bool has_reported;     /* ... and this was reported */
    bool has_noted_folder; /* that the data folder does not exist */
    int broken;            /* error code if the server's settings cannot be used */
    struct gl_why broken_why;
};

void gl_connect_init(struct gl_connection *r, struct gl_cli *cli);
void gl_connect_done(struct gl_connection *r); /* if this process is the node, it stops */

/* The address of a remote node, or the data folder. */
const char *gl_connect_location(const struct gl_connection *r);

struct gl_daemon_config;

/* The configuration of a node in this process, from the settings. */
void gl_connect_node_config(const struct gl_cli *cli, struct gl_daemon_config *ret);

/* Connect to the node, or become it. */
int gl_connect_open(struct gl_connection *r, struct gl_why *reterr_why);

/* Connect to a running node, and never become one. GL_E_UNAVAILABLE: there is none. */
int gl_connect_find(struct gl_connection *r, struct gl_why *reterr_why);

/* One call. An error reply becomes a code and a sentence. If the node stays silent:
 * GL_E_UNAVAILABLE, and gl_connect_is_silent(). */
int gl_connect_call(struct gl_connection *r, const char *method, const char *path, gl_str body,
                    struct gl_http_client_reply *ret, struct gl_why *reterr_why);

/* Did the last call time out? */
bool gl_connect_is_silent(const struct gl_connection *r);

/* Returns GL_E_UNAVAILABLE, with "the node of /data (process 12) has not answered for 15 s; ...".
 * First checks the node's health: if the node answers, the sentence has the reason why it is not
 * ready. */
int gl_connect_explain_silence(const struct gl_connection *r, gl_ms ms, struct gl_why *reterr_why);

/* Is the node gone, so that a call that failed with `code` may be retried with another node? */
bool gl_connect_is_lost(const struct gl_connection *r, int code);

/* A short pause between attempts to connect. */
void gl_connect_pause(void);

/* Open and call, and retry with the next node if this one goes away: for calls that may be
 * repeated. */
int gl_connect_call_retrying(struct gl_connection *r, const char *method, const char *path,
                             gl_str body, struct gl_http_client_reply *ret,
                             struct gl_why *reterr_why);

/* How to send a request: call only; open first; or open and retry. */
enum gl_connect_how { GL_CONNECT_CALL, GL_CONNECT_OPEN, GL_CONNECT_RETRY };
int gl_connect_send(struct gl_connection *r, enum gl_connect_how how, struct gl_request *rq,
                    struct gl_http_client_reply *ret, struct gl_why *reterr_why);

/* The path of such a request, in the command's arena. */
const char *gl_connect_path(const struct gl_connection *r, struct gl_request *rq);

/* Send a query to the node or, without one, to the store. */
int gl_connect_ask(struct gl_connection *r, struct gl_request *rq, struct gl_buf *body,
                   struct gl_why *reterr_why);

/* Warn that there is no node if a job with this status needs one. True: a warning was printed. */
bool gl_connect_warn_no_node(const struct gl_connection *r, gl_str status);

#endif
