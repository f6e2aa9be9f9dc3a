/* sim_disk.h - the durable half of the simulated store: what is left when every node is dead.
 *
 * It knows nothing of faults or requests: a transaction is either applied here at one moment, or
 * not. The handles of sim_store.h decide when that moment is, and who gets the outcome. Checkers
 * observe every write.
 *
 * A shared disk represents a server with replicas: sessions have deadlines by its own clock, and a
 * failover may undo the newest transactions that no replica had confirmed. */
#ifndef GL_SIM_SIM_DISK_H
#define GL_SIM_SIM_DISK_H

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "port/store.h"
#include "sim/sorted.h"

/* The context of everything that is simulated. Not the default one: code that uses the default one
 * instead of the one it was given finds nothing. */
#define SIM_CONTEXT GL_S("simulated")

struct sim_disk_session {
    gl_str id, node;
    uint64_t incarnation;
    gl_ms deadline; /* by the store's clock; INT64_MAX: none */
    bool dead;
    gl_ms died_at; /* by the store's clock */
    struct gl_buf about;
};

struct sim_disk_context;
struct sim_table;
struct sim_tail_tx;
struct sim_tail_change;

/* What a checker may see. Records are valid only during the call. */
struct sim_disk_watch {
    void *owner;
    /* The guards of `tx` have held; its writes follow. */
    void (*on_tx)(void *owner, const struct gl_tx *tx);
    /* `before` and `after` have rev 0 if there is no record. */
    void (*on_write)(void *owner, const struct gl_tx *tx, const struct gl_record *before,
                     const struct gl_record *after);
    /* This session has been renewed. */
    void (*on_renewed)(void *owner, const struct sim_disk_session *session);
    /* This node's session was past its deadline and has been declared dead. */
    void (*on_declared)(void *owner, gl_str node);
    /* A failover has undone writes of this record; the disk already has its final state. */
    void (*on_undone)(void *owner, gl_str kind, gl_str id);
};

/* Commits up to this size may still fit into a full store. */
enum { SIM_LEFT_BYTES_MAX = 4096 };

struct sim_disk {
    bool shared;            /* set before the first handle is opened */
    struct gl_map contexts; /* name -> struct sim_disk_context, in order of creation */
    struct gl_map sessions; /* id -> struct sim_disk_session, in order of creation */
    struct gl_link handles; /* struct sim_store.link: all open handles */
    struct sim_disk_watch watch;
    gl_ms away_until; /* an outage: handles answer "unavailable" before this time */
    bool is_full;     /* commits with values of more than `left_bytes` are refused; sessions fit */
    size_t left_bytes;
    gl_ms full_since;       /* true time */
    gl_ms now;              /* true time, set by each caller */
    gl_ms offset;           /* of the store's clock against true time */
    gl_ms sessions_kept_ms; /* how long dead sessions are kept; 0: always */
    uint64_t commits_n, refusals_n;
    /* Transactions that no replica has yet, oldest first. Empty unless `keeps_tail`. */
    bool keeps_tail;
    struct sim_tail_tx *tail;
    size_t tail_n, tail_cap;
    struct sim_tail_change *changes;
    size_t changes_n, changes_cap;
    uint64_t tail_seq; /* of the newest; never restarts */
    uint64_t undone_n; /* transactions lost in total */
};

void sim_disk_init(struct sim_disk *d);
void sim_disk_done(struct sim_disk *d);

static inline gl_ms sim_disk_time(const struct sim_disk *d)
{
    return d->now + d->offset;
}

/* Applies it now or refuses it: GL_OK, GL_E_CONFLICT with *ret_refused, GL_E_LIMIT. */
int sim_disk_commit(struct sim_disk *d, const struct gl_tx *tx, size_t *ret_refused);
/* Has it been committed? If not, it is guaranteed never to be. */
bool sim_disk_resolve(struct sim_disk *d, gl_str context, gl_str session, uint64_t tx_id);

/* ---- sessions ---- */

/* Earlier sessions of the node die; on a disk that is not shared all earlier ones, as with the lock
 * of a data folder. */
struct sim_disk_session *sim_disk_session_open(struct sim_disk *d,
                                               const struct gl_session_options *wish);
struct sim_disk_session *sim_disk_session_find(const struct sim_disk *d, gl_str id);
int sim_disk_session_renew(struct sim_disk *d, gl_str id, gl_ms ttl_ms, gl_str about);
int sim_disk_session_end(struct sim_disk *d, gl_str id);
int sim_disk_session_dead(struct sim_disk *d, gl_str id, bool declare, bool *ret_dead);
const struct gl_session_info *sim_disk_session_list(const struct sim_disk *d, struct gl_arena *a,
                                                    size_t *ret_n);

/* ---- reading: copied into `a` ---- */

struct gl_record sim_disk_get(const struct sim_disk *d, gl_str context, gl_str kind, gl_str id,
                              struct gl_arena *a);
const struct gl_record *sim_disk_list(const struct sim_disk *d, gl_str context,
                                      const struct gl_listing *l, struct gl_arena *a,
                                      size_t *ret_n);
const struct gl_index_entry *sim_disk_range(const struct sim_disk *d, gl_str context,
                                            const struct gl_range *r, struct gl_arena *a,
                                            size_t *ret_n);
const struct gl_log_entry *sim_disk_log(const struct sim_disk *d, gl_str context, gl_str kind,
                                        gl_str id, int64_t from, size_t limit, struct gl_arena *a,
                                        size_t *ret_n);
/* A page of everything, as writes; `*ret_next` is "" after the last. NULL: a record is damaged. */
const struct gl_write *sim_disk_export(const struct sim_disk *d, gl_str context, gl_str after,
                                       size_t limit, struct gl_arena *a, size_t *ret_n,
                                       gl_str *ret_next);

uint64_t sim_disk_measure(const struct sim_disk *d, gl_str context);

/* A record in place, not copied: valid until the next commit. NULL: there is none. */
struct sim_disk_record {
    struct sim_row row; /* score 0 */
    uint64_t rev, token;
    bool live, damaged;
    bool is_missing; /* readers find nothing; the checkers still see it */
    gl_str owner, value;
};
const struct sim_disk_record *sim_disk_peek(const struct sim_disk *d, gl_str context, gl_str kind,
                                            gl_str id);
/* All records of a kind in order of their ids, in place. */
const struct sim_sorted *sim_disk_kind(const struct sim_disk *d, gl_str context, gl_str kind);
/* The record's value has been changed by somebody: readers get another one. */
void sim_disk_damage(struct sim_disk *d, gl_str context, gl_str kind, gl_str id);
/* The same, or it is missing altogether, for a while; returns its revision. */
uint64_t sim_disk_spoil(struct sim_disk *d, gl_str context, gl_str kind, gl_str id,
                        bool is_missing);
/* False: it has been rewritten meanwhile, or is gone. */
bool sim_disk_mend(struct sim_disk *d, gl_str context, gl_str kind, gl_str id, uint64_t rev);

/* ---- replicas ---- */

/* Everything up to number `seq` (see tail_seq) is now on a replica, too. */
void sim_disk_confirm(struct sim_disk *d, uint64_t seq);
/* The number of a transaction that wants confirmation and has none yet; 0: there is none. */
uint64_t sim_disk_unconfirmed(const struct sim_disk *d, gl_str session, uint64_t tx_id);
/* A replica becomes the primary: transactions younger than `lag_ms` and not confirmed are undone.
 */
void sim_disk_promote(struct sim_disk *d, gl_ms lag_ms);

#endif
