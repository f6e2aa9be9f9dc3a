#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/sock.h"
#include "support/bench.h"

static void talk(struct bench *b, const char *path)
{
    int listener = -1, client = -1;
    assert_int_equal(gl_sock_listen(path, &listener, &b->why), 0);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(gl_sock_connect(path, &client, &b->why), 0);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    uid_t uid = (uid_t)-1;
    pid_t pid = 0;
    assert_int_equal(gl_sock_peer(server, &uid, &pid, &b->why), 0);
    assert_int_equal(uid, geteuid());
    assert_int_equal(pid, getpid());
    (void)close(server);
    (void)close(client);
    (void)close(listener);
}

static void a_socket_with_a_short_path_works(void **state)
{
    struct bench *b = *state;
    talk(b, in(b, "s"));
}

static void a_socket_with_a_long_path_works(void **state)
{
    struct bench *b = *state;
    char name[200];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const char *folder = gl_str_fmt(&b->a, "%s/%s", in(b, name), name).p;
    assert_int_equal(gl_fs_mkdirs(folder, &b->why), 0);
    talk(b, gl_paths_in(&b->a, folder, "node.sock"));
}

static void a_socket_left_by_the_dead_is_replaced(void **state)
{
    struct bench *b = *state;
    int fd = -1;
    assert_int_equal(gl_sock_connect(in(b, "s"), &fd, &b->why), GL_E_NOT_FOUND);
    assert_int_equal(gl_sock_listen(in(b, "s"), &fd, &b->why), 0);
    (void)close(fd);
    fd = -1;
    assert_int_equal(gl_sock_connect(in(b, "s"), &fd, &b->why), GL_E_GONE);
    assert_int_equal(fd, -1);
    talk(b, in(b, "s"));
}

static void a_file_in_place_of_the_socket_is_not_removed(void **state)
{
    struct bench *b = *state;
    int fd = -1;
    assert_int_equal(gl_fs_write(in(b, "s"), GL_S("precious"), &b->why), 0);
    assert_int_equal(gl_sock_listen(in(b, "s"), &fd, &b->why), GL_E_EXISTS);
    assert_int_equal(access(in(b, "s"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_socket_with_a_short_path_works),
        TEST(a_socket_with_a_long_path_works),
        TEST(a_socket_left_by_the_dead_is_replaced),
        TEST(a_file_in_place_of_the_socket_is_not_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
