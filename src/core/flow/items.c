/* items.c - counts the instances of a step with `foreach`: how many exist, how many have ended, how
 * many have failed. The counts are in the step's record, so a load continues where the step was. */
#include "core/flow/items.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"

enum { ALIVE_MAX = 1000 }; /* live instances of a step, if it does not say `max_parallel` */

static uint32_t alive_max(const struct gl_step *st)
{
    uint32_t parallel = gl_step_spec_of(st)->parallel;

    return parallel > 0 && !GL_PLANT(21) ? parallel : ALIVE_MAX;
}

/* May one more instance be created now? */
static bool may_make(const struct gl_step *st)
{
    GL_ASSERT(st->r.items_made <= st->r.items_n);
    return st->r.items_made < st->r.items_n && st->r.items_made - st->r.items_ended < alive_max(st);
}

void gl_items_begin(struct gl_core *c, struct gl_step *st, uint32_t items_n)
{
    struct gl_job *j = st->job;

    GL_ASSERT(st->item < 0);
    GL_ASSERT(st->r.status == GL_STEP_READY);
    GL_ASSERT(items_n > 0);
    st->r.items_n = items_n;
    st->r.items_at = j->r.items_n;
    j->r.items_n += items_n;
    st->r.gate |= GL_GATE_SPREAD;
    st->r.started_at = c->now;
    gl_ledger_move(c, st, GL_STEP_WAITING);
    gl_txn_log(c, j, st, "workflow_step_scattered", (gl_str){0},
               gl_str_fmt(c->out->arena, "\"count\":%u", items_n));
    gl_list_push(&j->making, &st->work);
    GL_ASSERT(j->r.items_n <= GL_JOB_ITEMS_MAX);
    GL_ASSERT(st->r.items_at + items_n == j->r.items_n);
}

void gl_items_on_load(struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_WAITING);
    GL_ASSERT(gl_list_empty(&st->work));
    if (may_make(st)) {
        gl_list_push(&st->job->making, &st->work);
    }
}

uint32_t gl_items_make(struct gl_core *c, struct gl_job *j, uint32_t budget)
{
    GL_ASSERT(budget <= GL_SPREAD_MAX);
    GL_ASSERT(j->memory == GL_MEM_HOT);
    for (struct gl_link *l; budget > 0 && (l = gl_list_first(&j->making)) != NULL;) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, work);

        if (gl_step_is_bound(st)) {
            budget = gl_scatter_make(c, st, budget);
            continue;
        }
        for (; budget > 0 && may_make(st); budget--) {
            uint32_t item = st->r.items_made++;
            struct gl_step *made = gl_step_item(c, j, st->of, item, st->r.items_at + item);

            gl_ledger_move(c, made, GL_STEP_READY);
        }
        gl_txn_dirty(c, st);
        if (!may_make(st)) {
            gl_list_remove(&st->work);
        } else {
            GL_MARK(c->trace, "items.made_in_parts");
        }
    }
    return budget;
}

/* The last instance has ended, and with it the step. */
static void on_last_item(struct gl_core *c, struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_WAITING);
    GL_ASSERT(st->r.items_ended == st->r.items_n);
    if (st->r.items_failed == 0) {
        gl_ledger_succeed(c, st, (gl_str){0});
        return;
    }
    gl_ledger_fail(
        c, st,
        gl_str_fmt(c->out->arena, "%u of %u items failed", st->r.items_failed, st->r.items_n),
        false);
}

void gl_items_on_end(struct gl_core *c, struct gl_step *item)
{
    struct gl_job *j = item->job;
    struct gl_step *st = gl_step_find(j, item->of);

    GL_ASSERT(item->item >= 0);
    GL_ASSERT(gl_step_status_is_terminal(item->r.status));
    if (st == NULL || st->r.status != GL_STEP_WAITING) {
        GL_MARK(c->trace, "items.outlived_their_step");
        return; /* its step has ended before it: the first failure, or the end of the job */
    }
    st->r.items_ended += GL_PLANT(14) && item->r.attempt_count > 1 ? 2 : 1;
    st->r.items_failed += item->r.terminal_outcome == GL_OUTCOME_FAILED;
    gl_txn_dirty(c, st);
    if (j->r.verdict != GL_VERDICT_NONE) {
        return;
    }
    if (item->r.terminal_outcome == GL_OUTCOME_FAILED &&
        gl_step_spec_of(st)->on_failure == GL_ON_FAILURE_FAIL) {
        GL_MARK(c->trace, "items.first_failure");
        gl_ledger_fail(c, st,
                       gl_str_fmt(c->out->arena, "item %d: %.*s", item->item,
                                  GL_STR_ARG(item->r.terminal_reason)),
                       false);
    } else if (st->r.items_ended == st->r.items_n) {
        on_last_item(c, st);
    } else if (may_make(st) && gl_list_empty(&st->work)) {
        gl_list_push(&j->making, &st->work);
    }
}
