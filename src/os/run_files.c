#include "os/run_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "os/fs.h"

enum { DEPTH_MAX = 32, READ_BYTES = 64 << 10 };

/* ---- the folder ---- */

/* GL_E_NOT_FOUND without a sentence: it does not exist. */
static int open_run(const char *root, gl_str run_id, int *ret, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep) int top = -1;

    if (!gl_str_is_id(run_id)) {
        return gl_why(reterr_why, GL_E_INVALID, "'%.*s' is not a run id", GL_STR_ARG(run_id));
    }
    top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) {
        return errno == ENOENT ? GL_E_NOT_FOUND : gl_fs_why(reterr_why, errno, "open", root);
    }
    *ret = openat(top, gl_str_c(&a, run_id), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret < 0) {
        const char *path = gl_str_fmt(&a, "%s/%.*s", root, GL_STR_ARG(run_id)).p;

        return errno == ENOENT ? gl_why(reterr_why, GL_E_NOT_FOUND, "there is no folder %s", path)
                               : gl_fs_why(reterr_why, errno, "open", path);
    }
    return 0;
}

/* ---- listing ---- */

struct run_files_walk {
    struct gl_arena *a;
    struct gl_run_files_list *list;
    size_t cap;
    uint64_t hash_max;
};

static void hash(int fd, char ret[static GL_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[GL_SHA256_BYTES];
    char buffer[READ_BYTES];
    struct gl_sha256 s;
    ssize_t n;

    gl_sha256_init(&s);
    while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
        gl_sha256_add(&s, buffer, (size_t)n);
    }
    if (n < 0) {
        return;
    }
    gl_sha256_done(&s, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        ret[i * 2] = digits[digest[i] >> 4];
        ret[i * 2 + 1] = digits[digest[i] & 15];
    }
    ret[GL_SHA256_HEX - 1] = '\0';
}

static void add_file(struct run_files_walk *w, gl_str path, int fd, const struct stat *st)
{
    struct gl_run_files_list *l = w->list;
    struct gl_run_file *f;

    if (l->n == GL_RUN_FILES_MAX) {
        l->is_cut = true;
        return;
    }
    if (l->n == w->cap) {
        size_t cap = w->cap * 2 + 16;
        struct gl_run_file *more = GL_NEW_ARRAY(w->a, struct gl_run_file, cap);

        if (l->n > 0) {
            memcpy(more, l->files, l->n * sizeof(*more));
        }
        l->files = more;
        w->cap = cap;
    }
    f = &l->files[l->n++];
    *f = (struct gl_run_file){
        .path = path,
        .bytes = (uint64_t)st->st_size,
        .modified_at = (gl_ms)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000,
    };
    if (f->bytes <= w->hash_max) {
        hash(fd, f->hex);
    }
}

/* Takes the descriptor. */
static void walk(struct run_files_walk *w, int fd, gl_str prefix, unsigned depth)
{
    DIR *dir = fdopendir(fd);
    struct dirent *e;

    if (dir == NULL) {
        (void)close(fd); /* nothing was written */
        return;
    }
    while (!w->list->is_cut && (e = readdir(dir)) != NULL) {
        gl_str path = gl_str_fmt(w->a, "%.*s%s", GL_STR_ARG(prefix), e->d_name);
        struct stat st;
        int one;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        one = openat(dirfd(dir), e->d_name,
                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (one < 0) {
            continue; /* a link, or removed meanwhile, or not readable */
        }
        st.st_mode = fstat(one, &st) == 0 ? st.st_mode : 0;
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
            walk(w, one, gl_str_fmt(w->a, "%.*s/", GL_STR_ARG(path)), depth + 1);
            continue;
        }
        if (S_ISREG(st.st_mode)) {
            add_file(w, path, one, &st);
        }
        (void)close(one); /* nothing was written */
    }
    (void)closedir(dir);
}

static int by_path(const void *a, const void *b)
{
    const struct gl_run_file *x = a, *y = b;

    return gl_str_cmp(x->path, y->path);
}

int gl_run_files_list(const char *root, gl_str run_id, uint64_t hash_max, struct gl_arena *a,
                      struct gl_run_files_list *ret, struct gl_why *reterr_why)
{
    struct run_files_walk w = {.a = a, .list = ret, .hash_max = hash_max};
    int fd = -1, err = open_run(root, run_id, &fd, reterr_why);

    *ret = (struct gl_run_files_list){0};
    if (err != 0) {
        return err == GL_E_NOT_FOUND ? 0 : err;
    }
    walk(&w, fd, (gl_str){0}, 0);
    if (ret->n > 0) {
        qsort(ret->files, ret->n, sizeof(*ret->files), by_path);
    }
    return 0;
}

/* ---- one file ---- */

static int no_such_file(gl_str path, struct gl_why *reterr_why)
{
    return gl_why(reterr_why, GL_R_NO_SUCH_ARTIFACT, "the run has no file '%.*s'",
                  GL_STR_ARG(path));
}

int gl_run_files_open(const char *root, gl_str run_id, gl_str path, int *ret_fd,
                      uint64_t *ret_bytes, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_fs_closep) int at = -1;
    gl_str rest = path;
    struct stat st;
    int err = open_run(root, run_id, &at, reterr_why);

    if (err != 0) {
        return err == GL_E_NOT_FOUND ? no_such_file(path, reterr_why) : err;
    }
    do {
        gl_str part = gl_str_cut(rest, '/', &rest);
        int next;

        if (part.n == 0 || gl_str_is(part, ".") || gl_str_is(part, "..") ||
            memchr(part.p, 0, part.n) != NULL) {
            return gl_why(reterr_why, GL_R_ARTIFACT_PATH_INVALID,
                          "'%.*s' is not a path inside the run folder: '..' and empty components "
                          "are not allowed",
                          GL_STR_ARG(path));
        }
        next = openat(at, gl_str_c(&a, part),
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        (void)close(at); /* nothing was written */
        at = next;
        if (at < 0) {
            return no_such_file(path, reterr_why);
        }
    } while (rest.n > 0);
    if (fstat(at, &st) < 0 || !S_ISREG(st.st_mode) || path.p[path.n - 1] == '/') {
        return no_such_file(path, reterr_why);
    }
    *ret_bytes = (uint64_t)st.st_size;
    *ret_fd = gl_fs_take(&at);
    return 0;
}

static bool ends_with_newline(int fd)
{
    struct stat st;
    char last = '\n';

    return fstat(fd, &st) < 0 || st.st_size == 0 || pread(fd, &last, 1, st.st_size - 1) != 1 ||
           last == '\n';
}

int gl_run_files_append(const char *root, gl_str run_id, const char *name, gl_str line,
                        struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int folder = -1;
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    int err = open_run(root, run_id, &folder, reterr_why);

    if (err != 0) {
        return err;
    }
    fd = openat(folder, name, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", name);
    }
    gl_buf_c(&text, ends_with_newline(fd) ? "" : "\n");
    gl_buf_str(&text, line);
    gl_buf_char(&text, '\n');
    if (write(fd, text.p, text.n) != (ssize_t)text.n) {
        return gl_fs_why(reterr_why, errno, "write to", name);
    }
    if (fsync(fd) < 0 || fsync(folder) < 0) {
        return gl_fs_why(reterr_why, errno, "sync", name);
    }
    return 0;
}

/* ---- the reply ---- */

static void write_file(struct gl_jw *w, const struct gl_run_file *f)
{
    char when[GL_TIMES_BYTES];

    gl_jw_object(w);
    gl_jw_key(w, "path");
    gl_jw_str(w, f->path);
    gl_jw_key(w, "bytes");
    gl_jw_u64(w, f->bytes);
    gl_jw_key(w, "sha256");
    if (f->hex[0] != '\0') {
        gl_jw_c(w, f->hex);
    } else {
        gl_jw_null(w);
    }
    gl_jw_key(w, "content_type");
    gl_jw_c(w, gl_run_files_type(f->path));
    gl_jw_key(w, "modified_at");
    gl_jw_str(w, gl_times_format(f->modified_at, when));
    gl_jw_end(w);
}

void gl_run_files_write(const struct gl_run_files_list *l, const char *root, gl_str job,
                        gl_str run_id, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_key(&w, "job_id");
    gl_jw_str(&w, job);
    gl_jw_key(&w, "run_id");
    gl_jw_str(&w, run_id);
    gl_jw_key(&w, "folder");
    gl_jw_str(&w, gl_str_fmt(&a, "%s/%.*s", root, GL_STR_ARG(run_id)));
    gl_jw_key(&w, "artifacts");
    gl_jw_array(&w);
    for (size_t i = 0; i < l->n; i++) {
        write_file(&w, &l->files[i]);
    }
    gl_jw_end(&w);
    gl_jw_key(&w, "truncated");
    gl_jw_bool(&w, l->is_cut);
    gl_jw_end(&w);
}

/* ---- types ---- */

const char *gl_run_files_type(gl_str path)
{
    static const struct {
        const char *ending, *type;
    } types[] = {
        {".json", "application/json"},
        {".jsonl", "application/x-ndjson"},
        {".ndjson", "application/x-ndjson"},
        {".txt", "text/plain"},
        {".log", "text/plain"},
        {".md", "text/markdown"},
        {".csv", "text/csv"},
        {".tsv", "text/tab-separated-values"},
        {".html", "text/html"},
        {".htm", "text/html"},
        {".css", "text/css"},
        {".js", "text/javascript"},
        {".xml", "application/xml"},
        {".yaml", "application/yaml"},
        {".yml", "application/yaml"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},
        {".gif", "image/gif"},
        {".webp", "image/webp"},
        {".pdf", "application/pdf"},
        {".wav", "audio/wav"},
        {".mp3", "audio/mpeg"},
        {".mp4", "video/mp4"},
        {".zip", "application/zip"},
        {".gz", "application/gzip"},
        {".tar", "application/x-tar"},
        {".sqlite3", "application/vnd.sqlite3"},
        {".db", "application/vnd.sqlite3"},
        {".parquet", "application/vnd.apache.parquet"},
        {".py", "text/x-python"},
        {".sh", "text/x-shellscript"},
    };

    for (size_t i = 0; i < GL_COUNT(types); i++) {
        if (gl_str_ends(path, gl_str_of(types[i].ending))) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}
