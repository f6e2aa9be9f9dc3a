/* connect.h - the way of a command to the node of its data folder.
 *
 * There may be a node: then we are its client. If there is none, a command that needs one becomes
 * it: same lock, same socket, and it talks to itself over that socket like to any other. A node may
 * go away at any time; whoever still needs one finds the next, or becomes it.
 *
 * Commands that only read need no node: they ask it if it is there, else they open the store
 * themselves.
 *
 * A node that stays (glia serve) takes the folder over from a command that is the node: the command
 * becomes its client.
 *
 * With GLIA_SERVER the node is where that says, and nowhere else: nothing is embedded, and no store
 * is opened. */
#ifndef GL_CLI_CONNECT_CONNECT_H
#define GL_CLI_CONNECT_CONNECT_H

#include "api/request.h"
#include "cli/cli.h"
#include "cli/connect/http_client.h"

struct gl_daemon;

enum {
    GL_CONNECT_TIMEOUT_MS = 10000, /* how long a node may take to come up, or to leave */
    /* How long one that has heard a question, or a command, may be silent. Commands wait for the
     * store, and giving one up leaves open whether it was carried out. */
    GL_CONNECT_SILENCE_MS = 15000,
    GL_CONNECT_SILENCE_COMMAND_MS = 20000,
    GL_CONNECT_SILENCE_SHORT_MS = 5000, /* for those who want to know whether it answers at all */
    GL_CONNECT_SILENCE_STORE_MS = 8000, /* they know it does: a store is given up after 5 s, and
                                       then the node says what is wrong with it */
};

struct gl_connection {
    struct gl_cli *cli;
    struct gl_http_client client;
    struct gl_daemon *daemon; /* not NULL: this process is the node */
    bool has_no_node;         /* the last question was answered by the store, for want of a node */
    bool is_passive;    /* set by a command that needs a node only to be heard: the node it becomes
                           starts nothing and looks for nothing to do */
    bool is_remote;     /* the node is somewhere else: see GLIA_SERVER */
    bool is_store_down; /* we could not become the node: the store cannot be opened for now */
    bool was_connected; /* it has answered once: if it goes away, it may come back */
    int silence_ms; /* set by a command that has less patience with a silent node; 0: the usual */
    bool waits_for_node; /* set by a command that follows: questions wait for a silent node, ... */
    bool has_reported;   /* ... and that has been said */
    int broken;          /* the server's settings cannot be used: why */
    struct gl_why broken_why;
};

void gl_connect_init(struct gl_connection *r, struct gl_cli *cli);
void gl_connect_done(struct gl_connection *r); /* if we are the node, it ends */

/* Where one looks: the address of a node elsewhere, or the data folder. */
const char *gl_connect_location(const struct gl_connection *r);

struct gl_daemon_config;

/* What the settings say about a node that this process becomes. */
void gl_connect_node_config(const struct gl_cli *cli, struct gl_daemon_config *ret);

/* Connect to the node, or become it. */
int gl_connect_open(struct gl_connection *r, struct gl_why *reterr_why);

/* Connect to the node that is there, and never become it. GL_E_UNAVAILABLE: there is none. */
int gl_connect_find(struct gl_connection *r, struct gl_why *reterr_why);

/* One call. An answer that says what is wrong becomes a code and a sentence. A node that is there
 * and stays silent: GL_E_UNAVAILABLE, and gl_connect_is_silent(). */
int gl_connect_call(struct gl_connection *r, const char *method, const char *path, gl_str body,
                    struct gl_http_client_reply *ret, struct gl_why *reterr_why);

/* Was the last call given up because the node did not answer? */
bool gl_connect_is_silent(const struct gl_connection *r);

/* GL_E_UNAVAILABLE, and "the node of /data (process 12) has not answered for 15 s; ...". The node
 * is asked for its health first: of one that answers that, it is told why it is not ready. */
int gl_connect_explain_silence(const struct gl_connection *r, gl_ms ms, struct gl_why *reterr_why);

/* Is a call that ended with `code` worth another node? */
bool gl_connect_is_lost(const struct gl_connection *r, int code);

/* A short pause before the next try: a node that is ending, or has no disk, is not pestered. */
void gl_connect_pause(void);

/* Open and call, and once more with the next node if this one goes away: for calls that may be
 * repeated. */
int gl_connect_call_retrying(struct gl_connection *r, const char *method, const char *path,
                             gl_str body, struct gl_http_client_reply *ret,
                             struct gl_why *reterr_why);

/* A request of any verb, sent to the node: by a call, after opening the way, or with insistence. */
enum gl_connect_how { GL_CONNECT_CALL, GL_CONNECT_OPEN, GL_CONNECT_RETRY };
int gl_connect_send(struct gl_connection *r, enum gl_connect_how how, struct gl_request *rq,
                    struct gl_http_client_reply *ret, struct gl_why *reterr_why);

/* The path of such a request, in the command's arena. */
const char *gl_connect_path(const struct gl_connection *r, struct gl_request *rq);

/* A query, asked of the node or, without one, of the store. */
int gl_connect_ask(struct gl_connection *r, struct gl_request *rq, struct gl_buf *body,
                   struct gl_why *reterr_why);

/* If there is no node, and a job with this status would need one, say so. True: it was said. */
bool gl_connect_warn_no_node(const struct gl_connection *r, gl_str status);

#endif
