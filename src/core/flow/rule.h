/* rule.h - when may a step run, given how its parents ended? Pure arithmetic on counters, so that
 * the question costs the same for two parents and for twenty thousand. */
#ifndef GL_CORE_FLOW_RULE_H
#define GL_CORE_FLOW_RULE_H

#include "model/flow/flow.h"

struct gl_rule_parents {
    uint32_t all;     /* parents it has */
    uint32_t ended;   /* terminal */
    uint32_t success; /* completed, or outcome success */
    uint32_t failed;  /* outcome failed, whatever the status */
    uint32_t
        accepted; /* ended in a way its edge accepts: completed, or a failure that was handled */
};

enum gl_rule_answer { GL_RULE_WAIT, GL_RULE_RUN, GL_RULE_IMPOSSIBLE };

enum gl_rule_answer gl_rule_evaluate(enum gl_rule rule, uint32_t quorum,
                                     const struct gl_rule_parents *p);

#endif
