/* check_given.c - a process is started with the arguments and the environment that its flow says,
 * every reference replaced by what the records say, and nothing pasted together anew. */
#include "model/ref.h"
#include "sim/sim_known.h"

static bool has_line(gl_str text, gl_str line)
{
    while (text.n > 0) {
        gl_str one = gl_str_cut(text, '\n', &text);
        if (gl_str_eq(one, line)) {
            return true;
        }
    }
    return false;
}

static bool check_list(struct sim_checks *c, const struct gl_strs *list, bool has_refs,
                       const struct gl_json *facts, const struct sim_process *p)
{
    for (size_t i = 0; i < list->n; i++) {
        gl_str text = list->items[i];
        if (has_refs && gl_ref_expand(text, facts, &c->arena, &text, NULL) != 0) {
            sim_world_fail(c->world, "given: %.*s of job %.*s runs without what it refers to: %.*s",
                           GL_STR_ARG(p->attempt), GL_STR_ARG(p->job), GL_STR_ARG(list->items[i]));
            return false;
        }
        if (!has_line(p->given, text)) {
            sim_world_fail(c->world, "given: %.*s of job %.*s was not given %.*s",
                           GL_STR_ARG(p->attempt), GL_STR_ARG(p->job), GL_STR_ARG(text));
            return false;
        }
    }
    return true;
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    const struct gl_step_spec *spec = st->spec;
    const struct sim_fact_step *settled = st->group != NULL ? st->group : st;
    struct gl_json facts;
    if (j->flow->bundle != NULL || !settled->is_settled || gl_str_is(spec->driver, "noop")) {
        return;
    }
    if (!sim_known_facts(c, j, st, &facts)) {
        sim_world_fail(c->world, "given: %.*s of job %.*s runs for an item that is none",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id));
        return;
    }
    gl_str item = GL_S("GLIA_ITEM=${job.item}");
    struct gl_strs items = {.items = &item, .n = st->group != NULL ? 1 : 0};
    (void)(check_list(c, &spec->argv, (spec->expand & GL_EXPAND_ARGV) != 0, &facts, p) &&
           check_list(c, &spec->env, (spec->expand & GL_EXPAND_ENV) != 0, &facts, p) &&
           check_list(c, &items, true, &facts, p)); /* the first objection is enough */
}

const struct sim_check sim_check_given = {.name = "given", .on_start = on_start};
