#include "exec/module_load.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "exec/module_call.h"
#include "os/fs.h"

static int check_owner(const char *path, const char *shown, bool is_folder,
                       struct gl_why *reterr_why)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return gl_fs_why(reterr_why, errno, "access", path);
    }
    if (is_folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)) {
        return gl_why(reterr_why, GL_E_INVALID, "%s is not a %s", shown,
                      is_folder ? "folder" : "file");
    }
    if (st.st_uid != 0 && st.st_uid != geteuid()) {
        return gl_why(reterr_why, GL_E_DENIED,
                      "%s belongs to user %u: a module and its folder must belong to root or to "
                      "user %u, which runs the node",
                      shown, st.st_uid, geteuid());
    }
    /* A sticky folder like /tmp is fine: users cannot replace each other's files there. */
    mode_t bad = is_folder && (st.st_mode & S_ISVTX) != 0 ? 0 : S_IWGRP | S_IWOTH;
    if ((st.st_mode & bad) != 0) {
        return gl_why(reterr_why, GL_E_DENIED,
                      "%s can be changed by others (mode %03o): chmod go-w %s", shown,
                      st.st_mode & 07777, shown);
    }
    return 0;
}

int gl_module_check_file(const char *path, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    char *real = realpath(path, NULL); /* check what a link points to */
    if (real == NULL) {
        return gl_fs_why(reterr_why, errno, "find", path);
    }
    const char *file = gl_str_dup(&a, gl_str_of(real)).p;
    free(real);
    const char *slash = strrchr(file, '/');
    GL_ASSERT(slash != NULL);
    size_t n = slash == file ? 1 : (size_t)(slash - file);
    const char *folder = gl_str_c(&a, (gl_str){.p = file, .n = n});
    int err = check_owner(file, file, false, reterr_why);
    return err == 0 ? check_owner(folder, folder, true, reterr_why) : err;
}

int gl_module_load(const char *path, void **ret_object, const struct glia_module **ret,
                   struct gl_why *reterr_why)
{
    int err = gl_module_check_file(path, reterr_why);
    if (err != 0) {
        return err;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        return gl_why(reterr_why, GL_E_INVALID, "cannot load %s: %s", path, dlerror());
    }
    const struct glia_module *m = dlsym(object, "glia_module");
    err = m == NULL
              ? gl_why(reterr_why, GL_E_INVALID,
                       "it exports no symbol glia_module: it is not a module, or it was built "
                       "with hidden symbols (GLIA_EXPORT)")
              : gl_module_check(m, reterr_why);
    if (err != 0) {
        (void)dlclose(object);
        return gl_why_prefix(reterr_why, "%s", path);
    }
    *ret_object = object;
    *ret = m;
    return 0;
}

void gl_module_unload(void *object)
{
    if (object != NULL) {
        (void)dlclose(object); /* a module cleans up after itself */
    }
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int gl_module_files(const char *folder, struct gl_arena *a, const char ***ret, size_t *ret_n,
                    struct gl_why *reterr_why)
{
    DIR *d = opendir(folder);
    if (d == NULL) {
        return gl_fs_why(reterr_why, errno, "open", folder);
    }
    const char **paths = GL_NEW_ARRAY(a, const char *, GL_MODULES_MAX);
    struct dirent *e;
    size_t n = 0;
    int err = 0;
    while (err == 0 && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.' || !gl_str_ends(gl_str_of(e->d_name), GL_S(".so"))) {
            continue;
        }
        if (n == GL_MODULES_MAX) {
            err = gl_why(reterr_why, GL_E_LIMIT, "%s has more than %d modules", folder,
                         GL_MODULES_MAX);
        } else {
            paths[n++] = gl_str_fmt(a, "%s/%s", folder, e->d_name).p;
        }
    }
    (void)closedir(d);
    if (err == 0) {
        qsort(paths, n, sizeof(*paths), compare_paths);
        *ret = paths;
        *ret_n = n;
    }
    return err;
}

int gl_module_host_find(struct gl_arena *a, const char **ret, struct gl_why *reterr_why)
{
    static const char *const places[] = {"glia-module-host", "../libexec/glia/glia-module-host",
                                         "../libexec/glia-module-host"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
    if (n <= 0 || n == (ssize_t)sizeof(self)) {
        return gl_why(reterr_why, GL_E_NOT_FOUND, "cannot determine the path of this program");
    }
    const char *slash = memrchr(self, '/', (size_t)n);
    GL_ASSERT(slash != NULL);
    gl_str folder = {.p = self, .n = (size_t)(slash - self)};
    for (size_t i = 0; i < GL_COUNT(places); i++) {
        const char *path = gl_str_fmt(a, "%.*s/%s", GL_STR_ARG(folder), places[i]).p;
        if (access(path, X_OK) == 0) {
            *ret = path;
            return 0;
        }
    }
    return gl_why(
        reterr_why, GL_E_NOT_FOUND,
        "glia-module-host is neither in %.*s nor in ../libexec next to it: reinstall Glia",
        GL_STR_ARG(folder));
}
