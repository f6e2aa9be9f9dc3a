/* Records as users of the API see them. */
#include "api/render.h"
#include "base/check.h"
#include "support/cmocka_all.h"

#include <string.h>

static void assert_page(int64_t from, int64_t last, const char *status, bool ended,
                        const char *expected)
{
    const struct gl_log_entry log[] = {
        {.seq = 1,
         .value = GL_S("{\"seq\":1,\"type\":\"running\"}\n{\"seq\":2,\"type\":\"pausing\"}\n")},
        {.seq = 3, .value = GL_S("{\"seq\":3,\"type\":\"paused\"}\n")},
    };
    struct gl_events e = {.from = from, .last = last, .limit = 10, .status = gl_str_of(status)};
    struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_render_events_begin(&e, &w);
    for (size_t i = 0; i < GL_COUNT(log); i++) {
        gl_render_events_add(&e, log[i].value, &w);
    }
    (void)gl_render_events_end(&e, ended, &w); /* the text has it, too */
    gl_buf_char(&out, '\0');
    assert_string_equal(out.p, expected);
    gl_buf_done(&out);
}

static void a_page_of_events_and_its_status_are_of_one_moment(void **state)
{
    (void)state;
    assert_page(2, 3, "paused", false,
                "{\"events\":[{\"seq\":2,\"type\":\"pausing\"},{\"seq\":3,\"type\":\"paused\"}],"
                "\"next_seq\":4,\"status\":\"paused\",\"ended\":false}");
    /* The log was read after the record: what came in between is for the next page. */
    assert_page(2, 2, "pausing", false,
                "{\"events\":[{\"seq\":2,\"type\":\"pausing\"}],"
                "\"next_seq\":3,\"status\":\"pausing\",\"ended\":false}");
    assert_page(3, 2, "pausing", false,
                "{\"events\":[],\"next_seq\":3,\"status\":\"pausing\",\"ended\":false}");
}

static void a_page_that_tells_the_end_says_so(void **state)
{
    (void)state;
    assert_page(4, 3, "completed", true,
                "{\"events\":[],\"next_seq\":4,\"status\":\"completed\",\"ended\":true}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_events_and_its_status_are_of_one_moment),
        cmocka_unit_test(a_page_that_tells_the_end_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
