/* route.h - conditions on the edges between agents, which decide where a message goes.
 *
 *     {"expr": "${payload.outputs.branch} == left"}      OP: == != > >= < <= contains in exists
 *     {"path": "payload.score", "op": ">=", "value": 10}
 *     {"all": [...]}, {"any": [...]}, {"not": {...}}
 *
 * Roots: payload (the body of the new message), message.{body,headers,type,class,from,to} (the
 * message that was handled), state and agent_state. A path that does not exist is null. */
#ifndef GL_MODEL_BUNDLE_ROUTE_H
#define GL_MODEL_BUNDLE_ROUTE_H

#include "model/bundle/message.h"

struct gl_route_facts {
    gl_str payload;                    /* JSON */
    const struct gl_message *incoming; /* NULL: none */
    gl_str state;                      /* JSON; "" : {} */
};

/* Check a condition. Reports all errors, each with its JSON path below `conditions`. */
int gl_route_check(const struct gl_json *j, gl_jnode n, struct gl_why *reterr_why);
/* "" and {} always hold. A condition that cannot be read does not hold. */
bool gl_route_holds(gl_str conditions, const struct gl_route_facts *facts, struct gl_arena *a);
/* Whether it reads the agent's state. */
bool gl_route_reads_state(gl_str conditions);

#endif
