/* parts.h - what the files of this folder use of each other; nothing else includes it.
 *
 * A pass is one chain of calls and answers. Each function that makes a call ends with
 * gl_retention_enter(); the answer comes to the handler of that stage, which makes the next call,
 * or finishes:
 *
 *   begin (retention.c) ─► page ─► gl_ended_begin() ─► gl_drop_next() ─► gl_retention_batch_done()
 *         ─► page ... ─► gl_chores_begin() ─► gl_garbage_begin(), gl_leftovers_begin() ...
 *         ─► gl_chores_next() ... ─► gl_retention_finish()
 *
 * A handler may end the pass and begin the next one before it returns. So no function looks at the
 * pass after it has called one of these. */
#ifndef GL_CORE_RETENTION_PARTS_H
#define GL_CORE_RETENTION_PARTS_H

#include "core/component.h"
#include "core/core_state.h"
#include "core/retention/retention.h"
#include "port/store.h"

struct gl_clean { /* a client's request that waits */
    struct gl_link link;
    uint64_t request;
    bool is_removal;   /* of `job`; else of all ended jobs that need not be kept */
    gl_str job;        /* belongs to the pool */
    gl_ms keep_for;    /* -1: as configured */
    int64_t keep_jobs; /* -1: as configured */
};

struct gl_pin { /* `job` may not be removed: the submission of `by` retries it */
    struct gl_link link;
    gl_str job, by; /* belong to the pool */
};

struct gl_damaged_job { /* a job whose flow is not known: reserved.c */
    gl_str id;          /* belongs to the pool */
    uint64_t look;      /* number of the last scan that found it damaged */
};

static inline struct gl_retention_pass *gl_pass(struct gl_core *c)
{
    return &c->retention.pass;
}

/* ---- retention.c ---- */
#define X(name, word, how, handler) void handler(struct gl_core *c, const struct gl_event *ev);
GL_RETENTION_STAGES(X)
#undef X
void gl_retention_enqueue(struct gl_core *c, const struct gl_clean *ask); /* copied */
/* End the pass: answer the client, if one waits, and begin the next request. */
void gl_retention_finish(struct gl_core *c, int64_t code, gl_str why);
/* The same after a failure: what the pass left half done is looked for by the next one. */
void gl_retention_fail(struct gl_core *c, int64_t code, gl_str why);
/* All jobs of the batch have been removed or kept. */
void gl_retention_batch_done(struct gl_core *c);
/* The answer says that a guard did not hold: another node was first. */
bool gl_retention_is_refused(struct gl_core *c, const struct gl_event *ev);
/* One of several calls has been answered. True: it was the last, and none failed. False: others are
 * in flight, or the pass has ended. */
bool gl_retention_all_answered(struct gl_core *c, const struct gl_event *ev);
/* Fails the pass, and returns false, unless the answer has as many items as asked for. A recording
 * that is replayed may contain anything. */
bool gl_retention_check(struct gl_core *c, bool is_as_asked);

/* Several calls may be under way in this stage; their numbers are kept elsewhere. */
bool gl_retention_has_many(enum gl_retention_stage stage);

/* Enter a stage, with the call whose answer it waits for; 0 where it waits for none or several. */
void gl_retention_enter(struct gl_core *c, enum gl_retention_stage stage, uint64_t call);
/* Each makes a call and enters the stage. */
void gl_retention_get(struct gl_core *c, enum gl_retention_stage stage, const struct gl_key *keys,
                      size_t n, const struct gl_core_view *view);
void gl_retention_range(struct gl_core *c, enum gl_retention_stage stage, struct gl_range range);
/* A page of GL_TRIM_PAGE, from the pass's `after` on. */
void gl_retention_list(struct gl_core *c, enum gl_retention_stage stage, const char *kind,
                       size_t bytes_max, const struct gl_core_view *view);
void gl_retention_measure(struct gl_core *c, enum gl_retention_stage stage);
void gl_retention_files(struct gl_core *c, enum gl_retention_stage stage,
                        enum gl_core_files_type type, const gl_str *names, size_t n, gl_ms age_ms);
/* A transaction under `guards` and a guard on our session, which is written to `guards[guards_n]`.
 */
struct gl_tx *gl_retention_tx(struct gl_core *c, struct gl_guard *guards, size_t guards_n,
                              const struct gl_write *writes, size_t writes_n);

/* Read the members that `schema` has from a record's value, as a view returned it. Strings live in
 * `a`. False: not readable. */
bool gl_retention_read(struct gl_arena *a, const struct gl_schema *schema, gl_str value, void *ret);
/* Add a copy of `text` to a set, unless it is empty or there already. */
void gl_retention_add_text(struct gl_retention_pass *p, struct gl_map *set, gl_str text);
/* Make room for one more item in a list in the pass's arena. */
void *gl_retention_grow(struct gl_retention_pass *p, void *items, size_t n, size_t *cap,
                        size_t bytes);
/* Add a candidate; the pointer is good until the next one is added. */
struct gl_candidate *gl_retention_add_candidate(struct gl_retention_pass *p, gl_str id);
extern const struct gl_core_view gl_view_stamps, gl_view_ids;

/* ---- ended.c ---- */
void gl_ended_begin(struct gl_core *c); /* p->jobs[..].id and .r.ended_at have been set */
/* The next page of what belongs to it, and then gl_drop_next(). */
void gl_ended_list(struct gl_core *c, struct gl_trim_job *g);
/* The kind of g->ids.items[place]. */
const char *gl_ended_kind(const struct gl_trim_job *g, size_t place);
bool gl_ended_has_kind(uint32_t kind);
/* Keep the job, for this reason. For a client's removal of one job this is the answer. */
void gl_ended_keep(struct gl_core *c, struct gl_trim_job *g, int reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The job's submission is in flight: it may be committed, or not. */
bool gl_ended_is_submitted(const struct gl_job *j);
/* Drop the pins whose submission has ended, or all. */
void gl_pins_drop(struct gl_core *c, bool all);
bool gl_pins_have(const struct gl_core *c, gl_str job);
void gl_pins_add(struct gl_core *c, gl_str job, gl_str by);
extern const struct gl_schema gl_trim_job_schema; /* of struct gl_job_record */

/* ---- drop.c ---- */
/* Commit the next transactions of the batch. After the last one, remove files and call
 * gl_retention_batch_done(). */
void gl_drop_next(struct gl_core *c);

/* ---- chores.c ---- */
/* The stage is one of the chore's; stages before the chores belong to GL_CHORE_NONE. */
bool gl_chores_have_stage(uint8_t chore, enum gl_retention_stage stage);
void gl_chores_begin(struct gl_core *c, enum gl_chore first);
void gl_chores_next(struct gl_core *c);  /* ends the pass after the last one */
void gl_chores_clear(struct gl_core *c); /* free the batch and what the chore has in memory */

/* ---- garbage.c ---- */
void gl_garbage_begin(struct gl_core *c);
void gl_garbage_wait_for_submissions(struct gl_core *c); /* for submissions in flight, then mark */
void gl_garbage_marked(struct gl_core *c);               /* marking is complete */

/* ---- reserved.c: begin, note each job that cannot be read, then settle ---- */
void gl_reserved_begin(struct gl_core *c);
void gl_reserved_note(struct gl_core *c, const struct gl_event_record *job);
void gl_reserved_resolve(struct gl_core *c); /* ends with gl_garbage_marked() */
/* The list of all flows begins, or has ended. */
void gl_reserved_on_list(struct gl_core *c, bool is_begin);
/* Asked for each flow of that list: is it reserved, or reserved from now on? */
bool gl_reserved_has(struct gl_core *c, gl_str flow);
void gl_reserved_done(struct gl_core *c);
struct gl_damaged_job *gl_reserved_add_job(struct gl_core *c, gl_str id);
void gl_reserved_add_flow(struct gl_core *c, gl_str flow);

/* ---- leftovers.c ---- */
void gl_leftovers_begin(struct gl_core *c);
bool gl_leftovers_handle(uint8_t chore); /* leftovers.c handles this chore */

/* ---- saved.c ---- */
void gl_retention_save(const struct gl_core *c, struct gl_buf *out);
int gl_retention_restore(struct gl_core *c, struct gl_snapshot_line *l);

#endif
