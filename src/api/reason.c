/* reason.c - the sentences of `why`.
 *
 * The sentence about a step is a predicate ("waits for ..."): it is shown by itself, and after
 * "step 'x' " when it explains the job. A running job is explained by its most informative step
 * (under_way()).
 *
 * Every branch sets a code; tests and programs match on codes, not on sentences. A sentence names
 * what is missing and, where a person can act, the command. */
#include "api/reason.h"

#include "api/damage.h"
#include "api/reason_parts.h"
#include "api/worker_questions.h"
#include "base/check.h"
#include "base/limits.h"
#include "core/core.h"
#include "model/bundle/agent.h"
#include "model/offer.h"

enum { NAMES_MAX = 3, PARENTS_MAX = 200 };

static gl_str at(struct gl_arena *a, gl_ms t)
{
    char buf[GL_TIMES_BYTES];

    return gl_str_dup(a, gl_times_format(t, buf));
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

/* The agent of a bundle that "@agent" stands for, or the step. */
static gl_str name_of(gl_str id)
{
    return id.n > 0 && id.p[0] == '@' ? (gl_str){.p = id.p + 1, .n = id.n - 1} : id;
}

/* The pool's name as its author wrote it: internally, the names of bundles' pools begin with
 * "executor.". */
static gl_str pool_of(const struct gl_step_spec *spec)
{
    gl_str front = GL_S("executor."), pool = spec->pool;

    return spec->id.n > 0 && spec->id.p[0] == '@' && gl_str_starts(pool, front)
               ? (gl_str){.p = pool.p + front.n, .n = pool.n - front.n}
               : pool;
}

static bool has_ended(const struct gl_step_record *r)
{
    return r != NULL && gl_step_status_is_terminal(r->status);
}

/* Sets the code, returns the sentence. */
static gl_str with_code(struct gl_because *b, enum gl_why_code code, gl_str text)
{
    b->code = code;
    return text;
}

/* ---- steps ---- */

static gl_str pending(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                      struct gl_because *b)
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
        return with_code(b, GL_BECAUSE_NOT_REACHED, GL_S("was not reached before the job ended"));
    }
    if (v->is_page) { /* its parents may be on another page */
        return with_code(b, GL_BECAUSE_WAITS_FOR_STEPS,
                         gl_str_fmt(a, "waits for %u upstream step%s (rule %s)", spec->needs_n,
                                    spec->needs_n == 1 ? "" : "s", gl_rule_words[spec->rule]));
    }
    if (open_n == 0) {
        return with_code(b, GL_BECAUSE_ABOUT_TO_START, GL_S("is about to be scheduled"));
    }
    return with_code(b, GL_BECAUSE_WAITS_FOR_STEPS,
                     gl_str_fmt(a, "waits for %.*s to finish (%zu of %u done; rule %s)",
                                GL_STR_ARG(names(a, open, open_n, spec->needs_n - ended_n)),
                                ended_n, spec->needs_n, gl_rule_words[spec->rule]));
}

/* The step's pool is not on the node that has the job; "": it is. */
static gl_str without_pool(struct gl_arena *a, const struct gl_view *v,
                           const struct gl_step_spec *spec, struct gl_because *b)
{
    bool is_units = spec->id.n > 0 && spec->id.p[0] == '@';
    gl_str owner = v->owner != NULL ? v->owner->node : (gl_str){0};
    struct gl_nodes_offer offer;
    gl_str what;

    if (v->nodes == NULL) {
        return (gl_str){0};
    }
    offer = gl_nodes_find_offer(a, v->nodes, &v->job, spec, owner);
    what = gl_str_fmt(a, "waits for %u slot%s of pool '%.*s'", spec->slots,
                      spec->slots == 1 ? "" : "s", GL_STR_ARG(pool_of(spec)));
    if (offer.names.n == 0 && !offer.by_node) {
        return with_code(
            b, GL_BECAUSE_POOL_NOT_OFFERED,
            gl_str_fmt(a, "%.*s, which no live node offers; start a node with that pool (%s)",
                       GL_STR_ARG(what), is_units ? "MN_EXECUTOR_POOL_CAPACITIES" : "GLIA_POOLS"));
    }
    if (v->owner->session.n == 0 || v->owner->status == GL_NODE_DEAD) {
        return with_code(b, GL_BECAUSE_POOL_ELSEWHERE,
                         gl_str_fmt(a, "%.*s on a node that offers it: %.*s", GL_STR_ARG(what),
                                    GL_STR_ARG(offer.names)));
    }
    if (offer.by_node) {
        return (gl_str){0};
    }
    if (!is_units && gl_core_may_run_elsewhere(spec) &&
        gl_nodes_are_placing(a, v->nodes, &v->job)) {
        return with_code(
            b, GL_BECAUSE_POOL_ON_OTHER_NODES,
            gl_str_fmt(a, "%.*s on another node: %.*s", GL_STR_ARG(what), GL_STR_ARG(offer.names)));
    }
    return with_code(
        b, GL_BECAUSE_POOL_MOVES,
        gl_str_fmt(a,
                   "%.*s, which node '%.*s' does not offer (offered by %.*s); the job moves "
                   "once none of its steps can run on '%.*s'",
                   GL_STR_ARG(what), GL_STR_ARG(owner), GL_STR_ARG(offer.names),
                   GL_STR_ARG(owner)));
}

static gl_str queued(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                     uint32_t number, const struct gl_reason_live *live, struct gl_because *b)
{
    struct gl_buf out = {0};
    enum gl_why_code code;
    gl_str text;

    if (v->job.status == GL_JOB_PAUSED || v->job.status == GL_JOB_PAUSING) {
        return with_code(
            b, GL_BECAUSE_HELD_WITH_JOB,
            gl_str_fmt(a, "waits for its job to be resumed (%.*s)", GL_STR_ARG(v->job.reason)));
    }
    text = without_pool(a, v, spec, b);
    if (text.n > 0) {
        return text;
    }
    if (gl_reason_is_elsewhere(v) && v->owner->session.n > 0) {
        return with_code(
            b, GL_BECAUSE_WAITS_FOR_SLOTS_ELSEWHERE,
            gl_str_fmt(a, "waits for %u slot%s of pool '%.*s' on node %.*s%s", spec->slots,
                       spec->slots == 1 ? "" : "s", GL_STR_ARG(pool_of(spec)),
                       GL_STR_ARG(v->owner->node),
                       v->owner->status == GL_NODE_ALIVE ? "" : ", which is not responding"));
    }
    if (gl_reason_is_elsewhere(v)) {
        return with_code(b, GL_BECAUSE_WAITS_FOR_NODE,
                         gl_str_fmt(a, "waits for a node with %u free slot%s of pool '%.*s'",
                                    spec->slots, spec->slots == 1 ? "" : "s",
                                    GL_STR_ARG(pool_of(spec))));
    }
    if (live == NULL) {
        return with_code(
            b, GL_BECAUSE_NO_NODE,
            gl_str_fmt(a,
                       "waits for %u slot%s of pool '%.*s', but no node is running; start one "
                       "with 'glia serve'",
                       spec->slots, spec->slots == 1 ? "" : "s", GL_STR_ARG(pool_of(spec))));
    }
    code = live->step(live->owner, v->job.job_id, number, &out);
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text.n > 0 ? with_code(b, code, text)
                      : with_code(b, GL_BECAUSE_WAITS_FOR_SLOTS,
                                  gl_str_fmt(a, "waits for slots of pool '%.*s'",
                                             GL_STR_ARG(pool_of(spec))));
}

static const struct gl_view_offer *offer_of(const struct gl_view *v, gl_str step_id)
{
    for (size_t i = 0; i < v->offers_n; i++) {
        if (gl_str_eq(v->offers[i].step_id, step_id)) {
            return &v->offers[i];
        }
    }
    return NULL;
}

/* Its attempt was offered to a node that does not have the job. Of a large job, only some records
 * are read (query_status.c); the others most likely run. */
static gl_str running_elsewhere(struct gl_arena *a, const struct gl_view *v,
                                const struct gl_step_record *r, struct gl_because *b)
{
    const struct gl_view_offer *o = offer_of(v, r->step_id);
    gl_str since = at(a, r->attempt_at);

    if (o != NULL && !o->is_taken) {
        return with_code(b, GL_BECAUSE_OFFERED,
                         gl_str_fmt(a,
                                    "is offered to node %.*s (attempt %u, since %.*s), which has "
                                    "not taken it yet",
                                    GL_STR_ARG(r->node), r->attempt_count, GL_STR_ARG(since)));
    }
    if (o != NULL && o->state != GL_TAKEN_RUNNING) {
        return with_code(b, GL_BECAUSE_ENDED_ELSEWHERE,
                         gl_str_fmt(a,
                                    "has ended on node %.*s (attempt %u); the node that has the "
                                    "job records the result next",
                                    GL_STR_ARG(r->node), r->attempt_count));
    }
    return with_code(b, GL_BECAUSE_RUNS_ELSEWHERE,
                     gl_str_fmt(a, "runs on node %.*s (attempt %u, since %.*s)",
                                GL_STR_ARG(r->node), r->attempt_count, GL_STR_ARG(since)));
}

static gl_str running(struct gl_arena *a, const struct gl_view *v, const struct gl_step_record *r,
                      struct gl_because *b)
{
    gl_str until = r->deadline_at > 0
                       ? gl_str_fmt(a, ", deadline %.*s", GL_STR_ARG(at(a, r->deadline_at)))
                       : GL_S("");

    gl_str node = v->owner != NULL && r->node.n > 0
                      ? gl_str_fmt(a, " on node %.*s", GL_STR_ARG(r->node))
                      : (gl_str){0};

    if (r->stopping != GL_STOP_NONE) {
        return with_code(
            b, GL_BECAUSE_STOPPING,
            gl_str_fmt(a, "is being stopped (attempt %u%.*s): %.*s", r->attempt_count,
                       GL_STR_ARG(node),
                       GL_STR_ARG(v->job.reason.n > 0 ? v->job.reason : GL_S("timed out"))));
    }
    if (r->is_elsewhere) {
        return running_elsewhere(a, v, r, b);
    }
    return with_code(b, GL_BECAUSE_RUNNING,
                     gl_str_fmt(a, "has been running attempt %u%.*s since %.*s%.*s",
                                r->attempt_count, GL_STR_ARG(node),
                                GL_STR_ARG(at(a, r->attempt_at)), GL_STR_ARG(until)));
}

static gl_str blocked(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                      const struct gl_step_record *r, struct gl_because *b)
{
    gl_str until =
        r->due_at > 0 ? gl_str_fmt(a, " (until %.*s)", GL_STR_ARG(at(a, r->due_at))) : GL_S("");
    gl_str job = v->job.job_id;

    if (gl_damage_is_step(r)) {
        return with_code(b, GL_BECAUSE_RECORD_DAMAGED, gl_damage_step(a, v, r));
    }
    if (r->blocked_on != GL_BLOCK_TIMER && gl_damage_matters(v)) {
        return with_code(b,
                         v->job.status == GL_JOB_PAUSED ? GL_BECAUSE_HELD_WITH_JOB
                                                        : GL_BECAUSE_ANSWER_MAY_BE_REFUSED,
                         gl_damage_answer(a, v));
    }
    switch ((enum gl_block)r->blocked_on) {
    case GL_BLOCK_REVIEW:
        return with_code(
            b, GL_BECAUSE_WAITS_FOR_REVIEW,
            gl_str_fmt(
                a,
                "waits for a person to review it: %.*s; decide with 'glia human respond %.*s %.*s "
                "--decision rerun' (or done, failed)",
                GL_STR_ARG(r->last_error), GL_STR_ARG(job), GL_STR_ARG(name_of(r->step_id))));
    case GL_BLOCK_APPROVAL:
        return with_code(
            b, GL_BECAUSE_WAITS_FOR_APPROVAL,
            gl_str_fmt(a,
                       "waits for approval%.*s: %.*s; answer with 'glia human respond "
                       "%.*s %.*s --decision %.*s'",
                       GL_STR_ARG(until), GL_STR_ARG(r->asked), GL_STR_ARG(job),
                       GL_STR_ARG(r->step_id),
                       GL_STR_ARG(spec->decisions.n > 0 ? spec->decisions.items[0] : GL_S("..."))));
    case GL_BLOCK_SIGNAL:
        return with_code(
            b, GL_BECAUSE_WAITS_FOR_SIGNAL,
            gl_str_fmt(a,
                       "waits for signal '%.*s'%.*s; send it with 'glia job signal %.*s "
                       "%.*s'",
                       GL_STR_ARG(spec->signal), GL_STR_ARG(until), GL_STR_ARG(job),
                       GL_STR_ARG(spec->signal)));
    case GL_BLOCK_TIMER:
        return with_code(b, GL_BECAUSE_SLEEPING,
                         gl_str_fmt(a, "sleeps until %.*s", GL_STR_ARG(at(a, r->due_at))));
    case GL_BLOCK_NONE:
    case GL_BLOCK_DEPENDENCY:
    case GL_BLOCK_LIMIT:
        break;
    }
    return with_code(b, GL_BECAUSE_BLOCKED,
                     gl_str_fmt(a, "is blocked: %.*s", GL_STR_ARG(r->last_error)));
}

static gl_str ended(struct gl_arena *a, const struct gl_step_record *r, struct gl_because *b)
{
    if (r->status == GL_STEP_COMPLETED && r->reused_from.n > 0) {
        return with_code(
            b, GL_BECAUSE_REUSED,
            gl_str_fmt(a, "reuses the output of job %.*s", GL_STR_ARG(r->reused_from)));
    }
    if (r->status == GL_STEP_COMPLETED) {
        return with_code(b, GL_BECAUSE_COMPLETED,
                         gl_str_fmt(a, "completed at %.*s", GL_STR_ARG(at(a, r->ended_at))));
    }
    return with_code(b,
                     r->status == GL_STEP_PARTIAL  ? GL_BECAUSE_PARTIAL
                     : r->status == GL_STEP_FAILED ? GL_BECAUSE_FAILED
                                                   : GL_BECAUSE_SKIPPED,
                     gl_str_fmt(a, "%s: %.*s",
                                r->status == GL_STEP_PARTIAL  ? "failed, but the job continues"
                                : r->status == GL_STEP_FAILED ? "failed"
                                                              : "was skipped",
                                GL_STR_ARG(r->terminal_reason)));
}

/* ---- bundles ---- */

bool gl_reason_is_idle(const struct gl_view *v, uint32_t number)
{
    const struct gl_step_record *r = v->steps[number];

    return gl_flow_is_unit(v->flow, number) &&
           (r == NULL || r->status == GL_STEP_PENDING || r->status == GL_STEP_WAITING);
}

/* The agent that has the message with which this step's attempt began; -1: none. */
static int64_t worker_of(const struct gl_view *v, const struct gl_step_spec *spec,
                         const struct gl_step_record *r)
{
    for (size_t i = 0; spec->is_bound && r->letter != 0 && i < spec->agent_ids.n; i++) {
        int64_t n = gl_flow_find_agent(v->flow, spec->agent_ids.items[i]);

        if (n >= 0 && v->steps[n] != NULL && v->steps[n]->letter == r->letter &&
            !gl_reason_is_idle(v, (uint32_t)n)) {
            return n;
        }
    }
    return -1;
}

/* A step of a bundle is running from the moment its agent has the message. The agent's own status
 * says more: it may still be waiting for slots. */
static enum gl_step_status effective_status(const struct gl_view *v,
                                            const struct gl_step_spec *spec,
                                            const struct gl_step_record *r)
{
    int64_t n = r->status == GL_STEP_RUNNING ? worker_of(v, spec, r) : -1;

    return n >= 0 ? v->steps[n]->status : r->status;
}

static gl_str explain(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                      const struct gl_step_record *r, uint32_t number,
                      const struct gl_reason_live *live, struct gl_because *b);

static gl_str explain_agent(struct gl_arena *a, const struct gl_view *v, uint32_t number,
                            const struct gl_reason_live *live, struct gl_because *b)
{
    gl_str agents = explain(a, v, gl_flow_step(v->flow, number), v->steps[number], number, live, b);

    gl_reason_add_code(b, b->code);
    return with_code(b, GL_BECAUSE_WAITS_FOR_AGENT,
                     gl_str_fmt(a, "waits for its agent '%.*s', which %.*s",
                                GL_STR_ARG(gl_flow_agent(v->flow, number)->id),
                                GL_STR_ARG(agents)));
}

static gl_str explain_unit(struct gl_arena *a, const struct gl_view *v,
                           const struct gl_step_record *r, uint32_t number, struct gl_because *b)
{
    if (gl_reason_is_idle(v, number)) {
        return with_code(b, GL_BECAUSE_WAITS_FOR_MESSAGES, GL_S("waits for messages"));
    }
    if (r->status == GL_STEP_READY && v->job.status == GL_JOB_RUNNING) {
        return with_code(b, GL_BECAUSE_ABOUT_TO_HANDLE, GL_S("is about to handle a message"));
    }
    if (r->status == GL_STEP_RETRY_WAIT) {
        const struct gl_step_spec *spec = gl_flow_step(v->flow, number);
        gl_str kept = r->keeps_slots
                          ? gl_str_fmt(a, " (keeps its %u slot%s of pool '%.*s')", spec->slots,
                                       spec->slots == 1 ? "" : "s", GL_STR_ARG(pool_of(spec)))
                          : (gl_str){0};

        return with_code(b, GL_BECAUSE_RETRIES_MESSAGE,
                         gl_str_fmt(a, "waits until %.*s to retry its message%.*s: %.*s",
                                    GL_STR_ARG(at(a, r->retry_at)), GL_STR_ARG(kept),
                                    GL_STR_ARG(r->last_error)));
    }
    return (gl_str){0};
}

static gl_str explain_ready(struct gl_arena *a, const struct gl_view *v,
                            const struct gl_step_spec *spec, struct gl_because *b)
{
    gl_str agent = spec->agent_ids.items[0];
    int64_t n = gl_flow_find_agent(v->flow, agent);

    return n < 0 || gl_reason_is_idle(v, (uint32_t)n)
               ? with_code(
                     b, GL_BECAUSE_WAITS_FOR_MESSAGE,
                     gl_str_fmt(a, "waits for a message to its agent '%.*s'", GL_STR_ARG(agent)))
               : with_code(
                     b, GL_BECAUSE_AGENT_BUSY,
                     gl_str_fmt(a, "waits for its agent '%.*s', which is handling another message",
                                GL_STR_ARG(agent)));
}

/* Sentences that only agents and their steps need; "": use the general ones. */
static gl_str explain_bundle(struct gl_arena *a, const struct gl_view *v,
                             const struct gl_step_spec *spec, const struct gl_step_record *r,
                             uint32_t number, const struct gl_reason_live *live,
                             struct gl_because *b)
{
    if (gl_job_status_is_terminal(v->job.status)) {
        return (gl_str){0};
    }
    if (gl_flow_is_unit(v->flow, number)) {
        return explain_unit(a, v, r, number, b);
    }
    if (spec->is_bound && r->status == GL_STEP_READY && v->job.status == GL_JOB_RUNNING) {
        return explain_ready(a, v, spec, b);
    }
    if (spec->is_bound && r->status == GL_STEP_WAITING && r->items_n == 0) {
        return with_code(b, GL_BECAUSE_WAITS_AT_CHECKPOINT,
                         GL_S("waits at a checkpoint for the steps it added"));
    }
    if (effective_status(v, spec, r) != r->status) {
        return explain_agent(a, v, (uint32_t)worker_of(v, spec, r), live, b);
    }
    return (gl_str){0};
}

/* The attempt was decided but cannot be started, for example because the disk is full; "": no start
 * has failed. */
static gl_str refused(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                      const struct gl_step_record *r, const struct gl_reason_live *live,
                      struct gl_because *b)
{
    int64_t agent = worker_of(v, spec, r);
    const struct gl_step_record *started = agent >= 0 ? v->steps[agent] : r;
    gl_str why = {0};

    if (live != NULL && live->refused != NULL && r->stopping == GL_STOP_NONE) {
        why = live->refused(live->owner, v->job.job_id, started->step_id);
    }
    return why.n == 0 ? why
                      : with_code(b, GL_BECAUSE_CANNOT_START,
                                  gl_str_fmt(a, "cannot start attempt %u and will retry: %.*s",
                                             r->attempt_count, GL_STR_ARG(why)));
}

/* If a job with a damaged record is cancelled, its step records stay as they are. */
static bool is_left(const struct gl_view *v, const struct gl_step_record *r)
{
    return gl_job_status_is_terminal(v->job.status) && r->status != GL_STEP_PENDING &&
           !has_ended(r) && !gl_damage_is_step(r);
}

static gl_str explain(struct gl_arena *a, const struct gl_view *v, const struct gl_step_spec *spec,
                      const struct gl_step_record *r, uint32_t number,
                      const struct gl_reason_live *live, struct gl_because *b)
{
    gl_str blocker;
    gl_str of_bundle =
        v->flow->bundle != NULL ? explain_bundle(a, v, spec, r, number, live, b) : (gl_str){0};

    if (of_bundle.n > 0) {
        return of_bundle;
    }
    if (is_left(v, r)) {
        return with_code(b, GL_BECAUSE_NOT_FINISHED, GL_S("had not finished when the job ended"));
    }
    switch ((enum gl_step_status)r->status) {
    case GL_STEP_PENDING:
        return pending(a, v, spec, b);
    case GL_STEP_READY:
        if (v->job.status != GL_JOB_RUNNING) {
            return with_code(
                b, GL_BECAUSE_HELD_WITH_JOB,
                gl_str_fmt(a, "waits for its job to be resumed (%.*s)", GL_STR_ARG(v->job.reason)));
        }
        return spec->has_gate || v->job.retry_of.n > 0
                   ? with_code(
                         b, GL_BECAUSE_READS_VALUES,
                         GL_S("waits for the values of its condition, items or limit to be read"))
                   : with_code(b, GL_BECAUSE_READY, GL_S("is ready and about to be queued"));
    case GL_STEP_QUEUED:
        return queued(a, v, spec, number, live, b);
    case GL_STEP_RUNNING:
        blocker = refused(a, v, spec, r, live, b);
        return blocker.n > 0 ? blocker : running(a, v, r, b);
    case GL_STEP_RETRY_WAIT:
        if (r->lost_at_1 > 0 &&
            r->lost_at_1 >= r->attempt_at) { /* the attempt was lost; it did not fail */
            return with_code(b, GL_BECAUSE_FOLLOWS_LOST_ATTEMPT,
                             gl_str_fmt(a, "waits until %.*s to start attempt %u: %.*s",
                                        GL_STR_ARG(at(a, r->retry_at)), r->attempt_count + 1,
                                        GL_STR_ARG(r->last_error)));
        }
        return with_code(b, GL_BECAUSE_RETRIES,
                         gl_str_fmt(a, "failed attempt %u (%.*s); next attempt at %.*s (%u of %u)",
                                    r->attempt_count, GL_STR_ARG(r->last_error),
                                    GL_STR_ARG(at(a, r->retry_at)), r->counted + 1,
                                    spec->retry.attempts));
    case GL_STEP_BLOCKED:
        return blocked(a, v, spec, r, b);
    case GL_STEP_WAITING:
        return with_code(
            b, GL_BECAUSE_WAITS_FOR_ITEMS,
            gl_str_fmt(a, "waits for its items: %u of %u done (%u failed), %u in progress",
                       r->items_ended, r->items_n, r->items_failed,
                       r->items_made - r->items_ended));
    case GL_STEP_COMPLETED:
    case GL_STEP_PARTIAL:
    case GL_STEP_SKIPPED:
    case GL_STEP_FAILED:
        return ended(a, r, b);
    case GL_STEP_STATUS_COUNT:
        break;
    }
    GL_UNREACHABLE();
}

struct gl_because gl_reason_step(struct gl_arena *a, const struct gl_view *v, uint32_t number,
                                 int64_t item, const struct gl_reason_live *live)
{
    struct gl_because b = {0};
    static const struct gl_step_record unreached = {0};
    const struct gl_step_record *r = v->steps[number];
    uint32_t place = number;

    if (item >= 0) {
        GL_ASSERT((uint32_t)item < v->items[number].n);
        r = v->items[number].records[item];
        place = gl_flow_place(v->flow, number, item);
    }
    b.text =
        explain(a, v, gl_flow_step(v->flow, number), r != NULL ? r : &unreached, place, live, &b);
    return b;
}

/* ---- jobs ---- */

struct census { /* how many steps have which status, and the names of a few */
    size_t n[GL_STEP_STATUS_COUNT];
    gl_str names[GL_STEP_STATUS_COUNT][NAMES_MAX];
    uint32_t first[GL_STEP_STATUS_COUNT];
    int64_t first_item[GL_STEP_STATUS_COUNT];
};

static void count(struct census *c, enum gl_step_status status, gl_str id, uint32_t number,
                  int64_t item)
{
    size_t n = c->n[status]++;

    if (n == 0) {
        c->first[status] = number;
        c->first_item[status] = item;
    }
    if (n < NAMES_MAX) {
        c->names[status][n] = name_of(id);
    }
}

/* A step that is known only by its status has no id in its record. */
static gl_str id_of(struct gl_arena *a, const struct gl_step_record *r,
                    const struct gl_step_spec *spec, int64_t item)
{
    return r->step_id.n > 0 ? r->step_id
           : item < 0       ? spec->id
                            : gl_str_fmt(a, "%.*s[%lld]", GL_STR_ARG(spec->id), (long long)item);
}

static void count_step(struct gl_arena *a, const struct gl_view *v, uint32_t number, int64_t item,
                       uint8_t *covered, struct census *ret)
{
    const struct gl_step_spec *spec = gl_flow_step(v->flow, number);
    const struct gl_step_record *r = item < 0 ? v->steps[number] : v->items[number].records[item];
    enum gl_step_status status;
    int64_t worker;

    if (r == NULL) {
        return;
    }
    worker = r->status == GL_STEP_RUNNING ? worker_of(v, spec, r) : -1;
    if (worker >= 0) {
        covered[worker] = 1;
    }
    status = effective_status(v, spec, r);
    count(ret, status, ret->n[status] < NAMES_MAX ? id_of(a, r, spec, item) : (gl_str){0}, number,
          item);
}

/* Agents come last. An agent whose step is already counted for it is left out. */
static void take_census(struct gl_arena *a, const struct gl_view *v, struct census *ret)
{
    uint32_t agents_n = gl_flow_agents_n(v->flow);
    uint8_t *covered = GL_NEW_ARRAY(a, uint8_t, agents_n + 1);

    for (uint32_t i = agents_n; i < v->flow->steps.n; i++) {
        count_step(a, v, i, -1, covered, ret);
        for (uint32_t k = 0; k < v->items[i].n; k++) {
            count_step(a, v, i, k, covered, ret);
        }
    }
    for (uint32_t i = 0; i < agents_n; i++) {
        if (v->steps[i] != NULL && covered[i] == 0 && !gl_reason_is_idle(v, i)) {
            count_step(a, v, i, -1, covered, ret);
        }
    }
}

/* No step and no agent has anything to report. */
static gl_str idle(struct gl_arena *a, const struct gl_view *v, struct gl_because *b)
{
    if (v->flow->bundle == NULL || v->job.letters_n == 0) {
        return with_code(b, GL_BECAUSE_ABOUT_TO_START, GL_S("is about to start"));
    }
    if (v->job.waiting_n > 0) {
        return with_code(b, GL_BECAUSE_ABOUT_TO_HANDLE,
                         gl_str_fmt(a, "is about to handle %u message%s", v->job.waiting_n,
                                    v->job.waiting_n == 1 ? "" : "s"));
    }
    return with_code(
        b, GL_BECAUSE_WAITS_FOR_MESSAGES,
        gl_str_fmt(a, "waits for messages to its agents; send one with 'glia send %.*s AGENT'",
                   GL_STR_ARG(v->job.job_id)));
}

/* A running job: what is running, or else what its most telling step waits for. */
static gl_str under_way(struct gl_arena *a, const struct gl_view *v,
                        const struct gl_reason_live *live, struct gl_because *b)
{
    static const enum gl_step_status order[] = {GL_STEP_BLOCKED, GL_STEP_RETRY_WAIT,
                                                GL_STEP_QUEUED,  GL_STEP_WAITING,
                                                GL_STEP_READY,   GL_STEP_PENDING};
    struct census c = {0};

    take_census(a, v, &c);
    if (c.n[GL_STEP_RUNNING] > 0) {
        size_t n = c.n[GL_STEP_RUNNING];

        return with_code(b, GL_BECAUSE_RUNNING,
                         gl_str_fmt(a, "is running %.*s",
                                    GL_STR_ARG(names(a, c.names[GL_STEP_RUNNING],
                                                     n < NAMES_MAX ? n : NAMES_MAX, n))));
    }
    for (size_t i = 0; i < GL_COUNT(order); i++) {
        if (c.n[order[i]] > 0) {
            bool is_unit = gl_flow_is_unit(v->flow, c.first[order[i]]);

            *b = gl_reason_step(a, v, c.first[order[i]], c.first_item[order[i]], live);
            return gl_str_fmt(a, "%s '%.*s' %.*s", is_unit ? "agent" : "step",
                              GL_STR_ARG(c.names[order[i]][0]), GL_STR_ARG(b->text));
        }
    }
    return idle(a, v, b);
}

/* The sink has completed the run, but not all steps have ended. */
static gl_str deferred(const struct gl_view *v, struct gl_because *b)
{
    if (v->job.completion.n == 0 || v->job.verdict != GL_VERDICT_NONE ||
        gl_job_status_is_terminal(v->job.status)) {
        return (gl_str){0};
    }
    gl_reason_add_code(b, GL_BECAUSE_COMPLETION_EARLY);
    return GL_S("; its sink has completed the run, which ends once all steps have ended");
}

static gl_str explain_job(struct gl_arena *a, const struct gl_view *v,
                          const struct gl_reason_live *live, struct gl_because *b)
{
    const struct gl_job_record *r = &v->job;

    if (live != NULL && live->is_quarantined(live->owner, r->job_id)) {
        return with_code(
            b, GL_BECAUSE_QUARANTINED,
            gl_str_fmt(a,
                       "in quarantine: the node crashed three times in a row while handling it; "
                       "'glia job resume %.*s' continues it, 'glia job cancel' ends it",
                       GL_STR_ARG(r->job_id)));
    }
    switch ((enum gl_job_status)r->status) {
    case GL_JOB_COMPLETED:
        return with_code(b, GL_BECAUSE_COMPLETED,
                         gl_str_fmt(a, "completed at %.*s", GL_STR_ARG(at(a, r->ended_at))));
    case GL_JOB_FAILED:
        return with_code(b, GL_BECAUSE_FAILED, r->reason);
    case GL_JOB_CANCELLED:
        return with_code(b, GL_BECAUSE_CANCELLED, r->reason);
    case GL_JOB_PAUSED:
        if (gl_damage_matters(v)) {
            return with_code(b, GL_BECAUSE_RECORD_DAMAGED, gl_damage_job(a, v));
        }
        return r->hold == GL_HOLD_PERSON || !v->asks_person
                   ? with_code(b, GL_BECAUSE_PAUSED,
                               gl_str_fmt(a, "%.*s; resume it with 'glia job resume %.*s'",
                                          GL_STR_ARG(r->reason), GL_STR_ARG(r->job_id)))
                   : under_way(a, v, live, b);
    case GL_JOB_PAUSING:
        return with_code(b, GL_BECAUSE_PAUSING,
                         gl_str_fmt(a, "%.*s; waiting for running attempts to %s",
                                    GL_STR_ARG(r->reason),
                                    r->hold == GL_HOLD_REVIEW ? "end" : "stop"));
    case GL_JOB_CANCELLING:
        return with_code(
            b, GL_BECAUSE_CANCELLING,
            gl_str_fmt(a, "%.*s; waiting for running attempts to stop", GL_STR_ARG(r->reason)));
    case GL_JOB_PENDING:
    case GL_JOB_RUNNING:
        break;
    case GL_JOB_STATUS_COUNT:
        GL_UNREACHABLE();
    }
    if (r->verdict == GL_VERDICT_FAILED) {
        return with_code(
            b, GL_BECAUSE_FAILING,
            gl_str_fmt(a, "%.*s; waiting for running attempts to end", GL_STR_ARG(r->reason)));
    }
    return under_way(a, v, live, b);
}

/* A job that has not ended cannot progress while the store is read-only. */
static gl_str store_read_only(struct gl_arena *a, const struct gl_view *v,
                              const struct gl_reason_live *live, struct gl_because *b)
{
    gl_str why = {0};

    if (live != NULL && live->store != NULL && !gl_job_status_is_terminal(v->job.status)) {
        why = live->store(live->owner, a);
    }
    if (why.n == 0) {
        return why;
    }
    gl_reason_add_code(b, GL_BECAUSE_STORE_READ_ONLY);
    return gl_str_fmt(a, "; %.*s", GL_STR_ARG(why));
}

struct gl_because gl_reason_job(struct gl_arena *a, const struct gl_view *v,
                                const struct gl_reason_live *live)
{
    struct gl_because b = {0};
    gl_str text = explain_job(a, v, live, &b), early = deferred(v, &b),
           place = gl_reason_where(a, v, &b);
    gl_str asked = gl_worker_question_sentence(a, v), waiting = gl_reason_inbox(a, v, &b),
           store = store_read_only(a, v, live, &b);

    if (asked.n > 0) {
        gl_reason_add_code(&b, GL_BECAUSE_WORKER_ASKS);
    }
    b.text =
        gl_str_fmt(a, "%.*s%.*s%.*s%.*s%.*s%.*s", GL_STR_ARG(text), GL_STR_ARG(early),
                   GL_STR_ARG(place), GL_STR_ARG(asked), GL_STR_ARG(waiting), GL_STR_ARG(store));
    return b;
}
