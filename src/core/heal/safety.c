#include "core/heal/safety.h"

#include "core/flow/ledger.h"
#include "core/flow/txn.h"

/* Note the loss; true if there have been too many in a short time. */
static bool is_one_too_many(struct gl_core *c, struct gl_step *st)
{
    gl_ms oldest = st->r.lost_at_3;

    static_assert(GL_LOSSES_MAX == 3, "three times are kept in the record");
    st->r.lost_at_3 = st->r.lost_at_2;
    st->r.lost_at_2 = st->r.lost_at_1;
    st->r.lost_at_1 = c->now;
    gl_txn_dirty(c, st);
    return oldest != 0 && c->now - oldest < GL_LOSSES_WINDOW_MS;
}

void gl_safety_lost(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    bool unsafe = gl_step_spec_of(st)->safety == GL_SAFETY_UNSAFE && !GL_PLANT(7);
    gl_str why = GL_S("the attempt was lost with its executor");

    c->counts.attempts_lost++;
    GL_ASSERT(st->r.status == GL_STEP_RUNNING);
    if (j->r.verdict != GL_VERDICT_NONE) {
        gl_ledger_fail(c, st, unsafe ? GL_S("lost, and whether it did its work is not known") : why,
                       false);
    } else if (unsafe) {
        GL_MARK(c->trace, "safety.blocked_for_review");
        gl_ledger_block(
            c, st, GL_BLOCK_REVIEW,
            GL_S("unsafe, and its attempt was lost: it may or may not have done its work"));
    } else if (is_one_too_many(c, st)) {
        GL_MARK(c->trace, "safety.lost_too_often");
        gl_ledger_fail(c, st, GL_S("lost with its executor four times in ten minutes"), false);
    } else {
        GL_MARK(c->trace, "safety.runs_again");
        gl_ledger_again(c, st, why);
    }
}
