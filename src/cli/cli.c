#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/suggest.h"
#include "port/store.h"

enum { DATA_BYTES_MAX = 3000 }; /* leaves room for the names we append: paths are limited to 4096 */

/* ---- messages ---- */

void gl_cli_note(const struct gl_cli *cli, const char *fmt, ...)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    va_list args, again;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    GL_ASSERT(n >= 0);
    (void)vsnprintf(gl_buf_reserve(&text, (size_t)n + 1), (size_t)n + 1, fmt, again);
    text.n = (size_t)n;
    va_end(again);
    va_end(args);
    (void)fputs("glia: ", cli->err.file);
    gl_term_print(&cli->err, gl_buf_view(&text));
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

void gl_cli_put_error(struct gl_jw *w, int code, const char *text)
{
    gl_jw_put_object(w, "error");
    gl_jw_put_c(w, "code", gl_err_word(code));
    gl_jw_put_c(w, "message", text);
    if (gl_err_reason(code) != GL_REASON_NONE) {
        gl_jw_put_c(w, "reason", gl_reason_word(gl_err_reason(code)));
    }
    gl_jw_end(w);
}

/* With --json stdout always gets a document: here an error, in the form of the API's errors. */
static void print_error(const struct gl_cli *cli, int code, const char *text)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    if (!cli->json) {
        return;
    }
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_cli_put_error(&w, code, text);
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&out));
}

int gl_cli_fail_json(const struct gl_cli *cli, int code, const char *text)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    GL_ASSERT(code != 0);
    (void)fprintf(cli->err.file, "glia: %s%.*s%s\n", gl_term_on(&cli->err, GL_RED),
                  GL_STR_ARG(gl_term_safe(&a, gl_str_of(text))), gl_term_off(&cli->err, GL_RED));
    return exit_of(gl_err_code(code));
}

int gl_cli_fail(const struct gl_cli *cli, int code, const char *text)
{
    int exit_code = gl_cli_fail_json(cli, code, text);

    print_error(cli, code, text);
    return exit_code;
}

int gl_cli_fail_why(const struct gl_cli *cli, int err, const struct gl_why *why)
{
    return gl_cli_fail(cli, gl_err_join(err, why->reason), why->text);
}

int gl_cli_usage(const struct gl_cli *cli, const char *fmt, ...)
{
    char text[GL_WHY_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    gl_cli_note(cli, "%s", text);
    print_error(cli, GL_R_USAGE, text);
    if (cli->command != NULL) {
        (void)fprintf(cli->err.file, "usage: glia %s %s\nTry 'glia help %s' for more.\n",
                      cli->command->name, cli->command->arguments, cli->command->name);
    } else {
        (void)fputs("'glia help' lists the commands.\n", cli->err.file);
    }
    return GL_EXIT_USAGE;
}

const char *gl_cli_user(void)
{
    const char *user = getenv("USER");
    const struct passwd *known = user != NULL && user[0] != '\0' ? NULL : getpwuid(geteuid());

    return known != NULL ? known->pw_name : user != NULL ? user : "";
}

const char *gl_cli_hint(struct gl_cli *cli, const char *fmt, ...)
{
    struct gl_buf text = {0};
    char command[4096]; /* ids of requests are long, and longer when they are quoted */
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

const struct gl_command_option gl_cli_common[] = {
    {"--data-dir", "DIR", "the data folder (GLIA_DATA_DIR)"},
    {"--server", "ADDRESS", "talk to the node at unix:/PATH or http://HOST:PORT (GLIA_SERVER)"},
    {"--store", "URL", "the store of the jobs, like redis://HOST/0 (GLIA_STORE)"},
    {"--config", "FILE", "read settings from this file (GLIA_CONFIG)"},
    {"--json", NULL, "print one JSON document, or one per line for a stream"},
    {"--help", NULL, "show help for the command"},
};

const size_t gl_cli_common_n = GL_COUNT(gl_cli_common);

/* Other spellings. */
static const struct {
    const char *alias, *name;
} aliases[] = {{"--detached", "--detach"}};

static size_t option_number(const struct gl_cli *cli, const char *name)
{
    const struct gl_command_option *o = cli->command->options;

    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && o[i].name != NULL; i++) {
        if (strcmp(o[i].name, name) == 0) {
            return i;
        }
    }
    GL_UNREACHABLE();
}

const char *gl_cli_option(const struct gl_cli *cli, const char *name)
{
    return cli->values[option_number(cli, name)];
}

const struct gl_cli_value *gl_cli_option_list(const struct gl_cli *cli, const char *name)
{
    return cli->lists[option_number(cli, name)];
}

int gl_cli_number(const struct gl_cli *cli, const char *name, uint64_t min, uint64_t max,
                  uint64_t *ret)
{
    const char *text = gl_cli_option(cli, name);
    uint64_t n;

    if (text == NULL) {
        return 0;
    }
    if (!gl_str_u64(gl_str_of(text), &n) || n < min || n > max) {
        return gl_cli_usage(cli, "%s takes a number from %llu to %llu", name,
                            (unsigned long long)min, (unsigned long long)max);
    }
    *ret = n;
    return 0;
}

/* "; did you mean --run-id?", or nothing. */
static const char *near_option(struct gl_cli *cli, gl_str name)
{
    struct gl_suggest near;

    gl_suggest_init(&near, name);
    for (size_t i = 0; i < gl_cli_common_n; i++) {
        gl_suggest_offer(&near, gl_str_of(gl_cli_common[i].name));
    }
    for (size_t i = 0; cli->command != NULL && i < GL_CLI_OPTIONS_MAX; i++) {
        gl_suggest_offer(&near, gl_str_of(cli->command->options[i].name));
    }
    return near.best.n == 0
               ? ""
               : gl_str_fmt(&cli->arena, "; did you mean %.*s?", GL_STR_ARG(near.best)).p;
}

static bool may_repeat(const struct gl_command_option *o)
{
    return o->value != NULL && gl_str_ends(gl_str_of(o->value), GL_S("..."));
}

static void set_option(struct gl_cli *cli, size_t i, const char *value)
{
    struct gl_cli_value **end = &cli->lists[i];

    cli->values[i] = value;
    if (may_repeat(&cli->command->options[i])) {
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = GL_NEW(&cli->arena, struct gl_cli_value);
        (*end)->text = value;
    }
}

/* An option as given on the command line. */
struct given {
    gl_str name, value;
    bool has_value;
};

static struct given cut_option(const char *word)
{
    struct given g = {.has_value = strchr(word, '=') != NULL};

    g.name = gl_str_cut(gl_str_of(word), '=', &g.value);
    for (size_t i = 0; i < GL_COUNT(aliases); i++) {
        if (gl_str_is(g.name, aliases[i].alias)) {
            g.name = gl_str_of(aliases[i].name);
        }
    }
    return g;
}

/* Its value: the text after '=' or the next word; moves *at past it. */
static int take_value(struct gl_cli *cli, struct given *g, bool takes, char ***at)
{
    if (!takes && g->has_value) {
        return gl_cli_usage(cli, "%.*s takes no value", GL_STR_ARG(g->name));
    }
    if (takes && !g->has_value) {
        if ((*at)[1] == NULL) {
            return gl_cli_usage(cli, "%.*s needs a value", GL_STR_ARG(g->name));
        }
        (*at)++;
        g->value = gl_str_of(**at);
    }
    return 0;
}

/* Where the value of a common option goes; NULL: not a common option, or one without a value. */
static const char **common_value(struct gl_cli *cli, gl_str name)
{
    return gl_str_is(name, "--data-dir") ? &cli->data_option
           : gl_str_is(name, "--server") ? &cli->server_option
           : gl_str_is(name, "--store")  ? &cli->store_option
           : gl_str_is(name, "--config") ? &cli->config_option
                                         : NULL;
}

static int read_common(struct gl_cli *cli, struct given *g, char ***at)
{
    const char **to = common_value(cli, g->name);
    int err = take_value(cli, g, to != NULL, at);

    if (err == 0 && to != NULL) {
        *to = gl_str_c(&cli->arena, g->value);
    } else if (err == 0) {
        cli->json = true;
    }
    return err;
}

static bool is_common(struct gl_cli *cli, gl_str name)
{
    return common_value(cli, name) != NULL || gl_str_is(name, "--json");
}

/* Parse the option at *at and move *at past it. `hint` is printed after an unknown option. */
static int read_option(struct gl_cli *cli, char ***at, const char *hint)
{
    struct given g = cut_option(**at);
    const struct gl_command_option *o = cli->command->options;
    int err;

    if (is_common(cli, g.name)) {
        return read_common(cli, &g, at);
    }
    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && o[i].name != NULL; i++) {
        if (gl_str_is(g.name, o[i].name)) {
            err = take_value(cli, &g, o[i].value != NULL, at);
            if (err == 0) {
                set_option(cli, i, gl_str_c(&cli->arena, g.value));
            }
            return err;
        }
    }
    return gl_cli_usage(cli, "unknown option %.*s%s", GL_STR_ARG(g.name),
                        hint[0] != '\0' ? hint : near_option(cli, g.name));
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The name of the first argument that was not given. */
static const char *missing_word(struct gl_cli *cli)
{
    gl_str word = {0}, rest = gl_str_of(cli->command->arguments);

    for (size_t i = 0; i <= cli->words_n; i++) {
        word = gl_str_cut(rest, ' ', &rest);
    }
    return cli->command->takes_rest ? "a FILE, or a command after --,"
                                    : gl_str_c(&cli->arena, word);
}

/* "; to run a command: glia run -- echo hello", if the user may have meant that: no file has the
 * name of the first word. `argv` has all words of the command. */
static const char *rest_hint(struct gl_cli *cli, char **argv)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    char **at = argv;

    while (cli->words_n > 0 && *at != NULL && *at != cli->words[0]) {
        at++; /* options stay before the -- */
    }
    if (cli->command->takes_rest && cli->command->words_min == 0 && !cli->command->is_hidden) {
        return "; put the command to run after --"; /* words of glia itself come before the -- */
    }
    if (!cli->command->takes_rest || cli->words_n == 0 || strcmp(cli->words[0], "-") == 0 ||
        access(cli->words[0], F_OK) == 0) {
        return "";
    }
    gl_buf_fmt(&text, "; to run a command: %s %s", cli->program, cli->command->name);
    for (char **o = argv; o < at; o++) {
        gl_buf_fmt(&text, " %s", *o);
    }
    gl_buf_c(&text, " --");
    for (; *at != NULL; at++) {
        gl_buf_fmt(&text, " %s", *at);
    }
    return gl_str_c(&cli->arena, gl_buf_view(&text));
}

static int read_words(struct gl_cli *cli, char **argv)
{
    const struct gl_command *c = cli->command;
    bool is_over = false; /* after "--" there are no options */
    size_t n = 0;

    while (argv[n] != NULL) {
        n++;
    }
    cli->words = GL_NEW_ARRAY(&cli->arena, const char *, n + 1);
    for (char **at = argv; *at != NULL; at++) {
        int err = 0;

        if (strcmp(*at, "--") == 0 && c->takes_rest) {
            cli->rest = at + 1;
            break;
        }
        if (strcmp(*at, "--") == 0 && !is_over) {
            is_over = true;
        } else if (!is_over && (*at)[0] == '-' && (*at)[1] != '\0') {
            err = read_option(cli, &at, rest_hint(cli, argv));
        } else if (cli->words_n == c->words_max) {
            err = gl_cli_usage(cli, "unexpected argument '%s'%s", *at, rest_hint(cli, argv));
        } else {
            cli->words[cli->words_n++] = *at;
        }
        if (err != 0) {
            return err;
        }
    }
    if (cli->words_n < c->words_min && cli->rest == NULL) {
        return gl_cli_usage(cli, "%s is missing", missing_word(cli));
    }
    return 0;
}

/* ---- commands ---- */

/* The number of leading words that name command `c`; 0: they do not. */
static size_t matches(const struct gl_command *c, size_t words_n, char **words)
{
    gl_str rest = gl_str_of(c->name);
    size_t n = 0;

    while (rest.n > 0) {
        gl_str word = gl_str_cut(rest, ' ', &rest);

        if (n >= words_n || !gl_str_is(word, words[n])) {
            return 0;
        }
        n++;
    }
    return n;
}

const struct gl_command *gl_cli_find(size_t words_n, char **words, size_t *ret_used)
{
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        size_t n = matches(&gl_cli_commands[i], words_n, words);

        if (n > 0) {
            *ret_used = n;
            return &gl_cli_commands[i];
        }
    }
    return NULL;
}

static gl_str group_of(const struct gl_command *c, gl_str *ret_rest)
{
    return gl_str_cut(gl_str_of(c->name), ' ', ret_rest);
}

bool gl_cli_is_group(gl_str word)
{
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        gl_str rest, group = group_of(&gl_cli_commands[i], &rest);

        if (rest.n > 0 && gl_str_eq(group, word)) {
            return true;
        }
    }
    return false;
}

static gl_str first_of(gl_str group)
{
    gl_str name = {0}, rest;

    for (size_t i = 0; i < gl_cli_commands_n && name.n == 0; i++) {
        if (gl_str_eq(group_of(&gl_cli_commands[i], &rest), group)) {
            name = gl_str_of(gl_cli_commands[i].name);
        }
    }
    return name;
}

/* The most similar command; "" if none is similar. */
static gl_str near_command(struct gl_cli *cli, gl_str first, gl_str second)
{
    struct gl_suggest near;
    gl_str wanted;

    gl_suggest_init(&near, first);
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        gl_str rest;

        if (!gl_cli_commands[i].is_hidden) {
            gl_suggest_offer(&near, group_of(&gl_cli_commands[i], &rest));
        }
    }
    first = gl_cli_is_group(first) ? first : near.best;
    if (!gl_cli_is_group(first) || second.n == 0) {
        return gl_cli_is_group(first) ? first_of(first) : first;
    }
    wanted = gl_str_fmt(&cli->arena, "%.*s %.*s", GL_STR_ARG(first), GL_STR_ARG(second));
    gl_suggest_init(&near, wanted);
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        gl_str name = gl_str_of(gl_cli_commands[i].name), rest;

        if (gl_str_eq(name, wanted)) {
            return name;
        }
        if (gl_str_eq(group_of(&gl_cli_commands[i], &rest), first)) {
            gl_suggest_offer(&near, name);
        }
    }
    return near.best;
}

int gl_cli_unknown(struct gl_cli *cli, gl_str first, gl_str second)
{
    gl_str near = near_command(cli, first, second);
    bool both = gl_cli_is_group(first) && second.n > 0;
    int code;

    cli->command = NULL;
    code = gl_cli_usage(cli, "unknown command '%.*s%s%.*s'%s%.*s%s", GL_STR_ARG(first),
                        both ? " " : "", GL_STR_ARG(both ? second : (gl_str){0}),
                        near.n > 0 ? "; did you mean '" : "", GL_STR_ARG(near),
                        near.n > 0 ? "'?" : "");
    if (both && near.n == 0) {
        gl_cmd_help_group(cli->err.file, first);
    }
    return code;
}

/* The command is incomplete or unknown. */
static int no_command(struct gl_cli *cli, size_t argc, char **argv)
{
    gl_str first = gl_str_of(argv[0]);
    gl_str second = argc > 1 && argv[1][0] != '-' ? gl_str_of(argv[1]) : (gl_str){0};

    if (gl_cli_is_group(first) && argc > 1 && is_help(argv[1])) {
        gl_cmd_help_group(cli->out.file, first);
        return GL_EXIT_OK;
    }
    if (gl_cli_is_group(first) && second.n == 0) {
        gl_cli_note(cli, "'%s' needs one more word:", argv[0]);
        print_error(cli, GL_E_INVALID, "the command needs one more word");
        gl_cmd_help_group(cli->err.file, first);
        return GL_EXIT_USAGE;
    }
    return gl_cli_unknown(cli, first, second);
}

/* Check the data folder; the error names it. */
static int check_data(struct gl_cli *cli)
{
    size_t n = strlen(cli->data);
    struct stat st;
    const struct passwd *owner;
    const char *text;

    if (n > DATA_BYTES_MAX) {
        return gl_cli_fail(cli, GL_R_FOLDER_PATH_TOO_LONG,
                           gl_str_fmt(&cli->arena,
                                      "the path of the data folder is too long: it has %zu bytes, "
                                      "and may have %d",
                                      n, DATA_BYTES_MAX)
                               .p);
    }
    if (stat(cli->data, &st) < 0) {
        return 0; /* created, or reported as unusable, when it is needed */
    }
    if (!S_ISDIR(st.st_mode)) {
        text = gl_str_fmt(&cli->arena,
                          "the data folder %s is a file; name a folder with --data-dir", cli->data)
                   .p;
        return gl_cli_fail(cli, GL_R_FOLDER_IS_FILE, text);
    }
    if (st.st_uid == geteuid() || geteuid() == 0) {
        return 0;
    }
    owner = getpwuid(st.st_uid);
    text =
        gl_str_fmt(&cli->arena,
                   "the data folder %s belongs to another user (%s, uid %lu); choose another "
                   "with --data-dir",
                   cli->data, owner != NULL ? owner->pw_name : "unknown", (unsigned long)st.st_uid)
            .p;
    return gl_cli_fail(cli, GL_R_FOLDER_OTHER_USER, text);
}

static int run_command(struct gl_cli *cli, char **argv)
{
    int err;

    for (char **at = argv; *at != NULL && strcmp(*at, "--") != 0; at++) {
        if (is_help(*at)) {
            return gl_cmd_help(cli);
        }
    }
    err = read_words(cli, argv);
    if (err != 0) {
        return err;
    }
    if (!cli->command->needs_no_data) {
        err = gl_cmd_config_load(cli);
        err = err != 0 ? err : check_data(cli);
    }
    return err != 0 ? err : cli->command->run(cli);
}

static bool wants_json(char **argv)
{
    for (char **at = argv; *at != NULL && strcmp(*at, "--") != 0; at++) {
        if (strcmp(*at, "--json") == 0) {
            return true;
        }
    }
    return false;
}

/* Does any command have this option? */
static bool is_known(gl_str name)
{
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        const struct gl_command_option *o = gl_cli_commands[i].options;

        for (size_t k = 0; k < GL_CLI_OPTIONS_MAX && o[k].name != NULL; k++) {
            if (gl_str_is(name, o[k].name)) {
                return true;
            }
        }
    }
    return false;
}

/* Parse common options before the command name. Returns 0 or an exit code; moves *at. */
static int read_front(struct gl_cli *cli, char ***at)
{
    for (; **at != NULL && (**at)[0] == '-' && !is_help(**at); (*at)++) {
        struct given g = cut_option(**at);
        int err;

        if (gl_str_is(g.name, "--version")) {
            return 0;
        }
        if (!is_common(cli, g.name) && !is_known(g.name)) {
            return gl_cli_usage(cli, "unknown option %.*s%s", GL_STR_ARG(g.name),
                                near_option(cli, g.name));
        }
        if (!is_common(cli, g.name)) {
            return gl_cli_usage(cli, "put %.*s after the command: glia COMMAND %.*s%s",
                                GL_STR_ARG(g.name), GL_STR_ARG(g.name), near_option(cli, g.name));
        }
        err = read_common(cli, &g, at);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static int dispatch(struct gl_cli *cli, char **argv)
{
    size_t n = 0, used;
    int err;

    cli->json = wants_json(argv); /* so that errors found while parsing are JSON, too */
    err = read_front(cli, &argv);
    if (err != 0) {
        return err;
    }
    if (argv[0] == NULL) {
        (void)gl_cmd_help(cli);
        return GL_EXIT_USAGE;
    }
    if (is_help(argv[0])) {
        return gl_cmd_help(cli);
    }
    if (strcmp(argv[0], "--version") == 0) {
        return gl_cmd_version(cli);
    }
    while (argv[n] != NULL) {
        n++;
    }
    cli->command = gl_cli_find(n, argv, &used);
    return cli->command != NULL ? run_command(cli, argv + used) : no_command(cli, n, argv);
}

/* If stdout is closed, a file opened later must not take its descriptor: it would get the output.
 * Open a placeholder; writing to it fails, as it should. */
static void fill_standard_files(void)
{
    while (fcntl(STDERR_FILENO, F_GETFD) < 0 || fcntl(STDOUT_FILENO, F_GETFD) < 0 ||
           fcntl(STDIN_FILENO, F_GETFD) < 0) {
        if (open("/dev/null", O_RDONLY) < 0) {
            return;
        }
    }
}

/* Flush the output and report a failure. A closed pipe is not a failure. */
static int finish_output(struct gl_cli *cli, int code)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    int r, why;

    errno = 0;
    r = fflush(stdout);
    why = errno;
    if (r == 0 && !ferror(stdout)) {
        return code;
    }
    if (why == EPIPE || (poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0)) {
        return code;
    }
    gl_cli_note(cli, "cannot write to standard output: %s", strerror(why != 0 ? why : EIO));
    return GL_EXIT_UNAVAILABLE;
}

int gl_cli_main(int argc, char **argv)
{
    const char *no_color = getenv("NO_COLOR");
    struct gl_cli cli = {.context = GL_CONTEXT_DEFAULT};
    int code;

    cli.program = argc > 0 && strchr(argv[0], '/') != NULL ? argv[0] : "glia";
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe must not end the node */
    fill_standard_files();
    gl_term_init(&cli.out, stdout, no_color != NULL && no_color[0] != '\0');
    gl_term_init(&cli.err, stderr, no_color != NULL && no_color[0] != '\0');
    code = finish_output(&cli, dispatch(&cli, argv + (argc > 0)));
    gl_arena_done(&cli.arena);
    return code;
}
