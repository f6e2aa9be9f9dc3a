/* fuzz_worker - what a worker prints, and what its executor tells of it. Whatever it is, its
 * payload is JSON, and what it says lies within it. */
#include <stdint.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/worker_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(gl_str text, struct gl_arena *a)
{
    struct gl_json j;

    GL_ASSERT(gl_json_parse(&j, text, SIZE_MAX >> 1, a, NULL) == 0);
}

static void check_said(const struct gl_worker_output *said, struct gl_arena *a)
{
    const struct gl_worker_event *events = said->events.items;

    GL_ASSERT(!said->is_structured || said->is_json);
    GL_ASSERT(!(said->completes_step && said->completes_run));
    if (said->has_state) {
        check_json(said->next_state, a);
    }
    for (size_t i = 0; i < said->events.n; i++) {
        check_json(events[i].payload, a);
        (void)gl_worker_output_event_step(events[i].payload, a);
    }
    for (gl_jnode n = gl_json_first(&said->json, said->emits); n != NULL;
         n = gl_json_after(&said->json, said->emits, n)) {
        struct gl_message m, incoming;
        struct gl_why why = {0};

        gl_message_defaults(&incoming);
        if (gl_message_emitted(&said->json, n, &incoming, a, &m, &why) != 0) {
            GL_ASSERT(why.text[0]);
        }
    }
}

static void check_result(const struct gl_worker_result *r, struct gl_arena *a)
{
    struct gl_worker_result back;
    struct gl_buf out = {0}, again = {0};

    gl_worker_result_write(r, &out);
    GL_ASSERT(gl_worker_result_read(gl_buf_view(&out), a, &back, NULL) == 0);
    gl_worker_result_write(&back, &again);
    GL_ASSERT(gl_str_eq(gl_buf_view(&out), gl_buf_view(&again)));
    gl_buf_done(&out);
    gl_buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size};
    struct gl_worker_result r = {.stdout_text = text, .stderr_text = text};
    struct gl_worker_turn_facts turn = {.agent_id = GL_S("a"), .input_body = text};
    struct gl_worker_output said;
    struct gl_why why = {0};

    if (gl_worker_output_read(text, &a, &said, &why) == 0) {
        check_said(&said, &a);
        check_json(gl_worker_output_payload(&turn, &r, &said, &a), &a);
    } else {
        GL_ASSERT(why.text[0]);
    }
    check_result(&r, &a);
    if (gl_worker_result_read(text, &a, &r, &why) == 0) {
        check_result(&r, &a);
    }
    (void)gl_worker_output_is_transient(text, text, text);
    (void)gl_worker_output_event_step(text, &a);
    gl_arena_done(&a);
    return 0;
}
