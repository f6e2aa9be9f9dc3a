#include "exec/noop_exec.h"

#include <event2/event.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "port/keep.h"

struct job {
    gl_str key; /* "context/job" */
    uint64_t floor;
    size_t attempts_n;
    char text[];
};

struct attempt {
    struct gl_link link; /* in `ended` until it is told */
    struct job *job;
    gl_str id; /* "context/job/attempt" */
    struct gl_attempt_key key;
    uint64_t token;
    bool running;
    struct gl_exec_result result; /* the output is kept behind the id */
    char text[];
};

struct noop_exec {
    struct gl_exec exec;
    struct gl_exec_events events;
    struct gl_loop *loop;
    struct event *later;
    bool scheduled;
    bool announce; /* `up` is due */
    char epoch[GL_KEEP_EPOCH_BYTES + 1];
    struct gl_map jobs, attempts;
    struct gl_pool pool;
    struct gl_link answers; /* requests to be answered */
    struct gl_link ended;   /* attempts to be told of */
    struct gl_arena infos;
    bool closing;
    void (*closed)(void *owner);
    void *closed_owner;
};

struct pending {
    struct gl_link link;
};

static struct noop_exec *of(struct gl_exec *x)
{
    return GL_CONTAINER(x, struct noop_exec, exec);
}

static void schedule(struct noop_exec *x)
{
    if (!x->scheduled) {
        x->scheduled = true;
        event_active(x->later, EV_TIMEOUT, 0);
    }
}

static void answer(struct noop_exec *x, struct gl_exec_req *req, int status)
{
    struct pending *p = (struct pending *)(void *)req->maker;
    req->status = status;
    gl_list_init(&p->link);
    gl_list_push(&x->answers, &p->link);
    schedule(x);
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

static struct attempt *find(struct noop_exec *x, const struct gl_attempt_key *key)
{
    char text[ID_BYTES_MAX];
    size_t ignored;
    return gl_map_find(&x->attempts, make_id(text, key, &ignored));
}

/* Compare with the floor of the job, if it is known, and raise it. */
static bool raise_floor(struct noop_exec *x, const struct gl_attempt_key *key, uint64_t token,
                        struct gl_exec_req *req)
{
    char text[ID_BYTES_MAX];
    size_t n;
    (void)make_id(text, key, &n);
    struct job *job = gl_map_find(&x->jobs, (gl_str){.p = text, .n = n});
    if (job == NULL) {
        return true;
    }
    if (token < job->floor) {
        (void)gl_why(&req->why, GL_E_STALE, "token %llu is old: somebody came with %llu",
                     (unsigned long long)token, (unsigned long long)job->floor);
        return false;
    }
    job->floor = token;
    return true;
}

static struct job *hold_job(struct noop_exec *x, gl_str key)
{
    struct job *job = gl_map_find(&x->jobs, key);
    if (job == NULL) {
        job = gl_pool_alloc(&x->pool, sizeof(*job) + key.n);
        memcpy(job->text, key.p, key.n);
        job->key = (gl_str){.p = job->text, .n = key.n};
        gl_map_add(&x->jobs, job->key, job);
    }
    job->attempts_n++;
    return job;
}

static void release_job(struct noop_exec *x, struct job *job)
{
    if (--job->attempts_n == 0) {
        (void)gl_map_remove(&x->jobs, job->key);
        gl_pool_free(&x->pool, job, sizeof(*job) + job->key.n);
    }
}

static void end(struct noop_exec *x, struct attempt *a, enum gl_exec_end how)
{
    struct gl_clock *clock = gl_loop_clock(x->loop);
    a->running = false;
    a->result.end = how;
    a->result.ended_at = clock->now(clock);
    gl_list_push(&x->ended, &a->link);
    schedule(x);
}

/* Do what the command says. */
static void run(struct noop_exec *x, struct attempt *a, const struct gl_exec_start *s)
{
    uint64_t code = 0;
    gl_str verb = s->argv_n > 0 ? s->argv[0] : (gl_str){0};
    if (gl_str_is(verb, "hold")) {
        return;
    }
    if (gl_str_is(verb, "exit") && s->argv_n > 1 && gl_str_u64(s->argv[1], &code)) {
        a->result.exit_code = (int)(code & 0xff);
    }
    end(x, a, GL_EXEC_EXITED);
}

/* The output a command asks for, if it is JSON. */
static gl_str wanted_output(const struct gl_exec_start *s, struct gl_arena *a)
{
    struct gl_json j;
    if (s->argv_n > 1 && gl_str_is(s->argv[0], "output") &&
        gl_json_parse(&j, s->argv[1], GL_OUTPUT_BYTES_MAX, a, NULL) == 0) {
        return s->argv[1];
    }
    return (gl_str){0};
}

static void begin(struct noop_exec *x, const struct gl_exec_start *s)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    struct gl_clock *clock = gl_loop_clock(x->loop);
    char text[ID_BYTES_MAX];
    size_t job_n;
    gl_str id = make_id(text, &s->key, &job_n);
    gl_str output = wanted_output(s, &arena);
    struct attempt *a = gl_pool_alloc(&x->pool, sizeof(*a) + id.n + output.n);
    char *p = mempcpy(a->text, id.p, id.n);
    a->id = (gl_str){.p = a->text, .n = id.n};
    a->key.context = (gl_str){.p = a->text, .n = s->key.context.n};
    a->key.job = (gl_str){.p = a->text + s->key.context.n + 1, .n = s->key.job.n};
    a->key.attempt = (gl_str){.p = a->text + job_n + 1, .n = s->key.attempt.n};
    if (output.n > 0) {
        memcpy(p, output.p, output.n);
        a->result.output = (gl_str){.p = p, .n = output.n};
    }
    gl_list_init(&a->link);
    a->job = hold_job(x, (gl_str){.p = text, .n = job_n});
    a->job->floor = s->token > a->job->floor ? s->token : a->job->floor;
    a->token = s->token;
    a->running = true;
    a->result.started_at = clock->now(clock);
    gl_map_add(&x->attempts, a->id, a);
    run(x, a, s);
}

static void forget(struct noop_exec *x, struct attempt *a)
{
    gl_list_remove(&a->link);
    (void)gl_map_remove(&x->attempts, a->id);
    release_job(x, a->job);
    gl_pool_free(&x->pool, a, sizeof(*a) + a->id.n + a->result.output.n);
}

/* ---- what comes later ---- */

static void tell_answers(struct noop_exec *x)
{
    while (!gl_list_empty(&x->answers)) {
        struct gl_link *l = gl_list_first(&x->answers);
        struct pending *p = GL_CONTAINER(l, struct pending, link);
        struct gl_exec_req *req = GL_CONTAINER(p, struct gl_exec_req, maker);
        gl_list_remove(l);
        req->done(req);
    }
}

static void tell_ended(struct noop_exec *x)
{
    while (!gl_list_empty(&x->ended) && !x->closing) {
        struct gl_link *l = gl_list_first(&x->ended);
        struct attempt *a = GL_CONTAINER(l, struct attempt, link);
        gl_list_remove(l);
        /* It may be acknowledged, and so be gone, before this returns. */
        x->events.ended(x->events.owner, &a->key, a->token, &a->result);
    }
}

static void free_exec(struct noop_exec *x)
{
    struct attempt *a;
    for (size_t i = 0; (a = gl_map_next(&x->attempts, &i)) != NULL;) {
        forget(x, a);
    }
    if (x->later != NULL) {
        event_free(x->later);
    }
    gl_map_done(&x->jobs);
    gl_map_done(&x->attempts);
    gl_pool_done(&x->pool);
    gl_arena_done(&x->infos);
    gl_mem_free(x);
}

static void on_later(evutil_socket_t fd, short what, void *owner)
{
    struct noop_exec *x = owner;
    (void)fd;
    (void)what;
    x->scheduled = false;
    if (x->announce && !x->closing) {
        x->announce = false;
        x->events.up(x->events.owner, gl_str_of(x->epoch));
    }
    tell_answers(x);
    tell_ended(x);
    if (x->closing && gl_list_empty(&x->answers)) {
        void (*closed)(void *) = x->closed;
        void *closed_owner = x->closed_owner;
        free_exec(x);
        closed(closed_owner);
    }
}

/* ---- the port ---- */

static void exec_start(struct gl_exec *port, struct gl_exec_req *req, const struct gl_exec_start *s)
{
    struct noop_exec *x = of(port);
    struct gl_clock *clock = gl_loop_clock(x->loop);
    if (x->closing) {
        answer(x, req, gl_why(&req->why, GL_E_UNAVAILABLE, "the executor is closed"));
        return;
    }
    if (gl_keep_check_key(&s->key, &req->why) < 0) {
        answer(x, req, GL_E_INVALID);
        return;
    }
    if (!raise_floor(x, &s->key, s->token, req)) {
        answer(x, req, GL_E_STALE);
        return;
    }
    if (find(x, &s->key) == NULL) {
        if (s->start_by > 0 && clock->now(clock) > s->start_by) {
            answer(x, req, gl_why(&req->why, GL_E_STALE, "it is too late to start this"));
            return;
        }
        begin(x, s);
    }
    answer(x, req, 0);
}

static void exec_attach(struct gl_exec *port, struct gl_exec_req *req,
                        const struct gl_attempt_key *key, uint64_t token, gl_str epoch)
{
    struct noop_exec *x = of(port);
    if (!raise_floor(x, key, token, req)) {
        answer(x, req, GL_E_STALE);
        return;
    }
    struct attempt *a = find(x, key);
    if (a == NULL) {
        req->state = gl_str_is(epoch, x->epoch) ? GL_EXEC_NEVER : GL_EXEC_LOST;
    } else if (a->running) {
        req->state = GL_EXEC_RUNNING;
    } else {
        req->state = GL_EXEC_ENDED;
        req->result = a->result;
    }
    answer(x, req, 0);
}

static void exec_stop(struct gl_exec *port, struct gl_exec_req *req,
                      const struct gl_attempt_key *key, uint64_t token, gl_ms grace_ms)
{
    (void)grace_ms; /* it takes no time */
    struct noop_exec *x = of(port);
    if (!raise_floor(x, key, token, req)) {
        answer(x, req, GL_E_STALE);
        return;
    }
    struct attempt *a = find(x, key);
    if (a != NULL && a->running) {
        end(x, a, GL_EXEC_STOPPED);
    }
    answer(x, req, 0);
}

static void exec_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token)
{
    struct noop_exec *x = of(port);
    struct attempt *a = find(x, key);
    if (a != NULL && !a->running && token >= a->job->floor) {
        forget(x, a);
    }
}

static void exec_list(struct gl_exec *port, struct gl_exec_req *req)
{
    struct noop_exec *x = of(port);
    struct attempt *a;
    gl_arena_reset(&x->infos);
    struct gl_exec_info *infos =
        GL_NEW_ARRAY(&x->infos, struct gl_exec_info, gl_map_count(&x->attempts) + 1);
    req->infos_n = 0;
    for (size_t i = 0; (a = gl_map_next(&x->attempts, &i)) != NULL;) {
        infos[req->infos_n++] = (struct gl_exec_info){
            .key = a->key,
            .token = a->token,
            .state = a->running ? GL_EXEC_RUNNING : GL_EXEC_ENDED,
        };
    }
    req->infos = infos;
    answer(x, req, 0);
}

static void exec_close(struct gl_exec *port, void (*closed)(void *owner), void *owner)
{
    struct noop_exec *x = of(port);
    x->closing = true;
    x->closed = closed;
    x->closed_owner = owner;
    schedule(x);
}

static const struct gl_exec_ops ops = {
    .name = "noop",
    .start = exec_start,
    .attach = exec_attach,
    .stop = exec_stop,
    .ack = exec_ack,
    .list = exec_list,
    .close = exec_close,
};

static void make_epoch(struct noop_exec *x)
{
    uint8_t chance[GL_KEEP_EPOCH_BYTES / 2] = {0};
    (void)!getrandom(chance, sizeof(chance), 0); /* 16 bytes are never cut short */
    for (size_t i = 0; i < sizeof(chance); i++) {
        (void)snprintf(x->epoch + 2 * i, 3, "%02x", chance[i]);
    }
}

int gl_noop_exec_open(struct gl_exec **ret, const struct gl_noop_exec_config *config,
                      struct gl_loop *loop, const struct gl_exec_events *events,
                      struct gl_why *reterr_why)
{
    struct noop_exec *x = gl_mem_alloc(sizeof(*x));
    x->exec.ops = &ops;
    x->events = *events;
    x->loop = loop;
    gl_map_init(&x->jobs);
    gl_map_init(&x->attempts);
    gl_pool_init(&x->pool);
    gl_list_init(&x->answers);
    gl_list_init(&x->ended);
    make_epoch(x);
    x->later = event_new(gl_loop_base(loop), -1, 0, on_later, x);
    if (x->later == NULL) {
        free_exec(x);
        return gl_why(reterr_why, GL_E_IO, "cannot make the events of the executor");
    }
    x->announce = !config->quiet;
    schedule(x);
    *ret = &x->exec;
    return 0;
}

bool gl_noop_exec_knows(struct gl_exec *port, const struct gl_attempt_key *key)
{
    GL_ASSERT(port->ops == &ops);
    return find(of(port), key) != NULL;
}
