/* mask_facts.h - redacts the outputs and inputs that a step's references have read, so that its
 * gate still decides the same.
 *
 * Keeps only values named by references that decide about a step: those of `when`, `foreach`,
 * `concurrency`, `sleep`, `until` and of the question to a person. Of these values it keeps the
 * minimum that gives the same decision. It verifies that by evaluating `when`, the number of items,
 * the key and the time from the reduced values, and comparing the results. What is kept:
 *   for `foreach`             the number of elements
 *   for a condition           numbers and truth values; texts become ***1, ***2 and so on, the same
 *                             for the same text, unless they are in the condition; lists keep
 *                             their length, and objects keep whether they are empty
 *   if that is not enough     also the structure of lists and objects, and the numbers in them
 *   if that is not enough     the whole value
 * Everything else is hidden: only its type is kept, and members of objects are removed. */
#ifndef GL_CLI_MASK_FACTS_H
#define GL_CLI_MASK_FACTS_H

#include "base/json.h"
#include "base/map.h"
#include "model/flow/flow.h"

struct gl_mask_facts {
    struct gl_map texts; /* texts that became ***1, ***2, ... */
    struct gl_arena *arena;
};

/* State lives in `a`. */
void gl_mask_facts_init(struct gl_mask_facts *f, struct gl_arena *a);
void gl_mask_facts_done(struct gl_mask_facts *f);

/* The facts of a step; NULL: not known, and no value is kept. `is_item`: of one of its instances.
 * Returns whether a value was kept unchanged. */
bool gl_mask_facts_write(struct gl_mask_facts *f, const struct gl_step_spec *step, bool is_item,
                         const struct gl_json *facts, struct gl_arena *line, struct gl_buf *out);

/* Keep only the type. */
void gl_mask_hide(gl_jnode value, struct gl_jw *w);
/* The same for each element, if it is a list. */
void gl_mask_hide_list(const struct gl_json *j, gl_jnode value, struct gl_jw *w);

#endif
