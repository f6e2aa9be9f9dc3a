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
    uint32_t ran; /* the running attempt, according to the last event; 0: none */
    uint32_t attempt;
    gl_ms started_at, ended_at; /* of the current attempt; 0: not known */
    gl_ms retry_at;
    gl_str reason;
    bool is_reused; /* completed by an earlier job, and reused */
    size_t next;    /* the step on the line below: its number + 1; 0: none */
    size_t last;    /* for a step with foreach: the number of its last instance; 0: it has none */
};

struct gl_progress {
    const struct gl_term *term;
    struct gl_arena arena;
    struct gl_map by_id;
    struct gl_progress_step *steps; /* pointers are valid until the next add */
    size_t steps_n, steps_cap;
    size_t bottom; /* the number of the step on the last line */
    size_t ended_n;
    size_t others_n, others_ended_n; /* steps of which only the number is known */
    size_t id_width;                 /* width of the longest id, up to a limit */
    bool is_quiet;                   /* keep state, print nothing */
    size_t drawn;                    /* lines drawn on the terminal */
    bool is_changed;                 /* changed since the last redraw */
    gl_ms drawn_at;
};

void gl_progress_init(struct gl_progress *p, const struct gl_term *term, bool quiet);
void gl_progress_done(struct gl_progress *p);

/* Initialize from the job's status; everything is copied. Updates steps that are already known. */
void gl_progress_load(struct gl_progress *p, const struct gl_json *j, gl_jnode status);
/* Apply one event of the job. */
void gl_progress_apply(struct gl_progress *p, const struct gl_json *j, gl_jnode event);

/* Redraw if something has changed, or if the times need an update. */
void gl_progress_draw(struct gl_progress *p, gl_ms now);
/* Erase the drawn lines, so that a message can be printed. */
void gl_progress_clear(struct gl_progress *p);

bool gl_progress_is_end(gl_str status); /* of a step */

#endif
