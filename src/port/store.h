/* store.h - the durable truth of a context, behind which any engine may stand.
 *
 * Shapes: records (kind, id) with a revision, an owner and a live flag; indexes ordered by (score,
 * id); append-only logs; sessions. Every name belongs to a context:
 * "context" is a part of every key. Sessions belong to the store.
 *
 * A transaction is guards + writes, all or nothing. It ends
 *     GL_OK               committed: durable against a power cut
 *     GL_E_CONFLICT       refused: guard number `refused` did not hold; nothing was written
 *     GL_E_UNAVAILABLE    the engine could not do it; certainly nothing was written
 *     GL_E_UNKNOWN        nobody can say yet: ask gl_store_resolve() with the same transaction id
 *     GL_E_LIMIT          larger than the engine takes; nothing was written
 * Transactions of one store are applied in the order of the calls, and they complete in that order.
 *
 * A call takes a request embedded by its caller. `done` runs exactly once, on the control thread,
 * later, never from inside the call. What a call was given (transaction, names) is borrowed until
 * then; what it returns in the request (values) is valid inside `done` only. */
#ifndef GL_PORT_STORE_H
#define GL_PORT_STORE_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

/* The context users have today. It is named where a request, a command or a node begins; everything
 * else is given its context. */
#define GL_CONTEXT_DEFAULT GL_S("default")

struct gl_store;
struct gl_store_req;
typedef void gl_store_done(struct gl_store_req *req);

/* ---- transactions ---- */

enum gl_guard_type {
    GL_GUARD_AT,       /* the record exists and has revision `rev` */
    GL_GUARD_ABSENT,   /* there is no such record */
    GL_GUARD_PRESENT,  /* there is one, whatever its revision */
    GL_GUARD_NOT_LIVE, /* there is none, or it is not live */
    GL_GUARD_OWNED,    /* it is owned by `owner` with `token`; with rev != 0 also: and has that
                          revision */
    GL_GUARD_DEAD,     /* `owner` is the id of a session that is dead (kind and id are not used);
                          one that is not known is, "" is not */
    GL_GUARD_ALIVE,    /* `owner` is the id of a session that is known and not dead */
};

struct gl_guard {
    enum gl_guard_type type;
    gl_str kind, id;
    uint64_t rev;
    gl_str owner;
    uint64_t token;
};

enum gl_write_type {
    GL_WRITE_PUT,     /* create or replace: rev, owner, token, live, value */
    GL_WRITE_PUT_NEW, /* create; if it exists already, leave it (content-addressed records) */
    GL_WRITE_DELETE,  /* absent is fine */
    GL_WRITE_INDEX, /* put `id` into index `kind` at `score` (one id may stand at several scores) */
    GL_WRITE_UNINDEX,  /* remove (score, id); absent is fine */
    GL_WRITE_LOG,      /* append `value` to log `kind`/`id` as entry number `seq` */
    GL_WRITE_LOG_TRIM, /* remove the entries of log `kind`/`id` with a number below `seq`;
                          seq = INT64_MAX removes the log */
};

struct gl_write {
    enum gl_write_type type;
    gl_str kind, id;
    uint64_t rev;
    gl_str owner;
    uint64_t token;
    bool live;
    int64_t score;
    int64_t seq;
    gl_str value;
};

struct gl_tx {
    gl_str context;
    gl_str session; /* who commits; "" only before a session exists */
    uint64_t id;    /* rising within the session; remembered, so that unknown can be resolved.
                       0: nobody will ask, because it may be repeated; not remembered */
    const struct gl_guard *guards;
    size_t guards_n;
    const struct gl_write *writes;
    size_t writes_n;
    bool confirm; /* committed means also: on a replica, if the store has any. One that cannot be
                     confirmed in time ends unknown, and `resolve` asks the replicas again */
    gl_str wake;  /* a word all listeners of the store hear after the commit, perhaps; "" : none */
};

/* ---- reading ---- */

struct gl_record {
    gl_str kind, id;
    uint64_t rev; /* 0: there is no such record */
    gl_str owner;
    uint64_t token;
    bool live;
    bool damaged; /* its checksum (port/checksum.h) is wrong: nothing in it can be trusted but its
                     key */
    gl_str value;
};

struct gl_index_entry {
    int64_t score;
    gl_str id;
};

struct gl_log_entry {
    int64_t seq;
    gl_str value;
};

struct gl_key {
    gl_str kind, id;
};

struct gl_range { /* of an index, ascending by (score, id) */
    gl_str index;
    int64_t score_min, score_max; /* both included */
    int64_t after_score;          /* with after_id: continue behind this entry */
    gl_str after_id;              /* "" : from score_min */
    size_t limit;
};

struct gl_listing { /* of a kind, by id, bytewise */
    gl_str kind, prefix;
    gl_str after; /* continue behind this id; "" : from the start */
    size_t limit;
    bool live_only;
    bool descending;
    bool ids_only; /* the values stay where they are: records come with empty ones */
    /* A page ends with the record whose value makes their sum reach this, however many there are;
     * 0: no bound. So a page that ends early for another reason is the last. */
    size_t bytes_max;
};

/* May there be more behind this page of a listing? */
static inline bool gl_listing_has_more(const struct gl_listing *l, const struct gl_record *records,
                                       size_t records_n)
{
    size_t bytes = 0;

    for (size_t i = 0; l->bytes_max > 0 && i < records_n; i++) {
        bytes += records[i].damaged ? l->bytes_max : records[i].value.n; /* its size is not known */
    }
    return records_n == l->limit || (l->bytes_max > 0 && bytes >= l->bytes_max);
}

/* ---- sessions ---- */

/* A session is the only thing a node renews; it owns records by its id. Once dead it stays dead,
 * and after a while it is forgotten (GL_SESSIONS_KEPT_MS): what is not known is dead. */
struct gl_session_info {
    gl_str id;            /* "node#incarnation.nonce" */
    uint64_t incarnation; /* rising with each opening by this node */
    /* Listed ones only. */
    gl_str node, about;
    gl_ms left_ms; /* until its deadline, by the store's clock; negative: it is over. INT64_MAX: it
                      has none */
    bool dead;
};

struct gl_session_options {
    gl_str node;  /* its identity, stable over restarts */
    gl_str nonce; /* 16 random characters */
    gl_ms ttl_ms; /* until its first renewal */
    gl_str about; /* what others may know of the node: JSON, at most GL_ABOUT_BYTES_MAX */
};

/* ---- what a store tells by itself, on the control thread ---- */

struct gl_store_events {
    void *owner;
    /* A transaction with this word has been committed, by whomever. Words may be lost. */
    void (*woken)(void *owner, gl_str context, gl_str word);
    /* A shared store has been reached for the first time: this is its identity. A folder remembers
     * it, and a server that has lost it is another store, or an empty one. */
    void (*met)(void *owner, gl_str identity);
    /* The connection was lost and is there again, perhaps to another server: what was known of
     * other nodes' renewals is worth nothing. */
    void (*changed)(void *owner, const char *why);
};

/* How a store is to the node that uses it. */
enum gl_store_health {
    GL_STORE_OK,          /* it takes what it is told */
    GL_STORE_UNREACHABLE, /* it does not answer */
    GL_STORE_READ_ONLY,   /* it answers, and does not write any more: its disk is full, say */
};

/* ---- requests ---- */

struct gl_store_req {
    gl_store_done *done; /* set by the caller before the call */
    void *owner;         /* the caller's own pointer */

    /* Results. */
    int status;                      /* 0 or GL_E_*; for reads GL_E_UNAVAILABLE or GL_E_DAMAGED */
    struct gl_why why;               /* set when status != 0; `needs_help`: the engine is there and
                                        has no room, or may not write */
    size_t refused;                  /* number of the guard, with GL_E_CONFLICT */
    const struct gl_record *records; /* get: one per key, in their order; list */
    size_t records_n;
    const struct gl_index_entry *entries; /* range */
    size_t entries_n;
    const struct gl_log_entry *log; /* log_read */
    size_t log_n;
    struct gl_session_info session;         /* session_open */
    bool session_dead;                      /* session_dead */
    const struct gl_session_info *sessions; /* session_list */
    size_t sessions_n;
    const struct gl_write *writes; /* export */
    size_t writes_n;
    gl_str next;    /* export: where to go on; "" : that was all */
    gl_ms time;     /* time */
    uint64_t bytes; /* measure */

    void *maker[6]; /* the engine's own use while the call is under way */
};

struct gl_store_ops {
    const char *name;
    bool shared; /* several nodes may use it: sessions end by their deadlines */

    /* Opening and renewing a session and declaring one dead are confirmed by a replica if the store
     * has any, like a transaction with `confirm`; what cannot be confirmed in time is
     * GL_E_UNAVAILABLE. An ending that is lost only makes the others wait for its deadline. */

    /* Start a session. Earlier ones of the same node die in the same transaction; on an engine that
     * is not shared, all earlier ones. */
    void (*session_open)(struct gl_store *s, struct gl_store_req *req,
                         const struct gl_session_options *options);
    /* Keep it alive for `ttl_ms` by the store's clock. GL_E_GONE: it was declared dead. */
    void (*session_renew)(struct gl_store *s, struct gl_store_req *req, gl_str session,
                          gl_ms ttl_ms, gl_str about);
    /* Its holder leaves: it is dead from now on. */
    void (*session_end)(struct gl_store *s, struct gl_store_req *req, gl_str session);
    /* Is it dead, or not known? With `declare`, one past its deadline is marked dead first
     * (irrevocably). */
    void (*session_dead)(struct gl_store *s, struct gl_store_req *req, gl_str session,
                         bool declare);
    /* All that are not dead, then the newest of the dead, up to GL_SESSIONS_LISTED in all. */
    void (*session_list)(struct gl_store *s, struct gl_store_req *req);

    void (*commit)(struct gl_store *s, struct gl_store_req *req, const struct gl_tx *tx);
    /* What became of transaction `tx_id` of `session`: GL_OK committed, GL_E_CONFLICT refused or
     * never arrived (and never will), GL_E_UNAVAILABLE ask again later. */
    void (*resolve)(struct gl_store *s, struct gl_store_req *req, gl_str context, gl_str session,
                    uint64_t tx_id);

    void (*get)(struct gl_store *s, struct gl_store_req *req, gl_str context,
                const struct gl_key *keys, size_t keys_n);
    void (*range)(struct gl_store *s, struct gl_store_req *req, gl_str context,
                  const struct gl_range *range);
    void (*list)(struct gl_store *s, struct gl_store_req *req, gl_str context,
                 const struct gl_listing *listing);
    /* Entries of log `kind`/`id` with seq >= from, ascending, at most `limit`. */
    void (*log_read)(struct gl_store *s, struct gl_store_req *req, gl_str context, gl_str kind,
                     gl_str id, int64_t from, size_t limit);

    /* What time is it by the clock that decides about deadlines? */
    void (*time)(struct gl_store *s, struct gl_store_req *req);

    /* All content of a context, as the writes that would make it (PUT, INDEX, LOG), about
     * `limit` at a time, for migrations: nobody else may be writing. `after`: `next` of the page
     * before, "" for the first. GL_E_DAMAGED: a record's checksum is wrong; copied it would look
     * sound. */
    void (*export)(struct gl_store *s, struct gl_store_req *req, gl_str context, gl_str after,
                   size_t limit);

    /* Who wants to be told; before the first request, and again when another wants to instead.
     * `events` is copied; members may be NULL. */
    void (*listen)(struct gl_store *s, const struct gl_store_events *events);

    /* How much room the context's content takes, about; what has been removed does not count, even
     * if the engine keeps its room for later. */
    void (*measure)(struct gl_store *s, struct gl_store_req *req, gl_str context);

    /* Requests under way complete first; then `closed` runs once and the store is gone. */
    void (*close)(struct gl_store *s, void (*closed)(void *owner), void *owner);
};

struct gl_store {
    const struct gl_store_ops *ops;
};

#endif
