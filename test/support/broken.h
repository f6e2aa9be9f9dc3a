/* broken.h - broken files, and exactly what is said about them: FOLDER/NAME.<ending> with
 * NAME.expected, in the words and with the caret that `glia validate` shows. */
#ifndef GL_TEST_SUPPORT_BROKEN_H
#define GL_TEST_SUPPORT_BROKEN_H

#include "base/json.h"
#include "model/flow/flow.h"

struct broken_kind {
    const char *folder;
    const char *ending; /* ".yaml" */
    unsigned files_min; /* so many are there, or the test looks in the wrong place */
    /* Is it a document at all? */
    int (*parse)(struct gl_json *j, gl_str text, size_t max, struct gl_arena *a,
                 struct gl_why *reterr_why);
    /* 0: nothing is wrong with it. */
    int (*judge)(const struct gl_json *j, struct gl_arena *a, struct gl_flow_errors *reterr);
};

/* All files of the folder. */
void broken_check_all(const struct broken_kind *kind);
/* With the name of a file as argument, print what would be said of it; true: that is done. */
bool broken_print(const struct broken_kind *kind, int argc, char **argv);

#endif
