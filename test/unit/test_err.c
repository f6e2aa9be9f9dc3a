#include "support/cmocka_all.h"

#include <string.h>

#include "base/err.h"
#include "base/limits.h"

static void every_error_has_a_word_and_a_text(void **state)
{
    (void)state;
#define X(name, value, word, text)                \
    assert_string_equal(gl_err_word(name), word); \
    assert_string_equal(gl_err_text(name), text); \
    assert_int_equal(gl_err_from_word(word), name);
    GL_ERRORS(X)
#undef X
    assert_string_equal(gl_err_word(0), "ok");
    assert_int_equal(gl_err_from_word("ok"), 0);
    assert_string_equal(gl_err_word(-999), "unknown");
    assert_int_equal(gl_err_from_word("nonsense"), GL_E_UNKNOWN);
}

static void a_sentence_travels_with_its_code(void **state)
{
    (void)state;
    struct gl_why why;
    assert_int_equal(gl_why(&why, GL_E_LIMIT, "%d > 2", 3), GL_E_LIMIT);
    assert_int_equal(why.code, GL_E_LIMIT);
    assert_int_equal(gl_why_prefix(&why, "step %s", "a"), GL_E_LIMIT);
    assert_string_equal(why.text, "step a: 3 > 2");
    assert_int_equal(gl_why(NULL, GL_E_IO, "nobody listens"), GL_E_IO);
}

static void every_reason_has_a_word_of_its_own_and_one_code(void **state)
{
    (void)state;
#define REASON(name, code, word, meaning)                              \
    assert_string_equal(gl_reason_word(GL_REASON_##name), word);       \
    assert_string_equal(gl_reason_meaning(GL_REASON_##name), meaning); \
    assert_int_equal(gl_reason_code(GL_REASON_##name), GL_E_##code);   \
    assert_int_equal(gl_reason_from_word(word), GL_REASON_##name);     \
    assert_int_equal(gl_err_code(GL_R_##name), GL_E_##code);           \
    assert_int_equal(gl_err_reason(GL_R_##name), GL_REASON_##name);    \
    assert_string_equal(gl_err_word(GL_R_##name), gl_err_word(GL_E_##code));
#include "base/reasons.def"
    assert_int_equal(gl_reason_from_word("nonsense"), GL_REASON_NONE);
    assert_int_equal(gl_reason_from_word(""), GL_REASON_NONE);
    assert_int_equal(gl_err_reason(GL_E_IO), GL_REASON_NONE);
    assert_int_equal(gl_err_code(GL_E_IO), GL_E_IO);
    assert_int_equal(gl_err_code(0), 0);
    assert_int_equal(gl_err_join(GL_E_IO, GL_REASON_NONE), GL_E_IO);
    assert_int_equal(gl_err_join(GL_E_NOT_FOUND, GL_REASON_NO_SUCH_JOB), GL_R_NO_SUCH_JOB);
    assert_int_equal(gl_err_join(0, GL_REASON_NO_SUCH_JOB), 0);
    assert_true(gl_err_is_plain(0) && gl_err_is_plain(GL_E_IO));
    assert_false(gl_err_is_plain(1) || gl_err_is_plain(INT64_MIN) || gl_err_is_plain(-999999));
    assert_false(gl_err_is_plain(GL_R_NO_SUCH_JOB));
}

static void every_why_code_has_a_word_of_its_own(void **state)
{
    (void)state;
    for (int i = 1; i < GL_BECAUSE_COUNT; i++) {
        assert_true(strlen(gl_why_code_meaning((enum gl_why_code)i)) > 0);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(gl_why_code_word((enum gl_why_code)i),
                                    gl_why_code_word((enum gl_why_code)k));
        }
    }
}

static void a_reason_travels_with_the_sentence(void **state)
{
    (void)state;
    struct gl_why why, copy;
    assert_int_equal(gl_why(&why, GL_R_NO_SUCH_JOB, "no job %d", 7), GL_E_NOT_FOUND);
    assert_int_equal(gl_why(NULL, GL_R_NO_SUCH_JOB, "nobody listens"), GL_E_NOT_FOUND);
    assert_int_equal(why.code, GL_E_NOT_FOUND);
    assert_int_equal(why.reason, GL_REASON_NO_SUCH_JOB);
    assert_int_equal(gl_why_whole(&why), GL_R_NO_SUCH_JOB);
    assert_int_equal(gl_why(&copy, gl_why_whole(&why), "%s", why.text), GL_E_NOT_FOUND);
    assert_int_equal(copy.reason, GL_REASON_NO_SUCH_JOB);
    assert_int_equal(gl_why_prefix(&copy, "line 3"), GL_E_NOT_FOUND);
    assert_int_equal(copy.reason, GL_REASON_NO_SUCH_JOB);
    (void)gl_why(&why, GL_E_IO, "an error without one");
    assert_int_equal(why.reason, GL_REASON_NONE);
}

static void an_overlong_sentence_is_cut_not_refused(void **state)
{
    (void)state;
    struct gl_why why;
    char longer[2 * GL_WHY_BYTES];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    (void)gl_why(&why, GL_E_IO, "%s", longer);
    assert_int_equal(strlen(why.text), GL_WHY_BYTES - 1);
    (void)gl_why_prefix(&why, "before");
    assert_int_equal(strlen(why.text), GL_WHY_BYTES - 1);
    assert_memory_equal(why.text, "before: xxx", 11);
    (void)gl_why_prefix(&why, "%s", longer);
    assert_int_equal(strlen(why.text), GL_WHY_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_a_word_and_a_text),
        cmocka_unit_test(a_sentence_travels_with_its_code),
        cmocka_unit_test(every_reason_has_a_word_of_its_own_and_one_code),
        cmocka_unit_test(every_why_code_has_a_word_of_its_own),
        cmocka_unit_test(a_reason_travels_with_the_sentence),
        cmocka_unit_test(an_overlong_sentence_is_cut_not_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
