#include "keeper/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "keeper/client.h"
#include "keeper/worker_lines.h"
#include "os/fs.h"

enum {
    READ_BYTES = 64 << 10, /* one read; also the capacity of a pipe */
    FINISH_READS_MAX =
        256, /* bounds reading after the end: an unknown process may still be writing */
    MARK_BYTES_MAX = 64,
};

/* ---- pipes ---- */

/* Stop watching it and hand its descriptors to the caller, who closes them. */
static void retire_pipe(struct gl_keeper *k, struct gl_pipe *p, int ret_fds[2])
{
    GL_ASSERT(gl_list_empty(&p->link));
    ret_fds[0] = gl_keeper_release_watch(&p->watch);
    ret_fds[1] = p->write_fd;
    p->write_fd = -1;
    gl_list_push(&k->pipes_closed, &p->link);
}

void gl_capture_free_closed(struct gl_keeper *k)
{
    while (!gl_list_empty(&k->pipes_closed)) {
        struct gl_pipe *p = GL_CONTAINER(gl_list_first(&k->pipes_closed), struct gl_pipe, link);
        gl_list_remove(&p->link);
        gl_mem_free(p);
    }
    GL_ASSERT(gl_list_empty(&k->pipes_closed));
}

static void release_pipes(struct gl_keeper *k, struct gl_capture *c)
{
    struct gl_stream *streams[] = {&c->out, &c->err};
    int fds[2 * GL_COUNT(streams)];
    size_t n = 0;
    for (size_t i = 0; i < GL_COUNT(streams); i++) {
        if (streams[i]->pipe != NULL) {
            retire_pipe(k, streams[i]->pipe, fds + n);
            streams[i]->pipe = NULL;
            n += 2;
        }
    }
    gl_keeper_close_fds(fds, n);
}

static bool read_some(struct gl_keeper *k, struct gl_capture *c, struct gl_stream *s);

static void on_ready(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    struct gl_pipe *p = GL_CONTAINER(w, struct gl_pipe, watch);
    (void)events;
    (void)read_some(k, p->owner, p->stream);
}

static struct gl_pipe *new_pipe(struct gl_keeper *k, struct gl_why *why)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)gl_why(why, GL_E_LIMIT, "cannot create a pipe: %s", strerror(errno));
        return NULL;
    }
    struct gl_pipe *p = gl_mem_alloc(sizeof(*p));
    gl_list_init(&p->link);
    p->watch = (struct gl_watch){.ready = on_ready, .fd = ends[0]};
    p->write_fd = ends[1];
    /* Only our end is non-blocking: with a non-blocking end the step would lose output. */
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 || gl_keeper_watch(k, &p->watch, why) < 0) {
        (void)gl_why(why, GL_E_LIMIT, "cannot set up a pipe: %s", strerror(errno));
        retire_pipe(k, p, ends);
        gl_keeper_close_fds(ends, GL_COUNT(ends));
        return NULL;
    }
    GL_ASSERT(p->watch.fd >= 0);
    return p;
}

/* Pipes are never reused: an escaped process may still hold those of an earlier step. */
static int get_pipe(struct gl_keeper *k, struct gl_capture *c, struct gl_stream *s,
                    struct gl_why *why)
{
    s->pipe = new_pipe(k, why);
    if (s->pipe == NULL) {
        return GL_E_LIMIT;
    }
    s->pipe->owner = c;
    s->pipe->stream = s;
    return 0;
}

static void pause_pipe(struct gl_keeper *k, struct gl_pipe *p)
{
    if (!p->is_paused) {
        p->is_paused = true;
        gl_keeper_set_watch(k, &p->watch, 0);
    }
    GL_ASSERT(p->is_paused);
}

void gl_capture_resume(struct gl_keeper *k, struct gl_capture *c)
{
    struct gl_pipe *p = c->out.pipe;
    if (p != NULL && p->is_paused) {
        p->is_paused = false;
        gl_keeper_set_watch(k, &p->watch, EPOLLIN);
    }
}

/* ---- life ---- */

void gl_capture_init(struct gl_capture *c)
{
    *c = (struct gl_capture){.out.letter = 'o', .err.letter = 'e', .log_fd = -1};
}

void gl_capture_done(struct gl_keeper *k, struct gl_capture *c)
{
    release_pipes(k, c);
    gl_fs_closep(&c->log_fd);
    gl_redact_done(&c->out.redact);
    gl_redact_done(&c->err.redact);
    gl_buf_done(&c->out.partial);
    gl_buf_done(&c->err.partial);
    gl_buf_done(&c->line);
    gl_buf_done(&c->last);
    gl_mem_free((void *)(uintptr_t)c->path);
    c->path = NULL;
}

int gl_capture_open(struct gl_keeper *k, struct gl_capture *c, gl_str path,
                    const struct gl_redactor *redactor, int *ret_out, int *ret_err,
                    struct gl_why *reterr_why)
{
    char *copy = gl_mem_alloc(path.n + 1);

    GL_ASSERT(c->log_fd < 0);
    GL_ASSERT(path.n > 0);
    memcpy(copy, path.p, path.n);
    c->path = copy;
    c->out.redact.redactor = c->err.redact.redactor = redactor;
    int r = get_pipe(k, c, &c->out, reterr_why);
    if (r == 0) {
        r = get_pipe(k, c, &c->err, reterr_why);
    }
    if (r < 0) {
        return r; /* gl_capture_done() releases what was created */
    }
    *ret_out = c->out.pipe->write_fd;
    *ret_err = c->err.pipe->write_fd;
    return 0;
}

/* ---- the log ---- */

static int write_at(int fd, const char *p, size_t n, uint64_t at)
{
    GL_ASSERT(fd >= 0);
    while (n > 0) {
        ssize_t w = pwrite(fd, p, n, (off_t)at);
        if (w < 0 && errno == EINTR) {
            continue;
        }
        if (w <= 0) {
            return GL_E_IO;
        }
        p += w;
        n -= (size_t)w;
        at += (uint64_t)w;
    }
    return 0;
}

static int read_at(int fd, char *p, size_t n, uint64_t at)
{
    GL_ASSERT(fd >= 0);
    while (n > 0) {
        ssize_t got = pread(fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return GL_E_IO;
        }
        p += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}

/* Write the shortened log: the first part, the "dropped" line, and the last part from the start of
 * a line. */
static int write_shorter(const struct gl_capture *c, int fd, struct gl_capture *shorter)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf all = {0};
    uint64_t tail = c->head_bytes + c->mark_bytes;
    uint64_t from = c->log_bytes - GL_CAPTURE_PART_BYTES;
    GL_CLEANUP(gl_buf_done) struct gl_buf kept = {0};
    char *end = gl_buf_reserve(&kept, GL_CAPTURE_PART_BYTES);
    char *head = gl_buf_reserve(&all, c->head_bytes + MARK_BYTES_MAX + GL_CAPTURE_PART_BYTES);

    GL_ASSERT(c->head_bytes > 0);
    GL_ASSERT(c->log_bytes > GL_CAPTURE_PART_BYTES);
    GL_ASSERT(c->log_bytes - tail > GL_CAPTURE_PART_BYTES);
    if (read_at(c->log_fd, head, c->head_bytes, 0) < 0 ||
        read_at(c->log_fd, end, GL_CAPTURE_PART_BYTES, from) < 0) {
        return GL_E_IO;
    }
    all.n = c->head_bytes;
    const char *newline = memchr(end, '\n', GL_CAPTURE_PART_BYTES);
    size_t skip = newline == NULL ? 0 : (size_t)(newline + 1 - end);
    shorter->dropped = c->dropped + (from + skip - tail);
    gl_buf_fmt(&all, "-- %llu bytes dropped --\n", (unsigned long long)shorter->dropped);
    shorter->mark_bytes = all.n - c->head_bytes;
    GL_ASSERT(shorter->mark_bytes < MARK_BYTES_MAX);
    gl_buf_add(&all, end + skip, GL_CAPTURE_PART_BYTES - skip);
    shorter->log_bytes = all.n;
    return write_at(fd, all.p, all.n, 0);
}

/* Replace the log with a shorter file. A reader has one or the other open, and each only ever
 * grows. */
static int shorten(struct gl_keeper *k, struct gl_capture *c)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf path = {0};
    struct gl_capture shorter = *c;

    GL_ASSERT(c->head_bytes > 0);
    GL_ASSERT(c->log_fd >= 0);
    gl_buf_fmt(&path, "%s.new", c->path);
    gl_buf_char(&path, '\0');
    GL_CLEANUP(gl_fs_closep)
    int fd =
        openat(k->contexts_fd, path.p, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return GL_E_IO;
    }
    if (write_shorter(c, fd, &shorter) < 0 ||
        renameat(k->contexts_fd, path.p, k->contexts_fd, c->path) < 0) {
        (void)unlinkat(k->contexts_fd, path.p, 0);
        return GL_E_IO;
    }
    int former = c->log_fd;
    *c = shorter;
    c->log_fd = fd;
    fd = former;
    return 0;
}

/* The first part ends with the last whole line that fits. */
static void end_head(struct gl_capture *c, gl_str lines)
{
    /* A "disk full" line may have filled it already. */
    size_t room = c->log_bytes < GL_CAPTURE_PART_BYTES ? GL_CAPTURE_PART_BYTES - c->log_bytes : 0;
    const char *newline = memrchr(lines.p, '\n', room);

    GL_ASSERT(c->head_bytes == 0);
    c->head_bytes = c->log_bytes + (newline == NULL ? 0 : (size_t)(newline + 1 - lines.p));
    GL_ASSERT(c->head_bytes >= c->log_bytes);
}

static int open_log(struct gl_keeper *k, struct gl_capture *c)
{
    if (c->log_fd < 0) {
        c->log_fd = openat(k->contexts_fd, c->path,
                           O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    return c->log_fd < 0 ? GL_E_IO : 0;
}

/* The disk was full for a while: log how much is missing here. */
static int write_unwritten(struct gl_capture *c)
{
    char mark[MARK_BYTES_MAX];

    GL_ASSERT(c->log_fd >= 0);
    if (c->unwritten == 0) {
        return 0;
    }
    int n = snprintf(mark, sizeof(mark), "-- %llu bytes dropped: disk full --\n",
                     (unsigned long long)c->unwritten);
    GL_ASSERT(n > 0);
    GL_ASSERT((size_t)n < sizeof(mark));
    int r = write_at(c->log_fd, mark, (size_t)n, c->log_bytes);
    if (r == 0) {
        c->log_bytes += (uint64_t)n;
        c->unwritten = 0;
    }
    return r;
}

/* Append whole lines. */
static void write_log(struct gl_keeper *k, struct gl_capture *c, gl_str lines)
{
    if (lines.n == 0) {
        return;
    }
    if (open_log(k, c) < 0 || write_unwritten(c) < 0 ||
        write_at(c->log_fd, lines.p, lines.n, c->log_bytes) < 0) {
        c->unwritten += lines.n;
        return;
    }
    if (c->head_bytes == 0 && c->log_bytes + lines.n > GL_CAPTURE_PART_BYTES) {
        end_head(c, lines);
    }
    c->log_bytes += lines.n;
    if (c->head_bytes > 0 &&
        c->log_bytes - c->head_bytes - c->mark_bytes > 2ull * GL_CAPTURE_PART_BYTES) {
        (void)shorten(k, c); /* on failure, retried with the next line */
    }
    GL_ASSERT(c->log_bytes >= c->head_bytes + c->mark_bytes);
}

/* ---- lines ---- */

static void add_line(struct gl_keeper *k, const struct gl_stream *s, gl_str begin, gl_str rest)
{
    GL_ASSERT(s->letter == 'o' || s->letter == 'e');
    gl_buf_i64(&k->lines, gl_keeper_wall(k));
    gl_buf_char(&k->lines, ' ');
    gl_buf_char(&k->lines, s->letter);
    gl_buf_char(&k->lines, ' ');
    gl_buf_str(&k->lines, begin);
    gl_buf_str(&k->lines, rest);
    gl_buf_char(&k->lines, '\n');
}

/* A line longer than the limit is written in pieces. */
static void hold_partial(struct gl_keeper *k, struct gl_stream *s, gl_str rest)
{
    while (s->partial.n + rest.n >= GL_CAPTURE_LINE_BYTES) {
        size_t n = GL_CAPTURE_LINE_BYTES - s->partial.n;
        add_line(k, s, gl_buf_view(&s->partial), (gl_str){.p = rest.p, .n = n});
        gl_buf_reset(&s->partial);
        rest.p += n;
        rest.n -= n;
    }
    gl_buf_str(&s->partial, rest);
    GL_ASSERT(s->partial.n < GL_CAPTURE_LINE_BYTES);
}

static void take_lines(struct gl_keeper *k, struct gl_stream *s, gl_str text)
{
    const char *newline;

    GL_ASSERT(s->partial.n < GL_CAPTURE_LINE_BYTES);
    while (text.n > 0 && (newline = memchr(text.p, '\n', text.n)) != NULL) {
        size_t n = (size_t)(newline - text.p);
        while (s->partial.n + n > GL_CAPTURE_LINE_BYTES) {
            size_t piece = GL_CAPTURE_LINE_BYTES - s->partial.n;
            hold_partial(k, s, (gl_str){.p = text.p, .n = piece});
            text.p += piece;
            n -= piece;
            text.n -= piece;
        }
        add_line(k, s, gl_buf_view(&s->partial), (gl_str){.p = text.p, .n = n});
        gl_buf_reset(&s->partial);
        text.p += n + 1;
        text.n -= n + 1;
    }
    if (text.n > 0) {
        hold_partial(k, s, text);
    }
}

/* ---- the last line of stdout ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void grow_last(struct gl_capture *c, gl_str part)
{
    while (!c->line_begun && part.n > 0 && is_space(part.p[0])) {
        part.p++;
        part.n--;
    }
    if (part.n == 0) {
        return;
    }
    if (!c->line_begun) {
        c->line_begun = true;
        c->line_kept = part.p[0] == '{';
    }
    if (c->line_kept && c->line.n + part.n > GL_OUTPUT_BYTES_MAX) {
        c->line_kept = false;
    }
    if (c->line_kept) {
        gl_buf_str(&c->line, part);
    }
    GL_ASSERT(c->line.n <= GL_OUTPUT_BYTES_MAX);
}

static void end_last(struct gl_capture *c)
{
    if (c->line_begun) {
        struct gl_buf former = c->last;
        c->last = c->line;
        c->line = former;
        if (!c->line_kept) {
            gl_buf_reset(&c->last);
        }
    }
    gl_buf_reset(&c->line);
    c->line_begun = false;
    c->line_kept = false;
    GL_ASSERT(!c->line_begun);
}

static void track_last(struct gl_capture *c, gl_str text)
{
    const char *newline;
    while (text.n > 0 && (newline = memchr(text.p, '\n', text.n)) != NULL) {
        size_t n = (size_t)(newline - text.p);
        grow_last(c, (gl_str){.p = text.p, .n = n});
        end_last(c);
        text.p += n + 1;
        text.n -= n + 1;
    }
    grow_last(c, text);
}

gl_str gl_capture_last(const struct gl_capture *c)
{
    GL_ASSERT(c->last.n <= GL_OUTPUT_BYTES_MAX);
    return gl_buf_view(&c->last);
}

/* ---- reading ---- */

/* Output of a worker; returns what belongs in the log. */
static gl_str take_worker_text(struct gl_keeper *k, struct gl_capture *c, struct gl_stream *s,
                               gl_str text)
{
    GL_ASSERT(s == &c->out || s == &c->err);
    if (s == &c->err) {
        gl_worker_lines_err(c->worker, text);
        return text;
    }
    gl_buf_reset(&k->plain);
    gl_worker_lines_out(k, c->worker, text, &k->plain);
    if (gl_worker_lines_is_full(c->worker) && !c->worker->is_over && gl_client_takes_lines(k)) {
        pause_pipe(k, s->pipe);
    }
    return gl_buf_view(&k->plain);
}

static void take_text(struct gl_keeper *k, struct gl_capture *c, struct gl_stream *s, gl_str text)
{
    GL_ASSERT(s == &c->out || s == &c->err);
    if (c->worker != NULL) {
        text = take_worker_text(k, c, s, text);
    } else if (s == &c->out) {
        track_last(c, text);
    }
    gl_buf_reset(&k->lines);
    take_lines(k, s, text);
    write_log(k, c, gl_buf_view(&k->lines));
}

/* One read. False: the pipe is empty. */
static bool read_some(struct gl_keeper *k, struct gl_capture *c, struct gl_stream *s)
{
    char bytes[READ_BYTES];
    ssize_t n = read(s->pipe->watch.fd, bytes, sizeof(bytes));
    if (n <= 0) {
        return false;
    }
    gl_str text = {.p = bytes, .n = (size_t)n};
    if (s->redact.redactor != NULL) {
        gl_buf_reset(&k->clean);
        gl_redact_feed(&s->redact, text, &k->clean);
        text = gl_buf_view(&k->clean);
    }
    take_text(k, c, s, text);
    return true;
}

/* Release bytes that were held back as the possible beginning of a secret. */
static void end_redact(struct gl_keeper *k, struct gl_capture *c, struct gl_stream *s)
{
    if (s->redact.redactor != NULL) {
        gl_buf_reset(&k->clean);
        gl_redact_end(&s->redact, &k->clean);
        take_text(k, c, s, gl_buf_view(&k->clean));
    }
}

static void finish_stream(struct gl_keeper *k, struct gl_capture *c, struct gl_stream *s, bool more)
{
    GL_ASSERT(s->pipe != NULL || !more);
    for (int i = 0; i < FINISH_READS_MAX && more; i++) {
        more = read_some(k, c, s);
    }
    end_redact(k, c, s);
    if (c->worker != NULL && s == &c->out) {
        gl_buf_reset(&k->plain);
        gl_worker_lines_end_out(k, c->worker, &k->plain);
        gl_buf_str(&s->partial, gl_buf_view(&k->plain));
    }
    if (s->partial.n > 0) {
        gl_buf_reset(&k->lines);
        add_line(k, s, gl_buf_view(&s->partial), (gl_str){0});
        write_log(k, c, gl_buf_view(&k->lines));
    }
    gl_buf_done(&s->partial);
    GL_ASSERT(s->partial.n == 0);
}

/* Is anything left to read? One system call for both pipes; they are usually empty by now. */
static void poll_pipes(const struct gl_capture *c, bool *ret_out, bool *ret_err)
{
    struct pollfd p[] = {
        {.fd = c->out.pipe != NULL ? c->out.pipe->watch.fd : -1, .events = POLLIN},
        {.fd = c->err.pipe != NULL ? c->err.pipe->watch.fd : -1, .events = POLLIN},
    };
    bool failed = poll(p, GL_COUNT(p), 0) < 0; /* then reading finds out */
    *ret_out = c->out.pipe != NULL && (failed || p[0].revents != 0);
    *ret_err = c->err.pipe != NULL && (failed || p[1].revents != 0);
}

void gl_capture_finish(struct gl_keeper *k, struct gl_capture *c)
{
    if (c->worker != NULL) {
        c->worker->is_over = true;
    }
    bool out, err;
    poll_pipes(c, &out, &err);
    finish_stream(k, c, &c->out, out);
    finish_stream(k, c, &c->err, err);
    release_pipes(k, c);
    end_last(c);
    if (c->worker != NULL) {
        gl_worker_lines_end(k, c->worker, c->out.redact.replaced);
    }
    if (c->head_bytes > 0 && c->log_bytes - c->head_bytes - c->mark_bytes > GL_CAPTURE_PART_BYTES) {
        (void)shorten(k, c); /* on failure the log is longer than it should be: no harm */
    }
    gl_fs_closep(&c->log_fd);
    gl_buf_done(&c->line);
    GL_ASSERT(c->log_fd < 0);
}
