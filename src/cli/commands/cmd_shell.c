/* cmd_shell.c - glia job shell: opens a shell in the working folder of a step, with its
 * environment.
 *
 * The keeper keeps the working folder of a failed attempt, and next to it the attempt's environment
 * (port/keeper_protocol.h). */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/connect/api_reply.h"
#include "os/fs.h"
#include "os/paths.h"

extern char **environ;

enum { ENV_BYTES_MAX = 4 << 20 };

/* Variables that the shell needs from the caller to work on this terminal; the step's own values
 * take precedence. */
static const char *const ours[] = {"TERM", "COLORTERM", "LANG", "LC_ALL", "HOME", "USER", "PATH"};

static bool has(char **env, size_t n, const char *name)
{
    size_t bytes = strlen(name);

    for (size_t i = 0; i < n; i++) {
        if (strncmp(env[i], name, bytes) == 0 && env[i][bytes] == '=') {
            return true;
        }
    }
    return false;
}

/* NUL-separated "NAME=value". */
static char **make_env(struct gl_cli *cli, gl_str text)
{
    size_t n = 0, max = GL_COUNT(ours) + 1;
    char **env;

    for (size_t i = 0; i < text.n; i++) {
        max += text.p[i] == '\0';
    }
    env = GL_NEW_ARRAY(&cli->arena, char *, max + 1);
    while (text.n > 0) {
        gl_str entry = gl_str_cut(text, '\0', &text);

        if (memchr(entry.p, '=', entry.n) != NULL) {
            env[n++] = gl_arena_copy(&cli->arena, gl_str_c(&cli->arena, entry), entry.n + 1);
        }
    }
    for (size_t i = 0; i < GL_COUNT(ours); i++) {
        const char *value = getenv(ours[i]);

        if (value != NULL && !has(env, n, ours[i])) {
            gl_str entry = gl_str_fmt(&cli->arena, "%s=%s", ours[i], value);

            env[n++] = gl_arena_copy(&cli->arena, entry.p, entry.n + 1);
        }
    }
    return env;
}

static int open_shell(struct gl_cli *cli, const char *folder)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    const char *shell = getenv("SHELL");
    struct gl_why why;
    char **env;
    int err = gl_fs_read(gl_paths_in(&cli->arena, folder, "env"), ENV_BYTES_MAX, &text, &why);

    if (err != 0 && err != GL_E_NOT_FOUND) {
        return gl_cli_fail_why(cli, err, &why);
    }
    if (err != 0) {
        gl_cli_note(cli, "the environment of the step was not found; using yours");
    }
    shell = shell != NULL && shell[0] == '/' ? shell : "/bin/sh";
    env = err != 0 ? environ : make_env(cli, gl_buf_view(&text));
    if (chdir(gl_paths_in(&cli->arena, folder, "work")) < 0) {
        (void)gl_fs_why(&why, errno, "enter", gl_paths_in(&cli->arena, folder, "work"));
        return gl_cli_fail(cli, gl_err_join(GL_E_NOT_FOUND, why.reason), why.text);
    }
    if (cli->err.is_tty) {
        gl_cli_note(cli, "in %s; type exit to leave", gl_paths_in(&cli->arena, folder, "work"));
    }
    (void)fflush(NULL);
    (void)signal(SIGPIPE, SIG_DFL); /* exec would keep it ignored */
    (void)execle(shell, shell, (char *)NULL, env);
    (void)gl_fs_why(&why, errno, "start", shell);
    return gl_cli_fail(cli, gl_err_join(GL_E_IO, why.reason), why.text);
}

/* The folder of attempt N; NULL: there is none, and the reason was printed. */
static const char *find_folder(struct gl_cli *cli, struct gl_api_reply *p, uint64_t attempt,
                               int *ret)
{
    gl_jnode steps = gl_json_get(&p->j, gl_json_get(&p->j, p->root, "workflow_state"), "steps");
    gl_jnode step = gl_json_get(&p->j, steps, cli->words[1]);
    uint64_t last = (uint64_t)gl_api_reply_number(p, step, "attempt_count");
    const char *folder, *text;
    struct stat st;
    int code;

    attempt = attempt == 0 ? last : attempt;
    folder = gl_paths_context(&cli->arena, cli->data, cli->context,
                              gl_str_fmt(&cli->arena, "%s/%.*s/%s:attempt:%llu", GL_PATHS_RUNS,
                                         GL_STR_ARG(gl_api_reply_text(p, p->root, "job_id")),
                                         cli->words[1], (unsigned long long)attempt)
                                  .p);
    if (step == NULL) {
        code = GL_R_NO_SUCH_STEP;
        text = gl_str_fmt(&cli->arena, "the job has no step '%s'; '%s' lists its steps",
                          cli->words[1], gl_cli_hint(cli, "job status %s", cli->words[0]))
                   .p;
    } else if (attempt == 0 || attempt > last) {
        code = GL_R_NO_SUCH_ATTEMPT;
        text = gl_str_fmt(&cli->arena, "step %s has had %llu attempt%s", cli->words[1],
                          (unsigned long long)last, last == 1 ? "" : "s")
                   .p;
    } else if (stat(gl_paths_in(&cli->arena, folder, "work"), &st) < 0) {
        code = GL_R_WORKSPACE_GONE;
        text =
            gl_str_fmt(&cli->arena,
                       "attempt %llu of step %s has no working folder any more: it is removed at "
                       "once after a success, and some days after a failure",
                       (unsigned long long)attempt, cli->words[1])
                .p;
    } else {
        return folder;
    }
    *ret = gl_cli_fail(cli, code, text);
    return NULL;
}

int gl_cmd_shell(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    const char *folder = NULL;
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    uint64_t attempt = 0;
    int code = gl_cli_number(cli, "--attempt", 1, GL_ATTEMPTS_MAX, &attempt), err;

    if (code != 0) {
        return code;
    }
    gl_connect_init(&connection, cli);
    err = gl_api_reply_ask(&page, &connection, &rq, &why);
    if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (connection.is_remote) {
        code = gl_cli_usage(
            cli, "'job shell' uses folders of this machine and does not support --server");
    } else {
        folder = find_folder(cli, &page, attempt, &code);
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return folder != NULL ? open_shell(cli, folder) : code;
}
