/* render.h - records of the store as the JSON that users of the API see. */
#ifndef GL_API_RENDER_H
#define GL_API_RENDER_H

#include "api/reason.h"
#include "api/view.h"
#include "base/json.h"
#include "port/store.h"

/* A text member of a JSON record; "" if it is not there. */
gl_str gl_render_text(struct gl_arena *a, gl_str record, const char *field);

/* One job as an object. A record that cannot be read becomes {"job_id":…,"damaged":true}. */
void gl_render_job(struct gl_arena *a, const struct gl_record *job, bool is_shared,
                   struct gl_jw *w);

/* The job with "workflow_state": every step in the flow's order, also those that have no record
 * yet, instances behind their step; or of a large job those that the view picks. Of a bundle these
 * are the steps of its ledger. `live` may be NULL: see reason.h. */
void gl_render_status(struct gl_arena *a, const struct gl_view *v,
                      const struct gl_reason_live *live, struct gl_jw *w);

/* Only the job, and whether something keeps it from going on. `owner`: on a shared store. */
void gl_render_brief(struct gl_arena *a, const struct gl_view *v, gl_str owner,
                     const struct gl_reason_live *live, struct gl_jw *w);

/* Of a bundle, members of the object that is open in `w`: of the job, and of one of its steps. */
void gl_render_bundle(struct gl_arena *a, const struct gl_view *v, struct gl_jw *w);
void gl_render_bundle_step(const struct gl_step_spec *spec, struct gl_jw *w);

/* Why it is as it is: the job and its open steps, or one step. GL_E_NOT_FOUND: no such step. */
int gl_render_why(struct gl_arena *a, const struct gl_view *v, gl_str step,
                  const struct gl_reason_live *live, struct gl_jw *w, struct gl_why *reterr_why);

/* A page of events. `last`, `status` and whether the job has ended are of its record, which is read
 * before the log: what happened after that is left to the next page, so that no page tells an end
 * and calls the job running. */
struct gl_events {
    int64_t from, last;
    uint32_t limit;
    gl_str status;
    int64_t at;     /* where the log is read next */
    int64_t next;   /* the number of the first event that is not on the page */
    uint32_t taken; /* events on the page */
};

void gl_render_events_begin(struct gl_events *e, struct gl_jw *w);
void gl_render_events_add(struct gl_events *e, gl_str entry, struct gl_jw *w);
/* Returns how many there are. */
uint32_t gl_render_events_end(const struct gl_events *e, bool ended, struct gl_jw *w);

/* A step that waits for a person. */
void gl_render_human(struct gl_arena *a, const struct gl_record *step, const struct gl_record *job,
                     struct gl_jw *w);

#endif
