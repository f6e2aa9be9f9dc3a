/* progress.h - shows the progress of a job to people, on stderr.
 *
 * On a terminal: one line per step, updated in place; with too many steps, a line of counters and
 * the steps that need attention. On a pipe: one plain line per event. */
#ifndef GL_CLI_OUTPUT_PROGRESS_H
#define GL_CLI_OUTPUT_PROGRESS_H

#include "base/json.h"
#include "base/map.h"
#include "cli/output/term.h"

struct gl_progress_step {
    gl_str id;
    gl_str status;
    uint32_t ran; /* the attempt that runs, as the last event has told; 0: none */
    uint32_t attempt;
    gl_ms started_at, ended_at; /* of the current attempt; 0: not known */
    gl_ms retry_at;
    gl_str reason;
    bool is_reused; /* an earlier job has done it */
    size_t next;    /* whose line stands below: its number + 1; 0: nobody's */
    size_t last;    /* of a step with foreach: the number of its last instance; 0: it has none */
};

struct gl_progress {
    const struct gl_term *term;
    struct gl_arena arena;
    struct gl_map by_id;
    struct gl_progress_step *steps; /* moves when it grows: pointers are good until the next add */
    size_t steps_n, steps_cap;
    size_t bottom; /* the number of the step whose line is the last */
    size_t ended_n;
    size_t others_n, others_ended_n; /* steps nothing is known of but how many they are */
    size_t id_width;                 /* of the longest id, within reason */
    bool is_quiet;                   /* nothing is shown, only kept */
    size_t drawn;                    /* lines on the terminal that are ours */
    bool is_changed;                 /* since it was drawn */
    gl_ms drawn_at;
};

void gl_progress_init(struct gl_progress *p, const struct gl_term *term, bool quiet);
void gl_progress_done(struct gl_progress *p);

/* Begin with the job as `status` tells it; everything is copied. Steps that are known already are
 * updated. */
void gl_progress_load(struct gl_progress *p, const struct gl_json *j, gl_jnode status);
/* One event of the job. */
void gl_progress_apply(struct gl_progress *p, const struct gl_json *j, gl_jnode event);

/* Draw if something has changed, or if times have to be moved on. */
void gl_progress_draw(struct gl_progress *p, gl_ms now);
/* Erase what was drawn, so that a message can be printed. */
void gl_progress_clear(struct gl_progress *p);

bool gl_progress_is_end(gl_str status); /* of a step */

#endif
