/* labels.h - the labels of a node: names and values that its operator chooses, as in
 * GLIA_LABELS="zone=a,disk=ssd".
 *
 * A name and a value have 1 to GL_LABEL_BYTES_MAX letters, digits, '_', '.', '-' and '/'. A name
 * occurs once. The order is that in which they were written. */
#ifndef GL_MODEL_LABELS_H
#define GL_MODEL_LABELS_H

#include "base/err.h"
#include "base/json.h"
#include "model/schema.h"

struct gl_label {
    gl_str name, value;
};

struct gl_labels {
    const struct gl_label *items;
    size_t n;
};

/* Read `text` (borrowed); "" gives none. The list is allocated in `a`, its strings are parts of
 * `text`. GL_E_INVALID: the sentence names the label that is wrong, and nothing is returned. */
int gl_labels_parse(gl_str text, struct gl_arena *a, struct gl_labels *ret,
                    struct gl_why *reterr_why);

/* A copy in `a`, strings included. */
struct gl_labels gl_labels_copy(const struct gl_labels *labels, struct gl_arena *a);

/* {"zone": "a", "disk": "ssd"} */
void gl_labels_write(const struct gl_labels *labels, struct gl_jw *w);

/* Read what a node has published. False: it is not an object of valid labels, as with releases that
 * publish none; the text may come from anywhere. */
bool gl_labels_read(const struct gl_json *j, gl_jnode n, struct gl_arena *a, struct gl_labels *ret);

/* ---- what a step requires of a node's labels ---- */

/* A rule is "zone=a" or "zone=a|b" (the label has one of these values), "gpu" (the node has the
 * label), or "!spot" (it has not). */
bool gl_labels_is_rule(gl_str rule);
/* Do the labels, as in GLIA_LABELS, meet the rule? */
bool gl_labels_meet(gl_str labels, gl_str rule);
/* Do they meet all of them? If not, *ret_rule is the first one they do not meet. */
bool gl_labels_meet_all(gl_str labels, const struct gl_strs *rules, gl_str *ret_rule);
/* As in GLIA_LABELS. */
gl_str gl_labels_text(const struct gl_labels *labels, struct gl_arena *a);

#endif
