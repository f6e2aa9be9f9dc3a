/* An attempt enters `queued` with its request. Once the modules are known, it is handled at once if
 * its module is trusted, else handed to the module's process. Only then is the request answered;
 * until then its input is borrowed from the caller, not copied. */
#include "exec/module_exec.h"

#include <event2/event.h>

#include "base/check.h"
#include "base/limits.h"
#include "exec/attempt_book.h"
#include "exec/module_registry.h"

enum { BATCH_MS_MAX = 2 }; /* how long a batch may block the loop */

struct attempt {
    struct gl_book_attempt b; /* first; its link is in `queued` until it was handed on */
    struct gl_exec_req *req;  /* the start request, until it is answered */
    gl_str module, input;     /* borrowed from the request */
    gl_ms timeout_ms, grace_ms;
    struct gl_module_entry *entry; /* the module whose process has the call, ... */
    struct gl_module_pending *call;
};

struct module_exec {
    struct gl_book book;
    void (*handling)(void *owner, gl_str job);
    void *handling_owner;
    struct event *resume;
    struct gl_link queued; /* attempts not handed on yet */
    struct gl_module_registry registry;
};

static struct module_exec *of(struct gl_exec *x)
{
    return GL_CONTAINER(GL_CONTAINER(x, struct gl_book, exec), struct module_exec, book);
}

static struct attempt *attempt_of(struct gl_link *l)
{
    return GL_CONTAINER(GL_CONTAINER(l, struct gl_book_attempt, link), struct attempt, b);
}

static void end(struct module_exec *x, struct attempt *a, const struct gl_exec_result *result)
{
    a->call = NULL;
    gl_book_end(&x->book, &a->b, result);
}

static void answer_start(struct module_exec *x, struct attempt *a, int status)
{
    struct gl_exec_req *req = a->req;
    a->req = NULL;
    a->module = a->input = (gl_str){0};
    if (req != NULL) {
        gl_book_answer(&x->book, req, status);
    }
}

/* ---- handling ---- */

static void report_handling(struct module_exec *x, gl_str job)
{
    if (x->handling != NULL) {
        x->handling(x->handling_owner, job);
    }
}

static void run_here(struct module_exec *x, struct attempt *a, struct gl_module_entry *e)
{
    struct gl_exec_result result = {.end = GL_EXEC_EXITED};
    struct gl_why why;
    gl_ms began = gl_book_now(&x->book);
    report_handling(x, a->b.key.job);
    int err = gl_module_call(&e->box, a->input, &result.output, &why);
    report_handling(x, (gl_str){0});
    if (err != 0) {
        (void)gl_why_prefix(&why, "module %.*s", GL_STR_ARG(e->name));
        result.exit_code = 1;
        result.error = gl_str_of(why.text);
    } else if (a->timeout_ms > 0 && gl_book_now(&x->book) - began > a->timeout_ms) {
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
    gl_list_remove(&a->b.link);
    if (gl_module_registry_find(&x->registry, a->module, &e, why) != 0) {
        answer_start(x, a, why->code);
        gl_book_forget(&x->book, &a->b); /* it never started */
    } else if (e->is_trusted) {
        run_here(x, a, e);
    } else {
        a->entry = e;
        a->call = gl_module_link_call(&e->link, a, a->input, a->timeout_ms);
        answer_start(x, a, 0);
    }
}

/* A module's process has answered. */
static void on_call_ended(void *owner, void *call_owner, const struct gl_exec_result *result)
{
    end(owner, call_owner, result);
}

/* Run some of them, without blocking the loop for long. */
static void run_some(struct module_exec *x)
{
    struct timeval at_once = {0};
    gl_ms until = 0;
    if (gl_list_empty(&x->queued)) {
        return;
    }
    if (x->registry.state != GL_REGISTRY_READY) {
        gl_module_registry_scan(&x->registry);
        return;
    }
    until = gl_book_now(&x->book) + BATCH_MS_MAX;
    do {
        run(x, attempt_of(gl_list_first(&x->queued)));
    } while (!gl_list_empty(&x->queued) && gl_book_now(&x->book) < until);
    if (!gl_list_empty(&x->queued)) {
        (void)evtimer_add(x->resume, &at_once);
    }
}

static void begin(struct module_exec *x, const struct gl_exec_start *s, struct gl_exec_req *req)
{
    struct attempt *a = GL_CONTAINER(gl_book_begin(&x->book, s), struct attempt, b);
    a->req = req;
    a->module = s->argv[0];
    a->input = s->input;
    a->timeout_ms = s->timeout_ms;
    a->grace_ms = s->grace_ms;
    gl_list_push(&x->queued, &a->b.link);
    gl_book_schedule(&x->book);
}

/* ---- deferred work ---- */

/* Closing: refuse what has not begun. */
static void refuse_queued(struct module_exec *x)
{
    while (!gl_list_empty(&x->queued)) {
        struct attempt *a = attempt_of(gl_list_first(&x->queued));
        answer_start(x, a, gl_why(&a->req->why, GL_E_UNAVAILABLE, "the executor is closed"));
        gl_book_forget(&x->book, &a->b);
    }
}

static void work(struct gl_book *b)
{
    struct module_exec *x = GL_CONTAINER(b, struct module_exec, book);
    if (b->closing) {
        refuse_queued(x);
    } else {
        run_some(x);
    }
}

static void on_resume(evutil_socket_t fd, short what, void *owner)
{
    struct module_exec *x = owner;
    (void)fd;
    (void)what;
    gl_book_schedule(&x->book);
}

static void on_registry_ready(void *owner)
{
    struct module_exec *x = owner;
    gl_book_schedule(&x->book);
}

static void on_done(struct gl_book *b)
{
    struct module_exec *x = GL_CONTAINER(b, struct module_exec, book);
    gl_module_registry_done(&x->registry);
    if (x->resume != NULL) {
        event_free(x->resume);
    }
}

/* ---- the port ---- */

static int check_start(const struct gl_exec_start *s, struct gl_why *why)
{
    if (s->argv_n == 0) {
        return gl_why(why, GL_E_INVALID, "no module given");
    }
    if (s->input.n > GL_MODULE_FRAME_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "configuration, message and state have %zu bytes in total (at most %d)",
                      s->input.n, GL_MODULE_FRAME_BYTES_MAX);
    }
    return 0;
}

static void exec_start(struct gl_exec *port, struct gl_exec_req *req, const struct gl_exec_start *s)
{
    struct module_exec *x = of(port);
    int err = check_start(s, &req->why);
    if (err != 0) {
        gl_book_answer(&x->book, req, err);
    } else if (gl_book_may_begin(&x->book, req, s)) {
        begin(x, s, req);
    }
}

static void exec_stop(struct gl_exec *port, struct gl_exec_req *req,
                      const struct gl_attempt_key *key, uint64_t token, gl_ms grace_ms)
{
    struct module_exec *x = of(port);
    struct gl_exec_result stopped = {.end = GL_EXEC_STOPPED};
    if (!gl_book_raise_floor(&x->book, key, token, req)) {
        return;
    }
    struct gl_book_attempt *found = gl_book_find(&x->book, key);
    if (found != NULL && found->running) {
        struct attempt *a = GL_CONTAINER(found, struct attempt, b);
        gl_ms grace = grace_ms > 0 && grace_ms < a->grace_ms ? grace_ms : a->grace_ms;
        if (a->call != NULL) {
            gl_module_link_drop(&a->entry->link, a->call, grace);
        }
        answer_start(x, a, 0);
        end(x, a, &stopped);
    }
    gl_book_answer(&x->book, req, 0);
}

static const struct gl_exec_ops ops = {
    .name = "module",
    .start = exec_start,
    .attach = gl_book_attach,
    .stop = exec_stop,
    .ack = gl_book_ack,
    .list = gl_book_list,
    .close = gl_book_close,
};

static int open_all(struct module_exec *x, const struct gl_module_exec_config *config,
                    struct gl_why *reterr_why)
{
    int err = gl_book_open(&x->book, config->quiet, reterr_why);
    if (err != 0) {
        return err;
    }
    x->resume = evtimer_new(gl_loop_base(x->book.loop), on_resume, x);
    if (x->resume == NULL) {
        return gl_why(reterr_why, GL_E_IO, "cannot create the events of the executor");
    }
    x->registry.loop = x->book.loop;
    x->registry.events = (struct gl_module_link_events){.owner = x, .ended = on_call_ended};
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
    x->book = (struct gl_book){.exec = {.ops = &ops},
                               .loop = loop,
                               .events = *events,
                               .attempt_bytes = sizeof(struct attempt),
                               .work = work,
                               .done = on_done};
    x->handling = config->handling;
    x->handling_owner = config->owner;
    gl_list_init(&x->queued);
    int err = open_all(x, config, reterr_why);
    if (err != 0) {
        gl_book_free(&x->book);
        return err;
    }
    *ret = &x->book.exec;
    return 0;
}

bool gl_module_exec_knows(struct gl_exec *port, const struct gl_attempt_key *key)
{
    GL_ASSERT(port->ops == &ops);
    return gl_book_find(&of(port)->book, key) != NULL;
}
