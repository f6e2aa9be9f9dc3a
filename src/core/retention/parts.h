/* parts.h - what the files of this room call of each other. */
#ifndef GL_CORE_RETENTION_PARTS_H
#define GL_CORE_RETENTION_PARTS_H

#include "core/component.h"
#include "core/core_state.h"
#include "core/retention/retention.h"
#include "port/store.h"

struct gl_clean { /* a request that waits */
    struct gl_link link;
    uint64_t request;
    bool is_removal;
    gl_str job; /* belongs to the pool */
    gl_ms keep_for;
    int64_t keep_jobs;
};

struct gl_pin { /* a job that is being retried, by a submission */
    struct gl_link link;
    gl_str job, by; /* belong to the pool */
};

struct gl_damaged_job {
    gl_str id;     /* belongs to the pool */
    uint64_t look; /* the last one that found it damaged */
};

static inline struct gl_retention_pass *gl_pass(struct gl_core *c)
{
    return &c->retention.pass;
}

/* ---- retention.c ---- */
#define X(name, word, how, handler) void handler(struct gl_core *c, const struct gl_event *ev);
GL_RETENTION_STAGES(X)
#undef X
void gl_retention_ask(struct gl_core *c, const struct gl_clean *ask); /* copied */
void gl_retention_over(struct gl_core *c, int64_t code, gl_str why);  /* the pass ends */
void gl_retention_fail(struct gl_core *c, int64_t code, gl_str why);  /* ... halfway */
void gl_retention_jobs_over(struct gl_core *c);                       /* of a handful */
bool gl_retention_is_refused(const struct gl_event *ev);
/* One of several calls has been answered. True: it was the last, and none has failed. */
bool gl_retention_are_through(struct gl_core *c, const struct gl_event *ev);
/* Has it brought as much as was asked for? Else the pass fails: a stranger's recording may say
 * anything. */
bool gl_retention_fits(struct gl_core *c, bool is_as_asked);

/* Several calls may be under way in this stage; their numbers are kept elsewhere. */
bool gl_retention_has_many(uint8_t stage);
/* The stage belongs to the chore; those before the chores belong to GL_CHORE_NONE. */
bool gl_retention_has_stage(uint8_t chore, uint8_t stage);

/* Each makes a call; its answer belongs to that stage. */
void gl_retention_stage(struct gl_core *c, enum gl_retention_stage stage, uint64_t call);
void gl_retention_get(struct gl_core *c, enum gl_retention_stage stage, const struct gl_key *keys,
                      size_t n, const struct gl_core_view *view);
void gl_retention_range(struct gl_core *c, enum gl_retention_stage stage, struct gl_range range);
/* From the pass's `after` on; a page of GL_TRIM_PAGE. */
void gl_retention_list(struct gl_core *c, enum gl_retention_stage stage, const char *kind,
                       size_t bytes_max, const struct gl_core_view *view);
void gl_retention_measure(struct gl_core *c, enum gl_retention_stage stage);
void gl_retention_files(struct gl_core *c, enum gl_retention_stage stage,
                        enum gl_core_files_type type, const gl_str *names, size_t n, gl_ms age_ms);
/* Guards on our session, and on what is in `guards`, which has room for one more. */
struct gl_tx *gl_retention_tx(struct gl_core *c, struct gl_guard *guards, size_t guards_n,
                              const struct gl_write *writes, size_t writes_n);

/* The members that `schema` has, of a record's value as a view brought it; they live in `a`. */
bool gl_retention_read(struct gl_arena *a, const struct gl_schema *schema, gl_str value, void *ret);
void gl_retention_add(struct gl_retention_pass *p, struct gl_map *set, gl_str text);
/* A list in the pass's arena, with room for one more. */
void *gl_retention_grow(struct gl_retention_pass *p, void *items, size_t n, size_t *cap,
                        size_t bytes);
struct gl_doomed *gl_retention_doom(struct gl_retention_pass *p, gl_str id);
extern const struct gl_core_view gl_view_stamps, gl_view_ids;

/* ---- ended.c ---- */
void gl_ended_begin(struct gl_core *c); /* p->jobs[..].id and .r.ended_at have been set */
/* The next page of what belongs to it, and then gl_drop_next(). */
void gl_ended_list(struct gl_core *c, struct gl_leaving *g);
const char *gl_ended_kind(const struct gl_leaving *g);
bool gl_ended_has_kind(uint32_t kind);
void gl_ended_stays(struct gl_core *c, struct gl_leaving *g, int reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Of a submission that has not been committed, and may be. */
bool gl_ended_is_submitted(const struct gl_job *j);
void gl_pins_drop(struct gl_core *c, bool all);
bool gl_pins_have(const struct gl_core *c, gl_str job);
void gl_pins_add(struct gl_core *c, gl_str job, gl_str by);
extern const struct gl_schema gl_leaving_schema; /* of struct gl_job_record */

/* ---- drop.c ---- */
/* Of those that are left, as many as go now; in the end their files, and gl_retention_jobs_over().
 */
void gl_drop_next(struct gl_core *c);

/* ---- chores.c ---- */
void gl_chores_begin(struct gl_core *c, enum gl_chore first);
void gl_chores_next(struct gl_core *c);
void gl_chores_clear(struct gl_core *c); /* what the chore under way has in memory */

/* ---- garbage.c ---- */
void gl_garbage_begin(struct gl_core *c);
void gl_garbage_wait(struct gl_core *c);   /* for submissions under way, and then go on */
void gl_garbage_looked(struct gl_core *c); /* after the suspects */

/* ---- reserved.c: begin, note each job that cannot be read, settle ---- */
void gl_reserved_begin(struct gl_core *c);
void gl_reserved_note(struct gl_core *c, const struct gl_event_record *job);
void gl_reserved_settle(struct gl_core *c); /* and then gl_garbage_looked() */
/* All flows are being listed, from the first one; or have been. */
void gl_reserved_list(struct gl_core *c, bool is_begin);
bool gl_reserved_has(struct gl_core *c, gl_str flow); /* a flow that is listed */
void gl_reserved_done(struct gl_core *c);
struct gl_damaged_job *gl_reserved_add_job(struct gl_core *c, gl_str id);
void gl_reserved_add_flow(struct gl_core *c, gl_str flow);

/* ---- leftovers.c ---- */
void gl_left_begin(struct gl_core *c);
bool gl_left_has(uint8_t chore); /* is there a row for it? */

/* ---- saved.c ---- */
void gl_retention_save(const struct gl_core *c, struct gl_buf *out);
int gl_retention_restore(struct gl_core *c, struct gl_snapshot_line *l);

#endif
