/* redis_parts.h - how the maker on Redis is put together; nothing here is for others.
 *
 * Three connections (links): one for everything that writes, in the order of the calls; one for
 * reads; one that listens to wake-ups. A request is an op: it waits in its link until the link is
 * ready, is sent, and completes with its answer.
 *
 *     DOWN -> FINDING -> CONNECTING -> GREETING -> READY      and from each of them back to DOWN */
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
    bool writes; /* goes by the link for writes, and may be confirmed by a WAIT */
    bool once;   /* must not be sent a second time when nobody knows what became of the first */
    void (*encode)(const struct gl_redis_op *op, struct gl_buf *out); /* append the command */
    /* Fill the request from an answer that is not an error; or set op->again. */
    void (*decode)(struct gl_redis_op *op, const struct gl_redis_reply *reply);
};

struct gl_redis_op {
    struct gl_call call; /* first; its link is in one of the lists of a link */
    struct gl_redis *store;
    const struct gl_redis_verb *verb;
    gl_ms called_at, sent_at;
    uint64_t offset;        /* of its first byte in what its link has sent */
    bool confirm;           /* replicas must have it, too: a WAIT goes behind it */
    unsigned due;           /* answers that are still to come */
    bool sent_wait;         /* the last of them is that of a WAIT */
    bool deferred;          /* its answer was one that allows to try again */
    bool again;             /* it has another question */
    size_t group_n;         /* it is the first of so many that one EXEC carries out; 0: it is not */
    char *kept;             /* what must outlive the answer; on the heap, or NULL */
    uint64_t opening;       /* tells a session that is wished for again from another one */
    struct gl_arena *arena; /* of the answer, while it is decoded */
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
    struct gl_redis_discovery *discovery; /* asks the sentinels */
    struct gl_link waiting;               /* not sent yet */
    struct gl_link sent;                  /* oldest first: that is how answers come */
    struct gl_link deferred;              /* answered with "not now" */
    size_t sent_n;
    size_t group_seen;         /* answers of a group, before that to its EXEC */
    struct gl_buf group_error; /* why the server did not take one of them; empty: it took them */
    struct gl_loop_task flush;
    bool flushing;
    uint64_t sent_bytes;
    struct gl_buf out;
    struct gl_arena arena; /* of the answer that is dealt with */
    gl_ms since;           /* of the state */
    gl_ms heard_at;        /* when something came from the server */
    gl_ms retry_at;        /* DOWN: connect; READY: go on sending */
    unsigned failures;     /* since it was READY */
    bool was_ready;
    unsigned step, script; /* of the greeting */
    bool reload;           /* scripts must be loaded before the next request */
    bool moved;            /* it is not the primary any more */
    char run_id[64];       /* of the server */
    char sha[GL_REDIS_SCRIPTS_N][GL_REDIS_SHA_BYTES];
};

/* ---- the store ---- */

struct gl_redis_info { /* what a server says about itself */
    unsigned version_major, version_minor;
    char version[32];
    char run_id[64];
    bool replica, loading, aof, evicts;
    uint64_t memory, maxmemory; /* used; 0: without bound */
    char policy[40];
    unsigned replicas;
    bool config_known; /* the rest needs CONFIG, which may be forbidden */
    char appendfsync[16];
    unsigned min_replicas;
    bool no_appendfsync_on_rewrite;
};

struct gl_redis {
    struct gl_calls calls; /* first */
    struct gl_arena arena; /* of what never changes */
    struct gl_redis_url url;
    struct gl_conn_tls *tls;
    bool allow_loss, read_only;
    bool check_only;         /* for gl_redis_check(): make nothing, refuse nothing ... */
    char found_identity[64]; /* ... the identity that was found; "" : none ... */
    struct gl_why check_why; /* ... and what is wrong with it */
    char identity[64];
    bool identified;
    bool probed;    /* we may do all we need to do */
    bool no_groups; /* but not MULTI */
    struct gl_redis_link links[GL_REDIS_ROLES_N];
    struct event *tick;
    gl_ms tick_at;           /* INT64_MAX: it is not set */
    struct gl_why refusal;   /* code != 0: no request can be served, and why */
    struct gl_why last_loss; /* why there is no connection */
    struct gl_redis_info info;
    bool had_replicas;
    unsigned sentinel_at;       /* whom to ask first */
    struct gl_redis_plan *plan; /* of the export under way */
};

/* redis_link.c */
void gl_redis_link_init(struct gl_redis_link *l, struct gl_redis *s, enum gl_redis_role role);
void gl_redis_link_done(struct gl_redis_link *l); /* no op may be left */
void gl_redis_link_push(struct gl_redis_link *l, struct gl_redis_op *op);
void gl_redis_link_tick(struct gl_redis_link *l, gl_ms now);
bool gl_redis_link_idle(const struct gl_redis_link *l);   /* nothing to look after */
void gl_redis_link_send_waiting(struct gl_redis_link *l); /* send what can be sent */
void gl_redis_link_connect(struct gl_redis_link *l, gl_str host, uint16_t port);
void gl_redis_link_lost(struct gl_redis_link *l, const struct gl_why *why);
void gl_redis_link_ready(struct gl_redis_link *l);
void gl_redis_link_write(struct gl_redis_link *l); /* what is in l->out */
/* A request that waits goes into l->out and is taken for sent. */
void gl_redis_link_add(struct gl_redis_link *l, struct gl_redis_op *op, gl_ms now);
/* Will a WAIT go behind it? */
bool gl_redis_link_needs_wait(const struct gl_redis_link *l, const struct gl_redis_op *op);
void gl_redis_link_answer(struct gl_redis_link *l, struct gl_redis_op *op,
                          const struct gl_redis_reply *reply);
void gl_redis_link_unexpected(
    struct gl_redis_link *l); /* an answer that makes no sense: give it up */

/* redis_group.c */
/* The first that waits, with those behind it that may go with it. */
void gl_redis_group_send(struct gl_redis_link *l, gl_ms now);
/* To a group of `n`: first MULTI is answered and each of them taken or not; then all are carried
 * out, or none. */
void gl_redis_group_reply(struct gl_redis_link *l, size_t n, const struct gl_redis_reply *reply);

/* redis_handshake.c */
void gl_redis_handshake(struct gl_redis_link *l);
void gl_redis_handshake_reload(struct gl_redis_link *l); /* only the scripts */
void gl_redis_handshake_reply(struct gl_redis_link *l, const struct gl_redis_reply *reply);
void gl_redis_handshake_message(struct gl_redis_link *l, const struct gl_redis_reply *reply);

/* redis_error.c */
enum gl_redis_error_class {
    GL_REDIS_RELOAD,  /* its script is not there */
    GL_REDIS_RETRY,   /* not now; nothing was done */
    GL_REDIS_MOVED,   /* this is not the primary any more; nothing was done */
    GL_REDIS_REFUSED, /* nothing was done, and trying again does not help */
    GL_REDIS_UNKNOWN, /* nobody knows what was done */
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
    gl_redis_verb_too_large; /* in its turn, the refusal of a transaction that is */

/* redis_read.c: an answer that is a list of what the call reads. */
void gl_redis_decode_page(struct gl_redis_op *op, const struct gl_redis_reply *reply);

enum { GL_REDIS_COMMIT_BYTES_MAX = 256 << 20 };

/* redis_encode.c: the pieces of commands */
/* EVALSHA with `n` arguments behind context and home, which must follow. */
void gl_redis_eval_open(const struct gl_redis_op *op, enum gl_redis_script script, size_t n,
                        struct gl_buf *out);
/* EVALSHA with these arguments: gl_redis_eval(op, script, out, gl_arg_text(id)). */
#define gl_redis_eval(op, script, out, ...) \
    gl_redis_eval_n((op), (script), (out), GL_ARGS(__VA_ARGS__))
void gl_redis_eval_n(const struct gl_redis_op *op, enum gl_redis_script script, struct gl_buf *out,
                     const struct gl_arg *args, size_t n);
/* A name as a part of a key: ':' would end it. Kinds, indexes and queues are usually as they are.
 */
gl_str gl_redis_name_encode(gl_str name, struct gl_buf *scratch);
void gl_redis_name_arg(struct gl_buf *out, gl_str name);
void gl_redis_key_arg(struct gl_buf *out, gl_str name, gl_str id); /* "name:id" */
gl_str gl_redis_name_decode(gl_str name, struct gl_arena *a);
enum { GL_REDIS_SCORE_BYTES = 16 };
void gl_redis_score_encode(int64_t score,
                           char ret[static GL_REDIS_SCORE_BYTES]); /* in order as text */
/* An argument: `mark`, the score, `end`, `id`. */
void gl_redis_score_arg(struct gl_buf *out, const char *mark, int64_t score, const char *end,
                        gl_str id);
bool gl_redis_score_decode(gl_str member, int64_t *ret_score, gl_str *ret_id);
void gl_redis_record_decode(struct gl_record *r, const struct gl_redis_reply *reply, bool whole);
/* An entry of a log; false: it is none of ours. */
bool gl_redis_log_entry_decode(struct gl_log_entry *ret, const struct gl_redis_reply *reply);

/* redis.c */
void gl_redis_complete(struct gl_redis *s, struct gl_redis_op *op);
void gl_redis_fail(struct gl_redis *s, struct gl_redis_op *op, int code, const char *text);
void gl_redis_refuse(struct gl_redis *s, const struct gl_why *why);
void gl_redis_schedule_tick(struct gl_redis *s, gl_ms in_ms); /* tick then, at the latest */
unsigned gl_redis_replicas_wanted(const struct gl_redis *s);

#endif
