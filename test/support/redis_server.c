#include "support/redis_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/port.h"

/* A sentinel that has itself stood still for two seconds decides nothing for half a minute. */
enum { PATIENCE_MS = 120000, PIECE_BYTES = 16384 };

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(void)
{
    (void)poll(NULL, 0, 2);
}

static void write_config(struct redis_server *s)
{
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/redis.conf", s->folder.path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(
        f,
        "bind 127.0.0.1\nport %u\ndir %s\nsave \"\"\nappendonly yes\nappendfsync everysec\n"
        "databases 64\nlogfile redis.log\nprotected-mode no\nenable-debug-command yes\n"
        "repl-diskless-sync-delay 0\n",
        s->tls ? 0 : s->port, s->folder.path);
    if (s->tls) {
        (void)fprintf(f,
                      "tls-port %u\ntls-cert-file server.pem\ntls-key-file server.key\n"
                      "tls-ca-cert-file ca.pem\ntls-auth-clients optional\ntls-replication yes\n",
                      s->port);
    }
    (void)fprintf(f, "%s\n", s->args);
    assert_int_equal(fclose(f), 0);
}

/* An ended parent takes it along: nothing is left behind by a test that crashes. */
static void spawn(struct redis_server *s)
{
    char conf[300];
    (void)snprintf(conf, sizeof(conf), "%s/redis.conf", s->folder.path);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpgid(0, 0);
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, 0);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        if (chdir(s->folder.path) == 0) {
            (void)execlp("redis-server", "redis-server", conf, s->sentinel ? "--sentinel" : NULL,
                         (char *)NULL);
        }
        _exit(127);
    }
    (void)setpgid(s->pid, s->pid);
}

static int connect_to(const struct redis_server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(s->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* One line by redis-cli, for servers that want TLS. */
static gl_str do_by_cli(struct redis_server *s, struct gl_arena *a, const char *line)
{
    char command[2048], *out = gl_arena_alloc(a, PIECE_BYTES);
    (void)snprintf(command, sizeof(command),
                   "redis-cli --tls --cacert %s/ca.pem -p %u %s 2>/dev/null", s->folder.path,
                   s->port, line);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(out, 1, PIECE_BYTES - 1, f);
    (void)pclose(f);
    return (gl_str){out, n};
}

/* Nothing if it does not answer within so many seconds. */
static gl_str try_do(struct redis_server *s, struct gl_arena *a, const char *line, int seconds)
{
    if (s->tls) {
        return do_by_cli(s, a, line);
    }
    int fd = connect_to(s);
    if (fd < 0) {
        return (gl_str){0};
    }
    char *out = gl_arena_alloc(a, PIECE_BYTES);
    struct timeval t = {.tv_sec = seconds};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    (void)!write(fd, line, strlen(line));
    (void)!write(fd, "\r\n", 2);
    ssize_t n = read(fd, out, PIECE_BYTES - 1);
    (void)close(fd);
    return (gl_str){out, n > 0 ? (size_t)n : 0};
}

int redis_server_send(struct redis_server *s, const char *line)
{
    int fd = connect_to(s);
    assert_true(fd >= 0);
    (void)!write(fd, line, strlen(line));
    (void)!write(fd, "\r\n", 2);
    return fd;
}

gl_str redis_server_do(struct redis_server *s, struct gl_arena *a, const char *line)
{
    /* FLUSHALL of a million rows takes its time on a busy machine. */
    gl_str answer = try_do(s, a, line, 60);
    assert_true(answer.n > 0);
    return answer;
}

static void until(struct redis_server *s, const char *line, const char *text, bool has)
{
    int64_t end = now_ms() + PATIENCE_MS;
    struct gl_arena a = {0};
    for (;;) {
        gl_str answer = try_do(s, &a, line, 5);
        bool found = memmem(answer.p != NULL ? answer.p : "", answer.n, text, strlen(text)) != NULL;
        if (found == has && answer.n > 0) {
            break;
        }
        assert_true(now_ms() < end);
        gl_arena_reset(&a);
        nap();
    }
    gl_arena_done(&a);
}

void redis_server_until(struct redis_server *s, const char *line, const char *text)
{
    until(s, line, text, true);
}

void redis_server_until_not(struct redis_server *s, const char *line, const char *text)
{
    until(s, line, text, false);
}

void redis_server_again(struct redis_server *s)
{
    spawn(s);
    int64_t end = now_ms() + PATIENCE_MS;
    struct gl_arena a = {0};
    for (;;) { /* A password or a time of loading does not matter: it answers. */
        gl_str answer = try_do(s, &a, "PING", 5);
        if (answer.n > 0 && memmem(answer.p, answer.n, "LOADING", 7) == NULL) {
            break;
        }
        assert_int_equal(waitpid(s->pid, NULL, WNOHANG), 0); /* it lives */
        assert_true(now_ms() < end);
        gl_arena_reset(&a);
        nap();
    }
    gl_arena_done(&a);
}

static void start(struct redis_server *s, const char *args)
{
    s->port = test_port();
    (void)snprintf(s->args, sizeof(s->args), "%s", args);
    write_config(s);
    redis_server_again(s);
}

void redis_server_start(struct redis_server *s, const char *args)
{
    *s = (struct redis_server){0};
    test_folder_make(&s->folder);
    start(s, args);
}

void redis_server_start_sentinel(struct redis_server *s, uint16_t primary_port, const char *args)
{
    *s = (struct redis_server){.sentinel = true, .port = test_port()};
    test_folder_make(&s->folder);
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/redis.conf", s->folder.path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f,
                  "bind 127.0.0.1\nport %u\ndir %s\nlogfile redis.log\nprotected-mode no\n"
                  "sentinel monitor mymaster 127.0.0.1 %u 2\n"
                  "sentinel down-after-milliseconds mymaster 1000\n"
                  "sentinel failover-timeout mymaster 4000\n%s\n",
                  s->port, s->folder.path, primary_port, args);
    assert_int_equal(fclose(f), 0);
    redis_server_again(s);
}

static void make_certificates(struct redis_server *s)
{
    static const char script[] =
        "cd '%s' && exec >/dev/null 2>&1 && "
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        "-subj '/CN=Test CA' -keyout ca.key -out ca.pem && "
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost "
        "-keyout server.key -out server.csr && "
        "printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\\n' > ext && "
        "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
        "-extfile ext -out server.pem";
    char command[2048];
    (void)snprintf(command, sizeof(command), script, s->folder.path);
    assert_int_equal(system(command), 0);
}

void redis_server_start_tls(struct redis_server *s, const char *args)
{
    *s = (struct redis_server){.tls = true};
    test_folder_make(&s->folder);
    make_certificates(s);
    start(s, args);
}

/* With its children, which may be rewriting its files: the folder is not touched any more. */
void redis_server_kill(struct redis_server *s)
{
    if (s->pid > 0) {
        (void)kill(-s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
        for (int i = 0; i < 250 && kill(-s->pid, 0) == 0; i++) {
            nap();
        }
        s->pid = 0;
    }
}

void redis_server_stop(struct redis_server *s)
{
    redis_server_kill(s);
    test_folder_remove(&s->folder);
}

void redis_server_empty(struct redis_server *s)
{
    char command[700];
    redis_server_kill(s);
    (void)snprintf(command, sizeof(command), "rm -rf '%s/appendonlydir' '%s/dump.rdb'",
                   s->folder.path, s->folder.path);
    assert_int_equal(system(command), 0);
    redis_server_again(s);
}

void redis_server_freeze(struct redis_server *s)
{
    assert_int_equal(kill(s->pid, SIGSTOP), 0);
}

void redis_server_thaw(struct redis_server *s)
{
    assert_int_equal(kill(s->pid, SIGCONT), 0);
}
