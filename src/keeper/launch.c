#include "keeper/launch.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "keeper/rundir.h"
#include "keeper/workdir.h"

enum stage {
    STAGE_RUNS = 0,
    STAGE_SESSION,
    STAGE_FILES,
    STAGE_FOLDER,
    STAGE_EXEC,
};

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- preparing ---- */

static char *c_str(struct gl_arena *a, gl_str s)
{
    return (char *)(uintptr_t)gl_str_c(a, s);
}

/* A text of a worker's start, with its folder substituted. */
static char *work_str(struct gl_arena *a, gl_str s, gl_str work)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        n += s.p[i] == GL_EXEC_WORK[0];
    }
    if (n == 0 || work.n == 0) {
        return c_str(a, s);
    }
    char *text = gl_arena_alloc(a, s.n + n * work.n + 1), *at = text;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == GL_EXEC_WORK[0]) {
            at = mempcpy(at, work.p, work.n);
        } else {
            *at++ = s.p[i];
        }
    }
    *at = 0;
    GL_ASSERT(at == text + s.n - n + n * work.n);
    return text;
}

static const char *env_find(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; *env != NULL; env++) {
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') {
            return *env + n + 1;
        }
    }
    return NULL;
}

static void env_default(struct gl_arena *a, char **env, size_t *n, const char *name,
                        const char *value)
{
    if (env_find(env, name) == NULL) {
        env[(*n)++] = c_str(a, gl_str_fmt(a, "%s=%s", name, value));
    }
}

static bool is_secret(const struct gl_exec_start *s, gl_str variable)
{
    gl_str rest;
    for (size_t i = 0; i < s->secrets_n; i++) {
        gl_str name = gl_str_cut(s->secrets[i], '=', &rest);
        name.n++; /* with the '=' */
        if (gl_str_starts(variable, name)) {
            return true;
        }
    }
    return false;
}

/* Secrets come first; the variables after them are not confidential. */
static char **make_env(struct gl_arena *a, const struct gl_exec_start *s, gl_str folder,
                       gl_str work)
{
    char **env = GL_NEW_ARRAY(a, char *, s->secrets_n + s->env_n + 6);
    size_t n = 0;
    for (size_t i = 0; i < s->secrets_n; i++) {
        env[n++] = c_str(a, s->secrets[i]);
    }
    for (size_t i = 0; i < s->env_n; i++) {
        if (!gl_str_starts(s->env[i], GL_S("GLIA_INPUT_FILE=")) &&
            !gl_str_starts(s->env[i], GL_S("GLIA_OUTPUT=")) && !is_secret(s, s->env[i])) {
            env[n++] = work_str(a, s->env[i], work);
        }
    }
    if (s->is_worker) {
        return env;
    }
    env_default(a, env, &n, "GLIA_INPUT_FILE", gl_rundir_join(a, folder, GL_S("input.json")).p);
    env_default(a, env, &n, "GLIA_OUTPUT", gl_rundir_join(a, folder, GL_S("output.json")).p);
    /* The node sends its own values, as far as it has them. */
    env_default(a, env, &n, "PATH", DEFAULT_PATH);
    env_default(a, env, &n, "HOME", "/");
    env_default(a, env, &n, "LANG", "C.UTF-8");
    return env;
}

/* A name without a slash is searched in the step's own PATH. */
static void find_programs(struct gl_arena *a, struct gl_launch *l)
{
    const char *name = l->argv[0];
    if (strchr(name, '/') != NULL) {
        l->programs = GL_NEW_ARRAY(a, const char *, 2);
        l->programs[0] = name;
        return;
    }
    l->path = env_find(l->env, "PATH");
    if (l->path == NULL) { /* only a worker may lack one */
        l->path = DEFAULT_PATH;
    }
    size_t n = 2;
    for (const char *p = l->path; *p != 0; p++) {
        n += *p == ':';
    }
    l->programs = GL_NEW_ARRAY(a, const char *, n);
    gl_str rest = gl_str_of(l->path);
    for (size_t i = 0; rest.n > 0;) {
        gl_str folder = gl_str_cut(rest, ':', &rest);
        if (folder.n > 0) { /* An empty entry would mean the current folder, which is a trap. */
            l->programs[i++] = gl_str_fmt(a, "%.*s/%s", GL_STR_ARG(folder), name).p;
        }
    }
}

void gl_launch_prepare(struct gl_keeper *k, struct gl_launch *l, const struct gl_exec_start *s,
                       gl_str folder)
{
    struct gl_arena *a = &k->scratch;
    gl_str work =
        gl_rundir_join(a, s->is_worker ? gl_workdir_path(a, folder) : folder, GL_S("work"));

    GL_ASSERT(folder.n > 0);
    GL_ASSERT(s->argv_n > 0);
    l->argv = GL_NEW_ARRAY(a, char *, s->argv_n + 1);
    for (size_t i = 0; i < s->argv_n; i++) {
        l->argv[i] = work_str(a, s->argv[i], s->is_worker ? work : (gl_str){0});
    }
    l->env = make_env(a, s, folder, s->is_worker ? work : (gl_str){0});
    l->cwd = s->cwd.n == 0   ? work.p
             : !s->is_worker ? gl_str_c(a, s->cwd)
                             : work_str(a, s->cwd, work);
    l->null_fd = k->stdin_is_null ? -1 : k->null_fd;
    l->nofile = k->nofile;
    l->set_nofile = k->nofile_raised;
    l->keeper = k->pid;
    l->stage = STAGE_RUNS;
    find_programs(a, l);
}

/* ---- between clone and exec ---- */

/* Runs in the parent's memory while the parent waits: no allocation, no locks, only system calls.
 * AddressSanitizer does not know its stack. */
#define IN_CHILD __attribute__((no_sanitize("address")))

__attribute__((noreturn)) IN_CHILD static void fail(struct gl_launch *l, enum stage stage)
{
    l->err = errno;
    l->stage = (int)stage;
    _exit(127);
}

IN_CHILD static void limit_child(const struct gl_launch *l)
{
    if (l->set_nofile) {
        (void)setrlimit(RLIMIT_NOFILE, &l->nofile); /* it was our own: cannot be refused */
    }
    if (l->mark != 0) {
        struct rlimit mark = {.rlim_cur = l->mark, .rlim_max = l->mark};
        (void)setrlimit(RLIMIT_RTTIME,
                        &mark); /* if it fails, descendants are only harder to find */
    }
}

__attribute__((noreturn)) IN_CHILD static void exec_program(struct gl_launch *l)
{
    int worst = ENOENT;
    for (const char **p = l->programs; *p != NULL; p++) {
        (void)execve(*p, l->argv, l->env);
        if (errno == EACCES) {
            worst = EACCES; /* found but not allowed: more useful than "not found" */
        } else if (errno != ENOENT && errno != ENOTDIR) {
            worst = errno;
            break;
        }
    }
    errno = worst;
    fail(l, STAGE_EXEC);
}

IN_CHILD static int child_main(void *arg)
{
    struct gl_launch *l = arg;
    sigset_t none;
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
        fail(l, STAGE_SESSION);
    }
    if (getppid() != l->keeper) { /* it died before prctl() */
        _exit(127);
    }
    if ((l->null_fd >= 0 && dup2(l->null_fd, 0) < 0) || dup2(l->out_fd, 1) < 0 ||
        dup2(l->err_fd, 2) < 0) {
        fail(l, STAGE_FILES);
    }
    if (chdir(l->cwd) < 0) {
        fail(l, STAGE_FOLDER);
    }
    limit_child(l);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    exec_program(l);
}

/* ---- the parent's side ---- */

static int exec_why(const struct gl_launch *l, struct gl_why *why)
{
    const char *cause = strerror(l->err);
    struct stat st;

    GL_ASSERT(l->err != 0);
    if (l->path != NULL && l->err == ENOENT) {
        return gl_why(why, GL_E_NOT_FOUND, "cannot run '%s': %s (not found in PATH %s)", l->argv[0],
                      cause, l->path);
    }
    if (l->err == ENOENT && l->argv[0][0] == '/' && stat(l->argv[0], &st) == 0) {
        return gl_why(why, GL_E_NOT_FOUND,
                      "cannot run '%s': %s (the file exists, but its interpreter does not)",
                      l->argv[0], cause);
    }
    if (l->err == ENOENT && l->argv[0][0] != '/') {
        return gl_why(why, GL_E_NOT_FOUND, "cannot run '%s': %s (in %s)", l->argv[0], cause,
                      l->cwd);
    }
    if (l->err == EACCES) {
        return gl_why(why, GL_E_DENIED, "cannot run '%s': %s (is it executable?)", l->argv[0],
                      cause);
    }
    if (l->err == ENOEXEC) {
        return gl_why(why, GL_E_INVALID,
                      "cannot run '%s': %s (a script needs a first line like '#!/bin/sh')",
                      l->argv[0], cause);
    }
    return gl_why(why, GL_E_IO, "cannot run '%s': %s", l->argv[0], cause);
}

static int stage_why(const struct gl_launch *l, struct gl_why *why)
{
    GL_ASSERT(l->stage != STAGE_RUNS);
    switch ((enum stage)l->stage) {
    case STAGE_FOLDER:
        return gl_why(why, GL_E_IO, "cannot change to the folder '%s': %s", l->cwd,
                      strerror(l->err));
    case STAGE_EXEC:
        return exec_why(l, why);
    case STAGE_SESSION:
    case STAGE_FILES:
    case STAGE_RUNS:
        break;
    }
    return gl_why(why, GL_E_IO, "cannot set up a process: %s", strerror(l->err));
}

int gl_launch_start(struct gl_keeper *k, struct gl_launch *l, pid_t *ret_pid,
                    struct gl_why *reterr_why)
{
    GL_ASSERT(l->stage == STAGE_RUNS);
    GL_ASSERT(l->out_fd >= 0);
    GL_ASSERT(l->err_fd >= 0);
    char *top = (char *)k->stack + GL_LAUNCH_STACK_BYTES;
    pid_t pid = clone(child_main, top, CLONE_VM | CLONE_VFORK | SIGCHLD, l);
    if (pid < 0) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "cannot start a process: %s", strerror(errno));
    }
    if (l->stage != STAGE_RUNS) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        return stage_why(l, reterr_why);
    }
    *ret_pid = pid;
    return 0;
}
