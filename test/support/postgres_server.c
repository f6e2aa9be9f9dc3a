#include "support/postgres_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "support/port.h"

enum { START_TRIES = 5000, STOP_TRIES = 1000, PAUSE_MS = 20, PORT_TRIES = 8, CHILDREN_MAX = 128 };

/* ---- processes ---- */

/* Where the distribution keeps the programs of the newest version. */
static void program(char *buf, size_t bytes, const char *name)
{
    glob_t found;
    char pattern[64];
    (void)snprintf(pattern, sizeof(pattern), "/usr/lib/postgresql/*/bin/%s", name);
    if (glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0) {
        (void)snprintf(buf, bytes, "%s", found.gl_pathv[found.gl_pathc - 1]);
    } else {
        (void)snprintf(buf, bytes, "%s", name); /* by PATH */
    }
    globfree(&found);
}

static const struct passwd *account(void)
{
    const struct passwd *who = getuid() == 0 ? getpwnam("postgres") : NULL;
    return who != NULL || getuid() != 0 ? who : getpwnam("nobody");
}

static void become_unprivileged(void)
{
    const struct passwd *who = account();
    if (who != NULL &&
        (setgroups(0, NULL) != 0 || setgid(who->pw_gid) != 0 || setuid(who->pw_uid) != 0)) {
        _exit(126);
    }
}

static pid_t spawn(const char *const *argv, const char *log)
{
    pid_t parent = getpid();
    (void)fflush(NULL);
    pid_t pid = fork();
    GL_ASSERT(pid >= 0);
    if (pid > 0) {
        return pid;
    }
    become_unprivileged();
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* a test that dies leaves no server */
    if (getppid() != parent) {
        _exit(125);
    }
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)dup2(in, 0);
    (void)dup2(out, 1);
    (void)dup2(out, 2);
    (void)setsid();
    (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static void say_log(const struct postgres_server *s)
{
    char command[400];
    (void)snprintf(command, sizeof(command), "tail -n 20 %s/log >&2", s->folder.path);
    (void)!system(command);
}

static void run(struct postgres_server *s, const char *const *argv)
{
    char log[320];
    int status = 0;
    (void)snprintf(log, sizeof(log), "%s/log", s->folder.path);
    pid_t pid = spawn(argv, log);
    GL_ASSERT(waitpid(pid, &status, 0) == pid);
    if (status != 0) {
        say_log(s);
    }
    GL_ASSERT(status == 0);
}

/* ---- SQL ---- */

struct pq {
    void *handle;
    PGconn *(*connect)(const char *conninfo);
    ConnStatusType (*status)(const PGconn *c);
    char *(*error)(const PGconn *c);
    PGresult *(*exec)(PGconn *c, const char *sql);
    ExecStatusType (*result_status)(const PGresult *r);
    int (*rows)(const PGresult *r);
    char *(*value)(const PGresult *r, int row, int column);
    void (*clear)(PGresult *r);
    void (*finish)(PGconn *c);
};

static void find(const struct pq *pq, const char *name, void *ret)
{
    void *address = dlsym(pq->handle, name);
    GL_ASSERT(address != NULL);
    memcpy(ret, &address, sizeof(address));
}

static void load(struct pq *pq)
{
    pq->handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_NODELETE);
    GL_ASSERT(pq->handle != NULL);
    find(pq, "PQconnectdb", &pq->connect);
    find(pq, "PQstatus", &pq->status);
    find(pq, "PQerrorMessage", &pq->error);
    find(pq, "PQexec", &pq->exec);
    find(pq, "PQresultStatus", &pq->result_status);
    find(pq, "PQntuples", &pq->rows);
    find(pq, "PQgetvalue", &pq->value);
    find(pq, "PQclear", &pq->clear);
    find(pq, "PQfinish", &pq->finish);
}

static PGconn *try_connect(const struct postgres_server *s, const struct pq *pq,
                           const char *database)
{
    char info[200];
    (void)snprintf(info, sizeof(info),
                   "host=127.0.0.1 port=%d user=postgres dbname=%s connect_timeout=10 "
                   "application_name=test options='-c client_min_messages=warning'",
                   s->port, database);
    PGconn *c = pq->connect(info);
    if (pq->status(c) == CONNECTION_OK) {
        return c;
    }
    pq->finish(c);
    return NULL;
}

int64_t postgres_server_sql(const struct postgres_server *s, const char *database, const char *fmt,
                            ...)
{
    char sql[4096];
    struct pq pq;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(sql, sizeof(sql), fmt, args);
    va_end(args);
    GL_ASSERT(n > 0 && (size_t)n < sizeof(sql));
    load(&pq);
    PGconn *c = try_connect(s, &pq, database);
    GL_ASSERT(c != NULL);
    PGresult *r = pq.exec(c, sql);
    ExecStatusType status = pq.result_status(r);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        (void)fprintf(stderr, "%s: %s", sql, pq.error(c));
    }
    GL_ASSERT(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK);
    int64_t value = pq.rows(r) > 0 ? strtoll(pq.value(r, 0, 0), NULL, 10) : 0;
    pq.clear(r);
    pq.finish(c);
    (void)dlclose(pq.handle);
    return value;
}

struct postgres_stranger {
    struct pq pq;
    PGconn *c;
};

static void exec(struct postgres_stranger *x, const char *sql)
{
    PGresult *r = x->pq.exec(x->c, sql);
    ExecStatusType status = x->pq.result_status(r);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        (void)fprintf(stderr, "%s: %s", sql, x->pq.error(x->c));
    }
    GL_ASSERT(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK);
    x->pq.clear(r);
}

struct postgres_stranger *postgres_stranger_new(const struct postgres_server *s,
                                                const char *database, const char *sql)
{
    struct postgres_stranger *x = gl_mem_alloc(sizeof(*x));
    load(&x->pq);
    x->c = try_connect(s, &x->pq, database);
    GL_ASSERT(x->c != NULL);
    exec(x, "BEGIN");
    exec(x, sql);
    return x;
}

void postgres_stranger_commit(struct postgres_stranger *x)
{
    exec(x, "COMMIT");
    postgres_stranger_free(x);
}

void postgres_stranger_free(struct postgres_stranger *x)
{
    x->pq.finish(x->c);
    (void)dlclose(x->pq.handle);
    gl_mem_free(x);
}

/* ---- the server ---- */

/* Another test may have been given the same port: is it our folder that answers? */
static bool is_ours(const struct postgres_server *s, const struct pq *pq, PGconn *c)
{
    PGresult *r = pq->exec(c, "SHOW data_directory");
    bool ours = pq->rows(r) == 1 && strcmp(pq->value(r, 0, 0), s->data) == 0;
    pq->clear(r);
    pq->finish(c);
    return ours;
}

/* False: it has ended by itself, or another one has its port. */
static bool wait_until_ready(struct postgres_server *s)
{
    struct pq pq;
    bool ready = false, ended = false;
    load(&pq);
    for (int i = 0; i < START_TRIES && !ready && !ended; i++) {
        int status;
        PGconn *c = try_connect(s, &pq, "postgres");
        ready = c != NULL && is_ours(s, &pq, c);
        ended = !ready && waitpid(s->pid, &status, WNOHANG) == s->pid;
        if (!ready && !ended) {
            (void)poll(NULL, 0, PAUSE_MS);
        }
    }
    (void)dlclose(pq.handle);
    s->pid = ended ? 0 : s->pid;
    return ready;
}

static bool try_start(struct postgres_server *s)
{
    char path[300], port[32], log[320];
    const char *argv[16 + 2 * POSTGRES_SETTINGS_MAX];
    size_t n = 0;
    GL_ASSERT(s->pid == 0);
    program(path, sizeof(path), "postgres");
    (void)snprintf(port, sizeof(port), "%d", s->port);
    (void)snprintf(log, sizeof(log), "%s/log", s->folder.path);
    const char *fixed[] = {path,
                           "-D",
                           s->data,
                           "-p",
                           port,
                           "-c",
                           "listen_addresses=127.0.0.1",
                           "-c",
                           "unix_socket_directories=",
                           "-c",
                           "max_connections=80"};
    for (; n < GL_COUNT(fixed); n++) {
        argv[n] = fixed[n];
    }
    for (size_t i = 0; s->settings[i] != NULL; i++) {
        argv[n++] = "-c";
        argv[n++] = s->settings[i];
    }
    argv[n] = NULL;
    s->pid = spawn(argv, log);
    return wait_until_ready(s);
}

void postgres_server_again(struct postgres_server *s)
{
    bool started = try_start(s);
    if (!started) {
        say_log(s);
    }
    GL_ASSERT(started);
}

/* The first time, with a port of its own: somebody may have been faster with the one we found. */
static void start_somewhere(struct postgres_server *s)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        s->port = test_port();
        if (try_start(s)) {
            return;
        }
        postgres_server_kill(s);
    }
    say_log(s);
    GL_ASSERT(s->pid > 0);
}

static void make_folder(struct postgres_server *s, const char *const *settings)
{
    *s = (struct postgres_server){.pid = 0};
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++) {
        GL_ASSERT(i < POSTGRES_SETTINGS_MAX);
        s->settings[i] = settings[i];
    }
    test_folder_make(&s->folder);
    (void)snprintf(s->data, sizeof(s->data), "%s/data", s->folder.path);
    const struct passwd *who = account();
    GL_ASSERT(who == NULL || chown(s->folder.path, who->pw_uid, who->pw_gid) == 0);
}

static void make_cluster(struct postgres_server *s)
{
    char path[300];
    program(path, sizeof(path), "initdb");
    run(s, (const char *const[]){path, "-D", s->data, "-U", "postgres", "-A", "trust", "-N",
                                 "--locale=C", "-E", "UTF8", NULL});
}

void postgres_server_start(struct postgres_server *s, const char *const *settings)
{
    make_folder(s, settings);
    make_cluster(s);
    start_somewhere(s);
}

void postgres_server_follow(struct postgres_server *s, const struct postgres_server *primary)
{
    char path[300], port[32];
    make_folder(s, primary->settings);
    program(path, sizeof(path), "pg_basebackup");
    (void)snprintf(port, sizeof(port), "%d", primary->port);
    run(s, (const char *const[]){path, "-D", s->data, "-h", "127.0.0.1", "-p", port, "-U",
                                 "postgres", "-R", "-X", "stream", "-c", "fast", "-N", NULL});
    start_somewhere(s);
}

static void wait_for_end(struct postgres_server *s)
{
    int status;
    for (int i = 0; i < STOP_TRIES && s->pid > 0; i++) {
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            return;
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
    postgres_server_kill(s);
}

void postgres_server_halt(struct postgres_server *s)
{
    if (s->pid > 0) {
        (void)kill(s->pid, SIGINT);
        wait_for_end(s);
    }
}

void postgres_server_stop(struct postgres_server *s)
{
    if (s->pid > 0) {
        (void)kill(s->pid, SIGQUIT); /* nothing of it is needed any more */
        wait_for_end(s);
    }
    test_folder_remove(&s->folder);
}

/* Each of its processes is a child of the first, which is stopped so that no new one comes. */
static size_t find_children(const struct postgres_server *s, pid_t ret[static CHILDREN_MAX])
{
    char path[64];
    long child;
    size_t n = 0;
    (void)kill(s->pid, SIGSTOP);
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)s->pid, (int)s->pid);
    FILE *f = fopen(path, "re");
    GL_ASSERT(f != NULL);
    while (fscanf(f, "%ld", &child) == 1) {
        GL_ASSERT(n < CHILDREN_MAX);
        ret[n++] = (pid_t)child;
    }
    (void)fclose(f);
    return n;
}

static void signal_all(const struct postgres_server *s, int signal)
{
    pid_t children[CHILDREN_MAX];
    size_t n = find_children(s, children);
    for (size_t i = 0; i < n; i++) {
        (void)kill(children[i], signal);
    }
    (void)kill(s->pid, signal);
}

/* One that waits for its disk is not gone at once, and keeps the memory the next server wants. */
void postgres_server_kill(struct postgres_server *s)
{
    int status, gone[CHILDREN_MAX];
    if (s->pid > 0) {
        pid_t children[CHILDREN_MAX];
        size_t n = find_children(s, children);
        for (size_t i = 0; i < n; i++) {
            gone[i] = (int)syscall(SYS_pidfd_open, children[i], 0);
        }
        signal_all(s, SIGKILL);
        GL_ASSERT(waitpid(s->pid, &status, 0) == s->pid);
        s->pid = 0;
        for (size_t i = 0; i < n; i++) {
            struct pollfd end = {.fd = gone[i], .events = POLLIN};
            GL_ASSERT(gone[i] < 0 || poll(&end, 1, STOP_TRIES * PAUSE_MS) == 1);
            (void)close(gone[i]);
        }
    }
}

void postgres_server_freeze(struct postgres_server *s)
{
    signal_all(s, SIGSTOP);
}

void postgres_server_thaw(struct postgres_server *s)
{
    signal_all(s, SIGCONT);
}

void postgres_server_empty(struct postgres_server *s)
{
    GL_ASSERT(s->pid == 0);
    run(s, (const char *const[]){"rm", "-rf", s->data, NULL});
    make_cluster(s);
}
