#include "http/job_event_polls.h"

#include "base/check.h"
#include "base/mem.h"

enum {
    EVENTS_PAGE = 200,
    PAGE_BYTES_MAX = 1 << 30,
};

/* ---- pages ---- */

static void render_event(const struct gl_json *j, gl_jnode event, struct gl_arena *a,
                         struct gl_buf *out)
{
    int64_t seq = 0;

    (void)gl_json_i64(j, gl_json_get(j, event, "seq"), &seq);
    gl_buf_c(out, "id: ");
    gl_buf_i64(out, seq);
    gl_buf_c(out, "\nevent: ");
    gl_buf_str(out, gl_json_str(j, gl_json_get(j, event, "type"), a));
    gl_buf_c(out, "\ndata: ");
    gl_buf_str(out, gl_json_raw(j, event));
    gl_buf_c(out, "\n\n");
}

static void render(struct gl_job_event_page *p)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    const struct gl_json *j = &p->json;
    gl_jnode root = gl_json_root(j);
    gl_jnode events = gl_json_get(j, root, "events");
    bool is_any = false;

    for (gl_jnode e = gl_json_first(j, events); e != NULL; e = gl_json_after(j, events, e)) {
        render_event(j, e, &p->arena, &out);
        is_any = true;
    }
    if (p->ended) {
        gl_buf_c(&out, "event: end\ndata: {\"status\":");
        gl_buf_str(&out, gl_json_raw(j, gl_json_get(j, root, "status")));
        gl_buf_c(&out, "}\n\n");
    } else if (!is_any) {
        gl_buf_c(&out, ":\n\n"); /* heartbeat; also detects closed connections */
    }
    p->text = gl_str_dup(&p->arena, gl_buf_view(&out));
}

struct gl_job_event_page *gl_job_event_page_new(const struct gl_request *rq, gl_str body)
{
    struct gl_job_event_page *p = gl_mem_alloc(sizeof(*p));

    p->refs = 1;
    p->code = rq->code;
    p->why = rq->why;
    p->ended = rq->ended;
    memcpy(p->job_id, rq->job_id, sizeof(p->job_id));
    if (p->code == 0 && gl_json_parse(&p->json, gl_str_dup(&p->arena, body), PAGE_BYTES_MAX,
                                      &p->arena, &p->why) != 0) {
        p->code = GL_E_DAMAGED;
    }
    if (p->code == 0) {
        (void)gl_json_i64(&p->json, gl_json_get(&p->json, gl_json_root(&p->json), "next_seq"),
                          &p->next_seq);
        render(p);
    }
    return p;
}

void gl_job_event_page_release(struct gl_http *h, struct gl_job_event_page *page)
{
    unsigned left;

    if (page == NULL) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    left = --page->refs;
    pthread_mutex_unlock(&h->lock);
    if (left == 0) {
        gl_arena_done(&page->arena);
        gl_mem_free(page);
    }
}

/* ---- polls ---- */

static void on_answered(struct gl_request *rq)
{
    struct gl_job_event_poll *p = rq->owner;
    struct gl_http *h = p->http;

    gl_buf_str(&p->body, rq->body);
    pthread_mutex_lock(&h->lock);
    (void)gl_map_remove(&h->polls, p->key); /* later waiters start a new poll */
    gl_list_push(&h->polls_done, &p->link);
    pthread_cond_broadcast(&h->wakeup);
    pthread_mutex_unlock(&h->lock);
}

static void submit_poll(struct gl_loop_task *t)
{
    struct gl_job_event_poll *p = t->owner;

    p->http->config.ask(p->http->config.owner, &p->rq);
}

static struct gl_job_event_poll *poll_new(struct gl_http *h, gl_str key, gl_str context, gl_str job,
                                          int64_t from, gl_ms wait_ms)
{
    struct gl_job_event_poll *p = gl_mem_alloc(sizeof(*p));

    p->http = h;
    gl_list_init(&p->link);
    gl_list_init(&p->waiters);
    p->key = gl_str_dup(&p->arena, key);
    p->rq = (struct gl_request){.verb = GL_VERB_EVENTS,
                                .context = gl_str_dup(&p->arena, context),
                                .job = gl_str_dup(&p->arena, job),
                                .events.from = from,
                                .events.wait_ms = wait_ms,
                                .events.limit = EVENTS_PAGE,
                                .done = on_answered,
                                .owner = p};
    p->task = (struct gl_loop_task){.run = submit_poll, .owner = p, .is_urgent = true};
    return p;
}

bool gl_job_event_polls_join(struct gl_http *h, struct gl_job_event_waiter *w, gl_str context,
                             gl_str job, int64_t from, gl_ms wait_ms)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str key = gl_str_fmt(&a, "%.*s/%.*s/%lld/%lld", GL_STR_ARG(context), GL_STR_ARG(job),
                            (long long)from, (long long)wait_ms);
    struct gl_job_event_poll *p;

    pthread_mutex_lock(&h->lock);
    if (h->is_refusing) {
        pthread_mutex_unlock(&h->lock);
        return false;
    }
    MHD_suspend_connection(w->connection);
    p = gl_map_find(&h->polls, key);
    if (p == NULL) {
        p = poll_new(h, key, context, job, from, wait_ms);
        gl_map_add(&h->polls, p->key, p);
        h->asked_n++;
        gl_loop_post(h->config.loop, &p->task);
    }
    gl_list_push(&p->waiters, &w->link);
    pthread_mutex_unlock(&h->lock);
    return true;
}

void gl_job_event_polls_deliver(struct gl_job_event_poll *p)
{
    struct gl_job_event_page *page = gl_job_event_page_new(&p->rq, gl_buf_view(&p->body));

    for (struct gl_link *l; (l = gl_list_first(&p->waiters)) != NULL;) {
        struct gl_job_event_waiter *w = GL_CONTAINER(l, struct gl_job_event_waiter, link);

        gl_list_remove(l);
        pthread_mutex_lock(&p->http->lock);
        page->refs++;
        pthread_mutex_unlock(&p->http->lock);
        w->page = page;
        MHD_resume_connection(w->connection); /* from here on it belongs to the HTTP thread again */
    }
    gl_job_event_page_release(p->http, page);
    gl_buf_done(&p->body);
    gl_arena_done(&p->arena);
    gl_mem_free(p);
}
