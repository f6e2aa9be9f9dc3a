#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "os/blobfs.h"
#include "support/bench.h"

static void a_blob_lies_under_its_hash(void **state)
{
    struct bench *b = *state;
    struct gl_blobfs fs;
    char hex[GL_SHA256_HEX];
    gl_str hash = gl_sha256_hex(GL_S("content"), hex);
    gl_blobfs_init(&fs, b->folder.path);
    assert_false(fs.blob.has(&fs.blob, GL_S("default"), hash));
    assert_int_equal(fs.blob.put(&fs.blob, GL_S("default"), hash, GL_S("content"), &b->why), 0);
    assert_int_equal(fs.blob.put(&fs.blob, GL_S("default"), hash, GL_S("content"), &b->why), 0);
    assert_true(fs.blob.has(&fs.blob, GL_S("default"), hash));
    assert_false(fs.blob.has(&fs.blob, GL_S("other"), hash));

    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    gl_str path = gl_str_fmt(&b->a, "%s/contexts/default/blobs/%.2s/%s", b->folder.path, hex, hex);
    assert_int_equal(gl_fs_read(path.p, 100, &text, &b->why), 0);
    assert_true(gl_str_is(gl_buf_view(&text), "content"));
    gl_blobfs_done(&fs);
}

static void a_blob_with_another_hash_or_a_bad_name_is_refused(void **state)
{
    struct bench *b = *state;
    struct gl_blobfs fs;
    char hex[GL_SHA256_HEX];
    gl_str hash = gl_sha256_hex(GL_S("content"), hex);
    gl_blobfs_init(&fs, b->folder.path);
    struct gl_blob *p = &fs.blob;
    assert_int_equal(p->put(p, GL_S("default"), hash, GL_S("changed"), &b->why), GL_E_INVALID);
    assert_int_equal(p->put(p, GL_S("../x"), hash, GL_S("content"), &b->why), GL_E_INVALID);
    assert_int_equal(p->put(p, GL_S("default"), GL_S("../../x"), GL_S(""), &b->why), GL_E_INVALID);
    assert_false(p->has(p, GL_S("default"), hash));
    assert_false(p->has(p, GL_S("default"), GL_S("../../x")));
    gl_blobfs_done(&fs);
}

static void a_sweep_removes_what_dead_writers_left_and_nothing_else(void **state)
{
    struct bench *b = *state;
    struct gl_blobfs fs;
    char hex[GL_SHA256_HEX];
    gl_str hash = gl_sha256_hex(GL_S("content"), hex);
    gl_blobfs_init(&fs, b->folder.path);
    assert_int_equal(gl_blobfs_sweep(&fs, GL_S("default"), &b->why), 0);
    assert_int_equal(fs.blob.put(&fs.blob, GL_S("default"), hash, GL_S("content"), &b->why), 0);
    const char *left = in(b, "contexts/default/blobs/tmp/tmp.abc");
    assert_int_equal(gl_fs_write(left, GL_S("half"), &b->why), 0);
    assert_int_equal(gl_blobfs_sweep(&fs, GL_S("default"), &b->why), 0);
    assert_int_not_equal(access(left, F_OK), 0);
    assert_true(fs.blob.has(&fs.blob, GL_S("default"), hash));
    gl_blobfs_done(&fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_blob_lies_under_its_hash),
        TEST(a_blob_with_another_hash_or_a_bad_name_is_refused),
        TEST(a_sweep_removes_what_dead_writers_left_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
