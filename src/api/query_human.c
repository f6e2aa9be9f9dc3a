/* query_human.c - what waits for a person: steps, from the index "human", and questions of workers,
 * as read from their files (port/questions.h). */
#include "api/query_parts.h"
#include "api/render.h"
#include "api/worker_questions.h"
#include "base/check.h"
#include "base/id.h"
#include "base/limits.h"
#include "model/job.h"

enum { KEYS_AT_ONCE = 64 }; /* in one read; even, because a step and its job belong together */

/* ---- finishing ---- */

/* Problems with the files: what could not be read or was not accepted. */
static void write_notes(struct gl_query *q)
{
    bool is_open = false;

    for (size_t i = 0; i < q->asks_n; i++) {
        const struct gl_questions_run *run = &q->asks[i];

        if (run->trouble.n > 0 && run->job_id.n > 0) {
            if (!is_open) {
                gl_jw_put_array(&q->w, "notes");
                is_open = true;
            }
            gl_jw_object(&q->w);
            gl_jw_put_str(&q->w, "job_id", run->job_id);
            gl_jw_put_str(&q->w, "run_id", run->run_id);
            gl_jw_put_str(&q->w, "text", run->trouble);
            gl_jw_end(&q->w);
        }
    }
    if (is_open) {
        gl_jw_end(&q->w);
    }
}

static void finish(struct gl_query *q)
{
    gl_jw_end(&q->w);
    if (q->asks_open_n > 0) { /* questions not listed */
        gl_jw_put_u64(&q->w, "more", q->asks_open_n);
    }
    write_notes(q);
    gl_jw_end(&q->w);
    gl_query_succeed(q);
}

/* ---- questions of workers ---- */

/* Writes the questions of a run, if its job is live and they can belong to it. */
static void write_run(struct gl_query *q, struct gl_questions_run *run,
                      const struct gl_record *record)
{
    struct gl_job_record job;

    if (record->rev == 0 || !record->live || record->damaged ||
        (run->job_id.n > 0 && !gl_str_eq(run->job_id, record->id)) ||
        gl_view_record(&q->arena, &gl_job_schema, record->value, &job, NULL) != 0 ||
        !gl_str_eq(job.run_id, run->run_id)) {
        q->asks_open_n -= run->open_n; /* no longer of a live job */
        run->job_id = (gl_str){0};
        return;
    }
    run->job_id = gl_str_dup(&q->arena, record->id);
    for (size_t i = 0; i < run->n; i++) {
        gl_worker_question_write(&q->w, run->job_id, run->run_id, &run->open[i],
                                 job.wake == GL_WAKE_RUNNING);
    }
    q->asks_open_n -= run->n;
}

static void on_jobs(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    for (size_t i = 0; i < q->asks_n; i++) {
        write_run(q, &q->asks[i], &req->records[i]);
    }
    finish(q);
}

/* The job of a run: named by the record of its run id; without a run id of its own, the run is
 * named after its job. */
static gl_str job_of(struct gl_query *q, const struct gl_questions_run *run,
                     const struct gl_record *record)
{
    gl_str job = gl_id_valid(run->run_id) ? run->run_id
                 : record->rev != 0       ? gl_render_text(&q->arena, record->value, "job_id")
                                          : (gl_str){0};

    return gl_str_dup(&q->arena, job.n > 0 ? job : GL_S("-"));
}

static void on_runs(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct gl_store *s = q->context->store;

    for (size_t i = 0; i < q->asks_n; i++) {
        q->keys[i] =
            (struct gl_key){.kind = GL_S("job"), .id = job_of(q, &q->asks[i], &req->records[i])};
    }
    s->ops->get(s, gl_query_call(q, on_jobs), q->tenant, q->keys, q->asks_n);
}

static void add_questions(struct gl_query *q, size_t steps_n)
{
    struct gl_store *s = q->context->store;
    const struct gl_questions *asks = q->context->asks;
    size_t room = steps_n < q->limit ? q->limit - steps_n : 0;

    if (asks != NULL) {
        q->asks = asks->all(asks->owner, room, &q->arena, &q->asks_n, &q->asks_open_n);
    }
    if (q->asks_n == 0) {
        finish(q);
        return;
    }
    q->keys = GL_NEW_ARRAY(&q->arena, struct gl_key, q->asks_n);
    for (size_t i = 0; i < q->asks_n; i++) {
        q->keys[i] = (struct gl_key){.kind = GL_S("run"), .id = q->asks[i].run_id};
    }
    s->ops->get(s, gl_query_call(q, on_runs), q->tenant, q->keys, q->asks_n);
}

/* ---- steps ---- */

static void read_steps(struct gl_query *q);

static void run_steps(struct gl_query *q)
{
    for (size_t i = 0; i + 1 < q->records_n; i += 2) {
        gl_render_human(&q->page, &q->records[i], &q->records[i + 1], &q->w);
    }
}

static void steps_rendered(struct gl_query *q)
{
    q->scanned += q->records_n;
    if (q->scanned < q->taken) {
        read_steps(q);
    } else {
        add_questions(q, q->taken / 2);
    }
}

static void on_steps(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    gl_query_render(q, run_steps, steps_rendered);
}

/* Reads the next of the q->taken keys: a step, its job, a step, ... */
static void read_steps(struct gl_query *q)
{
    struct gl_store *s = q->context->store;
    size_t left = q->taken - q->scanned;

    s->ops->get(s, gl_query_call(q, on_steps), q->tenant, q->keys + q->scanned,
                left < KEYS_AT_ONCE ? left : KEYS_AT_ONCE);
}

static void on_human(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    size_t n = req->entries_n;

    q->keys = GL_NEW_ARRAY(&q->arena, struct gl_key, n * 2 + 1);
    for (size_t i = 0; i < n; i++) {
        gl_str step = gl_str_dup(&q->arena, req->entries[i].id), ignored;

        q->keys[i * 2] = (struct gl_key){.kind = GL_S("step"), .id = step};
        q->keys[i * 2 + 1] =
            (struct gl_key){.kind = GL_S("job"), .id = gl_str_cut(step, '/', &ignored)};
    }
    gl_jw_object(&q->w);
    gl_jw_put_array(&q->w, "requests");
    q->taken = n * 2;
    if (n == 0) {
        add_questions(q, 0);
    } else {
        read_steps(q);
    }
}

void gl_query_human(struct gl_query *q)
{
    struct gl_store *s = q->context->store;

    q->limit = gl_query_limit(q->rq->human.limit, GL_QUERY_ROWS);
    q->range = (struct gl_range){.index = GL_S("human"), .score_max = INT64_MAX, .limit = q->limit};
    s->ops->range(s, gl_query_call(q, on_human), q->tenant, &q->range);
}
