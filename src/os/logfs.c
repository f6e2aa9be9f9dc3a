#include "os/logfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/fs.h"
#include "os/paths.h"

enum {
    ATTEMPTS_LISTED_MAX = 100000,
    MARK_PLACE_BEFORE = 66 << 10, /* more than one line */
    MARK_PLACE_BEHIND = 256,      /* more than two marks */
};

static const char *const infix = ":attempt:";

/* It becomes a component of a path. */
static bool is_step(gl_str s)
{
    gl_str name;
    int64_t item;

    return gl_str_split_step(s, &name, &item);
}

static const char *job_folder(const struct gl_logfs *l, struct gl_arena *a, gl_str context,
                              gl_str job)
{
    GL_ASSERT(gl_str_is_id(job));
    const char *runs = gl_paths_context(a, l->data, context, GL_PATHS_RUNS);
    return gl_str_fmt(a, "%s/%.*s", runs, GL_STR_ARG(job)).p;
}

/* ---- listing ---- */

/* "STEP:attempt:N" */
static bool read_name(const char *name, gl_str *ret_step, uint32_t *ret_attempt)
{
    const char *at = strstr(name, infix);
    uint64_t number;
    if (at == NULL || !gl_str_u64(gl_str_of(at + strlen(infix)), &number) || number > UINT32_MAX) {
        return false;
    }
    *ret_step = (gl_str){.p = name, .n = (size_t)(at - name)};
    *ret_attempt = (uint32_t)number;
    return is_step(*ret_step);
}

static uint64_t log_bytes(const char *folder, const char *name)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct stat st;
    return stat(gl_str_fmt(&a, "%s/%s/log", folder, name).p, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

static int by_step_and_number(const void *a, const void *b)
{
    const struct gl_logs_attempt *x = a, *y = b;
    int order = gl_str_cmp(x->step, y->step);
    return order != 0 ? order : (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

static void closedirp(DIR **d)
{
    if (*d != NULL) {
        (void)closedir(*d);
    }
}

static int list(struct gl_logs *logs, gl_str context, gl_str job, struct gl_arena *a,
                struct gl_logs_attempt **ret, size_t *ret_n, struct gl_why *reterr_why)
{
    const struct gl_logfs *l = GL_CONTAINER(logs, struct gl_logfs, logs);
    const char *folder = job_folder(l, a, context, job);
    GL_CLEANUP(gl_buf_done) struct gl_buf found = {0};
    struct gl_logs_attempt one;
    size_t n = 0;
    GL_CLEANUP(closedirp) DIR *d = opendir(folder);
    if (d == NULL && errno != ENOENT) {
        return gl_fs_why(reterr_why, errno, "read the folder", folder);
    }
    for (struct dirent *e; d != NULL && n < ATTEMPTS_LISTED_MAX && (e = readdir(d)) != NULL;) {
        if (read_name(e->d_name, &one.step, &one.attempt)) {
            one.step = gl_str_dup(a, one.step);
            one.bytes = log_bytes(folder, e->d_name);
            gl_buf_add(&found, &one, sizeof(one));
            n++;
        }
    }
    *ret = n > 0 ? gl_arena_copy(a, found.p, found.n) : NULL;
    *ret_n = n;
    if (n > 0) {
        qsort(*ret, n, sizeof(one), by_step_and_number);
    }
    return 0;
}

/* ---- reading ---- */

static ssize_t read_at(int fd, char *to, size_t n, uint64_t offset)
{
    ssize_t got;
    do {
        got = pread(fd, to, n, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Offsets in a log count every byte ever written to it, so they stay valid when the keeper drops
 * the middle. */
struct log_layout {
    uint64_t head;    /* where the first part ends; the file size if nothing was dropped */
    uint64_t mark;    /* length of the "dropped" line after it */
    uint64_t dropped; /* number of bytes it stands for */
};

/* "-- N bytes dropped --" */
static bool read_mark(gl_str line, uint64_t *ret)
{
    gl_str rest;
    return gl_str_is(gl_str_cut(line, ' ', &rest), "--") &&
           gl_str_u64(gl_str_cut(rest, ' ', &rest), ret) && gl_str_is(rest, "bytes dropped --");
}

/* The first part is at most one line shorter than half of what is kept, so the "dropped" line is
 * searched for only around there. It cannot be confused with output, because the text of a step
 * never begins a line. */
static struct log_layout find_layout(int fd, uint64_t size)
{
    struct log_layout l = {.head = size};
    GL_CLEANUP(gl_buf_done) struct gl_buf place = {0};
    uint64_t from = GL_LOG_BYTES_MAX / 2 - MARK_PLACE_BEFORE;
    size_t max = MARK_PLACE_BEFORE + MARK_PLACE_BEHIND;
    if (size <= from) {
        return l;
    }
    ssize_t got = read_at(fd, gl_buf_reserve(&place, max), max, from);
    gl_str rest = {.p = place.p, .n = got > 0 ? (size_t)got : 0};
    while (rest.n > 0) {
        gl_str line = gl_str_cut(rest, '\n', &rest);
        uint64_t at = from + (uint64_t)(line.p - place.p);
        if (line.p > place.p && read_mark(line, &l.dropped)) {
            l.head = at;
            l.mark = line.n + 1;
            return l;
        }
    }
    l.dropped = 0;
    return l;
}

/* The place in the file of `*offset`. If that was dropped: the start of the last part; *offset is
 * moved there, and a mark says how much this reader has missed. */
static uint64_t place_of(const struct log_layout *l, uint64_t *offset, struct gl_buf *out)
{
    uint64_t tail = l->head + l->dropped;
    if (l->mark == 0 || *offset < l->head) {
        return *offset;
    }
    if (*offset < tail) {
        gl_buf_fmt(out, "-- %llu bytes dropped --\n", (unsigned long long)(tail - *offset));
        *offset = tail;
    }
    return *offset - l->dropped + l->mark;
}

/* Without an incomplete last line; but a single line that fills everything is kept. */
static size_t whole_lines(const char *p, size_t n)
{
    const char *newline = memrchr(p, '\n', n);
    return newline == NULL ? 0 : (size_t)(newline + 1 - p);
}

/* True for the offsets that we return; false perhaps for one that a client made up. */
static bool is_line_start(int fd, uint64_t at)
{
    char before = '\n';
    return at == 0 || read_at(fd, &before, 1, at - 1) < 0 || before == '\n';
}

static size_t first_line(const char *p, size_t n)
{
    const char *newline = memchr(p, '\n', n);
    return newline == NULL ? n : (size_t)(newline + 1 - p);
}

static const char *log_path(const struct gl_logfs *l, struct gl_arena *a, gl_str context,
                            gl_str job, gl_str step, uint32_t attempt)
{
    GL_ASSERT(is_step(step));
    return gl_str_fmt(a, "%s/%.*s%s%u/log", job_folder(l, a, context, job), GL_STR_ARG(step), infix,
                      attempt)
        .p;
}

static int size_of_log(struct gl_logs *logs, gl_str context, gl_str job, gl_str step,
                       uint32_t attempt, uint64_t *ret, struct gl_why *reterr_why)
{
    const struct gl_logfs *l = GL_CONTAINER(logs, struct gl_logfs, logs);
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = log_path(l, &a, context, job, step, attempt);
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct log_layout layout;
    struct stat st;

    if (fd < 0 && errno == ENOENT) {
        *ret = 0;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        return gl_fs_why(reterr_why, errno, fd < 0 ? "open" : "access", path);
    }
    layout = find_layout(fd, (uint64_t)st.st_size);
    *ret = (uint64_t)st.st_size - layout.mark + layout.dropped;
    return 0;
}

static int read_log(struct gl_logs *logs, gl_str context, gl_str job, gl_str step, uint32_t attempt,
                    uint64_t offset, size_t bytes_max, struct gl_buf *out, uint64_t *ret_next,
                    struct gl_why *reterr_why)
{
    const struct gl_logfs *l = GL_CONTAINER(logs, struct gl_logfs, logs);
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_ASSERT(bytes_max >= 128 << 10); /* a line of the keeper fits */
    const char *path = log_path(l, &a, context, job, step, attempt);
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        *ret_next = offset;
        return errno == ENOENT ? 0 : gl_fs_why(reterr_why, errno, "open", path);
    }
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return gl_fs_why(reterr_why, errno, "access", path);
    }
    struct log_layout layout = find_layout(fd, (uint64_t)st.st_size);
    uint64_t at = place_of(&layout, &offset, out);
    uint64_t until_mark = layout.mark > 0 && at < layout.head ? layout.head - at : bytes_max;
    size_t max = until_mark < bytes_max ? (size_t)until_mark : bytes_max;
    char *to = gl_buf_reserve(out, max);
    ssize_t got = read_at(fd, to, max, at);
    if (got < 0) {
        return gl_fs_why(reterr_why, errno, "read", path);
    }
    size_t n = whole_lines(to, (size_t)got);
    size_t skip = n == 0 || is_line_start(fd, at) ? 0 : first_line(to, n);
    memmove(to, to + skip, n - skip);
    out->n += n - skip;
    *ret_next = offset + n;
    return 0;
}

void gl_logfs_init(struct gl_logfs *l, const char *data)
{
    *l = (struct gl_logfs){.logs = {.list = list, .read = read_log, .size = size_of_log},
                           .data = data};
}
