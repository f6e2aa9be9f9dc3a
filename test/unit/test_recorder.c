/* The ring of recordings, as files. */
#include "base/check.h"
#include "os/fs.h"
#include "os/recorder.h"
#include "support/cmocka_all.h"
#include "support/folder.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct box {
    struct test_folder folder;
    char path[300];
    struct gl_arena arena;
    struct gl_recorder *recorder;
    struct gl_recording_port *port;
};

static void reopen(struct box *b, uint64_t bytes)
{
    struct gl_why why;

    gl_recorder_close(b->recorder);
    assert_int_equal(gl_recorder_open(&b->recorder, b->path, bytes, &why), 0);
    b->port = gl_recorder_port(b->recorder);
}

static int begin(void **state)
{
    struct box *b = calloc(1, sizeof(*b));

    test_folder_make(&b->folder);
    (void)snprintf(b->path, sizeof(b->path), "%s/recorder", b->folder.path);
    reopen(b, GL_RECORDER_BYTES_MIN);
    *state = b;
    return 0;
}

static int end(void **state)
{
    struct box *b = *state;

    gl_recorder_close(b->recorder);
    test_folder_remove(&b->folder);
    gl_arena_done(&b->arena);
    free(b);
    return 0;
}

/* Everything that is queued has been written. */
static void flush(struct box *b)
{
    gl_recorder_close(b->recorder);
    b->recorder = NULL;
}

static size_t list(struct box *b, uint64_t **ret)
{
    struct gl_why why;
    size_t n;

    assert_int_equal(gl_recorder_list(b->path, &b->arena, ret, &n, &why), 0);
    return n;
}

static void what_is_recorded_stands_in_a_private_file_with_a_check(void **state)
{
    struct box *b = *state;
    struct gl_buf text = {0}, wanted = {0};
    const char *path;
    uint64_t *numbers;
    struct stat st;

    assert_true(b->port->begin(b->port, GL_S("one\n")));
    assert_true(b->port->add(b->port, GL_S("two\n")));
    flush(b);
    assert_int_equal(list(b, &numbers), 1);
    path = gl_recorder_path(&b->arena, b->path, numbers[0]);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(gl_fs_read(path, 1 << 20, &text, NULL), 0);
    gl_buf_c(&wanted, "one\ntwo\n");
    gl_recording_put_check(&(struct gl_recording_chain){0}, GL_S("one\ntwo\n"), &wanted);
    assert_true(gl_str_eq(gl_buf_view(&text), gl_buf_view(&wanted)));
    gl_buf_done(&text);
    gl_buf_done(&wanted);
}

static void a_later_node_goes_on_behind_the_last_number(void **state)
{
    struct box *b = *state;
    uint64_t *numbers;

    assert_true(b->port->begin(b->port, GL_S("a\n")));
    assert_true(b->port->begin(b->port, GL_S("b\n")));
    reopen(b, GL_RECORDER_BYTES_MIN);
    assert_true(b->port->begin(b->port, GL_S("c\n")));
    flush(b);
    assert_int_equal(list(b, &numbers), 3);
    assert_int_equal(numbers[2], numbers[1] + 1);
    assert_int_equal(numbers[1], numbers[0] + 1);
}

static void the_ring_stays_within_its_bytes(void **state)
{
    struct box *b = *state;
    uint64_t *numbers, sum = 0;
    char *line = calloc(1, 64 << 10);
    size_t n;

    memset(line, 'x', (64 << 10) - 1);
    line[(64 << 10) - 2] = '\n';
    for (int segment = 0; segment < 20; segment++) {
        assert_true(b->port->begin(b->port, gl_str_of(line)));
        for (size_t bytes = 0; bytes < b->port->segment_bytes; bytes += 64 << 10) {
            assert_true(b->port->add(b->port, gl_str_of(line)));
        }
        reopen(b, GL_RECORDER_BYTES_MIN);
    }
    flush(b);
    n = list(b, &numbers);
    assert_true(n >= 2);
    assert_int_equal(numbers[n - 1], 20);
    for (size_t i = 0; i < n; i++) {
        struct stat st;

        assert_int_equal(stat(gl_recorder_path(&b->arena, b->path, numbers[i]), &st), 0);
        sum += (uint64_t)st.st_size;
    }
    assert_true(sum <= GL_RECORDER_BYTES_MIN + (GL_RECORDER_BYTES_MIN / 8));
    free(line);
}

static void short_segments_do_not_pile_up(void **state)
{
    struct box *b = *state;
    uint64_t *numbers;

    for (int i = 0; i < GL_RECORDER_FILES_MAX + 40; i++) {
        assert_true(b->port->begin(b->port, GL_S("a\n")));
    }
    flush(b);
    assert_in_range(list(b, &numbers), 2, GL_RECORDER_FILES_MAX);
}

static void a_queue_that_is_full_ends_the_segment(void **state)
{
    struct box *b = *state;
    const size_t n = 1 << 20;
    char *much = malloc(n + 1);
    struct gl_buf text = {0};
    uint64_t *numbers;
    int taken = 0;

    memset(much, 'x', n);
    much[n - 1] = '\n';
    much[n] = 0;
    assert_true(b->port->begin(b->port, GL_S("a\n")));
    while (taken < 100 && b->port->add(b->port, gl_str_of(much))) {
        taken++;
    }
    assert_in_range(taken, 1, 99);
    flush(b);
    assert_int_equal(list(b, &numbers), 1);
    assert_int_equal(
        gl_fs_read(gl_recorder_path(&b->arena, b->path, numbers[0]), 1 << 30, &text, NULL), 0);
    gl_buf_char(&text, 0);
    assert_non_null(strstr(text.p, "{\"gap\":"));
    gl_buf_done(&text);
    free(much);
}

static gl_str text_of(struct box *b, uint64_t number)
{
    struct gl_buf text = {0};
    gl_str copy;

    assert_int_equal(gl_fs_read(gl_recorder_path(&b->arena, b->path, number), 1 << 30, &text, NULL),
                     0);
    copy = gl_str_dup(&b->arena, gl_buf_view(&text));
    gl_buf_done(&text);
    return copy;
}

/* What the checks of a segment say, one after the other; what is not FINE comes last. */
static enum gl_recording_result look(struct gl_recording_chain *c, gl_str text, size_t *ret_pieces)
{
    const char *from = text.p;

    *ret_pieces = 0;
    while (text.n > 0) {
        gl_str line = gl_str_cut(text, '\n', &text);
        enum gl_recording_result found =
            gl_recording_check(c, line, (gl_str){.p = from, .n = (size_t)(line.p - from)});

        if (found != GL_RECORDING_NO_CHECK && found != GL_RECORDING_FINE) {
            return found;
        }
        if (found == GL_RECORDING_FINE) {
            from = line.p + line.n + 1;
            (*ret_pieces)++;
        }
    }
    return GL_RECORDING_FINE;
}

/* Three pieces in the first segment, one in the second: those are large enough not to be joined. */
static void record_pieces(struct box *b)
{
    const size_t n = 300 << 10;
    char *much = malloc(n + 1);

    memset(much, 'x', n);
    much[n - 1] = '\n';
    much[n] = 0;
    reopen(b, 16 << 20);
    assert_true(b->port->begin(b->port, gl_str_of(much)));
    assert_true(b->port->add(b->port, gl_str_of(much)));
    much[0] = 'y';
    assert_true(b->port->add(b->port, gl_str_of(much)));
    assert_true(b->port->begin(b->port, GL_S("next\n")));
    flush(b);
    free(much);
}

static void a_piece_that_is_missing_is_found(void **state)
{
    struct box *b = *state;
    struct gl_recording_chain c = {0};
    gl_str text, rest, line;
    size_t n, second = 0, third = 0;
    char *less;

    record_pieces(b);
    text = text_of(b, 1);
    assert_int_equal(look(&c, text, &n), GL_RECORDING_FINE);
    assert_int_equal(n, 3);
    gl_recording_segment(&c, true);
    assert_int_equal(look(&c, text_of(b, 2), &n), GL_RECORDING_FINE);
    assert_int_equal(n, 1);
    for (rest = text; rest.n > 0;) { /* where the pieces begin */
        line = gl_str_cut(rest, '\n', &rest);
        if (gl_str_starts(line, GL_S("{\"check\":")) && rest.n > 0) {
            *(second == 0 ? &second : &third) = (size_t)(rest.p - text.p);
        }
    }
    less = malloc(text.n);
    memcpy(less, text.p, second);
    memcpy(less + second, text.p + third, text.n - third);
    c = (struct gl_recording_chain){0};
    assert_int_equal(look(&c, (gl_str){.p = less, .n = text.n - (third - second)}, &n),
                     GL_RECORDING_MISSING);
    /* Cut off where a piece ends it looks whole, but the next segment knows better. */
    c = (struct gl_recording_chain){0};
    assert_int_equal(look(&c, (gl_str){.p = text.p, .n = third}, &n), GL_RECORDING_FINE);
    gl_recording_segment(&c, true);
    assert_int_equal(look(&c, text_of(b, 2), &n), GL_RECORDING_END_LOST);
    /* By itself a segment need not know what came before. */
    gl_recording_segment(&c, false);
    assert_int_equal(look(&c, text_of(b, 2), &n), GL_RECORDING_FINE);
    free(less);
}

static void every_flipped_bit_is_found(void **state)
{
    struct box *b = *state;
    gl_str text;
    char *copy;
    size_t n;

    assert_true(b->port->begin(b->port, GL_S("one\n")));
    flush(b);
    text = text_of(b, 1);
    copy = malloc(text.n);
    memcpy(copy, text.p, text.n);
    for (size_t bit = 0; bit < text.n * 8; bit++) {
        struct gl_recording_chain c = {0};

        copy[bit / 8] ^= (char)(1 << bit % 8);
        assert_false(look(&c, (gl_str){.p = copy, .n = text.n}, &n) == GL_RECORDING_FINE &&
                     n == 1 && bit / 8 != text.n - 1);
        copy[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(copy);
}

static void checks_of_older_releases_are_read(void **state)
{
    static const char text[] = "one\ntwo\n";
    struct gl_recording_chain c = {0};
    struct gl_buf out = {0};
    size_t n;

    (void)state;
    for (int i = 0; i < 3; i++) { /* each by itself */
        gl_buf_c(&out, text);
        gl_recording_put_check(&(struct gl_recording_chain){0}, gl_str_of(text), &out);
    }
    assert_int_equal(look(&c, gl_buf_view(&out), &n), GL_RECORDING_FINE);
    assert_int_equal(n, 3);
    gl_buf_done(&out);
}

/* The disk takes no more: the next segment says so. */
static void what_the_disk_did_not_take_is_a_gap(void **state)
{
    struct box *b = *state;
    struct rlimit old, small;
    const size_t n = 300 << 10;
    char *much = malloc(n + 1);
    uint64_t *numbers;
    gl_str text, word = GL_S("{\"gap\":");

    memset(much, 'x', n);
    much[n - 1] = '\n';
    much[n] = 0;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100 << 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_true(b->port->begin(b->port, GL_S("a\n")));
    assert_true(b->port->add(b->port, gl_str_of(much)));
    assert_true(b->port->begin(b->port, GL_S("b\n")));
    flush(b);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(list(b, &numbers), 2);
    text = text_of(b, numbers[1]);
    assert_non_null(memmem(text.p, text.n, word.p, word.n));
    free(much);
}

static void a_folder_that_is_gone_hurts_nobody(void **state)
{
    struct box *b = *state;
    uint64_t *numbers;

    assert_int_equal(rmdir(b->path), 0);
    assert_true(b->port->begin(b->port, GL_S("a\n")));
    assert_true(b->port->add(b->port, GL_S("b\n")));
    flush(b);
    assert_int_equal(list(b, &numbers), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_recorded_stands_in_a_private_file_with_a_check,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_later_node_goes_on_behind_the_last_number, begin, end),
        cmocka_unit_test_setup_teardown(the_ring_stays_within_its_bytes, begin, end),
        cmocka_unit_test_setup_teardown(short_segments_do_not_pile_up, begin, end),
        cmocka_unit_test_setup_teardown(a_queue_that_is_full_ends_the_segment, begin, end),
        cmocka_unit_test_setup_teardown(a_piece_that_is_missing_is_found, begin, end),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, begin, end),
        cmocka_unit_test(checks_of_older_releases_are_read),
        cmocka_unit_test_setup_teardown(what_the_disk_did_not_take_is_a_gap, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_that_is_gone_hurts_nobody, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
