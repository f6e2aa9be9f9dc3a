#include "support/port.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

/* Below what the system gives to outgoing connections. */
enum { FIRST = 12000, END = 30000, TRIES = 1000 };

static bool is_free(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GL_ASSERT(fd >= 0);
    bool free = bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
    (void)close(fd);
    return free;
}

/* A name that only one process can have, and that goes with it. */
static bool take_mark(uint16_t port)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GL_ASSERT(fd >= 0);
    int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "glia-test-port-%u", port);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    bool taken = bind(fd, (struct sockaddr *)&at, bytes) == 0;
    if (!taken) {
        (void)close(fd);
    }
    return taken;
}

uint16_t test_port(void)
{
    for (int i = 0; i < TRIES; i++) {
        uint16_t drawn = 0;
        GL_ASSERT(getrandom(&drawn, sizeof(drawn), 0) == (ssize_t)sizeof(drawn));
        uint16_t port = (uint16_t)(FIRST + drawn % (END - FIRST));
        if (is_free(port) && take_mark(port)) {
            return port;
        }
    }
    (void)fprintf(stderr, "no port of the loopback is free\n");
    abort();
}
