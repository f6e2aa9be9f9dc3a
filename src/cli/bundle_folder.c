#include "cli/bundle_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "os/fs.h"

enum {
    DEPTH_MAX = 32,            /* of folders below payloads/ */
    PROBLEMS_MAX = 64,         /* further ones are not collected */
    LAYER_BYTES_MAX = 1 << 20, /* config/default.json, ... */
    READ_BYTES = 64 << 10,
};

/* State while one bundle is read. */
struct folder_reading {
    struct gl_bundle_folder *b;
    struct gl_arena *a;
    const char *real; /* payloads/ with links resolved, to compare with */
    struct gl_payload *items;
    size_t n, cap;
    gl_str *folders; /* empty folders */
    size_t folders_n, folders_cap;
    size_t seen; /* files and folders */
    gl_str *problems;
    enum gl_reason *reasons; /* one for each problem */
    size_t problems_n;
    bool is_full;
};

static void add_problem(struct folder_reading *r, enum gl_reason reason, gl_str text)
{
    if (r->problems_n < PROBLEMS_MAX) {
        r->reasons[r->problems_n] = reason;
        r->problems[r->problems_n++] = text;
    }
}

static const char *join(struct gl_arena *a, const char *folder, const char *name)
{
    bool has_slash = folder[0] == '\0' || gl_str_ends(gl_str_of(folder), GL_S("/"));

    return gl_str_fmt(a, "%s%s%s", folder, has_slash ? "" : "/", name).p;
}

/* ---- links ---- */

/* Is `path`, with links resolved, the folder `real` or below it? */
static bool is_below(const char *real, const char *path)
{
    char *resolved = realpath(path, NULL);
    size_t n = strlen(real);
    bool is = resolved != NULL && strncmp(resolved, real, n) == 0 &&
              (resolved[n] == '\0' || resolved[n] == '/' || (n > 0 && real[n - 1] == '/'));

    free(resolved);
    return is;
}

int gl_bundle_folder_check_link(const char *root, const char *path, struct gl_why *reterr_why)
{
    char *real = realpath(root[0] != '\0' ? root : ".", NULL);
    bool stays = real != NULL && (access(path, F_OK) != 0 || is_below(real, path));

    free(real);
    return stays ? 0
                 : gl_why(reterr_why, GL_R_LINK_LEADS_OUT,
                          "%s is a link that leads out of the bundle: put the file itself there",
                          path);
}

/* ---- files ---- */

static int hash_file(const char *path, char ret[static GL_SHA256_HEX], struct gl_why *why)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[GL_SHA256_BYTES];
    char buffer[READ_BYTES];
    struct gl_sha256 s;
    uint64_t total = 0;
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : 1;

    gl_sha256_init(&s);
    while (n > 0) {
        n = read(fd, buffer, sizeof(buffer));
        if (n > 0) {
            gl_sha256_add(&s, buffer, (size_t)n);
            total += (uint64_t)n;
        }
        if (total > GL_BLOB_BYTES_MAX) {
            return gl_why(why, GL_E_LIMIT, "%s is larger than 64 MiB", path);
        }
    }
    if (n < 0) {
        return gl_fs_why(why, errno, "read", path);
    }
    gl_sha256_done(&s, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        ret[i * 2] = digits[digest[i] >> 4];
        ret[i * 2 + 1] = digits[digest[i] & 15];
    }
    ret[GL_SHA256_HEX - 1] = '\0';
    return 0;
}

static void add_file(struct folder_reading *r, const char *path, const char *name,
                     const struct stat *st)
{
    char hex[GL_SHA256_HEX];
    struct gl_why why = {0};

    if (r->n == GL_PAYLOADS_MAX) {
        if (!r->is_full) {
            add_problem(r, GL_REASON_TOO_MANY,
                        gl_str_fmt(r->a, "payloads/ has more than %d files", GL_PAYLOADS_MAX));
        }
        r->is_full = true;
        return;
    }
    if (st->st_size > GL_BLOB_BYTES_MAX) {
        add_problem(r, GL_REASON_PAYLOAD_TOO_LARGE,
                    gl_str_fmt(r->a, "%s is larger than 64 MiB", path));
        return;
    }
    if (hash_file(path, hex, &why) != 0) {
        add_problem(r, why.reason, gl_str_dup(r->a, gl_str_of(why.text)));
        return;
    }
    if (r->n == r->cap) {
        size_t cap = r->cap * 2 + 64;
        struct gl_payload *more = GL_NEW_ARRAY(r->a, struct gl_payload, cap);

        if (r->n > 0) {
            memcpy(more, r->items, r->n * sizeof(*more));
        }
        r->items = more;
        r->cap = cap;
    }
    r->items[r->n++] = (struct gl_payload){.path = gl_str_of(name),
                                           .blob = gl_str_dup(r->a, gl_str_of(hex)),
                                           .executable = (st->st_mode & S_IXUSR) != 0};
}

/* ---- folders ---- */

/* Add an empty folder. */
static void add_folder(struct folder_reading *r, const char *name)
{
    if (r->folders_n == r->folders_cap) {
        size_t cap = r->folders_cap * 2 + 16;
        gl_str *more = GL_NEW_ARRAY(r->a, gl_str, cap);

        if (r->folders_n > 0) {
            memcpy(more, r->folders, r->folders_n * sizeof(*more));
        }
        r->folders = more;
        r->folders_cap = cap;
    }
    r->folders[r->folders_n++] = gl_str_of(name);
}

static void list_folder(struct folder_reading *r, const char *path, const char *name,
                        unsigned depth);

static bool is_valid_name(const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            return false;
        }
    }
    return gl_str_is_utf8(gl_str_of(name), NULL);
}

/* `name` is relative to payloads/; `path` is for system calls. */
static void add_payload(struct folder_reading *r, const char *path, const char *name,
                        unsigned depth)
{
    struct stat st;

    if (lstat(path, &st) < 0) {
        add_problem(r, GL_REASON_PAYLOAD_UNREADABLE,
                    gl_str_fmt(r->a, "cannot access %s: %s", path, strerror(errno)));
    } else if (!is_valid_name(name)) {
        add_problem(r, GL_REASON_PAYLOAD_NAME_INVALID,
                    gl_str_fmt(r->a,
                               "%s: names of payloads must be UTF-8 without control characters",
                               path));
    } else if (S_ISLNK(st.st_mode) && stat(path, &st) < 0) {
        add_problem(r, GL_REASON_LINK_DANGLING,
                    gl_str_fmt(r->a, "%s is a link that leads nowhere", path));
    } else if (!is_below(r->real, path)) {
        add_problem(r, GL_REASON_LINK_LEADS_OUT,
                    gl_str_fmt(r->a, "%s is a link that leads out of payloads/", path));
    } else if (S_ISDIR(st.st_mode)) {
        list_folder(r, path, name, depth + 1);
    } else if (S_ISREG(st.st_mode)) {
        add_file(r, path, name, &st);
    } else {
        add_problem(r, GL_REASON_PAYLOAD_NOT_A_FILE,
                    gl_str_fmt(r->a, "%s is neither a file nor a folder", path));
    }
}

static void list_folder(struct folder_reading *r, const char *path, const char *name,
                        unsigned depth)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    bool is_empty = true;

    if (dir == NULL) {
        add_problem(r, GL_REASON_PAYLOAD_UNREADABLE,
                    gl_str_fmt(r->a, "%s cannot be opened: %s", path, strerror(errno)));
        return;
    }
    if (depth > DEPTH_MAX) {
        add_problem(r, GL_REASON_FOLDERS_TOO_DEEP,
                    gl_str_fmt(r->a,
                               "%s: folders are nested more than %d deep, or a link leads "
                               "round in a circle",
                               path, DEPTH_MAX));
        r->is_full = true;
    }
    while (!r->is_full && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        is_empty = false;
        if (++r->seen > GL_PAYLOADS_MAX * 2) {
            add_problem(r, GL_REASON_TOO_MANY,
                        gl_str_fmt(r->a, "payloads/ has more than %d files and folders",
                                   GL_PAYLOADS_MAX * 2));
            r->is_full = true;
            break;
        }
        add_payload(r, join(r->a, path, e->d_name), join(r->a, name, e->d_name), depth);
    }
    (void)closedir(dir); /* nothing was written */
    if (is_empty && !r->is_full && name[0] != '\0') {
        add_folder(r, name);
    }
}

static int by_path(const void *a, const void *b)
{
    const struct gl_payload *x = a, *y = b;

    return gl_str_cmp(x->path, y->path);
}

static void list_payloads(struct folder_reading *r)
{
    const char *path = join(r->a, r->b->root, "payloads");
    struct gl_why why = {0};
    struct stat st;
    char *real;

    if (lstat(path, &st) < 0 && errno == ENOENT) {
        return; /* errors of the manifest name the files it needs */
    }
    if (gl_bundle_folder_check_link(r->b->root, path, &why) != 0) {
        add_problem(r, why.reason, gl_str_dup(r->a, gl_str_of(why.text)));
        return;
    }
    real = realpath(path, NULL);
    if (real == NULL || stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        add_problem(r, GL_REASON_PAYLOADS_NOT_A_FOLDER,
                    gl_str_fmt(r->a, "%s is not a folder", path));
        free(real);
        return;
    }
    r->real = gl_str_c(r->a, gl_str_of(real));
    free(real);
    r->b->has_payloads = true;
    list_folder(r, path, "", 0);
    if (r->n > 0) {
        qsort(r->items, r->n, sizeof(*r->items), by_path);
    }
    r->b->given.payloads = (struct gl_items){.items = r->items, .n = r->n};
    r->b->given.folders = (struct gl_strs){.items = r->folders, .n = r->folders_n};
}

/* ---- layers ---- */

/* The JSON in `name`; "" if there is no such file or it is invalid. */
static gl_str read_layer(struct folder_reading *r, const char *name, bool must_be_object)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    const char *path = join(r->a, r->b->root, name);
    struct gl_why why = {0};
    struct gl_json j;
    struct stat st;
    gl_str copy;
    int err;

    if (stat(path, &st) < 0 && errno == ENOENT) {
        return (gl_str){0};
    }
    err = gl_bundle_folder_check_link(r->b->root, path, &why);
    if (err == 0 && !S_ISREG(st.st_mode)) {
        err = gl_why(&why, GL_R_FILE_NOT_REGULAR, "%s is not a regular file", path);
    }
    if (err == 0) {
        err = gl_fs_read(path, LAYER_BYTES_MAX, &text, &why);
    }
    copy = gl_str_dup(r->a, gl_str_trim(gl_buf_view(&text)));
    if (err == 0) {
        err = gl_json_parse(&j, copy, LAYER_BYTES_MAX, r->a, &why);
        (void)(err != 0 && gl_why_prefix(&why, "%s", path));
    }
    if (err == 0 && must_be_object && !gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        err = gl_why(&why, GL_E_INVALID, "%s must contain an object, not %s", path,
                     gl_json_type_name(gl_json_root(&j)));
    }
    if (err != 0) {
        add_problem(r, why.reason, gl_str_dup(r->a, gl_str_of(why.text)));
        return (gl_str){0};
    }
    return copy;
}

static void read_layers(struct folder_reading *r, const struct gl_strs *sets)
{
    gl_str under = read_layer(r, "config/default.json", true);
    gl_str over = read_layer(r, "config/overwrite.json", true);
    struct gl_manifest_given *g = &r->b->given;
    struct gl_why why = {0};

    g->scenario = read_layer(r, "scenario.json", false);
    if (gl_manifest_config(under, over, sets, r->a, &g->config, &why) != 0 ||
        gl_manifest_overlay(sets, r->a, &g->overlay, &why) != 0) {
        add_problem(r, why.reason, gl_str_dup(r->a, gl_str_of(why.text)));
    }
}

/* ---- the whole ---- */

int gl_bundle_folder_read(struct gl_bundle_folder *b, const char *root, const struct gl_strs *sets,
                          struct gl_arena *a)
{
    struct folder_reading r = {.b = b,
                               .a = a,
                               .problems = GL_NEW_ARRAY(a, gl_str, PROBLEMS_MAX),
                               .reasons = GL_NEW_ARRAY(a, enum gl_reason, PROBLEMS_MAX)};

    *b = (struct gl_bundle_folder){.root = root};
    read_layers(&r, sets);
    list_payloads(&r);
    b->problems = (struct gl_strs){.items = r.problems, .n = r.problems_n};
    b->reasons = r.reasons;
    return r.problems_n == 0 ? 0 : GL_E_INVALID;
}

int gl_bundle_folder_read_payload(const struct gl_bundle_folder *b, const struct gl_payload *p,
                                  struct gl_buf *out, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *folder = join(&a, b->root, "payloads");

    return gl_fs_read(join(&a, folder, gl_str_c(&a, p->path)), GL_BLOB_BYTES_MAX, out, reterr_why);
}

static void write_layer(struct gl_jw *w, const char *name, gl_str json)
{
    if (json.n > 0) {
        gl_jw_put_raw(w, name, json);
    }
}

void gl_bundle_folder_write(const struct gl_bundle_folder *b, struct gl_jw *w)
{
    const struct gl_payload *all = b->given.payloads.items;

    gl_jw_put_array(w, "payloads");
    for (size_t i = 0; i < b->given.payloads.n; i++) {
        gl_jw_object(w);
        gl_jw_put_str(w, "path", all[i].path);
        gl_jw_put_str(w, "sha256", all[i].blob);
        if (all[i].executable) {
            gl_jw_put_bool(w, "executable", true);
        }
        gl_jw_end(w);
    }
    gl_jw_end(w);
    if (b->given.folders.n > 0) {
        gl_jw_put_array(w, "folders");
        for (size_t i = 0; i < b->given.folders.n; i++) {
            gl_jw_str(w, b->given.folders.items[i]);
        }
        gl_jw_end(w);
    }
    write_layer(w, "config", b->given.config);
    write_layer(w, "overlay", b->given.overlay);
    write_layer(w, "scenario", b->given.scenario);
}
