#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "os/archive.h"
#include "os/tree.h"
#include "support/bench.h"

static void make_backup(struct bench *b)
{
    struct gl_archive a;
    struct gl_why why;
    write_file(b, "data/one", "first");
    write_file(b, "data/two", "");
    write_file(b, "b/three", "there already"); /* put there by others, below */
    assert_int_equal(unlink(in(b, "b/three")), 0);
    assert_int_equal(gl_archive_create(&a, in(b, "b"), "1.2.3", 1000, &why), 0);
    assert_int_equal(gl_archive_add(&a, in(b, "data/one"), "x/one", &why), 0);
    assert_int_equal(gl_archive_add(&a, in(b, "data/two"), "x/y/two", &why), 0);
    assert_int_equal(gl_archive_add(&a, in(b, "data/one"), "x/one", &why), 0); /* again */
    assert_int_equal(gl_archive_add(&a, in(b, "data/gone"), "x/gone", &why), 0);
    write_file(b, "b/three", "there already");
    assert_int_equal(gl_archive_add_existing(&a, "three", &why), 0);
    assert_int_equal(gl_archive_finish(&a, &why), 0);
    assert_int_equal(a.files_n, 3);
    gl_archive_done(&a);
}

static void a_backup_is_extracted_as_it_was(void **state)
{
    struct bench *b = *state;
    struct gl_archive_info info;
    struct gl_buf text = {0};
    struct gl_why why;
    make_backup(b);
    assert_int_equal(gl_archive_extract(in(b, "b"), in(b, "fresh"), &info, &why), 0);
    assert_int_equal(info.files_n, 3);
    assert_int_equal(info.bytes, 18);
    assert_string_equal(info.release, "1.2.3");
    assert_string_equal(info.made, "1970-01-01T00:00:01.000Z");
    assert_int_equal(gl_fs_read(in(b, "fresh/x/one"), 100, &text, &why), 0);
    assert_true(gl_str_is(gl_buf_view(&text), "first"));
    assert_true(is_there(b, "fresh/x/y/two"));
    assert_true(is_there(b, "fresh/three"));
    gl_buf_done(&text);
}

static int extract(struct bench *b, struct gl_why *why)
{
    struct gl_archive_info info;
    struct gl_tree_sum sum = {0};
    (void)gl_tree_remove(AT_FDCWD, in(b, "fresh"), &sum);
    assert_int_equal(mkdir(in(b, "fresh"), 0700), 0);
    return gl_archive_extract(in(b, "b"), in(b, "fresh"), &info, why);
}

static void a_changed_file_is_noticed(void **state)
{
    struct bench *b = *state;
    struct gl_why why;
    make_backup(b);
    write_file(b, "b/x/one", "First");
    assert_int_equal(extract(b, &why), GL_E_DAMAGED);
    assert_non_null(strstr(why.text, "x/one does"));
    assert_int_equal(unlink(in(b, "b/x/one")), 0);
    assert_int_equal(extract(b, &why), GL_E_DAMAGED);
    assert_non_null(strstr(why.text, "x/one is missing"));
}

static void a_list_that_is_not_whole_is_noticed(void **state)
{
    struct bench *b = *state;
    struct gl_buf text = {0};
    struct gl_why why;
    make_backup(b);
    assert_int_equal(gl_fs_read(in(b, "b/MANIFEST"), 10000, &text, &why), 0);
    for (size_t n = 0; n < text.n; n++) { /* cut anywhere */
        assert_int_equal(gl_fs_write(in(b, "b/MANIFEST"), (gl_str){.p = text.p, .n = n}, &why), 0);
        int err = extract(b, &why);
        assert_true(err == GL_E_DAMAGED || (err == 0 && n == text.n - 1)); /* the last newline */
    }
    assert_int_equal(unlink(in(b, "b/MANIFEST")), 0);
    assert_int_equal(extract(b, &why), GL_E_NOT_FOUND);
    gl_buf_done(&text);
}

static void write_list(struct bench *b, const char *lines)
{
    char hex[GL_SHA256_HEX];
    (void)gl_sha256_hex(gl_str_of(lines), hex);
    write_file(b, "b/MANIFEST", gl_str_fmt(&b->a, "%send %s\n", lines, hex).p);
}

static void a_list_cannot_lead_out_of_the_folder(void **state)
{
    struct bench *b = *state;
    struct gl_why why;
    const char *const names[] = {"../stolen", "/etc/passwd", "a/../../b", ".hidden", "a//b", ""};
    make_backup(b);
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        write_list(b, gl_str_fmt(&b->a, "glia-backup 1\nfile %064d 1 %s\n", 0, names[i]).p);
        assert_int_equal(extract(b, &why), GL_E_DAMAGED);
        assert_non_null(strstr(why.text, "malformed"));
    }
    write_list(b, "glia-backup 2\n");
    assert_int_equal(extract(b, &why), GL_E_VERSION);
}

static void a_backup_wants_an_empty_folder(void **state)
{
    struct bench *b = *state;
    struct gl_archive a;
    struct gl_why why;
    make_backup(b);
    assert_int_equal(gl_archive_create(&a, in(b, "b"), "1", 0, &why), GL_E_EXISTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backup_is_extracted_as_it_was),     TEST(a_changed_file_is_noticed),
        TEST(a_list_that_is_not_whole_is_noticed), TEST(a_list_cannot_lead_out_of_the_folder),
        TEST(a_backup_wants_an_empty_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
