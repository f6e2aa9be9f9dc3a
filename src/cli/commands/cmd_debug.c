/* cmd_debug.c - glia debug dump: writes the flight recorder to one file to share; glia replay: runs
 * a recording again in the simulator. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/times.h"
#include "cli/cli.h"
#include "cli/debug_dump.h"
#include "os/fs.h"

enum { PATH_BYTES = 4096 };

/* ---- dump ---- */

/* "glia-debug-20261115T105549Z.jsonl" in the current folder. */
static const char *default_path(struct gl_cli *cli)
{
    char when[32];
    time_t now = time(NULL);
    struct tm t;

    (void)strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &t));
    return gl_str_fmt(&cli->arena, "glia-debug-%s.jsonl", when).p;
}

static int write_new(const char *path, gl_str text, struct gl_why *why)
{
    GL_CLEANUP(gl_fs_closep)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        return gl_fs_why(why, errno, "create", path);
    }
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            int err = gl_fs_why(why, n < 0 ? errno : ENOSPC, "write", path);

            (void)unlink(path); /* a partial file is useless */
            return err;
        }
        text.p += n;
        text.n -= (size_t)n;
    }
    return 0;
}

static void report_kept_values(const struct gl_cli *cli, const struct gl_debug_dump *b)
{
    if (b->with_values) {
        gl_cli_note(
            cli, "the file contains everything: commands, environments, inputs and outputs. Do not "
                 "share it");
        return;
    }
    gl_cli_note(cli,
                "left in: names of flows, steps, inputs and variables, run ids, keys of limits, "
                "conditions, the numbers, truth values and structure that they read, exit codes, "
                "times, settings, the node's log");
    if (b->kept.n > 0) {
        gl_cli_note(cli,
                    "also left in: values of outputs and inputs that these steps read, because "
                    "without them the decisions would differ:");
        for (size_t i = 0; i < b->kept.n; i++) {
            gl_cli_note(cli, "  %.*s",
                        GL_STR_ARG(gl_term_safe((struct gl_arena *)&cli->arena, b->kept.items[i])));
        }
    }
}

static void print_summary(struct gl_cli *cli, const struct gl_debug_dump *b, const char *path)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    if (!cli->json) {
        (void)fprintf(cli->out.file, "%s\n", path);
        gl_cli_note(cli, "%llu events in %llu segments, %llu lines of the log",
                    (unsigned long long)b->events_n, (unsigned long long)b->segments_n,
                    (unsigned long long)b->logs_n);
        return;
    }
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_put_c(&w, "file", path);
    gl_jw_put_u64(&w, "segments", b->segments_n);
    gl_jw_put_u64(&w, "events", b->events_n);
    gl_jw_put_bool(&w, "redacted", !b->with_values);
    gl_jw_put_array(&w, "facts_left_in");
    for (size_t i = 0; i < b->kept.n; i++) {
        gl_jw_str(&w, b->kept.items[i]);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&out));
}

int gl_cmd_debug_dump(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_debug_dump b = {.data = cli->data,
                              .settings = cli->settings,
                              .with_values = gl_cli_option(cli, "--no-redact") != NULL};
    const char *path = gl_cli_option(cli, "--output");
    bool to_stdout = path != NULL && strcmp(path, "-") == 0;
    struct gl_why why;
    int err;

    if (cli->server_option != NULL || cli->settings->values[GL_SET_SERVER].text[0] != '\0') {
        return gl_cli_usage(cli, "the recording is read from the data folder: run this on the "
                                 "machine of the node, without --server");
    }
    path = path != NULL ? path : default_path(cli);
    err = gl_debug_dump_make(&b, &cli->arena, &text, &why);
    if (err == 0 && !to_stdout) {
        err = write_new(path, gl_buf_view(&text), &why);
    }
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    if (to_stdout) {
        gl_term_write(&cli->out, gl_buf_view(&text));
    } else {
        print_summary(cli, &b, path);
    }
    for (size_t i = 0; i < b.damaged.n; i++) {
        gl_cli_note(cli, "%.*s", GL_STR_ARG(b.damaged.items[i]));
    }
    report_kept_values(cli, &b);
    return GL_EXIT_OK;
}

/* ---- replay ---- */

/* glia-sim: next to this program, where it is installed, or in PATH. */
static const char *find_sim(struct gl_cli *cli)
{
    static const char *const places[] = {"glia-sim", "../libexec/glia/glia-sim",
                                         "../libexec/glia-sim"};
    char self[PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    while (n > 0 && self[n - 1] != '/') {
        n--;
    }
    for (size_t i = 0; n > 0 && i < GL_COUNT(places); i++) {
        const char *path = gl_str_fmt(&cli->arena, "%.*s%s", (int)n, self, places[i]).p;

        if (access(path, X_OK) == 0) {
            return path;
        }
    }
    return "glia-sim";
}

int gl_cmd_debug_replay(struct gl_cli *cli)
{
    const char *until = gl_cli_option(cli, "--until"), *job = gl_cli_option(cli, "--job");
    char *argv[10];
    size_t n = 0;
    uint64_t number = 0;
    int err = gl_cli_number(cli, "--until", 1, UINT64_MAX, &number);

    if (err != 0) {
        return err;
    }
    argv[n++] = (char *)"glia-sim";
    argv[n++] = (char *)"--replay";
    argv[n++] = (char *)cli->words[0];
    if (until != NULL) {
        argv[n++] = (char *)"--until";
        argv[n++] = (char *)until;
    }
    if (job != NULL) {
        argv[n++] = (char *)"--job";
        argv[n++] = (char *)job;
    }
    if (gl_cli_option(cli, "--trace") != NULL) {
        argv[n++] = (char *)"--trace";
    }
    argv[n] = NULL;
    (void)fflush(cli->out.file);
    (void)execvp(find_sim(cli), argv);
    return gl_cli_fail(cli, GL_E_UNAVAILABLE,
                       "glia-sim is neither beside glia nor in ../libexec; install Glia "
                       "completely");
}
