#include "api/reason.h"

#include "base/check.h"
#include "base/limits.h"
#include "model/agent.h"

enum { NAMES_MAX = 3, PARENTS_MAX = 200 };

static gl_str at(struct gl_arena *a, gl_ms t)
{
    char buf[GL_WHEN_BYTES];

    return gl_str_dup(a, gl_when_format(t, buf));
}

/* "a", "a and b", "a, b, c and 4 more" */
static gl_str names(struct gl_arena *a, const gl_str *all, size_t n, size_t total)
{
    struct gl_buf out = {0};
    gl_str text;

    for (size_t i = 0; i < n; i++) {
        gl_buf_fmt(&out, "%s'%.*s'",
                   i == 0           ? ""
                   : i + 1 == total ? " and "
                                    : ", ",
                   GL_STR_ARG(all[i]));
    }
    if (total > n) {
        gl_buf_fmt(&out, " and %zu more", total - n);
    }
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static bool has_ended(const struct gl_step_record *r)
{
    return r != NULL && gl_step_status_is_terminal(r->status);
}

/* ---- several nodes ---- */

static gl_str span(struct gl_arena *a, gl_ms ms)
{
    char buf[GL_WHEN_BYTES];

    /* Whole seconds: nobody counts the rest. */
    return gl_str_dup(a, gl_when_span((ms + 999) / 1000 * 1000, buf));
}

static bool is_elsewhere(const struct gl_view *v)
{
    return v->owner != NULL && !v->owner->is_own;
}

/* What hangs on who has the job, behind any sentence about it; "" if it is the node that is asked.
 */
static gl_str where(struct gl_arena *a, const struct gl_view *v)
{
    const struct gl_nodes_owner *o = v->owner;

    if (!is_elsewhere(v)) {
        return (gl_str){0};
    }
    if (o->session.n == 0 && v->job.status == GL_JOB_PAUSED) {
        return (gl_str){0}; /* nobody needs to */
    }
    if (o->session.n == 0) {
        return GL_S("; no node has it at present: the next one with free slots takes it");
    }
    switch (o->status) {
    case GL_NODE_ALIVE:
        return o->left_ms == INT64_MAX
                   ? gl_str_fmt(a, " (on node %.*s)", GL_STR_ARG(o->node))
                   : gl_str_fmt(a,
                                " (on node %.*s; should that fall silent, another takes it over in "
                                "about %.*s)",
                                GL_STR_ARG(o->node), GL_STR_ARG(span(a, o->left_ms)));
    case GL_NODE_LATE:
        return gl_str_fmt(a,
                          "; its node %.*s is late by %.*s: another takes the job over as soon as "
                          "that is declared dead",
                          GL_STR_ARG(o->node), GL_STR_ARG(span(a, -o->left_ms)));
    case GL_NODE_DEAD:
        return gl_str_fmt(a, "; its node %.*s is dead: the next node that looks takes the job over",
                          GL_STR_ARG(o->node));
    case GL_NODE_STATUS_COUNT:
        break;
    }
    GL_UNREACHABLE();
}

static gl_str inbox(struct gl_arena *a, const struct gl_view *v)
{
    uint32_t n = v->owner != NULL ? v->owner->inbox_n : 0;

    return n == 0 ? (gl_str){0}
                  : gl_str_fmt(a, "; %u command%s for it wait%s in the inbox of node %.*s", n,
                               n == 1 ? "" : "s", n == 1 ? "s" : "",
                               GL_STR_ARG(v->owner->node.n > 0 ? v->owner->node
                                                               : GL_S("whoever takes it")));
}

/* ---- steps ----
 *
 * What is said of a step is a predicate: it stands by itself, and behind "step 'x' " in what is
 * said of its job. */

static gl_str pending(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec)
{
    gl_str open[NAMES_MAX];
    size_t open_n = 0, ended_n = 0, looked_at = 0;

    for (uint32_t i = 0; i < spec->needs_n && looked_at < PARENTS_MAX; i++, looked_at++) {
        if (has_ended(v->steps[spec->needs[i]])) {
            ended_n++;
        } else if (open_n < NAMES_MAX) {
            open[open_n++] = gl_flow_step(v->flow, spec->needs[i])->id;
        }
    }
    if (gl_job_status_is_terminal(v->job.status)) {
        return GL_S("was not reached before the job ended");
    }
    if (open_n == 0) {
        return GL_S("is about to be looked at");
    }
    return gl_str_fmt(a, "waits for %.*s to end (%zu of %u have; rule %s)",
                      GL_STR_ARG(names(a, open, open_n, spec->needs_n - ended_n)), ended_n,
                      spec->needs_n, gl_rule_words[spec->rule]);
}

static gl_str queued(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                     uint32_t number, const struct gl_reason_live *live)
{
    struct gl_buf out = {0};
    gl_str text;

    if (v->job.status == GL_JOB_PAUSED || v->job.status == GL_JOB_PAUSING) {
        return gl_str_fmt(a, "is held with its job: %.*s", GL_STR_ARG(v->job.reason));
    }
    if (is_elsewhere(v) && v->owner->session.n > 0) {
        return gl_str_fmt(a, "waits for %u slot%s of pool '%.*s' on node %.*s%s", spec->slots,
                          spec->slots == 1 ? "" : "s", GL_STR_ARG(spec->pool),
                          GL_STR_ARG(v->owner->node),
                          v->owner->status == GL_NODE_ALIVE ? "" : ", which does not answer");
    }
    if (is_elsewhere(v)) {
        return gl_str_fmt(a, "waits for a node with %u free slot%s of pool '%.*s'", spec->slots,
                          spec->slots == 1 ? "" : "s", GL_STR_ARG(spec->pool));
    }
    if (live == NULL) {
        return gl_str_fmt(a,
                          "waits for %u slot%s of pool '%.*s', and no node is running to give it "
                          "any: start one with 'glia serve'",
                          spec->slots, spec->slots == 1 ? "" : "s", GL_STR_ARG(spec->pool));
    }
    live->step(live->owner, v->job.job_id, number, &out);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text.n > 0 ? text
                      : gl_str_fmt(a, "waits for slots of pool '%.*s'", GL_STR_ARG(spec->pool));
}

static gl_str running(struct gl_arena *a, const struct gl_view *v, const struct gl_step_record *r)
{
    gl_str until = r->deadline_at > 0 ? gl_str_fmt(a, ", until %.*s at the latest",
                                                   GL_STR_ARG(at(a, r->deadline_at)))
                                      : GL_S("");

    gl_str node = v->owner != NULL && r->node.n > 0
                      ? gl_str_fmt(a, " on node %.*s", GL_STR_ARG(r->node))
                      : (gl_str){0};

    if (r->stopping != GL_STOP_NONE) {
        return gl_str_fmt(
            a, "is being stopped in attempt %u%.*s: %.*s", r->attempt_count, GL_STR_ARG(node),
            GL_STR_ARG(v->job.reason.n > 0 ? v->job.reason : GL_S("its time is over")));
    }
    return gl_str_fmt(a, "runs attempt %u%.*s since %.*s%.*s", r->attempt_count, GL_STR_ARG(node),
                      GL_STR_ARG(at(a, r->attempt_at)), GL_STR_ARG(until));
}

static gl_str blocked(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                      const struct gl_step_record *r)
{
    gl_str until =
        r->due_at > 0 ? gl_str_fmt(a, ", until %.*s", GL_STR_ARG(at(a, r->due_at))) : GL_S("");
    gl_str job = v->job.job_id;

    switch ((enum gl_block)r->blocked_on) {
    case GL_BLOCK_REVIEW:
        return gl_str_fmt(a,
                          "waits for a person: %.*s; decide with 'glia human respond %.*s %.*s "
                          "--decision rerun|done|failed'",
                          GL_STR_ARG(r->last_error), GL_STR_ARG(job), GL_STR_ARG(r->step_id));
    case GL_BLOCK_APPROVAL:
        return gl_str_fmt(
            a,
            "waits for a person to decide%.*s: %.*s; answer with 'glia human respond "
            "%.*s %.*s --decision %.*s'",
            GL_STR_ARG(until), GL_STR_ARG(r->asked), GL_STR_ARG(job), GL_STR_ARG(r->step_id),
            GL_STR_ARG(spec->decisions.n > 0 ? spec->decisions.items[0] : GL_S("...")));
    case GL_BLOCK_SIGNAL:
        return gl_str_fmt(a,
                          "waits for the signal '%.*s'%.*s: send it with 'glia job signal %.*s "
                          "%.*s'",
                          GL_STR_ARG(spec->signal), GL_STR_ARG(until), GL_STR_ARG(job),
                          GL_STR_ARG(spec->signal));
    case GL_BLOCK_TIMER:
        return gl_str_fmt(a, "sleeps until %.*s", GL_STR_ARG(at(a, r->due_at)));
    case GL_BLOCK_NONE:
    case GL_BLOCK_DEPENDENCY:
    case GL_BLOCK_LIMIT:
        break;
    }
    return gl_str_fmt(a, "is blocked: %.*s", GL_STR_ARG(r->last_error));
}

static gl_str ended(struct gl_arena *a, const struct gl_step_record *r)
{
    if (r->status == GL_STEP_COMPLETED && r->reused_from.n > 0) {
        return gl_str_fmt(a, "was completed by job %.*s, whose output is reused",
                          GL_STR_ARG(r->reused_from));
    }
    if (r->status == GL_STEP_COMPLETED) {
        return gl_str_fmt(a, "completed at %.*s", GL_STR_ARG(at(a, r->ended_at)));
    }
    return gl_str_fmt(a, "%s: %.*s",
                      r->status == GL_STEP_PARTIAL  ? "failed, and the job goes on"
                      : r->status == GL_STEP_FAILED ? "failed"
                                                    : "was skipped",
                      GL_STR_ARG(r->terminal_reason));
}

/* ---- bundles ---- */

bool gl_reason_is_idle(const struct gl_view *v, uint32_t number)
{
    const struct gl_step_record *r = v->steps[number];

    return gl_flow_is_unit(v->flow, number) &&
           (r == NULL || r->status == GL_STEP_PENDING || r->status == GL_STEP_WAITING);
}

/* What is said of agents and their steps only; "" : the usual. */
static gl_str explain_bundle(struct gl_arena *a, const struct gl_view *v,
                             const struct gl_step_spec *spec, const struct gl_step_record *r,
                             uint32_t number)
{
    if (gl_job_status_is_terminal(v->job.status)) {
        return (gl_str){0};
    }
    if (number < v->flow->steps.n && gl_reason_is_idle(v, number)) {
        return GL_S("waits for messages");
    }
    if (spec->is_bound && r->status == GL_STEP_READY && v->job.status == GL_JOB_RUNNING) {
        return gl_str_fmt(a, "waits for a message to its agent '%.*s', or for that to be free",
                          GL_STR_ARG(spec->agent_ids.items[0]));
    }
    if (spec->is_bound && r->status == GL_STEP_WAITING && r->items_n == 0) {
        return GL_S("waits at a checkpoint for the steps it has added");
    }
    return (gl_str){0};
}

static gl_str explain(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                      const struct gl_step_record *r, uint32_t number,
                      const struct gl_reason_live *live)
{
    gl_str of_bundle =
        v->flow->bundle != NULL ? explain_bundle(a, v, spec, r, number) : (gl_str){0};

    if (of_bundle.n > 0) {
        return of_bundle;
    }
    switch ((enum gl_step_status)r->status) {
    case GL_STEP_PENDING:
        return pending(a, v, spec);
    case GL_STEP_READY:
        return v->job.status == GL_JOB_RUNNING
                   ? GL_S("waits until what its condition, items or limit need has been read")
                   : gl_str_fmt(a, "is held with its job: %.*s", GL_STR_ARG(v->job.reason));
    case GL_STEP_QUEUED:
        return queued(a, v, spec, number, live);
    case GL_STEP_RUNNING:
        return running(a, v, r);
    case GL_STEP_RETRY_WAIT:
        if (r->lost_at_1 > 0 && r->lost_at_1 >= r->attempt_at) { /* it did not fail */
            return gl_str_fmt(a, "waits until %.*s, then attempt %u follows: %.*s",
                              GL_STR_ARG(at(a, r->retry_at)), r->attempt_count + 1,
                              GL_STR_ARG(r->last_error));
        }
        return gl_str_fmt(a, "failed in attempt %u (%.*s) and is tried again at %.*s (%u of %u)",
                          r->attempt_count, GL_STR_ARG(r->last_error),
                          GL_STR_ARG(at(a, r->retry_at)), r->counted + 1, spec->retry.attempts);
    case GL_STEP_BLOCKED:
        return blocked(a, v, spec, r);
    case GL_STEP_WAITING:
        return gl_str_fmt(a, "waits for its items: %u of %u have ended (%u failed), %u under way",
                          r->items_ended, r->items_n, r->items_failed,
                          r->items_made - r->items_ended);
    case GL_STEP_COMPLETED:
    case GL_STEP_PARTIAL:
    case GL_STEP_SKIPPED:
    case GL_STEP_FAILED:
        return ended(a, r);
    case GL_STEP_STATUS_COUNT:
        break;
    }
    GL_UNREACHABLE();
}

gl_str gl_reason_step(struct gl_arena *a, const struct gl_view *v, uint32_t number, int64_t item,
                      const struct gl_reason_live *live)
{
    static const struct gl_step_record unreached = {0};
    const struct gl_step_record *r = v->steps[number];
    uint32_t place = number;

    if (item >= 0) {
        GL_ASSERT((uint32_t)item < v->items[number].n);
        r = v->items[number].records[item];
        place = gl_flow_place(v->flow, number, item);
    }
    return explain(a, v, gl_flow_step(v->flow, number), r != NULL ? r : &unreached, place, live);
}

/* ---- jobs ---- */

struct census { /* which steps are where, a few by name */
    size_t n[GL_STEP_STATUS_COUNT];
    gl_str names[GL_STEP_STATUS_COUNT][NAMES_MAX];
    uint32_t first[GL_STEP_STATUS_COUNT];
    int64_t first_item[GL_STEP_STATUS_COUNT];
};

static void count(struct census *c, const struct gl_step_record *r, uint32_t number, int64_t item)
{
    size_t n = c->n[r->status]++;

    if (n == 0) {
        c->first[r->status] = number;
        c->first_item[r->status] = item;
    }
    if (n < NAMES_MAX) {
        c->names[r->status][n] = r->step_id;
    }
}

/* An agent whose step says the same already. */
static bool is_echo(const struct gl_view *v, uint32_t number)
{
    return gl_flow_is_unit(v->flow, number) &&
           (gl_reason_is_idle(v, number) || (v->steps[number]->status != GL_STEP_BLOCKED &&
                                             gl_flow_agent(v->flow, number)->step >= 0));
}

static void take_census(const struct gl_view *v, struct census *ret)
{
    for (uint32_t i = 0; i < v->flow->steps.n; i++) {
        if (v->steps[i] != NULL && !is_echo(v, i)) {
            count(ret, v->steps[i], i, -1);
        }
        for (uint32_t k = 0; k < v->items[i].n; k++) {
            if (v->items[i].records[k] != NULL) {
                count(ret, v->items[i].records[k], i, k);
            }
        }
    }
}

/* A running job: what runs, else what its most telling step waits for. */
static gl_str under_way(struct gl_arena *a, const struct gl_view *v,
                        const struct gl_reason_live *live)
{
    static const enum gl_step_status order[] = {GL_STEP_BLOCKED, GL_STEP_RETRY_WAIT,
                                                GL_STEP_QUEUED,  GL_STEP_WAITING,
                                                GL_STEP_READY,   GL_STEP_PENDING};
    struct census c = {0};

    take_census(v, &c);
    if (c.n[GL_STEP_RUNNING] > 0) {
        size_t n = c.n[GL_STEP_RUNNING];

        return gl_str_fmt(
            a, "runs %.*s",
            GL_STR_ARG(names(a, c.names[GL_STEP_RUNNING], n < NAMES_MAX ? n : NAMES_MAX, n)));
    }
    for (size_t i = 0; i < GL_COUNT(order); i++) {
        if (c.n[order[i]] > 0) {
            return gl_str_fmt(
                a, "step '%.*s' %.*s", GL_STR_ARG(c.names[order[i]][0]),
                GL_STR_ARG(gl_reason_step(a, v, c.first[order[i]], c.first_item[order[i]], live)));
        }
    }
    return GL_S("is about to begin");
}

static gl_str explain_job(struct gl_arena *a, const struct gl_view *v,
                          const struct gl_reason_live *live)
{
    const struct gl_job_record *r = &v->job;

    if (live != NULL && live->is_quarantined(live->owner, r->job_id)) {
        return gl_str_fmt(a,
                          "in quarantine: the node has crashed three times in a row while handling "
                          "it; 'glia job resume %.*s' lets it go on, 'glia job cancel' ends it",
                          GL_STR_ARG(r->job_id));
    }
    switch ((enum gl_job_status)r->status) {
    case GL_JOB_COMPLETED:
        return gl_str_fmt(a, "completed at %.*s", GL_STR_ARG(at(a, r->ended_at)));
    case GL_JOB_FAILED:
    case GL_JOB_CANCELLED:
        return r->reason;
    case GL_JOB_PAUSED:
        return r->hold == GL_HOLD_PERSON
                   ? gl_str_fmt(a, "%.*s; 'glia job resume %.*s' lets it go on",
                                GL_STR_ARG(r->reason), GL_STR_ARG(r->job_id))
                   : under_way(a, v, live);
    case GL_JOB_PAUSING:
        return gl_str_fmt(a, "%.*s; it still waits for running attempts to stop",
                          GL_STR_ARG(r->reason));
    case GL_JOB_CANCELLING:
        return gl_str_fmt(a, "%.*s; it still waits for running attempts to stop",
                          GL_STR_ARG(r->reason));
    case GL_JOB_PENDING:
    case GL_JOB_RUNNING:
        break;
    case GL_JOB_STATUS_COUNT:
        GL_UNREACHABLE();
    }
    if (r->verdict == GL_VERDICT_FAILED) {
        return gl_str_fmt(a, "%.*s; it still waits for running attempts to end",
                          GL_STR_ARG(r->reason));
    }
    return under_way(a, v, live);
}

gl_str gl_reason_job(struct gl_arena *a, const struct gl_view *v, const struct gl_reason_live *live)
{
    gl_str text = explain_job(a, v, live), place = where(a, v), waiting = inbox(a, v);

    return place.n + waiting.n == 0 ? text
                                    : gl_str_fmt(a, "%.*s%.*s%.*s", GL_STR_ARG(text),
                                                 GL_STR_ARG(place), GL_STR_ARG(waiting));
}
