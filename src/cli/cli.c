#include "cli/cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/near.h"
#include "os/paths.h"

/* ---- talk ---- */

void gl_cli_say(const struct gl_cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)fputs("glia: ", cli->err.file);
    (void)vfprintf(cli->err.file, fmt, args);
    (void)fputc('\n', cli->err.file);
    va_end(args);
}

static int exit_of(int code)
{
    switch (code) {
    case 0:
        return GL_EXIT_OK;
    case GL_E_NOT_FOUND:
        return GL_EXIT_NOT_FOUND;
    case GL_E_DENIED:
        return GL_EXIT_DENIED;
    case GL_E_INVALID:
    case GL_E_EXISTS:
    case GL_E_CONFLICT:
    case GL_E_STATE:
    case GL_E_LIMIT:
        return GL_EXIT_USAGE;
    default:
        return GL_EXIT_UNAVAILABLE;
    }
}

int gl_cli_fail(const struct gl_cli *cli, int code, const char *text)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    GL_ASSERT(code != 0);
    gl_cli_say(cli, "%s%.*s%s", gl_term_on(&cli->err, GL_RED),
               GL_STR_ARG(gl_term_safe(&a, gl_str_of(text))), gl_term_off(&cli->err, GL_RED));
    return exit_of(code);
}

int gl_cli_usage(const struct gl_cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)fputs("glia: ", cli->err.file);
    (void)vfprintf(cli->err.file, fmt, args);
    (void)fputc('\n', cli->err.file);
    va_end(args);
    if (cli->command != NULL) {
        (void)fprintf(cli->err.file, "usage: glia %s %s\n'glia help %s' tells more.\n",
                      cli->command->name, cli->command->arguments, cli->command->name);
    } else {
        (void)fputs("'glia help' lists the commands.\n", cli->err.file);
    }
    return GL_EXIT_USAGE;
}

const char *gl_cli_who(void)
{
    const char *user = getenv("USER");

    return user != NULL ? user : "";
}

const char *gl_cli_hint(struct gl_cli *cli, const char *fmt, ...)
{
    struct gl_buf text = {0};
    char command[512];
    const char *made;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(command, sizeof(command), fmt, args);
    va_end(args);
    gl_buf_fmt(&text, "%s %s", cli->program, command);
    if (cli->data_option != NULL) {
        gl_buf_fmt(&text, " --data-dir %s", cli->data_option);
    }
    made = gl_str_c(&cli->arena, gl_buf_view(&text));
    gl_buf_done(&text);
    return made;
}

/* ---- options ---- */

const char *gl_cli_option(const struct gl_cli *cli, const char *name)
{
    const struct gl_option *o = cli->command->options;

    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && o[i].name != NULL; i++) {
        if (strcmp(o[i].name, name) == 0) {
            return cli->values[i];
        }
    }
    GL_UNREACHABLE();
}

/* "; did you mean --run-id?", or nothing. */
static const char *near_option(struct gl_cli *cli, gl_str name)
{
    const struct gl_option *o = cli->command->options;
    struct gl_near near;

    gl_near_init(&near, name);
    gl_near_offer(&near, GL_S("--json"));
    gl_near_offer(&near, GL_S("--help"));
    gl_near_offer(&near, GL_S("--data-dir"));
    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && o[i].name != NULL; i++) {
        gl_near_offer(&near, gl_str_of(o[i].name));
    }
    return near.best.n == 0
               ? ""
               : gl_str_fmt(&cli->arena, "; did you mean %.*s?", GL_STR_ARG(near.best)).p;
}

/* Where the value of option `name` goes; *ret_takes: does it want one? NULL: no such option. */
static const char **find_option(struct gl_cli *cli, gl_str name, bool *ret_takes)
{
    const struct gl_option *o = cli->command->options;

    if (gl_str_is(name, "--data-dir")) {
        *ret_takes = true;
        return &cli->data_option;
    }
    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && o[i].name != NULL; i++) {
        if (gl_str_is(name, o[i].name)) {
            *ret_takes = o[i].value != NULL;
            return &cli->values[i];
        }
    }
    return NULL;
}

/* One option at *at; moves *at past what it used. */
static int read_option(struct gl_cli *cli, char ***at)
{
    gl_str value, name = gl_str_cut(gl_str_of(**at), '=', &value);
    bool has_value = strchr(**at, '=') != NULL, takes = false;
    const char **to;

    if (gl_str_is(name, "--json") && !has_value) {
        cli->json = true;
        return 0;
    }
    to = find_option(cli, name, &takes);
    if (to == NULL) {
        return gl_cli_usage(cli, "unknown option %.*s%s", GL_STR_ARG(name), near_option(cli, name));
    }
    if (!takes && has_value) {
        return gl_cli_usage(cli, "%.*s takes no value", GL_STR_ARG(name));
    }
    if (takes && !has_value) {
        if ((*at)[1] == NULL) {
            return gl_cli_usage(cli, "%.*s needs a value", GL_STR_ARG(name));
        }
        (*at)++;
        value = gl_str_of(**at);
    }
    *to = takes ? gl_str_c(&cli->arena, value) : "";
    return 0;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int read_words(struct gl_cli *cli, char **argv)
{
    const struct gl_command *c = cli->command;

    for (char **at = argv; *at != NULL; at++) {
        int err = 0;

        if (strcmp(*at, "--") == 0 && c->takes_rest) {
            cli->rest = at + 1;
            break;
        }
        if ((*at)[0] == '-' && (*at)[1] != '\0') {
            err = read_option(cli, &at);
        } else if (cli->words_n == c->words_max) {
            err = gl_cli_usage(cli, "there is one word too many: '%s'", *at);
        } else {
            cli->words[cli->words_n++] = *at;
        }
        if (err != 0) {
            return err;
        }
    }
    if (cli->words_n < c->words_min && cli->rest == NULL) {
        return gl_cli_usage(cli, "there is a word too few");
    }
    return 0;
}

/* ---- commands ---- */

/* How many of the first words name command `c`; 0: they do not. */
static size_t matches(const struct gl_command *c, int argc, char **argv)
{
    gl_str rest = gl_str_of(c->name);
    size_t n = 0;

    while (rest.n > 0) {
        gl_str word = gl_str_cut(rest, ' ', &rest);

        if ((int)n >= argc || !gl_str_is(word, argv[n])) {
            return 0;
        }
        n++;
    }
    return n;
}

static int unknown_command(struct gl_cli *cli, int argc, char **argv)
{
    gl_str wanted = gl_str_of(argv[0]);
    struct gl_near near;
    bool is_group = false;

    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        gl_str rest;

        is_group = is_group ||
                   (gl_str_eq(gl_str_cut(gl_str_of(gl_cli_commands[i].name), ' ', &rest), wanted) &&
                    rest.n > 0);
    }
    if (is_group && argc == 1) {
        return gl_cli_usage(cli, "'%s' needs one more word", argv[0]);
    }
    if (is_group) {
        wanted = gl_str_fmt(&cli->arena, "%s %s", argv[0], argv[1]);
    }
    gl_near_init(&near, wanted);
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        gl_str rest, name = gl_str_of(gl_cli_commands[i].name);

        gl_near_offer(&near, name);
        gl_near_offer(&near, gl_str_cut(name, ' ', &rest));
    }
    return gl_cli_usage(cli, "there is no command '%.*s'%s%.*s%s", GL_STR_ARG(wanted),
                        near.best.n > 0 ? "; did you mean '" : "", GL_STR_ARG(near.best),
                        near.best.n > 0 ? "'?" : "");
}

static int run_command(struct gl_cli *cli, char **argv)
{
    struct gl_paths_env env;
    struct gl_why why;
    int err;

    for (char **at = argv; *at != NULL && strcmp(*at, "--") != 0; at++) {
        if (is_help(*at)) {
            return gl_cmd_about_help(cli);
        }
    }
    err = read_words(cli, argv);
    if (err != 0) {
        return err;
    }
    env = gl_paths_env(cli->data_option);
    err = gl_paths_data(&env, &cli->arena, &cli->data, &why);
    return err != 0 ? gl_cli_fail(cli, err, why.text) : cli->command->run(cli);
}

static int dispatch(struct gl_cli *cli, int argc, char **argv)
{
    if (argc < 2) {
        (void)gl_cmd_about_help(cli);
        return GL_EXIT_USAGE;
    }
    if (is_help(argv[1])) {
        return gl_cmd_about_help(cli);
    }
    if (strcmp(argv[1], "--version") == 0) {
        return gl_cmd_about_version(cli);
    }
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        size_t n = matches(&gl_cli_commands[i], argc - 1, argv + 1);

        if (n > 0) {
            cli->command = &gl_cli_commands[i];
            return run_command(cli, argv + 1 + n);
        }
    }
    if (argv[1][0] == '-') {
        return gl_cli_usage(cli, "options stand behind the command: glia COMMAND %s ...", argv[1]);
    }
    return unknown_command(cli, argc - 1, argv + 1);
}

int gl_cli_main(int argc, char **argv)
{
    const char *no_color = getenv("NO_COLOR");
    struct gl_cli cli = {0};
    int code;

    cli.program = argc > 0 && strchr(argv[0], '/') != NULL ? argv[0] : "glia";
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that has gone must not take the node with it */
    gl_term_init(&cli.out, stdout, no_color != NULL && no_color[0] != '\0');
    gl_term_init(&cli.err, stderr, no_color != NULL && no_color[0] != '\0');
    code = dispatch(&cli, argc, argv);
    (void)fflush(stdout);
    gl_arena_done(&cli.arena);
    return code;
}
