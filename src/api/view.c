/* view.c - parses the records of a job. */
#include "api/view.h"

#include "api/scan.h"
#include "base/check.h"
#include "base/limits.h"

int gl_view_record(struct gl_arena *a, const struct gl_schema *schema, gl_str text, void *ret,
                   struct gl_why *reterr_why)
{
    struct gl_json j;
    int rc = gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, a, reterr_why);

    return rc != 0 ? rc : gl_schema_read(schema, &j, gl_json_root(&j), false, a, ret, reterr_why);
}

int gl_view_read_job(struct gl_arena *a, const struct gl_record *job, struct gl_job_record *ret,
                     struct gl_why *reterr_why)
{
    int rc = job->damaged ? gl_why(reterr_why, GL_E_DAMAGED, "checksum mismatch")
                          : gl_view_record(a, &gl_job_schema, job->value, ret, reterr_why);

    return rc != 0
               ? gl_why_prefix(reterr_why, "the record of job %.*s is damaged", GL_STR_ARG(job->id))
               : 0;
}

int gl_view_read_flow(struct gl_arena *a, gl_str job, gl_str text, const struct gl_flow **ret,
                      struct gl_why *reterr_why)
{
    struct gl_flow *flow = NULL;
    int rc = gl_flow_decode(text, a, &flow, reterr_why);

    if (rc == GL_E_VERSION) {
        return gl_why_prefix(reterr_why, "the flow of job %.*s", GL_STR_ARG(job));
    }
    if (rc != 0) {
        return gl_why(
            reterr_why, GL_R_JOB_DAMAGED,
            "the record of the flow of job %.*s is damaged or missing: " GL_JOB_DAMAGED_ADVICE,
            GL_STR_ARG(job));
    }
    *ret = flow;
    return 0;
}

int gl_view_read(struct gl_arena *a, const struct gl_record *job, gl_str flow,
                 const struct gl_record *steps, size_t steps_n, struct gl_view *ret,
                 struct gl_why *reterr_why)
{
    struct gl_scan scan;
    struct gl_job_record record;
    const struct gl_flow *graph = NULL;
    int rc = gl_view_read_job(a, job, &record, reterr_why);

    rc = rc != 0 ? rc : gl_view_read_flow(a, job->id, flow, &graph, reterr_why);
    if (rc != 0) {
        return rc;
    }
    gl_scan_begin(&scan, a, &record, graph, UINT32_MAX, SIZE_MAX);
    gl_scan_add(&scan, steps, steps_n);
    gl_scan_end(&scan, ret);
    gl_scan_done(&scan);
    return 0;
}
