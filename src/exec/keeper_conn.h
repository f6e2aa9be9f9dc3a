/* keeper_conn.h - the connection to a keeper: opened, kept open, and reopened.
 *
 *   OFF ──connect()──► CONNECTING ──► GREETING ──► UP
 *                     ready ▲  │ ▲          │        │
 *                           │  │ └──pause◄──┴─failed─┘
 *                       STARTING (nothing listens)
 *
 * Everything runs on the loop's thread; no callback is called from inside a call. Messages sent
 * during one event of the loop leave in one write after it. Private to this folder.
 *
 * Call order: gl_keeper_conn_init(), gl_keeper_conn_connect() once, gl_keeper_conn_close(),
 * gl_keeper_conn_done(). */
#ifndef GL_EXEC_KEEPER_CONN_H
#define GL_EXEC_KEEPER_CONN_H

#include "exec/keeper_spawn.h"
#include "os/loop.h"
#include "port/keeper_protocol.h"

struct event;

#define GL_KEEPER_CONN_STATES(X)                                                          \
    X(OFF, GL_BIT(GL_CONN_CONNECTING) | GL_BIT(GL_CONN_CLOSED))                           \
    X(CONNECTING, GL_BIT(GL_CONN_STARTING) | GL_BIT(GL_CONN_GREETING) |                   \
                      GL_BIT(GL_CONN_CONNECTING) | GL_BIT(GL_CONN_CLOSED))                \
    X(STARTING, GL_BIT(GL_CONN_CONNECTING) | GL_BIT(GL_CONN_CLOSED))                      \
    X(GREETING, GL_BIT(GL_CONN_UP) | GL_BIT(GL_CONN_CONNECTING) | GL_BIT(GL_CONN_CLOSED)) \
    X(UP, GL_BIT(GL_CONN_CONNECTING) | GL_BIT(GL_CONN_CLOSED))                            \
    X(CLOSED, 0)

enum gl_keeper_conn_state {
#define X(name, next) GL_CONN_##name,
    GL_KEEPER_CONN_STATES(X)
#undef X
};

struct gl_keeper_conn_events {
    void *owner;
    void (*up)(void *owner, gl_str epoch);
    void (*down)(void *owner,
                 const char *why); /* also when the first attempt fails; once until `up` */
    /* Any message after WELCOME. It and its arena are valid until this returns. */
    void (*message)(void *owner, struct gl_keeper_msg *m, struct gl_arena *a);
};

struct gl_keeper_conn {
    struct gl_loop *loop;
    struct gl_keeper_conn_events events;
    struct gl_keeper_spawn spawn; /* its strings are borrowed */
    const char *sock_path;        /* borrowed */
    gl_ms orphan_grace_ms;
    gl_ms session_until; /* by the node's clock; 0: not set yet */
    uint64_t incarnation;

    enum gl_keeper_conn_state state;
    uint64_t version;   /* of the protocol, as agreed; valid while UP */
    uint64_t pid;       /* of the keeper, as it reported; valid while UP */
    bool reported_down; /* `down` was the last event reported */
    gl_ms pause_ms;
    pid_t launcher; /* to wait for; 0: none */
    int fd, ready_fd;
    struct event *readable, *writable, *ready; /* of the descriptors above */
    struct event *timer, *flush, *ping;
    struct gl_buf in, out, ready_text;
    size_t in_used;
    struct gl_arena scratch; /* for one message */
};

/* `c` must be all zero except for loop, events, spawn, sock_path and orphan_grace_ms, which are
 * borrowed. */
int gl_keeper_conn_init(struct gl_keeper_conn *c, struct gl_why *reterr_why);
void gl_keeper_conn_done(struct gl_keeper_conn *c);

void gl_keeper_conn_connect(struct gl_keeper_conn *c, uint64_t incarnation);
/* Send what can be sent without blocking, then disconnect for good. */
void gl_keeper_conn_close(struct gl_keeper_conn *c);

static inline bool gl_keeper_conn_is_up(const struct gl_keeper_conn *c)
{
    return c->state == GL_CONN_UP;
}

/* Report to the keeper that the node has a session until then, by the node's clock. */
void gl_keeper_conn_session(struct gl_keeper_conn *c, gl_ms until);

/* Ask this keeper to exit. It must be up. Another one is started once it is gone. */
void gl_keeper_conn_terminate(struct gl_keeper_conn *c);

/* It must be up. */
void gl_keeper_conn_send(struct gl_keeper_conn *c, const struct gl_keeper_msg *m);

#endif
