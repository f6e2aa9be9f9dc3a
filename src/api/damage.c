/* damage.c - the sentences about damaged records. */
#include "api/damage.h"

bool gl_damage_is_step(const struct gl_step_record *r)
{
    /* A blocked step always has a cause, except the placeholders of scan.c for damaged records. */
    return r->status == GL_STEP_BLOCKED && r->blocked_on == GL_BLOCK_NONE;
}

static bool is_ending(const struct gl_job_record *r)
{
    return gl_job_status_is_terminal(r->status) || r->status == GL_JOB_CANCELLING ||
           r->verdict != GL_VERDICT_NONE;
}

bool gl_damage_matters(const struct gl_view *v)
{
    return !is_ending(&v->job) && (gl_job_is_paused_for_damage(&v->job) || v->damaged_step != NULL);
}

static gl_str record_of(struct gl_arena *a, const struct gl_view *v, const struct gl_step_record *r)
{
    return gl_str_fmt(a, "record step/%.*s/%.*s is damaged", GL_STR_ARG(v->job.job_id),
                      GL_STR_ARG(r->step_id));
}

static gl_str advice(struct gl_arena *a, const struct gl_view *v)
{
    return gl_str_fmt(a,
                      "cancel the job ('glia job cancel %.*s'), or repair the record and resume it "
                      "('glia job resume %.*s')",
                      GL_STR_ARG(v->job.job_id), GL_STR_ARG(v->job.job_id));
}

gl_str gl_damage_step(struct gl_arena *a, const struct gl_view *v, const struct gl_step_record *r)
{
    gl_str todo = is_ending(&v->job) ? (gl_str){0} : advice(a, v);

    return gl_str_fmt(a, "is in an unknown state: its %.*s%s%.*s", GL_STR_ARG(record_of(a, v, r)),
                      todo.n > 0 ? "; " : "", GL_STR_ARG(todo));
}

gl_str gl_damage_answer(struct gl_arena *a, const struct gl_view *v)
{
    if (v->job.status == GL_JOB_PAUSED) {
        return gl_str_fmt(a, "is paused with its job: %.*s", GL_STR_ARG(v->job.reason));
    }
    /* A node that has the job in memory would accept it, any other would not. */
    return gl_str_fmt(a, "waits for an answer, which may be refused: the %.*s",
                      GL_STR_ARG(record_of(a, v, v->damaged_step)));
}

gl_str gl_damage_job(struct gl_arena *a, const struct gl_view *v)
{
    if (gl_job_is_paused_for_damage(&v->job)) { /* the job's reason names the record */
        return gl_str_fmt(a, "%.*s: %.*s", GL_STR_ARG(v->job.reason), GL_STR_ARG(advice(a, v)));
    }
    return gl_str_fmt(a, "%.*s; the %.*s: %.*s", GL_STR_ARG(v->job.reason),
                      GL_STR_ARG(record_of(a, v, v->damaged_step)), GL_STR_ARG(advice(a, v)));
}
