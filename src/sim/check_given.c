/* check_given.c - a process is started with the arguments and the environment of its flow, each
 * reference resolved from the records, and nothing else substituted. An agent's process gets the
 * message that its unit's record names, as it was sent, for the step and the attempt it works for,
 * and the state in that record. */
#include <stdio.h>

#include "model/bundle/agent.h"
#include "model/bundle/message.h"
#include "model/text/ref.h"
#include "sim/sim_known.h"
#include "sim/sim_messages.h"

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
            sim_world_fail(
                c->world,
                "given: %.*s of job %.*s runs, but its references cannot be resolved: %.*s",
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

/* A queued message from the disk, with its text and its body, which may be separate records; false:
 * it is gone. */
static bool read_message(struct sim_checks *c, const struct sim_fact_job *j, uint64_t number,
                         struct gl_message *ret, gl_str *ret_step)
{
    struct gl_json json;
    struct gl_body_ref ref;
    bool has_ref = false;
    gl_str id =
        gl_str_fmt(&c->arena, "%.*s/%012llu", GL_STR_ARG(j->id), (unsigned long long)number);
    const struct sim_disk_record *r = sim_disk_peek(c->disk, SIM_CONTEXT, GL_S("letter"), id);
    if (r == NULL || gl_json_parse(&json, r->value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return false;
    }
    *ret_step = gl_json_str(&json, gl_json_get(&json, gl_json_root(&json), "step"), &c->arena);
    return sim_messages_read(c->disk, id, r->value, &c->arena, ret, &has_ref, &ref) &&
           (!has_ref || sim_messages_body(c->disk, j->id, &ref, &c->arena, &ret->body));
}

/* An agent that has no state yet is given an empty one. */
static bool is_none(gl_str state)
{
    return state.n == 0 || gl_str_is(state, "null") || gl_str_is(state, "{}");
}

/* Else its worker's output will be ignored. */
static bool is_current(struct sim_fact_job *j, gl_str step, uint32_t attempt)
{
    const struct sim_fact_step *st = step.n > 0 ? sim_facts_step(j, step) : NULL;
    return st != NULL && st->r.status == GL_STEP_RUNNING && st->r.attempt_count == attempt;
}

static void check_turn(struct sim_checks *c, struct sim_fact_job *j, const struct sim_fact_step *st,
                       const struct sim_process *p)
{
    struct gl_message sent = {0}, got = {0};
    struct gl_message_ledger ledger = {0};
    gl_str step = {0};
    char id[64];
    if (st->r.attempt_count != p->number || st->r.status != GL_STEP_RUNNING) {
        return; /* it comes late, and its result is not awaited any more */
    }
    if (!read_message(c, j, st->r.letter, &sent, &step) ||
        gl_message_read(gl_buf_view(&p->message), &c->arena, &got, NULL) != 0) {
        sim_world_fail(c->world, "given: %.*s of job %.*s runs without a message",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id));
        return;
    }
    bool counts = is_current(j, step, st->r.mail_attempt);
    gl_message_ledger_of(got.headers, &c->arena, &ledger);
    (void)snprintf(id, sizeof(id), ledger.attempt > 1 ? "%.*s-%llu.%u" : "%.*s-%llu",
                   GL_STR_ARG(j->id), (unsigned long long)st->r.letter, ledger.attempt);
    if (!gl_str_is(got.message_id, id) || !gl_str_eq(got.body, sent.body) ||
        !gl_str_eq(got.from, sent.from) || !gl_str_eq(got.type, sent.type)) {
        sim_world_fail(c->world, "given: %.*s of job %.*s was given message %.*s, not %s as sent",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), GL_STR_ARG(got.message_id), id);
    } else if (counts &&
               (!gl_str_eq(ledger.step_id, step) || ledger.attempt != st->r.mail_attempt)) {
        sim_world_fail(c->world,
                       "given: %.*s of job %.*s works for attempt %u of %.*s, not for %u of %.*s",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id), ledger.attempt,
                       GL_STR_ARG(ledger.step_id), st->r.mail_attempt, GL_STR_ARG(step));
    } else if (is_none(st->output) ? !is_none(gl_buf_view(&p->state))
                                   : !gl_str_eq(gl_buf_view(&p->state), st->output)) {
        sim_world_fail(c->world, "given: %.*s of job %.*s was given the state %.*s, not %.*s",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id),
                       GL_STR_ARG(gl_buf_view(&p->state)), GL_STR_ARG(st->output));
    }
}

static void on_start(struct sim_checks *c, void *me, struct sim_fact_job *j,
                     struct sim_fact_step *st, const struct sim_process *p)
{
    (void)me;
    const struct gl_step_spec *spec = st->spec;
    const struct sim_fact_step *settled = st->group != NULL ? st->group : st;
    struct gl_json facts;
    if (j->flow->bundle != NULL) {
        check_turn(c, j, st, p);
        return;
    }
    if (!settled->is_settled || gl_str_is(spec->driver, "noop")) {
        return;
    }
    if (!sim_known_facts(c, j, st, &facts)) {
        sim_world_fail(c->world, "given: %.*s of job %.*s runs for an item that does not exist",
                       GL_STR_ARG(p->attempt), GL_STR_ARG(j->id));
        return;
    }
    gl_str item = GL_S("GLIA_ITEM=${job.item}");
    struct gl_strs items = {.items = &item, .n = st->group != NULL ? 1 : 0};
    (void)(check_list(c, &spec->argv, (spec->expand & GL_EXPAND_ARGV) != 0, &facts, p) &&
           check_list(c, &spec->env, (spec->expand & GL_EXPAND_ENV) != 0, &facts, p) &&
           check_list(c, &items, true, &facts, p)); /* the first failure is enough */
}

const struct sim_check sim_check_given = {.name = "given", .on_start = on_start};
