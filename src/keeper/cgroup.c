#include "keeper/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "os/fs.h"

#define GROUP_PREFIX "glia-keeper-"

enum {
    LIST_BYTES_MAX = 1 << 20,
    END_ROUNDS_MAX = 200,
    END_ROUND_NS = 10 * 1000000,
    PATH_BYTES = 600,
    ENTER_TRIES = 3,
};

static bool write_file(const char *group, const char *name, const char *text)
{
    char path[PATH_BYTES + 32]; /* plus the name of one of its files */
    (void)snprintf(path, sizeof(path), "%s/%s", group, name);
    GL_CLEANUP(gl_fs_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Does a comma-separated list contain `word`? */
static bool lists(gl_str list, const char *word)
{
    while (list.n > 0) {
        if (gl_str_is(gl_str_cut(list, ',', &list), word)) {
            return true;
        }
    }
    return false;
}

/* Find where the hierarchy is mounted. Version 2: `controller` is "". */
static bool find_mount(gl_str mounts, const char *controller, gl_str *ret)
{
    while (mounts.n > 0) {
        gl_str rest;
        gl_str line = gl_str_cut(mounts, '\n', &mounts);
        (void)gl_str_cut(line, ' ', &rest); /* skip the device */
        gl_str at = gl_str_cut(rest, ' ', &rest);
        gl_str type = gl_str_cut(rest, ' ', &rest);
        gl_str options = gl_str_cut(rest, ' ', &rest);
        if (controller[0] == 0 ? gl_str_is(type, "cgroup2")
                               : gl_str_is(type, "cgroup") && lists(options, controller)) {
            *ret = at;
            return true;
        }
    }
    return false;
}

/* Find our own group in it. A line is "number:controllers:path". */
static bool find_own(gl_str groups, const char *controller, gl_str *ret)
{
    while (groups.n > 0) {
        gl_str rest;
        gl_str line = gl_str_cut(groups, '\n', &groups);
        (void)gl_str_cut(line, ':', &rest);
        gl_str controllers = gl_str_cut(rest, ':', &rest);
        if (controller[0] == 0 ? controllers.n == 0 : lists(controllers, controller)) {
            *ret = rest;
            return true;
        }
    }
    return false;
}

/* Remove groups of killed keepers whose data folder is no longer used. Only empty groups can be
 * removed, and a running keeper is in its own. */
static void sweep(gl_str parent)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%.*s", GL_STR_ARG(parent));
    DIR *folder = opendir(path);
    struct dirent *e;
    while (folder != NULL && (e = readdir(folder)) != NULL) {
        if (strncmp(e->d_name, GROUP_PREFIX, strlen(GROUP_PREFIX)) == 0) {
            (void)unlinkat(dirfd(folder), e->d_name, AT_REMOVEDIR);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static bool enter(char *path, size_t bytes, const char *name, gl_str mounts, gl_str groups,
                  const char *controller)
{
    gl_str mount, own;
    if (!find_mount(mounts, controller, &mount) || !find_own(groups, controller, &own)) {
        return false;
    }
    if (gl_str_is(own, "/")) {
        own.n = 0;
    }
    int n = snprintf(path, bytes, "%.*s%.*s/" GROUP_PREFIX "%s", GL_STR_ARG(mount), GL_STR_ARG(own),
                     name);
    if (n < 0 || (size_t)n >= bytes) {
        return false;
    }
    sweep((gl_str){.p = path, .n = (size_t)(strrchr(path, '/') - path)});
    for (int i = 0; i < ENTER_TRIES; i++) { /* another keeper may remove it before we are in */
        if (mkdir(path, 0755) < 0) {
            return false;
        }
        if (write_file(path, "cgroup.procs", "0")) {
            return true;
        }
        if (rmdir(path) == 0) {
            return false; /* it still existed: we are not allowed to enter */
        }
    }
    return false;
}

bool gl_cgroup_enter(char *path, size_t bytes, const char *name)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf mounts = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf groups = {0};
    if (gl_fs_read("/proc/self/mounts", LIST_BYTES_MAX, &mounts, NULL) == 0 &&
        gl_fs_read("/proc/self/cgroup", LIST_BYTES_MAX, &groups, NULL) == 0) {
        gl_str m = gl_buf_view(&mounts), g = gl_buf_view(&groups);
        if (enter(path, bytes, name, m, g, "") || enter(path, bytes, name, m, g, "freezer")) {
            return true;
        }
    }
    path[0] = 0;
    return false;
}

/* Are we in it ourselves (started by a step of that keeper)? */
static bool is_inside(const char *path)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf groups = {0};
    if (gl_fs_read("/proc/self/cgroup", LIST_BYTES_MAX, &groups, NULL) < 0) {
        return true;
    }
    gl_buf_char(&groups, 0);
    return strstr(groups.p, strrchr(path, '/')) != NULL;
}

static bool is_keepers(const char *path)
{
    const char *slash = strrchr(path, '/');
    return path[0] == '/' && slash != NULL &&
           strncmp(slash + 1, GROUP_PREFIX, strlen(GROUP_PREFIX)) == 0;
}

void gl_cgroup_leave(const char *path)
{
    if (!is_keepers(path)) {
        return;
    }
    char parent[PATH_BYTES];
    (void)snprintf(parent, sizeof(parent), "%s", path);
    *strrchr(parent, '/') = 0;
    (void)write_file(parent, "cgroup.procs",
                     "0"); /* on failure rmdir fails too, and the next keeper retries */
    (void)rmdir(path);
}

static void kill_all(const char *path)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf list = {0};
    char file[PATH_BYTES];
    (void)snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    if (gl_fs_read(file, LIST_BYTES_MAX, &list, NULL) < 0) {
        return;
    }
    gl_str rest = gl_buf_view(&list);
    while (rest.n > 0) {
        uint64_t pid;
        if (gl_str_u64(gl_str_cut(rest, '\n', &rest), &pid) && pid > 1 && pid <= INT32_MAX &&
            (pid_t)pid != getpid()) {
            (void)kill((pid_t)pid, SIGKILL);
        }
    }
}

void gl_cgroup_end(const char *path)
{
    if (!is_keepers(path) || is_inside(path)) {
        return;
    }
    for (int i = 0; i < END_ROUNDS_MAX && rmdir(path) < 0 && errno == EBUSY; i++) {
        if (!write_file(path, "cgroup.kill", "1")) { /* version 2, Linux 5.14: kills all at once */
            kill_all(path);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = END_ROUND_NS}, NULL);
    }
}
