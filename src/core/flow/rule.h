/* rule.h - evaluates a trigger rule: may a step run, given how its parents ended? Arithmetic on
 * counters only, so the answer costs the same for two parents as for twenty thousand. */
#ifndef GL_CORE_FLOW_RULE_H
#define GL_CORE_FLOW_RULE_H

#include "model/flow/flow.h"

struct gl_rule_parents {
    uint32_t all;      /* parents the step has */
    uint32_t ended;    /* those with a terminal status */
    uint32_t success;  /* completed, or with outcome success */
    uint32_t failed;   /* with outcome failed, whatever their status */
    uint32_t accepted; /* ended as the edge accepts it: completed, or a failure that was handled */
};

enum gl_rule_answer { GL_RULE_WAIT, GL_RULE_RUN, GL_RULE_IMPOSSIBLE };

/* IMPOSSIBLE: however the remaining parents end, the step can never run. */
enum gl_rule_answer gl_rule_evaluate(enum gl_rule rule, uint32_t quorum,
                                     const struct gl_rule_parents *p);

#endif
