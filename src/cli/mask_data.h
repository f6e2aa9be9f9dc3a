/* mask_data.h - what agents of bundles say, without the values in it, but so that the core decides
 * the same.
 *
 * The structure of documents stays, and so does each text that stands in the redacted flow anyway
 * (names, types, what conditions compare with) or is a word of the protocol. Every other text
 * becomes a token: a keyed hash of the same length, the same for the same text in one dump. Numbers
 * become others, unless their key says that they are the protocol's.
 *
 * Conditions compare values with what is written in them, and with nothing else. So a token or a
 * number is taken only if every comparison with every literal of the flow's conditions comes out as
 * before: equality, order, being part of it, having it as a part. If none can be found the value
 * stays, and `kept_n` counts it. */
#ifndef GL_CLI_MASK_DATA_H
#define GL_CLI_MASK_DATA_H

#include "base/json.h"
#include "model/flow/flow.h"

enum { GL_MASK_KEY_BYTES = 32 };

struct gl_mask_data {
    uint8_t key[GL_MASK_KEY_BYTES]; /* secret, of this dump */
    gl_str shown;                   /* the redacted flow */
    /* Literals of its conditions: all texts; those that something is ordered by, is asked to
     * contain, or to be a part of; numbers. */
    struct gl_strs texts, ordered, parts, wholes, numbers;
    gl_str added; /* names of steps and edges that patches have added, a line each */
    size_t kept_n;
    bool is_told; /* that some have been kept: the caller's */
    struct gl_arena *arena;
};

/* Of a bundle's flow, and its text after redaction; everything lives in `a`. */
void gl_mask_data_init(struct gl_mask_data *d, const uint8_t key[GL_MASK_KEY_BYTES],
                       const struct gl_flow *flow, gl_str shown, struct gl_arena *a);

void gl_mask_data_value(struct gl_mask_data *d, const struct gl_json *j, gl_jnode value,
                        struct gl_arena *a, struct gl_jw *w);
/* The same of a text, which may be JSON, or end with a line of it, or begin with a prefix of the
 * executor's. `bytes`: the length that a token should have. */
gl_str gl_mask_data_text(struct gl_mask_data *d, gl_str text, size_t bytes, struct gl_arena *a);

#endif
