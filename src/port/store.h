/* store.h - the interface to a durable store; each engine (SQLite, Redis, PostgreSQL, the
 * simulator's) implements it.
 *
 * A store holds four shapes of data: records (kind, id) with a revision, an owner and a live flag;
 * indexes ordered by (score, id); append-only logs; and sessions. Every name except a session's
 * belongs to a context: the context is part of every key.
 *
 * A transaction is a list of guards and a list of writes, applied all or nothing. It ends with
 *     GL_OK               committed: durable against a power cut
 *     GL_E_CONFLICT       refused: guard number `refused` did not hold; nothing was written
 *     GL_E_UNAVAILABLE    the engine could not do it; certainly nothing was written
 *     GL_E_UNKNOWN        the outcome is not known yet: call `resolve` with the same transaction id
 *     GL_E_LIMIT          larger than the engine accepts; nothing was written
 * A store applies transactions in the order of the calls and completes them in that order.
 *
 * Order of calls: `listen`, then requests; `session_open` before the first commit of a session,
 * `session_renew` well within its TTL, `session_end` when leaving; `close` last.
 *
 * Rules. Each call takes a request embedded in a struct of the caller's. `done` runs exactly once,
 * on the control thread, later, never from inside the call. Arguments (transaction, names) are
 * borrowed until then. Results in the request (values) are valid only inside `done`. */
#ifndef GL_PORT_STORE_H
#define GL_PORT_STORE_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

/* The only context users have today. It is named where a request, a command or a node begins; all
 * other code is passed its context. */
#define GL_CONTEXT_DEFAULT GL_S("default")

struct gl_store;
struct gl_store_req;
typedef void gl_store_done(struct gl_store_req *req);

/* ---- transactions ---- */

enum gl_guard_type {
    GL_GUARD_AT,       /* the record exists with revision `rev` */
    GL_GUARD_ABSENT,   /* the record does not exist */
    GL_GUARD_PRESENT,  /* the record exists, at any revision */
    GL_GUARD_NOT_LIVE, /* the record does not exist or is not live */
    GL_GUARD_OWNED,    /* `owner` owns it with `token`; if rev != 0, it also has revision `rev` */
    GL_GUARD_DEAD,     /* session `owner` is dead or unknown, and `owner` is not "" (kind and id are
                          unused) */
    GL_GUARD_ALIVE,    /* session `owner` is known and not dead */
};

struct gl_guard {
    enum gl_guard_type type;
    gl_str kind, id;
    uint64_t rev;
    gl_str owner;
    uint64_t token;
};

enum gl_write_type {
    GL_WRITE_PUT,      /* create or replace: rev, owner, token, live, value */
    GL_WRITE_PUT_NEW,  /* create, or leave an existing record alone (content-addressed records) */
    GL_WRITE_DELETE,   /* succeeds if absent */
    GL_WRITE_INDEX,    /* put `id` into index `kind` at `score` (an id may have several scores) */
    GL_WRITE_UNINDEX,  /* remove (score, id); succeeds if absent */
    GL_WRITE_LOG,      /* append `value` to log `kind`/`id` as entry number `seq` */
    GL_WRITE_LOG_TRIM, /* remove entries of log `kind`/`id` below number `seq`; seq = INT64_MAX
                          removes the whole log */
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
    gl_str session; /* the committing session; "" only before a session exists */
    uint64_t id; /* ascending within the session; remembered, so that `resolve` can answer. 0: not
                    remembered, because the transaction may safely be repeated */
    const struct gl_guard *guards;
    size_t guards_n;
    const struct gl_write *writes;
    size_t writes_n;
    bool confirm; /* also wait for a replica, if the store has any. If none confirms in time the
                     transaction ends unknown, and `resolve` asks the replicas again */
    gl_str wake;  /* a word sent to all listeners after the commit, best effort; "" : none */
};

/* ---- reading ---- */

struct gl_record {
    gl_str kind, id;
    uint64_t rev; /* 0: the record does not exist */
    gl_str owner;
    uint64_t token;
    bool live;
    bool damaged; /* its checksum (port/checksum.h) is wrong: trust nothing but the key */
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

struct gl_range { /* a range of an index, ascending by (score, id) */
    gl_str index;
    int64_t score_min, score_max; /* both inclusive */
    int64_t after_score;          /* with after_id: continue after this entry */
    gl_str after_id;              /* "" : start at score_min */
    size_t limit;
};

struct gl_listing { /* the records of a kind, ordered bytewise by id */
    gl_str kind, prefix;
    gl_str after; /* continue after this id; "" : from the start */
    size_t limit;
    bool live_only;
    bool descending;
    bool ids_only; /* do not read values: records come with empty ones */
    /* The page ends with the record that brings the sum of the value sizes to this number; 0: no
     * bound. A page that ends early for any other reason is the last. */
    size_t bytes_max;
};

/* May the listing continue after this page? */
static inline bool gl_listing_has_more(const struct gl_listing *l, const struct gl_record *records,
                                       size_t records_n)
{
    size_t bytes = 0;

    for (size_t i = 0; l->bytes_max > 0 && i < records_n; i++) {
        bytes += records[i].damaged ? l->bytes_max : records[i].value.n; /* size unknown */
    }
    return records_n == l->limit || (l->bytes_max > 0 && bytes >= l->bytes_max);
}

/* ---- sessions ---- */

/* A node renews nothing but its session, and owns records by the session's id. A dead session stays
 * dead; after GL_SESSIONS_KEPT_MS it is forgotten, and an unknown session counts as dead. */
struct gl_session_info {
    gl_str id;            /* "node#incarnation.nonce" */
    uint64_t incarnation; /* incremented each time this node opens a session */
    /* Only in listings: */
    gl_str node, about;
    gl_ms left_ms; /* time to its deadline by the store's clock; negative: overdue. INT64_MAX: no
                      deadline */
    bool dead;
};

struct gl_session_options {
    gl_str node;  /* the node's identity, stable across restarts */
    gl_str nonce; /* 16 random characters */
    gl_ms ttl_ms; /* deadline of the first renewal */
    gl_str about; /* published to other nodes: JSON, at most GL_ABOUT_BYTES_MAX */
};

/* ---- events a store reports, on the control thread ---- */

struct gl_store_events {
    void *owner;
    /* Some session committed a transaction with this wake-up word. Words may be lost: they save
     * time, sweeps ensure correctness. */
    void (*woken)(void *owner, gl_str context, gl_str word);
    /* The first connection to a shared store has been made; `identity` names that store. The data
     * folder records it, so that a server that lost its data, or another store at the same address,
     * is detected. */
    void (*met)(void *owner, gl_str identity);
    /* The connection was lost and restored, perhaps to another server. Anything known about other
     * nodes' renewals is now worthless. */
    void (*changed)(void *owner, const char *why);
};

/* Store health, as the node sees it. */
enum gl_store_health {
    GL_STORE_OK,          /* accepts writes */
    GL_STORE_UNREACHABLE, /* does not answer */
    GL_STORE_READ_ONLY,   /* answers but accepts no writes, for example because its disk is full */
};

/* ---- requests ---- */

struct gl_store_req {
    gl_store_done *done; /* set by the caller before the call */
    void *owner;         /* for the caller's use */

    /* Results. */
    int status;        /* 0 or GL_E_*; reads: GL_E_UNAVAILABLE or GL_E_DAMAGED */
    struct gl_why why; /* set when status != 0; `needs_help`: the engine is reachable but out of
                          space, or not allowed to write */
    size_t refused;    /* index of the failed guard, with GL_E_CONFLICT */
    const struct gl_record *records; /* get: one per key, in key order; list */
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
    gl_str next;    /* export: where the next page starts; "" : this was the last */
    gl_ms time;     /* time */
    uint64_t bytes; /* measure */

    void *maker[6]; /* for the engine's use while the call is pending */
};

struct gl_store_ops {
    const char *name;
    bool shared; /* several nodes may use it, so sessions have deadlines */

    /* If the store has replicas, opening and renewing a session and declaring one dead wait for a
     * replica, like a transaction with `confirm`; if none confirms in time they fail with
     * GL_E_UNAVAILABLE. Losing a session_end is harmless: others wait for the deadline. */

    /* Start a session. The same transaction declares earlier sessions of this node dead; on an
     * engine that is not shared, all earlier sessions. */
    void (*session_open)(struct gl_store *s, struct gl_store_req *req,
                         const struct gl_session_options *options);
    /* Move its deadline to `ttl_ms` from now, by the store's clock. GL_E_GONE: it was declared
     * dead. */
    void (*session_renew)(struct gl_store *s, struct gl_store_req *req, gl_str session,
                          gl_ms ttl_ms, gl_str about);
    /* Its holder leaves: the session is dead from now on. */
    void (*session_end)(struct gl_store *s, struct gl_store_req *req, gl_str session);
    /* Is it dead or unknown? With `declare`, a session past its deadline is first marked dead,
     * irrevocably. */
    void (*session_dead)(struct gl_store *s, struct gl_store_req *req, gl_str session,
                         bool declare);
    /* All live sessions, then the most recent dead ones, at most GL_SESSIONS_LISTED in total. */
    void (*session_list)(struct gl_store *s, struct gl_store_req *req);

    void (*commit)(struct gl_store *s, struct gl_store_req *req, const struct gl_tx *tx);
    /* The outcome of transaction `tx_id` of `session`: GL_OK committed; GL_E_CONFLICT refused or
     * never arrived, and it never will; GL_E_UNAVAILABLE ask again later. */
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

    /* The time by the clock that decides session deadlines. */
    void (*time)(struct gl_store *s, struct gl_store_req *req);

    /* All content of a context, as the writes that would recreate it (PUT, INDEX, LOG), about
     * `limit` at a time, for migrations. Nobody else may be writing. `after`: `next` of the
     * previous page, "" for the first. GL_E_DAMAGED: a record's checksum is wrong; a copy would get
     * a valid one. */
    void (*export)(struct gl_store *s, struct gl_store_req *req, gl_str context, gl_str after,
                   size_t limit);

    /* Set the receiver of events, before the first request; a later call replaces it. `events` is
     * copied; members may be NULL. */
    void (*listen)(struct gl_store *s, const struct gl_store_events *events);

    /* Approximate size of the context's content. Deleted data does not count, even if the engine
     * keeps its space for reuse. */
    void (*measure)(struct gl_store *s, struct gl_store_req *req, gl_str context);

    /* Pending requests complete first; then `closed` runs once and the store is gone. */
    void (*close)(struct gl_store *s, void (*closed)(void *owner), void *owner);
};

struct gl_store {
    const struct gl_store_ops *ops;
};

#endif
