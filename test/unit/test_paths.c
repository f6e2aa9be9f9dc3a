#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/paths.h"
#include "support/bench.h"

static const char *data_of(struct bench *b, struct gl_paths_env env)
{
    const char *path = NULL;
    return gl_paths_data(&env, &b->a, &path, &b->why) == 0 ? path : NULL;
}

static void the_data_folder_is_chosen_in_the_documented_order(void **state)
{
    struct bench *b = *state;
    struct gl_paths_env env = {
        .option = "/o/", .glia_data_dir = "/g", .xdg_data_home = "/x", .home = "/h"};
    assert_string_equal(data_of(b, env), "/o");
    env.option = NULL;
    assert_string_equal(data_of(b, env), "/g");
    env.glia_data_dir = "";
    assert_string_equal(data_of(b, env), "/x/glia");
    env.xdg_data_home = "relative";
    assert_string_equal(data_of(b, env), "/h/.local/share/glia");
    env.root = true;
    assert_string_equal(data_of(b, env), "/var/lib/glia");
    assert_null(data_of(b, (struct gl_paths_env){.home = ""}));
    assert_null(data_of(b, (struct gl_paths_env){.option = "", .home = "/h"}));
}

static void a_relative_data_folder_becomes_absolute(void **state)
{
    struct bench *b = *state;
    char cwd[4096];
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    const char *data = data_of(b, (struct gl_paths_env){.option = "here/there"});
    assert_string_equal(data, gl_str_fmt(&b->a, "%s/here/there", cwd).p);
}

static void the_layout_is_made_and_private(void **state)
{
    struct bench *b = *state;
    const char *data = in(b, "data");
    assert_int_equal(gl_paths_prepare(data, GL_S("default"), &b->why), 0);
    assert_int_equal(mode_of(data), 0700);
    assert_int_equal(mode_of(in(b, "data/keeper")), 0700);
    assert_int_equal(mode_of(in(b, "data/contexts/default/blobs")), 0700);
    assert_int_equal(mode_of(in(b, "data/contexts/default/runs")), 0700);
}

static void a_data_folder_that_everybody_may_write_to_is_refused(void **state)
{
    struct bench *b = *state;
    assert_int_equal(chmod(b->folder.path, 0777), 0);
    assert_int_equal(gl_paths_prepare(b->folder.path, GL_S("default"), &b->why), GL_E_DENIED);
    assert_non_null(strstr(b->why.text, "chmod o-w"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_data_folder_is_chosen_in_the_documented_order),
        TEST(a_relative_data_folder_becomes_absolute),
        TEST(the_layout_is_made_and_private),
        TEST(a_data_folder_that_everybody_may_write_to_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
