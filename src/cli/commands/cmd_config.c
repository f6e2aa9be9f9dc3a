/* cmd_config.c - glia config: settings, their values and sources. */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/output/rows.h"
#include "os/paths.h"

/* ---- reading ---- */

static const char *environment(const char *name)
{
    return getenv(name);
}

/* The settings among the flags of this command. */
static void take_flags(const struct gl_cli *cli, struct gl_settings_sources *to)
{
    const struct gl_command_option *o = cli->command->options;

    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && o[i].name != NULL; i++) {
        enum gl_setting_id id = gl_settings_by_flag(gl_str_of(o[i].name));

        if (id != GL_SET_COUNT) {
            to->flags[id] = cli->values[i];
        }
    }
    to->flags[GL_SET_DATA_DIR] = cli->data_option;
    to->flags[GL_SET_SERVER] = cli->server_option;
    to->flags[GL_SET_STORE] = cli->store_option;
}

/* One sentence per line; with --json the document contains all of them. */
static int fail(struct gl_cli *cli, int code, const char *text)
{
    gl_str rest = gl_str_of(text);

    while (memchr(rest.p, '\n', rest.n) != NULL) {
        gl_str line = gl_term_safe(&cli->arena, gl_str_cut(rest, '\n', &rest));

        gl_cli_note(cli, "%.*s", GL_STR_ARG(line));
    }
    return gl_cli_fail(cli, code, gl_str_c(&cli->arena, cli->json ? gl_str_of(text) : rest));
}

static void set_color(struct gl_cli *cli, const char *color)
{
    if (strcmp(color, "auto") != 0) {
        cli->out.has_color = cli->err.has_color = strcmp(color, "always") == 0;
    }
}

int gl_cmd_config_load(struct gl_cli *cli)
{
    struct gl_settings_sources from = {
        .config = cli->config_option, .env = environment, .root = geteuid() == 0};
    struct gl_settings *s = GL_NEW(&cli->arena, struct gl_settings);
    struct gl_paths_env env = gl_paths_env(cli->data_option);
    struct gl_why why;
    int err;

    take_flags(cli, &from);
    err = gl_settings_read(s, &from, &cli->arena, &why);
    if (err != 0) {
        return fail(cli, gl_err_join(err, why.reason), why.text);
    }
    env.glia_data_dir = s->values[GL_SET_DATA_DIR].text; /* from the environment or the file */
    err = gl_paths_data(&env, &cli->arena, &cli->data, &why);
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    s->values[GL_SET_DATA_DIR].text = cli->data;
    err = gl_paths_runs_root(&env, s->values[GL_SET_RUNS_ROOT].text, cli->data, &cli->arena,
                             &s->values[GL_SET_RUNS_ROOT].text, &why);
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    set_color(cli, s->values[GL_SET_COLOR].text);
    cli->settings = s;
    return 0;
}

/* ---- showing ---- */

static void write_settings(struct gl_cli *cli, struct gl_jw *w)
{
    gl_jw_put_c(w, "file", cli->settings->path);
    gl_jw_put_object(w, "settings");
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        enum gl_setting_id id = (enum gl_setting_id)i;

        gl_jw_put_object(w, gl_settings_table[i].name);
        gl_jw_put_c(w, "value", gl_settings_shown(cli->settings, id, &cli->arena));
        gl_jw_put_c(w, "origin", gl_settings_origin(cli->settings, id, &cli->arena));
        gl_jw_put_c(w, "environment", gl_settings_table[i].env);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static int show_settings(struct gl_cli *cli)
{
    const struct gl_column columns[] = {
        {"SETTING", .kind = GL_COLUMN_NAME},
        {"VALUE", .key = "value", .absent = cli->out.is_tty ? "-" : NULL},
        {"ORIGIN", .key = "origin"},
    };
    struct gl_rows l = {.cli = cli, GL_COLUMNS(columns), .list = "settings"};

    write_settings(cli, gl_rows_begin(&l));
    return gl_rows_end(&l);
}

int gl_cmd_config_show(struct gl_cli *cli)
{
    int code = gl_cmd_config_load(cli);

    if (code != 0) {
        return code;
    }
    code = show_settings(cli);
    if (cli->err.is_tty && !cli->json) {
        gl_cli_note(cli, cli->settings->path[0] != '\0' ? "read from %s" : "no file was read%s",
                    cli->settings->path);
    }
    return code;
}
