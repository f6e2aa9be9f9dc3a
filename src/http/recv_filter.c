#include "http/recv_filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "http/http_call.h"

enum {
    DRAIN_BYTES_MAX = 1 << 20,
    HEAD_BYTES_MAX = 32 << 10, /* the memory of a connection: http.c */
};

/* The listener of this HTTP thread: recv() has no other argument to find it by. tools/tidy knows it
 * by name. */
static _Thread_local struct gl_listener *filter_listener;

/* ---- by descriptor ---- */

static void grow_table(struct gl_listener *listener, size_t n)
{
    struct gl_recv_filter **more = gl_mem_alloc(n * sizeof(struct gl_recv_filter *));

    for (size_t i = 0; i < n; i++) {
        more[i] = i < listener->filters_n ? listener->filters[i] : NULL;
    }
    gl_mem_free((void *)listener->filters);
    listener->filters = more;
    listener->filters_n = n;
}

void gl_recv_filter_open(struct gl_listener *listener, struct gl_recv_filter *in, int fd)
{
    *in = (struct gl_recv_filter){.fd = fd};
    filter_listener = listener;
    if ((size_t)fd >= listener->filters_n) {
        grow_table(listener, ((size_t)fd + 1) * 2);
    }
    listener->filters[fd] = in;
}

void gl_recv_filter_close(struct gl_listener *listener, struct gl_recv_filter *in)
{
    listener->filters[in->fd] = NULL;
    gl_buf_done(&in->held);
}

static struct gl_recv_filter *find_filter(int fd)
{
    const struct gl_listener *listener = filter_listener;

    return listener != NULL && fd >= 0 && (size_t)fd < listener->filters_n ? listener->filters[fd]
                                                                           : NULL;
}

/* ---- refusing ---- */

const char *gl_recv_filter_begin(struct gl_recv_filter *in)
{
    in->calls_n++;
    if (in->calls_n <= in->framing.heads_n) {
        /* Its headers were valid; its body, which may have arrived with them, need not be. */
        return in->calls_n == in->framing.begun_n ? in->framing.why : NULL;
    }
    return in->framing.why != NULL ? in->framing.why
                                   : "the framing of this request was not checked";
}

void gl_recv_filter_answer(int fd, const char *status, const char *code, const char *message)
{
    char body[256], text[640];
    int body_n = snprintf(body, sizeof(body),
                          "{\"error\":{\"code\":\"%s\",\"message\":\"%s\","
                          "\"request_id\":\"0000000000000000\"}}\n",
                          code, message);
    int n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
                     "Glia-Request-Id: 0000000000000000\r\nContent-Length: %d\r\n\r\n%s",
                     status, body_n, body);

    (void)send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL); /* best effort */
}

/* Closing a connection with unread bytes resets it, and the answer may be lost: read them first. */
static void drain(int fd)
{
    char bytes[16 << 10];
    ssize_t n;

    for (size_t all = 0; all < DRAIN_BYTES_MAX; all += (size_t)n) {
        n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, NULL, NULL);
        if (n <= 0) {
            return;
        }
    }
}

/* A dummy request in place of the refused headers, which reaches the handler in its turn. */
static ssize_t replace_head(struct gl_recv_filter *in, char *bytes, size_t n)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    in->is_ended = true;
    if (n < sizeof(head) - 1) { /* no room even for that */
        gl_recv_filter_answer(in->fd, "400 Bad Request", "invalid", in->framing.why);
        return 0;
    }
    memcpy(bytes, head, sizeof(head) - 1);
    return sizeof(head) - 1;
}

static ssize_t deliver_refusal(struct gl_recv_filter *in, char *bytes, size_t n)
{
    const struct gl_framing *f = &in->framing;

    if (in->is_ended) {
        return 0;
    }
    if (gl_framing_is_in_head(f)) {
        return replace_head(in, bytes, n);
    }
    if (in->calls_n < f->begun_n) { /* earlier requests are still being answered: wait */
        errno = EAGAIN;
        return -1;
    }
    in->is_ended = true;
    gl_recv_filter_answer(in->fd, "400 Bad Request", "invalid", f->why);
    return 0;
}

/* ---- reading ---- */

/* Headers that arrive in several pieces wait here until they are complete. `good` bytes are new. */
static void buffer_head(struct gl_recv_filter *in, const char *bytes, size_t good)
{
    const struct gl_framing *f = &in->framing;
    bool is_in_head = gl_framing_is_in_head(f);

    /* If the headers were incomplete before and still are, they grow; otherwise the incomplete ones
     * began in this piece. */
    in->head_n = !is_in_head                          ? 0
                 : in->was_in_head && f->head_at == 0 ? in->head_n + good
                                                      : good - f->head_at;
    in->was_in_head = is_in_head;
    gl_buf_add(&in->held, bytes, good);
    if (f->why != NULL) {
        in->held.n -= in->head_n;
        in->head_n = 0;
    }
}

/* How many held bytes may be delivered. That includes headers too large for libmicrohttpd, which
 * refuses them itself. */
static size_t deliver(struct gl_recv_filter *in, char *bytes, size_t n)
{
    size_t ready = in->head_n > HEAD_BYTES_MAX ? in->held.n : in->held.n - in->head_n;

    ready = ready < n ? ready : n;
    if (ready > 0) {
        memcpy(bytes, in->held.p, ready);
        in->held.n -= ready;
        memmove(in->held.p, in->held.p + ready, in->held.n);
        in->head_n = in->head_n < in->held.n ? in->head_n : in->held.n;
    }
    if (in->held.n == 0) {
        gl_buf_done(&in->held); /* most connections are idle */
    }
    return ready;
}

static size_t filter_bytes(struct gl_recv_filter *in, char *bytes, size_t got, size_t n)
{
    size_t good = gl_framing_feed(&in->framing, bytes, got);

    if (good < got) {
        drain(in->fd);
    } else if (in->held.n == 0 && !gl_framing_is_in_head(&in->framing)) {
        in->was_in_head = false;
        return got; /* complete, as in nearly all cases */
    }
    buffer_head(in, bytes, good);
    return deliver(in, bytes, n);
}

/* libmicrohttpd takes fewer than `n` bytes to mean "nothing more has arrived" and reads again at
 * the next event, so return fewer only if the socket is empty. */
ssize_t gl_recv_filter_recv(int fd, void *bytes, size_t n, int flags)
{
    struct gl_recv_filter *in = find_filter(fd);
    size_t ready = in != NULL ? deliver(in, bytes, n) : 0;
    bool is_empty = false;

    while (ready < n && !is_empty && (in == NULL || in->framing.why == NULL)) {
        ssize_t got = recvfrom(fd, (char *)bytes + ready, n - ready, flags, NULL, NULL);

        if (in == NULL || got <= 0) {
            return ready > 0 ? (ssize_t)ready : got;
        }
        is_empty = (size_t)got < n - ready;
        ready += filter_bytes(in, (char *)bytes + ready, (size_t)got, n - ready);
        is_empty = is_empty && ready > 0; /* otherwise the socket reports that itself */
    }
    if (ready == 0) {
        return deliver_refusal(in, bytes, n);
    }
    if (in->framing.why != NULL) {
        (void)shutdown(fd, SHUT_RD); /* causes an event: the refusal follows */
    }
    return (ssize_t)ready;
}
