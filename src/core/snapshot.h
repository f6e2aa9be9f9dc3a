/* snapshot.h - the core's whole memory between two steps, as text, and back.
 *
 * A core that was restored behaves exactly like the one that was saved: given the same events it
 * decides the same. That is what makes a recording of events worth something
 * (node/flight_recorder.h), and the simulator proves it by throwing cores away and restoring them
 * in the middle of histories.
 *
 * The text is one JSON object per line, {"<kind>":{...}}: first the core, its pools and flows, then
 * its limits, its jobs, each followed by what belongs to it, and the queues. What follows from
 * something else (counters, heaps, pages) is not written but made again; so text from a stranger
 * can be wrong, but not contradict itself.
 *
 * The rooms of the core that keep something private write and read their own lines. */
#ifndef GL_CORE_SNAPSHOT_H
#define GL_CORE_SNAPSHOT_H

#include "core/core.h"

struct gl_job;

/* Append the text; false: it would have more than `bytes_max`, and part of it has been written. */
bool gl_core_save(const struct gl_core *c, size_t bytes_max, struct gl_buf *out);

/* `lender` may be NULL: else flows it has compiled are shared with it, not compiled again. */
int gl_core_restore(gl_str text, struct gl_trace *trace, const struct gl_core *lender,
                    struct gl_core **ret, struct gl_why *reterr_why);

/* ---- for the rooms of the core ---- */

#define GL_SNAPSHOT_SCHEMA(what)                    \
    static const struct gl_schema what##_schema = { \
        .name = #what,                              \
        .bytes = sizeof(struct saved_##what),       \
        .fields = what##_fields,                    \
        .fields_n = GL_COUNT(what##_fields),        \
    }

/* One line that is being read. */
struct gl_snapshot_line {
    const struct gl_json *json;
    gl_jnode value; /* of the kind */
    struct gl_arena *arena;
    struct gl_job *job; /* the last one named before this line; NULL: none */
    const struct gl_core *lender;
    struct gl_why *why;
};

void gl_snapshot_put(struct gl_buf *out, const char *kind, const struct gl_schema *schema,
                     const void *object);
/* Read the value of the line. */
int gl_snapshot_get(const struct gl_snapshot_line *l, const struct gl_schema *schema, void *ret);
/* Refuse the line. */
int gl_snapshot_bad(const struct gl_snapshot_line *l, const char *what);

/* A job with everything that belongs to it, and the kinds of lines that makes (snapshot_jobs.c). */
void gl_snapshot_jobs_save(const struct gl_job *j, struct gl_buf *out);
int gl_snapshot_jobs_job(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_jobs_record(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_jobs_step(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_jobs_work(struct gl_core *c, struct gl_snapshot_line *l);

#endif
