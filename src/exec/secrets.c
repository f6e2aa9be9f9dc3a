#include "exec/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/fs.h"
#include "port/keeper_protocol.h"

enum { FILE_BYTES_MAX = GL_SECRET_BYTES_MAX + 1 }; /* including a final newline */

struct reference {
    gl_str name;
    gl_str text; /* "env:VARIABLE" */
};

static int refuse(const struct reference *r, const char *why_not, struct gl_why *why)
{
    return gl_why(why, GL_E_INVALID, "secret %.*s: '%.*s' %s", GL_STR_ARG(r->name),
                  GL_STR_ARG(r->text), why_not);
}

static int refuse_unreadable(const struct reference *r, int err, struct gl_why *why)
{
    return gl_why(why, GL_E_INVALID, "secret %.*s: '%.*s' cannot be read: %s", GL_STR_ARG(r->name),
                  GL_STR_ARG(r->text), strerror(err));
}

static int read_variable(const struct reference *r, const char *variable, gl_str *ret,
                         struct gl_why *why)
{
    const char *value = getenv(variable);
    if (value == NULL) {
        return refuse(r, "is not set in the environment of the node", why);
    }
    *ret = gl_str_of(value);
    return 0;
}

/* Never block, whatever the path names; anything but a regular file is refused. */
static int open_file(const struct reference *r, const char *path, int *ret_fd, struct gl_why *why)
{
    struct stat st;
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return refuse_unreadable(r, errno, why);
    }
    if (!S_ISREG(st.st_mode)) {
        return refuse(r, "is not a regular file", why);
    }
    *ret_fd = gl_fs_take(&fd);
    return 0;
}

static int read_file(const struct reference *r, const char *path, struct gl_arena *a, gl_str *ret,
                     struct gl_why *why)
{
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    int err =
        path[0] == '/' ? open_file(r, path, &fd, why) : refuse(r, "is not an absolute path", why);
    if (err < 0) {
        return err;
    }
    char *bytes = gl_arena_alloc(a, FILE_BYTES_MAX + 1);
    size_t n = 0;
    ssize_t got;
    while (n <= FILE_BYTES_MAX && (got = read(fd, bytes + n, FILE_BYTES_MAX + 1 - n)) != 0) {
        if (got < 0 && errno != EINTR) {
            return refuse_unreadable(r, errno, why);
        }
        n += got > 0 ? (size_t)got : 0;
    }
    n -= n > 0 && bytes[n - 1] == '\n';
    *ret = (gl_str){.p = bytes, .n = n};
    return 0;
}

static int read_one(const struct reference *r, struct gl_arena *a, gl_str *ret, struct gl_why *why)
{
    gl_str where;
    gl_str kind = gl_str_cut(r->text, ':', &where);
    if (where.n == 0 || memchr(where.p, 0, where.n) != NULL) {
        return refuse(r, "is neither env:VARIABLE nor file:/path", why);
    }
    if (gl_str_is(kind, "env")) {
        return read_variable(r, gl_str_c(a, where), ret, why);
    }
    if (gl_str_is(kind, "file")) {
        return read_file(r, gl_str_c(a, where), a, ret, why);
    }
    return refuse(r, "is neither env:VARIABLE nor file:/path", why);
}

int gl_secrets_read(const gl_str *references, size_t n, struct gl_arena *a, const gl_str **ret,
                    struct gl_why *reterr_why)
{
    if (n > GL_SECRETS_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT, "%zu secrets (at most %d)", n, GL_SECRETS_MAX);
    }
    gl_str *texts = GL_NEW_ARRAY(a, gl_str, n);
    for (size_t i = 0; i < n; i++) {
        struct reference ref = {0};
        gl_str value;
        ref.name = gl_str_cut(references[i], '=', &ref.text);
        int r = read_one(&ref, a, &value, reterr_why);
        if (r == 0) {
            gl_str name = gl_str_fmt(a, "%.*s (%.*s)", GL_STR_ARG(ref.name), GL_STR_ARG(ref.text));
            r = gl_keeper_check_secret(name, value, reterr_why);
        }
        if (r < 0) {
            return r;
        }
        char *text = gl_arena_alloc(a, ref.name.n + 1 + value.n);
        memcpy(text, ref.name.p, ref.name.n);
        text[ref.name.n] = '=';
        memcpy(text + ref.name.n + 1, value.p, value.n);
        texts[i] = (gl_str){.p = text, .n = ref.name.n + 1 + value.n};
    }
    *ret = texts;
    return 0;
}
