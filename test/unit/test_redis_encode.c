#include "support/cmocka_all.h"

#include "base/check.h"
#include "store/redis/redis_parts.h"

static struct gl_arena arena;

static void names_are_told_apart_in_keys(void **state)
{
    static const char *const names[] = {"job", "a:b", "a%3ab", ".ids", "@x", "x.y@z", "%", ""};
    (void)state;
    struct gl_buf b = {0};
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        gl_str key = gl_str_dup(&arena, gl_redis_name_encode(gl_str_of(names[i]), &b));
        assert_null(memchr(key.p, ':', key.n));
        assert_true(key.n == 0 || (key.p[0] != '.' && key.p[0] != '@'));
        assert_true(gl_str_is(gl_redis_name_decode(key, &arena), names[i]));
        for (size_t k = 0; k < i; k++) {
            assert_false(gl_str_eq(key, gl_redis_name_encode(gl_str_of(names[k]), &b)));
        }
    }
    assert_true(gl_str_is(gl_redis_name_encode(GL_S("wake/a/b"), &b), "wake/a/b"));
    gl_buf_done(&b);
}

static void scores_are_ordered_as_text(void **state)
{
    static const int64_t scores[] = {
        INT64_MIN, INT64_MIN + 1,   -(INT64_C(1) << 53) - 1, -1,       0, 1, 1789000000000,
        1LL << 53, (1LL << 53) + 1, INT64_MAX - 1,           INT64_MAX};
    (void)state;
    char before[GL_REDIS_SCORE_BYTES + 3], text[GL_REDIS_SCORE_BYTES + 3];
    for (size_t i = 0; i < GL_COUNT(scores); i++) {
        int64_t score;
        gl_str id;
        gl_redis_score_encode(scores[i], text);
        memcpy(text + GL_REDIS_SCORE_BYTES, ":id", 3);
        assert_true(gl_redis_score_decode((gl_str){text, sizeof(text)}, &score, &id));
        assert_true(score == scores[i]);
        assert_true(gl_str_is(id, "id"));
        assert_true(i == 0 || memcmp(before, text, sizeof(text)) < 0);
        memcpy(before, text, sizeof(text));
    }
    int64_t score;
    gl_str id;
    assert_false(gl_redis_score_decode(GL_S("short"), &score, &id));
    assert_false(gl_redis_score_decode(GL_S("8000000000000000-id"), &score, &id));
}

static int done(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told_apart_in_keys),
        cmocka_unit_test(scores_are_ordered_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
