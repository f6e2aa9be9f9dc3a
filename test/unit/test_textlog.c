#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/textlog.h"
#include "support/bench.h"

static void the_text_log_is_bounded(void **state)
{
    struct bench *b = *state;
    const char *path = gl_str_fmt(&b->a, "%s/node.log", b->folder.path).p;
    const char *old = gl_str_fmt(&b->a, "%s/node.log.1", b->folder.path).p;
    struct gl_textlog log;
    struct stat st;
    char filler[1001];
    memset(filler, 'x', sizeof(filler) - 1);
    filler[1000] = '\0';
    gl_textlog_init(&log, path);
    for (int i = 0; i < 9000; i++) {
        gl_textlog_write(&log, "%s", filler);
    }
    gl_textlog_done(&log);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= GL_TEXTLOG_BYTES_MAX + 2048);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(old, &st), 0);
    assert_true(st.st_size <= GL_TEXTLOG_BYTES_MAX + 2048);
}

static void a_line_of_the_text_log_is_one_line(void **state)
{
    struct bench *b = *state;
    const char *path = gl_str_fmt(&b->a, "%s/node.log", b->folder.path).p;
    struct gl_textlog log;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_textlog_init(&log, path);
    gl_textlog_write(&log, "a1\nb2");
    gl_textlog_write(&log, "c");
    gl_textlog_done(&log);
    assert_int_equal(gl_fs_read(path, 1 << 20, &out, &b->why), 0);
    gl_str rest, first = gl_str_cut(gl_buf_view(&out), '\n', &rest);
    assert_true(gl_str_ends(first, GL_S("Z a1 b2")));
    assert_true(gl_str_ends(rest, GL_S("Z c\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_text_log_is_bounded),
        TEST(a_line_of_the_text_log_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
