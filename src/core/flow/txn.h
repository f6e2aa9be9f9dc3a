/* txn.h - collects a job's changes during a step of the core and writes them as one transaction,
 * followed by the effects that wait for it.
 *
 *   gl_txn_touch()    this step of the core changes the job: it will be reconciled and flushed
 *   gl_txn_changed()  the job's own record must be written
 *   gl_txn_dirty()    this step's record must be written
 *   gl_txn_log()      adds an event to the job's history
 *   gl_txn_effect()   adds an effect that happens once the transaction has committed
 *   gl_txn_flush()    builds the transaction and emits it with its effects
 *
 * Rules:
 *   - One job, one transaction: nothing of a job leaves the core in two pieces that could commit
 *     apart.
 *   - Every transaction guards on the revision its predecessor wrote. Several may be in flight;
 *     if one fails, so do all that follow it.
 *   - No START, ACK, RESOLVE or reply leaves before the state that caused it has committed. */
#ifndef GL_CORE_FLOW_TXN_H
#define GL_CORE_FLOW_TXN_H

#include "core/core_state.h"

/* On a shared store: the index of the guard on the flow's record in the transaction that creates a
 * job, if the flow is believed to be stored. */
enum { GL_TXN_FLOW_GUARD = 2 };

void gl_txn_touch(struct gl_core *c, struct gl_job *j);
void gl_txn_dirty(struct gl_core *c, struct gl_step *st);
void gl_txn_changed(struct gl_core *c, struct gl_job *j); /* the job's own record */

/* Adds an event to the job's history. `st` may be NULL, `reason` empty; `raw` is further fields
 * ("\"a\":1") or empty. */
void gl_txn_log(struct gl_core *c, struct gl_job *j, const struct gl_step *st, const char *type,
                gl_str reason, gl_str raw);

/* Adds a write to the transaction. The caller fills in the rest at once: the pointer is valid until
 * the next write. Strings must live in the arena of the effects. */
struct gl_write *gl_txn_write(struct gl_core *c, struct gl_job *j, enum gl_write_type type,
                              gl_str kind, gl_str id);

/* Adds a guard: the transaction commits only if it holds. Valid until the next guard. */
struct gl_guard *gl_txn_guard(struct gl_core *c, struct gl_job *j, enum gl_guard_type type,
                              gl_str kind, gl_str id);

/* Adds an effect that happens after the job's transaction, or at once if there is none. Valid until
 * the next effect. */
struct gl_effect *gl_txn_effect(struct gl_core *c, struct gl_job *j, enum gl_effect_type type);
/* Adds a START, ATTACH or STOP of the step's current attempt. */
struct gl_effect *gl_txn_attempt(struct gl_core *c, struct gl_step *st, enum gl_effect_type type);
/* Answers a request about a job; `fmt` may be NULL on success. Request 0: no answer is expected. */
void gl_txn_reply(struct gl_core *c, struct gl_job *j, uint64_t request, int code, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));
/* Refuses a request that concerns no job in memory: the answer leaves at once. */
void gl_txn_refuse(struct gl_core *c, uint64_t request, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A record's value. */
gl_str gl_txn_encode(struct gl_arena *a, const struct gl_schema *schema, const void *object);

/* Has the step ended, with nothing left to propagate? Then the next flush frees it. */
bool gl_txn_may_drop(const struct gl_step *st);

/* Writes the changes of a touched job. Emits only the effects if nothing has changed. */
void gl_txn_flush(struct gl_core *c, struct gl_job *j);

#endif
