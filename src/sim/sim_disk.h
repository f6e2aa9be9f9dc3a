/* sim_disk.h - the durable half of the simulated store: what is left when every node is dead.
 *
 * It knows nothing of time, faults or requests: a transaction is applied here at one moment, or it
 * is not. The handles of sim_store.h decide when that moment is, and who hears of it. Checkers
 * watch every write. */
#ifndef GL_SIM_SIM_DISK_H
#define GL_SIM_SIM_DISK_H

#include "base/map.h"
#include "base/mem.h"
#include "port/store.h"
#include "sim/sorted.h"

struct sim_disk_session {
    gl_str id, node;
    uint64_t incarnation;
    gl_ms deadline; /* by the store's clock; INT64_MAX: never renewed with a limit */
    bool dead;
};

struct sim_disk_context;

/* What a checker may see. Records are valid during the call only. */
struct sim_disk_watch {
    void *owner;
    /* The guards of `tx` have held; its writes follow. */
    void (*on_tx)(void *owner, const struct gl_tx *tx);
    /* `before` and `after` have rev 0 where there is no record. */
    void (*on_write)(void *owner, const struct gl_tx *tx, const struct gl_record *before,
                     const struct gl_record *after);
};

struct sim_disk {
    struct gl_map contexts; /* name -> struct sim_disk_context, in the order of their birth */
    struct gl_map sessions; /* id -> struct sim_disk_session, in the order of their birth */
    struct sim_disk_watch watch;
    gl_ms away_until; /* an outage: handles answer "unavailable" before this time */
    uint64_t commits_n, refusals_n;
};

void sim_disk_init(struct sim_disk *d);
void sim_disk_done(struct sim_disk *d);

/* Apply it now or refuse it: GL_OK, GL_E_CONFLICT with *ret_refused, GL_E_LIMIT. */
int sim_disk_commit(struct sim_disk *d, const struct gl_tx *tx, size_t *ret_refused);
bool sim_disk_committed(const struct sim_disk *d, gl_str context, gl_str session, uint64_t tx_id);

/* Every earlier session of the folder dies, as with the lock of a data folder. */
struct sim_disk_session *sim_disk_session_open(struct sim_disk *d, gl_str node, gl_str nonce);
struct sim_disk_session *sim_disk_session_find(const struct sim_disk *d, gl_str id);

/* Readers copy what they find into `a`. */
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

uint64_t sim_disk_measure(const struct sim_disk *d, gl_str context);

/* A record where it stands, not copied: valid until the next commit. NULL if there is none. */
struct sim_disk_record {
    struct sim_row row; /* score 0 */
    uint64_t rev, token;
    bool live;
    gl_str owner, value;
};
const struct sim_disk_record *sim_disk_peek(const struct sim_disk *d, gl_str context, gl_str kind,
                                            gl_str id);
/* All records of a kind in order of their ids, where they stand. */
const struct sim_sorted *sim_disk_kind(const struct sim_disk *d, gl_str context, gl_str kind);

#endif
