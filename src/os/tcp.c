#include "os/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/check.h"
#include "os/fs.h"

struct tcp_address {
    struct sockaddr_storage address;
    socklen_t n;
};

bool gl_tcp_split(gl_str text, gl_str *ret_host, uint16_t *ret_port)
{
    gl_str host = text, digits = {0};
    uint64_t port;

    for (size_t i = text.n; i > 0; i--) {
        if (text.p[i - 1] == ':') {
            host.n = i - 1;
            digits = (gl_str){.p = text.p + i, .n = text.n - i};
            break;
        }
    }
    if (!gl_str_u64(digits, &port) || port > UINT16_MAX || host.n == 0) {
        return false;
    }
    if (host.p[0] == '[') {
        if (host.n < 3 || host.p[host.n - 1] != ']') {
            return false;
        }
        host = (gl_str){.p = host.p + 1, .n = host.n - 2};
    } else if (memchr(host.p, ':', host.n) != NULL) {
        return false; /* an IPv6 address without brackets is ambiguous */
    }
    if (memchr(host.p, '/', host.n) != NULL) {
        return false;
    }
    if (ret_host != NULL) {
        *ret_host = host;
    }
    if (ret_port != NULL) {
        *ret_port = (uint16_t)port;
    }
    return true;
}

static bool resolve(gl_str text, struct tcp_address *ret)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&ret->address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&ret->address;
    char name[INET6_ADDRSTRLEN];
    uint16_t port;
    gl_str host;

    if (!gl_tcp_split(text, &host, &port) || host.n >= sizeof(name)) {
        return false;
    }
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    *ret = (struct tcp_address){0};
    if (inet_pton(AF_INET, strcmp(name, "localhost") == 0 ? "127.0.0.1" : name, &four->sin_addr) ==
        1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        ret->n = sizeof(*four);
        return true;
    }
    if (inet_pton(AF_INET6, name, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        ret->n = sizeof(*six);
        return true;
    }
    return false;
}

int gl_tcp_check(gl_str text, struct gl_why *reterr_why)
{
    struct tcp_address place;

    return resolve(text, &place)
               ? 0
               : gl_why(reterr_why, GL_E_INVALID,
                        "must be an address and a port, like 127.0.0.1:7464 or [::1]:7464");
}

static bool is_local(const struct tcp_address *p)
{
    if (p->address.ss_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&p->address)->sin6_addr);
    }
    return ntohl(((const struct sockaddr_in *)&p->address)->sin_addr.s_addr) >> 24 == 127;
}

static void write_place(const struct tcp_address *p, char ret[static GL_TCP_TEXT_BYTES])
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)&p->address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&p->address;
    char name[INET6_ADDRSTRLEN] = "";

    if (p->address.ss_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &six->sin6_addr, name, sizeof(name));
        (void)snprintf(ret, GL_TCP_TEXT_BYTES, "[%s]:%u", name, ntohs(six->sin6_port));
    } else {
        (void)inet_ntop(AF_INET, &four->sin_addr, name, sizeof(name));
        (void)snprintf(ret, GL_TCP_TEXT_BYTES, "%s:%u", name, ntohs(four->sin_port));
    }
}

static int refuse(int err, gl_str text, struct gl_why *reterr_why)
{
    if (err == EADDRINUSE) {
        return gl_why(reterr_why, GL_R_ADDRESS_IN_USE, "another process is listening on %.*s",
                      GL_STR_ARG(text));
    }
    if (err == EADDRNOTAVAIL) {
        return gl_why(reterr_why, GL_R_NO_SUCH_ADDRESS, "this machine has no address %.*s",
                      GL_STR_ARG(text));
    }
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    return gl_fs_why(reterr_why, err, "listen on", gl_str_c(&a, text));
}

int gl_tcp_listen(gl_str text, int *ret_fd, char ret_text[static GL_TCP_TEXT_BYTES],
                  bool *ret_is_local, struct gl_why *reterr_why)
{
    struct tcp_address place;
    int on = 1;

    if (!resolve(text, &place)) {
        return gl_tcp_check(text, reterr_why);
    }
    GL_CLEANUP(gl_fs_closep)
    int fd = socket(place.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return refuse(errno, text, reterr_why);
    }
    /* Without it the next node could not listen while connections of the previous one linger. [::]
     * means IPv6 only: the socket is exactly what the address says. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (place.address.ss_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
        bind(fd, (const struct sockaddr *)&place.address, place.n) < 0 ||
        listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&place.address, &place.n) < 0) {
        return refuse(errno, text, reterr_why);
    }
    write_place(&place, ret_text);
    *ret_is_local = is_local(&place);
    *ret_fd = gl_fs_take(&fd);
    return 0;
}
