#include "os/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

struct gl_paths_env gl_paths_env(const char *option)
{
    return (struct gl_paths_env){
        .option = option,
        .glia_data_dir = getenv("GLIA_DATA_DIR"),
        .xdg_data_home = getenv("XDG_DATA_HOME"),
        .home = getenv("HOME"),
        .root = geteuid() == 0,
    };
}

static bool is_set(const char *s)
{
    return s != NULL && s[0] != '\0';
}

/* Absolute, because the keeper and the steps have other working folders. */
static int absolute(const char *path, struct gl_arena *a, const char **ret,
                    struct gl_why *reterr_why)
{
    gl_str p = gl_str_of(path);
    while (p.n > 1 && p.p[p.n - 1] == '/') {
        p.n--;
    }
    if (p.p[0] == '/') {
        *ret = gl_str_c(a, p);
        return 0;
    }
    char *cwd = getcwd(NULL, 0);
    if (cwd == NULL) {
        return gl_fs_why(reterr_why, errno, "determine the current folder for", path);
    }
    *ret = gl_str_fmt(a, "%s/%.*s", gl_str_is(gl_str_of(cwd), "/") ? "" : cwd, GL_STR_ARG(p)).p;
    free(cwd);
    return 0;
}

int gl_paths_data(const struct gl_paths_env *env, struct gl_arena *a, const char **ret,
                  struct gl_why *reterr_why)
{
    if (env->option != NULL && env->option[0] == '\0') {
        return gl_why(reterr_why, GL_E_INVALID, "--data-dir needs a folder");
    }
    if (env->option != NULL) {
        return absolute(env->option, a, ret, reterr_why);
    }
    if (is_set(env->glia_data_dir)) {
        return absolute(env->glia_data_dir, a, ret, reterr_why);
    }
    if (env->root) {
        *ret = "/var/lib/glia";
        return 0;
    }
    /* The XDG specification requires relative paths to be ignored. */
    if (is_set(env->xdg_data_home) && env->xdg_data_home[0] == '/') {
        return absolute(gl_str_fmt(a, "%s/glia", env->xdg_data_home).p, a, ret, reterr_why);
    }
    if (is_set(env->home)) {
        return absolute(gl_str_fmt(a, "%s/.local/share/glia", env->home).p, a, ret, reterr_why);
    }
    return gl_why(reterr_why, GL_E_INVALID,
                  "no data folder: HOME is not set; give --data-dir or set GLIA_DATA_DIR");
}

int gl_paths_runs_root(const struct gl_paths_env *env, const char *given, const char *data,
                       struct gl_arena *a, const char **ret, struct gl_why *reterr_why)
{
    if (is_set(given)) {
        return absolute(given, a, ret, reterr_why);
    }
    return is_set(env->home)
               ? absolute(gl_str_fmt(a, "%s/.mn/runs", env->home).p, a, ret, reterr_why)
               : absolute(gl_str_fmt(a, "%s/mn/runs", data).p, a, ret, reterr_why);
}

const char *gl_paths_in(struct gl_arena *a, const char *data, const char *name)
{
    return gl_str_fmt(a, "%s/%s", data, name).p;
}

const char *gl_paths_context(struct gl_arena *a, const char *data, gl_str context, const char *name)
{
    /* A name with a slash or a leading dot could leave the data folder. */
    GL_ASSERT(gl_str_is_id(context));
    const char *slash = name[0] == '\0' ? "" : "/";
    return gl_str_fmt(a, "%s/contexts/%.*s%s%s", data, GL_STR_ARG(context), slash, name).p;
}

static int check_owner(const char *data, struct gl_why *reterr_why)
{
    struct stat st;
    if (stat(data, &st) < 0) {
        return gl_fs_why(reterr_why, errno, "access", data);
    }
    if (st.st_uid != geteuid()) {
        return gl_why(reterr_why, GL_R_FOLDER_OTHER_USER,
                      "the data folder %s belongs to another user (uid %lu); choose another with "
                      "--data-dir",
                      data, (unsigned long)st.st_uid);
    }
    if (st.st_mode & S_IWOTH) {
        return gl_why(reterr_why, GL_E_DENIED,
                      "the data folder %s is writable by everyone; run: chmod o-w %s", data, data);
    }
    return 0;
}

int gl_paths_prepare(const char *data, gl_str context, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    int err = gl_fs_mkdirs(data, reterr_why);
    if (err == 0) {
        err = check_owner(data, reterr_why);
    }
    const char *folders[] = {
        gl_paths_in(&a, data, GL_PATHS_KEEPER),
        gl_paths_context(&a, data, context, GL_PATHS_BLOBS),
        gl_paths_context(&a, data, context, GL_PATHS_RUNS),
    };
    for (size_t i = 0; i < GL_COUNT(folders) && err == 0; i++) {
        err = gl_fs_mkdirs(folders[i], reterr_why);
    }
    return err;
}
