#include <fcntl.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/sha256.h"
#include "os/tidyfs.h"
#include "support/bench.h"

static void make_old(struct bench *b, const char *name, long seconds)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= seconds;
    struct timespec times[2] = {now, now};
    assert_int_equal(utimensat(AT_FDCWD, in(b, name), times, AT_SYMLINK_NOFOLLOW), 0);
}

struct rig {
    struct bench *b;
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

static void rig_open(struct rig *r, struct bench *b)
{
    struct gl_why why;
    *r = (struct rig){.b = b};
    gl_blobfs_init(&r->blobs, b->folder.path);
    assert_int_equal(gl_loop_new(&r->loop, &why), 0);
    assert_int_equal(gl_tidyfs_open(&r->tidy, b->folder.path, &r->blobs, r->loop, &why), 0);
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
        r->names[i] = gl_str_dup(&r->b->a, req->names[i]);
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
    write_file(r.b, RUNS JOB_1 "/a:attempt:1/log", "text");
    write_file(r.b, RUNS JOB_2 "/a:attempt:1/work/deep/file", "text");
    write_file(r.b, RUNS "other/file", "not a job's");
    r.port->list_jobs(r.port, ask(&r), GL_S("default"));
    gl_loop_run(r.loop);
    assert_int_equal(r.names_n, 2);
    gl_str jobs[] = {GL_S(JOB_1), GL_S("01ARZ3NDEKTSV4RRFFQ69G5FA9")};
    r.port->remove_jobs(r.port, ask(&r), GL_S("default"), jobs, 2);
    gl_loop_run(r.loop);
    assert_int_equal(r.req.status, 0);
    assert_int_equal(r.req.removed_n, 1);
    assert_true(r.req.bytes > 0);
    assert_false(is_there(r.b, RUNS JOB_1));
    assert_true(is_there(r.b, RUNS JOB_2));
    rig_close(&r);
}

/* The keeper may give the folder to another job at any moment: it is renamed before it is emptied.
 * What a killed node had renamed and not emptied is found again, under the name of its job. */
static void a_removal_that_was_interrupted_is_finished(void **state)
{
    struct rig r;
    gl_str job = GL_S(JOB_1);

    rig_open(&r, *state);
    write_file(r.b, RUNS "." JOB_1 ".gone/a:attempt:1/log", "left");
    write_file(r.b, RUNS JOB_1 "/b:attempt:1/log", "more");
    write_file(r.b, RUNS ".other.gone/file", "not a job's");
    r.port->list_jobs(r.port, ask(&r), GL_S("default"));
    gl_loop_run(r.loop);
    assert_int_equal(r.names_n, 2); /* twice the same job */
    r.port->remove_jobs(r.port, ask(&r), GL_S("default"), &job, 1);
    gl_loop_run(r.loop);
    assert_int_equal(r.req.status, 0);
    assert_false(is_there(r.b, RUNS JOB_1));
    assert_false(is_there(r.b, RUNS "." JOB_1 ".gone"));
    assert_true(is_there(r.b, RUNS ".other.gone/file"));
    rig_close(&r);
}

static void old_working_folders_go_and_their_logs_stay(void **state)
{
    struct rig r;
    rig_open(&r, *state);
    static const char *const all[] = {RUNS JOB_1 "/a:attempt:1/log", RUNS JOB_1 "/a:attempt:1/work",
                                      RUNS JOB_1 "/a:attempt:1"};
    write_file(r.b, RUNS JOB_1 "/a:attempt:1/work/file", "x");
    write_file(r.b, RUNS JOB_1 "/a:attempt:1/log", "x");
    write_file(r.b, RUNS JOB_1 "/a:attempt:2/work/file", "x");
    write_file(r.b, RUNS JOB_1 "/b:attempt:1/log", "x"); /* has none */
    for (size_t i = 0; i < GL_COUNT(all); i++) {
        make_old(r.b, all[i], 7200);
    }
    r.port->list_work(r.port, ask(&r), GL_S("default"), 3600 * 1000, 10);
    gl_loop_run(r.loop);
    assert_int_equal(r.names_n, 1);
    assert_true(gl_str_is(r.names[0], JOB_1 "/a:attempt:1"));
    r.port->remove_work(r.port, ask(&r), GL_S("default"), r.names, 1);
    gl_loop_run(r.loop);
    assert_int_equal(r.req.removed_n, 1);
    assert_false(is_there(r.b, RUNS JOB_1 "/a:attempt:1/work"));
    assert_true(is_there(r.b, RUNS JOB_1 "/a:attempt:1/log"));
    assert_true(is_there(r.b, RUNS JOB_1 "/a:attempt:2/work/file"));
    rig_close(&r);
}

static gl_str put(struct rig *r, const char *content)
{
    char *hex = gl_arena_alloc(&r->b->a, GL_SHA256_HEX);
    struct gl_why why;
    gl_str hash = gl_sha256_hex(gl_str_of(content), hex);
    assert_int_equal(
        r->blobs.blob.put(&r->blobs.blob, GL_S("default"), hash, gl_str_of(content), &why), 0);
    return hash;
}

static void age(struct rig *r, gl_str hash)
{
    make_old(r->b,
             gl_str_fmt(&r->b->a, "contexts/default/blobs/%.2s/%.*s", hash.p, GL_STR_ARG(hash)).p,
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
    write_file(r.b, RUNS JOB_1 "/a:attempt:1/log", "text");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(jobs_are_listed_and_removed),
        TEST(a_removal_that_was_interrupted_is_finished),
        TEST(old_working_folders_go_and_their_logs_stay),
        TEST(only_old_blobs_that_nobody_names_go),
        TEST(everything_is_measured),
        TEST(closing_answers_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
