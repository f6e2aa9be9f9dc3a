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
    CALLERS_MAX = 16,
    ACCEPT_PAUSE_NS = 10 * 1000000,
    PATIENCE_MS = 5000,
    READ_BYTES = 64 << 10,
    FRAMES_PER_TURN = 16,        /* so that a burst of starts does not keep ended steps waiting */
    OUT_BYTES_HIGH = 4 << 20,    /* more is queued than this: hear no more from it */
    UNSAID_BYTES_HIGH = 1 << 20, /* report no more ends until it has read some */
};

/* ---- life ---- */

static void hang_up(struct gl_keeper *k, struct gl_client *c)
{
    GL_ASSERT(k->callers_n > 0 || c->watch.fd < 0);
    if (c->watch.fd < 0) {
        return;
    }
    gl_keeper_unwatch(&c->watch);
    gl_keeper_clear_timer(k, &c->patience);
    gl_list_remove(&c->link);
    gl_list_push(&k->gone, &c->link);
    k->callers_n--;
    if (k->active == c) {
        k->active = NULL;
        k->heard_at = k->now;
    }
}

static void free_gone(struct gl_keeper *k)
{
    while (!gl_list_empty(&k->gone)) {
        struct gl_client *c = GL_CONTAINER(gl_list_first(&k->gone), struct gl_client, link);
        gl_list_remove(&c->link);
        gl_buf_done(&c->in);
        gl_buf_done(&c->out);
        gl_mem_free(c);
    }
    GL_ASSERT(gl_list_empty(&k->gone));
}

static void on_impatience(struct gl_keeper *k, struct gl_timer *t)
{
    GL_ASSERT(t->due <= k->now);
    hang_up(k, GL_CONTAINER(t, struct gl_client, patience));
}

void gl_client_activate(struct gl_keeper *k, struct gl_client *c)
{
    GL_ASSERT(c->version != 0);
    GL_ASSERT(!c->closing);
    if (k->active != NULL && k->active != c) {
        hang_up(k, k->active);
    }
    k->active = c;
    k->heard_at = k->now;
    gl_keeper_clear_timer(k, &c->patience);
    /* What was told to an earlier connection and not acknowledged is told again. */
    while (!gl_list_empty(&k->said)) {
        struct gl_link *l = gl_list_first(&k->said);
        gl_list_remove(l);
        gl_list_push(&k->unsaid, l);
    }
    GL_ASSERT(gl_list_empty(&k->said));
}

/* ---- words in ---- */

static bool may_hear(const struct gl_client *c)
{
    return c->watch.fd >= 0 && !c->closing && c->out.n < OUT_BYTES_HIGH;
}

static gl_str unread(const struct gl_client *c)
{
    GL_ASSERT(c->in_used <= c->in.n);
    return (gl_str){.p = c->in.p + c->in_used, .n = c->in.n - c->in_used};
}

/* Move what is not dealt with to the front. */
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
    for (int i = 0; may_hear(c); i++) {
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
            k->unread = true;
            break;
        }
        c->in_used += used;
        GL_ASSERT(c->in_used <= c->in.n);
        gl_serve_message(k, c, message);
    }
    compact(c);
}

static void on_words(struct gl_keeper *k, struct gl_client *c)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(c->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    GL_ASSERT(c->watch.fd >= 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        hang_up(k, c);
        return;
    }
    gl_buf_add(&c->in, bytes, (size_t)n);
    take_frames(k, c);
}

static void on_ready(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    struct gl_client *c = GL_CONTAINER(w, struct gl_client, watch);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        if (may_hear(c) || events & (EPOLLHUP | EPOLLERR)) {
            on_words(k, c);
        }
    }
}

void gl_client_go_on(struct gl_keeper *k)
{
    struct gl_client *all[CALLERS_MAX];
    size_t n = 0;

    GL_ASSERT(k->callers_n <= CALLERS_MAX);
    k->unread = false;
    /* A hello cuts others off, but frees them only when the turn is over. */
    for (struct gl_link *l = k->callers.next; l != &k->callers; l = l->next) {
        all[n++] = GL_CONTAINER(l, struct gl_client, link);
    }
    GL_ASSERT(n == k->callers_n);
    for (size_t i = 0; i < n; i++) {
        take_frames(k, all[i]);
    }
}

/* ---- words out ---- */

void gl_client_send(struct gl_client *c, const struct gl_keeper_msg *m)
{
    if (c->watch.fd >= 0) {
        gl_keeper_encode(m, &c->out);
    }
}

void gl_client_tell(struct gl_keeper *k, const struct gl_keeper_msg *m)
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

bool gl_client_hears(const struct gl_keeper *k)
{
    return k->active != NULL && k->active->version >= GL_KEEPER_VERSION_WORKERS;
}

/* What a worker has said, until so many bytes are queued. */
static void send_said(struct gl_client *c, struct gl_worker_lines *h, size_t bytes_high)
{
    struct gl_said *s;

    GL_ASSERT(bytes_high > 0);
    while (c->out.n < bytes_high && (s = gl_worker_lines_first(h)) != NULL) {
        struct gl_keeper_msg m = {
            .type = GL_KEEPER_SAID,
            .start = {.key = h->charge->key, .token = h->charge->token},
            .line = {.p = s->text, .n = s->n},
        };
        gl_client_send(c, &m);
        gl_worker_lines_pop(h);
    }
}

void gl_client_send_end(struct gl_client *c, struct gl_attempt *charge, uint64_t req)
{
    struct gl_keeper_msg m = gl_attempt_ended(charge);

    GL_ASSERT(charge->state == GL_ATTEMPT_ENDED);
    if (charge->heard != NULL && c->version >= GL_KEEPER_VERSION_WORKERS) {
        send_said(c, charge->heard, SIZE_MAX);
    }
    if (req != 0) {
        m.type = GL_KEEPER_REPLY;
        m.req = req;
        m.state = GL_EXEC_ENDED;
    }
    gl_keeper_lower(&m, c->version);
    gl_client_send(c, &m);
}

static void report_said(struct gl_keeper *k)
{
    bool hears = gl_client_hears(k);
    for (struct gl_link *l = k->talking.next, *next; l != &k->talking; l = next) {
        struct gl_worker_lines *h = GL_CONTAINER(l, struct gl_worker_lines, talking);
        next = l->next;
        if (hears) {
            send_said(k->active, h, OUT_BYTES_HIGH);
        }
        if (!hears || !gl_worker_lines_is_full(h)) {
            gl_capture_go_on(k, &h->charge->capture);
        }
        if (gl_worker_lines_first(h) == NULL) {
            gl_list_remove(&h->talking);
        }
    }
}

static void report_ends(struct gl_keeper *k)
{
    struct gl_client *c = k->active;
    while (c != NULL && c->out.n < UNSAID_BYTES_HIGH && !gl_list_empty(&k->unsaid)) {
        struct gl_link *l = gl_list_first(&k->unsaid);
        gl_client_send_end(c, GL_CONTAINER(l, struct gl_attempt, link), 0);
        gl_list_remove(l);
        gl_list_push(&k->said, l);
    }
}

/* Watch for what we can use: room to write if something is queued, words if we would take them. */
static void adjust_watch(struct gl_keeper *k, struct gl_client *c)
{
    uint32_t events = (c->out.n > 0 ? EPOLLOUT : 0u) | (may_hear(c) ? EPOLLIN : 0u);

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
            hang_up(k, c);
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
        hang_up(k, c);
        return;
    }
    adjust_watch(k, c);
    if (may_hear(c) && unread(c).n > 0) {
        k->unread = true; /* there may be whole frames that we would not take before */
    }
}

static bool has_more(const struct gl_keeper *k)
{
    return !gl_list_empty(&k->unsaid) || (gl_client_hears(k) && !gl_list_empty(&k->talking));
}

void gl_client_flush(struct gl_keeper *k)
{
    bool reported = k->active != NULL && !gl_list_empty(&k->unsaid);
    report_said(k);
    report_ends(k);
    for (struct gl_link *l = k->callers.next, *next; l != &k->callers; l = next) {
        next = l->next;
        struct gl_client *c = GL_CONTAINER(l, struct gl_client, link);
        if (c->out.n > 0 || c->closing) {
            write_out(k, c);
        }
    }
    if (k->active != NULL && k->active->out.n == 0 && has_more(k)) {
        k->unread = true; /* it has read faster than expected: go on at once */
    }
    if (reported) {
        GL_FAILPOINT("keeper.after_report");
    }
    free_gone(k);
}

void gl_client_close_all(struct gl_keeper *k)
{
    while (!gl_list_empty(&k->callers)) {
        hang_up(k, GL_CONTAINER(gl_list_first(&k->callers), struct gl_client, link));
    }
    free_gone(k);
    gl_keeper_unwatch(&k->listener);
    GL_ASSERT(k->callers_n == 0);
}

/* ---- new ones ---- */

/* The folder is private already; this also keeps out who got a descriptor of it. Root may look at
 * anybody's. */
static bool is_welcome(int fd)
{
    uid_t uid = 0;
    pid_t pid = 0;
    struct gl_why why;
    return gl_sock_peer(fd, &uid, &pid, &why) == 0 && (uid == geteuid() || uid == 0);
}

static void on_knock(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    struct gl_why why;
    (void)events;
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) { /* not our doing: wait a bit */
            (void)nanosleep(&(struct timespec){.tv_nsec = ACCEPT_PAUSE_NS}, NULL);
        }
        return;
    }
    if (k->callers_n >= CALLERS_MAX || !is_welcome(fd)) {
        (void)close(fd);
        return;
    }
    struct gl_client *c = gl_mem_alloc(sizeof(*c));
    c->watch = (struct gl_watch){.ready = on_ready, .fd = fd};
    c->events = EPOLLIN;
    c->patience.fire = on_impatience;
    gl_list_init(&c->link);
    GL_ASSERT(k->callers_n < CALLERS_MAX);
    gl_list_push(&k->callers, &c->link);
    k->callers_n++;
    if (gl_keeper_watch(k, &c->watch, &why) < 0) {
        hang_up(k, c);
        return;
    }
    gl_keeper_set_timer(k, &c->patience, gl_keeper_after(k, PATIENCE_MS));
}

int gl_client_listen(struct gl_keeper *k, struct gl_why *reterr_why)
{
    const char *path = gl_str_fmt(&k->scratch, "%s/keeper/sock", k->config.data_dir).p;
    int r = gl_sock_listen(path, &k->listener.fd, reterr_why);
    if (r < 0) {
        return r;
    }
    k->listener.ready = on_knock;
    return gl_keeper_watch(k, &k->listener, reterr_why);
}
