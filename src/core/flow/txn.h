/* txn.h - a job's changes leave memory: one transaction, and the effects that wait for it.
 *
 *   gl_txn_touch()    this job is being changed in this step of the core
 *   gl_txn_dirty()    this step's record must be written
 *   gl_txn_log()      an event for its log
 *   gl_txn_effect()   something to do once the transaction has committed
 *   gl_txn_flush()    write it all out */
#ifndef GL_CORE_FLOW_TXN_H
#define GL_CORE_FLOW_TXN_H

#include "core/core_state.h"

/* On a shared store this guard of the transaction that creates a job is about its flow, if that is
 * believed to be there. */
enum { GL_TXN_FLOW_GUARD = 2 };

void gl_txn_touch(struct gl_core *c, struct gl_job *j);
void gl_txn_dirty(struct gl_core *c, struct gl_step *st);
void gl_txn_changed(struct gl_core *c, struct gl_job *j); /* the job's own record */

/* One event of the job's log. `st` may be NULL; `status`, `reason` may be empty; `raw` is more
 * fields ("\"a\":1"), or empty. */
void gl_txn_log(struct gl_core *c, struct gl_job *j, const struct gl_step *st, const char *type,
                gl_str reason, gl_str raw);

/* A further write of this step's transaction. Fill it in at once; its strings live in the arena of
 * the effects. */
struct gl_write *gl_txn_write(struct gl_core *c, struct gl_job *j, enum gl_write_type type,
                              gl_str kind, gl_str id);

/* A further guard of this step's transaction. */
struct gl_guard *gl_txn_guard(struct gl_core *c, struct gl_job *j, enum gl_guard_type type,
                              gl_str kind, gl_str id);

/* Valid until the next effect. Happens after this step's transaction of the job, or at once if
 * there is none. */
struct gl_effect *gl_txn_effect(struct gl_core *c, struct gl_job *j, enum gl_effect_type type);
/* The same, about the current attempt of a step. */
struct gl_effect *gl_txn_attempt(struct gl_core *c, struct gl_step *st, enum gl_effect_type type);
/* Answer a request; `fmt` may be NULL on success. */
void gl_txn_reply(struct gl_core *c, struct gl_job *j, uint64_t request, int code, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));
/* Answer a request that concerns no job in memory. */
void gl_txn_refuse(struct gl_core *c, uint64_t request, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A step has reached its end and has nothing left to tell: its memory goes with the next flush. */
bool gl_txn_may_drop(const struct gl_step *st);

void gl_txn_flush(struct gl_core *c, struct gl_job *j);

#endif
