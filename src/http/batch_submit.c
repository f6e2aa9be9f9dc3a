/* batch_submit.c - many submissions in one request.
 *
 * The HTTP thread reads all of them. The control thread submits them in slices, so that few disk
 * transactions carry many jobs and other requests run in between. Answers keep the order of the
 * request. */
#include "base/check.h"
#include "base/limits.h"
#include "http/routes.h"
#include "http/submission_reader.h"

enum {
    /* Entries per turn of the control thread, so that it serves other requests in between. */
    SLICE = 64,
};

struct batch_entry {
    struct gl_request rq;
    struct gl_submit_batch *batch;
    bool is_refused;           /* refused here; the node never sees it */
    struct gl_refusal refusal; /* also an error from the node */
    gl_str answer;
};

struct gl_submit_batch {
    struct gl_http_call *call;
    struct gl_http *http;
    struct batch_entry *entries;
    size_t n;
    struct gl_loop_task task;
    size_t asked;    /* entries the control thread has gone through */
    size_t answered; /* entries that have their answer */
};

/* ---- the control thread's part: it owns the call's arena while the call sleeps ---- */

static void finish_batch(struct gl_submit_batch *b)
{
    struct gl_http *h = b->http;
    struct gl_http_call *c = b->call;

    c->is_complete = true;
    MHD_resume_connection(c->connection); /* from here on the call belongs to the HTTP thread */
    gl_http_task_done(h);
}

static void finish_if_complete(struct gl_submit_batch *b)
{
    if (b->asked == b->n && b->answered == b->n) {
        finish_batch(b);
    }
}

static void on_entry_answered(struct gl_request *rq)
{
    struct batch_entry *e = rq->owner;
    struct gl_submit_batch *b = e->batch;

    if (rq->code != 0) {
        e->refusal =
            (struct gl_refusal){.code = gl_err_join(rq->code, rq->why.reason),
                                .message = gl_str_c(&b->call->arena, gl_str_of(rq->why.text))};
    } else {
        e->answer = gl_str_dup(&b->call->arena, rq->body);
    }
    b->answered++;
    finish_if_complete(b);
}

static void submit_slice(struct gl_loop_task *t)
{
    struct gl_submit_batch *b = t->owner;
    struct gl_http *h = b->http;
    size_t end = b->n - b->asked > SLICE ? b->asked + SLICE : b->n;
    bool is_refusing = gl_http_is_refusing(h);

    while (b->asked < end) {
        struct batch_entry *e = &b->entries[b->asked++];

        if (is_refusing && !e->is_refused) {
            e->is_refused = true;
            e->refusal =
                (struct gl_refusal){.code = GL_R_NODE_STOPPING, .message = "this node is stopping"};
        }
        if (e->is_refused) {
            b->answered++;
        } else {
            h->config.ask(h->config.owner, &e->rq); /* never answer from inside the call */
        }
    }
    if (b->asked == b->n) {
        finish_if_complete(b);
    } else {
        gl_loop_post(h->config.loop, &b->task);
    }
}

/* ---- the HTTP thread's part ---- */

static void write_answers(struct gl_http_call *c)
{
    struct gl_submit_batch *b = c->batch;
    struct gl_jw w;

    gl_buf_reset(&c->out);
    gl_jw_init(&w, &c->out);
    gl_jw_object(&w);
    gl_jw_put_array(&w, "jobs");
    for (size_t i = 0; i < b->n; i++) {
        struct batch_entry *e = &b->entries[i];

        if (e->refusal.code == 0) {
            gl_jw_raw(&w, e->answer);
            continue;
        }
        gl_jw_object(&w);
        gl_jw_key(&w, "error");
        gl_reply_write_error(&w, &e->refusal, c->id);
        gl_jw_end(&w);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_reply_finish_json(c, MHD_HTTP_OK);
}

static void read_entries(struct gl_http_call *c, struct gl_submission_reader *s, gl_jnode jobs)
{
    struct gl_submit_batch *b = c->batch;
    size_t i = 0;

    b->n = jobs->count;
    b->entries = GL_NEW_ARRAY(&c->arena, struct batch_entry, b->n);
    for (gl_jnode one = gl_json_first(s->json, jobs); one != NULL;
         one = gl_json_after(s->json, jobs, one)) {
        struct batch_entry *e = &b->entries[i++];

        e->batch = b;
        e->is_refused = !gl_submission_reader_next(s, one, &e->rq, &e->refusal);
        e->rq.done = on_entry_answered;
        e->rq.owner = e;
    }
}

static bool read_body(struct gl_http_call *c)
{
    struct gl_submission_reader s;
    struct gl_json j;
    gl_jnode root, jobs;
    struct gl_batch_request unused;

    if (!gl_routes_read_fields(c, &j, &unused)) {
        return false;
    }
    root = gl_json_root(&j);
    jobs = gl_json_get(&j, root, "jobs");
    if (!gl_json_is(jobs, GL_JSON_ARRAY) || jobs->count > GL_HTTP_BATCH_MAX) {
        gl_reply_error_at(c, GL_R_BATCH_INVALID,
                          "'jobs' must be a list of at most 10000 submissions", NULL, "jobs", NULL);
        return false;
    }
    gl_submission_reader_init(&s, &c->arena, c->config->blob, c->rq.context, &j);
    s.flow = gl_json_get(&j, root, "flow");
    s.files = gl_json_get(&j, root, "files");
    read_entries(c, &s, jobs);
    gl_submission_reader_done(&s);
    return true;
}

void gl_route_batch(struct gl_http_call *c)
{
    struct gl_submit_batch *b = c->batch = GL_NEW(&c->arena, struct gl_submit_batch);

    b->call = c;
    b->http = c->http;
    if (!read_body(c)) {
        return;
    }
    c->then = write_answers;
    b->task = (struct gl_loop_task){.run = submit_slice, .owner = b};
    if (b->n == 0) {
        write_answers(c);
    } else if (!gl_http_post_task(c->http, c->connection, &b->task)) {
        gl_reply_error(c, GL_R_NODE_STOPPING, "this node is stopping", NULL);
    }
}
