#include "exec/keeper_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"

enum {
    READY_FD = 3, /* in the keeper */
    FIRST_CLOSED_FD = 4,
    ARGS_MAX = 8,
};

int gl_keeper_spawn_find(struct gl_arena *a, const char **ret, struct gl_why *reterr_why)
{
    static const char *const places[] = {"glia-keeper", "../libexec/glia/glia-keeper",
                                         "../libexec/glia-keeper"};
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
    return gl_why(reterr_why, GL_E_NOT_FOUND,
                  "glia-keeper is neither in %.*s nor in ../libexec next to it: reinstall Glia",
                  GL_STR_ARG(folder));
}

/* The keeper gets none of our environment: it lives as long as its steps, which could read it in
 * /proc, passwords included. What a step needs comes with its start. */
static char **make_env(struct gl_arena *a, bool is_restart)
{
    static const char *const names[] = {
        "GLIA_CORE",
#ifdef GL_WITH_FAILPOINTS
        "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "GLIA_FAILPOINT",
#endif
    };
    char **env = GL_NEW_ARRAY(a, char *, GL_COUNT(names) + 1);
    size_t n = 0;
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        /* A failpoint has done its work if there was a keeper before. */
        if (value != NULL && !(is_restart && strcmp(names[i], "GLIA_FAILPOINT") == 0)) {
            env[n++] = (char *)(uintptr_t)gl_str_fmt(a, "%s=%s", names[i], value).p;
        }
    }
    return env;
}

static void make_args(struct gl_arena *a, const struct gl_keeper_spawn *s, char *args[ARGS_MAX])
{
    size_t n = 0;
    args[n++] = (char *)(uintptr_t)s->program;
    args[n++] = (char *)(uintptr_t) "--data-dir";
    args[n++] = (char *)(uintptr_t)s->data_dir;
    args[n++] = (char *)(uintptr_t) "--ready-fd";
    args[n++] = (char *)(uintptr_t)gl_str_fmt(a, "%d", READY_FD).p;
    if (s->idle_ms > 0) {
        args[n++] = (char *)(uintptr_t) "--idle-ms";
        args[n++] = (char *)(uintptr_t)gl_str_fmt(a, "%lld", (long long)s->idle_ms).p;
    }
    args[n] = NULL;
}

/* The keeper must inherit none of our descriptors, above all not the lock of the data folder. */
static int spawn(const char *program, char **args, char **env, int ready_fd, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSID);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    (void)posix_spawn_file_actions_adddup2(&files, 0, 1);
    (void)posix_spawn_file_actions_adddup2(&files, 0, 2);
    (void)posix_spawn_file_actions_adddup2(&files, ready_fd, READY_FD);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, FIRST_CLOSED_FD);
    int err = posix_spawn(ret, program, &files, &attr, args, env);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return err;
}

int gl_keeper_spawn(const struct gl_keeper_spawn *s, pid_t *ret_pid, int *ret_ready_fd,
                    struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    char *args[ARGS_MAX];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        return gl_why(reterr_why, GL_E_IO, "cannot create a pipe: %s", strerror(errno));
    }
    GL_CLEANUP(gl_fs_closep) int ready = ends[0];
    GL_CLEANUP(gl_fs_closep) int write_end = ends[1];
    if (write_end == READY_FD) { /* dup2 onto itself would leave it close-on-exec */
        int moved = fcntl(write_end, F_DUPFD_CLOEXEC, FIRST_CLOSED_FD);
        gl_fs_closep(&write_end);
        write_end = moved;
    }
    make_args(&a, s, args);
    int err = spawn(s->program, args, make_env(&a, s->is_restart), write_end, ret_pid);
    if (err != 0) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "cannot start the keeper %s: %s", s->program,
                      strerror(err));
    }
    *ret_ready_fd = gl_fs_take(&ready);
    return 0;
}
