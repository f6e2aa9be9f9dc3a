#include "exec/module_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "exec/module_wire.h"
#include "os/fs.h"

extern char **environ;

/* A module gets the node's environment without Glia's own variables: settings and secrets. */
static char **make_env(struct gl_arena *a)
{
    size_t n = 0, kept = 0;
    while (environ[n] != NULL) {
        n++;
    }
    char **env = GL_NEW_ARRAY(a, char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!gl_str_starts(gl_str_of(environ[i]), GL_S("GLIA_"))) {
            env[kept++] = environ[i];
        }
    }
    return env;
}

static char **make_args(struct gl_arena *a, const char *program, const char *const *args)
{
    size_t n = 0;
    while (args[n] != NULL) {
        n++;
    }
    char **all = GL_NEW_ARRAY(a, char *, n + 2);
    all[0] = (char *)(uintptr_t)program;
    for (size_t i = 0; i < n; i++) {
        all[i + 1] = (char *)(uintptr_t)args[i];
    }
    return all;
}

static int spawn(const char *program, char **args, char **env, int fd, pid_t *ret)
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
    (void)posix_spawn_file_actions_adddup2(&files, fd, GL_MODULE_FD);
    (void)posix_spawn_file_actions_addclosefrom_np(&files, GL_MODULE_FD + 1);
    int err = posix_spawn(ret, program, &files, &attr, args, env);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return err;
}

int gl_module_spawn(const char *program, const char *const *args, pid_t *ret_pid, int *ret_fd,
                    struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return gl_why(reterr_why, GL_E_IO, "cannot create a pair of sockets: %s", strerror(errno));
    }
    GL_CLEANUP(gl_fs_closep) int ours = ends[0];
    GL_CLEANUP(gl_fs_closep) int theirs = ends[1];
    if (theirs == GL_MODULE_FD) { /* dup2 onto itself would leave it close-on-exec */
        int moved = fcntl(theirs, F_DUPFD_CLOEXEC, GL_MODULE_FD + 1);
        gl_fs_closep(&theirs);
        theirs = moved;
    }
    (void)fcntl(ours, F_SETFL, O_NONBLOCK);
    int err = spawn(program, make_args(&a, program, args), make_env(&a), theirs, ret_pid);
    if (err != 0) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "cannot start %s: %s", program, strerror(err));
    }
    *ret_fd = gl_fs_take(&ours);
    return 0;
}

int gl_module_end(pid_t pid)
{
    int status = 0;
    (void)kill(-pid, SIGKILL); /* it leads its session: this also kills what the module forked */
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}
