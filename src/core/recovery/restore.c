/* restore.c - checks a job's records and makes its memory of them.
 *
 * Order matters: first the job's own record and its flow; then its patches, which may add steps to
 * the flow; then steps, messages and signals. Counters are computed here from the steps, never
 * read. */
#include "core/recovery/restore.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/flow/signals.h"
#include "core/flow/submit.h"

#define TIME_MAX ((gl_ms)253402300799999) /* the end of the year 9999 */
#define SEQ_MAX ((int64_t)1 << 52)

/* ---- checks ---- */

static bool times_are_sound(const struct gl_schema *schema, const void *record)
{
    GL_ASSERT(schema->fields_n > 0);
    for (size_t i = 0; i < schema->fields_n; i++) {
        const struct gl_field *f = &schema->fields[i];
        gl_ms t;

        if (f->type != GL_F_TIME) {
            continue;
        }
        memcpy(&t, (const char *)record + f->offset, sizeof(t));
        if (t < 0 || t > TIME_MAX) {
            return false;
        }
    }
    return true;
}

static bool is_sound_job(const struct gl_job_record *r, const struct gl_flow *flow)
{
    bool cancels = r->status == GL_JOB_CANCELLING || r->status == GL_JOB_CANCELLED;

    bool fits = flow->bundle == NULL ? r->steps_n == flow->steps.n
                                     : r->steps_n <= GL_STEPS_MAX + GL_JOB_ITEMS_MAX &&
                                           r->seeds_n <= flow->bundle->seeds.n;

    return fits && gl_job_ended_steps(r) <= r->steps_n &&
           (r->roots_spread <= flow->roots_n || r->patches_n > 0) && /* patches may add roots */
           r->status != GL_JOB_PENDING && cancels == (r->verdict == GL_VERDICT_CANCELLED) &&
           r->last_seq >= 0 && r->last_seq < SEQ_MAX && r->items_n <= GL_JOB_ITEMS_MAX &&
           times_are_sound(&gl_job_schema, r);
}

/* The counters of a step with foreach; of an instance only its number. */
static bool are_sound_items(const struct gl_step_record *r, const struct gl_step_spec *spec,
                            const struct gl_job_record *job, int32_t item)
{
    if (item >= 0) {
        return spec->foreach.n > 0 && r->items_at < job->items_n && r->items_n == 0 &&
               r->status != GL_STEP_WAITING;
    }
    return r->items_made <= r->items_n && r->items_ended <= r->items_made &&
           r->items_failed <= r->items_ended && r->items_n <= job->items_n &&
           r->items_at <= job->items_n - r->items_n &&
           (r->status != GL_STEP_WAITING || r->items_ended < r->items_n);
}

/* A step that ended without an attempt (a sleep, an empty list) counts as one. */
static uint32_t tries_of(const struct gl_step_record *r)
{
    return r->attempt_count == 0 && gl_step_status_is_terminal(r->status) ? 1 : r->attempt_count;
}

/* Only an agent between two attempts keeps its slots. */
static bool is_sound_lease(const struct gl_step_record *r)
{
    return !r->keeps_slots || (r->step_id.p[0] == '@' && r->letter != 0 && r->tries > 0 &&
                               (r->status == GL_STEP_RETRY_WAIT || r->status == GL_STEP_READY ||
                                r->status == GL_STEP_QUEUED));
}

static bool is_sound_step(const struct gl_step_record *r, const struct gl_step_spec *spec,
                          const struct gl_job_record *job, int32_t item)
{
    bool ended = gl_step_status_is_terminal(r->status);

    if (!is_sound_lease(r)) {
        return false;
    }
    if (spec->is_bound || r->step_id.p[0] == '@') {
        return r->up_ended <= (uint64_t)spec->needs_n + r->more_needs &&
               r->items_made <= r->items_n && r->items_n <= job->items_n &&
               r->items_at <= job->items_n - r->items_n && r->spread <= spec->children_n &&
               !r->is_elsewhere && times_are_sound(&gl_step_schema, r);
    }
    if (r->is_elsewhere && (r->status != GL_STEP_RUNNING || r->node.n == 0)) {
        return false;
    }
    return are_sound_items(r, spec, job, item) && r->up_ended <= spec->needs_n &&
           r->up_success <= r->up_ended && r->up_failed <= r->up_ended &&
           r->up_accepted <= r->up_ended && r->spread <= spec->children_n &&
           (ended || r->spread == 0) && r->attempt_count <= INT32_MAX &&
           r->counted <= tries_of(r) && (r->status != GL_STEP_RUNNING || r->attempt_count > 0) &&
           r->up_reused <= r->up_ended && times_are_sound(&gl_step_schema, r);
}

/* Each record makes sense by itself; do they agree with each other? */
static bool fit_together(struct gl_job *j)
{
    uint64_t open = 0;

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (j->spec->flow->bundle != NULL) {
        return GL_PLANT(54) || gl_mailbox_is_complete(j);
    }
    for (uint8_t s = 0; s < GL_STEP_STATUS_COUNT; s++) {
        open += gl_step_status_is_terminal(s) ? 0 : j->count[s];
    }
    GL_ASSERT(j->items_live <= open);
    open -= j->items_live;
    return gl_job_ended_steps(&j->r) + open <= j->r.steps_n &&
           (open + j->items_live == 0 || !gl_job_status_is_terminal(j->r.status));
}

/* ---- from text to memory ---- */

static int read_record(struct gl_core *c, const struct gl_schema *schema, gl_str text, void *ret)
{
    struct gl_json json;
    int rc = gl_json_parse(&json, text, GL_RECORD_BYTES_MAX, c->out->arena, NULL);

    return rc != 0 ? rc
                   : gl_schema_read(schema, &json, gl_json_root(&json), false, c->out->arena, ret,
                                    NULL);
}

static int restore_record(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec,
                          gl_str flow)
{
    struct gl_job_record r;
    int rc = read_record(c, &gl_job_schema, rec->value, &r);

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    GL_ASSERT(j->spec == NULL);
    GL_ASSERT(gl_list_empty(&j->live));
    if (rc == 0) {
        rc = gl_submit_spec(c, r.flow, flow, &j->spec, NULL);
    }
    if (rc == 0) {
        j->spec->jobs++;
    }
    if (rc == 0 && !is_sound_job(&r, j->spec->flow)) {
        rc = GL_E_DAMAGED;
    }
    if (rc != 0) {
        return rc;
    }
    gl_core_adopt(c, &gl_job_schema, &j->r, &r);
    j->rev = rec->rev;
    j->has_names = !gl_job_status_is_terminal(j->r.status);
    j->token = rec->token;
    gl_core_set(c, &j->owner, rec->owner);
    GL_ASSERT(j->spec->jobs > 0);
    GL_ASSERT(j->spec->refs >= j->spec->jobs);
    return 0;
}

static int restore_step(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec)
{
    const struct gl_flow *flow = j->spec->flow;
    struct gl_step_record r;
    int rc = read_record(c, &gl_step_schema, rec->value, &r);
    uint32_t of = 0, number;
    int32_t item = -1;
    struct gl_step *st;

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (rc != 0) {
        return rc;
    }
    if (!gl_step_split_id(flow, r.step_id, &of, &item) ||
        !is_sound_step(&r, gl_flow_step(flow, of), &j->r, item)) {
        return GL_E_DAMAGED;
    }
    number = item < 0 ? of : gl_flow_items_base(flow) + r.items_at;
    if (gl_step_find(j, number) != NULL) {
        return GL_E_DAMAGED;
    }
    st = item < 0 ? gl_step_get(c, j, number) : gl_step_item(c, j, of, (uint32_t)item, r.items_at);
    gl_core_adopt(c, &gl_step_schema, &st->r, &r);
    st->r.status = GL_STEP_PENDING;
    gl_job_recount(st, r.status);
    st->r.status = r.status;
    c->running_n += r.status == GL_STEP_RUNNING && !gl_step_is_bound(st);
    j->reviews_n += r.status == GL_STEP_BLOCKED && r.blocked_on == GL_BLOCK_REVIEW;
    j->items_live -= item >= 0 && gl_step_status_is_terminal(r.status);
    GL_ASSERT(st->number == number);
    GL_ASSERT(st->of == of && st->item == item);
    GL_ASSERT(j->count[r.status] > 0);
    GL_ASSERT(j->reviews_n <= j->count[GL_STEP_BLOCKED]);
    return 0;
}

int gl_restore_head(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    const struct gl_event_record *recs = ev->loaded.records.items;

    GL_ASSERT(ev->type == GL_EV_LOADED);
    GL_ASSERT(ev->loaded.records.n > 0);
    GL_ASSERT(j->memory == GL_MEM_LOADING);
    return recs[0].damaged ? GL_E_DAMAGED : restore_record(c, j, &recs[0], ev->loaded.flow);
}

int gl_restore_job(struct gl_core *c, struct gl_job *j, const struct gl_event *ev,
                   const struct gl_event_record **ret_bad)
{
    const struct gl_event_record *recs = ev->loaded.records.items;
    int rc = gl_restore_head(c, j, ev);

    GL_ASSERT(ev->loaded.records.n > 0);
    *ret_bad = &recs[0];
    for (size_t i = 1; i < ev->loaded.records.n && rc == 0; i++) { /* patches, before steps */
        if (gl_str_is(recs[i].kind, "patch")) {
            *ret_bad = &recs[i];
            rc = recs[i].damaged ? GL_E_DAMAGED : gl_patch_apply_restore(c, j, &recs[i]);
            rc = rc == 0 && j->r.roots_spread > j->spec->flow->roots_n ? GL_E_DAMAGED : rc;
        }
    }
    for (size_t i = 1; i < ev->loaded.records.n && rc == 0; i++) {
        *ret_bad = &recs[i];
        if (GL_PLANT(54) && recs[i].damaged) {
            continue; /* planted: as if it had never existed */
        }
        rc = recs[i].damaged                     ? GL_E_DAMAGED
             : gl_str_is(recs[i].kind, "signal") ? gl_signals_restore(c, j, &recs[i])
             : gl_str_is(recs[i].kind, "patch")  ? 0
             : gl_str_is(recs[i].kind, "letter") ? gl_mailbox_restore(c, j, &recs[i])
                                                 : restore_step(c, j, &recs[i]);
    }
    if (rc == 0 && !fit_together(j)) {
        *ret_bad = NULL;
        rc = GL_E_DAMAGED;
    }
    return rc;
}
