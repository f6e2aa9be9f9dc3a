/* cmd_validate.c - glia validate: checks a flow or a bundle; shows which steps can run twice. */
#include "base/check.h"
#include "cli/flowfile.h"
#include "cli/job_inputs.h"
#include "cli/output/rows.h"
#include "model/bundle/agent.h"

/* The effect of a crash on a step, by its mark. */
static const struct {
    bool can_run_twice;
    const char *why;
} safeties[GL_SAFETY_COUNT] = {
    [GL_SAFETY_IDEMPOTENT] = {true, "idempotent: restarted at once"},
    [GL_SAFETY_UNMARKED] = {true,
                            "not marked: restarted when the lost attempt is known to have ended"},
    [GL_SAFETY_UNSAFE] = {false, "unsafe: a person decides if it may have run"},
};

/* Steps that run no program behave the same whatever their marks. */
static const struct {
    const char *driver, *why;
} programless[] = {
    {"noop", "noop: does nothing"},
    {"relay", "done by the runtime itself, exactly once"},
    {"agent", "depends on its agent"},
};

static const char *programless_why(const struct gl_step_spec *s)
{
    const char *why = gl_flow_waits(s) ? "only waits, and continues to wait" : NULL;

    for (size_t i = 0; i < GL_COUNT(programless); i++) {
        why = gl_str_is(s->driver, programless[i].driver) ? programless[i].why : why;
    }
    return why;
}

static bool can_run_twice(const struct gl_step_spec *s)
{
    return programless_why(s) == NULL && safeties[s->safety].can_run_twice;
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

static void print_notes(struct gl_cli *cli, const struct gl_flow *flow)
{
    for (size_t i = 0; i < flow->bundle->notes.n; i++) {
        gl_cli_note(cli, "note: %.*s",
                    GL_STR_ARG(gl_term_safe(&cli->arena, flow->bundle->notes.items[i])));
    }
}

static void write_safety(const struct gl_step_spec *s, struct gl_jw *w)
{
    gl_jw_put_c(w, "safety", gl_safety_words[s->safety]);
    gl_jw_put_bool(w, "can_run_twice", can_run_twice(s));
    gl_jw_put_c(w, "after_a_crash", why_of(s));
}

static void write_agents(const struct gl_flow *flow, struct gl_jw *w)
{
    gl_jw_put_array(w, "agents");
    for (uint32_t i = 0; i < gl_flow_agents_n(flow); i++) {
        const struct gl_agent_spec *a = gl_flow_agent(flow, i);

        gl_jw_object(w);
        gl_jw_put_str(w, "id", a->id);
        gl_jw_put_c(w, "kind", gl_agent_kind_words[a->kind]);
        gl_jw_put_str(w, "step", step_of(flow, a));
        write_safety(gl_flow_step(flow, i), w);
        gl_jw_end(w);
    }
    gl_jw_end(w);
    gl_jw_put_texts(w, "notes", flow->bundle->notes.items, flow->bundle->notes.n);
}

static const struct gl_column agents_columns[] = {
    {"AGENT", .key = "id"},
    {"KIND", .key = "kind"},
    {"STEP", .key = "step"},
    {"TWICE", GL_COLUMN_YES_NO, .key = "can_run_twice"},
    {"AFTER A CRASH", .key = "after_a_crash"},
};

/* ---- flows ---- */

static gl_str after_crash_cell(const struct gl_row *row)
{
    const char *each =
        gl_api_reply_is(row->p, row->node, "foreach") ? "; each element separately" : "";

    return gl_str_fmt(&row->p->arena, "%.*s%s",
                      GL_STR_ARG(gl_api_reply_text(row->p, row->node, "after_a_crash")), each);
}

static const struct gl_column steps_columns[] = {
    {"STEP", .key = "id"},
    {"TWICE", GL_COLUMN_YES_NO, .key = "can_run_twice"},
    {"AFTER A CRASH", .cell = after_crash_cell},
};

/* Printed separately from the table: these lines have a different form. */
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

    gl_jw_put_array(w, "inputs");
    for (size_t i = 0; i < flow->inputs.n; i++) {
        const struct gl_flow_input *in = &inputs[i];

        gl_jw_object(w);
        gl_jw_put_str(w, "name", in->name);
        gl_jw_put_c(w, "type", gl_input_type_words[in->type]);
        gl_jw_put_bool(w, "required", in->required);
        gl_jw_put_raw(w, "default", in->fallback);
        gl_jw_put_str(w, "doc", in->doc);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void write_steps(const struct gl_flow *flow, struct gl_jw *w)
{
    gl_jw_put_array(w, "steps");
    for (uint32_t i = gl_flow_agents_n(flow); i < flow->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(flow, i);

        gl_jw_object(w);
        gl_jw_put_str(w, "id", s->id);
        gl_jw_put_str(w, "kind", s->driver);
        gl_jw_put_bool(w, "foreach", s->foreach.n > 0);
        write_safety(s, w);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void write_flow(const struct gl_flow *flow, struct gl_jw *w)
{
    gl_jw_put_bool(w, "valid", true);
    gl_jw_put_str(w, "name", flow->name);
    write_inputs(flow, w);
    if (flow->bundle != NULL) {
        write_agents(flow, w);
    }
    write_steps(flow, w);
}

static void print_summary(struct gl_cli *cli, const struct gl_flow *flow)
{
    size_t agents = gl_flow_agents_n(flow), steps = flow->steps.n - agents;

    if (flow->bundle == NULL) {
        print_inputs(cli, flow);
        gl_cli_note(cli, "%s is valid (%zu step%s)", cli->words[0], steps, steps == 1 ? "" : "s");
        return;
    }
    print_notes(cli, flow);
    gl_cli_note(cli, "%s is valid (%zu agent%s, %zu step%s, %zu payload%s)", cli->words[0], agents,
                agents == 1 ? "" : "s", steps, steps == 1 ? "" : "s", flow->bundle->payloads.n,
                flow->bundle->payloads.n == 1 ? "" : "s");
}

/* The table of a bundle lists its agents only: its steps are in the JSON. */
static int show_flow(struct gl_cli *cli, const struct gl_flow *flow)
{
    struct gl_rows steps = {.cli = cli, GL_COLUMNS(steps_columns), .list = "steps"};
    struct gl_rows agents = {.cli = cli, GL_COLUMNS(agents_columns), .list = "agents"};
    struct gl_rows *l = flow->bundle != NULL ? &agents : &steps;
    int code;

    write_flow(flow, gl_rows_begin(l));
    code = gl_rows_end(l);
    if (code == GL_EXIT_OK && !cli->json) {
        print_summary(cli, flow);
    }
    return code;
}

int gl_cmd_validate(struct gl_cli *cli)
{
    struct gl_flowfile f;
    struct gl_why why = {0};
    int err = gl_flowfile_read(&f, cli, cli->words[0], &why), code = GL_EXIT_USAGE;

    if (err != 0 && f.errors.n == 0) {
        (void)gl_cli_fail_why(cli, err, &why);
    } else if (err != 0 && cli->json) {
        gl_flowfile_print_json_errors(&f);
    } else if (err != 0) {
        gl_flowfile_print_errors(&f);
    } else {
        code = gl_job_inputs_check(cli, f.flow);
        code = code != 0 ? code : show_flow(cli, f.flow);
    }
    gl_flowfile_done(&f);
    return code;
}
