/* An attempt comes in at `fresh`, with its request. When the modules are known it is handled at
 * once if its module is trusted, else handed to the module's process; only then its request is
 * answered. Until that, its input is the caller's, and is not copied. */
#include "exec/module_exec.h"

#include <event2/event.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "exec/module_registry.h"
#include "port/keep.h"

enum { BATCH_MS_MAX = 2 }; /* how long the loop may have to wait for us */

struct job {
    gl_str key; /* "context/job" */
    uint64_t floor;
    size_t attempts_n;
    char text[];
};

struct attempt {
    struct gl_link link; /* in `fresh`, or in `ended` until it is told */
    struct job *job;
    gl_str id; /* "context/job/attempt" */
    struct gl_attempt_key key;
    uint64_t token;
    bool running;
    struct gl_exec_req *req; /* of the start, until it is answered */
    gl_str module, input;    /* borrowed from it */
    gl_ms timeout_ms, grace_ms;
    struct gl_module_entry *entry; /* its process has the call: */
    struct gl_module_turn *turn;
    struct gl_exec_result result; /* its texts lie behind each other in the pool */
    char text[];
};

struct module_exec {
    struct gl_exec exec;
    struct gl_exec_events events;
    void (*handling)(void *owner, gl_str job);
    void *handling_owner;
    struct gl_loop *loop;
    struct event *later, *again;
    bool scheduled;
    bool announce; /* `up` is due */
    char epoch[GL_KEEP_EPOCH_BYTES + 1];
    struct gl_map jobs, attempts;
    struct gl_pool pool;
    struct gl_link fresh;   /* attempts that nobody has looked at */
    struct gl_link answers; /* requests to be answered */
    struct gl_link ended;   /* attempts to be told of */
    struct gl_arena infos;
    struct gl_module_registry registry;
    bool closing;
    void (*closed)(void *owner);
    void *closed_owner;
};

struct pending {
    struct gl_link link;
};

static struct module_exec *of(struct gl_exec *x)
{
    return GL_CONTAINER(x, struct module_exec, exec);
}

static gl_ms now_of(struct module_exec *x)
{
    struct gl_clock *clock = gl_loop_clock(x->loop);
    return clock->now(clock);
}

static void schedule(struct module_exec *x)
{
    if (!x->scheduled) {
        x->scheduled = true;
        event_active(x->later, EV_TIMEOUT, 0);
    }
}

static void answer(struct module_exec *x, struct gl_exec_req *req, int status)
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

static struct attempt *find(struct module_exec *x, const struct gl_attempt_key *key)
{
    char text[ID_BYTES_MAX];
    size_t ignored;
    return gl_map_find(&x->attempts, make_id(text, key, &ignored));
}

/* Compare with the floor of the job, if it is known, and raise it. */
static bool raise_floor(struct module_exec *x, const struct gl_attempt_key *key, uint64_t token,
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

static struct job *hold_job(struct module_exec *x, gl_str key)
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

static void release_job(struct module_exec *x, struct job *job)
{
    if (--job->attempts_n == 0) {
        (void)gl_map_remove(&x->jobs, job->key);
        gl_pool_free(&x->pool, job, sizeof(*job) + job->key.n);
    }
}

static gl_str keep_text(struct module_exec *x, gl_str text)
{
    char *p = text.n > 0 ? gl_pool_alloc(&x->pool, text.n) : NULL;
    return text.n > 0 ? (gl_str){.p = memcpy(p, text.p, text.n), .n = text.n} : (gl_str){0};
}

static void drop_text(struct module_exec *x, gl_str text)
{
    gl_pool_free(&x->pool, (void *)(uintptr_t)text.p, text.n);
}

static void forget(struct module_exec *x, struct attempt *a)
{
    gl_list_remove(&a->link);
    (void)gl_map_remove(&x->attempts, a->id);
    release_job(x, a->job);
    drop_text(x, a->result.output);
    drop_text(x, a->result.error);
    gl_pool_free(&x->pool, a, sizeof(*a) + a->id.n);
}

/* The texts of the result are copied. */
static void end(struct module_exec *x, struct attempt *a, const struct gl_exec_result *result)
{
    gl_ms started_at = a->result.started_at;
    a->running = false;
    a->turn = NULL;
    a->result = *result;
    a->result.started_at = started_at;
    a->result.ended_at = now_of(x);
    a->result.output = keep_text(x, result->output);
    a->result.error = keep_text(x, result->error);
    gl_list_remove(&a->link);
    gl_list_push(&x->ended, &a->link);
    schedule(x);
}

static void answer_start(struct module_exec *x, struct attempt *a, int status)
{
    struct gl_exec_req *req = a->req;
    a->req = NULL;
    a->module = a->input = (gl_str){0};
    if (req != NULL) {
        answer(x, req, status);
    }
}

/* ---- handling ---- */

static void tell_handling(struct module_exec *x, gl_str job)
{
    if (x->handling != NULL) {
        x->handling(x->handling_owner, job);
    }
}

static void run_here(struct module_exec *x, struct attempt *a, struct gl_module_entry *e)
{
    struct gl_exec_result result = {.end = GL_EXEC_EXITED};
    struct gl_why why;
    gl_ms began = now_of(x);
    tell_handling(x, a->key.job);
    int err = gl_module_call(&e->box, a->input, &result.output, &why);
    tell_handling(x, (gl_str){0});
    if (err != 0) {
        (void)gl_why_prefix(&why, "module %.*s", GL_STR_ARG(e->name));
        result.exit_code = 1;
        result.error = gl_str_of(why.text);
    } else if (a->timeout_ms > 0 && now_of(x) - began > a->timeout_ms) {
        (void)gl_why(&why, GL_E_STATE, "module %.*s took longer than %lld ms", GL_STR_ARG(e->name),
                     (long long)a->timeout_ms);
        result = (struct gl_exec_result){.end = GL_EXEC_TIMEOUT, .error = gl_str_of(why.text)};
    }
    answer_start(x, a, 0);
    end(x, a, &result);
}

static void run(struct module_exec *x, struct attempt *a)
{
    struct gl_module_entry *e = NULL;
    struct gl_why *why = &a->req->why;
    gl_list_remove(&a->link);
    if (gl_module_registry_find(&x->registry, a->module, &e, why) != 0) {
        answer_start(x, a, why->code);
        forget(x, a); /* it never started */
    } else if (e->is_trusted) {
        run_here(x, a, e);
    } else {
        a->entry = e;
        a->turn = gl_module_link_call(&e->link, a, a->input, a->timeout_ms);
        answer_start(x, a, 0);
    }
}

/* What a process of a module has answered. */
static void on_turn_ended(void *owner, void *turn_owner, const struct gl_exec_result *result)
{
    end(owner, turn_owner, result);
}

/* Some of them: others want the loop, too. */
static void run_some(struct module_exec *x)
{
    struct timeval at_once = {0};
    gl_ms until = 0;
    if (gl_list_empty(&x->fresh)) {
        return;
    }
    if (x->registry.state != GL_REGISTRY_READY) {
        gl_module_registry_look(&x->registry);
        return;
    }
    until = now_of(x) + BATCH_MS_MAX;
    do {
        run(x, GL_CONTAINER(gl_list_first(&x->fresh), struct attempt, link));
    } while (!gl_list_empty(&x->fresh) && now_of(x) < until);
    if (!gl_list_empty(&x->fresh)) {
        (void)evtimer_add(x->again, &at_once);
    }
}

static void begin(struct module_exec *x, const struct gl_exec_start *s, struct gl_exec_req *req)
{
    char text[ID_BYTES_MAX];
    size_t job_n;
    gl_str id = make_id(text, &s->key, &job_n);
    struct attempt *a = gl_pool_alloc(&x->pool, sizeof(*a) + id.n);
    memcpy(a->text, id.p, id.n);
    a->id = (gl_str){.p = a->text, .n = id.n};
    a->key.context = (gl_str){.p = a->text, .n = s->key.context.n};
    a->key.job = (gl_str){.p = a->text + s->key.context.n + 1, .n = s->key.job.n};
    a->key.attempt = (gl_str){.p = a->text + job_n + 1, .n = s->key.attempt.n};
    a->job = hold_job(x, (gl_str){.p = text, .n = job_n});
    a->job->floor = s->token > a->job->floor ? s->token : a->job->floor;
    a->token = s->token;
    a->running = true;
    a->req = req;
    a->module = s->argv[0];
    a->input = s->input;
    a->timeout_ms = s->timeout_ms;
    a->grace_ms = s->grace_ms;
    a->result.started_at = now_of(x);
    gl_list_init(&a->link);
    gl_list_push(&x->fresh, &a->link);
    gl_map_add(&x->attempts, a->id, a);
    schedule(x);
}

/* ---- what comes later ---- */

static void tell_answers(struct module_exec *x)
{
    while (!gl_list_empty(&x->answers)) {
        struct gl_link *l = gl_list_first(&x->answers);
        struct pending *p = GL_CONTAINER(l, struct pending, link);
        struct gl_exec_req *req = GL_CONTAINER(p, struct gl_exec_req, maker);
        gl_list_remove(l);
        req->done(req);
    }
}

static void tell_ended(struct module_exec *x)
{
    while (!gl_list_empty(&x->ended) && !x->closing) {
        struct gl_link *l = gl_list_first(&x->ended);
        struct attempt *a = GL_CONTAINER(l, struct attempt, link);
        gl_list_remove(l);
        /* It may be acknowledged, and so be gone, before this returns. */
        x->events.ended(x->events.owner, &a->key, a->token, &a->result);
    }
}

static void free_exec(struct module_exec *x)
{
    struct attempt *a;
    gl_module_registry_done(&x->registry);
    for (size_t i = 0; (a = gl_map_next(&x->attempts, &i)) != NULL;) {
        forget(x, a);
    }
    if (x->later != NULL) {
        event_free(x->later);
    }
    if (x->again != NULL) {
        event_free(x->again);
    }
    gl_map_done(&x->jobs);
    gl_map_done(&x->attempts);
    gl_pool_done(&x->pool);
    gl_arena_done(&x->infos);
    gl_mem_free(x);
}

/* What has not begun will not. */
static void refuse_fresh(struct module_exec *x)
{
    while (!gl_list_empty(&x->fresh)) {
        struct attempt *a = GL_CONTAINER(gl_list_first(&x->fresh), struct attempt, link);
        answer_start(x, a, gl_why(&a->req->why, GL_E_UNAVAILABLE, "the executor is closed"));
        forget(x, a);
    }
}

static void on_later(evutil_socket_t fd, short what, void *owner)
{
    struct module_exec *x = owner;
    (void)fd;
    (void)what;
    x->scheduled = false;
    if (x->announce && !x->closing) {
        x->announce = false;
        x->events.up(x->events.owner, gl_str_of(x->epoch));
    }
    if (x->closing) {
        refuse_fresh(x);
    } else {
        run_some(x);
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

static void on_again(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    schedule(owner);
}

static void on_registry_ready(void *owner)
{
    schedule(owner);
}

/* ---- the port ---- */

static int check_start(struct module_exec *x, const struct gl_exec_start *s, struct gl_why *why)
{
    if (x->closing) {
        return gl_why(why, GL_E_UNAVAILABLE, "the executor is closed");
    }
    if (gl_keep_check_key(&s->key, why) < 0) {
        return GL_E_INVALID;
    }
    if (s->argv_n == 0) {
        return gl_why(why, GL_E_INVALID, "no module is named");
    }
    if (s->input.n > GL_MODULE_FRAME_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "the configuration, the message and the state have %zu "
                      "bytes together, and may have %d",
                      s->input.n, GL_MODULE_FRAME_BYTES_MAX);
    }
    return 0;
}

static void exec_start(struct gl_exec *port, struct gl_exec_req *req, const struct gl_exec_start *s)
{
    struct module_exec *x = of(port);
    int err = check_start(x, s, &req->why);
    if (err != 0) {
        answer(x, req, err);
    } else if (!raise_floor(x, &s->key, s->token, req)) {
        answer(x, req, GL_E_STALE);
    } else if (find(x, &s->key) != NULL) {
        answer(x, req, 0);
    } else if (s->start_by > 0 && now_of(x) > s->start_by) {
        answer(x, req, gl_why(&req->why, GL_E_STALE, "it is too late to start this"));
    } else {
        begin(x, s, req);
    }
}

static void exec_attach(struct gl_exec *port, struct gl_exec_req *req,
                        const struct gl_attempt_key *key, uint64_t token, gl_str epoch)
{
    struct module_exec *x = of(port);
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
    struct module_exec *x = of(port);
    struct gl_exec_result stopped = {.end = GL_EXEC_STOPPED};
    if (!raise_floor(x, key, token, req)) {
        answer(x, req, GL_E_STALE);
        return;
    }
    struct attempt *a = find(x, key);
    if (a != NULL && a->running) {
        gl_ms grace = grace_ms > 0 && grace_ms < a->grace_ms ? grace_ms : a->grace_ms;
        if (a->turn != NULL) {
            gl_module_link_drop(&a->entry->link, a->turn, grace);
        }
        answer_start(x, a, 0);
        end(x, a, &stopped);
    }
    answer(x, req, 0);
}

static void exec_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token)
{
    struct module_exec *x = of(port);
    struct attempt *a = find(x, key);
    if (a != NULL && !a->running && token >= a->job->floor) {
        forget(x, a);
    }
}

static void exec_list(struct gl_exec *port, struct gl_exec_req *req)
{
    struct module_exec *x = of(port);
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
    struct module_exec *x = of(port);
    x->closing = true;
    x->closed = closed;
    x->closed_owner = owner;
    schedule(x);
}

static const struct gl_exec_ops ops = {
    .name = "module",
    .start = exec_start,
    .attach = exec_attach,
    .stop = exec_stop,
    .ack = exec_ack,
    .list = exec_list,
    .close = exec_close,
};

static void make_epoch(struct module_exec *x)
{
    uint8_t chance[GL_KEEP_EPOCH_BYTES / 2] = {0};
    (void)!getrandom(chance, sizeof(chance), 0); /* 16 bytes are never cut short */
    for (size_t i = 0; i < sizeof(chance); i++) {
        (void)snprintf(x->epoch + 2 * i, 3, "%02x", chance[i]);
    }
}

static int open_events(struct module_exec *x, const struct gl_module_exec_config *config,
                       struct gl_why *reterr_why)
{
    struct event_base *base = gl_loop_base(x->loop);
    x->later = event_new(base, -1, 0, on_later, x);
    x->again = evtimer_new(base, on_again, x);
    if (x->later == NULL || x->again == NULL) {
        return gl_why(reterr_why, GL_E_IO, "cannot make the events of the executor");
    }
    x->registry.loop = x->loop;
    x->registry.events = (struct gl_module_link_events){.owner = x, .ended = on_turn_ended};
    x->registry.ready = on_registry_ready;
    x->registry.owner = x;
    return gl_module_registry_init(&x->registry, config->folders, config->trusted,
                                   config->host_path, reterr_why);
}

int gl_module_exec_open(struct gl_exec **ret, const struct gl_module_exec_config *config,
                        struct gl_loop *loop, const struct gl_exec_events *events,
                        struct gl_why *reterr_why)
{
    struct module_exec *x = gl_mem_alloc(sizeof(*x));
    x->exec.ops = &ops;
    x->events = *events;
    x->loop = loop;
    x->handling = config->handling;
    x->handling_owner = config->owner;
    gl_map_init(&x->jobs);
    gl_map_init(&x->attempts);
    gl_pool_init(&x->pool);
    gl_list_init(&x->fresh);
    gl_list_init(&x->answers);
    gl_list_init(&x->ended);
    make_epoch(x);
    int err = open_events(x, config, reterr_why);
    if (err != 0) {
        free_exec(x);
        return err;
    }
    x->announce = !config->quiet;
    schedule(x);
    *ret = &x->exec;
    return 0;
}

bool gl_module_exec_knows(struct gl_exec *port, const struct gl_attempt_key *key)
{
    GL_ASSERT(port->ops == &ops);
    return find(of(port), key) != NULL;
}
