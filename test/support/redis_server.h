/* redis_server.h - a private redis-server: on a free port of the loopback, in a folder of its own,
 * gone with the test, however that ends. */
#ifndef GL_TEST_REDIS_SERVER_H
#define GL_TEST_REDIS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "support/folder.h"

struct redis_server {
    struct test_folder folder;
    uint16_t port;
    bool tls;      /* the port wants TLS; files in `folder`: ca.pem, server.pem, server.key */
    bool sentinel; /* it is one */
    pid_t pid;     /* 0: it does not run */
    char args[1024];
};

/* `args`: further lines of its configuration, or "". By default it keeps a log (everysec). Waits
 * until it answers. */
void redis_server_start(struct redis_server *s, const char *args);
/* The same with TLS only: a certificate for "localhost" and 127.0.0.1 is made. */
void redis_server_start_tls(struct redis_server *s, const char *args);
/* A sentinel that watches the primary "mymaster" at that port; two of them decide. */
void redis_server_start_sentinel(struct redis_server *s, uint16_t primary_port, const char *args);
void redis_server_stop(struct redis_server *s); /* ends it and removes its folder */

void redis_server_kill(struct redis_server *s);   /* kill -9; its data stay */
void redis_server_again(struct redis_server *s);  /* start it again, at the same port */
void redis_server_empty(struct redis_server *s);  /* kill it, remove its data, start it again */
void redis_server_freeze(struct redis_server *s); /* SIGSTOP */
void redis_server_thaw(struct redis_server *s);

/* Run a command, given as one line, by a connection of its own ("SET a b"); the first bytes of the
 * answer as they came. */
gl_str redis_server_do(struct redis_server *s, struct gl_arena *a, const char *line);
/* Send a command and do not wait; close the descriptor when its answer does not matter any more. */
int redis_server_send(struct redis_server *s, const char *line);
/* Until the answer to `line` contains `text`; gives up after two minutes. */
void redis_server_until(struct redis_server *s, const char *line, const char *text);
void redis_server_until_not(struct redis_server *s, const char *line, const char *text);

#endif
