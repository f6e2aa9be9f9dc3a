/* gate.c - the waits of steps that run no program, and the gate of every other step.
 *
 * GL_GATE_OPEN is written in the transaction of what the gate decided, so a crash leaves the gate
 * either undecided or decided with its consequences. */
#include "core/flow/gate.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/flow/items.h"
#include "core/flow/ledger.h"
#include "core/flow/signals.h"
#include "core/flow/txn.h"
#include "core/recovery/load.h"
#include "model/text/cond.h"
#include "model/text/ref.h"

enum { FACTS_RETRY_MS = 250 };

/* ---- steps that only wait ---- */

/* The due time is in the step's record, so a sleep survives the node. */
static void sleep_until(struct gl_core *c, struct gl_step *st, gl_ms at)
{
    char when[GL_TIMES_BYTES];

    GL_ASSERT(st->r.status == GL_STEP_READY);
    if (at <= c->now) {
        gl_ledger_succeed(c, st, (gl_str){0});
        return;
    }
    gl_ledger_block(
        c, st, GL_BLOCK_TIMER,
        gl_str_fmt(c->out->arena, "sleeps until %.*s", GL_STR_ARG(gl_times_format(at, when))));
    st->r.due_at = at;
    gl_step_set_due(c, st);
}

static void set_timeout(struct gl_core *c, struct gl_step *st)
{
    gl_ms timeout = gl_step_spec_of(st)->timeout_ms;

    GL_ASSERT(st->r.status == GL_STEP_BLOCKED);
    st->r.due_at = timeout > 0 ? c->now + timeout : 0;
    gl_step_set_due(c, st);
}

static void wait_for_signal(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_READY);
    if (gl_signals_take(c, st)) {
        return;
    }
    gl_ledger_block(c, st, GL_BLOCK_SIGNAL,
                    gl_str_fmt(c->out->arena, "waits for the signal '%.*s'",
                               GL_STR_ARG(gl_step_spec_of(st)->signal)));
    set_timeout(c, st);
}

gl_str gl_gate_choices(struct gl_core *c, const struct gl_step_spec *spec)
{
    gl_str all = {0};

    for (size_t i = 0; i < spec->decisions.n; i++) {
        all = gl_str_fmt(c->out->arena, "%.*s%s%.*s", GL_STR_ARG(all), i > 0 ? "," : "",
                         GL_STR_ARG(spec->decisions.items[i]));
    }
    return all;
}

/* Truncates a long question and marks it, so that the person who decides knows there is more. */
static gl_str truncate_question(struct gl_core *c, gl_str question)
{
    size_t n = question.n, room = GL_REASON_BYTES_MAX - sizeof(" [... 131071 bytes in total]");

    if (n <= GL_REASON_BYTES_MAX) {
        return question;
    }
    question.n = room;
    while (question.n > 0 && ((unsigned char)question.p[question.n] & 0xc0) == 0x80) {
        question.n--; /* not in the middle of a character */
    }
    GL_ASSERT(question.n <= room);
    return gl_str_fmt(c->out->arena, "%.*s [... %zu bytes in total]", GL_STR_ARG(question), n);
}

/* Blocks the step until a person decides. */
static void ask_for_approval(struct gl_core *c, struct gl_step *st, gl_str question)
{
    GL_ASSERT(st->r.status == GL_STEP_READY);
    gl_core_set(c, &st->r.asked, truncate_question(c, question));
    gl_core_set(c, &st->r.choices, gl_gate_choices(c, gl_step_spec_of(st)));
    gl_ledger_block(c, st, GL_BLOCK_APPROVAL, st->r.asked);
    set_timeout(c, st);
}

/* Expands text that may be a reference; a value that is not a string is used as its JSON. */
static int expand_text(struct gl_core *c, gl_str text, const struct gl_json *facts, gl_str *ret,
                       struct gl_why *why)
{
    if (!gl_ref_has(text)) {
        *ret = text;
        return 0;
    }
    GL_ASSERT(facts != NULL);
    return gl_ref_expand(text, facts, c->out->arena, ret, why);
}

/* A step that runs no program: sleep, until, signal or approval. */
static int start_waiting(struct gl_core *c, struct gl_step *st, const struct gl_json *facts,
                         struct gl_why *why)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    gl_str text = {0};
    gl_ms t;
    int rc = expand_text(c,
                         spec->sleep.n > 0   ? spec->sleep
                         : spec->until.n > 0 ? spec->until
                                             : spec->approval,
                         facts, &text, why);

    GL_ASSERT(gl_flow_waits(spec));
    GL_ASSERT(st->r.status == GL_STEP_READY);
    if (rc != 0) {
        return rc;
    }
    st->r.started_at = c->now;
    if (spec->sleep.n > 0) {
        if (!gl_times_parse_span(gl_str_trim(text), &t)) {
            return gl_why(why, GL_E_INVALID, "sleep: '%.*s' is not a duration", GL_STR_ARG(text));
        }
        sleep_until(c, st, c->now + t);
    } else if (spec->until.n > 0) {
        if (!gl_times_parse(gl_str_trim(text), &t)) {
            return gl_why(why, GL_E_INVALID,
                          "until: '%.*s' is not a time such as 2026-12-01T06:00:00Z",
                          GL_STR_ARG(text));
        }
        sleep_until(c, st, t);
    } else if (spec->signal.n > 0) {
        wait_for_signal(c, st);
    } else {
        ask_for_approval(c, st, text);
    }
    return 0;
}

bool gl_gate_accepts_decision(const struct gl_step_spec *spec, gl_str decision)
{
    for (size_t i = 0; i < spec->decisions.n; i++) {
        if (gl_str_eq(spec->decisions.items[i], decision)) {
            return true;
        }
    }
    return false;
}

void gl_gate_decide(struct gl_core *c, struct gl_step *st, gl_str decision, gl_str why,
                    gl_str output)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_buf text = {0};
    struct gl_jw w;

    GL_ASSERT(spec->decisions.n > 0);
    GL_ASSERT(st->r.status == GL_STEP_BLOCKED);
    if (!gl_str_eq(spec->decisions.items[0], decision) && !GL_PLANT(18)) {
        gl_ledger_fail(c, st,
                       gl_str_fmt(c->out->arena, "the decision was '%.*s': %.*s",
                                  GL_STR_ARG(decision), GL_STR_ARG(why)),
                       false);
        return;
    }
    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_key(&w, "decision");
    gl_jw_str(&w, decision);
    gl_jw_key(&w, "by");
    gl_jw_str(&w, st->r.decided_by);
    if (output.n > 0) {
        gl_jw_key(&w, "data");
        gl_jw_raw(&w, output);
    }
    gl_jw_end(&w);
    gl_ledger_succeed(c, st, gl_buf_view(&text));
    gl_buf_done(&text);
}

/* What a blocked step waited for did not happen in time; for a sleep, the time has come. */
static void on_timeout_passed(struct gl_core *c, struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    char span[GL_TIMES_BYTES];
    gl_str within = gl_times_format_span(spec->timeout_ms, span);

    GL_ASSERT(st->r.status == GL_STEP_BLOCKED);
    GL_ASSERT(st->r.due_at == 0);
    if (st->r.blocked_on == GL_BLOCK_TIMER) {
        gl_ledger_succeed(c, st, (gl_str){0});
    } else if (st->r.blocked_on == GL_BLOCK_SIGNAL) {
        gl_ledger_fail(c, st,
                       gl_str_fmt(c->out->arena, "no signal '%.*s' arrived within %.*s",
                                  GL_STR_ARG(spec->signal), GL_STR_ARG(within)),
                       false);
    } else if (spec->on_timeout.n > 0) {
        GL_MARK(c->trace, "gate.nobody_decided");
        gl_core_set(c, &st->r.decision, spec->on_timeout);
        gl_gate_decide(c, st, spec->on_timeout,
                       gl_str_fmt(c->out->arena, "no decision within %.*s", GL_STR_ARG(within)),
                       (gl_str){0});
    } else {
        gl_ledger_fail(
            c, st, gl_str_fmt(c->out->arena, "no decision within %.*s", GL_STR_ARG(within)), false);
    }
}

void gl_gate_on_timer(struct gl_core *c, struct gl_step *st)
{
    if (st->r.status == GL_STEP_READY) { /* the facts could not be read: ask again */
        st->probe_at = 0;
        st->resolving = false;
        GL_ASSERT(gl_list_empty(&st->work));
        gl_list_push(&st->job->ready, &st->work);
        gl_step_set_due(c, st);
        return;
    }
    GL_ASSERT(st->r.status == GL_STEP_BLOCKED);
    st->r.due_at = 0;
    on_timeout_passed(c, st);
}

/* ---- the gate ---- */

/* A retry of a bundle reuses nothing: the work of its steps is in messages and agents' states. */
static bool is_plain_flow(const struct gl_step *st)
{
    return st->job->spec->flow->bundle == NULL || GL_PLANT(41); /* planted: always */
}

/* May the step be reused from the job that this one retries? Only if every parent was, or its
 * inputs may differ; and not the step from which the retry is to start again. */
static bool may_be_reused(const struct gl_step *st)
{
    const struct gl_job_record *r = &st->job->r;

    return r->retry_of.n > 0 && is_plain_flow(st) && st->item < 0 && st->r.attempt_count == 0 &&
           (st->r.up_reused == gl_step_spec_of(st)->needs_n || GL_PLANT(17)) &&
           !gl_str_eq(r->retry_from, st->r.step_id);
}

bool gl_gate_skip_is_same(const struct gl_step *st)
{
    const struct gl_job_record *r = &st->job->r;

    GL_ASSERT(st->job->memory == GL_MEM_HOT);
    if (r->retry_of.n == 0 || !is_plain_flow(st) || r->verdict != GL_VERDICT_NONE ||
        st->item >= 0 || st->r.attempt_count > 0 || gl_str_eq(r->retry_from, st->r.step_id)) {
        return false;
    }
    /* A pending step is skipped by its rule: the same if all parents that have ended were reused. A
     * ready step is skipped by its condition: the same if the earlier job had skipped it. */
    return st->r.status == GL_STEP_PENDING ? st->r.up_reused == st->r.up_ended : st->was_skipped;
}

static bool needs_facts(const struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);

    if (st->item >= 0) { /* its step has passed the gate; only the key can depend on the item */
        return gl_ref_has(spec->limit_key);
    }
    return spec->has_gate || may_be_reused(st);
}

/* Emits RESOLVE. The step is in no list until the answer comes; losing the answer is harmless,
 * because a load asks again. */
static void request_facts(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    struct gl_effect *e = gl_txn_effect(c, j, GL_FX_RESOLVE);

    GL_ASSERT(st->r.status == GL_STEP_READY);
    GL_ASSERT(!st->resolving);
    gl_list_remove(&st->work);
    st->resolving = true;
    e->spec = j->spec;
    gl_spec_ref(j->spec);
    e->step_number = gl_step_place(st);
    e->of = st->of;
    e->item = st->item;
    e->step_id = gl_str_dup(c->out->arena, st->r.step_id);
    e->run_id = gl_str_dup(c->out->arena, j->r.run_id);
    e->submitted_at = j->r.submitted_at;
    e->retry_of = may_be_reused(st) ? gl_str_dup(c->out->arena, j->r.retry_of) : (gl_str){0};
}

/* If the earlier job completed the step, completes it with the same output. */
static bool reuse(struct gl_core *c, struct gl_step *st, const struct gl_json *facts)
{
    gl_jnode earlier = gl_json_get(facts, gl_json_root(facts), "earlier");
    gl_str status = gl_json_str(facts, gl_json_get(facts, earlier, "status"), c->out->arena);
    gl_jnode output = gl_json_get(facts, earlier, "output");
    gl_jnode list =
        gl_json_get(facts, gl_json_root(facts), "earlier_output"); /* foreach: the list */
    gl_str from = gl_json_str(facts, gl_json_get(facts, earlier, "reused_from"), c->out->arena);

    GL_ASSERT(st->r.status == GL_STEP_READY);
    GL_ASSERT(st->job->r.retry_of.n > 0);
    if (!gl_str_is(status, "completed")) {
        return false;
    }
    GL_MARK(c->trace, "gate.reused");
    st->r.gate |= GL_GATE_REUSED;
    gl_core_set(c, &st->r.reused_from, from.n > 0 ? from : st->job->r.retry_of);
    output = output != NULL ? output : list;
    gl_ledger_succeed(c, st, output != NULL ? gl_json_raw(facts, output) : (gl_str){0});
    return true;
}

static int eval_when(struct gl_core *c, struct gl_step *st, const struct gl_json *facts,
                     bool *ret_yes, struct gl_why *why)
{
    const struct gl_cond *cond;
    size_t at;
    int rc = gl_cond_parse(gl_step_spec_of(st)->when, c->out->arena, &cond, &at, why);

    GL_ASSERT(gl_step_spec_of(st)->when.n > 0);
    if (rc == 0) {
        rc = gl_cond_eval(cond, facts, c->out->arena, ret_yes, why);
    }
    return GL_PLANT(16) ? 0 : rc; /* planted: a condition that cannot be evaluated is true */
}

/* Evaluates `foreach`: the number of items. */
static int count_items(struct gl_core *c, struct gl_step *st, const struct gl_json *facts,
                       uint32_t *ret, struct gl_why *why)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    gl_str text = spec->foreach;
    struct gl_json list;
    int rc = 0;

    GL_ASSERT(st->item < 0);
    GL_ASSERT(st->r.status == GL_STEP_READY);
    if (gl_ref_has(text)) {
        rc = gl_ref_json(text, facts, c->out->arena, &text, why);
    }
    if (rc == 0) {
        rc = gl_json_parse(&list, text, GL_RECORD_BYTES_MAX, c->out->arena, why);
    }
    if (rc != 0) {
        return rc;
    }
    if (!gl_json_is(gl_json_root(&list), GL_JSON_ARRAY)) {
        return gl_why(why, GL_E_INVALID, "foreach: expected a list, got %s",
                      gl_json_type_name(gl_json_root(&list)));
    }
    *ret = gl_json_root(&list)->count;
    if (*ret > spec->items_max) {
        return gl_why(why, GL_E_LIMIT, "foreach: %u items, but max_items is %u", *ret,
                      spec->items_max);
    }
    if (st->job->r.items_n + *ret > GL_JOB_ITEMS_MAX) {
        return gl_why(why, GL_E_LIMIT, "foreach: a job may have at most %d items in total",
                      GL_JOB_ITEMS_MAX);
    }
    return 0;
}

static int resolve_limit_key(struct gl_core *c, struct gl_step *st, const struct gl_json *facts,
                             struct gl_why *why)
{
    gl_str key = {0};
    int rc = expand_text(c, gl_step_spec_of(st)->limit_key, facts, &key, why);

    GL_ASSERT(gl_step_spec_of(st)->limit_key.n > 0);
    if (rc == 0 && key.n > GL_KEY_BYTES_MAX) {
        rc = gl_why(why, GL_E_LIMIT, "concurrency: a key may have at most %d bytes",
                    GL_KEY_BYTES_MAX);
    }
    if (rc == 0) {
        gl_core_set(c, &st->r.limit_key, key);
    }
    return rc;
}

/* Decides the gate; everything it depends on is known. *ret_queue: the step may be queued.
 * Otherwise it has left READY. */
static int open_gate(struct gl_core *c, struct gl_step *st, const struct gl_json *facts,
                     bool *ret_queue, struct gl_why *why)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    bool yes = true;
    uint32_t items_n = 0;
    int rc = 0;

    GL_ASSERT(st->r.status == GL_STEP_READY);
    GL_ASSERT((st->r.gate & GL_GATE_OPEN) == 0);
    *ret_queue = false;
    if (st->item < 0) {
        if (spec->when.n > 0) {
            rc = eval_when(c, st, facts, &yes, why);
        }
        if (rc == 0 && yes && spec->foreach.n > 0) {
            rc = count_items(c, st, facts, &items_n, why);
        }
    }
    if (rc == 0 && yes && spec->limit_key.n > 0 && (spec->foreach.n == 0 || st->item >= 0)) {
        rc = resolve_limit_key(c, st, facts, why);
    }
    if (rc != 0) {
        return rc;
    }
    st->r.gate |= GL_GATE_OPEN; /* committed with what follows: never decided twice */
    if (!yes) {
        gl_ledger_skip(
            c, st,
            gl_str_fmt(c->out->arena, "its condition is false: %.*s", GL_STR_ARG(spec->when)));
    } else if (spec->foreach.n > 0 && st->item < 0) {
        if (items_n == 0) {
            GL_MARK(c->trace, "gate.no_items");
            gl_ledger_succeed(c, st, GL_S("[]"));
        } else {
            gl_items_begin(c, st, items_n);
        }
    } else if (gl_flow_waits(spec)) {
        return start_waiting(c, st, facts, why);
    } else {
        *ret_queue = true;
    }
    return 0;
}

bool gl_gate_pass(struct gl_core *c, struct gl_step *st)
{
    struct gl_why why = {0};
    bool queue;

    GL_ASSERT(!st->resolving);
    GL_ASSERT(st->job->r.status == GL_JOB_RUNNING);
    GL_ASSERT(st->r.status == GL_STEP_READY);
    if ((st->r.gate & GL_GATE_OPEN) != 0) {
        return true;
    }
    if (needs_facts(st)) {
        request_facts(c, st);
        return false;
    }
    if (open_gate(c, st, NULL, &queue, &why) != 0) {
        gl_ledger_fail(c, st, gl_str_of(why.text), false);
        return false;
    }
    return queue;
}

/* Was it skipped in the job that this one retries, or never reached? */
static bool was_skipped(struct gl_core *c, const struct gl_json *facts, gl_jnode earlier)
{
    gl_str status = gl_json_str(facts, gl_json_get(facts, earlier, "status"), c->out->arena);

    return status.n == 0 || gl_str_is(status, "skipped") || gl_str_is(status, "pending");
}

/* The facts have been read: decides whether to reuse the step, then the rest of the gate. */
static void on_facts(struct gl_core *c, struct gl_step *st, const struct gl_event *ev)
{
    struct gl_json facts;
    struct gl_why why = {0};
    bool queue = false;
    int rc = gl_json_parse(&facts, ev->resolved.facts, GL_RECORD_BYTES_MAX, c->out->arena, &why);

    GL_ASSERT(st->r.status == GL_STEP_READY);
    GL_ASSERT(!st->resolving);
    GL_ASSERT(st->job->r.verdict == GL_VERDICT_NONE);
    if (rc == 0 && may_be_reused(st)) {
        gl_jnode earlier = gl_json_get(&facts, gl_json_root(&facts), "earlier");

        if (!gl_json_is(earlier, GL_JSON_OBJECT)) { /* it became reusable after we asked */
            GL_MARK(c->trace, "gate.asked_again");
            request_facts(c, st);
            return;
        }
        if (reuse(c, st, &facts)) {
            return;
        }
        st->was_skipped = was_skipped(c, &facts, earlier);
    }
    if (rc == 0) {
        rc = open_gate(c, st, &facts, &queue, &why);
    }
    st->was_skipped = false;
    if (rc != 0) {
        gl_ledger_fail(c, st, gl_str_of(why.text), false);
    } else if (queue) {
        gl_list_push(&st->job->ready, &st->work);
        gl_txn_dirty(c, st);
    }
}

void gl_gate_on_resolved(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_job *j = gl_job_find(c, ev->job);
    struct gl_step *st =
        j != NULL && j->memory == GL_MEM_HOT ? gl_step_at(j, ev->resolved.step_number) : NULL;

    GL_ASSERT(ev->type == GL_EV_RESOLVED);
    if (st != NULL && gl_step_is_unit(st)) {
        gl_agents_on_resolved(c, j, ev);
        return;
    }
    if (st == NULL || !st->resolving || st->r.status != GL_STEP_READY) {
        GL_MARK(c->trace, "gate.late_facts");
        return; /* the job was loaded again meanwhile: it has asked again, or will */
    }
    st->resolving = false;
    gl_txn_touch(c, j);
    if (j->r.verdict != GL_VERDICT_NONE) {
        return; /* the job is ending: winding down skips the step */
    }
    if (ev->resolved.code == GL_E_UNAVAILABLE) {
        GL_MARK(c->trace, "gate.facts_were_away");
        st->resolving = true; /* until the timer puts it back */
        st->probe_at = c->now + FACTS_RETRY_MS;
        gl_step_set_due(c, st);
    } else if (j->r.status != GL_JOB_RUNNING) {
        GL_MARK(c->trace, "gate.paused_meanwhile");
        gl_list_push(&j->ready, &st->work); /* paused: the gate asks again after the resume */
    } else if (ev->resolved.code != 0) {
        gl_ledger_fail(c, st, ev->resolved.why, false);
    } else {
        on_facts(c, st, ev);
    }
}
