#include <stdio.h>
#include <string.h>

#include "os/run_questions.h"
#include "support/human_lines.h"

/* A command that has no node. */
static void files_can_be_read_when_asked(void **state)
{
    struct bench *b = *state;
    struct gl_questions asks = gl_run_questions_reader(b->folder.path);
    uint64_t open_n;
    size_t n;
    assert_null(asks.find(asks.owner, GL_S("run"), &b->a));
    add_line(b, "run", ASK, "q", "");
    add_line(b, "run", ASK, "p", "");
    add_line(b, "other", ASK, "q", "");
    assert_int_equal(asks.find(asks.owner, GL_S("run"), &b->a)->open_n, 2);
    (void)asks.all(asks.owner, 1, &b->a, &n, &open_n);
    assert_int_equal(n, 2);
    assert_int_equal(open_n, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_can_be_read_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
