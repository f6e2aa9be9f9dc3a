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

/* What a step that runs no program can do is known without its marks. */
static const char *twice_of(const struct gl_step_spec *s)
{
    return gl_flow_waits(s) || gl_str_is(s->driver, "noop") ? "no" : safeties[s->safety].twice;
}

static const char *why_of(const struct gl_step_spec *s)
{
    return gl_flow_waits(s)               ? "it only waits, and goes on waiting"
           : gl_str_is(s->driver, "noop") ? "it does nothing"
                                          : safeties[s->safety].why;
}

static void print_steps(struct gl_cli *cli, const struct gl_flow *flow)
{
    static const char *const titles[] = {"STEP", "TWICE", "AFTER A CRASH"};
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(flow, i);
        const char *each = s->foreach.n > 0 ? "; each element by itself" : "";

        gl_table_add(&t, s->id);
        gl_table_add(&t, gl_str_of(twice_of(s)));
        gl_table_add(&t, gl_str_fmt(&cli->arena, "%s%s", why_of(s), each));
    }
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

/* Beside the table: it is talk, not data of the same shape. */
static void print_inputs(struct gl_cli *cli, const struct gl_flow *flow)
{
    const struct gl_flow_input *inputs = flow->inputs.items;

    for (size_t i = 0; i < flow->inputs.n; i++) {
        const struct gl_flow_input *in = &inputs[i];
        gl_str fallback = in->fallback.n > 0 ? in->fallback : GL_S("null");
        gl_str doc = gl_term_safe(&cli->arena, in->doc);

        fallback = gl_term_safe(&cli->arena, gl_term_clip(fallback, 60));
        gl_cli_say(cli, "input %.*s: %s, %s%.*s%s%.*s", GL_STR_ARG(in->name),
                   gl_input_type_words[in->type], in->required ? "required" : "else ",
                   in->required ? 0 : (int)fallback.n, fallback.p, doc.n > 0 ? ": " : "",
                   GL_STR_ARG(doc));
    }
}

static void write_inputs(const struct gl_flow *flow, struct gl_jw *w)
{
    const struct gl_flow_input *inputs = flow->inputs.items;

    gl_jw_key(w, "inputs");
    gl_jw_array(w);
    for (size_t i = 0; i < flow->inputs.n; i++) {
        const struct gl_flow_input *in = &inputs[i];

        gl_jw_object(w);
        gl_jw_key(w, "name");
        gl_jw_str(w, in->name);
        gl_jw_key(w, "type");
        gl_jw_c(w, gl_input_type_words[in->type]);
        gl_jw_key(w, "required");
        gl_jw_bool(w, in->required);
        gl_jw_key(w, "default");
        gl_jw_raw(w, in->fallback.n > 0 ? in->fallback : GL_S("null"));
        gl_jw_key(w, "doc");
        gl_jw_str(w, in->doc);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void write_steps(const struct gl_flow *flow, struct gl_jw *w)
{
    gl_jw_key(w, "steps");
    gl_jw_array(w);
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(flow, i);

        gl_jw_object(w);
        gl_jw_key(w, "id");
        gl_jw_str(w, s->id);
        gl_jw_key(w, "kind");
        gl_jw_str(w, s->driver);
        gl_jw_key(w, "foreach");
        gl_jw_bool(w, s->foreach.n > 0);
        gl_jw_key(w, "safety");
        gl_jw_c(w, gl_safety_words[s->safety]);
        gl_jw_key(w, "can_run_twice");
        gl_jw_bool(w, strcmp(twice_of(s), "yes") == 0);
        gl_jw_key(w, "after_a_crash");
        gl_jw_c(w, why_of(s));
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
    gl_jw_key(&w, "name");
    gl_jw_str(&w, flow->name);
    write_inputs(flow, &w);
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
        print_inputs(cli, f.flow);
        gl_cli_say(cli, "%s is good: %zu step%s", cli->words[0], f.flow->steps.n,
                   f.flow->steps.n == 1 ? "" : "s");
    }
    gl_flowfile_done(&f);
    return err == 0 ? GL_EXIT_OK : GL_EXIT_USAGE;
}
