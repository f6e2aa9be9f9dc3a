/* quotas.h - limits on attempts besides slots: `concurrency` and `rate`.
 *
 * A limit has a key. A concurrency key admits `max` attempts at a time; a rate key admits one
 * start, and the next not before `every_ms` have passed. The step that asked last sets the numbers
 * of a key for all steps, so a flow with a new limit can be submitted while jobs of the old one
 * run.
 *
 * Steps with the same keys and the same pool form a group: either any of them may start or none. A
 * step that reaches the head of its pool's queue while its keys are used up is held back: it moves
 * into its group's queue, so that it does not block the steps after it. When a key becomes free,
 * the group calls its first step back to its old place in the pool's queue. No more steps are
 * called than can start, so an attempt that ends moves one step and not every step that waits.
 *
 * Order of calls:
 *   gl_quotas_join()      a step is about to queue: its group, or NULL if nothing limits it
 *   gl_quotas_allow()     may the step at the head of its pool's queue be granted its slots?
 *   gl_quotas_reserve()   it is granted: takes a unit of its keys
 *   gl_quotas_on_start()  its attempt begins: the slot hold owns the unit from here on
 *   gl_quotas_return()    the attempt has ended
 *   gl_quotas_leave()     the step no longer waits
 *
 * Rules:
 *   - Use of a concurrency key is counted from the attempts that run, also after a restart. It is
 *     never stored as a number that could be wrong.
 *   - A rate must outlive the node: the transaction that decides a start writes the record
 *     "rate"/<key>.
 *   - Memory grows with the steps that wait and the keys in use; at most GL_LIMITS_MAX keys are in
 *     use. */
#ifndef GL_CORE_SCHEDULING_QUOTAS_H
#define GL_CORE_SCHEDULING_QUOTAS_H

#include "core/scheduling/slots.h"

struct gl_quota {
    gl_str key; /* "c:..." or "r:..."; belongs to the core's pool */
    bool is_rate;
    uint32_t in_use;            /* running attempts; of a rate: starts granted but not begun */
    uint32_t max;               /* concurrency: attempts at a time */
    gl_ms every_ms, next_at;    /* rate: least time between starts; nothing starts before this */
    uint64_t rev;               /* rate, shared store: revision of its record; 0: unknown */
    char *seats;                /* concurrency, shared store: enum gl_seat of each (seats.h) */
    uint32_t seats_n, others_n; /* others_n: seats that other nodes hold */
    struct gl_heap_item timer;  /* in quotas->timers until `next_at`; of a concurrency key: until
                                   the seats of other nodes are tried again */
    struct gl_link groups;      /* struct gl_quota_side */
};

struct gl_quota_side { /* a group's link to one of its keys */
    struct gl_link link;
    struct gl_quota *limit; /* NULL: the group has no key of this kind */
    struct gl_quota_group *group;
};

struct gl_quota_group {
    gl_str key; /* made of its limits and its pool */
    struct gl_quota_side concurrency, rate;
    uint8_t pool;
    uint32_t waits_n;            /* its waits, in whatever queue */
    uint32_t called_n;           /* those called back to the pool's queue */
    struct gl_heap held;         /* the waits held back, in queue order */
    struct gl_link lacking_keys; /* in quotas->lacking_keys */
};

/* The wait of a step that has a limit. */
struct gl_limited {
    struct gl_wait wait;
    struct gl_quota_group *group;
};

struct gl_quotas {
    struct gl_map keys;   /* struct gl_quota */
    struct gl_map groups; /* struct gl_quota_group */
    struct gl_heap timers;
    size_t active_n;             /* keys in use, or with a running timer */
    struct gl_link lacking_keys; /* groups held back because GL_LIMITS_MAX keys are active */
    uint64_t calls_n;            /* waits called back so far */
};

void gl_quotas_init(struct gl_core *c);
void gl_quotas_done(struct gl_core *c); /* no wait and no hold is left */

/* The group counts the wait until gl_quotas_leave(). */
struct gl_quota_group *gl_quotas_join(struct gl_core *c, const struct gl_step *st, uint8_t pool);
void gl_quotas_leave(struct gl_core *c, struct gl_wait *w);
/* False: it has been moved from the pool's queue to its group's, and will be called back. */
bool gl_quotas_allow(struct gl_core *c, struct gl_wait *w);
void gl_quotas_reserve(struct gl_core *c, struct gl_wait *w);
void gl_quotas_unreserve(struct gl_core *c, struct gl_wait *w); /* the grant is void */
void gl_quotas_on_start(struct gl_core *c, const struct gl_wait *w, struct gl_slot_hold *h);
/* A step of a job just loaded runs already: counts it, even above the limit. */
void gl_quotas_adopt(struct gl_core *c, const struct gl_step *st, struct gl_slot_hold *h);
void gl_quotas_return(struct gl_core *c, struct gl_slot_hold *h);
/* The attempt may still run, on a node that is dead: its seat stays taken when the hold goes. */
void gl_quotas_leave_seat(struct gl_core *c, struct gl_slot_hold *h);
/* The step's attempt was decided but never began. Would its limits forbid beginning it now? */
bool gl_quotas_are_exceeded(const struct gl_step *st);

/* The guard on this record ("limit/..." or "rate/...") refused a start: another node was faster. */
void gl_quotas_on_refused(struct gl_core *c, gl_str guard);
/* Calls waits of keys whose time has come. Once per step of the core, before slots are granted. */
void gl_quotas_on_timer(struct gl_core *c);
gl_ms gl_quotas_next_due(const struct gl_core *c);
/* The event RATES: the stored rates, before anything starts. */
void gl_quotas_on_rates(struct gl_core *c, const struct gl_event *ev);

/* The key as the flow names it, without the prefix of its kind. */
gl_str gl_quotas_key(const struct gl_quota *l);

/* Snapshots of the core. Use and waits are not saved as numbers: restoring the holds and waits
 * counts them again. */
gl_str gl_quotas_name(const struct gl_wait *w); /* the key of its group */
struct gl_quota_group *gl_quotas_find(const struct gl_core *c, gl_str name);
void gl_quotas_save(const struct gl_core *c, struct gl_buf *out);
int gl_quotas_restore_limit(struct gl_core *c, struct gl_snapshot_line *l);
int gl_quotas_restore_group(struct gl_core *c, struct gl_snapshot_line *l);
int gl_quotas_restore_lacking_keys(struct gl_core *c, struct gl_snapshot_line *l);
void gl_quotas_restore_wait(struct gl_core *c, struct gl_wait *w); /* w->state is set */
bool gl_quotas_restore_hold(struct gl_core *c, struct gl_slot_hold *h, gl_str limit);
bool gl_quotas_drop_empty(struct gl_core *c); /* groups without waits; true: there were none */

/* Why the step is held back, as a sentence without a full stop; GL_BECAUSE_NONE: it is not. */
enum gl_why_code gl_quotas_explain(struct gl_core *c, const struct gl_wait *w, struct gl_buf *out);

#endif
