/* human_lines.h - the lines of human.jsonl: questions of workers, and their answers. */
#ifndef GL_TEST_SUPPORT_HUMAN_LINES_H
#define GL_TEST_SUPPORT_HUMAN_LINES_H

#include <stdio.h>

#include "support/bench.h"

#define ASK "{\"type\":\"human_input_requested\",\"payload\":{\"request_id\":\"%s\"%s}}\n"
#define ANSWER \
    "{\"type\":\"human_input_received\",\"payload\":{\"request_id\":\"%s\",\"decision\":\"x\"}}\n"

static inline void add_line(struct bench *b, const char *run, const char *fmt, const char *id,
                            const char *more)
{
    assert_int_equal(gl_fs_mkdirs(in(b, run), &b->why), 0);
    FILE *f = fopen(gl_str_fmt(&b->a, "%s/human.jsonl", in(b, run)).p, "ae");
    assert_non_null(f);
    assert_true(fprintf(f, fmt, id, more) > 0);
    assert_int_equal(fclose(f), 0);
}

#endif
