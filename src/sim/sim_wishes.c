#include "sim/sim_wishes.h"

#include "base/check.h"
#include "sim/world.h"

const gl_str sim_wishes_signals[SIM_SIGNALS] = {GL_S("go"), GL_S("halt"), GL_S("nobody")};

struct step_wish { /* a step being drawn */
    struct gl_rng *r;
    const struct sim_options *o;
    struct gl_arena *a;
    const struct gl_step_spec *steps;
    struct gl_step_spec *st;
    bool has_inputs;
    int64_t above; /* an ancestor; -1: there is none */
};

/* ---- inputs ---- */

static const struct {
    const char *name;
    enum gl_input_type type;
    const char *fallback;
} inputs[] = {
    {"k", GL_INPUT_INTEGER, "3"},
    {"flag", GL_INPUT_BOOLEAN, "false"},
    {"list", GL_INPUT_LIST, "[1,2,3]"},
    {"text", GL_INPUT_STRING, ""},
};

static void draw_value(struct gl_rng *r, enum gl_input_type type, struct gl_buf *out)
{
    static const char *const texts[] = {"\"\"", "\"abc\"", "\"a b\"", "\"$HOME\""};
    uint64_t n = gl_rng_below(r, 7);
    switch (type) {
    case GL_INPUT_INTEGER:
        gl_buf_fmt(out, "%llu", (unsigned long long)n);
        return;
    case GL_INPUT_BOOLEAN:
        gl_buf_fmt(out, "%s", n < 4 ? "true" : "false");
        return;
    case GL_INPUT_LIST:
        gl_buf_char(out, '[');
        for (uint64_t i = 0; i < n; i++) {
            gl_buf_fmt(out, "%s%llu", i > 0 ? "," : "", (unsigned long long)(i * 3));
        }
        gl_buf_char(out, ']');
        return;
    default:
        gl_buf_fmt(out, "%s", texts[n % GL_COUNT(texts)]);
        return;
    }
}

static void give(struct gl_rng *r, struct gl_flow_input *in, struct sim_given *given)
{
    struct gl_buf value = {0};
    draw_value(r, in->type, &value);
    gl_str fallback = in->fallback.n > 0 ? in->fallback : GL_S("null");
    bool is_given = gl_rng_chance(r, in->required ? 930000 : 500000);
    given->is_short = given->is_short || (in->required && !is_given);
    if (is_given) {
        gl_buf_fmt(&given->inputs, "%s\"%.*s\": %.*s", given->inputs.n > 1 ? ", " : "",
                   GL_STR_ARG(in->name), GL_STR_ARG(gl_buf_view(&value)));
    }
    gl_buf_fmt(&given->stored, "%s\"%.*s\":%.*s", given->stored.n > 1 ? "," : "",
               GL_STR_ARG(in->name), GL_STR_ARG(is_given ? gl_buf_view(&value) : fallback));
    gl_buf_done(&value);
}

void sim_wishes_inputs(struct gl_rng *r, const struct sim_options *o, struct gl_arena *a,
                       struct gl_flow *flow, struct sim_given *given)
{
    if (!gl_rng_chance(r, o->flows_inputs)) {
        return;
    }
    struct gl_flow_input *all = GL_NEW_ARRAY(a, struct gl_flow_input, GL_COUNT(inputs));
    gl_buf_char(&given->inputs, '{');
    gl_buf_char(&given->stored, '{');
    for (size_t i = 0; i < GL_COUNT(inputs); i++) {
        bool required = gl_rng_chance(r, 250000);
        all[i] = (struct gl_flow_input){.name = gl_str_of(inputs[i].name),
                                        .type = (uint8_t)inputs[i].type,
                                        .required = required,
                                        .fallback = gl_str_of(required ? "" : inputs[i].fallback)};
        give(r, &all[i], given);
    }
    gl_buf_char(&given->inputs, '}');
    gl_buf_char(&given->stored, '}');
    flow->inputs = (struct gl_items){.items = all, .n = GL_COUNT(inputs)};
}

void sim_given_done(struct sim_given *given)
{
    gl_buf_done(&given->inputs);
    gl_buf_done(&given->stored);
}

/* ---- conditions ---- */

static gl_str over_inputs(struct step_wish *w)
{
    static const char *const all[] = {
        "${inputs.k} > 2",
        "${inputs.flag}",
        "not ${inputs.flag}",
        "${inputs.list} contains 3",
        "${inputs.k} in [0, 1, 2]",
        "${inputs.text} == 'abc'",
        "exists ${inputs.list.0}",
        "${inputs.text}",
        "${inputs.text} < ${inputs.k}" /* no order between a text and a number */
    };
    return gl_str_of(all[gl_rng_below(w->r, GL_COUNT(all))]);
}

static gl_str over_step(struct step_wish *w)
{
    gl_str id = w->steps[w->above].id;
    switch (gl_rng_below(w->r, 9)) {
    case 0:
        return gl_str_fmt(w->a, "${steps.%.*s.output.n} > 4", GL_STR_ARG(id));
    case 1:
        return gl_str_fmt(w->a, "${steps.%.*s.output.ok}", GL_STR_ARG(id));
    case 2:
        return gl_str_fmt(w->a, "${steps.%.*s.status} == \"completed\"", GL_STR_ARG(id));
    case 3:
        return gl_str_fmt(w->a, "${steps.%.*s.outcome} in ['success', 'failed']", GL_STR_ARG(id));
    case 4:
        return gl_str_fmt(w->a, "exists ${steps.%.*s.output.list}", GL_STR_ARG(id));
    case 5:
        return gl_str_fmt(w->a, "not exists ${steps.%.*s.output.list.1}", GL_STR_ARG(id));
    case 6:
        return gl_str_fmt(w->a, "${steps.%.*s.output.n} != 3", GL_STR_ARG(id));
    case 7:
        return gl_str_fmt(w->a, "${steps.%.*s.exit_code} == 0", GL_STR_ARG(id));
    default:
        return gl_str_fmt(w->a, "2 in ${steps.%.*s.output.list}", GL_STR_ARG(id));
    }
}

static gl_str plain_condition(struct step_wish *w)
{
    static const char *const all[] = {"true",
                                      "false",
                                      "1 < 2",
                                      "'a' == 'b'",
                                      "1 < 'a'",
                                      "${job.name} == 'simulated'",
                                      "exists ${job.id}"};
    return gl_str_of(all[gl_rng_below(w->r, GL_COUNT(all))]);
}

static gl_str condition(struct step_wish *w)
{
    if (w->above >= 0 && gl_rng_chance(w->r, 600000)) {
        return over_step(w);
    }
    return w->has_inputs ? over_inputs(w) : plain_condition(w);
}

static void draw_when(struct step_wish *w)
{
    gl_str first = condition(w);
    if (gl_rng_chance(w->r, 300000)) {
        gl_str second = condition(w);
        const char *how = gl_rng_chance(w->r, 500000) ? "and" : "or";
        first =
            gl_str_fmt(w->a, "(%.*s) %s not (%.*s)", GL_STR_ARG(first), how, GL_STR_ARG(second));
    }
    w->st->when = first;
}

/* ---- items ---- */

static gl_str literal_list(struct step_wish *w)
{
    static const struct {
        const char *before, *behind;
    } shapes[] = {{"", ""}, {"\"i", "\""}, {"{\"id\":", ",\"of\":[0]}"}};
    struct gl_buf text = {0};
    uint64_t n = gl_rng_below(w->r, 41 >> gl_rng_below(w->r, 4));
    uint64_t shape = gl_rng_below(w->r, GL_COUNT(shapes));
    gl_buf_char(&text, '[');
    for (uint64_t i = 0; i < n; i++) {
        gl_buf_fmt(&text, "%s%s%llu%s", i > 0 ? "," : "", shapes[shape].before,
                   (unsigned long long)i, shapes[shape].behind);
    }
    gl_buf_char(&text, ']');
    gl_str list = gl_str_dup(w->a, gl_buf_view(&text));
    gl_buf_done(&text);
    return list;
}

static gl_str list_above(struct step_wish *w)
{
    const struct gl_step_spec *above = &w->steps[w->above];
    /* The output of a step with items is a list; of others it is not. */
    bool whole = gl_rng_chance(w->r, above->foreach.n > 0 ? 900000 : 100000);
    return gl_str_fmt(w->a, "${steps.%.*s.output%s}", GL_STR_ARG(above->id), whole ? "" : ".list");
}

static void draw_foreach(struct step_wish *w)
{
    if (w->above >= 0 && gl_rng_chance(w->r, 400000)) {
        w->st->foreach = list_above(w);
    } else if (w->has_inputs && gl_rng_chance(w->r, 400000)) {
        w->st->foreach = GL_S("${inputs.list}");
    } else {
        w->st->foreach = literal_list(w);
    }
    bool few = gl_rng_chance(w->r, 150000);
    w->st->items_max = few ? 1 + (uint32_t)gl_rng_below(w->r, 5) : GL_ITEMS_DEFAULT;
    w->st->parallel = (uint32_t)gl_rng_below(w->r, 5);
}

/* ---- waiting ---- */

static void draw_sleep(struct step_wish *w)
{
    static const char *const spans[] = {"0s", "30ms", "1s", "7s", "90s", "4m", "8m"};
    char when[GL_TIMES_BYTES];
    uint64_t kind = gl_rng_below(w->r, 10);
    w->st->driver = GL_S("sleep");
    if (kind < 6) {
        w->st->sleep = gl_str_of(spans[gl_rng_below(w->r, GL_COUNT(spans))]);
    } else if (kind < 7 && w->has_inputs) {
        w->st->sleep = GL_S("${inputs.k}");
    } else if (kind < 8 && w->above >= 0) { /* it may not exist */
        w->st->sleep =
            gl_str_fmt(w->a, "${steps.%.*s.output.n}", GL_STR_ARG(w->steps[w->above].id));
    } else {
        gl_ms at = SIM_EPOCH_MS + gl_rng_range(w->r, -60000, 12 * 60000);
        w->st->driver = GL_S("until");
        w->st->until =
            kind < 9 ? gl_str_dup(w->a, gl_times_format(at, when)) : GL_S("${job.submitted_at}");
    }
}

static void draw_signal(struct step_wish *w)
{
    w->st->driver = GL_S("signal");
    w->st->signal = sim_wishes_signals[gl_rng_below(w->r, SIM_SIGNALS - 1)];
    w->st->timeout_ms = gl_rng_chance(w->r, 500000) ? gl_rng_range(w->r, 100, 200000) : 0;
}

static void draw_approval(struct step_wish *w)
{
    static const gl_str decisions[] = {GL_S("approve"), GL_S("reject"), GL_S("later")};
    w->st->driver = GL_S("approval");
    w->st->approval = w->has_inputs && gl_rng_chance(w->r, 300000)
                          ? GL_S("go on with ${inputs.text} in ${job.id}?")
                          : GL_S("go on?");
    w->st->decisions =
        (struct gl_strs){.items = decisions, .n = 1 + gl_rng_below(w->r, GL_COUNT(decisions))};
    w->st->timeout_ms = gl_rng_chance(w->r, 500000) ? gl_rng_range(w->r, 100, 200000) : 0;
    if (w->st->timeout_ms > 0 && gl_rng_chance(w->r, 600000)) {
        w->st->on_timeout = decisions[gl_rng_below(w->r, w->st->decisions.n)];
    }
}

/* A step that waits has no process, and none of a process's fields. */
static bool draw_waiting(struct step_wish *w)
{
    struct gl_step_spec *st = w->st;
    if (gl_rng_chance(w->r, w->o->steps_sleep)) {
        st->timeout_ms = 0;
        draw_sleep(w);
    } else if (gl_rng_chance(w->r, w->o->steps_signal)) {
        draw_signal(w);
    } else if (gl_rng_chance(w->r, w->o->steps_approval)) {
        draw_approval(w);
    } else {
        return false;
    }
    st->heartbeat_ms = 0;
    st->limit_key = st->rate_key = (gl_str){0};
    st->limit_max = 0;
    st->rate_ms = 0;
    return true;
}

/* ---- references ---- */

static gl_str reference(struct step_wish *w)
{
    if (w->st->foreach.n > 0 && gl_rng_chance(w->r, 500000)) {
        return gl_rng_chance(w->r, 500000) ? GL_S("${job.item}") : GL_S("${job.index}");
    }
    if (w->above >= 0 && gl_rng_chance(w->r, 600000)) {
        bool sure = gl_rng_chance(w->r, 700000);
        return gl_str_fmt(w->a, "${steps.%.*s.%s}", GL_STR_ARG(w->steps[w->above].id),
                          sure ? "status" : "output.n");
    }
    return w->has_inputs ? GL_S("${inputs.text}") : GL_S("${job.run_id}");
}

static void draw_refs(struct step_wish *w)
{
    gl_str *argv = GL_NEW_ARRAY(w->a, gl_str, 3);
    gl_str *env = GL_NEW_ARRAY(w->a, gl_str, 1);
    gl_str first = reference(w), second = reference(w);
    argv[0] = GL_S("sim");
    argv[1] = gl_str_fmt(w->a, "--a=%.*s", GL_STR_ARG(first));
    argv[2] = GL_S("$${literal}");
    env[0] = gl_str_fmt(w->a, "REF=%.*s", GL_STR_ARG(second));
    w->st->argv = (struct gl_strs){.items = argv, .n = 3};
    w->st->env = (struct gl_strs){.items = env, .n = 1};
    w->st->expand = GL_EXPAND_ARGV | GL_EXPAND_ENV;
}

/* ---- all wishes ---- */

static int64_t ancestor(struct gl_rng *r, const struct gl_step_spec *steps, uint32_t i)
{
    const struct gl_step_spec *st = &steps[i];
    uint32_t at = 0;
    if (st->needs_n == 0) {
        return -1;
    }
    do {
        at = st->needs[gl_rng_below(r, st->needs_n)];
        st = &steps[at];
    } while (st->needs_n > 0 && gl_rng_chance(r, 300000));
    return at;
}

void sim_wishes_step(struct gl_rng *r, const struct sim_options *o, struct gl_arena *a,
                     const struct gl_flow *flow, struct gl_step_spec *steps, uint32_t i)
{
    struct step_wish w = {.r = r,
                          .o = o,
                          .a = a,
                          .steps = steps,
                          .st = &steps[i],
                          .has_inputs = flow->inputs.n > 0,
                          .above = ancestor(r, steps, i)};
    if (gl_rng_chance(r, o->steps_when)) {
        draw_when(&w);
    }
    if (draw_waiting(&w)) {
        return;
    }
    if (gl_rng_chance(r, o->steps_foreach)) {
        draw_foreach(&w);
    }
    if (w.st->limit_key.n > 0 && gl_rng_chance(r, 300000)) {
        const char *what = w.st->foreach.n > 0 ? "${job.index}" : "${job.name}";
        w.st->limit_key = gl_str_fmt(a, "%s-%.*s", what, GL_STR_ARG(w.st->limit_key));
    }
    if (gl_str_is(w.st->driver, "process") && gl_rng_chance(r, o->steps_refs)) {
        draw_refs(&w);
    }
}
