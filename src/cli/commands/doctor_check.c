#include "cli/commands/doctor_check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/output/overview.h"
#include "os/paths.h"
#include "port/keeper_protocol.h"

enum {
    DISK_WARN_MIB = 1024,
    DISK_FAIL_MIB = 64,
    FILES_WARN = 4096, /* descriptors needed for connections, logs and pipes of steps */
    FILES_FAIL = 256,
    CLOCK_SLACK_MS = 60000,
};

/* No release of Glia is older: a clock before this time was never set. */
static const gl_ms clock_min = 1767225600000; /* 2026-01-01 */

void gl_doctor_check_report(struct gl_doctor_check *c, enum gl_doctor_check_grade grade,
                            const char *todo, const char *fmt, ...)
{
    char text[GL_WHY_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    c->grade = grade;
    c->found = gl_str_c(&c->cli->arena, gl_str_of(text));
    c->todo = gl_str_c(&c->cli->arena, gl_str_of(todo));
}

/* The data folder, or its nearest existing parent. */
static const char *nearest_folder(struct gl_cli *cli)
{
    gl_str path = gl_str_of(cli->data);
    struct stat st;

    while (path.n > 1 && stat(gl_str_c(&cli->arena, path), &st) < 0) {
        do {
            path.n--;
        } while (path.n > 1 && path.p[path.n] != '/');
    }
    return gl_str_c(&cli->arena, path);
}

static void check_disk(struct gl_doctor_check *c)
{
    const char *path = nearest_folder(c->cli);
    struct statvfs fs;
    uint64_t mib;

    if (statvfs(path, &fs) < 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "check that the disk is mounted",
                               "cannot read the file system of %s", path);
        return;
    }
    if ((fs.f_flag & ST_RDONLY) != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL,
                               "find out why (dmesg, mount) and remount it read-write",
                               "the file system of %s is read-only", path);
        return;
    }
    mib = (uint64_t)fs.f_bavail * fs.f_frsize >> 20;
    if (mib < DISK_FAIL_MIB || (fs.f_files > 0 && fs.f_favail == 0)) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "free some space, or run 'glia store trim'",
                               "only %llu MiB and %llu files are free at %s",
                               (unsigned long long)mib, (unsigned long long)fs.f_favail, path);
    } else if (mib < DISK_WARN_MIB) {
        gl_doctor_check_report(c, GL_DOCTOR_WARN, "free some space, or run 'glia store trim'",
                               "only %llu MiB are free at %s", (unsigned long long)mib, path);
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "%.1f GiB are free at %s", (double)mib / 1024,
                               path);
    }
}

/* How far the node's clock is ahead of ours; it counts from the start of the node. 0: unknown. */
static gl_ms node_clock_lead(struct gl_cli *cli)
{
    struct gl_connection connection;
    struct gl_api_reply page;
    gl_ms now = 0;

    gl_connect_init(&connection, cli);
    connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    if (gl_overview_node(&connection, &page)) {
        now = gl_api_reply_time(&page, page.root, "now");
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return now != 0 ? now - gl_term_now() : 0;
}

/* The times and the order of jobs come from the wall clock. */
static void check_clock(struct gl_doctor_check *c)
{
    const char *store =
        gl_paths_context(&c->cli->arena, c->cli->data, c->cli->context, GL_PATHS_STATE);
    gl_ms now = gl_term_now(), written = 0, ahead = node_clock_lead(c->cli);
    char when[GL_TIMES_BYTES], span[GL_TIMES_BYTES];
    struct stat st;

    if (stat(store, &st) == 0) {
        written = (gl_ms)st.st_mtim.tv_sec * 1000;
    }
    if (now < clock_min) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "set the clock", "the clock says %.*s",
                               GL_STR_ARG(gl_times_format(now, when)));
    } else if (ahead > CLOCK_SLACK_MS || ahead < -CLOCK_SLACK_MS) {
        gl_doctor_check_report(c, GL_DOCTOR_WARN,
                               "restart the node: it reads the clock when it starts",
                               "the clock says %.*s, and the node's is %.*s %s it",
                               GL_STR_ARG(gl_times_format(now, when)),
                               GL_STR_ARG(gl_times_format_span(ahead > 0 ? ahead : -ahead, span)),
                               ahead > 0 ? "ahead of" : "behind");
    } else if (written > now + CLOCK_SLACK_MS) {
        gl_doctor_check_report(c, GL_DOCTOR_WARN, "check whether the clock was set back",
                               "the clock says %.*s, but the store was written later than that",
                               GL_STR_ARG(gl_times_format(now, when)));
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "%.*s", GL_STR_ARG(gl_times_format(now, when)));
    }
}

/* The path of a program in PATH; NULL: not found. */
static const char *find_program(struct gl_cli *cli, const char *name)
{
    const char *path = getenv("PATH");
    gl_str rest = gl_str_of(path != NULL && path[0] != '\0' ? path : "/usr/bin:/bin");

    while (rest.n > 0) {
        gl_str folder = gl_str_cut(rest, ':', &rest);
        const char *file = gl_str_fmt(&cli->arena, "%.*s/%s", GL_STR_ARG(folder), name).p;

        if (access(file, X_OK) == 0) {
            return file;
        }
    }
    return NULL;
}

static void check_sh(struct gl_doctor_check *c)
{
    const char *path = find_program(c->cli, "sh");

    if (path == NULL) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "install a shell",
                               "there is no sh: steps with `sh` fail");
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "%s", path);
    }
}

static void check_python(struct gl_doctor_check *c)
{
    const char *path = find_program(c->cli, "python3");

    if (path == NULL) {
        gl_doctor_check_report(c, GL_DOCTOR_WARN, "install python3, if your flows have such steps",
                               "there is no python3: steps with `python` fail");
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "%s", path);
    }
}

static void check_files(struct gl_doctor_check *c)
{
    struct rlimit limit = {0};
    unsigned long long may;

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    /* A node raises its own limit to the hard limit. */
    may = limit.rlim_max == RLIM_INFINITY ? UINT32_MAX : (unsigned long long)limit.rlim_max;
    if (may < FILES_WARN) {
        gl_doctor_check_report(c, may < FILES_FAIL ? GL_DOCTOR_FAIL : GL_DOCTOR_WARN,
                               "raise the limit: ulimit -Hn, or LimitNOFILE= of the service",
                               "a process can have %llu open files: enough for %zu running steps",
                               may, gl_keeper_attempts_max(may));
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "a process can have %llu open files", may);
    }
}

const struct gl_doctor_check_item gl_doctor_checks_machine[] = {
    {"disk space", check_disk}, {"clock", check_clock},      {"sh", check_sh},
    {"python3", check_python},  {"open files", check_files},
};

const size_t gl_doctor_checks_machine_n = GL_COUNT(gl_doctor_checks_machine);
