/* Nodes and keepers of different releases: steps continue, and features that only one of them has
 * wait. */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "contract/worker_world.h"
#include "os/fs.h"
#include "os/sock.h"
#include "port/keeper_protocol.h"

/* ---- one end of a connection ---- */

struct line {
    int fd;
    struct gl_buf in;
    size_t used;
    struct gl_arena arena;
};

static void say(int fd, const struct gl_keeper_msg *m)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_keeper_encode(m, &out);
    assert_int_equal(send(fd, out.p, out.n, MSG_NOSIGNAL), (ssize_t)out.n);
}

/* False: the other side closed the connection. */
static bool hear(struct line *l, struct gl_keeper_msg *ret)
{
    char bytes[65536];
    for (;;) {
        gl_str message, rest = {.p = l->in.p + l->used, .n = l->in.n - l->used};
        size_t used = 0;
        assert_int_equal(gl_keeper_frame(rest, &message, &used, NULL), 0);
        if (used > 0) {
            l->used += used;
            assert_int_equal(gl_keeper_decode(ret, message, &l->arena, NULL), 0);
            return true;
        }
        ssize_t n = recv(l->fd, bytes, sizeof(bytes), 0);
        if (n <= 0) {
            return false;
        }
        gl_buf_add(&l->in, bytes, (size_t)n);
    }
}

static void hang_up(struct line *l)
{
    gl_fs_closep(&l->fd);
    gl_buf_done(&l->in);
    gl_arena_done(&l->arena);
}

/* ---- a keeper of the previous release ---- */

/* It has one attempt as long as the file `busy` exists; it is never asked to start another. */
static void serve_old(struct line *l, const char *busy)
{
    struct gl_keeper_msg m;
    while (hear(l, &m)) {
        struct gl_keeper_msg info = {.type = GL_KEEPER_INFO, .req = m.req, .start = m.start};
        struct gl_keeper_msg reply = {.type = GL_KEEPER_REPLY, .req = m.req};
        struct gl_keeper_msg welcome = {.type = GL_KEEPER_WELCOME,
                                        .version_min = 2,
                                        .version_max = 2,
                                        .pid = (uint64_t)getpid(),
                                        .start = {.epoch = GL_S("old")}};
        if (m.type == GL_KEEPER_HELLO) {
            say(l->fd, &welcome);
        } else if (m.type == GL_KEEPER_LIST) {
            info.start.key = (struct gl_attempt_key){GL_S("default"), GL_S("J"), GL_S("x")};
            if (access(busy, F_OK) == 0) {
                say(l->fd, &info);
            }
            say(l->fd, &reply);
        } else {
            _exit(9);
        }
    }
}

static pid_t fork_old_keeper(struct exec_world *w, const char *busy)
{
    char path[PATH_MAX];
    int listener = -1, ready[2];
    assert_int_equal(pipe(ready), 0);
    snprintf(path, sizeof(path), "%s/keeper", w->data_dir);
    assert_int_equal(gl_fs_mkdirs(path, NULL), 0);
    snprintf(path, sizeof(path), "%s/keeper/sock", w->data_dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { /* the listener is the known peer */
        if (gl_sock_listen(path, &listener, NULL) < 0) {
            _exit(8);
        }
        (void)!write(ready[1], "x", 1);
        (void)poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, PATIENCE_S * 1000);
        struct line l = {.fd = accept(listener, NULL, NULL)};
        serve_old(&l, busy);
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void a_worker_waits_until_an_old_keeper_has_gone(void **state)
{
    struct exec_world *w = *state;
    static struct exec_world next; /* too large for some stacks */
    char busy[PATH_MAX];
    int status;
    struct exec_question q;
    const char *const argv[] = {"true", NULL};
    struct exec_options options = {argv, "a:attempt:1", .token = 1, .is_worker = true};
    next = (struct exec_world){.maker = w->maker, .loop = w->loop};
    test_folder_make(&next.folder);
    next.data_dir = next.folder.path;
    snprintf(busy, sizeof(busy), "%s/busy", next.data_dir);
    assert_int_equal(gl_fs_write(busy, GL_S(""), NULL), 0);
    pid_t old = fork_old_keeper(&next, busy);
    exec_open(&next);
    assert_string_equal(next.epoch, "old");
    for (int i = 0; i < 2; i++) {
        exec_ask_start(&next, &q, options);
        exec_wait_answer(&q);
        assert_int_equal(q.req.status, GL_E_UNAVAILABLE);
        assert_non_null(strstr(q.req.why.text, "older release"));
        assert_int_equal(exec_list(&next), 1);
    }
    assert_int_equal(waitpid(old, &status, WNOHANG), 0); /* it still has an attempt */
    /* Now it has none, and makes way. */
    assert_int_equal(unlink(busy), 0);
    exec_ask_start(&next, &q, options);
    exec_wait_answer(&q);
    while (next.ups < 2) {
        exec_wait(&next);
    }
    assert_int_equal(waitpid(old, &status, 0), old);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(exec_start(&next, options), 0);
    assert_int_equal(exec_wait_end(&next, "a:attempt:1")->result.exit_code, 0);
    exec_end_keeper(&next);
    gl_arena_done(&next.arena);
}

/* ---- a node of the previous release ---- */

static void an_old_node_gets_of_a_worker_what_it_understands(void **state)
{
    struct exec_world *w = *state;
    struct gl_keeper_msg m;
    char path[PATH_MAX];
    struct worker_end e = worker_run(w, "echo hello; exit 3", (struct exec_options){0});
    const char *second = worker_start(
        w, "while [ ! -e ../../../../../../go ]; do sleep 0.01; done; echo __MN_EVENT__x",
        (struct exec_options){0});
    exec_close(w);
    struct line l = {.fd = -1};
    snprintf(path, sizeof(path), "%s/keeper/sock", w->data_dir);
    assert_int_equal(gl_sock_connect(path, &l.fd, NULL), 0);
    say(l.fd, &(struct gl_keeper_msg){.type = GL_KEEPER_HELLO,
                                      .version_min = 1,
                                      .version_max = 2,
                                      .incarnation = ++w->incarnation});
    assert_true(hear(&l, &m));
    assert_int_equal(m.type, GL_KEEPER_WELCOME);
    assert_int_equal(m.version_min, 2);
    assert_true(hear(&l, &m));
    assert_int_equal(m.type, GL_KEEPER_ENDED);
    assert_int_equal(m.result.exit_code, 3);
    assert_int_equal(m.output_source, GL_KEEPER_NO_OUTPUT);
    assert_int_equal(m.worker.out.n, 0);
    snprintf(path, sizeof(path), "%s/go", w->data_dir);
    assert_int_equal(gl_fs_write(path, GL_S(""), NULL), 0);
    assert_true(hear(&l, &m)); /* the end of the other attempt, and not its line */
    assert_int_equal(m.type, GL_KEEPER_ENDED);
    assert_true(gl_str_is(m.start.key.attempt, second));
    hang_up(&l);
    /* A newer node gets all of it. */
    w->ends_n = 0;
    exec_open(w);
    e = worker_read(w, exec_wait_end(w, e.end->attempt));
    assert_true(gl_str_eq(e.output.stdout_text, GL_S("hello\n")));
    (void)exec_wait_end(w, second);
    assert_int_equal(w->lines_n, 1);
    assert_string_equal(w->lines[0].text, "__MN_EVENT__x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, worker_open_world, exec_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_waits_until_an_old_keeper_has_gone),
        TEST(an_old_node_gets_of_a_worker_what_it_understands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
