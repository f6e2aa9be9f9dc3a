/* cmd_validate.c - glia validate: is a flow or a bundle good, and what of it can run twice? */
#include "base/check.h"
#include "cli/flowfile.h"
#include "cli/output/table.h"
#include "model/bundle/agent.h"

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
static const struct {
    const char *driver, *why;
} programless[] = {
    {"noop", "noop: it does nothing"},
    {"relay", "the runtime does it itself, exactly once"},
    {"agent", "it is what its agent is"},
};

static const char *programless_why(const struct gl_step_spec *s)
{
    const char *why = gl_flow_waits(s) ? "it only waits, and continues to wait" : NULL;

    for (size_t i = 0; i < GL_COUNT(programless); i++) {
        why = gl_str_is(s->driver, programless[i].driver) ? programless[i].why : why;
    }
    return why;
}

static const char *twice_of(const struct gl_step_spec *s)
{
    return programless_why(s) != NULL ? "no" : safeties[s->safety].twice;
}

static const char *why_of(const struct gl_step_spec *s)
{
    const char *why = programless_why(s);

    if (why == NULL && s->safety == GL_SAFETY_UNSAFE && s->retry.attempts > 1) {
        return "unsafe: retried only after a failure it reports itself; otherwise a person decides";
    }
    return why != NULL ? why : safeties[s->safety].why;
}

/* ---- bundles ---- */

static gl_str step_of(const struct gl_flow *flow, const struct gl_agent_spec *a)
{
    return a->step >= 0 ? gl_flow_step(flow, (uint32_t)a->step)->id : (gl_str){0};
}

static void print_agents(struct gl_cli *cli, const struct gl_flow *flow)
{
    static const char *const titles[] = {"AGENT", "KIND", "STEP", "TWICE", "AFTER A CRASH"};
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    for (uint32_t i = 0; i < gl_flow_agents_n(flow); i++) {
        const struct gl_agent_spec *a = gl_flow_agent(flow, i);

        gl_table_add(&t, a->id);
        gl_table_add(&t, gl_str_of(gl_agent_kind_words[a->kind]));
        gl_table_add(&t, step_of(flow, a));
        gl_table_add(&t, gl_str_of(twice_of(gl_flow_step(flow, i))));
        gl_table_add(&t, gl_str_of(why_of(gl_flow_step(flow, i))));
    }
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

static void print_notes(struct gl_cli *cli, const struct gl_flow *flow)
{
    for (size_t i = 0; i < flow->bundle->notes.n; i++) {
        gl_cli_note(cli, "note: %.*s",
                    GL_STR_ARG(gl_term_safe(&cli->arena, flow->bundle->notes.items[i])));
    }
}

static void write_agents(const struct gl_flow *flow, struct gl_jw *w)
{
    gl_jw_key(w, "agents");
    gl_jw_array(w);
    for (uint32_t i = 0; i < gl_flow_agents_n(flow); i++) {
        const struct gl_agent_spec *a = gl_flow_agent(flow, i);
        const struct gl_step_spec *unit = gl_flow_step(flow, i);

        gl_jw_object(w);
        gl_jw_key(w, "id");
        gl_jw_str(w, a->id);
        gl_jw_key(w, "kind");
        gl_jw_c(w, gl_agent_kind_words[a->kind]);
        gl_jw_key(w, "step");
        gl_jw_str(w, step_of(flow, a));
        gl_jw_key(w, "safety");
        gl_jw_c(w, gl_safety_words[unit->safety]);
        gl_jw_key(w, "can_run_twice");
        gl_jw_bool(w, strcmp(twice_of(unit), "yes") == 0);
        gl_jw_key(w, "after_a_crash");
        gl_jw_c(w, why_of(unit));
        gl_jw_end(w);
    }
    gl_jw_end(w);
    gl_jw_key(w, "notes");
    gl_jw_array(w);
    for (size_t i = 0; i < flow->bundle->notes.n; i++) {
        gl_jw_str(w, flow->bundle->notes.items[i]);
    }
    gl_jw_end(w);
}

/* ---- flows ---- */

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
        gl_cli_note(cli, "input %.*s: %s, %s%.*s%s%.*s", GL_STR_ARG(in->name),
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
    for (uint32_t i = gl_flow_agents_n(flow); i < flow->steps.n; i++) {
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
    if (flow->bundle != NULL) {
        write_agents(flow, &w);
    }
    write_steps(flow, &w);
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&out));
}

static void print_flow(struct gl_cli *cli, const struct gl_flow *flow)
{
    size_t agents = gl_flow_agents_n(flow), steps = flow->steps.n - agents;

    if (flow->bundle == NULL) {
        print_steps(cli, flow);
        print_inputs(cli, flow);
        gl_cli_note(cli, "%s is valid (%zu step%s)", cli->words[0], steps, steps == 1 ? "" : "s");
        return;
    }
    print_agents(cli, flow);
    print_notes(cli, flow);
    gl_cli_note(cli, "%s is valid (%zu agent%s, %zu step%s, %zu payload%s)", cli->words[0], agents,
                agents == 1 ? "" : "s", steps, steps == 1 ? "" : "s", flow->bundle->payloads.n,
                flow->bundle->payloads.n == 1 ? "" : "s");
}

int gl_cmd_validate(struct gl_cli *cli)
{
    struct gl_flowfile f;
    struct gl_why why = {0};
    int err = gl_flowfile_read(&f, cli, cli->words[0], &why);

    if (err != 0 && f.errors.n == 0) {
        (void)gl_cli_fail_why(cli, err, &why);
    } else if (err != 0 && cli->json) {
        gl_flowfile_print_json_errors(&f);
    } else if (err != 0) {
        gl_flowfile_print_errors(&f);
    } else if (cli->json) {
        print_json(cli, f.flow);
    } else {
        print_flow(cli, f.flow);
    }
    gl_flowfile_done(&f);
    return err == 0 ? GL_EXIT_OK : GL_EXIT_USAGE;
}
