/* A recording from a stranger: it is read, or refused with a sentence; and what is shown of it has
 * no values that were not meant to be shown. */
#include "cli/mask.h"
#include "sim/replay.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gl_str text = {.p = (const char *)data, .n = size};
    struct sim_replay_options options = {.read_only = true, .is_bare = size % 2 != 0};
    struct sim_replay_result result;
    struct gl_mask *mask = gl_mask_new((const uint8_t[32]){1});
    struct gl_buf out = {0};
    struct gl_why why;

    /* Whether it was refused does not matter here. */
    (void)sim_replay_run(text, &options, &result, &why);
    sim_replay_done(&result);
    while (text.n > 0) {
        (void)gl_mask_line(mask, gl_str_cut(text, '\n', &text), &out, &why);
    }
    gl_mask_free(mask);
    gl_buf_done(&out);
    return 0;
}
