/* compare.h - compares JSON values, for conditions. Exact: numbers are compared as written, as
 * decimals, never as floating point. */
#ifndef GL_MODEL_TEXT_COMPARE_H
#define GL_MODEL_TEXT_COMPARE_H

#include "base/json.h"

int gl_compare_numbers(gl_str a, gl_str b); /* JSON numbers: < 0, 0 or > 0 */
/* Values of the same type with the same content; members of objects in any order. */
bool gl_compare_equal(const struct gl_json *ja, gl_jnode a, const struct gl_json *jb, gl_jnode b,
                      struct gl_arena *arena);
/* The key (not its value) with that name; NULL if there is none. */
gl_jnode gl_compare_find_key(const struct gl_json *j, gl_jnode object, gl_str name,
                             struct gl_arena *a);

#endif
