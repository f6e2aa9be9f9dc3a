/* snapshot.h - the core's whole memory between two steps, as text, and back.
 *
 * A restored core behaves exactly like the one that was saved: given the same events it makes the
 * same decisions. That makes a recording of events useful (node/flight_recorder.h), and the
 * simulator verifies it by replacing cores with restored ones in the middle of histories.
 *
 * The text is one JSON object per line, {"<kind>":{...}}: first the core with its pools and flows,
 * then the limits, then the jobs, each followed by its steps and the rest of its memory, then the
 * queues.
 *
 * Rules:
 *   - Whatever can be derived (counters, heaps, pages) is not saved but rebuilt. So text from an
 *     untrusted source may be wrong, but it cannot make the derived state inconsistent.
 *   - A field has the name of its struct member. Recordings contain snapshots, so a member that is
 *     renamed keeps its old name in the text, or older recordings could not be read.
 *   - The folders of the core that keep private state save and restore their own lines.
 *
 * Called: gl_core_save() and gl_core_restore(), never during a step. */
#ifndef GL_CORE_SNAPSHOT_H
#define GL_CORE_SNAPSHOT_H

#include "core/core.h"

struct gl_job;
struct gl_step;

/* Append the text. False: it would be longer than `bytes_max`, and is incomplete. */
bool gl_core_save(const struct gl_core *c, size_t bytes_max, struct gl_buf *out);

/* Flows that `lender` (may be NULL) has compiled already are shared with it instead of being
 * compiled again. */
int gl_core_restore(gl_str text, struct gl_trace *trace, const struct gl_core *lender,
                    struct gl_core **ret, struct gl_why *reterr_why);

/* ---- for the core itself ---- */

#define GL_SNAPSHOT_SCHEMA(what)                    \
    static const struct gl_schema what##_schema = { \
        .name = #what,                              \
        .bytes = sizeof(struct saved_##what),       \
        .fields = what##_fields,                    \
        .fields_n = GL_COUNT(what##_fields),        \
    }

/* The line being read. */
struct gl_snapshot_line {
    const struct gl_json *json;
    gl_jnode value; /* of the kind */
    struct gl_arena *arena;
    struct gl_job *job;   /* the job of the lines before this one; NULL: none yet */
    struct gl_step *step; /* the step of the line before; NULL: none yet */
    const struct gl_core *lender;
    struct gl_why *why;
};

void gl_snapshot_put(struct gl_buf *out, const char *kind, const struct gl_schema *schema,
                     const void *object);
/* Read the value of the line. */
int gl_snapshot_get(const struct gl_snapshot_line *l, const struct gl_schema *schema, void *ret);
/* Refuse the line. */
int gl_snapshot_bad(const struct gl_snapshot_line *l, const char *what);

/* A job and everything that belongs to it, and the lines it consists of (snapshot_jobs.c). */
void gl_snapshot_jobs_save(const struct gl_job *j, struct gl_buf *out);
int gl_snapshot_jobs_job(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_jobs_record(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_jobs_step(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_jobs_work(struct gl_core *c, struct gl_snapshot_line *l);

#endif
