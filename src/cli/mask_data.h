/* mask_data.h - redacts the data of agents of bundles, so that the core still decides the same.
 *
 * The structure of documents is kept, and so is every text that the redacted flow contains anyway
 * (names, types, values that conditions compare with) or that is a word of the protocol. Every
 * other text becomes a token: a keyed hash of the same length, the same for the same text in one
 * dump. Numbers become other numbers, unless their key says that they belong to the protocol.
 *
 * Conditions compare values with their own literals only. So a token or a number is used only if
 * every comparison with every literal of the flow's conditions gives the same result as before:
 * equality, order, containment in both directions. If no token is found, the value is kept, and
 * `kept_n` counts it. */
#ifndef GL_CLI_MASK_DATA_H
#define GL_CLI_MASK_DATA_H

#include "base/json.h"
#include "model/flow/flow.h"

enum { GL_MASK_KEY_BYTES = 32 };

struct gl_mask_data {
    uint8_t key[GL_MASK_KEY_BYTES]; /* secret, used for this dump only */
    gl_str shown;                   /* the redacted flow */
    /* Literals of its conditions: all texts; those used with an ordering, with `contains`, or with
     * `in`; numbers. */
    struct gl_strs texts, ordered, parts, wholes, numbers;
    gl_str added; /* names of steps and edges that patches have added, one per line */
    size_t kept_n;
    bool is_told; /* set when a value was kept; the caller's */
    struct gl_arena *arena;
};

/* For a bundle's flow, and its text after redaction; everything lives in `a`. */
void gl_mask_data_init(struct gl_mask_data *d, const uint8_t key[GL_MASK_KEY_BYTES],
                       const struct gl_flow *flow, gl_str shown, struct gl_arena *a);

void gl_mask_data_value(struct gl_mask_data *d, const struct gl_json *j, gl_jnode value,
                        struct gl_arena *a, struct gl_jw *w);
/* The same for a text, which may be JSON, end with a line of JSON, or begin with a prefix of the
 * executor's. `bytes`: the length that a token should have. */
gl_str gl_mask_data_text(struct gl_mask_data *d, gl_str text, size_t bytes, struct gl_arena *a);

#endif
