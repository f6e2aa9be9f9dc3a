/* cmd_help.c - glia help: lists and describes the commands. */
#include "base/check.h"
#include "cli/cli.h"

enum { NAME_WIDTH = 18, OPTION_WIDTH = 26 };

static void list_command(FILE *out, const struct gl_command *c)
{
    (void)fprintf(out, "  glia %-*s%s\n", NAME_WIDTH, c->name, c->summary);
}

void gl_cmd_help_group(FILE *out, gl_str group)
{
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        const struct gl_command *c = &gl_cli_commands[i];
        gl_str rest;

        if (!c->is_hidden && gl_str_eq(gl_str_cut(gl_str_of(c->name), ' ', &rest), group)) {
            list_command(out, c);
        }
    }
    (void)fprintf(out, "Try 'glia help %.*s' for more.\n", GL_STR_ARG(group));
}

static void list_commands(struct gl_cli *cli)
{
    FILE *out = cli->out.file;

    (void)fputs("Glia runs workflows of scripts and commands, and finishes them despite "
                "crashes.\n\n",
                out);
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        if (!gl_cli_commands[i].is_hidden) {
            list_command(out, &gl_cli_commands[i]);
        }
    }
    (void)fputs(
        "\nAll commands accept --data-dir, --server, --store, --config, --json and --help,\n"
        "before or after the command name.\n"
        "Exit codes: 0 ok, 1 failed or cancelled, 2 usage or invalid input, 3 not found,\n"
        "4 not allowed, 5 node, store or stdout unavailable, 6 paused or waiting for a\n"
        "person, 75 claim held by someone else, 76 claim lost, 130 interrupted.\n",
        out);
}

static void list_option(FILE *out, const struct gl_command_option *o)
{
    int used = fprintf(out, "  %s%s%s", o->name, o->value != NULL ? " " : "",
                       o->value != NULL ? o->value : "");

    (void)fprintf(out, "%*s%s\n", used < OPTION_WIDTH ? OPTION_WIDTH - used : 2, "", o->doc);
}

static void describe(struct gl_cli *cli, const struct gl_command *c)
{
    FILE *out = cli->out.file;

    (void)fprintf(out, "usage: glia %s%s%s\n\n%s.\n", c->name, c->arguments[0] != '\0' ? " " : "",
                  c->arguments, c->summary);
    if (c->help[0] != '\0') {
        (void)fprintf(out, "\n%s", c->help);
    }
    (void)fputc('\n', out);
    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && c->options[i].name != NULL; i++) {
        list_option(out, &c->options[i]);
    }
    for (size_t i = 0; i < gl_cli_common_n; i++) {
        list_option(out, &gl_cli_common[i]);
    }
}

/* Describe a command, or all commands of a group. */
static int explain(struct gl_cli *cli, gl_str wanted)
{
    size_t shown = 0;

    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        gl_str name = gl_str_of(gl_cli_commands[i].name), rest;

        if (gl_cli_commands[i].is_hidden) {
            continue;
        }
        if (gl_str_eq(name, wanted) || gl_str_eq(gl_str_cut(name, ' ', &rest), wanted)) {
            (void)fputs(shown++ > 0 ? "\n" : "", cli->out.file);
            describe(cli, &gl_cli_commands[i]);
        }
    }
    return shown > 0 ? GL_EXIT_OK
                     : gl_cli_unknown(cli, gl_str_of(cli->words[0]),
                                      cli->words_n > 1 ? gl_str_of(cli->words[1]) : (gl_str){0});
}

int gl_cmd_help(struct gl_cli *cli)
{
    if (cli->command != NULL && cli->command->run != gl_cmd_help) {
        describe(cli, cli->command);
        return GL_EXIT_OK;
    }
    if (cli->words_n == 0) {
        list_commands(cli);
        return GL_EXIT_OK;
    }
    return explain(cli,
                   gl_str_fmt(&cli->arena, "%s%s%s", cli->words[0], cli->words_n > 1 ? " " : "",
                              cli->words_n > 1 ? cli->words[1] : ""));
}
