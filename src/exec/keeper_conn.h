/* keeper_conn.h - the connection to a keeper: made, kept, and made again.
 *
 *   OFF ──connect()──► CONNECTING ──► GREETING ──► UP
 *                     ready ▲  │ ▲          │        │
 *                           │  │ └──pause◄──┴─broken─┘
 *                       STARTING (nobody listens)
 *
 * Everything happens on the loop's thread; nobody is called back from inside a call. What is sent
 * in one event of the loop goes out in one piece after it. Private to this folder. */
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
    void (*down)(void *owner, const char *why); /* also when the first try fails; once until `up` */
    /* Any message but those of the greeting. It and its arena are gone when this returns. */
    void (*message)(void *owner, struct gl_keeper_msg *m, struct gl_arena *a);
};

struct gl_keeper_conn {
    struct gl_loop *loop;
    struct gl_keeper_conn_events events;
    struct gl_keeper_spawn spawn; /* its texts are borrowed */
    const char *sock_path;        /* borrowed */
    gl_ms orphan_grace_ms;
    gl_ms session_until; /* by the node's clock; 0: not told yet */
    uint64_t incarnation;

    enum gl_keeper_conn_state state;
    uint64_t version;   /* of the protocol, as agreed; means something while UP */
    uint64_t pid;       /* of the keeper, as it says; the same */
    bool reported_down; /* `down` was the last thing we said */
    gl_ms pause_ms;
    pid_t launcher; /* to be waited for; 0: none */
    int fd, ready_fd;
    struct event *readable, *writable, *ready; /* of the descriptors above */
    struct event *timer, *flush, *ping;
    struct gl_buf in, out, ready_text;
    size_t in_used;
    struct gl_arena scratch; /* of one message */
};

/* `c` is all zero but for what is borrowed: loop, events, spawn, sock_path, orphan_grace_ms. */
int gl_keeper_conn_init(struct gl_keeper_conn *c, struct gl_why *reterr_why);
void gl_keeper_conn_done(struct gl_keeper_conn *c);

void gl_keeper_conn_connect(struct gl_keeper_conn *c, uint64_t incarnation);
/* Send what goes without waiting, and hang up for good. */
void gl_keeper_conn_close(struct gl_keeper_conn *c);

static inline bool gl_keeper_conn_is_up(const struct gl_keeper_conn *c)
{
    return c->state == GL_CONN_UP;
}

/* The node has a session until then, by its clock: the keeper is told. */
void gl_keeper_conn_session(struct gl_keeper_conn *c, gl_ms until);

/* It must be up: ask this keeper to end. Another is started when it has gone. */
void gl_keeper_conn_terminate(struct gl_keeper_conn *c);

/* It must be up. */
void gl_keeper_conn_send(struct gl_keeper_conn *c, const struct gl_keeper_msg *m);

#endif
