/* redis_parts.h - internals of the Redis store, shared by the files of this folder.
 *
 * The store keeps three connections (links): one for everything that writes, in the order of the
 * calls; one for reads; and one subscribed to wake-ups. A request is an op: it waits in its link
 * until the link is ready, is sent, and completes with its reply.
 *
 *     DOWN -> DISCOVERY -> CONNECTING -> HANDSHAKE -> READY      and from each of them back to DOWN
 *
 * The writer decides which server is the right one. The other links connect only while the writer
 * is READY and are dropped with it. */
#ifndef GL_STORE_REDIS_PARTS_H
#define GL_STORE_REDIS_PARTS_H

#include "port/findings.h"
#include "store/common/answer.h"
#include "store/common/arg.h"
#include "store/common/conn.h"
#include "store/redis/redis_resp.h"
#include "store/redis/redis_scripts.h"
#include "store/redis/redis_url.h"

struct event;
struct gl_redis;
struct gl_redis_op;
struct gl_redis_discovery;
struct gl_redis_plan;

/* ---- requests ---- */

struct gl_redis_verb {
    bool writes; /* sent on the writer link; may be confirmed by a WAIT */
    bool once;   /* not to be sent again after an unknown outcome */
    void (*encode)(const struct gl_redis_op *op, struct gl_buf *out); /* append the command */
    /* Fill the request from a reply that is not an error, or set op->again. */
    void (*decode)(struct gl_redis_op *op, const struct gl_redis_reply *reply);
};

struct gl_redis_op {
    struct gl_call call; /* first; its link is in one of the lists of a link */
    struct gl_redis *store;
    const struct gl_redis_verb *verb;
    gl_ms called_at, sent_at;
    uint64_t offset;        /* position of its first byte in everything its link has sent */
    bool confirm;           /* replicas must confirm it: followed by a WAIT */
    unsigned due;           /* replies still expected */
    bool sent_wait;         /* the last of them answers a WAIT */
    bool deferred;          /* its reply allows a retry; nothing was done */
    bool again;             /* another command must be sent for it */
    size_t group_n;         /* first op of a group of this size (one EXEC); 0: otherwise */
    char *kept;             /* data that must outlive the reply; on the heap, or NULL */
    uint64_t opening;       /* distinguishes a resent session_open from a new one */
    struct gl_arena *arena; /* of the reply, while it is decoded */
};

static inline struct gl_redis_op *gl_redis_first(struct gl_link *list) /* NULL if empty */
{
    struct gl_call *call = gl_call_first(list);
    return call != NULL ? GL_CONTAINER(call, struct gl_redis_op, call) : NULL;
}

static inline struct gl_redis_op *gl_redis_next(struct gl_link *list, const struct gl_redis_op *op)
{
    return op->call.link.next != list
               ? GL_CONTAINER(gl_call_next(&op->call), struct gl_redis_op, call)
               : NULL;
}

/* ---- links ---- */

enum gl_redis_role { GL_REDIS_WRITER, GL_REDIS_READER, GL_REDIS_SUBSCRIBER, GL_REDIS_ROLES_N };

enum gl_redis_state {
    GL_REDIS_DOWN,
    GL_REDIS_DISCOVERY,
    GL_REDIS_CONNECTING,
    GL_REDIS_HANDSHAKE,
    GL_REDIS_READY,
};

enum { GL_REDIS_SHA_BYTES = 41 };

struct gl_redis_link {
    struct gl_redis *store;
    enum gl_redis_role role;
    enum gl_redis_state state;
    struct gl_conn *conn;
    struct gl_redis_reader *reader;
    struct gl_redis_discovery *discovery; /* while asking the sentinels */
    struct gl_link waiting;               /* not sent yet */
    struct gl_link sent;                  /* oldest first, the order of the replies */
    struct gl_link deferred;              /* refused for now, to be sent again */
    size_t sent_n;
    size_t group_seen;         /* replies to a group so far, before that to its EXEC */
    struct gl_buf group_error; /* the first error of a group's commands; empty: none */
    struct gl_loop_task flush;
    bool flushing;
    uint64_t sent_bytes;
    struct gl_buf out;
    struct gl_arena arena; /* of the reply being handled */
    gl_ms since;           /* when the state was entered */
    gl_ms heard_at;        /* when bytes last arrived */
    gl_ms retry_at;        /* DOWN: when to connect; READY: when to resume sending */
    unsigned failures;     /* connection failures since it was READY */
    bool was_ready;
    unsigned step, script; /* progress of the handshake */
    bool reload;           /* scripts must be reloaded before the next request */
    bool moved;            /* the server is no longer the primary */
    char run_id[64];       /* of the server */
    char sha[GL_REDIS_SCRIPTS_N][GL_REDIS_SHA_BYTES];
};

/* ---- the store ---- */

struct gl_redis_info { /* what a server reports about itself */
    unsigned version_major, version_minor;
    char version[32];
    char run_id[64];
    bool replica, loading, aof, evicts;
    uint64_t memory, maxmemory; /* bytes in use; 0: no limit */
    char policy[40];
    unsigned replicas;
    bool config_known; /* the fields below need CONFIG, which may be forbidden */
    char appendfsync[16];
    unsigned min_replicas;
    bool no_appendfsync_on_rewrite;
};

struct gl_redis {
    struct gl_calls calls; /* first */
    struct gl_arena arena; /* of data that never changes */
    struct gl_redis_url url;
    struct gl_conn_tls *tls;
    bool allow_loss, read_only;
    bool check_only;         /* for gl_redis_check(): create nothing, refuse nothing ... */
    char found_identity[64]; /* ... the identity found; "" : none ... */
    struct gl_why check_why; /* ... and what is wrong with it */
    char identity[64];
    bool identified;
    bool probed;    /* we have all the rights we need */
    bool no_groups; /* except MULTI */
    struct gl_redis_link links[GL_REDIS_ROLES_N];
    struct event *tick;
    gl_ms tick_at;           /* INT64_MAX: not scheduled */
    struct gl_why refusal;   /* code != 0: why no request can be served */
    struct gl_why last_loss; /* why the connection was lost last */
    struct gl_redis_info info;
    bool had_replicas;
    unsigned sentinel_at;       /* the sentinel to ask first */
    struct gl_redis_plan *plan; /* of the current export */
};

/* redis_link.c */
void gl_redis_link_init(struct gl_redis_link *l, struct gl_redis *s, enum gl_redis_role role);
void gl_redis_link_done(struct gl_redis_link *l); /* no op may be left */
void gl_redis_link_push(struct gl_redis_link *l, struct gl_redis_op *op);
void gl_redis_link_tick(struct gl_redis_link *l, gl_ms now);
bool gl_redis_link_idle(const struct gl_redis_link *l); /* no work and no timeouts */
/* Send as much of `waiting` as possible. */
void gl_redis_link_send_waiting(struct gl_redis_link *l);
void gl_redis_link_connect(struct gl_redis_link *l, gl_str host, uint16_t port);
void gl_redis_link_lost(struct gl_redis_link *l, const struct gl_why *why);
void gl_redis_link_ready(struct gl_redis_link *l);
void gl_redis_link_write(struct gl_redis_link *l); /* send the content of l->out */
/* Encode a waiting op into l->out and move it to `sent`. */
void gl_redis_link_add(struct gl_redis_link *l, struct gl_redis_op *op, gl_ms now);
/* Must the op be followed by a WAIT? */
bool gl_redis_link_needs_wait(const struct gl_redis_link *l, const struct gl_redis_op *op);
void gl_redis_link_answer(struct gl_redis_link *l, struct gl_redis_op *op,
                          const struct gl_redis_reply *reply);
void gl_redis_link_unexpected(struct gl_redis_link *l); /* unexpected reply: drop the connection */

/* redis_group.c */
/* Send the first waiting op, together with those after it that can share its group. */
void gl_redis_group_send(struct gl_redis_link *l, gl_ms now);
/* Handle the next reply to a group of `n`: one for MULTI and one for each command, then one for
 * EXEC, which carries out all of them or none. */
void gl_redis_group_reply(struct gl_redis_link *l, size_t n, const struct gl_redis_reply *reply);

/* redis_handshake.c */
void gl_redis_handshake(struct gl_redis_link *l);
void gl_redis_handshake_reload(struct gl_redis_link *l); /* load only the scripts */
void gl_redis_handshake_reply(struct gl_redis_link *l, const struct gl_redis_reply *reply);
void gl_redis_handshake_message(struct gl_redis_link *l, const struct gl_redis_reply *reply);

/* redis_error.c */
enum gl_redis_error_class {
    GL_REDIS_RELOAD,  /* the script is not loaded on the server */
    GL_REDIS_RETRY,   /* not now; nothing was done */
    GL_REDIS_MOVED,   /* the server is no longer the primary; nothing was done */
    GL_REDIS_REFUSED, /* nothing was done, and a retry would not help */
    GL_REDIS_UNKNOWN, /* the outcome is unknown */
};
enum gl_redis_error_class gl_redis_error_classify(gl_str error);
/* The sentence for people. */
int gl_redis_error_why(struct gl_why *why, int code, gl_str error);

/* redis_info.c */
void gl_redis_info_parse(struct gl_redis_info *f, gl_str info);
void gl_redis_info_parse_config(struct gl_redis_info *f, const struct gl_redis_reply *reply);
/* GL_E_VERSION, GL_E_UNAVAILABLE: this server cannot be used at all. */
int gl_redis_info_check(const struct gl_redis_info *f, struct gl_why *reterr_why);
void gl_redis_info_diagnose(const struct gl_redis_info *f, struct gl_arena *a,
                            struct gl_findings *ret);

/* redis_discovery.c */
void gl_redis_discovery_start(struct gl_redis_link *l);
void gl_redis_discovery_stop(struct gl_redis_link *l);
void gl_redis_discovery_tick(struct gl_redis_link *l, gl_ms now);

/* redis_export.c */
void gl_redis_plan_free(struct gl_redis_plan *p); /* NULL is fine */

/* The verbs: redis_commit.c, redis_session.c, redis_read.c, redis_export.c. */
extern const struct gl_redis_verb gl_redis_verb_commit, gl_redis_verb_resolve,
    gl_redis_verb_session_open, gl_redis_verb_session_renew, gl_redis_verb_session_end,
    gl_redis_verb_session_dead, gl_redis_verb_session_list, gl_redis_verb_time, gl_redis_verb_get,
    gl_redis_verb_list, gl_redis_verb_range, gl_redis_verb_log_read, gl_redis_verb_measure,
    gl_redis_verb_export,
    gl_redis_verb_too_large; /* refuses an oversized transaction, in its turn */

/* redis_read.c: decodes a reply that is a list of what the call reads. */
void gl_redis_decode_page(struct gl_redis_op *op, const struct gl_redis_reply *reply);

enum { GL_REDIS_COMMIT_BYTES_MAX = 256 << 20 };

/* redis_encode.c: the pieces of commands */
/* Begin an EVALSHA with `n` arguments after context and home, which must follow. */
void gl_redis_eval_open(const struct gl_redis_op *op, enum gl_redis_script script, size_t n,
                        struct gl_buf *out);
/* A complete EVALSHA: gl_redis_eval(op, script, out, gl_arg_text(id)). */
#define gl_redis_eval(op, script, out, ...) \
    gl_redis_eval_n((op), (script), (out), GL_ARGS(__VA_ARGS__))
void gl_redis_eval_n(const struct gl_redis_op *op, enum gl_redis_script script, struct gl_buf *out,
                     const struct gl_arg *args, size_t n);
/* Encode a name as part of a key, where ':' would end it. Most kinds and indexes are unchanged. */
gl_str gl_redis_name_encode(gl_str name, struct gl_buf *scratch);
void gl_redis_name_arg(struct gl_buf *out, gl_str name);
void gl_redis_key_arg(struct gl_buf *out, gl_str name, gl_str id); /* "name:id" */
gl_str gl_redis_name_decode(gl_str name, struct gl_arena *a);
enum { GL_REDIS_SCORE_BYTES = 16 };
void gl_redis_score_encode(int64_t score,
                           char ret[static GL_REDIS_SCORE_BYTES]); /* sorts like the number */
/* One argument: `mark`, the score, `end`, `id`. */
void gl_redis_score_arg(struct gl_buf *out, const char *mark, int64_t score, const char *end,
                        gl_str id);
bool gl_redis_score_decode(gl_str member, int64_t *ret_score, gl_str *ret_id);
void gl_redis_record_decode(struct gl_record *r, const struct gl_redis_reply *reply, bool whole);
/* Decode a log entry; false: not one of ours. */
bool gl_redis_log_entry_decode(struct gl_log_entry *ret, const struct gl_redis_reply *reply);

/* redis.c */
void gl_redis_complete(struct gl_redis *s, struct gl_redis_op *op);
void gl_redis_fail(struct gl_redis *s, struct gl_redis_op *op, int code, const char *text);
void gl_redis_refuse(struct gl_redis *s, const struct gl_why *why);
void gl_redis_schedule_tick(struct gl_redis *s, gl_ms in_ms); /* run the tick no later than this */
unsigned gl_redis_replicas_wanted(const struct gl_redis *s);

#endif
