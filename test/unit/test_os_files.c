#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "os/blobfs.h"
#include "os/fs.h"
#include "os/identity.h"
#include "os/lock.h"
#include "os/paths.h"
#include "os/random.h"
#include "os/sock.h"
#include "support/folder.h"

struct bench {
    struct test_folder folder;
    struct gl_arena a;
    struct gl_why why;
};

static int set_up(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof(b));
    test_folder_make(&b.folder);
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

static const char *in(struct bench *b, const char *name)
{
    return gl_paths_in(&b->a, b->folder.path, name);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* ---- fs ---- */

static void folders_are_made_for_their_owner_only(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_mkdirs(in(b, "a/b//c/"), &b->why), 0);
    assert_int_equal(mode_of(in(b, "a")), 0700);
    assert_int_equal(mode_of(in(b, "a/b/c")), 0700);
    assert_int_equal(gl_fs_mkdirs(in(b, "a/b/c"), &b->why), 0);
}

static void a_file_in_the_way_of_a_folder_is_named(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_write(in(b, "a"), GL_S("x"), &b->why), 0);
    assert_int_equal(gl_fs_mkdirs(in(b, "a/b"), &b->why), GL_E_IO);
    assert_non_null(strstr(b->why.text, in(b, "a")));
}

static void a_written_file_is_read_back_whole_and_is_private(void **state)
{
    struct bench *b = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_buf_c(&out, "before:");
    assert_int_equal(gl_fs_write(in(b, "f"), GL_S("old"), &b->why), 0);
    assert_int_equal(gl_fs_write(in(b, "f"), GL_S("new text"), &b->why), 0);
    assert_int_equal(gl_fs_read(in(b, "f"), 8, &out, &b->why), 0);
    assert_true(gl_str_is(gl_buf_view(&out), "before:new text"));
    assert_int_equal(mode_of(in(b, "f")), 0600);
}

static void a_file_larger_than_the_limit_is_refused_and_nothing_is_kept(void **state)
{
    struct bench *b = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_buf_c(&out, "kept");
    assert_int_equal(gl_fs_write(in(b, "f"), GL_S("123456789"), &b->why), 0);
    assert_int_equal(gl_fs_read(in(b, "f"), 8, &out, &b->why), GL_E_LIMIT);
    assert_true(gl_str_is(gl_buf_view(&out), "kept"));
}

static void a_missing_file_is_not_found(void **state)
{
    struct bench *b = *state;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    assert_int_equal(gl_fs_read(in(b, "nothing"), 8, &out, &b->why), GL_E_NOT_FOUND);
    assert_int_equal(gl_fs_write(in(b, "no/folder"), GL_S("x"), &b->why), GL_E_NOT_FOUND);
}

static void a_failed_write_leaves_no_temporary_file(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_mkdirs(in(b, "d/target"), &b->why), 0);
    assert_int_not_equal(gl_fs_write(in(b, "d/target"), GL_S("x"), &b->why), 0);
    assert_int_equal(rmdir(in(b, "d/target")), 0);
    assert_int_equal(rmdir(in(b, "d")), 0); /* succeeds only when empty */
}

/* ---- lock ---- */

static void a_second_holder_is_told_the_pid_of_the_first(void **state)
{
    struct bench *b = *state;
    struct gl_lock first = {.fd = -1}, second = {.fd = -1};
    assert_int_equal(gl_lock_take(&first, b->folder.path, &b->why), 0);
    assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), GL_E_BUSY);
    assert_int_equal(second.fd, -1);
    assert_non_null(strstr(b->why.text, gl_str_fmt(&b->a, "process %d", (int)getpid()).p));
    gl_lock_drop(&first);
    assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), 0);
    gl_lock_drop(&second);
    gl_lock_drop(&second);
}

static void the_lock_vanishes_with_its_holder(void **state)
{
    struct bench *b = *state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gl_lock l;
        _exit(gl_lock_take(&l, b->folder.path, NULL) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct gl_lock l;
    assert_int_equal(gl_lock_take(&l, b->folder.path, &b->why), 0);
    gl_lock_drop(&l);
}

static void the_lock_is_not_inherited_over_exec(void **state)
{
    struct bench *b = *state;
    struct gl_lock l;
    assert_int_equal(gl_lock_take(&l, b->folder.path, &b->why), 0);
    assert_true(fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
    gl_lock_drop(&l);
}

static void the_holder_of_a_lock_is_known(void **state)
{
    struct bench *b = *state;
    struct gl_lock_holder holder;
    struct gl_lock first, second = {.fd = -1};

    assert_false(gl_lock_find(b->folder.path, &holder)); /* there is no such file */
    assert_int_equal(gl_lock_take_as(&first, b->folder.path, "serve", &b->why), 0);
    assert_true(gl_lock_find(b->folder.path, &holder));
    assert_int_equal(holder.pid, getpid());
    assert_string_equal(holder.what, "serve");
    assert_true(holder.since > 0);
    assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), GL_E_BUSY);
    assert_non_null(strstr(b->why.text, "(glia serve), since 20"));
    gl_lock_drop(&first);
    assert_false(gl_lock_find(b->folder.path, &holder));
    /* A shorter text replaces a longer one. */
    assert_int_equal(gl_lock_take(&first, b->folder.path, &b->why), 0);
    assert_true(gl_lock_find(b->folder.path, &holder));
    assert_string_equal(holder.what, "");
    gl_lock_drop(&first);
}

static void a_lock_that_tells_nonsense_is_busy_all_the_same(void **state)
{
    static const char *const texts[] = {"", "x\n", "12", "-\n\n\n", "1\nnever\n../../etc\n"};
    struct bench *b = *state;
    struct gl_lock first, second = {.fd = -1};

    assert_int_equal(gl_lock_take(&first, b->folder.path, &b->why), 0);
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        assert_int_equal(ftruncate(first.fd, 0), 0);
        assert_int_equal(pwrite(first.fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
        assert_int_equal(gl_lock_take(&second, b->folder.path, &b->why), GL_E_BUSY);
        assert_null(strstr(b->why.text, ".."));
    }
    gl_lock_drop(&first);
}

static void a_claim_is_seen_by_others_and_ends_with_its_holder(void **state)
{
    struct bench *b = *state;
    struct gl_lock claim, other = {.fd = -1}, lock;

    assert_false(gl_lock_is_claimed(b->folder.path));
    assert_int_equal(gl_lock_claim(&claim, b->folder.path, &b->why), 0);
    assert_true(gl_lock_is_claimed(b->folder.path));
    assert_int_equal(gl_lock_claim(&other, b->folder.path, &b->why), GL_E_BUSY);
    assert_int_equal(gl_lock_take(&lock, b->folder.path, &b->why), 0); /* it is not the lock */
    gl_lock_drop(&claim);
    assert_false(gl_lock_is_claimed(b->folder.path));
    gl_lock_drop(&lock);
}

/* ---- paths ---- */

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

/* ---- identity ---- */

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

/* ---- sockets ---- */

static void talk(struct bench *b, const char *path)
{
    int listener = -1, client = -1;
    assert_int_equal(gl_sock_listen(path, &listener, &b->why), 0);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(gl_sock_connect(path, &client, &b->why), 0);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    uid_t uid = (uid_t)-1;
    pid_t pid = 0;
    assert_int_equal(gl_sock_peer(server, &uid, &pid, &b->why), 0);
    assert_int_equal(uid, geteuid());
    assert_int_equal(pid, getpid());
    (void)close(server);
    (void)close(client);
    (void)close(listener);
}

static void a_socket_with_a_short_path_works(void **state)
{
    struct bench *b = *state;
    talk(b, in(b, "s"));
}

static void a_socket_with_a_long_path_works(void **state)
{
    struct bench *b = *state;
    char name[200];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const char *folder = gl_str_fmt(&b->a, "%s/%s", in(b, name), name).p;
    assert_int_equal(gl_fs_mkdirs(folder, &b->why), 0);
    talk(b, gl_paths_in(&b->a, folder, "node.sock"));
}

static void a_socket_left_by_the_dead_is_replaced(void **state)
{
    struct bench *b = *state;
    int fd = -1;
    assert_int_equal(gl_sock_connect(in(b, "s"), &fd, &b->why), GL_E_NOT_FOUND);
    assert_int_equal(gl_sock_listen(in(b, "s"), &fd, &b->why), 0);
    (void)close(fd);
    fd = -1;
    assert_int_equal(gl_sock_connect(in(b, "s"), &fd, &b->why), GL_E_GONE);
    assert_int_equal(fd, -1);
    talk(b, in(b, "s"));
}

static void a_file_in_place_of_the_socket_is_not_removed(void **state)
{
    struct bench *b = *state;
    int fd = -1;
    assert_int_equal(gl_fs_write(in(b, "s"), GL_S("precious"), &b->why), 0);
    assert_int_equal(gl_sock_listen(in(b, "s"), &fd, &b->why), GL_E_EXISTS);
    assert_int_equal(access(in(b, "s"), F_OK), 0);
}

/* ---- blobs ---- */

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folders_are_made_for_their_owner_only),
        TEST(a_file_in_the_way_of_a_folder_is_named),
        TEST(a_written_file_is_read_back_whole_and_is_private),
        TEST(a_file_larger_than_the_limit_is_refused_and_nothing_is_kept),
        TEST(a_missing_file_is_not_found),
        TEST(a_failed_write_leaves_no_temporary_file),
        TEST(a_second_holder_is_told_the_pid_of_the_first),
        TEST(the_lock_vanishes_with_its_holder),
        TEST(the_lock_is_not_inherited_over_exec),
        TEST(the_holder_of_a_lock_is_known),
        TEST(a_lock_that_tells_nonsense_is_busy_all_the_same),
        TEST(a_claim_is_seen_by_others_and_ends_with_its_holder),
        TEST(the_data_folder_is_chosen_in_the_documented_order),
        TEST(a_relative_data_folder_becomes_absolute),
        TEST(the_layout_is_made_and_private),
        TEST(a_data_folder_that_everybody_may_write_to_is_refused),
        TEST(an_identity_is_made_once_and_then_stays),
        TEST(a_damaged_identity_is_refused_and_not_replaced),
        TEST(a_token_is_made_once_per_folder),
        TEST(a_socket_with_a_short_path_works),
        TEST(a_socket_with_a_long_path_works),
        TEST(a_socket_left_by_the_dead_is_replaced),
        TEST(a_file_in_place_of_the_socket_is_not_removed),
        TEST(a_blob_lies_under_its_hash),
        TEST(a_blob_with_another_hash_or_a_bad_name_is_refused),
        TEST(a_sweep_removes_what_dead_writers_left_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
