/* slots.h - a node's capacity: pools of slots, the queues for them, and the attempts that hold
 * them.
 *
 * Order of calls:
 *   gl_slots_queue()    a step wants slots
 *   gl_slots_unqueue()  it no longer does
 *   gl_slots_grant()    gives free slots to the heads of the queues, which start
 *   gl_slots_return()   its attempt has ended: the process is certainly gone
 *
 * Rules:
 *   - A waiting step costs one small entry (struct gl_wait) and no process. Its job may leave
 *     memory meanwhile; the entry stays, and the job is loaded again when the slots are granted.
 *   - Slots belong to an attempt (struct gl_slot_hold) and outlive the rest of the job's memory: a
 *     failed transaction says nothing about processes that are really running.
 *   - The head of a queue blocks the entries after it, so a request for many slots never starves.
 *     Limits other than slots do not block the queue (quotas.h).
 *   - The order of a queue is fixed when a step joins it. Waiting raises the priority by one for
 *     each GL_AGEING_MS, for all entries alike; so they are ordered by the time since which they
 *     wait, less GL_AGEING_MS for each point of priority.
 *
 * The lease of an agent covers its immediate retries: between two of them the agent has slots and
 * no process. When the retry is due, it goes to the front of the queue with an entry that wants no
 * slots, and starts as soon as anything may start. Only if more is held than the pool has (taken
 * over from a dead node, or after a quarantine) it returns its slots and queues again. */
#ifndef GL_CORE_SCHEDULING_SLOTS_H
#define GL_CORE_SCHEDULING_SLOTS_H

#include "core/core_state.h"

struct gl_quota;
struct gl_taken;

enum { GL_WAIT_KEY_BYTES = GL_ULID_BYTES + 4 };

/*   QUEUED ──► GRANTED ──► its step starts
 *      │          ▲
 *      ▼          │
 *    HELD ◄──► CALLED */
enum gl_wait_state {
    GL_WAIT_QUEUED,  /* in the pool's queue */
    GL_WAIT_HELD,    /* held back by a limit: in its group's queue */
    GL_WAIT_CALLED,  /* called back: in the pool's queue again */
    GL_WAIT_GRANTED, /* has its slots; its job may still have to be loaded */
};

/* A million of these must be affordable: 64 bytes. */
struct gl_wait {
    struct gl_heap_item place; /* in the queue its state names */
    uint32_t slots;            /* wanted; 0: it holds them already */
    int64_t rank;              /* the lower goes first; then the lower `seq` */
    uint64_t seq;
    struct gl_step *step;        /* NULL: its job is not in memory, or another node's */
    char key[GL_WAIT_KEY_BYTES]; /* job id and gl_step_place() */
    uint8_t pool;
    uint8_t state : 3;   /* enum gl_wait_state */
    uint8_t where : 2;   /* enum gl_slots_where */
    bool is_loading : 1; /* its job is being loaded, to start on another node */
    bool limited : 1;    /* part of a struct gl_limited */
    bool offered : 1;    /* part of a struct gl_offered_wait: an attempt of another node's job */
};

static_assert(sizeof(struct gl_wait) <= 64, "a waiting step costs one small entry");

/* The entry of an attempt that another node offers (cluster/taken.h). */
struct gl_offered_wait {
    struct gl_wait wait;
    struct gl_taken *taken;
};

/* A granted entry whose job is being loaded. */
struct gl_slot_grant {
    struct gl_link link; /* in core->granted */
    struct gl_wait *wait;
};

struct gl_slot_hold {
    struct gl_link link; /* in job->holds */
    uint32_t step_number, slots;
    int pool;               /* -1: the slots count nowhere: the attempt runs elsewhere, or the
                               pool is no longer configured */
    struct gl_quota *limit; /* its concurrency key; NULL: none */
    uint32_t seat;          /* of that key, on a shared store; 0: none */
};

void gl_slots_init(struct gl_core *c, const struct gl_core_pool *pools, size_t pools_n);
void gl_slots_done(struct gl_core *c);

/* The queue that the entry is in while it is queued or called. */
struct gl_heap *gl_slots_queue_of(struct gl_core *c, const struct gl_wait *w);
/* May the step queue here although only other nodes can run it? */
bool gl_slots_may_queue_away(struct gl_core *c, const struct gl_step *st);
/* Are enough slots free here, with nobody waiting for them? */
bool gl_slots_have_room(const struct gl_core *c, const struct gl_step_spec *spec);
/* The number of the pool; it is added, without slots, if other nodes have it. -1: there are too
 * many. */
int gl_slots_add_pool(struct gl_core *c, gl_str name);
/* How many entries wait in the queues of a pool. */
size_t gl_slots_waiting(const struct gl_core_pool_state *p);

/* An attempt that another node offers queues like a step of this node's jobs, by the same rank.
 * Once its slots are granted, gl_taken_on_granted() owns them, until gl_slots_give_back(). */
struct gl_wait *gl_slots_queue_offered(struct gl_core *c, struct gl_taken *t, gl_str job,
                                       uint32_t place, int pool, uint32_t slots, int64_t rank);
struct gl_wait *gl_slots_find_offered(const struct gl_core *c, gl_str job, uint32_t place);
void gl_slots_unqueue_offered(struct gl_core *c, struct gl_wait *w);
/* The slots of an attempt taken by an earlier life of this node, even if there are none free. */
void gl_slots_take_up(struct gl_core *c, int pool, uint32_t slots);
void gl_slots_give_back(struct gl_core *c, int pool, uint32_t slots);

/* Could this step ever get its slots on this node? If not, `why` receives the reason. */
bool gl_slots_possible(const struct gl_core *c, const struct gl_step_spec *spec,
                       struct gl_why *why);

/* The same, as far as the pool is concerned. */
bool gl_slots_has_pool(const struct gl_core *c, const struct gl_step_spec *spec);

/* The entry of a step that waits; NULL: it does not. */
struct gl_wait *gl_slots_find(const struct gl_core *c, gl_str job, uint32_t number);
/* The length of the queue it would join. */
size_t gl_slots_queue_length(const struct gl_core *c, const struct gl_step *st);
void gl_slots_queue(struct gl_core *c, struct gl_step *st);
void gl_slots_unqueue(struct gl_core *c, struct gl_step *st); /* no-op if it is not queued */
void gl_slots_detach(struct gl_step *st);                     /* its job leaves memory */
void gl_slots_grant(struct gl_core *c);
/* A step of a job just loaded is running, or waits for an immediate retry: it has its slots, even
 * if the pool is smaller now. */
void gl_slots_adopt(struct gl_core *c, struct gl_step *st);
/* The step's attempt was decided but never began. Is more in use than its pool or its limits
 * allow? */
bool gl_slots_are_exceeded(const struct gl_core *c, const struct gl_step *st);
void gl_slots_return(struct gl_core *c, struct gl_step *st);
/* After a load: gives back the holds and grants that no step has taken up. */
void gl_slots_reclaim(struct gl_core *c, struct gl_job *j);
/* The job goes: gives back everything its attempts hold. */
void gl_slots_release_all(struct gl_core *c, struct gl_job *j);

/* Snapshots of the core. */
struct gl_snapshot_line;
void gl_slots_save_holds(const struct gl_job *j, struct gl_buf *out);
bool gl_slots_save_waits(const struct gl_core *c, size_t bytes_max, struct gl_buf *out);
int gl_slots_restore_hold(struct gl_core *c, struct gl_snapshot_line *l);
int gl_slots_restore_wait(struct gl_core *c, struct gl_snapshot_line *l);
int gl_slots_restore_granted(struct gl_core *c, struct gl_snapshot_line *l);
/* Connects the step with the slots its job holds for it. False: it holds none. */
bool gl_slots_find_hold(struct gl_step *st);

/* Does wait `a` go before `b`? The order of all queues. */
bool gl_slots_before(const struct gl_heap_item *a, const struct gl_heap_item *b);
/* What the step waits for, slots or a limit, as a sentence without a full stop; GL_BECAUSE_NONE: it
 * is in no queue. The job need not be in memory. */
enum gl_why_code gl_slots_explain(struct gl_core *c, gl_str job, uint32_t number,
                                  struct gl_buf *out);
/* See core.h. */
void gl_slots_places(const struct gl_core *c, struct gl_arena *a, struct gl_core_places *ret);
bool gl_slots_longest_waiting(const struct gl_core *c, struct gl_core_waiting *ret);
/* Appends ", held by ..." with a few attempts that hold slots of the pool (-1: any pool) under the
 * limit (NULL: any). */
void gl_slots_write_holders(struct gl_core *c, int pool, const struct gl_quota *limit,
                            struct gl_buf *out);

#endif
