#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "cli/settings.h"
#include "os/fs.h"
#include "os/paths.h"
#include "support/folder.h"
#include "support/golden.h"

struct bench {
    struct test_folder folder;
    struct gl_arena a;
    struct gl_settings_sources from;
    struct gl_settings s;
    struct gl_why why;
};

/* The environment of a test: pairs of name and value. */
static const char *the_env[8][2];

static const char *env(const char *name)
{
    for (size_t i = 0; i < GL_COUNT(the_env); i++) {
        if (the_env[i][0] != NULL && strcmp(the_env[i][0], name) == 0) {
            return the_env[i][1];
        }
    }
    return NULL;
}

static void set_env(size_t i, const char *name, const char *value)
{
    the_env[i][0] = name;
    the_env[i][1] = value;
}

static int set_up(void **state)
{
    static struct bench b;

    memset(&b, 0, sizeof(b));
    memset(the_env, 0, sizeof(the_env));
    test_folder_make(&b.folder);
    b.from.env = env;
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    test_folder_remove(&b->folder);
    gl_arena_done(&b->a);
    return 0;
}

static const char *file(struct bench *b, const char *name, const char *content)
{
    const char *path = gl_paths_in(&b->a, b->folder.path, name);

    assert_int_equal(gl_fs_write(path, gl_str_of(content), NULL), 0);
    return path;
}

static void assert_reads(struct bench *b)
{
    b->why.text[0] = '\0';
    if (gl_settings_read(&b->s, &b->from, &b->a, &b->why) != 0) {
        fail_msg("%s", b->why.text);
    }
}

/* What is said goes to the golden, without the folder of this run. */
static void assert_refuses(struct bench *b, const char *what)
{
    golden_hide(b->folder.path);
    assert_int_equal(gl_settings_read(&b->s, &b->from, &b->a, &b->why), GL_E_INVALID);
    golden_say(what, gl_str_of(b->why.text));
}

static void without_anything_the_defaults_hold(void **state)
{
    struct bench *b = *state;

    assert_reads(b);
    assert_string_equal(b->s.path, "");
    assert_string_equal(b->s.values[GL_SET_GRACE].text, "30s");
    assert_int_equal(b->s.values[GL_SET_GRACE].number, 30000);
    assert_int_equal(b->s.values[GL_SET_KEEP_JOBS].number, 100000);
    assert_int_equal(b->s.values[GL_SET_FINISH].number, 0);
    assert_string_equal(b->s.values[GL_SET_SERVER].text, "");
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        assert_string_equal(gl_settings_origin(&b->s, (enum gl_setting_id)i, &b->a), "default");
    }
}

static void a_flag_beats_the_environment_and_that_the_file(void **state)
{
    struct bench *b = *state;
    const char *path = file(b, "c.yaml", "# settings\ngrace: 1m\nkeep_jobs: 7\nkeep_for: 2d\n");

    b->from.config = path;
    set_env(0, "GLIA_KEEP_JOBS", "8");
    set_env(1, "GLIA_KEEP_FOR", "3d");
    set_env(2, "GLIA_POOLS", ""); /* as if it were not there */
    b->from.flags[GL_SET_KEEP_FOR] = "4d";
    assert_reads(b);
    assert_int_equal(b->s.values[GL_SET_GRACE].number, 60000);
    assert_int_equal(b->s.values[GL_SET_KEEP_JOBS].number, 8);
    assert_int_equal(b->s.values[GL_SET_KEEP_FOR].number, 4 * 86400000LL);
    assert_string_equal(gl_settings_origin(&b->s, GL_SET_GRACE, &b->a),
                        gl_str_fmt(&b->a, "file %s:2", path).p);
    assert_string_equal(gl_settings_origin(&b->s, GL_SET_KEEP_JOBS, &b->a),
                        "environment GLIA_KEEP_JOBS");
    assert_string_equal(gl_settings_origin(&b->s, GL_SET_KEEP_FOR, &b->a), "flag --keep-for");
    assert_string_equal(gl_settings_origin(&b->s, GL_SET_POOLS, &b->a), "default");
}

static void slots_of_workers_have_bounds(void **state)
{
    struct bench *b = *state;

    assert_reads(b);
    assert_int_equal(b->s.values[GL_SET_EXECUTOR_SLOTS].number, 50);
    assert_string_equal(b->s.values[GL_SET_EXECUTOR_POOLS].text, "");
    set_env(0, "MN_EXECUTOR_MAX_CONCURRENCY", "100000");
    set_env(1, "MN_EXECUTOR_POOL_CAPACITIES", "gpu=1,io=8");
    assert_reads(b);
    assert_int_equal(b->s.values[GL_SET_EXECUTOR_SLOTS].number, 100000);
    assert_string_equal(b->s.values[GL_SET_EXECUTOR_POOLS].text, "gpu=1,io=8");
    set_env(0, "MN_EXECUTOR_MAX_CONCURRENCY", "0");
    assert_refuses(b, "MN_EXECUTOR_MAX_CONCURRENCY 0");
}

static void labels_may_be_an_object(void **state)
{
    struct bench *b = *state;

    b->from.config = file(b, "c.yaml", "labels: {zone: a, rack: 12, fast: true}\n");
    assert_reads(b);
    assert_string_equal(b->s.values[GL_SET_LABELS].text, "zone=a,rack=12,fast=true");
    set_env(0, "GLIA_LABELS", "zone=b");
    assert_reads(b);
    assert_string_equal(b->s.values[GL_SET_LABELS].text, "zone=b");
    b->from.flags[GL_SET_LABELS] = "zone=c,zone=c";
    assert_refuses(b, "labels");
    b->from.flags[GL_SET_LABELS] = "";
    assert_refuses(b, "no label");
    b->from.flags[GL_SET_LABELS] = NULL;
    b->from.config = file(b, "c.yaml", "labels: {zone: 'a,disk=ssd'}\n"); /* one label, not two */
    assert_refuses(b, "file labels");
    b->from.config = file(b, "c.yaml", "labels: {'zone=a,disk': ssd}\n");
    assert_refuses(b, "file labels");
    b->from.config = file(b, "c.yaml", "labels: {zone: [a]}\n");
    assert_refuses(b, "file labels");
    b->from.config = file(b, "c.yaml", "labels: [zone]\n");
    assert_refuses(b, "file labels");
}

static void the_file_may_be_json_and_pools_may_be_an_object(void **state)
{
    struct bench *b = *state;

    b->from.config = file(b, "c.json",
                          "{\"pools\": {\"default\": 3, \"gpu\": 1}, \"finish\": true,\n"
                          " \"keep_bytes\": \"20G\", \"listen\": null}");
    assert_reads(b);
    assert_string_equal(b->s.values[GL_SET_POOLS].text, "default=3,gpu=1");
    assert_int_equal(b->s.values[GL_SET_FINISH].number, 1);
    assert_int_equal(b->s.values[GL_SET_KEEP_BYTES].number, 20LL << 30);
    assert_string_equal(b->s.values[GL_SET_LISTEN].text, "");
}

static void all_mistakes_of_a_file_are_told_at_once_with_their_places(void **state)
{
    struct bench *b = *state;

    b->from.config = file(b, "c.yaml",
                          "keep_fro: 3d\nlisten: here\ngrace: 5 fortnights\ndata_dir: relative\n"
                          "log: loud\nzzzz: 1\nkeep_jobs:  [1]\n");
    assert_refuses(b, "mistakes");
}

static void a_file_that_is_no_yaml_tells_where(void **state)
{
    struct bench *b = *state;

    b->from.config = file(b, "c.yaml", "grace: 3s\n: : :\n\t- x");
    assert_refuses(b, "no YAML");
    b->from.config = file(b, "c.yaml", "- grace\n");
    assert_refuses(b, "a list");
}

static void an_empty_file_sets_nothing(void **state)
{
    struct bench *b = *state;

    b->from.config = file(b, "c.yaml", "# nothing yet\n");
    assert_reads(b);
    assert_string_equal(b->s.path, b->from.config);
}

static void a_file_that_was_named_must_be_there(void **state)
{
    struct bench *b = *state;

    b->from.config = gl_paths_in(&b->a, b->folder.path, "nowhere.yaml");
    assert_refuses(b, "--config");
    b->from.config = NULL;
    set_env(0, "GLIA_CONFIG", gl_paths_in(&b->a, b->folder.path, "nowhere.yaml"));
    assert_refuses(b, "GLIA_CONFIG");
}

static void the_usual_file_is_read_if_it_is_there(void **state)
{
    struct bench *b = *state;

    set_env(0, "XDG_CONFIG_HOME", b->folder.path);
    assert_reads(b);
    assert_string_equal(b->s.path, "");
    assert_int_equal(gl_fs_mkdirs(gl_paths_in(&b->a, b->folder.path, "glia"), NULL), 0);
    (void)file(b, "glia/config.yaml", "grace: 9s\n");
    assert_reads(b);
    assert_int_equal(b->s.values[GL_SET_GRACE].number, 9000);
}

static void values_of_flags_and_variables_are_checked_too(void **state)
{
    struct bench *b = *state;

    set_env(0, "GLIA_SERVER", "ftp://x");
    set_env(1, "GLIA_KEEP_JOBS", "-1");
    set_env(2, "GLIA_BODY_BYTES", "2K");
    b->from.flags[GL_SET_POOLS] = "default=2,gpu";
    b->from.flags[GL_SET_KEEP_BYTES] = "1.5X";
    b->from.flags[GL_SET_LISTEN] = "";
    assert_refuses(b, "values");
}

static void modules_are_folders_and_names(void **state)
{
    struct bench *b = *state;

    set_env(0, "GLIA_MODULES_DIR", "/a:/b");
    set_env(1, "GLIA_TRUSTED_MODULES", "acme.sort, Acme.Join");
    assert_reads(b);
    assert_string_equal(b->s.values[GL_SET_MODULES].text, "/a:/b");
    assert_string_equal(b->s.values[GL_SET_MODULES_TRUSTED].text, "acme.sort, Acme.Join");
    set_env(0, "GLIA_MODULES_DIR", "/a:b");
    set_env(1, "GLIA_TRUSTED_MODULES", "a,b c");
    assert_refuses(b, "modules");
}

static void servers_and_addresses_are_known_by_their_form(void **state)
{
    static const struct {
        enum gl_setting_id id;
        const char *text;
        bool good;
    } cases[] = {
        {GL_SET_SERVER, "unix:/run/x.sock", true},  {GL_SET_SERVER, "unix:/", false},
        {GL_SET_SERVER, "unix:x.sock", false},      {GL_SET_SERVER, "http://localhost:7464", true},
        {GL_SET_SERVER, "http://[::1]:1", true},    {GL_SET_SERVER, "http://host", false},
        {GL_SET_SERVER, "http://host:1/v1", false}, {GL_SET_SERVER, "https://host:1", false},
        {GL_SET_LISTEN, "127.0.0.1:0", true},       {GL_SET_LISTEN, "[::1]:7464", true},
        {GL_SET_LISTEN, "localhost:7464", true},    {GL_SET_LISTEN, "::1:7464", false},
        {GL_SET_LISTEN, "127.0.0.1", false},        {GL_SET_LISTEN, "127.0.0.1:65536", false},
        {GL_SET_LISTEN, "example.org:80", false},   {GL_SET_LISTEN, ":7464", false},
        {GL_SET_KEEP_BYTES, "10KiB", true},         {GL_SET_KEEP_BYTES, "10 MB", true},
        {GL_SET_KEEP_BYTES, "10Mb", false},         {GL_SET_KEEP_BYTES, "M", false},
        {GL_SET_KEEP_BYTES, "8388607T", true},      {GL_SET_KEEP_BYTES, "8388608T", false},
    };
    struct bench *b = *state;

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        memset(b->from.flags, 0, sizeof(b->from.flags));
        b->from.flags[cases[i].id] = cases[i].text;
        if ((gl_settings_read(&b->s, &b->from, &b->a, &b->why) == 0) != cases[i].good) {
            fail_msg("%s: %s", cases[i].text, b->why.text);
        }
    }
}

static void a_store_is_chosen_by_its_url(void **state)
{
    struct bench *b = *state;

    set_env(0, "GLIA_STORE", "redis://u:secret@h/0");
    b->from.flags[GL_SET_SESSION_TTL] = "3s";
    assert_reads(b);
    assert_string_equal(b->s.values[GL_SET_STORE].text, "redis://u:secret@h/0");
    assert_string_equal(gl_settings_shown(&b->s, GL_SET_STORE, &b->a), "redis://u:***@h/0");
    assert_string_equal(gl_settings_shown(&b->s, GL_SET_GRACE, &b->a), "30s");
    assert_int_equal(b->s.values[GL_SET_SESSION_TTL].number, 3000);
    assert_int_equal(b->s.values[GL_SET_ORPHAN_GRACE].number, 60000);
    set_env(0, "GLIA_STORE", "mysql://u:secret@h");
    b->from.flags[GL_SET_SESSION_TTL] = "10ms";
    b->from.flags[GL_SET_ORPHAN_GRACE] = "2d";
    b->from.flags[GL_SET_NODE_NAME] = "-x";
    b->from.flags[GL_SET_STACK] = "a b";
    assert_refuses(b, "stores");
    assert_null(strstr(b->why.text, "secret"));
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/settings.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_anything_the_defaults_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_is_chosen_by_its_url, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flag_beats_the_environment_and_that_the_file, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(slots_of_workers_have_bounds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(labels_may_be_an_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_file_may_be_json_and_pools_may_be_an_object, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(all_mistakes_of_a_file_are_told_at_once_with_their_places,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_yaml_tells_where, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_file_sets_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_was_named_must_be_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_usual_file_is_read_if_it_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_of_flags_and_variables_are_checked_too, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(modules_are_folders_and_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(servers_and_addresses_are_known_by_their_form, set_up,
                                        tear_down),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
