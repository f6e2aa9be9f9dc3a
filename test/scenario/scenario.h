/* scenario.h - a story with an exact trace, as a cmocka test.
 *
 *     SCENARIO(a_job_runs_to_its_end, .slots = 1)
 *     {
 *         sim_story_submit(s, "build", "a b:a", 1);
 *         expect(s, "0 n1.1 job job=A pending->running\n" ...);
 *     }
 *     ... cmocka_unit_test(a_job_runs_to_its_end) ...
 */
#ifndef GL_TEST_SCENARIO_H
#define GL_TEST_SCENARIO_H

#include <stdlib.h>

#include "node/node_state.h"
#include "sim/sim_story.h"
#include "support/cmocka_all.h"

#define SCENARIO(name, ...)                                                \
    static void name##_tells(struct sim_story *s);                         \
    static void name(void **state)                                         \
    {                                                                      \
        (void)state;                                                       \
        struct sim_story story;                                            \
        sim_story_begin(&story, &(struct sim_story_options){__VA_ARGS__}); \
        name##_tells(&story);                                              \
        bool ok = sim_story_end(&story);                                   \
        if (!ok) {                                                         \
            fail_msg("%s", story.world.failure);                           \
        }                                                                  \
    }                                                                      \
    static void name##_tells(struct sim_story *s)

/* Let time pass until these lines have been traced; they must be these. */
static inline void expect(struct sim_story *s, const char *text)
{
    const char *wrong = sim_story_expect(s, text);
    if (wrong != NULL) {
        fail_msg("%s", wrong);
    }
}

/* What /metrics of the first node says under this name. */
static inline uint64_t metric(struct sim_story *s, const char *name)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_metrics_write(s->machines[0].node->node, &text);
    const char *line = gl_str_fmt(&a, "\n%s ", name).p;
    gl_buf_char(&text, '\0');
    const char *at = strstr(text.p, line);
    assert_non_null(at);
    return strtoull(at + strlen(line), NULL, 10);
}

#endif
