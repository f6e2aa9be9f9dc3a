#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/human_file.h"
#include "support/golden.h"
#include "support/human_lines.h"

static void read_file(struct bench *b, struct gl_human_file *f)
{
    assert_int_equal(gl_human_file_read(b->folder.path, GL_S("run"), &b->a, f, &b->why), 0);
}

static bool says(gl_str text, const char *part)
{
    return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

static void a_default_must_be_one_of_the_decisions(void **state)
{
    struct bench *b = *state;
    struct gl_human_file f;
    size_t n;
    add_line(b, "run", ASK, "q",
             ",\"expires_at\":\"2020-01-01T00:00:00Z\",\"default_decision\":\"launch\"");
    read_file(b, &f);
    assert_true(f.requests[0].is_refused);
    golden_say("q", gl_human_file_problems(&f, &b->a));
    assert_int_equal(gl_human_file_next_timeout(&f), INT64_MAX);
    assert_int_equal(gl_human_file_expire(b->folder.path, GL_S("run"), INT64_MAX, &n, &b->why), 0);
    assert_int_equal(n, 0);
    add_line(b, "run", ANSWER, "q", "");
    read_file(b, &f);
    assert_int_equal(gl_human_file_problems(&f, &b->a).n, 0); /* it does not matter any more */
    add_line(b, "run", ASK, "q", "");
    read_file(b, &f);
    assert_int_equal(f.requests[0].again_n, 1);
}

/* How often a file in the folder was opened, written and closed. */
static int writes_seen(int watch)
{
    char events[64 << 10] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t bytes = read(watch, events, sizeof(events));
    int n = 0;
    for (ssize_t at = 0; at < bytes;) {
        const struct inotify_event *e = (const struct inotify_event *)(const void *)(events + at);
        n += (e->mask & IN_CLOSE_WRITE) != 0;
        at += (ssize_t)(sizeof(*e) + e->len);
    }
    return n;
}

static void defaults_of_a_file_are_written_together(void **state)
{
    struct bench *b = *state;
    struct gl_human_file f;
    size_t n;
    assert_int_equal(gl_fs_mkdirs(in(b, "run"), &b->why), 0);
    FILE *file = fopen(in(b, "run/human.jsonl"), "ae");
    for (int i = 0; i < 500; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "q%d", i);
        assert_true(fprintf(file, ASK, id,
                            ",\"expires_at\":\"2020-01-01T00:00:00Z\","
                            "\"default_decision\":\"reject\"") > 0);
    }
    assert_true(fputs("torn", file) >= 0);
    assert_int_equal(fclose(file), 0);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(inotify_add_watch(watch, in(b, "run"), IN_OPEN | IN_CLOSE_WRITE) >= 0);
    assert_int_equal(gl_human_file_expire(b->folder.path, GL_S("run"), INT64_MAX, &n, &b->why), 0);
    assert_int_equal(n, 500);
    assert_int_equal(writes_seen(watch), 1);
    assert_int_equal(close(watch), 0);
    read_file(b, &f);
    for (size_t i = 0; i < 500; i++) {
        assert_true(f.requests[i].is_answered);
        assert_true(gl_str_is(f.requests[i].decision, "reject"));
    }
    assert_int_equal(gl_human_file_expire(b->folder.path, GL_S("run"), INT64_MAX, &n, &b->why), 0);
    assert_int_equal(n, 0);
}

static void what_is_too_much_of_a_file_is_counted(void **state)
{
    struct bench *b = *state;
    struct gl_human_file f;
    char id[GL_HUMAN_FILE_ID_MAX + 2];
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    add_line(b, "run", ASK, id, "");
    read_file(b, &f);
    assert_int_equal(f.strange_n, 1);
    assert_true(says(gl_human_file_problems(&f, &b->a), "request_id more than 512 bytes"));
    FILE *file = fopen(in(b, "run/human.jsonl"), "ae");
    for (int i = 0; i < GL_HUMAN_FILE_MAX + 1; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "q%d", i);
        assert_true(fprintf(file, ASK, name, "") > 0);
    }
    assert_int_equal(fclose(file), 0);
    read_file(b, &f);
    assert_int_equal(f.n, GL_HUMAN_FILE_MAX);
    assert_int_equal(f.dropped_n, 1);
    assert_false(f.is_cut);
    assert_int_equal(truncate(in(b, "run/human.jsonl"), GL_HUMAN_FILE_BYTES_MAX + 1), 0);
    read_file(b, &f);
    assert_true(f.is_cut);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/human_file.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_default_must_be_one_of_the_decisions),
        TEST(defaults_of_a_file_are_written_together),
        TEST(what_is_too_much_of_a_file_is_counted),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
