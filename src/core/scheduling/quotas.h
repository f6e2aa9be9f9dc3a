/* quotas.h - what a node's attempts share beyond its slots: `concurrency` and `rate`.
 *
 * A limit has a key. A concurrency key admits `max` attempts at a time; a rate key admits one
 * start, and the next one not before `every_ms` have passed. What the latest asker says of a key
 * holds for everybody: a flow with a new number can be submitted while the old one runs.
 *
 * Steps with the same keys and the same pool form a group: either all of them may start or none. A
 * step that reaches the head of its pool's queue when its keys are not free is held back: it waits
 * in its group, so that it blocks nobody behind it. When its keys are free its group calls it, and
 * it stands in the pool's queue again, at its old place. No more are called than can start: of many
 * that wait, one end moves one.
 *
 *   gl_quotas_join()      a step is about to queue: its group, or NULL if nothing limits it
 *   gl_quotas_allow()    may this wait, at the head of its pool's queue, be granted?
 *   gl_quotas_reserve()      it is granted: its keys are taken
 *   gl_quotas_on_start()    its attempt begins: from here on the hold has them
 *   gl_quotas_return()   its attempt is over
 *
 * Concurrency is counted from running attempts, after a restart as before it. A rate outlives the
 * node in the record "rate"/<key>, which is written by the transaction that decides the start.
 * Memory follows the waits and the keys in use; of the latter there are at most GL_LIMITS_MAX. */
#ifndef GL_CORE_SCHEDULING_QUOTAS_H
#define GL_CORE_SCHEDULING_QUOTAS_H

#include "core/scheduling/slots.h"

struct gl_quota {
    gl_str key; /* "c:..." or "r:..."; belongs to the core's pool */
    bool is_rate;
    uint32_t in_use;         /* attempts that run; of a rate: granted, but not begun */
    uint32_t max;            /* concurrency: how many may */
    gl_ms every_ms, next_at; /* rate: between two starts; before this nothing starts */
    uint64_t rev;            /* rate: of its record, on a shared store; 0: not known */
    char *seats;             /* concurrency, on a shared store: see seats.h */
    uint32_t seats_n, others_n;
    struct gl_heap_item timer; /* in quotas->timers until `next_at`. Concurrency: until others'
                                  seats are tried again */
    struct gl_link groups;     /* struct gl_quota_side */
};

struct gl_quota_side { /* one of a group's keys */
    struct gl_link link;
    struct gl_quota *limit; /* NULL: it has none of this kind */
    struct gl_quota_group *group;
};

struct gl_quota_group {
    gl_str key; /* of its limits and its pool */
    struct gl_quota_side concurrency, rate;
    uint8_t pool;
    uint32_t waits_n;            /* its waits, wherever they are */
    uint32_t called_n;           /* of them, those that were called and stand in the pool's queue */
    struct gl_heap held;         /* those held back */
    struct gl_link lacking_keys; /* in quotas->lacking_keys */
};

/* A waiting step that something limits. */
struct gl_limited {
    struct gl_wait wait;
    struct gl_quota_group *group;
};

struct gl_quotas {
    struct gl_map keys;   /* struct gl_quota */
    struct gl_map groups; /* struct gl_quota_group */
    struct gl_heap timers;
    size_t active_n;             /* keys that are in use, or whose time has not come */
    struct gl_link lacking_keys; /* groups held back because there are too many of those */
    uint64_t calls_n;            /* waits called so far */
};

void gl_quotas_init(struct gl_core *c);
void gl_quotas_done(struct gl_core *c); /* after the last wait and the last hold */

/* Counts a wait: gl_quotas_leave() ends it. */
struct gl_quota_group *gl_quotas_join(struct gl_core *c, const struct gl_step *st, uint8_t pool);
void gl_quotas_leave(struct gl_core *c, struct gl_wait *w);
/* false: it has been taken out of the pool's queue, and is called when its time comes. */
bool gl_quotas_allow(struct gl_core *c, struct gl_wait *w);
void gl_quotas_reserve(struct gl_core *c, struct gl_wait *w);
void gl_quotas_unreserve(struct gl_core *c, struct gl_wait *w); /* granted, but nobody wants it */
void gl_quotas_on_start(struct gl_core *c, const struct gl_wait *w, struct gl_slot_hold *h);
/* A step of a job just loaded is running: it counts, whatever the limit says now. */
void gl_quotas_adopt(struct gl_core *c, const struct gl_step *st, struct gl_slot_hold *h);
void gl_quotas_return(struct gl_core *c, struct gl_slot_hold *h);
/* Its attempt has never begun. Would beginning it now be against its limits? */
bool gl_quotas_are_exceeded(const struct gl_step *st);

/* A start was refused by this record, "limit/..." or "rate/...": another node was faster. */
void gl_quotas_on_refused(struct gl_core *c, gl_str guard);
/* Rates whose time has come: once per step of the core, before slots are given out. */
void gl_quotas_on_timer(struct gl_core *c);
gl_ms gl_quotas_next_due(const struct gl_core *c);
/* What is stored of rates, before anything starts. */
void gl_quotas_on_rates(struct gl_core *c, const struct gl_event *ev);

/* Its name, without what tells it from one of the other kind. */
gl_str gl_quotas_key(const struct gl_quota *l);

/* In a snapshot of the core. Units in use and waits are counted as holds and waits come back. */
gl_str gl_quotas_name(const struct gl_wait *w); /* of its group */
struct gl_quota_group *gl_quotas_find(const struct gl_core *c, gl_str name);
void gl_quotas_save(const struct gl_core *c, struct gl_buf *out);
int gl_quotas_restore_limit(struct gl_core *c, struct gl_snapshot_line *l);
int gl_quotas_restore_group(struct gl_core *c, struct gl_snapshot_line *l);
int gl_quotas_restore_lacking_keys(struct gl_core *c, struct gl_snapshot_line *l);
void gl_quotas_restore_wait(struct gl_core *c, struct gl_wait *w); /* its state is known */
bool gl_quotas_restore_hold(struct gl_core *c, struct gl_slot_hold *h, gl_str limit);
bool gl_quotas_drop_empty(struct gl_core *c); /* groups; true: there were none */

/* Why is it held back? A sentence without a full stop; GL_BECAUSE_NONE: it is not. */
enum gl_why_code gl_quotas_explain(struct gl_core *c, const struct gl_wait *w, struct gl_buf *out);

#endif
