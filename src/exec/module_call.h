/* module_call.h - a loaded module: its instances, and one message handled by it.
 *
 * The same in the node, for trusted modules, and in glia-module-host for all others. What the
 * module said becomes one JSON document in the shape of model/bundle/worker_output.h. Every piece
 * of JSON that it gives is checked when it is given, so the document is always well formed.
 *
 * Instances are kept between calls, up to a limit, because making one may be expensive: one for
 * each configuration, or one for each agent if the module keeps states in memory. Of the latter it
 * is known which state each has; one that has another than the call brings is given that first, so
 * a message that is handled again after its transaction failed finds the state it found before. */
#ifndef GL_EXEC_MODULE_CALL_H
#define GL_EXEC_MODULE_CALL_H

#include <glia/module.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"

struct gl_module_output { /* by the call under way; memory is kept for the next */
    struct glia_out face;
    struct gl_arena arena; /* of a check */
    struct gl_buf state, events, emits, step, run;
    bool has_state, completes_step, completes_run;
    size_t emits_n, bytes;
    struct gl_why why; /* the first thing that was wrong; code 0: nothing */
};

struct gl_module_box {
    const struct glia_module *module; /* borrowed */
    struct gl_map instances;
    struct gl_link order;  /* of use: the one used last at the end */
    struct gl_arena arena; /* of a call */
    struct gl_buf key, document;
    struct gl_module_output output;
};

/* May this be used as a module? GL_E_VERSION, GL_E_INVALID: no. */
int gl_module_check(const struct glia_module *m, struct gl_why *reterr_why);

void gl_module_box_init(struct gl_module_box *b, const struct glia_module *module);
void gl_module_box_done(struct gl_module_box *b);

/* `input`: {"config", "message", "state", "job_id", "agent_id"}. *ret is valid until the next call.
 * GL_E_INVALID: the input is not what it should be; GL_E_STATE: the module failed, and why. */
int gl_module_call(struct gl_module_box *b, gl_str input, gl_str *ret, struct gl_why *reterr_why);

#endif
