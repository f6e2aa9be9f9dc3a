/* postgres_server.h - a private PostgreSQL server: its own data folder, a free port of this
 * machine, gone at the end. Servers never run as root: then the account `postgres` (or `nobody`) is
 * used. */
#ifndef GL_TEST_POSTGRES_SERVER_H
#define GL_TEST_POSTGRES_SERVER_H

#include <stdint.h>
#include <sys/types.h>

#include "support/folder.h"

enum { POSTGRES_SETTINGS_MAX = 16 };

struct postgres_server {
    struct test_folder folder;
    char data[300];
    int port;
    pid_t pid;                                       /* 0: not running */
    const char *settings[POSTGRES_SETTINGS_MAX + 1]; /* "fsync=off", ...; ends with NULL */
};

/* Make an empty cluster and start it; `settings` (or NULL) stay borrowed. */
void postgres_server_start(struct postgres_server *s, const char *const *settings);
/* A copy of another one that is running, following it (a standby). */
void postgres_server_follow(struct postgres_server *s, const struct postgres_server *primary);
void postgres_server_stop(struct postgres_server *s); /* and remove everything */

/* As kill -9 of everything would. */
void postgres_server_kill(struct postgres_server *s);
void postgres_server_halt(struct postgres_server *s);   /* orderly, connections are cut */
void postgres_server_again(struct postgres_server *s);  /* start it with what is in its folder */
void postgres_server_empty(struct postgres_server *s);  /* throw that away, while it does not run */
void postgres_server_freeze(struct postgres_server *s); /* SIGSTOP to all its processes */
void postgres_server_thaw(struct postgres_server *s);

/* Run SQL as the owner of the server, and wait; the first column of the first row as a number, or
 * 0. It must succeed. Each connection is new. */
int64_t postgres_server_sql(const struct postgres_server *s, const char *database, const char *fmt,
                            ...) __attribute__((format(printf, 3, 4)));

/* A connection of a stranger, with a transaction that is open: it has run `sql`. */
struct postgres_stranger;
struct postgres_stranger *postgres_stranger_new(const struct postgres_server *s,
                                                const char *database, const char *sql);
void postgres_stranger_free(struct postgres_stranger *x);   /* rolls back */
void postgres_stranger_commit(struct postgres_stranger *x); /* and is gone */

#endif
