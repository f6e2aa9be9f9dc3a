/* slots.h - a node's bounded capacity for work: who runs, who waits, in which order.
 *
 *   gl_slots_queue()     a step wants slots
 *   gl_slots_unqueue()   it does not want them any more
 *   gl_slots_grant()      give free slots to the heads of the queues
 *   gl_slots_return()    its attempt is over: the process is gone for certain
 *
 * A waiting step costs one small entry (struct gl_wait) and no process; its job may leave memory
 * meanwhile. Slots are held by attempt (struct gl_slot_hold): they outlive the job's other memory,
 * because a failed transaction says nothing about processes that really run. The head of a queue
 * blocks those behind it: a large request is never starved. What else may hold a step back is the
 * business of quotas.h.
 *
 * An agent's lease lasts through its tries at once: between two of them it has its slots and no
 * process. When its time has come it stands in front of everybody else in the queue, with an entry
 * that wants no slots, and starts as soon as anything may. Only where more is held than the pool
 * has (of a node that has died, or after a quarantine) it gives its slots back and queues again.
 *
 * Waiting raises priority, by one for each GL_AGEING_MS. All in a queue age alike, so their order
 * is fixed the moment they come: by the time since which they wait, less GL_AGEING_MS for each
 * point of their priority. */
#ifndef GL_CORE_SCHEDULING_SLOTS_H
#define GL_CORE_SCHEDULING_SLOTS_H

#include "core/core_state.h"

struct gl_quota;

enum { GL_WAIT_KEY_BYTES = GL_ULID_BYTES + 4 };

/*   QUEUED ──► GRANTED ──► its step starts
 *      │          ▲
 *      ▼          │
 *    HELD ◄──► CALLED */
enum gl_wait_state {
    GL_WAIT_QUEUED,  /* in the pool's queue */
    GL_WAIT_HELD,    /* held back by a limit: in its group's queue */
    GL_WAIT_CALLED,  /* in the pool's queue again */
    GL_WAIT_GRANTED, /* has its slots; its job is being loaded */
};

/* A million of these must be affordable: 64 bytes. */
struct gl_wait {
    struct gl_heap_item place; /* in the queue its state names */
    uint32_t slots;            /* 0: it has them already */
    int64_t rank;              /* lower goes first; then by `seq` */
    uint64_t seq;
    struct gl_step *step;        /* NULL: its job is not in memory */
    char key[GL_WAIT_KEY_BYTES]; /* job id, and gl_step_place() */
    uint8_t pool;
    uint8_t state : 7; /* enum gl_wait_state */
    bool limited : 1;  /* it stands in a struct gl_limited */
};

static_assert(sizeof(struct gl_wait) <= 64, "a waiting step costs one small entry");

/* A granted entry whose job is not there yet. */
struct gl_slot_grant {
    struct gl_link link; /* in core->granted */
    struct gl_wait *wait;
};

struct gl_slot_hold {
    struct gl_link link; /* in job->holds */
    uint32_t step_number, slots;
    int pool;               /* -1: it has been configured away, and counts nothing */
    struct gl_quota *limit; /* of its concurrency; NULL: none */
    uint32_t seat;          /* of it on a shared store; 0: none */
    gl_ms rate_next_at;     /* to be written with the start; 0: nothing is */
};

void gl_slots_init(struct gl_core *c, const struct gl_core_pool *pools, size_t pools_n);
void gl_slots_done(struct gl_core *c);

/* Could this step ever get its slots here? Else the reason goes into `why`. */
bool gl_slots_possible(const struct gl_core *c, const struct gl_step_spec *spec,
                       struct gl_why *why);

/* How many stand in the queue it would join. */
size_t gl_slots_queue_length(const struct gl_core *c, const struct gl_step *st);
void gl_slots_queue(struct gl_core *c, struct gl_step *st);
void gl_slots_unqueue(struct gl_core *c, struct gl_step *st); /* fine if it is not queued */
void gl_slots_detach(struct gl_step *st); /* its job leaves memory; the entry stays */
void gl_slots_grant(struct gl_core *c);
/* A step of a job just loaded is running, or between two tries: it has its slots, whatever the
 * capacity says now. */
void gl_slots_adopt(struct gl_core *c, struct gl_step *st);
/* Its attempt has never begun. Is more in use of its pool than there is, or against its limits? */
bool gl_slots_are_exceeded(const struct gl_core *c, const struct gl_step *st);
void gl_slots_return(struct gl_core *c, struct gl_step *st);
/* After loading: holds and grants that no step claimed are given back. */
void gl_slots_reclaim(struct gl_core *c, struct gl_job *j);
void gl_slots_release_all(struct gl_core *c, struct gl_job *j);

/* In a snapshot of the core. */
struct gl_snapshot_line;
void gl_slots_save_holds(const struct gl_job *j, struct gl_buf *out);
bool gl_slots_save_waits(const struct gl_core *c, size_t bytes_max, struct gl_buf *out);
int gl_slots_restore_hold(struct gl_core *c, struct gl_snapshot_line *l);
int gl_slots_restore_wait(struct gl_core *c, struct gl_snapshot_line *l);
int gl_slots_restore_granted(struct gl_core *c, struct gl_snapshot_line *l);
/* Give the step the slots its job holds for it; false: it holds none. */
bool gl_slots_find_hold(struct gl_step *st);

/* Which of two waits goes first. */
bool gl_slots_before(const struct gl_heap_item *a, const struct gl_heap_item *b);
/* What does this step wait for, in or out of memory: slots, or a limit? A sentence without a full
 * stop; GL_BECAUSE_NONE: it stands in no queue. */
enum gl_why_code gl_slots_explain(struct gl_core *c, gl_str job, uint32_t number,
                                  struct gl_buf *out);
/* ", held by ..." some of those that have slots of the pool (-1: any) and the limit (NULL: any). */
void gl_slots_write_holders(struct gl_core *c, int pool, const struct gl_quota *limit,
                            struct gl_buf *out);

#endif
