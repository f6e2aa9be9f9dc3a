#include "support/cmocka_all.h"

#include <unistd.h>

#include "base/check.h"
#include "base/list.h"

struct item {
    int number;
    struct gl_link link;
};

static void a_list_keeps_its_order_and_lets_go_of_any_member(void **state)
{
    (void)state;
    struct gl_link head;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    gl_list_init(&head);
    assert_true(gl_list_empty(&head));
    assert_null(gl_list_first(&head));
    for (int i = 0; i < 3; i++) {
        gl_list_push(&head, &items[i].link);
    }
    gl_list_remove(&items[1].link);
    gl_list_remove(&items[1].link); /* a lone link may be removed again */
    struct gl_link *first = gl_list_first(&head);
    assert_int_equal(GL_CONTAINER(first, struct item, link)->number, 0);
    assert_int_equal(GL_CONTAINER(first->next, struct item, link)->number, 2);
    assert_ptr_equal(first->next->next, &head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_keeps_its_order_and_lets_go_of_any_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
