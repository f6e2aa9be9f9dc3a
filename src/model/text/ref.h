/* ref.h - references: `${steps.fetch.output.rows}` in a text.
 *
 * The roots are `steps`, `inputs` and `job`, and nothing else; `$${` stands for a literal `${`.
 *   steps.ID.output[.PATH]   the output of the step       steps.ID.status, .outcome, .exit_code
 *   inputs.NAME[.PATH]       an input of the job
 *   job.id, job.run_id, job.name, job.submitted_at
 *   job.item[.PATH], job.index    in a step with foreach
 * PATH goes through objects by name and through lists by number: `.rows.0.id`, `.rows[0].id`; a
 * name with other characters than letters, digits, _ and - is quoted: `["a b"]` or `.["a b"]`.
 *
 * Values come from facts: one JSON document {"steps": {ID: {...}}, "inputs": {...}, "job": {...}}
 * that has at least the requested values. A value becomes text: a string as it is, null as
 * nothing, everything else as compact JSON.
 *
 * Never pastes anything into shell text: that is what gl_step_parse() is for. */
#ifndef GL_MODEL_TEXT_REF_H
#define GL_MODEL_TEXT_REF_H

#include "base/json.h"
#include "base/str.h"
#include "model/schema.h"

enum gl_ref_root { GL_REF_STEPS, GL_REF_INPUTS, GL_REF_JOB };

struct gl_ref {
    enum gl_ref_root root;
    gl_str text;         /* between `${` and `}`, trimmed; borrows from the source */
    gl_str step;         /* STEPS: its id */
    struct gl_strs path; /* after the root (and the step); unquoted, in the arena */
};

/* One reference, without `${` and `}`. */
int gl_ref_parse(gl_str text, struct gl_arena *a, struct gl_ref *ret, struct gl_why *reterr_why);

/* Walk through a text: literal pieces and references in turn. *pos starts at 0 and ends at text.n.
 * Returns 0; GL_E_INVALID: a `${` without end or with an invalid inside, at offset ret->at. */
struct gl_ref_piece {
    bool is_ref;
    gl_str literal; /* with `$${` replaced by `${` */
    struct gl_ref ref;
    size_t at; /* offset in the text */
};

int gl_ref_next(gl_str text, size_t *pos, struct gl_arena *a, struct gl_ref_piece *ret,
                struct gl_why *reterr_why);

/* Whether it contains a `${` that is not escaped. */
bool gl_ref_has(gl_str text);
/* Whether it is one reference and nothing else. (Its inside may still be invalid.) */
bool gl_ref_is_one(gl_str text);
/* The end of the reference that begins at `at`: after its `}`. False: it has no end in its line. */
bool gl_ref_end(gl_str text, size_t at, size_t *ret);
/* Unescape a text without references: every `$${` becomes `${`. */
gl_str gl_ref_literal(gl_str text, struct gl_arena *a);
/* The reverse: escape any text, so that it means itself literally. */
gl_str gl_ref_escape(gl_str text, struct gl_arena *a);

/* The value in the facts. GL_E_NOT_FOUND with a sentence that names the missing part and the reason
 * ("step `fetch` was skipped: it has no output"). */
int gl_ref_value(const struct gl_ref *ref, const struct gl_json *facts, struct gl_arena *a,
                 gl_jnode *ret, struct gl_why *reterr_why);

/* The text with every reference replaced by its value's text. GL_E_LIMIT: longer than one argument
 * of a program can be; GL_E_INVALID: a NUL byte. */
int gl_ref_expand(gl_str text, const struct gl_json *facts, struct gl_arena *a, gl_str *ret,
                  struct gl_why *reterr_why);

/* A text that is exactly one reference yields its value (raw JSON); anything else is expanded and
 * yields a JSON string. */
int gl_ref_json(gl_str text, const struct gl_json *facts, struct gl_arena *a, gl_str *ret,
                struct gl_why *reterr_why);

/* Valid JSON without the white space between its tokens. */
void gl_ref_compact(gl_str json, struct gl_buf *out);

#endif
