/* Logs in the store: what a chunk holds, which chunks are kept, and what a reader gets of them. */
#include <stdio.h>
#include <string.h>

#include "base/gzip.h"
#include "base/limits.h"
#include "base/rng.h"
#include "model/log_state.h"
#include "support/cmocka_all.h"

static struct gl_arena arena;

static int end(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    arena = (struct gl_arena){0};
    return 0;
}

/* Lines of `width` bytes that gzip cannot make much smaller. */
static gl_str noise(size_t lines, size_t width)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *p = gl_arena_alloc(&arena, lines * width);
    struct gl_rng rng;
    gl_rng_init(&rng, 7);
    for (size_t i = 0; i < lines * width; i++) {
        p[i] = (i + 1) % width == 0 ? '\n' : letters[gl_rng_below(&rng, 64)];
    }
    return (gl_str){.p = p, .n = lines * width};
}

static void unpacks_to(const struct gl_buf *packed, gl_str text)
{
    struct gl_buf out = {0};
    assert_int_equal(gl_gzip_unpack(gl_buf_view(packed), GL_LOG_PAGE_BYTES, &out, NULL), 0);
    assert_true(gl_str_eq(gl_buf_view(&out), text));
    gl_buf_done(&out);
}

static void a_chunk_takes_whole_lines(void **state)
{
    (void)state;
    struct gl_buf out = {0};
    assert_int_equal(gl_log_chunk_pack(GL_S("1 o one\n2 e two\n3 o thr"), &out), 16);
    unpacks_to(&out, GL_S("1 o one\n2 e two\n"));
    gl_buf_reset(&out);
    assert_int_equal(gl_log_chunk_pack(GL_S("no end"), &out), 0);
    assert_int_equal(gl_log_chunk_pack((gl_str){0}, &out), 0);
    assert_int_equal(out.n, 0);
    gl_buf_done(&out);
}

static void a_chunk_never_exceeds_its_limit(void **state)
{
    (void)state;
    struct gl_buf out = {0};
    gl_str lines = noise(1280, 100);
    size_t n = gl_log_chunk_pack(lines, &out);
    assert_in_range(out.n, 1, GL_LOG_CHUNK_BYTES_MAX);
    assert_in_range(n, 32 << 10, lines.n - 1);
    assert_int_equal(n % 100, 0);
    unpacks_to(&out, (gl_str){.p = lines.p, .n = n});
    gl_buf_done(&out);
}

static void one_line_is_never_cut(void **state)
{
    (void)state;
    struct gl_buf out = {0};
    gl_str line = noise(1, (64 << 10) + 17), lines = noise(2, 64 << 10);
    assert_int_equal(gl_log_chunk_pack(line, &out), line.n);
    unpacks_to(&out, line);
    gl_buf_reset(&out);
    assert_int_equal(gl_log_chunk_pack(lines, &out), 64 << 10);
    gl_buf_done(&out);
}

static void a_chunk_grows_until_it_is_half_full(void **state)
{
    (void)state;
    assert_true(gl_log_chunk_grows(&(struct gl_log_chunk){.from = 5, .to = 100, .bytes = 60}));
    assert_false(gl_log_chunk_grows(&(struct gl_log_chunk){.to = 64 << 10, .bytes = 60}));
    assert_false(gl_log_chunk_grows(&(struct gl_log_chunk){.to = 40 << 10, .bytes = 32 << 10}));
}

static void what_is_not_needed_is_the_beginning(void **state)
{
    (void)state;
    struct gl_log_chunk c[] = {{.from = 0, .to = 100},
                               {.from = 100, .to = 200},
                               {.from = 300, .to = 400},
                               {.from = 400, .to = 401}};
    struct gl_log_head h = {.chunks = {.items = c, .n = 4}};
    assert_int_equal(gl_log_head_spare(&h, 1000), 0);
    assert_int_equal(gl_log_head_spare(&h, 301), 0);
    assert_int_equal(gl_log_head_spare(&h, 201), 1);
    assert_int_equal(gl_log_head_spare(&h, 102), 1);
    assert_int_equal(gl_log_head_spare(&h, 101), 2);
    assert_int_equal(gl_log_head_spare(&h, 1), 3);
    assert_int_equal(gl_log_head_end(&h), 401);
    assert_int_equal(gl_log_head_dropped(&h), 0);
    assert_int_equal(gl_log_head_find(&h, 0), 0);
    assert_int_equal(gl_log_head_find(&h, 100), 1);
    assert_int_equal(gl_log_head_find(&h, 250), 2);
    assert_int_equal(gl_log_head_find(&h, 401), -1);
}

static void a_record_comes_back_as_it_was(void **state)
{
    (void)state;
    struct gl_log_chunk c[] = {{.from = 10, .to = 100, .bytes = 20}, {.from = 100, .to = 110}};
    struct gl_log_head h = {.node = GL_S("n1"),
                            .size = 120,
                            .first = 7,
                            .chunks = {.items = c, .n = 2},
                            .ended = true},
                       back;
    struct gl_log_job j = {.bytes = 12}, j_back;
    const struct gl_log_chunk *read;
    assert_true(gl_log_head_read(gl_log_head_write(&h, &arena), &arena, &back));
    assert_true(gl_str_is(back.node, "n1"));
    assert_int_equal(back.size, 120);
    assert_int_equal(back.first, 7);
    assert_true(back.ended && !back.full);
    assert_int_equal(back.chunks.n, 2);
    read = back.chunks.items;
    assert_int_equal(read[0].from, 10);
    assert_int_equal(read[1].to, 110);
    assert_true(gl_log_job_read(gl_log_job_write(&j, &arena), &arena, &j_back));
    assert_int_equal(j_back.bytes, 12);
    c[1].from = 90; /* they overlap */
    assert_false(gl_log_head_read(gl_log_head_write(&h, &arena), &arena, &back));
    assert_false(gl_log_head_read(GL_S("{\"size\":"), &arena, &back));
}

static void reads(uint64_t offset, const char *text, uint64_t next)
{
    struct gl_buf out = {0};
    assert_int_equal(gl_log_chunk_slice(GL_S("one\ntwo\n"), 100, offset, &out), next);
    assert_true(gl_str_is(gl_buf_view(&out), text));
    gl_buf_done(&out);
}

static void a_reader_gets_the_rest_of_a_chunk_and_learns_of_gaps(void **state)
{
    (void)state;
    reads(100, "one\ntwo\n", 108);
    reads(104, "two\n", 108);
    reads(108, "", 108);
    reads(90, "-- 10 bytes dropped --\none\ntwo\n", 108);
    reads(500, "", 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_chunk_takes_whole_lines, end),
        cmocka_unit_test_teardown(a_chunk_never_exceeds_its_limit, end),
        cmocka_unit_test_teardown(one_line_is_never_cut, end),
        cmocka_unit_test_teardown(a_chunk_grows_until_it_is_half_full, end),
        cmocka_unit_test_teardown(what_is_not_needed_is_the_beginning, end),
        cmocka_unit_test_teardown(a_record_comes_back_as_it_was, end),
        cmocka_unit_test_teardown(a_reader_gets_the_rest_of_a_chunk_and_learns_of_gaps, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
