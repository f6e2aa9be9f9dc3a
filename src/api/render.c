/* render.c - renders jobs, steps, events and reasons as JSON. */
#include "api/render.h"

#include "api/damage.h"
#include "api/places.h"
#include "api/worker_questions.h"
#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/agent.h"
#include "model/job.h"

gl_str gl_render_text(struct gl_arena *a, gl_str record, const char *field)
{
    struct gl_json j;

    if (gl_json_parse(&j, record, GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        return (gl_str){0};
    }
    return gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), field), a);
}

/* The node of a session; nothing without one. */
static void write_node(gl_str session, struct gl_jw *w)
{
    gl_str rest;

    if (session.n > 0) {
        gl_jw_put_str(w, "node", gl_str_cut(session, '#', &rest));
    }
}

void gl_render_job(struct gl_arena *a, const struct gl_record *job, bool is_shared, struct gl_jw *w)
{
    struct gl_job_record r;

    gl_jw_object(w);
    if (!job->damaged && gl_view_record(a, &gl_job_schema, job->value, &r, NULL) == 0) {
        gl_schema_write(&gl_job_schema, &r, w, GL_FOR_API);
        write_node(is_shared && job->live ? job->owner : (gl_str){0}, w);
    } else {
        gl_jw_put_str(w, "job_id", job->id);
        gl_jw_put_bool(w, "damaged", true);
    }
    gl_jw_end(w);
}

/* A step without a record has not been reached; if the job has ended, it never will be. */
static struct gl_step_record unreached(const struct gl_step_spec *spec,
                                       const struct gl_job_record *job)
{
    struct gl_step_record r = {.step_id = spec->id};

    if (gl_job_status_is_terminal(job->status)) {
        r.status = GL_STEP_SKIPPED;
        r.terminal_outcome = GL_OUTCOME_SKIPPED;
        r.terminal_reason = GL_S("the job ended before this step was reached");
    }
    return r;
}

/* The output of a step with foreach: the list of its instances' outputs. */
static gl_str outputs_of(struct gl_arena *a, const struct gl_view_items *items, uint32_t n)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str text;

    gl_jw_init(&w, &out);
    gl_jw_array(&w);
    for (uint32_t i = 0; i < n; i++) {
        const struct gl_step_record *r = i < items->n ? items->records[i] : NULL;

        gl_jw_raw(&w, r != NULL && r->output.n > 0 ? r->output : GL_S("null"));
    }
    gl_jw_end(&w);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static void write_because(const struct gl_because *b, struct gl_jw *w)
{
    gl_jw_put_str(w, "why", b->text);
    gl_jw_put_c(w, "why_code", gl_why_code_word(b->code));
    if (b->also_n > 0) {
        gl_jw_put_array(w, "why_also");
        for (size_t i = 0; i < b->also_n; i++) {
            gl_jw_c(w, gl_why_code_word(b->also[i]));
        }
        gl_jw_end(w);
    }
}

static void write_job_why(struct gl_arena *a, const struct gl_view *v,
                          const struct gl_reason_live *live, struct gl_jw *w)
{
    struct gl_because b = gl_reason_job(a, v, live);

    write_because(&b, w);
}

static void write_why(struct gl_arena *a, const struct gl_view *v, uint32_t number, int64_t item,
                      const struct gl_reason_live *live, struct gl_jw *w)
{
    struct gl_because b = gl_reason_step(a, v, number, item, live);

    write_because(&b, w);
    gl_places_write(a, v, number, b.code, w);
}

/* A person who is about to rerun a step must know whether running it twice does harm. */
static void write_safety(const struct gl_step_spec *spec, struct gl_jw *w)
{
    if (spec->safety == GL_SAFETY_UNSAFE) {
        gl_jw_put_bool(w, "unsafe", true);
    }
}

/* Where to get an output that was left out. */
static void write_reference(const struct gl_view *v, gl_str step_id, struct gl_jw *w)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    gl_buf_fmt(&out, "/v1/contexts/%.*s/jobs/%.*s?step=", GL_STR_ARG(v->context),
               GL_STR_ARG(v->job.job_id));
    for (size_t i = 0; i < step_id.n; i++) { /* ids have no other characters to escape */
        if (step_id.p[i] == '[' || step_id.p[i] == ']') {
            gl_buf_c(&out, step_id.p[i] == '[' ? "%5B" : "%5D");
        } else {
            gl_buf_char(&out, step_id.p[i]);
        }
    }
    gl_jw_put_str(w, "output_ref", gl_buf_view(&out));
}

/* A step as recorded, plus what only the node that owns the job knows. */
static void write_record(const struct gl_view *v, const struct gl_step_record *record,
                         uint32_t place, const struct gl_reason_live *live, struct gl_jw *w)
{
    struct gl_step_record r = *record;

    if (live != NULL && live->beacon != NULL && r.status == GL_STEP_RUNNING) {
        (void)live->beacon(live->owner, v->job.job_id, place, &r.beacon_at, &r.heartbeat_at);
    }
    gl_schema_write(&gl_step_schema, &r, w, GL_FOR_API);
    if (r.output_bytes > 0) {
        write_reference(v, r.step_id, w);
    }
}

static void write_needs(const struct gl_step_spec *spec, struct gl_jw *w)
{
    if (spec->needs_ids.n == 0) {
        return;
    }
    gl_jw_put_texts(w, "needs", spec->needs_ids.items, spec->needs_ids.n);
}

/* Are all instances of the step in this view, and are their outputs small enough? */
static bool has_items_output(const struct gl_view *v, uint32_t number)
{
    return !(v->is_partial && !v->is_page) &&
           (v->items_bytes == NULL || v->items_bytes[number] <= v->items_max);
}

static void render_step(struct gl_arena *a, const struct gl_view *v, uint32_t number,
                        const struct gl_reason_live *live, struct gl_jw *w)
{
    const struct gl_step_spec *spec = gl_flow_step(v->flow, number);
    struct gl_step_record r =
        v->steps[number] != NULL ? *v->steps[number] : unreached(spec, &v->job);

    if (r.items_n > 0 && r.output.n == 0 && gl_step_status_is_terminal(r.status)) {
        if (has_items_output(v, number)) {
            r.output = outputs_of(a, &v->items[number], r.items_n);
        } else {
            r.output_bytes = v->items_bytes[number] + 1;
        }
    }
    gl_jw_key_str(w, spec->id);
    gl_jw_object(w);
    write_record(v, &r, number, live, w);
    write_why(a, v, number, -1, live, w);
    write_safety(spec, w);
    write_needs(spec, w);
    if (spec->is_bound) {
        gl_render_bundle_step(spec, w);
    }
    gl_jw_end(w);
}

static void render_item(struct gl_arena *a, const struct gl_view *v, uint32_t number, uint32_t item,
                        const struct gl_reason_live *live, struct gl_jw *w)
{
    const struct gl_step_record *r = v->items[number].records[item];

    gl_jw_key_str(w, r->step_id);
    gl_jw_object(w);
    write_record(v, r, gl_flow_place(v->flow, number, item), live, w);
    write_why(a, v, number, item, live, w);
    write_safety(gl_flow_step(v->flow, number), w);
    gl_jw_end(w);
}

static void render_picks(struct gl_arena *a, const struct gl_view *v,
                         const struct gl_reason_live *live, struct gl_jw *w)
{
    for (size_t i = 0; i < v->picks_n; i++) {
        struct gl_view_pick p = v->picks[i];

        if (p.item < 0) {
            render_step(a, v, p.number, live, w);
        } else {
            render_item(a, v, p.number, (uint32_t)p.item, live, w);
        }
    }
}

static void render_all(struct gl_arena *a, const struct gl_view *v,
                       const struct gl_reason_live *live, struct gl_jw *w)
{
    for (uint32_t i = gl_flow_agents_n(v->flow); i < v->flow->steps.n; i++) {
        if (gl_flow_step(v->flow, i)->is_removed) {
            continue;
        }
        render_step(a, v, i, live, w);
        for (uint32_t k = 0; k < v->items[i].n; k++) {
            if (v->items[i].records[k] != NULL) {
                render_item(a, v, i, k, live, w);
            }
        }
    }
}

/* The number of steps by status and, if not all are listed, where the others are. A page does not
 * know about the rest. */
static void write_extent(const struct gl_view *v, struct gl_jw *w)
{
    gl_jw_put_u64(w, "steps_total", v->steps_total);
    if (!v->is_page) {
        gl_jw_put_object(w, "counts");
        for (size_t i = 0; i < GL_STEP_STATUS_COUNT; i++) {
            if (v->counts[i] > 0) {
                gl_jw_put_u64(w, gl_step_status_words[i], v->counts[i]);
            }
        }
        gl_jw_end(w);
    }
    gl_jw_put_bool(w, "complete", !v->is_partial);
    if (v->is_partial) {
        gl_jw_key(w, "next");
        if (v->next.n > 0) {
            gl_jw_str(w, v->next);
        } else {
            gl_jw_null(w);
        }
    }
}

static void write_troubles(const struct gl_view *v, const struct gl_reason_live *live,
                           struct gl_jw *w)
{
    if (live != NULL && live->is_quarantined(live->owner, v->job.job_id)) {
        gl_jw_put_bool(w, "quarantined", true);
    }
    if (gl_reason_is_stranded(v)) {
        gl_jw_put_bool(w, "stranded", true);
    }
    if (gl_damage_matters(v)) {
        gl_jw_put_bool(w, "damaged", true);
    }
}

void gl_render_status(struct gl_arena *a, const struct gl_view *v,
                      const struct gl_reason_live *live, struct gl_jw *w)
{
    gl_jw_object(w);
    gl_schema_write(&gl_job_schema, &v->job, w, GL_FOR_API);
    if (!v->is_page) { /* the steps that explain it may be on another page */
        write_job_why(a, v, live, w);
    }
    write_troubles(v, live, w);
    if (v->flow->bundle != NULL) {
        gl_render_bundle(a, v, w);
        gl_worker_question_write_job(v, w);
    }
    gl_jw_put_object(w, "workflow_state");
    gl_jw_put_c(w, "status", gl_job_status_words[v->job.status]);
    write_extent(v, w);
    gl_jw_put_object(w, "steps");
    if (v->is_partial) {
        render_picks(a, v, live, w);
    } else {
        render_all(a, v, live, w);
    }
    gl_jw_end(w);
    gl_jw_end(w);
    gl_jw_end(w);
}

void gl_render_brief(struct gl_arena *a, const struct gl_view *v, gl_str owner,
                     const struct gl_reason_live *live, struct gl_jw *w)
{
    gl_jw_object(w);
    gl_schema_write(&gl_job_schema, &v->job, w, GL_FOR_API);
    write_node(owner, w);
    if (gl_reason_is_stranded(v)) {
        struct gl_because b = {.text = gl_reason_stranded(a, v), .code = GL_BECAUSE_STRANDED};

        write_because(&b, w);
    }
    write_troubles(v, live, w);
    gl_jw_end(w);
}

/* ---- why ---- */

static void why_line(struct gl_arena *a, const struct gl_view *v, uint32_t number, int64_t item,
                     const struct gl_reason_live *live, struct gl_jw *w)
{
    const struct gl_step_record *r = item >= 0 ? v->items[number].records[item] : v->steps[number];

    gl_jw_object(w);
    gl_jw_put_str(w, "step_id", r != NULL ? r->step_id : gl_flow_step(v->flow, number)->id);
    gl_jw_put_c(w, "status", gl_step_status_words[r != NULL ? r->status : GL_STEP_PENDING]);
    write_why(a, v, number, item, live, w);
    gl_jw_end(w);
}

/* Begun, not ended, and more than the status is known. */
static bool is_open(const struct gl_step_record *r)
{
    return r != NULL && r->step_id.n > 0 && !gl_step_status_is_terminal(r->status);
}

/* All steps that have begun and not ended. */
static void why_all(struct gl_arena *a, const struct gl_view *v, const struct gl_reason_live *live,
                    struct gl_jw *w)
{
    size_t written = 0;

    for (uint32_t i = 0; i < v->flow->steps.n && written < GL_PAGE_MAX; i++) {
        const struct gl_step_record *r = v->steps[i];

        if (is_open(r) && !gl_reason_is_idle(v, i)) {
            why_line(a, v, i, -1, live, w);
            written++;
        }
        for (uint32_t k = 0; k < v->items[i].n && written < GL_PAGE_MAX; k++) {
            r = v->items[i].records[k];
            if (is_open(r)) {
                why_line(a, v, i, k, live, w);
                written++;
            }
        }
    }
}

static bool find_step(const struct gl_view *v, gl_str id, uint32_t *ret_number, int64_t *ret_item)
{
    gl_str name;
    int64_t number = gl_str_split_step(id, &name, ret_item) ? gl_flow_find(v->flow, name) : -1;

    number = number < 0 && v->flow->bundle != NULL ? gl_flow_find_agent(v->flow, id) : number;

    if (number < 0) {
        return false;
    }
    *ret_number = (uint32_t)number;
    return *ret_item < 0 ||
           (*ret_item < v->items[number].n && v->items[number].records[*ret_item] != NULL);
}

int gl_render_why(struct gl_arena *a, const struct gl_view *v, gl_str step,
                  const struct gl_reason_live *live, struct gl_jw *w, struct gl_why *reterr_why)
{
    uint32_t number = 0;
    int64_t item = -1;

    if (step.n > 0 && !find_step(v, step, &number, &item)) {
        return gl_why(reterr_why, GL_R_NO_SUCH_STEP,
                      "job %.*s has no step '%.*s'; 'glia job status' lists its steps",
                      GL_STR_ARG(v->job.job_id), GL_STR_ARG(step));
    }
    gl_jw_object(w);
    gl_jw_put_str(w, "job_id", v->job.job_id);
    gl_jw_put_str(w, "run_id", v->job.run_id);
    gl_jw_put_c(w, "status", gl_job_status_words[v->job.status]);
    write_job_why(a, v, live, w);
    gl_worker_question_write_job(v, w);
    gl_jw_put_array(w, "steps");
    if (step.n > 0) {
        why_line(a, v, number, item, live, w);
    } else {
        why_all(a, v, live, w);
    }
    gl_jw_end(w);
    gl_jw_end(w);
    return 0;
}

/* Events begin with their number: {"seq":12,... */
static int64_t seq_of(gl_str line)
{
    gl_str rest = line, digits;
    int64_t seq = 0;

    (void)gl_str_cut(line, ':', &rest);
    digits = gl_str_cut(rest, ',', &rest);
    return gl_str_i64(digits, &seq) ? seq : 0;
}

void gl_render_events_begin(struct gl_events *e, struct gl_jw *w)
{
    e->next = e->from;
    gl_jw_object(w);
    gl_jw_put_array(w, "events");
}

void gl_render_events_add(struct gl_events *e, gl_str entry, struct gl_jw *w)
{
    while (entry.n > 0 && e->taken < e->limit) {
        gl_str line = gl_str_cut(entry, '\n', &entry);
        int64_t seq = seq_of(line);

        if (seq >= e->from && seq > 0 && seq <= e->last) {
            gl_jw_raw(w, line);
            e->next = seq + 1;
            e->taken++;
        }
    }
}

uint32_t gl_render_events_end(const struct gl_events *e, bool ended, struct gl_jw *w)
{
    gl_jw_end(w);
    gl_jw_put_i64(w, "next_seq", e->next);
    gl_jw_put_str(w, "status", e->status);
    gl_jw_put_bool(w, "ended", ended && e->taken < e->limit);
    gl_jw_end(w);
    return e->taken;
}

/* The job has ended, or a record of it is damaged: it accepts no decisions until that is repaired.
 */
static bool takes_no_answer(struct gl_arena *a, const struct gl_record *job)
{
    struct gl_job_record r;

    return job->damaged || gl_view_record(a, &gl_job_schema, job->value, &r, NULL) != 0 ||
           gl_job_is_paused_for_damage(&r) || gl_job_status_is_terminal(r.status);
}

void gl_render_human(struct gl_arena *a, const struct gl_record *step, const struct gl_record *job,
                     struct gl_jw *w)
{
    struct gl_step_record r;
    gl_str left;

    if (step->rev == 0 || step->damaged ||
        gl_view_record(a, &gl_step_schema, step->value, &r, NULL) != 0 ||
        !gl_step_asks_a_person(&r) || takes_no_answer(a, job)) {
        return; /* decided meanwhile, or no answer would be accepted */
    }
    gl_jw_object(w);
    gl_jw_put_str(w, "job_id", job->id);
    gl_jw_put_str(w, "run_id", gl_render_text(a, job->value, "run_id"));
    gl_jw_put_str(w, "step_id", r.step_id);
    gl_jw_put_c(w, "kind", gl_block_words[r.blocked_on]);
    gl_jw_put_str(w, "reason", r.last_error);
    if (r.due_at > 0) {
        char when[GL_TIMES_BYTES];

        gl_jw_put_str(w, "due_at", gl_times_format(r.due_at, when));
    }
    gl_jw_put_u64(w, "attempt", r.attempt_count);
    gl_jw_put_array(w, "decisions");
    left = r.blocked_on == GL_BLOCK_APPROVAL ? r.choices : GL_S("rerun,done,failed");
    while (left.n > 0) {
        gl_jw_str(w, gl_str_cut(left, ',', &left));
    }
    gl_jw_end(w);
    gl_jw_end(w);
}
