#include "api/render.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "model/flow.h"
#include "model/job.h"

gl_str gl_render_text(struct gl_arena *a, gl_str record, const char *field)
{
    struct gl_json j;

    if (gl_json_parse(&j, record, GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        return (gl_str){0};
    }
    return gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), field), a);
}

static int read_record(struct gl_arena *a, const struct gl_schema *schema, gl_str text, void *ret,
                       struct gl_why *why)
{
    struct gl_json j;
    int rc = gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, a, why);

    return rc != 0 ? rc : gl_schema_read(schema, &j, gl_json_root(&j), false, a, ret, why);
}

void gl_render_job(struct gl_arena *a, const struct gl_record *job, struct gl_jw *w)
{
    struct gl_job_record r;

    gl_jw_object(w);
    if (read_record(a, &gl_job_schema, job->value, &r, NULL) == 0) {
        gl_schema_write(&gl_job_schema, &r, w, GL_FOR_API);
    } else {
        gl_jw_key(w, "job_id");
        gl_jw_str(w, job->id);
        gl_jw_key(w, "damaged");
        gl_jw_bool(w, true);
    }
    gl_jw_end(w);
}

/* The step has no record: nobody has reached it, and if the job has ended nobody will. */
static void render_unreached(const struct gl_step_spec *spec, const struct gl_job_record *job,
                             struct gl_jw *w)
{
    bool ended = gl_job_status_is_terminal(job->status);
    struct gl_step_record r = {.step_id = spec->id};

    if (ended) {
        r.status = GL_STEP_SKIPPED;
        r.terminal_outcome = GL_OUTCOME_SKIPPED;
        r.terminal_reason = GL_S("the job ended before this step was reached");
    }
    gl_schema_write(&gl_step_schema, &r, w, GL_FOR_API);
}

static int render_step(struct gl_arena *a, const struct gl_step_spec *spec,
                       const struct gl_record *rec, const struct gl_job_record *job,
                       struct gl_jw *w, struct gl_why *why)
{
    struct gl_step_record r;
    int rc = 0;

    gl_jw_key_str(w, spec->id);
    gl_jw_object(w);
    if (rec == NULL) {
        render_unreached(spec, job, w);
    } else {
        rc = read_record(a, &gl_step_schema, rec->value, &r, why);
        if (rc == 0) {
            gl_schema_write(&gl_step_schema, &r, w, GL_FOR_API);
        }
    }
    if (spec->needs_ids.n > 0) {
        gl_jw_key(w, "needs");
        gl_jw_array(w);
        for (size_t i = 0; i < spec->needs_ids.n; i++) {
            gl_jw_str(w, spec->needs_ids.items[i]);
        }
        gl_jw_end(w);
    }
    gl_jw_end(w);
    return rc;
}

int gl_render_status(struct gl_arena *a, const struct gl_record *job, gl_str flow_text,
                     const struct gl_record *steps, size_t steps_n, struct gl_jw *w,
                     struct gl_why *reterr_why)
{
    struct gl_job_record r;
    struct gl_flow *flow;
    const struct gl_record **by_number;
    int rc = read_record(a, &gl_job_schema, job->value, &r, reterr_why);

    if (rc == 0) {
        rc = gl_flow_decode(gl_str_dup(a, flow_text), a, &flow, reterr_why);
    }
    if (rc != 0) {
        return gl_why_prefix(reterr_why, "the record of job %.*s is damaged", GL_STR_ARG(job->id));
    }
    by_number = GL_NEW_ARRAY(a, const struct gl_record *, flow->steps.n + 1);
    for (size_t i = 0; i < steps_n; i++) {
        gl_str id;
        int64_t number;

        (void)gl_str_cut(steps[i].id, '/', &id); /* "job/step" */
        number = gl_flow_find(flow, id);
        if (number >= 0) {
            by_number[number] = &steps[i];
        }
    }
    gl_jw_object(w);
    gl_schema_write(&gl_job_schema, &r, w, GL_FOR_API);
    gl_jw_key(w, "workflow_state");
    gl_jw_object(w);
    gl_jw_key(w, "status");
    gl_jw_c(w, gl_job_status_words[r.status]);
    gl_jw_key(w, "steps");
    gl_jw_object(w);
    for (uint32_t i = 0; i < flow->steps.n && rc == 0; i++) {
        rc = render_step(a, gl_flow_step(flow, i), by_number[i], &r, w, reterr_why);
    }
    if (rc != 0) {
        return rc;
    }
    gl_jw_end(w);
    gl_jw_end(w);
    gl_jw_end(w);
    return 0;
}

/* Events are written with their number first: {"seq":12,... */
static int64_t seq_of(gl_str line)
{
    gl_str rest = line, digits;
    int64_t seq = 0;

    (void)gl_str_cut(line, ':', &rest);
    digits = gl_str_cut(rest, ',', &rest);
    return gl_str_i64(digits, &seq) ? seq : 0;
}

uint32_t gl_render_events(const struct gl_log_entry *log, size_t log_n, int64_t from,
                          uint32_t limit, gl_str status, bool ended, struct gl_jw *w)
{
    int64_t next = from;
    uint32_t taken = 0;

    gl_jw_object(w);
    gl_jw_key(w, "events");
    gl_jw_array(w);
    for (size_t i = 0; i < log_n && taken < limit; i++) {
        gl_str rest = log[i].value;

        while (rest.n > 0 && taken < limit) {
            gl_str line = gl_str_cut(rest, '\n', &rest);
            int64_t seq = seq_of(line);

            if (seq >= from && seq > 0) {
                gl_jw_raw(w, line);
                next = seq + 1;
                taken++;
            }
        }
    }
    gl_jw_end(w);
    gl_jw_key(w, "next_seq");
    gl_jw_i64(w, next);
    gl_jw_key(w, "status");
    gl_jw_str(w, status);
    gl_jw_key(w, "ended");
    gl_jw_bool(w, ended && taken < limit);
    gl_jw_end(w);
    return taken;
}

void gl_render_human(struct gl_arena *a, const struct gl_record *step, const struct gl_record *job,
                     struct gl_jw *w)
{
    static const char *const decisions[] = {"rerun", "done", "failed"};
    struct gl_step_record r;

    if (step->rev == 0 || read_record(a, &gl_step_schema, step->value, &r, NULL) != 0 ||
        r.status != GL_STEP_BLOCKED) {
        return; /* decided meanwhile */
    }
    gl_jw_object(w);
    gl_jw_key(w, "job_id");
    gl_jw_str(w, job->id);
    gl_jw_key(w, "run_id");
    gl_jw_str(w, gl_render_text(a, job->value, "run_id"));
    gl_jw_key(w, "step_id");
    gl_jw_str(w, r.step_id);
    gl_jw_key(w, "kind");
    gl_jw_c(w, gl_block_words[r.blocked_on]);
    gl_jw_key(w, "reason");
    gl_jw_str(w, r.last_error);
    gl_jw_key(w, "attempt");
    gl_jw_u64(w, r.attempt_count);
    gl_jw_key(w, "decisions");
    gl_jw_array(w);
    for (size_t i = 0; i < GL_COUNT(decisions); i++) {
        gl_jw_c(w, decisions[i]);
    }
    gl_jw_end(w);
    gl_jw_end(w);
}
