/* mask_facts.h - what a step's references have read of outputs and inputs, without the values in
 * it, but so that its gate decides the same.
 *
 * Only what the references that decide about a step lead to is left: those of `when`, `foreach`,
 * `concurrency`, `sleep`, `until` and of the question to a person. Of it, as little is left as
 * leaves the decision the same. That is tried: `when`, the number of items, the key and the time
 * are worked out from what is left, and compared with what comes out of all.
 *   of `foreach`              the number of elements
 *   of a condition            numbers and truth values; texts are ***1, ***2 and so on, the same
 *                             for the same text, unless they stand in the condition; lists keep
 *                             their length, and an object keeps whether it is empty
 *   if that is not enough     the structure of lists and objects, too, and their numbers
 *   if that is not enough     all of it
 * Everything else is hidden: only its type is left, and members of objects go. */
#ifndef GL_CLI_MASK_FACTS_H
#define GL_CLI_MASK_FACTS_H

#include "base/json.h"
#include "base/map.h"
#include "model/flow/flow.h"

struct gl_mask_facts {
    struct gl_map texts; /* that became ***1, ***2, ... */
    struct gl_arena *arena;
};

/* What is remembered lives in `a`. */
void gl_mask_facts_init(struct gl_mask_facts *f, struct gl_arena *a);
void gl_mask_facts_done(struct gl_mask_facts *f);

/* The facts of a step; NULL: not known, and nothing is left. `is_item`: of one of its instances.
 * Gives back whether some value was left as it is. */
bool gl_mask_facts_write(struct gl_mask_facts *f, const struct gl_step_spec *step, bool is_item,
                         const struct gl_json *facts, struct gl_arena *line, struct gl_buf *out);

/* Nothing but the type is left. */
void gl_mask_hide(gl_jnode value, struct gl_jw *w);
/* The same of each element, if it is a list. */
void gl_mask_hide_list(const struct gl_json *j, gl_jnode value, struct gl_jw *w);

#endif
