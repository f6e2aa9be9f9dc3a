/* cmd_pyenv.c - glia pyenv CACHE SPEC -- COMMAND...: runs a command in a Python environment, which
 * it creates first if necessary. Workers of bundles with a python_environment are started this way.
 *
 * An environment is a venv that sees the packages installed on the machine; nothing is downloaded.
 * Its requirements (packages, requirements) are checked once, when it is created. It is identified
 * by the interpreter (its file and modification time) and by its requirements. It is created under
 * a temporary name and renamed, so that two processes can create the same one at the same time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "cli/cli.h"
#include "cli/commands/pyenv_script.h"
#include "os/fs.h"

enum {
    EXIT_CONFIG = 78, /* EX_CONFIG of sysexits.h: a requirement of the environment is missing */
    EXIT_NOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
    SPEC_BYTES_MAX = 1 << 20,
    REQUIREMENTS_MAX = 1000,
    KEY_HEX = 32,
};

struct pyenv {
    struct gl_cli *cli;
    const char *cache;
    const char *path; /* an existing environment; NULL: none is named */
    gl_str needs[REQUIREMENTS_MAX];
    size_t needs_n;
    const char *python; /* the interpreter it is created with */
    const char *folder; /* path of the environment */
};

static int refuse(struct pyenv *p, const char *text)
{
    gl_cli_note(p->cli, "python_environment: %s", text);
    return EXIT_CONFIG;
}

/* ---- requirements ---- */

static int add_need(struct pyenv *p, gl_str line)
{
    line = gl_str_trim(line);
    if (line.n == 0 || line.p[0] == '#') {
        return 0;
    }
    if (p->needs_n == REQUIREMENTS_MAX) {
        return refuse(p, "too many packages (at most 1000)");
    }
    p->needs[p->needs_n++] = line;
    return 0;
}

static int add_lines(struct pyenv *p, gl_str text)
{
    int rc = 0;

    while (rc == 0 && text.n > 0) {
        gl_str line = gl_str_cut(text, '\n', &text);

        rc = add_need(p, line);
    }
    return rc;
}

/* The text of a requirements file, or its name, relative to the worker's folder. */
static int add_requirements(struct pyenv *p, gl_str text)
{
    struct gl_why why;
    struct gl_buf content = {0};
    const char *name = gl_str_c(&p->cli->arena, text);

    if (memchr(text.p, '\n', text.n) != NULL || !gl_str_ends(text, GL_S(".txt"))) {
        return add_lines(p, text);
    }
    if (gl_fs_read(name, SPEC_BYTES_MAX, &content, &why) < 0) {
        return refuse(p, gl_str_fmt(&p->cli->arena, "requirements: %s", why.text).p);
    }
    gl_str copy = gl_str_dup(&p->cli->arena, gl_buf_view(&content));

    gl_buf_done(&content);
    return add_lines(p, copy);
}

static int read_list(struct pyenv *p, const struct gl_json *j, gl_jnode list, const char *name)
{
    int rc = 0;

    for (gl_jnode e = gl_json_first(j, list); rc == 0 && e != NULL; e = gl_json_after(j, list, e)) {
        rc = gl_json_is(e, GL_JSON_STRING)
                 ? add_need(p, gl_json_str(j, e, &p->cli->arena))
                 : refuse(p, gl_str_fmt(&p->cli->arena, "%s: must be a list of strings", name).p);
    }
    return rc;
}

/* Read a list of strings, or text. */
static int read_needs(struct pyenv *p, const struct gl_json *j, const char *name)
{
    gl_jnode n = gl_json_get(j, gl_json_root(j), name);

    if (n == NULL || gl_json_is(n, GL_JSON_NULL)) {
        return 0;
    }
    if (gl_json_is(n, GL_JSON_ARRAY)) {
        return read_list(p, j, n, name);
    }
    if (!gl_json_is(n, GL_JSON_STRING)) {
        return refuse(p, gl_str_fmt(&p->cli->arena, "%s: must be a string or a list", name).p);
    }
    gl_str text = gl_str_trim(gl_json_str(j, n, &p->cli->arena));

    return text.n > 0 ? add_requirements(p, text) : 0;
}

static int read_spec(struct pyenv *p, const char *text)
{
    struct gl_json j;
    struct gl_why why;

    if (gl_json_parse(&j, gl_str_of(text), SPEC_BYTES_MAX, &p->cli->arena, &why) < 0) {
        return refuse(p, gl_str_fmt(&p->cli->arena, "not valid JSON: %s", why.text).p);
    }
    if (!gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        return refuse(p, "must be an object");
    }
    gl_str path = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "path"), &p->cli->arena);

    p->path = path.n > 0 ? gl_str_c(&p->cli->arena, path) : NULL;
    int rc = read_needs(p, &j, "packages");

    return rc == 0 ? read_needs(p, &j, "requirements") : rc;
}

/* ---- the interpreter ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* python, python3, python3.11 */
static bool is_python(const char *name)
{
    const char *rest = name + strlen("python");

    return strncmp(name, "python", strlen("python")) == 0 && rest[strspn(rest, "0123456789.")] == 0;
}

/* The first program in PATH with this name, with links resolved; NULL: none. */
static const char *find_program(struct gl_arena *a, const char *name)
{
    gl_str rest = gl_str_of(getenv("PATH"));

    while (rest.n > 0) {
        gl_str folder = gl_str_cut(rest, ':', &rest);
        const char *path = gl_str_fmt(a, "%.*s/%s", GL_STR_ARG(folder), name).p;

        if (folder.n > 0 && access(path, X_OK) == 0) {
            return path;
        }
    }
    return NULL;
}

static int choose_python(struct pyenv *p, char **command)
{
    const char *name = base_name(command[0]);
    bool versioned = is_python(name) && strchr(name, '.') != NULL;
    const char *wanted = versioned ? name : "python3";

    p->python = find_program(&p->cli->arena, wanted);
    return p->python != NULL
               ? 0
               : refuse(p, gl_str_fmt(&p->cli->arena, "there is no %s in PATH", wanted).p);
}

/* The name is a hash of the interpreter and the requirements; the same requirements in another
 * order give another environment. */
static int name_folder(struct pyenv *p)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    char hex[GL_SHA256_HEX];
    struct stat st;
    char *real = realpath(p->python, NULL);

    if (real == NULL || stat(real, &st) < 0) {
        free(real);
        return refuse(p, gl_str_fmt(&p->cli->arena, "cannot access %s", p->python).p);
    }
    gl_buf_fmt(&text, "1\n%s\n%s\n%lld %lld\n", p->python, real, (long long)st.st_size,
               (long long)st.st_mtime);
    free(real);
    for (size_t i = 0; i < p->needs_n; i++) {
        gl_buf_str(&text, p->needs[i]);
        gl_buf_char(&text, '\n');
    }
    gl_str key = gl_sha256_hex(gl_buf_view(&text), hex);

    p->folder = gl_str_fmt(&p->cli->arena, "%s/%.*s", p->cache, KEY_HEX, key.p).p;
    return 0;
}

static bool is_ready(struct pyenv *p)
{
    return access(gl_str_fmt(&p->cli->arena, "%s/bin/python", p->folder).p, X_OK) == 0;
}

/* ---- creating it ---- */

/* Run the script, which prints its own errors. */
static int run_script(struct pyenv *p, const char *temp)
{
    const char **argv = GL_NEW_ARRAY(&p->cli->arena, const char *, p->needs_n + 8);
    size_t n = 0;
    int status;

    argv[n++] = p->python;
    argv[n++] = "-c";
    argv[n++] = gl_pyenv_script;
    argv[n++] = temp;
    argv[n++] = p->folder;
    for (size_t i = 0; i < p->needs_n; i++) {
        argv[n++] = gl_str_c(&p->cli->arena, p->needs[i]);
    }
    (void)fflush(NULL);
    pid_t pid = fork();

    if (pid == 0) {
        (void)dup2(2, 1); /* stdout belongs to the worker: print nothing else there */
        (void)execv(p->python, (char *const *)(uintptr_t)argv);
        _exit(EXIT_NOT_RUN);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid < 0 || !WIFEXITED(status)) {
        return refuse(p, "the environment could not be created");
    }
    if (WEXITSTATUS(status) == EXIT_NOT_RUN) {
        return refuse(p, gl_str_fmt(&p->cli->arena, "cannot run %s", p->python).p);
    }
    return WEXITSTATUS(status) == 0 ? 0 : EXIT_CONFIG;
}

static int make_env(struct pyenv *p)
{
    struct gl_why why;

    if (gl_fs_mkdirs(p->cache, &why) < 0) {
        return refuse(p, why.text);
    }
    const char *temp = gl_str_fmt(&p->cli->arena, "%s.%d.tmp", p->folder, (int)getpid()).p;
    int rc = run_script(p, temp);

    if (rc != 0) {
        return rc;
    }
    return is_ready(p) ? 0 : refuse(p, "the environment was created, but cannot be used");
}

/* ---- the command ---- */

static void set_variables(struct pyenv *p)
{
    const char *path = getenv("PATH");

    (void)setenv("VIRTUAL_ENV", p->folder, 1);
    (void)setenv("MN_PYTHON_ENV", p->folder, 1);
    (void)setenv("PATH", gl_str_fmt(&p->cli->arena, "%s/bin:%s", p->folder, path ? path : "").p, 1);
    (void)unsetenv("PYTHONHOME"); /* it would override the environment */
}

static int run_command(struct pyenv *p, char **command)
{
    set_variables(p);
    if (is_python(base_name(command[0]))) {
        gl_str python = gl_str_fmt(&p->cli->arena, "%s/bin/python", p->folder);

        command[0] = gl_arena_copy(&p->cli->arena, python.p, python.n + 1);
    }
    (void)execvp(command[0], command);
    int err = errno;

    gl_cli_note(p->cli, "cannot run '%s': %s", command[0], strerror(err));
    return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

static int prepare(struct pyenv *p, char **command)
{
    int rc = choose_python(p, command);

    if (rc == 0 && p->path != NULL) {
        p->folder = p->path;
        return is_ready(p)
                   ? 0
                   : refuse(
                         p,
                         gl_str_fmt(&p->cli->arena, "path: there is no %s/bin/python", p->path).p);
    }
    if (rc == 0) {
        rc = name_folder(p);
    }
    return rc == 0 && !is_ready(p) ? make_env(p) : rc;
}

int gl_cmd_pyenv(struct gl_cli *cli)
{
    if (cli->rest == NULL || cli->rest[0] == NULL) {
        return gl_cli_usage(cli, "give a command after --");
    }
    struct pyenv *p = GL_NEW(&cli->arena, struct pyenv);

    p->cli = cli;
    p->cache = cli->words[0];
    if (p->cache[0] != '/') {
        return gl_cli_usage(cli, "CACHE must be an absolute path");
    }
    int rc = read_spec(p, cli->words[1]);

    if (rc == 0) {
        rc = prepare(p, cli->rest);
    }
    return rc == 0 ? run_command(p, cli->rest) : rc;
}
