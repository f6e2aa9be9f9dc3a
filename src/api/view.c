#include "api/view.h"

#include "base/check.h"
#include "base/limits.h"

int gl_view_record(struct gl_arena *a, const struct gl_schema *schema, gl_str text, void *ret,
                   struct gl_why *reterr_why)
{
    struct gl_json j;
    int rc = gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, a, reterr_why);

    return rc != 0 ? rc : gl_schema_read(schema, &j, gl_json_root(&j), false, a, ret, reterr_why);
}

static void put_item(struct gl_arena *a, struct gl_view_items *items, uint32_t item,
                     struct gl_step_record *r)
{
    if (item >= items->n) { /* in bytewise order of their ids: the largest comes early */
        uint32_t n = item + item / 2 + 16;
        struct gl_step_record **more;

        n = n < GL_ITEMS_MAX ? n : GL_ITEMS_MAX;
        more = GL_NEW_ARRAY(a, struct gl_step_record *, n);
        if (items->n > 0) {
            memcpy(more, items->records, items->n * sizeof(struct gl_step_record *));
        }
        items->records = more;
        items->n = n;
    }
    items->records[item] = r;
}

static void put_step(struct gl_arena *a, struct gl_view *v, struct gl_step_record *r)
{
    gl_str name;
    int64_t item, number;

    if (!gl_str_split_step(r->step_id, &name, &item)) {
        return;
    }
    number = gl_flow_find(v->flow, name);
    if (number >= 0 && item < 0) {
        v->steps[number] = r;
    } else if (number >= 0) {
        put_item(a, &v->items[number], (uint32_t)item, r);
    }
}

/* Its name is all that is left of it. Blocked on nothing, so that nobody is asked to decide about
 * it: damage.h says what can be done. */
static struct gl_step_record damaged(const struct gl_record *step, gl_str job)
{
    struct gl_step_record r = {.status = GL_STEP_BLOCKED,
                               .last_error = GL_S("the record of this step is damaged")};

    if (step->id.n > job.n) {
        r.step_id = (gl_str){.p = step->id.p + job.n + 1, .n = step->id.n - job.n - 1};
    }
    return r;
}

int gl_view_read(struct gl_arena *a, const struct gl_record *job, gl_str flow,
                 const struct gl_record *steps, size_t steps_n, struct gl_view *ret,
                 struct gl_why *reterr_why)
{
    struct gl_view v = {0};
    int rc = job->damaged ? gl_why(reterr_why, GL_E_DAMAGED, "its checksum is wrong")
                          : gl_view_record(a, &gl_job_schema, job->value, &v.job, reterr_why);

    if (rc != 0) {
        return gl_why_prefix(reterr_why, "the record of job %.*s is damaged", GL_STR_ARG(job->id));
    }
    rc = gl_flow_decode(gl_str_dup(a, flow), a, &v.flow, reterr_why);
    if (rc == GL_E_VERSION) {
        return gl_why_prefix(reterr_why, "the flow of job %.*s", GL_STR_ARG(job->id));
    }
    if (rc != 0) {
        return gl_why(
            reterr_why, GL_E_DAMAGED,
            "the record of the flow of job %.*s is damaged or missing: " GL_JOB_DAMAGED_ADVICE,
            GL_STR_ARG(job->id));
    }
    v.steps = GL_NEW_ARRAY(a, struct gl_step_record *, v.flow->steps.n + 1);
    v.items = GL_NEW_ARRAY(a, struct gl_view_items, v.flow->steps.n + 1);
    for (size_t i = 0; i < steps_n; i++) {
        struct gl_step_record *r = GL_NEW(a, struct gl_step_record);

        if (steps[i].damaged || gl_view_record(a, &gl_step_schema, steps[i].value, r, NULL) != 0) {
            *r = damaged(&steps[i], job->id);
            v.spoilt = v.spoilt != NULL ? v.spoilt : r;
        }
        put_step(a, &v, r);
    }
    *ret = v;
    return 0;
}
