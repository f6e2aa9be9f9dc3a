/* postgres_parts.h - internals of the PostgreSQL store, shared by the files of this folder.
 *
 * Everything runs on the loop's thread. The connections, each with its own task:
 *
 *   control    connects first: checks the server and creates what is missing; then sessions,
 *              `resolve`, contexts, and slow statements
 *   listener   receives and sends wake-ups
 *   reader     all reads, pipelined
 *   lanes      commits; each lane has one group in flight at a time
 *
 * A request is an op. An op with its result waits in `finished` until the next turn of the loop, so
 * that no caller is called back from inside a call, or while libpq's results are being read. */
#ifndef GL_STORE_POSTGRES_PARTS_H
#define GL_STORE_POSTGRES_PARTS_H

#include "base/map.h"
#include "store/common/sql.h"
#include "store/postgres/postgres.h"
#include "store/postgres/postgres_args.h"
#include "store/postgres/postgres_schema.h"
#include "store/postgres/postgres_url.h"

struct event;
struct gl_postgres;
struct gl_postgres_conn;

/* ---- calls in flight on a connection ---- */

enum gl_postgres_end {
    GL_POSTGRES_END_OK,
    GL_POSTGRES_END_ERROR,  /* the server reported an error and rolled back */
    GL_POSTGRES_END_LOST,   /* sent, then the connection was lost */
    GL_POSTGRES_END_UNSENT, /* never sent: no connection in time */
};

struct gl_postgres_call {
    struct gl_link link;
    const struct gl_postgres_call_type *type;
    gl_ms until; /* deadline for a connection; once sent, the answer has its own */
    bool slow;   /* gets a longer timeout */
};

struct gl_postgres_outcome {
    enum gl_postgres_end end;
    int status;    /* status for the request: GL_E_UNAVAILABLE, ...; 0 with END_OK */
    char state[6]; /* the server's SQLSTATE, with END_ERROR */
    struct gl_why why;
};

struct gl_postgres_call_type {
    /* Queue the statements; false: libpq refused them. */
    bool (*send)(struct gl_postgres_conn *c, struct gl_postgres_call *call);
    /* Handle the next result. True: the call keeps it and will clear it. */
    bool (*result)(struct gl_postgres_conn *c, struct gl_postgres_call *call, PGresult *r);
    void (*end)(struct gl_postgres_conn *c, struct gl_postgres_call *call,
                const struct gl_postgres_outcome *outcome);
};

/* ---- connections ---- */

enum gl_postgres_role {
    GL_POSTGRES_CONTROL,
    GL_POSTGRES_LISTENER,
    GL_POSTGRES_READER,
    GL_POSTGRES_LANE, /* the first lane */
    GL_POSTGRES_CONNS_MAX = GL_POSTGRES_LANE + GL_POSTGRES_LANES_MAX,
};

enum gl_postgres_state {
    GL_POSTGRES_DOWN,
    GL_POSTGRES_CONNECTING,
    GL_POSTGRES_IN_HANDSHAKE, /* postgres_handshake.c */
    GL_POSTGRES_READY,
};

enum gl_postgres_handshake { /* the steps of the handshake, in this order */
                             GL_POSTGRES_HANDSHAKE_SERVER,
                             GL_POSTGRES_HANDSHAKE_IDENTITY,
                             GL_POSTGRES_HANDSHAKE_MAKE,
                             GL_POSTGRES_HANDSHAKE_SETTINGS,
                             GL_POSTGRES_HANDSHAKE_DONE,
};

struct gl_postgres_conn {
    struct gl_postgres *store;
    int number; /* a role; GL_POSTGRES_LANE + i for lane i */
    enum gl_postgres_state state;
    PGconn *pg;
    struct event *event;
    int fd;
    short watched; /* EV_READ, EV_WRITE */

    struct gl_link waiting, sent; /* of struct gl_postgres_call */
    size_t sent_n, depth;
    struct gl_postgres_outcome failure; /* of the first call in `sent`; END_OK: none */
    struct gl_buf asked;                /* int32s: what each outstanding result answers */
    size_t asked_at;
    struct gl_buf prepared; /* one byte per statement and context: 0 no, 1 prepared or sent */

    enum gl_postgres_handshake handshake;
    PGresult *handshake_last; /* the last result of the current step */
    bool made;
    gl_ms until;    /* deadline of connecting and handshake */
    gl_ms retry_at; /* in state DOWN */
    gl_ms backoff_ms;
    size_t host, hosts_tried;
    bool was_ready, dropped; /* was_ready: at least once; dropped: close in the next turn */
    struct gl_why why;       /* why it is down */
};

/* ---- contexts ---- */

enum gl_postgres_context_state {
    GL_POSTGRES_CONTEXT_UNKNOWN,
    GL_POSTGRES_CONTEXT_ASKED,
    GL_POSTGRES_CONTEXT_READY,
};

struct gl_postgres_context {
    struct gl_postgres_call call; /* looks the context up, or creates it */
    struct gl_postgres *store;
    enum gl_postgres_context_state state;
    bool found, was_ready;
    int version;
    size_t number;        /* assigned when found, from 1; 0 is the store itself */
    uint64_t hash;        /* of its name */
    struct gl_link reads; /* ops waiting for the lookup */
    size_t commits_n;     /* commits not yet finished */
    gl_str name, schema;
    char text[];
};

/* ---- requests ---- */

enum gl_postgres_mode { /* Reads do not conflict, nor do PUT_NEWs: the first one wins. */
                        GL_POSTGRES_READS,
                        GL_POSTGRES_CREATES,
                        GL_POSTGRES_WRITES,
                        GL_POSTGRES_MODES,
};

struct gl_postgres_key { /* what a transaction touches; see postgres_order.c */
    uint32_t hash;       /* a collision costs time, nothing else */
    uint8_t mode;
};

struct gl_postgres_op {
    struct gl_call call;           /* first */
    struct gl_postgres_call query; /* for all but commits; its link is also used in `finished` */
    struct gl_postgres *store;
    struct gl_postgres_context *context; /* NULL: not needed */
    PGresult *result;
    size_t retries_n;

    /* For commits and resolves. */
    struct gl_link order; /* in call order, until completed */
    struct gl_link queue; /* in its lane, its group, or `held` */
    bool is_finished, is_alone, is_asked;
    int lane;
    uint32_t batch, number; /* its position in the group: batch, and number in it */
    size_t bytes;
    struct gl_postgres_key *keys;
    size_t keys_n;
};

/* ---- lanes ---- */

enum { GL_POSTGRES_BATCHES_MAX = 64 };

struct gl_postgres_group { /* commits in one transaction of the server */
    struct gl_postgres_call call;
    struct gl_link ops;
    size_t ops_n, batches_n, answered_n;
    size_t retries_n;
    int64_t forget; /* forget transaction ids below this; 0: none */
    bool is_busy;
    PGresult *results[GL_POSTGRES_BATCHES_MAX]; /* one per batch */
};

struct gl_postgres_lane {
    struct gl_link queue; /* waiting commits */
    struct gl_postgres_group group;
    size_t unfinished_n, groups_n;
};

struct gl_postgres_bucket {
    uint32_t n[GL_POSTGRES_MODES]; /* unfinished transactions, by mode */
    int lane;                      /* their lane; -1: several */
};

enum { GL_POSTGRES_BUCKETS = 1 << 15, GL_POSTGRES_CELLS = 1 << 13 };

struct gl_postgres_cell { /* while planning one group: the last batch that touches a key */
    uint32_t stamp, hash;
    uint8_t last[GL_POSTGRES_MODES]; /* by mode: batch + 1 */
};

/* ---- the store ---- */

struct gl_postgres {
    struct gl_calls calls; /* first */
    struct gl_postgres_lib lib;
    struct gl_arena arena; /* texts of the URL */
    struct gl_postgres_url url;
    bool allow_loss, check_only;
    struct gl_buf identity; /* "" : not known yet */

    struct gl_link finished;
    struct gl_link order; /* commits and resolves, in call order */
    struct gl_link held;  /* commits that conflict with more than one lane */
    struct event *turn, *tick, *notify_timer;
    bool is_ticking, is_open; /* is_open: the first connections are ready, work may begin */
    int rejection;            /* why the server is refused: GL_E_GONE, ...; 0: it is not */
    struct gl_why rejection_why;

    struct gl_postgres_conn conns[GL_POSTGRES_CONNS_MAX];
    size_t conns_n;
    struct gl_postgres_lane lanes[GL_POSTGRES_LANES_MAX];
    struct gl_postgres_bucket *buckets;
    struct gl_postgres_cell *cells;
    uint32_t stamp;
    struct gl_map contexts;
    size_t contexts_n;
    struct gl_postgres_args args;
    struct gl_buf text;      /* scratch */
    struct gl_arena results; /* of the request being completed */

    struct gl_map notifications; /* "context word", to be sent */
    bool notify_sent, notify_pausing;

    struct gl_findings *findings; /* gl_postgres_check(): the output */
    struct gl_arena *findings_arena;
};

/* Run a turn soon: there is something to do. */
void gl_postgres_schedule_turn(struct gl_postgres *s);
/* The request has its result; its caller is called back in the next turn. */
void gl_postgres_finish(struct gl_postgres_op *op);
/* Send the op on the connection responsible for such reads. */
void gl_postgres_push_read(struct gl_postgres_op *op);
void gl_postgres_fail(struct gl_postgres_op *op, int status, const struct gl_why *why);

/* postgres_conn.c */
void gl_postgres_conn_init(struct gl_postgres *s, int number);
void gl_postgres_conn_done(struct gl_postgres_conn *c);
void gl_postgres_conn_push(struct gl_postgres_conn *c, struct gl_postgres_call *call);
void gl_postgres_conn_flush(struct gl_postgres_conn *c); /* connect, or send waiting calls */
void gl_postgres_conn_tick(struct gl_postgres_conn *c, gl_ms now);
/* Close and reconnect later; everything sent is lost. */
void gl_postgres_conn_drop(struct gl_postgres_conn *c, const char *why);
void gl_postgres_conn_fail_waiting(struct gl_postgres_conn *c, int status,
                                   const struct gl_why *why);
/* Write as much as the socket accepts; false: the connection is gone. */
bool gl_postgres_conn_write(struct gl_postgres_conn *c);
/* Why there is no connection, for people. */
const char *gl_postgres_conn_why(const struct gl_postgres_conn *c);
/* Send a statement with the arguments in store->args, preparing it first if needed. */
bool gl_postgres_conn_send(struct gl_postgres_conn *c, int statement,
                           const struct gl_postgres_context *context);
bool gl_postgres_conn_send_text(struct gl_postgres_conn *c, const char *sql); /* no arguments */

/* postgres_handshake.c: both return false if the connection is gone. */
bool gl_postgres_handshake_begin(struct gl_postgres_conn *c);
bool gl_postgres_handshake_readable(struct gl_postgres_conn *c);

/* postgres_error.c: classifies SQLSTATE codes. */
void gl_postgres_error_outcome(struct gl_postgres *s, const PGresult *r,
                               struct gl_postgres_outcome *ret);
bool gl_postgres_error_is_retried(const char *state);
bool gl_postgres_error_is_poison(const char *state); /* caused by a single transaction */
bool gl_postgres_error_ends_connection(const char *state);

/* postgres_contexts.c */
struct gl_postgres_context *gl_postgres_context_of(struct gl_postgres *s, gl_str name);
void gl_postgres_contexts_done(struct gl_postgres *s);
void gl_postgres_contexts_recheck(struct gl_postgres *s); /* look all contexts up again */
void gl_postgres_context_ask(struct gl_postgres_context *x, bool make);
void gl_postgres_context_free_if_unused(
    struct gl_postgres_context *x); /* if nothing refers to it */

/* postgres_order.c: distributes commits over lanes and completes them in call order. */
void gl_postgres_order_init(struct gl_postgres *s);
void gl_postgres_order_done(struct gl_postgres *s);
void gl_postgres_order_add(struct gl_postgres_op *op);
/* A commit of a lane is finished: assign commits that waited for it. */
void gl_postgres_order_release(struct gl_postgres_op *op);
void gl_postgres_order_turn(struct gl_postgres *s);
/* Assign the op to a batch of the group being planned; false: it must go into a later group. */
bool gl_postgres_order_plan(struct gl_postgres *s, struct gl_postgres_op *op, bool is_first);

/* postgres_lane.c */
void gl_postgres_lanes_init(struct gl_postgres *s);
void gl_postgres_lanes_turn(struct gl_postgres *s);
void gl_postgres_lanes_tick(struct gl_postgres *s, gl_ms now);
void gl_postgres_lanes_fail(
    struct gl_postgres *s, struct gl_postgres_context *x, int status,
    const struct gl_why *why); /* fail waiting commits; NULL: of all contexts */

/* postgres_batch.c */
bool gl_postgres_batch_send(struct gl_postgres_conn *c, struct gl_postgres_group *g, size_t batch);

/* postgres_read.c */
extern const struct gl_postgres_call_type gl_postgres_op_call;
bool gl_postgres_read_send(struct gl_postgres_conn *c, struct gl_postgres_op *op);
/* Fill the results from op->result; NULL: the context does not exist. */
void gl_postgres_read_fill(struct gl_postgres_op *op);

/* postgres_session.c: calls that belong to no context */
bool gl_postgres_session_send(struct gl_postgres_conn *c, struct gl_postgres_op *op);
void gl_postgres_session_fill(struct gl_postgres_op *op);

/* postgres_notify.c */
void gl_postgres_notify_add(struct gl_postgres *s, gl_str context, gl_str word);
void gl_postgres_notify_flush(struct gl_postgres *s);
void gl_postgres_notify_readable(struct gl_postgres_conn *c);
void gl_postgres_notify_done(struct gl_postgres *s);

#endif
