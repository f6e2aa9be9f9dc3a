/* cmd_man.c - generates the manual pages from the table of commands when Glia is built.
 *
 * glia.1 is the overview; every command, or group of commands, has its own page. */
#include <errno.h>

#include "base/check.h"
#include "cli/cli.h"
#include "os/fs.h"

struct man_page {
    struct gl_cli *cli;
    struct gl_buf out;
};

/* ---- roff ---- */

/* Literal text, escaped. */
static void put(struct man_page *p, gl_str text)
{
    if (text.n > 0 && (text.p[0] == '.' || text.p[0] == '\'')) {
        gl_buf_c(&p->out, "\\&");
    }
    for (size_t i = 0; i < text.n; i++) {
        switch (text.p[i]) {
        case '\\':
            gl_buf_c(&p->out, "\\e");
            break;
        case '-':
            gl_buf_c(&p->out, "\\-");
            break;
        case '\'':
            gl_buf_c(&p->out, "\\(aq");
            break;
        case '`':
            gl_buf_c(&p->out, "\\(ga");
            break;
        case '~':
            gl_buf_c(&p->out, "\\(ti");
            break;
        case '^':
            gl_buf_c(&p->out, "\\(ha");
            break;
        default:
            gl_buf_char(&p->out, text.p[i]);
        }
    }
}

static void put_c(struct man_page *p, const char *text)
{
    put(p, gl_str_of(text));
}

static void begin(struct man_page *p, const char *name, const char *summary)
{
    gl_buf_c(&p->out, ".\\\" Made from the table of commands: changes here are lost.\n.TH ");
    for (const char *c = name; *c != '\0'; c++) {
        gl_buf_char(&p->out, (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c));
    }
    gl_buf_fmt(&p->out, " 1 \"\" \"Glia %s\" \"Glia\"\n.SH NAME\n", GL_VERSION);
    put_c(p, name);
    gl_buf_c(&p->out, " \\- ");
    put_c(p, summary);
    gl_buf_char(&p->out, '\n');
}

static void section(struct man_page *p, const char *title)
{
    gl_buf_fmt(&p->out, ".SH %s\n", title);
}

/* A paragraph is filled, unless it is a list: words, spaces, descriptions. */
static bool is_list(gl_str paragraph)
{
    return memmem(paragraph.p, paragraph.n, "  ", 2) != NULL;
}

static void put_paragraph(struct man_page *p, gl_str paragraph)
{
    bool as_it_is = is_list(paragraph);

    gl_buf_c(&p->out, as_it_is ? ".PP\n.nf\n" : ".PP\n");
    while (paragraph.n > 0) {
        put(p, gl_str_cut(paragraph, '\n', &paragraph));
        gl_buf_char(&p->out, '\n');
    }
    gl_buf_c(&p->out, as_it_is ? ".fi\n" : "");
}

static void put_paragraphs(struct man_page *p, const char *text)
{
    gl_str rest = gl_str_of(text);

    while (rest.p != NULL && rest.n > 0) {
        const char *end = memmem(rest.p, rest.n, "\n\n", 2);
        gl_str one = {.p = rest.p, .n = end != NULL ? (size_t)(end - rest.p) : rest.n};

        put_paragraph(p, one);
        rest.p += end != NULL ? one.n + 2 : one.n;
        rest.n -= end != NULL ? one.n + 2 : one.n;
    }
}

static void put_option(struct man_page *p, const struct gl_command_option *o)
{
    gl_buf_c(&p->out, ".TP\n\\fB");
    put_c(p, o->name);
    gl_buf_c(&p->out, "\\fR");
    if (o->value != NULL) {
        gl_buf_c(&p->out, " \\fI");
        put_c(p, o->value);
        gl_buf_c(&p->out, "\\fR");
    }
    gl_buf_char(&p->out, '\n');
    put_c(p, o->doc);
    gl_buf_c(&p->out, ".\n");
}

static void put_common(struct man_page *p)
{
    section(p, "OPTIONS OF ALL COMMANDS");
    gl_buf_c(&p->out, "All commands accept these options, before or after the command name.\n");
    for (size_t i = 0; i < gl_cli_common_n; i++) {
        put_option(p, &gl_cli_common[i]);
    }
}

/* ---- pages ---- */

static void put_usage(struct man_page *p, const struct gl_command *c)
{
    gl_buf_c(&p->out, ".B glia ");
    put_c(p, c->name);
    gl_buf_char(&p->out, '\n');
    if (c->arguments[0] != '\0') {
        put_c(p, c->arguments);
        gl_buf_char(&p->out, '\n');
    }
}

static bool is_of(const struct gl_command *c, gl_str word)
{
    gl_str rest;

    return !c->is_hidden && gl_str_eq(gl_str_cut(gl_str_of(c->name), ' ', &rest), word);
}

static void put_command(struct man_page *p, const struct gl_command *c, bool has_title)
{
    if (has_title) {
        gl_buf_c(&p->out, ".SS ");
        put_c(p, c->name);
        gl_buf_c(&p->out, "\n");
    }
    gl_buf_c(&p->out, ".PP\n");
    gl_buf_char(&p->out, (char)(c->summary[0] - 'a' + 'A'));
    put_c(p, c->summary + 1);
    gl_buf_c(&p->out, ".\n");
    put_paragraphs(p, c->help);
    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && c->options[i].name != NULL; i++) {
        put_option(p, &c->options[i]);
    }
}

static void make_page(struct man_page *p, gl_str word, const char *summary)
{
    bool is_group = gl_cli_is_group(word), has_broken = false;

    begin(p, gl_str_fmt(&p->cli->arena, "glia-%.*s", GL_STR_ARG(word)).p, summary);
    section(p, "SYNOPSIS");
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        if (is_of(&gl_cli_commands[i], word)) {
            gl_buf_c(&p->out, has_broken ? ".br\n" : "");
            put_usage(p, &gl_cli_commands[i]);
            has_broken = true;
        }
    }
    section(p, "DESCRIPTION");
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        if (is_of(&gl_cli_commands[i], word)) {
            put_command(p, &gl_cli_commands[i], is_group);
        }
    }
    put_common(p);
    section(p, "SEE ALSO");
    gl_buf_c(&p->out, ".BR glia (1)\n");
}

static void put_exit_codes(struct man_page *p)
{
    static const char *const codes[][2] = {
        {"0", "success; for commands that wait for a job: it completed"},
        {"1", "the job failed or was cancelled; a check of doctor failed"},
        {"2", "wrong usage, invalid input, or not possible in the current state"},
        {"3", "no such job, step or attempt"},
        {"4", "not allowed"},
        {"5", "node, store or stdout unavailable"},
        {"6", "the job is paused, or waits for a person"},
        {"75", "'glia claim': someone else holds the claim"},
        {"76", "'glia claim': the caller does not hold the claim, or lost it"},
        {"130", "interrupted"},
    };

    section(p, "EXIT STATUS");
    for (size_t i = 0; i < GL_COUNT(codes); i++) {
        gl_buf_fmt(&p->out, ".TP\n.B %s\n", codes[i][0]);
        put_c(p, codes[i][1]);
        gl_buf_c(&p->out, ".\n");
    }
}

static void put_environment(struct man_page *p)
{
    section(p, "ENVIRONMENT");
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        const struct gl_setting_spec *s = &gl_settings_table[i];

        if (s->env != NULL && s->env[0] != '\0') {
            gl_buf_c(&p->out, ".TP\n.B ");
            put_c(p, s->env);
            gl_buf_char(&p->out, '\n');
            put_c(p, s->doc);
            gl_buf_c(&p->out, ".\n");
        }
    }
    gl_buf_c(&p->out, ".TP\n.B GLIA_CONFIG\nthe settings file, as with \\-\\-config.\n"
                      ".TP\n.B GLIA_TOKEN\nthe token for a server over HTTP; overrides "
                      "GLIA_TOKEN_FILE.\n"
                      ".TP\n.B NO_COLOR\nnot empty: no colours.\n");
}

static void put_files(struct man_page *p)
{
    section(p, "FILES");
    gl_buf_c(&p->out,
             ".TP\n.I \\(ti/.local/share/glia\n"
             "The data folder, unless \\-\\-data\\-dir or GLIA_DATA_DIR names another; that of "
             "root is\n.IR /var/lib/glia .\n"
             ".TP\n.I \\(ti/.config/glia/config.yaml\n"
             "The settings file; root without one uses\n"
             ".IR /etc/glia/config.yaml .\n");
}

/* The pages of the commands. Commands of a group are adjacent, and share one. */
static void put_see_also(struct man_page *p)
{
    gl_str last = {0};

    section(p, "SEE ALSO");
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        const struct gl_command *c = &gl_cli_commands[i];
        gl_str rest, word = gl_str_cut(gl_str_of(c->name), ' ', &rest);

        if (!c->is_hidden && !gl_str_eq(word, last)) {
            gl_buf_fmt(&p->out, "%s.BR glia\\-%.*s (1)", last.n > 0 ? ",\n" : "", GL_STR_ARG(word));
            last = word;
        }
    }
    gl_buf_char(&p->out, '\n');
}

/* What the commands of a group have in common: the summary of their page. */
static const char *group_summary(struct gl_cli *cli, gl_str group)
{
    static const char *const summaries[][2] = {
        {"job", "work with jobs"},       {"human", "list and answer what waits for a person"},
        {"claim", "work with claims"},   {"node", "list nodes and show one"},
        {"cluster", "show the cluster"}, {"store", "work with the store of the jobs"},
        {"config", "show the settings"}, {"debug", "write what the node did recently to one file"},
    };

    for (size_t i = 0; i < GL_COUNT(summaries); i++) {
        if (gl_str_is(group, summaries[i][0])) {
            return summaries[i][1];
        }
    }
    return gl_str_fmt(&cli->arena, "the commands of %.*s", GL_STR_ARG(group)).p;
}

static void make_first(struct man_page *p)
{
    begin(p, "glia", "workflows of scripts and commands that survive crashes");
    section(p, "SYNOPSIS");
    gl_buf_c(&p->out, ".B glia\n.RI [ OPTION ...]\n.I COMMAND\n.RI [ ARGUMENT ...]\n");
    section(p, "DESCRIPTION");
    gl_buf_c(&p->out, "Glia runs workflows of scripts and commands, and finishes them despite "
                      "crashes.\nEach command, or group of commands, has its own page.\n");
    section(p, "COMMANDS");
    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        if (!gl_cli_commands[i].is_hidden) {
            gl_buf_c(&p->out, ".TP\n.B ");
            put_c(p, gl_cli_commands[i].name);
            gl_buf_char(&p->out, '\n');
            put_c(p, gl_cli_commands[i].summary);
            gl_buf_c(&p->out, ".\n");
        }
    }
    put_common(p);
    put_exit_codes(p);
    put_environment(p);
    put_files(p);
    put_see_also(p);
}

static int save(struct man_page *p, const char *name)
{
    const char *path = gl_str_fmt(&p->cli->arena, "%s/%s.1", p->cli->words[0], name).p;
    FILE *file = fopen(path, "we");
    bool is_written = file != NULL && fwrite(p->out.p, 1, p->out.n, file) == p->out.n;
    struct gl_why why;
    int code = 0;

    if ((file != NULL && fclose(file) != 0) || !is_written) {
        (void)gl_fs_why(&why, errno, "write", path);
        code = gl_cli_fail(p->cli, gl_err_join(GL_E_IO, why.reason), why.text);
    }
    gl_buf_reset(&p->out);
    return code;
}

int gl_cmd_man(struct gl_cli *cli)
{
    struct man_page p = {.cli = cli};
    gl_str last = {0};
    int code;

    make_first(&p);
    code = save(&p, "glia");
    for (size_t i = 0; i < gl_cli_commands_n && code == 0; i++) {
        const struct gl_command *c = &gl_cli_commands[i];
        gl_str rest, word = gl_str_cut(gl_str_of(c->name), ' ', &rest);

        if (c->is_hidden || gl_str_eq(word, last)) { /* commands of a group are adjacent */
            continue;
        }
        last = word;
        make_page(&p, word, rest.n == 0 ? c->summary : group_summary(cli, word));
        code = save(&p, gl_str_fmt(&cli->arena, "glia-%.*s", GL_STR_ARG(word)).p);
    }
    gl_buf_done(&p.out);
    return code;
}
