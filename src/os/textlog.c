#include "os/textlog.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/times.h"
#include "os/fs.h"

enum { LINE_BYTES_MAX = 2048 };

static void open_file(struct gl_textlog *l)
{
    struct stat st;
    l->bytes = 0;
    /* Non-blocking: someone may have put a FIFO there. */
    l->fd =
        open(l->path,
             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (l->fd >= 0 && fstat(l->fd, &st) == 0) {
        l->bytes = (size_t)st.st_size;
    }
}

void gl_textlog_init(struct gl_textlog *l, const char *path)
{
    *l = (struct gl_textlog){.fd = -1, .path = path};
    pthread_mutex_init(&l->lock, NULL);
    if (path != NULL) {
        open_file(l);
    }
}

void gl_textlog_done(struct gl_textlog *l)
{
    gl_fs_closep(&l->fd);
    pthread_mutex_destroy(&l->lock);
}

static void rotate(struct gl_textlog *l)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_fs_closep(&l->fd);
    (void)rename(l->path,
                 gl_str_fmt(&a, "%s.1", l->path).p); /* failed: the old file keeps growing */
    open_file(l);
}

static size_t format(char line[static LINE_BYTES_MAX], const char *fmt, va_list args)
{
    char when[GL_TIMES_BYTES];
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    gl_str now = gl_times_format((gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000, when);
    size_t n = (size_t)snprintf(line, LINE_BYTES_MAX, "%.*s ", GL_STR_ARG(now));
    int more = vsnprintf(line + n, LINE_BYTES_MAX - n - 1, fmt, args);
    size_t room = LINE_BYTES_MAX - n - 2;
    size_t end = n + (more < 0 ? 0 : (size_t)more < room ? (size_t)more : room);
    for (size_t i = n; i < end; i++) {
        line[i] = (char)(line[i] == '\n' ? ' ' : line[i]);
    }
    line[end] = '\n';
    return end + 1;
}

void gl_textlog_write(struct gl_textlog *l, const char *fmt, ...)
{
    char line[LINE_BYTES_MAX];
    va_list args;
    va_start(args, fmt);
    size_t n = format(line, fmt, args);
    va_end(args);
    pthread_mutex_lock(&l->lock);
    if (l->path != NULL && l->bytes > GL_TEXTLOG_BYTES_MAX) {
        rotate(l);
    }
    int fd = l->path == NULL ? STDERR_FILENO : l->fd;
    ssize_t written = fd >= 0 ? write(fd, line, n) : 0;
    l->bytes += written > 0 ? (size_t)written : 0;
    pthread_mutex_unlock(&l->lock);
}
