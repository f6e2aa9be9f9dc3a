/* module_call.h - calls a loaded module: keeps its instances and lets one of them handle a message.
 *
 * Used in the node for trusted modules, and in glia-module-host for all others. What the module
 * emits becomes one JSON document in the shape of model/bundle/worker_output.h. Each piece of JSON
 * is checked when the module passes it in, so the document is always well formed.
 *
 * Instances are kept between calls, up to a limit, because creating one may be expensive: one per
 * configuration, or one per agent if the module keeps state in memory. For the latter the state of
 * each instance is known; if the call brings another state, it is restored first. So a message that
 * is handled again after its transaction failed finds the state it found before.
 *
 * Call order: gl_module_check(), gl_module_box_init(), gl_module_call() for each message,
 * gl_module_box_done(). */
#ifndef GL_EXEC_MODULE_CALL_H
#define GL_EXEC_MODULE_CALL_H

#include <glia/module.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"

struct gl_module_output { /* of the call in progress; the memory is reused */
    struct glia_out face;
    struct gl_arena arena; /* for checks */
    struct gl_buf state, events, emits, step, run;
    bool has_state, completes_step, completes_run;
    size_t emits_n, bytes;
    struct gl_why why; /* the first error; code 0: none */
};

struct gl_module_box {
    const struct glia_module *module; /* borrowed */
    struct gl_map instances;
    struct gl_link order;  /* least recently used first */
    struct gl_arena arena; /* for one call */
    struct gl_buf key, document;
    struct gl_module_output output;
};

/* Can this be used as a module? GL_E_VERSION, GL_E_INVALID: no. */
int gl_module_check(const struct glia_module *m, struct gl_why *reterr_why);

void gl_module_box_init(struct gl_module_box *b, const struct glia_module *module);
void gl_module_box_done(struct gl_module_box *b);

/* `input`: {"config", "message", "state", "job_id", "agent_id"}. *ret is valid until the next call.
 * GL_E_INVALID: malformed input; GL_E_STATE: the module failed, and why. */
int gl_module_call(struct gl_module_box *b, gl_str input, gl_str *ret, struct gl_why *reterr_why);

#endif
