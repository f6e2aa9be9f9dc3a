/* cond.h - the condition of `when`.
 *
 *   or      := and ("or" and)*
 *   and     := not ("and" not)*
 *   not     := "not" not | test
 *   test    := value [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "contains") value ]
 *            | "exists" reference | "(" or ")"
 *   value   := reference | "text" | 'text' | number | true | false | null | "[" value, ... "]"
 *   reference := ${...} (model/text/ref.h)
 * A value by itself is true unless it is false, null, 0, "", [] or {}. Numbers compare as numbers,
 * texts bytewise; == and != compare any two values; ordering different types is an error.
 * `in`: an element of a list, a key of an object, a part of a text; `contains` swaps the operands.
 * A reference without a value is null, so that conditions can test skipped steps. */
#ifndef GL_MODEL_TEXT_COND_H
#define GL_MODEL_TEXT_COND_H

#include "base/json.h"
#include "base/str.h"

struct gl_cond; /* in the arena */

/* *ret_at: the offset of the error, with GL_E_INVALID. At most GL_COND_DEPTH_MAX deep. Borrows from
 * the text. */
int gl_cond_parse(gl_str text, struct gl_arena *a, const struct gl_cond **ret, size_t *ret_at,
                  struct gl_why *reterr_why);

/* GL_E_INVALID: types that cannot be compared. */
int gl_cond_eval(const struct gl_cond *c, const struct gl_json *facts, struct gl_arena *a,
                 bool *ret, struct gl_why *reterr_why);

/* Every reference in it, in order: to check them, and to know what must be read. */
struct gl_ref;
void gl_cond_refs(const struct gl_cond *c, void (*each)(void *owner, const struct gl_ref *ref),
                  void *owner);

#endif
