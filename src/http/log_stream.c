/* log_stream.c - a log as a stream that ends with its attempt.
 *
 * The stream sends what is there. It then sleeps until the job has an event or POLL_MS have passed,
 * and reads again. It asks the node whether the attempt still writes only after an event of its
 * step.
 *
 * A log of another node is read from the store, by a request to our node, once a second. The copy
 * in the store is a little late, so after the end of the attempt it is read a few times more, until
 * it is said to be finished. */
#include "api/stored_log.h"
#include "base/check.h"
#include "base/mem.h"
#include "http/job_event_polls.h"

enum {
    BLOCK_BYTES = 16 << 10,
    PAGE_BYTES = 128 << 10, /* minimum: a page holds whole lines */
    POLL_MS_MIN = 100,      /* doubled while there is no output, up to: */
    POLL_MS_MAX = 800,
    POLL_MS_STORED = 1000,
    LATE_MAX = 30, /* reads from the store after the end, without the copy being finished */
    STATE_BYTES_MAX = 1 << 30,
};

struct log_stream {
    struct gl_job_event_waiter waiter;
    struct gl_http *http;
    struct gl_arena arena;
    gl_str context, job, step;
    uint32_t attempt; /* 0: none yet */
    uint64_t offset;
    int64_t next_seq;
    gl_ms poll_ms;
    struct gl_buf text; /* read, and sent up to `sent` */
    size_t sent;
    bool is_last; /* the attempt has ended: what is read now is all there will be */

    /* The request that finds out whether the attempt still writes. */
    struct gl_request rq;
    struct gl_loop_task task;
    struct gl_buf state;
    bool is_asking;

    /* A log in the store. */
    bool is_stored;
    bool is_reading; /* the node reads a chunk: the answer comes to `state` */
    bool is_copied;  /* nothing more will come */
    unsigned late_n;
};

/* ---- asking whether the attempt still writes ---- */

static void on_status(struct gl_request *rq)
{
    struct log_stream *t = rq->owner;
    struct gl_http *h = t->http;

    gl_buf_str(&t->state, rq->body);
    MHD_resume_connection(t->waiter.connection);
    gl_http_task_done(h);
}

static void submit_request(struct gl_loop_task *task)
{
    struct log_stream *t = task->owner;

    t->http->config.ask(t->http->config.owner, &t->rq);
}

static bool request_status(struct log_stream *t)
{
    t->rq = (struct gl_request){.verb = GL_VERB_STATUS,
                                .context = t->context,
                                .job = t->job,
                                .status.step = t->step,
                                .done = on_status,
                                .owner = t};
    t->task = (struct gl_loop_task){.run = submit_request, .owner = t, .is_urgent = true};
    t->is_asking = true;
    return gl_http_post_task(t->http, t->waiter.connection, &t->task);
}

static bool request_stored(struct log_stream *t)
{
    t->rq = (struct gl_request){
        .verb = GL_VERB_STORED_LOGS,
        .context = t->context,
        .job = t->job,
        .stored_logs = {.step = t->step, .attempt = t->attempt, .offset = (int64_t)t->offset},
        .done = on_status,
        .owner = t};
    t->task = (struct gl_loop_task){.run = submit_request, .owner = t, .is_urgent = true};
    t->is_reading = true;
    return gl_http_post_task(t->http, t->waiter.connection, &t->task);
}

/* False: the log cannot be read. */
static bool apply_stored(struct log_stream *t)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_stored_logs stored;
    bool is_fine = t->rq.code == 0 && gl_stored_log_read(gl_buf_view(&t->state), &a, &stored);

    t->is_reading = false;
    gl_buf_reset(&t->text);
    t->sent = 0;
    is_fine = is_fine && gl_stored_log_text(&stored, t->offset, &t->text, &t->offset, NULL) == 0;
    t->is_copied = is_fine && stored.n > 0 && stored.logs[0].ended;
    gl_buf_done(&t->state);
    return is_fine;
}

static void apply_status(struct log_stream *t)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_log_progress state;
    struct gl_json j;

    t->is_asking = false;
    t->is_last = t->rq.code != 0 ||
                 gl_json_parse(&j, gl_buf_view(&t->state), STATE_BYTES_MAX, &a, NULL) != 0;
    if (!t->is_last) {
        state = gl_log_progress_read(&j, t->step, &a);
        t->attempt = t->attempt == 0 ? state.attempts : t->attempt;
        t->is_last =
            t->attempt == 0 ? state.has_ended : state.attempts != t->attempt || !state.is_writing;
    }
    gl_buf_done(&t->state);
}

/* Is an event of this page about the step, or about the agent? */
static bool mentions_step(const struct gl_job_event_page *p, gl_str step)
{
    gl_str agent = gl_log_agent(step);
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_json *j = &p->json;
    gl_jnode events = gl_json_get(j, gl_json_root(j), "events");

    for (gl_jnode e = gl_json_first(j, events); e != NULL; e = gl_json_after(j, events, e)) {
        gl_jnode whose = gl_json_get(j, e, agent.n > 0 ? "agent_id" : "step_id");

        if (gl_str_eq(gl_json_str(j, whose, &a), agent.n > 0 ? agent : step)) {
            return true;
        }
    }
    return false;
}

/* ---- the stream ---- */

/* False: the log cannot be read. */
static bool read_log(struct log_stream *t)
{
    struct gl_logs *logs = t->http->config.logs;

    gl_buf_reset(&t->text);
    t->sent = 0;
    return t->attempt == 0 || logs->read(logs, t->context, t->job, t->step, t->attempt, t->offset,
                                         PAGE_BYTES, &t->text, &t->offset, NULL) == 0;
}

/* The wait is over. True: the node must be asked. */
static bool consume_page(struct log_stream *t)
{
    struct gl_job_event_page *p = t->waiter.page;
    bool has_news = p->code != 0 || p->ended || mentions_step(p, t->step);

    t->waiter.page = NULL;
    t->next_seq = p->code == 0 ? p->next_seq : t->next_seq;
    gl_job_event_page_release(t->http, p);
    return has_news;
}

static ssize_t send_some(struct log_stream *t, char *buf, size_t max)
{
    size_t n = t->text.n - t->sent < max ? t->text.n - t->sent : max;

    memcpy(buf, t->text.p + t->sent, n);
    t->sent += n;
    t->poll_ms = POLL_MS_MIN;
    return (ssize_t)n;
}

/* The node has read the next chunk from the store. */
static ssize_t send_stored(struct log_stream *t, char *buf, size_t max)
{
    bool is_over;

    if (gl_connections_is_closed(t->waiter.connection) || !apply_stored(t)) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (t->text.n > 0) {
        t->late_n = 0;
        return send_some(t, buf, max);
    }
    is_over = t->is_copied || (t->is_last && ++t->late_n > LATE_MAX);
    return !is_over && gl_job_event_polls_join(t->http, &t->waiter, t->context, t->job, t->next_seq,
                                               POLL_MS_STORED)
               ? 0
               : MHD_CONTENT_READER_END_OF_STREAM;
}

static ssize_t on_room(void *owner, uint64_t at, char *buf, size_t max)
{
    struct log_stream *t = owner;
    bool was_last;

    (void)at;
    if (t->sent < t->text.n) {
        return send_some(t, buf, max);
    }
    if (t->is_reading) {
        return send_stored(t, buf, max);
    }
    if (t->is_asking) {
        apply_status(t);
    } else if (t->waiter.page != NULL && consume_page(t)) {
        /* Ask before reading the log: a log reported as complete is then complete. */
        return request_status(t) ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (t->is_stored) {
        return request_stored(t) ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
    }
    was_last = t->is_last;
    if (gl_connections_is_closed(t->waiter.connection) || !read_log(t)) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (t->text.n > 0) {
        return send_some(t, buf, max);
    }
    if (was_last) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    t->poll_ms = t->poll_ms * 2 > POLL_MS_MAX ? POLL_MS_MAX : t->poll_ms * 2;
    return gl_job_event_polls_join(t->http, &t->waiter, t->context, t->job, t->next_seq, t->poll_ms)
               ? 0
               : MHD_CONTENT_READER_END_OF_STREAM;
}

static void log_stream_free(void *owner)
{
    struct log_stream *t = owner;

    gl_job_event_page_release(t->http, t->waiter.page);
    gl_buf_done(&t->text);
    gl_buf_done(&t->state);
    gl_arena_done(&t->arena);
    gl_mem_free(t);
}

void gl_log_stream_start(struct gl_http_call *c, gl_str job, bool is_last, int64_t from_seq,
                         bool is_stored)
{
    struct log_stream *t = gl_mem_alloc(sizeof(*t));

    t->http = c->http;
    t->waiter.connection = c->connection;
    gl_list_init(&t->waiter.link);
    t->context = gl_str_dup(&t->arena, c->rq.context);
    t->job = gl_str_dup(&t->arena, job);
    t->step = gl_str_dup(&t->arena, c->log.step);
    t->attempt = c->log.attempt;
    t->offset = (uint64_t)c->log.offset;
    t->next_seq = from_seq;
    t->poll_ms = POLL_MS_MIN;
    t->is_last = is_last;
    t->is_stored = is_stored;
    (void)gl_reply_stream(c, "text/plain; charset=utf-8", BLOCK_BYTES, on_room, t,
                          log_stream_free); /* on failure the call has been answered */
}
