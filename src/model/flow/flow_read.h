/* flow_read.h - reads the values of a flow file and reports errors that users can act on. Shared
 * by flow_parse.c and step_parse.c.
 *
 * No error stops the reading. It is recorded with its place and path, the value keeps its
 * default, and the rest is still checked. Each error has a reason for programs. */
#ifndef GL_MODEL_FLOW_FLOW_READ_H
#define GL_MODEL_FLOW_FLOW_READ_H

#include "base/map.h"
#include "base/suggest.h"
#include "model/flow/flow.h"

struct gl_flow_reader {
    const struct gl_json *j;
    struct gl_flow_loader *loader; /* NULL: files cannot be loaded */
    struct gl_arena *a;
    struct gl_flow_errors *errors;
    struct gl_map texts, paths; /* loaded already: struct gl_flow_file */
    const struct gl_flow *flow; /* the inputs are read before the steps */
    struct gl_buf refs;         /* struct gl_flow_step_ref: references to steps */
};

/* The path of a value in the flow; formatted only for an error. "steps.fetch" +
 * "run" + [2], or "steps.fetch" + "env" + "HOME". */
struct gl_flow_path {
    gl_str of;
    const char *field; /* NULL: none */
    gl_str key;
    uint32_t item; /* from 1; 0: none */
};

/* A reference to a step, kept until all steps are known. */
struct gl_flow_step_ref {
    gl_jnode n;
    struct gl_flow_path at;
    gl_str step;   /* the step it names */
    gl_str text;   /* where it is ... */
    size_t offset; /* ... at this place */
    uint32_t reader;
};

void gl_flow_read_error(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                        enum gl_reason reason, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for an error at `offset` in the text of `n`. The place is found if the source contains
 * the text unchanged. */
void gl_flow_read_error_in(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                           gl_str text, size_t offset, enum gl_reason reason, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));
/* Whether the next error will be kept. If not, do not spend time on a suggestion. */
bool gl_flow_read_error_has_room(const struct gl_flow_reader *r);
/* "; did you mean `x`?", or nothing. */
const char *gl_flow_read_suggestion(struct gl_flow_reader *r, const struct gl_suggest *near);
bool gl_flow_read_is_field(const char *of, gl_str name); /* listed in gl_flow_fields */
/* A field that gl_flow_fields does not list for `of`. */
void gl_flow_read_unknown(struct gl_flow_reader *r, gl_jnode key, const char *of,
                          struct gl_flow_path at);
gl_str gl_flow_read_clip(gl_str s); /* short enough for a sentence */

/* If the value is invalid, each returns false, records an error and leaves *ret unchanged. */
bool gl_flow_read_scalar(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_str *ret);
bool gl_flow_read_text(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_str *ret);
bool gl_flow_read_int(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, int64_t lo,
                      int64_t hi, int64_t *ret);
bool gl_flow_read_span(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_ms lo,
                       gl_ms *ret);
bool gl_flow_read_bool(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, bool *ret);
/* A word from a NULL-terminated list; `aliases` has another spelling or NULL for each, or is
 * NULL. */
bool gl_flow_read_word(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                       const char *const *words, const char *const *aliases, uint8_t *ret);
/* A number from 0 to 100 with at most two decimals, in percent. */
bool gl_flow_read_percent(struct gl_flow_reader *r, gl_jnode n, uint32_t *ret);
/* The file at `path`, or with the content `text`; each is loaded only once. NULL with an error.
 * Does not set its name. */
const struct gl_flow_file *gl_flow_read_file(struct gl_flow_reader *r, gl_jnode n,
                                             struct gl_flow_path at, gl_str path, gl_str text);

#endif
