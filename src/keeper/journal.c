#include "keeper/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/failpoint.h"
#include "os/fs.h"

enum { FILE_BYTES_MAX = 1 << 30 };

static int replay(struct gl_journal *j, gl_str text, gl_journal_each *each, void *owner)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str message;
    size_t used = 0;
    while (gl_keep_record((gl_str){.p = text.p + j->bytes, .n = text.n - j->bytes}, &message,
                          &used) == 0) {
        struct gl_keep_msg m;
        gl_arena_reset(&a);
        /* A good checksum over a message nobody can read: of a newer release. It is skipped, not
         * cut off. */
        if (gl_keep_decode(&m, message, &a, NULL) == 0) {
            int r = each(owner, &m);
            if (r < 0) {
                return r;
            }
        }
        j->bytes += used;
    }
    return 0;
}

int gl_journal_open(struct gl_journal *j, const char *folder, gl_journal_each *each, void *owner,
                    struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str path = gl_str_fmt(&a, "%s/journal", folder);
    *j = (struct gl_journal){.fd = -1};
    j->path = gl_mem_alloc(path.n + 1);
    memcpy(j->path, path.p, path.n);
    int r = gl_fs_read(j->path, FILE_BYTES_MAX, &text, reterr_why);
    if (r < 0 && r != GL_E_NOT_FOUND) {
        return r;
    }
    r = replay(j, gl_buf_view(&text), each, owner);
    if (r < 0) {
        return gl_why(reterr_why, r, "cannot take over what %s holds", j->path);
    }
    j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (j->fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", j->path);
    }
    /* Whatever follows the last good record is the torn end of a write. */
    if (ftruncate(j->fd, (off_t)j->bytes) < 0) {
        return gl_fs_why(reterr_why, errno, "repair", j->path);
    }
    return 0;
}

void gl_journal_close(struct gl_journal *j)
{
    gl_fs_closep(&j->fd);
    gl_buf_done(&j->pending);
    gl_mem_free(j->path);
}

void gl_journal_add(struct gl_journal *j, const struct gl_keep_msg *m)
{
    gl_keep_add_record(m, &j->pending);
    j->want_sync = j->want_sync || m->type == GL_KEEP_ENDED;
}

/* Write at the known end, so that a half-written record of an earlier failure is overwritten. */
static int write_at(int fd, gl_str bytes, uint64_t at)
{
    while (bytes.n > 0) {
        ssize_t n = pwrite(fd, bytes.p, bytes.n, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        bytes.p += n;
        bytes.n -= (size_t)n;
        at += (uint64_t)n;
    }
    return 0;
}

int gl_journal_flush(struct gl_journal *j, struct gl_why *reterr_why)
{
    if (j->pending.n == 0) {
        return 0;
    }
    int err = write_at(j->fd, gl_buf_view(&j->pending), j->bytes);
    if (err != 0) {
        return gl_fs_why(reterr_why, err, "write", j->path);
    }
    if (j->want_sync) {
        GL_FAILPOINT("keeper.before_end_sync");
        if (fdatasync(j->fd) < 0) {
            return gl_fs_why(reterr_why, errno, "sync", j->path);
        }
        j->syncs++;
        GL_FAILPOINT("keeper.after_end_sync");
    }
    j->bytes += j->pending.n;
    j->want_sync = false;
    gl_buf_reset(&j->pending);
    return 0;
}

int gl_journal_replace(struct gl_journal *j, gl_str content, struct gl_why *reterr_why)
{
    int r = gl_fs_write(j->path, content, reterr_why);
    if (r < 0) {
        return r;
    }
    GL_CLEANUP(gl_fs_closep) int fd = open(j->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", j->path);
    }
    gl_fs_closep(&j->fd);
    j->fd = gl_fs_take(&fd);
    j->bytes = content.n;
    j->want_sync = false;
    gl_buf_reset(&j->pending);
    return 0;
}

void gl_journal_clear(struct gl_journal *j)
{
    gl_buf_reset(&j->pending);
    if (ftruncate(j->fd, 0) == 0) {
        j->bytes = 0;
    }
}
