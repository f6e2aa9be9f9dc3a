/* job_event_stream.c - the events of a job as server-sent events.
 *
 * Each stream holds at most one page of events. After sending it, the stream joins the other
 * streams that wait at the same position (job_event_polls.h). libmicrohttpd closes a stream whose
 * client reads nothing for half a minute; the client reconnects with Last-Event-ID. */
#include "base/check.h"
#include "base/mem.h"
#include "http/job_event_polls.h"

enum {
    HEARTBEAT_MS = 15000,
    BLOCK_BYTES = 4 << 10, /* bytes given to a connection at a time */
};

struct job_event_stream {
    struct gl_job_event_waiter waiter;
    struct gl_http *http;
    struct gl_arena arena;
    gl_str context, job;
    struct gl_job_event_page *page;
    gl_str left; /* the part of the page's text that is not sent yet */
    int64_t next_seq;
    bool is_last; /* the stream ends after `left` */
};

static void end_with_error(struct job_event_stream *w, int code, const char *why)
{
    struct gl_refusal r = {.code = code, .message = why};
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw jw;

    gl_buf_c(&out, "event: error\ndata: ");
    gl_jw_init(&jw, &out);
    gl_reply_write_error(&jw, &r, NULL);
    gl_buf_c(&out, "\n\n");
    w->left = gl_str_dup(&w->arena, gl_buf_view(&out));
    w->is_last = true;
}

static void replace_page(struct job_event_stream *w, struct gl_job_event_page *page)
{
    gl_job_event_page_release(w->http, w->page);
    w->page = page;
    if (page->code != 0) {
        end_with_error(w, gl_err_join(page->code, page->why.reason), page->why.text);
        return;
    }
    w->left = page->text;
    w->next_seq = page->next_seq;
    w->is_last = page->ended;
}

static ssize_t on_room(void *owner, uint64_t at, char *buf, size_t max)
{
    struct job_event_stream *w = owner;
    size_t n;

    (void)at;
    if (w->left.n == 0 && w->waiter.page != NULL) {
        struct gl_job_event_page *page = w->waiter.page;

        w->waiter.page = NULL;
        replace_page(w, page);
    }
    if (w->left.n == 0) {
        if (w->is_last) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        if (gl_job_event_polls_join(w->http, &w->waiter, w->context, w->job, w->next_seq,
                                    HEARTBEAT_MS)) {
            return 0;
        }
        end_with_error(w, GL_E_UNAVAILABLE, "this node is stopping");
    }
    n = w->left.n < max ? w->left.n : max;
    memcpy(buf, w->left.p, n);
    w->left.p += n;
    w->left.n -= n;
    return (ssize_t)n;
}

static void job_event_stream_free(void *owner)
{
    struct job_event_stream *w = owner;

    gl_job_event_page_release(w->http, w->page);
    gl_job_event_page_release(w->http, w->waiter.page);
    gl_arena_done(&w->arena);
    gl_mem_free(w);
}

/* The first page has arrived, so the job exists. */
static void start_stream(struct gl_http_call *c)
{
    struct job_event_stream *w = gl_mem_alloc(sizeof(*w));

    w->http = c->http;
    w->waiter.connection = c->connection;
    gl_list_init(&w->waiter.link);
    w->context = gl_str_dup(&w->arena, c->rq.context);
    w->job = gl_str_dup(&w->arena, gl_str_of(c->rq.job_id));
    replace_page(w, gl_job_event_page_new(&c->rq, gl_buf_view(&c->out)));
    gl_buf_reset(&c->out);
    if (gl_reply_stream(c, "text/event-stream", BLOCK_BYTES, on_room, w, job_event_stream_free)) {
        (void)MHD_add_response_header(c->stream, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    }
}

void gl_job_event_stream_start(struct gl_http_call *c)
{
    gl_str last = gl_http_call_header(c, "Last-Event-ID");
    int64_t seq;

    /* A browser that reconnects sends this header, with the address it used first. */
    if (last.n > 0) {
        if (!gl_str_i64(last, &seq) || seq < 0 || seq == INT64_MAX) {
            gl_reply_error_at(c, GL_R_EVENT_ID_INVALID,
                              "Last-Event-ID is not the number of an event", NULL, "Last-Event-ID",
                              NULL);
            return;
        }
        c->rq.events.from = seq + 1;
    }
    c->rq.events.wait_ms = 0;
    c->then = start_stream;
    gl_http_call_ask_node(c);
}
