#include "exec/attempt_book.h"

#include <event2/event.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/check.h"

struct gl_book_job {
    gl_str key; /* "context/job" */
    uint64_t floor;
    size_t attempts_n;
    char text[];
};

struct book_req {
    struct gl_link link;
};

static struct gl_book *of(struct gl_exec *x)
{
    return GL_CONTAINER(x, struct gl_book, exec);
}

gl_ms gl_book_now(struct gl_book *b)
{
    struct gl_clock *clock = gl_loop_clock(b->loop);
    return clock->now(clock);
}

void gl_book_schedule(struct gl_book *b)
{
    if (!b->scheduled) {
        b->scheduled = true;
        event_active(b->later, EV_TIMEOUT, 0);
    }
}

void gl_book_answer(struct gl_book *b, struct gl_exec_req *req, int status)
{
    struct book_req *p = (struct book_req *)(void *)req->maker;
    req->status = status;
    gl_list_init(&p->link);
    gl_list_push(&b->answers, &p->link);
    gl_book_schedule(b);
}

/* ---- attempts ---- */

enum { ID_BYTES_MAX = 2 * GL_ID_BYTES_MAX + GL_ATTEMPT_ID_BYTES_MAX + 2 };

/* "context/job/attempt" into `text`; the first *ret_job bytes of it are "context/job". */
static gl_str make_id(char text[static ID_BYTES_MAX], const struct gl_attempt_key *key,
                      size_t *ret_job)
{
    GL_ASSERT(key->context.n <= GL_ID_BYTES_MAX);
    GL_ASSERT(key->job.n <= GL_ID_BYTES_MAX);
    GL_ASSERT(key->attempt.n <= GL_ATTEMPT_ID_BYTES_MAX);
    char *p = mempcpy(text, key->context.p, key->context.n);
    *p++ = '/';
    p = mempcpy(p, key->job.p, key->job.n);
    *ret_job = (size_t)(p - text);
    *p++ = '/';
    p = mempcpy(p, key->attempt.p, key->attempt.n);
    return (gl_str){.p = text, .n = (size_t)(p - text)};
}

struct gl_book_attempt *gl_book_find(struct gl_book *b, const struct gl_attempt_key *key)
{
    char text[ID_BYTES_MAX];
    size_t ignored;
    return gl_map_find(&b->attempts, make_id(text, key, &ignored));
}

bool gl_book_raise_floor(struct gl_book *b, const struct gl_attempt_key *key, uint64_t token,
                         struct gl_exec_req *req)
{
    char text[ID_BYTES_MAX];
    size_t n;
    (void)make_id(text, key, &n);
    struct gl_book_job *job = gl_map_find(&b->jobs, (gl_str){.p = text, .n = n});
    if (job == NULL) {
        return true;
    }
    if (token < job->floor) {
        gl_book_answer(b, req,
                       gl_why(&req->why, GL_E_STALE, "token %llu is stale: %llu has been seen",
                              (unsigned long long)token, (unsigned long long)job->floor));
        return false;
    }
    job->floor = token;
    return true;
}

static struct gl_book_job *hold_job(struct gl_book *b, gl_str key)
{
    struct gl_book_job *job = gl_map_find(&b->jobs, key);
    if (job == NULL) {
        job = gl_pool_alloc(&b->pool, sizeof(*job) + key.n);
        memcpy(job->text, key.p, key.n);
        job->key = (gl_str){.p = job->text, .n = key.n};
        gl_map_add(&b->jobs, job->key, job);
    }
    job->attempts_n++;
    return job;
}

static void release_job(struct gl_book *b, struct gl_book_job *job)
{
    if (--job->attempts_n == 0) {
        (void)gl_map_remove(&b->jobs, job->key);
        gl_pool_free(&b->pool, job, sizeof(*job) + job->key.n);
    }
}

bool gl_book_may_begin(struct gl_book *b, struct gl_exec_req *req, const struct gl_exec_start *s)
{
    if (b->closing) {
        gl_book_answer(b, req, gl_why(&req->why, GL_E_UNAVAILABLE, "the executor is closed"));
        return false;
    }
    if (gl_keeper_check_key(&s->key, &req->why) < 0) {
        gl_book_answer(b, req, GL_E_INVALID);
        return false;
    }
    if (!gl_book_raise_floor(b, &s->key, s->token, req)) {
        return false;
    }
    if (gl_book_find(b, &s->key) != NULL) {
        gl_book_answer(b, req, 0);
        return false;
    }
    if (s->start_by > 0 && gl_book_now(b) > s->start_by) {
        gl_book_answer(b, req, gl_why(&req->why, GL_E_STALE, "the start deadline has passed"));
        return false;
    }
    return true;
}

struct gl_book_attempt *gl_book_begin(struct gl_book *b, const struct gl_exec_start *s)
{
    char text[ID_BYTES_MAX];
    size_t job_n;
    gl_str id = make_id(text, &s->key, &job_n);
    struct gl_book_attempt *a = gl_pool_alloc(&b->pool, b->attempt_bytes + id.n);
    char *kept = memcpy((char *)a + b->attempt_bytes, id.p, id.n);
    a->id = (gl_str){.p = kept, .n = id.n};
    a->key.context = (gl_str){.p = kept, .n = s->key.context.n};
    a->key.job = (gl_str){.p = kept + s->key.context.n + 1, .n = s->key.job.n};
    a->key.attempt = (gl_str){.p = kept + job_n + 1, .n = s->key.attempt.n};
    a->job = hold_job(b, (gl_str){.p = text, .n = job_n});
    a->job->floor = s->token > a->job->floor ? s->token : a->job->floor;
    a->token = s->token;
    a->running = true;
    a->result.started_at = gl_book_now(b);
    gl_list_init(&a->link);
    gl_map_add(&b->attempts, a->id, a);
    return a;
}

static gl_str copy_text(struct gl_book *b, gl_str text)
{
    char *p = text.n > 0 ? gl_pool_alloc(&b->pool, text.n) : NULL;
    return text.n > 0 ? (gl_str){.p = memcpy(p, text.p, text.n), .n = text.n} : (gl_str){0};
}

static void free_text(struct gl_book *b, gl_str text)
{
    gl_pool_free(&b->pool, (void *)(uintptr_t)text.p, text.n);
}

void gl_book_end(struct gl_book *b, struct gl_book_attempt *a, const struct gl_exec_result *result)
{
    gl_ms started_at = a->result.started_at;
    a->running = false;
    a->result = *result;
    a->result.started_at = started_at;
    a->result.ended_at = gl_book_now(b);
    a->result.output = copy_text(b, result->output);
    a->result.error = copy_text(b, result->error);
    gl_list_remove(&a->link);
    gl_list_push(&b->ended, &a->link);
    gl_book_schedule(b);
}

void gl_book_forget(struct gl_book *b, struct gl_book_attempt *a)
{
    gl_list_remove(&a->link);
    (void)gl_map_remove(&b->attempts, a->id);
    release_job(b, a->job);
    free_text(b, a->result.output);
    free_text(b, a->result.error);
    gl_pool_free(&b->pool, a, b->attempt_bytes + a->id.n);
}

/* ---- deferred work ---- */

static void send_answers(struct gl_book *b)
{
    while (!gl_list_empty(&b->answers)) {
        struct gl_link *l = gl_list_first(&b->answers);
        struct book_req *p = GL_CONTAINER(l, struct book_req, link);
        struct gl_exec_req *req = GL_CONTAINER(p, struct gl_exec_req, maker);
        gl_list_remove(l);
        req->done(req);
    }
}

static void report_ended(struct gl_book *b)
{
    while (!gl_list_empty(&b->ended) && !b->closing) {
        struct gl_link *l = gl_list_first(&b->ended);
        struct gl_book_attempt *a = GL_CONTAINER(l, struct gl_book_attempt, link);
        gl_list_remove(l);
        /* It may be acknowledged, and so be freed, before this returns. */
        b->events.ended(b->events.owner, &a->key, a->token, &a->result);
    }
}

void gl_book_free(struct gl_book *b)
{
    struct gl_book_attempt *a;
    if (b->done != NULL) {
        b->done(b);
    }
    for (size_t i = 0; (a = gl_map_next(&b->attempts, &i)) != NULL;) {
        gl_book_forget(b, a);
    }
    if (b->later != NULL) {
        event_free(b->later);
    }
    gl_map_done(&b->jobs);
    gl_map_done(&b->attempts);
    gl_pool_done(&b->pool);
    gl_arena_done(&b->infos);
    gl_mem_free(b);
}

static void on_later(evutil_socket_t fd, short what, void *owner)
{
    struct gl_book *b = owner;
    (void)fd;
    (void)what;
    b->scheduled = false;
    if (b->announce && !b->closing) {
        b->announce = false;
        b->events.up(b->events.owner, gl_str_of(b->epoch));
    }
    if (b->work != NULL) {
        b->work(b);
    }
    send_answers(b);
    report_ended(b);
    if (b->closing && gl_list_empty(&b->answers)) {
        void (*closed)(void *) = b->closed;
        void *closed_owner = b->closed_owner;
        gl_book_free(b);
        closed(closed_owner);
    }
}

/* ---- the port ---- */

void gl_book_attach(struct gl_exec *port, struct gl_exec_req *req, const struct gl_attempt_key *key,
                    uint64_t token, gl_str epoch)
{
    struct gl_book *b = of(port);
    if (!gl_book_raise_floor(b, key, token, req)) {
        return;
    }
    struct gl_book_attempt *a = gl_book_find(b, key);
    if (a == NULL) {
        req->state = gl_str_is(epoch, b->epoch) ? GL_EXEC_NEVER : GL_EXEC_LOST;
    } else if (a->running) {
        req->state = GL_EXEC_RUNNING;
    } else {
        req->state = GL_EXEC_ENDED;
        req->result = a->result;
    }
    gl_book_answer(b, req, 0);
}

void gl_book_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token)
{
    struct gl_book *b = of(port);
    struct gl_book_attempt *a = gl_book_find(b, key);
    if (a != NULL && !a->running && token >= a->job->floor) {
        gl_book_forget(b, a);
    }
}

void gl_book_list(struct gl_exec *port, struct gl_exec_req *req)
{
    struct gl_book *b = of(port);
    struct gl_book_attempt *a;
    gl_arena_reset(&b->infos);
    struct gl_exec_info *infos =
        GL_NEW_ARRAY(&b->infos, struct gl_exec_info, gl_map_count(&b->attempts) + 1);
    req->infos_n = 0;
    for (size_t i = 0; (a = gl_map_next(&b->attempts, &i)) != NULL;) {
        infos[req->infos_n++] = (struct gl_exec_info){
            .key = a->key,
            .token = a->token,
            .state = a->running ? GL_EXEC_RUNNING : GL_EXEC_ENDED,
        };
    }
    req->infos = infos;
    gl_book_answer(b, req, 0);
}

void gl_book_close(struct gl_exec *port, void (*closed)(void *owner), void *owner)
{
    struct gl_book *b = of(port);
    b->closing = true;
    b->closed = closed;
    b->closed_owner = owner;
    gl_book_schedule(b);
}

/* ---- opening ---- */

static void make_epoch(struct gl_book *b)
{
    uint8_t chance[GL_KEEPER_EPOCH_BYTES / 2] = {0};
    (void)!getrandom(chance, sizeof(chance), 0); /* 16 bytes are never cut short */
    for (size_t i = 0; i < sizeof(chance); i++) {
        (void)snprintf(b->epoch + 2 * i, 3, "%02x", chance[i]);
    }
}

int gl_book_open(struct gl_book *b, bool quiet, struct gl_why *reterr_why)
{
    gl_map_init(&b->jobs);
    gl_map_init(&b->attempts);
    gl_pool_init(&b->pool);
    gl_list_init(&b->answers);
    gl_list_init(&b->ended);
    make_epoch(b);
    b->later = event_new(gl_loop_base(b->loop), -1, 0, on_later, b);
    if (b->later == NULL) {
        return gl_why(reterr_why, GL_E_IO, "cannot create the events of the executor");
    }
    b->announce = !quiet;
    gl_book_schedule(b);
    return 0;
}
