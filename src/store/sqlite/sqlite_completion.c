/* sqlite_completion.c - runs on the control thread: completes the calls of one post, in order, then
 * frees the arena that holds their results. Worker threads build these objects and never touch them
 * after posting. */
#include "store/sqlite/sqlite_parts.h"

#include "base/check.h"

static void run(struct gl_loop_task *t)
{
    struct gl_sqlite_completion *b = GL_CONTAINER(t, struct gl_sqlite_completion, task);
    struct gl_sqlite *s = b->store;
    struct gl_call *call;

    GL_ASSERT(!gl_list_empty(&b->calls));
    while ((call = gl_call_pop(&b->calls)) != NULL) {
        gl_calls_complete(&s->calls, call);
    }
    gl_arena_done(&b->arena);
    gl_mem_free(b);
    /* Last, because it may free the store. */
    gl_sqlite_finish_close(s);
}

struct gl_sqlite_completion *gl_sqlite_completion_new(struct gl_sqlite *s)
{
    struct gl_sqlite_completion *b = gl_mem_alloc(sizeof(*b));
    b->task.run = run;
    b->store = s;
    gl_list_init(&b->calls);
    gl_arena_init(&b->arena);
    GL_ASSERT(gl_list_empty(&b->calls));
    return b;
}

void gl_sqlite_completion_post(struct gl_sqlite_completion *b)
{
    GL_ASSERT(!gl_list_empty(&b->calls));
    gl_loop_post(b->store->calls.loop, &b->task);
}
