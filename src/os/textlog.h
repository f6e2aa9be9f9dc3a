/* textlog.h - the log of a node, for people. Its size is bounded: a full file is renamed to
 * FILE.1 and a new one begins. Write errors are ignored.
 *
 * Safe to use from several threads. */
#ifndef GL_OS_TEXTLOG_H
#define GL_OS_TEXTLOG_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

enum { GL_TEXTLOG_BYTES_MAX = 4 << 20 };

struct gl_textlog {
    pthread_mutex_t lock;
    int fd;           /* negative: not open */
    const char *path; /* borrowed; NULL: stderr */
    size_t bytes;
};

/* `path` NULL: stderr. */
void gl_textlog_init(struct gl_textlog *l, const char *path);
void gl_textlog_done(struct gl_textlog *l);

/* Write one line, with the time in front; newlines inside become spaces. */
void gl_textlog_write(struct gl_textlog *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
