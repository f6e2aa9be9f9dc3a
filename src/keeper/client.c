#include "keeper/client.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "keeper/attempt.h"
#include "keeper/serve.h"
#include "os/failpoint.h"
#include "os/sock.h"

enum {
    CLIENTS_MAX = 16,
    ACCEPT_PAUSE_NS = 10 * 1000000,
    HELLO_TIMEOUT_MS = 5000,
    READ_BYTES = 64 << 10,
    FRAMES_PER_TURN = 16,        /* a burst of starts must not delay the reports of ended steps */
    OUT_BYTES_HIGH = 4 << 20,    /* stop reading from a client with more than this queued */
    REPORT_BYTES_HIGH = 1 << 20, /* stop reporting ends to a node with more than this queued */
};

/* ---- life ---- */

static void disconnect(struct gl_keeper *k, struct gl_client *c)
{
    GL_ASSERT(k->clients_n > 0 || c->watch.fd < 0);
    if (c->watch.fd < 0) {
        return;
    }
    gl_keeper_unwatch(&c->watch);
    gl_keeper_clear_timer(k, &c->hello_timer);
    gl_list_remove(&c->link);
    gl_list_push(&k->closed_clients, &c->link);
    k->clients_n--;
    if (k->active == c) {
        k->active = NULL;
        k->contact_at = k->now;
    }
}

static void free_closed(struct gl_keeper *k)
{
    while (!gl_list_empty(&k->closed_clients)) {
        struct gl_client *c =
            GL_CONTAINER(gl_list_first(&k->closed_clients), struct gl_client, link);
        gl_list_remove(&c->link);
        gl_buf_done(&c->in);
        gl_buf_done(&c->out);
        gl_mem_free(c);
    }
    GL_ASSERT(gl_list_empty(&k->closed_clients));
}

static void on_hello_timeout(struct gl_keeper *k, struct gl_timer *t)
{
    GL_ASSERT(t->due <= k->now);
    disconnect(k, GL_CONTAINER(t, struct gl_client, hello_timer));
}

void gl_client_activate(struct gl_keeper *k, struct gl_client *c)
{
    GL_ASSERT(c->version != 0);
    GL_ASSERT(!c->closing);
    if (k->active != NULL && k->active != c) {
        disconnect(k, k->active);
    }
    k->active = c;
    k->contact_at = k->now;
    gl_keeper_clear_timer(k, &c->hello_timer);
    /* Ends that were reported to an earlier connection but not acknowledged are reported again. */
    while (!gl_list_empty(&k->reported)) {
        struct gl_link *l = gl_list_first(&k->reported);
        gl_list_remove(l);
        gl_list_push(&k->unreported, l);
    }
    GL_ASSERT(gl_list_empty(&k->reported));
}

/* ---- input ---- */

static bool may_read(const struct gl_client *c)
{
    return c->watch.fd >= 0 && !c->closing && c->out.n < OUT_BYTES_HIGH;
}

static gl_str unread(const struct gl_client *c)
{
    GL_ASSERT(c->in_used <= c->in.n);
    return (gl_str){.p = c->in.p + c->in_used, .n = c->in.n - c->in_used};
}

/* Move unhandled bytes to the front. */
static void compact(struct gl_client *c)
{
    gl_str rest = unread(c);
    if (c->in_used > 0 && rest.n > 0) {
        memmove(c->in.p, rest.p, rest.n);
    }
    c->in.n = rest.n;
    c->in_used = 0;
    GL_ASSERT(c->in_used == 0);
}

static void take_frames(struct gl_keeper *k, struct gl_client *c)
{
    for (int i = 0; may_read(c); i++) {
        struct gl_why why;
        gl_str message;
        size_t used = 0;
        if (gl_keeper_frame(unread(c), &message, &used, &why) < 0) {
            gl_client_refuse(c, GL_E_INVALID, why.text);
            break;
        }
        if (used == 0) {
            break;
        }
        if (i == FRAMES_PER_TURN) {
            k->frames_left = true;
            break;
        }
        c->in_used += used;
        GL_ASSERT(c->in_used <= c->in.n);
        gl_serve_message(k, c, message);
    }
    compact(c);
}

static void on_input(struct gl_keeper *k, struct gl_client *c)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(c->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    GL_ASSERT(c->watch.fd >= 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        disconnect(k, c);
        return;
    }
    gl_buf_add(&c->in, bytes, (size_t)n);
    take_frames(k, c);
}

static void on_ready(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    struct gl_client *c = GL_CONTAINER(w, struct gl_client, watch);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        if (may_read(c) || events & (EPOLLHUP | EPOLLERR)) {
            on_input(k, c);
        }
    }
}

void gl_client_resume(struct gl_keeper *k)
{
    struct gl_client *all[CLIENTS_MAX];
    size_t n = 0;

    GL_ASSERT(k->clients_n <= CLIENTS_MAX);
    k->frames_left = false;
    /* A HELLO may disconnect other clients, but they are freed only at the end of the turn. */
    for (struct gl_link *l = k->clients.next; l != &k->clients; l = l->next) {
        all[n++] = GL_CONTAINER(l, struct gl_client, link);
    }
    GL_ASSERT(n == k->clients_n);
    for (size_t i = 0; i < n; i++) {
        take_frames(k, all[i]);
    }
}

/* ---- output ---- */

void gl_client_send(struct gl_client *c, const struct gl_keeper_msg *m)
{
    if (c->watch.fd >= 0) {
        gl_keeper_encode(m, &c->out);
    }
}

void gl_client_notify(struct gl_keeper *k, const struct gl_keeper_msg *m)
{
    if (k->active != NULL && k->active->out.n < OUT_BYTES_HIGH) {
        gl_client_send(k->active, m);
    }
}

void gl_client_refuse(struct gl_client *c, int status, const char *text)
{
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_REFUSED,
        .version_max = GL_KEEPER_VERSION_MAX,
        .status = status,
        .text = gl_str_of(text),
    };

    GL_ASSERT(status < 0);
    gl_client_send(c, &m);
    c->closing = true;
    GL_ASSERT(c->closing);
}

bool gl_client_takes_lines(const struct gl_keeper *k)
{
    return k->active != NULL && k->active->version >= GL_KEEPER_VERSION_WORKERS;
}

/* Send waiting lines of a worker until `bytes_high` bytes are queued. */
static void send_lines(struct gl_client *c, struct gl_worker_lines *w, size_t bytes_high)
{
    struct gl_worker_line *s;

    GL_ASSERT(bytes_high > 0);
    while (c->out.n < bytes_high && (s = gl_worker_lines_first(w)) != NULL) {
        struct gl_keeper_msg m = {
            .type = GL_KEEPER_LINE,
            .start = {.key = w->attempt->key, .token = w->attempt->token},
            .line = {.p = s->text, .n = s->n},
        };
        gl_client_send(c, &m);
        gl_worker_lines_pop(w);
    }
}

void gl_client_send_end(struct gl_client *c, struct gl_attempt *a, uint64_t req)
{
    struct gl_keeper_msg m = gl_attempt_ended(a);

    GL_ASSERT(a->state == GL_ATTEMPT_ENDED);
    if (a->worker != NULL && c->version >= GL_KEEPER_VERSION_WORKERS) {
        send_lines(c, a->worker, SIZE_MAX);
    }
    if (req != 0) {
        m.type = GL_KEEPER_REPLY;
        m.req = req;
        m.state = GL_EXEC_ENDED;
    }
    gl_keeper_lower(&m, c->version);
    gl_client_send(c, &m);
}

static void report_lines(struct gl_keeper *k)
{
    bool takes_lines = gl_client_takes_lines(k);
    for (struct gl_link *l = k->lines_waiting.next, *next; l != &k->lines_waiting; l = next) {
        struct gl_worker_lines *w = GL_CONTAINER(l, struct gl_worker_lines, waiting);
        next = l->next;
        if (takes_lines) {
            send_lines(k->active, w, OUT_BYTES_HIGH);
        }
        if (!takes_lines || !gl_worker_lines_is_full(w)) {
            gl_capture_resume(k, &w->attempt->capture);
        }
        if (gl_worker_lines_first(w) == NULL) {
            gl_list_remove(&w->waiting);
        }
    }
}

static void report_ends(struct gl_keeper *k)
{
    struct gl_client *c = k->active;
    while (c != NULL && c->out.n < REPORT_BYTES_HIGH && !gl_list_empty(&k->unreported)) {
        struct gl_link *l = gl_list_first(&k->unreported);
        gl_client_send_end(c, GL_CONTAINER(l, struct gl_attempt, link), 0);
        gl_list_remove(l);
        gl_list_push(&k->reported, l);
    }
}

/* Watch for room to write if something is queued, and for input if we would read it. */
static void adjust_watch(struct gl_keeper *k, struct gl_client *c)
{
    uint32_t events = (c->out.n > 0 ? EPOLLOUT : 0u) | (may_read(c) ? EPOLLIN : 0u);

    GL_ASSERT(c->watch.fd >= 0);
    if (events != c->events) {
        c->events = events;
        gl_keeper_set_watch(k, &c->watch, events);
    }
}

static void write_out(struct gl_keeper *k, struct gl_client *c)
{
    size_t at = 0;
    while (at < c->out.n) {
        ssize_t n = send(c->watch.fd, c->out.p + at, c->out.n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno != EAGAIN) {
            disconnect(k, c);
            return;
        }
        if (n < 0) {
            break;
        }
        at += (size_t)n;
    }
    if (at > 0) {
        GL_ASSERT(at <= c->out.n);
        memmove(c->out.p, c->out.p + at, c->out.n - at);
        c->out.n -= at;
    }
    if (c->closing && c->out.n == 0) {
        disconnect(k, c);
        return;
    }
    adjust_watch(k, c);
    if (may_read(c) && unread(c).n > 0) {
        k->frames_left = true; /* whole frames may have been held back until now */
    }
}

static bool has_more(const struct gl_keeper *k)
{
    return !gl_list_empty(&k->unreported) ||
           (gl_client_takes_lines(k) && !gl_list_empty(&k->lines_waiting));
}

void gl_client_flush(struct gl_keeper *k)
{
    bool reported = k->active != NULL && !gl_list_empty(&k->unreported);
    report_lines(k);
    report_ends(k);
    for (struct gl_link *l = k->clients.next, *next; l != &k->clients; l = next) {
        next = l->next;
        struct gl_client *c = GL_CONTAINER(l, struct gl_client, link);
        if (c->out.n > 0 || c->closing) {
            write_out(k, c);
        }
    }
    if (k->active != NULL && k->active->out.n == 0 && has_more(k)) {
        k->frames_left = true; /* the client read everything: continue at once */
    }
    if (reported) {
        GL_FAILPOINT("keeper.after_report");
    }
    free_closed(k);
}

void gl_client_close_all(struct gl_keeper *k)
{
    while (!gl_list_empty(&k->clients)) {
        disconnect(k, GL_CONTAINER(gl_list_first(&k->clients), struct gl_client, link));
    }
    free_closed(k);
    gl_keeper_unwatch(&k->listener);
    GL_ASSERT(k->clients_n == 0);
}

/* ---- new connections ---- */

/* The folder is private already; this also rejects a process that was passed a descriptor of it.
 * Root may connect to any keeper. */
static bool is_allowed(int fd)
{
    uid_t uid = 0;
    pid_t pid = 0;
    struct gl_why why;
    return gl_sock_peer(fd, &uid, &pid, &why) == 0 && (uid == geteuid() || uid == 0);
}

static void on_connect(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    struct gl_why why;
    (void)events;
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE ||
            errno == ENOMEM) { /* the descriptor stays readable: avoid a busy loop */
            (void)nanosleep(&(struct timespec){.tv_nsec = ACCEPT_PAUSE_NS}, NULL);
        }
        return;
    }
    if (k->clients_n >= CLIENTS_MAX || !is_allowed(fd)) {
        (void)close(fd);
        return;
    }
    struct gl_client *c = gl_mem_alloc(sizeof(*c));
    c->watch = (struct gl_watch){.ready = on_ready, .fd = fd};
    c->events = EPOLLIN;
    c->hello_timer.fire = on_hello_timeout;
    gl_list_init(&c->link);
    GL_ASSERT(k->clients_n < CLIENTS_MAX);
    gl_list_push(&k->clients, &c->link);
    k->clients_n++;
    if (gl_keeper_watch(k, &c->watch, &why) < 0) {
        disconnect(k, c);
        return;
    }
    gl_keeper_set_timer(k, &c->hello_timer, gl_keeper_after(k, HELLO_TIMEOUT_MS));
}

int gl_client_listen(struct gl_keeper *k, struct gl_why *reterr_why)
{
    const char *path = gl_str_fmt(&k->scratch, "%s/keeper/sock", k->config.data_dir).p;
    int r = gl_sock_listen(path, &k->listener.fd, reterr_why);
    if (r < 0) {
        return r;
    }
    k->listener.ready = on_connect;
    return gl_keeper_watch(k, &k->listener, reterr_why);
}
