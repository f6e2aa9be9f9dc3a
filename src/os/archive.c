#include "os/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "os/fs.h"

enum { CHUNK_BYTES = 128 << 10, LIST_BYTES_MAX = 1 << 30 };

static const char list_name[] = "MANIFEST";

/* ---- copying ---- */

struct copied {
    char hex[GL_SHA256_HEX];
    uint64_t bytes;
};

static void to_hex(struct gl_sha256 *s, char ret[static GL_SHA256_HEX])
{
    uint8_t digest[GL_SHA256_BYTES];
    gl_sha256_done(s, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    }
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return -1;
        }
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Read `from` to its end; if `to` >= 0, write the content there. */
static int pump(int from, int to, const char *path, struct copied *ret, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf chunk = {0};
    char *p = gl_buf_reserve(&chunk, CHUNK_BYTES);
    struct gl_sha256 sum;
    ssize_t n;

    gl_sha256_init(&sum);
    ret->bytes = 0;
    while ((n = read(from, p, CHUNK_BYTES)) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return gl_fs_why(reterr_why, errno, "read", path);
        }
        if (to >= 0 && write_all(to, p, (size_t)n) < 0) {
            return gl_fs_why(reterr_why, errno, "copy", path);
        }
        gl_sha256_add(&sum, p, (size_t)n);
        ret->bytes += (uint64_t)n;
    }
    to_hex(&sum, ret->hex);
    return 0;
}

static int open_file(const char *path, struct gl_why *reterr_why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", path);
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        (void)close(fd);
        return gl_why(reterr_why, GL_R_FILE_NOT_REGULAR, "%s is not a regular file", path);
    }
    return fd;
}

/* Create the file, and the folders above it. */
static int make_file(struct gl_arena *a, const char *path, struct gl_why *reterr_why)
{
    const char *slash = strrchr(path, '/');
    const char *folder = gl_str_c(a, (gl_str){.p = path, .n = (size_t)(slash - path)});
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = open(path, flags, 0600);
    if (fd < 0 && errno == ENOENT) {
        int err = gl_fs_mkdirs(folder, reterr_why);
        if (err < 0) {
            return err;
        }
        fd = open(path, flags, 0600);
    }
    return fd < 0 ? gl_fs_why(reterr_why, errno, "make", path) : fd;
}

static int copy_file(const char *from, const char *to, struct copied *ret,
                     struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep) int in = open_file(from, reterr_why);
    if (in < 0) {
        return in;
    }
    GL_CLEANUP(gl_fs_closep) int out = make_file(&a, to, reterr_why);
    return out < 0 ? out : pump(in, out, from, ret, reterr_why);
}

static int sync_all(const char *folder, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || syncfs(fd) < 0 ? gl_fs_why(reterr_why, errno, "sync", folder) : 0;
}

/* ---- writing ---- */

static int check_empty(const char *folder, struct gl_why *reterr_why)
{
    DIR *d = opendir(folder);
    bool is_empty = true;
    if (d == NULL) {
        return errno == ENOENT ? 0 : gl_fs_why(reterr_why, errno, "open the folder", folder);
    }
    for (struct dirent *e; is_empty && (e = readdir(d)) != NULL;) {
        is_empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    }
    (void)closedir(d);
    return is_empty ? 0
                    : gl_why(reterr_why, GL_R_FOLDER_NOT_EMPTY,
                             "%s is not empty: choose a folder that does not exist yet", folder);
}

int gl_archive_create(struct gl_archive *a, const char *folder, const char *release, gl_ms made_at,
                      struct gl_why *reterr_why)
{
    char made[GL_TIMES_BYTES];
    int err = check_empty(folder, reterr_why);
    if (err == 0) {
        err = gl_fs_mkdirs(folder, reterr_why);
    }
    if (err < 0) {
        return err;
    }
    *a = (struct gl_archive){.folder = folder};
    (void)gl_times_format(made_at, made);
    gl_buf_fmt(&a->list, "glia-backup %d\nglia %s\nmade %s\n", (int)GL_ARCHIVE_VERSION, release,
               made);
    return 0;
}

void gl_archive_done(struct gl_archive *a)
{
    gl_buf_done(&a->list);
}

static void list(struct gl_archive *a, const char *name, const struct copied *c)
{
    gl_buf_fmt(&a->list, "file %s %llu %s\n", c->hex, (unsigned long long)c->bytes, name);
    a->files_n++;
    a->bytes += c->bytes;
}

int gl_archive_add(struct gl_archive *a, const char *from, const char *name,
                   struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    const char *to = gl_str_fmt(&arena, "%s/%s", a->folder, name).p;
    struct copied c;
    if (access(to, F_OK) == 0 || access(from, F_OK) != 0) {
        return 0;
    }
    int err = copy_file(from, to, &c, reterr_why);
    if (err == GL_E_NOT_FOUND && access(from, F_OK) != 0) {
        return 0;
    }
    if (err == 0) {
        list(a, name, &c);
    }
    return err;
}

int gl_archive_add_existing(struct gl_archive *a, const char *name, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    const char *path = gl_str_fmt(&arena, "%s/%s", a->folder, name).p;
    GL_CLEANUP(gl_fs_closep) int fd = open_file(path, reterr_why);
    struct copied c;
    int err = fd < 0 ? fd : pump(fd, -1, path, &c, reterr_why);
    if (err == 0) {
        list(a, name, &c);
    }
    return err;
}

int gl_archive_finish(struct gl_archive *a, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    char hex[GL_SHA256_HEX];
    (void)gl_sha256_hex(gl_buf_view(&a->list), hex);
    gl_buf_fmt(&a->list, "end %s\n", hex);
    int err = sync_all(a->folder, reterr_why);
    return err < 0 ? err
                   : gl_fs_write(gl_str_fmt(&arena, "%s/%s", a->folder, list_name).p,
                                 gl_buf_view(&a->list), reterr_why);
}

/* ---- reading ---- */

/* Relative, and every component is a plain name: a list from someone else must not lead outside. */
static bool is_inside(gl_str name)
{
    bool has_parts = false;
    while (name.n > 0) {
        gl_str part = gl_str_cut(name, '/', &name);
        if (part.n == 0 || part.p[0] == '.') {
            return false;
        }
        has_parts = true;
    }
    return has_parts;
}

static int damaged(const char *folder, const char *what, struct gl_why *reterr_why)
{
    return gl_why(reterr_why, GL_R_BACKUP_DAMAGED, "the backup %s is damaged: %s", folder, what);
}

/* The part of the list that its last line covers. */
static int check_list(const char *folder, gl_str text, gl_str *ret, struct gl_why *reterr_why)
{
    char hex[GL_SHA256_HEX];
    size_t at = text.n;
    while (at > 1 && text.p[at - 2] != '\n') {
        at--;
    }
    at -= at > 0;
    gl_str body = {.p = text.p, .n = at}, last = {.p = text.p + at, .n = text.n - at}, sum;
    if (!gl_str_is(gl_str_cut(gl_str_trim(last), ' ', &sum), "end") ||
        !gl_str_eq(sum, gl_sha256_hex(body, hex))) {
        return damaged(folder, "MANIFEST is incomplete", reterr_why);
    }
    *ret = body;
    return 0;
}

struct archive_line {
    gl_str hex, name;
    uint64_t bytes;
};

static int extract_one(const char *folder, const char *to, const struct archive_line *l,
                       struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct copied c;
    const char *from = gl_str_fmt(&a, "%s/%.*s", folder, GL_STR_ARG(l->name)).p;
    int err = copy_file(from, gl_str_fmt(&a, "%s/%.*s", to, GL_STR_ARG(l->name)).p, &c, reterr_why);
    if (err == GL_E_NOT_FOUND) {
        return damaged(folder, gl_str_fmt(&a, "%.*s is missing", GL_STR_ARG(l->name)).p,
                       reterr_why);
    }
    if (err == 0 && (c.bytes != l->bytes || !gl_str_is(l->hex, c.hex))) {
        return damaged(folder,
                       gl_str_fmt(&a, "%.*s does not match MANIFEST", GL_STR_ARG(l->name)).p,
                       reterr_why);
    }
    return err;
}

/* Skip lines that a later release of the same version adds. */
static int read_line(const char *folder, const char *to, gl_str line, struct gl_archive_info *ret,
                     struct gl_why *reterr_why)
{
    gl_str rest, size;
    gl_str word = gl_str_cut(line, ' ', &rest);
    struct archive_line l;
    if (gl_str_is(word, "glia")) {
        (void)snprintf(ret->release, sizeof(ret->release), "%.*s", GL_STR_ARG(rest));
    } else if (gl_str_is(word, "made")) {
        (void)snprintf(ret->made, sizeof(ret->made), "%.*s", GL_STR_ARG(rest));
    } else if (gl_str_is(word, "file")) {
        l.hex = gl_str_cut(rest, ' ', &rest);
        size = gl_str_cut(rest, ' ', &l.name);
        if (!gl_str_u64(size, &l.bytes) || !is_inside(l.name)) {
            return damaged(folder, "MANIFEST is malformed", reterr_why);
        }
        ret->files_n++;
        ret->bytes += l.bytes;
        return to == NULL ? 0 : extract_one(folder, to, &l, reterr_why);
    }
    return 0;
}

static int read_list(const char *folder, struct gl_buf *text, gl_str *ret,
                     struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    int err =
        gl_fs_read(gl_str_fmt(&a, "%s/%s", folder, list_name).p, LIST_BYTES_MAX, text, reterr_why);
    if (err == GL_E_NOT_FOUND) {
        return gl_why(reterr_why, GL_R_BACKUP_INVALID,
                      "%s is not a backup: it has no MANIFEST, which is written when a backup is "
                      "complete",
                      folder);
    }
    return err < 0 ? err : check_list(folder, gl_buf_view(text), ret, reterr_why);
}

int gl_archive_extract(const char *folder, const char *to, struct gl_archive_info *ret,
                       struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    gl_str rest, version;
    uint64_t number = 0;
    int err = read_list(folder, &text, &rest, reterr_why);
    if (err < 0) {
        return err;
    }
    if (!gl_str_is(gl_str_cut(gl_str_cut(rest, '\n', &rest), ' ', &version), "glia-backup") ||
        !gl_str_u64(version, &number)) {
        return damaged(folder, "MANIFEST is malformed", reterr_why);
    }
    if (number > GL_ARCHIVE_VERSION) {
        return gl_why(reterr_why, GL_R_BACKUP_NEWER,
                      "the backup %s was made by a newer release of glia: use that release",
                      folder);
    }
    *ret = (struct gl_archive_info){0};
    while (rest.n > 0 && err == 0) {
        err = read_line(folder, to, gl_str_cut(rest, '\n', &rest), ret, reterr_why);
    }
    return err == 0 && to != NULL ? sync_all(to, reterr_why) : err;
}
