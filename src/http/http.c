#include "http/http.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "http/http_call.h"
#include "http/http_text.h"
#include "os/fs.h"

enum {
    CONNECTION_BYTES_MAX = 32 << 10, /* request line and headers */
    IDLE_SECONDS_MAX = 30,           /* a client that neither sends nor takes anything */
    WORKERS_MAX = 4,                 /* threads that read files for clients */
    PARTING_SECONDS_MAX = 1,         /* time for answers in progress when the node stops */
    DROPPED_BYTES_MAX = 512 << 20,   /* of a refused body */
};

/* ---- requests to the node ---- */

static void on_answered(struct gl_request *rq)
{
    struct gl_http_call *c = rq->owner;
    struct gl_http *h = c->http;
    struct MHD_Connection *connection = c->connection;

    if (rq->body.n > 0) {
        gl_buf_str(&c->out, rq->body);
    }
    c->is_complete = true;
    MHD_resume_connection(connection); /* from here on the call belongs to the HTTP thread again */
    gl_http_task_done(h);
}

static void submit_request(struct gl_loop_task *t)
{
    struct gl_http_call *c = t->owner;

    c->config->ask(c->config->owner, &c->rq);
}

bool gl_http_post_task(struct gl_http *h, struct MHD_Connection *connection,
                       struct gl_loop_task *task)
{
    bool is_refusing;

    pthread_mutex_lock(&h->lock);
    is_refusing = h->is_refusing;
    if (!is_refusing) {
        h->asked_n++;
        MHD_suspend_connection(connection);
        /* Under the lock: after gl_http_refuse() has returned, nothing is posted any more. */
        gl_loop_post(h->config.loop, task);
    }
    pthread_mutex_unlock(&h->lock);
    return !is_refusing;
}

void gl_http_task_done(struct gl_http *h)
{
    pthread_mutex_lock(&h->lock);
    h->asked_n--;
    if (h->asked_n == 0 && h->is_refusing) {
        pthread_cond_broadcast(&h->wakeup);
    }
    pthread_mutex_unlock(&h->lock);
}

bool gl_http_is_refusing(struct gl_http *h)
{
    bool is_refusing;

    pthread_mutex_lock(&h->lock);
    is_refusing = h->is_refusing;
    pthread_mutex_unlock(&h->lock);
    return is_refusing;
}

void gl_http_call_ask_node(struct gl_http_call *c)
{
    c->rq.done = on_answered;
    c->rq.owner = c;
    c->task = (struct gl_loop_task){
        .run = submit_request, .owner = c, .is_urgent = gl_verb_is_urgent(c->rq.verb)};
    if (!gl_http_post_task(c->http, c->connection, &c->task)) {
        gl_reply_error(c, GL_R_NODE_STOPPING, "this node is stopping", NULL);
    }
}

/* ---- worker threads ---- */

static void *run_worker(void *owner)
{
    struct gl_http_call *c = owner;
    struct gl_http *h = c->http;
    struct MHD_Connection *connection = c->connection;

    c->work(c);
    pthread_mutex_lock(&h->lock);
    h->workers_n--;
    pthread_mutex_unlock(&h->lock);
    c->is_complete = true;
    MHD_resume_connection(connection); /* from here on the call belongs to the HTTP thread again */
    gl_http_task_done(h);
    return NULL;
}

void gl_http_run_worker(struct gl_http_call *c, void (*work)(struct gl_http_call *c),
                        void (*then)(struct gl_http_call *c))
{
    struct gl_http *h = c->http;
    pthread_attr_t detached;
    pthread_t thread;
    bool is_taken;

    c->work = work;
    c->then = then;
    pthread_mutex_lock(&h->lock);
    is_taken = !h->is_refusing && h->workers_n < WORKERS_MAX;
    h->workers_n += is_taken;
    h->asked_n += is_taken;
    pthread_mutex_unlock(&h->lock);
    if (!is_taken) {
        gl_reply_error(c, GL_R_NODE_BUSY, "the node is busy reading files; try again later", NULL);
        return;
    }
    MHD_suspend_connection(c->connection);
    (void)pthread_attr_init(&detached); /* this fails only if memory is exhausted */
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, run_worker, c) != 0) {
        (void)run_worker(c); /* all requests of this listener wait for it */
    }
    (void)pthread_attr_destroy(&detached);
}

/* Turn the node's reply into the call's answer. */
static void reply_from_node(struct gl_http_call *c)
{
    void (*then)(struct gl_http_call *) = c->then;

    c->is_complete = false;
    c->then = NULL;
    if (c->rq.code != 0) {
        gl_reply_refusal(
            c, &(struct gl_refusal){.code = gl_err_join(c->rq.code, c->rq.why.reason),
                                    .message = c->rq.why.text,
                                    .claim = gl_str_dup(&c->arena, gl_buf_view(&c->out))});
    } else if (then != NULL) {
        then(c);
    } else {
        c->status = c->rq.existing ? MHD_HTTP_OK : gl_verbs[c->rq.verb].status;
        c->type = "application/json";
        gl_buf_char(&c->out, '\n');
    }
}

/* ---- calls ---- */

gl_str gl_http_call_unescape(struct gl_http_call *c, gl_str text)
{
    char *copy = gl_arena_copy(&c->arena, text.p, text.n);

    for (size_t i = 0; i < text.n; i++) {
        copy[i] = copy[i] == GL_HTTP_TEXT_SLASH ? '/' : copy[i];
    }
    return (gl_str){.p = copy, .n = text.n};
}

gl_str gl_http_call_header(const struct gl_http_call *c, const char *name)
{
    return gl_str_of(MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name));
}

static struct gl_http_call *call_new(struct gl_listener *listener,
                                     struct MHD_Connection *connection, const char *url,
                                     const char *method)
{
    struct gl_http *h = listener->http;
    struct gl_http_call *c = gl_mem_alloc(sizeof(*c));
    uint64_t chance;

    h->config.entropy->fill(h->config.entropy, &chance, sizeof(chance));
    (void)snprintf(c->id, sizeof(c->id), "%016llx", (unsigned long long)chance);
    c->http = h;
    c->listener = listener;
    c->config = &h->config;
    c->connection = connection;
    c->method = gl_str_c(&c->arena, gl_str_of(method));
    c->url = gl_str_c(&c->arena, gl_str_of(url));
    return c;
}

static void call_free(struct gl_http_call *c)
{
    struct gl_http *h = c->http;

    pthread_mutex_lock(&h->lock);
    h->bodies_bytes -= c->charged_bytes;
    h->calls_n -= c->is_begun;
    if (h->calls_n == 0 && h->is_refusing) {
        pthread_cond_broadcast(&h->wakeup);
    }
    pthread_mutex_unlock(&h->lock);
    if (c->stream != NULL) {
        MHD_destroy_response(c->stream);
    }
    gl_buf_done(&c->body);
    gl_buf_done(&c->out);
    gl_arena_done(&c->arena);
    gl_mem_free(c);
}

/* Charge `bytes` to the budget of all bodies. */
static bool reserve_bytes(struct gl_http_call *c, size_t bytes)
{
    struct gl_http *h = c->http;
    bool is_fine;

    pthread_mutex_lock(&h->lock);
    is_fine = h->bodies_bytes + bytes <= GL_HTTP_CALL_BODIES_BYTES_MAX;
    if (is_fine) {
        c->charged_bytes += bytes;
        h->bodies_bytes += bytes;
    }
    pthread_mutex_unlock(&h->lock);
    return is_fine;
}

static void release_bytes(struct gl_http_call *c)
{
    pthread_mutex_lock(&c->http->lock);
    c->http->bodies_bytes -= c->charged_bytes;
    pthread_mutex_unlock(&c->http->lock);
    c->charged_bytes = 0;
}

static void refuse_body(struct gl_http_call *c, enum gl_http_body_state why)
{
    if (why == GL_HTTP_CALL_BODY_TOO_LARGE) {
        gl_reply_status(c, MHD_HTTP_CONTENT_TOO_LARGE, GL_R_BODY_TOO_LARGE,
                        "the body is larger than 72 MiB");
    } else {
        gl_reply_error(c, GL_R_BODIES_TOO_LARGE, "too many large requests at once; try again later",
                       NULL);
    }
}

/* Refuse what can be refused before the body is read. */
static void check_headers(struct gl_http_call *c)
{
    gl_str length = gl_http_call_header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *fault = gl_connections_begin_request(c);
    uint64_t bytes = 0;

    if (fault != NULL) {
        c->is_last = true;
        gl_reply_error(c, GL_E_INVALID, fault, NULL);
        return;
    }
    if (!gl_auth_check(c)) {
        return;
    }
    if (length.p != NULL && !gl_str_u64(length, &bytes)) {
        gl_reply_error(c, GL_R_LENGTH_INVALID, "Content-Length is not a number", NULL);
    } else if (bytes > GL_HTTP_BODY_BYTES_MAX) {
        refuse_body(c, GL_HTTP_CALL_BODY_TOO_LARGE);
    } else if (!reserve_bytes(c, (size_t)bytes)) {
        refuse_body(c, GL_HTTP_CALL_BODY_NO_ROOM);
    }
}

/* A body without a length is charged as it arrives. libmicrohttpd accepts no response in the middle
 * of a body: if the body exceeds the limit, read and drop the rest, then refuse it. False: even
 * that would be too much. */
static bool append_body(struct gl_http_call *c, const char *bytes, size_t n)
{
    size_t all = c->body.n + n;

    if (c->body_is == GL_HTTP_CALL_BODY_FINE) {
        if (all > GL_HTTP_BODY_BYTES_MAX) {
            c->body_is = GL_HTTP_CALL_BODY_TOO_LARGE;
        } else if (all > c->charged_bytes && !reserve_bytes(c, all - c->charged_bytes)) {
            c->body_is = GL_HTTP_CALL_BODY_NO_ROOM;
        } else {
            gl_buf_add(&c->body, bytes, n);
            return true;
        }
        gl_buf_done(&c->body);
        release_bytes(c);
    }
    c->dropped_bytes += n;
    return c->dropped_bytes <= DROPPED_BYTES_MAX;
}

static void dispatch(struct gl_http_call *c)
{
    c->is_begun = true;
    pthread_mutex_lock(&c->http->lock);
    c->http->calls_n++;
    pthread_mutex_unlock(&c->http->lock);
    gl_connections_request_arrived(c);
    gl_routes_dispatch(c);
}

static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_n, void **state)
{
    struct gl_http_call *c = *state;

    (void)version;
    if (c == NULL) {
        c = *state = call_new(owner, connection, url, method);
        check_headers(c);
        return c->status != 0 ? gl_reply_queue(c) : MHD_YES;
    }
    if (*upload_n > 0) {
        if (!append_body(c, upload, *upload_n)) {
            return MHD_NO; /* the connection ends */
        }
        *upload_n = 0;
        return MHD_YES;
    }
    if (c->body_is != GL_HTTP_CALL_BODY_FINE) {
        refuse_body(c, c->body_is);
    } else if (!c->is_begun) {
        dispatch(c);
    } else if (c->is_complete) {
        reply_from_node(c);
    }
    return c->status != 0 ? gl_reply_queue(c) : MHD_YES;
}

static void on_end(void *owner, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    (void)owner, (void)connection, (void)why;
    if (*state != NULL) {
        gl_connections_request_answered(*state);
        call_free(*state);
        *state = NULL;
    }
}

static void on_log(void *owner, const char *fmt, va_list args)
{
    struct gl_http *h = owner;
    char line[512];

    if (h->config.log != NULL) {
        (void)vsnprintf(line, sizeof(line), fmt, args);
        h->config.log(h->config.owner, line);
    }
}

static size_t on_unescape(void *owner, struct MHD_Connection *connection, char *text)
{
    (void)owner, (void)connection;
    return gl_http_text_unescape(text);
}

/* ---- lifecycle ---- */

static bool start_listener(struct gl_listener *d, int fd)
{
    d->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        on_request, d, MHD_OPTION_EXTERNAL_LOGGER, on_log, d->http, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_end, d, MHD_OPTION_NOTIFY_CONNECTION,
        gl_connections_on_notify, d, MHD_OPTION_URI_LOG_CALLBACK, gl_connections_on_uri, d,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)d->http->connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES_MAX,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
        MHD_OPTION_END);
    return d->daemon != NULL;
}

static struct gl_http *http_new(const struct gl_http_config *config)
{
    struct gl_http *h = gl_mem_alloc(sizeof(*h));
    pthread_condattr_t attr;

    h->config = *config;
    h->connections_max = gl_connections_limit(config->tcp_fd >= 0 ? 2 : 1);
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->wakeup, &attr);
    pthread_condattr_destroy(&attr);
    gl_list_init(&h->connections);
    gl_list_init(&h->polls_done);
    gl_list_init(&h->pings);
    gl_list_init(&h->pings_done);
    gl_map_init(&h->polls);
    return h;
}

/* Stop the listeners first, so that no request arrives while the rest is freed. */
static void http_free(struct gl_http *h)
{
    for (size_t i = 0; i < GL_COUNT(h->listeners); i++) {
        if (h->listeners[i].daemon != NULL) {
            MHD_stop_daemon(h->listeners[i].daemon);
        }
        gl_mem_free((void *)h->listeners[i].filters);
    }
    gl_housekeeping_stop(h);
    gl_map_done(&h->polls);
    pthread_cond_destroy(&h->wakeup);
    pthread_mutex_destroy(&h->lock);
    gl_mem_free(h);
}

int gl_http_start(struct gl_http **ret, const struct gl_http_config *config,
                  struct gl_why *reterr_why)
{
    struct gl_http *h = http_new(config);
    int fds[GL_COUNT(h->listeners)] = {config->listen_fd, config->tcp_fd};
    bool is_fine = gl_housekeeping_start(h);

    GL_ASSERT(config->ask != NULL && config->loop != NULL);
    GL_ASSERT(config->tcp_fd < 0 || config->token != NULL);
    for (size_t i = 0; i < GL_COUNT(h->listeners); i++) {
        h->listeners[i] = (struct gl_listener){.http = h, .is_tcp = i == 1};
        is_fine = is_fine && (fds[i] < 0 || start_listener(&h->listeners[i], fds[i]));
        if (!is_fine) {
            gl_fs_closep(&fds[i]);
        }
    }
    if (!is_fine) {
        http_free(h);
        return gl_why(reterr_why, GL_E_IO, "cannot serve HTTP: the server could not be started");
    }
    *ret = h;
    return 0;
}

void gl_http_refuse(struct gl_http *h)
{
    pthread_mutex_lock(&h->lock);
    h->is_refusing = true;
    pthread_mutex_unlock(&h->lock);
}

void gl_http_stop(struct gl_http *h)
{
    struct timespec until;
    int err = 0;

    GL_ASSERT(h->is_refusing);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PARTING_SECONDS_MAX;
    pthread_mutex_lock(&h->lock);
    while (h->asked_n > 0) { /* libmicrohttpd cannot close a suspended connection */
        (void)pthread_cond_wait(&h->wakeup, &h->lock);
    }
    while (h->calls_n > 0 && err == 0) { /* let clients read their answers to the end */
        err = pthread_cond_timedwait(&h->wakeup, &h->lock, &until);
    }
    pthread_mutex_unlock(&h->lock);
    http_free(h);
}
