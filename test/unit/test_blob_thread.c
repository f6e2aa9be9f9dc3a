/* Pieces of blobs, read and written beside the control thread. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "os/blob_thread.h"
#include "os/fs.h"
#include "support/folder.h"

struct place {
    struct test_folder folder;
    struct gl_arena arena;
    struct gl_loop *loop;
    struct gl_blobfs blobs;
    struct gl_blob_thread *serve;
    struct gl_blob_req req;
    bool is_done;
};

static int make_place(void **state)
{
    struct place *p = test_calloc(1, sizeof(*p));
    struct gl_why why;
    test_folder_make(&p->folder);
    assert_int_equal(gl_loop_new(&p->loop, &why), 0);
    gl_blobfs_init(&p->blobs, p->folder.path);
    assert_int_equal(gl_blob_thread_open(&p->serve, &p->blobs, p->loop, &why), 0);
    *state = p;
    return 0;
}

static int free_place(void **state)
{
    struct place *p = *state;
    gl_blob_thread_close(p->serve);
    gl_blobfs_done(&p->blobs);
    gl_loop_free(p->loop);
    gl_arena_done(&p->arena);
    test_folder_remove(&p->folder);
    test_free(p);
    return 0;
}

static void on_done(struct gl_blob_req *req)
{
    struct place *p = req->owner;
    p->is_done = true;
    gl_loop_stop(p->loop);
}

static struct gl_blob_req *ask(struct place *p)
{
    p->req = (struct gl_blob_req){.done = on_done, .owner = p};
    p->is_done = false;
    return &p->req;
}

static int answer(struct place *p)
{
    assert_false(p->is_done); /* never from inside the call */
    gl_loop_run(p->loop);
    assert_true(p->is_done);
    return p->req.status;
}

static const gl_str context = GL_S("default");

static gl_str hex_of(struct place *p, gl_str content)
{
    char hex[GL_SHA256_HEX];
    return gl_str_dup(&p->arena, gl_sha256_hex(content, hex));
}

static int look(struct place *p, gl_str hex, bool check)
{
    p->blobs.blob.look(&p->blobs.blob, ask(p), context, hex, check);
    return answer(p);
}

static int write_piece(struct place *p, gl_str hex, uint64_t at, gl_str piece)
{
    p->blobs.blob.write(&p->blobs.blob, ask(p), context, hex, at, piece);
    return answer(p);
}

static int seal(struct place *p, gl_str hex)
{
    p->blobs.blob.seal(&p->blobs.blob, ask(p), context, hex);
    return answer(p);
}

static gl_str put(struct place *p, gl_str content)
{
    struct gl_why why;
    gl_str hex = hex_of(p, content);
    assert_int_equal(p->blobs.blob.put(&p->blobs.blob, context, hex, content, &why), 0);
    return hex;
}

static gl_str large(struct place *p, size_t n)
{
    char *text = gl_arena_alloc(&p->arena, n);
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)(i * 7 + i / 251);
    }
    return (gl_str){.p = text, .n = n};
}

static void what_was_put_is_read_piece_by_piece(void **state)
{
    struct place *p = *state;
    gl_str content = large(p, 1000003);
    gl_str hex = put(p, content);
    assert_int_equal(look(p, hex, true), 0);
    assert_int_equal(p->req.size, content.n);
    char *buffer = gl_arena_alloc(&p->arena, 400000);
    for (size_t at = 0; at < content.n; at += p->req.n) {
        p->blobs.blob.read(&p->blobs.blob, ask(p), context, hex, at, buffer, 400000);
        assert_int_equal(answer(p), 0);
        assert_int_equal(p->req.n, content.n - at < 400000 ? content.n - at : 400000);
        assert_memory_equal(buffer, content.p + at, p->req.n);
    }
}

static void what_is_not_there_is_not_found(void **state)
{
    struct place *p = *state;
    gl_str hex = hex_of(p, GL_S("nobody has put this"));
    char byte;
    assert_int_equal(look(p, hex, false), GL_E_NOT_FOUND);
    assert_int_equal(seal(p, hex), GL_E_NOT_FOUND);
    assert_int_equal(write_piece(p, hex, 3, GL_S("late")), GL_E_NOT_FOUND);
    p->blobs.blob.read(&p->blobs.blob, ask(p), context, hex, 0, &byte, 1);
    assert_int_equal(answer(p), GL_E_NOT_FOUND);
}

static void pieces_are_nothing_before_they_are_sealed(void **state)
{
    struct place *p = *state;
    gl_str content = large(p, 300000);
    gl_str hex = hex_of(p, content);
    gl_str first = {.p = content.p, .n = 100000}, rest = {.p = content.p + 100000, .n = 200000};
    assert_int_equal(write_piece(p, hex, 0, first), 0);
    assert_int_equal(write_piece(p, hex, 100000, rest), 0);
    assert_false(p->blobs.blob.has(&p->blobs.blob, context, hex));
    assert_int_equal(look(p, hex, false), GL_E_NOT_FOUND);
    assert_int_equal(seal(p, hex), 0);
    assert_true(p->blobs.blob.has(&p->blobs.blob, context, hex));
    assert_int_equal(look(p, hex, true), 0);
    assert_int_equal(p->req.size, content.n);
    assert_int_equal(seal(p, hex), GL_E_NOT_FOUND); /* once */
}

static void a_second_beginning_forgets_the_first(void **state)
{
    struct place *p = *state;
    gl_str hex = hex_of(p, GL_S("short"));
    assert_int_equal(write_piece(p, hex, 0, GL_S("something-longer")), 0);
    assert_int_equal(write_piece(p, hex, 0, GL_S("short")), 0);
    assert_int_equal(seal(p, hex), 0);
    assert_int_equal(look(p, hex, true), 0);
    assert_int_equal(p->req.size, 5);
}

static void an_empty_one_is_one_too(void **state)
{
    struct place *p = *state;
    gl_str hex = hex_of(p, (gl_str){0});
    assert_int_equal(write_piece(p, hex, 0, (gl_str){0}), 0);
    assert_int_equal(seal(p, hex), 0);
    assert_int_equal(look(p, hex, true), 0);
    assert_int_equal(p->req.size, 0);
}

static void what_is_something_else_is_not_sealed(void **state)
{
    struct place *p = *state;
    gl_str hex = hex_of(p, GL_S("the truth"));
    assert_int_equal(write_piece(p, hex, 0, GL_S("the trust")), 0);
    assert_int_equal(seal(p, hex), GL_E_DAMAGED);
    assert_false(p->blobs.blob.has(&p->blobs.blob, context, hex));
    assert_int_equal(seal(p, hex), GL_E_NOT_FOUND); /* it is gone */
}

static void a_changed_file_is_noticed_by_who_checks(void **state)
{
    struct place *p = *state;
    gl_str hex = put(p, GL_S("as it was"));
    const char *path = gl_blobfs_path(&p->arena, p->folder.path, context, hex);
    struct gl_why why;
    assert_int_equal(gl_fs_write(path, GL_S("as it IS!"), &why), 0);
    assert_int_equal(look(p, hex, false), 0);
    assert_int_equal(look(p, hex, true), GL_E_DAMAGED);
    assert_non_null(strstr(p->req.why.text, path));
}

static void half_a_blob_is_swept_away(void **state)
{
    struct place *p = *state;
    gl_str hex = hex_of(p, GL_S("one two"));
    struct gl_why why;
    assert_int_equal(write_piece(p, hex, 0, GL_S("one ")), 0);
    assert_int_equal(gl_blobfs_sweep(&p->blobs, context, &why), 0);
    assert_int_equal(write_piece(p, hex, 4, GL_S("two")), GL_E_NOT_FOUND);
}

static void a_disk_that_refuses_is_told(void **state)
{
    struct place *p = *state;
    gl_str hex = hex_of(p, GL_S("x"));
    const char *folder = gl_str_fmt(&p->arena, "%s/contexts", p->folder.path).p;
    struct gl_why why;
    assert_int_equal(gl_fs_write(folder, GL_S("no folder"), &why), 0);
    assert_int_not_equal(write_piece(p, hex, 0, GL_S("x")), 0);
    assert_int_not_equal(p->req.status, GL_E_NOT_FOUND);
    assert_non_null(strstr(p->req.why.text, "contexts"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, free_place)
        TEST(what_was_put_is_read_piece_by_piece),
        TEST(what_is_not_there_is_not_found),
        TEST(pieces_are_nothing_before_they_are_sealed),
        TEST(a_second_beginning_forgets_the_first),
        TEST(an_empty_one_is_one_too),
        TEST(what_is_something_else_is_not_sealed),
        TEST(a_changed_file_is_noticed_by_who_checks),
        TEST(half_a_blob_is_swept_away),
        TEST(a_disk_that_refuses_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
