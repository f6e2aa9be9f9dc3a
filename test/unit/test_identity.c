#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "os/identity.h"
#include "os/random.h"
#include "support/bench.h"

static void an_identity_is_made_once_and_then_stays(void **state)
{
    struct bench *b = *state;
    struct gl_entropy entropy = gl_random_entropy();
    struct gl_identity first, second;
    assert_int_equal(gl_identity_load(b->folder.path, &entropy, &first, &b->why), 0);
    assert_int_equal(gl_identity_load(b->folder.path, &entropy, &second, &b->why), 0);
    assert_true(gl_str_is_id(gl_str_of(first.name)));
    assert_true(gl_id_valid(gl_str_of(first.id.text)));
    assert_string_equal(first.name, second.name);
    assert_string_equal(first.id.text, second.id.text);
    assert_int_equal(mode_of(in(b, "node")), 0600);
}

static void a_damaged_identity_is_refused_and_not_replaced(void **state)
{
    struct bench *b = *state;
    struct gl_entropy entropy = gl_random_entropy();
    struct gl_identity id;
    assert_int_equal(gl_fs_write(in(b, "node"), GL_S("name=x\nid=01\n"), &b->why), 0);
    assert_int_equal(gl_identity_load(b->folder.path, &entropy, &id, &b->why), GL_E_DAMAGED);
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    assert_int_equal(gl_fs_read(in(b, "node"), 100, &text, &b->why), 0);
    assert_true(gl_str_is(gl_buf_view(&text), "name=x\nid=01\n"));
}

static void a_token_is_made_once_per_folder(void **state)
{
    struct bench *b = *state;
    struct gl_entropy entropy = gl_random_entropy();
    char first[GL_TOKEN_BYTES], second[GL_TOKEN_BYTES];
    assert_int_equal(gl_identity_token(b->folder.path, &entropy, first, &b->why), 0);
    assert_int_equal(gl_identity_token(b->folder.path, &entropy, second, &b->why), 0);
    assert_int_equal(strlen(first), 64);
    assert_string_equal(first, second);
    assert_int_equal(mode_of(in(b, "token")), 0600);
    assert_int_equal(gl_fs_write(in(b, "token"), GL_S("short"), &b->why), 0);
    assert_int_equal(gl_identity_token(b->folder.path, &entropy, first, &b->why), GL_E_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_identity_is_made_once_and_then_stays),
        TEST(a_damaged_identity_is_refused_and_not_replaced),
        TEST(a_token_is_made_once_per_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
