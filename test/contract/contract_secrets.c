/* Secrets: from the node's environment and files into a step. */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "contract/exec_world.h"
#include "os/fs.h"
#include "os/sock.h"
#include "port/keeper_protocol.h"
#include "support/golden.h"

static int open_world(void **state)
{
    return exec_world_open(state, &exec_keeper);
}

/* Run a script with a secret S and return its output. */
static const char *run(struct exec_world *w, const char *secret, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    static int number;
    char attempt[32];
    snprintf(attempt, sizeof(attempt), "s[%d]:attempt:1", number++);
    w->ends_n = 0;
    assert_int_equal(
        exec_start(w, (struct exec_options){argv, attempt, .token = 1, .secret = secret}), 0);
    return exec_wait_end(w, attempt)->output;
}

/* The reason why a start with this secret is refused. */
static const char *refusal(struct exec_world *w, const char *secret)
{
    static struct exec_question q;
    exec_ask_start(
        w, &q, (struct exec_options){w->maker->ok, "r:attempt:1", .token = 1, .secret = secret});
    exec_wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_INVALID);
    return q.req.why.text;
}

static const char *file_reference(struct exec_world *w, gl_str content)
{
    static char reference[PATH_MAX];
    snprintf(reference, sizeof(reference), "S=file:%s/secret", w->data_dir);
    assert_int_equal(gl_fs_write(reference + strlen("S=file:"), content, NULL), 0);
    return reference;
}

static void a_secret_comes_from_the_environment_of_the_node(void **state)
{
    struct exec_world *w = *state;
    setenv("GLIA_TEST_SECRET", "open sesame", 1);
    assert_string_equal(run(w, "S=env:GLIA_TEST_SECRET",
                            "test \"$S\" = 'open sesame' && echo \"{\\\"s\\\":\\\"$S\\\"}\""),
                        "{\"s\":\"***\"}");
    unsetenv("GLIA_TEST_SECRET");
}

static void a_secret_comes_from_a_file_without_its_last_newline(void **state)
{
    struct exec_world *w = *state;
    const char *count = "printf '[%d]' ${#S} > $GLIA_OUTPUT";
    assert_string_equal(run(w, file_reference(w, GL_S("12345")), count), "[5]");
    assert_string_equal(run(w, file_reference(w, GL_S("12345\n")), count), "[5]");
    assert_string_equal(run(w, file_reference(w, GL_S("12345\n\n")), count), "[6]");
}

static void a_secret_may_have_64_kib(void **state)
{
    struct exec_world *w = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf big = {0};
    while (big.n < GL_SECRET_BYTES_MAX) {
        gl_buf_char(&big, 'x');
    }
    const char *count = "printf '[%d]' ${#S} > $GLIA_OUTPUT";
    assert_string_equal(run(w, file_reference(w, gl_buf_view(&big)), count), "[65536]");
    gl_buf_char(&big, '\n');
    assert_string_equal(run(w, file_reference(w, gl_buf_view(&big)), count), "[65536]");
    gl_buf_char(&big, 'x');
    assert_non_null(strstr(refusal(w, file_reference(w, gl_buf_view(&big))), "more than 64 KiB"));
}

static void a_secret_that_is_not_there_is_named_by_its_reference(void **state)
{
    struct exec_world *w = *state;
    golden_say("S=env:GLIA_TEST_NO_SUCH", gl_str_of(refusal(w, "S=env:GLIA_TEST_NO_SUCH")));
    golden_say("S=file:/no/such/file", gl_str_of(refusal(w, "S=file:/no/such/file")));
}

static void a_file_that_is_none_is_refused_at_once(void **state)
{
    struct exec_world *w = *state;
    char reference[PATH_MAX];
    snprintf(reference, sizeof(reference), "S=file:%s/pipe", w->data_dir);
    assert_int_equal(mkfifo(reference + strlen("S=file:"), 0600), 0);
    golden_hide(w->data_dir);
    golden_say("a pipe", gl_str_of(refusal(w, reference)));
    golden_hide("");
    golden_say("a folder", gl_str_of(refusal(w, "S=file:/dev")));
}

static void a_reference_that_makes_no_sense_is_refused(void **state)
{
    struct exec_world *w = *state;
    static const char *const bad[] = {"S=", "S", "S=vault:x", "S=env:", "S=file:"};
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        golden_say(bad[i], gl_str_of(refusal(w, bad[i])));
    }
    golden_say("S=file:key", gl_str_of(refusal(w, "S=file:key")));
}

static void a_refusal_never_contains_the_value(void **state)
{
    struct exec_world *w = *state;
    setenv("GLIA_TEST_SECRET", "qqq", 1);
    const char *why = refusal(w, "S=env:GLIA_TEST_SECRET");
    golden_say("a short value", gl_str_of(why));
    unsetenv("GLIA_TEST_SECRET");
    assert_non_null(strstr(refusal(w, file_reference(w, (gl_str){"qq\0qq", 5})), "a NUL byte"));
    assert_null(strstr(refusal(w, file_reference(w, (gl_str){"qq\0qq", 5})), "qq"));
}

static void a_secret_that_has_changed_is_seen_by_the_next_attempt(void **state)
{
    struct exec_world *w = *state;
    const char *echo = "printf '\"%s\"' \"$(echo $S | tr a-z b-za)\" > $GLIA_OUTPUT";
    assert_string_equal(run(w, file_reference(w, GL_S("first")), echo), "\"gjstu\"");
    assert_string_equal(run(w, file_reference(w, GL_S("second")), echo), "\"tfdpoe\"");
}

/* ---- a keeper of the previous release ---- */

static void *be_an_old_keeper(void *arg)
{
    int listener = *(int *)arg;
    struct pollfd p = {.fd = listener, .events = POLLIN};
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    char bytes[4096];
    assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
    int fd = accept(listener, NULL, NULL);
    assert_true(recv(fd, bytes, sizeof(bytes), 0) > 0); /* hello */
    struct gl_keeper_msg welcome = {.type = GL_KEEPER_WELCOME,
                                    .version_min = 1,
                                    .version_max = 1,
                                    .start = {.epoch = GL_S("old")}};
    gl_keeper_encode(&welcome, &out);
    assert_int_equal(send(fd, out.p, out.n, 0), (ssize_t)out.n);
    *(int *)arg = (int)recv(fd, bytes, sizeof(bytes), 0); /* anything else */
    close(fd);
    close(listener);
    return NULL;
}

static void a_keeper_of_an_older_release_gets_no_start_with_a_secret(void **state)
{
    struct exec_world *w = *state;
    struct exec_world old = {.maker = w->maker, .data_dir = NULL, .loop = w->loop};
    char path[PATH_MAX];
    int listener = -1;
    pthread_t thread;
    test_folder_make(&old.folder);
    old.data_dir = old.folder.path;
    snprintf(path, sizeof(path), "%s/keeper", old.data_dir);
    assert_int_equal(gl_fs_mkdirs(path, NULL), 0);
    snprintf(path, sizeof(path), "%s/keeper/sock", old.data_dir);
    assert_int_equal(gl_sock_listen(path, &listener, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, be_an_old_keeper, &listener), 0);
    exec_open(&old);
    setenv("GLIA_TEST_SECRET", "open sesame", 1);
    golden_say("an old keeper", gl_str_of(refusal(&old, "S=env:GLIA_TEST_SECRET")));
    unsetenv("GLIA_TEST_SECRET");
    exec_close(&old);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(listener, 0); /* nothing arrived */
    test_folder_remove(&old.folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, exec_world_close)

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/contract/contract_secrets.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_secret_comes_from_the_environment_of_the_node),
        TEST(a_secret_comes_from_a_file_without_its_last_newline),
        TEST(a_secret_may_have_64_kib),
        TEST(a_secret_that_is_not_there_is_named_by_its_reference),
        TEST(a_file_that_is_none_is_refused_at_once),
        TEST(a_reference_that_makes_no_sense_is_refused),
        TEST(a_refusal_never_contains_the_value),
        TEST(a_secret_that_has_changed_is_seen_by_the_next_attempt),
        TEST(a_keeper_of_an_older_release_gets_no_start_with_a_secret),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
