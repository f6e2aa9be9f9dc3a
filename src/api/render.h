/* render.h - renders records of the store as the JSON of the API.
 *
 * Field names are those of docs/api.md. Nothing here reads the store. Each function writes into the
 * object or list that its caller has opened.
 *
 * A page of events takes three: gl_render_events_begin(), gl_render_events_add() for each entry of
 * the log, gl_render_events_end(). Every other function is complete by itself. */
#ifndef GL_API_RENDER_H
#define GL_API_RENDER_H

#include "api/reason.h"
#include "api/view.h"
#include "base/json.h"
#include "port/store.h"

/* A string member of a JSON record; "": absent. */
gl_str gl_render_text(struct gl_arena *a, gl_str record, const char *field);

/* One job as an object. An unreadable record becomes {"job_id":…,"damaged":true}. */
void gl_render_job(struct gl_arena *a, const struct gl_record *job, bool is_shared,
                   struct gl_jw *w);

/* The job with "workflow_state": every step in the order of the flow, including those without a
 * record yet, and instances after their step; for a large job only the steps that the view picked.
 * For a bundle these are the steps of its ledger. `live` may be NULL: see reason.h. */
void gl_render_status(struct gl_arena *a, const struct gl_view *v,
                      const struct gl_reason_live *live, struct gl_jw *w);

/* Only the job, and whether something keeps it from continuing. `owner`: on a shared store. */
void gl_render_brief(struct gl_arena *a, const struct gl_view *v, gl_str owner,
                     const struct gl_reason_live *live, struct gl_jw *w);

/* For a bundle: members of the open object, about the job and about one of its steps. */
void gl_render_bundle(struct gl_arena *a, const struct gl_view *v, struct gl_jw *w);
void gl_render_bundle_step(const struct gl_step_spec *spec, struct gl_jw *w);

/* Explains the states of the job and its open steps, or of one step. GL_E_NOT_FOUND: no such step.
 */
int gl_render_why(struct gl_arena *a, const struct gl_view *v, gl_str step,
                  const struct gl_reason_live *live, struct gl_jw *w, struct gl_why *reterr_why);

/* A page of events. `last`, `status` and whether the job has ended come from the job's record,
 * which is read before the log. Later events are left to the next page, so that a page never
 * contains the end of a job that it reports as running. */
struct gl_events {
    int64_t from, last;
    uint32_t limit;
    gl_str status;
    int64_t at;     /* where to continue reading the log */
    int64_t next;   /* number of the first event not on the page */
    uint32_t taken; /* events on the page */
};

void gl_render_events_begin(struct gl_events *e, struct gl_jw *w);
void gl_render_events_add(struct gl_events *e, gl_str entry, struct gl_jw *w);
/* Returns the number of events on the page. */
uint32_t gl_render_events_end(const struct gl_events *e, bool ended, struct gl_jw *w);

/* A step that waits for a person. */
void gl_render_human(struct gl_arena *a, const struct gl_record *step, const struct gl_record *job,
                     struct gl_jw *w);

#endif
