/* debug_dump.h - collects what helps to understand a node, in one file of JSON lines.
 *
 *     {"bundle":{...}}     first: release, time, what was redacted (cli/mask.h)
 *     {"setting":{...}}    each setting, its value and source
 *     {"log":"..."}        the end of the node's own log
 *     {"segment":{...}}    then the lines of one segment of the recording (node/flight_recorder.h)
 *
 * It reads the files of the data folder, whether a node runs there or not. */
#ifndef GL_CLI_DEBUG_DUMP_H
#define GL_CLI_DEBUG_DUMP_H

#include "base/err.h"
#include "base/str.h"
#include "cli/settings.h"
#include "model/schema.h"

struct gl_debug_dump {
    const char *data; /* the data folder */
    const struct gl_settings *settings;
    bool with_values; /* no redaction */
    /* What the dump contains. */
    uint64_t segments_n, events_n, logs_n;
    struct gl_strs kept; /* steps with facts whose values were left in, "flow/step"; in the arena */
    struct gl_strs damaged; /* sentences about segments that end early or were left out */
};

/* Append the dump to `out`. GL_E_NOT_FOUND: nothing has been recorded there. */
int gl_debug_dump_make(struct gl_debug_dump *b, struct gl_arena *a, struct gl_buf *out,
                       struct gl_why *reterr_why);

#endif
