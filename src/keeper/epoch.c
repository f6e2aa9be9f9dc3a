#include "keeper/epoch.h"

#include "base/check.h"
#include "os/fs.h"

enum { FILE_BYTES_MAX = 4096 };

static const char *file_path(struct gl_arena *a, const char *folder)
{
    return gl_str_fmt(a, "%s/epoch", folder).p;
}

static void copy(char *to, size_t bytes, gl_str from)
{
    size_t n = from.n < bytes ? from.n : bytes - 1;

    GL_ASSERT(bytes > 0);
    memcpy(to, from.p, n);
    to[n] = 0;
}

static void read_line(struct gl_epoch *e, gl_str line)
{
    gl_str value;
    gl_str name = gl_str_cut(line, ' ', &value);
    if (value.n == 0) {
        return;
    }
    if (gl_str_is(name, "epoch")) {
        copy(e->id, sizeof(e->id), value);
    } else if (gl_str_is(name, "state")) {
        e->running = !gl_str_is(value, "clean");
    } else if (gl_str_is(name, "incarnation")) {
        (void)gl_str_u64(value, &e->incarnation); /* if damaged: 0 */
    } else if (gl_str_is(name, "mark")) {
        (void)gl_str_u64(value, &e->mark);
    } else if (gl_str_is(name, "boot")) {
        copy(e->boot, sizeof(e->boot), value);
    } else if (gl_str_is(name, "cgroup")) {
        copy(e->cgroup, sizeof(e->cgroup), value);
    }
}

int gl_epoch_load(struct gl_epoch *ret, const char *folder, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    *ret = (struct gl_epoch){0};
    int r = gl_fs_read(file_path(&a, folder), FILE_BYTES_MAX, &text, reterr_why);
    if (r == GL_E_NOT_FOUND) {
        return 0;
    }
    if (r < 0) {
        return r;
    }
    ret->running = true; /* unless the file says "clean" */
    gl_str rest = gl_buf_view(&text);
    while (rest.n > 0) {
        read_line(ret, gl_str_cut(rest, '\n', &rest));
    }
    return 0;
}

int gl_epoch_save(const struct gl_epoch *e, const char *folder, struct gl_why *reterr_why)
{
    GL_ASSERT(e->id[0] != 0);
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    gl_buf_fmt(&text, "epoch %s\nstate %s\nincarnation %llu\nmark %llu\nboot %s\ncgroup %s\n",
               e->id, e->running ? "running" : "clean", (unsigned long long)e->incarnation,
               (unsigned long long)e->mark, e->boot, e->cgroup);
    return gl_fs_write(file_path(&a, folder), gl_buf_view(&text), reterr_why);
}
