#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "os/notify.h"
#include "os/tcp.h"
#include "support/folder.h"

struct bench {
    struct test_folder folder;
    int manager; /* the socket a service manager would listen on */
    char name[300];
};

static int set_up(void **state)
{
    static struct bench b;

    memset(&b, 0, sizeof(b));
    b.manager = -1;
    test_folder_make(&b.folder);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    gl_fs_closep(&b->manager);
    test_folder_remove(&b->folder);
    return 0;
}

static void listen_at(struct bench *b, const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

    assert_true(strlen(name) < sizeof(at.sun_path));
    memcpy(at.sun_path, name, strlen(name));
    if (name[0] == '@') {
        at.sun_path[0] = '\0';
    } else {
        n++;
    }
    b->manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(b->manager >= 0);
    assert_int_equal(bind(b->manager, (const struct sockaddr *)&at, n), 0);
}

static void assert_hears(struct bench *b, const char *message)
{
    char text[256];
    ssize_t n = recv(b->manager, text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    text[n] = '\0';
    assert_string_equal(text, message);
}

static void messages_arrive_at_a_path(void **state)
{
    struct bench *b = *state;
    struct gl_notify n;

    (void)snprintf(b->name, sizeof(b->name), "%s/notify", b->folder.path);
    listen_at(b, b->name);
    assert_int_equal(gl_notify_open(&n, &(struct gl_notify_env){.socket = b->name}, NULL), 0);
    assert_int_equal(n.watchdog_ms, 0);
    gl_notify_send(&n, "READY=1\nSTATUS=%s", "fine");
    assert_hears(b, "READY=1\nSTATUS=fine");
    gl_notify_close(&n);
    gl_notify_send(&n, "STOPPING=1"); /* nobody is there, and nothing happens */
}

static void messages_arrive_at_an_abstract_name(void **state)
{
    struct bench *b = *state;
    struct gl_notify n;

    (void)snprintf(b->name, sizeof(b->name), "@glia-test-%ld", (long)getpid());
    listen_at(b, b->name);
    assert_int_equal(gl_notify_open(&n, &(struct gl_notify_env){.socket = b->name}, NULL), 0);
    gl_notify_send(&n, "WATCHDOG=1");
    assert_hears(b, "WATCHDOG=1");
    gl_notify_close(&n);
}

static void a_manager_that_does_not_read_holds_up_nobody(void **state)
{
    struct bench *b = *state;
    struct gl_notify n;

    (void)snprintf(b->name, sizeof(b->name), "%s/notify", b->folder.path);
    listen_at(b, b->name);
    assert_int_equal(gl_notify_open(&n, &(struct gl_notify_env){.socket = b->name}, NULL), 0);
    for (int i = 0; i < 5000; i++) {
        gl_notify_send(&n, "STATUS=%d", i);
    }
    assert_hears(b, "STATUS=0");
    gl_notify_close(&n);
}

static void without_a_manager_nothing_is_sent(void **state)
{
    struct gl_notify n;

    (void)state;
    assert_int_equal(gl_notify_open(&n, &(struct gl_notify_env){0}, NULL), 0);
    assert_true(n.fd < 0);
    gl_notify_send(&n, "READY=1");
    assert_int_equal(gl_notify_open(&n, &(struct gl_notify_env){.socket = "relative"}, NULL),
                     GL_E_INVALID);
    assert_true(n.fd < 0);
    assert_int_equal(gl_notify_open(&n, &(struct gl_notify_env){.socket = "/nowhere/at/all"}, NULL),
                     GL_E_NOT_FOUND);
    assert_true(n.fd < 0);
}

static void the_watchdog_is_for_the_process_it_names(void **state)
{
    struct bench *b = *state;
    char own[24], other[24];
    const struct {
        const char *usec, *pid;
        gl_ms ms;
    } cases[] = {
        {"3000000", NULL, 3000}, {"3000000", own, 3000}, {"3000000", other, 0},
        {"3000000", "x", 0},     {"", own, 0},           {"-5", NULL, 0},
        {"0", NULL, 0},          {"10", NULL, 1},
    };

    (void)snprintf(own, sizeof(own), "%ld", (long)getpid());
    (void)snprintf(other, sizeof(other), "%ld", (long)getpid() + 1);
    (void)snprintf(b->name, sizeof(b->name), "%s/notify", b->folder.path);
    listen_at(b, b->name);
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_notify_env env = {
            .socket = b->name, .watchdog_usec = cases[i].usec, .watchdog_pid = cases[i].pid};
        struct gl_notify n;

        assert_int_equal(gl_notify_open(&n, &env, NULL), 0);
        assert_int_equal(n.watchdog_ms, cases[i].ms);
        gl_notify_close(&n);
    }
}

static void a_port_that_is_taken_is_named(void **state)
{
    char first[GL_TCP_TEXT_BYTES], second[GL_TCP_TEXT_BYTES];
    struct gl_why why;
    bool is_local = false;
    int a, b = -1;

    (void)state;
    assert_int_equal(gl_tcp_listen(GL_S("127.0.0.1:0"), &a, first, &is_local, &why), 0);
    assert_true(is_local);
    assert_int_equal(gl_tcp_listen(gl_str_of(first), &b, second, &is_local, &why),
                     GL_E_UNAVAILABLE);
    assert_non_null(strstr(why.text, first));
    assert_int_equal(b, -1);
    gl_fs_closep(&a);
    assert_int_equal(gl_tcp_listen(GL_S("0.0.0.0:0"), &a, first, &is_local, &why), 0);
    assert_false(is_local);
    gl_fs_closep(&a);
    assert_int_equal(gl_tcp_listen(GL_S("192.0.2.1:0"), &a, first, &is_local, &why), GL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_arrive_at_a_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(messages_arrive_at_an_abstract_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_manager_that_does_not_read_holds_up_nobody, set_up,
                                        tear_down),
        cmocka_unit_test(without_a_manager_nothing_is_sent),
        cmocka_unit_test_setup_teardown(the_watchdog_is_for_the_process_it_names, set_up,
                                        tear_down),
        cmocka_unit_test(a_port_that_is_taken_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
