/* Whole folders, backups, and what the tidy port does with files. */
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "os/archive.h"
#include "os/fs.h"
#include "os/tidyfs.h"
#include "os/tree.h"
#include "support/folder.h"

struct place {
    struct test_folder folder;
    struct gl_arena arena;
};

static int make_place(void **state)
{
    struct place *p = test_calloc(1, sizeof(*p));
    test_folder_make(&p->folder);
    *state = p;
    return 0;
}

static int free_place(void **state)
{
    struct place *p = *state;
    gl_arena_done(&p->arena);
    test_folder_remove(&p->folder);
    test_free(p);
    return 0;
}

static const char *in(struct place *p, const char *name)
{
    return gl_str_fmt(&p->arena, "%s/%s", p->folder.path, name).p;
}

static void write_file(struct place *p, const char *name, const char *text)
{
    const char *path = in(p, name);
    const char *slash = strrchr(path, '/');
    struct gl_why why;
    assert_int_equal(
        gl_fs_mkdirs(gl_str_c(&p->arena, (gl_str){.p = path, .n = (size_t)(slash - path)}), &why),
        0);
    assert_int_equal(gl_fs_write(path, gl_str_of(text), &why), 0);
}

static bool is_there(struct place *p, const char *name)
{
    struct stat st;
    return lstat(in(p, name), &st) == 0;
}

static void make_old(struct place *p, const char *name, long seconds)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= seconds;
    struct timespec times[2] = {now, now};
    assert_int_equal(utimensat(AT_FDCWD, in(p, name), times, AT_SYMLINK_NOFOLLOW), 0);
}

/* ---- trees ---- */

static void a_tree_goes_with_all_it_holds(void **state)
{
    struct place *p = *state;
    struct gl_tree_sum sum = {0}, measured = {0};
    write_file(p, "t/a/b/c", "some text");
    write_file(p, "t/d", "more");
    assert_int_equal(mkfifo(in(p, "t/pipe"), 0600), 0);
    gl_tree_measure(AT_FDCWD, in(p, "t"), &measured);
    assert_true(gl_tree_remove(AT_FDCWD, in(p, "t"), &sum));
    assert_false(is_there(p, "t"));
    assert_int_equal(sum.files_n, 3);
    assert_int_equal(sum.files_n, measured.files_n);
    assert_int_equal(sum.bytes, measured.bytes);
}

static void a_link_is_removed_and_not_followed(void **state)
{
    struct place *p = *state;
    struct gl_tree_sum sum = {0};
    write_file(p, "outside/precious", "x");
    write_file(p, "t/file", "x");
    assert_int_equal(symlink(in(p, "outside"), in(p, "t/link")), 0);
    assert_int_equal(symlink(in(p, "outside"), in(p, "top")), 0);
    assert_true(gl_tree_remove(AT_FDCWD, in(p, "t"), &sum));
    assert_true(gl_tree_remove(AT_FDCWD, in(p, "top"), &sum));
    assert_false(is_there(p, "t"));
    assert_false(is_there(p, "top"));
    assert_true(is_there(p, "outside/precious"));
}

static void a_locked_folder_is_no_obstacle(void **state)
{
    struct place *p = *state;
    struct gl_tree_sum sum = {0};
    write_file(p, "t/shut/file", "x");
    assert_int_equal(chmod(in(p, "t/shut"), 0), 0);
    assert_int_equal(chmod(in(p, "t"), 0500), 0);
    assert_true(gl_tree_remove(AT_FDCWD, in(p, "t"), &sum));
    assert_false(is_there(p, "t"));
}

static void nesting_deeper_than_a_path_goes_too(void **state)
{
    struct place *p = *state;
    struct gl_tree_sum sum = {0};
    enum { DEPTH = 3000 };
    int fd = open(p->folder.path, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(fd, "deep", 0700), 0);
        int next = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_true(gl_tree_remove(AT_FDCWD, in(p, "deep"), &sum));
    assert_false(is_there(p, "deep"));
}

static void what_is_not_there_is_removed_already(void **state)
{
    struct place *p = *state;
    struct gl_tree_sum sum = {0};
    assert_true(gl_tree_remove(AT_FDCWD, in(p, "nothing"), &sum));
    assert_int_equal(sum.bytes, 0);
}

/* ---- backups ---- */

static void make_backup(struct place *p)
{
    struct gl_archive a;
    struct gl_why why;
    write_file(p, "data/one", "first");
    write_file(p, "data/two", "");
    write_file(p, "b/three", "there already"); /* put there by others, below */
    assert_int_equal(unlink(in(p, "b/three")), 0);
    assert_int_equal(gl_archive_create(&a, in(p, "b"), "1.2.3", 1000, &why), 0);
    assert_int_equal(gl_archive_add(&a, in(p, "data/one"), "x/one", &why), 0);
    assert_int_equal(gl_archive_add(&a, in(p, "data/two"), "x/y/two", &why), 0);
    assert_int_equal(gl_archive_add(&a, in(p, "data/one"), "x/one", &why), 0); /* again */
    assert_int_equal(gl_archive_add(&a, in(p, "data/gone"), "x/gone", &why), 0);
    write_file(p, "b/three", "there already");
    assert_int_equal(gl_archive_add_existing(&a, "three", &why), 0);
    assert_int_equal(gl_archive_finish(&a, &why), 0);
    assert_int_equal(a.files_n, 3);
    gl_archive_done(&a);
}

static void a_backup_is_extracted_as_it_was(void **state)
{
    struct place *p = *state;
    struct gl_archive_info info;
    struct gl_buf text = {0};
    struct gl_why why;
    make_backup(p);
    assert_int_equal(gl_archive_extract(in(p, "b"), in(p, "fresh"), &info, &why), 0);
    assert_int_equal(info.files_n, 3);
    assert_int_equal(info.bytes, 18);
    assert_string_equal(info.release, "1.2.3");
    assert_string_equal(info.made, "1970-01-01T00:00:01.000Z");
    assert_int_equal(gl_fs_read(in(p, "fresh/x/one"), 100, &text, &why), 0);
    assert_true(gl_str_is(gl_buf_view(&text), "first"));
    assert_true(is_there(p, "fresh/x/y/two"));
    assert_true(is_there(p, "fresh/three"));
    gl_buf_done(&text);
}

static int extract(struct place *p, struct gl_why *why)
{
    struct gl_archive_info info;
    struct gl_tree_sum sum = {0};
    (void)gl_tree_remove(AT_FDCWD, in(p, "fresh"), &sum);
    assert_int_equal(mkdir(in(p, "fresh"), 0700), 0);
    return gl_archive_extract(in(p, "b"), in(p, "fresh"), &info, why);
}

static void a_changed_file_is_noticed(void **state)
{
    struct place *p = *state;
    struct gl_why why;
    make_backup(p);
    write_file(p, "b/x/one", "First");
    assert_int_equal(extract(p, &why), GL_E_DAMAGED);
    assert_non_null(strstr(why.text, "x/one does"));
    assert_int_equal(unlink(in(p, "b/x/one")), 0);
    assert_int_equal(extract(p, &why), GL_E_DAMAGED);
    assert_non_null(strstr(why.text, "x/one is missing"));
}

static void a_list_that_is_not_whole_is_noticed(void **state)
{
    struct place *p = *state;
    struct gl_buf text = {0};
    struct gl_why why;
    make_backup(p);
    assert_int_equal(gl_fs_read(in(p, "b/MANIFEST"), 10000, &text, &why), 0);
    for (size_t n = 0; n < text.n; n++) { /* cut anywhere */
        assert_int_equal(gl_fs_write(in(p, "b/MANIFEST"), (gl_str){.p = text.p, .n = n}, &why), 0);
        int err = extract(p, &why);
        assert_true(err == GL_E_DAMAGED || (err == 0 && n == text.n - 1)); /* the last newline */
    }
    assert_int_equal(unlink(in(p, "b/MANIFEST")), 0);
    assert_int_equal(extract(p, &why), GL_E_NOT_FOUND);
    gl_buf_done(&text);
}

static void write_list(struct place *p, const char *lines)
{
    char hex[GL_SHA256_HEX];
    (void)gl_sha256_hex(gl_str_of(lines), hex);
    write_file(p, "b/MANIFEST", gl_str_fmt(&p->arena, "%send %s\n", lines, hex).p);
}

static void a_list_cannot_lead_out_of_the_folder(void **state)
{
    struct place *p = *state;
    struct gl_why why;
    const char *const names[] = {"../stolen", "/etc/passwd", "a/../../b", ".hidden", "a//b", ""};
    make_backup(p);
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        write_list(p, gl_str_fmt(&p->arena, "glia-backup 1\nfile %064d 1 %s\n", 0, names[i]).p);
        assert_int_equal(extract(p, &why), GL_E_DAMAGED);
        assert_non_null(strstr(why.text, "malformed"));
    }
    write_list(p, "glia-backup 2\n");
    assert_int_equal(extract(p, &why), GL_E_VERSION);
}

static void a_backup_wants_an_empty_folder(void **state)
{
    struct place *p = *state;
    struct gl_archive a;
    struct gl_why why;
    make_backup(p);
    assert_int_equal(gl_archive_create(&a, in(p, "b"), "1", 0, &why), GL_E_EXISTS);
}

/* ---- the port ---- */

struct rig {
    struct place *p;
    struct gl_blobfs blobs;
    struct gl_loop *loop;
    struct gl_tidyfs *tidy;
    struct gl_tidy *port;
    struct gl_tidy_req req;
    gl_str names[8];
    size_t names_n;
    unsigned done_n;
    bool goes_on; /* the loop does not stop when a request is done */
};

static void rig_open(struct rig *r, struct place *p)
{
    struct gl_why why;
    *r = (struct rig){.p = p};
    gl_blobfs_init(&r->blobs, p->folder.path);
    assert_int_equal(gl_loop_new(&r->loop, &why), 0);
    assert_int_equal(gl_tidyfs_open(&r->tidy, p->folder.path, &r->blobs, r->loop, &why), 0);
    r->port = gl_tidyfs_port(r->tidy);
}

static void on_closed(void *owner)
{
    gl_loop_stop(((struct rig *)owner)->loop);
}

static void rig_close(struct rig *r)
{
    gl_tidyfs_close(r->tidy, on_closed, r);
    gl_loop_run(r->loop);
    gl_loop_free(r->loop);
    gl_blobfs_done(&r->blobs);
}

static void on_done(struct gl_tidy_req *req)
{
    struct rig *r = req->owner;
    r->done_n++;
    for (size_t i = 0; i < req->names_n && i < GL_COUNT(r->names); i++) {
        r->names[i] = gl_str_dup(&r->p->arena, req->names[i]);
    }
    r->names_n = req->names_n;
    if (!r->goes_on) {
        gl_loop_stop(r->loop);
    }
}

static struct gl_tidy_req *ask(struct rig *r)
{
    r->req = (struct gl_tidy_req){.done = on_done, .owner = r};
    return &r->req;
}

#define JOB_1 "01ARZ3NDEKTSV4RRFFQ69G5FA1"
#define JOB_2 "01ARZ3NDEKTSV4RRFFQ69G5FA2"
#define RUNS "contexts/default/runs/"

static void jobs_are_listed_and_removed(void **state)
{
    struct rig r;
    rig_open(&r, *state);
    write_file(r.p, RUNS JOB_1 "/a:attempt:1/log", "text");
    write_file(r.p, RUNS JOB_2 "/a:attempt:1/work/deep/file", "text");
    write_file(r.p, RUNS "other/file", "not a job's");
    r.port->list_jobs(r.port, ask(&r), GL_S("default"));
    gl_loop_run(r.loop);
    assert_int_equal(r.names_n, 2);
    gl_str jobs[] = {GL_S(JOB_1), GL_S("01ARZ3NDEKTSV4RRFFQ69G5FA9")};
    r.port->remove_jobs(r.port, ask(&r), GL_S("default"), jobs, 2);
    gl_loop_run(r.loop);
    assert_int_equal(r.req.status, 0);
    assert_int_equal(r.req.removed_n, 1);
    assert_true(r.req.bytes > 0);
    assert_false(is_there(r.p, RUNS JOB_1));
    assert_true(is_there(r.p, RUNS JOB_2));
    rig_close(&r);
}

/* The keeper may give the folder to another job at any moment: it is renamed before it is emptied.
 * What a killed node had renamed and not emptied is found again, under the name of its job. */
static void a_removal_that_was_interrupted_is_finished(void **state)
{
    struct rig r;
    gl_str job = GL_S(JOB_1);

    rig_open(&r, *state);
    write_file(r.p, RUNS "." JOB_1 ".gone/a:attempt:1/log", "left");
    write_file(r.p, RUNS JOB_1 "/b:attempt:1/log", "more");
    write_file(r.p, RUNS ".other.gone/file", "not a job's");
    r.port->list_jobs(r.port, ask(&r), GL_S("default"));
    gl_loop_run(r.loop);
    assert_int_equal(r.names_n, 2); /* twice the same job */
    r.port->remove_jobs(r.port, ask(&r), GL_S("default"), &job, 1);
    gl_loop_run(r.loop);
    assert_int_equal(r.req.status, 0);
    assert_false(is_there(r.p, RUNS JOB_1));
    assert_false(is_there(r.p, RUNS "." JOB_1 ".gone"));
    assert_true(is_there(r.p, RUNS ".other.gone/file"));
    rig_close(&r);
}

static void old_working_folders_go_and_their_logs_stay(void **state)
{
    struct rig r;
    rig_open(&r, *state);
    static const char *const all[] = {RUNS JOB_1 "/a:attempt:1/log", RUNS JOB_1 "/a:attempt:1/work",
                                      RUNS JOB_1 "/a:attempt:1"};
    write_file(r.p, RUNS JOB_1 "/a:attempt:1/work/file", "x");
    write_file(r.p, RUNS JOB_1 "/a:attempt:1/log", "x");
    write_file(r.p, RUNS JOB_1 "/a:attempt:2/work/file", "x");
    write_file(r.p, RUNS JOB_1 "/b:attempt:1/log", "x"); /* has none */
    for (size_t i = 0; i < GL_COUNT(all); i++) {
        make_old(r.p, all[i], 7200);
    }
    r.port->list_work(r.port, ask(&r), GL_S("default"), 3600 * 1000, 10);
    gl_loop_run(r.loop);
    assert_int_equal(r.names_n, 1);
    assert_true(gl_str_is(r.names[0], JOB_1 "/a:attempt:1"));
    r.port->remove_work(r.port, ask(&r), GL_S("default"), r.names, 1);
    gl_loop_run(r.loop);
    assert_int_equal(r.req.removed_n, 1);
    assert_false(is_there(r.p, RUNS JOB_1 "/a:attempt:1/work"));
    assert_true(is_there(r.p, RUNS JOB_1 "/a:attempt:1/log"));
    assert_true(is_there(r.p, RUNS JOB_1 "/a:attempt:2/work/file"));
    rig_close(&r);
}

static gl_str put(struct rig *r, const char *content)
{
    char *hex = gl_arena_alloc(&r->p->arena, GL_SHA256_HEX);
    struct gl_why why;
    gl_str hash = gl_sha256_hex(gl_str_of(content), hex);
    assert_int_equal(
        r->blobs.blob.put(&r->blobs.blob, GL_S("default"), hash, gl_str_of(content), &why), 0);
    return hash;
}

static void age(struct rig *r, gl_str hash)
{
    make_old(
        r->p,
        gl_str_fmt(&r->p->arena, "contexts/default/blobs/%.2s/%.*s", hash.p, GL_STR_ARG(hash)).p,
        7200);
}

static void only_old_blobs_that_nobody_names_go(void **state)
{
    struct rig r;
    rig_open(&r, *state);
    gl_str named = put(&r, "named"), old = put(&r, "old"), young = put(&r, "young");
    gl_str asked = put(&r, "asked for"), again = put(&r, "put again");
    gl_str aged[] = {named, old, asked, again};
    for (size_t i = 0; i < GL_COUNT(aged); i++) {
        age(&r, aged[i]);
    }
    assert_true(r.blobs.blob.has(&r.blobs.blob, GL_S("default"), asked));
    (void)put(&r, "put again");
    r.port->remove_blobs(r.port, ask(&r), GL_S("default"), &named, 1, 3600 * 1000);
    gl_loop_run(r.loop);
    assert_int_equal(r.req.removed_n, 1);
    assert_true(r.req.young > 0);
    gl_str kept[] = {named, young, asked, again};
    for (size_t i = 0; i < GL_COUNT(kept); i++) {
        assert_true(r.blobs.blob.has(&r.blobs.blob, GL_S("default"), kept[i]));
    }
    assert_false(r.blobs.blob.has(&r.blobs.blob, GL_S("default"), old));
    rig_close(&r);
}

static void everything_is_measured(void **state)
{
    struct rig r;
    rig_open(&r, *state);
    r.port->measure(r.port, ask(&r), GL_S("default"));
    gl_loop_run(r.loop);
    assert_int_equal(r.req.bytes, 0);
    write_file(r.p, RUNS JOB_1 "/a:attempt:1/log", "text");
    (void)put(&r, "blob");
    r.port->measure(r.port, ask(&r), GL_S("default"));
    gl_loop_run(r.loop);
    assert_true(r.req.bytes >= 8192);
    rig_close(&r);
}

static void closing_answers_what_waits(void **state)
{
    struct rig r;
    struct gl_tidy_req more[3];
    rig_open(&r, *state);
    r.goes_on = true;
    r.port->measure(r.port, ask(&r), GL_S("default"));
    for (size_t i = 0; i < GL_COUNT(more); i++) {
        more[i] = (struct gl_tidy_req){.done = on_done, .owner = &r};
        r.port->measure(r.port, &more[i], GL_S("default"));
    }
    rig_close(&r);
    assert_int_equal(r.done_n, 4);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_place, free_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tree_goes_with_all_it_holds),
        TEST(a_link_is_removed_and_not_followed),
        TEST(a_locked_folder_is_no_obstacle),
        TEST(nesting_deeper_than_a_path_goes_too),
        TEST(what_is_not_there_is_removed_already),
        TEST(a_backup_is_extracted_as_it_was),
        TEST(a_changed_file_is_noticed),
        TEST(a_list_that_is_not_whole_is_noticed),
        TEST(a_list_cannot_lead_out_of_the_folder),
        TEST(a_backup_wants_an_empty_folder),
        TEST(jobs_are_listed_and_removed),
        TEST(a_removal_that_was_interrupted_is_finished),
        TEST(old_working_folders_go_and_their_logs_stay),
        TEST(only_old_blobs_that_nobody_names_go),
        TEST(everything_is_measured),
        TEST(closing_answers_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
