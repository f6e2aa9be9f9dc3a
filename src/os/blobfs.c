#include "os/blobfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "os/fs.h"
#include "os/paths.h"

/* A blob younger than this need not be refreshed when asked for. */
enum { FRESH_MS = 10 * 60 * 1000 };

static struct gl_blobfs *of_blob(struct gl_blob *b)
{
    return GL_CONTAINER(b, struct gl_blobfs, blob);
}

static bool is_hash(gl_str hex)
{
    for (size_t i = 0; i < hex.n; i++) {
        bool digit = hex.p[i] >= '0' && hex.p[i] <= '9';
        bool letter = hex.p[i] >= 'a' && hex.p[i] <= 'f';
        if (!digit && !letter) {
            return false;
        }
    }
    return hex.n == GL_SHA256_HEX - 1;
}

static const char *folder_of(struct gl_arena *a, const char *data, gl_str context, gl_str hex)
{
    const char *name = gl_str_fmt(a, "%s/%.2s", GL_PATHS_BLOBS, hex.p).p;
    return gl_paths_context(a, data, context, name);
}

static const char *temp_folder(struct gl_arena *a, const char *data, gl_str context)
{
    return gl_paths_context(a, data, context, GL_PATHS_BLOBS "/tmp");
}

const char *gl_blobfs_path(struct gl_arena *a, const char *data, gl_str context, gl_str hex)
{
    GL_ASSERT(is_hash(hex));
    return gl_str_fmt(a, "%s/%.*s", folder_of(a, data, context, hex), GL_STR_ARG(hex)).p;
}

static int store(struct gl_blobfs *b, gl_str context, gl_str hex, gl_str content,
                 struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = gl_blobfs_path(&a, b->data, context, hex);
    const char *folder = folder_of(&a, b->data, context, hex);
    const char *temp = temp_folder(&a, b->data, context);
    int err = gl_fs_mkdirs(temp, reterr_why);
    if (err == 0) {
        err = gl_fs_mkdirs(folder, reterr_why);
    }
    if (err == 0) {
        err = gl_fs_write_from(temp, path, content, reterr_why);
    }
    return err;
}

/* Is this the content of the file? Disks fail, and people edit files. */
static bool is_whole(struct gl_blobfs *b, gl_str context, gl_str hex, gl_str content)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep)
    int fd = open(gl_blobfs_path(&a, b->data, context, hex), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char piece[64 << 10];
    size_t at = 0;
    ssize_t n = -1;

    while (fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0) {
        if ((size_t)n > content.n - at || memcmp(piece, content.p + at, (size_t)n) != 0) {
            return false;
        }
        at += (size_t)n;
    }
    return n == 0 && at == content.n;
}

static int put(struct gl_blob *blob, gl_str context, gl_str hex, gl_str content,
               struct gl_why *reterr_why)
{
    struct gl_blobfs *b = of_blob(blob);
    if (!gl_str_is_id(context)) {
        return gl_why(reterr_why, GL_E_INVALID, "'%.*s' is not a valid context name",
                      GL_STR_ARG(context));
    }
    if (content.n > GL_BLOB_BYTES_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT, "a file may have at most %d bytes; this one has %zu",
                      GL_BLOB_BYTES_MAX, content.n);
    }
    char made[GL_SHA256_HEX];
    if (!gl_str_eq(gl_sha256_hex(content, made), hex)) {
        return gl_why(reterr_why, GL_R_BLOB_HASH_MISMATCH, "the content has the hash %s, not %.*s",
                      made, GL_STR_ARG(hex));
    }
    if (blob->has(blob, context, hex) && is_whole(b, context, hex, content)) {
        /* Another thread may have renamed it without having synced the folder yet, and our caller
         * relies on it. */
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
        return gl_fs_sync_folder(folder_of(&a, b->data, context, hex), reterr_why);
    }
    return store(b, context, hex, content, reterr_why);
}

static gl_ms age_of(const struct stat *st)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return ((gl_ms)now.tv_sec - (gl_ms)st->st_mtim.tv_sec) * 1000;
}

static bool has(struct gl_blob *blob, gl_str context, gl_str hex)
{
    struct gl_blobfs *b = of_blob(blob);
    if (!gl_str_is_id(context) || !is_hash(hex)) {
        return false;
    }
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = gl_blobfs_path(&a, b->data, context, hex);
    struct stat st;
    pthread_mutex_lock(&b->use);
    bool is_there = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (is_there && age_of(&st) > FRESH_MS) {
        is_there = utimensat(AT_FDCWD, path, NULL, 0) == 0; /* otherwise it may soon be removed */
    }
    pthread_mutex_unlock(&b->use);
    return is_there;
}

static int open_blob(struct gl_blob *blob, gl_str context, gl_str hex, int *ret_fd,
                     uint64_t *ret_bytes, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    const char *path;
    struct stat st;

    if (!gl_str_is_id(context) || !is_hash(hex)) {
        return gl_why(reterr_why, GL_R_BLOB_HASH_INVALID,
                      "the name of a blob must be 64 lower-case hex digits");
    }
    path = gl_blobfs_path(&a, of_blob(blob)->data, context, hex);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        return gl_why(reterr_why, GL_R_NO_SUCH_BLOB, "there is no blob %.*s", GL_STR_ARG(hex));
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        return gl_fs_why(reterr_why, errno, "open", path);
    }
    *ret_bytes = (uint64_t)st.st_size;
    *ret_fd = gl_fs_take(&fd);
    return 0;
}

void gl_blobfs_init(struct gl_blobfs *b, const char *data)
{
    *b = (struct gl_blobfs){.blob = {.put = put, .open = open_blob, .has = has}, .data = data};
    pthread_mutex_init(&b->use, NULL);
}

void gl_blobfs_done(struct gl_blobfs *b)
{
    pthread_mutex_destroy(&b->use);
    b->data = NULL;
}

int gl_blobfs_sweep(struct gl_blobfs *b, gl_str context, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = temp_folder(&a, b->data, context);
    DIR *d = opendir(path);
    if (d == NULL) {
        return errno == ENOENT ? 0 : gl_fs_why(reterr_why, errno, "read the folder", path);
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            (void)unlinkat(dirfd(d), e->d_name, 0); /* on failure, the next sweep retries */
        }
    }
    (void)closedir(d);
    return 0;
}

/* ---- removing ---- */

static int by_text(const void *a, const void *b)
{
    return gl_str_cmp(*(const gl_str *)a, *(const gl_str *)b);
}

static void remove_old(struct gl_blobfs *b, int folder, const char *name, gl_ms age_ms,
                       struct gl_tidy_req *req)
{
    struct stat st;
    pthread_mutex_lock(&b->use);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
        uint64_t bytes = (uint64_t)st.st_blocks * 512;
        if (age_of(&st) <= age_ms) {
            req->young += bytes;
        } else if (unlinkat(folder, name, 0) == 0) {
            req->removed_n++;
            req->bytes += bytes;
        }
    }
    pthread_mutex_unlock(&b->use);
}

void gl_blobfs_remove(struct gl_blobfs *b, gl_str context, const gl_str *keep, size_t keep_n,
                      gl_ms age_ms, struct gl_tidy_req *req)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf sorted = {0};
    gl_buf_add(&sorted, keep, keep_n * sizeof(*keep));
    if (keep_n > 0) {
        qsort(sorted.p, keep_n, sizeof(*keep), by_text);
    }
    for (unsigned i = 0; i < 256; i++) {
        const char *part = gl_str_fmt(&a, "%s/%02x", GL_PATHS_BLOBS, i).p;
        DIR *d = opendir(gl_paths_context(&a, b->data, context, part));
        for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
            gl_str name = gl_str_of(e->d_name);
            if (is_hash(name) &&
                (keep_n == 0 || bsearch(&name, sorted.p, keep_n, sizeof(name), by_text) == NULL)) {
                remove_old(b, dirfd(d), e->d_name, age_ms, req);
            }
        }
        if (d != NULL) {
            (void)closedir(d);
        }
        gl_arena_reset(&a);
    }
}
