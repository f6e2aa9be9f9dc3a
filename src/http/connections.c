/* connections.c - limits on connections: how many per client, and how long a request may take.
 *
 * One client (a process on the unix socket, an address on TCP) can have at most three quarters of a
 * listener's connections, so that a broken client cannot lock out the others. libmicrohttpd closes
 * connections without traffic; this file also closes those whose request arrives too slowly. */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "http/http_call.h"
#include "http/recv_filter.h"
#include "os/sock.h"

enum {
    ARRIVAL_MS_MAX = 30000, /* limit from a request's first line to its last byte */
    ARGUMENTS_MAX = 64,     /* arguments of a query; more would not fit a connection's memory */
    OTHER_FILES = 256,      /* descriptors reserved for everything else */
};

struct client_connection {
    struct gl_link link;
    struct gl_listener *listener;
    int fd;
    uint64_t peer;
    struct gl_recv_filter filter;
    int64_t due_ms; /* when its request must be complete; INT64_MAX: it is */
};

static struct client_connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

/* Identifies the client for the limit per client. */
static uint64_t peer_of(const struct gl_listener *d, int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t n = sizeof(address);
    uid_t uid;
    pid_t pid;

    if (!d->is_tcp) {
        return gl_sock_peer(fd, &uid, &pid, NULL) == 0 ? (uint64_t)pid : 0;
    }
    if (getpeername(fd, (struct sockaddr *)&address, &n) < 0) {
        return 0;
    }
    if (address.ss_family == AF_INET6) {
        const struct in6_addr *a = &((struct sockaddr_in6 *)&address)->sin6_addr;

        return gl_str_hash((gl_str){.p = (const char *)a, .n = sizeof(*a)});
    }
    return ((struct sockaddr_in *)&address)->sin_addr.s_addr;
}

static size_t count_by_peer(const struct gl_http *h, const struct gl_listener *d, uint64_t peer)
{
    size_t n = 0;

    for (const struct gl_link *l = h->connections.next; l != &h->connections; l = l->next) {
        const struct client_connection *g = GL_CONTAINER(l, struct client_connection, link);

        n += g->listener == d && g->peer == peer;
    }
    return n;
}

static void open_connection(struct gl_listener *d, struct MHD_Connection *connection,
                            void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct gl_http *h = d->http;
    struct client_connection *g = gl_mem_alloc(sizeof(*g));
    bool is_one_too_many;

    GL_ASSERT(info != NULL);
    g->listener = d;
    g->fd = info->connect_fd;
    g->peer = peer_of(d, g->fd);
    g->due_ms = gl_http_now_ms() + ARRIVAL_MS_MAX;
    gl_recv_filter_open(d, &g->filter, g->fd);
    pthread_mutex_lock(&h->lock);
    is_one_too_many = count_by_peer(h, d, g->peer) >= h->connections_max / 4 * 3;
    if (gl_list_empty(&h->connections)) {
        pthread_cond_broadcast(&h->wakeup); /* it sleeps while there are no connections */
    }
    gl_list_push(&h->connections, &g->link);
    pthread_mutex_unlock(&h->lock);
    *context = g;
    if (is_one_too_many) {
        (void)shutdown(g->fd, SHUT_RDWR);
    }
}

void gl_connections_on_notify(void *listener, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode what)
{
    struct gl_listener *d = listener;
    struct client_connection *g = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        open_connection(d, connection, context);
    } else if (g != NULL) {
        /* Before the descriptor is closed, so that the housekeeping thread never shuts down a
         * reused one. */
        pthread_mutex_lock(&d->http->lock);
        gl_list_remove(&g->link);
        pthread_mutex_unlock(&d->http->lock);
        gl_recv_filter_close(d, &g->filter);
        gl_mem_free(g);
        *context = NULL;
    }
}

static void set_deadline(struct MHD_Connection *connection, int64_t due_ms)
{
    struct client_connection *g = connection_of(connection);

    if (g != NULL) {
        pthread_mutex_lock(&g->listener->http->lock);
        g->due_ms = due_ms;
        pthread_mutex_unlock(&g->listener->http->lock);
    }
}

/* libmicrohttpd drops a connection without a reply if the arguments do not fit its memory. */
static void refuse_arguments(struct MHD_Connection *connection)
{
    const struct client_connection *g = connection_of(connection);

    if (g != NULL) {
        gl_recv_filter_answer(g->fd, "414 URI Too Long", "limit",
                              "a query can have at most 64 arguments");
        (void)shutdown(g->fd, SHUT_RDWR);
    }
}

void *gl_connections_on_uri(void *listener, const char *uri, struct MHD_Connection *connection)
{
    const char *query = strchr(uri, '?');
    size_t n = query != NULL;

    (void)listener;
    set_deadline(connection, gl_http_now_ms() + ARRIVAL_MS_MAX);
    while (query != NULL && (query = strchr(query + 1, '&')) != NULL) {
        n++;
    }
    if (n > ARGUMENTS_MAX) {
        refuse_arguments(connection);
    }
    return NULL;
}

const char *gl_connections_begin_request(struct gl_http_call *c)
{
    struct client_connection *g = connection_of(c->connection);

    GL_ASSERT(g != NULL);
    return gl_recv_filter_begin(&g->filter);
}

void gl_connections_request_arrived(struct gl_http_call *c)
{
    set_deadline(c->connection, INT64_MAX);
}

void gl_connections_request_answered(struct gl_http_call *c)
{
    /* libmicrohttpd handles idle connections. */
    set_deadline(c->connection, INT64_MAX);
}

bool gl_connections_is_closed(struct MHD_Connection *connection)
{
    const struct client_connection *g = connection_of(connection);
    struct pollfd p = {.fd = g != NULL ? g->fd : -1, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLRDHUP)) != 0;
}

int64_t gl_connections_enforce_timeouts(struct gl_http *h, int64_t now_ms)
{
    int64_t next = INT64_MAX;

    for (struct gl_link *l = h->connections.next; l != &h->connections; l = l->next) {
        struct client_connection *g = GL_CONTAINER(l, struct client_connection, link);

        if (g->due_ms <= now_ms) {
            (void)shutdown(g->fd, SHUT_RDWR); /* its HTTP thread then closes it */
            g->due_ms = INT64_MAX;
        } else if (g->due_ms < next) {
            next = g->due_ms;
        }
    }
    return next;
}

size_t gl_connections_limit(size_t listeners_n)
{
    rlim_t wanted = (rlim_t)(GL_HTTP_CONNECTIONS_MAX * listeners_n + OTHER_FILES);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return GL_HTTP_CONNECTIONS_MAX / 8;
    }
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* always allowed up to the hard limit */
    }
    if (limit.rlim_cur >= wanted) {
        return GL_HTTP_CONNECTIONS_MAX;
    }
    return limit.rlim_cur > 2 * OTHER_FILES ? (size_t)(limit.rlim_cur - OTHER_FILES) / listeners_n
                                            : OTHER_FILES / 4;
}
