/* cmd_config.c - glia config: what is set, and by whom. */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/output/table.h"
#include "os/paths.h"

/* ---- reading ---- */

static const char *environment(const char *name)
{
    return getenv(name);
}

/* The flags of the command at hand that are settings. */
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

/* One sentence per line; with --json the document has them all. */
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
    env.glia_data_dir = s->values[GL_SET_DATA_DIR].text; /* of the environment, or the file */
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

static void show_json(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_key(&w, "file");
    gl_jw_c(&w, cli->settings->path);
    gl_jw_key(&w, "settings");
    gl_jw_object(&w);
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        gl_jw_key(&w, gl_settings_table[i].name);
        gl_jw_object(&w);
        gl_jw_key(&w, "value");
        gl_jw_c(&w, gl_settings_shown(cli->settings, (enum gl_setting_id)i, &cli->arena));
        gl_jw_key(&w, "origin");
        gl_jw_c(&w, gl_settings_origin(cli->settings, (enum gl_setting_id)i, &cli->arena));
        gl_jw_key(&w, "environment");
        gl_jw_c(&w, gl_settings_table[i].env);
        gl_jw_end(&w);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&out));
}

static void show_table(struct gl_cli *cli)
{
    static const char *const titles[] = {"SETTING", "VALUE", "ORIGIN"};
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        gl_str value =
            gl_str_of(gl_settings_shown(cli->settings, (enum gl_setting_id)i, &cli->arena));
        const char *origin = gl_settings_origin(cli->settings, (enum gl_setting_id)i, &cli->arena);

        gl_table_add(&t, gl_str_of(gl_settings_table[i].name));
        gl_table_add(&t, value.n > 0 || !cli->out.is_tty ? value : GL_S("-"));
        gl_table_add(&t, gl_str_of(origin));
    }
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

int gl_cmd_config_show(struct gl_cli *cli)
{
    int err = gl_cmd_config_load(cli);

    if (err != 0) {
        return err;
    }
    (cli->json ? show_json : show_table)(cli);
    if (cli->err.is_tty && !cli->json) {
        gl_cli_note(cli, cli->settings->path[0] != '\0' ? "read from %s" : "no file was read%s",
                    cli->settings->path);
    }
    return GL_EXIT_OK;
}
