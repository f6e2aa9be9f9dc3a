/* sessions.c - the one thing a node renews. */
#include "node/node_state.h"

enum { TTL_MS = 15000, RETRY_MS = 500 };

static void feed_session(struct gl_node *n, const struct gl_session_info *s)
{
    struct gl_event ev = {.type = GL_EV_SESSION, .session = s->id, .number = s->incarnation};

    n->session = gl_str_dup(&n->strings, s->id);
    gl_node_feed(n, &ev);
    if (n->config.on_session != NULL) {
        n->config.on_session(n->config.owner, s->incarnation);
    }
}

static void on_session(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;
    struct gl_event stop = {.type = GL_EV_STOP};

    n->outstanding--;
    n->session_busy = false;
    n->now = n->ports.clock->now(n->ports.clock);
    n->config.trace->now = n->now;
    if (n->stopping) {
        n->session_due = INT64_MAX;
    } else if (req->status == GL_E_GONE) {
        n->lost = true;
        n->session_due = INT64_MAX;
        GL_TRACE(n->config.trace, NODE, .what = "session lost");
        gl_node_feed(n, &stop); /* someone else may own our jobs: start nothing more */
        if (n->config.on_session_lost != NULL) {
            n->config.on_session_lost(n->config.owner, "this node's session was declared dead");
        }
    } else if (req->status != 0) {
        n->session_due = n->now + RETRY_MS;
        if (n->session.n == 0 && n->config.on_trouble != NULL) {
            n->config.on_trouble(n->config.owner, req->status, req->why.text);
        }
    } else {
        n->session_due = n->now + TTL_MS / 3;
        if (n->session.n == 0) {
            feed_session(n, &req->session);
        }
    }
    gl_node_rearm(n);
}

static void make_nonce(struct gl_node *n)
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuv";
    uint8_t bytes[16];

    n->ports.entropy->fill(n->ports.entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        n->nonce[i] = alphabet[bytes[i] & 31];
    }
}

void gl_sessions_on_time(struct gl_node *n)
{
    struct gl_store *s = n->ports.store;

    if (n->session_due > n->now || n->session_busy) {
        return;
    }
    n->session_due = INT64_MAX;
    n->session_busy = true;
    n->outstanding++;
    n->session_req = (struct gl_store_req){.done = on_session, .owner = n};
    if (n->session.n == 0) {
        make_nonce(n);
        s->ops->session_open(s, &n->session_req, n->config.name, gl_str_of(n->nonce));
    } else {
        s->ops->session_renew(s, &n->session_req, n->session, TTL_MS);
    }
}
