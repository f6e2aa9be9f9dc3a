/* component.h - the parts of the core that belong to no job: keeping our session, the other nodes,
 * who leads, whether the store has room, what may be removed.
 *
 * A component has some memory, a time at which it wants to do something, and calls of the store, or
 * for files, under way. A call leaves as the effect CALL; the event ANSWER brings its outcome,
 * under the number of the call. The component keeps the numbers of its calls: an answer with any
 * other number is the answer to a call it has given up, and is ignored. Answers come in any order.
 *
 * Order: gl_components_on_time() with every TICK of a core that has a session. There a component
 * may make a call, with the functions below, which return its number. gl_components_on_answer()
 * hands the answer to whoever made the call. */
#ifndef GL_CORE_COMPONENT_H
#define GL_CORE_COMPONENT_H

#include "core/core_state.h"
#include "core/snapshot.h"

struct gl_component {
    const char *name; /* also the kind of its lines in a snapshot */
    gl_ms (*due)(const struct gl_core *c);
    void (*on_time)(struct gl_core *c);
    void (*on_answer)(struct gl_core *c, const struct gl_event *ev);
    void (*save)(const struct gl_core *c, struct gl_buf *out);
    int (*restore)(struct gl_core *c, struct gl_snapshot_line *l);
};

extern const struct gl_component gl_renewal, gl_store_full, gl_membership, gl_leader, gl_inbox,
    gl_outbox, gl_claims, gl_retention, gl_human_requests;

void gl_components_init(struct gl_core *c, const struct gl_core_config *config);
void gl_components_done(struct gl_core *c);
gl_ms gl_components_due(const struct gl_core *c);
void gl_components_on_time(struct gl_core *c);
void gl_components_on_answer(struct gl_core *c, const struct gl_event *ev);
/* The store may have lost its tail, or be another one. */
void gl_components_on_changed(struct gl_core *c);
void gl_components_save(const struct gl_core *c, struct gl_buf *out);
/* False: no component has lines of that kind. */
bool gl_components_restore(struct gl_core *c, gl_str kind, struct gl_snapshot_line *l, int *ret);

/* We have a session, it has not been lost, and the node is not ending. Never without a TTL: then
 * the core is driven by itself, without a store. */
bool gl_components_are_on(const struct gl_core *c);
/* The same, also while the node is ending: what has been committed may still be answered, because
 * the node waits for calls under way. */
bool gl_components_may_finish(const struct gl_core *c);

/* ---- calls: each returns its number ---- */

/* One record for each key, in their order. */
uint64_t gl_component_get(struct gl_core *c, enum gl_component_id by, const struct gl_key *keys,
                          size_t keys_n);
/* A page of an index. */
uint64_t gl_component_range(struct gl_core *c, enum gl_component_id by,
                            const struct gl_range *range);
/* What time is it by the clock of a shared store? One that is not shared has none. */
uint64_t gl_component_time(struct gl_core *c, enum gl_component_id by);
/* The transaction is made with gl_component_tx() and what that points to lives in c->out->arena. */
uint64_t gl_component_commit(struct gl_core *c, enum gl_component_id by, const struct gl_tx *tx);
uint64_t gl_component_renew(struct gl_core *c, enum gl_component_id by);
uint64_t gl_component_sessions(struct gl_core *c, enum gl_component_id by);
/* Declare this session dead if its time is over. */
uint64_t gl_component_declare(struct gl_core *c, enum gl_component_id by, gl_str session);

/* The same with less of the records, or a page of a listing; `view` is constant. */
uint64_t gl_component_view(struct gl_core *c, enum gl_component_id by, const struct gl_key *keys,
                           size_t keys_n, const struct gl_core_view *view);
uint64_t gl_component_list(struct gl_core *c, enum gl_component_id by,
                           const struct gl_listing *listing, const struct gl_core_view *view);
uint64_t gl_component_count(struct gl_core *c, enum gl_component_id by,
                            const struct gl_range *range);
uint64_t gl_component_measure(struct gl_core *c, enum gl_component_id by);
/* Write the default decisions of a job's requests whose time is over (agents/human_requests.h).
 * ANSWER has their number. */
uint64_t gl_component_expire(struct gl_core *c, enum gl_component_id by, gl_str job);
/* Names are copied. */
uint64_t gl_component_files(struct gl_core *c, enum gl_component_id by,
                            const struct gl_core_files *files);
/* A transaction of one write without a value: the record keeps the one it has. */
uint64_t gl_component_restamp(struct gl_core *c, enum gl_component_id by, const struct gl_tx *tx);

/* Without a number: nobody will ask what became of it, because it may be repeated. Names are
 * copied; values live in c->out->arena already, or outlive it. */
struct gl_tx *gl_component_tx(struct gl_core *c, const struct gl_guard *guards, size_t guards_n,
                              const struct gl_write *writes, size_t writes_n);
/* A line for the operator. */
void gl_component_say(struct gl_core *c, gl_str line);

#endif
