#include "http/http.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "http/call.h"
#include "os/fs.h"
#include "os/sock.h"

enum {
    CONNECTION_BYTES_MAX = 32 << 10, /* request line and headers */
    IDLE_SECONDS_MAX = 30,           /* a client that neither sends nor takes anything */
};

struct gl_http {
    struct gl_http_config config;
    struct MHD_Daemon *daemon;
    size_t bodies_bytes; /* charged; only the HTTP thread knows */

    pthread_mutex_t lock; /* guards what follows */
    bool is_refusing;
    size_t asked_n; /* handed to the node and not answered */
};

/* ---- the node's part ---- */

static void on_answered(struct gl_request *rq)
{
    struct gl_call *c = rq->owner;
    struct gl_http *h = c->http;
    struct MHD_Connection *connection = c->connection;

    if (rq->code == 0 && rq->body.n > 0) {
        gl_buf_str(&c->out, rq->body);
    }
    c->is_complete = true;
    MHD_resume_connection(connection); /* from here on the call belongs to the HTTP thread again */
    pthread_mutex_lock(&h->lock);
    h->asked_n--;
    pthread_mutex_unlock(&h->lock);
}

static void on_loop(struct gl_loop_task *t)
{
    struct gl_call *c = t->owner;

    c->config->ask(c->config->owner, &c->rq);
}

void gl_call_ask(struct gl_call *c)
{
    struct gl_http *h = c->http;

    c->rq.done = on_answered;
    c->rq.owner = c;
    c->task = (struct gl_loop_task){.run = on_loop, .owner = c};
    pthread_mutex_lock(&h->lock);
    if (h->is_refusing) {
        pthread_mutex_unlock(&h->lock);
        gl_reply_error(c, GL_E_UNAVAILABLE, "this node is stopping", NULL);
        return;
    }
    h->asked_n++;
    MHD_suspend_connection(c->connection);
    /* Under the lock: after gl_http_refuse() has returned, nothing is posted any more. */
    gl_loop_post(h->config.loop, &c->task);
    pthread_mutex_unlock(&h->lock);
}

/* The node has answered: make its answer ours. */
static void take_answer(struct gl_call *c)
{
    c->is_complete = false;
    if (c->rq.code != 0) {
        gl_reply_error(c, c->rq.code, c->rq.why.text, NULL);
    } else if (c->then != NULL) {
        c->then(c);
    } else {
        c->status = c->rq.verb == GL_VERB_SUBMIT ? MHD_HTTP_CREATED : MHD_HTTP_OK;
        c->type = "application/json";
        gl_buf_char(&c->out, '\n');
    }
}

/* ---- calls ---- */

gl_str gl_call_argument(const struct gl_call *c, const char *name)
{
    return gl_str_of(MHD_lookup_connection_value(c->connection, MHD_GET_ARGUMENT_KIND, name));
}

static struct gl_call *call_new(struct gl_http *h, struct MHD_Connection *connection,
                                const char *url, const char *method)
{
    struct gl_call *c = gl_mem_alloc(sizeof(*c));
    uint64_t chance;

    h->config.entropy->fill(h->config.entropy, &chance, sizeof(chance));
    (void)snprintf(c->id, sizeof(c->id), "%016llx", (unsigned long long)chance);
    c->http = h;
    c->config = &h->config;
    c->connection = connection;
    c->method = gl_str_c(&c->arena, gl_str_of(method));
    c->url = gl_str_c(&c->arena, gl_str_of(url));
    return c;
}

static void call_free(struct gl_call *c)
{
    c->http->bodies_bytes -= c->charged_bytes;
    gl_buf_done(&c->body);
    gl_buf_done(&c->out);
    gl_arena_done(&c->arena);
    gl_mem_free(c);
}

static bool is_allowed(struct gl_call *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    uid_t uid;
    pid_t pid;

    if (info == NULL || gl_sock_peer(info->connect_fd, &uid, &pid, NULL) != 0) {
        return false;
    }
    return uid == c->config->uid || uid == 0;
}

static gl_str header(const struct gl_call *c, const char *name)
{
    return gl_str_of(MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name));
}

/* Charge `bytes` to the budget of all bodies. */
static bool charge(struct gl_call *c, size_t bytes)
{
    if (c->http->bodies_bytes + bytes > GL_CALL_BODIES_BYTES_MAX) {
        return false;
    }
    c->charged_bytes += bytes;
    c->http->bodies_bytes += bytes;
    return true;
}

/* Everything that can be refused before the body is read. */
static void check_headers(struct gl_call *c)
{
    gl_str length = header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t bytes = 0;

    if (!is_allowed(c)) {
        gl_reply_error(c, GL_E_DENIED, "only the user who runs this node may talk to it", NULL);
    } else if (header(c, MHD_HTTP_HEADER_ORIGIN).p != NULL) {
        /* A browser says where a page comes from. No page may drive a node through its socket. */
        gl_reply_error(c, GL_E_DENIED, "requests of web pages are not allowed here", NULL);
    } else if (length.p != NULL && !gl_str_u64(length, &bytes)) {
        gl_reply_error(c, GL_E_INVALID, "Content-Length is not a number", NULL);
    } else if (bytes > GL_HTTP_BODY_BYTES_MAX) {
        gl_reply_refusal(c, MHD_HTTP_CONTENT_TOO_LARGE, GL_E_LIMIT,
                         "the body is larger than 64 MiB");
    } else if (!charge(c, (size_t)bytes)) {
        gl_reply_error(c, GL_E_LIMIT, "too many large requests at once: try again later", NULL);
    }
}

/* A body without a length is charged as it comes. */
static bool take_body(struct gl_call *c, const char *bytes, size_t n)
{
    if (c->body.n + n > GL_HTTP_BODY_BYTES_MAX) {
        return false;
    }
    if (c->body.n + n > c->charged_bytes && !charge(c, c->body.n + n - c->charged_bytes)) {
        return false;
    }
    gl_buf_add(&c->body, bytes, n);
    return true;
}

static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_n, void **state)
{
    struct gl_call *c = *state;

    (void)version;
    if (c == NULL) {
        c = *state = call_new(owner, connection, url, method);
        check_headers(c);
        return c->status != 0 ? gl_reply_queue(c) : MHD_YES;
    }
    if (*upload_n > 0) {
        if (!take_body(c, upload, *upload_n)) {
            return MHD_NO; /* a response is not possible in the middle of a body: the connection
                              ends */
        }
        *upload_n = 0;
        return MHD_YES;
    }
    if (!c->is_begun) {
        c->is_begun = true;
        gl_routes_find(c);
    } else if (c->is_complete) {
        take_answer(c);
    }
    return c->status != 0 ? gl_reply_queue(c) : MHD_YES;
}

static void on_end(void *owner, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    (void)owner, (void)connection, (void)why;
    if (*state != NULL) {
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

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Percent decoding in place. What would end a text or part a path stays as it was written, so that
 * it is part of a name that nobody has: the text behind %00 must not be lost, and %2f is no slash.
 */
static size_t on_unescape(void *owner, struct MHD_Connection *connection, char *text)
{
    char *to = text;

    (void)owner, (void)connection;
    for (const char *from = text; *from != '\0';) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        int byte = low >= 0 ? high * 16 + low : -1;

        if (byte > 0 && byte != '/') {
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* ---- lifecycle ---- */

int gl_http_start(struct gl_http **ret, const struct gl_http_config *config,
                  struct gl_why *reterr_why)
{
    struct gl_http *h = gl_mem_alloc(sizeof(*h));

    GL_ASSERT(config->ask != NULL && config->loop != NULL);
    h->config = *config;
    pthread_mutex_init(&h->lock, NULL);
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h, MHD_OPTION_LISTEN_SOCKET,
        config->listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_end, h, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)GL_HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
        on_unescape, NULL, MHD_OPTION_END);
    if (h->daemon == NULL) {
        (void)close(config->listen_fd);
        pthread_mutex_destroy(&h->lock);
        gl_mem_free(h);
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
    GL_ASSERT(h->is_refusing);
    pthread_mutex_lock(&h->lock);
    GL_ASSERT(h->asked_n == 0); /* libmicrohttpd cannot end a connection that sleeps */
    pthread_mutex_unlock(&h->lock);
    MHD_stop_daemon(h->daemon);
    pthread_mutex_destroy(&h->lock);
    gl_mem_free(h);
}
