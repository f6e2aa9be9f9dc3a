/* component.h - the parts of the core that belong to no job: session renewal, membership,
 * leadership, commands between nodes, a full store, claims, retention.
 *
 * A component has some memory, a timer, and calls in flight: reads and writes of the store, or work
 * on files. A call leaves as the effect CALL, and its outcome comes back as the event ANSWER with
 * the call's number. Rules:
 *   - The component remembers the numbers of its calls. An answer with any other number belongs to
 *     a call it has given up, and is ignored.
 *   - Answers may arrive in any order, but never within the step that made the call.
 *   - An answer may never come if the node ends.
 *
 * Called: gl_components_init(); gl_components_on_time() with every TICK, where a component whose
 * timer is due may make calls with the functions below; gl_components_on_answer() with every
 * ANSWER, which passes it to the component that made the call; gl_components_done(). */
#ifndef GL_CORE_COMPONENT_H
#define GL_CORE_COMPONENT_H

#include "core/core_state.h"
#include "core/snapshot.h"

struct gl_component {
    const char *name; /* also the kind of its line in a snapshot */
    gl_ms (*due)(const struct gl_core *c);
    void (*on_time)(struct gl_core *c);
    void (*on_answer)(struct gl_core *c, const struct gl_event *ev);
    void (*save)(const struct gl_core *c, struct gl_buf *out);
    int (*restore)(struct gl_core *c, struct gl_snapshot_line *l);
};

extern const struct gl_component gl_renewal, gl_store_full, gl_membership, gl_leader, gl_inbox,
    gl_outbox, gl_claims, gl_retention, gl_human_requests, gl_offers, gl_taken;

void gl_components_init(struct gl_core *c, const struct gl_core_config *config);
void gl_components_done(struct gl_core *c);
gl_ms gl_components_due(const struct gl_core *c);
void gl_components_on_time(struct gl_core *c);
void gl_components_on_answer(struct gl_core *c, const struct gl_event *ev);
/* The connection to the store has changed: it may have lost its latest writes, or be another store.
 */
void gl_components_on_changed(struct gl_core *c);
void gl_components_save(const struct gl_core *c, struct gl_buf *out);
/* False: no component has lines of this kind. */
bool gl_components_restore(struct gl_core *c, gl_str kind, struct gl_snapshot_line *l, int *ret);

/* May components make calls? They may if we have a session, have not lost it, and the node is not
 * ending. Never without a TTL: then the core runs without a store, in a test. */
bool gl_components_are_on(const struct gl_core *c);
/* The same, also while the node is ending: a command that has been committed may still be answered,
 * because the node waits for calls in flight. */
bool gl_components_may_finish(const struct gl_core *c);

/* ---- calls: each returns its number ---- */

/* One record for each key, in their order. */
uint64_t gl_component_get(struct gl_core *c, enum gl_component_id by, const struct gl_key *keys,
                          size_t keys_n);
/* A page of an index. */
uint64_t gl_component_range(struct gl_core *c, enum gl_component_id by,
                            const struct gl_range *range);
/* The time by the store's clock. Only a shared store has one. */
uint64_t gl_component_time(struct gl_core *c, enum gl_component_id by);
/* `tx` was made by gl_component_tx(). */
uint64_t gl_component_commit(struct gl_core *c, enum gl_component_id by, const struct gl_tx *tx);
uint64_t gl_component_renew(struct gl_core *c, enum gl_component_id by);
uint64_t gl_component_sessions(struct gl_core *c, enum gl_component_id by);
/* Declare this session dead if it has expired. */
uint64_t gl_component_declare(struct gl_core *c, enum gl_component_id by, gl_str session);

/* Like get, but with only the part of the records that `view` selects; a page of a listing, too.
 * `view` must be static: it is not copied. */
uint64_t gl_component_view(struct gl_core *c, enum gl_component_id by, const struct gl_key *keys,
                           size_t keys_n, const struct gl_core_view *view);
uint64_t gl_component_list(struct gl_core *c, enum gl_component_id by,
                           const struct gl_listing *listing, const struct gl_core_view *view);
uint64_t gl_component_count(struct gl_core *c, enum gl_component_id by,
                            const struct gl_range *range);
uint64_t gl_component_measure(struct gl_core *c, enum gl_component_id by);
/* Write the default decisions of a job's requests to people whose time is over
 * (agents/human_requests.h). ANSWER has their number. */
uint64_t gl_component_expire(struct gl_core *c, enum gl_component_id by, gl_str job);
/* Work on files outside the store. Names are copied. */
uint64_t gl_component_files(struct gl_core *c, enum gl_component_id by,
                            const struct gl_core_files *files);
/* A transaction of one write without a value: the record keeps its value, and gets a new revision.
 */
uint64_t gl_component_restamp(struct gl_core *c, enum gl_component_id by, const struct gl_tx *tx);

/* A transaction without a number: if its outcome is unknown, the store cannot be asked for it, so
 * its guards must make it safe to repeat. Names are copied; values must live in c->out->arena or
 * outlive it. */
struct gl_tx *gl_component_tx(struct gl_core *c, const struct gl_guard *guards, size_t guards_n,
                              const struct gl_write *writes, size_t writes_n);
/* A line for the operator, in the node's log. */
void gl_component_say(struct gl_core *c, gl_str line);

#endif
