/* taken.h - the executor's side of attempts of other nodes' jobs (model/offer.h has the records).
 *
 *   offered ──► QUEUED ──► TAKING ──► RUNNING ──► OVER ──► (gone)
 *                  │          │          │          until its owner has deleted the record
 *                  ▼          ▼          ▼
 *               (gone: too late, refused, or its record has been deleted)
 *
 * Rules:
 *   - An offer waits in the queue of its pool like a step of this node's own jobs. It is taken only
 *     when it has its slots: so what runs here never exceeds what this node has.
 *   - An attempt starts only after the transaction that takes it has committed. That one is guarded
 *     on the step's record being as it was read, and on nobody having taken or withdrawn the offer.
 *   - The executor keeps a result until the owner has deleted the record, which shows that it has
 *     accepted the result or does not want it.
 *   - What an earlier session of this node has taken is taken up again before anything new starts.
 *     As long as a session of this node lives, nobody else decides about it.
 *
 * Called: gl_taken_on_event() with every report of the executor, before anyone else; the rest runs
 * by itself, as a component. */
#ifndef GL_CORE_CLUSTER_TAKEN_H
#define GL_CORE_CLUSTER_TAKEN_H

#include "core/core_state.h"

struct gl_taken;

void gl_taken_init(struct gl_core *c);
void gl_taken_done(struct gl_core *c);

/* The executor's report is about an attempt that this node has taken, or may have taken: then it
 * has been dealt with. */
bool gl_taken_on_event(struct gl_core *c, const struct gl_event *ev);
/* The same for one attempt of the executor's list. */
bool gl_taken_on_listed(struct gl_core *c, const struct gl_event_info *info);
/* The executor is available again. */
void gl_taken_on_up(struct gl_core *c);
/* The queue has given the attempt its slots. */
void gl_taken_on_granted(struct gl_core *c, struct gl_taken *t);
/* Another node has written something for this one. */
void gl_taken_on_woken(struct gl_core *c);
/* The store may have lost its latest writes. */
void gl_taken_on_changed(struct gl_core *c);
/* Is it known what earlier sessions of this node have taken? */
bool gl_taken_is_known(const struct gl_core *c);

/* Snapshots of the core, after the waits. */
struct gl_snapshot_line;
void gl_taken_save_all(const struct gl_core *c, struct gl_buf *out);
int gl_taken_restore_job(struct gl_core *c, struct gl_snapshot_line *l);
int gl_taken_restore_attempt(struct gl_core *c, struct gl_snapshot_line *l);
int gl_taken_restore_list(struct gl_core *c, struct gl_snapshot_line *l);
int gl_taken_restore_entry(struct gl_core *c, struct gl_snapshot_line *l);

#endif
