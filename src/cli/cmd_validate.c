/* cmd_validate.c - glia validate: is a flow file good, and which of its steps can run twice? */
#include "base/check.h"
#include "cli/flowfile.h"
#include "cli/table.h"

/* What a crash can do to a step, by how it is marked. */
static const struct {
    const char *twice, *why;
} safeties[GL_SAFETY_COUNT] = {
    [GL_SAFETY_IDEMPOTENT] = {"yes", "idempotent: it is started again at once"},
    [GL_SAFETY_UNMARKED] =
        {"yes", "not marked: it is started again when the lost attempt is known to have ended"},
    [GL_SAFETY_UNSAFE] = {"no", "unsafe: when nobody knows whether it ran, a person decides"},
};

static void print_steps(struct gl_cli *cli, const struct gl_flow *flow)
{
    static const char *const titles[] = {"STEP", "TWICE", "AFTER A CRASH"};
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(flow, i);

        gl_table_add(&t, s->id);
        gl_table_add(&t, gl_str_of(safeties[s->safety].twice));
        gl_table_add(&t, gl_str_of(safeties[s->safety].why));
    }
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

static void write_steps(const struct gl_flow *flow, struct gl_jw *w)
{
    gl_jw_key(w, "name");
    gl_jw_str(w, flow->name);
    gl_jw_key(w, "steps");
    gl_jw_array(w);
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(flow, i);

        gl_jw_object(w);
        gl_jw_key(w, "id");
        gl_jw_str(w, s->id);
        gl_jw_key(w, "safety");
        gl_jw_c(w, gl_safety_words[s->safety]);
        gl_jw_key(w, "can_run_twice");
        gl_jw_bool(w, s->safety != GL_SAFETY_UNSAFE);
        gl_jw_key(w, "after_a_crash");
        gl_jw_c(w, safeties[s->safety].why);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void print_json(struct gl_cli *cli, const struct gl_flow *flow)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_key(&w, "valid");
    gl_jw_bool(&w, true);
    write_steps(flow, &w);
    gl_jw_end(&w);
    (void)fprintf(cli->out.file, "%.*s\n", GL_STR_ARG(gl_buf_view(&out)));
}

int gl_cmd_validate(struct gl_cli *cli)
{
    struct gl_flowfile f;
    struct gl_why why = {0};
    int err = gl_flowfile_read(&f, cli, cli->words[0], &why);

    if (err != 0 && f.errors.n == 0) {
        (void)gl_cli_fail(cli, err, why.text);
    } else if (err != 0 && cli->json) {
        gl_flowfile_print_json_errors(&f);
    } else if (err != 0) {
        gl_flowfile_print_errors(&f);
    } else if (cli->json) {
        print_json(cli, f.flow);
    } else {
        print_steps(cli, f.flow);
        gl_cli_say(cli, "%s is good: %zu step%s", cli->words[0], f.flow->steps.n,
                   f.flow->steps.n == 1 ? "" : "s");
    }
    gl_flowfile_done(&f);
    return err == 0 ? GL_EXIT_OK : GL_EXIT_USAGE;
}
