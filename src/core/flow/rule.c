/* rule.c - each trigger rule as a condition on the counters of a step's parents. */
#include "core/flow/rule.h"

#include "base/check.h"

static bool is_satisfied(enum gl_rule rule, uint32_t quorum, const struct gl_rule_parents *p)
{
    bool all_ended = p->ended == p->all;

    GL_ASSERT(rule < GL_RULE_COUNT);
    switch (rule) {
    case GL_RULE_ALL_SUCCESS:
        return p->accepted == p->all;
    case GL_RULE_ALL_DONE:
        return all_ended;
    case GL_RULE_ONE_SUCCESS:
        return p->success > 0;
    case GL_RULE_ONE_DONE:
        return p->ended > 0;
    case GL_RULE_ONE_FAILED:
        return p->failed > 0;
    case GL_RULE_NONE_FAILED:
        return all_ended && p->failed == 0 && p->success > 0;
    case GL_RULE_QUORUM:
        return p->success >= quorum;
    case GL_RULE_COUNT:
        break;
    }
    GL_UNREACHABLE();
}

enum gl_rule_answer gl_rule_evaluate(enum gl_rule rule, uint32_t quorum,
                                     const struct gl_rule_parents *p)
{
    GL_ASSERT(p->failed <= p->ended);
    GL_ASSERT(p->ended <= p->all);
    GL_ASSERT(p->success <= p->ended);
    GL_ASSERT(p->accepted <= p->ended);
    if (is_satisfied(rule, quorum, p)) {
        return GL_RULE_RUN;
    }
    if (rule == GL_RULE_QUORUM) { /* can be out of reach before the last parent has ended */
        return p->success + (p->all - p->ended) < quorum ? GL_RULE_IMPOSSIBLE : GL_RULE_WAIT;
    }
    return p->ended == p->all ? GL_RULE_IMPOSSIBLE : GL_RULE_WAIT;
}
