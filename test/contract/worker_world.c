#include "contract/worker_world.h"

#include <limits.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "os/fs.h"

int worker_open_world(void **state)
{
    return exec_world_open(state, &exec_keeper);
}

static const char *blob_path(struct exec_world *w, gl_str hash)
{
    const char *folder =
        gl_str_fmt(&w->arena, "%s/contexts/default/blobs/%.2s", w->data_dir, hash.p).p;
    assert_int_equal(gl_fs_mkdirs(folder, NULL), 0);
    return gl_str_fmt(&w->arena, "%s/%.*s", folder, GL_STR_ARG(hash)).p;
}

gl_str worker_blob(struct exec_world *w, gl_str content)
{
    char hex[GL_SHA256_HEX];
    gl_str hash = gl_str_dup(&w->arena, gl_sha256_hex(content, hex));
    assert_int_equal(gl_fs_write(blob_path(w, hash), content, NULL), 0);
    return hash;
}

void worker_spoil_blob(struct exec_world *w, gl_str hash)
{
    assert_int_equal(gl_fs_write(blob_path(w, hash), GL_S("bad!"), NULL), 0);
}

const char *worker_start(struct exec_world *w, const char *script, struct exec_options options)
{
    static int number;
    static const char *const usual[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    const char *attempt = gl_str_fmt(&w->arena, "@w%d:attempt:1", number++).p;
    const char *const argv[] = {"sh", "-c", script, NULL};
    options.argv = argv;
    options.attempt = attempt;
    options.token = 1;
    options.is_worker = true;
    options.env = options.env != NULL ? options.env : usual;
    assert_int_equal(exec_start(w, options), 0);
    return attempt;
}

struct worker_end worker_read(struct exec_world *w, struct reported_end *end)
{
    struct gl_why why = {0};
    struct worker_end e = {.end = end};
    if (gl_worker_result_read(gl_str_of(end->output), &w->arena, &e.output, &why) < 0) {
        fail_msg("%s: %s", why.text, end->output);
    }
    return e;
}

struct worker_end worker_run(struct exec_world *w, const char *script, struct exec_options options)
{
    w->ends_n = 0;
    w->lines_n = 0;
    return worker_read(w, exec_wait_end(w, worker_start(w, script, options)));
}

/* No event reports this, so poll the visible effect. */
void worker_folder(const struct exec_world *w, const char *attempt, char path[static PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/contexts/default/runs/JOB/", w->data_dir);
    snprintf(path + n, (size_t)(PATH_MAX - n), "%s/work", attempt);
    for (char *p = path + n; *p != '\0'; p++) {
        *p = *p == ':' ? '.' : *p;
    }
}

void worker_wait_for_end(struct exec_world *w, const char *attempt)
{
    char path[PATH_MAX];
    worker_folder(w, attempt, path);
    for (int i = 0; access(path, F_OK) == 0; i++) {
        assert_true(i < PATIENCE_S * 100);
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

void worker_wait_for_file(const char *path)
{
    for (int i = 0; access(path, F_OK) != 0; i++) {
        assert_true(i < PATIENCE_S * 100);
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

void worker_wait_for_room(struct exec_world *w)
{
    struct statvfs st;
    for (int i = 0;; i++) {
        assert_int_equal(statvfs(w->data_dir, &st), 0);
        if (st.f_bavail > st.f_blocks / 2) {
            return;
        }
        assert_true(i < PATIENCE_S * 100);
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}
